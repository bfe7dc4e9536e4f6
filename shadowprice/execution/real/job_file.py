"""Job files: what ``shadowprice execute`` is told to run, as YAML.

::

    defaults:                       # optional: keys for all jobs that do not say otherwise
      gpus: 1
      env: {OMP_NUM_THREADS: 1}     # merged by name
    jobs:
      - name: resnet-a
        command: ["{python}", train.py, --batch, 32, --out, "{checkpoint_dir}"]
        iterations: 5000            # or epochs: 10 with iterations_per_epoch: 500
        model: resnet-18            # optional from here on: see the fields of Job
        gpu_types: [v100, p100]
        throughput: {v100: 40, p100: 21}
        arrival_s: 30
      - name: legacy
        shell: ./run.sh | tee log   # a shell, only where it is asked for
        iterations: 1
        directory: ../legacy        # from the folder of this file on

A job gives either of ``command`` and ``shell``, and either of ``iterations`` and ``epochs``; what it
gives takes the place of both in the defaults. All other keys are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.execution.hosts.protocol import FoundNode
from shadowprice.execution.real.job_entry import KEYS, NAME, job_of
from shadowprice.execution.real.job_spec import Job
from shadowprice.execution.real.plain_yaml import Tree, parse, read_small, shown
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.entries import known_keys
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload

__all__ = ["Job", "JobFile", "cluster_of", "load_job_file", "workload"]

MAX_JOBS = 10_000
_WHAT = {"command", "shell"}
_HOW_LONG = {"iterations", "epochs"}


@dataclass(frozen=True)
class JobFile:
    """Jobs in the order of their file.

    Parameters
    ----------
    path : Path
        Where it was read.
    sha256 : str
        Of the file's bytes, in hexadecimal: a run that is resumed asks for the same.
    """

    path: Path
    jobs: tuple[Job, ...]
    sha256: str


def load_job_file(path: str | Path) -> JobFile:
    """Read a job file.

    Raises
    ------
    InputError
        Naming the file, the job by position and name, the key, its value and what was expected.
    """
    path = Path(path)
    data = read_small(path)
    tree = known_keys(parse(data, str(path)), str(path), ("jobs", "defaults"))
    common = tuple(key for key in KEYS if key != "name")
    defaults = known_keys(tree.get("defaults", {}), f"{path}: defaults", common)
    if not isinstance(defaults.get("env", {}), dict):
        raise InputError(f"{path}: defaults: env is no mapping, expected NAME: value")
    entries = tree.get("jobs")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: jobs is {shown(entries)}, expected a list of at least one job")
    if len(entries) > MAX_JOBS:
        raise InputError(f"{path}: has {len(entries)} jobs, expected at most {MAX_JOBS}")
    jobs = []
    for k, entry in enumerate(entries, 1):
        where = _label(str(path), k, entry)
        own = known_keys(entry, where, KEYS)
        jobs.append(job_of(_with_defaults(own, defaults), where, path.parent))
    _unique([job.name for job in jobs], str(path))
    return JobFile(path, tuple(jobs), hashlib.sha256(data).hexdigest())


def _label(source: str, k: int, entry: Tree) -> str:
    """File, and position and name of a job, for messages."""
    name = entry.get("name") if isinstance(entry, dict) else None
    named = f" ({name})" if isinstance(name, str) and NAME.fullmatch(name) else ""
    return f"{source}: job {k}{named}"


def _with_defaults(own: Mapping[str, Tree], defaults: Mapping[str, Tree]) -> dict[str, Tree]:
    """What a job says, and else the defaults do."""
    replaced: set[str] = set()
    if own.keys() & _WHAT:
        replaced |= _WHAT
    if own.keys() & _HOW_LONG:
        replaced |= _HOW_LONG
    if "iterations" in own:
        replaced.add("iterations_per_epoch")
    settled = {key: value for key, value in defaults.items() if key not in replaced} | dict(own)
    mine, common = own.get("env"), defaults.get("env")
    if isinstance(mine, dict) and isinstance(common, dict):
        settled["env"] = {**common, **mine}
    return settled


def _unique(names: Sequence[str], source: str) -> None:
    position: dict[str, int] = {}
    for k, name in enumerate(names, 1):
        first = position.setdefault(name.lower(), k)
        if first != k:
            raise InputError(
                f"{source}: job {k} ({name}): name is that of job {first} ({names[first - 1]}), "
                "expected names that differ in more than case"
            )


def cluster_of(nodes: Sequence[FoundNode]) -> Cluster:
    """The cluster that these nodes make, in their order.

    Raises
    ------
    InputError
        If there are none, or one has no device.
    """
    return Cluster(
        tuple(
            Node(len(each.devices), each.gpu_type, cpus=each.cpus, memory_gb=each.memory_gb)
            for each in nodes
        )
    )


def workload(
    job_file: JobFile, cluster: Cluster, throughputs: Throughputs | None = None
) -> tuple[Workload, list[str]]:
    """Jobs as a scheduler sees them on a cluster, and what had to be assumed.

    Work counts iterations. The rate of a job on each GPU type is what the job file says; else that
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
        rows, told = _rates(job, cluster.gpu_types, throughputs)
        if not any(rows):
            may = ", ".join(job.gpu_types or _types_of(job))
            raise InfeasibleJobError(
                f"{job_file.path}: job {k} ({job.name}) can run on {may}, "
                f"the cluster has {', '.join(cluster.gpu_types)}"
            )
        rates.append(rows)
        notes += [f"job {job.name}: {note}" for note in told]
    jobs = job_file.jobs
    made = Workload.from_columns(
        id=[job.name for job in jobs],
        arrival_s=[job.arrival_s for job in jobs],
        gpus=[job.gpus for job in jobs],
        work=[job.iterations for job in jobs],
        weight=[job.weight for job in jobs],
        deadline_s=[job.deadline_s for job in jobs],
        tenant=[job.tenant for job in jobs],
        model=[job.kind for job in jobs],
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
    own, notes = job.throughput, []
    if isinstance(own, Mapping):
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
