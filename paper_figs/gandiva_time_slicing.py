"""Gandiva (OSDI'18), section 6.1 and Figure 9: six jobs take turns on four GPUs.

Published: with turns of 60 s the six together lose less than 2 % of their throughput. Run:
``python paper_figs/gandiva_time_slicing.py`` (seconds); writes
paper_figs/out/gandiva_time_slicing.{csv,png}. Suspending and resuming takes 0.1 s for image models and
up to 1 s for translation (section 4.1); both, and more, are tried.
"""

import numpy as np
import pandas as pd
from _gandiva import COLOURS, GREY, Run, arguments, note, save, simulate
from matplotlib.figure import Figure

import shadowprice as sp

JOBS, GPUS = 6, 4
CHARGES_S = (0.125, 0.5, 1.0, 4.0)
PUBLISHED_LOSS = 0.02


def run(quantum_s: float, charge_s: float, minutes: int) -> Run:
    """Six jobs too long to end within so many minutes, on one server."""
    jobs = sp.Workload.from_columns(
        arrival_s=np.zeros(JOBS), gpus=1, work=60.0 * minutes, source="six jobs"
    )
    given = sp.Instance(sp.Cluster.parse(f"1x{GPUS}"), jobs, sp.Overheads(restart_s=charge_s))
    return simulate(given, (f"gandiva-reactive:quantum_s={quantum_s:g}", "count"))


def progress_s(found: Run, at_s: np.ndarray) -> np.ndarray:
    """Work done by every job at these times [s], shape (times, jobs)."""
    schedule = found.schedule
    done = np.zeros((len(at_s), JOBS))
    begin = schedule.start_s + schedule.overhead_s
    for job, start, end in zip(schedule.job, begin, schedule.end_s, strict=True):
        done[:, job] += np.clip(at_s - start, 0.0, max(end - start, 0.0))
    return done


def draw(table: pd.DataFrame, found: Run, minutes: int) -> Figure:
    """Progress of the six with turns of 60 s, and the loss against the length of a turn."""
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    at_s = np.linspace(0.0, 60.0 * min(minutes, 15), 400)
    for job, done in enumerate(progress_s(found, at_s).T):
        # Jobs that take their turns together lie on one another.
        width, style = (1.0, "--") if job % 2 else (2.6, "-")
        left.plot(
            at_s / 60, done / 60, lw=width, ls=style, color=COLOURS[job], label=f"job {job + 1}"
        )
    left.plot(at_s / 60, at_s / 60 * GPUS / JOBS, color=GREY, ls=":", lw=1.2, label="4/6 of a GPU")
    left.set_xlabel("time [min]")
    left.set_ylabel("work done [min]")
    left.legend(frameon=False, fontsize=8)
    for charge_s, colour in zip(CHARGES_S, COLOURS, strict=False):
        part = table[table.charge_s == charge_s]
        right.plot(
            part.quantum_s,
            part.loss_percent,
            color=colour,
            marker="o",
            ms=4,
            label=f"{charge_s:g} s to suspend and resume",
        )
    right.axhline(100 * PUBLISHED_LOSS, color=GREY, ls="--", lw=1, label="published: less than 2 %")
    right.axvline(60, color=GREY, ls=":", lw=1)
    right.set_xscale("log")
    right.set_yscale("log")
    ticks = sorted(table.quantum_s.unique())
    right.set_xticks(ticks, [f"{q:g}" for q in ticks])
    right.minorticks_off()
    right.set_xlabel("length of a turn [s]")
    right.set_ylabel("throughput lost, all six [%]")
    right.legend(frameon=False, fontsize=8)
    at_60 = table[(table.quantum_s == 60) & (table.charge_s <= 1)].loss_percent
    note(
        left,
        "Gandiva, Fig. 9: six jobs on four GPUs, turns of 60 s",
        "Every job gets its 4/6 of a GPU, a turn of 2 in 3.",
    )
    note(
        right,
        "Aggregate loss",
        f"{at_60.min():.2f} to {at_60.max():.2f} % at 60 s for 0.1 to 1 s; published less than 2 %.",
    )
    return figure


if __name__ == "__main__":
    quick = arguments(__doc__).quick
    length_min = 60 if quick else 240
    end_s = np.array([60.0 * length_min])
    rows = [
        {
            "quantum_s": quantum_s,
            "charge_s": charge_s,
            "loss_percent": 100 * (1 - progress_s(one, end_s).sum() / (GPUS * end_s[0])),
        }
        for charge_s in CHARGES_S
        for quantum_s in (15.0, 30.0, 60.0, 120.0, 300.0)
        if (one := run(quantum_s, charge_s, length_min))
    ]
    results = pd.DataFrame(rows)
    save(results, draw(results, run(60.0, 0.5, length_min), length_min), "gandiva_time_slicing")
