r"""LB-lp: any prices give a bound.

Statement. For the time-indexed programme of ``models.time_indexed``, whose schedules start every job once,
at a slot, run it without a break and let nobody share GPUs, and every :math:`\beta \ge 0`, no such
schedule has a total weighted completion time below

.. math:: L(\beta) = \sum_j \min_{t \ge r_j} \Bigl( w_j (t + p_j) + g_j \sum_{s=t}^{t+p_j-1} \beta_s \Bigr)
          - G \sum_t \beta_t .

Moreover a start (j, t) with :math:`L(\beta) + d_{jt} > U`, where :math:`d_{jt} \ge 0` is what the
bracket exceeds its minimum by, occurs in no schedule of cost at most :math:`U`.

Status. Classic: Lagrangian duality; exact evaluation of float duals as in Neumaier and Shcherbina,
Mathematical Programming A 99, 2004, and Jansson, SIAM J. Optimization 14, 2004.

Proof. Let S start job j at s_j. It holds at most G GPUs in every slot, so
:math:`\sum_t \beta_t (\sum_{j: s_j \le t < s_j + p_j} g_j - G) \le 0`. Adding this to its cost
:math:`\sum_j w_j (s_j + p_j)` lowers it, and regrouping by job gives the brackets at
:math:`t = s_j`, each at least its minimum: cost >= L. If S uses (j, t) its bracket exceeds the
minimum by d_jt, so cost >= L + d_jt. Q.E.D. Prices are multiples of 2**-20 and all sums are whole
numbers, so the float solver that proposed them need not be trusted.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT, exact_prices, reduced_costs

STATUS = "classic"


def bound(jobs: Slotted, prices: NDArray[np.float64]) -> Fraction:
    """L(beta) [slots] for prices of slots 0 .. H-1, negative ones taken as 0."""
    value, _ = reduced_costs(jobs, exact_prices(prices), len(prices))
    return Fraction(value, PRICE_UNIT)


def check(jobs: Slotted, prices: NDArray[np.float64], starts: NDArray[np.int64]) -> bool:
    """True if the total weighted completion time of start slots respects the bound."""
    pairs = zip(jobs.weight.tolist(), (starts + jobs.duration).tolist(), strict=True)
    cost = sum((Fraction(w) * end for w, end in pairs), Fraction(0))
    return cost >= bound(jobs, prices)
