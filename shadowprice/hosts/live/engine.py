"""The engine on a wall clock: the same loop, whose time passes and whose runs fail.

What simulation does not know is told to policies in its own words. A job whose lease ended before its
work was done, because it failed, was lost with its node or was stopped by hand, finishes for the
policy and arrives again when it may be tried again. A node that does not answer has no free GPUs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import ClassVar

from shadowprice.execution.engine import Engine, Rounds
from shadowprice.hosts.live.real_hosts import RealHosts
from shadowprice.hosts.live.run import RealRun
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.effect import NO_FIELDS, Fields, fielded
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource
from shadowprice.solvers.placement.ledger import with_resources
from shadowprice.solvers.placement.protocol import Allocator, Pieces, Placement
from shadowprice.solvers.policy import Decision, Policy, State

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.CPU_MEMORY,
        Feature.GOODPUT,
    }
)
"""Features of the instances that real runs have; what runs are charged there is measured."""


class RealEngine(Engine):
    """The loop of a real run."""

    knows: ClassVar[frozenset[Feature]] = KNOWS
    called: ClassVar[str] = "real runs"

    def __init__(self, run: RealRun, policy: Policy, placement: Placement, rounds: Rounds) -> None:
        # Before a host is touched.
        require(run.measuring.instance, self.knows, self.called)
        self.run = run
        self.real = RealHosts(run)
        self.cpu_memory: CpuMemoryResource | None = None
        super().__init__(run.measuring.instance, policy, placement, rounds, self.real)
        self._quarantined = [0] * len(run.devices.nodes)

    def _ledger(self, gpus: Allocator, pool_of_node: Sequence[int]) -> Allocator:
        """Ledger of who holds what, with the CPUs and memory of leases as hosts have them."""
        self.cpu_memory = self.run.cpu_memory.resource(pool_of_node)
        return with_resources(gpus, self.instance, self.cpu_memory)

    def _await(self, wake_s: float) -> float:
        return self.real.await_event(min(wake_s, self.next_arrival_s))

    def _due_s(self, event_s: float) -> float:
        """Time of the decision [s]: the end of the round; if that is long past, of the last one."""
        due_s = super()._due_s(event_s)
        now_s = self.real.await_time(due_s)
        length_s, first_s = self.rounds.length_s, self.rounds.first_s
        if length_s == 0.0:
            return now_s
        return max(due_s, first_s + math.floor((now_s - first_s) / length_s) * length_s)

    def _sense(self, now_s: float) -> None:
        state, events = self.state, self.real.events(now_s)
        for progress in events.progress:
            state.continued(progress.row, progress.ran_s, progress.left_s, now_s, progress.rate)
            self._reach(progress.row, progress.step if progress.reported else None)
            step_s = progress.step_s()
            if state.goodput is not None and step_s is not None:
                state.goodput.timed(progress.row, step_s)
        for outcome in events.ended:
            self._depart(outcome.row, outcome.end_s, state.running[outcome.row])
        for row, _ in events.left:
            if row in state.running:
                self._depart(row, now_s, state.running[row])
            else:
                self._withdraw(row)
        self._quarantine()
        if self.run.measuring.learn() or events.submitted:
            self._learn(self.run.measuring.instance)
        before = self.admitted
        self._admit(now_s)
        self.real.admit(range(before, self.admitted))
        for row in events.returned:
            state.readmit(row, self.run.measuring.left_s(self.run.tracked[row]))
        for row in state.waiting:
            self._reach(row, None)

    def _reach(self, row: int, step: int | None) -> None:
        """Let the policy know how far a job with goodput is by its own steps; None if it reports none now."""
        measuring, goodput = self.run.measuring, self.state.goodput
        steps = measuring.steps_done(self.run.tracked[row]) if step is None else step
        position = measuring.position(row, steps)
        if position is not None and goodput is not None:
            goodput.reached(row, position)

    def _learn(self, instance: Instance) -> None:
        """Better estimates of throughputs, and further jobs, for those who have arrived and those to come."""
        environment = Environment.of(instance)
        self.jobs = JobTable.of(instance, environment)
        self.fielded = fielded(instance.effects)
        self.state.learn(environment, self.jobs)
        self.arrivals, self.ids = instance.workload.arrival_s.tolist(), instance.workload.id

    def _decide(self) -> Decision:
        """Decide; the decision is written down before it is applied."""
        state = self.state
        began_s = time.process_time()
        decision = super()._decide()
        cpu_s = time.process_time() - began_s
        _restart_adjusted(state, decision)
        stays = self._unmoved(decision)
        decision.stops = [job for job in decision.stops if job not in stays]
        for job in stays:
            del decision.starts[job]
            (decision.fields or {}).pop(job, None)
        self._complete(decision)
        for job, pieces in decision.starts.items():
            fields = (decision.fields or {}).get(job, NO_FIELDS)
            self.run.measuring.prior_rate(job, pieces, fields)  # or it is refused
        self._note_stopped_others(decision)
        self.real.decided(state, decision, cpu_s)
        return decision

    def _note_stopped_others(self, decision: Decision) -> None:
        """Remember of jobs that failed that others are stopped for them."""
        for job in decision.starts:
            tracked = self.run.tracked[job]
            if (tracked.tries or tracked.host_tries) and set(decision.stops) - {job}:
                tracked.stopped_others = True

    def _unmoved(self, decision: Decision) -> set[int]:
        """Jobs that a decision stops and starts on the very GPUs they hold: their leases go on.

        Those that share GPUs before or after are left as they are, since which GPUs of a node a pair
        holds may differ; and those that get other CPUs or memory, or whose replicas move.
        """
        state, starts, partners = self.state, decision.starts, decision.of(Feature.SHARING)
        chosen, mappings = decision.of(Feature.PROFILES), decision.of(Feature.GRAPHS)
        leases = {job: self.run.tracked[job].lease for job in decision.stops}
        return {
            job
            for job, lease in leases.items()
            if job in starts
            and sorted(starts[job]) == sorted(state.running[job])
            and (job not in chosen or chosen[job] == state.cpu_memory_of[job])
            and state.partner_of.get(job, ALONE) == partners.get(job, ALONE) == ALONE
            and (lease is None or mappings.get(job) in (None, lease.fields.get(Feature.GRAPHS)))
        }

    def _complete(self, decision: Decision) -> None:
        """Let terms fill in what a decision leaves open of the jobs that it starts, before it is written down."""
        if self.fielded:
            fields = decision.fields = decision.fields or {}
            for job, pieces in decision.starts.items():
                chosen = fields.setdefault(job, {})
                for term in self.fielded:
                    term.complete(job, pieces, chosen)

    def _apply(self, decision: Decision, now_s: float) -> None:
        """Apply a decision, each start as soon as the GPUs of its predecessors are free.

        Partners are regrouped between stops and starts, so that decisions on pairs are applied whole.
        """
        if decision.of(Feature.SHARING) or not decision.stops:
            with self.real.stopped(decision.stops, math.inf):
                super()._apply(decision, now_s)
            return
        # What has not stopped when the next round is due holds nobody else up.
        until_s = now_s + (self.rounds.length_s or self.run.limits.stop_s)
        stops, starts, chosen = list(decision.stops), dict(decision.starts), decision.fields or {}
        for wait_s in chain([-math.inf], repeat(until_s)):
            with self.real.stopped(stops, wait_s) as over:
                if not over and wait_s == until_s:
                    break
                self._apply_part(over, stops, starts, chosen, now_s)
            if not stops:
                break
        self._take_back(stops, starts)

    def _apply_part(
        self,
        over: Sequence[int],
        stops: list[int],
        starts: dict[int, Pieces],
        chosen: Mapping[int, Fields],
        now_s: float,
    ) -> None:
        """Apply those stops of a decision that are over, and the starts whose GPUs are free."""
        state, hosts = self.state, self.real
        for job in over:
            stops.remove(job)
            state.stopped(job, *hosts.stop(job, now_s))
        for job, pieces in list(starts.items()):
            fields = chosen.get(job, NO_FIELDS)
            if not stops or (job not in stops and hosts.has_free(job, pieces, fields)):
                del starts[job]
                state.started(job, pieces, *hosts.start(job, pieces, now_s, fields), fields)

    def _take_back(self, stops: Sequence[int], starts: Mapping[int, Pieces]) -> None:
        """Take back what a decision could not do in time.

        The jobs that it stops run until they end, as they were asked to; those that it starts wait.
        """
        state = self.state
        for job, pieces in starts.items():
            state.allocator.release(job, pieces)
        for job in stops:
            taken = state.allocator.resume(job, state.running[job], None, {})
            assert taken, "the GPUs of a job that runs were given to another"

    def _withdraw(self, job: int) -> None:
        """A waiting job leaves: it was cancelled, or finished while it was being stopped."""
        state = self.state
        del state.waiting[job]
        state.waiting_gpus -= state.gang[job]
        # It made no progress since it began to wait.
        state.forget(job, -math.inf)
        state.finished.append(job)

    def _quarantine(self) -> None:
        """Let nobody have the GPUs of lost nodes, nor what may not be free."""
        if self.cpu_memory is not None:
            self.cpu_memory.set_aside(self.run.devices.cpu_memory_aside())
        for node, count in enumerate(self.run.devices.quarantined()):
            more = count - self._quarantined[node]
            if more > 0:
                taken = self.state.allocator.take_exact(((node, more),))
                assert taken, "a quarantined device is held by a run"
            elif more < 0:
                self.state.allocator.give_back(((node, -more),))
            self._quarantined[node] = count


def _restart_adjusted(state: State, decision: Decision) -> None:
    """Restart jobs that go on with other CPUs and memory, on the same nodes: no command can be given others."""
    for job in decision.of(Feature.PROFILES):
        if job in state.running and job not in decision.starts and job not in decision.stops:
            decision.stops.append(job)
            decision.starts[job] = state.running[job]
