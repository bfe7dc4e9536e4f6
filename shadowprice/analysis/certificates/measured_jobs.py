r"""Jobs whose completions a certificate counts: all or those of a window; of these who came before a run was stopped.

The others only stand in the way of these, so that a schedule of these alone costs no more, whatever becomes of the
others. What is bounded is therefore the instance of the jobs that count. Quotas, failures and
restarts only restrict schedules, or let jobs work in vain, and bounds do not know them.

Of a run that was stopped at T the cost counts time until T: job j has :math:`w_j (\min(C_j, T) - r_j)`, the time
integral of the weight of jobs that have arrived and are not complete. Bounds of it (derived): SRPT on one machine has
at every moment the fewest jobs that are not complete (Schrage 1968, recalled), so that LB-fluid holds of
:math:`\sum \min(C_j, T)`; and in LB-plan a job that is not complete by T costs w_j T and pays prices >= 0, so that
each job's part is the less of this and of its cheapest plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.records import Record
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.bounds import fluid_ticks
from shadowprice.solvers.offline.plan_prices import PlanPrices, exact_plan_bound

_SCALES = (1, 2, 4, 8)
"""Parts of the prices of a run to its end that are tried for one that was stopped."""
_MOST_CELLS = 20_000_000
"""Jobs times cells of prices up to which plans of a run that was stopped are evaluated."""


def completed_instance(instance: Instance) -> Instance:
    """All jobs on nodes that are anybody's, until all are complete; who is preempted goes on later."""
    fields: dict[str, Any] = {}
    for term in instance.present:
        fields |= term.lifted(instance)
    return replace(instance, **fields) if fields else instance


def measured_instance(instance: Instance) -> Instance:
    """The jobs that count, as :func:`completed_instance` has them."""
    free = completed_instance(instance)
    if instance.all_complete:
        return free
    counted = np.zeros(len(instance.workload), dtype=np.bool_)
    counted[measured_rows(instance)] = True
    return replace(free.select(counted), failures=None)


def stopped_bounds(
    schedules: CheckedClass, stopped_s: float, effort: BoundEffort
) -> Iterator[BoundCandidate]:
    """Bounds on completions, or on the time at which a run was stopped where that is earlier, in ticks.

    Parameters
    ----------
    schedules : CheckedClass
        Of the jobs that arrived before.
    effort : BoundEffort
        Time for prices of plans; of a fixed size there are none.
    """
    until = int(to_ticks(np.array([stopped_s]))[0])
    work = schedules.work
    release, weight = work.arrival, work.weight
    last = max(release) + sum(work.shortest)
    plain: Record = {"kind": "bound", "grid": [], "prices": []}
    halves = (
        min(2 * (r + p) - p % 2, 2 * until) for r, p in zip(release, work.shortest, strict=True)
    )
    alone = sum((w * twice for w, twice in zip(weight, halves, strict=True)), Fraction(0)) / 2
    record = {"bound": "interval-lp", "grid": [min(release), last], "prices": [0]}
    yield BoundCandidate({**plain, **record}, alone)
    if len(set(weight)) == 1:
        each = [1] * len(release)
        fluid = fluid_ticks(release, work.area, each, work.capacity, until)
        yield BoundCandidate({**plain, "bound": "fluid"}, weight[0] * fluid)
    if not effort.repeatable:
        yield from _plans(schedules, until, effort.seconds)


def _plans(schedules: CheckedClass, until: int, budget_s: float) -> Iterator[BoundCandidate]:
    """Bounds of cheapest plans at prices of a run to the end, which are 0 once it was stopped."""
    jobs, parts = schedules.searched()
    best: PlanPrices | None = None
    priced_plans.prepare()
    for plan in priced_plans.search(jobs, budget_s):
        if isinstance(plan.prices, PlanPrices):
            best = plan.prices
    if best is None or len(jobs.release) * len(best.prices) > _MOST_CELLS:
        return
    cells = sum(begin < until for begin in best.grid_ticks[:-1])
    if not cells:
        return
    grid = (*best.grid_ticks[:cells], min(until, best.grid_ticks[cells]))
    for scale in _SCALES:
        prices = PlanPrices(grid, tuple(price // scale for price in best.prices[:cells]))
        value = exact_plan_bound(jobs, prices, until)
        row = [parts * price for price in prices.prices]
        record: Record = {"kind": "bound", "bound": "priced-plans", "grid": list(grid)}
        yield BoundCandidate({**record, "prices": row}, value)
