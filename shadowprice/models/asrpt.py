r"""A-SRPT's programmes: which node hosts which replica, and when each job runs.

Source: Luo, Liu, Lee, Shroff, arXiv 2501.05563; the system model as recalled, the formulas as
derived in :mod:`shadowprice.instances.graphs.iteration_time`, the linearisations derived here.

===========  ===============  ==========  ======= ================================================
Symbol       Here             Index set   Unit    Meaning
===========  ===============  ==========  ======= ================================================
s, t         m.S                                  stages, by name
m            m.M                                  nodes, by name
k_s          m.k[s]           S                   replicas
F_m          m.F[m]           M           GPUs    free GPUs
x_s^m        m.x[s, m]        S, M                replicas of s on m
y_s^m        m.y[s, m]        S, M                1 if m has a replica of s
u_s^m        m.u[s, m]        S, M                1 if m has all replicas of s
z_sn^m       m.z[s, m, n]     S, M, N             1 if m has at least n replicas of s
c_s          m.c[s]           S           s       forward and backward pass
w_st         m.sent[s, t]     S, S        bytes   what a replica of s exchanges with all of t, one way
W_st         m.weight[s, t]   S, S        bytes   what a replica of s exchanges with one of t, W_ss
                                                  with one of its own stage
a_s, a'_s    m.near, m.far    S           s       AllReduce inside a node, and between nodes
b, B         m.b, m.B                     bytes/s bandwidth of a node's GPUs, of its NIC
V_s          m.V[s, m, n]     S, M, N     s       most less least time that the bytes of s can take
e_n^m        m.e[m, n]        M, N                1 if n replicas of the job on m have remote bytes
alpha        m.alpha                      s       time of an iteration
===========  ===============  ==========  ======= ================================================

Valid placements, and the two objectives over them:

.. math::

    \sum_m x_s^m = k_s \;\forall s && (once) \qquad
    \sum_s x_s^m \le F_m \;\forall m && (room) \\
    y_s^m \le x_s^m \le k_s y_s^m && (here) \qquad
    k_s u_s^m \le x_s^m \le k_s - 1 + u_s^m && (whole) \\
    \min \alpha \ge \phi \bigl( c_s + a'_s + (a_s - a'_s) \sum_m u_s^m
         + \sum_t 2 w_{st} (\tfrac{x_t^m}{k_t b} + (1 - \tfrac{x_t^m}{k_t}) / B^m)
         - V_s (1 - y_s^m) \bigr) \;\forall s, m && (slowest) \\
    \min \sum_{s \le t} W_{st} (\text{pairs of replicas of s and t on different nodes}) && (cut)

with :math:`\phi` the factor of a flushed pipeline and V_s the difference between the most and the
least that the bytes of s can take. Per GPU B^m = B / G. Per job B^m = B / n for n replicas with
remote bytes; (slowest) is then repeated for every n, switched on by e_n^m, as the time grows in n.
Pairs inside a node are counted with z, a unary x.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.graphs.iteration_time import Network, flush_factor, shortest_iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.graph_placement.exact"
REFERENCE = "tests/solvers/graph_placement/test_graph_placement.py"


def exchange(graph: JobGraph) -> NDArray[np.float64]:
    """W, bytes two replicas exchange in an iteration, both ways, by their stages; shape (S, S)."""
    weight = np.zeros((len(graph.stages), len(graph.stages)))
    for (s, t), pair in graph.pair_bytes.items():
        weight[s, t] = weight[t, s] = pair
    return weight


def cut_bytes(graph: JobGraph, mapping: StageMapping) -> float:
    """Bytes of an iteration that cross between nodes under a mapping; O(nodes S^2)."""
    counts = np.array([row for _, row in mapping], dtype=np.float64)
    # Pairs of replicas on different nodes, each pair of stages (and of replicas) counted twice.
    apart = np.outer(graph.replicas, graph.replicas) - counts.T @ counts
    return float((exchange(graph) * apart).sum() / 2)


@dataclass(frozen=True)
class PlacementData:
    """One job to place.

    Parameters
    ----------
    graph : JobGraph
    free : tuple of int
        F_m.
    network : Network
    node_names : tuple of str
        ``node-0``, ... if there are none.
    """

    graph: JobGraph
    free: tuple[int, ...]
    network: Network
    node_names: tuple[str, ...] = ()

    @cached_property
    def stages(self) -> Names:
        """Name of each stage."""
        return Names([stage.name for stage in self.graph.stages])

    @cached_property
    def nodes(self) -> Names:
        """Name of each node."""
        return Names.known(self.node_names, "node", len(self.free))

    @property
    def replicas(self) -> list[int]:
        """k_s."""
        return [stage.replicas for stage in self.graph.stages]

    @property
    def sent(self) -> list[dict[int, float]]:
        """w_st by s and t, where it is not 0."""
        sent: list[dict[int, float]] = [{} for _ in self.graph.stages]
        for s, t, amount in self.graph.link_ends:
            if amount > 0:
                sent[s][t] = sent[s].get(t, 0.0) + amount
        return sent

    @property
    def unit_s(self) -> float:
        """Time that is 1 in the programmes, for numbers near 1: a lower bound of alpha."""
        return shortest_iteration_s(self.graph, self.network) or 1.0

    def sharers(self, node: int) -> list[tuple[int, float]]:
        """Pairs (n, B^m [bytes/s] of n replicas with remote bytes) on a node."""
        nic = self.network.nic_bytes_per_s
        if self.network.sharing == "per-gpu":
            return [(1, nic / self.network.gpus_per_node)]
        return [(n, nic / n) for n in range(1, max(1, min(self.free[node], self.graph.gpus)) + 1)]


def least_time(data: PlacementData, *, interchangeable: bool = True) -> pyo.ConcreteModel:
    """Shortest iteration, in units of ``data.unit_s``.

    Parameters
    ----------
    interchangeable : bool
        Leave out placements that differ only in the order of neighbouring equal nodes.
    """
    with traced():
        m = pyo.ConcreteModel(name="asrpt_least_time")
        _placements(m, data, interchangeable)
        _iteration(m, data)

        @m.Objective(doc="time of an iteration")
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            return m.alpha

    return m


def timed_placement(block: pyo.Block, data: PlacementData) -> None:
    """A placement and its alpha on a block of a larger programme."""
    _placements(block, data, interchangeable=False)
    _iteration(block, data)


def least_cut(data: PlacementData, *, interchangeable: bool = True) -> pyo.ConcreteModel:
    """Fewest bytes between nodes, in units of the heaviest pair of replicas.

    (pairs) and (beside) make the relaxation strong: with n replicas of s on a node, at most F_m -
    n others are beside the n-th.
    """
    weight = exchange(data.graph)
    weight = weight / (weight.max() or 1.0)
    linked = np.triu(weight, 1) > 0
    replicas = np.array(data.replicas)
    between = np.triu(weight, 1) * np.outer(replicas, replicas)
    inside = np.diag(weight) * replicas * (replicas - 1) / 2
    with traced():
        m = pyo.ConcreteModel(name="asrpt_least_cut")
        _placements(m, data, interchangeable)
        _unary(m, data, linked)
        m.weight = param(weight, m.S, m.S)
        m.apart = param(between.sum() + inside.sum())

        @m.Objective(doc="bytes of pairs that are not on one node")
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            linked_here = sum(m.weight[s, t] * m.p[s, t, i, n, o] for s, t, i, n, o in m.P)
            own_here = sum(m.weight[s, s] * (n - 1) * m.z[s, i, n] for s, i, n in m.N)
            return m.apart - linked_here - own_here

        @m.Constraint(m.S, m.M, doc="x in unary")
        def unary(m: pyo.ConcreteModel, s: str, i: str) -> RelationalExpression:
            return m.x[s, i] == sum(m.z[s, i, n] for n in range(1, m.most[s, i] + 1))

        @m.Constraint(m.N, doc="the n-th comes after the one before it")
        def order(m: pyo.ConcreteModel, s: str, i: str, n: int) -> RelationalExpression:
            return pyo.Constraint.Skip if n == 1 else m.z[s, i, n] <= m.z[s, i, n - 1]

        @m.Constraint(m.P, m.ends, doc="a pair is on a node if both are")
        def pairs(
            m: pyo.ConcreteModel, s: str, t: str, i: str, n: int, o: int, end: str
        ) -> RelationalExpression:
            return m.p[s, t, i, n, o] <= (m.z[t, i, o] if end == "second" else m.z[s, i, n])

        @m.Constraint(m.beside.nonempty, doc="no more beside a replica than the node has GPUs")
        def beside_it(m: pyo.ConcreteModel, s: str, i: str, n: int) -> RelationalExpression:
            others = sum(m.p[a, b, c, d, e] for a, b, c, d, e in m.beside[s, i, n])
            return others <= (m.F[i] - n) * m.z[s, i, n]

    return m


def _unary(m: pyo.ConcreteModel, data: PlacementData, linked: NDArray[np.bool_]) -> None:
    """Variables z, p: x in unary, and pairs of replicas of linked stages that are on one node."""
    most, stage, nodes = np.minimum.outer(data.replicas, data.free), data.stages, data.nodes
    s, i = (each.ravel() for each in np.indices(most.shape))
    entry, n = _up_to(most.ravel())
    m.N = tuples(stage[s[entry]], nodes[i[entry]], n + 1)
    m.z = pyo.Var(m.N, domain=pyo.Binary, dense=False)
    a, b = (np.repeat(each, most.shape[1]) for each in np.nonzero(linked))
    node = np.tile(np.arange(most.shape[1]), int(linked.sum()))
    pair, both = _up_to(most[a, node] * most[b, node])
    a, b, node = a[pair], b[pair], node[pair]
    first, second = np.divmod(both, np.maximum(most[b, node], 1))
    m.P = tuples(stage[a], stage[b], nodes[node], first + 1, second + 1)
    m.ends = pyo.Set(initialize=["first", "second"])
    m.p = pyo.Var(m.P, bounds=(0, 1), dense=False)
    both_ends = np.concatenate([a, b]), np.tile(node, 2), np.concatenate([first, second]) + 1
    of_end = (stage[both_ends[0]], nodes[both_ends[1]], both_ends[2])
    pair = np.tile(np.arange(len(a)), 2)
    m.beside = subsets(m.N, of_end, *(column[pair] for column in m.P.columns))


def _up_to(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers 0 to count - 1 of every entry with a count, and the entry of each."""
    entry = np.repeat(np.arange(len(counts)), counts)
    return entry, np.arange(len(entry)) - (np.cumsum(counts) - counts)[entry]


def _placements(m: pyo.ConcreteModel, data: PlacementData, interchangeable: bool) -> None:
    """Variables x, y and what makes them a placement."""
    free = np.array(data.free)
    stage, node = data.stages, data.nodes
    m.S, m.M = tuples(stage), tuples(node)
    m.k = param(data.replicas, m.S)
    m.F = param(free, m.M)
    m.most = param(np.minimum.outer(data.replicas, free), m.S, m.M, mutable=False)
    m.limits = pyo.Set(initialize=["lower", "upper"])
    m.x = pyo.Var(
        m.S,
        m.M,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda m, s, i: (0, m.most[s, i]),
        dense=False,
    )
    m.y = pyo.Var(m.S, m.M, domain=pyo.Binary, dense=False)

    @m.Constraint(m.S, doc="every replica is somewhere")
    def once(m: pyo.ConcreteModel, s: str) -> RelationalExpression:
        return sum(m.x[s, i] for i in m.M) == m.k[s]

    @m.Constraint(m.M, doc="no more replicas than free GPUs")
    def room(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
        return sum(m.x[s, i] for s in m.S) <= m.F[i]

    @m.Constraint(m.S, m.M, m.limits, doc="y says whether there are any")
    def here(m: pyo.ConcreteModel, s: str, i: str, limit: str) -> RelationalExpression:
        if limit == "upper":
            return m.x[s, i] <= m.most[s, i] * m.y[s, i]
        return m.y[s, i] <= m.x[s, i]

    if interchangeable:
        first, second = stage[0], np.flatnonzero(np.diff(free) == 0) + 1
        m.equal = tuples(node[second], node[second - 1])

        @m.Constraint(m.equal, doc="of equal nodes the first has most of the first stage")
        def alike(m: pyo.ConcreteModel, i: str, before: str) -> RelationalExpression:
            return m.x[first, i] <= m.x[first, before]


def _iteration(m: pyo.ConcreteModel, data: PlacementData) -> None:
    """Variables u, e, alpha: the time of an iteration of the placement, in units of unit_s."""
    intra, nic = data.network.intra_bytes_per_s, data.network.nic_bytes_per_s
    ring = np.array(data.graph.ring_bytes)
    peers = [(s, t, amount) for s, row in enumerate(data.sent) for t, amount in row.items()]
    s, t = (np.array([pair[end] for pair in peers], dtype=np.int64) for end in (0, 1))
    stage, nodes = data.stages, data.nodes
    sharers = [(i, n, rate) for i in range(len(nodes)) for n, rate in data.sharers(i)]
    i, n = (np.array([each[k] for each in sharers], dtype=np.int64) for k in (0, 1))
    rate = np.array([each[2] for each in sharers])
    slowest_byte = np.maximum(1 / rate, 1 / intra)
    least = min(1 / intra, *(1 / rate))
    all_sent = np.array([sum(row.values()) for row in data.sent])
    m.peers = tuples(stage[s], stage[t])
    m.peers_of = subsets(m.S, stage[s], stage[t])
    m.sharers = tuples(nodes[i], n)
    m.several = tuples(nodes[i[n > 1]], n[n > 1])
    m.several_on = subsets(m.M, nodes[i[n > 1]], n[n > 1])
    m.phi = param(flush_factor(data.graph) / data.unit_s)
    m.c = param([stage.forward_s + stage.backward_s for stage in data.graph.stages], m.S)
    m.near, m.far = param(ring / intra, m.S), param(ring / nic, m.S)
    m.sent = param(np.array([amount for _, _, amount in peers], dtype=np.float64), m.peers)
    m.b, m.B = param(intra), param(rate, m.sharers)
    m.V = param(np.outer(2.0 * all_sent, slowest_byte - least), m.S, m.sharers)
    m.most_s = param(np.outer(2.0 * all_sent, slowest_byte), m.S, m.sharers)
    m.u = pyo.Var(m.S, m.M, domain=pyo.Binary, dense=False)
    m.alpha = pyo.Var(bounds=(0, None))
    m.e = pyo.Var(m.several, domain=pyo.Binary, dense=False)

    @m.Constraint(m.S, m.M, m.limits, doc="u says whether a stage is on one node")
    def whole(m: pyo.ConcreteModel, s: str, i: str, limit: str) -> RelationalExpression:
        if limit == "upper":
            return m.x[s, i] <= m.k[s] - 1 + m.u[s, i]
        return m.k[s] * m.u[s, i] <= m.x[s, i]

    @m.Constraint(m.S, m.sharers, doc="the slowest stage on the slowest node")
    def slowest(m: pyo.ConcreteModel, s: str, i: str, n: int) -> RelationalExpression:
        ring = m.far[s] + (m.near[s] - m.far[s]) * sum(m.u[s, o] for o in m.M)
        exchanged = sum(
            2 * m.sent[s, t] * (m.x[t, i] / m.k[t] / m.b + (1 - m.x[t, i] / m.k[t]) / m.B[i, n])
            for t in m.peers_of[s]
        )
        time = m.c[s] + ring + exchanged - m.V[s, i, n] * (1 - m.y[s, i])
        # With n > 1 switched off, even the least bytes can take may be more than they do take.
        off = m.most_s[s, i, n] * (1 - m.e[i, n]) if n > 1 else 0
        return m.alpha >= m.phi * (time - off)

    if data.network.sharing == "per-job":
        _sharing(m)


def _sharing(m: pyo.ConcreteModel) -> None:
    """Variables q, r: which replicas share a NIC, if only those with remote bytes do."""
    m.q = pyo.Var(m.S, m.M, domain=pyo.Binary, dense=False)
    m.r = pyo.Var(m.S, m.M, bounds=(0, None), dense=False)

    @m.Constraint(m.peers, m.M, doc="a stage has remote bytes unless all its peers are here")
    def remote(m: pyo.ConcreteModel, s: str, t: str, i: str) -> RelationalExpression:
        return m.q[s, i] >= m.y[s, i] - m.u[t, i]

    @m.Constraint(m.S, m.M, doc="its replicas share the NIC then")
    def shares(m: pyo.ConcreteModel, s: str, i: str) -> RelationalExpression:
        return m.r[s, i] >= m.x[s, i] - m.most[s, i] * (1 - m.q[s, i])

    @m.Constraint(m.M, doc="as many as share it")
    def count(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
        return sum(m.r[s, i] for s in m.S) <= 1 + sum(m.e[i, n] for n in m.several_on[i])

    @m.Constraint(m.several, doc="the n-th comes after the one before it")
    def rising(m: pyo.ConcreteModel, i: str, n: int) -> RelationalExpression:
        return pyo.Constraint.Skip if n == 2 else m.e[i, n] <= m.e[i, n - 1]


def example() -> pyo.ConcreteModel:
    """Shortest iteration of two stages on nodes with 2 and 1 free GPUs."""
    stages = (Stage("embed", 2, 0.02, 0.04, 8e8), Stage("head", 1, 0.01, 0.02))
    graph = JobGraph("example", stages, (Link(0, 1, 4e8),))
    return least_time(PlacementData(graph, (2, 1), Network(300e9, 12.5e9, 2)))
