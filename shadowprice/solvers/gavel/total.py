"""Programmes that add up values: total throughput, throughput per price, SLOs. Gavel (OSDI'20), sec. 4.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.workspace import Solved
from shadowprice.solvers.programs.solution import SolverOptions


@dataclass(frozen=True, eq=False)
class Values:
    """Value or cost of a unit of time.

    Parameters
    ----------
    job : ndarray, shape (rows, types)
        Of each job alone.
    pair : ndarray, shape (pairs, types)
        Of each pair.
    """

    job: FloatArray
    pair: FloatArray

    @classmethod
    def of_throughput(cls, rates: Rates, weight: FloatArray) -> Values:
        """A value for every step: weight, shape (rows, types), times the throughput."""
        pairs = rates.pairs
        both = (
            weight[pairs.first] * pairs.throughput_first
            + weight[pairs.second] * pairs.throughput_second
        )
        return cls(weight * rates.alone, both)

    @classmethod
    def of_gpus(cls, rates: Rates, price: FloatArray) -> Values:
        """A price of each type for every GPU held; a pair pays once."""
        gang = rates.gang[:, None]
        return cls(gang * price, gang[rates.pairs.first] * price)


@dataclass(frozen=True, eq=False)
class Total:
    """Fractions of time, the value of the objective, and the bound that all prices prove."""

    x: FloatArray
    y: FloatArray
    objective: float
    bound: float


def highest_total(programme: Programme, values: Values, least: FloatArray) -> Total:
    """Maximise the total value with at least these throughputs [steps/s]."""
    solved = programme.solve(**_params(values), f=least)
    return _total(programme, solved, 1.0)


def highest_ratio(programme: Programme, values: Values, costs: Values, least: FloatArray) -> Total:
    """Maximise total value over total cost with at least these throughputs [steps/s]."""
    solved = programme.solve(**_params(values), **_params(costs, "c"), f=least)
    return _total(programme, solved, float(solved.value("k")))


def kept_slos(programme: Programme, least: FloatArray) -> FloatArray:
    """The least throughputs that are kept: as many as can hold together; 0 for the others."""
    alone_impossible = least > programme.rates.best * (1.0 + 1e-9)
    possible = np.where(alone_impossible, 0.0, least)
    solved = programme.solve(SolverOptions(time_limit_s=60.0), f=possible)
    kept = solved.value("z") > 0.5
    return np.where(kept, possible, 0.0)


def _total(programme: Programme, solved: Solved, scale: float) -> Total:
    x, y = programme.allocation(solved)
    solution = solved.solution
    return Total(x / scale, y / scale, solution.objective, solution.bound)


def _params(values: Values, letter: str = "v") -> dict[str, FloatArray]:
    given = {letter: values.job}
    return given | {letter + "2": values.pair} if len(values.pair) else given
