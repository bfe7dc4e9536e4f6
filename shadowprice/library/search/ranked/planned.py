"""Jobs that begin once, each not before its turn in a plan: one may wait for those that have not come yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.library.search import list_loops
from shadowprice.library.search.ranked.mapped import PLACEMENT
from shadowprice.library.search.ranked.protocol import Ints, Make, Ranked
from shadowprice.solvers.asrpt.predicted_jobs import GraphStarts
from shadowprice.solvers.policy import Decision, State


@dataclass(frozen=True, eq=False, repr=False)
class RankedOnce(Ranked):
    """Jobs begin in the order and on the GPU type of a plan, at its times or as soon as they fit.

    The plan puts one job after the other, by rank, on the type that its ``choice`` says (0: where it ends first),
    as if it ran as fast as it can there and GPUs were all that it holds.

    Parameters
    ----------
    start_s : ndarray, shape (n,)
        Starts of the plan [s].
    pool : ndarray of int, shape (n,)
        GPU type of each job in it.
    """

    start_s: NDArray[np.float64]
    pool: Ints

    @classmethod
    def made_for(cls, instance: Instance, *, preemptive: bool) -> Make:
        """Makes the plan of ranks and choices."""

        def made(rank: Ints, choice: Ints) -> Ranked:
            return cls.of(instance, rank, choice)

        return made

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """Any GPU type, or one of them."""
        types = len(instance.pools.names)
        most = types + 1 if types > 1 else 1
        return np.full(len(instance.workload), most, dtype=np.int64)

    @classmethod
    def of(cls, instance: Instance, rank: Ints, choice: Ints) -> RankedOnce:
        """The plan of an order and choices."""
        jobs, pools = instance.workload, instance.pools
        run_s = instance.processing_s
        if len(pools.names) == 1:
            run_s = instance.shortest_s[:, None]
        work = to_ticks(np.where(np.isfinite(run_s), run_s, 0.0))
        rows, pool = np.zeros(len(jobs), list_loops.JOB), np.zeros(len(jobs), np.int64)
        rows["release"], rows["gang"] = to_ticks(jobs.arrival_s), jobs.gpus
        gpus = np.asarray(pools.gpus, dtype=np.int64)
        order = np.argsort(rank, kind="stable")
        list_loops.planned_starts(rows, order, work, gpus, choice, pool)
        starts = rows["end"] - work[np.arange(len(jobs)), pool]
        return cls(rank, choice, False, starts / TICKS_PER_S, pool)

    def decide(self, state: State) -> Decision:
        """Start whose turn it is; who does not fit is passed over by those whose turn it is as well."""
        decision = Decision(state)
        starts = (
            state.notes(GraphStarts, lambda: GraphStarts(state, PLACEMENT))
            if state.mapped
            else None
        )
        for job in sorted(state.waiting, key=lambda job: (self.start_s[job], self.rank[job])):
            if self.start_s[job] > state.now_s:
                decision.wake_at(float(self.start_s[job]))
                break
            if state.gang[job] > decision.free_gpus:
                continue
            if starts is not None:
                starts.start(state, decision, job)
            elif not decision.start_on(job, int(self.pool[job])):
                decision.start(job)
        return decision


def knows_plans(instance: Instance) -> bool:
    """True of instances whose runs are about as long as a plan says."""
    return Feature.SHARING not in instance.features
