r"""LB-price: a cluster with prices by GPU type is no faster than one machine.

Statement. :math:`G_r` GPUs of type :math:`r`, gangs :math:`g_j`, run times at least :math:`p_{jr}` on type
:math:`r`, infinite where :math:`j` cannot run, :math:`q_j = \min_r p_{jr}`, release dates :math:`r_j`; any
schedule in which nobody shares GPUs, preemptive or not, any placement, any overheads, gangs of several types at
the pace of their slowest. For prices :math:`\lambda_r > 0` let :math:`\Lambda = \sum_r G_r \lambda_r` and take
one machine on which job :math:`j` needs :math:`v_j = \min_r \lambda_r g_j p_{jr} / \Lambda` of time. Then

(a) :math:`\sum_j C_j` is at least the machine's SRPT value;

(b) :math:`\sum_j w_j C_j \ge \sum_j w_j M_j^* + \tfrac12 \sum_j w_j q_j` for weights :math:`w_j \ge 0`, with
:math:`M_j^*` the mean busy times of the machine's preemptive WSPT (largest :math:`w_j / v_j` first).

Status. Ours; prices on the aggregation of LB-fluid and LB-mbt, which are the case of equal types.

Proof.

1. By the *shares* of ``models.typed_interval_lp`` there are :math:`z_{jr}(t) \ge 0` with
   :math:`\sum_r z_{jr} \le 1`, :math:`\sum_j g_j z_{jr} \le G_r`, and progress :math:`\rho_j(t) = \sum_r
   z_{jr} / p_{jr}` that integrates to 1 between r_j and C_j.
2. Let the machine process j at rate :math:`v_j \rho_j(t)`. Since :math:`v_j / p_{jr} \le \lambda_r g_j /
   \Lambda`, the rates of all jobs are at most :math:`\sum_r \lambda_r \sum_j g_j z_{jr} / \Lambda \le 1`; j
   has v_j in all, none before r_j, and the last at C_j or before.
3. (a) follows as in LB-fluid, step 3: serving without sharing ends no job later, and SRPT is best.
4. (b) The machine's mean busy time of j is :math:`M_j = \int t \rho_j(t)\,dt`, and the sum of
   :math:`w_j M_j` is at least the optimum's, preemptive WSPT's (LB-mbt, step 3). Progress is never faster
   than :math:`1 / q_j` and is 1 by C_j, so :math:`M_j \le C_j - q_j / 2`. Q.E.D.

Any prices will do, so the search that proposes them need not be trusted. With two jobs on shared GPUs read
services for times and :math:`\kappa_r G_r` for :math:`G_r`: steps 1 and 2 ask for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline.modes.types import KNOWS as TYPED_KNOWS
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.type_prices import busy_price_ticks, fluid_price_ticks

STATUS = "ours"

KNOWS = TYPED_KNOWS


def bound(instance: Instance, prices: Sequence[int]) -> Fraction:
    """Lower bound of total weighted completion time [s], rounded down by less than n ticks.

    Parameters
    ----------
    prices : sequence of int
        lambda_r >= 1 of the pools of :func:`.gpu_type_modes`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-price")
    jobs = gpu_type_modes(instance)
    ticks = Fraction(busy_price_ticks(jobs, prices))
    if len(set(jobs.weight)) == 1:
        ticks = max(ticks, jobs.weight[0] * fluid_price_ticks(jobs, prices))
    return ticks / TICKS_PER_S


def check(
    instance: Instance, weighted_completion_s: float | Fraction, prices: Sequence[int]
) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance, prices)
