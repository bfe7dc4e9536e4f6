r"""Interval LP: a bound on weighted completion times that holds for preemptive schedules as well.

Source: derived; the mean busy time is Goemans' (SODA 1997), the interval LP goes back to Hall,
Schulz, Shmoys and Wein (Mathematics of Operations Research 22(3), 1997).

========  ====================  ==========  ======  ==========================================
Symbol    Here                  Index set   Unit    Meaning
========  ====================  ==========  ======  ==========================================
J         m.J                                       jobs
K         m.K                                       intervals [b_k, b_{k+1})
r_j, p_j  data.release, m.p[j]  J           slots   release, duration
g_j       m.g[j]                J           GPUs    gang
w_j       m.w[j]                J                   weight
G         m.G                               GPUs    GPUs of the pool
b_jk      m.b[j, k]             J, K        slots   when j may begin in interval k
u_jk      m.u[j, k]             J, K        slots   the most that j can run in it
y_jks     m.y[j, k, s]          J, K, 0..1  slots   time j runs in interval k, in two halves
========  ====================  ==========  ======  ==========================================

.. math::

    \min        \sum_j w_j \Bigl( \tfrac{1}{p_j}\sum_k \bigl( b_{jk} y_{jk0} + (b_{jk} + u_{jk}) y_{jk1} \bigr)
                + \tfrac{p_j}{2} \Bigr)                                                        && (busy) \\
    \text{s.t.} \sum_{k,s} y_{jks} = p_j                                   \forall j   && (work)     \\
                \sum_{j,s} g_j y_{jks} \le G (b_{k+1} - b_k)               \forall k   && (capacity) \\
                0 \le y_{jks} \le u_{jk} / 2                               \forall j,k,s && (alone)

with b_jk = max(b_k, r_j), u_jk = min(b_{k+1} - b_jk, p_j), and y_jks only where r_j < b_{k+1}.

Validity. Let a schedule, preemptive or not, run job j on the set I_j, of measure p_j, and let
y_jk = the length of I_j within interval k, at most u_jk, its first half u_jk / 2 in y_jk0 and the rest in y_jk1.
(work), (capacity), (alone) hold. The mean busy time is M_j = (1/p_j) int_{I_j} t dt; a set of
measure y in an interval from b has int t dt >= b y + y^2 / 2, and y^2 / 2 >= max(0, u y - u^2 / 2)
= u y_jk1 (a tangent, exact for y = 0 and y = u). And I_j ends by C_j, so int_{I_j} t dt <=
int_{C_j - p_j}^{C_j} t dt = p_j (C_j - p_j/2), i.e. C_j >= M_j + p_j/2.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.slotted import Slotted
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.offline.interval_prices"
REFERENCE = "tests/solvers/offline/test_offline.py"

INTERVALS = 12
"""Intervals of a model that is displayed."""


@dataclass(frozen=True)
class Intervals:
    """Data of the interval LP; all times in one unit.

    Parameters
    ----------
    release, work, weight : ndarray, shape (n,)
        r_j, p_j > 0, w_j.
    gpus : ndarray of int, shape (n,)
        g_j.
    capacity : float
        G; not whole where it counts what sharing gains.
    bounds : ndarray, shape (intervals + 1,)
        b_0 <= min r_j, increasing; the last so late that everything fits.
    job_names : sequence of str
        ``job-0``, ... if there are none.
    """

    release: NDArray[np.float64]
    work: NDArray[np.float64]
    weight: NDArray[np.float64]
    gpus: NDArray[np.int64]
    capacity: float
    bounds: NDArray[np.float64]
    job_names: Sequence[str] | NDArray[np.object_] = ()


def build(data: Intervals) -> pyo.ConcreteModel:
    """The interval LP."""
    n, intervals = len(data.release), len(data.bounds) - 1
    begin = np.maximum(data.bounds[None, :-1], data.release[:, None])
    room = data.bounds[None, 1:] - begin
    job, interval = np.nonzero(room > 0)
    id = Names.known(data.job_names, "job", n)
    most = np.minimum(room, data.work[:, None])[job, interval]
    with traced():
        m = pyo.ConcreteModel(name="interval_lp")
        m.J = tuples(id)
        m.K = pyo.RangeSet(0, intervals - 1)
        m.S = pyo.RangeSet(0, 1)
        m.JK = tuples(id[job], interval)
        m.intervals_of = subsets(m.J, id[job], interval)
        m.jobs_in = subsets(m.K, interval, id[job])
        m.p = param(data.work, m.J)
        m.g = param(data.gpus, m.J)
        m.w = param(data.weight, m.J)
        m.G = param(data.capacity)
        m.length = param(np.diff(data.bounds), m.K)
        m.b = param(begin[job, interval], m.JK)
        m.u = param(most, m.JK)
        m.y = pyo.Var(m.JK, m.S, bounds=lambda m, j, k, s: (0, m.u[j, k] / 2), dense=False)

        @m.Objective(doc="weighted mean busy times, without the constant")
        def busy(m: pyo.ConcreteModel) -> NumericValue:
            return sum(
                m.w[j] / m.p[j] * (m.b[j, k] + s * m.u[j, k]) * m.y[j, k, s]
                for j, k in m.JK
                for s in m.S
            )

        @m.Constraint(m.J, doc="every job gets its work")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.y[j, k, s] for k in m.intervals_of[j] for s in m.S) == m.p[j]

        @m.Constraint(m.jobs_in.nonempty, doc="no more GPU time than there is")
        def capacity(m: pyo.ConcreteModel, k: int) -> RelationalExpression:
            held = sum(m.g[j] * m.y[j, k, s] for j in m.jobs_in[k] for s in m.S)
            return held <= m.G * m.length[k]

    return m


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The interval LP of an instance in :data:`INTERVALS` equal intervals, in exact slots."""
    jobs = Slotted.of(instance)
    end = float(jobs.release.max(initial=0) + jobs.duration.sum())
    return build(
        Intervals(
            jobs.release.astype(np.float64),
            jobs.duration.astype(np.float64),
            jobs.weight,
            jobs.gpus,
            float(jobs.capacity),
            np.linspace(float(jobs.release.min(initial=0)), end, INTERVALS + 1),
            jobs.job_names,
        )
    )
