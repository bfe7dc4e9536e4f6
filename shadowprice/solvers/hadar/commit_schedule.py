r"""Schedules over future rounds for one job after another: what Hadar's theorem is about.

Source: Sultana et al., Hadar, IPDPS'24 (recalled: commit once by payoff under rising prices; derived:
everything precise, as costs by speed and both searches). Jobs are taken in order of arrival.
Each is committed to the schedule over future rounds that maximises its utility
less the prices of its GPUs, among those that fit beside the commitments, if that payoff is positive;
otherwise it is refused for ever. Prices rise with the load that is committed.

What a gang achieves in a round depends on the slowest type it touches, its speed. For a round and a
speed the cheapest gang is known (:class:`RoundCosts`), so that a schedule is a choice of rounds and
speeds; work is counted exactly (:class:`CommittableJob`). There are few different costs, since a cost
follows from how many nodes have which load, and both searches pass over rounds that cannot change
anything, many at a time:

- :func:`search_by_labels`, exact, by Pareto labels (work done, cost).
- :func:`search_by_speed`, among schedules that keep to one speed, where there are too many labels.

Complexity: labels O(rounds that change a label x labels x speeds), one speed O(rounds x different
costs); costs of rounds and nodes of gangs as in :mod:`.committed_load`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import UtilityTable
from shadowprice.solvers.hadar.committed_load import Commitment, CommittedLoad
from shadowprice.solvers.hadar.node_classes import GangRequest
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

# Jobs


@runtime_checkable
class VectorUtility(Protocol):
    """A utility that can be evaluated for many rounds at once."""

    def at(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds; the same as one by one."""
        ...


@dataclass(frozen=True)
class CommittableJob:
    """A job as the commit-once algorithm sees it.

    Parameters
    ----------
    gpus : int
        Gang size.
    first_round, last_round : int
        First and last round it may use.
    units : tuple of int
        Units of work a round does where each type is the slowest, 0 where the job cannot run.
    work : int
        Units to do.
    value : callable
        Utility if complete at the end of a round, non-increasing; 0 from some round on, or
        falling to 0.
    """

    gpus: int
    first_round: int
    units: tuple[int, ...]
    work: int
    value: Callable[[int], float]
    last_round: int

    @classmethod
    def of(
        cls,
        gpus: int,
        first_round: int,
        processing_s: Sequence[float],
        round_s: float,
        value: Callable[[int], float],
        last_round: int,
    ) -> CommittableJob:
        """Job with exact units: with times p_r and a round of L, L / p_r of the work a round."""
        ticks = [int(time * TICKS_PER_S) if time < math.inf else 0 for time in processing_s]
        work = math.lcm(*(time for time in ticks if time))
        length = int(round_s * TICKS_PER_S)
        if length < 1:
            raise InputError(f"hadar: a round lasts {round_s!r} s, expected at least 2**-20 s")
        units = tuple(length * work // time if time else 0 for time in ticks)
        return cls(gpus, first_round, units, work, value, last_round)

    def utilities(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds."""
        if isinstance(self.value, VectorUtility):
            return self.value.at(rounds)
        return np.array([self.value(number) for number in rounds.tolist()], dtype=np.float64)

    def speeds(self) -> list[int]:
        """One type for each distinct speed, fastest first."""
        by_speed = {units: gpu_type for gpu_type, units in enumerate(self.units) if units}
        return [by_speed[units] for units in sorted(by_speed, reverse=True)]


# Costs of rounds

RoundsBySpeed = dict[int, list[int]]
"""Rounds by position of their speed."""


class RoundCosts:
    """Costs of the cheapest gangs of one job by round and speed.

    Parameters
    ----------
    job : CommittableJob
    committed : CommittedLoad
    prices : ExponentialPrices
    fits : bool
        Whether gangs must fit beside the commitments; otherwise these count for the prices only.

    Attributes
    ----------
    speeds : list of int
        A GPU type for each speed, fastest first: the slowest that a gang has.
    needed : list of int
        Rounds that the job takes at each speed.
    least : float
        What any schedule costs at least: the rounds it needs on the fastest type, all empty.
    end : int
        A schedule that ends in this round or later is no better than one that ends before: its
        utility is at most what it costs, or it waits for rounds that are no emptier.
    table : ndarray, shape (rounds, speeds)
        Costs from the job's first round to the end, infinite where no gang fits.
    """

    def __init__(
        self,
        job: CommittableJob,
        committed: CommittedLoad,
        prices: ExponentialPrices,
        fits: bool,
    ) -> None:
        self.job = job
        self.committed = committed
        self.prices = prices
        self.fits = fits
        self.speeds = job.speeds()
        self.needed = [-(-job.work // job.units[speed]) for speed in self.speeds]
        # A little less, so that rounding can never make a cost smaller than the least.
        self.least = self.needed[0] * job.gpus * float(prices.lowest.min()) * (1.0 - 1e-9)
        empty = max(committed.rounds, job.first_round) + self.needed[-1]
        self.end = self.worth_until(0.0, min(empty, job.last_round + 1))
        self.table = self._table()

    def worth_until(self, payoff: float, end: int) -> int:
        """First round before ``end`` in which no schedule is worth more than a payoff, or that end.

        O(log rounds): utilities do not increase.
        """
        value, least = self.job.value, self.least
        rounds = range(self.job.first_round, end)
        # The first of the rounds where it is true that the utility is too low.
        worthwhile = bisect_left(rounds, True, key=lambda number: value(number) - least <= payoff)
        return self.job.first_round + worthwhile

    def gangs(self, rounds_by_speed: RoundsBySpeed) -> dict[int, Pieces]:
        """The cheapest gangs themselves, by round."""
        gangs: dict[int, Pieces] = {}
        for position, numbers in rounds_by_speed.items():
            rounds = sorted(numbers)
            pieces = self.committed.cheapest_gangs(
                self._request(position), self.prices, np.array(rounds)
            )
            gangs.update(zip(rounds, pieces, strict=True))
        return gangs

    def _request(self, position: int) -> GangRequest:
        """Gangs of a speed: on all types that are no slower."""
        units = self.job.units
        slowest = units[self.speeds[position]]
        return GangRequest(self.job.gpus, tuple(each >= slowest for each in units), self.fits)

    def _table(self) -> NDArray[np.float64]:
        first = self.job.first_round
        table = np.empty((max(self.end - first, 0), len(self.speeds)))
        for position in range(len(self.speeds)):
            by_round = self.committed.costs(self._request(position), self.prices)
            known = by_round[first : self.end]
            table[: len(known), position] = known
            table[len(known) :, position] = by_round[-1]
        return table


class ScheduleCandidate(NamedTuple):
    """Payoff and utility of a schedule, and its rounds by speed; 0, 0 and none where nothing pays."""

    payoff: float
    utility: float
    rounds: RoundsBySpeed


# Exact search by labels

_Label = tuple[int, float, int, object]
"""Work done, negated; cost; round and speed as one number, -1 for none; the label before that.

A plain tuple, since labels are made and sorted by the hundred thousand. In sorted order work falls.
"""

_WORK = itemgetter(0)

_Best = tuple[float, float, _Label]
"""Payoff, utility and last label of the best schedule so far."""

_FIRST_BATCH = 32
"""Rounds that are looked through together at first; twice as many each time."""


def search_by_labels(round_costs: RoundCosts, limit: int) -> ScheduleCandidate | None:
    """Best of all schedules; None where there are more labels than the limit.

    Let a round leave the labels as they were. Then any later round that costs at least as much at
    every speed does so too, whatever was taken in between: what the labels become does not depend on
    the order of rounds, and the utility only falls. The rounds that are worked through are thus as
    many as change a label, and one more for each cost.
    """
    job = round_costs.job
    labels: list[_Label] = [(0, 0.0, -1, None)]
    best: _Best = (0.0, 0.0, labels[0])
    units = [job.units[speed] for speed in round_costs.speeds]
    useful = _UsefulRounds(round_costs.table)
    for offset, costs in useful:
        utility = job.value(job.first_round + offset)
        if utility - round_costs.least <= best[0]:
            break
        extended, best = _extend(labels, costs, offset, units, job.work, utility, best)
        kept = _pareto(extended)
        if len(kept) > limit:
            return None
        if len(kept) == len(labels) and all(map(is_, kept, labels)):
            useful.skip_from(costs)
        labels = kept
    payoff, utility, last = best
    return ScheduleCandidate(payoff, utility, _rounds_of(last, job.first_round, len(units)))


def _extend(
    labels: list[_Label],
    costs: list[float],
    offset: int,
    units: list[int],
    work: int,
    utility: float,
    best: _Best,
) -> tuple[list[_Label], _Best]:
    """Labels and those that a round's gangs make of them, and the best that is complete by now."""
    extended = list(labels)
    dominated = len(labels)
    for speed, cost in enumerate(costs):
        if cost == np.inf:
            continue
        round_and_speed, done = offset * len(units) + speed, units[speed]
        # Labels are in order of falling work and cost: those that complete come first, and the last
        # of them is the cheapest.
        complete = bisect_right(labels, done - work, key=_WORK)
        if complete:
            total = labels[complete - 1][1] + cost
            if total < utility - best[0]:
                label = (0, total, round_and_speed, labels[complete - 1])
                best = (utility - total, utility, label)
        # A label that costs more can only become a schedule that is worse than the best.
        most = utility - best[0]
        # At the cost of the speed before, which is faster, less work is dominated.
        until = dominated if speed and cost == costs[speed - 1] else len(labels)
        extended += [
            (label[0] - done, total, round_and_speed, label)
            for label in labels[complete:until]
            if (total := label[1] + cost) < most
        ]
        dominated = complete
    return extended, best


def _pareto(labels: list[_Label]) -> list[_Label]:
    """Labels that no other beats in work and cost; of equal ones the first."""
    labels.sort()
    kept = []
    least = np.inf
    for label in labels:
        if label[1] < least:
            least = label[1]
            kept.append(label)
    return kept


def _rounds_of(last: _Label, first_round: int, speeds: int) -> RoundsBySpeed:
    """Rounds and speeds that lead to a label."""
    rounds: RoundsBySpeed = {}
    label: object = last
    while isinstance(label, tuple):
        _, _, round_and_speed, label = label
        if round_and_speed >= 0:
            offset, speed = divmod(round_and_speed, speeds)
            rounds.setdefault(speed, []).append(first_round + offset)
    return rounds


class _UsefulRounds:
    """Rounds that may change a label, in order; iterate over their offsets and costs by speed.

    Parameters
    ----------
    table : ndarray, shape (rounds, speeds)
        Costs.
    """

    def __init__(self, table: NDArray[np.float64]) -> None:
        self._table = table
        # Costs at or above which a round is of no use; one in which no gang fits never is.
        self._useless = [np.full(table.shape[1], np.inf)]
        # Those that were added since rounds were last filtered by them.
        self._added: list[NDArray[np.float64]] = []

    def skip_from(self, costs: list[float]) -> None:
        """Pass over rounds that cost at least this at every speed from now on."""
        row = np.array(costs)
        self._useless = [each for each in self._useless if not (each >= row).all()]
        self._useless.append(row)
        self._added.append(row)

    def __iter__(self) -> Iterator[tuple[int, list[float]]]:
        begin, size = 0, _FIRST_BATCH
        while begin < len(self._table):
            self._added.clear()
            end = min(begin + size, len(self._table))
            yield from self._among(_below(self._table, np.arange(begin, end), self._useless))
            begin, size = end, 2 * size

    def _among(self, offsets: NDArray[np.int64]) -> Iterator[tuple[int, list[float]]]:
        """The rounds among some, which are filtered again each time that a cost has been added."""
        while len(offsets):
            visited = 0
            for offset in offsets.tolist():
                visited += 1
                yield offset, self._table[offset].tolist()
                if self._added:
                    break
            offsets = _below(self._table, offsets[visited:], self._added)
            self._added.clear()


def _below(
    table: NDArray[np.float64], offsets: NDArray[np.int64], limits: list[NDArray[np.float64]]
) -> NDArray[np.int64]:
    """Offsets of rounds that are below each of some limits at some speed."""
    for limit in limits:
        offsets = offsets[(table[offsets] < limit).any(axis=1)]
    return offsets


# Search at one speed


def search_by_speed(round_costs: RoundCosts) -> ScheduleCandidate:
    """Best schedule that runs at the same speed throughout.

    Up to each round the cheapest ones so far are the best. A round that costs no less than the dearest
    of them changes nothing; those that cost less replace the rounds of the dearest cost one by one, so
    that all of these are evaluated in one go.
    """
    job = round_costs.job
    payoff, utility = 0.0, 0.0
    rounds: RoundsBySpeed = {}
    for speed, needed in enumerate(round_costs.needed):
        end = round_costs.worth_until(payoff, round_costs.end)
        costs = round_costs.table[: end - job.first_round, speed]
        offsets = np.flatnonzero(costs < np.inf)
        last = -1
        for changes, totals in _cheapest_prefixes(costs[offsets], needed):
            utilities = job.utilities(job.first_round + offsets[changes])
            payoffs = utilities - totals
            best = int(payoffs.argmax())
            if payoffs[best] > payoff:
                payoff, utility = float(payoffs[best]), float(utilities[best])
                last = int(offsets[changes[best]])
        if last >= 0:
            cheapest = _cheapest_offsets(costs[: last + 1], needed)
            rounds = {speed: (job.first_round + cheapest).tolist()}
    return ScheduleCandidate(payoff, utility, rounds)


def _cheapest_prefixes(
    costs: NDArray[np.float64], needed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Ends at which the cheapest rounds so far change, and what these cost together.

    One batch for each cost that is the dearest of the cheapest for a while.
    """
    if len(costs) < needed:
        return
    cheapest = np.sort(costs[:needed])
    total = float(cheapest.sum())
    yield np.array([needed - 1]), np.array([total])
    later = needed + np.flatnonzero(costs[needed:] < cheapest[-1])
    while len(later):
        dearest = cheapest[-1]
        below = int(np.searchsorted(cheapest, dearest))
        # As many rounds as have the dearest cost are replaced, in order.
        entering, later = later[: needed - below], later[needed - below :]
        totals = total + np.cumsum(costs[entering] - dearest)
        yield entering, totals
        total = float(totals[-1])
        remaining = cheapest[below + len(entering) :]
        cheapest = np.sort(np.concatenate([cheapest[:below], costs[entering], remaining]))
        later = later[costs[later] < cheapest[-1]]


def _cheapest_offsets(costs: NDArray[np.float64], needed: int) -> NDArray[np.int64]:
    """Offsets of the cheapest rounds, later ones first where costs are equal."""
    dearest = np.partition(costs, needed - 1)[needed - 1]
    below = np.flatnonzero(costs < dearest)
    equal = np.flatnonzero(costs == dearest)
    return np.concatenate([below, equal[len(equal) - (needed - len(below)) :]])


# Commitments


def best_schedule(
    variants: Sequence[CommittableJob],
    committed: CommittedLoad,
    prices: ExponentialPrices,
    *,
    labels: int = 10_000,
    fits: bool = True,
) -> Commitment | None:
    """Schedule of largest payoff that fits, of any of some variants of one job; None where no payoff is positive.

    Without ``fits`` the commitments count for the prices only: what the prices would admit.

    Exact by Pareto labels (work done, cost) over the rounds as long as there are at most
    ``labels`` of them; beyond that, and for ``labels`` 0, the best among schedules that keep to one
    speed. It stops at the round whose utility cannot beat the best payoff so far any more.
    """
    costs = [RoundCosts(job, committed, prices, fits) for job in variants]
    candidates = [_search(each, labels) for each in costs]
    best = max(range(len(variants)), key=lambda each: candidates[each].payoff, default=-1)
    if best < 0 or candidates[best].payoff <= 0:
        return None
    gangs = costs[best].gangs(candidates[best].rounds)
    rounds = tuple((number, gangs[number]) for number in sorted(gangs))
    return Commitment(rounds, candidates[best].utility, candidates[best].payoff)


def _search(round_costs: RoundCosts, labels: int) -> ScheduleCandidate:
    exact = search_by_labels(round_costs, labels) if labels else None
    return search_by_speed(round_costs) if exact is None else exact


def committable_jobs(instance: Instance, utility: UtilityTable) -> list[CommittableJob]:
    """Jobs of an instance in order of arrival, with the table's rounds as the horizon."""

    def committable(job: int) -> CommittableJob:
        values = utility.values[job].tolist()
        return CommittableJob.of(
            int(instance.workload.gpus[job]),
            math.ceil(float(instance.workload.arrival_s[job]) / utility.round_s),
            instance.processing_s[job].tolist(),
            utility.round_s,
            values.__getitem__,
            utility.rounds - 1,
        )

    return [committable(job) for job in range(len(instance.workload))]
