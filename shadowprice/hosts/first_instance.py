"""Instance of a real run before anything is measured, and with one more job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.hosts.job_workload import workload
from shadowprice.hosts.lease_cpu_memory import (
    capacity_of,
    demand_of,
    expect_none_asked,
    expect_room,
)
from shadowprice.hosts.live.elastic import elastic_instance, has_widths
from shadowprice.hosts.live.graphs.run_graphs import has_graphs, mapped_instance
from shadowprice.hosts.live.job_file import Job, JobFile, cluster_of
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.instances.clusters.cpu_memory import CpuMemoryDemand
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import ChoosesNodes


def instance_of(
    settings: Settings, job_file: JobFile, nodes: tuple[DiscoveredNode, ...]
) -> tuple[Instance, list[str]]:
    """Instance of the policy before anything is measured, and notes of what is assumed."""
    table = None if settings.throughputs is None else load_throughputs(settings.throughputs)
    cluster = cluster_of(nodes)
    jobs, notes = workload(job_file, cluster, table)
    if has_widths(job_file):
        return elastic_instance(settings, job_file, cluster, jobs), []
    if has_graphs(job_file.jobs):
        return mapped_instance(settings, job_file, cluster, jobs), notes
    together = None if table is None or not table.pairs else table
    if settings.share is not None:
        together = _any_pairs(jobs, cluster.gpu_types, settings.share, together)
    asking = any(demand_of(job).says for job in job_file.jobs)
    why = why_not_counted(settings) if asking else ""
    if why:
        expect_none_asked(job_file.jobs, why)
    else:
        expect_room(job_file.jobs, list(map(capacity_of, nodes)), cluster, job_file.path)
    sensitivity = None
    if job_file.profiles is not None:
        sensitivity = profiles_for(job_file, job_file.profiles).of(jobs, cluster)
        if together is not None:
            raise InputError(
                f"{job_file.path}: names profiles, expected none where jobs share GPUs: "
                "nobody gives out CPUs and memory there"
            )
    return Instance(cluster, jobs, sharing_rates=together, sensitivity=sensitivity), notes


def why_not_counted(settings: Settings) -> str:
    """Reason that jobs under a policy cannot ask for CPUs or memory; empty if they can."""
    if isinstance(settings.acting_policy(), ChoosesNodes):
        return f"{settings.policy_name} chooses nodes by their GPUs alone"
    return ""


def profiles_for(job_file: JobFile, profiles: Profiles) -> Profiles:
    """Profiles of the kinds of jobs of a file; those of jobs that ask for CPUs or memory are these alone.

    Raises
    ------
    InputError
        If jobs of one kind ask for different CPUs or memory, or a job asks for some and has a table.
    """
    tables: dict[tuple[str, int], Profile] = {}
    asked: dict[tuple[str, int], CpuMemoryDemand] = {}
    for k, job in enumerate(job_file.jobs, 1):
        kind, demand = (job.kind, job.gpus), demand_of(job)
        where = f"{job_file.path}: job {k} ({job.name})"
        table = profiles.table(*kind)
        if demand.says and table is not None:
            raise InputError(
                f"{where}: asks for CPUs or memory, and {table.name} has a table of it, expected one of the two"
            )
        if asked.setdefault(kind, demand) != demand:
            raise InputError(
                f"{where}: asks for other CPUs or memory than another of its model and gang, expected the same"
            )
        if table is not None:
            tables[kind] = table
        elif demand.says:
            cpus, memory_gb = demand.cpus / job.gpus, demand.memory_gb / job.gpus
            tables[kind] = Profile(
                np.array([cpus]), np.array([memory_gb]), np.array([[1.0]]), where
            )
    return Profiles(tables, profiles.source)


def _any_pairs(
    jobs: Workload, gpu_types: tuple[str, ...], share: float, known: Throughputs | None
) -> Throughputs:
    """Rates of all pairs of equal gang: those of the table, else a share of what each does alone."""
    assert jobs.throughput is not None
    kinds = {
        (str(model), int(gpus)): tuple(map(float, rates))
        for model, gpus, rates in zip(jobs.model, jobs.gpus, jobs.throughput, strict=True)
    }
    together = {
        (gpu_type, one, other): (share * rates[column], share * others[column])
        for column, gpu_type in enumerate(gpu_types)
        for one, rates in kinds.items()
        for other, others in kinds.items()
        if one[1] == other[1] and rates[column] > 0 and others[column] > 0
    }
    if known is not None:
        together |= dict(known.pairs)
    return Throughputs(gpu_types, kinds, together, source="shares that are assumed")


def instance_with(
    instance: Instance, job: Job, settings: Settings, table: Throughputs | None
) -> tuple[Instance, list[str]]:
    """An instance with one more job in its last row, and notes of what is assumed; O(jobs).

    A job of a kind that was there before has the rates that are known of it now.

    Parameters
    ----------
    job : Job
        Arrives no earlier than all others.
    table : Throughputs, optional
        Rates that are assumed of jobs that do not tell their own.

    Raises
    ------
    InfeasibleJobError
        If no nodes of the cluster can hold it.
    """
    before, cluster = instance.workload, instance.cluster
    more, notes = workload(JobFile(Path(job.name), (job,), ""), cluster, table)
    assert before.throughput is not None
    assert more.throughput is not None
    alike = (before.model == more.model[0]) & (before.gpus == more.gpus[0])
    if alike.any():
        known = before.throughput[alike.argmax()]
        rates = more.throughput.copy()
        may = (rates[0] > 0) & (known > 0)
        rates[0][may] = known[may]
        more, notes = replace(more, throughput=rates), []
    jobs = before.with_rows(more)
    together = instance.sharing_rates
    if settings.share is not None:
        together = _any_pairs(jobs, cluster.gpu_types, settings.share, together)
    return replace(instance, workload=jobs, sharing_rates=together), notes
