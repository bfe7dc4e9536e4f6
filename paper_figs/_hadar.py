"""The systems that Hadar's and HadarE's figures compare, and one row of metrics for each run.

Settings recalled from the papers: rounds of 6 minutes, 10 s for a restart. Hadar is run with the
published utility, iterations over time in the system, and with 1 / (time in the system), since the
first makes long jobs worth more than short ones. Tiresias is 2D-LAS with a threshold of 3,200
GPU-s, YARN-CS is FIFO with consolidated gangs, Gavel is heterogeneity-aware max-min fairness. For
HadarE a copy uses all GPUs of its node, its speed in proportion to them (as recalled: 'one whole
node'); with ``CopyWidth.GANG`` it uses no more GPUs than the job asked for and holds the others idle.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _gavel import COLOURS, GREY, OUT, TYPES, Scale, cluster, save, table
from matplotlib.axes import Axes

import shadowprice as sp
from shadowprice.analysis.run_metrics import RunMetrics, of_schedule
from shadowprice.execution.copies.hadare import CopyWidth

__all__ = ["COLOURS", "GREY", "OUT", "TYPES", "Scale", "cluster", "save", "table"]

ROUND_S, RESTART_S = 360.0, 10.0
POLICIES = {
    "Hadar": ("hadar", "count"),
    "Hadar, U = 1/JCT": ("hadar:utility=completion_time", "count"),
    "Gavel": ("gavel:max_min_fairness_perf", "count"),
    "Gavel, makespan": ("gavel:min_total_duration_perf", "count"),
    "Tiresias": ("las2d:thresholds_gpu_s=3200", "count"),
    "YARN-CS": ("fifo", "consolidate"),
}
IN_ROUNDS = ("hadar", "gavel")
"""Policies with a parameter ``round_s``; the others decide when something happens."""
COPIES = {"HadarE": CopyWidth.NODE, "HadarE, own gang": CopyWidth.GANG}
COLOUR_OF = {
    "Hadar": COLOURS[0],
    "Hadar, U = 1/JCT": COLOURS[5],
    "HadarE": COLOURS[2],
    "HadarE, own gang": "#8fd3bd",
    "Gavel": COLOURS[1],
    "Gavel, makespan": COLOURS[4],
    "Tiresias": COLOURS[3],
    "YARN-CS": "#999999",
}
"""The same colour for a system in all pictures."""


def arguments(
    description: str, *more: Callable[[argparse.ArgumentParser], object]
) -> argparse.Namespace:
    """``--quick``, ``--full`` and ``--throughputs``, and what a figure adds."""
    parser = argparse.ArgumentParser(description=description)
    scale = parser.add_mutually_exclusive_group()
    for each in (Scale.QUICK, Scale.FULL):
        scale.add_argument(f"--{each}", dest="scale", action="store_const", const=each)
    parser.set_defaults(scale=Scale.USUAL)
    parser.add_argument(
        "--throughputs", type=Path, help="Gavel's throughput table (JSON, may be xz)"
    )
    for add in more:
        add(parser)
    return parser.parse_args()


@dataclass(frozen=True)
class Run:
    """A verified run of a system.

    Parameters
    ----------
    metrics : RunMetrics
    lost : float
        Share of the cluster's time until the end that went into restarts and averaging.
    outcome : Outcome, optional
        Of systems that run a job as one gang.
    """

    metrics: RunMetrics
    lost: float
    outcome: sp.Outcome | None = None


def run(
    label: str,
    jobs: sp.Workload,
    where: sp.Cluster,
    *,
    round_s: float = ROUND_S,
    aggregation_s: float = 0.0,
) -> Run:
    """Run a system by its name in the figures."""
    if label in COPIES:
        hadare = sp.HadarE(
            round_s=round_s, restart_s=RESTART_S, aggregation_s=aggregation_s, width=COPIES[label]
        )
        outcome = sp.simulate(jobs, where, hadare)
        found = of_schedule(outcome.instance, outcome.schedule)
        lost_s = outcome.schedule.overhead_s.sum()
        return Run(found, lost_s / (len(where.nodes) * found.ttd_s))
    policy, placement = POLICIES[label]
    name, _, given = policy.partition(":")
    if name in IN_ROUNDS:
        policy = f"{name}:" + ",".join(part for part in (given, f"round_s={round_s}") if part)
    semantics = sp.Semantics(placement=placement, overheads=sp.Overheads(restart_s=RESTART_S))
    outcome = sp.simulate(jobs, where, policy, semantics)
    schedule = outcome.schedule
    found = of_schedule(outcome.instance, schedule)
    lost_s = (schedule.gpus * schedule.overhead_s).sum()
    return Run(found, lost_s / (where.total_gpus * found.ttd_s), outcome)


def idle_beside_waiting(outcome: sp.Outcome) -> float:
    """Share of GPU time without a job, of the time in which some job has arrived and holds no GPU.

    A share above 0 is what gangs that do not fit, rounds, and prices above payoffs cost.
    """
    schedule, instance = outcome.schedule, outcome.instance
    one, none = np.ones(len(instance.workload)), np.zeros(len(instance.workload))
    # One row a node: a run of a job counts once.
    runs = np.unique(np.stack((schedule.job, schedule.start_s)), axis=1, return_index=True)[1]
    is_run = np.zeros(len(schedule.job))
    is_run[runs] = 1.0
    time_s = np.concatenate(
        (schedule.start_s, schedule.end_s, instance.workload.arrival_s, outcome.end_s)
    )
    order = np.argsort(time_s, kind="stable")

    def level(*changes: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate(changes)[order])[:-1]

    busy = level(schedule.gpus, -schedule.gpus, none, none)
    waiting = level(-is_run, is_run, one, -one) > 0.5
    lasts_s = np.diff(time_s[order]) * waiting
    total = instance.cluster.total_gpus
    return float(((total - busy) * lasts_s).sum() / max(total * lasts_s.sum(), 1e-300))


def work_on_several_types(outcome: sp.Outcome) -> float:
    """Share of GPU time held by gangs that span several GPU types."""
    schedule = outcome.schedule
    kind = outcome.instance.cluster.type_of_node[schedule.node]
    held_s = schedule.gpus * (schedule.end_s - schedule.start_s)
    runs, run = np.unique(np.stack((schedule.job, schedule.start_s)), axis=1, return_inverse=True)
    low, high = np.full(runs.shape[1], 1 << 30), np.full(runs.shape[1], -1)
    np.minimum.at(low, run.ravel(), kind)
    np.maximum.at(high, run.ravel(), kind)
    return float(held_s[(low < high)[run.ravel()]].sum() / held_s.sum())


def row(found: RunMetrics, **named: object) -> dict[str, object]:
    """A row of a table in hours."""
    hours = {
        name.removesuffix("_s") + "_h": value / 3600
        for name, value in found.to_dict().items()
        if name.endswith("_s") and value is not None
    }
    plain = {name: value for name, value in found.to_dict().items() if not name.endswith("_s")}
    return {**named, **hours, **plain}


def note(axes: Axes, title: str, text: str) -> None:
    """Title a panel, and below it say what it shows beside what the paper reports."""
    axes.set_title(title, loc="left", pad=8 + 10 * (1 + text.count("\n")), fontsize=11)
    axes.text(0.0, 1.02, text, transform=axes.transAxes, fontsize=7.5, color=GREY, va="bottom")
    axes.spines[["top", "right"]].set_visible(False)


def bars(axes: Axes, values: Mapping[str, float], form: str) -> None:
    """One horizontal bar a system, its value beside it."""
    names = list(values)
    axes.barh(names, list(values.values()), color=[COLOUR_OF[name] for name in names], height=0.65)
    axes.set_xlim(0, 1.25 * max(values.values()))
    for place, value in enumerate(values.values()):
        axes.annotate(
            f"{value:{form}}",
            (value, place),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.invert_yaxis()
