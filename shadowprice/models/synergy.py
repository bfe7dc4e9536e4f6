r"""Synergy-OPT: how many CPUs and how much memory for whom, and on which server.

Source: Mohan, Phanishayee, Kulkarni and Chidambaram, Synergy, OSDI'22; formulas as in the published artifact.

Stage 1 is an integer programme over one ideal server as large as all together; stage 2 a linear
programme that places what stage 1 chose.

===========  ============  =========  ========  ====================================================
Symbol       Here          Index set  Unit      Meaning
===========  ============  =========  ========  ====================================================
K            m.K                                kinds, by name: jobs with the same profile and gang
P_k          m.points[k]   K                    points (c, m) of the profile of kind k; m.P: (k, p), the
                                                p-th point of kind k, from 0 on
I            m.I                                servers, by name
n_k          m.n[k]        K          jobs      jobs of a kind; 1 for all is the published form
g_k          m.g[k]        K          GPUs      gang
c_p, m_p     data.cpus ..  P          CPUs, GB  CPUs and memory for each GPU at a point
c_p g_k      m.c, m.w      P          CPUs, GB  CPUs and memory for a job at a point
W_p          m.W[k, p]     P                    speed at a point, 1 with the proportional share
w_k          m.least[k]    K                    speed with the proportional share
C, M         m.C, m.M                 CPUs, GB  CPUs and memory of all servers
G_i,C_i,M_i  m.G[i] ..     I          GPUs, ..  GPUs, CPUs, memory of a server
c_k, m_k     m.c, m.w      K          CPUs, GB  CPUs and memory of a job, as chosen
y_p          m.y[k, p]     P          jobs      jobs that get point p
x_ik         m.x[i, k]     I, K       jobs      jobs of kind k on server i, in parts
===========  ============  =========  ========  ====================================================

Stage 1:

.. math::

    \max        \sum_p W_p y_p                                              && (throughput)   \\
    \text{s.t.} \sum_k \sum_{p \in P_k} c_p g_k y_p \le C                   && (cpus)         \\
                \sum_k \sum_{p \in P_k} m_p g_k y_p \le M                   && (memory)       \\
                \sum_{p \in P_k} y_p = n_k                       \forall k  && (once)         \\
                \sum_{p \in P_k} W_p y_p \ge n_k w_k             \forall k  && (floor)        \\
                y_p \in \{0, \dots, n_k\}, \; y_p = 0 \text{ if } W_p < w_k

For n_k = 1 the last condition says the same as (floor); for more it says it of every job.

Stage 2, kinds now being jobs with the same gang, CPUs and memory:

.. math::

    \text{find } x \ge 0: \; \sum_k g_k x_{ik} \le G_i           \forall i  && (gpus)          \\
                \sum_k c_k x_{ik} \le C_i                        \forall i  && (server\_cpus)   \\
                \sum_k m_k x_{ik} \le M_i                        \forall i  && (server\_memory) \\
                \sum_i x_{ik} = n_k                              \forall k  && (placed)

Both are feasible whenever all gangs together need no more GPUs than there are: stage 1 because the
proportional share is a point, stage 2 because each server can take its share of every job, if all
have as many CPUs and as much memory for a GPU. Together an upper bound on the sum of speeds of any
placement: stage 1 forgets that there are several servers.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.synergy.opt"
REFERENCE = "tests/solvers/synergy/test_synergy.py"


@dataclass(frozen=True)
class Choices:
    """Data of stage 1.

    Parameters
    ----------
    jobs, gpus : ndarray of int, shape (kinds,)
        n_k and g_k.
    floor : ndarray, shape (kinds,)
        W_k(share).
    kind : ndarray of int, shape (points,)
        Kind of every point, in order.
    cpus, memory_gb, speed : ndarray, shape (points,)
        c_p, m_p for each GPU, and W_kp.
    total : (float, float)
        C [CPUs] and M [GB].
    kind_names : sequence of str
        ``kind-0``, ... if there are none.
    """

    jobs: NDArray[np.int64]
    gpus: NDArray[np.int64]
    floor: NDArray[np.float64]
    kind: NDArray[np.int64]
    cpus: NDArray[np.float64]
    memory_gb: NDArray[np.float64]
    speed: NDArray[np.float64]
    total: tuple[float, float]
    kind_names: Sequence[str] = ()

    @cached_property
    def kinds(self) -> Names:
        """Name of each kind."""
        return Names.known(self.kind_names, "kind", len(self.jobs))

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Place of every point among those of its kind, from 0 on."""
        by_kind = np.argsort(self.kind, kind="stable")
        count = np.bincount(self.kind, minlength=len(self.jobs))
        place = np.empty(len(self.kind), dtype=np.int64)
        place[by_kind] = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        return place


def super_server(data: Choices) -> pyo.ConcreteModel:
    """Stage 1."""
    fast_enough = data.speed >= data.floor[data.kind]
    with traced():
        m = pyo.ConcreteModel(name="synergy_stage_1")
        m.K = tuples(data.kinds)
        m.P = tuples(data.kinds[data.kind], data.places)
        m.points = subsets(m.K, data.kinds[data.kind], data.places)
        m.n = param(data.jobs, m.K)
        m.least = param(data.floor, m.K)
        m.c = param(data.cpus * data.gpus[data.kind], m.P)
        m.w = param(data.memory_gb * data.gpus[data.kind], m.P)
        m.W = param(data.speed, m.P)
        m.C, m.M = param(data.total[0]), param(data.total[1])
        m.most = param(np.where(fast_enough, data.jobs[data.kind], 0), m.P)
        m.y = pyo.Var(
            m.P,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda m, k, p: (0, m.most[k, p]),
            dense=False,
        )

        @m.Objective(sense=pyo.maximize, doc="sum of speeds")
        def throughput(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.W[k, p] * m.y[k, p] for k, p in m.P)

        @m.Constraint(doc="no more CPUs than there are")
        def cpus(m: pyo.ConcreteModel) -> RelationalExpression:
            return sum(m.c[k, p] * m.y[k, p] for k, p in m.P) <= m.C

        @m.Constraint(doc="no more memory than there is")
        def memory(m: pyo.ConcreteModel) -> RelationalExpression:
            return sum(m.w[k, p] * m.y[k, p] for k, p in m.P) <= m.M

        @m.Constraint(m.K, doc="every job gets one point")
        def once(m: pyo.ConcreteModel, k: str) -> RelationalExpression:
            return sum(m.y[k, p] for p in m.points[k]) == m.n[k]

        @m.Constraint(m.K, doc="never below the proportional share")
        def floor(m: pyo.ConcreteModel, k: str) -> RelationalExpression:
            return sum(m.W[k, p] * m.y[k, p] for p in m.points[k]) >= m.n[k] * m.least[k]

    return m


def placement(servers: Names, kinds: Names) -> pyo.ConcreteModel:
    """Stage 2; its Params g, c, w (GPUs, CPUs, GB of a job), n, G, C, M are filled when it is compiled."""
    first = servers[0]
    with traced():
        m = pyo.ConcreteModel(name="synergy_stage_2")
        m.I, m.K = tuples(servers), tuples(kinds)
        for name in ("g", "c", "w", "n"):
            m.add_component(name, pyo.Param(m.K, mutable=True))
        for name in ("G", "C", "M"):
            m.add_component(name, pyo.Param(m.I, mutable=True))
        m.x = pyo.Var(m.I, m.K, bounds=(0, None), dense=False)

        @m.Objective(doc="none: any vertex will do")
        def nothing(m: pyo.ConcreteModel) -> NumericValue:
            return sum(0.0 * m.n[k] * m.x[first, k] for k in m.K)

        @m.Constraint(m.I, doc="GPUs of a server")
        def gpus(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return sum(m.g[k] * m.x[i, k] for k in m.K) <= m.G[i]

        @m.Constraint(m.I, doc="CPUs of a server")
        def server_cpus(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return sum(m.c[k] * m.x[i, k] for k in m.K) <= m.C[i]

        @m.Constraint(m.I, doc="memory of a server")
        def server_memory(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return sum(m.w[k] * m.x[i, k] for k in m.K) <= m.M[i]

        @m.Constraint(m.K, doc="every job is placed")
        def placed(m: pyo.ConcreteModel, k: str) -> RelationalExpression:
            return sum(m.x[i, k] for i in m.I) == m.n[k]

    return m


def example() -> pyo.ConcreteModel:
    """Stage 1 for two kinds of jobs that run faster with more than their share of 6 CPUs."""
    kind = np.array([0, 0, 1, 1])
    cpus, memory_gb = np.array([1.0, 4.0, 1.0, 2.0]), np.full(4, 10.0)
    speed = np.array([0.5, 1.0, 0.9, 1.0])
    ones = np.array([1, 1])
    floor = np.array([0.5, 0.9])
    return super_server(Choices(ones, ones, floor, kind, cpus, memory_gb, speed, (6.0, 40.0)))
