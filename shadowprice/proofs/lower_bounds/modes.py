r"""LB-mode: jobs with several modes, and prices of what these use.

Statement. In mode :math:`m` job :math:`j` takes :math:`p_{jm}` of time and uses :math:`v_{jmq} \ge 0` of
resource :math:`q`, of which there is :math:`U_q`; releases :math:`r_j`, weights :math:`w_j \ge 0`,
:math:`q_j = \min_m p_{jm}`. Let a schedule of a class have *shares*: at every moment :math:`t`
:math:`z_{jm}(t) \ge 0` with :math:`\sum_m z_{jm} \le 1` and :math:`\sum_{j,m} v_{jmq} z_{jm} \le U_q`, such
that the progress :math:`\rho_j = \sum_m z_{jm} / p_{jm}` integrates to 1 between :math:`r_j` and :math:`C_j`.
Then for prices :math:`\lambda_q > 0`, :math:`\Lambda = \sum_q U_q \lambda_q` and a machine on which job
:math:`j` needs :math:`v_j = \min_m p_{jm} \sum_q v_{jmq} \lambda_q / \Lambda` of time

(a) :math:`\sum_j C_j` is at least the machine's SRPT value, and :math:`\sum_j w_j C_j \ge \sum_j w_j M_j^* +
\tfrac12 \sum_j w_j q_j`, with :math:`M_j^*` the mean busy times of the machine's preemptive WSPT;

(b) for prices :math:`\mu_j \ge 0` of the jobs' own time and every :math:`t` the last completion is no earlier
than

.. math:: t + \frac{\sum_{j: r_j \ge t} \min_m p_{jm} \bigl( \sum_q v_{jmq} \lambda_q + \mu_j \bigr)}
                   {\Lambda + \sum_{j: r_j \ge t} \mu_j};

(c) for prices :math:`\beta_{kq} \ge 0` by interval of time :math:`\sum_j w_j C_j` is at least the dual of
``models.typed_interval_lp`` at them, with any values of the jobs' work.

Status. Ours; LB-price, LB-span and the interval LP over GPU types with any modes in the place of types.

Proof. (a) Let the machine process j at rate :math:`v_j \rho_j`. As :math:`v_j / p_{jm} \le \sum_q v_{jmq} \lambda_q /
\Lambda`, the rates of all jobs are at most :math:`\sum_q \lambda_q \sum_{j,m} v_{jmq} z_{jm} / \Lambda \le 1`; j has
v_j in all, none before r_j and the last by C_j. The rest is steps 3 and 4 of LB-price, which speak of the machine, and
of progress that is never faster than :math:`1 / q_j`.

(b) Integrate the shares of the jobs that arrive at t or later: with :math:`x_{jm} = \int z_{jm}` there are
:math:`\sum_m x_{jm} / p_{jm} = 1`, :math:`\sum_m x_{jm} \le T` and :math:`\sum_{j,m} v_{jmq} x_{jm} \le U_q T` if all
is complete by t + T. So :math:`\sum_j \min_m p_{jm} (\sum_q v_{jmq} \lambda_q + \mu_j) \le \sum_{j,m} x_{jm} (\sum_q
v_{jmq} \lambda_q + \mu_j) \le T (\Lambda + \sum_j \mu_j)`.

(c) The shares are a feasible point of the programme, by *Pieces* and *Completion* of its validity, which ask for
nothing else; its objective there is at most :math:`\sum_j w_j C_j`, and weak duality does the rest. Q.E.D.

Uses are rounded down and times are no longer than the verifier's, which keeps shares. Evaluated in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    busy_price_ticks,
    fluid_price_ticks,
    span_ticks,
)
from shadowprice.solvers.offline.typed_bound import TypedPrices, typed_bound

STATUS = "ours"

Prices = Sequence[int] | SpanPrices | TypedPrices
"""Prices that stay as they are, (a); those and of the jobs' own time, (b); prices by interval, (c)."""


def bound(jobs: ModeTable, prices: Prices) -> Fraction:
    """Lower bound [s] of total weighted completion time, or with :class:`SpanPrices` of the last completion.

    Raises
    ------
    ValueError
        If there are not as many prices as resources, or some are too small.
    """
    if isinstance(prices, TypedPrices):
        return typed_bound(jobs, prices) / TICKS_PER_S
    if isinstance(prices, SpanPrices):
        return span_ticks(jobs, prices)[0] / TICKS_PER_S
    ticks = Fraction(busy_price_ticks(jobs, prices))
    if len(set(jobs.weight)) == 1:
        ticks = max(ticks, jobs.weight[0] * fluid_price_ticks(jobs, prices))
    return ticks / TICKS_PER_S


def check(jobs: ModeTable, cost_s: float | Fraction, prices: Prices) -> bool:
    """True if a cost [s], of the kind that the prices are for, respects the bound."""
    return Fraction(cost_s) >= bound(jobs, prices)
