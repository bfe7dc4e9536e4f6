"""The same past with another future: what no online policy can tell apart before it comes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import COLUMNS, TEXT_COLUMNS, Workload

_LATER_S = 64.0
_PROFILE = Profile(
    np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([[0.125, 0.5], [0.75, 3.0]]), "other"
)
_GRAPH = JobGraph("other", (Stage("other", 1, 0.25, 0.25),), ())


def other_future(
    instance: Instance, early: NDArray[np.bool_], *, same_service: bool = False
) -> Instance:
    """Another instance whose first jobs are the early ones of this, and everything else is not.

    The later jobs are twice as many, of one GPU, and differ in every column; they arrive at the
    earliest when the first of them did.

    Parameters
    ----------
    early : ndarray of bool, shape (n,)
        The jobs that stay; the others arrive after them.
    same_service : bool
        Whether the later jobs keep their number, gangs, work and speeds, and with them the
        distribution of service over the workload.
    """
    late = np.flatnonzero(~early)
    rows = late if same_service else np.concatenate((late, late))
    kept = np.flatnonzero(early)
    jobs = instance.workload
    columns = {name: getattr(jobs, name)[rows] for name in COLUMNS}
    for name in TEXT_COLUMNS:
        columns[name] = np.array([f"other {name} {k}" for k in range(len(rows))], dtype=object)
    columns["arrival_s"] = columns["arrival_s"] + np.arange(len(rows)) * _LATER_S
    columns["weight"] = columns["weight"] * 7.0 + 3.0
    columns["deadline_s"] = np.full(len(rows), 1e6)
    columns["limit_s"] = np.full(len(rows), 77.0)
    columns["nodes"] = columns["nodes"] + 3
    throughput = None if jobs.throughput is None else jobs.throughput[rows]
    if not same_service:
        columns["gpus"] = np.ones(len(rows), dtype=np.int64)
        columns["work"] = columns["work"] * 4.0 + 17.0
        throughput = None if throughput is None else throughput[:, ::-1] + 0.375
    joined = {name: np.concatenate((getattr(jobs, name)[kept], columns[name])) for name in COLUMNS}
    if throughput is not None and jobs.throughput is not None:
        joined["throughput"] = np.concatenate((jobs.throughput[kept], throughput))
    order = np.argsort(joined["arrival_s"], kind="stable")
    workload = Workload(
        **{name: column[order] for name, column in joined.items()},
        gpu_types=jobs.gpu_types,
        source="another future",
    )
    if same_service:
        return replace(instance, workload=workload)
    return replace(
        instance,
        workload=workload,
        graphs=_graphs(instance.graphs, kept, len(rows)),
        **_speeds(instance, kept, workload.gpus),
    )


def other_durations(instance: Instance) -> Instance:
    """The same jobs, each with another run time, in another order of these."""
    jobs = instance.workload
    work = jobs.work[::-1] * 4.0 + np.arange(len(jobs)) % 3 * 8.0 + 16.0
    return replace(instance, workload=replace(jobs, work=work))


def named(instance: Instance, name: str) -> Instance:
    """The same instance, its jobs under other names."""
    jobs = instance.workload
    ids = np.array([f"{name} {k}" for k in range(len(jobs))], dtype=object)
    return replace(instance, workload=replace(jobs, id=ids))


def _graphs(graphs: JobGraphs | None, rows: NDArray[np.int64], late: int) -> JobGraphs | None:
    """Graphs in another order, those of later jobs another one."""
    if graphs is None:
        return None
    others = (_GRAPH, *graphs.graph)
    of = np.concatenate((graphs.of[rows] + 1, np.zeros(late, dtype=np.int64)))
    return JobGraphs(others, of, graphs.network)


def _speeds(instance: Instance, rows: NDArray[np.int64], gpus: NDArray[np.int64]) -> dict[str, Any]:
    """Profiles in another order, those of later jobs another one; other speeds and widths."""
    late = len(gpus) - len(rows)
    sensitivity, locality = instance.sensitivity, instance.locality
    elasticity = instance.elasticity
    if sensitivity is not None:
        of = np.concatenate((sensitivity.of[rows] + 1, np.zeros(late, dtype=np.int64)))
        sensitivity = Sensitivity((_PROFILE, *sensitivity.profiles), of)
    if locality is not None:
        locality = Locality(np.concatenate((locality.spread_speed[rows], np.full(late, 0.125))))
    if elasticity is not None:
        widest = np.concatenate((elasticity.widest[rows], gpus[len(rows) :]))
        efficiency = np.concatenate((elasticity.efficiency[rows], np.full(late, 0.625)))
        elasticity = Elasticity(widest, efficiency)
    return {"sensitivity": sensitivity, "locality": locality, "elasticity": elasticity}
