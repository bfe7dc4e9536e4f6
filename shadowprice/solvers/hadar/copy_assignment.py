r"""HadarE: which job gets which nodes in a round, and how its copies share its steps.

Source: Sultana et al., HadarE (arXiv 2503.10918). Running a job as up to k copies, one a node,
and splitting its steps by throughput (the paper's job tracker) are recalled; everything precise here is
derived by us.

*Order of jobs.* A :class:`CopyOrder` scores every (job, node class); the best pair is served first. The
default, :class:`Payoff`, is Hadar's payoff per unit of price.

*Nodes* (:func:`assign`). A served job takes nodes of the classes it scores best until they suffice to
finish it in this round or it has k copies; nodes that are left over then go to served jobs, in the same
order, as further copies. No node is left idle that some job with fewer than k copies can run on.

*Steps* (:func:`split_steps`). Copies of a job that goes on after the round do all whole steps that fit;
in the last round of a job its copies end together. In exact arithmetic.

Complexity: O(s J C + n log n) a round for J jobs, C classes, n nodes and s jobs served; steps O(c log c)
for c copies of a job.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError

# Order of jobs


@dataclass(frozen=True)
class RoundView:
    """Input of an order: unfinished jobs in order of arrival, and classes of equal nodes.

    Parameters
    ----------
    now_s : float
        Start of the round [s].
    jobs : ndarray of int, shape (jobs,)
        Rows in the workload.
    total_steps, remaining_steps : ndarray, shape (jobs,)
        Steps of the whole job and those not yet done.
    rates : ndarray, shape (jobs, classes)
        Steps per second of one copy on a node of each class; 0 where no step fits a round.
    arrival_s, waiting_s : ndarray, shape (jobs,)
        Arrival, and time since then without any copy on a node [s].
    load : ndarray, shape (classes,)
        Share of the nodes of each class taken so far in this round.
    """

    now_s: float
    jobs: NDArray[np.int64]
    total_steps: NDArray[np.int64]
    remaining_steps: NDArray[np.int64]
    rates: NDArray[np.float64]
    arrival_s: NDArray[np.float64]
    waiting_s: NDArray[np.float64]
    load: NDArray[np.float64]

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Time one copy alone needs on a node of each class [s], infinite where it cannot run."""
        able = self.rates > 0
        needed = np.full(self.rates.shape, np.inf)
        np.divide(self.remaining_steps[:, None], self.rates, out=needed, where=able)
        return needed


class CopyOrder(Protocol):
    """Scores of (job, node class), larger is served earlier; ties go to the earlier job."""

    def __call__(self, view: RoundView) -> NDArray[np.float64]:
        """Scores, shape (jobs, classes); those of pairs with rate 0 do not matter."""


Value = Callable[[RoundView, NDArray[np.float64]], NDArray[np.float64]]
"""Values >= 0 of completion times [s] of shape (jobs, classes), non-increasing in them."""


def isolated_over_duration(
    view: RoundView, completion_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Run time of the whole job on its best node over its duration, a value named by the paper.

    Utility U = isolated time / (f - a), for finish-time fairness (recalled). It differs from
    effective throughput, steps / (f - a), by a factor a job: steps of two models do not compare.
    """
    alone_s = view.total_steps / view.rates.max(axis=1)
    value: NDArray[np.float64] = alone_s[:, None] / (completion_s - view.arrival_s[:, None])
    return value


@dataclass(frozen=True)
class Payoff:
    r"""Value per remaining time over price, Hadar's order for copies.

    With value :math:`v_j` at completion f and remaining time :math:`\rho_{jc}` of a copy alone on a node
    of class c the score is

    .. math:: \frac{v_j(t + \rho_{jc})}{\rho_{jc}\, k_c}, \qquad
              k_c = U_{\min} (U_{\max} / U_{\min})^{\ell_c},

    where :math:`\ell_c` is the share of the class taken so far in this round and U the range of
    :math:`v / \rho` over the jobs that are there (estimated online, the exponential price recalled).
    """

    value: Value = isolated_over_duration

    def __call__(self, view: RoundView) -> NDArray[np.float64]:
        """O(jobs x classes)."""
        needed = view.remaining_s
        able = np.isfinite(needed)
        needed = np.where(able, needed, 1.0)
        density = np.where(able, self.value(view, view.now_s + needed) / needed, 0.0)
        invalid = ~((density >= 0) & np.isfinite(density)).all(axis=1)
        if invalid.any():
            raise PolicyError(
                f"hadare: the value of job {view.jobs[invalid][0]} at {view.now_s} s is negative or not "
                "finite"
            )
        positive = density[density > 0]
        if not len(positive):
            return density
        lowest, highest = positive.min(), positive.max()
        price = lowest * (highest / lowest) ** view.load
        scores: NDArray[np.float64] = density / price
        return scores


@dataclass(frozen=True)
class ShortestFirst:
    """Least remaining time of a copy first."""

    def __call__(self, view: RoundView) -> NDArray[np.float64]:
        """O(jobs x classes)."""
        return -view.remaining_s


@dataclass(frozen=True)
class ByArrival:
    """Order of arrival, on the class where the job is fastest."""

    def __call__(self, view: RoundView) -> NDArray[np.float64]:
        """O(jobs x classes)."""
        position = np.arange(len(view.jobs), dtype=np.float64)[:, None]
        fastest = np.maximum(view.rates.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        # Below 1, so that speed decides between classes only.
        scores: NDArray[np.float64] = 0.5 * view.rates / fastest - position
        return scores


ORDERS: Mapping[str, Callable[[], CopyOrder]] = {
    "payoff": Payoff,
    "shortest": ShortestFirst,
    "first-come": ByArrival,
}
"""Orders by name: Hadar's payoff over price, least remaining time, arrival."""


# Nodes


@dataclass(frozen=True)
class NodeGrant:
    """Nodes of one job in a round: position in the view, and nodes in the order of its choice.

    The first ``needed`` are those it was served with; others were left over, and are for its copies
    only as long as these keep a step each: else one of them idles that somebody else could use.
    """

    position: int
    nodes: list[int]
    needed: int


Room = Callable[[int, int, bool], int]
"""Steps a job (by position) can do on a node this round, as one of several copies or alone."""


class NodeLimits(Protocol):
    """Limits on the nodes that jobs take together in a round, such as quotas of tenants."""

    def nodes(self, count: int) -> set[int]:
        """Those of so many nodes that anybody may take."""

    def within(self, position: int, nodes: Sequence[int], most: int) -> list[int]:
        """The first of these nodes that a job may take beside what was taken, at most so many."""

    def take(self, position: int, nodes: Sequence[int]) -> None:
        """Take note that a job takes nodes."""


class Unlimited:
    """Any node, for any job."""

    def nodes(self, count: int) -> set[int]:
        """All of them."""
        return set(range(count))

    def within(self, position: int, nodes: Sequence[int], most: int) -> list[int]:
        """The first of these nodes."""
        return list(nodes[:most])

    def take(self, position: int, nodes: Sequence[int]) -> None:
        """Nothing follows."""


def assign(
    view: RoundView,
    order: CopyOrder,
    class_of_node: NDArray[np.int64],
    prefer: Callable[[int], Sequence[int]],
    room: Room,
    max_copies: Callable[[int], int],
    limits: NodeLimits | None = None,
) -> list[NodeGrant]:
    """Give the nodes of a round to jobs, in the order in which they are served.

    Parameters
    ----------
    class_of_node : ndarray of int, shape (nodes,)
        Class of each node.
    prefer : callable
        Nodes from the most to the least preferred for a job, by position, among equal classes.
    room : callable
        See :data:`Room`.
    max_copies : callable
        Largest number of copies of a job, by position, at least 1.
    limits : NodeLimits, optional
        What jobs may take together; any nodes if not given.

    Raises
    ------
    PolicyError
        If the order returns scores of another shape, or that are not numbers.
    """
    limited = limits or Unlimited()
    free = limited.nodes(len(class_of_node))
    grants: list[NodeGrant] = []
    preferences: list[list[int]] = []
    for position, ranked in _served(view, order, class_of_node, prefer, free):
        nodes = [node for node in ranked if node in free]
        nodes = limited.within(position, nodes, max_copies(position))
        if not nodes:
            continue
        nodes = _enough(int(view.remaining_steps[position]), nodes, position, room)
        free -= set(nodes)
        limited.take(position, nodes)
        grants.append(NodeGrant(position, nodes, len(nodes)))
        preferences.append(ranked)
    for grant, ranked in zip(grants, preferences, strict=True):
        copies_left = max_copies(grant.position) - len(grant.nodes)
        more = [node for node in ranked if node in free]
        more = limited.within(grant.position, more, copies_left)
        grant.nodes.extend(more)
        free -= set(more)
        limited.take(grant.position, more)
    return grants


def preferred_nodes(last: Sequence[int], job: int, unfinished: Container[int]) -> list[int]:
    """Nodes that ran a job last, then those that no unfinished job ran on last, then the others.

    Parameters
    ----------
    last : sequence of int
        Job that ran last on each node, -1 for none.
    """

    def rank(node: int) -> int:
        before = last[node]
        return 0 if before == job else 2 if before in unfinished else 1

    return sorted(range(len(last)), key=rank)


def _served(
    view: RoundView,
    order: CopyOrder,
    class_of_node: NDArray[np.int64],
    prefer: Callable[[int], Sequence[int]],
    free: set[int],
) -> Iterator[tuple[int, list[int]]]:
    """Jobs and the nodes they can run on, best first, while some job can use a free node.

    The caller takes nodes out of ``free`` before it asks for the next job.
    """
    classes = class_of_node.tolist()
    size = np.bincount(class_of_node, minlength=view.rates.shape[1])
    able = view.rates > 0
    while free:
        left = np.bincount(class_of_node[list(free)], minlength=len(size))
        possible = able & (left > 0)
        if not possible.any():
            return
        scores = _scores(order, view, 1.0 - left / size)
        position = int(np.argmax(np.where(possible, scores, -np.inf))) // len(size)
        yield position, _ranked(classes, scores[position], able[position], prefer(position))
        able[position] = False


def _ranked(
    classes: list[int],
    scores: NDArray[np.float64],
    able: NDArray[np.bool_],
    preferred: Sequence[int],
) -> list[int]:
    """Nodes a job can run on, by the score of their class, then as it prefers."""
    decreasing = np.argsort(-scores, kind="stable").tolist()
    nodes: dict[int, list[int]] = {each: [] for each in decreasing if able[each]}
    for node in preferred:
        if classes[node] in nodes:
            nodes[classes[node]].append(node)
    return [node for same in nodes.values() for node in same]


def _scores(order: CopyOrder, view: RoundView, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores at a load, checked."""
    scores = np.asarray(order(replace(view, load=load)), dtype=np.float64)
    if scores.shape != view.rates.shape or not np.isfinite(scores[view.rates > 0]).all():
        raise PolicyError(
            f"hadare: at {view.now_s} s the order returned scores of shape {scores.shape}, expected "
            f"finite ones of shape {view.rates.shape}"
        )
    return scores


def _enough(remaining: int, nodes: list[int], position: int, room: Room) -> list[int]:
    """The first nodes that together can finish the job in this round, or all.

    None of them is dispensable, so that each does a step whichever way the steps are shared.
    """
    if room(position, nodes[0], False) >= remaining:
        return nodes[:1]
    rooms = [room(position, node, True) for node in nodes]
    done, count = 0, 0
    while done < remaining:
        if count == len(nodes):
            return nodes
        done += rooms[count]
        count += 1
    # From the least preferred on, a node that the others can do without is given up.
    kept = []
    for node, steps in reversed(list(zip(nodes[:count], rooms[:count], strict=True))):
        if done - steps >= remaining:
            done -= steps
        else:
            kept.append(node)
    return kept[::-1]


# Steps


def split_steps(
    remaining: int, rates: Sequence[Fraction], owed: Sequence[int], length: int
) -> list[int]:
    r"""Steps of each copy of a job in a round; exact, O(c log c) for c copies.

    A copy whose job goes on after the round does all whole steps that fit it, hence shares in proportion
    to throughput. In the last round of a job copies end together: with rates :math:`x_c` and time
    :math:`o_c` owed first, at the level T with :math:`\sum_c x_c (T - o_c)^+ = R`, up to whole steps.

    Parameters
    ----------
    remaining : int
        Steps of the job not yet done.
    rates : sequence of Fraction
        Steps per tick of each copy.
    owed : sequence of int
        Ticks of the round each copy spends without progress.
    length : int
        Length of the round [ticks].

    Returns
    -------
    list of int
        As many whole steps as fit, if all together do not finish the job. Else all remaining
        steps, each where it ends earliest: no split has an earlier last end, and no copy ends
        more than one of its own steps before the last.
    """
    fitting = [int(rate * max(length - lost, 0)) for rate, lost in zip(rates, owed, strict=True)]
    if sum(fitting) <= remaining:
        return fitting
    level = _level(remaining, rates, owed)
    steps = [
        int(rate * max(level - lost, Fraction(0))) for rate, lost in zip(rates, owed, strict=True)
    ]
    # Steps lost to rounding go one by one to the copy that would end them first.
    ends = [
        (lost + (done + 1) / rate, copy)
        for copy, (rate, lost, done) in enumerate(zip(rates, owed, steps, strict=True))
    ]
    heapq.heapify(ends)
    for _ in range(remaining - sum(steps)):
        end, copy = ends[0]
        steps[copy] += 1
        heapq.heapreplace(ends, (end + 1 / rates[copy], copy))
    return steps


def _level(remaining: int, rates: Sequence[Fraction], owed: Sequence[int]) -> Fraction:
    """Common end of copies if steps could be cut [ticks]: sum of rate x (level - owed)+."""
    level = Fraction(0)
    # Rates of the copies that have begun, and steps that these lose before they begin.
    speed, lost_steps = Fraction(0), Fraction(0)
    order = [copy for _, copy in sorted((lost, copy) for copy, lost in enumerate(owed))]
    for position, copy in enumerate(order):
        speed += rates[copy]
        lost_steps += rates[copy] * owed[copy]
        level = (remaining + lost_steps) / speed
        # The next copy would begin after all steps are done.
        if position + 1 < len(order) and level <= owed[order[position + 1]]:
            break
    return level
