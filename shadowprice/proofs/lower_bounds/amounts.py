r"""LB-amount: CPUs and memory are resources beside GPUs, and width has its price.

Statement. Jobs that share GPUs with nobody; some may hold more GPUs than their gang, :math:`w` of them at
:math:`e_j(w) \le w / g_j` times their speed; some have a profile, the speed by CPUs and memory for each GPU,
which is that of the largest measured amounts that are reached, of the worker that has least. :math:`G_r` GPUs
of type :math:`r`, the cluster's CPUs and memory; weights :math:`w_j \ge 0`; any schedule, preemptive or not,
any placement, any overheads. Let job :math:`j` have a mode for each type, width :math:`w` and point
:math:`(c, h)` of its profile, of speed :math:`s_j(c, h) e_j(w)`, which uses :math:`w` GPUs of the type,
:math:`w c` CPUs and :math:`w h` of memory. With these LB-mode holds.

Status. Ours; the rows of Synergy's programme (OSDI'22) and widths as modes.

Proof. Let j hold w GPUs at a moment and progress at rate :math:`\rho`. On piece i it has :math:`n_i` GPUs of type
:math:`r_i` on a node, :math:`\sum_i n_i = w`, with CPUs and memory that reach the point :math:`(c_i, h_i)` and no
larger one. The run is as fast as its slowest worker on its slowest type, and spreading makes no run faster; so
:math:`\rho \le 1 / p_{jm_i}` for every i, with :math:`m_i` the mode of :math:`(r_i, w, c_i, h_i)`.

1. Let :math:`z_{jm} = \sum_{i: m_i = m} (n_i / w)\,p_{jm} \rho`. Then :math:`\sum_m z_{jm} / p_{jm} = \rho` and
   :math:`\sum_m z_{jm} \le \sum_i n_i / w = 1`.
2. Of the GPUs of r this uses at most :math:`\sum_{i: r_i = r} n_i`, those it holds; of CPUs at most
   :math:`\sum_i n_i c_i`, and it holds :math:`n_i c_i` or more on every piece, since it reaches the point; the same for
   memory. So all jobs together use no more than there is. Q.E.D.

A mode that some other is at least as good as may be left out: its shares are moved to the other, theta less of them.
Several may be replaced by one that is as fast as the fastest and uses as little of each resource as any. Amounts count
in millionths, rounded down, and reach a point if a share of 10^-9 is missing; uses are less by more than that, and
there is a millionth more of both on every node.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.instance import Instance
from shadowprice.proofs.lower_bounds import modes
from shadowprice.solvers.offline.modes.amounts import KNOWS as AMOUNT_KNOWS
from shadowprice.solvers.offline.modes.amounts import amount_modes

STATUS = "ours"

KNOWS = AMOUNT_KNOWS


def bound(instance: Instance, prices: modes.Prices) -> Fraction:
    """Lower bound [s] of what the prices are for; see :func:`modes.bound`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If widths, CPUs and memory do not matter, or there are not as many prices as resources.
    """
    require(instance, KNOWS, "LB-amount")
    jobs = amount_modes(instance)
    if jobs is None:
        raise ValueError(
            "no job has a profile or may grow: expected some that does, without sharing"
        )
    return modes.bound(jobs, prices)


def check(instance: Instance, cost_s: float | Fraction, prices: modes.Prices) -> bool:
    """True if a schedule's cost [s], of the kind that the prices are for, respects the bound."""
    return Fraction(cost_s) >= bound(instance, prices)
