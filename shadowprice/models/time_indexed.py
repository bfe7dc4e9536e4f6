r"""Time-indexed programme for rigid gangs without preemption.

Source: Dyer and Wolsey, Discrete Applied Mathematics 26, 1990 (the time-indexed formulation of
machine scheduling); gangs as in parallel rigid jobs P | r_j, size_j | sum w_j C_j.

========  =====================  ==========  ======  =========================================
Symbol    Here                   Index set   Unit    Meaning
========  =====================  ==========  ======  =========================================
J         m.J                                        jobs
T         m.T                                slots   slots 0 .. H-1
r_j       jobs.release           J           slots   release
p_j       jobs.duration          J           slots   duration
g_j       jobs.gpus              J           GPUs    gang
w_j       jobs.weight            J                   weight
G         jobs.capacity                      GPUs    GPUs of the pool
S_j       starts[j]              J           slots   slots in which j may start, all >= r_j
x_jt      m.x[j, t]              J, S_j              1 if j starts in slot t
z         m.z                                slots   makespan (only for that objective)
========  =====================  ==========  ======  =========================================

.. math::

    \min        \sum_{j}\sum_{t \in S_j} w_j (t + p_j) x_{jt}                    && (total)  \\
    \text{or}   \min z                                                           && (span)   \\
    \text{s.t.} \sum_{t \in S_j} x_{jt} = 1                       \forall j      && (once)   \\
                \sum_j g_j \sum_{s=t-p_j+1}^{t} x_{js} \le G      \forall t      && (capacity) \\
                \sum_{t \in S_j} (t + p_j) x_{jt} \le z           \forall j      && (last)

Kind: exact for starts in S_j; its LP relaxation bounds from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.models.slotted import Slotted

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
    m: Any = pyo.ConcreteModel(name="time_indexed")
    allowed = [set(slots.tolist()) for slots in starts]
    release, p = jobs.release.tolist(), jobs.duration.tolist()
    g, w = jobs.gpus.tolist(), jobs.weight.tolist()
    horizon = max((max(slots, default=0) + p[j] for j, slots in enumerate(allowed)), default=0)
    m.J = pyo.RangeSet(0, jobs.jobs - 1)
    m.T = pyo.RangeSet(0, horizon - 1)
    m.JT = pyo.Set(
        dimen=2, initialize=[(j, t) for j in range(jobs.jobs) for t in sorted(allowed[j])]
    )
    m.x = pyo.Var(m.JT, domain=pyo.UnitInterval if relaxed else pyo.Binary)
    running: list[list[tuple[int, int]]] = [[] for _ in range(horizon)]
    for j, t in m.JT:
        for slot in range(t, t + p[j]):
            running[slot].append((j, t))

    if not makespan:

        @m.Objective(doc="total weighted completion time [slots]")
        def total(m: Any) -> Any:
            return sum(w[j] * (t + p[j]) * m.x[j, t] for j, t in m.JT)

    @m.Constraint(m.J, doc="every job starts once")
    def once(m: Any, j: int) -> Any:
        return sum(m.x[j, t] for t in sorted(allowed[j])) == 1

    @m.Constraint(m.T, doc="no more GPUs than there are")
    def capacity(m: Any, t: int) -> Any:
        if not running[t]:
            return pyo.Constraint.Skip
        return sum(g[j] * m.x[j, s] for j, s in running[t]) <= jobs.capacity

    if makespan:
        # Whole by itself at whole starts; said, so that bounds may be rounded up to it.
        m.z = pyo.Var(
            domain=pyo.Reals if relaxed else pyo.Integers,
            bounds=(max((r + d for r, d in zip(release, p, strict=True)), default=0), horizon),
        )

        @m.Objective(doc="makespan [slots]")
        def span(m: Any) -> Any:
            return m.z

        @m.Constraint(m.J, doc="no job ends after the makespan")
        def last(m: Any, j: int) -> Any:
            return sum((t + p[j]) * m.x[j, t] for t in sorted(allowed[j])) <= m.z

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
