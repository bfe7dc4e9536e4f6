"""A policy that does at random all that policies may do, whatever the instance says."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import in_order
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.states import Stops


@dataclass(frozen=True)
class Wild:
    """Stops, resumes, starts, moves, joins and widens jobs, maps their replicas and gives out CPUs at random.

    Parameters
    ----------
    seed : int
    """

    seed: int
    name: str = "wild"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        draw = state.notes(random.Random, lambda: random.Random(self.seed))
        decision, stops = Decision(state), state.notes(Stops)
        self._adjust(draw, state, decision)
        for job in list(state.running):
            if stops.left and draw.random() < 0.3:
                stops.left -= 1
                decision.stop(job)
        for job in list(decision.stops):
            if draw.random() < 0.3:
                decision.resume_in_place(job)
        self._adjust(draw, state, decision)
        waiting = [*state.waiting, *decision.stops]
        draw.shuffle(waiting)
        for job in waiting:
            if job not in decision.starts:
                self._begin(draw, state, decision, job)
        if stops.left and (state.running or decision.starts):
            decision.wake_at(state.now_s + draw.choice((0.25, 0.5, 1.0, 1.75)))
        return decision

    def _adjust(self, draw: random.Random, state: State, decision: Decision) -> None:
        """Give some of those that go on other CPUs and memory, never more than a share; no more where jobs ask."""
        if not state.profiled:
            return
        for job, pieces in state.running.items():
            if job not in decision.stops and draw.random() < 0.3:
                held = self._cpu_memory(draw, state, job, pieces)
                if decision.partner_of(job) is not None:
                    # Each at most half of a share, from which a pair begins.
                    held = tuple((cpus / 2, memory_gb / 2) for cpus, memory_gb in held)
                if state.allocator.cpu_memory.says:
                    pairs = zip(held, state.cpu_memory_of[job], strict=True)
                    held = tuple((min(a, c), min(b, d)) for (a, b), (c, d) in pairs)
                    if not state.allocator.cpu_memory.enough(job, pieces, held):
                        continue
                if not state.profile_of(job).of(pieces, held):
                    continue
                decision.adjust(job, held)

    def _begin(self, draw: random.Random, state: State, decision: Decision, job: int) -> None:
        """Start a job in one of the ways that there are; the plain one last, so that nobody starves."""
        if state.sharing and draw.random() < 0.6:
            partners = [*decision.starts, *(j for j in state.running if j not in decision.stops)]
            if any(
                self._join(draw, state, decision, job, other) for other in partners if other != job
            ):
                return
        if draw.random() < 0.4:
            pieces = self._pieces(draw, state, job)
            if pieces is not None and self._start_on(draw, state, decision, job, pieces):
                return
        pools = list(state.pools[job])
        draw.shuffle(pools)
        any(decision.start_on(job, pool) for pool in pools)

    @staticmethod
    def _join(draw: random.Random, state: State, decision: Decision, job: int, other: int) -> bool:
        """Join a job, now and then with a share of CPUs and memory that is not half of them."""
        held = None
        if state.profiled and draw.random() < 0.3:
            pieces = decision.starts.get(other) or state.running[other]
            cpus, memory_gb = (each * draw.choice((0.25, 0.5)) for each in state.share_per_gpu)
            held = tuple((cpus * gpus, memory_gb * gpus) for _, gpus in pieces)
        return decision.join(job, other, held)

    def _start_on(
        self, draw: random.Random, state: State, decision: Decision, job: int, pieces: Pieces
    ) -> bool:
        if state.mapped:
            return decision.start_mapped(job, self._mapping(draw, state, job, pieces))
        width = sum(gpus for _, gpus in pieces)
        if not state.allocator.admits(job, width):
            return False
        held = self._cpu_memory(draw, state, job, pieces) if state.profiled else None
        return decision.start_at(job, pieces, held)

    @staticmethod
    def _pieces(draw: random.Random, state: State, job: int) -> Pieces | None:
        """Free GPUs of one of the job's pools, as many as it may hold."""
        free, pool = state.free_gpus_by_node(), draw.choice(state.pools[job])
        left = draw.randint(state.gang[job], state.widest(job))
        nodes = [node for node in range(len(free)) if state.allocator.pool_of(node) == pool]
        draw.shuffle(nodes)
        pieces = []
        for node in nodes:
            if part := min(left, free[node]):
                pieces.append((node, part))
                left -= part
        return None if left else tuple(pieces)

    @staticmethod
    def _cpu_memory(
        draw: random.Random, state: State, job: int, pieces: Pieces
    ) -> tuple[tuple[float, float], ...]:
        """A share of CPUs and memory, or half the CPUs where the job runs with these; no less than it asks for."""
        cpus, memory_gb = state.share_per_gpu
        part = float(state.columns((job,)).gpu_milli[0]) / 1000
        if state.pools_of_gpus.names[state.pools[job][0]] == "cores":
            part = 0.0
        given = []
        for _, gpus in pieces:
            factor = draw.choice((1.0, 0.5))
            if not state.profile_of(job).at(cpus * factor, memory_gb):
                factor = 1.0
            least = state.allocator.cpu_memory.least(job, gpus)
            share = cpus * gpus * factor * part, memory_gb * gpus * part
            given.append((max(share[0], least[0]), max(share[1], least[1])))
        return tuple(given)

    @staticmethod
    def _mapping(draw: random.Random, state: State, job: int, pieces: Pieces) -> StageMapping:
        """Stages in order on the pieces in another order, which are then put back."""
        order = list(pieces)
        draw.shuffle(order)
        return in_order(state.graph_of(job), order)
