r"""LB-plan: what the cheapest plan of every job costs at prices of GPU time.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j`, processing times :math:`p_j`, releases :math:`r_j`, weights
:math:`w_j \ge 0`; any schedule in which nobody shares GPUs, preemptive or not, any placement, any overheads.
For a price :math:`\lambda(t) \ge 0` of a GPU at every moment

.. math:: \sum_j w_j C_j \ge \sum_j \min_{C \ge r_j + p_j} \Bigl( w_j C + g_j\,\Lambda_j(C) \Bigr)
          - m \int \lambda(t)\,dt,

where :math:`\Lambda_j(C)` is the least of :math:`\int_I \lambda` over sets I of measure :math:`p_j` between
:math:`r_j` and :math:`C`.

Status. Ours; Lagrangian duality on the capacity, with the preemptive plans of single jobs as the subproblems.

Proof.

1. Let a schedule run job j at service :math:`s_j(t) \in [0, 1]`, which is 1 while it makes progress and 0 else, so that
   :math:`\int s_j = p_j`, all of it between r_j and C_j. It holds at most m GPUs, so :math:`\sum_j g_j s_j(t) \le m`
   at every t, also while gangs hold GPUs for overheads.
2. Hence :math:`\int \lambda (\sum_j g_j s_j - m) \le 0`; adding it to the cost does not raise it:

   .. math:: \sum_j w_j C_j \ge \sum_j \Bigl( w_j C_j + g_j \int \lambda s_j \Bigr) - m \int \lambda.

3. Of all services of at most 1 that add up to p_j between r_j and C_j, one that is 1 on a set of measure p_j on
   which :math:`\lambda` is least costs least (exchange). So :math:`\int \lambda s_j \ge \Lambda_j(C_j)`, and the
   bracket is at least its minimum over C. Q.E.D.

Any prices will do, so the search that proposes them need not be trusted. They are constant on cells of a grid.
There :math:`\Lambda_j` is piecewise linear, and convex within a cell, where ever less dear time is given up for time of
one price; so the minimum over C is at the end of a cell, or where one piece of time has been given up.
Of the same prices LB-plan is at least the bound of ``models.interval_lp``: by (busy) there
:math:`C_j \ge M_j + p_j / 2` for every plan, with equality only for plans without interruption.

With two jobs on shared GPUs, and for gangs that hold more or fewer GPUs, read services, and :math:`\kappa m` for m
(``solvers.offline.bounds``): the proof asks for nothing else.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.priced_plans import plan_bound

STATUS = "ours"

KNOWS = RELAXED_KNOWS


def bound(instance: Instance, prices: PlanPrices) -> Fraction:
    """Lower bound of total weighted completion time [s], exact or rounded down.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-plan")
    return plan_bound(Relaxation.of(instance), prices) / TICKS_PER_S


def check(instance: Instance, weighted_completion_s: float | Fraction, prices: PlanPrices) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance, prices)
