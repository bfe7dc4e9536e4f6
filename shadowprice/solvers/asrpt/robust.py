"""A-SRPT that shares its time with a rule that needs no predictions (``asrpt-robust``).

Source: ours; that two rules which share a machine cost no more than either does with its share is Purohit, Svitkina
and Kumar's observation on one machine (NeurIPS 2018, preferential round robin, recalled). Here time is cut into
cycles. In the first part of each, the *predicted time*, jobs run in the order in which the virtual machine of A-SRPT
completes them, which advances in predicted time only; one that has started goes on whenever predicted time passes,
and one that does not fit blocks. In the rest, the *blind time*, jobs run by least service that they attained in blind
time. GPUs that are left over in predicted time go to the others in the order of blind time.

Guarantee: total completion time within (Lambda (1 + kappa K) + 1) / (1 - share) times the optimum, that of A-SRPT but
for the share, and whatever the predictions within (1 + 2 K) / share times the optimum and a number of cycles a job
(ASRPT-robust). Knows: what its predictor does. Preempts. Cost per decision: O(L log L) for L live jobs, two decisions
a cycle while jobs wait.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S, check_seconds
from shadowprice.solvers.asrpt.cycles import Cycles
from shadowprice.solvers.asrpt.predicted_jobs import PredictedJobs, knowledge
from shadowprice.solvers.asrpt.srpt_machine import VirtualMachine
from shadowprice.solvers.list_scheduling import run_exactly
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State


@dataclass
class _Shared:
    """Notes of one run; virtual times in units of 1/m tick."""

    predicted: PredictedJobs
    machine: VirtualMachine = field(default_factory=VirtualMachine)
    released: list[tuple[int, int]] = field(default_factory=list)
    """Heap of jobs that the machine has completed and that have not started in predicted time, by their order."""
    count: int = 0
    started: dict[int, None] = field(default_factory=dict)
    blind_s: dict[int, float] = field(default_factory=dict)
    """Time that jobs have run in blind time [s]."""
    before_s: dict[int, float] = field(default_factory=dict)
    """Time that jobs which run now had run at the last decision, if that was in blind time [s]."""

    def release(self, done: list[tuple[int, int]]) -> None:
        """Note in which order the machine has completed jobs."""
        for job, _ in done:
            heapq.heappush(self.released, (self.count, job))
            self.count += 1


@dataclass(frozen=True)
class RobustAsrpt:
    """Run jobs in the order of A-SRPT's virtual machine, and for a share of the time by least attained service.

    Parameters
    ----------
    predictor : str
        By name; see :mod:`shadowprice.solvers.predictors.predictor`.
    share : float
        Part of the time that is blind, above 0 and below 1.
    cycle_s : float
        Length of a cycle of predicted and blind time [s].
    """

    name: str = "asrpt-robust"
    predictor: str = "oracle"
    share: float = 0.5
    cycle_s: float = 60.0
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(f"{self.name}: share is {self.share!r}, expected above 0 and below 1")
        check_seconds(f"{self.name}: cycle_s", self.cycle_s)
        if not 0 < self.cycles.blind < self.cycles.length:
            raise InputError(
                f"{self.name}: cycle_s is {self.cycle_s!r}, with share {self.share!r} one part is shorter than 2**-20 s"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Durations, if the predictor is told the truth."""
        return knowledge(self.predictor)

    @property
    def cycles(self) -> Cycles:
        """Cycles in ticks; blind time is rounded to whole ones."""
        length = int(self.cycle_s * TICKS_PER_S)
        return Cycles(length, round(self.share * length))

    def decide(self, state: State) -> Decision:
        """Run whom this part of the cycle is for, and ask again at its end if somebody waits."""
        shared = state.notes(_Shared, lambda: _Shared(PredictedJobs(self.predictor)))
        now, cycles = int(state.now_s * TICKS_PER_S), self.cycles
        self._update(state, shared, cycles.predicted(now))
        if state.everything_fits:
            decision = Decision(state).start_all()
        else:
            live = state.live()
            order = self._by_service(shared, live)
            if not cycles.is_blind(now):
                order = self._by_prediction(state, shared, live, order)
            decision = run_exactly(state, live, order)
        running = [*(job for job in state.running if job not in decision.stops), *decision.starts]
        shared.before_s = {}
        if cycles.is_blind(now):
            attained_s = state.columns(running).attained_s.tolist()
            shared.before_s = dict(zip(running, attained_s, strict=True))
        # While everybody runs, nothing is gained by another order.
        if len(running) < len(state.waiting) + len(state.running):
            decision.wake_at(self._next(shared, now, state.total_gpus) / TICKS_PER_S)
        return decision

    def _update(self, state: State, shared: _Shared, predicted: int) -> None:
        """Take note of who finished, of time in blind time, and of who arrived."""
        for job in state.finished:
            shared.started.pop(job, None)
            shared.blind_s.pop(job, None)
            shared.before_s.pop(job, None)
        jobs = list(shared.before_s)
        for job, attained_s in zip(jobs, state.columns(jobs).attained_s.tolist(), strict=True):
            ran_s = attained_s - shared.before_s[job]
            shared.blind_s[job] = shared.blind_s.get(job, 0.0) + ran_s
        at = predicted * state.total_gpus
        shared.release(shared.machine.advance(at))
        shared.predicted.update(state)
        if not state.arrived:
            return
        run_s, _ = shared.predicted.run_s(state, state.arrived)
        for job, seconds in zip(state.arrived, run_s, strict=True):
            work = math.ceil(seconds * TICKS_PER_S) * state.gang[job]
            shared.release(shared.machine.add(job, at, work))

    def _by_service(self, shared: _Shared, live: JobColumns) -> NDArray[np.int64]:
        """Positions of live jobs by service attained in blind time, ties by arrival."""
        ran_s = np.array([shared.blind_s.get(job, 0.0) for job in live.jobs.tolist()])
        return np.argsort(live.gpus * ran_s, kind="stable")

    def _by_prediction(
        self, state: State, shared: _Shared, live: JobColumns, others: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Positions of live jobs: those that have started in predicted time, then all others in their order."""
        position = {job: k for k, job in enumerate(live.jobs.tolist())}
        free = state.up_gpus - sum(state.gang[job] for job in shared.started)
        while shared.released:
            job = shared.released[0][1]
            if job in position and job not in shared.started:
                if state.gang[job] > free:
                    break
                shared.started[job] = None
                free -= state.gang[job]
            heapq.heappop(shared.released)
        first = [position[job] for job in shared.started]
        rest = others[~np.isin(others, first)]
        return np.concatenate((np.array(first, dtype=np.int64), rest))

    def _next(self, shared: _Shared, now: int, gpus: int) -> int:
        """Moment of the next decision [ticks]: the end of the part, or a virtual completion before it."""
        cycles = self.cycles
        end, at = cycles.ends(now), shared.machine.next_completion
        if at is None or cycles.is_blind(now):
            return end
        return min(end, max(now + -(-at // gpus) - cycles.predicted(now), now + 1))


POLICIES = (RobustAsrpt(),)
