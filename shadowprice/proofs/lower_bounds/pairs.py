r"""LB-pair: of two jobs that share GPUs each counts by what both gain.

Statement. Gangs :math:`g_j`, some two of which may hold the same GPUs at once, at rates that a table has by
kind of job and GPU type; :math:`G_r` GPUs of type :math:`r`, weights :math:`w_j \ge 0`; any schedule,
preemptive or not, any placement, any overheads, gangs of several types at the pace of their slowest. Let
:math:`R_{jr}` be the largest rate of :math:`j` on :math:`r`, alone or with any other, :math:`p_{jr}` its run
time at that, and :math:`a^r_{cd} \le 1` the rate of kind :math:`c` with :math:`d` over the least
:math:`R_{jr}` of jobs of kind :math:`c`. For every set of *parts* :math:`0 \le x^r_c \le 1` with

.. math:: x^r_c a^r_{cd} + x^r_d a^r_{dc} \le 1 \quad \text{for all pairs that may share on } r

let a job of kind :math:`c` on :math:`r` use :math:`g_j x^r_c` of a resource of :math:`G_r`. Then LB-mode holds,
the modes of a job being the types on which it can run.

Status. Ours; the dual of a configuration programme whose columns are single jobs and pairs.

Proof. Let job i of kind c hold :math:`a_r` GPUs of type r, w in all, and work at rate :math:`\rho` of its work. A gang
on several types works at the pace of its slowest, so :math:`\rho \le \min_{a_r > 0} 1 / p_{ir}`, and beside a partner
of kind d :math:`\rho \le \min_{a_r > 0} a^r_{cd} / p_{ir}`.

1. Let :math:`z_{ir} = (a_r / w)\,p_{ir} \rho`. Then :math:`\sum_r z_{ir} / p_{ir} = \rho` and
   :math:`z_{ir} \le a_r / w`, so that :math:`\sum_r z_{ir} \le 1`. While it pays for a start :math:`\rho = 0`.
2. A job alone on its GPUs uses :math:`g_i x^r_c z_{ir} \le (g_i / w)\,a_r \le a_r` of the resource, since a gang never
   holds less than g. Two that share hold the same :math:`a_r` GPUs of each type and are gangs of the same size; they
   use :math:`g (x^r_c z_{ir} + x^r_d z_{jr}) \le (g / w)\,a_r (x^r_c a^r_{cd} + x^r_d a^r_{dc}) \le a_r`.
3. No GPU is held by more than one job or pair, so all of them use at most :math:`G_r` of it. These are the shares that
   LB-mode asks for. Q.E.D.

Where less than a tick of work takes a tick, alone as well as beside another, both services of every pair are taken as
1. Equal parts :math:`1 / \kappa_r` give LB-price with sharing. Parts are found by a linear programme, rounded down to
multiples of 2^-20, and compared with every pair in fractions; times are rounded down to ticks.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.instance import Instance
from shadowprice.proofs.lower_bounds import modes
from shadowprice.solvers.offline.modes.pairs import KNOWS as PAIR_KNOWS
from shadowprice.solvers.offline.modes.pairs import pair_modes

STATUS = "ours"

KNOWS = PAIR_KNOWS


def bound(instance: Instance, prices: modes.Prices) -> Fraction:
    """Lower bound [s] of what the prices are for; see :func:`modes.bound`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If no two jobs may share GPUs, or there are not as many prices as resources.
    """
    require(instance, KNOWS, "LB-pair")
    jobs = pair_modes(instance)
    if jobs is None:
        raise ValueError("no two jobs may share GPUs: expected rates of some pair")
    return modes.bound(jobs, prices)


def check(instance: Instance, cost_s: float | Fraction, prices: modes.Prices) -> bool:
    """True if a schedule's cost [s], of the kind that the prices are for, respects the bound."""
    return Fraction(cost_s) >= bound(instance, prices)
