"""Programmes that add up values: total throughput, throughput per price, SLOs. Gavel (OSDI'20), sec. 4.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.models import gavel
from shadowprice.solvers.gavel.merge import Merged, merge
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.workspace import Solved, Workspace
from shadowprice.solvers.programs.compile import SolverOptions


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
    """Fractions of time, the value of the objective and solved duals."""

    x: FloatArray
    y: FloatArray
    objective: float


def highest_total(rates: Rates, values: Values, least: FloatArray, workspace: Workspace) -> Total:
    """Maximise the total value with at least these throughputs [steps/s]."""
    together = merge(rates, values.job, least) if not len(rates.pairs) else None
    if together is not None:
        rows, worth, least = _of_kinds(together, values, least)
        solved = workspace.solve(gavel.max_total, rows, v=worth.job, f=least)
        x, y = together.spread(solved.x, solved.y)
        return Total(x, y, solved.solution.objective)
    solved = workspace.solve(gavel.max_total, rates, None, **_params(values), f=least)
    return Total(solved.x, solved.y, solved.solution.objective)


def highest_ratio(
    rates: Rates, values: Values, costs: Values, least: FloatArray, workspace: Workspace
) -> Total:
    """Maximise total value over total cost with at least these throughputs [steps/s]."""
    params = _params(values) | _params(costs, "c")
    solved = workspace.solve(gavel.min_cost, rates, None, **params, f=least)
    scale = float(solved.value("k"))
    return Total(solved.x / scale, solved.y / scale, solved.solution.objective)


def kept_slos(rates: Rates, least: FloatArray, workspace: Workspace) -> FloatArray:
    """The least throughputs that are kept: as many as can hold together; 0 for the others."""
    alone_impossible = least > rates.best * (1.0 + 1e-9)
    possible = np.where(alone_impossible, 0.0, least)
    solved: Solved = workspace.solve(
        gavel.most_slos, rates, SolverOptions(time_limit_s=60.0), f=possible
    )
    kept = solved.value("z") > 0.5
    return np.where(kept, possible, 0.0)


def _params(values: Values, letter: str = "v") -> dict[str, FloatArray]:
    given = {letter: values.job}
    return given | {letter + "2": values.pair} if len(values.pair) else given


def _of_kinds(
    together: Merged, values: Values, least: FloatArray
) -> tuple[Rates, Values, FloatArray]:
    sample, rates = together.sample, together.rates
    return rates, Values(values.job[sample], values.pair), least[sample] * rates.count
