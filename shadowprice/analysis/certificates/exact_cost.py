"""Costs of schedules in rationals: of the jobs that count, of a schedule that the verifier accepts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.metrics import end_s
from shadowprice.errors import VerificationError
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.offline.bounds import Bound, offset_ticks


def verified_cost(instance: Instance, goal: Objective, schedule: Schedule) -> Fraction | None:
    """Cost [ticks] of a schedule; None if the verifier refuses it."""
    try:
        complete = verify(instance, schedule)
    except VerificationError:
        return None
    return exact_cost(instance, goal, np.where(complete, end_s(instance, schedule), np.inf))


def measured_rows(instance: Instance) -> NDArray[np.int64]:
    """Jobs that the cost of a run counts, in order."""
    arrival_s, window = instance.workload.arrival_s, instance.until_complete
    rows = np.arange(len(arrival_s))[slice(None) if window is None else window.rows]
    return rows if instance.stopped_s is None else rows[arrival_s[rows] < instance.stopped_s]


def exact_cost(instance: Instance, goal: Objective, ends_s: NDArray[np.float64]) -> Fraction:
    """Cost [ticks] of the completion times [s] that count, in rationals; O(n).

    Parameters
    ----------
    ends_s : ndarray, shape (n,)
        Infinite of jobs that are not complete, which count until the run was stopped.
    """
    jobs = instance.workload
    if not instance.all_complete:
        some = measured_rows(instance)
        jobs, ends_s = jobs.select(some), ends_s[some]
    if instance.stopped_s is not None:
        ends_s = np.where(np.isinf(ends_s), instance.stopped_s, ends_s)
    # Whole weights as integers: rationals of a million jobs take seconds.
    weight = [int(w) if w.is_integer() else Fraction(w) for w in jobs.weight.tolist()]
    release, ends = to_ticks(jobs.arrival_s).tolist(), to_ticks(ends_s).tolist()
    offset = offset_ticks(weight, release, goal)
    if goal is Objective.MAKESPAN:
        return max(ends, default=0) - offset
    total = Fraction(sum(w * end for w, end in zip(weight, ends, strict=True)))
    return total - offset


def attains(instance: Instance, goal: Objective, bound: Bound, schedule: Schedule) -> bool:
    """True if a schedule passes the verifier, is of the bound's class and costs the bound."""
    cost = verified_cost(instance, goal, schedule)
    return (
        cost is not None
        and cost == bound.ticks
        and bound.holds_for.contains(ScheduleClass.used(instance, schedule))
    )
