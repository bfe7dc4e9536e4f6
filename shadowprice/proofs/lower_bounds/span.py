r"""LB-span: how soon all jobs can be complete where GPUs differ in speed.

Statement. :math:`G_r` GPUs of type :math:`r`, gangs :math:`g_j`, run times at least :math:`p_{jr}` on type
:math:`r`, release dates :math:`r_j`; any schedule in which nobody shares GPUs, preemptive or not, any
placement, any overheads, gangs of several types at the pace of their slowest. For prices
:math:`\lambda_r, \mu_j \ge 0` of GPUs and of the jobs' own time, not all :math:`\lambda_r` zero, and every
:math:`t`, the last completion is no earlier than

.. math:: t + \frac{\sum_{j: r_j \ge t} \min_r p_{jr} (g_j \lambda_r + \mu_j)}
                   {\sum_r G_r \lambda_r + \sum_{j: r_j \ge t} \mu_j},

and no earlier than any :math:`r_j + \min_r p_{jr}`.

Status. Classic: linear programming duality for the preemptive relaxation on unrelated machines (Lawler
and Labetoulle, JACM 25, 1978; recalled), extended to gangs and release dates.

Proof. Let all be complete by :math:`t + T`, and let x_jr be the integral over time of the *shares* z_jr of
``models.typed_interval_lp`` of a job that arrives at t or later, all of it from t on. Then
:math:`\sum_r x_{jr} / p_{jr} = 1`, :math:`\sum_r x_{jr} \le T` and :math:`\sum_j g_j x_{jr} \le G_r T`. So

.. math:: \sum_j \min_r p_{jr} (g_j \lambda_r + \mu_j) \le \sum_{j,r} x_{jr} (g_j \lambda_r + \mu_j)
          \le T \Bigl( \sum_r G_r \lambda_r + \sum_j \mu_j \Bigr),

since the left bracket is at most :math:`p_{jr} (g_j \lambda_r + \mu_j)` for each r, of which x_jr / p_jr are
taken, which add up to 1. The last is LB-job. Q.E.D. Prices are whole numbers and the quotient a
rational, so the float solver that proposed them need not be trusted. With two jobs on shared GPUs read
services for times and :math:`\kappa_r G_r` for :math:`G_r`, as in LB-price.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline.modes.types import KNOWS as TYPED_KNOWS
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.type_prices import SpanPrices, span_ticks

STATUS = "classic, extended to gangs and release dates"

KNOWS = TYPED_KNOWS


def bound(instance: Instance, prices: SpanPrices) -> Fraction:
    """Earliest possible last completion [s], exact.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-span")
    return span_ticks(gpu_type_modes(instance), prices)[0] / TICKS_PER_S


def check(instance: Instance, last_completion_s: float | Fraction, prices: SpanPrices) -> bool:
    """True if the last completion [s] of a schedule respects the bound."""
    return Fraction(last_completion_s) >= bound(instance, prices)
