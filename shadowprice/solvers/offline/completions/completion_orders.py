r"""The best preemptive schedule among those with one order of completions and releases, by a linear programme.

Between two consecutive events the same jobs are there, and only how long each set of jobs that fit together runs
matters, not when. With :math:`T_e` the moment of event e, given for releases, and :math:`x_{Se}` the time for which S
runs before it,

.. math:: \min \sum_j w_j C_j : \quad \sum_S x_{Se} \le T_e - T_{e-1}, \quad \sum_e \sum_{S \ni j} x_{Se} \ge p_j,

where S holds jobs that are there before e, and :math:`C_j` is the moment of j's completion. Every preemptive schedule
is feasible for its own order, so that the least over all orders is the preemptive optimum. Neighbours of an order swap
two events at the same moment: others have no smaller cost nearby.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.solvers.offline.completions.window_prices import WindowJobs
from shadowprice.solvers.programs.highs import HighsEnding, WarmProgram

Event = tuple[str, int]
"""``("release", moment)`` or ``("completion", job)``."""

Interval = tuple[int, int, int]
"""Job, begin and end [ticks]."""

_LARGEST_DENOMINATOR, _AGREES = 5_040, 1e-6
"""Fractions of units that a solver's times are taken for, and how far they may be off, relative to a common divisor."""


@dataclass(frozen=True, eq=False)
class OrderedSchedule:
    """A solution of the programme of one order.

    Parameters
    ----------
    events : tuple of Event
    value : float
        Weighted completion time [units of weight and time].
    moments : tuple of float
        Of the events [units].
    sets : tuple
        Before each event, jobs that run together and for how long [units].
    """

    events: tuple[Event, ...]
    value: float
    moments: tuple[float, ...]
    sets: tuple[tuple[tuple[tuple[int, ...], float], ...], ...]


def events_of(jobs: WindowJobs, ends: Sequence[float]) -> tuple[Event, ...]:
    """Completions and releases in order of time; a release comes first."""
    moments = sorted(set(jobs.records["release"].tolist()))[1:]
    events = [(float(at), 0, ("release", at)) for at in moments]
    events += [(float(end), 1, ("completion", j)) for j, end in enumerate(ends)]
    return tuple(event for _, _, event in sorted(events))


def served_by_priority(
    jobs: WindowJobs, gpus: int, gangs: Sequence[int], order: Sequence[int]
) -> list[int]:
    """Completions [units] when jobs that are there run in order of priority, each if it fits."""
    release, left = jobs.records["release"].tolist(), jobs.records["work"].tolist()
    ends, now = [0] * len(left), 0
    while any(left):
        free, running = gpus, []
        for j in order:
            if left[j] and release[j] <= now and gangs[j] <= free:
                free -= gangs[j]
                running.append(j)
        later = [r for r in release if r > now]
        step = min([left[j] for j in running] + ([min(later) - now] if later else []))
        now += step
        for j in running:
            left[j] -= step
            if not left[j]:
                ends[j] = now
    return ends


def solve_order(jobs: WindowJobs, events: tuple[Event, ...]) -> OrderedSchedule | None:
    """The best schedule of an order; None if it has none, or the solver no answer."""
    release = jobs.records["release"].tolist()
    n, long = len(release), max(float(jobs.records["work"].max()) / 10, 1.0)
    there = {j for j, r in enumerate(release) if r == 0}
    sets: list[list[tuple[int, ...]]] = []
    for kind, which in events:
        sets.append(_sets_of(jobs, there))
        if kind == "completion":
            if which not in there:
                return None
            there.discard(which)
        else:
            there |= {j for j, r in enumerate(release) if r == which}
    series = WarmProgram()
    shift = [0.0 if kind == "completion" else which / long for kind, which in events]
    # Row n + e: the sets before event e take no longer than there is.
    before = [0.0, *shift[:-1]]
    room = np.array([now - then for now, then in zip(shift, before, strict=True)])
    work = jobs.records["work"].astype(np.float64) / long
    infinite = np.full(n + len(events), np.inf)
    series.rows(
        np.concatenate((work, np.full(len(events), -np.inf))),
        np.concatenate((infinite[:n], room)),
    )
    rows, entries, costs = [], [], []
    for e, (kind, which) in enumerate(events):
        if kind == "completion":
            last = e == len(events) - 1
            rows.append(np.array([n + e] if last else [n + e, n + e + 1], dtype=np.int64))
            entries.append(np.array([-1.0] if last else [-1.0, 1.0]))
            costs.append(float(jobs.records["weight"][which]) / jobs.weight_units)
    for e, each in enumerate(sets):
        for members in each:
            rows.append(np.array([*members, n + e], dtype=np.int64))
            entries.append(np.ones(len(members) + 1))
            costs.append(0.0)
    series.columns(np.array(costs), np.full(len(costs), np.inf), rows, entries)
    solution = series.solve()
    if solution.outcome is not HighsEnding.OPTIMAL:
        return None
    values = iter((solution.primal * long).tolist())
    moment = [next(values) if kind == "completion" else float(which) for kind, which in events]
    chosen = tuple(
        tuple((members, time) for members, time in zip(each, values, strict=False) if time > 1e-9)
        if each
        else ()
        for each in sets
    )
    return OrderedSchedule(events, solution.value * long * jobs.weight_units, tuple(moment), chosen)


def _sets_of(jobs: WindowJobs, there: set[int]) -> list[tuple[int, ...]]:
    """Maximal sets of jobs that are there and fit together."""
    rows = zip(jobs.members.tolist(), jobs.sizes.tolist(), strict=True)
    sets = {frozenset(row[:size]) & there for row, size in rows}
    maximal = [each for each in sets if each and not any(each < other for other in sets)]
    return sorted(tuple(sorted(each)) for each in maximal)


def improve(
    jobs: WindowJobs, events: tuple[Event, ...], most: int, seen: set[tuple[Event, ...]]
) -> OrderedSchedule | None:
    """Descent from an order by swaps of neighbours at the same moment; None if it is infeasible or was seen."""
    if events in seen:
        return None
    seen.add(events)
    best = solve_order(jobs, events)
    while best is not None and most > 0:
        for other in _neighbours(jobs, best):
            if other in seen or most <= 0:
                continue
            seen.add(other)
            most -= 1
            solved = solve_order(jobs, other)
            if solved is not None and solved.value < best.value * (1 - 1e-9):
                best = solved
                break
        else:
            break
    return best


def _neighbours(jobs: WindowJobs, solution: OrderedSchedule) -> Iterator[tuple[Event, ...]]:
    events, moments = solution.events, solution.moments
    close = 1e-7 * max(moments[-1], 1.0)
    for e in range(len(events) - 1):
        (kind, which), (next_kind, job) = events[e], events[e + 1]
        if moments[e + 1] - moments[e] > close or kind == next_kind == "release":
            continue
        if kind == "release" and jobs.records["release"][job] == which:
            continue
        yield (*events[:e], events[e + 1], events[e], *events[e + 2 :])


def runs_of(jobs: WindowJobs, solution: OrderedSchedule) -> list[Interval]:
    """Runs of a schedule on the grid of ticks: exact where times are on it, else later by a few ticks.

    Sets run one after the other, each for its time rounded up, and a job stops as soon as its work is done.
    """
    unit, begin = jobs.unit_ticks, jobs.begin_ticks
    left = [int(each * unit) for each in jobs.records["work"].tolist()]
    release = [begin + int(each * unit) for each in jobs.records["release"].tolist()]
    now, runs = begin, []
    for members, time in _in_turn(jobs, solution):
        now = max([now] + [release[j] for j in members])
        until = now + math.ceil(time * unit)
        for j in members:
            end = min(until, now + left[j])
            if end > now:
                runs.append((j, now, end))
                left[j] -= end - now
        now = until
    for j, rest in enumerate(left):
        # What the solver's tolerance left out runs last, a job at a time.
        if rest:
            runs.append((j, now, now + rest))
            now += rest
    return joined(runs)


def _in_turn(
    jobs: WindowJobs, solution: OrderedSchedule
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Sets and their times, as fractions of a common divisor where they are such; sets that go on come first."""
    last: frozenset[int] = frozenset()
    for each in solution.sets:
        rest = list(each)
        while rest:
            k = max(range(len(rest)), key=lambda i: len(last & set(rest[i][0])))
            members, time = rest.pop(k)
            last = frozenset(members)
            exact = Fraction(time / jobs.divisor).limit_denominator(_LARGEST_DENOMINATOR)
            if abs(float(exact) * jobs.divisor - time) > _AGREES * jobs.divisor:
                exact = Fraction(time / jobs.divisor) * (1 + Fraction(1, 10**9))
            yield members, exact * jobs.divisor


def joined(runs: Sequence[Interval]) -> list[Interval]:
    """Runs of which those of one job that meet are one."""
    longer: list[Interval] = []
    for job, start, end in sorted(runs):
        if longer and longer[-1][0] == job and longer[-1][2] == start:
            longer[-1] = (job, longer[-1][1], end)
        else:
            longer.append((job, start, end))
    return longer
