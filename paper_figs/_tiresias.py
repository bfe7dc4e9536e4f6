"""Schedulers and settings of Tiresias' experiments (NSDI'19, section 6), for the figures beside this file.

YARN-CS is FIFO that blocks at the head with consolidated placement, Best-effort FIFO that does not;
the others place by count. Gandiva is the policy ``gandiva``, whose time slicing is what the paper
compares with. With ``--philly FILE`` (philly_flat.csv, plain or compressed) the large trace is
Microsoft's Philly trace (msr-fiddle/philly-traces, CC BY 4.0); without it, it is generated.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.analysis.outcome import Outcome
from shadowprice.execution.engine import run
from shadowprice.instances.instance import Overheads
from shadowprice.instances.speeds.conditions import Conditions, Locality
from shadowprice.solvers.registry import placement as placement_named
from shadowprice.solvers.registry import policy as policy_named

OUT = Path(__file__).parent / "out"

THRESHOLD_GPU_S = 3200
"""Of the testbed, K = 2."""

SCHEDULERS: Mapping[str, tuple[str, str]] = {
    "YARN-CS": ("fifo", "consolidate"),
    "Best-effort": ("fifo-skip", "count"),
    "SRTF": ("srtf", "count"),
    "Gandiva": ("gandiva", "count"),
    "Tiresias-G": ("gittins2d:thresholds_gpu_s={limit}", "count"),
    "Tiresias-L": ("las2d:thresholds_gpu_s={limit}", "count"),
}
"""Policy and placement of each scheduler; the threshold is filled in."""

RESTART_S = 60.0
"""Cost of a preemption [s] (derived): the paper's totals over its counts, 13724 / 221 = 62 s under
Tiresias-L, 17425 / 297 = 59 under Tiresias-G, 18057 / 316 = 57 under SRTF."""

STATISTICS = ("mean", "median", "p95")


def arguments(description: str, *, philly: bool = False) -> argparse.Namespace:
    """What the figures take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    if philly:
        parser.add_argument("--philly", type=Path, help="philly_flat.csv, plain or compressed")
        parser.add_argument("--first", type=int, default=20_000, help="jobs of it to take")
    return parser.parse_args()


def outcome(
    jobs: sp.Workload,
    cluster: str,
    policy: str,
    placement: str,
    *,
    restart_s: float = 0.0,
    locality: Locality | None = None,
) -> Outcome:
    """A verified run."""
    conditions = None if locality is None else Conditions(locality=locality)
    instance = sp.Instance(
        sp.Cluster.parse(cluster), jobs, Overheads(restart_s=restart_s), conditions=conditions
    )
    done = run(instance, policy_named(policy), placement=placement_named(placement))
    settings: dict[str, object] = {"placement": placement, "restart_s": restart_s}
    return Outcome.verified(
        instance, done.schedule, policy=policy, settings=settings, decisions=done.decisions
    )


def scheduler_row(
    label: str, jobs: sp.Workload, cluster: str, limit: float, restart_s: float = 0.0
) -> dict[str, object]:
    """Mean, median and 95th percentile of the JCT of one scheduler [s], makespan and preemptions."""
    policy, placement = SCHEDULERS[label]
    found = outcome(jobs, cluster, policy.format(limit=limit), placement, restart_s=restart_s)
    summary = found.summary()
    return {
        "scheduler": label,
        "restart_s": restart_s,
        **dict(zip(STATISTICS, statistics(found.jct_s), strict=True)),
        "makespan_s": summary["makespan_s"],
        "preemptions": summary["preemptions"],
    }


def statistics(jct_s: np.ndarray) -> tuple[float, float, float]:
    """Mean, median and 95th percentile [s]."""
    return float(jct_s.mean()), float(np.median(jct_s)), float(np.percentile(jct_s, 95))


def panels(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A row of axes without a box."""
    figure = Figure(figsize=(width, height), layout="constrained")
    row = [figure.add_subplot(1, count, k + 1) for k in range(count)]
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, row


def note(figure: Figure, text: str) -> None:
    """One line below all axes."""
    figure.supxlabel(text, fontsize=8, x=0.01, ha="left")
