"""Job graphs of a real run: of all of its jobs, on the nodes that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.hosts.lease_amounts import expect_none_asked
from shadowprice.hosts.live.job_file import Job, JobFile
from shadowprice.hosts.live.settings import Settings
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload


def has_graphs(jobs: Sequence[Job]) -> bool:
    """True if a job names its graph."""
    return any(job.graph is not None for job in jobs)


def mapped_instance(
    settings: Settings, job_file: JobFile, cluster: Cluster, workload: Workload
) -> Instance:
    """Instance of a run in which jobs have graphs.

    A job that names none runs equally fast wherever it is: it has one stage, whose replicas exchange
    nothing and compute for as long as an iteration takes at its rate.

    Parameters
    ----------
    workload : Workload
        With the rates of the jobs on the one GPU type of the cluster.

    Raises
    ------
    InputError
        If something that was asked for does not go with graphs, there is no network, or GPUs are of
        several types.
    """
    _refuse_what_does_not_go(settings, job_file)
    if len(cluster.gpu_types) > 1:
        raise InputError(
            f"{job_file.path}: jobs have graphs, and the nodes GPUs of types "
            f"{', '.join(cluster.gpu_types)}; expected one: with graphs all GPUs are alike"
        )
    if job_file.network is None:
        raise InputError(
            f"{job_file.path}: jobs have graphs and there is no network, expected network: "
            "{intra_gb_per_s: ..., nic_gb_per_s: ...} of the nodes"
        )
    assert workload.throughput is not None
    given = {job.name: job.graph for job in job_file.jobs}
    number: dict[JobGraph, int] = {}
    of = []
    for name, kind, gpus, rates in zip(
        workload.id.tolist(),
        workload.model.tolist(),
        workload.gpus.tolist(),
        workload.throughput.tolist(),
        strict=True,
    ):
        graph = given[name] or _anywhere(kind, gpus, max(rates))
        of.append(number.setdefault(graph, len(number)))
    graphs = JobGraphs(tuple(number), np.array(of, dtype=np.int64), job_file.network.of(cluster))
    return Instance(cluster, replace(workload, throughput=None, gpu_types=()), graphs=graphs)


def _anywhere(kind: str, gpus: int, rate: float) -> JobGraph:
    """Graph of a job whose iterations take the same time wherever its replicas are."""
    return JobGraph(kind, (Stage("replicas", gpus, 1.0 / rate, 0.0),))


def _refuse_what_does_not_go(settings: Settings, job_file: JobFile) -> None:
    path = job_file.path
    if settings.share is not None:
        raise InputError(
            f"{path}: jobs have graphs, expected no --share: how fast replicas are beside those of "
            "another job nobody knows"
        )
    if job_file.profiles is not None:
        raise InputError(
            f"{path}: jobs have graphs, and it names profiles; expected one of the two"
        )
    expect_none_asked(job_file.jobs, "replicas of job graphs are placed by GPUs alone")


def record_of(instance: Instance) -> dict[str, Any] | None:
    """Graphs, network, and the graph of each job, of plain values for a ledger; None without graphs."""
    graphs = instance.graphs
    if graphs is None:
        return None
    names = map(str, instance.workload.id.tolist())
    return {
        "network": asdict(graphs.network),
        "graphs": [asdict(graph) for graph in graphs.graph],
        "of": dict(zip(names, graphs.of.tolist(), strict=True)),
    }
