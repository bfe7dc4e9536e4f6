r"""Span LP over modes of running: how soon all jobs can be complete where speeds differ, by GPU type or else.

Source: derived; for one GPU a job it is the linear programme of Lawler and Labetoulle (JACM 25, 1978) for
preemptive scheduling on unrelated machines (recalled), and :func:`shadowprice.models.gavel.max_min` with the
steps left as needs, in other variables.

=========  ===============  ===========  =======  ==============================================
Symbol     Here             Index set    Unit     Meaning
=========  ===============  ===========  =======  ==============================================
J, R, Q    m.J, m.R, m.Q                          jobs, modes, resources
p_jr       1 / m.rate[j,r]  J, R         s        run time in mode r, infinite if none
v_jrq      m.v[j, r, q]     J, R, Q      units    what j uses of resource q in mode r
U_q        m.U[q]           Q            units    what there is of resource q
x_jr       m.x[j, r]        J, R         s        time that j runs in mode r
T          m.T                           s        from the first moment to the last completion
=========  ===============  ===========  =======  ==============================================

.. math::

    \min        T                                                          && (span)     \\
    \text{s.t.} \sum_r x_{jr} / p_{jr} = 1              \forall j          && (work)     \\
                \sum_{j,r} v_{jrq} x_{jr} \le U_q T      \forall q          && (capacity) \\
                \sum_r x_{jr} \le T                     \forall j          && (alone)

Validity: the *shares* of :mod:`shadowprice.models.typed_interval_lp`, integrated over the whole schedule.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: relaxation. Arrivals are left out: it is the span of jobs that are all there at its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.models.tracing import traced
from shadowprice.models.typed_interval_lp import use_of_types

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.offline.type_prices"
REFERENCE = "tests/solvers/offline/test_type_prices.py"


def build(
    use: NDArray[np.float64],
    time: NDArray[np.float64],
    capacity: NDArray[np.float64],
    *,
    job_names: Sequence[str] | NDArray[np.object_] = (),
    mode_names: Sequence[str] = (),
    resource_names: Sequence[str] = (),
) -> pyo.ConcreteModel:
    """The span LP; O(n modes resources).

    Parameters
    ----------
    use : ndarray, shape (n, modes, resources)
        v_jrq >= 0.
    time : ndarray, shape (n, modes)
        p_jr > 0 in any unit, which is then that of T; infinite where the job has no such mode.
    capacity : ndarray, shape (resources,)
        U_q.
    job_names, mode_names, resource_names : sequence of str
        ``job-0``, ..., ``mode-0``, ... and ``resource-0``, ... if there are none.
    """
    j, r = np.nonzero(np.isfinite(time))
    column, q = np.nonzero(use[j, r] > 0)
    job = Names.known(job_names, "job", len(time))
    mode = Names.known(mode_names, "mode", time.shape[1])
    resource = Names.known(resource_names, "resource", len(capacity))
    with traced():
        m = pyo.ConcreteModel(name="typed_span")
        m.J, m.R, m.Q = tuples(job), tuples(mode), tuples(resource)
        m.JR = tuples(job[j], mode[r])
        m.modes_of = subsets(m.J, job[j], mode[r])
        m.users_of = subsets(m.Q, resource[q], job[j[column]], mode[r[column]])
        m.rate = param(1 / time, m.J, m.R)
        m.v = param(use, m.J, m.R, m.Q)
        m.U = param(capacity, m.Q)
        m.x = pyo.Var(m.JR, bounds=(0, None), dense=False)
        m.T = pyo.Var(bounds=(0, None))

        @m.Objective(doc="time until all is done")
        def span(m: pyo.ConcreteModel) -> NumericValue:
            return m.T

        @m.Constraint(m.J, doc="every job does all its work")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.rate[j, r] * m.x[j, r] for r in m.modes_of[j]) == 1

        @m.Constraint(m.users_of.nonempty, doc="no more of a resource than there is")
        def capacity_of(m: pyo.ConcreteModel, q: str) -> RelationalExpression:
            return sum(m.v[j, r, q] * m.x[j, r] for j, r in m.users_of[q]) <= m.U[q] * m.T

        @m.Constraint(m.J, doc="a job runs in one mode at a time, or in shares of several")
        def alone(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.x[j, r] for r in m.modes_of[j]) <= m.T

    return m


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The span LP of an instance, in seconds."""
    capacity = instance.cluster.gpus_per_type.astype(np.float64)
    time = gang_seconds(instance)
    types = instance.cluster.gpu_types
    return build(
        use_of_types(instance.workload.gpus, len(types)),
        time,
        capacity,
        job_names=instance.workload.id,
        mode_names=types,
        resource_names=types,
    )
