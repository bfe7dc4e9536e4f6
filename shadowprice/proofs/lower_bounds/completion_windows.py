r"""LB-windows: prices of each job's time where completions are within windows, and a tree of them that covers all.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j` that hold all of their GPUs whenever they run, processing
times :math:`p_j`, releases :math:`r_j`, weights :math:`w_j \ge 0`; any schedule in which nobody shares GPUs,
preemptive at any moment or not, any placement, any overheads. Let :math:`\pi_j(t) \ge 0` be prices of the time
of each job, and let completions be within windows, :math:`a_j \le C_j \le b_j`. With

.. math:: \mu(t) = \max \Bigl\{ \sum_{j \in S} \pi_j(t) : \sum_{j \in S} g_j \le m,\
          r_j \le t < b_j \ \forall j \in S \Bigr\}

every such schedule has

(a) :math:`\sum_j w_j C_j \ge \sum_j \min_{a_j \le C \le b_j} \Bigl( w_j C + \Pi_j(C) \Bigr) - \int \mu(t)\,dt`,

where :math:`\Pi_j(C)` is the least of :math:`\int_I \pi_j` over sets I of measure :math:`p_j` between
:math:`r_j` and :math:`C`, and infinite if there is none;

(b) the least of these bounds over the leaves of a tree is a bound for all schedules, if its root has the
windows :math:`[r_j + p_j, \max r + \sum p]` and each inner node cuts the window of one job in two at a moment.

Status. Ours; Lagrangian duality as in LB-conf, and branch and bound.

Proof.

1. Let :math:`I_j` be when j holds its gang and makes progress or pays for its start, of measure p_j or more, between
   r_j and C_j; drop the end of it beyond p_j. The jobs of a moment t fit together, each is released and C_j, hence
   b_j, is after t, so :math:`\sum_j \int_{I_j} \pi_j \le \int \mu`. Adding and subtracting gives (a) as in LB-conf.
2. Times after the last release at which none of the :math:`I_j` has anything may be left out, and what is later moved
   forward: no C_j grows, and what runs together is the same. So it is enough to bound schedules that are done by
   :math:`\max r + \sum p`, and the root's windows hold these. A completion is at most t or at least t, so the
   children of a node cover it, and by induction the leaves cover the root. Q.E.D.

Jobs may be left out altogether: that only relaxes, and their :math:`w_j (r_j + p_j)` is added. A job that can run
somewhere within a cell of the grid, on which prices are constant, counts in all of it. Everything is evaluated in
whole numbers, by code that shares nothing with the search of ``solvers.offline.completions.completion_search``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.completions.completion_search import (
    CompletionTree,
    Cut,
    Part,
    Priced,
)

STATUS = "ours"

KNOWS = RELAXED_KNOWS

Window = tuple[Fraction, Fraction]
"""Earliest and latest completion [ticks]."""


def bound(instance: Instance, tree: CompletionTree) -> Fraction:
    """Lower bound of total weighted completion time [s], exactly.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If jobs may share GPUs or grow, or the tree is not about the instance's jobs.
    """
    require(instance, KNOWS, "LB-windows")
    every = ScheduleClass.allowed(instance, preemptive=True)
    if not every.rigid:
        raise ValueError(f"{every}: expected jobs that hold whole gangs of their own")
    return tree_bound(Relaxation.of(instance), tree) / TICKS_PER_S


def check(
    instance: Instance, weighted_completion_s: float | Fraction, tree: CompletionTree
) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance, tree)


def tree_bound(jobs: Relaxation, tree: CompletionTree) -> Fraction:
    """The least bound of the tree's leaves [ticks], exactly; O(leaves n cells^2).

    Raises
    ------
    ValueError
        If the tree is not about these jobs.
    """
    if sorted(set(tree.jobs)) != sorted(tree.jobs) or jobs.speedup != 1:
        raise ValueError("expected a tree of different jobs that do not share GPUs")
    if not all(0 <= j < len(jobs.release) for j in tree.jobs):
        raise ValueError(f"a tree of jobs {tree.jobs}: expected numbers below {len(jobs.release)}")
    last = Fraction(max(jobs.release) + sum(jobs.work))
    root = {j: (Fraction(jobs.release[j] + jobs.work[j]), last) for j in tree.jobs}
    others = (
        w * (r + p)
        for j, (w, r, p) in enumerate(zip(jobs.weight, jobs.release, jobs.work, strict=True))
        if j not in root
    )
    return _Leaves(jobs, tree).least(tree.root, root) + sum(others, Fraction(0))


@dataclass
class _Leaves:
    """Bounds of leaves; cells of prices that several leaves have in common are looked at once."""

    jobs: Relaxation
    tree: CompletionTree
    known: dict[tuple[int, int, Window], Fraction | None] = field(default_factory=dict)
    fits: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def least(self, part: Part, windows: dict[int, Window]) -> Fraction:
        """The least bound below a node; an empty part has none, and its sibling stands for it."""
        found: list[Fraction] = []
        stack = [(part, windows)]
        while stack:
            here, mine = stack.pop()
            if isinstance(here, Cut):
                if here.job not in mine:
                    raise ValueError(f"a cut of job {here.job}: expected one of {self.tree.jobs}")
                begin, end = mine[here.job]
                stack.append((here.early, {**mine, here.job: (begin, min(end, here.at_ticks))}))
                stack.append((here.late, {**mine, here.job: (max(begin, here.at_ticks), end)}))
                continue
            value = self.leaf(here, mine)
            if value is not None:
                found.append(value)
        if not found:
            raise ValueError("no leaf of the tree has a schedule")
        return min(found)

    def leaf(self, leaf: Priced, windows: dict[int, Window]) -> Fraction | None:
        """Bound (a) of a leaf; None if its windows are too short for a job."""
        if any(begin > end for begin, end in windows.values()):
            return None
        _expect_prices(leaf, len(self.tree.jobs))
        total = Fraction(0)
        for row, j in enumerate(self.tree.jobs):
            key = (id(leaf), j, windows[j])
            if key not in self.known:
                self.known[key] = _least_cost(self.jobs, j, windows[j], leaf, row, self.tree)
            cost = self.known[key]
            if cost is None:
                return None
            total += cost
        return total - self.tree.price_unit * self.rent(leaf, windows)

    def rent(self, leaf: Priced, windows: dict[int, Window]) -> Fraction:
        """Integral of mu, in units of prices."""
        total = Fraction(0)
        for k, (begin, end) in enumerate(pairwise(leaf.grid_ticks)):
            there = [
                (leaf.rows[row][k], self.jobs.gpus[j])
                for row, j in enumerate(self.tree.jobs)
                if self.jobs.release[j] < end and begin < windows[j][1] and leaf.rows[row][k]
            ]
            total += _most_worth(there, self.jobs.total_gpus) * (end - begin)
        return total


def _expect_prices(leaf: Priced, jobs: int) -> None:
    """Refuse what is no grid, or has no price or one below 0 somewhere."""
    grid = leaf.grid_ticks
    cells = len(grid) - 1
    bad = any(a >= b for a, b in pairwise(grid)) or cells < 1
    if bad or len(leaf.rows) != jobs or any(len(row) != cells or min(row) < 0 for row in leaf.rows):
        raise ValueError("expected an increasing grid, and a price >= 0 of each job in each cell")


def _most_worth(there: Sequence[tuple[int, int]], gpus: int) -> int:
    """Most that jobs, given by price and gang, which fit together are worth."""
    best = [0] * (gpus + 1)
    for price, gang in there:
        for full in range(gpus, gang - 1, -1):
            best[full] = max(best[full], best[full - gang] + price)
    return best[gpus]


def _least_cost(
    jobs: Relaxation, j: int, window: Window, leaf: Priced, row: int, tree: CompletionTree
) -> Fraction | None:
    """Least of w C + price of the time taken over ends C within the window; None if there is none.

    For an end in a cell, what is not taken of the cell is taken of the cheapest time before. The cost changes its
    slope in the amount taken of the cell only where one piece of that time is used up, and at the window's begin.
    """
    scale = math.lcm(
        *(at.denominator for at in leaf.grid_ticks), *(at.denominator for at in window)
    )
    release, work = jobs.release[j] * scale, jobs.work[j] * scale
    earliest, latest = (int(at * scale) for at in window)
    grid = [int(at * scale) for at in leaf.grid_ticks]
    cells = [
        (max(begin, release), min(end, latest), price)
        for begin, end, price in zip(grid, grid[1:], leaf.rows[row], strict=False)
    ]
    cells = [(release, min(grid[0], latest), 0), *cells, (max(grid[-1], release), latest, 0)]
    unit, weight = tree.price_unit, jobs.weight[j]
    best: Fraction | None = None
    before: list[tuple[int, int]] = []  # Price and length, the cheapest first.
    for begin, end, price in cells:
        if begin >= end:
            continue
        upto = [0, *accumulate(length for _, length in before)]
        paid = [0, *accumulate(cost * length for cost, length in before)]
        fewest, most = max(work - upto[-1], 0), min(end - begin, work)
        taken = {fewest, most, earliest - begin, *(work - each for each in upto)}
        for x in taken:
            if not fewest <= x <= most or max(earliest, begin + x) > end:
                continue
            k = next(k for k in range(len(upto)) if upto[k] >= work - x)
            rest = 0 if k == 0 else paid[k - 1] + before[k - 1][0] * (work - x - upto[k - 1])
            ends = max(earliest, begin + x)
            cost = weight * ends + unit * (rest + x * price)
            best = cost if best is None or cost < best else best
        before = sorted([*before, (price, end - begin)])
    return None if best is None else best / scale
