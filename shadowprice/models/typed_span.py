r"""Span LP over GPU types: how soon all jobs can be complete where speeds differ by type.

Source: derived; for one GPU a job it is the linear programme of Lawler and Labetoulle (JACM 25, 1978) for
preemptive scheduling on unrelated machines (recalled), and :func:`shadowprice.models.gavel.max_min` with the
steps left as needs, in other variables.

=========  ===============  ===========  =======  ==============================================
Symbol     Here             Index set    Unit     Meaning
=========  ===============  ===========  =======  ==============================================
J, R       m.J, m.R                               jobs, GPU types
g_j        m.g[j]           J            GPUs     gang
p_jr       1 / m.rate[j,r]  J, R         s        run time on type r, infinite if none
G_r        m.G[r]           R            GPUs     GPUs of type r
x_jr       m.x[j, r]        J, R         s        time that j runs on r
T          m.T                           s        from the first moment to the last completion
=========  ===============  ===========  =======  ==============================================

.. math::

    \min        T                                                          && (span)     \\
    \text{s.t.} \sum_r x_{jr} / p_{jr} = 1              \forall j          && (work)     \\
                \sum_j g_j x_{jr} \le G_r T             \forall r          && (capacity) \\
                \sum_r x_{jr} \le T                     \forall j          && (alone)

Validity: the *shares* of :mod:`shadowprice.models.typed_interval_lp`, integrated over the whole schedule.

Kind: relaxation. Arrivals are left out: it is the span of jobs that are all there at its beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.offline.type_prices"
REFERENCE = "tests/solvers/offline/test_type_prices.py"


def build(
    gpus: NDArray[np.int64], time: NDArray[np.float64], capacity: NDArray[np.float64]
) -> pyo.ConcreteModel:
    """The span LP; O(n types).

    Parameters
    ----------
    gpus : ndarray of int, shape (n,)
        g_j.
    time : ndarray, shape (n, types)
        p_jr > 0 in any unit, which is then that of T; infinite where the job cannot run.
    capacity : ndarray, shape (types,)
        G_r.
    """
    job, gpu_type = np.nonzero(np.isfinite(time))
    with traced():
        m: Any = pyo.ConcreteModel(name="typed_span")
        m.J = pyo.RangeSet(0, len(gpus) - 1)
        m.R = pyo.RangeSet(0, len(capacity) - 1)
        m.JR = tuples(job, gpu_type)
        m.types_of = subsets(m.J, job, gpu_type)
        m.jobs_on = subsets(m.R, gpu_type, job)
        m.rate = param(1 / time, m.J, m.R)
        m.g = param(gpus, m.J)
        m.G = param(capacity, m.R)
        m.x = pyo.Var(m.JR, bounds=(0, None), dense=False)
        m.T = pyo.Var(bounds=(0, None))

        @m.Objective(doc="time until all is done")
        def span(m: Any) -> Any:
            return m.T

        @m.Constraint(m.J, doc="every job does all its work")
        def work(m: Any, j: int) -> Any:
            return sum(m.rate[j, r] * m.x[j, r] for r in m.types_of[j]) == 1

        @m.Constraint(m.jobs_on.nonempty, doc="no more time of a type than there is")
        def capacity_of(m: Any, r: int) -> Any:
            return sum(m.g[j] * m.x[j, r] for j in m.jobs_on[r]) <= m.G[r] * m.T

        @m.Constraint(m.J, doc="a job runs on one type at a time, or in shares of several")
        def alone(m: Any, j: int) -> Any:
            return sum(m.x[j, r] for r in m.types_of[j]) <= m.T

    return m


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The span LP of an instance, in seconds."""
    capacity = instance.cluster.gpus_per_type.astype(np.float64)
    return build(instance.workload.gpus, gang_seconds(instance), capacity)
