r"""Interval LP over modes of running: a bound on weighted completion times where speeds differ, by GPU type or else.

Source: derived, from the interval LP of :mod:`shadowprice.models.interval_lp`; the mean busy time is
Goemans' (SODA 1997), with progress in the place of busy time.

=============  ====================  ==========  =======  ======================================
Symbol         Here                  Index set   Unit     Meaning
=============  ====================  ==========  =======  ======================================
J, K, R        m.J, m.K, m.R                              jobs, intervals [b_k, b_{k+1}), modes
Q              m.Q                                        resources
r_j, w_j       m.w[j]                J           slots    release; weight
p_jr           1 / m.rate[j, r]      J, R        slots    run time in mode r, infinite if none
q_j                                  J           slots    min_r p_jr
v_jrq          m.v[j, r, q]          J, R, Q     units    what j uses of resource q in mode r
U_q            m.U[q]                Q           units    what there is of resource q
b_jk           m.b[j, k]             J, K        slots    when j may begin in interval k
y_jkrl         m.y[j, k, r, l]       J, K, R, L  slots    time j runs in mode r in interval k, piece l
d_jkl, c_jkl   m.d[j, k, l], m.c     J, K, L     slots    length and charge of a piece, below
=============  ====================  ==========  =======  ======================================

.. math::

    \min        \sum_j w_j \Bigl( \sum_{k,r,l} \tfrac{b_{jk} + c_{jkl}}{p_{jr}} y_{jkrl}
                + \tfrac{q_j}{2} \Bigr)                                                && (progress) \\
    \text{s.t.} \sum_{k,r,l} y_{jkrl} / p_{jr} = 1                   \forall j     && (work)     \\
                \sum_{j,r,l} v_{jrq} y_{jkrl} \le U_q (b_{k+1} - b_k) \forall k,q && (capacity) \\
                \sum_r y_{jkrl} \le d_{jkl}                          \forall j,k,l && (alone)

with b_jk = max(b_k, r_j). With room = b_{k+1} - b_jk, u = min(room, q_j) and v = min(room, max_r p_jr)
there are three pieces: d = (u / 2, v / 2, (v - u) / 2) and c = (0, u, v).

Where speeds differ by GPU type alone, modes are the types r and resources their G_r GPUs, of which j uses v_jrr =
g_j. Others are in :mod:`shadowprice.solvers.offline.modes.job_modes`; the proof of each shows what *Shares* shows here.

Validity. Let a schedule, preemptive or not, let job j hold a_r(t) GPUs of type r, w(t) = sum_r a_r,
and progress at rate rho(t), whose integral is 1.

*Shares.* A gang is as fast as its slowest GPU: with speed s(t) <= s_j under the conditions of the
run, rho <= s min_{a_r > 0} 1 / P_jr <= s sum_r (a_r / w) / P_jr, where P_jr is the time at speed 1
and p_jr = P_jr / s_j. Let z_r = theta a_r / w with theta <= s / s_j chosen so that sum_r z_r / p_jr =
rho. Then sum_r z_r <= 1. A rigid gang has w = g_j, so z_r <= a_r / g_j. One that may grow is at most
(w / g_j)^x as fast, x <= 1, so that GPU use is at least gang x progress: s / w <= s_j / g_j, and again z_r
<= theta a_r / w <= a_r / g_j. Therefore the GPUs held suffice for g_j z_r on each type r, and y_jkr =
int_{interval k} z_r dt obeys (work) and (capacity). GPUs held in overhead or beyond this only help.

*Pieces.* Within one interval, let z act from b_jk on with sum_r z_r <= 1 for a total T = sum_r y_jkr
<= v. Of all orders the fastest first has the least int (t - b_jk) rho dt, which is
int_0^T x h(x) dx with h decreasing, a mixture of indicators of [0, X]. Cut [0, T] into the pieces in
this order. Their charge, int c(x) h(x) dx, is no more, because it is not for any indicator: int_0^X
c(x) dx = max(0, u X - u^2/2, v X - v^2/2), tangents of X^2 / 2 at 0, u and v. So (alone) holds, and the
objective is no more than w_j times the mean progress time M_j = int t rho dt, plus w_j q_j / 2.

*Completion.* Progress is never faster than 1 / q_j and is done by C_j, so M_j <= C_j - q_j / 2.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: relaxation. Times p_jr are rounded up to the grid of 2^-20 s as everywhere; the verifier
forgives two ticks of work a run where speeds differ, and so is the bound meant.
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
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.offline.typed_bound"
REFERENCE = "tests/solvers/offline/test_typed_bound.py"

INTERVALS = 12
"""Intervals of a model that is displayed."""
PIECES = 3
"""Pieces of an interval, each with its own charge."""


@dataclass(frozen=True)
class TypedIntervals:
    """Data of the typed interval LP; all times in one unit.

    Parameters
    ----------
    weight : ndarray, shape (n,)
        w_j.
    use : ndarray, shape (n, modes, resources)
        v_jrq >= 0.
    time : ndarray, shape (n, modes)
        p_jr > 0, infinite where the job has no such mode.
    capacity : ndarray, shape (resources,)
        U_q.
    bounds : ndarray, shape (intervals + 1,)
        b_0 <= min r_j, increasing; the last so late that everything fits.
    begin : ndarray, shape (n, intervals)
        b_jk.
    size, charge : ndarray, shape (n, intervals, pieces)
        d_jkl, 0 where the job has not arrived, and c_jkl.
    job_names, mode_names, resource_names : sequence of str
        ``job-0``, ..., ``mode-0``, ... and ``resource-0``, ... if there are none.
    """

    weight: NDArray[np.float64]
    use: NDArray[np.float64]
    time: NDArray[np.float64]
    capacity: NDArray[np.float64]
    bounds: NDArray[np.float64]
    begin: NDArray[np.float64]
    size: NDArray[np.float64]
    charge: NDArray[np.float64]
    job_names: Sequence[str] | NDArray[np.object_] = ()
    mode_names: Sequence[str] = ()
    resource_names: Sequence[str] = ()


def build(data: TypedIntervals) -> pyo.ConcreteModel:
    """The typed interval LP; O(n intervals modes resources)."""
    n, intervals = data.begin.shape
    runs = np.isfinite(data.time)
    j, k, l = np.nonzero(data.size > 0)
    job, kind = np.nonzero(runs)
    # Columns: every piece with every mode of its job.
    types = runs.sum(axis=1)
    piece = np.repeat(np.arange(len(j)), types[j])
    first = np.cumsum(types) - types
    r = kind[np.arange(len(piece)) - np.repeat(np.cumsum(types[j]) - types[j] - first[j], types[j])]
    several = types[j] > 1
    # Entries of the capacities: every column with every resource that it uses.
    column, q = np.nonzero(data.use[j[piece], r] > 0)
    pool = k[piece][column] * len(data.capacity) + q
    pool_k, pool_q = np.divmod(np.unique(pool), len(data.capacity))
    id = Names.known(data.job_names, "job", n)
    mode = Names.known(data.mode_names, "mode", data.time.shape[1])
    resource = Names.known(data.resource_names, "resource", len(data.capacity))
    with traced():
        m = pyo.ConcreteModel(name="typed_interval_lp")
        m.J, m.K = tuples(id), pyo.RangeSet(0, intervals - 1)
        m.R, m.Q = tuples(mode), tuples(resource)
        m.JKRL = tuples(id[j[piece]], k[piece], mode[r], l[piece])
        m.JKL = tuples(id[j], k, l)
        m.shared = tuples(id[j[several]], k[several], l[several])
        m.KQ = tuples(pool_k, resource[pool_q])
        m.of_job = subsets(m.J, id[j[piece]], k[piece], mode[r], l[piece])
        m.of_pool = subsets(
            m.KQ,
            (k[piece][column], resource[q]),
            id[j[piece][column]],
            mode[r[column]],
            l[piece][column],
        )
        m.modes_of = subsets(m.J, id[job], mode[kind])
        m.rate = param(1 / data.time, m.J, m.R)
        m.v = param(data.use, m.J, m.R, m.Q)
        m.w = param(data.weight, m.J)
        m.U = param(data.capacity, m.Q)
        m.length = param(np.diff(data.bounds), m.K)
        m.b = param(data.begin, m.J, m.K)
        m.d = param(data.size[j, k, l], m.JKL)
        m.c = param(data.charge[j, k, l], m.JKL)
        m.y = pyo.Var(m.JKRL, bounds=lambda m, j, k, r, l: (0, m.d[j, k, l]), dense=False)

        @m.Objective(doc="weighted mean progress times, without the constant")
        def progress(m: pyo.ConcreteModel) -> NumericValue:
            return sum(
                m.w[j] * (m.b[j, k] + m.c[j, k, l]) * m.rate[j, r] * m.y[j, k, r, l]
                for j, k, r, l in m.JKRL
            )

        @m.Constraint(m.J, doc="every job does all its work")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.rate[j, r] * m.y[j, k, r, l] for k, r, l in m.of_job[j]) == 1

        @m.Constraint(m.KQ, doc="no more of a resource than there is")
        def capacity(m: pyo.ConcreteModel, k: int, q: str) -> RelationalExpression:
            held = sum(m.v[j, r, q] * m.y[j, k, r, l] for j, r, l in m.of_pool[k, q])
            return held <= m.U[q] * m.length[k]

        # Of a job that has one mode it is the bound of the only variable.
        @m.Constraint(m.shared, doc="a job runs in one mode at a time, or in shares of several")
        def alone(m: pyo.ConcreteModel, j: str, k: int, l: int) -> RelationalExpression:
            return sum(m.y[j, k, r, l] for r in m.modes_of[j]) <= m.d[j, k, l]

    return m


def use_of_types(gpus: NDArray[np.int64], types: int) -> NDArray[np.float64]:
    """Uses of gangs that need GPUs of the type on which they run, shape (n, types, types)."""
    return np.asarray(gpus[:, None, None] * np.eye(types))


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The typed interval LP of an instance in :data:`INTERVALS` equal intervals, in seconds."""
    time = gang_seconds(instance)
    release, slowest = (
        instance.workload.arrival_s,
        np.where(np.isfinite(time), time, 0.0).max(axis=1),
    )
    end = float(release.max(initial=0.0) + slowest.sum())
    bounds = np.linspace(float(release.min(initial=0.0)), end, INTERVALS + 1)
    begin = np.maximum(bounds[None, :-1], release[:, None])
    room = np.maximum(bounds[None, 1:] - begin, 0.0)
    u, v = (np.minimum(room, each[:, None]) for each in (time.min(axis=1), slowest))
    return build(
        TypedIntervals(
            instance.workload.weight,
            use_of_types(instance.workload.gpus, time.shape[1]),
            time,
            instance.cluster.gpus_per_type.astype(np.float64),
            bounds,
            begin,
            np.stack((u / 2, v / 2, (v - u) / 2), axis=2),
            np.stack((np.zeros_like(u), u, v), axis=2),
            instance.workload.id,
            instance.cluster.gpu_types,
            instance.cluster.gpu_types,
        )
    )
