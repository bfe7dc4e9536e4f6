"""Programmes that add up values: total throughput, throughput per price, SLOs. Gavel (OSDI'20), sec. 4.2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.models import gavel
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.reached import (
    CLOSE,
    SAME,
    TOO_FAR_APART,
    completed,
    off,
    overfull,
    usable,
)
from shadowprice.solvers.gavel.workspace import Solved
from shadowprice.solvers.programs.solution import Infeasible, SolverOptions, Unbounded

PUBLISHED = (gavel.max_total, gavel.min_cost)
"""Models of which it is known what an allocation is worth."""


Bound: TypeAlias = Callable[[Solved], float]
"""What no allocation can beat, by the prices of a solved model."""

ROUNDING = 2.0**-52
"""Share of a sum of absolute terms, for each operation, that is more than their rounding errors."""

_OPERATIONS = 16
"""More than the operations of a column's earnings less its charges."""


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

    def there(self, rates: Rates) -> Values:
        """The same values, none on types that have no GPUs."""
        there = rates.workers[list(rates.accelerators)] > 0
        return Values(self.job * there, self.pair * there)

    @classmethod
    def of_gpus(cls, rates: Rates, price: FloatArray) -> Values:
        """A price of each type for every GPU held; a pair pays once."""
        gang = rates.gang[:, None]
        return cls(gang * price, gang[rates.pairs.first] * price)


@dataclass(frozen=True, eq=False)
class Total:
    """Fractions of time, the value of the objective, and the bound that all prices prove.

    Parameters
    ----------
    x, y : ndarray
        Of jobs, and of pairs.
    objective, bound : float
    reached : bool
        Whether jobs have the throughputs they must have, evaluated from the fractions.
    """

    x: FloatArray
    y: FloatArray
    objective: float
    bound: float
    reached: bool = True


def highest_total(programme: Programme, values: Values, least: FloatArray) -> Total:
    """Maximise the total value with at least these throughputs [steps/s]."""

    def worth(x: FloatArray, y: FloatArray) -> float:
        return _sum(values, x, y)

    def bound(solved: Solved) -> float:
        return solved.solution.bound

    return _highest(programme, values, {}, least, worth, lambda: _sizes(programme), bound)


def highest_ratio(programme: Programme, values: Values, costs: Values, least: FloatArray) -> Total:
    """Maximise total value over total cost with at least these throughputs [steps/s]."""

    def worth(x: FloatArray, y: FloatArray) -> float:
        cost = _sum(costs, x, y)
        return _sum(values, x, y) / cost if cost > 0 else 0.0

    def sizes() -> dict[str, FloatArray]:
        """Those of fractions times k, which is about one over the cost of what is worth its price most."""
        open_ = usable(programme.rates) > 0
        ratio = np.where(open_, values.job / costs.job, 0.0)
        k = 1.0 / float(costs.job.flat[int(ratio.argmax())])
        most = {"x": 1.0 / costs.job, "y": 1.0 / costs.pair}
        found = {name: np.minimum(size * k, most[name]) for name, size in _sizes(programme).items()}
        return {**found, "k": np.array([k])}

    def bound(solved: Solved) -> float:
        if not len(
            solved.solution.duals
        ):  # A solver without prices, whose word is not called certified.
            return solved.solution.bound
        priced = ratio_bound(programme.rates, values, costs, least, Charges.of(solved))
        return solved.solution.bound if off(solved.solution.bound, priced) <= SAME else priced

    return _highest(programme, values, _params(costs, "c"), least, worth, sizes, bound, scale="k")


def _highest(
    programme: Programme,
    values: Values,
    further: dict[str, FloatArray],
    least: FloatArray,
    worth: Callable[[FloatArray, FloatArray], float],
    sizes: Callable[[], dict[str, FloatArray]],
    bound: Bound,
    scale: str = "",
) -> Total:
    """An answer, or one in units in which columns are about 1, if the first is off its bound or there is none."""
    rates, params = programme.rates, {**_params(values), **further}
    first: Total | None = None
    reason: SolverError | None = None
    try:
        first = _total(programme, programme.solve(f=least, **params), least, worth, bound, scale)
        if off(first.objective, first.bound) <= CLOSE:
            return first
    except (Infeasible, Unbounded) as error:
        reason = error
    try:
        there, worth_there = programme, values
        if programme.build in PUBLISHED:
            # A rounding error of time on a type without GPUs is much where values there are: they are left out.
            there, worth_there = replace(programme, rates=rates.there), values.there(rates)
        solved = there.solve(None, sizes(), f=least, **{**params, **_params(worth_there)})
    except SolverError as error:
        if first is None:
            told = error if isinstance(error, Infeasible) else reason
            raise _no_answer(programme, told) from None
        return first
    again = _total(programme, solved, least, worth, bound, scale)
    if programme.build in PUBLISHED and off(again.objective, again.bound) <= CLOSE:
        programme.workspace.vouch()
    if first is None:
        return again
    return min(again, first, key=lambda each: off(each.objective, each.bound))


def _no_answer(programme: Programme, reason: SolverError | None) -> SolverError:
    """The error a solver gave, unless it cannot be true: no allocation is worth more than its best share."""
    if (isinstance(reason, Unbounded) and programme.build in PUBLISHED) or reason is None:
        return SolverError(TOO_FAR_APART)
    return reason


@dataclass(frozen=True, eq=False)
class Charges:
    """Prices of the rows of a ratio, none below 0.

    Parameters
    ----------
    time, slo : ndarray, shape (rows,)
    workers : ndarray, shape (accelerators,)
    """

    time: FloatArray
    workers: FloatArray
    slo: FloatArray

    @classmethod
    def of(cls, solved: Solved) -> Charges:
        """Those of a solved model; multipliers of the wrong sign are rounding."""
        above = np.isfinite(solved.compiled.program.row_upper)

        def price(name: str) -> FloatArray:
            row = solved.compiled.place(solved.model.component(name))
            duals = solved.solution.duals[row]
            return np.nan_to_num(np.maximum(np.where(above[row], duals, -duals), 0.0), posinf=0.0)

        return cls(price("time"), price("workers"), price("slo"))


def ratio_bound(
    rates: Rates, values: Values, costs: Values, least: FloatArray, charges: Charges
) -> float:
    r"""A ratio that no allocation can beat, by any prices and with rounding errors counted.

    Multipliers cannot bound it by the model's own rows alone, for its scale k has no bound. Prices q of time, p of
    GPUs and w of throughputs that must be had, with :math:`\sum_m q_m + \sum_a p_a W_a \le \sum_m w_m f_m`, cost an
    allocation nothing in sum, so none earns more per cost than the best column does after it has paid them.
    """
    accelerators = list(rates.accelerators)
    there = rates.workers[accelerators] > 0
    charged = float(charges.time.sum() + charges.workers @ rates.workers)
    earned = float(charges.slo @ least)
    slack = ROUNDING * (2 * rates.rows + len(rates.workers) + _OPERATIONS)
    part = min(1.0, earned / charged * (1.0 - slack)) if charged > 0 else 0.0
    time, workers = part * charges.time, part * charges.workers[accelerators] * there
    pairs = rates.pairs

    def best(value: FloatArray, cost: FloatArray, gain: FloatArray, charge: FloatArray) -> float:
        size = value + gain + charge
        net = np.where(
            there, (value + gain - charge + ROUNDING * _OPERATIONS * size) / cost, -np.inf
        )
        return float(net.max(initial=-np.inf))

    of_job = best(
        values.job,
        costs.job,
        charges.slo[:, None] * rates.alone,
        time[:, None] + rates.gang[:, None] * workers,
    )
    of_pair = best(
        values.pair,
        costs.pair,
        charges.slo[pairs.first][:, None] * pairs.throughput_first
        + charges.slo[pairs.second][:, None] * pairs.throughput_second,
        (time[pairs.first] + time[pairs.second])[:, None]
        + rates.gang[pairs.first][:, None] * workers,
    )
    return max(of_job, of_pair)


def _sizes(programme: Programme) -> dict[str, FloatArray]:
    """Sizes of x, and of y: as large as GPUs allow."""
    rates = programme.rates
    room = np.maximum(usable(rates), 1e-60)
    sizes = {"x": room}
    if len(rates.pairs):
        sizes["y"] = room[rates.pairs.first]
    return sizes


def _sum(values: Values, x: FloatArray, y: FloatArray) -> float:
    return float((values.job * x).sum() + (values.pair * y).sum())


def attainable_slos(
    programme: Programme, least: FloatArray, *, relative: bool = False
) -> FloatArray:
    """The least throughputs that are kept: as many as can hold together; 0 for the others.

    Parameters
    ----------
    relative : bool
        Whether each job's throughputs are counted in units of what it must have.
    """
    alone_impossible = least > programme.rates.best_there * (1.0 + 1e-9)
    possible = np.where(alone_impossible, 0.0, least)
    asked = possible
    if relative:
        unit = np.where(possible > 0, possible, programme.rates.best)
        programme = replace(programme, rates=programme.rates.in_units(unit))
        asked = possible / unit
    solved = programme.solve(SolverOptions(time_limit_s=60.0), f=asked)
    kept = solved.value("z") > 0.5
    return np.where(kept, possible, 0.0)


def _total(
    programme: Programme,
    solved: Solved,
    least: FloatArray,
    worth: Callable[[FloatArray, FloatArray], float],
    bound: Bound,
    scale: str,
) -> Total:
    """The allocation of a solved model, with the throughputs it must have, and what it is worth."""
    x, y = programme.allocation(solved)
    solution = solved.solution
    published = programme.build in PUBLISHED
    limit = bound(solved) if published else solution.bound
    one = float(solved.value(scale)) if scale else 1.0
    if scale and not one > 0.0:
        return Total(np.zeros_like(x), np.zeros_like(y), 0.0, limit)
    x, y = x / one, y / one
    if not published:
        return Total(x, y, solution.objective, limit)
    rates = programme.rates
    short = (rates.throughput(x, y) < least * (1.0 - SAME)).any()
    if short or overfull(rates, x, y) > SAME:
        x, y = completed(rates, x, y, least)
    earned = worth(x, y)
    reached = (rates.throughput(x, y) >= least * (1.0 - CLOSE)).all()
    value = solution.objective if off(solution.objective, earned) <= SAME else earned
    return Total(x, y, value, limit, bool(reached))


def _params(values: Values, letter: str = "v") -> dict[str, FloatArray]:
    given = {letter: values.job}
    return given | {letter + "2": values.pair} if len(values.pair) else given
