"""Hadar (IPDPS'24), scalability: CPU time of one decision against the number of queued jobs.

All jobs are there at 0 on 60 and on 1,024 GPUs of three types; Gavel's decision is its linear
programme and the choice of jobs for the round. Every job has rates of its own, by up to 10 % off the
measured ones, so that no two are alike. The paper reports minutes for 2,000 jobs (recalled). Of
Hadar's first three decisions the slowest counts. The dashed line is the fitted power of the number
of jobs, from 128 jobs on. One thread. Run: ``python paper_figs/hadar_decision_time.py [--throughputs FILE]`` (a
minute), ``--quick`` (seconds); writes paper_figs/out/hadar_decision_time.{csv,png}.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: its threads' time counts

import numpy as np
import pandas as pd
from _hadar import COLOUR_OF, GREY, POLICIES, Scale, arguments, note, save, table
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.solvers.registry import policy

SYSTEMS = ("Hadar", "Hadar, U = 1/JCT", "Gavel")
CLUSTERS = {60: "5x4:v100,5x4:p100,5x4:k80", 1024: "86x4:v100,85x4:p100,85x4:k80"}
SIZES = {
    Scale.QUICK: ((32, 128, 256), 1),
    Scale.USUAL: ((32, 64, 128, 256, 512, 1024, 2048, 4096), 3),
    Scale.FULL: ((32, 64, 128, 256, 512, 1024, 2048, 4096, 8192), 9),
}
"""Numbers of jobs, draws of them."""
FITTED_FROM = 128


def distinct(jobs: int, seed: int, rates: sp.Throughputs) -> sp.Workload:
    """Jobs of the 60-GPU setting, each with rates of its own."""
    drawn = sp.generate("hadar", jobs=jobs, seed=seed, throughputs=rates)
    noise = np.random.default_rng([seed, jobs]).uniform(0.9, 1.1, drawn.throughput.shape)
    return sp.Workload.from_columns(
        arrival_s=drawn.arrival_s,
        gpus=drawn.gpus,
        work=drawn.work,
        throughput=drawn.throughput * noise,
        gpu_types=drawn.gpu_types,
        source=drawn.source,
    )


def exponent(jobs: np.ndarray, cpu_s: np.ndarray) -> tuple[float, float]:
    """Power of the number of jobs that fits best, and the factor before it."""
    slope, start = np.polyfit(np.log(jobs), np.log(cpu_s), 1)
    return float(slope), float(np.exp(start))


def draw(axes: Axes, frame: pd.DataFrame, gpus: int) -> None:
    """Medians over the draws and fits."""
    fits, slowest = [], {}
    for name in SYSTEMS:
        median = frame[frame["system"] == name].groupby("jobs")["cpu_s"].median()
        axes.plot(median, marker="o", ms=3, lw=1.4, color=COLOUR_OF[name], label=name)
        large = median[median.index >= FITTED_FROM]
        slowest[name] = median.iloc[-1]
        slope, factor = exponent(large.index.to_numpy(), large.to_numpy())
        axes.plot(
            large.index, factor * large.index.to_numpy() ** slope, ls="--", lw=0.8, color=GREY
        )
        fits.append(f"{name} n^{slope:.2f}")
    axes.axhline(1.0, color=GREY, ls=":", lw=1)
    axes.set(
        xlabel="queued jobs n", ylabel="CPU time of a decision [s]", xscale="log", yscale="log"
    )
    axes.set_ylim(None, 20.0)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    most = int(frame["jobs"].max())
    note(
        axes,
        f"{gpus:,} GPUs",
        f"fitted: {', '.join(fits)}\nHadar at {most:,} jobs: {slowest['Hadar']:.2f} s, Gavel {slowest['Gavel']:.2f} s; "
        "published: minutes (recalled); dotted: 1 s",
    )


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    sizes, seeds = SIZES[given.scale]
    rows = []
    for gpus, where in CLUSTERS.items():
        for jobs in sizes:
            for seed in range(seeds):
                instance = sp.Instance(sp.Cluster.parse(where), distinct(jobs, seed, rates))
                for name in SYSTEMS:
                    took = first_decisions_s(instance, policy(POLICIES[name][0]), 3)
                    rows.append(
                        {
                            "gpus": gpus,
                            "jobs": jobs,
                            "seed": seed,
                            "system": name,
                            "cpu_s": max(took),
                        }
                    )
    results = pd.DataFrame(rows)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for axes, gpus in zip(figure.subplots(1, 2, sharey=True), CLUSTERS, strict=True):
        draw(axes, results[results["gpus"] == gpus], gpus)
    save(results, figure, "hadar_decision_time")
