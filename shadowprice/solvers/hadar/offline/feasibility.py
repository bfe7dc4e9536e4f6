r"""Feasibility of given completion rounds of all jobs, and plans on nodes from schedules.

Source: derived. Given completions, Hadar's offline programme asks only whether they can be kept: a bin
packing of gangs into rounds, the hard part that relaxations miss. Relaxed schedules often keep them
where whole ones cannot, and branching on rounds is slow there because rounds are alike.
:class:`Deadlines` lets CP-SAT decide it, in integers throughout. Schedules that it finds are checked;
that there are none is its word, which nothing else confirms. A job is complete by weights of its speeds
that are whole numbers and were checked to rank every combination of speeds as exact fractions do.

:func:`gpus_of` and :func:`plan_on_nodes` give the jobs of schedules, which know speeds only, their GPUs on nodes.

Complexity: a check is exponential in the worst case; a plan is one maximum flow a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import GpusByNode, RoundPlan
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import IDLE, Speeds, States
from shadowprice.solvers.placement.protocol import in_turn
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import SearchEffort, SearchStatus, WholeProgram

CLOCK_FACTOR = 20.0
"""Most time by the clock, relative to the deterministic time that CP-SAT counts."""

_SCALE = 2.0**40
"""Work of a whole job in weights."""


@dataclass(frozen=True)
class Verdict:
    """Result of a feasibility check of deadlines.

    Parameters
    ----------
    known : bool
        Whether the time sufficed.
    schedules : mapping of int to Speeds, optional
        By job: schedules that keep them, if they can be kept.
    core : tuple of int
        Jobs that cannot keep them together, if not.
    """

    known: bool
    schedules: Mapping[int, Speeds] | None = field(default=None, repr=False)
    core: tuple[int, ...] = ()


class Deadlines:
    """Decides deadlines of jobs.

    Parameters
    ----------
    jobs : RoundJobs
    capacity_rows : CapacityRows
    states : sequence of States
        By job.
    """

    def __init__(
        self, jobs: RoundJobs, capacity_rows: CapacityRows, states: Sequence[States]
    ) -> None:
        self.jobs = jobs
        self.capacity_rows = capacity_rows
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
        met = {job: self._add_job(program, runs, job, end) for job, end in ends.items()}
        self._add_capacity(program, runs)
        program.assumed = list(met.values())
        # Counted work, not the clock: the same on a busy machine. Bounds by linear programmes were
        # measured to cost four times what they save here.
        clock_s = CLOCK_FACTOR * max(time_limit_s, 0.01)
        answer = ask_whole(program, SearchEffort(clock_s, time_limit_s, relaxations=False))
        if answer.status is SearchStatus.INFEASIBLE:
            job_of = {literal: job for job, literal in met.items()}
            return Verdict(True, core=tuple(job_of[k] for k in answer.core) or tuple(ends))
        if answer.values is None:
            return Verdict(False)
        speeds = {job: [IDLE] * (end + 1) for job, end in ends.items()}
        for (job, t), own in runs.items():
            for speed, run in enumerate(own):
                if answer.values[run]:
                    speeds[job][t] = speed
        return Verdict(True, {job: self.until_complete(job, one) for job, one in speeds.items()})

    def _add_job(
        self, program: WholeProgram, runs: dict[tuple[int, int], list[int]], job: int, end: int
    ) -> int:
        """Add the rounds of a job up to a deadline; the literal that it is then complete."""
        weights, whole = self.weights(job)
        work: dict[int, int] = {}
        for t in range(int(self.jobs.first[job]), end + 1):
            own = runs[job, t] = [program.binary() for _ in self.jobs.speeds[job]]
            program.single.append(own)
            work |= dict(zip(own, weights, strict=True))
        met = program.binary()
        program.row(work, low=whole, only_if=met)
        return met

    def _add_capacity(
        self, program: WholeProgram, runs: Mapping[tuple[int, int], list[int]]
    ) -> None:
        """Add the rows of capacity of every round."""
        for t in range(self.jobs.rounds):
            here = [(job, runs[job, t]) for job in range(self.jobs.jobs) if (job, t) in runs]
            for row, room in enumerate(self.capacity_rows.capacity.tolist()):
                terms = {
                    run: int(self.capacity_rows.gpus[job][speed, row])
                    for job, own in here
                    for speed, run in enumerate(own)
                    if self.capacity_rows.gpus[job][speed, row]
                }
                if terms:
                    program.row(terms, high=int(room))

    def weights(self, job: int) -> tuple[list[int], int]:
        """Work of a round at each speed of a job and of the whole job; only where usable."""
        weights = self._weights[job]
        assert weights is not None
        return weights

    def until_complete(self, job: int, speeds: list[int]) -> Speeds:
        """A schedule, given as speeds by round, up to the round in which it completes the job."""
        weights, whole = self.weights(job)
        done = 0
        for t, speed in enumerate(speeds):
            done += 0 if speed == IDLE else weights[speed]
            if done >= whole:
                return tuple(speeds[: t + 1])
        return tuple(speeds)


def _weights(jobs: RoundJobs, job: int, states: States) -> tuple[list[int], int] | None:
    """Weights of speeds and of the whole job, such that speeds complete it iff theirs reach it."""
    speeds = jobs.speeds[job]
    weights = [int(_SCALE * min(1.0, jobs.utility.round_s / speed.seconds)) for speed in speeds]
    if min(weights, default=1) <= 0:
        return None
    done = _weight_done(states, weights)
    most = int(done.max(initial=0))
    least = [
        int(done[last].min()) + w for last, w in zip(states.last, weights, strict=True) if len(last)
    ]
    whole = min(least, default=most + 1)
    return (weights, whole) if most < whole else None


def _weight_done(states: States, weights: list[int]) -> NDArray[np.int64]:
    """Weight of what is done in every state; a state comes after those that lead to it."""
    done = np.zeros(len(states.before), dtype=np.int64)
    for state, sources in enumerate(states.before.tolist()):
        for speed, source in enumerate(sources):
            if source >= 0:
                done[state] = done[source] + weights[speed]
                break
    return done


# From speeds to GPUs on nodes


def plan_on_nodes(instance: Instance, gpus: NDArray[np.int64]) -> RoundPlan:
    """The plan that gives jobs GPUs of each type, from the first node of the type on.

    Parameters
    ----------
    gpus : ndarray of int, shape (jobs, types, rounds)
        No more of a type in a round than there are.
    """
    runs: list[list[tuple[int, GpusByNode]]] = [[] for _ in gpus]
    cluster = instance.cluster
    nodes = [np.flatnonzero(cluster.type_of_node == r).tolist() for r in range(gpus.shape[1])]
    for t in range(gpus.shape[2]):
        free = cluster.gpus_per_node.tolist()
        for job in np.flatnonzero(gpus[:, :, t].any(axis=1)).tolist():
            held = gpus[job, :, t].tolist()
            pieces = [each for r, some in enumerate(held) for each in in_turn(nodes[r], free, some)]
            for node, some in pieces:
                free[node] -= some
            runs[job].append((t, tuple(sorted(pieces))))
    return RoundPlan(tuple(map(tuple, runs)))


def utility_of(jobs: RoundJobs, gpus: NDArray[np.int64]) -> float:
    """Utility of jobs that hold GPUs of each type, shape (jobs, types, rounds), decided in fractions.

    A round counts for a job that holds its gang, at the speed of the slowest type in it.
    """
    total = 0.0
    for job, held in enumerate(gpus):
        done = Fraction(0)
        for t in np.flatnonzero(held.sum(axis=0) == jobs.gang[job]).tolist():
            slowest = float(jobs.seconds[job][held[:, t] > 0].max())
            if t >= jobs.first[job] and np.isfinite(slowest):
                done += Fraction(jobs.utility.round_s) / Fraction(slowest)
            if done >= 1:
                total += float(jobs.utility.values[job, t])
                break
    return total


def gpus_of(jobs: RoundJobs, schedules: Mapping[int, Speeds]) -> NDArray[np.int64]:
    """GPUs of each type, shape (jobs, types, rounds), for jobs that run at given speeds.

    Raises
    ------
    SolverError
        If the GPUs of a round do not suffice.
    """
    gpus = np.zeros((jobs.jobs, jobs.types, jobs.rounds), dtype=np.int64)
    for t in range(jobs.rounds):
        running = {
            job: jobs.speeds[job][speeds[t]].types
            for job, speeds in sorted(schedules.items())
            if t < len(speeds) and speeds[t] != IDLE
        }
        for job, held in _gpus_by_type(jobs, running, t).items():
            gpus[job, :, t] = held
    return gpus


def _gpus_by_type(
    jobs: RoundJobs, running: Mapping[int, tuple[int, ...]], t: int
) -> dict[int, list[int]]:
    """GPUs of each type for each running job: an integral flow from jobs to types they admit."""
    flow = nx.DiGraph()
    for job, types in running.items():
        flow.add_edge("source", ("job", job), capacity=int(jobs.gang[job]))
        for r in types:
            flow.add_edge(("job", job), ("type", r))
            flow.add_edge(("type", r), "sink", capacity=int(jobs.capacity[r]))
    if not running:
        return {}
    demand = sum(int(jobs.gang[job]) for job in running)
    value, flows = nx.maximum_flow(flow, "source", "sink")
    if value != demand:
        raise SolverError(f"round {t}: jobs ask for {demand} GPUs, only {value} can be given")
    return {
        job: [int(flows[("job", job)].get(("type", r), 0)) for r in range(jobs.types)]
        for job in running
    }
