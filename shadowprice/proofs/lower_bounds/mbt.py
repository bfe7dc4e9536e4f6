r"""LB-mbt: mean busy times on one fast machine, plus half the processing times.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j`, processing times :math:`p_j`, releases :math:`r_j`, weights
:math:`w_j \ge 0`; any schedule in which nobody shares GPUs, without overheads, preemptive or not. Let
:math:`I_j`, of measure :math:`p_j`, be when :math:`j` runs, and :math:`M_j = \frac{1}{p_j}\int_{I_j} t\,dt`.
Then

.. math:: \sum_j w_j C_j \ge \sum_j w_j M_j^* + \tfrac12 \sum_j w_j p_j,

where :math:`M^*` are the mean busy times of preemptive WSPT (largest :math:`w_j / (g_j p_j)`
first) on one machine with work :math:`g_j p_j / m`.

Status. Goemans, SODA 1997 for one machine, extended to gangs. Our sources state it for
non-preemptive schedules; step 1 shows that it holds with preemption as well.

Proof.

1. :math:`I_j` lies before C_j and has measure p_j, so :math:`\int_{I_j} t\,dt \le
   \int_{C_j - p_j}^{C_j} t\,dt = p_j (C_j - p_j / 2)`, that is :math:`C_j \ge M_j + p_j / 2`
   (with equality without preemption).
2. As in LB-fluid, process j at rate :math:`g_j / m` while the cluster runs it. Its mean busy time on
   the machine, weighted by rate, is the same M_j since the rate is constant over :math:`I_j`.
3. Preemptive WSPT minimises :math:`\sum_j w_j M_j` on the machine, sharing allowed: for every
   density threshold the total amount processed of jobs above it by any time t is as large as
   possible, and :math:`\sum_j w_j M_j` is, by parts, a sum over thresholds of integrals of what is
   left to process (Goemans 1997, Theorem 2.1). Q.E.D.

Overheads only delay: remove them from a schedule with overheads and no C_j grows.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.proofs.lower_bounds.fluid import KNOWS as FLUID_KNOWS
from shadowprice.solvers.offline.bounds import mean_busy_ticks

STATUS = "classic, extended to gangs and to preemption"

KNOWS = FLUID_KNOWS  # the same relaxation: no job is faster than alone, and all else only delays


def bound(instance: Instance) -> Fraction:
    """Lower bound of total weighted completion time [s], rounded down by less than n ticks.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-mbt")
    jobs = instance.workload
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    gpus, capacity = jobs.gpus.tolist(), instance.cluster.total_gpus
    return Fraction(mean_busy_ticks(release, work, gpus, weight, capacity), TICKS_PER_S)


def check(instance: Instance, weighted_completion_s: float | Fraction) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance)
