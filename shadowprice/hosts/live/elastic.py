"""Jobs of a real run that change their width: what a job file has to say of them, and where they are in their epochs.

Such a job keeps its batch, so that a step makes as much progress at every width, and says how wide it may be. How long
a step takes at each width was measured: the job file names the same tables as a simulation (``goodput``). Its steps are
those of the table at its batch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from shadowprice.errors import InputError
from shadowprice.hosts.lease_cpu_memory import expect_none_asked
from shadowprice.hosts.live.job_file import Job, JobFile
from shadowprice.hosts.live.settings import Settings
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.goodput.application import Application, packed
from shadowprice.instances.goodput.course import Position, lengths_of
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.declared import DeclaredRun
from shadowprice.instances.terms.goodput import BatchField, Goodput
from shadowprice.instances.workload import Workload

_WIDTHS = re.compile(r"([0-9]+)-([0-9]+)")


def has_widths(job_file: JobFile) -> bool:
    """True if jobs of a file may change their width, or it names tables of such jobs."""
    return bool(job_file.goodput) or any(job.widths for job in job_file.jobs)


def widths_of(job: Job) -> tuple[int, int]:
    """Fewest and most devices of a job, by its own words; its gang where it has no widths."""
    match = _WIDTHS.fullmatch(job.widths)
    return (job.gpus, job.gpus) if match is None else (int(match[1]), int(match[2]))


def elastic_instance(
    settings: Settings, job_file: JobFile, cluster: Cluster, jobs: Workload
) -> Instance:
    """Instance of a run whose jobs change their width.

    Parameters
    ----------
    jobs : Workload
        Of the file, whose work counts iterations; that of the instance is run times on the gangs [s].

    Raises
    ------
    InputError
        If a job, or something else that was asked for, does not go with widths.
    """
    _refuse_what_does_not_go(settings, job_file)
    term = Goodput(job_file.goodput)
    work_s = jobs.work.copy()
    for k, job in enumerate(job_file.jobs, 1):
        where = f"{job_file.path}: job {k} ({job.name})"
        _expect_as_measured(job, term.by_name, where)
        row = jobs.row_of[job.name]
        gang = tuple(enumerate(packed(job.gpus, int(cluster.gpus_per_node.max()))))
        batch = BatchField(term.by_name[job.model].batching(job.batch_size, job.gpus))
        run = term.proceeding(DeclaredRun(row, gang, False, jobs, cluster), batch)
        if run is None:
            raise InputError(
                f"{where}: gpus is {job.gpus}, expected a number on which {job.model} was measured at batch "
                f"{job.batch_size}"
            )
        work_s[row] = run.whole_ticks() * TICK_S
    timed = replace(jobs, work=work_s, throughput=None, gpu_types=())
    return Instance(cluster, timed, declared=(term,))


def _refuse_what_does_not_go(settings: Settings, job_file: JobFile) -> None:
    """Refuse what says otherwise how fast jobs are, or gives out more than devices."""
    path = job_file.path
    if not job_file.goodput:
        raise InputError(
            f"{path}: jobs have widths, and it names no tables of their speeds; expected goodput: FILE"
        )
    for what, wrong in (
        ("profiles", job_file.profiles is not None),
        ("--share", settings.share is not None),
        ("--throughputs", settings.throughputs is not None),
        ("a job with a graph", any(job.graph is not None for job in job_file.jobs)),
        ("a job with throughput", any(job.throughput is not None for job in job_file.jobs)),
    ):
        if wrong:
            raise InputError(
                f"{path}: names goodput, expected no {what.removeprefix('a ')}: its tables say how fast jobs are"
            )
    expect_none_asked(job_file.jobs, "with widths a policy gives out devices alone")


def _expect_as_measured(job: Job, by_name: Mapping[str, Application], where: str) -> None:
    """Refuse a job whose widths, batch or steps are not those of the tables."""
    if not job.widths:
        raise InputError(f"{where}: has no widths, expected some as 1-4: its file names goodput")
    known = by_name.get(job.model)
    if known is None:
        raise InputError(
            f"{where}: model is {job.model!r}, expected an application of which there are tables: {', '.join(by_name)}"
        )
    batch = job.batch_size
    if not known.init_batch <= batch <= known.most_batch:
        raise InputError(
            f"{where}: batch_size is {batch}, expected {known.init_batch} to {known.most_batch}, which it keeps at "
            "every width"
        )
    widest, steps = known.widest(batch), math.ceil(_steps_at_ends(known, batch)[-1])
    of = f"of {known.name} at batch {batch}"
    for key, fits, expected in (
        ("widths", widths_of(job) == (1, widest), f"1-{widest}, the widths {of}"),
        ("gpus", job.gpus <= widest, f"one of its widths, {job.widths}"),
        ("iterations", job.iterations == steps, f"{steps}, the steps {of}"),
    ):
        if not fits:
            raise InputError(f"{where}: {key} is {getattr(job, key)}, expected {expected}")


def position_of(known: Application, batch: int, steps: float) -> Position:
    """Position of a job that has done so many steps: in each epoch its progress grows evenly with them."""
    lengths, before = lengths_of(known.ends), 0.0
    for epoch, end in enumerate(_steps_at_ends(known, batch)):
        if steps < end:
            share = Fraction(max(steps - before, 0.0)) / Fraction(end - before)
            return Position(epoch, int(lengths[epoch] * share))
        before = end
    return Position(len(lengths))


def _steps_at_ends(known: Application, batch: int) -> list[float]:
    """Steps at a batch until the end of each epoch."""
    return [known.iterations(batch, epoch) for epoch in range(len(known.ends))]
