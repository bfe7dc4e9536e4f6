"""Windows of completions: LB-windows."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

from .costs import LeastWork, weighted
from .form import MOST, Record, Rejected, need, rational, rows_of_prices, whole
from .limits import MOST_SUMS, MOST_WINDOWED, Effort

WINDOWS = "completion-windows"
Window = tuple[Fraction, Fraction]


class WindowTree:
    """Parts of all schedules by windows of completions, as they come: cuts in two, and parts with prices."""

    def __init__(self, jobs: LeastWork, bound: Record) -> None:
        need(jobs.gangs, f"{WINDOWS}: jobs share GPUs, hold parts of them or run as copies")
        self.jobs, self.unit = jobs, rational(bound["unit"], "unit of prices")
        self.of = [whole(j, "job of the windows") for j in bound["jobs"]]
        fine = self.of == sorted(set(self.of)) and self.of[-1] < len(jobs.arrival)
        need(fine and self.unit, "windows are of jobs that there are not, or prices have no unit")
        few = len(self.of) <= MOST_WINDOWED
        need(few, f"{WINDOWS}: of {len(self.of)} jobs, and not of {MOST_WINDOWED} at most")
        need(max(jobs.gang) <= jobs.gpus, f"{WINDOWS}: a gang is of more GPUs than there are")
        # While somebody is not complete a gang runs, for every gang fits: so all are complete by then.
        last = Fraction(max(jobs.arrival) + sum(jobs.shortest))
        first = (Fraction(jobs.arrival[j] + jobs.shortest[j]) for j in self.of)
        self.open: list[dict[int, Window]] = [
            {j: (e, last) for j, e in zip(self.of, first, strict=True)}
        ]
        self.grid: list[Fraction] = []
        self.rows: list[list[int]] = []
        self.least: Fraction | None = None
        self.scale, self.effort = 1, Effort(WINDOWS, 0, MOST_SUMS)

    def take(self, part: Record) -> None:
        """Take the next part, which is of the windows that were opened last."""
        need(self.open, "a part comes after all windows have prices")
        windows = self.open.pop()
        if part.keys() == {"cut", "at", "first"}:
            self.cut(part, windows)
            return
        need(part.keys() == {"grid", "prices"}, "a part is neither a cut nor has prices")
        if part["grid"] or part["prices"]:
            self.grid, self.rows = self.priced(part)
        need(self.grid, "there are no prices before these windows")
        least = self.cheapest(windows)
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)

    def cut(self, part: Record, windows: dict[int, Window]) -> None:
        """A job completes up to a moment, or from it on."""
        j, at = whole(part["cut"], "job of a cut"), self.moment(part["at"], "moment of a cut")
        need(j in windows, f"job {j} is cut, which has no windows")
        need(
            part["first"] in ("early", "late"), "the first part of a cut is neither early nor late"
        )
        begin, end = windows[j]
        halves = [{**windows, j: (begin, min(end, at))}, {**windows, j: (max(begin, at), end)}]
        self.open += halves if part["first"] == "late" else halves[::-1]

    def moment(self, value: Any, what: str) -> Fraction:
        """A moment, all of which have a denominator in common."""
        exact = rational(value, what)
        self.scale = lcm(self.scale, exact.denominator)
        need(self.scale < MOST, "moments have no common denominator of at most 1,000 digits")
        return exact

    def priced(self, part: Record) -> tuple[list[Fraction], list[list[int]]]:
        """A grid, and a price of each job in each cell."""
        grid = [self.moment(at, "grid of windows") for at in part["grid"]]
        rows = rows_of_prices(part["prices"])
        fine = len(grid) > 1 and all(a < b for a, b in pairwise(grid))
        need(fine, "the grid of windows does not increase")
        fine = len(rows) == len(self.of) and all(len(row) == len(grid) - 1 for row in rows)
        need(fine, "there is not a price of each job in each cell")
        return grid, rows

    def cheapest(self, windows: dict[int, Window]) -> Fraction | None:
        """Least cost within windows at the prices at hand; None if nothing can be done within them."""
        self.effort.spend(len(self.grid) * len(self.of))
        value = -self.rent(windows) * self.unit
        for j, prices in zip(self.of, self.rows, strict=True):
            cost = self.cheapest_end(j, windows[j], prices)
            if cost is None:
                return None
            value += cost
        return value

    def rent(self, windows: dict[int, Window]) -> Fraction:
        """Most that jobs which fit together are worth in each cell where they may run, over all time."""
        paid = Fraction(0)
        for k, (begin, end) in enumerate(pairwise(self.grid)):
            best = {0: 0}  # Most worth, by GPUs.
            for j, prices in zip(self.of, self.rows, strict=True):
                if prices[k] and self.jobs.arrival[j] < end and begin < windows[j][1]:
                    self.effort.spend(len(best))
                    for gpus, worth in sorted(best.items(), reverse=True):
                        more = gpus + self.jobs.gang[j]
                        if more <= self.jobs.gpus:
                            best[more] = max(best.get(more, 0), worth + prices[k])
            paid += max(best.values()) * (end - begin)
        return paid

    def cheapest_end(self, j: int, window: Window, prices: list[int]) -> Fraction | None:
        """Least of w x end + price of the cheapest time that suffices before it, over ends within a window."""
        scale = self.scale
        earliest, latest, *grid = (int(at * scale) for at in (*window, *self.grid))
        arrival, left = self.jobs.arrival[j] * scale, self.jobs.shortest[j] * scale
        if earliest > latest:
            return None
        # Costs are whole in units of unit / (rent x scale).
        delay, rent = (self.jobs.weight[j] / self.unit).as_integer_ratio()
        ends = sorted({min(max(at, arrival), latest) for at in (arrival, earliest, latest, *grid)})
        paid, best = 0, None
        taken: list[tuple[int, int]] = []  # (-price, length)
        for now, end in pairwise([*ends, latest]):
            cell = bisect_right(grid, now) - 1
            price = prices[cell] if 0 <= cell < len(prices) else 0
            begin = now
            while True:
                if not left and now >= earliest:
                    cost = delay * now + rent * paid
                    best = cost if best is None else min(best, cost)
                if now == end or not (left or (taken and -taken[0][0] > price)):
                    break
                if left:
                    length = min(left, end - now)
                    left -= length
                else:  # time of this cell for the dearest time taken
                    dear, most = heapq.heappop(taken)
                    length = min(most, end - now)
                    paid += length * dear
                    if length < most:
                        heapq.heappush(taken, (dear, most - length))
                paid += length * price
                now += length
            if now > begin:
                heapq.heappush(taken, (-price, now - begin))
        return None if best is None else self.unit * Fraction(best, rent * scale)

    def bound(self) -> Fraction:
        """The least of all parts, and jobs without windows as if alone."""
        need(not self.open, "some windows have no prices")
        jobs, mine = self.jobs, set(self.of)
        if self.least is None:
            raise Rejected("nothing can be done within any windows")
        others = [j for j in range(len(jobs.arrival)) if j not in mine]
        alone = (jobs.arrival[j] + jobs.shortest[j] for j in others)
        return self.least + weighted([jobs.weight[j] for j in others], alone)
