r"""LB-node: nodes are bins for gangs that run within one of them.

Statement. Gangs :math:`g_j` of jobs that share GPUs with nobody and do not grow, :math:`N_s` nodes of :math:`s`
GPUs in each pool (of a GPU type, or of all GPUs where types do not matter); weights :math:`w_j \ge 0`; any
schedule, preemptive or not, any overheads, of one of the classes

(a) *consolidated*: every run is on as few nodes as any of the cluster's could hold it;

(b) any placement, where a run on more nodes than that has a speed of its own, :math:`s_j \le 1`;

(c) any placement of job graphs, whose speed depends on the mapping.

Let a gang that fits on a node of the cluster have a mode for each kind of nodes on which it fits, at its full
speed, and a mode *spread* for each pool: in (a) none, in (b) at speed :math:`s_j`, in (c) with
:math:`\bar\alpha_j`, no more than :math:`\alpha` of any mapping on several nodes
(``instances.graphs.iteration_time``), in the place of :math:`\alpha`. Larger gangs have the latter alone, at
full speed; gangs of one GPU the former. All use :math:`g_j` of the GPUs of their pool. For any
:math:`f(g) \ge 0` let

.. math:: W = \max \Bigl\{ \sum_g n_g f(g) : \sum_g g\,n_g \le s,\ n_g \ge 0 \text{ whole} \Bigr\}

over the sizes of gangs and 1. Then nodes of :math:`s` GPUs are a resource of :math:`N_s`, of which a gang
within one uses :math:`f(g) / W`, and a spread gang :math:`g f(1) / W` of the resource of its pool's nodes where
all of them have :math:`s` GPUs. With these LB-mode holds for the class.

Status. Ours; bin packing's dual feasible functions and configurations as resources of LB-mode.

Proof.

1. Let job j hold :math:`a_r` GPUs of pool r and progress at rate :math:`\rho`. If it is on one node, let
   z = :math:`p \rho \le 1` of the mode of that kind of node, on which the gang fits, with p the least time there under
   any conditions. If it is on several and fits on one, it is of no schedule of (a); in (b) it is spread, in (c) its
   alpha is at least :math:`\bar\alpha_j`: either way :math:`z_{jr} = (a_r / g_j)\,p_{jr} \rho \le a_r / g_j` with
   :math:`p_{jr}` of the spread modes, as a gang on several types goes at the pace of its slowest. The same with full
   speed if it fits on none.
2. Shares of a job add up to at most 1, and give its progress. Of the GPUs of pool r it uses at most :math:`a_r`.
3. At a moment let the gangs of sizes :math:`g_1, g_2, \ldots` run within a node of s GPUs, and let others, which are
   spread, hold h GPUs there. Then :math:`\sum g_i + h \le s`, so :math:`\sum f(g_i) + h f(1) \le W`. Over all nodes of
   the kind, what gangs within them use is at most :math:`\sum z f(g) / W`, and if these are all nodes of the pool, what
   spread gangs use is at most :math:`\sum_j a_r f(1) / W`, their GPUs on them: together at most N_s. Q.E.D.

Charges only keep GPUs without progress. W is computed by dynamic programming in whole numbers, and quotients are
rounded down.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.instance import Instance
from shadowprice.proofs.lower_bounds import modes
from shadowprice.solvers.offline.modes.nodes import KNOWS as NODE_KNOWS
from shadowprice.solvers.offline.modes.nodes import node_modes

STATUS = "ours"

KNOWS = NODE_KNOWS


def bound(instance: Instance, prices: modes.Prices, *, consolidated: bool) -> Fraction:
    """Lower bound [s] of what the prices are for, over consolidated schedules or all; see :func:`modes.bound`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If nodes say nothing of the instance, or there are not as many prices as resources.
    """
    require(instance, KNOWS, "LB-node")
    jobs = node_modes(instance, consolidated=consolidated)
    if jobs is None:
        raise ValueError(
            "nodes say nothing: expected gangs that fit on one, without sharing and growth"
        )
    return modes.bound(jobs, prices)


def check(
    instance: Instance, cost_s: float | Fraction, prices: modes.Prices, *, consolidated: bool
) -> bool:
    """True if the cost [s] of a schedule of the class, of the kind that the prices are for, respects the bound."""
    return Fraction(cost_s) >= bound(instance, prices, consolidated=consolidated)
