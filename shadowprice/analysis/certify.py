"""Certificates: what a run claims to be within, written so that anyone can check it.

The format is in ``docs/certificates.md``. Digests, cost and ratio are computed here, multipliers by
``shadowprice.solvers``. What the jobs of an instance have to do, and in which class of schedules, the program says that
checks certificates, ``shadowprice/proofs/checker``, which needs nothing but Python's standard library and knows nothing
of this; it is asked again at the end, and what it rejects is not returned.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from shadowprice.analysis.bound_history import BoundHistory
from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.certificate_file import (
    expect_accepted,
    expect_certifiable,
    run_records,
    write_records,
)
from shadowprice.analysis.certificates.counted import (
    counted_cost,
    counted_instance,
    stopped_bounds,
    to_the_end,
)
from shadowprice.analysis.certificates.demands import CONSOLIDATED, ClassDemands
from shadowprice.analysis.certificates.demands import KNOWS as DEMANDS_KNOWS
from shadowprice.analysis.certificates.found import Found
from shadowprice.analysis.certificates.modes import (
    WrittenModes,
    interval_bounds,
    steady_bounds,
    type_modes,
    written_modes,
)
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.certificates.speed_up import speed_up_bounds
from shadowprice.analysis.certificates.speeds import plain_gangs
from shadowprice.analysis.certificates.windows import window_bounds
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.wording import at_most
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.features import missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import KNOWS as CLASSES_KNOWS
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import (
    bound_of,
    fluid_ticks,
    mean_busy_of_areas,
    offset_ticks,
    wide_gang_ticks,
)
from shadowprice.solvers.offline.lagrangian import interval_bound
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.strongest import (
    PLANS_SHARE,
    interval_prices,
)

KNOWS = DEMANDS_KNOWS
"""What every certificate is of; a bound that knows less is left out."""

Record = dict[str, Any]

_MOST_TICKS = 2**62
"""Largest time for which the interval LP is tried, whose grid has 64 bits."""
_WINDOWS_SHARE = 0.9
"""Share of a budget for windows of completions of few jobs whose speeds do not differ; other bounds know less."""
_MOST_STEPS = 10**8
"""GPUs times prices of gangs up to which the checker is asked to fill the cluster anew in each cell."""
_MOST_TYPED_JOBS = 50_000
"""Jobs up to which prices by GPU type are searched."""
_BITS = 100
"""Significant bits of a bound that is written; it is rounded down to them."""


@dataclass(frozen=True)
class Certified:
    """Claim of a certificate.

    Parameters
    ----------
    policy, objective, bound : str
        Whose cost, of what, and the kind of bound.
    ratio : Fraction
        The schedule costs at most so many times the offline optimum of the class.
    of_class : str
        Of which schedules the optimum is meant.
    instance : str
        SHA-256 of the lines that say what was given.
    history : BoundHistory
        Bounds that were tried, in the order in which they were found.
    failing : bool
        Whether nodes failed in the run. The bound is that of nodes that never do: faults only restrict.
    """

    policy: str
    objective: str
    bound: str
    ratio: Fraction
    of_class: str
    instance: str
    history: BoundHistory
    failing: bool

    def sentence(self) -> str:
        """The claim in words."""
        where = ", a bound of nodes that never fail" if self.failing else ""
        return (
            f"{self.policy} costs at most {at_most(self.ratio)} the offline optimum of {self.of_class} "
            f"({self.objective}, certified by {self.bound}{where})"
        )


@dataclass(frozen=True)
class WrittenCertificate(Certified):
    """A certificate and what it proves.

    Parameters
    ----------
    text : str
        The file's content.
    """

    text: str


def certify(
    outcome: Outcome, objective: Objective | str = Objective.FLOW, *, budget_s: float = 20.0
) -> WrittenCertificate:
    """The certificate with the strongest bound that a time budget allows; checked before it is returned.

    Parameters
    ----------
    budget_s : float
        Time for prices [s], those of jobs' plans and those of the interval LP; 0 for the combinatorial bounds only.

    Raises
    ------
    InputError
        If the instance has no jobs, or the run was stopped before one arrived, a
        name that does not print on one line or a number that cannot be written, or the objective is unknown, or the
        makespan of a run that was stopped.
    VerificationError
        If the checker rejects what was written, which is a fault of this package.
    """
    file = io.StringIO(newline="\n")
    found = _write(outcome, objective, budget_s, file)
    file.seek(0)
    expect_accepted(file)
    return WrittenCertificate(**vars(found), text=file.getvalue())


def certify_into(
    outcome: VerifiedRun,
    path: Path,
    objective: Objective | str = Objective.FLOW,
    *,
    budget_s: float = 20.0,
) -> Certified:
    """As :func:`certify`, into a file, which is written and checked line by line.

    Memory is O(n) for n jobs; of a run whose schedule is on disk no more than some segments are read at a time.

    Raises
    ------
    InputError, VerificationError
        As :func:`certify`.
    OSError
        If the file cannot be written.
    """
    with path.open("w", encoding="ascii", newline="\n") as file:
        found = _write(outcome, objective, budget_s, file)
    with path.open(encoding="ascii", newline="\n") as file:
        expect_accepted(file)
    return found


def _write(
    outcome: VerifiedRun, objective: Objective | str, budget_s: float, file: TextIO
) -> Certified:
    """Write a certificate."""
    instance = outcome.instance
    require(instance, KNOWS, "certificates")
    expect_certifiable(outcome)
    goal = _goal(instance, objective)
    pairs = isinstance(outcome, Outcome) and bool((outcome.schedule.partner >= 0).any())
    demands = ClassDemands.of(instance, pairs=pairs)
    modes = _modes(outcome, demands, pairs) if budget_s > 0 else ()
    asked = _Asked(counted_instance(instance), demands, goal, modes, instance.stopped_s)
    found, value, history = _strongest(asked, budget_s)
    cost = counted_cost(instance, goal, outcome.end_s)
    ratio = cost / value if value else Fraction(1)
    of_class = demands.of_class + (CONSOLIDATED if found.consolidated else "")
    header = records.header(instance, outcome.policy, str(goal))
    if found.consolidated:
        header["placement"] = "consolidated"
    claim = {
        "class": of_class,
        "cost": text_of(cost),
        "bound": text_of(value),
        "ratio": text_of(ratio),
    }
    given = records.given(instance, pairs=pairs)
    digest = write_records(
        file, header, given, run_records(outcome), (found.record, *found.parts), claim
    )
    kind, failing = found.record["bound"], instance.failures is not None
    return Certified(
        outcome.policy, str(goal), kind, ratio, of_class, digest, history, failing=failing
    )


def _goal(instance: Instance, objective: Objective | str) -> Objective:
    try:
        goal = Objective(objective)
    except ValueError:
        raise InputError(
            f"objective {str(objective)!r}: expected one of {', '.join(Objective)}"
        ) from None
    if instance.stopped_s is not None and goal is Objective.MAKESPAN:
        raise InputError(
            f"objective {str(objective)!r}: the run was stopped at {instance.stopped_s!r} s and has no makespan, "
            f"expected {Objective.FLOW} or {Objective.COMPLETION}"
        )
    return goal


@dataclass(frozen=True, eq=False)
class _Asked:
    """Of what a bound is asked: an instance, its work in a class, an objective, and modes of its jobs."""

    instance: Instance
    demands: ClassDemands
    goal: Objective
    modes: tuple[WrittenModes, ...]
    stopped_s: float | None


def _modes(outcome: VerifiedRun, demands: ClassDemands, pairs: bool) -> tuple[WrittenModes, ...]:
    """Modes of jobs, unless there are very many; of consolidated schedules too, if the run's is one."""
    instance = outcome.instance
    if len(instance.workload) > _MOST_TYPED_JOBS:
        return ()
    if pairs and not instance.all_complete:
        return ()  # Partners that are not counted have no modes.
    few, whole = False, to_the_end(instance)
    if isinstance(outcome, Outcome) and not missing(whole, CLASSES_KNOWS):
        few = ScheduleClass.used(whole, outcome.schedule).consolidated
    counted = counted_instance(instance)
    found = written_modes(counted, pairs=pairs, consolidated=few)
    types = type_modes(counted) if demands.gangs else None
    return (*found, types) if types is not None else tuple(found)


def _strongest(asked: _Asked, budget_s: float) -> tuple[Found, Fraction, BoundHistory]:
    """The largest bound with its multipliers, its value, rounded down [ticks], and all that were found."""
    demands, goal = asked.demands, asked.goal
    offset = offset_ticks(demands.weight, demands.release, goal)
    if asked.stopped_s is None:
        found = list(_bounds(asked, budget_s))
    else:
        found = list(stopped_bounds(demands, asked.stopped_s, budget_s))
    history = BoundHistory(tuple(bound_of(each.ticks - offset, each.kind) for each in found))
    best = max(found, key=lambda each: each.ticks)
    value = max(best.ticks - offset, Fraction(0))
    scale = max(_BITS - int(value).bit_length(), 0)
    while value and int(value * 2**scale).bit_length() < _BITS:
        scale += _BITS
    return best, Fraction(math.floor(value * 2**scale), 2**scale), history


_PLAIN: Record = {"kind": "bound", "grid": [], "prices": []}
_LP: Record = {"kind": "bound", "bound": "interval-lp"}


def _bounds(asked: _Asked, budget_s: float) -> Iterator[Found]:
    """Bounds on completions, in ticks."""
    instance, demands, goal = asked.instance, asked.demands, asked.goal
    release, work, weight = demands.release, demands.shortest, demands.weight
    if goal is Objective.MAKESPAN:
        yield Found({**_PLAIN, "bound": "area"}, _span(demands))
        for modes in asked.modes:
            yield from steady_bounds(modes, goal)
        return
    busy = mean_busy_of_areas(release, work, demands.area, weight, demands.capacity)
    yield Found({**_PLAIN, "bound": "mean-busy-time"}, Fraction(busy))
    if len(set(weight)) == 1:
        each = [1] * len(release)
        fluid = fluid_ticks(release, demands.area, each, demands.capacity)
        yield Found({**_PLAIN, "bound": "fluid"}, weight[0] * fluid)
    if demands.gangs:
        yield Found({**_PLAIN, "bound": "wide-gangs"}, wide_gang_ticks(demands.whole_gangs()))
    yield from speed_up_bounds(instance, demands)
    # Prices of 0 say that no job ends before it could alone; of odd run times half a tick is lost.
    last = max(release) + sum(work)
    halves = ((2 * (r + p) - p % 2, w) for r, p, w in zip(release, work, weight, strict=True))
    alone = sum((w * twice for twice, w in halves), Fraction(0)) / 2
    yield Found({**_LP, "grid": [min(release), last], "prices": [0]}, alone)
    for modes in asked.modes:
        yield from steady_bounds(modes, goal)
    if budget_s <= 0 or last >= _MOST_TICKS:
        return
    priced_plans.prepare()
    until = time.monotonic() + budget_s
    if demands.gangs:
        plain = plain_gangs(instance)
        share = _WINDOWS_SHARE if plain else PLANS_SHARE
        for found in window_bounds(demands.whole_gangs(), share * budget_s):
            yield found
            if found.optimal and plain:
                return  # All that follows bounds the same schedules.
    left = until - time.monotonic()
    yield from _plans(demands, PLANS_SHARE * left, until - (1 - PLANS_SHARE) * left)
    left = until - time.monotonic()
    enough = time.monotonic() + 0.1 * left if asked.modes else until
    yield from _interval_prices(instance, demands, enough)
    for number, modes in enumerate(asked.modes):
        left = until - time.monotonic()
        yield from interval_bounds(modes, left / (len(asked.modes) - number))


def _plans(demands: ClassDemands, effort_s: float, until: float) -> Iterator[Found]:
    """Bounds of prices at which jobs plan."""
    jobs, parts = demands.searched()
    # Of a job that grows with no loss the least area is that of its shortest time, and no gang.
    rigid_as_searched = demands.gangs and parts == 1 and list(jobs.gpus) == demands.gang
    ways = [(jobs, parts, rigid_as_searched)]
    if demands.gangs and not rigid_as_searched:
        ways.append((demands.whole_gangs(), 1, True))
    for relaxed, each, rigid in ways:
        left = (until - time.monotonic()) / len(ways)
        effort = effort_s / len(ways)
        for better in priced_plans.search(
            relaxed, effort, rigid=rigid, until=time.monotonic() + left
        ):
            grid, rows = better.prices.grid_ticks, better.prices.rows
            found: Record = {**_PLAIN, "bound": better.kind, "grid": grid}
            if isinstance(better.prices, PlanPrices):
                # Of a part of a GPU.
                record = {**found, "prices": [each * price for price in rows[0]]}
                yield Found(record, better.ticks)
            elif len(rows) * len(rows[0]) * demands.gpus <= _MOST_STEPS:
                yield Found({**found, "prices": rows}, better.ticks)


def _interval_prices(instance: Instance, demands: ClassDemands, until: float) -> Iterator[Found]:
    """The bound of the interval LP, unless its solver does not know the instance."""
    if missing(instance, RELAXED_KNOWS):
        return
    (jobs, parts), release, work = demands.searched(), demands.release, demands.shortest
    last = max(release) + sum(work)
    try:
        found = interval_prices(instance, max(until - time.monotonic(), 0.0))
        if found is None or not bool((found.prices >= 0).all()):
            return
        grid, prices = list(found.grid_ticks), found.prices // parts
        if grid[-1] < last:
            # Where jobs may share, the programme knew of less work than a run alone has.
            grid, prices = [*grid, last], np.append(prices, np.zeros(1, prices.dtype))
        value = interval_bound(
            release, work, jobs.gpus, demands.weight, jobs.capacity, grid, prices
        )
        record = {**_LP, "grid": grid, "prices": [parts * each for each in prices.tolist()]}
        yield Found(record, value)
    except (SolverError, OverflowError):
        return  # The bounds that need no solver are there.


def _span(demands: ClassDemands) -> Fraction:
    """Lower bound on the end of the last job: work released from some time on, or gangs that exclude each other."""
    best, area, lone = Fraction(0), 0, 0
    rows = zip(demands.release, demands.shortest, demands.area, demands.gang, strict=True)
    for release, shortest, mine, gang in sorted(rows, reverse=True):
        area += mine
        lone += shortest if demands.gangs and 2 * gang > demands.gpus else 0
        best = max(best, release + max(area / demands.capacity, Fraction(max(lone, shortest))))
    return best
