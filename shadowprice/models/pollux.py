r"""Pollux' round: GPUs of nodes for jobs that can use any number of them, for the largest power mean of speed-ups.

Source: Qiao et al., Pollux, OSDI 2021, sec. 4.2 (recalled): a matrix of allocations, a power mean of exponent -1, a
factor for jobs that restart, and no two jobs that are on several nodes on one node; the paper searches for a matrix
by a genetic algorithm. What is added to a speed-up as in its artifact (read). The linear form is derived.

=========  ===============  ==========  =====  ======================================================
Symbol     Here             Index set   Unit   Meaning
=========  ===============  ==========  =====  ======================================================
J, N       m.J, m.N                            jobs; nodes, by name
P_j        m.points[j]      J                  what j may be given: (w, r), r GPUs on w, "one" node or
                                               "several"; m.P: (j, w, r)
L_j, A_j   m.local[j],      J           GPUs   widths on one node; on several
           m.across[j]
r_p        r                P           GPUs   width
c_p        m.c[j, w, r]     P                  1 / (factor of a restart x speed-up + 0.001)
u_j        m.u[j]           J                  1 / (speed-up + 0.001) of what j holds now
h_jn       m.h[j, n]        J, N        GPUs   that
g_n        m.g[n]           N           GPUs   GPUs of a node
y_p        m.y[p]           P                  1 if its job is given p
k_j        m.k[j]           J                  1 if j goes on with what it holds
x_jn       m.x[j, n]        J, N        GPUs   of j on n
b_jn       m.b[j, n]        J, N               1 if j is on n alone
a_jn       m.a[j, n]        J, N               1 if j is on n, and on others
=========  ===============  ==========  =====  ======================================================

.. math::

    \max        \left( \frac{1}{|J|} \sum_j (s_j + 0.001)^{-1} \right)^{-1}              && \text{, that is,} \\
    \min        \sum_p c_p y_p + \sum_j u_j k_j                                           && (mean) \\
    \text{s.t.} \sum_{p \in P_j} y_p + k_j = 1                                 \forall j   && (once) \\
                \sum_n x_{jn} = \sum_{p \in P_j} r_p y_p + k_j \sum_n h_{jn}   \forall j   && (width) \\
                \sum_j x_{jn} \le g_n                                          \forall n   && (capacity) \\
                x_{jn} \le g_n (b_{jn} + a_{jn}), \; a_{jn} \le x_{jn}         \forall j,n && (used) \\
                \sum_n b_{jn} = \sum_{L_j} y_p + k_j [j \text{ on one}]        \forall j   && (alone) \\
                2 d_j \le \sum_n a_{jn} \le |N| d_j, \;
                d_j = \sum_{A_j} y_p + k_j [j \text{ on several}]              \forall j   && (spread) \\
                x_{jn} \ge h_{jn} k_j                                          \forall j,n && (stays) \\
                \sum_j a_{jn} \le 1                                            \forall n   && (interference)

with y, k, b, a binary and x whole. A point of P_j that is chosen although it gives j what it holds costs no less than
k_j, so that the optimum is that of the paper's objective.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: exact, for one round.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.goodput.allocation_costs import AllocationCosts
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.pollux.optimum"
REFERENCE = "tests/solvers/pollux/test_pollux_optimum.py"


def choices(
    costs: AllocationCosts,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Points of all jobs: job, 0 on one node or 1 on several, GPUs; without those that no GPU less makes dearer.

    Wherever a job runs on several nodes with a GPU more than it needs for its speed, it can leave that one free.
    """
    rows: list[tuple[int, int, int]] = []
    largest = int(costs.capacity.max(initial=0))
    for j, most in enumerate(costs.most.tolist()):
        waits = float(costs.by_width[j, 0, 0])
        for across, least, limit in ((0, 1, min(most, largest)), (1, 2, most)):
            best = waits
            for gpus in range(least, limit + 1):
                cost = float(costs.by_width[j, across, gpus])
                if cost < best:
                    best = cost
                    rows.append((j, across, gpus))
        if costs.held[j].any():
            rows.append((j, 0, 0))
    job, kind, width = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return job, kind, width


def build(costs: AllocationCosts) -> pyo.ConcreteModel:
    """The programme of a round."""
    job, kind, width = choices(costs)
    (jobs, nodes), held = costs.held.shape, costs.held.astype(np.int64)
    id, node = Names.known(costs.job_names, "job", jobs), Names.numbered("node", nodes)
    where = Names(["one", "several"])
    on_several = np.count_nonzero(held, axis=1) > 1
    with traced():
        m = pyo.ConcreteModel(name="pollux")
        m.J, m.N = tuples(id), tuples(node)
        m.P = tuples(id[job], where[kind], width)
        local, across = (width > 0) & (kind == 0), kind == 1
        m.points = subsets(m.J, id[job], where[kind], width)
        m.local = subsets(m.J, id[job[local]], width[local])
        m.across = subsets(m.J, id[job[across]], width[across])
        m.c = param(costs.by_width[job, kind, width], m.P)
        m.u = param(costs.unchanged, m.J)
        m.h = param(held, m.J, m.N)
        m.held = param(held.sum(axis=1), m.J)
        m.held_alone = param((held.any(axis=1) & ~on_several).astype(np.int64), m.J)
        m.held_across = param(on_several.astype(np.int64), m.J)
        m.g = param(costs.capacity, m.N)
        m.nodes = param(nodes)
        m.y = pyo.Var(m.P, domain=pyo.Binary, dense=False)
        m.k = pyo.Var(m.J, domain=pyo.Binary, dense=False)
        m.x = pyo.Var(m.J, m.N, domain=pyo.NonNegativeIntegers, dense=False)
        m.b = pyo.Var(m.J, m.N, domain=pyo.Binary, dense=False)
        m.a = pyo.Var(m.J, m.N, domain=pyo.Binary, dense=False)

        @m.Objective(doc="sum of the inverses of all speed-ups")
        def mean(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.c[p] * m.y[p] for p in m.P) + sum(m.u[j] * m.k[j] for j in m.J)

        @m.Constraint(m.J, doc="one thing each, or what it holds")
        def once(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.y[j, w, r] for w, r in m.points[j]) + m.k[j] == 1

        @m.Constraint(m.J, doc="as many GPUs as that says")
        def width_of(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            given = sum(r * m.y[j, w, r] for w, r in m.points[j]) + m.held[j] * m.k[j]
            return sum(m.x[j, n] for n in m.N) == given

        @m.Constraint(m.N, doc="no more GPUs than a node has")
        def capacity(m: pyo.ConcreteModel, n: str) -> RelationalExpression:
            return sum(m.x[j, n] for j in m.J) <= m.g[n]

        @m.Constraint(m.J, m.N, doc="GPUs only of nodes that the job is on")
        def used(m: pyo.ConcreteModel, j: str, n: str) -> RelationalExpression:
            return m.x[j, n] <= m.g[n] * (m.b[j, n] + m.a[j, n])

        @m.Constraint(m.J, m.N, doc="at least one of each of several nodes")
        def used_each(m: pyo.ConcreteModel, j: str, n: str) -> RelationalExpression:
            return m.a[j, n] <= m.x[j, n]

        @m.Constraint(m.J, doc="on one node")
        def alone(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            chosen = sum(m.y[j, "one", r] for r in m.local[j]) + m.held_alone[j] * m.k[j]
            return sum(m.b[j, n] for n in m.N) == chosen

        @m.Constraint(m.J, doc="on several: at least two")
        def spread(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            chosen = sum(m.y[j, "several", r] for r in m.across[j]) + m.held_across[j] * m.k[j]
            return sum(m.a[j, n] for n in m.N) >= 2 * chosen

        @m.Constraint(m.J, doc="or none")
        def spread_only(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            chosen = sum(m.y[j, "several", r] for r in m.across[j]) + m.held_across[j] * m.k[j]
            return sum(m.a[j, n] for n in m.N) <= m.nodes * chosen

        @m.Constraint(m.J, m.N, doc="what goes on stays where it is")
        def stays(m: pyo.ConcreteModel, j: str, n: str) -> RelationalExpression:
            return m.x[j, n] >= m.h[j, n] * m.k[j]

        if costs.avoid:

            @m.Constraint(m.N, doc="one job at most that is on other nodes as well")
            def interference(m: pyo.ConcreteModel, n: str) -> RelationalExpression:
                return sum(m.a[j, n] for j in m.J) <= 1

    return m


def example() -> pyo.ConcreteModel:
    """Two jobs, the first of which holds a GPU, on two nodes of two GPUs."""
    speed = np.array([[0.0, 1.0, 1.8, 2.4, 2.9]] * 2)
    by_width = 1 / (np.stack([speed, 0.9 * speed], axis=1) * 0.8 + 1e-3)
    held = np.array([[1, 0], [0, 0]], dtype=np.int8)
    unchanged = 1 / (np.array([1.0, 0.0]) + 1e-3)
    return build(AllocationCosts(by_width, unchanged, held, np.array([4, 2]), np.array([2, 2])))
