"""Bounds at prices over time: the interval LP, and cheapest plans."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from math import lcm
from typing import Any

from .costs import LeastWork, weighted
from .form import PRICE_UNIT, Record, need, total, whole
from .limits import MOST_SUMS, Effort


def bound_interval_lp(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job takes its time where time and GPUs cost least.

    It takes none after the grid. Of no job has the cluster more to do than it does in the job's shortest time; so
    while it is busy or everybody runs at his best, a tick is one of somebody's shortest times at least, and a
    best schedule is over by the last arrival and all shortest times, which are on the grid.
    """
    grid, prices = cells_of(bound["grid"], bound["prices"])
    need(grid[0] <= min(jobs.arrival), "the grid begins too late")
    fits = all(a <= jobs.capacity * p for a, p in zip(jobs.area, jobs.shortest, strict=True))
    need(fits, "a job has more work than the cluster does in its shortest time")
    last = max(jobs.arrival) + sum(jobs.shortest)
    need(grid[-1] >= last, "the grid ends too early")
    Effort("interval-lp", len(jobs.area)).spend(len(jobs.area) * len(prices))
    spent = sum(p * (b - a) for p, (a, b) in zip(prices, pairwise(grid), strict=True))
    paid = Fraction(-jobs.capacity * spent, jobs.scale * PRICE_UNIT)
    costs = (least_price(jobs, j, grid, prices) for j in range(len(jobs.area)))
    return total(chain([paid], costs), common_unit(jobs))


def common_unit(jobs: LeastWork) -> int:
    """A number that weights and prices are whole multiples of one over."""
    return lcm(PRICE_UNIT * jobs.scale, *{each.denominator for each in jobs.weight})


def least_price(jobs: LeastWork, j: int, grid: list[int], prices: list[int]) -> Fraction:
    """Least price of a job: w (begin / p) + g beta a unit of time, in halves of intervals."""
    work, weight, arrival = jobs.shortest[j], jobs.weight[j], jobs.arrival[j]
    unit = PRICE_UNIT * jobs.scale
    q = lcm(weight.denominator, unit)  # costs are whole in units of 1 / (p q)
    time_cost, rent = int(weight * q), jobs.area[j] * (q // unit)
    offers = []
    for (a, b), price in zip(pairwise(grid), prices, strict=True):
        begin = max(a, arrival)
        most = min(b - begin, work)
        if most > 0:
            offers.append((time_cost * begin + rent * price, most - most // 2))
            offers.append((time_cost * (begin + most) + rent * price, most // 2))
    left, cost = work, 0
    for price, room in sorted(offers):
        take = min(left, room)
        cost += take * price
        left -= take
    least = Fraction(cost, work * q) + weight * Fraction(work, 2)
    return least if jobs.until is None else min(least, weight * jobs.until)


def bound_priced_plans(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of a GPU, in units of the largest weight."""
    grid, prices = cells_of(bound["grid"], bound["prices"])
    columns = zip(jobs.area, jobs.shortest, strict=True)
    rows = [(prices, Fraction(area, jobs.scale * ticks)) for area, ticks in columns]
    gpus = Fraction(jobs.capacity, jobs.scale)
    return plans(jobs, grid, rows, [gpus * price for price in prices])


def bound_configurations(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of gangs, a list a width; each cell has the dearest gangs that fit."""
    need(jobs.gangs, "configurations: jobs share GPUs, hold parts of them or run as copies")
    widths, capacity = sorted(set(jobs.gang)), jobs.gpus
    need(len(bound["prices"]) == len(widths), f"there are no prices for gangs of {widths!r:.80}")
    effort = Effort("configurations", len(jobs.gang), MOST_SUMS)
    effort.spend((len(bound["grid"]) - 1) * len(widths) * capacity)
    cells = [cells_of(bound["grid"], row) for row in bound["prices"]]
    grid, rows = cells[0][0], dict(zip(widths, (row for _, row in cells), strict=True))
    release: dict[int, list[int]] = {g: [] for g in widths}
    for arrival, gang in sorted(zip(jobs.arrival, jobs.gang, strict=True)):
        release[gang].append(arrival)
    most: list[int] = []
    for k, end in enumerate(grid[1:]):
        best = [0] * (capacity + 1)
        for g in widths:
            left, lot = min(bisect_left(release[g], end), capacity // g), 1
            while left and rows[g][k]:
                size, value = min(lot, left) * g, min(lot, left) * rows[g][k]
                more = [worth + value for worth in best[: capacity + 1 - size]]
                best[size:] = map(max, best[size:], more)
                left, lot = left - min(lot, left), 2 * lot
        most.append(best[capacity])
    return plans(jobs, grid, [(rows[gang], Fraction(1)) for gang in jobs.gang], most)


def cells_of(grid: Any, prices: Any) -> tuple[list[int], list[int]]:
    """A grid and prices of its cells."""
    need(type(prices) is list, "prices are no lists")
    bounds, whole_prices = [whole(b, "grid") for b in grid], [whole(p, "price") for p in prices]
    fine = len(bounds) == len(whole_prices) + 1 and all(a < b for a, b in pairwise(bounds))
    need(fine, "the grid does not increase")
    return bounds, whole_prices


def plans(
    jobs: LeastWork,
    grid: list[int],
    rows: list[tuple[list[int], Fraction]],
    most: Sequence[int | Fraction],
) -> Fraction:
    """Cheapest plans, from prices and their multiples by job, less what each cell is worth at most."""
    unit, effort = max(jobs.weight) / PRICE_UNIT, Effort("prices of plans", len(jobs.area))
    spent = (worth * (b - a) for worth, (a, b) in zip(most, pairwise(grid), strict=True))
    paid = sum(spent, Fraction(0))
    # Costs of a job are whole in units of unit / scale, those of jobs of a scale are added up.
    sums: dict[int, int] = {}
    known: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for j, (prices, multiple) in enumerate(rows):
        weight = jobs.weight[j]
        if not weight:
            continue
        which = id(weight), *multiple.as_integer_ratio()
        if which not in known:
            delay, scale = (weight * multiple.denominator / unit).as_integer_ratio()
            scale *= multiple.denominator
            known[which] = delay, scale, int(scale * multiple)
        delay, scale, gang = known[which]
        best = cheapest_plan(jobs, j, (grid, prices), (delay, gang), effort.spend)
        sums[scale] = sums.get(scale, 0) + best
    terms = (unit * Fraction(best, scale) for scale, best in sums.items())
    offset = weighted(jobs.weight, jobs.arrival)
    return total(chain([offset - paid * unit], terms), common_unit(jobs))


def cheapest_plan(
    jobs: LeastWork,
    j: int,
    market: tuple[list[int], list[int]],
    cost_of: tuple[int, int],
    spend: Callable[[int], None],
) -> int:
    """Least of delay x (end - arrival) + gang x price of the cheapest time that suffices before the end."""
    (grid, prices), (delay, gang) = market, cost_of
    arrival, left = jobs.arrival[j], jobs.shortest[j]
    paid, best = 0, None
    if jobs.until is not None:  # It need not be complete before.
        best = delay * (jobs.until - arrival)
    taken: list[tuple[int, int]] = []  # (-price, length)
    first = bisect_right(grid, arrival)
    free = (
        max(arrival, grid[-1]) + left
    )  # Nobody needs more after the grid, where it costs nothing.
    for cell in range(first - 1, len(grid)):
        now = arrival if cell < first else grid[cell]
        end = grid[cell + 1] if cell + 1 < len(grid) else free
        price = prices[cell] if 0 <= cell < len(prices) else 0
        if best is not None and delay * (now - arrival) >= best:
            break
        begin = now
        while now < end and (left or (taken and -taken[0][0] > price)):
            if left:
                length = min(left, end - now)
                left -= length
            else:  # time of this cell for the dearest time taken
                dear, most = heapq.heappop(taken)
                length = min(most, end - now)
                paid += gang * length * dear
                if length < most:
                    heapq.heappush(taken, (dear, most - length))
            paid += gang * length * price
            now += length
            cost = delay * (now - arrival) + paid
            best = cost if not left and (best is None or cost < best) else best
        if now > begin:
            heapq.heappush(taken, (-price, now - begin))
    spend(cell - first + 2)
    return best or 0
