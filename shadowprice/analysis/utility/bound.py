"""The best certified bound of the total utility that the prices of runs give, and improved ones."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.whole_rounds import in_whole_rounds
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.utility.instance import UtilityInstance
from shadowprice.errors import VerificationError
from shadowprice.instances.schedule_class import AMPLE_TYPES, ScheduleClass
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.proofs.hadar import any_schedule as hadar_any_schedule
from shadowprice.proofs.hadar import run_certificate as hadar_certificate
from shadowprice.proofs.hadar.any_schedule import BoundedJob, WorkPieces, least_costs
from shadowprice.solvers.hadar.prices import whole_prices

# Prices whose bound of the total utility is low: subgradient steps on the dual of HADAR-any.
#
# The dual value :math:`D(k) = \sum_j \mu_j(k) + \sum c_r k_r(t)` is convex in the prices, and the GPU time left
# over when every job buys what it likes best, :math:`c_r - \sum_j`, is a subgradient. Steps are Polyak's
# towards the utility of the best run known, halved when nothing is gained (derived; the method is textbook,
# Polyak 1969, recalled). Nothing has to be believed here: whatever prices come out,
# :func:`shadowprice.proofs.hadar.any_schedule.bound` computes their bound anew, exactly.


Prices = NDArray[np.float64]

_BITS = 24
"""Prices of a step are whole multiples of 2**-24 of the highest."""
_PATIENCE = 5
"""Steps without gain after which the step length is halved."""
_SMALLEST = 1e-4


def improve(
    demands: Sequence[BoundedJob],
    capacity: NDArray[np.int64],
    start: Prices,
    round_ticks: int,
    earned: float,
    budget_s: float,
) -> Prices:
    """Prices with a lower dual value, or those given.

    Parameters
    ----------
    start : ndarray, shape (rounds, types)
    earned : float
        Utility that some schedule reaches.
    budget_s : float
        CPU time [s]; a step takes O(jobs x rounds x types x log rounds).
    """
    end = time.process_time() + budget_s
    prices = best = start
    best_value, length, since = math.inf, 1.0, 0
    while length > _SMALLEST:
        dual = _dual(demands, capacity, prices, round_ticks, end)
        if dual is None:
            break
        value, left = dual
        since += 1
        if value < best_value - 1e-6 * abs(value):
            best_value, best, since = value, prices, 0
        norm = float((left * left).sum())
        gap = value - earned
        if norm == 0.0 or gap <= 1e-9 * abs(value):
            break
        if since > _PATIENCE:
            length, since = length / 2.0, 0
            prices = best
            continue
        prices = np.maximum(prices - length * gap / norm * left, 0.0)
    return best


def _dual(
    demands: Sequence[BoundedJob],
    capacity: NDArray[np.int64],
    prices: Prices,
    round_ticks: int,
    end: float,
) -> tuple[float, Prices] | None:
    """Dual value and the GPUs left over, shape (rounds, types); None if time has run out."""
    whole, exponent = whole_prices(prices, _BITS)
    unit = 2.0**exponent
    left = np.repeat(capacity[None, :].astype(np.float64), len(prices), axis=0)
    value = float((whole * capacity).sum()) * unit
    for demand in demands:
        if time.process_time() > end:
            return None
        payoff, last = _best_end(demand, capacity, whole, round_ticks, unit)
        value += payoff
        if last is not None:
            _buy(left, demand, capacity, whole, round_ticks, last)
    return value, left


def _best_end(
    demand: BoundedJob,
    capacity: NDArray[np.int64],
    prices: NDArray[np.int64],
    round_ticks: int,
    unit: float,
) -> tuple[float, int | None]:
    """Largest payoff and the round of completion; None where it buys nothing."""
    best, last = float(demand.values[-1]), None
    costs = least_costs(demand, capacity, prices, round_ticks)
    for number in range(demand.arrival // round_ticks, len(prices)):
        utility = float(demand.values[number])
        if utility <= best:
            break
        cost = next(costs)
        if cost is None:
            continue
        payoff = utility - cost.numerator / cost.denominator * unit
        if payoff > best:
            best, last = payoff, number
    return best, last


def _buy(
    left: Prices,
    demand: BoundedJob,
    capacity: NDArray[np.int64],
    prices: NDArray[np.int64],
    round_ticks: int,
    last: int,
) -> None:
    """Take the GPUs of the cheapest way to complete by the end of a round from those left over."""
    work_pieces = WorkPieces.of(demand, capacity, prices, round_ticks)
    need = int(demand.share * work_pieces.work)
    pieces = []
    for number in range(work_pieces.first, last + 1):
        before = -1
        for slope, units, place in work_pieces.pieces(number):
            pieces.append((slope, number, before, place, units))
            before = place
    for _, number, before, place, units in sorted(pieces):
        if need <= 0:
            return
        step = work_pieces.speeds[place] - (work_pieces.speeds[before] if before >= 0 else 0)
        part = min(need, units) / (step * round_ticks)
        need -= units
        gang = _gang(demand, capacity, prices[number], place)
        if before >= 0:
            gang = gang - _gang(demand, capacity, prices[number], before)
        left[number] -= part * gang


def _gang(
    demand: BoundedJob, capacity: NDArray[np.int64], prices: NDArray[np.int64], place: int
) -> NDArray[np.int64]:
    """GPUs of each type in the cheapest gang at a speed, by its place, the one whose price the work pieces have."""
    times = sorted({ticks for ticks in demand.ticks if ticks})
    enough = [
        ticks
        for ticks in times
        if sum(c for c, t in zip(capacity.tolist(), demand.ticks, strict=True) if 0 < t <= ticks)
        >= demand.gpus
    ]
    able = np.array([0 < other <= enough[place] for other in demand.ticks])
    taken = np.zeros(len(capacity), dtype=np.int64)
    wanted = demand.gpus
    for gpu_type in np.flatnonzero(able)[np.argsort(prices[able], kind="stable")].tolist():
        taken[gpu_type] = min(wanted, int(capacity[gpu_type]))
        wanted -= int(taken[gpu_type])
    return taken


_EXACT_CELLS = 3_000
"""Jobs times rounds up to which the payoffs of schedules of whole rounds are searched for exactly."""


@dataclass(frozen=True)
class CertifiedBound:
    """No schedule of the class earns more.

    Parameters
    ----------
    value : Fraction
        Upper bound of the total utility.
    source : str
        Whose prices.
    round_s : float or None
        Length of the rounds [s] where the class is that of schedules in whole rounds; otherwise it is all schedules.
    unshared : bool
        Whether the class leaves out schedules in which jobs share GPUs, as the instance lets them.
    ample_types : bool
        Whether a gang has a rate on a GPU type that has fewer GPUs than it, which no schedule of the class uses.
    """

    value: Fraction
    source: str
    round_s: float | None = None
    unshared: bool = False
    ample_types: bool = False

    @property
    def holds_for(self) -> str:
        """The class in words: gangs may stop and resume, anywhere but on GPU types with fewer GPUs than they."""
        limits = [
            words
            for words, there in (
                ("nobody shares GPUs", self.unshared),
                (AMPLE_TYPES, self.ample_types),
            )
            if there
        ]
        where = f" in which {' and '.join(limits)}" if limits else ""
        when = "" if self.round_s is None else f", in whole rounds of {self.round_s:g} s"
        return f"{ScheduleClass(preemptive=True)}{where}{when}"


def certified_bound(
    problem: UtilityInstance,
    outcomes: Mapping[str, Outcome],
    budget_s: float,
    offered: Mapping[str, NDArray[np.float64]] | None = None,
) -> CertifiedBound:
    """The least bound that holds for all of some runs, in exact arithmetic.

    Which class of schedules it is about depends on the runs: where all of them are schedules of
    whole rounds, HADAR-cert applies, else HADAR-any, which holds for every schedule.

    Parameters
    ----------
    outcomes
        Runs by name; those with prices offer them.
    budget_s : float
        CPU time for better prices [s]. The exact computation comes on top.
    offered : mapping of str to ndarray, shape (rounds, types), optional
        Prices of other origin, such as those of a relaxation.

    Raises
    ------
    VerificationError
        If a run earned more than the bound, which would be an error of this package.
    """
    earned = max(problem.earned(outcome) for outcome in outcomes.values())
    best = min(
        _bounds(problem, outcomes, float(earned), budget_s, offered or {}),
        key=lambda bound: bound.value,
    )
    if earned > best.value:
        raise VerificationError(
            f"utility: a run earned {float(earned)!r}, more than the bound {float(best.value)!r} by "
            f"{best.source} of {best.holds_for}"
        )
    instance = problem.instance
    return replace(
        best,
        unshared=SharingGain.of(instance) is not None,
        ample_types=instance.has_small_types,
    )


def _bounds(
    problem: UtilityInstance,
    outcomes: Mapping[str, Outcome],
    earned: float,
    budget_s: float,
    offered: Mapping[str, NDArray[np.float64]],
) -> Iterator[CertifiedBound]:
    """Bounds by no prices, by the prices of each run, by those offered, and by improved prices."""
    kinds = problem.instance.cluster.type_of_node
    start: Prices = np.zeros((problem.rounds, len(problem.instance.cluster.gpu_types)))
    lowest, _ = _of_any(problem, start, [Fraction(0)])
    yield CertifiedBound(lowest, "each job alone")
    aligned = all(in_whole_rounds(outcome, problem.round_ticks) for outcome in outcomes.values())
    exact = aligned and len(problem.instance.workload) * problem.rounds <= _EXACT_CELLS
    left = {name: problem.prices(outcome) for name, outcome in outcomes.items()}
    by_node = {f"prices of {name}": prices for name, prices in left.items() if prices is not None}
    by_node |= {name: prices[:, kinds] for name, prices in offered.items()}
    for name, prices in by_node.items():
        value, repaired = _of_any(problem, problem.by_type(prices), hadar_certificate.SCALES)
        yield CertifiedBound(value, name)
        if value < lowest:
            lowest, start = value, repaired
        if exact:
            yield CertifiedBound(_of_rounds(problem, prices), name, problem.round_s)
    capacity = problem.instance.cluster.gpus_per_type
    better = improve(problem.demands(), capacity, start, problem.round_ticks, earned, budget_s)
    yield CertifiedBound(_of_any(problem, better, [Fraction(1)])[0], "improved prices")
    if exact:
        yield CertifiedBound(
            _of_rounds(problem, better[:, kinds]), "improved prices", problem.round_s
        )


def _of_any(
    problem: UtilityInstance, prices: Prices, scales: Sequence[Fraction]
) -> tuple[Fraction, Prices]:
    """HADAR-any's bound and the multiple of the prices that gives it, both by type."""
    bound = hadar_any_schedule.bound(
        problem.demands(),
        problem.instance.cluster.gpus_per_type,
        prices,
        problem.round_ticks,
        scales,
    )
    return bound.dual, bound.prices.astype(np.float64) * float(bound.unit)


def _of_rounds(problem: UtilityInstance, prices: NDArray[np.float64]) -> Fraction:
    """HADAR-cert's bound, raised to what a job is worth that completes after the last round.

    Its statement has utility 0 there. A schedule in which job j completes after the last round,
    or never, earns at most :math:`U_j(T)` of it; with payoffs of at least that, the proof goes through.
    """
    cluster = problem.instance.cluster
    certificate = hadar_certificate.certify(
        problem.committable_jobs(), cluster.gpus_per_node, cluster.type_of_node, prices, Fraction(0)
    )
    more = (
        max(later - payoff, Fraction(0))
        for later, payoff in zip(problem.beyond(), certificate.payoffs, strict=True)
    )
    return certificate.dual + sum(more, Fraction(0))
