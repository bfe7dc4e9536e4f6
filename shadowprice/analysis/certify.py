"""Certificates: what a run claims to be within, written so that anyone can check it.

The format, and all that is checked, is in ``shadowprice/proofs/checker.py``, which needs nothing but
Python's standard library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs import checker
from shadowprice.solvers.lagrangian import PRICE_UNIT
from shadowprice.solvers.strongest import interval_prices

Record = dict[str, Any]


@dataclass(frozen=True)
class Certified:
    """A certificate and what it proves.

    Parameters
    ----------
    text : str
        The file's content.
    policy, objective, bound : str
        Whose cost, of what, and the kind of bound.
    ratio : float
        The schedule costs at most so many times the offline optimum.
    """

    text: str
    policy: str
    objective: str
    bound: str
    ratio: float

    def sentence(self) -> str:
        """The claim in words."""
        return (
            f"{self.policy} is within {100 * (self.ratio - 1):.1f} % of the offline optimum "
            f"({self.objective}, certified by {self.bound})"
        )


def certify(
    outcome: Outcome, objective: Objective | str = Objective.COMPLETION, *, budget_s: float = 20.0
) -> Certified:
    """The certificate with the strongest bound that a time budget allows; checked before it is returned.

    Parameters
    ----------
    budget_s : float
        Time for the dual prices of the interval LP [s]; 0 for the combinatorial bounds only.

    Raises
    ------
    InputError
        If the instance has no jobs, job graphs, conditions or jobs that share GPUs, or the
        objective is unknown.
    """
    instance = outcome.instance
    goal = _refuse(instance, outcome.schedule, objective)
    nodes, jobs = list(_nodes(instance)), list(_jobs(instance))
    runs = list(_runs(outcome.schedule))
    header = _header(instance, outcome.policy, goal)
    ends = to_ticks(outcome.end_s).tolist()
    best, value, cost = _strongest(instance, goal, jobs, ends, budget_s)
    lines = [checker.canonical(record) for record in (header, *nodes, *jobs, *runs, best)]
    parts = 1 + len(nodes) + len(jobs)
    claim: Record = {
        "kind": "claim",
        "cost": _text(cost),
        "bound": _text(value),
        "ratio": _text(cost / value if value else Fraction(1)),
        "instance": checker.digest(lines[1:parts]),
    }
    claim["file"] = checker.digest([*lines, checker.canonical(claim)])
    text = "\n".join([*lines, checker.canonical(claim), ""])
    proven = checker.check(text)
    return Certified(
        text, outcome.policy, str(goal), best["bound"], float(Fraction(proven["ratio"]))
    )


def _refuse(instance: Instance, schedule: Schedule, objective: Objective | str) -> Objective:
    source = instance.workload.source
    if not len(instance.workload):
        raise InputError(f"{source}: has no jobs, expected some to certify a schedule of")
    for what, there in (
        ("job graphs", instance.graphs is not None),
        ("conditions of runs", instance.conditions is not None),
        ("jobs that share GPUs", bool((schedule.partner >= 0).any())),
    ):
        if there:
            raise InputError(f"{source}: has {what}; certificates are for jobs without")
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
        "kind": "header", "format": 1, "policy": policy, "objective": str(goal),
        "start": int(to_ticks(charges.start_s)), "migration": int(to_ticks(charges.migration_s)),
        "restart": [[gpus, int(to_ticks(cost_s))] for gpus, cost_s in steps],
    }  # fmt: skip


def _nodes(instance: Instance) -> Iterator[Record]:
    for k, node in enumerate(instance.cluster.nodes):
        yield {"kind": "node", "node": k, "gpus": node.gpus, "type": node.gpu_type}


def _jobs(instance: Instance) -> Iterator[Record]:
    jobs, types = instance.workload, instance.cluster.gpu_types
    finite = np.isfinite(instance.processing_s)
    run = to_ticks(np.where(finite, instance.processing_s, 0.0)).tolist()
    arrival, able = to_ticks(jobs.arrival_s).tolist(), finite.tolist()
    gpus, weight = jobs.gpus.tolist(), jobs.weight.tolist()
    for k, name in enumerate(jobs.id.tolist()):
        yield {
            "kind": "job", "job": k, "id": name, "arrival": arrival[k], "gpus": gpus[k],
            "weight": _text(Fraction(weight[k])),
            "run": {kind: run[k][r] for r, kind in enumerate(types) if able[k][r]},
        }  # fmt: skip


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
            "kind": "run", "job": job, "start": start, "end": end, "overhead": overhead,
            "pieces": [[node, gpus]],
        }  # fmt: skip
    if last is not None:
        yield last


def _strongest(
    instance: Instance, goal: Objective, jobs: list[Record], ends: list[int], budget_s: float
) -> tuple[Record, Fraction, Fraction]:
    """The bound with its multipliers, its value and the cost [ticks], evaluated as the checker does."""
    header: Record = {"start": 0, "restart": [[1, 0]], "migration": 0}
    own = [dict(job) for job in jobs]
    checker.check_instance(header, [{"node": 0, "gpus": 1, "type": ""}], own)
    cost, offset = checker.cost_of(str(goal), own, ends)
    capacity, best = instance.cluster.total_gpus, None
    for record in _bounds(instance, goal, budget_s):
        value = checker.BOUNDS[record["bound"]](own, capacity, record) - offset
        if best is None or value > best[1]:
            best = (record, value)
    assert best is not None
    return best[0], max(best[1], Fraction(0)), cost


def _bounds(instance: Instance, goal: Objective, budget_s: float) -> Iterator[Record]:
    plain: Record = {"kind": "bound", "grid": [], "prices": []}
    if goal is Objective.MAKESPAN:
        yield {**plain, "bound": "area"}
        return
    yield {**plain, "bound": "mean-busy-time"}
    yield {**plain, "bound": "interval-lp", "grid": _one_interval(instance), "prices": [0]}
    if len(set(instance.workload.weight.tolist())) == 1:
        yield {**plain, "bound": "fluid"}
    found = interval_prices(instance, budget_s) if budget_s > 0 else None
    if found is not None:
        prices = [_text(Fraction(price, PRICE_UNIT)) for price in found.prices.tolist()]
        yield {**plain, "bound": "interval-lp", "grid": list(found.grid_ticks), "prices": prices}


def _one_interval(instance: Instance) -> list[int]:
    """A grid on which prices of 0 say that no job ends before it could alone."""
    release, work = to_ticks(instance.workload.arrival_s), to_ticks(instance.shortest_s)
    return [int(release.min()), int(release.max()) + sum(work.tolist())]


def _text(number: Fraction) -> int | str:
    """A rational as the format has it."""
    if number.denominator == 1:
        return math.floor(number)
    return str(number)
