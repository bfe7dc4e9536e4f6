"""Jobs that may share GPUs of several types, in plain data: the largest gain, and schedules built to be good.

Nothing here is of the package: rates are dicts of numbers, schedules lists of rows, times whole ticks.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

TICKS = 2**20

Kind = tuple[str, int]
"""Model and gang."""

Row = tuple[int, int, int, int, int, int]
"""Job, node, GPUs, start and end [ticks], partner or -1."""


@dataclass(frozen=True)
class PlainJobs:
    """Jobs on one node for each GPU type.

    Parameters
    ----------
    types : tuple of str
    node_gpus : tuple of int
        GPUs of the node of each type.
    kind : tuple of Kind
        Of each job.
    arrival_s, work, weight : tuple of float
    alone : tuple of tuple of float
        Rate of each job on each type.
    pairs : dict of (str, Kind, Kind) to (float, float)
        Rates of the two kinds beside each other; of each pair one order alone.
    """

    types: tuple[str, ...]
    node_gpus: tuple[int, ...]
    kind: tuple[Kind, ...]
    arrival_s: tuple[float, ...]
    work: tuple[float, ...]
    weight: tuple[float, ...]
    alone: tuple[tuple[float, ...], ...]
    pairs: dict[tuple[str, Kind, Kind], tuple[float, float]]

    def rate(self, t: int, job: int) -> float:
        """Rate of a job alone on a type; 0 where its gang has no room."""
        return self.alone[job][t] if self.kind[job][1] <= self.node_gpus[t] else 0.0

    def beside(self, t: int, one: int, other: int) -> tuple[float, float] | None:
        """Rates of two jobs on the same GPUs of a type; None if they cannot share them."""
        a, b = self.kind[one], self.kind[other]
        if one == other or a[1] != b[1] or not (self.rate(t, one) and self.rate(t, other)):
            return None
        both = self.pairs.get((self.types[t], a, b))
        if both is None:
            both = self.pairs.get((self.types[t], b, a), (0.0, 0.0))[::-1]
        return both if min(both) > 0 else None

    @property
    def all_types(self) -> range:
        """Numbers of the types."""
        return range(len(self.types))

    def ways(self, types: Sequence[int]) -> Iterator[tuple[int, int, float, float]]:
        """Two jobs and their rates on a type, of all that may share; each pair of jobs in both orders."""
        for one, other in permutations(range(len(self.kind)), 2):
            for t in types:
                both = self.beside(t, one, other)
                if both is not None:
                    yield one, other, *both

    def fastest(self, types: Sequence[int]) -> list[Fraction]:
        """Largest rate of each job on some types, alone or beside another."""
        n = range(len(self.kind))
        most = [Fraction(max(self.rate(t, j) for t in types)) for j in n]
        for one, _, mine, _ in self.ways(types):
            most[one] = max(most[one], Fraction(mine))
        return most


def largest_gain(jobs: PlainJobs, types: Sequence[int] | None = None) -> Fraction:
    """Most that two jobs do together, of their largest rates, on the same GPUs of some types; at least 1."""
    types = jobs.all_types if types is None else types
    most = jobs.fastest(types)
    sums = (
        Fraction(mine) / most[one] + Fraction(theirs) / most[other]
        for one, other, mine, theirs in jobs.ways(types)
    )
    return max([Fraction(1), *sums])


def ticks_of(work: float, rate: float) -> int:
    """Whole job at a rate, rounded up to ticks, at least one."""
    return max(math.ceil(work / rate * TICKS), 1)


@dataclass
class _Block:
    """GPUs of a type that one or two jobs hold until an end."""

    type: int
    gpus: int
    until: int


def built_schedule(jobs: PlainJobs, order: Sequence[int], *, shares: bool = True) -> list[Row]:
    """A schedule of jobs in an order, each as early as it ends soonest, with who is next in the order if that helps.

    Nobody is stopped: of a pair the later one goes on alone.
    """
    rows: list[Row] = []
    blocks: list[_Block] = []
    left = list(order)
    while left:
        one = left.pop(0)
        options = [
            _placed(jobs, blocks, t, one, other)
            for t in jobs.all_types
            if jobs.rate(t, one)
            for other in ([None, *left] if shares else [None])
        ]
        # Of a pair what counts is its end for each of the two.
        _, partner, block, mine = min(
            (each for each in options if each is not None), key=lambda each: each[0]
        )
        rows += mine
        blocks.append(block)
        if partner is not None:
            left.remove(partner)
    return rows


def _placed(
    jobs: PlainJobs, blocks: list[_Block], t: int, one: int, other: int | None
) -> tuple[Fraction, int | None, _Block, list[Row]] | None:
    """The earliest that a job, or a pair, can run on a type: time for each job, partner, GPUs held, rows."""
    gang = jobs.kind[one][1]
    members = [one] if other is None else [one, other]
    ready = math.ceil(max(jobs.arrival_s[j] for j in members) * TICKS)
    begin = _free_at(jobs, blocks, t, gang, ready)
    alone = [ticks_of(jobs.work[j], jobs.alone[j][t]) for j in members]
    if other is None:
        end = begin + alone[0]
        row = (one, t, gang, begin, end, -1)
        return Fraction(end), None, _Block(t, gang, end), [row]
    both = jobs.beside(t, one, other)
    if both is None:
        return None
    whole = [ticks_of(jobs.work[j], rate) for j, rate in zip(members, both, strict=True)]
    together = min(whole)
    rows, ends = [], []
    for k, j in enumerate(members):
        middle = begin + together
        rows.append((j, t, gang, begin, middle, members[1 - k]))
        rest = math.ceil((1 - Fraction(together, whole[k])) * alone[k])
        if rest:
            rows.append((j, t, gang, middle, middle + rest, -1))
        ends.append(middle + rest)
    # Two that end at the same time count as one that ends at half of what it took.
    return Fraction(begin + (max(ends) - begin) // 2), other, _Block(t, gang, max(ends)), rows


def _free_at(jobs: PlainJobs, blocks: list[_Block], t: int, gang: int, ready: int) -> int:
    """First moment from which so many GPUs of a type are free for good."""
    moments = sorted({ready, *(b.until for b in blocks if b.type == t and b.until > ready)})
    return next(
        now
        for now in moments
        if sum(b.gpus for b in blocks if b.type == t and b.until > now) + gang <= jobs.node_gpus[t]
    )


def good_schedules(
    jobs: PlainJobs, seed: int, count: int, *, shares: bool = True
) -> Iterator[list[Row]]:
    """Schedules in order of arrival, of work, of weight over work and in random orders; with pairs also if allowed."""
    draw, n = random.Random(seed), range(len(jobs.kind))
    rates = jobs.fastest(jobs.all_types)
    shortest = [Fraction(w) / rate for w, rate in zip(jobs.work, rates, strict=True)]
    orders = [
        sorted(n, key=lambda j: (jobs.arrival_s[j], shortest[j])),
        sorted(n, key=lambda j: shortest[j]),
        sorted(n, key=lambda j: -Fraction(jobs.weight[j]) / shortest[j]),
    ]
    orders += [draw.sample(n, len(n)) for _ in range(count)]
    for order in orders:
        for pairs in (True, False) if shares else (False,):
            yield built_schedule(jobs, order, shares=pairs)


def drawn_jobs(seed: int) -> PlainJobs:
    """Two types, of which one is much faster, kinds of several gangs, and rates of pairs in any order of the types."""
    draw = random.Random(seed)
    types = tuple(draw.sample(("v100", "k80"), 2))
    gangs = draw.choice([(1,), (1, 2), (1, 2, 4)])
    models = "ab"[: draw.randint(1, 2)]
    kinds = [(model, gang) for model in models for gang in gangs]
    # The largest gangs may have room on one type alone.
    room = draw.sample([max(gangs), draw.choice([1, max(gangs)])], 2)
    node_gpus = tuple(draw.choice([1, 2, 4]) * each for each in room)
    speed = {
        kind: tuple(float(draw.choice([1, 2, 4, 8]) if t == "v100" else 1) for t in types)
        for kind in kinds
    }
    shares = {t: draw.choice([(1.0,), (0.5, 1.5), (0.1, 0.25, 0.5, 0.75)]) for t in types}
    table = {}
    for column, t in enumerate(types):
        for i, one in enumerate(kinds):
            for other in (each for each in kinds[i:] if each[1] == one[1]):
                mine, theirs = draw.choice(shares[t]), draw.choice(shares[t])
                if draw.random() < 0.8:
                    # Two of a kind have one rate.
                    both = (mine, mine) if one == other else (mine, theirs)
                    table[t, one, other] = (
                        both[0] * speed[one][column],
                        both[1] * speed[other][column],
                    )
    entries = list(table.items())
    draw.shuffle(entries)
    jobs = [draw.choice(kinds) for _ in range(draw.randint(2, 8))]
    alike = draw.random() < 0.5
    late = draw.random() < 0.3
    # Some jobs of a kind may be faster than others.
    own = [draw.choice([1.0, 1.0, 2.0]) if draw.random() < 0.3 else 1.0 for _ in jobs]
    return PlainJobs(
        types,
        node_gpus,
        tuple(jobs),
        tuple(sorted(float(draw.randint(0, 5)) if late else 0.0 for _ in jobs)),
        tuple(16.0 if alike else float(draw.randint(1, 30)) for _ in jobs),
        tuple(draw.choice([1.0, 1.0, 0.5, 3.0]) if not alike else 1.0 for _ in jobs),
        tuple(
            tuple(rate * mine for rate in speed[kind]) for kind, mine in zip(jobs, own, strict=True)
        ),
        dict(entries),
    )


def filling_jobs(seed: int) -> PlainJobs:
    """Pairs that fill a fast type and are through at once, beside a slow type of any rates: little is better."""
    draw = random.Random(seed)
    types = tuple(draw.sample(("v100", "k80"), 2))
    gangs = draw.choice([(1,), (2,), (1, 2)])
    kinds = [(model, gang) for model in "ab"[: draw.randint(1, 2)] for gang in gangs]
    jobs = [kind for kind in (draw.choice(kinds) for _ in range(draw.randint(2, 4))) for _ in "12"]
    fast, slow = types.index("v100"), types.index("k80")
    # One pair of equal jobs a gang.
    room = {fast: sum(gang for _, gang in jobs) // 2, slow: 1}
    alone = {kind: {fast: 4.0, slow: draw.choice([0.0625, 0.25, 1.0])} for kind in kinds}
    share = draw.choice([0.75, 1.0, 1.0])
    entries = []
    for kind in kinds:
        entries.append((("v100", kind, kind), (4 * share, 4 * share)))
        low = draw.choice([0.125, 0.5]) * alone[kind][slow]
        entries.append((("k80", kind, kind), (low, low)))
    draw.shuffle(entries)
    arrival, weight = float(draw.choice([0, 3])), draw.choice([1.0, 0.5, 3.0])
    n = len(jobs)
    return PlainJobs(
        types,
        (room[0], room[1]),
        tuple(jobs),
        (arrival,) * n,
        (32.0,) * n,
        (weight,) * n,
        tuple((alone[kind][0], alone[kind][1]) for kind in jobs),
        dict(entries),
    )


def published_jobs(
    data: Mapping[str, Mapping[str, Mapping[str, Any]]], names: Sequence[str]
) -> PlainJobs:
    """Jobs of equal work on all types of a published table of rates, 16 GPUs of each.

    Parameters
    ----------
    data : mapping
        The table as JSON has it: by type and job the rate under ``null`` and those beside others.
    names : sequence of str
        Of the jobs, as in the table.
    """
    types, n = tuple(data), len(names)
    pairs = {
        (t, ast.literal_eval(name), ast.literal_eval(other)): (float(both[0]), float(both[1]))
        for t, rows in data.items()
        for name, row in rows.items()
        for other, both in row.items()
        if other != "null"
    }
    return PlainJobs(
        types,
        (16,) * len(types),
        tuple(ast.literal_eval(name) for name in names),
        (0.0,) * n,
        (100.0,) * n,
        (1.0,) * n,
        tuple(
            tuple(float(data[t].get(name, {"null": 0})["null"]) for t in types) for name in names
        ),
        pairs,
    )
