"""Total utility, and its bound from above: HADAR-any."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from .costs import LeastWork
from .form import FIELDS, TICKS_PER_S, Record, need, rational, rows_of_prices, summed
from .instance import CertificateInstance
from .limits import MEASURE_BITS, MOST_SUMS, Effort, fits
from .modes import gpus_by_type


class Utilities(NamedTuple):
    """Utilities of jobs by the round in which they complete, in columns of the jobs; they do not increase.

    Round k ends with tick (k + 1) ``length``. Where there are deadlines a job earns its worth if it completes in a
    round that ends by its deadline, else its worth over the seconds from its arrival to the end of that round, and
    over those of a round if they are fewer. What does not complete earns nothing, and neither does what
    completes in rounds that begin when the run was stopped or later.
    """

    arrival: list[int]
    worth: list[Fraction]
    deadline: list[int]
    length: int
    until: int | None

    def of(self, j: int, k: int) -> Fraction:
        """Utility of a job that completes in a round."""
        end = (k + 1) * self.length
        if self.until is not None and k * self.length >= self.until:
            return Fraction(0)
        if self.deadline:
            return self.worth[j] if end <= self.deadline[j] else Fraction(0)
        return self.worth[j] * TICKS_PER_S / max(end - self.arrival[j], self.length)

    def earned(self, ends: list[int]) -> Fraction:
        """Total utility of completions, 0 for none, rounded down."""
        last = ((j, (end - 1) // self.length) for j, end in enumerate(ends) if end)
        return summed(self.of(j, k) for j, k in last)

    def most(self, offers: Iterable[PricedSpeeds], rounds: int, unit: Fraction) -> Fraction:
        """Most that all jobs earn over the least price of their time in so many rounds, rounded up."""
        effort = Effort("prices of rounds", len(self.arrival), MOST_SUMS)
        market = rounds, unit
        each = (self.payoff(j, offer, market, effort) for j, offer in enumerate(offers))
        return -summed(-payoff for payoff in each)

    def payoff(
        self, j: int, offer: PricedSpeeds, market: tuple[int, Fraction], effort: Effort
    ) -> Fraction:
        """Most that a job earns over the least price of its time; whoever completes after the rounds pays nothing."""
        rounds, unit = market
        begin = -(-self.arrival[j] // self.length) * self.length if offer.whole else self.arrival[j]
        first = begin // self.length
        best = self.of(j, max(first, rounds))
        each = unit * offer.multiple / self.length
        every = (least(*way, offer.columns, begin, self.length, rounds) for way in self.ways(offer))
        for k, costs in enumerate(zip(*every, strict=True), first):
            effort.spend(len(offer.ticks) * (1 + len(offer.ticks) // 4))
            worth = self.of(j, k)
            if worth <= best:
                break
            if None not in costs:
                best = max(best, worth - max(cost or 0 for cost in costs) * each)
        return best

    def ways(self, offer: PricedSpeeds) -> Iterator[tuple[int, list[int]]]:
        """Work that is done at least, and units of it a tick at each speed; of whole rounds a few, all of which are.

        Rounds of speed k do at most ceil(p / p_k) times as much as those of a speed at which the job takes p ticks, of
        which it needs p / length, rounded up.
        """
        work = lcm(*offer.ticks)
        yield work, [work // ticks for ticks in offer.ticks]
        for most in offer.ticks if offer.whole else ():
            units = -(-most // self.length) * self.length
            yield units, [-(-most // ticks) for ticks in offer.ticks]


class PricedSpeeds(NamedTuple):
    """Speeds of a job and what they cost.

    ``ticks`` are those of the whole job, fewest first; ``columns`` has of each speed the price of a round, by
    round, in units of ``multiple``. With ``whole`` the job runs for none or all of a round.
    """

    ticks: list[int]
    columns: list[list[int]]
    multiple: Fraction
    whole: bool = False


def least(
    work: int,
    speeds: list[int],
    columns: list[list[int]],
    begin: int,
    length: int,
    rounds: int,
) -> Iterator[Fraction | None]:
    """Least price of some work by the end of each round from a beginning on, None if it cannot be.

    In units of multiple / length. It buys the pieces of work that cost least, of each round those
    of the lower convex hull of its speeds and their prices.
    """
    common = 1
    for less in {a - b for a in speeds for b in (0, *speeds) if a > b}:
        common = lcm(common, less)
        few = common.bit_length() <= MEASURE_BITS
        need(few, "prices of rounds: the speeds of a job have no short measure in common")
    taken: list[tuple[int, int]] = []  # (-price of a unit, units)
    units = paid = 0
    for k in range(begin // length, rounds):
        left = min((k + 1) * length - begin, length)
        costs = [column[k] for column in columns]
        speed = cost = 0
        while any(faster > speed for faster in speeds):
            price, faster, dearer = min(
                ((other - cost) * (common // (each - speed)), each, other)
                for each, other in zip(speeds, costs, strict=True)
                if each > speed
            )
            piece = (faster - speed) * left
            heapq.heappush(taken, (-price, piece))
            units, paid = units + piece, paid + price * piece
            speed, cost = faster, dearer
        while taken and units - taken[0][1] >= work:
            price, most = heapq.heappop(taken)
            units, paid = units - most, paid + price * most
        if units < work:
            yield None
        else:
            spare = units - work
            yield Fraction(paid + (spare * taken[0][0] if taken else 0), common)


def bound_utility(
    instance: CertificateInstance, utilities: Utilities, jobs: LeastWork, bound: Record
) -> Fraction:
    """Upper bound of the total utility: the price of all GPUs, and what jobs earn over that of their time."""
    kind = bound["bound"]
    known = type(kind) is str and kind in OFFERS
    need(known, f"the bound is {kind!r:.80}, and not one of {', '.join(OFFERS)}")
    fine = bound.keys() - FIELDS["bound"][0] == {"unit"} and bound["grid"] == []
    need(fine, f"{kind} has a unit of prices by round, and no grid")
    unit = rational(bound["unit"], "unit of prices")
    rows = rows_of_prices(bound["prices"])
    need(rows and len(set(map(len, rows))) == 1, "there are no prices, or not as many in all rows")
    types = 1 if kind == "round-prices" else len(instance.types)
    need(len(rows) == types, f"there are no prices for {types} types")
    capacity, offers = OFFERS[kind](instance, jobs, rows)
    paid = sum((gpus * sum(row) for gpus, row in zip(capacity, rows, strict=True)), Fraction(0))
    return paid * unit + utilities.most(offers, len(rows[0]), unit)


def by_area(
    instance: CertificateInstance, jobs: LeastWork, rows: list[list[int]]
) -> tuple[list[Fraction], Iterator[PricedSpeeds]]:
    """Every job at its best speed, of which it uses as much of all GPUs as its least area asks for."""
    columns = zip(jobs.area, jobs.shortest, strict=True)
    offers = (
        PricedSpeeds([ticks], rows[:1], Fraction(area, jobs.scale * ticks))
        for area, ticks in columns
    )
    return [Fraction(jobs.capacity, jobs.scale)], offers


def by_type(
    instance: CertificateInstance, jobs: LeastWork, rows: list[list[int]]
) -> tuple[list[Fraction], Iterator[PricedSpeeds]]:
    """Every gang at the speed of its slowest type, at the price of GPUs of the cheapest type that is as fast."""
    fine = jobs.gangs and not instance.speeds and all(map(any, instance.times))
    need(fine, "prices by type: jobs share GPUs, may grow, have graphs or run as copies")
    known: dict[tuple[int, ...], list[int]] = {}
    effort = Effort("prices of types", len(jobs.gang), MOST_SUMS)

    def offer(j: int) -> PricedSpeeds:
        times = [ticks and instance.fastest(j, ticks) for ticks in instance.times[j]]
        ticks, columns = sorted(set(times) - {0}), []
        for most in ticks:
            able = tuple(kind for kind, each in enumerate(times) if 0 < each <= most)
            if able not in known:
                fits((len(known) + 1) * len(rows[0]), "prices of types")
                effort.spend(len(able) * len(rows[0]))
                prices = zip(*(rows[kind] for kind in able), strict=True)
                known[able] = [min(each) for each in prices]
            columns.append(known[able])
        return PricedSpeeds(ticks, columns, Fraction(jobs.gang[j]))

    return gpus_by_type(instance), map(offer, range(len(jobs.gang)))


def by_whole_round(
    instance: CertificateInstance, jobs: LeastWork, rows: list[list[int]]
) -> tuple[list[Fraction], Iterator[PricedSpeeds]]:
    """As by type, where every gang is held for whole rounds."""
    need("rounds" in instance.header, "whole-round-prices: the schedule is not in whole rounds")
    gpus, offers = by_type(instance, jobs, rows)
    return gpus, (offer._replace(whole=True) for offer in offers)


OFFERS = {
    "round-prices": by_area,
    "typed-round-prices": by_type,
    "whole-round-prices": by_whole_round,
}
"""Bounds of the total utility, and what they take a job's time to cost."""
