"""Queue of a run: jobs that its owner adds while others run, in the ledger.

What was added is in the ledger, on the disk, checked as it is written there. The driver takes it in
from there: see :class:`QueuedArrivals`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.hosts.first_instance import instance_with, why_not_counted
from shadowprice.hosts.job_workload import workload
from shadowprice.hosts.lease_cpu_memory import (
    capacity_of,
    expect_none_asked,
    expect_room,
)
from shadowprice.hosts.live.job_file import (
    Job,
    JobFile,
    cluster_of,
    entry_of,
    expect_images,
    jobs_of,
)
from shadowprice.hosts.live.lease import CANCELLED, FAILED, FINISHED, JobRecord
from shadowprice.hosts.live.ledger import Row, RunLedger
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import LEDGER, passed_s
from shadowprice.instances.documents.plain_yaml import Tree
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs

QUEUE = "queue"
"""In the place of a job file's SHA-256: the jobs of the run are in its ledger."""
NOT_COUNTED, SHARED = "not_counted", "shared"
"""Facts in the ledger: why jobs cannot ask for CPUs or memory, and whether they may share GPUs."""
MOST_WAITING = 10_000
"""Jobs that are not over."""
_OVER = (FINISHED, FAILED, CANCELLED)


def _written(job: Job) -> tuple[str, str]:
    """Entry of a job as it is stored, and its variables, which are forgotten when it is over."""
    entry = entry_of(job)
    env = entry.pop("env", {})
    return json.dumps(entry), json.dumps(env)


def _read(number: int, entry: str, env: str) -> Job:
    """The job of what was stored.

    Raises
    ------
    InputError
        If it is none.
    """
    where = f"row {number} of the table submissions"
    try:
        stored = json.loads(entry) | {"env": json.loads(env)}
        # The directory was there when it was added; where it is gone, the job fails by itself.
        directory = Path(stored.pop("directory"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: is no entry of a job: {error!r}") from error
    (job,) = jobs_of({"jobs": [stored]}, where, Path("/"))
    return replace(job, directory=directory)


def run_time_s(ledger: RunLedger) -> float:
    """Time of a run by its driver's clock [s], on the grid of times."""
    facts = {key: ledger.value(key) for key in ("began_unix", "clock")}
    return math.floor(passed_s(facts, 0.0) * TICKS_PER_S) / TICKS_PER_S


class Arrivals:
    """Source of jobs that nobody knew of when the run began: none, where a job file names them all.

    Jobs have numbers that increase. What is taken in goes through the journal, so that a driver that
    takes a run over takes the same jobs in between the same decisions.
    """

    open = False
    """True while more may come: the run does not end by itself."""

    def fresh(self) -> list[int]:
        """Numbers of the jobs that were added and not taken in yet, in order."""
        return []

    def take(self, number: int, instance: Instance) -> tuple[JobRecord, Instance, list[str]]:
        """A job that was added, the instance with it in its last row, and notes of what is assumed of it."""
        raise LookupError(f"job {number}: a run of a job file has no further jobs")

    def jobs(self) -> Sequence[Job]:
        """All that were added so far, in order."""
        return ()


class QueuedArrivals(Arrivals):
    """Jobs of the queue as the driver takes them in.

    Parameters
    ----------
    ledger : RunLedger
        The driver's, in which it says what jobs cannot ask for.
    settings : Settings
        Of the run.
    """

    open = True

    def __init__(self, ledger: RunLedger, settings: Settings) -> None:
        self._ledger, self._settings = ledger, settings
        self._taken = 0
        with ledger.transaction():
            ledger.set(NOT_COUNTED, why_not_counted(settings))
            pairs = self._table is not None and bool(self._table.pairs)
            ledger.set(SHARED, settings.share is not None or pairs)

    @cached_property
    def _table(self) -> Throughputs | None:
        file = self._settings.throughputs
        return None if file is None else load_throughputs(file)

    def fresh(self) -> list[int]:
        """Numbers of the jobs that were added and not taken in yet, in order."""
        return [row["seq"] for row in self._ledger.submissions(self._taken)]

    def take(self, number: int, instance: Instance) -> tuple[JobRecord, Instance, list[str]]:
        """A job that was added; another in its place where it cannot be read, so that it fails alone."""
        row = self._ledger.submission(number)
        self._taken = number
        try:
            return self._taken_in(_read(number, row["job"], row["env"]), instance)
        except ShadowpriceError as error:
            why = str(error)
        stand_in = self._stand_in(row)
        try:
            return self._taken_in(stand_in, instance, why)
        except ShadowpriceError:
            return self._taken_in(replace(stand_in, gpus=1, iterations=1), instance, why)

    def _taken_in(
        self, job: Job, instance: Instance, unreadable: str = ""
    ) -> tuple[JobRecord, Instance, list[str]]:
        tracked = JobRecord(len(instance.workload), job, unreadable=unreadable)
        return tracked, *instance_with(instance, job, self._settings, self._table)

    def jobs(self) -> Sequence[Job]:
        """All that were added so far, in order."""
        return list(map(self._job, self._ledger.submissions()))

    def _job(self, row: Row) -> Job:
        try:
            return _read(row["seq"], row["job"], row["env"])
        except InputError:
            return self._stand_in(row)

    def _stand_in(self, row: Row) -> Job:
        """A job of the name, gang and length that the table of jobs has."""
        about = next(each for each in self._ledger.jobs() if each["name"] == row["name"])
        gpus, steps = int(about["gpus"]), int(about["iterations"])
        arrival_s, model = float(row["arrival_s"]), str(about["model"])
        return Job(
            row["name"], ("false",), {}, gpus, steps, Path("/"), arrival_s=arrival_s, model=model
        )


class JobQueue:
    """Queue as its owner sees it.

    Parameters
    ----------
    state : Path
        State directory of a run that was begun with ``execute --queue``.
    now_s : callable, optional
        Time of the run from its ledger [s]; that of the driver's clock if not given.

    Raises
    ------
    InputError
        If it is none of such a run, or its driver has not come to its hosts yet.
    """

    def __init__(self, state: Path, now_s: Callable[[RunLedger], float] = run_time_s) -> None:
        self._now_s = now_s
        self.ledger = RunLedger.open(state / LEDGER)
        why = ""
        if self.ledger.value("jobs_sha256") != QUEUE:
            begun = "expected one that was begun with `shadowprice execute --queue`"
            why = f"its run takes no further jobs, {begun}"
        elif not self.ledger.value("ready"):
            why = "its driver has not found its hosts yet; try again when it has"
        if why:
            self.ledger.close()
            raise InputError(f"{state}: {why}")
        self._cluster = cluster_of(self.ledger.nodes())

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()

    def add(self, document: Tree, source: str, folder: Path) -> list[str]:
        """Queue all jobs of a job file, or none; returns their names.

        Parameters
        ----------
        document
            The file, parsed.
        source : str
            Where it was read, for messages.
        folder : Path
            From which on directories of jobs are meant.

        Raises
        ------
        InputError
            If a job is wrong, can never run here, has a name that is taken, or there are too many.
        """
        for what in ("profiles", "network", "goodput"):
            if isinstance(document, dict) and what in document:
                raise InputError(f"{source}: names {what}, expected none: a queue has none")
        jobs = jobs_of(document, source, folder)
        expect_images(jobs, source)
        for job in jobs:
            arrival = f"arrival_s is {job.arrival_s:g}"
            for present, what, why in (
                (job.arrival_s > 0, arrival, "it arrives when it is added"),
                (job.graph is not None, "has a graph", "a queue has no network"),
                (job.widths != "", "has widths", "a queue has no tables of speeds"),
            ):
                if present:
                    raise InputError(f"{source}: job {job.name}: {what}, expected none: {why}")
        while True:
            # The ledger is locked only for writing: checks of many jobs take long.
            _, last_s = self.ledger.last_submission()
            arrival_s = max(self._now_s(self.ledger), last_s)
            entries = [self._entry(job, arrival_s, source) for job in jobs]
            with self.ledger.transaction():
                number, last_s = self.ledger.last_submission()
                if last_s <= arrival_s:  # nobody added later ones meanwhile
                    self._expect_room_for([job.name for job in jobs], source)
                    for k, (job, entry) in enumerate(zip(jobs, entries, strict=True), number + 1):
                        self._write(k, job, arrival_s, *entry)
                    return [job.name for job in jobs]

    def _entry(self, job: Job, arrival_s: float, source: str) -> tuple[str, str]:
        """Entry of a job as it is stored; it was read again, and some nodes can run it."""
        where = f"{source}: job {job.name} as it is queued"
        entry = _written(replace(job, arrival_s=arrival_s, deadline_s=arrival_s + job.deadline_s))
        try:
            queued = _read(0, *entry)
            rows, _ = workload(JobFile(Path(source), (queued,), ""), self._cluster)
            Instance(self._cluster, rows)
        except InputError as error:
            raise type(error)(f"{where}: {error}") from error
        self._expect_cpu_memory(queued, source)
        return entry

    def _expect_cpu_memory(self, job: Job, source: str) -> None:
        """Refuse CPUs and memory that are not counted, or that no nodes have."""
        why, nodes = str(self.ledger.value(NOT_COUNTED, "")), self.ledger.nodes()
        if why:
            expect_none_asked([job], why)
        expect_room([job], list(map(capacity_of, nodes)), self._cluster, Path(source))

    def _expect_room_for(self, names: Sequence[str], source: str) -> None:
        rows = self.ledger.jobs()
        states = {str(row["name"]).lower(): str(row["state"]) for row in rows}
        for name in names:
            if name.lower() in states:
                raise InputError(
                    f"{source}: job {name}: its name is that of a job of the run, which is "
                    f"{states[name.lower()]}; expected another; nothing was queued"
                )
        waiting = sum(state not in _OVER for state in states.values())
        if waiting + len(names) > MOST_WAITING:
            raise InputError(
                f"{waiting} jobs are queued and {len(names)} more were added, expected at most "
                f"{MOST_WAITING} together"
            )

    def _write(self, number: int, job: Job, arrival_s: float, entry: str, env: str) -> None:
        about: dict[str, Any] = {"arrival_s": arrival_s}
        self.ledger.submit(job.name, seq=number, job=entry, env=env, **about)
        about |= {"iterations": job.iterations, "gpus": job.gpus, "model": job.model}
        self.ledger.add_job(job.name, position=number, **about)
