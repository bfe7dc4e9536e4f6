"""Tiresias' simulator, job by job: github.com/SymbioticLab/Tiresias at 959f9b0 (Python 2.7).

GPUs are one pool under ``count``; under ``yarn`` a gang that fits a node sits on the first such
node, a larger one on the first wholly free nodes and one more. Preemption is free. The original's
own names differ from ours: its ``sjf`` is fewest GPUs first, its ``shortest`` is SRTF, its
``dlas-gpu`` is 2D-LAS with three queues of 3250 and 7200 GPU-s.

Quirks kept: queues are lists whose history breaks ties; ``dlas-gpu`` checks for demotion at
now + floor((threshold - executed seconds) / gpus), late for gangs; one demotion an event;
``lpjf`` removes from the list it walks, so after each start it overlooks the next job;
the Gittins rank takes the mean of the whole service of jobs ending within the quantum.
Its Gandiva has a loop of its own, ``tiresias_gandiva.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.execution.preset import (
    Preset,
    PublishedLoop,
    RecipeInputs,
    RunSetup,
    in_engine,
)
from shadowprice.instances.cluster import Cluster
from shadowprice.solvers.classic.fifo import Fifo, FifoSkip
from shadowprice.solvers.list_scheduling import run_exactly
from shadowprice.solvers.placement.consolidated import ConsolidatedAllocator
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from shadowprice.studies.presets.tiresias_gandiva import KNOWS, gandiva_schedule

THRESHOLDS = (3250.0, 7200.0)
"""Upper limits of the first two queues, in seconds (dlas) or GPU-seconds (dlas-gpu)."""

GITTINS_QUANTUM_GPU_S = 3250.0


@dataclass(frozen=True)
class Yarn:
    """First fit on one node; larger gangs on whole nodes and at most one more."""

    name: str = "yarn"

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> ConsolidatedAllocator:
        """All GPUs of a cluster, free."""
        return ConsolidatedAllocator(cluster, pool_of_node, strict=True, best_fit=False)


@dataclass
class _Queue:
    """The list of live jobs as the last event left it."""

    jobs: list[int] = field(default_factory=list)


@dataclass
class _Queues:
    """The lists of live jobs of each level as the last event left them."""

    jobs: list[list[int]] = field(default_factory=lambda: [[], [], []])


@dataclass(frozen=True)
class SortedList:
    """All live jobs in one list, sorted by a key at every event; ties keep their places."""

    name: str
    key: Callable[[JobColumns], NDArray[np.float64] | NDArray[np.int64]]
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Sort, then give GPUs greedily, skipping what does not fit."""
        gone = set(state.finished)
        notes = state.notes(_Queue)
        queue = [job for job in notes.jobs if job not in gone] + state.arrived
        live = state.columns(queue)
        order = np.argsort(self.key(live), kind="stable")
        notes.jobs = live.jobs[order].tolist()
        return run_exactly(state, live, order)


@dataclass(frozen=True)
class LongestPending:
    """Arrival order, head blocks, but after every start the next job is overlooked."""

    name: str = "lpjf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        """Start every other job from the head while they fit."""
        decision = Decision(state)
        for job in list(state.waiting)[::2]:
            if not decision.start(job):
                break
        return decision


@dataclass(frozen=True)
class Dlas:
    """Discretised LAS on executed seconds (``gpu_time=False``) or GPU-seconds (``dlas-gpu``)."""

    name: str
    gpu_time: bool
    rank: Callable[[float], float] | None = None
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DISTRIBUTION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Demote, sort by rank if there is one, serve the queues, put running jobs in front."""
        queues = self._queues(state)
        jobs = [job for queue in queues for job in queue]
        if not jobs:
            return Decision(state)
        executed = dict(zip(jobs, state.columns(jobs).attained_s.tolist(), strict=True))
        self._demote(state, queues, executed)
        if self.rank is not None:
            for queue in queues:
                queue.sort(key=lambda job: (-self._rank_of(executed[job] * state.gang[job]), job))
        order = [job for queue in queues for job in queue]
        decision = run_exactly(state, state.columns(order), np.arange(len(order)))
        runs = (set(state.running) - set(decision.stops)) | set(decision.starts)
        for queue in queues:
            queue.sort(key=lambda job: job not in runs)
        for limit, queue in zip(THRESHOLDS, queues, strict=False):
            for job in queue:
                check_s = (limit - executed[job]) // (state.gang[job] if self.gpu_time else 1)
                if job in runs and check_s > 0:
                    decision.wake_at(state.now_s + check_s)
        return decision

    def _queues(self, state: State) -> list[list[int]]:
        queues = state.notes(_Queues).jobs
        gone = set(state.finished)
        if gone:
            queues[:] = [[job for job in queue if job not in gone] for queue in queues]
        queues[0].extend(state.arrived)
        return queues

    def _demote(self, state: State, queues: list[list[int]], executed: dict[int, float]) -> None:
        moved: set[int] = set()
        for level, limit in enumerate(THRESHOLDS):
            for job in list(queues[level]):
                service = executed[job] * (state.gang[job] if self.gpu_time else 1)
                if job in state.running and job not in moved and service >= limit:
                    queues[level].remove(job)
                    queues[level + 1].append(job)
                    moved.add(job)

    def _rank_of(self, service_gpu_s: float) -> float:
        assert self.rank is not None
        return self.rank(service_gpu_s)


@dataclass(frozen=True)
class GittinsTable:
    """The original's table of Gittins ranks over a sample of service times."""

    samples_gpu_s: NDArray[np.float64]
    ranks: NDArray[np.float64]

    @classmethod
    def of(cls, distribution: ServiceDistribution) -> GittinsTable:
        """For each sample v, at a = v - 1: 1e6 P / E, rounded to 4 digits.

        P is the share of the samples above a that end within the quantum; E the mean over them
        of their whole service if they end within it, else of the quantum.
        """
        samples = distribution.samples_gpu_s
        n, prefix = len(samples), np.concatenate(([0.0], np.cumsum(samples)))
        a = samples - 1.0
        above = np.searchsorted(samples, a, side="right")
        within = np.searchsorted(samples, a + GITTINS_QUANTUM_GPU_S, side="right")
        within[a + GITTINS_QUANTUM_GPU_S > samples[-1] - 1.0] = n - 1
        share = (within - above) / (n - above)
        mean = (prefix[within] - prefix[above] + GITTINS_QUANTUM_GPU_S * (n - within)) / (n - above)
        return cls(samples, np.round(1e6 * share / mean, 4))

    def __call__(self, service_gpu_s: float) -> float:
        """Rank at attained service [GPU-s], 0 beyond the last sample but one."""
        if service_gpu_s > self.samples_gpu_s[max(len(self.samples_gpu_s) - 2, 0)]:
            return 0.0
        return float(self.ranks[np.searchsorted(self.samples_gpu_s, service_gpu_s, side="right")])


def _gittins(inputs: RecipeInputs) -> RunSetup:
    rank = GittinsTable.of(inputs.service_times())
    policy = Dlas("dlas-gpu-gittins", gpu_time=True, rank=rank)
    return RunSetup(inputs.workload, policy, inputs.placement)


PRESET = Preset(
    name="tiresias",
    source="github.com/SymbioticLab/Tiresias at 959f9b0",
    placements={"count": Count(), "yarn": Yarn()},
    recipes={
        "fifo": in_engine(Fifo()),
        "fjf": in_engine(FifoSkip("fjf")),
        "sjf": in_engine(SortedList("sjf", lambda live: live.gpus)),
        "lpjf": in_engine(LongestPending()),
        "shortest": in_engine(SortedList("shortest", lambda live: live.remaining_s)),
        "shortest-gpu": in_engine(
            SortedList("shortest-gpu", lambda live: live.remaining_s * live.gpus)
        ),
        "dlas": in_engine(Dlas("dlas", gpu_time=False)),
        "dlas-gpu": in_engine(Dlas("dlas-gpu", gpu_time=True)),
        "dlas-gpu-gittins": _gittins,
    },
    loops={"gandiva": PublishedLoop(gandiva_schedule, KNOWS)},
)
