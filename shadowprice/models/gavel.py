r"""Gavel's allocation programmes: how much time each job spends on each GPU type.

Source: Narayanan et al., OSDI 2020, sec. 3 and 4.

An allocation says which fraction of wall-clock time each job spends on each GPU type. Every
function below is one programme of the paper; they share the valid allocations of sec. 3.1.

=======  ============  ==========  =======  ===========================================================
Symbol   Here          Index set   Unit     Meaning
=======  ============  ==========  =======  ===========================================================
m        m.M                                jobs, by name
j        m.J                                GPU types, by name
a        m.A                                accelerators whose GPUs the types draw on, by first type
p        m.P                                pairs (k, l) of jobs that may share GPUs (space sharing)
X_mj     m.x[i, j]     M, J                 fraction of time job i runs alone on type j
X_pj     m.y[k, l, j]  P, J                 fraction of time pair (k, l) runs on type j
T_mj     m.T[i, j]     M, J        steps/s  throughput of i alone on type j
T_pj^m   m.T1, m.T2    P, J        steps/s  throughputs of the first and second job of a pair
s_m      m.s[i]        M           GPUs     gang (scale factor); m.s2[k, l] of a pair
W_a      m.W[a]        A           GPUs     number of workers
r_m      m.r[i]        M           steps/s  throughput that counts as 1 for job i
v_mj     m.v[i, j]     M, J                 value of a unit of time; m.v2[k, l, j] of a pair
c_mj     m.c[i, j]     M, J        $/s      cost of a unit of time; m.c2[k, l, j] of a pair
f_m      m.f[i]        M           steps/s  throughput the job must have
t        m.t                                the objective of max-min, in units of r_m
=======  ============  ==========  =======  ===========================================================

Valid allocations, sec. 3.1:

.. math::

    \text{throughput}(m, X) = \sum_j T_{mj} X_{mj} + \sum_{p \ni m} \sum_j T_{pj}^m X_{pj} \\
    \sum_j X_{mj} + \sum_{p \ni m} \sum_j X_{pj} \le 1 \;\forall m && (time) \\
    \sum_{j \in a} \bigl( \sum_m s_m X_{mj} + \sum_p s_p X_{pj} \bigr) \le W_a \;\forall a && (workers)

A type is usually an accelerator of its own; placement-sensitive throughputs (sec. 3.1) make two
types, consolidated and not, that draw on the same accelerator. Pairs need equal gangs.

Models carry no numbers: throughputs, weights and capacities are mutable Params that
``compile_model(model, data)`` fills, so that a model is compiled once for a number of jobs, whatever their names.
Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s.

Kind: fluid, i.e. a relaxation of gangs and rounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names
from shadowprice.models.arrays import subsets, tuples
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.gavel.workspace"
REFERENCE = "tests/solvers/gavel/test_allocation_laws.py"

_NOBODY: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Shape:
    """Index sets of a model, without its coefficients.

    Parameters
    ----------
    jobs : Names
        Jobs M. Few models read their names, and who does not is the same model for as many others.
    types : tuple of str
        GPU types J.
    draws : tuple of tuple of str, optional
        Types that draw on each accelerator of A, which has the name of the first of them; if there are none, each
        type is an accelerator of its own.
    first, second : ndarray of int, optional
        Jobs of each pair, by position.
    entities : sequence of str, optional
        User of each job.

    Examples
    --------
    >>> shape = Shape.of(["ada-1", "bob-1"], ["v100", "k80"])
    >>> len(shape.jobs), shape.jobs[1], shape.types[0]
    (2, 'bob-1', 'v100')
    """

    jobs: Names
    types: tuple[str, ...]
    draws: tuple[tuple[str, ...], ...] = ()
    first: NDArray[np.int64] = field(default_factory=lambda: _NOBODY, repr=False)
    second: NDArray[np.int64] = field(default_factory=lambda: _NOBODY, repr=False)
    entities: Sequence[str] | NDArray[np.object_] = field(default=(), repr=False)

    @classmethod
    def of(cls, jobs: Sequence[str] | NDArray[np.object_], types: Sequence[str]) -> Shape:
        """Jobs and GPU types by name, each type an accelerator of its own."""
        return cls(Names(jobs), tuple(types))

    @property
    def pairs(self) -> int:
        """Size of P."""
        return len(self.first)

    @property
    def accelerators(self) -> dict[str, tuple[str, ...]]:
        """Types that draw on each accelerator of A."""
        return {each[0]: each for each in self.draws or tuple((name,) for name in self.types)}

    @cached_property
    def users(self) -> Names:
        """User of each job; one without a name if none are known."""
        return Names.of(list(self.entities) or [""] * len(self.jobs))

    @property
    def users_read(self) -> bool:
        """True if a model has looked at the users: who does not is the same model for others."""
        return "users" in self.__dict__

    @property
    def sizes(self) -> Hashable:
        """All that makes models differ but names of jobs and users."""
        pairs = (self.first.tobytes(), self.second.tobytes())
        return (len(self.jobs), self.types, self.draws, *pairs)


def max_min(shape: Shape) -> pyo.ConcreteModel:
    r"""Max-min fairness, sec. 4.1: :math:`\max t` with throughput(m, X) >= r_m t for all m.

    With r_m = w_m throughput(m, X_equal) / s_m it is least attained service; with r_m the steps
    left of each job it is the makespan (sec. 4.2), t being its inverse.
    """
    with traced():
        m = _valid_allocations(shape, "max_min")
        m.r = pyo.Param(m.M, mutable=True)
        m.t = pyo.Var(bounds=(0, None))

        @m.Objective(sense=pyo.maximize)
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            return m.t

        @m.Constraint(m.M, doc="fairness")
        def fair(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return throughput(m, i) >= m.r[i] * m.t

    return m


def max_total(shape: Shape) -> pyo.ConcreteModel:
    r"""Total value, sec. 4.2: :math:`\max \sum v_{mj} X_{mj}`, with a minimum throughput for each job.

    v_mj = T_mj is the total throughput (the paper prints 'Minimize'); T_mj / price_j what Gavel's
    code calls cost; T_mj / T_fastest times the place in a queue FIFO and SJF. f_m = steps left /
    time to the deadline is an SLO.
    """
    with traced():
        m = _valid_allocations(shape, "max_total")
        _values(m, shape)
        m.f = pyo.Param(m.M, mutable=True)

        @m.Objective(sense=pyo.maximize)
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            return _total(m, "v", shape)

        @m.Constraint(m.M, doc="SLO")
        def slo(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return throughput(m, i) >= m.f[i]

    return m


def min_cost(shape: Shape) -> pyo.ConcreteModel:
    r"""Throughput per dollar, sec. 4.2: :math:`\max \sum v_{mj} X_{mj} / \sum c_{mj} X_{mj}`, as a linear programme.

    Charnes and Cooper (1962): with k = 1 / sum c X and X' = k X the ratio is linear in (X', k).
    Here x, y stand for X', and an allocation is x / k.
    """
    with traced():
        m = _valid_allocations(shape, "min_cost", scaled=True)
        _values(m, shape)
        m.c = pyo.Param(m.M, m.J, mutable=True)
        if shape.pairs:
            m.c2 = pyo.Param(m.P, m.J, mutable=True)
        m.f = pyo.Param(m.M, mutable=True)

        @m.Objective(sense=pyo.maximize)
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            return _total(m, "v", shape)

        @m.Constraint(doc="the cost is 1")
        def unit_cost(m: pyo.ConcreteModel) -> RelationalExpression:
            return _total(m, "c", shape) == 1

        @m.Constraint(m.M, doc="SLO")
        def slo(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return throughput(m, i) >= m.f[i] * m.k

    return m


def most_slos(shape: Shape) -> pyo.ConcreteModel:
    r"""As many SLOs as can hold together: :math:`\max \sum z_m`, throughput(m, X) >= f_m z_m, z binary.

    Derived; Gavel's code drops all SLOs when they cannot hold together.
    """
    with traced():
        m = _valid_allocations(shape, "most_slos")
        m.f = pyo.Param(m.M, mutable=True)
        m.z = pyo.Var(m.M, domain=pyo.Binary, dense=False)

        @m.Objective(sense=pyo.maximize)
        def objective(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.z[i] for i in m.M)

        @m.Constraint(m.M, doc="SLO, if it is kept")
        def slo(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
            return throughput(m, i) >= m.f[i] * m.z[i]

    return m


OF_ANY_SIZE = (max_min, max_total, min_cost, most_slos)
"""Models in which jobs that do not share have terms in columns of their own alone: with fewer jobs they are a part.

Under the conditions of ``CompiledModel.first``, one model then serves any number of jobs. A model that is edited, here
or by a function that it calls, may break them: before it is used so, it is compared with exact ones, and if it
differs, it is compiled for every number of jobs, which takes longer.
"""


def throughput(m: pyo.ConcreteModel, i: str) -> NumericValue:
    """throughput(m, X): steps per second of job i under the allocation."""
    alone = sum(m.T[i, j] * m.x[i, j] for j in m.J)
    if not hasattr(m, "P"):
        return alone
    return (
        alone
        + sum(m.T1[i, l, j] * m.y[i, l, j] for l in m.second_with[i] for j in m.J)
        + sum(m.T2[k, i, j] * m.y[k, i, j] for k in m.first_with[i] for j in m.J)
    )


def users(m: pyo.ConcreteModel, shape: Shape) -> None:
    """Add the set of users m.U, in the order of their first jobs, and the jobs of each, m.jobs_of[u]."""
    m.U = tuples(shape.users.different)
    m.jobs_of = subsets(m.U, shape.users, shape.jobs)


def _valid_allocations(shape: Shape, name: str, *, scaled: bool = False) -> pyo.ConcreteModel:
    """Variables and the constraints of sec. 3.1; multiplied by a variable k if scaled."""
    m = pyo.ConcreteModel(name=name)
    m.M = tuples(shape.jobs)
    m.J = pyo.Set(initialize=shape.types)
    m.A = pyo.Set(initialize=list(shape.accelerators))
    m.types_of = pyo.Set(m.A, initialize=shape.accelerators)
    m.T = pyo.Param(m.M, m.J, mutable=True)
    m.s = pyo.Param(m.M, mutable=True)
    m.W = pyo.Param(m.A, mutable=True)
    m.x = pyo.Var(m.M, m.J, bounds=(0, None), dense=False)
    if scaled:
        m.k = pyo.Var(bounds=(0, None))
    one = m.k if scaled else 1
    if shape.pairs:
        _pairs(m, shape)

    @m.Constraint(m.M, doc="a job is in one place at a time")
    def time(m: pyo.ConcreteModel, i: str) -> RelationalExpression:
        alone = sum(m.x[i, j] for j in m.J)
        if not shape.pairs:
            return alone <= one
        first = sum(m.y[i, l, j] for l in m.second_with[i] for j in m.J)
        second = sum(m.y[k, i, j] for k in m.first_with[i] for j in m.J)
        return alone + first + second <= one

    @m.Constraint(m.A, doc="no more GPUs than there are")
    def workers(m: pyo.ConcreteModel, a: str) -> RelationalExpression:
        alone = sum(m.s[i] * m.x[i, j] for j in m.types_of[a] for i in m.M)
        if not shape.pairs:
            return alone <= m.W[a] * one
        shared = sum(m.s2[k, l] * m.y[k, l, j] for j in m.types_of[a] for k, l in m.P)
        return alone + shared <= m.W[a] * one

    return m


def _pairs(m: pyo.ConcreteModel, shape: Shape) -> None:
    """Pairs, and for each job those who are the second, or the first, of a pair with it."""
    first, second = shape.jobs[shape.first], shape.jobs[shape.second]
    m.P = tuples(first, second)
    m.second_with = subsets(m.M, first, second)
    m.first_with = subsets(m.M, second, first)
    m.T1 = pyo.Param(m.P, m.J, mutable=True)
    m.T2 = pyo.Param(m.P, m.J, mutable=True)
    m.s2 = pyo.Param(m.P, mutable=True)
    m.y = pyo.Var(m.P, m.J, bounds=(0, None), dense=False)


def _values(m: pyo.ConcreteModel, shape: Shape) -> None:
    m.v = pyo.Param(m.M, m.J, mutable=True)
    if shape.pairs:
        m.v2 = pyo.Param(m.P, m.J, mutable=True)


def _total(m: pyo.ConcreteModel, letter: str, shape: Shape) -> NumericValue:
    """Sum over all jobs and pairs of a value times the fraction of time."""
    each = getattr(m, letter)
    total = sum(each[i, j] * m.x[i, j] for i in m.M for j in m.J)
    if shape.pairs:
        both = getattr(m, letter + "2")
        total += sum(both[k, l, j] * m.y[k, l, j] for k, l in m.P for j in m.J)
    return total


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """Max-min fairness of the throughputs of all jobs, as if all were there; r is that of an equal share."""
    seconds = gang_seconds(instance)
    rate = np.where(np.isfinite(seconds), 1.0 / seconds, 0.0)
    gpus, workers = instance.workload.gpus, instance.cluster.gpus_per_type
    types = instance.cluster.gpu_types
    model = max_min(Shape.of(instance.workload.id, types))
    equal = instance.workload.weight * (rate @ (workers / workers.sum())) / gpus
    for parameter, values in (
        (model.T, rate),
        (model.s, gpus),
        (model.W, workers),
        (model.r, equal),
    ):
        keys = list(parameter.index_set())
        parameter.store_values(dict(zip(keys, np.ravel(values).tolist(), strict=True)))
    return model
