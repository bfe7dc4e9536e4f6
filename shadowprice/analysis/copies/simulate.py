"""A run of HadarE under the switches of a run: which apply, and what comes of it."""

from __future__ import annotations

import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from shadowprice.analysis.semantics import Semantics
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance

if TYPE_CHECKING:
    from shadowprice.analysis.copies.outcome import ForkOutcome
    from shadowprice.analysis.copies.settings import ForkSettings
    from shadowprice.instances.workload import Workload


def kept_jobs(
    workload: Workload, cluster: Cluster | str | Path, drop_infeasible: bool
) -> tuple[Cluster, Workload, list[str]]:
    """Cluster, jobs that are run, and the names of those left out."""
    where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
    if not drop_infeasible:
        return where, workload, []
    feasible, names = Instance.feasible(where, workload)
    return where, feasible.workload, names.tolist()


def simulate_forks(
    workload: Workload,
    cluster: Cluster | str | Path,
    settings: ForkSettings,
    name: str,
    chosen: Semantics,
    drop_infeasible: bool,
) -> ForkOutcome:
    """Run HadarE; rates of pairs of jobs are of no use to it, as to most policies."""
    from shadowprice.analysis.copies.outcome import ForkOutcome
    from shadowprice.execution.copies.simulation import simulate_hadare

    fixed = Semantics(seed=chosen.seed, together=chosen.together, local_sgd=chosen.local_sgd)
    for switch in fields(Semantics):
        value = getattr(chosen, switch.name)
        if value != getattr(fixed, switch.name):
            raise InputError(
                f"policy {settings.name!r} does not take the switch {switch.name!r}, got {_said(value)}: "
                "copies of jobs hold whole nodes for whole rounds; it has parameters of its own, as in "
                f"{settings.name}:round_s=360,restart_s=10,max_copies=3,width=gang"
            )
    where, workload, dropped = kept_jobs(workload, cluster, drop_infeasible)
    began = time.process_time()
    options = settings.options(local_sgd=chosen.local_sgd, seed=chosen.seed)
    result = simulate_hadare(Instance(where, workload), options)
    cpu_s = time.process_time() - began
    told = {"kind": "forks", **asdict(settings), "seed": chosen.seed, "preemptive": True}
    return ForkOutcome(
        result.instance, result.record, name, {**told, "dropped": dropped}, cpu_s, result.losses
    )


def _said(value: object) -> str:
    """A switch's value in a message, large ones by where they are from."""
    return repr(value) if isinstance(value, str | float | int) else type(value).__name__
