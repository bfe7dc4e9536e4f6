"""Gangs in order of rank, each on the GPU types that its choice leaves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Ranked
from shadowprice.solvers.list_scheduling import serve_in_order
from shadowprice.solvers.policy import Decision, JobColumns, State


@dataclass(frozen=True, eq=False, repr=False)
class RankedGangs(Ranked):
    """Gangs that do not fit are passed over.

    With several GPU types a job is on the fastest that is free of those it may use, all but the ``choice`` slowest, and
    moves on to faster ones where jobs may stop. Where each begins once, one with an odd ``choice`` is not passed over
    while it waits.
    """

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """GPU types that each job can use, with and without being passed over."""
        able: Ints = np.isfinite(instance.processing_s).sum(axis=1).astype(np.int64)
        return np.asarray(2 * np.maximum(able, 1))

    def decide(self, state: State) -> Decision:
        """Serve live jobs, or those that wait, by rank."""
        if not self.preemptive:
            return self._start(state)
        if state.one_pool or state.allocator.limits_starts:
            return serve_in_order(state, self._positions)
        return self._move(state)

    def _positions(self, live: JobColumns) -> Ints:
        return np.asarray(np.argsort(self.rank[live.jobs], kind="stable"))

    def _pools(self, state: State, job: int) -> tuple[int, ...]:
        able = state.pools[job]
        return able[: max(len(able) - int(self.choice[job]) // 2, 1)]

    def _start(self, state: State) -> Decision:
        decision = Decision(state)
        for job in self.in_order(state.waiting):
            started = any(decision.start_on(job, pool) for pool in self._pools(state, job))
            if not decision.free_gpus or (not started and self.choice[job] % 2):
                break
        return decision

    def _move(self, state: State) -> Decision:
        """Plan by count on each GPU type, then stop and start whom the plan moves."""
        decision, allocator = Decision(state), state.allocator
        held = {job: allocator.pool_of(pieces[0][0]) for job, pieces in state.running.items()}
        free = [allocator.free_in(pool) for pool in range(len(state.pools_of_gpus.names))]
        for job, pool in held.items():
            free[pool] += state.gang[job]
        plan: dict[int, int] = {}
        for job in self.in_order((*state.waiting, *held)):
            for pool in self._pools(state, job):
                if free[pool] >= state.gang[job]:
                    free[pool] -= state.gang[job]
                    plan[job] = pool
                    break
        for job, pool in held.items():
            if plan.get(job) != pool:
                decision.stop(job)
        for job in self.in_order(plan):
            if held.get(job) != plan[job]:
                decision.start_on(job, plan[job])
        return decision
