"""The setting of Synergy's experiments (OSDI'22), for the figures beside this file.

Nodes of 8 GPUs, 24 CPUs and 500 GB; rounds of 300 s; jobs and profiles as the public simulator has
them (shadowprice.instances.generators.synergy, shadowprice.instances.speeds.profiles): work is run
time with a GPU-proportional share. As there, JCT is that of jobs late in the trace, with others
before and after them. Other random jobs of the same law; stopping and moving are free.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.analysis.plots.style import COLOURS, GREY
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.conditions import Conditions
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.solvers.registry import policy

OUT = Path(__file__).parent / "out"
ROUND_S = 300.0
GPUS_PER_NODE = 8
MEMORY_GB = 500
FULL_GPUS = 128
"""Rates of arrivals are given for a cluster of so many."""


def arguments(description: str) -> argparse.Namespace:
    """What every figure takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few jobs on 32 GPUs")
    return parser.parse_args()


def cluster(gpus: int, cpus_per_gpu: int = 3) -> sp.Cluster:
    """Nodes of the setting."""
    cpus = GPUS_PER_NODE * cpus_per_gpu
    return sp.Cluster.parse(f"{gpus // GPUS_PER_NODE}x{GPUS_PER_NODE}+{cpus}cpu+{MEMORY_GB}gb")


def instance(jobs: sp.Workload, where: sp.Cluster) -> Instance:
    """Jobs with profiles."""
    profiles = Profiles.synthetic().of(jobs, where)
    return Instance(where, jobs, conditions=Conditions(profiles))


def outcome(given: Instance, name: str) -> sp.Outcome:
    """One verified run."""
    done = run(given, policy(name), rounds=Rounds(ROUND_S))
    return sp.Outcome.verified(
        given,
        done.schedule,
        policy=name,
        settings={"round_s": ROUND_S, "preemptive": True},
        decisions=done.decisions,
        cpu_s=done.cpu_s,
    )


def measured_jct_h(of: sp.Outcome) -> np.ndarray:
    """JCT [h] of the jobs from 2/3 to 5/6 of the trace: of 6,000, the published 4,000 to 5,000."""
    n = len(of.jct_s)
    measured: np.ndarray = of.jct_s[2 * n // 3 : 5 * n // 6] / 3600.0
    return measured


def lines(axes: Axes, frame: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> None:
    """Mean over seeds of every policy."""
    for colour, name in zip(COLOURS, names, strict=False):
        mean = frame[frame["policy"] == name].groupby(x)[y].mean()
        axes.plot(mean.index, mean, marker="o", ms=3, lw=1.4, color=colour, label=name)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(0, 1.1 * axes.dataLim.ymax)
    axes.legend(frameon=False, fontsize=8)


def gains(frame: pd.DataFrame, by: Sequence[str], y: str = "jct_h") -> pd.DataFrame:
    """Mean over seeds of proportional over tune, by the columns given."""
    mean = frame.pivot_table(index=list(by), columns="policy", values=y)
    return (mean["proportional"] / mean["tune"]).rename("gain").reset_index()


def titled(axes: Axes, title: str, text: str) -> None:
    """Title a picture, and say below it what it shows."""
    axes.set_title(title, loc="left", pad=8 + 10 * len(text.splitlines()), fontsize=10)
    axes.text(0.0, 1.02, text, transform=axes.transAxes, fontsize=7.5, color=GREY)


def save(frame: pd.DataFrame, figure: Figure, name: str) -> None:
    """Write the numbers and the picture to ``paper_figs/out``."""
    OUT.mkdir(exist_ok=True)
    frame.to_csv(OUT / f"{name}.csv", index=False)
    figure.savefig(OUT / f"{name}.png", dpi=150)
    print(frame.to_string(index=False, max_rows=60))
