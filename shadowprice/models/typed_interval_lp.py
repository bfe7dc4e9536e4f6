r"""Interval LP over GPU types: a bound on weighted completion times where speeds differ by type.

Source: derived, from the interval LP of :mod:`shadowprice.models.interval_lp`; the mean busy time is
Goemans' (SODA 1997), with progress in the place of busy time.

=============  ====================  ==========  =======  ======================================
Symbol         Here                  Index set   Unit     Meaning
=============  ====================  ==========  =======  ======================================
J, K, R        m.J, m.K, m.R                              jobs, intervals [b_k, b_{k+1}), types
r_j, w_j, g_j  m.w[j], m.g[j]        J           slots    release; weight; gang [GPUs]
p_jr           1 / m.rate[j, r]      J, R        slots    run time on type r, infinite if none
q_j                                  J           slots    min_r p_jr
G_r            m.G[r]                R           GPUs     GPUs of type r
b_jk           m.b[j, k]             J, K        slots    when j may begin in interval k
y_jkrl         m.y[j, k, r, l]       J, K, R, L  slots    time j runs on r in interval k, piece l
d_jkl, c_jkl   m.d[j, k, l], m.c     J, K, L     slots    length and charge of a piece, below
=============  ====================  ==========  =======  ======================================

.. math::

    \min        \sum_j w_j \Bigl( \sum_{k,r,l} \tfrac{b_{jk} + c_{jkl}}{p_{jr}} y_{jkrl}
                + \tfrac{q_j}{2} \Bigr)                                                && (progress) \\
    \text{s.t.} \sum_{k,r,l} y_{jkrl} / p_{jr} = 1                   \forall j     && (work)     \\
                \sum_{j,l} g_j y_{jkrl} \le G_r (b_{k+1} - b_k)      \forall k,r   && (capacity) \\
                \sum_r y_{jkrl} \le d_{jkl}                          \forall j,k,l && (alone)

with b_jk = max(b_k, r_j). With room = b_{k+1} - b_jk, u = min(room, q_j) and v = min(room, max_r p_jr)
there are three pieces: d = (u / 2, v / 2, (v - u) / 2) and c = (0, u, v).

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

Kind: relaxation. Times p_jr are rounded up to the grid of 2^-20 s as everywhere; the verifier
forgives two ticks of work a run where speeds differ, and so is the bound meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
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
    gpus : ndarray of int, shape (n,)
        g_j.
    time : ndarray, shape (n, types)
        p_jr > 0, infinite where the job cannot run.
    capacity : ndarray, shape (types,)
        G_r.
    bounds : ndarray, shape (intervals + 1,)
        b_0 <= min r_j, increasing; the last so late that everything fits.
    begin : ndarray, shape (n, intervals)
        b_jk.
    size, charge : ndarray, shape (n, intervals, pieces)
        d_jkl, 0 where the job has not arrived, and c_jkl.
    """

    weight: NDArray[np.float64]
    gpus: NDArray[np.int64]
    time: NDArray[np.float64]
    capacity: NDArray[np.float64]
    bounds: NDArray[np.float64]
    begin: NDArray[np.float64]
    size: NDArray[np.float64]
    charge: NDArray[np.float64]


def build(data: TypedIntervals) -> pyo.ConcreteModel:
    """The typed interval LP; O(n intervals types)."""
    n, intervals = data.begin.shape
    runs = np.isfinite(data.time)
    j, k, l = np.nonzero(data.size > 0)
    job, kind = np.nonzero(runs)
    # Columns: every piece with every type that its job can run on.
    types = runs.sum(axis=1)
    piece = np.repeat(np.arange(len(j)), types[j])
    first = np.cumsum(types) - types
    r = kind[np.arange(len(piece)) - np.repeat(np.cumsum(types[j]) - types[j] - first[j], types[j])]
    several = types[j] > 1
    pool = k[piece] * len(data.capacity) + r
    with traced():
        m: Any = pyo.ConcreteModel(name="typed_interval_lp")
        m.J, m.K = pyo.RangeSet(0, n - 1), pyo.RangeSet(0, intervals - 1)
        m.R = pyo.RangeSet(0, len(data.capacity) - 1)
        m.JKRL = tuples(j[piece], k[piece], r, l[piece])
        m.JKL = tuples(j, k, l)
        m.shared = tuples(j[several], k[several], l[several])
        m.KR = tuples(*np.divmod(np.unique(pool), len(data.capacity)))
        m.of_job = subsets(m.J, j[piece], k[piece], r, l[piece])
        m.of_pool = subsets(m.KR, (k[piece], r), j[piece], l[piece])
        m.types_of = subsets(m.J, job, kind)
        m.rate = param(1 / data.time, m.J, m.R)
        m.g = param(data.gpus, m.J)
        m.w = param(data.weight, m.J)
        m.G = param(data.capacity, m.R)
        m.length = param(np.diff(data.bounds), m.K)
        m.b = param(data.begin, m.J, m.K)
        m.d = param(data.size[j, k, l], m.JKL)
        m.c = param(data.charge[j, k, l], m.JKL)
        m.y = pyo.Var(m.JKRL, bounds=lambda m, j, k, r, l: (0, m.d[j, k, l]), dense=False)

        @m.Objective(doc="weighted mean progress times, without the constant")
        def progress(m: Any) -> Any:
            return sum(
                m.w[j] * (m.b[j, k] + m.c[j, k, l]) * m.rate[j, r] * m.y[j, k, r, l]
                for j, k, r, l in m.JKRL
            )

        @m.Constraint(m.J, doc="every job does all its work")
        def work(m: Any, j: int) -> Any:
            return sum(m.rate[j, r] * m.y[j, k, r, l] for k, r, l in m.of_job[j]) == 1

        @m.Constraint(m.KR, doc="no more time of a type than there is")
        def capacity(m: Any, k: int, r: int) -> Any:
            held = sum(m.g[j] * m.y[j, k, r, l] for j, l in m.of_pool[k, r])
            return held <= m.G[r] * m.length[k]

        # Of a job that can run on one type alone it is the bound of the only variable.
        @m.Constraint(m.shared, doc="a job runs on one type at a time, or in shares of several")
        def alone(m: Any, j: int, k: int, l: int) -> Any:
            return sum(m.y[j, k, r, l] for r in m.types_of[j]) <= m.d[j, k, l]

    return m


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
            instance.workload.gpus,
            time,
            instance.cluster.gpus_per_type.astype(np.float64),
            bounds,
            begin,
            np.stack((u / 2, v / 2, (v - u) / 2), axis=2),
            np.stack((np.zeros_like(u), u, v), axis=2),
        )
    )
