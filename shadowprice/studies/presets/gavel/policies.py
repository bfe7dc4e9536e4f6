"""Policies of Gavel's simulator, with the original's quirks; and what a policy is.

Source: github.com/stanford-futuredata/gavel at c4fa400, scheduler/policies. An allocation function
takes an :class:`AllocationProblem` and returns fractions of time, shape (jobs + pairs, types): the
jobs in order, then the problem's pairs in order. Types are in order of name.

Quirks kept, here only: ``fifo`` draws a GPU type at random and then uses the last one it looked
at, without asking whether it has room; ``gandiva`` adds the normalised throughputs of a pair over
all types before it compares them with 1, and draws new partners for unpaired jobs at every call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.solvers.registry import allocation

Allocation = NDArray[np.float64]
Allocate = Callable[[AllocationProblem], Allocation]
"""Fractions of time, shape (jobs + pairs, types)."""

ThroughputView = Callable[[NDArray[np.float64], tuple[str, ...]], NDArray[np.float64]]
"""Throughputs that a policy sees, shape (jobs, types), of all and the names of the types."""

REFERENCE_TYPE = "v100"
SMALLEST_RATE = 1e-10
"""Throughput AlloX assumes where there is none [steps/s]."""


def as_measured(rates: NDArray[np.float64], types: tuple[str, ...]) -> NDArray[np.float64]:
    """The throughputs themselves: the original's policies named perf, and packed ones."""
    return rates


def all_alike(rates: NDArray[np.float64], types: tuple[str, ...]) -> NDArray[np.float64]:
    """1 step/s everywhere: the original's max-min fairness that knows nothing of GPU types."""
    return np.ones_like(rates)


def as_on_reference(rates: NDArray[np.float64], types: tuple[str, ...]) -> NDArray[np.float64]:
    """The throughput on a V100 on every type: finish-time fairness and makespan without types."""
    if REFERENCE_TYPE not in types:
        raise InputError(
            f"preset gavel: the cluster has types {', '.join(types)}, expected {REFERENCE_TYPE} "
            "among them: this policy takes its throughput for all"
        )
    return np.repeat(rates[:, [types.index(REFERENCE_TYPE)]], len(types), axis=1)


@dataclass(frozen=True)
class PublishedPolicy:
    """A policy of the original, for one run: it may remember its earlier answers.

    Parameters
    ----------
    name : str
        Name on the original's command line.
    allocate : callable
        The allocation function.
    pairs : bool
        Whether jobs may share GPUs.
    shuffles : bool
        Whether the order in which GPU types are served is drawn anew each round: policies whose
        name in the original has neither ``Perf`` nor ``Packing``.
    only_positive : bool
        Whether only jobs with a positive priority run; others take left-over GPUs too.
    view : callable
        Throughputs that the policy sees.
    """

    name: str
    allocate: Allocate
    pairs: bool = False
    shuffles: bool = False
    only_positive: bool = False
    view: ThroughputView = as_measured


def isolated(problem: AllocationProblem) -> Allocation:
    """``C_j / (n s_m)``, rows scaled down to at most 1; nothing for pairs."""
    shares = isolated_shares(problem)
    return np.concatenate((shares, np.zeros((len(problem.pairs), len(problem.gpu_types)))))


PACKING_GAIN = 1.5
"""Two jobs share GPUs if their throughputs relative to running alone add up to more."""


@dataclass
class PublishedFifo:
    """A job keeps its type until it ends; its type should be random.

    Quirk of the original, kept: the type used is not the one drawn but the last, by name, that still
    has GPUs left, whether or not the job fits, so that it may be oversubscribed without limit.
    When it is used up exactly, the type that was drawn is the one struck off the list.
    """

    seed: int
    type_of: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def __call__(self, problem: AllocationProblem) -> Allocation:
        """Hand the types of ended jobs to the head of the queue, then go down the queue."""
        row = {name: k for k, name in enumerate(problem.id.tolist())}
        queue = [k for name, k in row.items() if name not in self.type_of]
        left = problem.capacity.astype(np.int64).tolist()
        gpus, rate = problem.gpus.tolist(), problem.throughput
        names = problem.id.tolist()
        for name, gpu_type in list(self.type_of.items()):
            if name in row:
                left[gpu_type] -= gpus[row[name]]
                continue
            if queue and gpus[queue[0]] <= left[gpu_type] and rate[queue[0], gpu_type] > 0:
                job = queue.pop(0)
                self.type_of[names[job]] = gpu_type
                left[gpu_type] -= gpus[job]
            del self.type_of[name]
        open_types = [gpu_type for gpu_type, free in enumerate(left) if free > 0]
        while queue and open_types:
            job = queue.pop(0)
            room = [k for k, gpu_type in enumerate(open_types) if left[gpu_type] >= gpus[job]]
            if not room:
                break
            drawn = room[self.random.randrange(len(room))]
            gpu_type = open_types[-1]
            if rate[job, gpu_type] > 0:
                self.type_of[names[job]] = gpu_type
                left[gpu_type] -= gpus[job]
                if left[gpu_type] == 0:
                    open_types.pop(drawn)
        # The original goes through its jobs in order of arrival, not of allocation.
        self.type_of = dict(sorted(self.type_of.items(), key=lambda item: row[item[0]]))
        table = np.zeros((len(problem) + len(problem.pairs), len(left)))
        for name, gpu_type in self.type_of.items():
            table[row[name], gpu_type] = 1.0
        return table


@dataclass(frozen=True)
class FifoByRate:
    """Every job, oldest first, on the fastest type with room; the first that fits nowhere blocks.

    Parameters
    ----------
    packs : bool
        Whether the next jobs in the queue then share the GPUs of running ones, each with the one
        that gains most, as long as the gain is more than :data:`PACKING_GAIN`.
    """

    packs: bool = False

    def __call__(self, problem: AllocationProblem) -> Allocation:
        """Forget the last allocation and start from the head of the queue."""
        left = problem.capacity.copy()
        type_of: dict[int, int] = {}
        table = np.zeros((len(problem) + len(problem.pairs), len(left)))
        queue = list(range(len(problem)))
        while queue and (left > 0).any():
            job = queue.pop(0)
            room = np.flatnonzero((left >= problem.gpus[job]) & (left > 0))
            if not len(room):
                break
            gpu_type = int(room[np.argmax(problem.throughput[job, room])])
            if problem.throughput[job, gpu_type] > 0:
                type_of[job] = gpu_type
                left[gpu_type] -= problem.gpus[job]
        if self.packs:
            for row, gpu_type in self._pack(problem, queue, type_of):
                table[row, gpu_type] = 1.0
        for job, gpu_type in type_of.items():
            table[job, gpu_type] = 1.0
        return table

    def _pack(
        self, problem: AllocationProblem, queue: list[int], type_of: dict[int, int]
    ) -> list[tuple[int, int]]:
        """Rows and types of the pairs made; their first members leave ``type_of``."""
        rows, packed = _rows_of_pairs(problem), []
        for job in queue:
            best, best_gain = None, PACKING_GAIN
            for other, gpu_type in type_of.items():
                key = (min(job, other), max(job, other))
                gain = _gain(problem, rows[key], gpu_type) if key in rows else 0.0
                if gain > best_gain:
                    best, best_gain = other, gain
            if best is None:
                break
            key = (min(job, best), max(job, best))
            packed.append((rows[key], type_of.pop(best)))
        return packed


def _rows_of_pairs(problem: AllocationProblem) -> dict[tuple[int, int], int]:
    """Row of an allocation for each pair of jobs."""
    ends = zip(problem.pairs.first.tolist(), problem.pairs.second.tolist(), strict=True)
    return {pair: len(problem) + k for k, pair in enumerate(ends)}


def _gain(problem: AllocationProblem, row: int, gpu_type: int) -> float:
    """Sum of the throughputs of a pair relative to running alone; zero ones do not count."""
    pairs, pair, total = problem.pairs, row - len(problem), 0.0
    for job, rates in (
        (pairs.first[pair], pairs.throughput_first),
        (pairs.second[pair], pairs.throughput_second),
    ):
        if rates[pair, gpu_type] > 0:
            total += rates[pair, gpu_type] / problem.throughput[job, gpu_type]
    return total


@dataclass
class PublishedAllox:
    """Minimum-cost assignment of waiting jobs to positions in the queues of single GPUs.

    Cost k x (steps left / rate) + (time since arrival) for the k-th place from the end. The first
    job of every GPU runs, is never preempted, and remembered. Le et al., EuroSys'20, as in the original.
    """

    running: dict[str, int] = field(default_factory=dict)

    def __call__(self, problem: AllocationProblem) -> Allocation:
        """Keep who runs; assign the others; O(waiting^3) or more."""
        if (problem.gpus != 1).any():
            job = int((problem.gpus != 1).argmax())
            raise InputError(
                f"policy allox: job {problem.id[job]!r} needs {problem.gpus[job]} GPUs, expected 1"
            )
        names = problem.id.tolist()
        self.running = {
            name: gpu_type for name, gpu_type in self.running.items() if name in set(names)
        }
        free = problem.capacity.astype(np.int64)
        np.subtract.at(free, np.array(list(self.running.values()), dtype=np.int64), 1)
        worker = np.repeat(np.arange(len(free)), free)
        waiting = np.array([k for k, name in enumerate(names) if name not in self.running], int)
        waiting = waiting[np.argsort(-problem.elapsed_s[waiting], kind="stable")]
        if len(waiting) and len(worker):
            for job, gpu_type in self._first(problem, waiting, worker):
                self.running[names[job]] = gpu_type
        table = np.zeros((len(problem) + len(problem.pairs), len(free)))
        for row, name in enumerate(names):
            if name in self.running:
                table[row, self.running[name]] = 1.0
        return table

    def _first(
        self, problem: AllocationProblem, waiting: NDArray[np.int64], worker: NDArray[np.int64]
    ) -> list[tuple[int, int]]:
        """The job that starts on each worker, and the worker's type."""
        rate = problem.throughput[waiting][:, worker]
        run_s = problem.steps[waiting][:, None] / np.where(rate == 0.0, SMALLEST_RATE, rate)
        places = np.arange(1, len(waiting) + 1)
        cost = (places[None, :, None] * run_s[:, None, :]).reshape(len(waiting), -1)
        rows, columns = linear_sum_assignment(cost + problem.elapsed_s[waiting][:, None])
        last: dict[int, tuple[int, int]] = {}
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            place, on = divmod(column, len(worker))
            if on not in last or place > last[on][0]:
                last[on] = (place, row)
        return [(int(waiting[row]), int(worker[on])) for on, (_, row) in sorted(last.items())]


@dataclass
class PublishedGandiva:
    """Equal shares; where more GPUs are wanted than there are, of random pairs of equal gangs."""

    seed: int
    partner: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def __call__(self, problem: AllocationProblem) -> Allocation:
        """Drop pairs that left or lose, draw new ones, share equally."""
        names, pairs, jobs = problem.id.tolist(), problem.pairs, len(problem)
        row = {name: k for k, name in enumerate(names)}
        pair_row = _rows_of_pairs(problem)
        gain = _summed_gain(problem)
        self._forget(row, pair_row, gain)
        rows = list(range(jobs))
        if problem.gpus.sum() > problem.capacity.sum():
            self._draw(names, problem.gpus, row)
            # A set: both members of a pair name the same row.
            rows = sorted(
                {_row(name, other, row, pair_row) for name, other in self.partner.items()}
            )
        table = np.zeros((jobs + len(pairs), len(problem.capacity)))
        gpus = np.concatenate((problem.gpus, problem.gpus[pairs.first]))
        table[rows] = problem.capacity / max(len(rows), 1) / gpus[rows][:, None]
        share: Allocation = table / np.maximum(table.sum(axis=1), 1.0)[:, None]
        return share

    def _forget(
        self,
        row: Mapping[str, int],
        pair_row: Mapping[tuple[int, int], int],
        gain: NDArray[np.float64],
    ) -> None:
        gone: set[str] = set()
        for name, other in self.partner.items():
            there = name in row and (other is None or other in row)
            at = _row(name, other, row, pair_row) if there else 0
            if not there or gain[at] < 1.0:
                gone.update({name} if other is None else {name, other})
        for name in gone:
            self.partner.pop(name, None)

    def _draw(self, names: list[str], gpus: NDArray[np.int64], row: Mapping[str, int]) -> None:
        single = [name for name in names if name not in self.partner]
        for _ in range(len(single)):
            if len(single) < 2:
                break
            one, other = self.random.sample(single, 2)
            if gpus[row[one]] == gpus[row[other]]:
                single.remove(one)
                single.remove(other)
                self.partner[one], self.partner[other] = other, one
        self.partner.update(dict.fromkeys(single))


def _row(
    name: str,
    other: str | None,
    row: Mapping[str, int],
    pair_row: Mapping[tuple[int, int], int],
) -> int:
    if other is None:
        return row[name]
    one, two = sorted((row[name], row[other]))
    return pair_row[one, two]


def _summed_gain(problem: AllocationProblem) -> NDArray[np.float64]:
    """Throughputs of each row relative to running alone, added over types; 0 for a single job."""
    pairs = problem.pairs
    gain = np.zeros(len(problem) + len(pairs))
    together = (pairs.throughput_first > 0) & (pairs.throughput_second > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = pairs.throughput_first / problem.throughput[pairs.first]
        second = pairs.throughput_second / problem.throughput[pairs.second]
    added = (first + second).sum(axis=1)
    gain[len(problem) :] = np.where(together.all(axis=1), added, 0.0)
    return gain


# Policies that solve programmes: ours, which see what the original's see. An optimal allocation is rarely
# the only one, and which one a solver returns moves the mean completion time by a few per cent. The
# original's default solver ends in the interior of the optimal face, so does ours here.


_OURS: Mapping[str, tuple[str, ThroughputView]] = {
    "max_min_fairness": ("max_min_fairness:aware=true", all_alike),
    "max_min_fairness_perf": ("max_min_fairness:aware=true", as_measured),
    "max_min_fairness_packed": ("max_min_fairness:aware=true,packed=true", as_measured),
    "max_min_fairness_water_filling": ("water_filling:aware=true", all_alike),
    "max_min_fairness_water_filling_perf": ("water_filling:aware=true", as_measured),
    "finish_time_fairness": ("finish_time_fairness:aware=true", as_on_reference),
    "finish_time_fairness_perf": ("finish_time_fairness:aware=true", as_measured),
    "finish_time_fairness_packed": (
        "finish_time_fairness:aware=true,packed=true,weighted=true",
        as_measured,
    ),
    "min_total_duration": ("min_total_duration:aware=true", as_on_reference),
    "min_total_duration_perf": ("min_total_duration:aware=true", as_measured),
    "min_total_duration_packed": ("min_total_duration:aware=true,packed=true", as_measured),
    "max_sum_throughput_perf": ("max_sum_throughput:aware=true", as_measured),
}
"""The original's name, our policy, and the throughputs that it sees."""


def _allocate(ours: str) -> Allocate:
    policy = allocation(ours)
    workspace = Workspace(SolverOptions(time_limit_s=600.0, structured_jobs=1))

    def allocate(problem: AllocationProblem) -> Allocation:
        found = policy.allocate(problem, workspace)
        return np.concatenate((found.alone, found.shared))

    return allocate


def _by_programme(name: str) -> Callable[[int], PublishedPolicy]:
    ours, view = _OURS[name]
    packed = allocation(ours).packed
    agnostic = view is not as_measured

    def make(seed: int) -> PublishedPolicy:
        return PublishedPolicy(name, _allocate(ours), pairs=packed, shuffles=agnostic, view=view)

    return make


POLICIES: Mapping[str, Callable[[int], PublishedPolicy]] = {
    "fifo": lambda seed: PublishedPolicy(
        "fifo", PublishedFifo(seed), shuffles=True, only_positive=True
    ),
    "fifo_perf": lambda seed: PublishedPolicy("fifo_perf", FifoByRate(), only_positive=True),
    "fifo_packed": lambda seed: PublishedPolicy(
        "fifo_packed", FifoByRate(packs=True), pairs=True, only_positive=True
    ),
    "isolated": lambda seed: PublishedPolicy("isolated", isolated, shuffles=True),
    "allox": lambda seed: PublishedPolicy("allox", PublishedAllox()),
    "gandiva": lambda seed: PublishedPolicy("gandiva", PublishedGandiva(seed), pairs=True),
}
"""Those without a programme, by the original's name; each takes the seed of the run."""

ALL_POLICIES = {**POLICIES, **{name: _by_programme(name) for name in _OURS}}
"""All of the original's."""
