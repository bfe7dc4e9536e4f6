"""Before a round: which job gets which nodes, and how its steps are split over its copies.

Source: Sultana et al., HadarE (arXiv 2503.10918), recalled: the tracker of a job splits its
remaining steps over its copies in proportion to throughput. Split are *all* remaining steps, so
that copies would end together if rates were as expected; the end of the round cuts what does not
fit. So no copy is idle in a round because it was thought slower than it is, unless the job ends.

A job without a checkpoint has one copy: copies that each began from parameters of their own, as
unseeded scripts do, have no average that is worth anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.execution.copies.hadare import HadarE
from shadowprice.hosts.live.copies.rounds import Copy
from shadowprice.hosts.live.copies.state import CopyState
from shadowprice.hosts.live.lease import JobRecord
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.hadar.copies import (
    NodeGrant,
    RoundView,
    assign,
    preferred_nodes,
    split_steps,
)


@dataclass(frozen=True)
class Candidate:
    """A job that may have copies, and the step of the checkpoint they would start from."""

    tracked: JobRecord
    step: int

    @property
    def left(self) -> int:
        """Steps to do."""
        return self.tracked.job.iterations - self.step


class CopyPlan:
    """Plan of a round.

    Parameters
    ----------
    nodes : sequence of int
        Those that are free.
    length_s : float
        Of the round [s].
    """

    def __init__(
        self,
        state: CopyState,
        policy: HadarE,
        candidates: Sequence[Candidate],
        nodes: Sequence[int],
        length_s: float,
    ) -> None:
        rates = state.rates
        self.state, self.policy, self.nodes = state, policy, list(nodes)
        self.jobs = [
            each
            for each in candidates
            if any(rates.rate(each.tracked.row, node) > 0 for node in nodes)
        ]
        self.length = int(length_s * TICKS_PER_S)
        kinds = [rates.class_of(node) for node in nodes]
        classes = list(dict.fromkeys(kinds))
        self.class_of_node = np.array([classes.index(kind) for kind in kinds], dtype=np.int64)
        self.example = [self.nodes[kinds.index(kind)] for kind in classes]

    def copies(self, now_s: float) -> dict[int, tuple[Copy, ...]]:
        """Copies by row of the job; jobs without one are left out."""
        if not self.jobs or not self.nodes:
            return {}
        grants = assign(
            self._view(now_s),
            self.policy.scores(),
            self.class_of_node,
            self._preferred,
            self._room,
            self._most,
        )
        return {self.jobs[grant.position].tracked.row: self._split(grant) for grant in grants}

    def _view(self, now_s: float) -> RoundView:
        rows = [each.tracked.row for each in self.jobs]
        rates = self.state.rates
        arrival_s = np.array([each.tracked.job.arrival_s for each in self.jobs])
        ran_s = np.array([self.state.ran_s[row] for row in rows])
        return RoundView(
            now_s,
            np.array(rows, dtype=np.int64),
            np.array([each.tracked.job.iterations for each in self.jobs], dtype=np.int64),
            np.array([each.left for each in self.jobs], dtype=np.int64),
            np.array([[rates.class_rate(row, node) for node in self.example] for row in rows]),
            arrival_s,
            np.maximum(now_s - arrival_s - ran_s, 0.0),
            np.zeros(len(self.example)),
        )

    def _most(self, position: int) -> int:
        most = self.policy.max_copies or len(self.nodes)
        return most if self.jobs[position].step else 1

    def _preferred(self, position: int) -> list[int]:
        """Nodes that ran the job last, then those that no waiting job ran on last; avoided ones last."""
        row, last = self.jobs[position].tracked.row, self.state.last
        waiting = {each.tracked.row for each in self.jobs}
        places = preferred_nodes([last[node] for node in self.nodes], row, waiting)
        return sorted(places, key=lambda place: self.state.avoids(row, self.nodes[place]))

    def _room(self, position: int, place: int, several: bool) -> int:
        """Steps that fit the round; at least one, since a start may take less than it did before."""
        row = self.jobs[position].tracked.row
        ticks = max(self.length - self._owed(row), 0)
        return max(int(self._rate(row, self.nodes[place]) * ticks), 1)

    def _owed(self, row: int) -> int:
        return math.ceil(self.state.rates.start_s(row) * TICKS_PER_S)

    def _rate(self, row: int, node: int) -> Fraction:
        """Steps per tick."""
        return Fraction(self.state.rates.rate(row, node)) / TICKS_PER_S

    def _split(self, grant: NodeGrant) -> tuple[Copy, ...]:
        """All remaining steps over the copies; those that would get none are not made."""
        job = self.jobs[grant.position]
        row, nodes = job.tracked.row, sorted(self.nodes[place] for place in grant.nodes)
        nodes = [node for node in nodes if not self.state.avoids(row, node)] or nodes
        while True:
            rates = [self._rate(row, node) for node in nodes]
            owed = [self._owed(row)] * len(nodes)
            # Time enough for any of them to do all.
            length = owed[0] + math.ceil((job.left + 1) / min(rates))
            steps = split_steps(job.left, rates, owed, length)
            if all(steps):
                break
            nodes = [node for node, count in zip(nodes, steps, strict=True) if count]
        return tuple(
            Copy(node, self.state.rates.gpus(row, node), count, self.state.rates.rate(row, node))
            for node, count in zip(nodes, steps, strict=True)
        )
