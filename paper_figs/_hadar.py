"""The systems that Hadar's and HadarE's figures compare, their workloads, and a row of metrics a run.

Settings recalled from the papers: rounds of 6 minutes, 10 s for a restart. Hadar is run with the
utility that is recalled, iterations over time in the system, with 1 / (time in the system), since the first
makes long jobs worth more than short ones, and with or without jobs on the GPUs that its prices leave idle
('filled', ours). Tiresias is 2D-LAS with a threshold of 3,200 GPU-s, YARN-CS is FIFO with consolidated
gangs, Gavel is heterogeneity-aware max-min fairness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _gavel import TYPES, cluster, table

import shadowprice as sp
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.plots.style import COLOURS
from shadowprice.analysis.run_metrics import RunMetrics, of_schedule
from shadowprice.errors import InputError
from shadowprice.execution.copies.hadare import CopyWidth
from shadowprice.instances.generators.hadar import sampled
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Independence,
    Published,
    Row,
    estimate,
)

__all__ = ["TYPES", "cluster", "table"]

ROUND_S, RESTART_S = 360.0, 10.0
POLICIES = {
    "Hadar": ("hadar", "count"),
    "Hadar filled": ("hadar:fill=true", "count"),
    "Hadar 1/JCT": ("hadar:utility=completion_time", "count"),
    "Hadar 1/JCT filled": ("hadar:utility=completion_time,fill=true", "count"),
    "Gavel": ("gavel:max_min_fairness:aware=true", "count"),
    "Gavel agnostic": ("gavel:max_min_fairness", "count"),
    "Gavel makespan": ("gavel:min_total_duration:aware=true", "count"),
    "Gavel SJF": ("gavel:queue_order:order=shortest,aware=true", "count"),
    "Tiresias": ("las2d:thresholds_gpu_s=3200", "count"),
    "YARN-CS": ("fifo", "consolidate"),
    "no migration": ("fifo", "count"),
}
"""Policy and placement by name; the last is for clusters of one GPU a node, where no job ever moves."""
IN_ROUNDS = ("hadar", "gavel")
"""Policies with a parameter ``round_s``; the others decide when something happens."""
COPIES = {"HadarE": CopyWidth.NODE, "HadarE own gang": CopyWidth.GANG}
"""A copy uses all GPUs of its node, or no more than the job asked for and holds the others idle."""
COLOUR_OF = {
    "Hadar": COLOURS[0],
    "Hadar filled": COLOURS[5],
    "Hadar 1/JCT": COLOURS[4],
    "Hadar 1/JCT filled": COLOURS[2],
    "HadarE": COLOURS[2],
    "HadarE own gang": "#8fd3bd",
    "Gavel": COLOURS[1],
    "Gavel agnostic": "#e8c8a0",
    "Gavel makespan": "#d9a760",
    "Gavel SJF": "#b98a4a",
    "Tiresias": COLOURS[3],
    "YARN-CS": "#999999",
    "no migration": "#999999",
}
"""The same colour for a system in all pictures."""

WORKLOADS = {"philly": "Philly's busiest hours", "classes": "classes of GPU-hours"}


def workload(
    kind: str, jobs: int, seed: int, rates: sp.Throughputs, philly: Path | None
) -> sp.Workload:
    """Jobs of the trace's busiest hours, or of the classes.

    Raises
    ------
    InputError
        If the trace is asked for and no file is given.
    """
    if kind == "classes":
        return sp.generate("hadar", jobs=jobs, seed=seed, throughputs=rates)
    if philly is None:
        raise InputError("workload philly: expected the trace, --philly FILE (flat CSV)")
    return sampled(sp.load(philly), jobs=jobs, seed=seed, throughputs=rates)


@dataclass(frozen=True)
class Run:
    """A verified run of a system.

    Parameters
    ----------
    metrics : RunMetrics
    lost : float
        Share of the cluster's time until the end that went into restarts and averaging.
    outcome : Outcome
    """

    metrics: RunMetrics
    lost: float
    outcome: sp.Outcome


def run(
    label: str,
    jobs: sp.Workload,
    where: sp.Cluster,
    *,
    round_s: float = ROUND_S,
    aggregation_s: float = 0.0,
    options: str = "",
) -> Run:
    """Run a system by its name in the figures, with further parameters of its policy."""
    if label in COPIES:
        hadare = sp.HadarE(
            round_s=round_s, restart_s=RESTART_S, aggregation_s=aggregation_s, width=COPIES[label]
        )
        outcome = sp.simulate(jobs, where, hadare)
        found = of_schedule(outcome.instance, outcome.schedule)
        lost_s = outcome.schedule.overhead_s.sum()
        return Run(found, lost_s / (len(where.nodes) * found.ttd_s), outcome)
    policy, placement = POLICIES[label]
    name, _, given = policy.partition(":")
    if name in IN_ROUNDS:
        parts = (given, f"round_s={round_s}", options if name == "hadar" else "")
        policy = f"{name}:" + ",".join(part for part in parts if part)
    run_options = sp.RunOptions(placement=placement, overheads=sp.Overheads(restart_s=RESTART_S))
    outcome = sp.simulate(jobs, where, policy, run_options)
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
    runs, of_run = np.unique(
        np.stack((schedule.job, schedule.start_s)), axis=1, return_inverse=True
    )
    low, high = np.full(runs.shape[1], 1 << 30), np.full(runs.shape[1], -1)
    np.minimum.at(low, of_run.ravel(), kind)
    np.maximum.at(high, of_run.ravel(), kind)
    return float(held_s[(low < high)[of_run.ravel()]].sum() / held_s.sum())


def row(found: RunMetrics, **named: str | float | bool) -> Row:
    """A row of a table in hours."""
    values = {name: value for name, value in found.to_dict().items() if value is not None}
    hours = {
        name.removesuffix("_s") + "_h": value / 3600
        for name, value in values.items()
        if name.endswith("_s")
    }
    plain = {name: value for name, value in values.items() if not name.endswith("_s")}
    return {**named, **hours, **plain}


def limits(found: Run) -> Row:
    """Certified best factors over the run that any scheduler could have."""
    return {
        "limit_ttd": limit(found.outcome, Measure.TTD).ratio,
        "limit_jct": limit(found.outcome, Measure.MEAN_JCT).ratio,
    }


def ratios(rows: pd.DataFrame, than: str, column: str) -> dict[str, Estimate]:
    """Times better than a system, seed by seed, of each system in the order of the rows, itself 1."""
    wide = rows.pivot_table(index="seed", columns="system", values=column)
    names = [name for name in dict.fromkeys(rows["system"]) if than in wide]
    return {name: estimate((wide[than] / wide[name]).dropna()) for name in names}


CLAIMS = {
    "ttd": ("TTD over Gavel", 1.20, "1.20", "arXiv 2503.10918, abstract"),
    "jct": ("mean JCT over Gavel", 2.5, "", "IPDPS'24, abstract"),
    "jct_yarn": ("mean JCT over YARN-CS", 3.0, "", "IPDPS'24, abstract"),
    "queueing": ("queueing delay over Gavel", 1.15, "", "IPDPS'24, abstract"),
    "ftf": ("FTF over Gavel", 1.015, "", "IPDPS'24, abstract"),
}
"""Words, number, the same as printed, and place of the factors of the abstracts."""

NOT_READ = (
    "Utility, prices and jobs are recalled: of the paper's text we have the abstract alone. The variant was picked "
    "among those that were run."
)


def published(
    key: str,
    variant: str,
    where: str,
    ours: Callable[[pd.DataFrame], Estimate | None],
    **more: Any,
) -> Published:
    """A factor of the abstracts beside that of one variant on one workload; further fields as given."""
    words, value, printed, place = CLAIMS[key]
    return Published(
        system="Hadar",
        place=place,
        what=f"{variant}: {words}, {where}",
        value=value,
        unit="x",
        ours=ours,
        settings=f"480 jobs, 60 GPUs, {where}",
        cause=Cause.NOT_READ,
        why=NOT_READ,
        claim=words,
        printed=printed,
        independence=Independence.ONE_OF_MANY,
        **more,
    )


def mean_limit(rows: pd.DataFrame, system: str, column: str) -> float | None:
    """Certified best factor over a system that any scheduler could have, mean over its seeds."""
    values = rows.loc[rows["system"] == system, column].dropna()
    return None if values.empty else float(values.mean())


def range_of(rows: pd.DataFrame, system: str, column: str) -> tuple[float, float] | None:
    """Least and largest value of a column over a system's seeds; None without rows."""
    values = rows.loc[rows["system"] == system, column]
    return None if values.empty else (float(values.min()), float(values.max()))
