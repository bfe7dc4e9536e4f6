r"""Sia's round: a configuration for each job, a GPU type and a number of GPUs, for the best sum of powers of goodputs.

Source: Jayaram Subramanya et al., Sia, SOSP 2023, sec. 3.4 (recalled); powers, the gain of a job that runs and the
factors of restarts as in its artifact (github.com/siasosp23/artifacts, ``sia-simulator/sia.py``; read).

=========  ===============  ==========  =====  ======================================================
Symbol     Here             Index set   Unit   Meaning
=========  ===============  ==========  =====  ======================================================
i          m.J                                 jobs, by name
j          m.C                                 configurations that jobs may have: (i, t, r), r GPUs of
                                               type t for job i
t          m.T                                 GPU types, by name
A_ij       m.A[i, t, r]     C                  (f_ij G_ij)^p, p < 0: G over the least of the job, f < 1
                                               where the job would restart for it
r_j        r                C           GPUs   GPUs of the configuration
R_t        m.R[t]           T           GPUs   GPUs of the type
lambda     m.waits                             loss of a job that waits
x_ij       m.x[i, t, r]     C                  1 if the job has the configuration
=========  ===============  ==========  =====  ======================================================

.. math::

    \min        \sum_{ij} A_{ij} x_{ij} + \lambda \sum_i \Bigl( 1 - \sum_j x_{ij} \Bigr)                 && (goodput) \\
    \text{s.t.} \sum_j x_{ij} \le 1                                         \qquad \forall i \qquad && (once) \\
                \sum_{ij : t_j = t} r_j x_{ij} \le R_t                      \qquad \forall t        && (capacity)

with x binary. A configuration is 1, 2, 4, ... GPUs of a node or whole nodes, so that what these rows allow can be
placed where the nodes of a type are alike and have a power of two of GPUs.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: exact, for one round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.errors import InputError
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.sia.sia"
REFERENCE = "tests/solvers/test_sia.py"


@dataclass(frozen=True, eq=False)
class JobConfigurations:
    """Configurations that jobs may have, of all jobs one after another.

    Parameters
    ----------
    job, pool, gpus : ndarray of int, shape (configurations,)
        Whose, on GPUs of which type, and how many.
    loss : ndarray, shape (configurations,)
        A_ij.
    capacity : ndarray of int, shape (types,)
        R_t [GPUs].
    jobs : int
    waits : float
        lambda.
    job_names, type_names : sequence of str
        ``job-0``, ... and ``type-0``, ... if there are none.

    Raises
    ------
    InputError
        If a configuration is there twice.
    """

    job: NDArray[np.int64]
    pool: NDArray[np.int64]
    gpus: NDArray[np.int64]
    loss: NDArray[np.float64]
    capacity: NDArray[np.int64]
    jobs: int
    waits: float = 1.1
    job_names: Sequence[str] = ()
    type_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        configurations = np.column_stack([self.job, self.pool, self.gpus])
        if len(np.unique(configurations, axis=0)) < len(configurations):
            raise InputError("configurations of jobs: one is there twice, expected different ones")


def build(data: JobConfigurations) -> pyo.ConcreteModel:
    """The programme of a round."""
    id = Names.known(data.job_names, "job", data.jobs)
    gpu_type = Names.known(data.type_names, "type", len(data.capacity))
    with traced():
        m = pyo.ConcreteModel(name="sia")
        m.J, m.T = tuples(id), tuples(gpu_type)
        m.C = tuples(id[data.job], gpu_type[data.pool], data.gpus)
        m.of_job = subsets(m.J, id[data.job], gpu_type[data.pool], data.gpus)
        m.of_type = subsets(m.T, gpu_type[data.pool], id[data.job], data.gpus)
        m.A = param(data.loss, m.C)
        m.R = param(data.capacity, m.T)
        m.waits, m.jobs = param(data.waits), param(data.jobs)
        m.x = pyo.Var(m.C, domain=pyo.Binary, dense=False)

        @m.Objective(doc="powers of goodputs, and what it costs to let jobs wait")
        def goodput(m: pyo.ConcreteModel) -> NumericValue:
            runs = sum(m.x[c] for c in m.C)
            return sum(m.A[c] * m.x[c] for c in m.C) + m.waits * (m.jobs - runs)

        @m.Constraint(m.J, doc="one configuration at most")
        def once(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return sum(m.x[i, t, r] for t, r in m.of_job[i]) <= 1

        @m.Constraint(m.T, doc="no more GPUs than there are of a type")
        def capacity(m: pyo.ConcreteModel, t: str) -> RelationalExpression:
            return sum(r * m.x[i, t, r] for i, r in m.of_type[t]) <= m.R[t]

    return m


def example() -> pyo.ConcreteModel:
    """Two jobs on two GPUs of one type."""
    job, gpus = np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2])
    loss = np.array([1.0, 0.75, 1.0, 0.8])
    return build(JobConfigurations(job, np.zeros(4, np.int64), gpus, loss, np.array([2]), 2))
