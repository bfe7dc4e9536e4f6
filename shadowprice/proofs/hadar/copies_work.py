r"""HADARE-n: how many copies keep every node busy.

Statement. :math:`n` nodes, at most :math:`k` copies of a job at a time, a copy holds one node. In a round with
:math:`u` unfinished jobs

1. at most :math:`\min(n, k u)` nodes are busy, and if every job can run on every node and has at
   least :math:`n` steps left, that many can be;
2. "no node idles in a round while a job that could do a step on it (in a round with all charges
   owed) is unfinished, except in that job's last round" can be kept for every instance if and only
   if :math:`k \ge n`. HadarE as in ``solvers.hadar.copy_assignment`` keeps it.

Status. Ours: the published claim of maximal utilisation, made precise; the last round is an exception
because a job with fewer steps left than nodes cannot occupy them all.

Proof.

1. Busy nodes are at most n. Each holds one copy of an unfinished job, and each job has at most k:
   at most k u. Conversely deal out the :math:`\min(n, k u)` first nodes to the jobs in turn; each gets
   at most k, and at least one step for each of its copies is left.
2. Necessity: one job with work for two rounds of all nodes and k < n: by 1 at most k nodes are busy
   in the first round, which is not its last. Sufficiency: let :math:`k \ge n`, let node h be idle in
   a round and let job j, able to do a step on h in a round, not end in it. If j was served, it took
   only as many nodes as finish it, none dispensable, so each of them does a step and j ends, or else
   every free node it can run on; h was free then, since nodes once taken do a step and so are busy,
   and :math:`k \ge n` never limits: h would hold j. If j was not served, serving stopped with no
   free node on which an unserved job can run, so h was taken, by a job whose nodes all do a step.
   Nodes given out afterwards as further copies go to jobs that end in this round, and are not used
   if with them a node would be left without a step that the job was served with. Q.E.D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.copies import CopyRules, total_steps

STATUS = "ours, makes the published claim precise"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.COPIES,
        Feature.RATES,  # say how many steps a node does in a round
        Feature.TYPES,  # a job may have steps to do on some nodes only
        Feature.CPU_MEMORY,  # every node has what a job asks for, and a copy has its node to itself
    }
)


def bound(nodes: int, copies: int, unfinished: int) -> int:
    """Largest number of busy nodes in a round, min(n, k u)."""
    return min(nodes, copies * unfinished)


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if a verified schedule keeps both statements in every round; O(R + rounds x n x jobs).

    Raises
    ------
    InputError
        If jobs run as one gang each, or the instance says more than the theorem knows.
    """
    require(instance, KNOWS, "HADARE-n")
    rules, steps = instance.copies, schedule.steps
    if rules is None or steps is None:
        raise InputError(
            f"{instance.workload.source}: its jobs run as one gang, expected several copies"
        )
    done = np.zeros(len(instance.workload), dtype=np.int64)
    total = total_steps(instance.workload)
    nodes, order = len(instance.cluster.nodes), np.argsort(schedule.start_s, kind="stable")
    begins_s, first = np.unique(schedule.start_s[order], return_index=True)
    able = _able(instance, rules)
    for begin_s, rows in zip(begins_s, np.split(order, first)[1:], strict=True):
        there = instance.workload.arrival_s <= begin_s
        unfinished = there & (done < total)
        busy = np.zeros(nodes, dtype=bool)
        busy[schedule.node[rows]] = True
        if busy.sum() > bound(nodes, rules.max_copies, int(unfinished.sum())):
            return False
        np.add.at(done, schedule.job[rows], steps[rows])
        goes_on = unfinished & (done < total)
        if rules.max_copies >= nodes and able[goes_on][:, ~busy].any():
            return False
    return True


def _able(instance: Instance, rules: CopyRules) -> NDArray[np.bool_]:
    """Mask of the nodes on which each job surely does a step in a round, shape (n, nodes).

    A copy is taken to use no more GPUs than the job's gang: one that uses more is only faster.
    """
    workload, cluster = instance.workload, instance.cluster
    width = np.minimum(workload.gpus[:, None], cluster.gpus_per_node[None, :])
    if workload.throughput is None:
        speed = np.full(width.shape, float(TICKS_PER_S))
    else:
        columns = [workload.gpu_types.index(node.gpu_type) for node in cluster.nodes]
        speed = workload.throughput[:, columns]
    free_s = rules.round_s - rules.charges_s
    able: NDArray[np.bool_] = speed * width / workload.gpus[:, None] * free_s >= 1.0 + 1e-6
    return able
