r"""Tiresias' placement as an integer programme: parameter servers and workers of one job on nodes.

Source: Gu et al., Tiresias, NSDI'19, appendix D. The paper found it slow and no better than its
heuristic. The linearisation is derived.

=========  ============  ==========  ======  =====================================================
Symbol     Here          Index set   Unit    Meaning
=========  ============  ==========  ======  =====================================================
i          m.N                               nodes, by name
j          m.S                               parameter servers, by name
t_i        m.t[i]        N           MB      traffic of other jobs through node i in an iteration
g_i        m.g[i]        N           GPUs    free GPUs of node i
s_j        m.s[j]        S           MB      size of the tensors that server j holds
W          m.W                       GPUs    workers of the job, one on each GPU
M          m.M                       MB      size of the model, the sum of all s_j
w_i        m.w[i]        N           GPUs    workers on node i
p_ji       m.p[j, i]     S, N                1 if server j is on node i
y_ji       m.y[j, i]     S, N        GPUs    p_ji w_i
T          m.T                       MB      largest traffic of a node
=========  ============  ==========  ======  =====================================================

.. math::

    \min T && (busiest) \\
    T \ge T_i = t_i + w_i M + W \sum_j s_j p_{ji} - 2 \sum_j s_j y_{ji} \;\forall i && (traffic) \\
    w_i \le g_i \;\forall i && (room) \qquad \sum_i w_i = W && (gang) \\
    \sum_i p_{ji} = 1 \;\forall j && (server) \\
    y_{ji} \le w_i, \quad y_{ji} \le g_i p_{ji} \;\forall j, i && (both)

The paper's :math:`T_i = t_i + w_i (M - \sum_j p_{ji} s_j) + \sum_j p_{ji} s_j (W - w_i)`, multiplied
out: what the workers here fetch from servers elsewhere, and what servers here send to workers
elsewhere. T falls in y, so that upper limits suffice: y_ji = min(w_i, g_i p_ji) = p_ji w_i for
binary p.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: exact, for one job.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.errors import InputError
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, tuples
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.tiresias.server_placement"
REFERENCE = "tests/solvers/tiresias/test_tiresias.py"


@dataclass(frozen=True)
class ServerJob:
    """One job to place, beside what is there.

    Parameters
    ----------
    workers : int
        W [GPUs], at least 1.
    shards : tuple of float
        s_j [MB], tensors on each parameter server.
    free : tuple of int
        g_i [GPUs], free on each node.
    traffic : tuple of float
        t_i [MB], of other jobs on each node.
    """

    workers: int
    shards: tuple[float, ...]
    free: tuple[int, ...]
    traffic: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.free) != len(self.traffic):
            raise InputError(
                f"job with parameter servers: {len(self.free)} nodes have free GPUs, "
                f"{len(self.traffic)} have traffic, expected as many"
            )
        if not 1 <= self.workers <= sum(self.free) or min(self.free) < 0:
            raise InputError(
                f"job with parameter servers: has {self.workers} workers and nodes with {self.free} "
                "free GPUs, expected at least one worker and room for all"
            )
        if not self.shards or min(*self.shards, *self.traffic) < 0:
            raise InputError(
                f"job with parameter servers: shards {self.shards} and traffic {self.traffic}, "
                "expected at least one shard and sizes >= 0"
            )

    def busiest(self, workers: tuple[int, ...], servers: tuple[int, ...]) -> float:
        """The largest T_i [MB] by the paper's formula.

        Parameters
        ----------
        workers : tuple of int
            w_i.
        servers : tuple of int
            Node of each parameter server.
        """
        size = sum(self.shards)
        loads = []
        for node, (count, before) in enumerate(zip(workers, self.traffic, strict=True)):
            here = sum(s for s, at in zip(self.shards, servers, strict=True) if at == node)
            loads.append(before + count * (size - here) + here * (self.workers - count))
        return max(loads)


def build(job: ServerJob) -> pyo.ConcreteModel:
    """Workers and parameter servers on nodes: least traffic of the busiest node [MB]."""
    with traced():
        m = pyo.ConcreteModel(name="tiresias")
        m.N = tuples(Names.numbered("node", len(job.free)))
        m.S = tuples(Names.numbered("server", len(job.shards)))
        m.t = param(np.array(job.traffic, dtype=np.float64), m.N)
        m.g = param(np.array(job.free, dtype=np.int64), m.N)
        m.s = param(np.array(job.shards, dtype=np.float64), m.S)
        m.W = param(job.workers)
        m.M = param(sum(job.shards))
        m.w = pyo.Var(m.N, domain=pyo.NonNegativeIntegers, dense=False)
        m.p = pyo.Var(m.S, m.N, domain=pyo.Binary, dense=False)
        m.y = pyo.Var(m.S, m.N, domain=pyo.NonNegativeReals, dense=False)
        m.T = pyo.Var(domain=pyo.NonNegativeReals)

        @m.Objective(doc="traffic of the busiest node [MB]")
        def busiest(m: pyo.ConcreteModel) -> NumericValue:
            return m.T

        @m.Constraint(m.N, doc="T is no less than any node's traffic")
        def traffic(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            servers = sum(m.s[j] * (m.W * m.p[j, i] - 2 * m.y[j, i]) for j in m.S)
            return m.t[i] + m.M * m.w[i] + servers <= m.T

        @m.Constraint(m.N, doc="no more workers than free GPUs")
        def room(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return m.w[i] <= m.g[i]

        @m.Constraint(doc="the whole gang")
        def gang(m: pyo.ConcreteModel) -> RelationalExpression:
            return sum(m.w[i] for i in m.N) == m.W

        @m.Constraint(m.S, doc="every server on one node")
        def server(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.p[j, i] for i in m.N) == 1

        @m.Constraint(m.S, m.N, doc="workers beside a server: no more than there are")
        def both_workers(m: pyo.ConcreteModel, j: str, i: str) -> RelationalExpression:
            return m.y[j, i] <= m.w[i]

        @m.Constraint(m.S, m.N, doc="and none where the server is not")
        def both_server(m: pyo.ConcreteModel, j: str, i: str) -> RelationalExpression:
            return m.y[j, i] <= m.g[i] * m.p[j, i]

    return m


def example() -> pyo.ConcreteModel:
    """Two workers and two servers on two nodes, one of which is busy."""
    return build(ServerJob(2, (80.0, 20.0), (2, 1), (90.0, 0.0)))
