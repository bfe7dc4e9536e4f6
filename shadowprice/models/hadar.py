r"""Hadar's offline programme: which jobs run in which rounds on GPUs of which types, for the most utility.

Source: Sultana, Xu, Wu, Yuan and Tzeng, IPDPS 2024 (recalled): schedule form and dual; the time-indexed
form is made linear by the speed of a gang (derived).

=========  ==============  ===========  ============  =============================================
Symbol     Here            Index set    Unit          Meaning
=========  ==============  ===========  ============  =============================================
J, T       m.J, m.T                                   jobs, by name; rounds 0 .. H-1
h          m.K                                        pools of GPUs, by name: the types, or every node
c_h        m.c[h]          K            GPUs          GPUs of a pool
W_j        m.W[j]          J            GPUs          gang
U_jt       jobs.utility    J, T                       utility if complete by the end of round t
           m.u[j, t]       J, T                       U_jt - U_{j,t+1}
l          m.L             J, speeds                  speeds of a job, fastest first, by the slowest
                                                      GPU type: 'v100' is as fast as on V100s
A_jl       m.fast[j, h]    L            pools         pools at least as fast as speed l: the speeds
                                                      with h in A_jl
q_jl       m.q[j, l]       L                          share of the job that a round at l does
y_jlt      m.y[j, l, t]    L, T                       1 if j runs in round t, no slower than l
w_jht      m.w[j, h, t]    J, K, T      GPUs          GPUs that j holds in pool h
z_jt       m.z[j, t]       J, T                       1 if j is complete by the end of round t
x_s        m.x[s]          S                          1 if schedule s is taken
mu_j       m.mu[j]         J            utility       payoff
k_h(t)     m.k[h, t]       K, T         utility/GPU   price
=========  ==============  ===========  ============  =============================================

.. math::

    \max        \sum_{j,t} (U_{jt} - U_{j,t+1}) z_{jt} \\
    \text{s.t.} z_{jt} \le \sum_{u \le t} \sum_l q_{jl} y_{jlu}               && (work) \\
                z_{j,t-1} \le z_{jt}                                          && (stays) \\
                \sum_j w_{jht} \le c_h                                        && (capacity) \\
                \sum_h w_{jht} = W_j \sum_l y_{jlt}, \; \sum_l y_{jlt} \le 1  && (gang, once) \\
                w_{jht} \le \min(W_j, c_h) \sum_{l: h \in A_{jl}} y_{jlt}     && (speed)

with y_jlt = 0 before the arrival, y and z binary, w whole (these rows alone make w a transportation,
which is whole at a vertex once y is; with further rows it need not be). Schedule form (P) and its dual
(D), S all schedules or some:

.. math::

    (P) \max \sum_s U_s x_s : \sum_{s \in S_j} x_s \le 1, \; \sum_s w_{sh}(t) x_s \le c_h \\
    (D) \min \sum_j \mu_j + \sum_{h,t} c_h k_h(t) : \mu_j \ge U_s - \sum_{h,t} k_h(t) w_{sh}(t)

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``param(v, S)`` is
``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: exact; relaxed, bounds from above.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import effective_throughput
from shadowprice.models.arrays import param
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.hadar.offline.optimum"
REFERENCE = "tests/solvers/hadar/offline/test_hadar_edits.py"

ROUND_S = 360.0
"""Round of Hadar's policies [s], for display."""

MAX_CELLS = 3_000
"""Jobs times rounds up to which the model of an instance is displayed."""


@dataclass(frozen=True)
class GpuSchedule:
    """A column of the schedule form.

    Parameters
    ----------
    job : str
        Name.
    value : float
        Utility.
    gpus : tuple of (int, str, int)
        Triples (round, name of the pool, GPUs) with GPUs > 0.
    """

    job: str
    value: float
    gpus: tuple[tuple[int, str, int], ...]


def time_indexed(
    jobs: RoundJobs,
    *,
    pools: Mapping[str, tuple[str, int]] | None = None,
    relaxed: bool = False,
) -> pyo.ConcreteModel:
    """The time-indexed form, with a pool for every type or, given those, for every node.

    Parameters
    ----------
    pools : mapping of str to (str, int), optional
        GPU type and GPUs of every pool by its name, e.g. ``{"node-0": ("v100", 4)}``.
    relaxed : bool
        Drop integrality.
    """
    if pools is None:
        gpus = zip(jobs.gpu_types, jobs.capacity.tolist(), strict=True)
        pools = {name: (name, count) for name, count in gpus}
    with traced():
        m = _rounds_and_pools(jobs, pools)
        share, whole = (
            (pyo.UnitInterval, pyo.NonNegativeReals)
            if relaxed
            else (pyo.Binary, pyo.NonNegativeIntegers)
        )
        first = dict(zip(m.J, jobs.first.tolist(), strict=True))
        m.y = pyo.Var(m.L, m.T, domain=share, bounds=lambda m, j, l, t: (0, int(t >= first[j])))
        m.z = pyo.Var(m.J, m.T, domain=share)
        m.w = pyo.Var(m.J, m.K, m.T, domain=whole)

        @m.Objective(sense=pyo.maximize, doc="total utility")
        def total(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.u[j, t] * m.z[j, t] for j in m.J for t in m.T)

        @m.Constraint(m.J, m.T, doc="complete only when the work is done")
        def work(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            done = sum(m.q[j, l] * m.y[j, l, u] for l in m.speeds[j] for u in m.until[t])
            return m.z[j, t] <= done

        @m.Constraint(m.J, m.after_first, doc="what is complete stays so")
        def stays(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            return m.z[j, t - 1] <= m.z[j, t]

        @m.Constraint(m.K, m.T, doc="no more GPUs than there are")
        def room(m: pyo.ConcreteModel, h: str, t: int) -> RelationalExpression:
            return sum(m.w[j, h, t] for j in m.J) <= m.c[h]

        @m.Constraint(m.J, m.T, doc="all of the gang or nothing")
        def gang(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            running = sum(m.y[j, l, t] for l in m.speeds[j])
            return sum(m.w[j, h, t] for h in m.K) == m.W[j] * running

        @m.Constraint(m.J, m.T, doc="one speed at a time")
        def once(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            return sum(m.y[j, l, t] for l in m.speeds[j]) <= 1

        @m.Constraint(m.J, m.K, m.T, doc="no type slower than the speed")
        def speed(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
            return m.w[j, h, t] <= m.most[j, h] * sum(m.y[j, l, t] for l in m.fast[j, h])

    return m


def _rounds_and_pools(jobs: RoundJobs, pools: Mapping[str, tuple[str, int]]) -> pyo.ConcreteModel:
    """Sets and Params of the time-indexed form."""
    m = pyo.ConcreteModel(name="hadar_time_indexed")
    utility, gang = jobs.utility.values, jobs.gang
    m.J = pyo.Set(initialize=jobs.id.tolist())
    m.T = pyo.RangeSet(0, jobs.rounds - 1)
    m.after_first = pyo.RangeSet(1, jobs.rounds - 1)
    m.until = pyo.Set(m.T, initialize=lambda m, t: range(t + 1))
    m.K = pyo.Set(initialize=list(pools))
    speeds = {
        (j, jobs.gpu_types[one.slowest]): one
        for j, own in zip(m.J, jobs.speeds, strict=True)
        for one in own
    }
    of_job: dict[str, list[str]] = {j: [] for j in m.J}
    for j, l in speeds:
        of_job[j].append(l)
    type_of = {h: jobs.gpu_types.index(gpu_type) for h, (gpu_type, _) in pools.items()}
    gpus = [count for _, count in pools.values()]
    m.L = pyo.Set(dimen=2, initialize=list(speeds))
    m.speeds = pyo.Set(m.J, initialize=of_job)
    m.fast = pyo.Set(
        m.J,
        m.K,
        initialize=lambda m, j, h: [l for l in of_job[j] if type_of[h] in speeds[j, l].types],
    )
    share = [jobs.utility.round_s / one.seconds for one in speeds.values()]
    m.q = param(np.array(share, dtype=np.float64), m.L, mutable=False)
    m.u = param(utility[:, :-1] - utility[:, 1:], m.J, m.T, mutable=False)
    m.W = param(gang, m.J, mutable=False)
    m.c = param(np.array(gpus, dtype=np.int64), m.K, mutable=False)
    m.most = param(np.minimum.outer(gang, gpus), m.J, m.K, mutable=False)
    return m


def schedule_form(
    schedules: Sequence[GpuSchedule],
    capacity: Mapping[str, int],
    jobs: Sequence[str],
    rounds: int,
    *,
    relaxed: bool = False,
) -> pyo.ConcreteModel:
    """The schedule form (P) over given schedules; (j, n) is the n-th of job j.

    Parameters
    ----------
    capacity : mapping of str to int
        GPUs of each pool, by name.
    """
    m = pyo.ConcreteModel(name="hadar_schedule_form")
    of_index = _by_job(schedules)
    asked = _asked(of_index)
    m.S = pyo.Set(dimen=2, initialize=list(of_index))
    m.J = pyo.Set(initialize=jobs)
    m.K = pyo.Set(initialize=list(capacity))
    m.T = pyo.RangeSet(0, rounds - 1)
    m.x = pyo.Var(m.S, domain=pyo.NonNegativeReals if relaxed else pyo.Binary)

    @m.Objective(sense=pyo.maximize, doc="total utility")
    def total(m: pyo.ConcreteModel) -> NumericValue:
        return sum(one.value * m.x[s] for s, one in of_index.items())

    @m.Constraint(m.J, doc="at most one schedule a job")
    def once(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
        own = [s for s, one in of_index.items() if one.job == j]
        return sum(m.x[s] for s in own) <= 1 if own else pyo.Constraint.Skip

    @m.Constraint(m.K, m.T, doc="no more GPUs than there are")
    def room(m: pyo.ConcreteModel, h: str, t: int) -> RelationalExpression:
        users = asked.get((h, t), [])
        if not users:
            return pyo.Constraint.Skip
        return sum(gpus * m.x[s] for s, gpus in users) <= capacity[h]

    return m


def dual(
    schedules: Sequence[GpuSchedule], capacity: Mapping[str, int], jobs: Sequence[str], rounds: int
) -> pyo.ConcreteModel:
    """The dual (D) of the relaxed schedule form over given schedules, with sets as there."""
    m = pyo.ConcreteModel(name="hadar_dual")
    of_index = _by_job(schedules)
    m.S = pyo.Set(dimen=2, initialize=list(of_index))
    m.J = pyo.Set(initialize=jobs)
    m.K = pyo.Set(initialize=list(capacity))
    m.T = pyo.RangeSet(0, rounds - 1)
    m.mu = pyo.Var(m.J, bounds=(0, None))
    m.k = pyo.Var(m.K, m.T, bounds=(0, None))

    @m.Objective(sense=pyo.minimize, doc="payoffs and the value of all GPUs")
    def total(m: pyo.ConcreteModel) -> NumericValue:
        price = sum(capacity[h] * m.k[h, t] for h in m.K for t in m.T)
        return sum(m.mu[j] for j in m.J) + price

    @m.Constraint(m.S, doc="no schedule pays more than its job's payoff")
    def payoff(m: pyo.ConcreteModel, j: str, n: int) -> RelationalExpression:
        one = of_index[j, n]
        paid = sum(gpus * m.k[h, t] for t, h, gpus in one.gpus)
        return m.mu[j] + paid >= one.value

    return m


def _by_job(schedules: Sequence[GpuSchedule]) -> dict[tuple[str, int], GpuSchedule]:
    """Schedules by job, counted from 0, in the order given."""
    count: Counter[str] = Counter()
    found = {}
    for one in schedules:
        found[one.job, count[one.job]] = one
        count[one.job] += 1
    return found


def _asked(
    schedules: Mapping[tuple[str, int], GpuSchedule],
) -> dict[tuple[str, int], list[tuple[tuple[str, int], int]]]:
    """Schedules and their GPUs by pool and round."""
    asked: dict[tuple[str, int], list[tuple[tuple[str, int], int]]] = {}
    for s, one in schedules.items():
        for t, h, gpus in one.gpus:
            asked.setdefault((h, t), []).append((s, gpus))
    return asked


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The time-indexed form for iterations over time in the system, in :data:`ROUND_S`.

    The rounds suffice for all jobs one after another.

    Raises
    ------
    InputError
        If there are more than :data:`MAX_CELLS` jobs times rounds.
    """
    work_s = float(instance.shortest_s.sum())
    latest_s = float(instance.workload.arrival_s.max(initial=0.0))
    rounds = int(np.ceil(latest_s / ROUND_S) + np.ceil(work_s / ROUND_S)) + len(instance.workload)
    if len(instance.workload) * rounds > MAX_CELLS:
        raise InputError(
            f"model hadar: {len(instance.workload)} jobs and {rounds} rounds of {ROUND_S:g} s, expected "
            f"at most {MAX_CELLS} jobs times rounds"
        )
    return time_indexed(RoundJobs.of(instance, effective_throughput(instance, ROUND_S, rounds)))
