"""Tiresias (NSDI'19), Figure 7 and 20: the worked example, three jobs on two GPUs.

Jobs (GPUs, time) = (2, 2), (1, 8), (2, 6), unit intervals, ties by index. Published mean JCT: 9.3
under SRSF, which knows durations, 10 under 2D-Gittins, which knows their distribution, 11.7 under
2D-LAS, which knows nothing. Run: ``python paper_figs/tiresias_worked_example.py`` (seconds); writes
paper_figs/out/tiresias_worked_example.{csv,png}.

What is read into it: 2D-Gittins with two queues and a threshold of 4 GPU-s, the limits of 2D-LAS at
every GPU-second; the paper states neither.
"""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.analysis.plots.gantt import gantt

OUT = Path(__file__).parent / "out"
JOBS = {"arrival_s": [0, 0, 0], "gpus": [2, 1, 2], "work": [2, 8, 6], "id": ["1", "2", "3"]}
POLICIES = {
    "SRSF": ("srsf", 9.3),
    "2D-Gittins": ("gittins2d:thresholds_gpu_s=4", 10.0),
    "2D-LAS": ("las2d:thresholds_gpu_s=1/2/3/4/5/6/7/8/9/10/11/12", 11.7),
}
"""Policy, and published mean JCT."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes a second")
    parser.parse_args()
    OUT.mkdir(exist_ok=True)
    figure = Figure(figsize=(13, 3.2), layout="constrained")
    rows = []
    for axes, (label, (policy, published)) in zip(
        figure.subplots(1, 3), POLICIES.items(), strict=True
    ):
        jobs = sp.Workload.from_columns(**JOBS)
        outcome = sp.simulate(jobs, "1x2", policy, sp.Semantics(round_s=1.0))
        mean_s = float(outcome.jct_s.mean())
        rows.append({"policy": label, "mean_jct_s": mean_s, "published": published})
        gantt(outcome.instance, outcome.schedule, axes, until_s=18.0)
        axes.set_title(f"{label}: mean JCT {mean_s:.1f}, published {published:g}", loc="left")
    frame = pd.DataFrame(rows)
    frame.to_csv(OUT / "tiresias_worked_example.csv", index=False)
    figure.savefig(OUT / "tiresias_worked_example.png", dpi=150)
    print(frame.to_string(index=False))
