"""Executing a job file on real hosts: put together, run, resume, sum up."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from shadowprice.errors import HostError, InputError
from shadowprice.execution.engine import Rounds
from shadowprice.hosts.absent import AbsentDevices
from shadowprice.hosts.first_instance import instance_of, profiles_for
from shadowprice.hosts.lease_cpu_memory import CpuMemoryGrants
from shadowprice.hosts.live.clock import Clock, WallClock
from shadowprice.hosts.live.devices import DevicePool
from shadowprice.hosts.live.elastic import widths_of
from shadowprice.hosts.live.engine import RealEngine
from shadowprice.hosts.live.event_log import EventWriter
from shadowprice.hosts.live.graphs.run_graphs import record_of
from shadowprice.hosts.live.job_file import JobFile, load_job_file
from shadowprice.hosts.live.launch_specs import LaunchSpecs
from shadowprice.hosts.live.lease import JobRecord
from shadowprice.hosts.live.lease_monitor import LeaseMonitor
from shadowprice.hosts.live.ledger import RunLedger, mend
from shadowprice.hosts.live.measuring import Measuring
from shadowprice.hosts.live.observer import FullDisk
from shadowprice.hosts.live.queue.job_queue import QUEUE, Arrivals, QueuedArrivals
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import LOCK, locked, open_ledger, take_over
from shadowprice.hosts.protocol import DiscoveredNode, Host
from shadowprice.hosts.registry import open_host
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.profiles import table_entry
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import placement as find_placement

# The parts of a run, from a job file and hosts.


def assemble(
    settings: Settings,
    job_file: JobFile,
    ledger: RunLedger,
    host: Host,
    present: tuple[DiscoveredNode, ...],
    clock: Clock,
    tick: Callable[[], None],
    arrivals: Arrivals,
) -> RealRun:
    """Put all parts of a run together; what is run and where is written down the first time.

    Parameters
    ----------
    present : tuple of DiscoveredNode
        Nodes that the host has now.
    tick : callable
        Called whenever the leases were looked at.
    arrivals : Arrivals
        Where further jobs come from.
    """
    resumed = bool(ledger.value("ready"))
    nodes = ledger.nodes() if resumed else present
    instance, notes = instance_of(settings, job_file, nodes)
    jobs = {job.name: job for job in job_file.jobs}
    names = [str(name) for name in instance.workload.id]
    tracked = [JobRecord(row, jobs[name]) for row, name in enumerate(names)]
    if not resumed:
        _write_down(ledger, nodes, job_file, tracked, instance, notes)
    monitor = LeaseMonitor(host, clock, settings.limits, tick, AbsentDevices(host, nodes, present))
    cpu_memory = CpuMemoryGrants(
        nodes,
        by_policy=instance.sensitivity is not None or instance.course is not None,
        shared=instance.sharing_rates is not None,
    )
    for one in tracked:
        cpu_memory.add(one.job)
    return RealRun(
        tracked=tracked,
        ledger=ledger,
        events=EventWriter(ledger, tracked, clock),
        monitor=monitor,
        devices=DevicePool(nodes),
        measuring=Measuring(instance, tracked),
        launch_specs=LaunchSpecs(
            settings.state.resolve(),
            nodes,
            settings.limits,
            settings.checkpoint_s,
            settings.health_check,
        ),
        limits=settings.limits,
        clock=clock,
        arrivals=arrivals,
        cpu_memory=cpu_memory,
    )


def _write_down(
    ledger: RunLedger,
    nodes: tuple[DiscoveredNode, ...],
    job_file: JobFile,
    tracked: list[JobRecord],
    instance: Instance,
    notes: list[str],
) -> None:
    """Record what is run and where; from now on the run can be resumed."""
    with ledger.transaction():
        ledger.set("nodes", [node.record() for node in nodes])
        for one in tracked:
            job = one.job
            ledger.add_job(
                job.name,
                position=one.row,
                iterations=job.iterations,
                gpus=job.gpus,
                arrival_s=float(instance.workload.arrival_s[one.row]),
                model=job.model,
            )
        if job_file.profiles is not None:
            tables = profiles_for(job_file, job_file.profiles).tables.items()
            ledger.set("profiles", [table_entry(*kind, table) for kind, table in tables])
        graphs = record_of(instance)
        if graphs is not None:
            ledger.set("graphs", graphs)
        widths = {one.job.name: list(widths_of(one.job)) for one in tracked if one.job.widths}
        if widths:
            ledger.set("widths", widths)
        for text in notes:
            ledger.event(0.0, "note", text=text)
        ledger.set("ready", True)


@dataclass(frozen=True)
class Summary:
    """Outcome of an execution.

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
        """True if every job finished."""
        return all(state == "finished" for state in self.jobs.values())


class Interrupted(Exception):
    """Somebody asked the driver to stop."""


def execute(settings: Settings, on_tick: Callable[[RunLedger], None] | None = None) -> Summary:
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
    settings.acting_policy(), find_placement(settings.placement)
    return _drive(settings, job_file, on_tick)


def execute_queue(
    settings: Settings, on_tick: Callable[[RunLedger], None] | None = None
) -> Summary:
    """Execute the jobs that are added to the queue of a state directory, until somebody stops it.

    See :func:`execute`; the job file of the settings is not read.

    Raises
    ------
    InputError
        Also if the policy needs to know jobs before they come.
    HostError, PolicyError
        As there.
    """
    if Knowledge.DISTRIBUTION in settings.acting_policy().knows:
        raise InputError(
            f"policy {settings.policy_name}: is told the services of all jobs, which a queue does not "
            "know; expected a policy that is not told"
        )
    find_placement(settings.placement)
    return _drive(settings, JobFile(Path(QUEUE), (), QUEUE), on_tick)


def _drive(
    settings: Settings, job_file: JobFile, on_tick: Callable[[RunLedger], None] | None
) -> Summary:
    """Be the driver of a state directory until its jobs are over, or somebody stops it."""
    try:
        with locked(settings.state):
            ledger, resumed = open_ledger(settings.state, settings.identity(job_file.sha256))
            try:
                take_over(ledger, settings.state)
                ended = bool(ledger.value("ended"))
                interrupted = not ended and _run(settings, job_file, ledger, on_tick)
                states = {row["name"]: row["state"] for row in ledger.jobs()}
                return Summary(states, interrupted, resumed)
            finally:
                ledger.close()
    except (OSError, sqlite3.Error) as error:  # what was written down is whole
        raise HostError(
            f"state directory {settings.state}: {error}; {mend(error)}, and the same command goes on"
        ) from error


def _run(
    settings: Settings,
    job_file: JobFile,
    ledger: RunLedger,
    on_tick: Callable[[RunLedger], None] | None,
) -> bool:
    """Run the loop; whether it was interrupted.

    A run begins when its hosts are found: a Ray cluster takes seconds to start, which are nobody's
    waiting.
    """
    opened_s, resumed = time.monotonic(), bool(ledger.value("ready"))
    host = open_host(settings.hosts, settings.state, ledger.value("run_id"))
    try:
        with _signals() as asked:
            present = host.discover()
            ready_s = time.monotonic() - opened_s

            def tick() -> None:
                if on_tick is not None:
                    on_tick(ledger)
                if asked.is_set():
                    raise Interrupted

            with ledger.transaction():  # all that a run begins with, on a slow disk too
                if not resumed:
                    ledger.set("began_unix", time.time())
                facts = {key: ledger.value(key) for key in ("began_unix", "clock")}
                clock = WallClock(facts, ledger.last_s())
                ledger.set("clock", clock.record())
                queued = job_file.sha256 == QUEUE
                arrivals = QueuedArrivals(ledger, settings) if queued else Arrivals()
                run = assemble(settings, job_file, ledger, host, present, clock, tick, arrivals)
                run.events.note(
                    "driver-started", pid=os.getpid(), resumed=resumed, ready_s=round(ready_s, 3)
                )
            ledger.disk = FullDisk(run, settings.state / LOCK)
            for text in host.notes:
                run.events.note("note", text=text)
            engine = RealEngine(
                run,
                settings.acting_policy(),
                find_placement(settings.placement),
                Rounds(settings.round_s),
            )
            try:
                engine.loop()
            except Interrupted:
                asked.clear()
                _wind_down(run)
                return True
        with ledger.transaction():
            run.events.note("driver-ended")
            ledger.set("ended", not ledger.retried())
        return False
    finally:
        host.close()


def _wind_down(run: RealRun) -> None:
    """Let all leases make a checkpoint and end; who resumes the run finds them ended."""
    leases = run.leases()
    run.monitor.stop(leases, "the driver ends")
    try:
        for lease in leases:
            run.monitor.wait_for(lease, leases)
    except Interrupted:
        return
    with run.ledger.transaction():
        for lease in run.held():
            run.events.paused(lease)


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
