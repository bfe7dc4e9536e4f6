"""Optimus: GPUs one by one to the job whose remaining time they shorten most.

Source: Peng et al., "Optimus", EuroSys'18, as Pollux' simulator has it (github.com/petuum/adaptdl, branch
osdi21-artifact, read). Jobs keep their batch, every job has one GPU as long as there are some, and each further one
goes where the steps that are left become shorter by most, by step times on as few nodes of equal size as hold them.
Who keeps its width keeps its GPUs; others get the emptiest nodes, fewest GPUs first.

Guarantee: none is known. Marginal gains are optimal where the time of each job is convex in its GPUs (Fox 1966), for
the sum of times that are left if nothing else comes; measured step times are not convex at the edges of nodes.
Complexity: O(n log n + G log n) for n jobs and G GPUs a decision. It knows how long jobs are, and their step times.
Where jobs have run times instead of goodput, and one width, they run in order of arrival as far as they fit.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.instances.goodput.application import Batching, packed
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.list_scheduling import serve_in_order
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.emptiest import allotted


@dataclass(frozen=True)
class Optimus:
    """Optimus.

    Parameters
    ----------
    period_s : float
        Time after which it decides again, for jobs come nearer to their end [s].
    single : tuple of str
        Applications whose jobs have no more than one GPU.
    accumulates_alone : bool
        Whether it predicts that a job on one GPU accumulates its batch in two steps at least, whatever the batch.
    """

    period_s: float = 60.0
    single: tuple[str, ...] = ()
    accumulates_alone: bool = False
    name: ClassVar[str] = "optimus"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION, Knowledge.SPEED_UP})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Hand out GPUs by marginal gains, then place them."""
        live = sorted((*state.running, *state.waiting))
        goodput = state.goodput
        if goodput is None:
            return serve_in_order(state, lambda jobs: np.arange(len(jobs)))
        widths = self._widths(state, goodput, live)
        order = sorted(live, key=widths.__getitem__)
        decision = allotted(state, {job: widths[job] for job in order})
        if live:
            decision.wake_at(state.now_s + self.period_s)
        return decision

    def _widths(self, state: State, goodput: GoodputJobs, live: list[int]) -> dict[int, int]:
        """GPUs of each job."""
        free, width = state.up_gpus, dict.fromkeys(live, 0)
        gains: list[tuple[float, int]] = []
        for job in live[:free]:
            width[job] = 1
        free -= min(len(live), free)
        left = {job: goodput.iterations_left(job) or 1.0 for job in live if width[job]}
        for job, steps in left.items():
            gains.append((-self._gain(goodput, job, 1) * steps, job))
        heapq.heapify(gains)
        while free and gains and gains[0][0] < 0:
            job = heapq.heappop(gains)[1]
            width[job] += 1
            free -= 1
            heapq.heappush(gains, (-self._gain(goodput, job, width[job]) * left[job], job))
        return width

    def _gain(self, goodput: GoodputJobs, job: int, width: int) -> float:
        """Time by which a step is shorter with one GPU more [s]; 0 where there can be none more."""
        application = goodput.application(job)
        most = 1 if application.name in self.single else goodput.widest(job)
        if width + 1 > most:
            return 0.0
        now, then = (self._step_s(goodput, job, gpus) for gpus in (width, width + 1))
        return 0.0 if now is None or then is None else now - then

    def _step_s(self, goodput: GoodputJobs, job: int, width: int) -> float | None:
        """Time of a step on as few nodes as hold so many GPUs [s]."""
        batching = goodput.batching(job, width)
        if self.accumulates_alone and width == 1 and not batching.accumulated:
            local = batching.local
            batching = Batching(-(-local // 2), 1)
        return goodput.step_s(job, packed(width, goodput.node_gpus), batching)


POLICIES = (Optimus(),)
