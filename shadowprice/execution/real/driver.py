"""Executing a job file on real hosts: put together, run, resume, sum up."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from shadowprice.errors import HostError
from shadowprice.execution.engine import Rounds
from shadowprice.execution.hosts.registry import open_host
from shadowprice.execution.real.assemble import assemble
from shadowprice.execution.real.clock import WallClock
from shadowprice.execution.real.copies.engine import ForkEngine
from shadowprice.execution.real.copies.policy import expect_forkable, fork_policy
from shadowprice.execution.real.engine import RealEngine
from shadowprice.execution.real.job_file import JobFile, load_job_file
from shadowprice.execution.real.ledger import Ledger
from shadowprice.execution.real.run import Run
from shadowprice.execution.real.settings import Settings
from shadowprice.execution.real.state_directory import locked, open_ledger
from shadowprice.solvers.registry import placement as find_placement
from shadowprice.solvers.registry import policy as find_policy


@dataclass(frozen=True)
class Summary:
    """How an execution ended.

    Parameters
    ----------
    jobs : dict of str to str
        State of every job: ``finished``, ``failed``, ``cancelled``; others if it was interrupted.
    interrupted : bool
        Whether somebody stopped it; the same command resumes it.
    resumed : bool
        Whether it began as another driver's.
    """

    jobs: dict[str, str]
    interrupted: bool
    resumed: bool

    @property
    def all_finished(self) -> bool:
        """Whether every job finished."""
        return all(state == "finished" for state in self.jobs.values())


class Interrupted(Exception):
    """Somebody asked the driver to stop."""


def execute(settings: Settings, on_tick: Callable[[Ledger], None] | None = None) -> Summary:
    """Execute a job file until all of its jobs are over; resume if the state directory has a run.

    The first SIGINT or SIGTERM asks all leases to make a checkpoint and end; the second leaves at
    once. In both cases, as after any crash, the same settings resume the run.

    Parameters
    ----------
    on_tick : callable, optional
        Called with the ledger whenever the driver has looked at its leases.

    Raises
    ------
    InputError
        If a name, file or setting is wrong, or the state directory is of another run.
    HostError
        If hosts cannot be used, another driver has the state directory, or it cannot be written:
        the disk is full.
    PolicyError
        If the policy decides something impossible, or leaves jobs waiting for ever.
    """
    job_file = load_job_file(settings.jobs)
    if fork_policy(settings) is None:
        find_policy(settings.policy), find_placement(settings.placement)
    else:
        expect_forkable(job_file.jobs)
    with _told(settings), locked(settings.state):
        ledger, resumed = open_ledger(settings.state, settings.identity(job_file.sha256))
        try:
            ended = bool(ledger.value("ended"))
            interrupted = not ended and _drive(settings, job_file, ledger, resumed, on_tick)
            states = {row["name"]: row["state"] for row in ledger.jobs()}
            return Summary(states, interrupted, resumed)
        finally:
            ledger.close()


@contextmanager
def _told(settings: Settings) -> Iterator[None]:
    """Trouble with the disk as an error that says what to do; what was written down is whole."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise HostError(
            f"state directory {settings.state}: {error}; once that is mended, the same command goes on"
        ) from error


def _drive(
    settings: Settings,
    job_file: JobFile,
    ledger: Ledger,
    resumed: bool,
    on_tick: Callable[[Ledger], None] | None,
) -> bool:
    """Run the loop; whether it was interrupted."""
    host = open_host(settings.hosts, settings.state, ledger.value("run_id"))
    try:
        with _signals() as asked:

            def tick() -> None:
                if on_tick is not None:
                    on_tick(ledger)
                if asked.is_set():
                    raise Interrupted

            clock = WallClock(ledger.value("began_unix"), ledger.last_s())
            run = assemble(settings, job_file, ledger, host, clock, resumed, tick)
            run.record.note("driver-started", pid=os.getpid(), resumed=resumed)
            for text in getattr(host, "notes", ()):
                run.record.note("note", text=text)
            engine = _engine(settings, run)
            try:
                engine.loop()
            except Interrupted:
                asked.clear()
                _wind_down(run)
                return True
        with ledger.transaction():
            run.record.note("driver-ended")
            ledger.set("ended", True)
        return False
    finally:
        host.close()


def _engine(settings: Settings, run: Run) -> RealEngine | ForkEngine:
    """The loop: of gangs, or of jobs that run as several copies."""
    forks = fork_policy(settings)
    if forks is not None:
        return ForkEngine(run, forks, settings.round_s)
    return RealEngine(
        run,
        find_policy(settings.policy),
        find_placement(settings.placement),
        Rounds(settings.round_s),
    )


def _wind_down(run: Run) -> None:
    """Let all leases make a checkpoint and end; who resumes the run finds them ended."""
    leases = run.leases()
    run.watch.stop(leases, "the driver ends")
    try:
        for lease in leases:
            run.watch.wait_for(lease, leases)
    except Interrupted:
        return
    with run.ledger.transaction():
        for lease in run.held():
            run.record.paused(lease)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; nothing outside the main thread, where none arrive."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
