r"""Time-indexed programme for rigid gangs without preemption.

Source: Dyer and Wolsey, Discrete Applied Mathematics 26, 1990 (the time-indexed formulation of
machine scheduling); gangs as in parallel rigid jobs P | r_j, size_j | sum w_j C_j.

========  =====================  ==========  ======  =========================================
Symbol    Here                   Index set   Unit    Meaning
========  =====================  ==========  ======  =========================================
J         m.J                                        jobs
T         m.T                                slots   slots 0 .. H-1
r_j       jobs.release           J           slots   release
p_j       m.p[j]                 J           slots   duration
g_j       m.g[j]                 J           GPUs    gang
w_j       m.w[j]                 J                   weight
G         m.G                                GPUs    GPUs of the pool
S_j       m.S[j]                 J           slots   slots in which j may start, all >= r_j
R_t       m.running[t]           T           J, T    (j, s) with s <= t < s + p_j: who runs in t
x_jt      m.x[j, t]              J, S_j              1 if j starts in slot t
z         m.z                                slots   makespan (only for that objective)
========  =====================  ==========  ======  =========================================

.. math::

    \min        \sum_{j}\sum_{t \in S_j} w_j (t + p_j) x_{jt}                    && (total)  \\
    \text{or}   \min z                                                           && (span)   \\
    \text{s.t.} \sum_{t \in S_j} x_{jt} = 1                       \forall j      && (once)   \\
                \sum_{(j,s) \in R_t} g_j x_{js} \le G             \forall t      && (capacity) \\
                \sum_{t \in S_j} (t + p_j) x_{jt} \le z           \forall j      && (last)

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: exact for starts in S_j; its LP relaxation bounds from below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.instance import Instance
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.slotted import Slotted
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.offline.non_preemptive"
REFERENCE = "tests/solvers/offline/test_offline.py"

MAX_CELLS = 20_000
"""Jobs times slots up to which a model is displayed."""


def build(
    jobs: Slotted,
    starts: Sequence[NDArray[np.int64]],
    *,
    makespan: bool = False,
    relaxed: bool = False,
) -> pyo.ConcreteModel:
    """The programme for given start slots.

    Parameters
    ----------
    starts : sequence of ndarray
        S_j: for each job its allowed start slots, increasing and >= release.
    makespan : bool
        Minimise the last completion instead of the weighted total.
    relaxed : bool
        Drop integrality.
    """
    job = np.repeat(np.arange(jobs.jobs), [len(slots) for slots in starts])
    start = np.concatenate([*starts, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    ends = start + jobs.duration[job]
    # Slots t in which a job runs that started in s: s, ..., s + p_j - 1.
    run = np.repeat(np.arange(len(job)), jobs.duration[job])
    slot = np.arange(len(run)) - np.repeat(np.cumsum(jobs.duration[job]) - ends, jobs.duration[job])
    horizon = int(ends.max(initial=0))
    with traced():
        m = pyo.ConcreteModel(name="time_indexed")
        m.J = tuples(jobs.id)
        m.T = pyo.RangeSet(0, horizon - 1)
        m.JT = tuples(jobs.id[job], start)
        m.S = subsets(m.J, jobs.id[job], start)
        m.running = subsets(m.T, slot, jobs.id[job[run]], start[run])
        m.p = param(jobs.duration, m.J)
        m.g = param(jobs.gpus, m.J)
        m.w = param(jobs.weight, m.J)
        m.G = param(jobs.capacity)
        m.x = pyo.Var(m.JT, domain=pyo.UnitInterval if relaxed else pyo.Binary, dense=False)

        @m.Constraint(m.J, doc="every job starts once")
        def once(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.x[j, t] for t in m.S[j]) == 1

        @m.Constraint(m.running.nonempty, doc="no more GPUs than there are")
        def capacity(m: pyo.ConcreteModel, t: int) -> RelationalExpression:
            return sum(m.g[j] * m.x[j, s] for j, s in m.running[t]) <= m.G

        if makespan:
            # Whole by itself at whole starts; said, so that bounds may be rounded up to it.
            first = int((jobs.release + jobs.duration).max(initial=0))
            m.z = pyo.Var(domain=pyo.Reals if relaxed else pyo.Integers, bounds=(first, horizon))

            @m.Constraint(m.J, doc="no job ends after the makespan")
            def last(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
                return sum((t + m.p[j]) * m.x[j, t] for t in m.S[j]) <= m.z

            @m.Objective(doc="makespan [slots]")
            def span(m: pyo.ConcreteModel) -> NumericValue:
                return m.z

        else:

            @m.Objective(doc="total weighted completion time [slots]")
            def total(m: pyo.ConcreteModel) -> NumericValue:
                return sum(m.w[j] * (t + m.p[j]) * m.x[j, t] for j, t in m.JT)

    return m


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The programme of rigid jobs on one pool of GPUs, in the largest slots that are exact.

    Raises
    ------
    InputError
        If it would have more than :data:`MAX_CELLS` jobs times slots.
    """
    jobs = Slotted.of(instance)
    horizon = jobs.enough_slots(MAX_CELLS)
    windows = zip(jobs.release.tolist(), jobs.duration.tolist(), strict=True)
    return build(jobs, [np.arange(r, horizon - p + 1) for r, p in windows])
