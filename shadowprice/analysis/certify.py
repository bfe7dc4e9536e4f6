"""Certificates: what a run claims to be within, written so that anyone can check it.

The format is in ``docs/certificates.md``. What is written here, digests, cost, bound and ratio, is computed here and by
``shadowprice.solvers``. The program that checks it, ``shadowprice/proofs/checker.py``, needs nothing but
Python's standard library and shares no code with this; it is asked at the end, and what it rejects
is not returned.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.analysis.optimum import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.errors import InputError, SolverError, VerificationError
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs import checker, run_speed
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.bounds import (
    RelaxedJobs,
    area_ticks,
    fluid_ticks,
    mean_busy_ticks,
    offset_ticks,
    wide_gang_ticks,
)
from shadowprice.solvers.offline.lagrangian import interval_bound
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.strongest import PLANS_SHARE, interval_prices

Record = dict[str, Any]

FORMAT = 2
CLASS = "preemptive schedules in which no two jobs share a GPU"
"""Of which schedules the optimum is meant."""

_MOST_TICKS = 2**62
"""Largest time for which the interval LP is tried, whose grid has 64 bits."""
_MOST_STEPS = 10**8
"""GPUs times prices of gangs up to which the checker is asked to fill the cluster anew in each cell."""
_BITS = 100
"""Significant bits of a bound that is written; it is rounded down to them."""


@dataclass(frozen=True)
class Certified:
    """A certificate and what it proves.

    Parameters
    ----------
    text : str
        The file's content.
    policy, objective, bound : str
        Whose cost, of what, and the kind of bound.
    ratio : Fraction
        The schedule costs at most so many times the offline optimum of :data:`CLASS`.
    instance : str
        SHA-256 of the nodes and jobs that the certificate is about.
    """

    text: str
    policy: str
    objective: str
    bound: str
    ratio: Fraction
    instance: str

    def sentence(self) -> str:
        """The claim in words."""
        return (
            f"{self.policy} costs at most {at_most(self.ratio)} the offline optimum of {CLASS} "
            f"({self.objective}, certified by {self.bound})"
        )


def certify(
    outcome: Outcome, objective: Objective | str = Objective.COMPLETION, *, budget_s: float = 20.0
) -> Certified:
    """The certificate with the strongest bound that a time budget allows; checked before it is returned.

    Parameters
    ----------
    budget_s : float
        Time for prices [s], those of jobs' plans and those of the interval LP; 0 for the combinatorial bounds only.

    Raises
    ------
    InputError
        If the instance has no jobs, jobs that run as copies or share GPUs, job graphs, conditions or nodes
        that fail, a name that does not print on one line or a number that cannot be written, or the
        objective is unknown.
    VerificationError
        If the checker rejects what was written, which is a fault of this package.
    """
    instance = outcome.instance
    goal = _refuse(outcome, objective)
    given = [_line(record) for record in _given(instance)]
    best, value = _strongest(instance, goal, budget_s)
    cost = exact_cost(instance, goal, outcome.end_s)
    ratio = cost / value if value else Fraction(1)
    lines = [
        _line(_header(instance, outcome.policy, goal)),
        *given,
        *(_line(record) for record in _runs(outcome.schedule)),
        _line(best),
    ]
    claim: Record = {
        "kind": "claim",
        "class": CLASS,
        "cost": _text(cost),
        "bound": _text(value),
        "ratio": _text(ratio),
        "instance": _digest(given),
    }
    claim["file"] = _digest([*lines, _line(claim)])
    text = "\n".join([*lines, _line(claim), ""])
    try:
        checker.check(text)
    except checker.Rejected as error:
        raise VerificationError(f"the certificate that was made is rejected: {error}") from None
    return Certified(text, outcome.policy, str(goal), best["bound"], ratio, claim["instance"])


def instance_digest(instance: Instance) -> str:
    """SHA-256 of the nodes and jobs of an instance, as certificates have it."""
    return _digest(_line(record) for record in _given(instance))


def _line(record: Record) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()


def _refuse(outcome: Outcome, objective: Objective | str) -> Objective:
    instance, jobs = outcome.instance, outcome.instance.workload
    source = jobs.source
    if not len(jobs):
        raise InputError(f"{source}: has no jobs, expected some to certify a schedule of")
    for what, there in (
        ("jobs that run as several copies", instance.copies is not None),
        ("jobs that need not be complete", instance.until_complete is not None),
        ("job graphs", instance.graphs is not None),
        ("conditions of runs", instance.conditions is not None),
        ("nodes that fail", instance.failures is not None),
        ("jobs that hold a part of a GPU", bool(jobs.fractional.any())),
        ("jobs that share GPUs", bool((outcome.schedule.partner >= 0).any())),
    ):
        if there:
            raise InputError(f"{source}: has {what}; certificates are for jobs without")
    names = [("policy", outcome.policy), *(("job", each) for each in jobs.id.tolist())]
    names += [("GPU type", node.gpu_type) for node in instance.cluster.nodes]
    for what, text in names:
        if not isinstance(text, str) or not 0 < len(text) <= 1000 or not text.isprintable():
            raise InputError(
                f"{source}: {what} {text!r:.80}: certificates have printable names of 1 to 1,000 characters"
            )
    ticks = jobs.arrival_s * TICKS_PER_S
    for what, values, bad in (
        ("arrival_s", jobs.arrival_s, ~((ticks >= 0) & (ticks == np.floor(ticks)))),
        ("weight", jobs.weight, ~((jobs.weight >= 0) & np.isfinite(jobs.weight))),
    ):
        if bad.any():
            k = int(bad.argmax())
            expected = "a multiple of 2**-20" if what == "arrival_s" else "a number"
            raise InputError(
                f"{source}: job {jobs.id[k]!r}: {what} is {float(values[k])!r}, expected {expected} >= 0"
            )
    try:
        return Objective(objective)
    except ValueError:
        raise InputError(
            f"objective {str(objective)!r}: expected one of {', '.join(Objective)}"
        ) from None


def _header(instance: Instance, policy: str, goal: Objective) -> Record:
    charges = instance.overheads
    steps = charges.restart_by_gpus or ((1, charges.restart_s),)
    return {
        "kind": "header",
        "format": FORMAT,
        "policy": policy,
        "objective": str(goal),
        "start": int(to_ticks(charges.start_s)),
        "migration": int(to_ticks(charges.migration_s)),
        "restart": [[gpus, int(to_ticks(cost_s))] for gpus, cost_s in steps],
    }


def _given(instance: Instance) -> Iterator[Record]:
    """Nodes and jobs."""
    for k, node in enumerate(instance.cluster.nodes):
        yield {"kind": "node", "node": k, "gpus": node.gpus, "type": node.gpu_type}
    jobs, (types, _) = instance.workload, run_speed.gpu_types(instance.cluster)
    run = run_speed.alone_ticks(instance).tolist()
    arrival, gpus = to_ticks(jobs.arrival_s).tolist(), jobs.gpus.tolist()
    weight = jobs.weight.tolist()
    for k, name in enumerate(jobs.id.tolist()):
        yield {
            "kind": "job",
            "job": k,
            "id": name,
            "arrival": arrival[k],
            "gpus": gpus[k],
            "weight": _text(Fraction(weight[k])),
            "run": {kind: ticks for kind, ticks in zip(types, run[k], strict=True) if ticks},
        }


def _runs(schedule: Schedule) -> Iterator[Record]:
    """Rows of one job that start together are one run."""
    order = np.lexsort((schedule.node, schedule.start_s, schedule.job))
    columns = (schedule.job, schedule.node, schedule.gpus)
    times = (schedule.start_s, schedule.end_s, schedule.overhead_s)
    rows = zip(
        *(column[order].tolist() for column in columns),
        *(to_ticks(column[order]).tolist() for column in times),
        strict=True,
    )
    last: Record | None = None
    for job, node, gpus, start, end, overhead in rows:
        if last is not None and (last["job"], last["start"]) == (job, start):
            last["pieces"].append([node, gpus])
            continue
        if last is not None:
            yield last
        last = {
            "kind": "run",
            "job": job,
            "start": start,
            "end": end,
            "overhead": overhead,
            "pieces": [[node, gpus]],
        }
    if last is not None:
        yield last


def _strongest(instance: Instance, goal: Objective, budget_s: float) -> tuple[Record, Fraction]:
    """The largest bound with its multipliers, and its value, rounded down [ticks]."""
    jobs = instance.workload
    weight = [Fraction(each) for each in jobs.weight.tolist()]
    offset = offset_ticks(weight, to_ticks(jobs.arrival_s).tolist(), goal)
    best, value = max(_bounds(instance, goal, weight, budget_s), key=lambda found: found[1])
    value = max(value - offset, Fraction(0))
    scale = max(_BITS - int(value).bit_length(), 0)
    while value and int(value * 2**scale).bit_length() < _BITS:
        scale += _BITS
    return best, Fraction(math.floor(value * 2**scale), 2**scale)


def _bounds(
    instance: Instance, goal: Objective, weight: list[Fraction], budget_s: float
) -> Iterator[tuple[Record, Fraction]]:
    """Bounds on completions, in ticks."""
    plain: Record = {"kind": "bound", "grid": [], "prices": []}
    jobs, capacity = instance.workload, instance.cluster.total_gpus
    release, gpus = to_ticks(jobs.arrival_s).tolist(), jobs.gpus.tolist()
    work = to_ticks(instance.shortest_s).tolist()
    if goal is Objective.MAKESPAN:
        yield {**plain, "bound": "area"}, Fraction(area_ticks(release, work, gpus, capacity))
        return
    busy = mean_busy_ticks(release, work, gpus, weight, capacity)
    yield {**plain, "bound": "mean-busy-time"}, Fraction(busy)
    if len(set(weight)) == 1:
        fluid = weight[0] * fluid_ticks(release, work, gpus, capacity)
        yield {**plain, "bound": "fluid"}, fluid
    whole_gangs = RelaxedJobs(release, work, gpus, weight, capacity, Fraction(1))
    yield {**plain, "bound": "wide-gangs"}, wide_gang_ticks(whole_gangs)
    lp: Record = {"kind": "bound", "bound": "interval-lp"}
    # Prices of 0 say that no job ends before it could alone; of odd run times half a tick is lost.
    last = max(release) + sum(work)
    halves = ((2 * (r + p) - p % 2, w) for r, p, w in zip(release, work, weight, strict=True))
    alone = sum((w * twice for twice, w in halves), Fraction(0)) / 2
    yield {**lp, "grid": [min(release), last], "prices": [0]}, alone
    if budget_s <= 0 or last >= _MOST_TICKS:
        return
    priced_plans.prepare()
    until = time.monotonic() + budget_s
    effort_s = PLANS_SHARE * budget_s
    enough = until - effort_s
    for better in priced_plans.search(whole_gangs, effort_s, rigid=True, until=enough):
        rows = better.prices.rows
        if isinstance(better.prices, PlanPrices):
            one: Record = {"grid": better.prices.grid_ticks, "prices": rows[0]}
            yield {**plain, "bound": better.kind, **one}, better.ticks
        elif len(rows) * len(rows[0]) * capacity <= _MOST_STEPS:
            each: Record = {"grid": better.prices.grid_ticks, "prices": rows}
            yield {**plain, "bound": better.kind, **each}, better.ticks
    try:
        found = interval_prices(instance, max(until - time.monotonic(), 0.0))
        if found is not None and bool((found.prices >= 0).all()):
            grid, prices = list(found.grid_ticks), found.prices
            if grid[-1] < last:
                # Where jobs may share, the programme knew of less work than a run alone has.
                grid, prices = [*grid, last], np.append(prices, np.zeros(1, prices.dtype))
            value = interval_bound(release, work, gpus, weight, capacity, grid, prices)
            yield {**lp, "grid": grid, "prices": prices.tolist()}, value
    except (SolverError, OverflowError):
        return  # The bounds that need no solver are there.


def _text(number: Fraction) -> int | str:
    """A rational as the format has it."""
    if number.denominator == 1:
        return math.floor(number)
    return str(number)
