r"""LB-wide: gangs of which few fit at once are jobs of a small machine.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j` that hold all of their GPUs whenever they run, processing
times :math:`p_j`, releases :math:`r_j`, weights :math:`w_j \ge 0`; any schedule in which nobody shares GPUs,
preemptive or not, any placement, any overheads. For a whole :math:`q \ge 1` let :math:`W` be the jobs with
:math:`g_j > m / (q + 1)`, and take one machine on which each of :math:`W` needs :math:`p_j / q` of time. Then

(a) :math:`\sum_{j \in W} C_j` is at least the machine's SRPT value, which for :math:`q = 1` a schedule of
:math:`W` attains;

(b) :math:`\sum_{j \in W} w_j C_j \ge \sum_{j \in W} w_j (M_j^* + p_j / 2)`, with :math:`M_j^*` the mean busy
    times of the machine's preemptive WSPT;

and all other jobs have :math:`C_j \ge r_j + p_j`, so that the sums add up to a bound of all jobs.

Status. Ours; LB-fluid and LB-mbt with a count of gangs in the place of GPUs.

Proof.

1. Any q + 1 gangs of W hold more than m GPUs, so at most q of W run at every moment.
2. Let the machine process j at rate 1 / q while the cluster runs it. Rates add up to at most 1, j has :math:`p_j / q`
   in all, none of it before r_j and the last by C_j. (a) follows as in LB-fluid, (b) as in LB-mbt.
3. With q = 1 the machine's schedule is one of the cluster: each of W alone fits. Q.E.D.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Relaxation, wide_gang_ticks

STATUS = "ours"

KNOWS = RELAXED_KNOWS


def bound(instance: Instance) -> Fraction:
    """Lower bound of total weighted completion time [s], rounded down by less than n ticks.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If jobs may share GPUs or grow.
    """
    require(instance, KNOWS, "LB-wide")
    every = ScheduleClass.allowed(instance, preemptive=True)
    if not every.rigid:
        raise ValueError(f"{every}: expected jobs that hold whole gangs of their own")
    return wide_gang_ticks(Relaxation.of(instance)) / TICKS_PER_S


def check(instance: Instance, weighted_completion_s: float | Fraction) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance)
