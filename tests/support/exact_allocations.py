"""What Gavel's policies maximise, of an allocation that was printed and at best, in rationals.

Written from the formulas of the policies' pages; it shares no code with the package but the problem's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem
from support.exact_simplex import largest

Row = list[Fraction]


@dataclass(frozen=True)
class ExactProblem:
    """A problem in rationals; a column a job, or a pair, and a type.

    Parameters
    ----------
    throughput : list of list of Fraction
        Steps per second that a unit of time in each column gives each job; shape (jobs, columns).
    time, gpus : list of list of Fraction
        Of each job and of each accelerator, that a unit of time takes.
    capacity : list of Fraction
        GPUs of each accelerator.
    alone : list of list of Fraction
        Rates of jobs that run alone, shape (jobs, types), as the policy sees them.
    gang, weight, steps, elapsed_s, isolated_s, price : list of Fraction
    """

    throughput: list[Row]
    time: list[Row]
    gpus: list[Row]
    capacity: Row
    alone: list[Row]
    gang: Row
    weight: Row
    steps: Row
    elapsed_s: Row
    isolated_s: Row
    price: Row
    column_type: list[int]
    column_gang: Row

    @classmethod
    def of(cls, problem: AllocationProblem, *, aware: bool, packed: bool) -> ExactProblem:
        """The problem as a policy sees it."""
        n, types = problem.throughput.shape
        rates, pairs = problem.throughput, problem.pairs
        first, second = pairs.throughput_first, pairs.throughput_second
        if not aware:
            j = _taken_for_all(problem)
            column = np.where(rates[:, j] > 0, rates[:, j], rates.max(axis=1))
            rates = np.repeat(column[:, None], types, axis=1)
            first, second = (
                np.repeat(each[:, j : j + 1], types, axis=1) for each in (first, second)
            )
        members = [[(m, rates[m])] for m in range(n)]
        if packed:
            members += [
                [(int(pairs.first[k]), first[k]), (int(pairs.second[k]), second[k])]
                for k in range(len(pairs))
            ]
        columns = [(group, j) for group in members for j in range(types)]
        zero = [Fraction(0)] * len(columns)
        throughput, time = [list(zero) for _ in range(n)], [list(zero) for _ in range(n)]
        gpus = [list(zero) for _ in problem.capacity]
        for c, (group, j) in enumerate(columns):
            for m, rate in group:
                throughput[m][c], time[m][c] = Fraction(float(rate[j])), Fraction(1)
            gpus[problem.accelerators[j]][c] = Fraction(int(problem.gpus[group[0][0]]))
        return cls(
            throughput,
            time,
            gpus,
            _exact(problem.capacity),
            [_exact(row) for row in rates],
            _exact(problem.gpus),
            _exact(problem.weight),
            _exact(problem.steps),
            _exact(problem.elapsed_s),
            _exact(problem.isolated_s),
            _exact(problem.price),
            [j for _, j in columns],
            [Fraction(int(problem.gpus[group[0][0]])) for group, _ in columns],
        )

    def steps_per_s(self, alone: NDArray[np.float64], shared: NDArray[np.float64]) -> Row:
        """Throughput of each job under an allocation."""
        x = _exact(np.concatenate((alone.reshape(-1), shared.reshape(-1))))
        return [dot(row, x) for row in self.throughput]

    def fair_share(self) -> Row:
        """Steps per second of each job on a random GPU of the cluster, over its gang."""
        total = sum(self.capacity, Fraction(0))
        return [
            dot(row, self.capacity) / total / gang
            for row, gang in zip(self.alone, self.gang, strict=True)
        ]

    def isolated(self) -> Row:
        """Steps per second of each job in one n-th of every type."""
        found = []
        for row, gang in zip(self.alone, self.gang, strict=True):
            shares = [gpus / len(self.gang) / gang for gpus in self.capacity]
            most = max(sum(shares, Fraction(0)), Fraction(1))
            found.append(dot(row, shares) / most)
        return found

    def level(self, need: Sequence[Fraction]) -> Fraction:
        """Largest t at which every job has need times t."""
        rows = [[*row, Fraction(0)] for row in (*self.time, *self.gpus)]
        sides = [Fraction(1)] * len(self.time) + self.capacity
        for row, each in zip(self.throughput, need, strict=True):
            rows.append([*(-entry for entry in row), each])
            sides.append(Fraction(0))
        found = largest([Fraction(0)] * len(self.throughput[0]) + [Fraction(1)], rows, sides)
        assert found is not None
        return found

    def total(self, value: Sequence[Fraction], least: Sequence[Fraction] = ()) -> Fraction | None:
        """Largest value with at least these throughputs; None if they cannot be had together."""
        rows = [*self.time, *self.gpus]
        sides = [Fraction(1)] * len(self.time) + self.capacity
        for row, each in zip(self.throughput, least, strict=False):
            rows.append([-entry for entry in row])
            sides.append(-each)
        return largest(value, rows, sides)

    def value_of_steps(self, weight: Sequence[Fraction] | None = None) -> Row:
        """Value of a unit of time in each column, where a step of a job is worth its weight."""
        weight = [Fraction(1)] * len(self.throughput) if weight is None else weight
        return [
            sum((w * row[c] for w, row in zip(weight, self.throughput, strict=True)), Fraction(0))
            for c in range(len(self.column_type))
        ]


def dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Sum of products."""
    return sum((a * b for a, b in zip(one, other, strict=True) if a and b), Fraction(0))


def _exact(values: NDArray[np.float64] | NDArray[np.int64]) -> Row:
    return [Fraction(float(value)) for value in values.tolist()]


def _taken_for_all(problem: AllocationProblem) -> int:
    """The fastest type of most jobs, ties to the nearest to each job's fastest."""
    best = problem.throughput.max(axis=1, keepdims=True)
    share = problem.throughput / best
    types = range(share.shape[1])
    return max(types, key=lambda k: ((share[:, k] == 1).sum(), share[:, k].sum(), k))
