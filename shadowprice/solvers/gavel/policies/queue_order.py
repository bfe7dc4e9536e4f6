"""FIFO and SJF as programmes: Gavel (OSDI'20), sec. 4.2.

Maximise sum_m throughput(m, X) / throughput(m, X_fastest) (n - place of m in the queue): earlier jobs
run on faster GPUs. FIFO queues by arrival. For SJF the paper's objective, min over jobs of
steps_m / throughput(m, X), is no linear programme and settles a single job; queueing by the
shortest time left on the fastest type does what its text says (derived).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.total import Values, highest_total
from shadowprice.solvers.gavel.workspace import Build, Workspace

ORDERS = ("arrival", "shortest")


@dataclass(frozen=True)
class QueueOrder:
    """Jobs early in a queue get the fastest GPUs.

    Parameters
    ----------
    order : str
        ``arrival`` (the order of the problem's rows) or ``shortest`` (least time left first).
    aware, packed : bool
        As in :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    model : callable
        The programme; edit it, or give one of your own.
    """

    name: str
    order: str
    aware: bool = True
    packed: bool = False
    model: Build = gavel.max_total

    @property
    def needs_steps(self) -> bool:
        """True if the queue is ordered by the time left."""
        return self.order == "shortest"

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One linear programme."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.of(problem, aware=self.aware, packed=self.packed)
        fastest = rates.alone.max(axis=1)
        key = np.zeros(rates.rows) if self.order == "arrival" else problem.steps / fastest
        place = np.empty(rates.rows)
        place[np.argsort(key, kind="stable")] = np.arange(rates.rows)
        weight = ((rates.rows - place) / fastest)[:, None] * np.ones_like(rates.alone)
        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)
        values = Values.of_throughput(rates, weight)
        total = highest_total(programme, values, np.zeros(rates.rows))
        alone, shared = spread(problem, rates, total.x, total.y)
        return Allocation(self.name, problem, alone, shared, total.objective, total.bound)


ALLOCATIONS = (QueueOrder("queue_order", "arrival", aware=False),)
