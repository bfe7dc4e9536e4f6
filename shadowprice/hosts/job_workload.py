"""Jobs of a job file as a workload, at the rates that are known before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shadowprice.errors import InfeasibleJobError
from shadowprice.hosts.live.job_file import Job, JobFile
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload


def workload(
    job_file: JobFile, cluster: Cluster, throughputs: Throughputs | None = None
) -> tuple[Workload, list[str]]:
    """Jobs as a scheduler sees them on a cluster, and what had to be assumed.

    CPUs and memory are what jobs ask for; where a file has profiles these say them. Work counts
    iterations. The rate of a job on each GPU type is what the job file says; else that
    of its kind (:attr:`Job.kind` and gang) in the table; else one iteration a second on every type.

    Returns
    -------
    Workload, list of str
        Rows in order of arrival, with a throughput for each GPU type of the cluster; one line for
        each job whose rate is assumed, or that keeps off a type because it has no rate there.

    Raises
    ------
    InfeasibleJobError
        If the cluster has none of the GPU types on which a job may run.
    """
    notes: list[str] = []
    rates = []
    for k, job in enumerate(job_file.jobs, 1):
        rows, assumed = _rates(job, cluster.gpu_types, throughputs)
        if not any(rows):
            may = ", ".join(job.gpu_types or _types_of(job))
            raise InfeasibleJobError(
                f"{job_file.path}: job {k} ({job.name}) can run on {may}, "
                f"the cluster has {', '.join(cluster.gpu_types)}"
            )
        rates.append(rows)
        notes += [f"job {job.name}: {note}" for note in assumed]
    jobs, profiled = job_file.jobs, job_file.profiles is not None
    made = Workload.from_columns(
        id=[job.name for job in jobs],
        arrival_s=[job.arrival_s for job in jobs],
        gpus=[job.gpus for job in jobs],
        work=[job.iterations for job in jobs],
        weight=[job.weight for job in jobs],
        deadline_s=[job.deadline_s for job in jobs],
        tenant=[job.tenant for job in jobs],
        model=[job.kind for job in jobs],
        batch_size=[job.batch_size for job in jobs],
        job_class=[job.job_class for job in jobs],
        cpus=[0.0 if profiled else job.cpus for job in jobs],
        memory_gb=[0.0 if profiled else job.memory_gb for job in jobs],
        throughput=rates,
        gpu_types=cluster.gpu_types,
        source=str(job_file.path),
    )
    return made, notes


def _types_of(job: Job) -> list[str]:
    """GPU types for which the job's own throughput says a rate."""
    own = job.throughput if isinstance(job.throughput, Mapping) else {}
    return [name for name, rate in own.items() if rate > 0]


def _rates(
    job: Job, types: Sequence[str], table: Throughputs | None
) -> tuple[list[float], list[str]]:
    """Rates of a job on these types, and what is to be told of them."""
    may = [name for name in types if not job.gpu_types or name in job.gpu_types]
    if job.graph is not None:
        return [float(name in may) for name in types], []  # how fast it is, its graph says
    own, notes = job.throughput, []
    known: Mapping[str, float]
    if isinstance(own, dict):
        known = own
    elif own is not None:
        known = dict.fromkeys(may, own)
    else:
        known = _from_table(job, table)
        lacking = [name for name in may if not known.get(name)]
        if len(lacking) == len(may):
            known = dict.fromkeys(may, 1.0)
            notes = ["no rate is known, 1 iteration a second is assumed"] if may else []
        elif lacking:
            notes = [f"has no rate on {', '.join(lacking)}, and is not run there"]
    return [float(known.get(name, 0.0)) if name in may else 0.0 for name in types], notes


def _from_table(job: Job, table: Throughputs | None) -> Mapping[str, float]:
    found = None if table is None else table.rates(job.kind, job.gpus)
    if table is None or found is None:
        return {}
    return dict(zip(table.gpu_types, found, strict=True))
