r"""HADAR-any: prices of rounds bound the utility of every schedule, also of those without rounds.

Statement. Rounds :math:`t < T` of length :math:`L`, types :math:`r` of :math:`c_r` GPUs, jobs :math:`j` with
gangs :math:`W_j`, arrivals :math:`a_j`, run times :math:`p_{jr}` on a type, and utilities :math:`U_j(f) \ge 0`
of completion in round :math:`f` (at any time of it), non-increasing in :math:`f = 0`, 1, ... without end. A
schedule is anything with these properties: at any time a job has no GPUs or a gang of :math:`W_j`, of any types
it can run on; no type has more GPUs held than it has; a gang does the share :math:`1 / p_{jr}` of the job in a
second, :math:`r` the slowest of its types, or less (overheads, waiting); nothing is held before the arrival; a
job is complete no earlier than shares of :math:`\omega_j \le 1` are done. For prices :math:`k_r(t) \ge 0` let

.. math:: C_j(f) = \min \sum_{t \le f} \sum_l x_{tl}\, \kappa_{jl}(t)
          \quad\text{where}\quad \sum_{t \le f} \sum_l x_{tl} \frac{L}{p_{jl}} \ge \omega_j, \;
          \sum_l x_{tl} \le \phi_{jt}, \; x \ge 0,

with :math:`\kappa_{jl}(t)` the price of the cheapest gang with GPUs at least as fast as type :math:`l`, and
:math:`\phi_{jt}` the part of the round that is left after the arrival. With

.. math:: \mu_j = \max\bigl(0,\; U_j(T),\; \max_{f < T} U_j(f) - C_j(f)\bigr), \qquad
          D = \sum_j \mu_j + \sum_{t,r} c_r k_r(t)

no schedule has a total utility above :math:`D`. If prices are given by node, as a run leaves them, any
average of a type's nodes will do.

Status. Ours; weak duality of the continuous-time relaxation.

Remarks. HADAR-cert is about schedules of whole rounds: two jobs of half a round each cannot both end in one round on
one GPU. Policies that decide at every event do just that, so that their runs may earn more than any
schedule of whole rounds.

Proof. Charge a schedule :math:`k_r(t) / L` for every second and GPU of type r that is held in round t < T.
Let job j complete in round f < T, and let :math:`x_{tl}` be the part of round t in which it holds a gang whose
slowest type is as fast as l. Then x satisfies the conditions under :math:`C_j(f)`, and the job is charged at
least :math:`\sum x \kappa \ge C_j(f)`: it earns at most :math:`\mu_j` more than it is charged. If it completes in a
round from T on it earns at most :math:`U_j(T) \le \mu_j`, and never if not at all; charges are not
negative. Sum over the jobs: what is charged in all is at most :math:`\sum c_r k_r(t)`, since at no time are
more than c_r GPUs held. Q.E.D.

Computation. In a round only the lower convex hull of the points (work, price) of its speeds and
(0, 0) matters; its pieces have increasing prices per unit of work, so that taking the cheapest
pieces of all rounds up to f until the work is done is optimal: a fractional knapsack, kept up in a
heap as f grows. Prices are rounded down to whole multiples of a power of two, run times are whole
ticks, and all else is whole numbers: no rounding. O(T R log T) a job. Any :math:`\lambda k` with
:math:`\lambda \ge 0` is as valid as k; the best of a few is used.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import VerificationError
from shadowprice.proofs.hadar.run_certificate import SCALES
from shadowprice.solvers.hadar.prices import whole_prices

STATUS = "ours"

_BITS = 30


@dataclass(frozen=True)
class BoundedJob:
    """A job as the bound sees it.

    Parameters
    ----------
    gpus : int
        Gang size.
    arrival : int
        Arrival [ticks].
    ticks : tuple of int
        Run time at the speed of each type [ticks], 0 where it cannot run.
    share : Fraction
        omega, the part of the job that has to be done, from 0 to 1.
    values : sequence of float
        Utility of completion in rounds 0 to T, non-increasing; the last also bounds later rounds.
    """

    gpus: int
    arrival: int
    ticks: tuple[int, ...]
    share: Fraction
    values: Sequence[float]


@dataclass(frozen=True)
class UtilityBound:
    """Prices, payoffs and what follows from them.

    Parameters
    ----------
    unit : Fraction
        Utility of a price of 1.
    prices : ndarray of int, shape (rounds, types)
        k_r(t) in units.
    payoffs : tuple of Fraction
        mu_j.
    dual : Fraction
        D.
    """

    unit: Fraction
    prices: NDArray[np.int64]
    payoffs: tuple[Fraction, ...]
    dual: Fraction


def bound(
    demands: Sequence[BoundedJob],
    capacity: NDArray[np.int64],
    prices: NDArray[np.float64],
    round_ticks: int,
    scales: Sequence[Fraction] = SCALES,
) -> UtilityBound:
    """The least D of some multiples of prices, in exact arithmetic.

    Parameters
    ----------
    capacity : ndarray of int, shape (types,)
        GPUs of each type.
    prices : ndarray, shape (rounds, types)
        Prices of a GPU by round and type, of any origin.
    round_ticks : int
        Length of a round [ticks].
    scales
        Multiples that are tried, from 0 to 1.

    Raises
    ------
    VerificationError
        If a price is negative or not finite, or utilities are of other rounds or increase.
    """
    _check(demands, prices)
    whole, exponent = whole_prices(prices, _BITS)
    unit = Fraction(2) ** exponent
    held = int((whole * capacity).sum())
    payoffs = [_payoffs(demand, capacity, whole, round_ticks, unit, scales) for demand in demands]
    by_scale = list(zip(*payoffs, strict=True)) if payoffs else [()] * len(scales)
    bounds = [
        UtilityBound(unit * scale, whole, each, sum(each, Fraction(0)) + held * unit * scale)
        for scale, each in zip(scales, by_scale, strict=True)
    ]
    return min(bounds, key=lambda each: each.dual)


def check(bound: UtilityBound, utility: Fraction) -> bool:
    """True if the utility that a schedule earned respects the bound."""
    return utility <= bound.dual


def _check(demands: Sequence[BoundedJob], prices: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(prices) & (prices >= 0)):
        raise VerificationError("hadar: a price is negative or not finite, expected numbers >= 0")
    for row, demand in enumerate(demands):
        values = np.asarray(demand.values)
        if len(values) != len(prices) + 1 or (np.diff(values) > 0).any() or not values[-1] >= 0:
            raise VerificationError(
                f"hadar: job {row} has {len(values)} utilities, expected {len(prices) + 1} that do not "
                "increase and are at least 0"
            )


def _payoffs(
    demand: BoundedJob,
    capacity: NDArray[np.int64],
    prices: NDArray[np.int64],
    round_ticks: int,
    unit: Fraction,
    scales: Sequence[Fraction],
) -> list[Fraction]:
    """mu_j for each multiple of the prices."""
    known: list[Fraction | None] = []
    series = least_costs(demand, capacity, prices, round_ticks)
    payoffs = []
    for scale in scales:
        best = max(Fraction(0), Fraction(demand.values[-1]))
        for number in range(demand.arrival // round_ticks, len(prices)):
            utility = Fraction(demand.values[number])
            if utility <= best:
                break
            place = number - demand.arrival // round_ticks
            while place >= len(known):
                known.append(next(series))
            cost = known[place]
            if cost is not None:
                best = max(best, utility - cost * unit * scale)
        payoffs.append(best)
    return payoffs


def least_costs(
    demand: BoundedJob, capacity: NDArray[np.int64], prices: NDArray[np.int64], round_ticks: int
) -> Iterator[Fraction | None]:
    """C_j(f) in units for f from the round of the arrival on; None where the work cannot be done."""
    work_pieces = WorkPieces.of(demand, capacity, prices, round_ticks)
    need = int(demand.share * work_pieces.work)
    heap: list[tuple[int, int]] = []
    width = paid = 0
    for number in range(work_pieces.first, len(prices)):
        for slope, piece, _ in work_pieces.pieces(number):
            heapq.heappush(heap, (-slope, piece))
            width, paid = width + piece, paid + slope * piece
        while heap and width - heap[0][1] >= need:
            slope, piece = heapq.heappop(heap)
            width, paid = width - piece, paid + slope * piece
        if width < need:
            yield None
        else:
            spare = (width - need) * -heap[0][0] if heap else 0
            yield Fraction(paid - spare, work_pieces.scale)


@dataclass(frozen=True)
class WorkPieces:
    """Pieces of work that a job can buy in each round, in whole numbers.

    Parameters
    ----------
    first, arrival, round_ticks : int
        Round of the arrival, and times in ticks.
    work : int
        Units of the whole job, a multiple of all run times and of the share's denominator.
    speeds : tuple of int
        Units a tick does at each speed, fastest first.
    costs : list of list of int
        Price of the cheapest gang for a whole round by round and speed.
    common : int
        A multiple of all differences of speeds.
    """

    first: int
    arrival: int
    round_ticks: int
    work: int
    speeds: tuple[int, ...]
    costs: list[list[int]]
    common: int

    @property
    def scale(self) -> int:
        """Divisor of a price per unit of work, times units."""
        return self.round_ticks * self.common

    @classmethod
    def of(
        cls,
        demand: BoundedJob,
        capacity: NDArray[np.int64],
        prices: NDArray[np.int64],
        round_ticks: int,
    ) -> WorkPieces:
        """Speeds for which there are GPUs, and what gangs cost; O(rounds x types^2)."""
        first = demand.arrival // round_ticks
        work = math.lcm(demand.share.denominator, *(ticks for ticks in demand.ticks if ticks))
        speeds, columns = [], []
        for ticks in sorted({ticks for ticks in demand.ticks if ticks}):
            able = np.array([0 < other <= ticks for other in demand.ticks])
            if capacity[able].sum() < demand.gpus:
                continue
            row, size = prices[first:, able], capacity[able]
            order = np.argsort(row, axis=1, kind="stable")
            free = size[order]
            taken = np.clip(demand.gpus - (free.cumsum(axis=1) - free), 0, free)
            columns.append((taken * np.take_along_axis(row, order, axis=1)).sum(axis=1).tolist())
            speeds.append(work // ticks)
        reached = [0, *speeds]
        steps = {one - other for one in reached for other in reached if one > other}
        rows = zip(*columns, strict=True) if columns else ((),) * max(len(prices) - first, 0)
        costs = [list(row) for row in rows]
        common = math.lcm(*steps)
        return cls(first, demand.arrival, round_ticks, work, tuple(speeds), costs, common)

    def pieces(self, number: int) -> list[tuple[int, int, int]]:
        """Price per unit of work, units, and speed reached, for the hull of a round.

        Prices increase; the speed is a position in ``speeds``, and a piece leads to it from the speed
        of the piece before, or from nothing.
        """
        left = min((number + 1) * self.round_ticks - self.arrival, self.round_ticks)
        costs = self.costs[number - self.first]
        found: list[tuple[int, int, int]] = []
        speed = cost = 0
        while True:
            best: tuple[int, int, int] | None = None
            for place, (faster, dearer) in enumerate(zip(self.speeds, costs, strict=True)):
                if faster <= speed:
                    continue
                step = faster - speed
                slope = max(dearer - cost, 0) * (self.common // step)
                if best is None or slope < best[0]:
                    best = (slope, step * left, place)
            if best is None:
                return found
            found.append(best)
            speed, cost = self.speeds[best[2]], costs[best[2]]
