r"""Elastic shares of a few jobs: the least total completion time, for a given order of completions.

Source: derived; the problem is that of Hwang et al., AFS, NSDI 2021, sec. 3 (recalled), for jobs that are all there.

========  ===============  ===========  ======  ==========================================================
Symbol    Here             Index set    Unit    Meaning
========  ===============  ===========  ======  ==========================================================
i, j      m.J                                   jobs, by name, in order of completion; phase i ends with job i
k         m.K[j]           J            GPUs    widths 0 .. G on which j can run
p_jk      m.p[j, k]        J, K         1/s     share of j that is done in a second on k GPUs
G         m.G                           GPUs    GPUs
n_i       m.n[i]           J                    jobs that are not complete before the end of phase i
D_i       m.D[i]           J            s       length of phase i
d_ijk     m.d[i, j, k]     A            s       time in phase i in which j holds k GPUs
A         m.A                                   (i, j, k) with i <= j, and k that j can use
========  ===============  ===========  ======  ==========================================================

.. math::

    \min        \sum_i n_i D_i                                              && (total) \\
    \text{s.t.} \sum_k d_{ijk} = D_i                     \forall i \le j    && (always) \\
                \sum_{j,k} k \, d_{ijk} \le G D_i        \forall i          && (capacity) \\
                \sum_{i,k} p_{jk} d_{ijk} = 1            \forall j          && (work)

No shares that complete the jobs in this order have a smaller sum of completion times: what they hold, added up over
each phase, keeps all rows. GPUs are counted on average over a phase, and may be anywhere.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.afs.least_total"
REFERENCE = "tests/solvers/test_afs.py"


def build(
    speed: NDArray[np.float64], gpus: int, job_names: Sequence[str] = ()
) -> pyo.ConcreteModel:
    """The programme.

    Parameters
    ----------
    speed : ndarray, shape (jobs, gpus + 1)
        p_jk, jobs in order of completion; 0 on 0 GPUs, and where a job cannot run.
    job_names : sequence of str
        ``job-0``, ... if there are none.
    """
    jobs = len(speed)
    usable = speed > 0
    usable[:, 0] = True
    phase, job, width = (
        np.array(each, dtype=np.int64)
        for each in zip(
            *(
                (i, j, k)
                for j in range(jobs)
                for i in range(j + 1)
                for k in np.flatnonzero(usable[j]).tolist()
            ),
            strict=True,
        )
    )
    id = Names.known(job_names, "job", jobs)
    of, in_phase = id[job], id[phase]
    used = np.nonzero(usable)
    with traced():
        m = pyo.ConcreteModel(name="afs")
        m.J, m.A = tuples(id), tuples(in_phase, of, width)
        pairs = np.tril_indices(jobs)
        m.pairs = tuples(id[pairs[1]], id[pairs[0]])
        m.of_phase = subsets(m.J, in_phase, of, width)
        m.of_job = subsets(m.J, of, in_phase, width)
        m.K = subsets(m.J, id[used[0]], used[1])
        m.JK = tuples(id[used[0]], used[1])
        m.p = param(speed[used], m.JK)
        m.n, m.G = param(np.arange(jobs, 0, -1), m.J), param(gpus)
        m.D = pyo.Var(m.J, domain=pyo.NonNegativeReals)
        m.d = pyo.Var(m.A, domain=pyo.NonNegativeReals, dense=False)

        @m.Objective(doc="sum of completion times [s]")
        def total(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.n[i] * m.D[i] for i in m.J)

        @m.Constraint(m.pairs, doc="some width at any time, 0 among them")
        def always(m: pyo.ConcreteModel, i: str, j: str) -> RelationalExpression:
            return sum(m.d[i, j, k] for k in m.K[j]) == m.D[i]

        @m.Constraint(m.J, doc="no more GPUs than there are, on average")
        def capacity(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return sum(k * m.d[i, j, k] for j, k in m.of_phase[i]) <= m.G * m.D[i]

        @m.Constraint(m.J, doc="all of the job")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.p[j, k] * m.d[i, j, k] for i, k in m.of_job[j]) == 1

    return m


def example() -> pyo.ConcreteModel:
    """Two jobs on two GPUs, the second of which is faster on both."""
    return build(np.array([[0.0, 0.01, 0.01], [0.0, 0.005, 0.009]]), 2)
