"""Instance of a real run before anything is measured, and with one more job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shadowprice.execution.hosts.protocol import FoundNode
from shadowprice.execution.real.job_file import Job, JobFile, cluster_of, workload
from shadowprice.execution.real.settings import Settings
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.workload import Workload


def instance_of(
    settings: Settings, job_file: JobFile, nodes: tuple[FoundNode, ...]
) -> tuple[Instance, list[str]]:
    """Instance of the policy before anything is measured, and notes of what is assumed."""
    table = None if settings.throughputs is None else load_throughputs(settings.throughputs)
    cluster = cluster_of(nodes)
    jobs, notes = workload(job_file, cluster, table)
    together = None if table is None or not table.pairs else table
    if settings.share is not None:
        together = _any_pairs(jobs, cluster.gpu_types, settings.share, together)
    return Instance(cluster, jobs, pair_throughputs=together), notes


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
    together = instance.pair_throughputs
    if settings.share is not None:
        together = _any_pairs(jobs, cluster.gpu_types, settings.share, together)
    return replace(instance, workload=jobs, pair_throughputs=together), notes
