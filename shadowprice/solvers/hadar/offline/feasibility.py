r"""Feasibility of given completion rounds of all jobs: the hard part, which relaxations miss.

Given completions, Hadar's offline programme asks only whether they can be kept: a bin packing of
gangs into rounds. Relaxed schedules often can where whole ones cannot, and branching on rounds is
slow there because rounds are alike. CP-SAT decides it, in integers throughout. Schedules that it finds
are checked; that there are none is its word, which nothing else confirms. A job is complete
by weights of its levels that are whole numbers and were checked to rank every combination of
levels as exact fractions do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import GpusByNode, RoundPlan
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels, States
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import Said, SearchEffort, WholeProgram

# What Hadar's offline optimum asks of capacity, with GPU types chosen afterwards.
#
# A schedule here says at which speed (level) a job runs in each round, not on which of the types
# admitted at that speed: that choice is a transportation problem, which has an integer solution iff
#
# .. math::
#
#     \sum_j \max(0, W_j - c(A_j \setminus S)) \le c(S) \quad \forall S \subseteq R, \text{ every round}
#
# where A_j are the types that job j admits in that round and c(S) their GPUs: no set of types is
# asked for more than it has by gangs that find no other place (Hall's condition). The duals
# :math:`\pi_S(t) \ge 0` of these rows give prices :math:`k_r(t) = \sum_{S \ni r} \pi_S(t)` of the
# schedule form's dual with the same value, so both forms have the same bound. Derived.
#
# Gangs are whole, so for every p / q < 1 the rows above, demands d and capacity c, imply those with
# floor(d p / q) and floor(c p / q) (Chvatal and Gomory's rounding; a gang of 3 and a gang of 2 do
# not share 4 GPUs). Those that no other row makes needless are rows too, which makes the bound
# better than that of the schedule form; their coefficients depend on the round and the level only,
# so the pricing stays the same.


MAX_ROUNDED = 64
"""Larger capacities are not rounded: there is little to gain."""

MAX_DIVISOR = 7


@dataclass(frozen=True, eq=False)
class CapacityRows:
    """Demands of levels on sets of types, and on their capacities rounded down.

    Parameters
    ----------
    capacity : ndarray, shape (rows,)
        GPUs of each non-empty set of types, then the rounded rows.
    gpus : tuple of ndarray, shape (levels of the job, rows)
        By job: GPUs that a set must give when the job runs at a level; rounded alike.
    share : ndarray, shape (rows, types)
        What a price of a row stands for in prices of types: its value spread over the GPUs of
        its set.
    """

    capacity: NDArray[np.float64]
    gpus: tuple[NDArray[np.float64], ...]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, jobs: RoundJobs) -> CapacityRows:
        """The demands of all jobs."""
        types = range(jobs.types)
        sets = tuple(s for size in types for s in combinations(types, size + 1))
        inside = np.array([[r in s for r in types] for s in sets], dtype=np.float64)
        gpus = []
        for job, levels in enumerate(jobs.levels):
            admitted = np.array([[r in level.types for r in types] for level in levels])
            outside = (admitted.reshape(-1, jobs.types) * jobs.capacity) @ (1.0 - inside).T
            gpus.append(np.maximum(0.0, jobs.gang[job] - outside))
        room = inside @ jobs.capacity
        extra = [(k, f) for k, c in enumerate(room) for f in _roundings(int(c), _asked(gpus, k))]
        rounded = [
            np.array([f[asked[:, k].astype(np.int64)] for k, f in extra]).reshape(
                len(extra), len(asked)
            )
            for asked in gpus
        ]
        share = [inside, *(inside[[k]] * (f[int(room[k])] / room[k]) for k, f in extra)]
        return cls(
            np.concatenate((room, [f[int(room[k])] for k, f in extra])),
            tuple(np.hstack((asked, more.T)) for asked, more in zip(gpus, rounded, strict=True)),
            np.concatenate(share),
        )


def _asked(gpus: list[NDArray[np.float64]], place: int) -> list[int]:
    """Distinct positive demands for a set of types."""
    return sorted({int(d) for asked in gpus for d in asked[:, place].tolist() if d > 0})


def _roundings(capacity: int, asked: list[int]) -> list[NDArray[np.float64]]:
    """Functions floor(d p / q) of 0 <= d <= capacity that are no weaker than d itself or another."""
    if capacity > MAX_ROUNDED or not asked:
        return []
    gpus = np.arange(capacity + 1, dtype=np.int64)
    factors = {Fraction(p, q) for q in range(2, MAX_DIVISOR + 1) for p in range(1, q)}
    tables = [gpus, *(gpus * f.numerator // f.denominator for f in sorted(factors))]
    tables = [table for table in tables if table[-1] > 0]
    shapes = np.array([table[asked] / table[-1] for table in tables])
    kept: list[int] = []
    for k in range(len(tables)):
        at_least = np.all(shapes >= shapes[k] - 1e-12, axis=1)
        better = at_least & np.any(shapes > shapes[k] + 1e-12, axis=1)
        if not better.any() and not at_least[:k].any():
            kept.append(k)
    return [tables[k].astype(np.float64) for k in kept if k > 0]


_PATIENCE = 20.0
"""Most time by the clock, relative to the deterministic time."""

_SCALE = 2.0**40
"""Work of a whole job in weights."""


@dataclass(frozen=True)
class Verdict:
    """Result of a feasibility check of deadlines.

    Parameters
    ----------
    known : bool
        Whether the time sufficed.
    chosen : mapping of int to Levels, optional
        Schedules that keep them, if they can be kept.
    core : tuple of int
        Jobs that cannot keep them together, if not.
    """

    known: bool
    chosen: Mapping[int, Levels] | None = field(default=None, repr=False)
    core: tuple[int, ...] = ()


class Deadlines:
    """Decides deadlines of jobs.

    Parameters
    ----------
    jobs : RoundJobs
    demand : Demand
    states : sequence of States
        By job.
    """

    def __init__(self, jobs: RoundJobs, demand: CapacityRows, states: Sequence[States]) -> None:
        self.jobs, self.demand = jobs, demand
        self._weights = [_weights(jobs, job, one) for job, one in enumerate(states)]

    @property
    def usable(self) -> bool:
        """True if whole-number weights represent the work of every job."""
        return all(weights is not None for weights in self._weights)

    def check(self, ends: Mapping[int, int], time_limit_s: float) -> Verdict:
        """Decide if jobs can all be complete by the ends of given rounds.

        Parameters
        ----------
        ends : mapping of int to int
            By job.
        time_limit_s : float
            CP-SAT's deterministic time, on one thread: seconds of a machine at rest, roughly.
        """
        if not self.usable:
            return Verdict(False)
        program = WholeProgram()
        runs: dict[tuple[int, int], list[int]] = {}
        kept = {job: self._work(program, runs, job, end) for job, end in ends.items()}
        self._capacity(program, runs)
        program.assumed = list(kept.values())
        # Counted work, not the clock: the same on a busy machine. Bounds by linear programmes were
        # measured to cost four times what they save here.
        patience_s = _PATIENCE * max(time_limit_s, 0.01)
        answer = ask_whole(program, SearchEffort(patience_s, time_limit_s, relaxations=False))
        if answer.said is Said.INFEASIBLE:
            names = {literal: job for job, literal in kept.items()}
            return Verdict(True, core=tuple(names[k] for k in answer.core) or tuple(ends))
        if answer.values is None:
            return Verdict(False)
        levels = {job: [IDLE] * (end + 1) for job, end in ends.items()}
        for (job, t), own in runs.items():
            for level, run in enumerate(own):
                if answer.values[run]:
                    levels[job][t] = level
        return Verdict(True, {job: self.until_complete(job, one) for job, one in levels.items()})

    def _work(
        self, program: WholeProgram, runs: dict[tuple[int, int], list[int]], job: int, end: int
    ) -> int:
        """The rounds of a job up to a deadline; a literal that it is then complete."""
        weights, whole = self.weights(job)
        work: dict[int, int] = {}
        for t in range(int(self.jobs.first[job]), end + 1):
            own = runs[job, t] = [program.binary() for _ in self.jobs.levels[job]]
            program.single.append(own)
            work |= dict(zip(own, weights, strict=True))
        kept = program.binary()
        program.row(work, low=whole, only_if=kept)
        return kept

    def _capacity(self, program: WholeProgram, runs: Mapping[tuple[int, int], list[int]]) -> None:
        for t in range(self.jobs.rounds):
            here = [(job, runs[job, t]) for job in range(self.jobs.jobs) if (job, t) in runs]
            for row, room in enumerate(self.demand.capacity.tolist()):
                terms = {
                    run: int(self.demand.gpus[job][level, row])
                    for job, own in here
                    for level, run in enumerate(own)
                    if self.demand.gpus[job][level, row]
                }
                if terms:
                    program.row(terms, high=int(room))

    def weights(self, job: int) -> tuple[list[int], int]:
        """Work of a round at each level of a job and of the whole job; only where usable."""
        weights = self._weights[job]
        assert weights is not None
        return weights

    def until_complete(self, job: int, levels: list[int]) -> Levels:
        """A schedule, given as levels by round, up to the round in which it completes the job."""
        weights, whole = self.weights(job)
        done = 0
        for t, level in enumerate(levels):
            done += 0 if level == IDLE else weights[level]
            if done >= whole:
                return tuple(levels[: t + 1])
        return tuple(levels)


def _weights(jobs: RoundJobs, job: int, states: States) -> tuple[list[int], int] | None:
    """Weights of levels and of the whole job, such that levels complete it iff theirs reach it."""
    levels = jobs.levels[job]
    weights = [int(_SCALE * min(1.0, jobs.utility.round_s / level.seconds)) for level in levels]
    if min(weights, default=1) <= 0:
        return None
    done = _work(states, weights)
    most = int(done.max(initial=0))
    least = [
        int(done[last].min()) + w for last, w in zip(states.last, weights, strict=True) if len(last)
    ]
    whole = min(least, default=most + 1)
    return (weights, whole) if most < whole else None


def _work(states: States, weights: list[int]) -> NDArray[np.int64]:
    """Weight of what is done in every state; a state comes after those that lead to it."""
    done = np.zeros(len(states.before), dtype=np.int64)
    for state, sources in enumerate(states.before.tolist()):
        for level, source in enumerate(sources):
            if source >= 0:
                done[state] = done[source] + weights[level]
                break
    return done


# From the speed of every job in every round to GPUs on nodes.


def place(instance: Instance, jobs: RoundJobs, chosen: Mapping[int, Levels]) -> RoundPlan:
    """The plan that runs jobs at given levels, from the first node of each type on.

    Parameters
    ----------
    chosen : mapping of int to Levels
        By job; jobs that are not in it never run.

    Raises
    ------
    SolverError
        If the GPUs of a round do not suffice.
    """
    runs: list[list[tuple[int, GpusByNode]]] = [[] for _ in range(jobs.jobs)]
    for t in range(jobs.rounds):
        running = {
            job: jobs.levels[job][levels[t]].types
            for job, levels in sorted(chosen.items())
            if t < len(levels) and levels[t] != IDLE
        }
        free = _Free(instance.cluster)
        for job, gpus in _types(jobs, running, t).items():
            runs[job].append((t, free.take(gpus)))
    return RoundPlan(tuple(map(tuple, runs)))


def _types(jobs: RoundJobs, running: Mapping[int, tuple[int, ...]], t: int) -> dict[int, list[int]]:
    """GPUs of each type for each running job: an integral flow from jobs to types they admit."""
    flow = nx.DiGraph()
    for job, types in running.items():
        flow.add_edge("source", ("job", job), capacity=int(jobs.gang[job]))
        for r in types:
            flow.add_edge(("job", job), ("type", r))
            flow.add_edge(("type", r), "sink", capacity=int(jobs.capacity[r]))
    if not running:
        return {}
    asked = sum(int(jobs.gang[job]) for job in running)
    given, paths = nx.maximum_flow(flow, "source", "sink")
    if given != asked:
        raise SolverError(f"round {t}: jobs ask for {asked} GPUs, only {given} can be given")
    return {
        job: [int(paths[("job", job)].get(("type", r), 0)) for r in range(jobs.types)]
        for job in running
    }


class _Free:
    """GPUs not yet taken in a round."""

    def __init__(self, cluster: Cluster) -> None:
        self._free = cluster.gpus_per_node.tolist()
        self._nodes: list[list[int]] = [[] for _ in cluster.gpu_types]
        for node, r in enumerate(cluster.type_of_node.tolist()):
            self._nodes[r].append(node)

    def take(self, gpus: list[int]) -> GpusByNode:
        """Nodes for so many GPUs of each type, first fit."""
        taken = []
        for r, wanted in enumerate(gpus):
            for node in self._nodes[r]:
                some = min(wanted, self._free[node])
                if some:
                    self._free[node] -= some
                    wanted -= some
                    taken.append((node, some))
        return tuple(sorted(taken))
