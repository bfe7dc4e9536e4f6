"""A-SRPT: a virtual machine under SRPT says in which order the cluster starts jobs.

Source: Luo, Liu, Lee, Shroff (arXiv 2501.05563), whose body could not be read. That a one-machine
SRPT schedule guides the cluster, that iterations are predicted and that communication-heavy jobs
are delayed until they can be consolidated is known; the release rule is recalled, and the
threshold, the delay and all that is optional here are derived.

1. On arrival job i gets a predicted number n~_i of iterations and joins the virtual machine with
   work g_i n~_i alpha_i / m, alpha_min or alpha_max for alpha. Between events the machine runs SRPT.
2. When the machine completes i, at C_i^V, the job joins the queue.
3. The queue is served in order; a job that does not fit blocks. A *heavy* job, alpha_max / alpha_min
   >= theta, is held back until C_i^V + tau_i at the latest while it would be placed worse than on the
   empty cluster; tau_i = delta n~_i (alpha(P) - that best alpha), no more than waiting can save.

Options, ours. ``work_conserving`` starts jobs before the machine has completed them, in order of
virtual work, while the queue is empty; one that does not fit blocks those behind, one that is held
back (from its arrival) does not. With a finite ``guard`` only those start early whose predicted run,
in the worst placement, is at most ``guard`` times the time since the first arrival. ``stretch`` slows
the machine down. A machine as fast as the cluster could be at best completes jobs sooner than the
cluster can run them: under load they pile up in the queue, whose order is final. Stretched, they
stay where the order still adapts. ``overtake`` lets jobs pass those that do not fit or are held
back, and early starts then need no empty queue.

Guarantee: of ``asrpt`` ASRPT-sharper, ASRPT-ratio and ASRPT-pred, and of its single jobs ASRPT-conv; of
``asrpt-guarded`` ASRPT-early; of ``asrpt-early`` none, as its early starts have no guard, nor of any with
``overtake`` (see ``Asrpt.guarantee``). All are for unweighted total completion time against every offline
schedule in which nobody shares GPUs, where placement is by count in one pool and there are no rounds,
charges or held-back jobs, with rho over all placements, of instances with no more features than the theorems
know; nothing is claimed elsewhere. None ever for flow time (ASRPT-ratio has a family). Never preempts.

Use: ``asrpt-early`` on clusters in use, where its mean JCT is below that of ``asrpt`` at every load of
``paper_figs/asrpt_load.py``; ``asrpt`` where the guarantee is wanted.

Knows: what its predictor does. Cost: O(log n + d) a job for d gang sizes, beside predictor and
placement; a job that is held back is placed again at every event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S, ceil_time
from shadowprice.solvers.asrpt.predicted_jobs import GraphStarts, PredictedJobs, knowledge
from shadowprice.solvers.asrpt.srpt_machine import VirtualMachine
from shadowprice.solvers.index_policy import JobIndex, QueueRule, VirtualWork, same_key
from shadowprice.solvers.list_scheduling import Backlog
from shadowprice.solvers.policy import Decision, Knowledge, State

BASES = ("alpha_min", "alpha_max")
"""Time of an iteration from which virtual work is computed."""

MAX_SET_ASIDE = 16
"""Jobs one decision passes over because they are held back; bounds the placements tried."""

_SAME = 1.0 + 1e-9
"""Placements within rounding of the best are the best."""


@dataclass
class _Waiting:
    """Notes of one run; virtual times in units of 1/m tick."""

    predicted: PredictedJobs
    starts: GraphStarts
    first_s: float
    machine: VirtualMachine = field(default_factory=VirtualMachine)
    queue: Backlog[int] = field(default_factory=Backlog)
    early: Backlog[int] = field(default_factory=Backlog)
    released: int = 0
    longest_s: dict[int, float] = field(default_factory=dict)
    heavy: set[int] = field(default_factory=set)
    since_s: dict[int, float] = field(default_factory=dict)
    """From when a job may be held back."""

    def release(self, state: State, done: list[tuple[int, int]], *, restart_clock: bool) -> None:
        """Move jobs that the machine has completed into the queue, unless they were started."""
        for job, at in done:
            if job in self.early:
                self.early.discard(job)
                self.queue.push(state.gang[job], self.released, job)
                self.released += 1
                if restart_clock:
                    self.since_s[job] = at / (state.total_gpus * TICKS_PER_S)

    def withdraw(self, jobs: list[int]) -> None:
        """Drop those of the jobs that left before they started, as cancelled ones do on real hosts."""
        for job in jobs:
            if job in self.longest_s:
                self.early.discard(job)
                self.queue.discard(job)
                self.forget(job)

    def forget(self, job: int) -> None:
        """Drop a job that starts."""
        self.heavy.discard(job)
        del self.longest_s[job], self.since_s[job]


@dataclass(frozen=True)
class Asrpt:
    """Start jobs in the order in which a virtual machine under SRPT completes them.

    Parameters
    ----------
    predictor, placement : str
        By name; see :mod:`shadowprice.solvers.predictors.predictor` and :mod:`.graph_placement`.
    theta : float
        Ratio alpha_max / alpha_min from which a job is communication-heavy, at least 1.
    delta : float
        A heavy job waits at most delta times what consolidation would save it; 0: never.
    basis : {"alpha_min", "alpha_max"}
        Time of an iteration from which virtual work is computed.
    work_conserving, overtake : bool
        Whether jobs may start before their virtual completion; whether they may pass others.
    guard : float
        Largest predicted run of an early start over the time since the first arrival.
    stretch : float
        The virtual machine is slower by this factor, at least 1.
    """

    name: str = "asrpt"
    predictor: str = "oracle"
    placement: str = "heavy-edge"
    theta: float = 1.5
    delta: float = 1.0
    basis: str = "alpha_min"
    work_conserving: bool = False
    overtake: bool = False
    guard: float = math.inf
    stretch: float = 1.0
    preemptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, least in (("theta", 1.0), ("delta", 0.0), ("guard", 0.0), ("stretch", 1.0)):
            value = getattr(self, name)
            if not value >= least or (name != "guard" and value == math.inf):
                raise InputError(
                    f"{self.name}: {name} is {value!r}, expected a number >= {least:g}"
                )
        if self.basis not in BASES:
            raise InputError(
                f"{self.name}: basis is {self.basis!r}, expected one of {', '.join(BASES)}"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Durations, if the predictor is told the truth."""
        return knowledge(self.predictor)

    def decide(self, state: State) -> Decision:
        """Run the virtual machine up to now, then start what may start."""
        waiting = state.notes(_Waiting, lambda: self._begin(state))
        self._update(state, waiting)
        decision = Decision(state)
        passed = self._serve(state, waiting, decision)
        if self.work_conserving and (passed or not waiting.queue):
            self._start_early(state, waiting, decision)
        if waiting.early:
            self._wake_at_release(state, waiting, decision)
        return decision

    def _begin(self, state: State) -> _Waiting:
        starts = GraphStarts(state, self.placement)
        return _Waiting(PredictedJobs(self.predictor), starts, state.now_s)

    def _update(self, state: State, waiting: _Waiting) -> None:
        machine, gpus = waiting.machine, state.total_gpus
        now = int(state.now_s * TICKS_PER_S) * gpus
        restart = not self.work_conserving
        waiting.release(state, machine.advance(now), restart_clock=restart)
        waiting.predicted.update(state)
        waiting.withdraw(state.finished)
        if not state.arrived:
            return
        shortest_s, longest_s = waiting.predicted.run_s(state, state.arrived)
        for job, low, high in zip(state.arrived, shortest_s, longest_s, strict=True):
            virtual_s = low if self.basis == "alpha_min" else high
            work = math.ceil(virtual_s * self.stretch * TICKS_PER_S) * state.gang[job]
            machine.add(job, now, work)
            waiting.early.push(state.gang[job], work, job)
            waiting.longest_s[job], waiting.since_s[job] = high, state.now_s
            if state.mapped and high >= self.theta * low:
                waiting.heavy.add(job)

    def _serve(self, state: State, waiting: _Waiting, decision: Decision) -> bool:
        """Start from the queue; whether nobody in it stops those behind."""
        aside: list[tuple[int, int, int]] = []
        while waiting.queue and decision.free_gpus and len(aside) < MAX_SET_ASIDE:
            found = waiting.queue.pop(decision.free_gpus if self.overtake else None)
            if found is None:
                break
            if found[0] <= decision.free_gpus and self._start(state, waiting, decision, found[2]):
                continue
            aside.append(found)
            if not self.overtake:
                break
        for gang, key, job in aside:
            waiting.queue.push(gang, key, job)
        return self.overtake

    def _start_early(self, state: State, waiting: _Waiting, decision: Decision) -> None:
        elapsed_s = state.now_s - waiting.first_s
        aside: list[tuple[int, int, int]] = []
        while waiting.early and decision.free_gpus and len(aside) < MAX_SET_ASIDE:
            found = waiting.early.pop(decision.free_gpus if self.overtake else None)
            if found is None:
                break
            job = found[2]
            if found[0] > decision.free_gpus:
                aside.append(found)
                break
            needed_s = waiting.longest_s[job] / self.guard if self.guard else math.inf
            if needed_s <= elapsed_s:
                if self._start(state, waiting, decision, job):
                    continue
            elif needed_s < math.inf:
                decision.wake_at(ceil_time(waiting.first_s + needed_s))
            aside.append(found)
        for gang, key, job in aside:
            waiting.early.push(gang, key, job)

    def _start(self, state: State, waiting: _Waiting, decision: Decision, job: int) -> bool:
        """Start a job unless it does not fit or is held back."""
        if job not in waiting.heavy or not self.delta:
            started = waiting.starts.start(state, decision, job)
        else:
            started = self._start_heavy(state, waiting, decision, job)
        if started:
            waiting.forget(job)
        return started

    def _start_heavy(self, state: State, waiting: _Waiting, decision: Decision, job: int) -> bool:
        mapping = waiting.starts.plan(state, job)
        if mapping is None:
            return False
        best_s = waiting.starts.best_iteration_s(state, job)
        excess_s = state.iteration_s(job, mapping) - best_s
        if excess_s > best_s * (_SAME - 1.0):
            saved_s = float(waiting.predicted.iterations[job]) * excess_s
            until_s = ceil_time(waiting.since_s[job] + self.delta * saved_s)
            if state.now_s < until_s:
                decision.wake_at(until_s)
                return False
        return decision.start_mapped(job, mapping)

    def _wake_at_release(self, state: State, waiting: _Waiting, decision: Decision) -> None:
        at = waiting.machine.next_completion
        if at is not None:
            decision.wake_at(-(-at // state.total_gpus) / TICKS_PER_S)

    @property
    def guarantee(self) -> str:
        """Theorems that are proven of A-SRPT with these parameters, in words."""
        if self.overtake:
            return (
                f"none: jobs may overtake others, and a wide one can be passed for ever.{_NO_FLOW}"
            )
        stretched = _STRETCHED if self.stretch > 1 else ""
        if self.work_conserving and self.guard == math.inf:
            return (
                "none: early starts without a guard have no constant ratio, on one GPU already (unguarded_family in "
                f"proofs/asrpt/early.py).{_NO_FLOW}"
            )
        if self.work_conserving:
            return f"{_HYPOTHESES}: ASRPT-early; nothing is claimed elsewhere.{stretched}{_NO_FLOW}"
        exact = self.predictor == _EXACT and self.stretch == 1
        names = f"ASRPT-sharper{', ASRPT-ratio' if exact else ''} and ASRPT-pred"
        return (
            f"{_HYPOTHESES}: {names}; nothing is claimed elsewhere. ASRPT-conv is about single jobs, and there a delay "
            f"adds the largest tau.{stretched}{_NO_FLOW}"
        )

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """The order of virtual completions; none with early starts or overtaking."""
        if self.work_conserving or self.overtake:
            return None
        virtual = VirtualWork(self.predictor, self.stretch)
        return JobIndex(QueueRule.RELEASES, same_key, virtual=virtual)


_EXACT = "oracle"
"""The predictor that knows iterations."""

_HYPOTHESES = (
    "for unweighted total completion time against every offline schedule in which nobody shares GPUs, where placement "
    "is by count in one pool and there are no rounds, charges or held-back jobs, with rho over all placements, of "
    "instances with no more features than the theorem knows"
)
_STRETCHED = (
    " A stretch c is a prediction c times too long: where the ratio says Lambda (1 + kappa K) + rho it becomes c "
    "Lambda + Lambda kappa K + rho."
)
_NO_FLOW = " None ever for flow time. Never preempts."

POLICIES = (
    Asrpt(),
    Asrpt("asrpt-guarded", work_conserving=True, guard=1.0, stretch=4.0),
    Asrpt("asrpt-early", work_conserving=True, stretch=20.0),
)
