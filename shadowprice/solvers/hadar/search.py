r"""Which rounds and levels a job buys: the dual subroutine of the commit-once algorithm (derived).

Among the rounds there are few different costs, since a cost follows from how many nodes have which
load. Both searches pass over rounds that cannot change anything, many at a time:

*Exact.* Pareto labels (work done, cost). Let a round leave the labels as they were. Then any later
round that costs at least as much at every level does so too, whatever was bought in between: what
the labels become does not depend on the order of rounds, and the utility only falls. The rounds that
are worked through are thus as many as change a label, and one more for each cost.

*One level.* Up to each round the cheapest ones so far are the best. A round that costs no less than
the dearest of them changes nothing; those that cost less replace the rounds of the dearest cost
one by one, so that all of these are evaluated in one go.

Cost: exact O(rounds that change a label x labels x levels), one level O(rounds x different costs).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import is_, itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.menu import Chosen, Menu

if TYPE_CHECKING:
    from shadowprice.solvers.hadar.commit_schedule import Task

_Label = tuple[int, float, int, object]
"""Work done, negated; cost; round and level as one number; the label before that."""
_WORK = itemgetter(0)
_CHUNK = 32
"""Rounds that are looked through together at first; as many again each time."""
Found = tuple[float, float, Chosen]
"""Payoff, utility, rounds and levels."""


_Best = tuple[float, float, _Label]
"""Payoff, utility and last label of the best schedule so far."""


def by_labels(task: Task, menu: Menu, limit: int) -> Found | None:
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


def _path(label: _Label, first: int, levels: int) -> Chosen:
    """Rounds and levels of a label."""
    chosen: Chosen = {}
    link: object = label
    while isinstance(link, tuple):
        _, _, order, link = link
        if order >= 0:
            place, level = divmod(order, levels)
            chosen.setdefault(level, []).append(first + place)
    return chosen


def by_level(task: Task, menu: Menu) -> Found:
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


def _cheapest_rounds(task: Task, menu: Menu, last: int, level: int) -> Chosen:
    """As many rounds up to ``last`` as the work needs at a level, later ones of equal cost first."""
    costs, needed = menu.costs[: last + 1, level], menu.needed[level]
    dearest = np.partition(costs, needed - 1)[needed - 1]
    below = np.flatnonzero(costs < dearest)
    equal = np.flatnonzero(costs == dearest)
    places = np.concatenate([below, equal[len(equal) - (needed - len(below)) :]])
    return {level: (task.first_round + places).tolist()}
