r"""HADAR-cert: every run leaves dual prices that bound the optimum for that very run.

Statement. Rounds :math:`t < T`, nodes :math:`h` of :math:`c_h` GPUs of one type each, jobs :math:`j` with gangs
:math:`W_j` and non-increasing utilities :math:`U_j(f) \ge 0` of completion by the end of round :math:`f`, 0
beyond :math:`T`; a job need not be served. For any prices :math:`k_h(t) \ge 0` and :math:`\mu_j \ge 0` with

.. math:: \mu_j \ge U_j(f_s) - \sum_{t,h} k_h(t) w_{jh}^s(t) \quad \text{for all schedules } s
          \text{ of } j,
   \qquad D = \sum_j \mu_j + \sum_{t,h} c_h k_h(t),

no schedule of all jobs in whole rounds, in which nobody shares GPUs, has a total utility above :math:`D`. Hence
a run that earned :math:`P` is within :math:`D / P` of the offline optimum of such schedules.

Status. Ours; weak duality of the published programme over schedules.

Proof. Sum the inequalities over the jobs of any feasible solution, each with its own s:
:math:`\sum_j U_j \le \sum_j \mu_j + \sum_{t,h} k_h(t) \sum_j w_{jh}^s(t)`, and the last sum is at most
c_h. Q.E.D.

Repair. Prices from floats are rounded down to whole multiples of a power of two, so that all costs are
whole numbers; the payoffs are then computed anew, exactly. What a gang costs in a round at a slowest
type is least with the cheapest GPUs of the types at least as fast; a schedule is a choice of
rounds and types. The largest payoff is found by Pareto labels; where they become too many, an upper
bound is taken instead: until f at least the work is done at the least cost per unit of work, and a
round does at most what the fastest type does (a fractional knapsack). Certificates have prices by type and further
conditions of whole rounds instead of labels (`analysis/certificates/whole_rounds.py`). Any :math:`\lambda k` with
:math:`\lambda \ge 0` is as valid as k; the best of a few is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import VerificationError
from shadowprice.solvers.hadar.commit_schedule import CommittableJob
from shadowprice.solvers.hadar.prices import whole_prices

STATUS = "ours"

_BITS = 30
"""Prices are rounded to 2**-30 of the highest."""
_LABELS = 2_000
SCALES = tuple(Fraction(1, 2**k) for k in range(0, 17, 2))
"""Multiples of the prices that are tried."""


@dataclass(frozen=True)
class Certificate:
    """Dual feasible prices and payoffs, and what follows.

    Parameters
    ----------
    unit : Fraction
        Utility of a price of 1.
    prices : ndarray of int, shape (rounds, nodes)
        k_h(t) in units.
    payoffs : tuple of Fraction
        mu_j.
    primal, dual : Fraction
        P, the utility that the run earned, and D.
    """

    unit: Fraction
    prices: NDArray[np.int64]
    payoffs: tuple[Fraction, ...]
    primal: Fraction
    dual: Fraction

    @property
    def ratio(self) -> Fraction | None:
        """D / P, None where nothing was earned."""
        return self.dual / self.primal if self.primal else None


def certify(
    jobs: Sequence[CommittableJob],
    capacity: NDArray[np.int64],
    type_of_node: NDArray[np.int64],
    prices: NDArray[np.float64],
    primal: Fraction,
    scales: Sequence[Fraction] = SCALES,
) -> Certificate:
    """Repair prices to a dual solution and compare it with what was earned.

    Parameters
    ----------
    jobs
    capacity, type_of_node : ndarray of int, shape (nodes,)
    prices : ndarray, shape (rounds, nodes)
        Prices of a GPU by round and node, of any origin.
    primal
        What was earned.

    Raises
    ------
    VerificationError
        If a price is negative or not finite, a job ends beyond the prices, or D < P.
    """
    _check(jobs, prices)
    whole, exponent = whole_prices(prices, _BITS)
    unit = Fraction(2) ** exponent
    total = int((whole * capacity).sum())
    costs = [_costs(job, capacity, type_of_node, whole) for job in jobs]
    best = min(
        (_at_scale(jobs, costs, whole, total, unit * scale, primal) for scale in scales),
        key=lambda certificate: certificate.dual,
    )
    if best.primal > best.dual:
        raise VerificationError(
            f"hadar: a run earned {float(primal)!r}, more than any schedule of these rounds can; "
            "expected runs that begin and end with rounds"
        )
    return best


def _at_scale(
    jobs: Sequence[CommittableJob],
    costs: Sequence[tuple[list[int], list[list[int | None]]]],
    prices: NDArray[np.int64],
    total: int,
    unit: Fraction,
    primal: Fraction,
) -> Certificate:
    """Certificate of prices in some unit; ``total`` is what all GPUs cost in all rounds."""
    payoffs = tuple(_payoff(job, *cost, unit) for job, cost in zip(jobs, costs, strict=True))
    return Certificate(unit, prices, payoffs, primal, sum(payoffs, Fraction(0)) + total * unit)


def bound(certificate: Certificate) -> Fraction:
    """Upper bound of the total utility of any schedule."""
    return certificate.dual


def check(certificate: Certificate, optimum: Fraction) -> bool:
    """True if an optimum lies between the utility earned and the dual value."""
    return certificate.primal <= optimum <= certificate.dual


def _check(jobs: Sequence[CommittableJob], prices: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(prices) & (prices >= 0)):
        raise VerificationError("hadar: a price is negative or not finite, expected numbers >= 0")
    beyond = [row for row, job in enumerate(jobs) if job.last_round >= len(prices)]
    if beyond:
        raise VerificationError(
            f"hadar: job {beyond[0]} may run until round {jobs[beyond[0]].last_round}, "
            f"but there are prices for {len(prices)} rounds only"
        )


def _costs(
    job: CommittableJob,
    capacity: NDArray[np.int64],
    type_of_node: NDArray[np.int64],
    prices: NDArray[np.int64],
) -> tuple[list[int], list[list[int | None]]]:
    """Units of work by speed, and the cost of the cheapest gang by round and speed; None if none."""
    speeds = job.speeds()
    columns: list[list[int | None]] = []
    for speed in speeds:
        fast = np.array([units >= job.units[speed] for units in job.units])[type_of_node]
        size, row = capacity[fast], prices[job.first_round : job.last_round + 1, fast]
        if size.sum() < job.gpus:
            columns.append([None] * len(row))
            continue
        order = np.argsort(row, axis=1, kind="stable")
        free = size[order]
        taken = np.clip(job.gpus - (free.cumsum(axis=1) - free), 0, free)
        columns.append((taken * np.take_along_axis(row, order, axis=1)).sum(axis=1).tolist())
    return [job.units[speed] for speed in speeds], [
        list(costs) for costs in zip(*columns, strict=True)
    ]


def _payoff(
    job: CommittableJob, units: list[int], costs: list[list[int | None]], unit: Fraction
) -> Fraction:
    """max(0, largest payoff) of a job, or an upper bound of it."""
    best, rounds = Fraction(0), len(costs)
    labels: list[tuple[int, int]] = [(0, 0)]
    for number in range(rounds):
        utility = Fraction(job.value(job.first_round + number))
        if utility <= best:
            break
        if len(labels) > _LABELS:
            return _relaxed(job, units, costs, unit)
        budget = math.floor((utility - best) / unit) if unit else 0
        grown = list(labels)
        for speed, cost in enumerate(costs[number]):
            if cost is None:
                continue
            for done, paid in labels:
                if paid + cost > budget:
                    continue
                if done + units[speed] >= job.work:
                    best = max(best, utility - (paid + cost) * unit)
                else:
                    grown.append((done + units[speed], paid + cost))
        labels = _pareto(grown)
    return best


def _pareto(labels: list[tuple[int, int]]) -> list[tuple[int, int]]:
    labels.sort(key=lambda label: (-label[0], label[1]))
    kept: list[tuple[int, int]] = []
    for label in labels:
        if not kept or label[1] < kept[-1][1]:
            kept.append(label)
    return kept


def _relaxed(
    job: CommittableJob, units: list[int], costs: list[list[int | None]], unit: Fraction
) -> Fraction:
    """Upper bound of the payoff: every round does the fastest's work at the least cost per unit."""
    best, most = Fraction(0), max(units)
    least: list[Fraction] = []
    for number, row in enumerate(costs):
        utility = Fraction(job.value(job.first_round + number))
        if utility <= best:
            break
        prices = [
            Fraction(cost, units[speed]) for speed, cost in enumerate(row) if cost is not None
        ]
        if prices:
            least.append(min(prices))
            least.sort()
        whole, rest = divmod(job.work, most)
        if len(least) * most >= job.work:
            cost = sum(least[:whole], Fraction(0)) * most
            cost += least[whole] * rest if rest else 0
            best = max(best, utility - cost * unit)
    return best


def earned(jobs: Sequence[CommittableJob], last_rounds: Sequence[int | None]) -> Fraction:
    """Total utility of jobs that complete in these rounds, None for never."""
    values: list[Callable[[int], float]] = [job.value for job in jobs]
    return sum(
        (
            Fraction(value(last))
            for value, last in zip(values, last_rounds, strict=True)
            if last is not None
        ),
        Fraction(0),
    )
