"""EASY backfilling: the head of the queue gets a reservation, others may pass if they respect it.

Source: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS
12(6), 2001, section 2. With exact run times.

Guarantee: with exact run times, placement by count, no rounds, charges or unequal speeds, the head
starts no later than when the jobs that ran as it became the head would have freed its GPUs; none on
sums. Never preempts. Knows: durations. Cost per decision: O(R log R + W) for R running and W waiting
jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.index_policy import JobIndex, QueueRule, same_key
from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass(frozen=True)
class Easy:
    """FIFO, but jobs behind a blocked head may start if that does not delay it.

    With placements other than ``count`` the reservation counts GPUs, as EASY does, and the head
    may be delayed further by fragmentation.
    """

    name: str = "easy"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        """Start from the head; at the first job that does not fit, reserve and backfill."""
        decision = Decision(state)
        waiting = iter(state.waiting)
        head = next((job for job in waiting if not decision.start(job)), None)
        if head is None:
            return decision
        shadow_s, spare = self._reservation(state, decision, head)
        rest = list(waiting)
        if not rest or not decision.free_gpus:
            return decision
        ends = state.now_s + state.columns(rest).remaining_s
        for job, end_s in zip(rest, ends.tolist(), strict=True):
            gpus = state.gang[job]
            in_time = end_s <= shadow_s
            if gpus <= decision.free_gpus and (in_time or gpus <= spare) and decision.start(job):
                spare -= 0 if in_time else gpus
        return decision

    def _reservation(self, state: State, decision: Decision, head: int) -> tuple[float, int]:
        """Reservation of the head: its earliest start [s], and the GPUs it will leave free then."""
        holding = [*state.running, *decision.starts]
        columns = state.columns(holding)
        ends, gpus = state.now_s + columns.remaining_s, columns.gpus
        order = np.argsort(ends, kind="stable")
        free = decision.free_gpus + np.cumsum(gpus[order])
        k = int(np.searchsorted(free, state.gang[head]))
        if k == len(free):
            return np.inf, decision.free_gpus
        shadow_s = float(ends[order[k]])
        at_shadow = decision.free_gpus + int(gpus[ends <= shadow_s].sum())
        return shadow_s, at_shadow - state.gang[head]

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order of arrival, backfilled."""
        return JobIndex(QueueRule.BACKFILLS, same_key)


POLICIES = (Easy(),)
