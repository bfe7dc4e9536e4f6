r"""Commit-once primal-dual: the algorithm that Hadar's theorem is about (IPDPS'24, recalled; derived).

Jobs are taken in order of arrival. Each is committed to the schedule over future rounds that
maximises its utility less the prices of its GPUs, among those that fit beside the commitments, if
that payoff is positive; otherwise it is refused for ever. Prices rise with the load. What a gang
achieves in a round depends on the slowest type it touches; for a round and a slowest type the
cheapest gang is known, and a schedule is a choice of rounds and levels. Work is counted exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import UtilityTable
from shadowprice.solvers.hadar.node_classes import GangCostCache, GangRequest
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

# What a gang costs in each round: the choices of which a job's schedule is made.


RoundsByLevel = dict[int, list[int]]
"""Rounds by position of level."""


class RoundCosts:
    """Cheapest gangs of one task by round and level.

    Attributes
    ----------
    levels : list of int
        A GPU type for each speed, fastest first: the slowest that a gang has.
    needed : list of int
        Rounds that the task takes at each level.
    least : float
        What any schedule costs at least: the rounds it needs on the fastest type, all empty.
    end : int
        A schedule that ends in this round or later is no better than one that ends before: its
        utility is at most what it costs, or it waits for rounds that are no emptier.
    """

    def __init__(
        self, task: CommittableJob, book: CommittedLoad, prices: ExponentialPrices, fits: bool
    ) -> None:
        self.task, self.book, self.prices, self.fits = task, book, prices, fits
        self.levels = task.levels()
        self.needed = [-(-task.work // task.units[level]) for level in self.levels]
        self.least = self.needed[0] * task.gpus * float(prices.lowest.min()) * (1.0 - 1e-9)
        empty = max(book.rounds, task.first_round) + self.needed[-1]
        self.end = self.worth_until(0.0, min(empty, task.last_round + 1))
        self.costs = self._costs()

    def worth_until(self, payoff: float, end: int) -> int:
        """First round before ``end`` in which no schedule is worth more than a payoff, or that end.

        O(log rounds): utilities do not increase.
        """
        value, least = self.task.value, self.least
        rounds = range(self.task.first_round, end)
        # The first of the rounds where it is true that the utility is too low.
        short = bisect_left(rounds, True, key=lambda number: value(number) - least <= payoff)
        return self.task.first_round + short

    def gangs(self, chosen: RoundsByLevel) -> dict[int, Pieces]:
        """The cheapest gangs themselves, by round."""
        found: dict[int, Pieces] = {}
        for position, numbers in chosen.items():
            rounds = sorted(numbers)
            pieces = self.book.cheapest(self._wanted(position), self.prices, np.array(rounds))
            found.update(zip(rounds, pieces, strict=True))
        return found

    def _wanted(self, position: int) -> GangRequest:
        units = self.task.units
        slowest = units[self.levels[position]]
        return GangRequest(self.task.gpus, tuple(each >= slowest for each in units), self.fits)

    def _costs(self) -> NDArray[np.float64]:
        """Costs from the first round to the end, infinite where no gang fits; shape (rounds, levels)."""
        first = self.task.first_round
        table = np.empty((max(self.end - first, 0), len(self.levels)))
        for position in range(len(self.levels)):
            sold = self.book.costs(self._wanted(position), self.prices)
            known = sold[first : self.end]
            table[: len(known), position] = known
            table[len(known) :, position] = sold[-1]
        return table


# Which rounds and levels a job buys: the dual subroutine of the commit-once algorithm (derived).
#
# Among the rounds there are few different costs, since a cost follows from how many nodes have which
# load. Both searches pass over rounds that cannot change anything, many at a time:
#
# *Exact.* Pareto labels (work done, cost). Let a round leave the labels as they were. Then any later
# round that costs at least as much at every level does so too, whatever was bought in between: what
# the labels become does not depend on the order of rounds, and the utility only falls. The rounds that
# are worked through are thus as many as change a label, and one more for each cost.
#
# *One level.* Up to each round the cheapest ones so far are the best. A round that costs no less than
# the dearest of them changes nothing; those that cost less replace the rounds of the dearest cost
# one by one, so that all of these are evaluated in one go.
#
# Cost: exact O(rounds that change a label x labels x levels), one level O(rounds x different costs).


_Label = tuple[int, float, int, object]
"""Work done, negated; cost; round and level as one number; the label before that."""
_WORK = itemgetter(0)
_CHUNK = 32
"""Rounds that are looked through together at first; as many again each time."""
ScheduleCandidate = tuple[float, float, RoundsByLevel]
"""Payoff, utility, rounds and levels."""


_Best = tuple[float, float, _Label]
"""Payoff, utility and last label of the best schedule so far."""


def by_labels(task: CommittableJob, menu: RoundCosts, limit: int) -> ScheduleCandidate | None:
    """Best of all schedules; None where there are more labels than the limit."""
    labels: list[_Label] = [(0, 0.0, -1, None)]
    best: _Best = (0.0, 0.0, labels[0])
    units = [task.units[level] for level in menu.levels]
    ahead = _Ahead(menu.costs)
    for place, row in ahead:
        worth = task.value(task.first_round + place)
        if worth - menu.least <= best[0]:
            break
        grown, best = _extended(labels, row, place, units, task.work, worth, best)
        kept = _pareto(grown)
        if len(kept) > limit:
            return None
        if len(kept) == len(labels) and all(map(is_, kept, labels)):
            ahead.skip(row)
        labels = kept
    return best[0], best[1], _path(best[2], task.first_round, len(units))


def _extended(
    labels: list[_Label],
    row: list[float],
    place: int,
    units: list[int],
    needed: int,
    worth: float,
    best: _Best,
) -> tuple[list[_Label], _Best]:
    """Labels and those that a round's gangs make of them, and the best that is complete by now."""
    grown, dominated = list(labels), len(labels)
    for level, cost in enumerate(row):
        if cost == np.inf:
            continue
        order, done = place * len(units) + level, units[level]
        # Labels are in order of falling work and cost: those that complete come first, and the last
        # of them is the cheapest.
        enough = bisect_right(labels, done - needed, key=_WORK)
        if enough:
            paid = labels[enough - 1][1] + cost
            if paid < worth - best[0]:
                best = (worth - paid, worth, (0, paid, order, labels[enough - 1]))
        most = worth - best[0]
        # At the cost of the level before, which is faster, less work is dominated.
        until = dominated if level and cost == row[level - 1] else len(labels)
        grown += [
            (label[0] - done, paid, order, label)
            for label in labels[enough:until]
            if (paid := label[1] + cost) < most
        ]
        dominated = enough
    return grown, best


class _Ahead:
    """Rounds that may change something, in order; what cannot is passed over.

    Parameters
    ----------
    costs : ndarray, shape (rounds, levels)
    """

    def __init__(self, costs: NDArray[np.float64]) -> None:
        self._costs = costs
        # Rounds in which no gang fits are never of use.
        self._useless = [np.full(costs.shape[1], np.inf)]
        self._news: list[NDArray[np.float64]] = []

    def skip(self, row: list[float]) -> None:
        """Rounds that cost at least this at every level change nothing from now on."""
        found = np.array(row)
        self._useless = [each for each in self._useless if not (each >= found).all()]
        self._useless.append(found)
        self._news.append(found)

    def __iter__(self) -> Iterator[tuple[int, list[float]]]:
        begin, size = 0, _CHUNK
        while begin < len(self._costs):
            self._news.clear()
            end = min(begin + size, len(self._costs))
            yield from self._among(_not_above(self._costs, np.arange(begin, end), self._useless))
            begin, size = end, 2 * size

    def _among(self, places: NDArray[np.int64]) -> Iterator[tuple[int, list[float]]]:
        while len(places):
            seen = 0
            for place in places.tolist():
                seen += 1
                yield place, self._costs[place].tolist()
                if self._news:
                    break
            places = _not_above(self._costs, places[seen:], self._news)
            self._news.clear()


def _not_above(
    costs: NDArray[np.float64], places: NDArray[np.int64], rows: list[NDArray[np.float64]]
) -> NDArray[np.int64]:
    """Places whose costs are below each of some rows at some level."""
    for row in rows:
        places = places[(costs[places] < row).any(axis=1)]
    return places


def _pareto(labels: list[_Label]) -> list[_Label]:
    """Labels that no other beats in work and cost; of equal ones the first."""
    labels.sort()
    least = np.inf
    return [label for label in labels if label[1] < least and (least := label[1]) is not None]


def _path(label: _Label, first: int, levels: int) -> RoundsByLevel:
    """Rounds and levels of a label."""
    chosen: RoundsByLevel = {}
    link: object = label
    while isinstance(link, tuple):
        _, _, order, link = link
        if order >= 0:
            place, level = divmod(order, levels)
            chosen.setdefault(level, []).append(first + place)
    return chosen


def by_level(task: CommittableJob, menu: RoundCosts) -> ScheduleCandidate:
    """Best schedule that runs at the same level throughout: the cheapest rounds before each end."""
    payoff, utility, last, best_level = 0.0, 0.0, -1, 0
    for level in range(len(menu.levels)):
        end = menu.worth_until(payoff, menu.end)
        costs = menu.costs[: end - task.first_round, level]
        places = np.flatnonzero(costs < np.inf)
        for at, paid in _prefixes(costs[places], menu.needed[level]):
            worth = task.utilities(task.first_round + places[at])
            gain = worth - paid
            best = int(gain.argmax())
            if gain[best] > payoff:
                payoff, utility = float(gain[best]), float(worth[best])
                last, best_level = int(places[at[best]]), level
    if last < 0:
        return 0.0, 0.0, {}
    return payoff, utility, _cheapest_rounds(task, menu, last, best_level)


def _prefixes(
    costs: NDArray[np.float64], needed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Ends at which the cheapest rounds so far change, and what these cost together.

    One batch for each cost that is the dearest of the cheapest for a while.
    """
    if len(costs) < needed:
        return
    held = np.sort(costs[:needed])
    paid = float(held.sum())
    yield np.array([needed - 1]), np.array([paid])
    later = needed + np.flatnonzero(costs[needed:] < held[-1])
    while len(later):
        dearest = held[-1]
        kept = int(np.searchsorted(held, dearest))
        # As many rounds as have the dearest cost are replaced, in order.
        come, later = later[: needed - kept], later[needed - kept :]
        paid_after = paid + np.cumsum(costs[come] - dearest)
        yield come, paid_after
        paid = float(paid_after[-1])
        rest = held[kept + len(come) :]
        held = np.sort(np.concatenate([held[:kept], costs[come], rest]))
        later = later[costs[later] < held[-1]]


def _cheapest_rounds(
    task: CommittableJob, menu: RoundCosts, last: int, level: int
) -> RoundsByLevel:
    """As many rounds up to ``last`` as the work needs at a level, later ones of equal cost first."""
    costs, needed = menu.costs[: last + 1, level], menu.needed[level]
    dearest = np.partition(costs, needed - 1)[needed - 1]
    below = np.flatnonzero(costs < dearest)
    equal = np.flatnonzero(costs == dearest)
    places = np.concatenate([below, equal[len(equal) - (needed - len(below)) :]])
    return {level: (task.first_round + places).tolist()}


_FIRST_ROUNDS = 32
"""Rounds that a book has room for at first."""


@runtime_checkable
class Sampled(Protocol):
    """A utility that can be asked for many rounds at once."""

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
        """Task with exact units: with times p_r and a round of L, L / p_r of the job a round."""
        ticks = [int(time * TICKS_PER_S) if time < math.inf else 0 for time in processing_s]
        work = math.lcm(*(time for time in ticks if time))
        length = int(round_s * TICKS_PER_S)
        if length < 1:
            raise InputError(f"hadar: a round lasts {round_s!r} s, expected at least 2**-20 s")
        units = tuple(length * work // time if time else 0 for time in ticks)
        return cls(gpus, first_round, units, work, value, last_round)

    def utilities(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds."""
        if isinstance(self.value, Sampled):
            return self.value.at(rounds)
        return np.array([self.value(number) for number in rounds.tolist()], dtype=np.float64)

    def levels(self) -> list[int]:
        """One type for each distinct speed, fastest first."""
        by_speed = {units: kind for kind, units in enumerate(self.units) if units}
        return [by_speed[units] for units in sorted(by_speed, reverse=True)]


@dataclass(frozen=True)
class Commitment:
    """A job's slots.

    Parameters
    ----------
    rounds : tuple of (int, Pieces)
        Rounds in increasing order, and the GPUs held.
    utility, payoff : float
        Utility, and that less the price paid.
    """

    rounds: tuple[tuple[int, Pieces], ...]
    utility: float
    payoff: float


class CommittedLoad:
    """GPUs committed by round and node, growing with the horizon.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
    """

    def __init__(self, capacity: NDArray[np.int64], type_of_node: NDArray[np.int64]) -> None:
        self.capacity, self.type_of_node = capacity, type_of_node
        self.rounds = 0
        self._load = np.zeros((_FIRST_ROUNDS, len(capacity)), dtype=np.int64)
        self._tally = GangCostCache(capacity, type_of_node)

    def load(self, first: int, last: int) -> NDArray[np.int64]:
        """GPUs committed in the rounds first to last - 1, shape (rounds, nodes), to read or to change.

        Change them before the book is asked for costs again.
        """
        self._reserve(last)
        self._tally.touched(first, last)
        return self._load[first:last]

    def costs(self, wanted: GangRequest, prices: ExponentialPrices) -> NDArray[np.float64]:
        """Cost of the cheapest gang in the rounds from 0 to the first that is not sold, all empty then."""
        return self._tally.costs(wanted, prices, self._load[: self.rounds])

    def cheapest(
        self, wanted: GangRequest, prices: ExponentialPrices, rounds: NDArray[np.int64]
    ) -> list[Pieces]:
        """The cheapest gangs in some rounds in which one fits, cheapest GPUs first.

        O(rounds x nodes), where the load of a round differs from that of the one before.
        """
        self._reserve(int(rounds.max(initial=-1)) + 1)
        load = self._load[rounds]
        other = np.ones(len(rounds), dtype=np.bool_)
        other[1:] = (load[1:] != load[:-1]).any(axis=1)
        pieces = self._tally.cheapest(wanted, prices, load[other])
        return [pieces[row] for row in (other.cumsum() - 1).tolist()]

    def add(self, commitment: Commitment) -> None:
        """Take the GPUs of a commitment; O(its rounds)."""
        held = [
            (number, node, gpus) for number, pieces in commitment.rounds for node, gpus in pieces
        ]
        rounds, nodes, gpus = np.array(held, dtype=np.int64).reshape(-1, 3).T
        self._reserve(int(rounds.max(initial=-1)) + 1)
        before = self._load[rounds, nodes]
        self._load[rounds, nodes] = before + gpus
        self._tally.sold(rounds, nodes, before, gpus)

    def _reserve(self, rounds: int) -> None:
        self.rounds = max(self.rounds, rounds)
        if rounds > len(self._load):
            more = np.zeros((max(rounds, 2 * len(self._load)), len(self.capacity)), dtype=np.int64)
            more[: len(self._load)] = self._load
            self._load = more


def best_schedule(
    task: CommittableJob,
    book: CommittedLoad,
    prices: ExponentialPrices,
    *,
    labels: int = 10_000,
    fits: bool = True,
) -> Commitment | None:
    """Schedule of largest payoff that fits, or None where no payoff is positive.

    Without ``fits`` the commitments count for the prices only: what the prices would admit.

    Exact by Pareto labels (work done, cost) over the rounds as long as there are at most
    ``labels`` of them; beyond that, and for ``labels`` 0, the best among schedules that keep to one
    level. It stops at the round whose utility cannot beat what was found any more.
    """
    return best_of([task], book, prices, labels=labels, fits=fits)


def best_of(
    choices: Sequence[CommittableJob],
    book: CommittedLoad,
    prices: ExponentialPrices,
    *,
    labels: int = 10_000,
    fits: bool = True,
) -> Commitment | None:
    """Best schedule of any of some tasks, of which only one is to be done; see :func:`best_schedule`."""
    menus = [RoundCosts(task, book, prices, fits) for task in choices]
    found = [_search(menu, labels) for menu in menus]
    place = max(range(len(found)), key=lambda each: found[each][0], default=-1)
    if place < 0 or found[place][0] <= 0:
        return None
    payoff, utility, chosen = found[place]
    gangs = menus[place].gangs(chosen)
    rounds = tuple((number, gangs[number]) for number in sorted(gangs))
    return Commitment(rounds, utility, payoff)


def _search(menu: RoundCosts, labels: int) -> ScheduleCandidate:
    found = by_labels(menu.task, menu, labels) if labels else None
    return by_level(menu.task, menu) if found is None else found


def commit(
    tasks: Sequence[CommittableJob],
    book: CommittedLoad,
    prices: ExponentialPrices,
    *,
    labels: int = 10_000,
) -> list[Commitment | None]:
    """Take the tasks in order; the commitments, None where a task is refused."""
    made: list[Commitment | None] = []
    for task in tasks:
        commitment = best_schedule(task, book, prices, labels=labels)
        if commitment is not None:
            book.add(commitment)
        made.append(commitment)
    return made


def tasks_of(instance: Instance, utility: UtilityTable) -> list[CommittableJob]:
    """Tasks of an instance's jobs in order of arrival, with the table's rounds as the horizon."""

    def task(job: int) -> CommittableJob:
        values = utility.values[job].tolist()
        return CommittableJob.of(
            int(instance.workload.gpus[job]),
            math.ceil(float(instance.workload.arrival_s[job]) / utility.round_s),
            instance.processing_s[job].tolist(),
            utility.round_s,
            values.__getitem__,
            utility.rounds - 1,
        )

    return [task(job) for job in range(len(instance.workload))]
