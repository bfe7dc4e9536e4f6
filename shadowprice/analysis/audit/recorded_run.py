"""Recorded runs as verified outcomes: records without the jobs that are set aside, under the rules of all schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.audit.contradictions import Places, contradictions, doubtful_jobs
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.trace.demand import racks_in_words
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.recorded.record import ContradictionKind, Contradictions, Mask, RunRecord
from shadowprice.instances.schedule import Schedule, first_of_each
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation

_SLACK_S = 1e-3
"""Rounding of times in files, a run [s]: work that differs from a table of jobs by no more is that of the record."""
_MOST_REFUSALS = 50
"""Jobs that the verifier refuses one after another, until no more is tried."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordedRun(Brief):
    """A recorded run beside what contradicts itself in it.

    Parameters
    ----------
    record : RunRecord
        As it was read, with all contradictions.
    cluster : Cluster
        As it was given.
    outcome : Outcome or None
        Verified schedule of the jobs that were not set aside; None where none is left, or the verifier refuses it.
    sound : ndarray of bool, shape (n,)
        Jobs of the record that are in the outcome.
    notes : tuple of str
        What was taken to be so.
    """

    record: RunRecord
    cluster: Cluster
    outcome: Outcome | None
    sound: Mask
    notes: tuple[str, ...]

    @property
    def contradictions(self) -> tuple[Contradictions, ...]:
        """All contradictions, by kind."""
        return self.record.contradictions

    @property
    def answers_jct(self) -> bool:
        """True if the record tells when jobs were submitted."""
        return bool(np.isfinite(self.record.submit_s[self.sound]).all() and self.sound.any())


def recorded_run(
    record: RunRecord,
    cluster: Cluster,
    *,
    names: tuple[str, ...] = (),
    jobs: Workload | None = None,
) -> RecordedRun:
    """Look for contradictions, set their jobs aside, and verify the rest.

    Parameters
    ----------
    names : tuple of str
        Names of the cluster's nodes, if it has any.
    jobs : Workload, optional
        What the jobs are, if that is known from elsewhere: arrivals, gangs, work and rates are these then.

    Raises
    ------
    InputError
        If a job of the record is not among them.
    """
    notes = list(record.notes)
    if jobs is not None:
        record = _of_table(record, jobs)
        notes.append(f"arrivals, gangs and work are those of {jobs.source}")
    racks = racks_in_words(cluster)
    if racks is not None:
        notes.append(racks)
    places = Places.matched(record, cluster, names)
    if places.note and record.places:
        notes.append(places.note)
    record = record.with_more(*contradictions(record, cluster, places))
    if jobs is not None and jobs.throughput is None:
        record = record.with_more(_other_work(record, jobs))
    sound = ~doubtful_jobs(record)
    ran = np.zeros(len(sound), dtype=np.bool_)
    ran[record.job] = True
    sound &= ran
    if jobs is None:
        notes.append("a job needs the time for which it held its gang, wherever it runs")
    if not record.places:
        notes.append("no nodes are known: the cluster is taken as one pool of GPUs")
    outcome = None
    for _ in range(_MOST_REFUSALS):
        if not sound.any():
            break
        some = record.select(sound)
        try:
            instance, schedule = _schedule(some, cluster, places, jobs)
            outcome = _verified(instance, schedule, record.name)
            break
        except Violation as refusal:
            job = None if refusal.job is None else str(instance.workload.id[refusal.job])
            record = record.with_more(_refused(record, job, str(refusal)))
            if job is None:
                break
            sound &= record.id != job
        except InputError as refusal:
            record = record.with_more(_refused(record, None, str(refusal)))
            break
    return RecordedRun(record, cluster, outcome, sound, tuple(notes))


def _verified(instance: Instance, schedule: Schedule, name: str) -> Outcome:
    used = ScheduleClass.used(instance, schedule)
    return Outcome.verified(
        instance,
        schedule,
        policy=name,
        settings={"preemptive": used.preemptive, "placement": "recorded"},
    )


def _refused(record: RunRecord, job: str | None, detail: str) -> Contradictions:
    """The verifier's own words."""
    if job is None:
        return Contradictions(
            ContradictionKind.RULE,
            np.zeros(1, dtype=np.int64),
            np.array([""], dtype=object),
            [detail],
        )
    row = record.row[record.id[record.job] == job]
    return Contradictions(ContradictionKind.RULE, row[:1], np.array([job], dtype=object), [detail])


def _schedule(
    record: RunRecord, cluster: Cluster, places: Places, jobs: Workload | None
) -> tuple[Instance, Schedule]:
    """Instance and schedule of a record without contradictions."""
    where, node = cluster, places.of(record)
    if not record.places:
        where, node = _pool(cluster), np.zeros(len(record.node), dtype=np.int64)
    workload = _workload(record, where, jobs)
    place = np.array([workload.row_of[name] for name in record.id.tolist()], dtype=np.int64)
    return Instance(where, workload), merged_rows(
        place[record.job], node, record.gpus, record.start_s, record.end_s
    )


def merged_rows(
    job: NDArray[np.int64],
    node: NDArray[np.int64],
    gpus: NDArray[np.int64],
    start_s: NDArray[np.float64],
    end_s: NDArray[np.float64],
) -> Schedule:
    """Rows of pieces, those of one run on one node together, in the order of their ends: as engines write them.

    The verifier has a quicker pass for rows in this order.
    """
    order = np.lexsort((node, job, start_s, end_s))
    first = first_of_each(*(column[order] for column in (node, job, start_s, end_s)))
    rows = order[first]
    return Schedule(
        job=job[rows],
        node=node[rows],
        gpus=np.add.reduceat(gpus[order], first),
        start_s=start_s[rows],
        end_s=end_s[rows],
        overhead_s=np.zeros(len(rows)),
    )


def _pool(cluster: Cluster) -> Cluster:
    """The GPUs of a cluster as one node: what counts alone can tell."""
    return Cluster((Node(cluster.physical_gpus),))


def held_s(record: RunRecord) -> NDArray[np.float64]:
    """Time for which each job held its gang [s], shape (n,): sums of ticks are exact."""
    order = np.lexsort((record.start_s, record.job))
    runs = order[first_of_each(record.job[order], record.start_s[order])]
    length = record.end_s[runs] - record.start_s[runs]
    return np.bincount(record.job[runs], length, minlength=len(record.id)).astype(np.float64)


def _workload(record: RunRecord, cluster: Cluster, jobs: Workload | None) -> Workload:
    """Jobs of a record: by themselves, or those of a table that it is of."""
    if jobs is not None:
        rows = np.sort([jobs.row_of[name] for name in record.id.tolist()])
        chosen = jobs.select(rows)
        if jobs.throughput is not None:
            return chosen
        place = {name: k for k, name in enumerate(record.id.tolist())}
        held = held_s(record)
        work = [held[place[name]] for name in chosen.id.tolist()]
        return replace(chosen, work=np.array(work))
    submit_s = record.submit_s
    if not np.isfinite(submit_s).all():
        # Without submissions all jobs are there from the first start on: that lets every scheduler do the most.
        submit_s = np.full(len(submit_s), record.start_s.min())
    of_jobs: dict[str, Any] = dict(record.of_jobs)
    if "allowed_types" in of_jobs:
        types = of_jobs["allowed_types"]
        of_jobs["allowed_types"] = np.where(np.isin(types, cluster.gpu_types), types, "")
    return Workload.from_columns(
        id=record.id,
        arrival_s=submit_s,
        gpus=record.gang,
        work=held_s(record),
        source=record.source,
        **of_jobs,
    )


def _of_table(record: RunRecord, jobs: Workload) -> RunRecord:
    """The record with submissions and gangs of a table of jobs; rows of others are no runs."""
    there = np.array([name in jobs.row_of for name in record.id.tolist()], dtype=np.bool_)
    stray = np.flatnonzero(~there[record.job])
    detail = ["is not in the table of jobs"] * len(stray)
    record = record.with_more(record.wrong(ContradictionKind.NO_SUCH_JOB, stray, detail)).select(
        there
    )
    if not there.any():
        raise InputError(
            f"{record.source}: none of its jobs is in {jobs.source}, expected jobs such as {jobs.id[0]!r}"
        )
    rows = np.array([jobs.row_of[name] for name in record.id.tolist()], dtype=np.int64)
    missing = sorted(set(jobs.id.tolist()) - set(record.id.tolist()))
    never = Contradictions(
        ContradictionKind.NEVER_RAN,
        np.zeros(len(missing), dtype=np.int64),
        np.array(missing, dtype=object),
        ["is in the table of jobs and never ran"] * len(missing),
    )
    return replace(
        record.with_more(never), submit_s=jobs.arrival_s[rows], gang=jobs.gpus[rows], unanswered=()
    )


def _other_work(record: RunRecord, jobs: Workload) -> Contradictions:
    """Jobs that held their gangs for longer or shorter than their work takes."""
    good = record.pieces(record.start_s < record.end_s)
    held = held_s(good)
    runs = np.bincount(good.job, minlength=len(record.id))
    wanted = jobs.work[[jobs.row_of[name] for name in record.id.tolist()]]
    bad = np.flatnonzero((runs > 0) & (np.abs(held - wanted) > np.maximum(runs * _SLACK_S, TICK_S)))
    first: dict[int, int] = {}
    for row, job in zip(record.row.tolist(), record.job.tolist(), strict=True):
        first.setdefault(job, row)
    return Contradictions(
        ContradictionKind.WORK,
        np.array([first[k] for k in bad.tolist()], dtype=np.int64),
        record.id[bad],
        [f"ran for {held[k]:g} s, its work takes {wanted[k]:g} s" for k in bad.tolist()],
    )
