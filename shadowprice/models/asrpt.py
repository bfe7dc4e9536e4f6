r"""A-SRPT's programmes: which node hosts which replica, and when each job runs.

Source: Luo, Liu, Lee, Shroff, arXiv 2501.05563; the system model as recalled, the formulas as
derived in :mod:`shadowprice.instances.graphs.iteration_time`, the linearisations derived here.

===========  ===============  ==========  ======  ================================================
Symbol       Here             Index set   Unit    Meaning
===========  ===============  ==========  ======  ================================================
s, t         m.S                                  stages
m            m.M                                  nodes
k_s          given.replicas   S                   replicas
F_m          given.free       M           GPUs    free GPUs
x_s^m        m.x[s, m]        S, M                replicas of s on m
y_s^m        m.y[s, m]        S, M                1 if m has a replica of s
u_s^m        m.u[s, m]        S, M                1 if m has all replicas of s
z_sn^m       m.z[s, m, n]     S, M, N             1 if m has at least n replicas of s
c_s          given.compute_s  S           s       forward and backward pass
w_st         given.sent       S, S        bytes   what a replica of s exchanges with all of t, one way
W_st         given.weight     S, S        bytes   what a replica of s exchanges with one of t, W_ss
                                                  with one of its own stage
a_s, a'_s    given.ring_s     S           s       AllReduce inside a node, and between nodes
b, B         given.network                bytes/s bandwidth of a node's GPUs, of its NIC
e_n^m        m.e[m, n]        M, N                1 if n replicas of the job on m have remote bytes
alpha        m.alpha                      s       time of an iteration
===========  ===============  ==========  ======  ================================================

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

Kind: exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.instances.graphs.iteration_time import Network, flush_factor, shortest_iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping

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
    """

    graph: JobGraph
    free: tuple[int, ...]
    network: Network

    @property
    def replicas(self) -> list[int]:
        """k_s."""
        return [stage.replicas for stage in self.graph.stages]

    @property
    def sent(self) -> list[dict[int, float]]:
        """w_st by s and t, where it is not 0."""
        sent: list[dict[int, float]] = [{} for _ in self.graph.stages]
        for s, t, amount in self.graph.link_ends.rows():
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


def least_time(given: PlacementData, *, interchangeable: bool = True) -> pyo.ConcreteModel:
    """Shortest iteration, in units of ``given.unit_s``.

    Parameters
    ----------
    interchangeable : bool
        Leave out placements that differ only in the order of neighbouring equal nodes.
    """
    m: Any = pyo.ConcreteModel(name="asrpt_least_time")
    _placements(m, given, interchangeable)
    _iteration(m, given)

    @m.Objective(doc="time of an iteration")
    def objective(m: Any) -> Any:
        return m.alpha

    return m


def timed_placement(block: Any, given: PlacementData) -> None:
    """A placement and its alpha on a block of a larger programme."""
    _placements(block, given, interchangeable=False)
    _iteration(block, given)


def least_cut(given: PlacementData, *, interchangeable: bool = True) -> pyo.ConcreteModel:
    """Fewest bytes between nodes, in units of the heaviest pair of replicas.

    (pairs) and (beside) make the relaxation strong: with n replicas of s on a node, at most F_m -
    n others are beside the n-th.
    """
    m: Any = pyo.ConcreteModel(name="asrpt_least_cut")
    _placements(m, given, interchangeable)
    weight = exchange(given.graph)
    weight = weight / (weight.max() or 1.0)
    k, free = given.replicas, given.free
    m.N = pyo.Set(
        dimen=3,
        initialize=[(s, i, n) for s in m.S for i in m.M for n in range(1, min(k[s], free[i]) + 1)],
    )
    m.z = pyo.Var(m.N, domain=pyo.Binary)
    levels = {(s, i): range(1, min(k[s], free[i]) + 1) for s in m.S for i in m.M}
    linked = [(s, t) for s in m.S for t in m.S if s < t and weight[s, t] > 0]
    both = [
        (s, t, i, n, o) for s, t in linked for i in m.M for n in levels[s, i] for o in levels[t, i]
    ]
    m.P = pyo.Set(dimen=5, initialize=both)
    m.p = pyo.Var(m.P, bounds=(0, 1))
    beside: dict[tuple[int, int, int], list[Any]] = {key: [] for key in m.N}
    for s, t, i, n, o in both:
        beside[s, i, n].append(m.p[s, t, i, n, o])
        beside[t, i, o].append(m.p[s, t, i, n, o])
    apart = sum(weight[s, t] * k[s] * k[t] for s, t in linked)
    apart += sum(weight[s, s] * k[s] * (k[s] - 1) / 2 for s in m.S)

    @m.Objective(doc="bytes of pairs that are not on one node")
    def objective(m: Any) -> Any:
        linked_here = sum(weight[s, t] * m.p[s, t, i, n, o] for s, t, i, n, o in m.P)
        return apart - linked_here - sum(weight[s, s] * (n - 1) * m.z[s, i, n] for s, i, n in m.N)

    @m.Constraint(m.S, m.M, doc="x in unary")
    def unary(m: Any, s: int, i: int) -> Any:
        return m.x[s, i] == sum(m.z[s, i, n] for n in levels[s, i])

    @m.Constraint(m.N, doc="the n-th comes after the one before it")
    def order(m: Any, s: int, i: int, n: int) -> Any:
        return pyo.Constraint.Skip if n == 1 else m.z[s, i, n] <= m.z[s, i, n - 1]

    @m.Constraint(m.P, [0, 1], doc="a pair is on a node if both are")
    def pairs(m: Any, s: int, t: int, i: int, n: int, o: int, end: int) -> Any:
        return m.p[s, t, i, n, o] <= (m.z[t, i, o] if end else m.z[s, i, n])

    @m.Constraint(m.N, doc="no more beside a replica than the node has GPUs")
    def beside_it(m: Any, s: int, i: int, n: int) -> Any:
        if not beside[s, i, n]:
            return pyo.Constraint.Skip
        return sum(beside[s, i, n]) <= (free[i] - n) * m.z[s, i, n]

    return m


def _placements(m: Any, given: PlacementData, interchangeable: bool) -> None:
    """Variables x, y and what makes them a placement."""
    k, free = given.replicas, given.free
    m.S = pyo.RangeSet(0, len(k) - 1)
    m.M = pyo.RangeSet(0, len(free) - 1)
    m.x = pyo.Var(
        m.S, m.M, domain=pyo.NonNegativeIntegers, bounds=lambda m, s, i: (0, min(k[s], free[i]))
    )
    m.y = pyo.Var(m.S, m.M, domain=pyo.Binary)

    @m.Constraint(m.S, doc="every replica is somewhere")
    def once(m: Any, s: int) -> Any:
        return sum(m.x[s, i] for i in m.M) == k[s]

    @m.Constraint(m.M, doc="no more replicas than free GPUs")
    def room(m: Any, i: int) -> Any:
        return sum(m.x[s, i] for s in m.S) <= free[i]

    @m.Constraint(m.S, m.M, [0, 1], doc="y says whether there are any")
    def here(m: Any, s: int, i: int, most: int) -> Any:
        return m.x[s, i] <= min(k[s], free[i]) * m.y[s, i] if most else m.y[s, i] <= m.x[s, i]

    if interchangeable:
        equal = [i for i in range(1, len(free)) if free[i] == free[i - 1]]

        @m.Constraint(equal, doc="of equal nodes the first has most of the first stage")
        def alike(m: Any, i: int) -> Any:
            return m.x[0, i] <= m.x[0, i - 1]


def _iteration(m: Any, given: PlacementData) -> None:
    """Variables u, e, alpha: the time of an iteration of the placement, in units of unit_s."""
    k, sent = given.replicas, given.sent
    intra, nic = given.network.intra_bytes_per_s, given.network.nic_bytes_per_s
    factor = flush_factor(given.graph) / given.unit_s
    ring = given.graph.ring_bytes.tolist()
    compute = [stage.forward_s + stage.backward_s for stage in given.graph.stages]
    sharers = [(i, n, rate) for i in m.M for n, rate in given.sharers(i)]
    least = min(1 / intra, *(1 / rate for _, _, rate in sharers))
    m.u = pyo.Var(m.S, m.M, domain=pyo.Binary)
    m.alpha = pyo.Var(bounds=(0, None))
    m.e = pyo.Var([(i, n) for i, n, _ in sharers if n > 1], domain=pyo.Binary)

    @m.Constraint(m.S, m.M, [0, 1], doc="u says whether a stage is on one node")
    def whole(m: Any, s: int, i: int, most: int) -> Any:
        return m.x[s, i] <= k[s] - 1 + m.u[s, i] if most else k[s] * m.u[s, i] <= m.x[s, i]

    @m.Constraint(m.S, range(len(sharers)), doc="the slowest stage on the slowest node")
    def slowest(m: Any, s: int, row: int) -> Any:
        i, n, rate = sharers[row]
        on_one = sum(m.u[s, o] for o in m.M)
        time = compute[s] + ring[s] / nic + (ring[s] / intra - ring[s] / nic) * on_one
        for t, amount in sent[s].items():
            inside = m.x[t, i] / k[t]
            time += 2.0 * amount * (inside / intra + (1 - inside) / rate)
        spread = 2.0 * sum(sent[s].values()) * (max(1 / rate, 1 / intra) - least)
        # With n > 1 switched off, even the least bytes can take may be more than they do take.
        off = (
            2.0 * sum(sent[s].values()) * max(1 / rate, 1 / intra) * (1 - m.e[i, n]) if n > 1 else 0
        )
        return m.alpha >= factor * (time - spread * (1 - m.y[s, i]) - off)

    if given.network.sharing == "per-job":
        _sharing(m, given)


def _sharing(m: Any, given: PlacementData) -> None:
    """Variables q, r: which replicas share a NIC, if only those with remote bytes do."""
    k, free, sent = given.replicas, given.free, given.sent
    m.q = pyo.Var(m.S, m.M, domain=pyo.Binary)
    m.r = pyo.Var(m.S, m.M, bounds=(0, None))
    peers = [(s, t) for s in m.S for t in sent[s]]

    @m.Constraint(peers, m.M, doc="a stage has remote bytes unless all its peers are here")
    def remote(m: Any, s: int, t: int, i: int) -> Any:
        return m.q[s, i] >= m.y[s, i] - m.u[t, i]

    @m.Constraint(m.S, m.M, doc="its replicas share the NIC then")
    def shares(m: Any, s: int, i: int) -> Any:
        return m.r[s, i] >= m.x[s, i] - min(k[s], free[i]) * (1 - m.q[s, i])

    @m.Constraint(m.M, doc="as many as share it")
    def count(m: Any, i: int) -> Any:
        levels = [m.e[i, n] for n, _ in given.sharers(i) if n > 1]
        return sum(m.r[s, i] for s in m.S) <= 1 + sum(levels)

    @m.Constraint(list(m.e), doc="the n-th comes after the one before it")
    def rising(m: Any, i: int, n: int) -> Any:
        return pyo.Constraint.Skip if n == 2 else m.e[i, n] <= m.e[i, n - 1]


def example() -> pyo.ConcreteModel:
    """Shortest iteration of two stages on nodes with 2 and 1 free GPUs."""
    stages = (Stage("embed", 2, 0.02, 0.04, 8e8), Stage("head", 1, 0.01, 0.02))
    graph = JobGraph("example", stages, (Link(0, 1, 4e8),))
    return least_time(PlacementData(graph, (2, 1), Network(300e9, 12.5e9, 2)))
