r"""Time-indexed programme for rigid gangs with preemption at slot boundaries.

Source: derived; the mean-busy-time row is Goemans' (SODA 1997).

========  ===============  ==========  ======  ===========================================
Symbol    Here             Index set   Unit    Meaning
========  ===============  ==========  ======  ===========================================
J         m.J                                  jobs
T         m.T                          slots   slots 0 .. H-1
r_j, p_j  jobs.release..   J           slots   release, duration
g_j       jobs.gpus        J           GPUs    gang
w_j       jobs.weight      J                   weight
G         jobs.capacity                GPUs    GPUs of the pool
y_jt      m.y[j, t]        J, t >= r_j         1 if j runs in slot t
C_j       m.C[j]           J           slots   completion
z         m.z                          slots   makespan (only for that objective)
========  ===============  ==========  ======  ===========================================

.. math::

    \min        \sum_j w_j C_j \quad \text{or} \quad \min z                      && (total), (span) \\
    \text{s.t.} \sum_t y_{jt} = p_j                               \forall j      && (work)     \\
                \sum_j g_j y_{jt} \le G                           \forall t      && (capacity) \\
                C_j \ge (t + 1) y_{jt}                            \forall j, t   && (end)      \\
                C_j \ge \tfrac{1}{p_j}\sum_t t\, y_{jt} + \tfrac{p_j + 1}{2} \forall j && (busy) \\
                z \ge C_j                                         \forall j      && (last)

(busy) is implied by the rest for 0/1 values and makes the relaxation strong.

Kind: exact among schedules that start, stop and resume jobs at slot boundaries only. That such
a schedule is best among all preemptive ones is known for one machine; for gangs it is not
claimed.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from shadowprice.instances.instance import Instance
from shadowprice.models.slotted import Slotted

KIND = "exact"
RUNS_IN = "shadowprice.solvers.offline.preemptive"
REFERENCE = "tests/solvers/offline/test_offline.py"

MAX_CELLS = 20_000
"""Jobs times slots up to which a model is displayed."""


def build(jobs: Slotted, horizon: int, *, makespan: bool = False) -> pyo.ConcreteModel:
    """The programme over slots 0 .. horizon - 1."""
    m: Any = pyo.ConcreteModel(name="preemptive")
    r, p = jobs.release.tolist(), jobs.duration.tolist()
    g, w = jobs.gpus.tolist(), jobs.weight.tolist()
    m.J = pyo.RangeSet(0, jobs.jobs - 1)
    m.T = pyo.RangeSet(0, horizon - 1)
    m.JT = pyo.Set(dimen=2, initialize=[(j, t) for j in m.J for t in range(r[j], horizon)])
    m.y = pyo.Var(m.JT, domain=pyo.Binary)
    # Completions are whole by themselves; said, so that bounds may be rounded up to it.
    m.C = pyo.Var(m.J, domain=pyo.Integers, bounds=lambda m, j: (r[j] + p[j], horizon))

    if not makespan:

        @m.Objective(doc="total weighted completion time [slots]")
        def total(m: Any) -> Any:
            return sum(w[j] * m.C[j] for j in m.J)

    @m.Constraint(m.J, doc="every job gets its work")
    def work(m: Any, j: int) -> Any:
        return sum(m.y[j, t] for t in range(r[j], horizon)) == p[j]

    @m.Constraint(m.T, doc="no more GPUs than there are")
    def capacity(m: Any, t: int) -> Any:
        ready = [j for j in m.J if r[j] <= t]
        if not ready:
            return pyo.Constraint.Skip
        return sum(g[j] * m.y[j, t] for j in ready) <= jobs.capacity

    @m.Constraint(m.JT, doc="a job ends after the last slot it runs in")
    def end(m: Any, j: int, t: int) -> Any:
        return m.C[j] >= (t + 1) * m.y[j, t]

    @m.Constraint(m.J, doc="mean busy time")
    def busy(m: Any, j: int) -> Any:
        return (
            p[j] * m.C[j]
            >= sum(t * m.y[j, t] for t in range(r[j], horizon)) + p[j] * (p[j] + 1) / 2
        )

    if makespan:
        m.z = pyo.Var(domain=pyo.Integers, bounds=(0, horizon))

        @m.Objective(doc="makespan [slots]")
        def span(m: Any) -> Any:
            return m.z

        @m.Constraint(m.J, doc="no job ends after the makespan")
        def last(m: Any, j: int) -> Any:
            return m.z >= m.C[j]

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
