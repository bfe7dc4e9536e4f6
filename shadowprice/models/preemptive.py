r"""Time-indexed programme for rigid gangs with preemption at slot boundaries.

Source: derived; the mean-busy-time row is Goemans' (SODA 1997).

========  ===============  =========== ======  ===========================================
Symbol    Here             Index set   Unit    Meaning
========  ===============  =========== ======  ===========================================
J         m.J                                  jobs
T         m.T                          slots   slots 0 .. H-1
r_j, p_j  m.r[j], m.p[j]   J           slots   release, duration
g_j       m.g[j]           J           GPUs    gang
w_j       m.w[j]           J                   weight
G         m.G                          GPUs    GPUs of the pool
y_jt      m.y[j, t]        J, t >= r_j         1 if j runs in slot t
C_j       m.C[j]           J           slots   completion
z         m.z                          slots   makespan (only for that objective)
========  ===============  =========== ======  ===========================================

.. math::

    \min        \sum_j w_j C_j \quad \text{or} \quad \min z                      && (total), (span) \\
    \text{s.t.} \sum_t y_{jt} = p_j                               \forall j      && (work)     \\
                \sum_j g_j y_{jt} \le G                           \forall t      && (capacity) \\
                C_j \ge (t + 1) y_{jt}                            \forall j, t   && (end)      \\
                C_j \ge \tfrac{1}{p_j}\sum_t t\, y_{jt} + \tfrac{p_j + 1}{2} \forall j && (busy) \\
                z \ge C_j                                         \forall j      && (last)

(busy) is implied by the rest for 0/1 values and makes the relaxation strong.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: exact among schedules that start, stop and resume jobs at slot boundaries only. That such
a schedule is best among all preemptive ones is known for one machine; for gangs it is not
claimed.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.instance import Instance
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.slotted import Slotted
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.offline.preemptive"
REFERENCE = "tests/solvers/offline/test_offline.py"

MAX_CELLS = 20_000
"""Jobs times slots up to which a model is displayed."""


def build(jobs: Slotted, horizon: int, *, makespan: bool = False) -> pyo.ConcreteModel:
    """The programme over slots 0 .. horizon - 1."""
    release = np.minimum(jobs.release, horizon)
    job = np.repeat(np.arange(jobs.jobs), horizon - release)
    slot = np.arange(len(job)) - np.repeat(
        np.cumsum(horizon - release) - horizon, horizon - release
    )
    with traced():
        m = pyo.ConcreteModel(name="preemptive")
        m.J = tuples(jobs.id)
        m.T = pyo.RangeSet(0, horizon - 1)
        m.JT = tuples(jobs.id[job], slot)
        m.slots_of = subsets(m.J, jobs.id[job], slot)
        m.arrived = subsets(m.T, slot, jobs.id[job])
        m.r = param(jobs.release, m.J)
        m.p = param(jobs.duration, m.J)
        m.g = param(jobs.gpus, m.J)
        m.w = param(jobs.weight, m.J)
        m.G = param(jobs.capacity)
        m.y = pyo.Var(m.JT, domain=pyo.Binary, dense=False)
        # Completions are whole by themselves; said, so that bounds may be rounded up to it.
        m.C = pyo.Var(
            m.J,
            domain=pyo.Integers,
            bounds=lambda m, j: (m.r[j] + m.p[j], horizon),
            dense=False,
        )

        @m.Constraint(m.J, doc="every job gets its work")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.y[j, t] for t in m.slots_of[j]) == m.p[j]

        @m.Constraint(m.arrived.nonempty, doc="no more GPUs than there are")
        def capacity(m: pyo.ConcreteModel, t: int) -> RelationalExpression:
            return sum(m.g[j] * m.y[j, t] for j in m.arrived[t]) <= m.G

        @m.Constraint(m.JT, doc="a job ends after the last slot it runs in")
        def end(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            return m.C[j] >= (t + 1) * m.y[j, t]

        @m.Constraint(m.J, doc="mean busy time")
        def busy(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            total = sum(t * m.y[j, t] for t in m.slots_of[j])
            return m.p[j] * m.C[j] >= total + m.p[j] * (m.p[j] + 1) / 2

        if makespan:
            m.z = pyo.Var(domain=pyo.Integers, bounds=(0, horizon))

            @m.Constraint(m.J, doc="no job ends after the makespan")
            def last(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
                return m.z >= m.C[j]

            @m.Objective(doc="makespan [slots]")
            def span(m: pyo.ConcreteModel) -> NumericValue:
                return m.z

        else:

            @m.Objective(doc="total weighted completion time [slots]")
            def total(m: pyo.ConcreteModel) -> NumericValue:
                return sum(m.w[j] * m.C[j] for j in m.J)

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
    return build(jobs, horizon)
