r"""Gavel's allocation programmes: how much time each job spends on each GPU type.

Source: Narayanan et al., OSDI 2020, sec. 3 and 4.

An allocation says which fraction of wall-clock time each job spends on each GPU type. Every
function below is one programme of the paper; they share the valid allocations of sec. 3.1.

==========  ============  ==========  =========  ==================================================
Symbol      Here          Index set   Unit       Meaning
==========  ============  ==========  =========  ==================================================
m           m.M                                  jobs
j           m.J                                  GPU types
a           m.A                                  accelerators whose GPUs the types draw on
p           m.P                                  pairs of jobs that may share GPUs (space sharing)
X_mj        m.x[m, j]     M, J                   fraction of time m runs alone on type j
X_pj        m.y[p, j]     P, J                   fraction of time pair p runs on type j
T_mj        m.T[m, j]     M, J        steps/s    throughput of m alone on type j
T_pj^m      m.T1, m.T2    P, J        steps/s    throughputs of the first and second job of p
s_m         m.s[m]        M           GPUs       gang (scale factor); m.s2[p] of a pair
n_m         m.n[m]        M                      equal jobs a row stands for (1, unless merged)
W_a         m.W[a]        A           GPUs       number of workers
r_m         m.r[m]        M           steps/s    throughput that counts as 1 for job m
v_mj        m.v[m, j]     M, J                   value of a unit of time; m.v2[p, j] of a pair
c_mj        m.c[m, j]     M, J        $/s        cost of a unit of time; m.c2[p, j] of a pair
f_m         m.f[m]        M           steps/s    throughput the job must have
t           m.t                                  the objective of max-min, in units of r_m
==========  ============  ==========  =========  ==================================================

Valid allocations, sec. 3.1:

.. math::

    \text{throughput}(m, X) = \sum_j T_{mj} X_{mj} + \sum_{p \ni m} \sum_j T_{pj}^m X_{pj} \\
    \sum_j X_{mj} + \sum_{p \ni m} \sum_j X_{pj} \le 1 \;\forall m && (time) \\
    \sum_{j \in a} \bigl( \sum_m s_m X_{mj} + \sum_p s_p X_{pj} \bigr) \le W_a \;\forall a && (workers)

A type is usually an accelerator of its own; placement-sensitive throughputs (sec. 3.1) make two
types, consolidated and not, that draw on the same accelerator. Pairs need equal gangs.

Models carry no numbers: throughputs, weights and capacities are mutable Params that
``compile_model(model, data)`` fills, so that a model is compiled once for a number of jobs.

Kind: fluid, i.e. a relaxation of gangs and rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pyomo.environ as pyo

from shadowprice.instances.instance import Instance
from shadowprice.models.arrays import NumberSet
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.solvers.gavel.workspace"
REFERENCE = "tests/solvers/gavel/test_allocation_laws.py"


class Users(Sequence[int]):
    """User of each job, counted from 0; knows whether a model has looked at it.

    Few models do, and who does not is the same model for other users.

    Parameters
    ----------
    numbers : sequence of int

    Attributes
    ----------
    read : bool
    """

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self.numbers = tuple(numbers)
        self.read = False

    @overload
    def __getitem__(self, where: int) -> int: ...

    @overload
    def __getitem__(self, where: slice) -> Sequence[int]: ...

    def __getitem__(self, where: int | slice) -> int | Sequence[int]:
        self.read = True
        return self.numbers[where]

    def __len__(self) -> int:
        self.read = True
        return len(self.numbers)


@dataclass(frozen=True)
class Shape:
    """Sizes and index sets of a model, without its coefficients.

    Parameters
    ----------
    jobs, types : int
        Sizes of M and J.
    accelerators : tuple of int
        Accelerator each type draws on.
    first, second : tuple of int
        Jobs of each pair.
    users : Users
        User of each job, in order of their first jobs: see :func:`users`.
    """

    jobs: int
    types: int
    accelerators: tuple[int, ...]
    first: tuple[int, ...] = field(default=(), repr=False)
    second: tuple[int, ...] = field(default=(), repr=False)
    users: Users = field(default_factory=Users, repr=False, compare=False)

    @property
    def pairs(self) -> int:
        """Size of P."""
        return len(self.first)


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
        def objective(m: pyo.ConcreteModel) -> Any:
            return m.t

        @m.Constraint(m.M, doc="fairness")
        def fair(m: pyo.ConcreteModel, i: int) -> Any:
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
        def objective(m: pyo.ConcreteModel) -> Any:
            return _total(m, "v", shape)

        @m.Constraint(m.M, doc="SLO")
        def slo(m: pyo.ConcreteModel, i: int) -> Any:
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
        def objective(m: pyo.ConcreteModel) -> Any:
            return _total(m, "v", shape)

        @m.Constraint(doc="the cost is 1")
        def unit_cost(m: pyo.ConcreteModel) -> Any:
            return _total(m, "c", shape) == 1

        @m.Constraint(m.M, doc="SLO")
        def slo(m: pyo.ConcreteModel, i: int) -> Any:
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
        def objective(m: pyo.ConcreteModel) -> Any:
            return sum(m.z[i] for i in m.M)

        @m.Constraint(m.M, doc="SLO, if it is kept")
        def slo(m: pyo.ConcreteModel, i: int) -> Any:
            return throughput(m, i) >= m.f[i] * m.z[i]

    return m


OF_ANY_SIZE = (max_min, max_total, min_cost, most_slos)
"""Models that know the number of jobs by their set M alone where no jobs share: one model for all sizes of it."""


def throughput(m: pyo.ConcreteModel, i: int) -> Any:
    """throughput(m, X): steps per second of job i under the allocation."""
    alone = sum(m.T[i, j] * m.x[i, j] for j in m.J)
    if not hasattr(m, "P"):
        return alone
    return (
        alone
        + sum(m.T1[p, j] * m.y[p, j] for p in m.first_of[i] for j in m.J)
        + sum(m.T2[p, j] * m.y[p, j] for p in m.second_of[i] for j in m.J)
    )


def users(m: pyo.ConcreteModel, shape: Shape) -> None:
    """Add the set of users m.U and the jobs of each, m.jobs_of[u]; for rows about users."""
    m.U = pyo.RangeSet(0, max(shape.users, default=-1))
    m.jobs_of = pyo.Set(m.U, initialize=_inverse(shape.users, len(m.U)))


def _valid_allocations(shape: Shape, name: str, *, scaled: bool = False) -> Any:
    """Variables and the constraints of sec. 3.1; multiplied by a variable k if scaled."""
    m = pyo.ConcreteModel(name=name)
    m.M = NumberSet(shape.jobs)
    m.J = pyo.RangeSet(0, shape.types - 1)
    m.A = pyo.RangeSet(0, max(shape.accelerators) if shape.accelerators else -1)
    m.types_of = pyo.Set(m.A, initialize=_inverse(shape.accelerators, len(m.A)))
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
    def time(m: pyo.ConcreteModel, i: int) -> Any:
        alone = sum(m.x[i, j] for j in m.J)
        if not shape.pairs:
            return alone <= one
        first = sum(m.y[p, j] for p in m.first_of[i] for j in m.J)
        second = sum(m.y[p, j] for p in m.second_of[i] for j in m.J)
        return alone + first + second <= one

    @m.Constraint(m.A, doc="no more GPUs than there are")
    def workers(m: pyo.ConcreteModel, a: int) -> Any:
        alone = sum(m.s[i] * m.x[i, j] for j in m.types_of[a] for i in m.M)
        if not shape.pairs:
            return alone <= m.W[a] * one
        shared = sum(m.s2[p] * m.y[p, j] for j in m.types_of[a] for p in m.P)
        return alone + shared <= m.W[a] * one

    return m


def _pairs(m: pyo.ConcreteModel, shape: Shape) -> None:
    m.P = pyo.RangeSet(0, shape.pairs - 1)
    m.first_of = pyo.Set(m.M, initialize=_inverse(shape.first, shape.jobs))
    m.second_of = pyo.Set(m.M, initialize=_inverse(shape.second, shape.jobs))
    m.T1 = pyo.Param(m.P, m.J, mutable=True)
    m.T2 = pyo.Param(m.P, m.J, mutable=True)
    m.s2 = pyo.Param(m.P, mutable=True)
    m.y = pyo.Var(m.P, m.J, bounds=(0, None), dense=False)


def _values(m: pyo.ConcreteModel, shape: Shape) -> None:
    m.v = pyo.Param(m.M, m.J, mutable=True)
    if shape.pairs:
        m.v2 = pyo.Param(m.P, m.J, mutable=True)


def _total(m: pyo.ConcreteModel, letter: str, shape: Shape) -> Any:
    """Sum over all jobs and pairs of a value times the fraction of time."""
    each = getattr(m, letter)
    total = sum(each[i, j] * m.x[i, j] for i in m.M for j in m.J)
    if shape.pairs:
        both = getattr(m, letter + "2")
        total += sum(both[p, j] * m.y[p, j] for p in m.P for j in m.J)
    return total


def _inverse(of: Sequence[int], size: int) -> dict[int, list[int]]:
    """Positions at which each number of 0 to size - 1 occurs."""
    found: dict[int, list[int]] = {k: [] for k in range(size)}
    for position, number in enumerate(of):
        found[number].append(position)
    return found


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """Max-min fairness of the throughputs of all jobs, as if all were there; r is that of an equal share."""
    seconds = gang_seconds(instance)
    rate = np.where(np.isfinite(seconds), 1.0 / seconds, 0.0)
    gpus, workers = instance.workload.gpus, instance.cluster.gpus_per_type
    jobs, types = rate.shape
    model: Any = max_min(Shape(jobs, types, tuple(range(types))))
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
