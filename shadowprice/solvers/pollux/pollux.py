"""Pollux (``pollux``): GPUs by what the goodput of jobs would be, anew in every round, at batches that suit them.

Source: Qiao et al., Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning, OSDI 2021
(recalled); its artifact (petuum/adaptdl, branch osdi21-artifact, ``simulator/``; read). In each round

1. the agent of each job fits its step time to all that the job has seen (:mod:`.speed_model`);
2. a matrix of GPUs by job and node is looked for whose power mean of speed-ups, each over the goodput of a fair share,
   is largest: ``pollux`` by the paper's genetic search, which goes on from the matrices of the round before
   (:mod:`.search`), ``pollux-exact`` by the programme itself (``models/pollux.py``, :mod:`.optimum`);
3. jobs whose row changed are started again, and each trains at the batch of the largest goodput.

Guarantee: none on completion times is known. The search is no approximation with a factor; by how much it misses the
optimum of a round is measured (docs/systems/pollux.md).
Complexity: O(generations x size x jobs x nodes) a round, and a fit for each job that saw something new.
Knows: nothing of durations, and of speeds what was measured. Preempts. Jobs with run times instead of goodput keep
their gangs; whoever fits starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.goodput.allocation_costs import AllocationCosts, Matrix
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.agents import Agents
from shadowprice.solvers.pollux.speed_ups import costs

Notes = TypeVar("Notes", bound=Agents)


@dataclass
class Population(Agents):
    """Agents, and matrices of the last round; notes of a policy.

    Attributes
    ----------
    jobs : list of int
        Of the rows of the matrices.
    matrices : ndarray of int8, shape (matrices, jobs, nodes), or None
    draw : Generator or None
        Of all that is random in the run.
    """

    jobs: list[int] = field(default_factory=list)
    matrices: Matrix | None = None
    draw: np.random.Generator | None = None

    def adapted(self, jobs: list[int], held: Matrix) -> Matrix:
        """Matrices of the last round with rows of these jobs, nothing for new ones; what is held if there are none."""
        if self.matrices is None:
            return held[None]
        row_of = {job: row for row, job in enumerate(self.jobs)}
        rows = [row_of.get(job, -1) for job in jobs]
        padded = np.pad(self.matrices, ((0, 0), (0, 1), (0, 0)))
        rows_of_all: Matrix = padded[:, rows, :]
        return rows_of_all


class RoundMethod(Protocol):
    """A way to a good matrix for a round."""

    def matrix(self, costs: AllocationCosts, jobs: list[int], notes: Population) -> Matrix:
        """A matrix that the constraints allow."""


@dataclass(frozen=True)
class Genetic:
    """The paper's search.

    Parameters
    ----------
    seed : int
    size, generations : int
        Matrices of the population, and how often it is renewed in a round.
    """

    seed: int = 0
    size: int = 100
    generations: int = 100

    def matrix(self, costs: AllocationCosts, jobs: list[int], notes: Population) -> Matrix:
        """The best of the last generation, which is kept for the next round."""
        from shadowprice.solvers.pollux.search import searched

        if notes.draw is None:
            notes.draw = np.random.default_rng(self.seed)
        before = notes.adapted(jobs, costs.held)
        size, generations = self.size, self.generations
        after = searched(costs, before, notes.draw, size=size, generations=generations)
        notes.jobs, notes.matrices = jobs, after
        best: Matrix = after[0]
        return best


@dataclass(frozen=True)
class RoundProgramme:
    """The programme of the round, solved.

    Parameters
    ----------
    time_limit_s : float
        Wall time of a round [s]; what was found by then counts, and what is held if nothing was.
    """

    time_limit_s: float = 10.0

    def matrix(self, costs: AllocationCosts, jobs: list[int], notes: Population) -> Matrix:
        """The best matrix that was found."""
        from shadowprice.solvers.pollux.optimum import best_matrix
        from shadowprice.solvers.programs.solution import SolverOptions

        limit_s = self.time_limit_s
        options = SolverOptions(time_limit_s=limit_s, relative_gap=1e-4, confirm=False)
        try:
            return best_matrix(costs, options).matrix
        except SolverError:
            return costs.held


@dataclass(frozen=True)
class Pollux:
    """Pollux' scheduler.

    Parameters
    ----------
    method : RoundMethod
        How the matrix of a round is found.
    round_s : float
        Time after which it decides again [s].
    restart_s : float
        Time without progress that it counts for a start [s].
    avoid : bool
        Whether at most one job that is on several nodes may hold GPUs of a node.
    single : tuple of str
        Applications whose jobs have no more than one GPU.
    """

    name: str = "pollux"
    method: RoundMethod = Genetic()
    round_s: float = 60.0
    restart_s: float = 30.0
    avoid: bool = True
    single: tuple[str, ...] = ()
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (0 < self.round_s < 2**32 and 0 <= self.restart_s < 2**32):
            raise InputError(
                f"{self.name}: round_s is {self.round_s!r} and restart_s {self.restart_s!r}, expected seconds, the "
                "first > 0"
            )

    def decide(self, state: State) -> Decision:
        """Give every job its row of a good matrix, and its batch."""
        return decided(state, Population, self._pieces, self.round_s)

    def _pieces(
        self, state: State, goodput: GoodputJobs, notes: Population, jobs: list[int]
    ) -> Mapping[int, Pieces]:
        """Nodes and GPUs of each job by the matrix of the round."""
        elastic = [notes.job(state, goodput, job, self._most(state, goodput, job)) for job in jobs]
        held, capacity = matrix_of(state, jobs)
        table = costs(elastic, held, capacity, restart_s=self.restart_s, avoid=self.avoid)
        matrix = self.method.matrix(table, jobs, notes)
        return {job: pieces_of(row) for job, row in zip(jobs, matrix, strict=True)}

    def _most(self, state: State, goodput: GoodputJobs, job: int) -> int:
        return 1 if goodput.application(job).name in self.single else state.total_gpus


def matrix_of(state: State, jobs: list[int]) -> tuple[Matrix, NDArray[np.int64]]:
    """GPUs that jobs hold by node, and those that they may hold together."""
    held = np.zeros((len(jobs), state.nodes), dtype=np.int8)
    for row, job in enumerate(jobs):
        for node, gpus in state.running.get(job, ()):
            held[row, node] = gpus
    return held, np.array(state.free_gpus_by_node(), dtype=np.int64) + held.sum(axis=0)


def pieces_of(row: Matrix) -> Pieces:
    """Nodes and GPUs of a row."""
    return tuple((int(node), int(row[node])) for node in np.flatnonzero(row))


def decided(
    state: State,
    kind: type[Notes],
    pieces_of_jobs: Callable[[State, GoodputJobs, Notes, list[int]], Mapping[int, Pieces]],
    round_s: float,
) -> Decision:
    """Decision of a round by agents; jobs with run times instead of goodput start where they fit.

    Parameters
    ----------
    kind : type of Agents
        Notes of the policy.
    pieces_of_jobs : callable
        Nodes and GPUs of jobs, those with the least GPU time first, from what their agents have seen.
    round_s : float
        Time after which it decides again [s].
    """
    goodput = state.goodput
    if goodput is None:
        return Decision(state).start_all()
    agents = state.notes(kind)
    agents.update(state, goodput)
    jobs = agents.in_order()
    if not jobs:
        return Decision(state)
    decision = _placed(state, goodput, agents, pieces_of_jobs(state, goodput, agents, jobs))
    decision.wake_at(state.now_s + round_s)
    return decision


def _placed(
    state: State, goodput: GoodputJobs, notes: Agents, rows: Mapping[int, Pieces]
) -> Decision:
    """Stop and start those whose nodes change, and tell all that run their batch.

    A job that nobody has measured on its new nodes waits.
    """
    decision = Decision(state)
    for job, pieces in list(state.running.items()):
        if pieces != rows.get(job, ()):
            decision.stop(job)
    for job, pieces in rows.items():
        if not pieces:
            continue
        placement = tuple(gpus for _, gpus in pieces)
        batching = notes.batching(goodput, job, placement)
        runs_on = job in state.running and job not in decision.stops
        if not runs_on:
            if goodput.application(job).step_s(placement, batching.local) is None:
                continue
            if not decision.start_at(job, pieces):
                continue
            notes.of[job].starts += 1
        if not goodput.batch_size(job):
            decision.train(job, batching)
    return decision


POLICIES = (
    Pollux(),
    Pollux("pollux-exact", RoundProgramme()),
)
