"""Least costs of the schedules of a small world, by exhaustive search over those that change at whole seconds.

Nothing here is of the package. Where jobs may stop for nothing all choices are tried in every slot, else only
where something ends, comes or may begin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from support.small_copies import least_of_copies
from support.small_costs import NEVER, Least
from support.small_ways import Choice, Held, Way, choices, ways_in
from support.small_worlds import NOBODY, TICKS, WHOLE, Counts, Klass, World

SLOWEST = 4
"""Times as long as at its best that a job may take where it is searched for."""
MOST_CHOICES = 12
"""Choices that are tried in a slot where all may stop for nothing, those in which most is done."""

Grown = tuple[Fraction, Fraction, Choice | None, Choice | None]
"""Least total and least last end from a time on, and the choices that they begin with."""


@dataclass(frozen=True)
class Progress:
    """A job in the search: units of work left, charges owed [ticks], what it does, and where it was last."""

    left: int
    owed: int = 0
    on: Held | None = None
    last: Counts | None = None


def quota_at(world: World, now: int) -> Mapping[str, int] | None:
    """GPUs that tenants may hold by the runs that begin at a time."""
    found = None
    for begin, quotas in world.quotas:
        if begin <= now:
            found = quotas
    return found


def charge(world: World, job: Progress, at: Counts) -> int:
    """Charge of a run that begins [ticks]."""
    if not any(world.charges):
        return 0
    start, restart, migration = world.charges
    seconds = start
    if job.last is not None:
        seconds += restart + (migration if job.last != at else 0)
    return int(seconds * TICKS)


@dataclass(frozen=True)
class Piece:
    """A part of a slot in which a job has one partner or none, without progress at first [ticks from its beginning]."""

    held: Held
    start: int
    end: int
    overhead: int


def slot(
    world: World, units: Sequence[int], jobs: Sequence[Progress], choice: Choice, j: int
) -> tuple[list[Piece], int, int]:
    """What a job does in a slot, its work left [units] and charges owed [ticks] afterwards.

    Where its partner ends first it goes on alone.
    """
    held = choice[j]
    assert held is not None
    job, owed = jobs[j], owes(world, jobs[j], held)
    first = _until(job.left, owed, units[j] // held.ticks)
    alone = TICKS
    if held.partner != NOBODY:
        other, theirs = jobs[held.partner], choice[held.partner]
        assert theirs is not None
        speed = units[held.partner] // theirs.ticks
        alone = min(_until(other.left, owes(world, other, theirs), speed), TICKS)
    end = min(first, alone)
    paid = min(owed, end)
    left = job.left - (end - paid) * (units[j] // held.ticks)
    pieces = [Piece(held, 0, end, paid)]
    if left > 0 and end < TICKS:
        assert held.alone is not None
        speed = units[j] // held.alone.ticks
        last = min(end + _until(left, owed - paid, speed), TICKS)
        more = min(owed - paid, last - end)
        pieces.append(Piece(held.alone, end, last, more))
        left, paid = left - (last - end - more) * speed, paid + more
    return pieces, max(left, 0), owed - paid


def owes(world: World, job: Progress, held: Held) -> int:
    """Charges that a job owes when it does this in the next slot [ticks]."""
    if job.on is not None and job.on.way.place == held.way.place:
        return job.owed
    return job.owed + charge(world, job, held.way.at)


def _until(left: int, owed: int, speed: int) -> int:
    """Ticks until work is done, after what is owed."""
    return owed - (-left // speed)


class Search:
    """Schedules of a world that change at whole seconds, from the first on."""

    def __init__(self, world: World, klass: Klass) -> None:
        if world.restarts:
            # Runs that are lost gain nothing: the best schedule has none.
            klass = Klass(False, klass.sharing, klass.elastic, klass.consolidated)
        self._world, self._klass = world, klass
        counted = set(world.counted)
        # Who does not count is never run.
        every = ways_in(world, klass)
        ways = [each if j in counted else [] for j, each in enumerate(every)]
        self._choices = [each for each in choices(world, klass, ways) if _fast(each, ways)]
        # Where no run is charged and all may stop at any time, it makes no difference where jobs were.
        self._free = klass.preemptive and not any(world.charges)
        self._units = []
        for j in range(len(world.jobs)):
            mine = [held for choice in self._choices if (held := choice[j]) is not None]
            runs = {held.ticks for held in mine} | {held.way.ticks for held in mine}
            self._units.append(math.lcm(*runs) if runs else 0)
        changes = [begin for begin, _ in world.quotas]
        self._moments = {*changes, *(world.jobs[j].release for j in counted)}
        longest = sum(
            -(-max(way.ticks for way in mine) // TICKS) + 2 + 3 * sum(map(math.ceil, world.charges))
            for mine in ways
            if mine
        )
        self._horizon = max(self._moments) + longest
        self._active: dict[object, list[Choice]] = {}
        self._grow = cache(self._grow_anew)

    def least(self) -> Least:
        """The least costs, with their schedules."""
        jobs = tuple(
            Progress(self._units[j] if j in self._world.counted else 0)
            for j in range(len(self._world.jobs))
        )
        if self._free:
            # Who takes much longer than the fastest choices do is not among the best.
            self._horizon = self._greedy_end(jobs) + 1
        total, last = self._grow(0, jobs, False)[:2]
        return Least(total, last, self._path(jobs, 2), self._path(jobs, 3))

    def _greedy_end(self, jobs: tuple[Progress, ...]) -> int:
        """Slots until all is done where most is done in each."""
        now = 0
        while any(job.left for job in jobs) and now <= self._horizon:
            jobs = self._after(now, jobs, self._open(now, jobs, False)[0])[0]
            now += 1
        return now

    def _path(self, jobs: tuple[Progress, ...], which: int) -> tuple[Choice, ...]:
        found: list[Choice] = []
        now, ended = 0, False
        while any(job.left for job in jobs):
            choice = self._grow(now, jobs, ended)[which]
            if choice is None:
                return ()
            found.append(choice)
            before = sum(map(_done, jobs))
            jobs = self._after(now, jobs, choice)[0]
            now, ended = now + 1, not self._free and sum(map(_done, jobs)) > before
        return tuple(found)

    def _grow_anew(self, now: int, jobs: tuple[Progress, ...], ended: bool) -> Grown:
        """Least costs from a time on; ``ended`` where a job ended in the slot before."""
        world = self._world
        if not any(job.left for job in jobs):
            return Fraction(0), Fraction(0), None, None
        if world.stopped is not None and now >= world.stopped:
            late = [world.jobs[j].weight for j, job in enumerate(jobs) if job.left]
            return sum(late, Fraction(0)) * world.stopped * TICKS, Fraction(0), None, None
        if now > self._horizon:
            return NEVER, NEVER, None, None
        best, soonest, first, second = NEVER, NEVER, None, None
        before = sum(map(_done, jobs))
        for choice in self._open(now, jobs, ended):
            after, cost, last = self._after(now, jobs, choice)
            ends = not self._free and sum(map(_done, after)) > before
            later_cost, later_last = self._grow(now + 1, after, ends)[:2]
            if cost + later_cost < best:
                best, first = cost + later_cost, choice
            if max(last, later_last) < soonest:
                soonest, second = max(last, later_last), choice
        return best, soonest, first, second

    def _after(
        self, now: int, jobs: tuple[Progress, ...], choice: Choice
    ) -> tuple[tuple[Progress, ...], Fraction, Fraction]:
        """Jobs after a slot, the cost of those that end in it, and the last end."""
        world, after = self._world, list(jobs)
        cost = last = Fraction(0)
        for j, held in enumerate(choice):
            if held is None:
                if jobs[j].on is not None:
                    after[j] = Progress(jobs[j].left, jobs[j].owed, None, jobs[j].last)
                continue
            pieces, left, owed = slot(world, self._units, jobs, choice, j)
            if not left:
                end = now * TICKS + pieces[-1].end
                if world.stopped is not None:
                    end = min(end, world.stopped * TICKS)
                cost, last = cost + world.jobs[j].weight * end, max(last, Fraction(end))
                after[j] = Progress(0)
            elif self._free:
                after[j] = Progress(left)
            else:
                after[j] = Progress(left, owed, pieces[-1].held, held.way.at)
        return tuple(after), cost, last

    def _open(self, now: int, jobs: tuple[Progress, ...], ended: bool) -> Sequence[Choice]:
        """Choices that are open in a slot.

        Unless all may stop for nothing, what jobs do changes only where one ends, comes or may begin by a new quota:
        without preemption no cost is less for waiting longer.
        """
        world = self._world
        there = tuple(bool(job.left) and world.jobs[j].release <= now for j, job in enumerate(jobs))
        quota = quota_at(world, now)
        if self._free:
            key = (there, None if quota is None else tuple(sorted(quota.items())))
            if key not in self._active:
                mine = [choice for choice in self._choices if _among(choice, there)]
                mine = [choice for choice in mine if self._within(quota, choice, None)]
                self._active[key] = _largest(mine, self._units)
            return self._active[key]
        if not ended and now not in self._moments:
            return [tuple(job.on if job.left else None for job in jobs)]
        if there not in self._active:
            self._active[there] = [each for each in self._choices if _among(each, there)]
        found = self._active[there]
        if not self._klass.preemptive:
            running = [(j, job.on.way) for j, job in enumerate(jobs) if job.on is not None]
            for j, way in running:
                found = [c for c in found if (held := c[j]) is not None and held.way is way]
        if quota is not None:
            found = [choice for choice in found if self._within(quota, choice, jobs)]
        return found

    def _within(
        self, quota: Mapping[str, int] | None, choice: Choice, jobs: tuple[Progress, ...] | None
    ) -> bool:
        """True if no tenant holds more than its quota where one of its runs begins."""
        if quota is None:
            return True
        held: dict[str, Fraction] = {}
        begins: set[str] = set()
        for j, each in enumerate(choice):
            if each is not None:
                job = self._world.jobs[j]
                mine = Fraction(sum(each.way.at) * job.milli, WHOLE)
                if each.partner != NOBODY:
                    mine /= 2
                if job.on_cores:
                    continue
                held[job.tenant] = held.get(job.tenant, Fraction(0)) + mine
                on = None if jobs is None else jobs[j].on
                if on is None or on.way.place != each.way.place:
                    begins.add(job.tenant)
        return all(held[tenant] <= quota.get(tenant, 0) for tenant in begins)


def _done(job: Progress) -> bool:
    return not job.left


def _fast(choice: Choice, ways: Sequence[Sequence[Way]]) -> bool:
    """True if no job is very slow: such choices make the search long, and are in few of the best schedules."""
    return all(
        held is None or held.ticks <= SLOWEST * min(way.ticks for way in mine)
        for held, mine in zip(choice, ways, strict=True)
    )


def _among(choice: Choice, there: tuple[bool, ...]) -> bool:
    return all(held is None or mine for held, mine in zip(choice, there, strict=True))


def _largest(found: list[Choice], units: Sequence[int]) -> list[Choice]:
    """Choices than which none lets every job run as fast, and one faster."""
    speeds: dict[Counts, Choice] = {}
    for choice in found:
        key = tuple(0 if h is None else u // h.ticks for h, u in zip(choice, units, strict=True))
        speeds.setdefault(key, choice)
    kept: list[Counts] = []
    scale = max(units, default=1) or 1
    for key in sorted(
        speeds, key=lambda key: -sum(map(int.__truediv__, key, [u or scale for u in units]))
    ):
        if not any(all(map(int.__ge__, other, key)) for other in kept):
            kept.append(key)
    return [speeds[key] for key in kept[:MOST_CHOICES]]


# Schedules that were found.


@dataclass(frozen=True)
class Run:
    """A run of a job from one time to another [ticks], the first part of it without progress."""

    job: int
    held: Held
    start: int
    end: int
    overhead: int


def runs_of(world: World, found: Sequence[Choice]) -> list[Run]:
    """Runs of a schedule, given by what is done in each slot; slots that a run goes on for are one."""
    units = []
    for j in range(len(world.jobs)):
        mine = [held for choice in found if (held := choice[j]) is not None]
        units.append(math.lcm(*{held.ticks for held in mine}, *{held.way.ticks for held in mine}))
    jobs = [Progress(each) for each in units]
    runs: list[Run] = []
    last: dict[int, Run] = {}
    for now, choice in enumerate(found):
        after = list(jobs)
        for j, (job, held) in enumerate(zip(jobs, choice, strict=True)):
            if held is None:
                after[j] = Progress(job.left, job.owed, None, job.last)
                continue
            pieces, left, owed = slot(world, units, jobs, choice, j)
            for piece in pieces:
                start, end = now * TICKS + piece.start, now * TICKS + piece.end
                run = Run(j, piece.held, start, end, piece.overhead)
                before, other = last.get(j), piece.held.partner
                # Rows of two that share GPUs begin and end together, whoever of them changes.
                alike = other == NOBODY or (now > 0 and found[now - 1][other] is choice[other])
                same = before is not None and before.held is piece.held and before.end == start
                if before is not None and same and alike:
                    runs.remove(before)
                    paid = before.overhead + piece.overhead
                    run = Run(j, piece.held, before.start, end, paid)
                last[j] = run
                runs.append(run)
            after[j] = Progress(left, owed, pieces[-1].held, held.way.at)
        jobs = after
    return runs


def least(world: World, klass: Klass) -> Least:
    """The least costs of a world's schedules of a class [ticks]; exhaustive."""
    if world.copies is not None:
        return least_of_copies(world)
    return Search(world, klass).least()
