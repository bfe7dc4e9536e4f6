"""2D-LAS: K queues by attained GPU-time, first in first out inside a queue.

Source: Gu et al., Tiresias, NSDI'19, sections 4.2-4.3. A job enters the first queue and is
demoted when gpus x executed time crosses the queue's upper threshold; queues are served in
order, greedily with skipping; inside a queue the job that first started earliest comes first.
A job that has waited PROMOTEKNOB times its executed time returns to the first queue, both counted
from its last return (STARVELIMIT); what it has left to do is not touched by that.

Two things differ from the published simulator, on purpose: demotion happens at the true
crossing (theirs checks at now + (threshold - executed seconds) / gpus, which mixes seconds with
GPU-seconds), and the order inside a queue is by first start as the paper says, not by the
history of a list. The preset ``tiresias`` has theirs.

Guarantee: no constant ratio for total completion time with fixed thresholds, even on one GPU with all
jobs released at 0 (TIR-las (d)); without charges, rounds, placement or promotion a bound for every job,
thresholds and gangs, TIR-las (b), ``proofs/tiresias/las.py``. Knows: nothing. Preempts.
Cost per decision: O(L log L) for L live jobs; O(w log w) for w waiting ones while all live jobs
fit by number of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICK_S, up_to_grid
from shadowprice.solvers.index_policy import (
    IndexedJob,
    IndexPolicy,
    JobIndex,
    QueueRule,
    SeenJobs,
    Table,
    Ties,
    WhileRunning,
    runs_after,
)
from shadowprice.solvers.list_scheduling import run_exactly
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State


@dataclass
class _Promotions:
    """Executed time of each job when it last returned to the first queue [s]."""

    service_s: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Las2d(IndexPolicy):
    """Discretised least attained service in GPU-seconds.

    Parameters
    ----------
    thresholds_gpu_s : tuple of float
        Upper limits of all queues but the last, increasing [GPU-s]. The default, one hour, gives
        K = 2 as the paper recommends.
    promote_knob : float
        A waiting job returns to the first queue, its service counted anew, once it has waited
        this many times as long as it has run since it was last there; infinity: never.
    """

    name: str = "las2d"
    thresholds_gpu_s: tuple[float, ...] = (3600.0,)
    promote_knob: float = np.inf
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        limits = np.array(self.thresholds_gpu_s, dtype=np.float64)
        if np.any(np.diff(limits, prepend=0.0) <= 0) or not np.all(np.isfinite(limits)):
            raise InputError(
                f"{self.name}: thresholds_gpu_s is {self.thresholds_gpu_s}, expected increasing numbers > 0"
            )
        if not self.promote_knob > 0:
            raise InputError(
                f"{self.name}: promote_knob is {self.promote_knob!r}, expected a number > 0"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Nothing."""
        return frozenset()

    def decide(self, state: State) -> Decision:
        """Promote, then serve the queues; wake at the next demotion or promotion that matters."""
        if self.promote_knob == np.inf:
            return super().decide(state)
        if state.everything_fits:
            return Decision(state).start_all()
        if not state.waiting:
            return Decision(state)
        live, order = state.live(), self.order_in(state)
        ran_s = self._since_return_s(state, live)
        seen = SeenJobs(live, attained_s=ran_s)
        decision = run_exactly(state, live, order.positions(seen))
        runs = runs_after(live, decision)
        if not runs.all():
            decision.wake_at(state.now_s + order.next_step_in_s(state, SeenJobs(seen, runs)))
            starving = ~runs & (ran_s > 0)
            gap_s = up_to_grid(self.promote_knob * ran_s[starving] - live.waited_s[starving])
            decision.wake_at(state.now_s + max(float(gap_s.min(initial=np.inf)), TICK_S))
        return decision

    def _since_return_s(self, state: State, live: JobColumns) -> NDArray[np.float64]:
        """Executed time since each job last entered the first queue, after promotions [s]."""
        attained = live.attained_s
        reset = state.notes(_Promotions).service_s
        for job in state.finished:
            reset.pop(job, None)
        before = np.array([reset.get(job, 0.0) for job in live.jobs.tolist()])
        service = attained - before
        starving = (
            (service > 0) & (live.waited_s > 0) & (live.waited_s >= self.promote_knob * service)
        )
        reset.update(zip(live.jobs[starving].tolist(), attained[starving].tolist(), strict=True))
        return np.where(starving, 0.0, service)

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """Order by queue, then first start; none with promotions, which depend on time waited."""
        return self._queues() if self.promote_knob == np.inf else None

    def index_in(self, state: State) -> JobIndex:
        """The same; with promotions of the time since a job last returned."""
        return self._queues()

    def _queues(self) -> JobIndex:
        return JobIndex(
            QueueRule.PREEMPTS,
            queue_of,
            ties=Ties.FIRST_START,
            table=self._limits_in_table(),
            while_running=WhileRunning.STEPS,
            next_step_s=demoted_at_s,
            elementwise=True,
        )

    def _limits_in_table(self) -> NDArray[np.float64]:
        """Number of thresholds, thresholds, and infinity for the last queue."""
        limits = self.thresholds_gpu_s
        return np.array([len(limits), *limits, np.inf], dtype=np.float64)


def queue_of(job: IndexedJob, table: Table) -> float:
    """Queue of a job by its service; the first is 0."""
    limits = table[1 : 1 + int(table[0])]
    return np.searchsorted(limits, job.attained_s * job.gpus, side="right")  # type: ignore[return-value]


def demoted_at_s(job: IndexedJob, table: Table) -> float:
    """Executed time at which a job leaves its queue [s], infinity in the last."""
    limits = table[1 : 1 + int(table[0])]
    queue = np.searchsorted(limits, job.attained_s * job.gpus, side="right")
    return table[1 + queue] / job.gpus  # type: ignore[no-any-return]


POLICIES = (Las2d(),)
