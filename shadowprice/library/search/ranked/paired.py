"""Jobs that share GPUs: alone in order of rank while GPUs are free, then beside the partner with which most is done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Make, Ranked
from shadowprice.library.search.rated_orders import speeds_of_pairs
from shadowprice.solvers.policy import Decision, State


@dataclass(frozen=True, eq=False, repr=False)
class RankedPairs(Ranked):
    """Jobs that find no free GPUs join others of their gang.

    A job with ``choice`` 1 is never joined, one with 2 joins nobody, one with 3 neither.

    Parameters
    ----------
    speeds : ndarray, shape (n, n)
        Speed of each job beside each other over that alone; 0 where they cannot share.
    """

    speeds: NDArray[np.float64]

    @classmethod
    def made_for(cls, instance: Instance, *, preemptive: bool) -> Make:
        """Makes the policy that knows how fast pairs are."""
        speeds = speeds_of_pairs(instance)

        def made(rank: Ints, choice: Ints) -> Ranked:
            return cls(rank, choice, preemptive, speeds)

        return made

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """Both, either or neither of being joined and joining."""
        return np.full(len(instance.workload), 4, dtype=np.int64)

    def decide(self, state: State) -> Decision:
        """Plan who is alone and who is with whom, then stop and start whom the plan moves."""
        return self._plan(state) if self.preemptive else self._start(state)

    def _partner(self, job: int, hosts: list[int]) -> int | None:
        """The host with which most is done together, if both make progress."""
        if self.choice[job] >= 2:
            return None
        best, most = None, 0.0
        for host in hosts:
            mine, theirs = self.speeds[job, host], self.speeds[host, job]
            if mine > 0 and theirs > 0 and mine + theirs > max(most, 1.0):
                best, most = host, mine + theirs
        return best

    def _start(self, state: State) -> Decision:
        decision = Decision(state)
        for job in self.in_order(state.waiting):
            if decision.start(job):
                continue
            hosts = [
                each
                for each in (*state.running, *decision.starts)
                if decision.partner_of(each) is None and self._joinable(state, job, each)
            ]
            host = self._partner(job, hosts)
            if host is not None:
                decision.join(job, host)
        return decision

    def _joinable(self, state: State, job: int, host: int) -> bool:
        return self.choice[host] % 2 == 0 and state.gang[host] == state.gang[job] and host != job

    def _plan(self, state: State) -> Decision:
        decision = Decision(state)
        free = state.total_gpus
        hosts: list[int] = []
        pairs: dict[int, int] = {}
        for job in self.in_order((*state.waiting, *state.running)):
            if state.gang[job] <= free:
                free -= state.gang[job]
                hosts.append(job)
                continue
            able = [h for h in hosts if h not in pairs and self._joinable(state, job, h)]
            host = self._partner(job, able)
            if host is not None:
                pairs[host] = job
        return self._steps_to_plan(state, decision, hosts, pairs)

    def _steps_to_plan(
        self, state: State, decision: Decision, hosts: list[int], pairs: dict[int, int]
    ) -> Decision:
        """Stops, then starts and joins, that lead from what runs to the plan."""
        partner = pairs | {guest: host for host, guest in pairs.items()}
        planned, stopped = {*hosts, *pairs.values()}, set[int]()
        for job in state.running:
            beside = state.partner_of.get(job, job)
            parts = beside not in (job, partner.get(job)) and beside not in stopped
            if job not in planned or parts:
                stopped.add(job)
        # Of two who run apart and shall be together one stops.
        held = state.running.keys() - stopped
        for host, guest in pairs.items():
            if host in held and guest in held and state.partner_of.get(host) != guest:
                stopped.add(guest)
        for job in stopped:
            decision.stop(job)
        held = state.running.keys() - stopped
        for host in hosts:
            guest = pairs.get(host, -1)
            if host not in held and guest in held:
                decision.join(host, guest)
            elif (host in held or decision.start(host)) and guest >= 0 and guest not in held:
                decision.join(guest, host)
        return decision
