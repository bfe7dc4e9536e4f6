"""Least costs of a small world whose jobs run as copies, in rounds on whole nodes. Nothing here is of the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

from support.small_costs import NEVER, Least
from support.small_worlds import NOBODY, TICKS, SmallJob, World


def steps_of(job: SmallJob) -> int:
    """Steps of a job: iterations, or ticks of its gang's run."""
    return int(job.work if job.rates is not None else job.work * TICKS)


def _copy_rate(world: World, job: SmallJob, node: int) -> Fraction:
    """Steps a tick of a copy that uses all of a node."""
    kind, gpus = world.nodes[node].kind, world.nodes[node].gpus
    rate = Fraction(1) if job.rates is None else job.rates.get(kind, Fraction(0)) / TICKS
    if job.profile is None:
        return rate * gpus / job.gang
    mine = world.nodes[node]
    speeds = [
        job.profile.speed[i][k]
        for i, cpus in enumerate(job.profile.cpus)
        for k, memory in enumerate(job.profile.memory_gb)
        if cpus * gpus <= mine.cpus and memory * gpus <= mine.memory_gb
    ]
    return rate * gpus / job.gang * max(speeds, default=Fraction(0))


def least_of_copies(world: World) -> Least:
    """Least costs of jobs that run as copies, in rounds that begin one after the other from 0 on."""
    rules, jobs = world.copies, world.jobs
    assert rules is not None
    length, until = rules.round_s * TICKS, math.inf
    if world.stopped is not None:
        until = world.stopped * TICKS
    most = max(job.release for job in jobs) + 8 * len(jobs) * 8

    @cache
    def grow(number: int, left: tuple[int, ...], at: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        if not any(left):
            return Fraction(0), Fraction(0)
        if number > most:
            return NEVER, NEVER
        begin = number * length
        if begin >= until:
            late = (job.weight for job, mine in zip(jobs, left, strict=True) if mine)
            return sum(late, Fraction(0)) * int(until), Fraction(0)
        there = [j for j, job in enumerate(jobs) if left[j] and job.release * TICKS <= begin]
        best = soonest = NEVER
        for choice in product([NOBODY, *there], repeat=len(world.nodes)):
            after, cost, last, fine = list(left), Fraction(0), Fraction(0), True
            for j in set(choice) - {NOBODY}:
                nodes = [node for node, each in enumerate(choice) if each == j]
                end = _round_of(world, j, nodes, at, left[j])
                if len(nodes) > rules.most or end is None:
                    fine = False
                    break
                done, ends = end
                after[j] -= done
                if not after[j]:
                    cost += jobs[j].weight * int(min(begin + ends, until))
                    last = max(last, Fraction(begin + ends))
            if not fine or (there and set(choice) == {NOBODY}):
                continue
            now_at = tuple(was if j == NOBODY else j for was, j in zip(at, choice, strict=True))
            later, later_last = grow(number + 1, tuple(after), now_at)
            best, soonest = min(best, cost + later), min(soonest, max(last, later_last))
        return best, soonest

    # Jobs that do not count only stand in the way.
    left = tuple(steps_of(job) if j in world.counted else 0 for j, job in enumerate(jobs))
    return Least(*grow(0, left, (NOBODY,) * len(world.nodes)))


def _round_of(
    world: World, job: int, nodes: Sequence[int], at: Sequence[int], left: int
) -> tuple[int, int] | None:
    """Steps that copies on these nodes do in a round, and when they end [ticks]; None if one does nothing."""
    rules = world.copies
    assert rules is not None
    several = rules.averaging_s if len(nodes) > 1 else Fraction(0)
    copies = []
    for node in nodes:
        rate = _copy_rate(world, world.jobs[job], node)
        owed = several + (rules.restart_s if at[node] not in (NOBODY, job) else 0)
        copies.append((rate, int(owed * TICKS)))

    def done(until: int) -> list[int]:
        return [math.floor(max(until - owed, 0) * rate) for rate, owed in copies]

    low, high = 0, rules.round_s * TICKS
    if min(done(high)) < 1:
        return None
    if sum(done(high)) <= left:
        return sum(done(high)), high
    while low < high:
        middle = (low + high) // 2
        if sum(done(middle)) >= left and min(done(middle)) >= 1:
            high = middle
        else:
            low = middle + 1
    # Where the slowest copy begins so late that it would not be needed, fewer copies are tried elsewhere.
    return (left, high) if left >= len(nodes) else None
