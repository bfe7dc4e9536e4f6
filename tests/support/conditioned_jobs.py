"""Profiles of speed by CPUs and memory, and a policy that gives both out at random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.solvers.policy import Decision, Knowledge, State

CLUSTER = Cluster((Node(4, cpus=12.0, memory_gb=40.0),) * 3)
PROFILE = Profile(
    np.array([1.0, 3.0, 6.0]),
    np.array([5.0, 10.0]),
    np.array([[0.25, 0.5], [0.5, 1.0], [0.5, 2.0]]),
)
FLAT = Profile(np.array([1.0]), np.array([1.0]), np.array([[1.0]]))


@dataclass(frozen=True)
class Restless:
    """Stops, starts, widens and gives out CPUs at random, every few seconds."""

    seed: int
    name: str = "restless"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        draw = state.notes(np.random.Generator, lambda: np.random.default_rng(self.seed))
        decision = Decision(state)
        if draw.random() < 0.4:
            for job in list(state.running):
                if draw.random() < 0.5:
                    decision.stop(job)
        waiting = [*state.waiting, *decision.stops]
        kept = {job: p for job, p in state.running.items() if job not in decision.stops}
        for job, pieces in kept.items():
            if state.profiled:
                cpu_memory = self.cpu_memory(draw, pieces)
                decision.adjust(job, cpu_memory)
        for job in waiting:
            placed = self.pieces(draw, state, job)
            if placed is not None:
                more = None
                if state.profiled:
                    more = self.cpu_memory(draw, placed)
                assert decision.start_at(job, placed, more)
        if state.waiting or state.running or waiting:
            decision.wake_at(state.now_s + float(draw.integers(1, 8)))
        return decision

    def pieces(
        self, draw: np.random.Generator, state: State, job: int
    ) -> tuple[tuple[int, int], ...] | None:
        free = state.free_gpus_by_node()
        left = state.gang[job]
        if state.environment.elastic:
            left = int(draw.integers(left, state.widest(job) + 1))
        pieces = []
        for node in draw.permutation(len(free)).tolist():
            part = min(left, free[node])
            if part:
                pieces.append((node, part))
                left -= part
        return None if left else tuple(pieces)

    def cpu_memory(
        self, draw: np.random.Generator, pieces: Iterable[tuple[int, int]]
    ) -> tuple[tuple[float, float], ...]:
        """Proportional, or half of it."""
        found = []
        for _, gpus in pieces:
            factor = draw.choice([1.0, 0.5])
            found.append((3.0 * gpus * factor, 10.0 * gpus * factor))
        return tuple(found)
