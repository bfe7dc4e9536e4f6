"""The one loop: arrivals and completions in, decisions out; event by event or round by round.

At every decision time completions free their GPUs first, then arrivals join the queue, then the
policy decides once. Without rounds a decision is due at every arrival, completion, failure of a node
and requested wake-up; with rounds of S seconds those of a round are gathered at its end (a completed job still
ends at its own time, its GPUs idle until the boundary; whoever shared them with it has them to
itself at once). Rounds in which nothing happened are skipped, unless the policy asked to be woken.

A node that goes down loses what runs on it back to the last checkpoints: those jobs leave, and arrive
again at that moment with the work that they had not saved. Its GPUs are not free before it is up. At one
moment completions come first, then nodes come up, then others go down, then jobs arrive; the policy decides
last. It sees which nodes are down now, and nothing of faults to come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.course_hosts import CourseHosts
from shadowprice.execution.engine_hosts import Hosts
from shadowprice.execution.job_window import WindowProgress, cut_schedule
from shadowprice.execution.node_events import NodeEvents
from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.instances.clusters.cpu_memory import RunCpuMemory, combined
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.grid import MAX_TIME_S, TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE, Schedule
from shadowprice.instances.terms.effect import NO_FIELDS, Fields, fielded
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.ledger import ledger_of
from shadowprice.solvers.placement.protocol import Allocator, Pieces, Placement
from shadowprice.solvers.policy import (
    ChoosesCpuMemory,
    ChoosesNodes,
    Decision,
    Knowledge,
    Policy,
    State,
)
from shadowprice.solvers.policy_checks import decide

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

CHOSEN_NODES_KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,
        Feature.GOODPUT,
        Feature.QUOTAS,
        Feature.PARTS,
        Feature.CORES,
        Feature.WINDOW,
        Feature.RESTART,
    }
)
"""Features under which a policy may choose nodes by their GPUs: these do not fail, and lack no CPUs or memory."""

CHOSEN_CPU_MEMORY_KNOWS = CHOSEN_NODES_KNOWS | {Feature.FAILURES}
"""Features under which a policy may choose the CPUs and memory of runs: no job asks for a least."""

KNOWS = CHOSEN_CPU_MEMORY_KNOWS | {Feature.CPU_MEMORY} | DECLARED_KNOWS | {Feature.OWN}
"""Features of instances that are run here."""

_IDLE_WAKES = 100_000
"""Wake-ups in a row that change nothing while nothing runs and nobody will come: a hang."""
_RESTARTS_A_JOB = 100
"""Stops that lose work, for each job that is there, in a row without an arrival or a completion: a hang."""
_UNPAID_A_JOB = 1000
"""Stops of runs that have not paid their charges, for each job that is there, in a row: a hang."""


@dataclass(frozen=True)
class Rounds:
    """Times at which decisions are due.

    Parameters
    ----------
    length_s : float
        Round length [s]; 0 for a decision at every event.
    first_s : float
        Time of the first round boundary [s].
    """

    length_s: float = 0.0
    first_s: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("length_s", self.length_s), ("first_s", self.first_s)):
            if not 0 <= value <= MAX_TIME_S or value * TICKS_PER_S != int(value * TICKS_PER_S):
                raise InputError(
                    f"rounds: {name} is {value!r}, expected seconds >= 0, a multiple of 2**-20"
                )

    def of_length(self, length_s: float) -> Rounds:
        """Rounds of another length; those of which the first ends at its length go on to do so."""
        return Rounds(length_s, length_s if 0 < self.first_s == self.length_s else self.first_s)

    def due_s(self, event_s: float) -> float:
        """First decision time at or after an event [s]."""
        if self.length_s == 0.0:
            return event_s
        return (
            self.first_s
            + max(math.ceil((event_s - self.first_s) / self.length_s), 0) * self.length_s
        )


@runtime_checkable
class SeesRunsBegin(Protocol):
    """Policy that stands for one elsewhere, and passes on what is known before a job arrives."""

    @property
    def name(self) -> str:
        """Name of the policy."""

    @property
    def enforced(self) -> tuple[str, ...]:
        """Protections from the one elsewhere, in words."""

    def begin(
        self,
        instance: Instance,
        placement: Placement,
        service_gpu_s: NDArray[np.float64] | None,
    ) -> None:
        """Take note of a run, whose next decision will be its first."""


@dataclass(frozen=True)
class EngineRun:
    """Result of the engine: a schedule that nobody has verified yet, of an instance that says if it was stopped."""

    instance: Instance
    schedule: Schedule
    decisions: int
    cpu_s: float
    policy: str = field(default="")


def run(
    instance: Instance,
    policy: Policy,
    *,
    placement: Placement | None = None,
    rounds: Rounds | None = None,
    watch: Watch | None = None,
) -> EngineRun:
    """Run a policy over an instance until every job has finished, or its window of jobs.

    Parameters
    ----------
    placement : Placement, optional
        Which nodes a gang gets; by count if not given.
    rounds : Rounds, optional
        When decisions are due; at every event if not given.
    watch : Watch, optional
        Told how far the run is at every decision. Where it stops the run, that ends there, and its instance
        says when; a run with a window of jobs it cannot stop.

    Raises
    ------
    InputError
        If jobs run as several copies, the run goes on for longer than faults of nodes are known, or it ends with a
        window of jobs and the policy is told the services of all.
    EarlyEndError
        If the last job arrives before those of the window are complete.
    PolicyError
        If the policy decides something impossible, or leaves jobs waiting for ever, for nodes that stay down
        too, or those of the window until the run is given up.
    """
    began = time.process_time()
    engine = Engine(instance, policy, placement or Count(), rounds or Rounds())
    engine.watch = watch
    engine.loop()
    return engine.result(time.process_time() - began)


def answered(points: Generator[State, Decision, None], decision: Decision) -> State | None:
    """State of the next decision that is due after one; None if the run is over."""
    try:
        return points.send(decision)
    except StopIteration:
        return None


class Engine:
    """The engine of one run: its loop, and the table of all jobs, of which a policy sees who arrived.

    What a subclass may replace is where time comes from: :meth:`_await` and :meth:`_due_s`, what
    else happened meanwhile: :meth:`_sense`, and what is done with decisions: :meth:`_decide`.

    Parameters
    ----------
    hosts : Hosts, optional
        What carries decisions out; simulated if not given.

    Attributes
    ----------
    knows, called : frozenset of Feature, str
        Features of instances that the loop knows, and what it is called where it refuses others.
    """

    knows: ClassVar[frozenset[Feature]] = KNOWS
    called: ClassVar[str] = "the engine"

    def __init__(
        self,
        instance: Instance,
        policy: Policy,
        placement: Placement,
        rounds: Rounds,
        hosts: Hosts | None = None,
    ) -> None:
        require(instance, self.knows, self.called)
        if hosts is None and isinstance(policy, ChoosesNodes):
            who = f"policies that choose nodes by their GPUs, as {policy.name}"
            require(instance, CHOSEN_NODES_KNOWS, who)
        if isinstance(policy, ChoosesCpuMemory) and Feature.PROFILES in instance.features:
            who = f"policies that choose CPUs and memory, as {policy.name}"
            require(instance, CHOSEN_CPU_MEMORY_KNOWS, who)
        self.instance = instance
        alike = instance.workload.throughput is None
        types = instance.cluster.type_of_node
        pools = [0] * len(types) if alike else types.tolist()
        self.policy = policy
        self.rounds = rounds
        self.fielded = fielded(instance.effects)
        faults = instance.failures
        self.outages = None if faults is None else NodeEvents(faults)
        course = instance.course
        self.course = None if course is None or hosts else CourseHosts(instance, course)
        self.hosts: Hosts = hosts or self.course or SimulatedHosts(instance)
        environment = Environment.of(instance)
        self.jobs = JobTable.of(instance, environment)
        window = instance.until_complete
        self.window = None if window is None else WindowProgress(window, instance.workload)
        service_gpu_s = None
        if Knowledge.DISTRIBUTION in policy.knows:
            if window is not None:
                raise InputError(
                    f"policy {policy.name!r}: is told the services of all jobs, also of those after jobs "
                    f"{window}; expected a policy that is not told, or a sample of services"
                )
            service_gpu_s = np.sort(instance.workload.gpus * instance.shortest_s)
        allocator = self._ledger(placement.allocator(instance.cluster, pools), pools)
        self.changing = allocator if allocator.changes else None
        self.state = State(environment, policy.knows, allocator, service_gpu_s)
        self.arrivals: list[float] = instance.workload.arrival_s.tolist()
        self.ids = instance.workload.id
        self.admitted = 0
        self.next_arrival_s = self.arrivals[0] if self.arrivals else math.inf
        self.next_end_s = math.inf
        self.decisions = 0
        self.idle_wakes = 0
        self.restarts = 0
        self.charged, self.unpaid = not instance.overheads.free, 0
        self.watch: Watch | None = None
        self.stopped = False
        if isinstance(policy, SeesRunsBegin):
            _begin(policy, instance, placement, service_gpu_s, hosts)

    def _ledger(self, gpus: Allocator, pool_of_node: Sequence[int]) -> Allocator:
        """Ledger of who holds what of the cluster, GPUs by a placement."""
        return ledger_of(self.instance, gpus, pool_of_node)

    def loop(self) -> None:
        """Go from decision to decision of the policy."""
        points = self.decision_points()
        due = next(points, None)
        while due is not None:
            due = answered(points, self._decide())

    def decision_points(self) -> Generator[State, Decision, None]:
        """The loop, which stops where a decision is due and goes on with the one that it is sent.

        Whoever sends one has it checked before (:mod:`shadowprice.solvers.policy_checks`).

        Yields
        ------
        State
            The state that the decision is about; always the same object.
        """
        state = self.state
        wake_s = math.inf
        while True:
            event_s = self._await(wake_s)
            if event_s == math.inf:
                break
            state.now_s = now_s = self._due_s(event_s)
            if self.changing is not None:
                self.changing.at(now_s)
            self._sense(now_s)
            if self.window is not None and self._window_complete(self.window):
                return
            if self.watch is not None and self._stopped(self.watch):
                return
            decision = yield state
            self.decisions += 1
            wake_s = decision.wake_s
            if wake_s < MAX_TIME_S:
                # Not all policies know that times are whole ticks.
                wake_s = math.ceil(wake_s * TICKS_PER_S) / TICKS_PER_S
            if decision.starts or decision.stops or decision.fields:
                self._apply(decision, now_s)
                self.idle_wakes = 0
            elif wake_s != math.inf or self.changing is not None:
                self._count_idle()
            if self.course is not None:
                self._slow(self.course, now_s)
            if state.arrived:
                state.arrived.clear()
            if state.finished:
                state.finished.clear()
                state.failed.clear()
            if state.changed_nodes:
                state.changed_nodes.clear()
        if state.waiting:
            self._starved()

    def result(self, cpu_s: float) -> EngineRun:
        """Everything that simulated hosts have done, or had done when the run was stopped, in so much CPU time [s].

        Its instance knows all faults of nodes until the end of the run.
        """
        assert isinstance(self.hosts, SimulatedHosts)
        instance, schedule = self.instance, self.hosts.schedule()
        if self.outages is not None:
            instance = replace(instance, failures=self.outages.failures)
        if self.stopped:
            now_s = self.state.now_s
            instance, schedule = replace(instance, stopped_s=now_s), cut_schedule(schedule, now_s)
        return EngineRun(instance, schedule, self.decisions, cpu_s, self.policy.name)

    def _await(self, wake_s: float) -> float:
        """Time of the next event [s], at the latest the one the policy asked for; infinity for none."""
        self.next_end_s = self.hosts.next_end_s
        state = self.state
        if self.next_arrival_s == math.inf and not (state.waiting or state.running):
            return math.inf  # All jobs are complete: nobody is left to wake for.
        if self.changing is not None and state.waiting:
            wake_s = min(wake_s, self.changing.next_change_s)
        event_s = min(self.next_end_s, self.next_arrival_s, wake_s)
        return event_s if self.outages is None else self._before(self.outages, event_s)

    def _before(self, outages: NodeEvents, event_s: float) -> float:
        """Time at which a node goes down or comes up, if that is before the next event and concerns anybody [s]."""
        state = self.state
        if not (state.waiting if event_s == math.inf else state.waiting or state.running):
            # Nobody is there to whom it makes a difference before then.
            return event_s
        if event_s == math.inf and not state.down_nodes:
            # Whom no policy starts on a whole cluster it does not start on a part of it.
            return event_s
        return min(event_s, outages.next_s(event_s))

    def _due_s(self, event_s: float) -> float:
        """Time of the decision about an event [s]."""
        return event_s if self.rounds.length_s == 0.0 else self.rounds.due_s(event_s)

    def _sense(self, now_s: float) -> None:
        """Take note of what happened until now."""
        hosts = self.hosts
        if self.outages is not None:
            self._fail(self.outages, now_s)
        while self.next_end_s <= now_s:
            self._depart(*hosts.finish_next())
            self.next_end_s = hosts.next_end_s
        if self.next_arrival_s <= now_s:
            self._admit(now_s)

    def _fail(self, outages: NodeEvents, now_s: float) -> None:
        """Take note of nodes that went down or came up until now, and of completions before that."""
        hosts = self.hosts
        while (at_s := outages.next_s(now_s)) <= now_s:
            while hosts.next_end_s <= at_s:
                self._depart(*hosts.finish_next())
            self._change(*outages.take())
        self.next_end_s = hosts.next_end_s

    def _change(self, at_s: float, down: bool, node: int) -> None:
        """Take a node out, with all that runs there, or give it back."""
        state = self.state
        everything = ((node, state.environment.cluster.nodes[node].gpus),)
        if not down:
            state.down_nodes.remove(node)
            state.allocator.give_back(everything)
            state.changed_nodes.append((node, len(state.finished)))
            return
        lost = [
            job
            for job, pieces in state.running.items()
            if any(place == node for place, _ in pieces)
        ]
        assert isinstance(self.hosts, SimulatedHosts)
        for job in lost:
            pieces = state.running[job]
            state.fail(job, at_s, *self.hosts.fail(job, at_s))
            if job in state.partner_of:
                # The partner holds the same, is struck as well, and frees it.
                state.allocator.leave(job, self._part(job), pieces)
            else:
                state.allocator.release(job, pieces)
        taken = state.allocator.take_exact(everything)
        assert taken, "a node that goes down is held by a run"
        state.down_nodes.add(node)
        state.changed_nodes.append((node, len(state.finished)))

    def _window_complete(self, window: WindowProgress) -> bool:
        """Note who finished; once those of the window have, stop all that still run."""
        state = self.state
        window.leave(state.completed)
        if not window.over(state.now_s, self.admitted, self.policy.name):
            return False
        self._stop_all()
        return True

    def _stopped(self, watch: Watch) -> bool:
        """Tell the watch how far the run is, and stop all that runs if it says so."""
        state, jobs = self.state, len(self.arrivals)
        complete = self.admitted - len(state.waiting) - len(state.running)
        if not watch.stops(complete, jobs) or self.window is not None or complete == jobs:
            return False
        self._stop_all()
        self.stopped = True
        return True

    def _stop_all(self) -> None:
        for job in list(self.state.running):
            self.hosts.stop(job, self.state.now_s)

    def _decide(self) -> Decision:
        """Decision of the policy about what it sees now, checked."""
        return decide(self.policy, self.state)

    def _depart(self, job: int, end_s: float, pieces: Pieces) -> None:
        """A running job leaves its GPUs and the cluster."""
        state = self.state
        left = state.cpu_memory_of.get(job)
        del state.running[job]
        state.forget(job, end_s)
        if job in state.partner_of:
            state.allocator.leave(job, state.partner_of[job], pieces)
            self._go_on_alone(self._part(job), end_s, left)
        else:
            state.allocator.release(job, pieces)
        state.finished.append(job)

    def _part(self, job: int) -> int:
        """The partner of a job, which is that no longer."""
        partner = self.state.partner_of.pop(job)
        del self.state.partner_of[partner]
        return partner

    def _go_on_alone(self, partner: int, at_s: float, left: RunCpuMemory | None) -> None:
        """Let a job whose partner has left go on at its full rate, with the CPUs and memory that this leaves it."""
        if self.hosts.end_s(partner) > at_s:
            alone: dict[Feature, object] = {Feature.SHARING: ALONE}
            if left is not None:
                held = self.state.cpu_memory_of
                alone[Feature.PROFILES] = both = combined(held[partner], left)
                self.state.allocator.cpu_memory.adjust(partner, self.state.running[partner], both)
            self.state.continued(partner, *self.hosts.continue_run(partner, alone, at_s), alone)

    def _admit(self, now_s: float) -> None:
        """Show the policy the jobs that have arrived until now."""
        arrivals, end = self.arrivals, self.admitted
        while end < len(arrivals) and arrivals[end] <= now_s:
            end += 1
        self.state.admit(self.jobs, end)
        self.admitted = end
        self.next_arrival_s = arrivals[end] if end < len(arrivals) else math.inf

    def _apply(self, decision: Decision, now_s: float) -> None:
        state, hosts = self.state, self.hosts
        if self.instance.restarts:
            self._count_restarts(len(decision.stops))
        for job in decision.stops:
            ran_s, left_s, owed_s = hosts.stop(job, now_s)
            state.stopped(job, ran_s, left_s, owed_s)
            if self.charged:
                self._count_unpaid(ran_s)
        if decision.fields:
            self._go_on(decision.fields, decision.stops, now_s)
        for job, pieces in decision.starts.items():
            fields = self._fields(job, pieces, decision) if self.fielded else NO_FIELDS
            progress_from_s, rate = hosts.start(job, pieces, now_s, fields)
            state.started(job, pieces, progress_from_s, rate, fields)

    def _go_on(self, fields: Mapping[int, Fields], stops: Collection[int], now_s: float) -> None:
        """Let the jobs that go on running go on with the fields that they have after the decision."""
        state, stopped = self.state, set(stops)
        partners = {
            job: told[Feature.SHARING] for job, told in fields.items() if Feature.SHARING in told
        }
        for job, told in fields.items():
            before = state.partner_of.pop(job, ALONE) if job in partners else ALONE
            if job not in state.running:
                continue
            other = partners.get(job, ALONE) != before or before in stopped
            if other or told.keys() - {Feature.SHARING}:
                state.continued(job, *self.hosts.continue_run(job, told, now_s), told)
        state.partner_of.update((job, other) for job, other in partners.items() if other != ALONE)

    def _slow(self, hosts: CourseHosts, now_s: float) -> None:
        """Let jobs which others slow after the decision, or no longer do, go on so."""
        for job, mark in hosts.marked(self.state.running).items():
            if hosts.end_s(job) > now_s:
                fields = {hosts.feature: mark}
                self.state.continued(job, *hosts.continue_run(job, fields, now_s), fields)

    def _fields(self, job: int, pieces: Pieces, decision: Decision) -> Fields:
        """Fields of a run that begins: as policy and placement chose them, else as terms fill them in."""
        fields = self.state.allocator.fields_of(job)
        if decision.fields is not None and job in decision.fields:
            fields.update(decision.fields[job])
        for term in self.fielded:
            term.complete(job, pieces, fields)
        return fields

    def _count_idle(self) -> None:
        """Give up a policy that asks again and again to be woken where nothing can happen."""
        nothing_else = not self.state.running and self.next_arrival_s == math.inf
        self.idle_wakes = self.idle_wakes + 1 if nothing_else else 0
        if self.idle_wakes > _IDLE_WAKES:
            self._starved()

    def _count_restarts(self, stops: int) -> None:
        """Give up a policy that stops jobs, which lose their work, again and again before any is complete."""
        state = self.state
        happened = bool(state.arrived or state.finished)
        self.restarts = 0 if happened else self.restarts + stops
        live = len(state.waiting) + len(state.running)
        if self.restarts > _RESTARTS_A_JOB * live:
            raise PolicyError(
                f"{self.policy.name} at {state.now_s} s: stopped jobs {self.restarts} times since one arrived or "
                f"ended, of {live} that are there, and who is stopped starts from nothing; expected a policy that "
                "lets runs grow, such as b-scaling, or jobs that resume"
            )

    def _count_unpaid(self, ran_s: float) -> None:
        """Give up a policy that stops run after run before any has paid what it was charged."""
        state = self.state
        self.unpaid = 0 if ran_s > 0 else self.unpaid + 1
        live = len(state.waiting) + len(state.running)
        if self.unpaid > _UNPAID_A_JOB * live:
            raise PolicyError(
                f"{self.policy.name} at {state.now_s} s: stopped {self.unpaid} runs in a row before they had paid "
                f"their charges, of {live} jobs that are there; expected a policy that lets runs last"
            )

    def _starved(self) -> None:
        state = self.state
        if state.down_nodes:
            raise PolicyError(
                f"{self.policy.name} at {state.now_s} s: {len(state.waiting)} jobs wait for ever, "
                f"{len(state.down_nodes)} of {state.nodes} nodes stay down; expected nodes that come up again, "
                "or drop the jobs"
            )
        job = next(iter(state.waiting))
        raise PolicyError(
            f"{self.policy.name} at {state.now_s} s: leaves {len(state.waiting)} jobs waiting for ever "
            f"with {state.allocator.free_gpus} of {state.total_gpus} GPUs free, the first is "
            f"{self.ids[job]!r} ({state.gang[job]} GPUs); expected a start, or a time to be woken at"
        )


def _begin(
    policy: SeesRunsBegin,
    instance: Instance,
    placement: Placement,
    service_gpu_s: NDArray[np.float64] | None,
    hosts: Hosts | None,
) -> None:
    """Tell a policy that its run begins; what it passes on is of simulated runs."""
    if hosts is not None:
        raise InputError(f"policy {policy.name!r}: is sealed, expected a simulated run")
    policy.begin(instance, placement, service_gpu_s)
