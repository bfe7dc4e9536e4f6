"""Gangs on nodes that fail at known times: who runs there stops just before, and saves all of its work by that."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Make, Ranked
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State


@dataclass
class _Begun:
    """Beginnings of runs [s]."""

    at_s: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class RankedOnFailing(Ranked):
    """Jobs that are there get GPUs of nodes that are up for more than a tick, by rank.

    Where checkpoints take time, a run stops before its first one and begins anew.

    Parameters
    ----------
    failures : NodeFailures
    """

    failures: NodeFailures

    @classmethod
    def made_for(cls, instance: Instance, *, preemptive: bool) -> Make:
        """Makes the policy that knows when nodes fail."""
        failures = instance.failures
        assert failures is not None

        def made(rank: Ints, choice: Ints) -> Ranked:
            return cls(rank, choice, preemptive, failures)

        return made

    @cached_property
    def _downs(self) -> list[list[float]]:
        rows = zip(self.failures.node.tolist(), self.failures.down_s.tolist(), strict=True)
        found: list[list[float]] = []
        for node, down_s in rows:
            found.extend([] for _ in range(node + 1 - len(found)))
            found[node].append(down_s)
        return [sorted(each) for each in found]

    def _up_until(self, node: int, now_s: float) -> float:
        """Next time at which a node goes down [s]."""
        downs = self._downs[node] if node < len(self._downs) else []
        k = bisect_right(downs, now_s)
        return downs[k] if k < len(downs) else math.inf

    @property
    def _longest_s(self) -> float:
        """Longest run without a checkpoint [s]."""
        points = self.failures.checkpoints
        return points.interval_s if points.cost_s else math.inf

    def decide(self, state: State) -> Decision:
        """Plan by count, stop whom the plan leaves out or whose node fails, start the others."""
        now, begun = state.now_s, state.notes(_Begun).at_s
        until = [self._up_until(node, now) for node in range(state.nodes)]
        doomed = {node for node, end_s in enumerate(until) if end_s - now <= TICK_S}
        nodes = state.environment.cluster.nodes
        room = sum(
            each.gpus
            for node, each in enumerate(nodes)
            if node not in doomed and node not in state.down_nodes
        )
        planned = set[int]()
        for job in self.in_order((*state.waiting, *state.running)):
            if state.gang[job] <= room:
                room -= state.gang[job]
                planned.add(job)
        decision = Decision(state)
        for job, pieces in [*state.running.items()]:
            due = now - begun[job] >= self._longest_s
            if due or job not in planned or any(node in doomed for node, _ in pieces):
                decision.stop(job)
        free = [
            0 if node in doomed else gpus for node, gpus in enumerate(state.free_gpus_by_node())
        ]
        for job in self.in_order((*state.waiting, *decision.stops)):
            if job in planned and decision.start_at(job, _pieces(free, until, state.gang[job])):
                begun[job] = now
        going = {job: state.running[job] for job in state.running if job not in decision.stops}
        for job, pieces in (*going.items(), *decision.starts.items()):
            decision.wake_at(min(until[node] for node, _ in pieces) - TICK_S)
            decision.wake_at(begun[job] + self._longest_s)
        if doomed:
            decision.wake_at(now + TICK_S)
        return decision


def _pieces(free: list[int], until: list[float], gang: int) -> Pieces:
    """Free GPUs for a gang, on nodes that are up longest first; taken from ``free``."""
    found = []
    for node in sorted(range(len(free)), key=lambda node: (-until[node], node)):
        taken = min(free[node], gang)
        if taken:
            found.append((node, taken))
            free[node] -= taken
            gang -= taken
        if not gang:
            break
    return tuple(found)
