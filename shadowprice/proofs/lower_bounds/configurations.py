r"""LB-conf: what the cheapest plan of every job costs at prices of whole gangs.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j` that hold all of their GPUs whenever they run, processing
times :math:`p_j`, releases :math:`r_j`, weights :math:`w_j \ge 0`; any schedule in which nobody shares GPUs,
preemptive or not, any placement, any overheads. For a price :math:`\pi_g(t) \ge 0` of a gang of each width
:math:`g` at every moment, let

.. math:: \mu(t) = \max \Bigl\{ \sum_g n_g \pi_g(t) : \sum_g g\, n_g \le m,\ 0 \le n_g \le N_g(t) \Bigr\}
          \quad \text{over whole } n_g,

where :math:`N_g(t)` is at least the number of jobs of width :math:`g` released by :math:`t`. Then

.. math:: \sum_j w_j C_j \ge \sum_j \min_{C \ge r_j + p_j} \Bigl( w_j C + \Pi_j(C) \Bigr) - \int \mu(t)\,dt,

where :math:`\Pi_j(C)` is the least of :math:`\int_I \pi_{g_j}` over sets I of measure :math:`p_j` between
:math:`r_j` and :math:`C`.

Status. Ours; Lagrangian duality on a configuration programme whose columns are sets of gangs that fit, priced
as knapsacks.

Proof.

1. At a moment t let S(t) be the jobs that hold GPUs. Their gangs fit, and there are at most :math:`N_g(t)` of
   width g, so :math:`\sum_{j \in S(t)} \pi_{g_j}(t) \le \mu(t)`.
2. Let I_j be when j makes progress, of measure p_j, between r_j and C_j; then j is in S(t) for every t in I_j.
   Prices are not negative, so

   .. math:: \sum_j \int_{I_j} \pi_{g_j} \le \int \sum_{j \in S(t)} \pi_{g_j} \le \int \mu.

3. Hence :math:`\sum_j w_j C_j \ge \sum_j ( w_j C_j + \int_{I_j} \pi_{g_j} ) - \int \mu`, and each bracket is at
   least its minimum over C. Q.E.D.

Prices :math:`\pi_g = g \lambda` give LB-plan or more, since :math:`\mu \le m \lambda`. A price of 1 for all gangs of
width w and more counts that at most :math:`\lfloor m / w \rfloor` of them run at once. The knapsacks are solved by
dynamic programming in whole numbers, one a cell of the grid on which prices are constant; the jobs released by the
end of a cell are :math:`N_g` in it.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.plan_prices import GangPrices
from shadowprice.solvers.offline.priced_plans import plan_bound

STATUS = "ours"

KNOWS = RELAXED_KNOWS


def bound(instance: Instance, prices: GangPrices) -> Fraction:
    """Lower bound of total weighted completion time [s], exact or rounded down.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If jobs may share GPUs or grow, or a gang has no price.
    """
    require(instance, KNOWS, "LB-conf")
    every = ScheduleClass.allowed(instance, preemptive=True)
    if not every.rigid:
        raise ValueError(f"{every}: expected jobs that hold whole gangs of their own")
    return plan_bound(Relaxation.of(instance), prices) / TICKS_PER_S


def check(instance: Instance, weighted_completion_s: float | Fraction, prices: GangPrices) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance, prices)
