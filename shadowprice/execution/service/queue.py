"""Queue of a service: jobs that its users submit, in the ledger of the run that executes them.

What was answered is in the ledger, on the disk. The driver reads it there: see :class:`QueuedArrivals`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.execution.first_instance import instance_with
from shadowprice.execution.lease_amounts import (
    IN_PAIRS,
    capacity_of,
    expect_none_asked,
    expect_room,
)
from shadowprice.execution.real.job_file import (
    Job,
    JobFile,
    cluster_of,
    entry_of,
    expect_images,
    jobs_of,
    workload,
)
from shadowprice.execution.real.lease_outcome import CANCELLED, FAILED, FINISHED
from shadowprice.execution.real.ledger import Row, RunLedger
from shadowprice.execution.real.settings import Settings
from shadowprice.execution.real.state_directory import LEDGER, passed_s
from shadowprice.execution.service.users import Access, NotAllowedError, User
from shadowprice.instances.documents.plain_yaml import Tree
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs

OVER = (FINISHED, FAILED, CANCELLED)
MOST_WAITING = 10_000
"""Jobs that are not over, of all users."""


def _job(row: Row) -> Job:
    """The job of a submission."""
    entry = json.loads(row["job"]) | {"env": json.loads(row["env"])}
    # The directory was there when it was submitted; where it is gone, the job fails by itself.
    directory = Path(entry.pop("directory"))
    (job,) = jobs_of({"jobs": [entry]}, f"submission {row['seq']}", Path("/"))
    return replace(job, directory=directory)


def run_time_s(ledger: RunLedger) -> float:
    """Time of a run by its driver's clock [s], on the grid of times."""
    facts = {key: ledger.value(key) for key in ("began_unix", "clock")}
    return math.floor(passed_s(facts, 0.0) * TICKS_PER_S) / TICKS_PER_S


NOT_COUNTED = "not_counted"
"""Reason in the ledger that jobs of a service cannot ask for CPUs or memory."""
SHARED = "shared"
"""Whether jobs of a service may share GPUs, in the ledger."""


class QueuedArrivals:
    """Jobs of the queue as the driver takes them in.

    Parameters
    ----------
    ledger : RunLedger
        The driver's.
    settings : Settings
        Of the run.
    """

    open = True

    def __init__(self, ledger: RunLedger, settings: Settings) -> None:
        self._ledger, self._settings = ledger, settings
        self._taken = 0

    @cached_property
    def _table(self) -> Throughputs | None:
        file = self._settings.throughputs
        return None if file is None else load_throughputs(file)

    def fresh(self) -> list[int]:
        """Numbers of the jobs that were submitted and not taken in yet, in order."""
        return self._ledger.submission_numbers(self._taken)

    def take(self, number: int, instance: Instance) -> tuple[Job, Instance, list[str]]:
        """A submitted job, the instance with it in the last row, and notes of what is assumed."""
        job = _job(self._ledger.submission(number))
        self._taken = number
        return job, *instance_with(instance, job, self._settings, self._table)

    def jobs(self) -> Sequence[Job]:
        """All that were submitted so far, in order."""
        return [_job(row) for row in self._ledger.submissions()]


class JobQueue:
    """Queue as users see it; of one thread.

    Parameters
    ----------
    state : Path
        State directory of a run that a driver executes.
    access : Access
        Who may do what.
    now_s : callable, optional
        Time of the run from its ledger [s]; that of the driver's clock if not given.
    """

    def __init__(
        self,
        state: Path,
        access: Access,
        now_s: Callable[[RunLedger], float] | None = None,
    ) -> None:
        self.state, self.access = state, access
        self._now_s = now_s or run_time_s
        self.ledger = RunLedger.open(state / LEDGER)
        self._cluster = cluster_of(self.ledger.nodes())

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()

    def submit(self, user: User, document: Tree, folder: Path, request: str) -> list[str]:
        """Queue all jobs of a job file, or none; returns their names, which end with a number.

        Parameters
        ----------
        document
            The file, parsed.
        folder : Path
            From which on directories of jobs are meant.
        request : str
            Chosen by who asks: the same request again returns the same names, and queues nothing.

        Raises
        ------
        InputError
            If a job is wrong, can never run here, or there are too many.
        NotAllowedError
            If the user is not let in.
        """
        weight = self.access.weight(user)
        for what in ("profiles", "network"):
            if isinstance(document, dict) and what in document:
                raise InputError(f"jobs: names {what}, expected none: a service has none")
        given = jobs_of(document, "jobs", folder)
        expect_images(given, "jobs")
        jobs = [self._admitted(job, user, weight) for job in given]
        with self.ledger.transaction():
            known = self.ledger.requested(user.uid, request)
            if known:
                return known
            waiting = sum(row["state"] not in OVER for row in self.ledger.jobs())
            if waiting + len(jobs) > MOST_WAITING:
                raise InputError(
                    f"{waiting} jobs are queued and {len(jobs)} more were submitted, expected at most "
                    f"{MOST_WAITING} together"
                )
            before = self.ledger.last_submission()
            number, last_s = (0, 0.0) if before is None else (before["seq"], before["arrival_s"])
            arrival_s = max(self._now_s(self.ledger), last_s)
            return [
                self._add(user, job, number + k, arrival_s, request)
                for k, job in enumerate(jobs, 1)
            ]

    def _admitted(self, job: Job, user: User, weight: float) -> Job:
        """A job as it is queued: the user's, with the user's weight."""
        where = f"job {job.name}"
        if job.tenant not in ("", user.name):
            raise InputError(f"{where}: tenant is {job.tenant!r}, expected {user.name!r} or none")
        if job.arrival_s:
            raise InputError(
                f"{where}: arrival_s is {job.arrival_s:g}, expected none: it arrives when it is submitted"
            )
        if job.weight > 1 and not self.access.owns(user):
            raise InputError(
                f"{where}: weight is {job.weight:g}, expected at most 1: it is multiplied by {user.name}'s, "
                f"{weight:g}"
            )
        if job.graph is not None:
            raise InputError(f"{where}: has a graph, expected none: a service has no network")
        job = replace(job, tenant=user.name, weight=job.weight * weight)
        self._expect_feasible(job)
        return job

    def _expect_feasible(self, job: Job) -> None:
        path = Path(job.name)
        rows, _ = workload(JobFile(path, (job,), ""), self._cluster)
        Instance(self._cluster, rows)
        why, nodes = str(self.ledger.value(NOT_COUNTED, "")), self.ledger.nodes()
        if self.ledger.value(SHARED, False) and not all(each.amounts_in_pairs for each in nodes):
            why = why or IN_PAIRS
        if why:
            expect_none_asked([job], why)
        expect_room([job], list(map(capacity_of, nodes)), self._cluster, path)

    def _add(self, user: User, job: Job, number: int, arrival_s: float, request: str) -> str:
        """Write a job down."""
        name = f"{job.name}-{number}"
        queued = replace(job, name=name, arrival_s=arrival_s, deadline_s=arrival_s + job.deadline_s)
        entry = entry_of(queued)
        env = entry.pop("env", {})
        self.ledger.submit(
            name,
            seq=number,
            uid=user.uid,
            user=user.name,
            request=request,
            arrival_s=arrival_s,
            job=json.dumps(entry),
            env=json.dumps(env),
        )
        self.ledger.add_job(
            name,
            position=number,
            iterations=job.iterations,
            gpus=job.gpus,
            arrival_s=arrival_s,
            model=job.model,
        )
        return name

    def cancel(self, user: User, names: Sequence[str]) -> None:
        """Cancel jobs of the user: all of them, or none.

        Raises
        ------
        InputError
            If there is no such job, or it is over.
        NotAllowedError
            If one is another user's.
        """
        with self.ledger.transaction():
            for name in dict.fromkeys(names):
                row = self.own(user, name)
                if row["state"] in OVER:
                    raise InputError(
                        f"job {name!r} is {row['state']} already; nothing was cancelled"
                    )
                self.ledger.update_job(name, cancel=1)

    def own(self, user: User, name: str) -> Row:
        """A job of the user as the ledger has it, with its ``user``.

        Raises
        ------
        InputError
            If there is none.
        NotAllowedError
            If it is another user's.
        """
        row = self.ledger.submitted_job(name)
        if row is None:
            raise InputError(f"there is no job {name!r}")
        if row["uid"] != user.uid and not self.access.owns(user):
            raise NotAllowedError(f"job {name} is {row['user']}'s, not {user.name}'s")
        return row

    def forget_secrets(self) -> None:
        """Overwrite the variables of jobs that are over."""
        self.ledger.forget_environments(OVER)

    def document(self, name: str) -> dict[str, Any]:
        """Entry of a job as it was queued, without the values of its variables."""
        row = self.ledger.submitted_job(name)
        assert row is not None
        return dict(json.loads(row["job"]))
