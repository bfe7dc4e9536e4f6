"""The engine on a wall clock: the same loop, whose time passes and whose runs fail.

What simulation does not know is told to policies in its own words. A job whose lease ended before its
work was done, because it failed, was lost with its node or was stopped by hand, finishes for the
policy and arrives again when it may be tried again. A node that does not answer has no free GPUs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection

from shadowprice.execution.engine import Engine, Rounds
from shadowprice.execution.real.real_hosts import RealHosts
from shadowprice.execution.real.run import RealRun
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.placement.protocol import Placement
from shadowprice.solvers.policy import Decision, Policy, State


class RealEngine(Engine):
    """The loop of a real run."""

    def __init__(self, run: RealRun, policy: Policy, placement: Placement, rounds: Rounds) -> None:
        self.run = run
        self.real = RealHosts(run)
        super().__init__(run.measuring.instance, policy, placement, rounds, self.real)
        self._quarantined = [0] * len(run.devices.nodes)

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
        for outcome in events.ended:
            self._depart(outcome.row, outcome.end_s, state.running[outcome.row])
        for row in events.unplaced:
            self._depart(row, now_s, state.running[row])
        for row in events.withdrawn:
            self._withdraw(row)
        self._quarantine()
        if self.run.measuring.learn():
            self._learn(self.run.measuring.instance)
        before = self.admitted
        self._admit(now_s)
        for row in range(before, self.admitted):
            self.real.admit(row)
        for row in events.returned:
            state.readmit(row, self.real.left_s(self.run.tracked[row]))

    def _learn(self, instance: Instance) -> None:
        """Better estimates of throughputs, for those who have arrived and those to come."""
        environment = Environment.of(instance)
        self.jobs = JobTable.of(instance, environment)
        self.state.learn(environment, self.jobs)

    def _decide(self) -> Decision:
        """Decide; the decision is written down, and its stops are asked for, before it is applied."""
        state = self.state
        began_s = time.process_time()
        decision = super()._decide()
        cpu_s = time.process_time() - began_s
        stays = renewed(state, decision)
        decision.stops = [job for job in decision.stops if job not in stays]
        for job in stays:
            del decision.starts[job]
        self.real.decided(state, decision, cpu_s)
        self.real.prepare(decision.stops)
        return decision

    def _apply(self, decision: Decision, now_s: float) -> None:
        with self.real.applying(decision.stops):
            super()._apply(decision, now_s)

    def _withdraw(self, job: int) -> None:
        """A waiting job leaves: it was cancelled, or finished while it was being stopped."""
        state = self.state
        del state.waiting[job]
        state.waiting_gpus -= state.gang[job]
        # It made no progress since it began to wait.
        state.forget(job, -math.inf)
        state.finished.append(job)

    def _quarantine(self) -> None:
        """Let nobody have the GPUs of lost nodes, nor those that may not be free."""
        for node, count in enumerate(self.run.devices.quarantined()):
            more = count - self._quarantined[node]
            if more > 0:
                taken = self.state.allocator.take_exact(((node, more),))
                assert taken, "a quarantined device is held by a run"
            elif more < 0:
                self.state.allocator.give_back(((node, -more),))
            self._quarantined[node] = count


def renewed(state: State, decision: Decision) -> Collection[int]:
    """Jobs that a decision stops and starts on the very GPUs they hold: their leases go on.

    Those that share GPUs before or after are left as they are, since which GPUs of a node a pair
    holds may differ.
    """
    starts, partners = decision.starts, decision.partners or {}
    return {
        job
        for job in decision.stops
        if job in starts
        and sorted(starts[job]) == sorted(state.running[job])
        and state.partner_of.get(job, ALONE) == partners.get(job, ALONE) == ALONE
    }
