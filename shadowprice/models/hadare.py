r"""HadarE's offline programme: which jobs have a copy on which nodes in which rounds, and how much each does.

Source: the problem of Sultana et al., HadarE, arXiv 2503.10918 (recalled); the programme is derived.

==============  ===============  ===========  ======  ===================================================
Symbol          Here             Index set    Unit    Meaning
==============  ===============  ===========  ======  ===================================================
J, H            m.J, m.H                              jobs and nodes, by name
T               m.T                           rounds  rounds 0 .. R - 1; round t lasts from t to t + 1
p_jh            m.p[j, h]        J, H         rounds  time that job j needs if it has only node h
w_j             m.w[j]           J                    weight
k               m.k                           copies  most copies of a job in a round
e               m.e                           rounds  charge of a copy on a node that ran another job last
g               m.g                           rounds  charge of a copy for averaging, if its job has several
x_jht           m.x[j, h, t]     J, H, T              1 if j has a copy on h in round t; from its arrival on
y_jht           m.y[j, h, t]     J, H, T              part of the work of j that this copy does
l_jht           m.l[j, h, t]     J, H, T              1 if j ran on h last before round t
q_jht           m.q[j, h, t]     J, H, T              1 if the copy pays e
s_jt            m.s[j, t]        J, T                 1 if j has several copies in round t
a_jht           m.a[j, h, t]     J, H, T              1 if the copy pays g
C_j             m.C[j]           J            rounds  completion
z               m.z                           rounds  makespan (only for that objective)
==============  ===============  ===========  ======  ===================================================

.. math::

    \min        \sum_j w_j C_j \quad \text{or} \quad \min z                            && (total), (span)  \\
    \text{s.t.} \sum_{ht} y_{jht} = 1                                   \forall j      && (work)           \\
                \sum_j x_{jht} \le 1                                    \forall h, t   && (whole\_node)    \\
                \sum_h x_{jht} \le k                                    \forall j, t   && (copies)         \\
                p_{jh} y_{jht} + e\,q_{jht} + g\,a_{jht} \le x_{jht}    \forall j, h, t && (fits)          \\
                C_j \ge t\,x_{jht} + p_{jh} y_{jht} + e\,q_{jht} + g\,a_{jht} \forall j, h, t && (end)     \\
                z \ge C_j                                               \forall j      && (last)           \\
    e > 0:      l_{jh,t+1} \ge x_{jht}                                  \forall j, h, t && (ran)           \\
                l_{jh,t+1} \ge l_{jht} - \sum_{i \ne j} x_{iht}         \forall j, h, t && (idled)         \\
                \sum_j l_{jht} \le 1                                    \forall h, t   && (one\_last)      \\
                q_{jht} \ge x_{jht} + \sum_{i \ne j} l_{iht} - 1        \forall j, h, t && (restart)       \\
    g > 0:      \sum_h x_{jht} \le 1 + (k - 1) s_{jt}                   \forall j, t   && (several)        \\
                a_{jht} \ge x_{jht} + s_{jt} - 1                        \forall j, h, t && (averaging)

A job's copies end by themselves in its last round, hence (end) has no term for the end of a round.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: relaxation, in one thing: steps may be cut. In whole steps each copy does up to one less in a round. Rounds begin
at multiples of their length, which is without loss where jobs arrive at such times. Round 0 is the first in which a job
may run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names
from shadowprice.instances.terms.copies import CopyRules, total_steps
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "relaxation"
RUNS_IN = "shadowprice.execution.copies.optimal_plan"
REFERENCE = "tests/solvers/hadar/test_copies_optimum.py"

KNOWS = frozenset(
    {
        Feature.COPIES,
        Feature.RATES,
        Feature.TYPES,
        Feature.CPU_MEMORY,  # a copy has all of its node
    }
)

MAX_CELLS = 20_000
"""Jobs times nodes times rounds up to which a model is displayed and solved."""


@dataclass(frozen=True, eq=False)
class CopiesInRounds:
    """Jobs and nodes, with times in rounds.

    Parameters
    ----------
    release : ndarray of int, shape (n,)
        First round of each job.
    alone : ndarray, shape (n, nodes)
        p_jh: rounds that a job needs if it has only this node; infinite where it cannot run.
    weight : ndarray, shape (n,)
    copies : int
        k.
    restart, aggregation : float
        e and g.
    first_round : int
        Rounds before round 0 of the programme, from time 0 on.
    job_names, node_names : sequence of str
        ``job-0``, ... and ``node-0``, ... if there are none.
    """

    release: NDArray[np.int64]
    alone: NDArray[np.float64]
    weight: NDArray[np.float64]
    copies: int
    restart: float = 0.0
    aggregation: float = 0.0
    first_round: int = 0
    job_names: Sequence[str] | NDArray[np.object_] = ()
    node_names: Sequence[str] = ()

    @classmethod
    def of(cls, instance: Instance, *, early: bool = False) -> CopiesInRounds:
        """The jobs of an instance, as copies that use all GPUs of their nodes.

        Parameters
        ----------
        early : bool
            Whether jobs that arrive within a round may begin with it, instead of with the next: then no schedule of
            the instance costs less than the optimum, whenever its rounds begin.

        Raises
        ------
        InputError
            If jobs run as one gang each, the instance says more than is known here, or no step of a job fits a round.
        """
        require(instance, KNOWS, "the programme of copies")
        rules, jobs = instance.copies, instance.workload
        if rules is None:
            raise InputError(f"{jobs.source}: its jobs run as one gang, expected several copies")
        length = int(rules.round_s * TICKS_PER_S)
        arrival = to_ticks(jobs.arrival_s)
        release = arrival // length if early else -(-arrival // length)
        first = int(release.min(initial=arrival.max(initial=0)))
        # What is no float is rounded down, so that the optimum is never above that of the instance.
        restart, aggregation = (
            float(np.nextafter(each / rules.round_s, 0.0))
            for each in (rules.restart_s, rules.aggregation_s)
        )
        return cls(
            release - first,
            _alone(instance, length),
            jobs.weight,
            rules.max_copies,
            restart,
            aggregation,
            first,
            jobs.id,
        )

    def rounds_in_turn(self, *, slowest: bool = False) -> int:
        """Rounds in which some best schedule ends: jobs one after the other, each with its best node in every round.

        From a schedule that ends later, take out the job that ends last, and let it run when the others are done: the
        others pay no more charges without it.

        Parameters
        ----------
        slowest : bool
            With the worst node that each can run on, for programmes that forbid some.
        """
        able = np.isfinite(self.alone)
        worst = np.where(able, self.alone, 0.0).max(axis=1)
        longest = worst if slowest else self.alone.min(axis=1)
        rounds = np.ceil(longest / (1.0 - self.restart) * (1.0 + 1e-9))
        return int(self.release.max(initial=0) + rounds.sum())

    def expect_few(self, rounds: int) -> None:
        """Refuse programmes that are too large to be of use.

        Raises
        ------
        InputError
            If jobs times nodes times rounds are more than :data:`MAX_CELLS`.
        """
        jobs, nodes = self.alone.shape
        if jobs * nodes * rounds > MAX_CELLS:
            raise InputError(
                f"model hadare: {jobs} jobs x {nodes} nodes x {rounds} rounds, expected at most {MAX_CELLS} in all; "
                "longer rounds or fewer jobs make fewer"
            )


def _alone(instance: Instance, length: int) -> NDArray[np.float64]:
    """Time of every job with each node alone [rounds], rounded down, shape (n, nodes).

    Rates are in proportion to GPUs. Infinite where not a step fits a whole round; in rationals.

    Raises
    ------
    InputError
        If that is so on all nodes.
    """
    jobs, nodes = instance.workload, instance.cluster.nodes
    steps, kinds = total_steps(jobs).tolist(), {(node.gpu_type, node.gpus) for node in nodes}
    alone = np.full((len(jobs), len(nodes)), np.inf)
    for job, gang in enumerate(jobs.gpus.tolist()):
        of_kind = {}
        for gpu_type, gpus in kinds:
            rate = Fraction(gpus, gang) * length
            if jobs.throughput is not None:
                column = jobs.gpu_types.index(gpu_type)
                rate *= Fraction(float(jobs.throughput[job, column])) / TICKS_PER_S
            if rate >= 1:
                of_kind[gpu_type, gpus] = float(steps[job] / rate) * (1.0 - 1e-12)
        if not of_kind:
            raise InputError(
                f"{jobs.source}: job {jobs.id[job]!r}: no step fits a round of {length / TICKS_PER_S} s"
            )
        alone[job] = [of_kind.get((node.gpu_type, node.gpus), np.inf) for node in nodes]
    return alone


def build(jobs: CopiesInRounds, rounds: int, *, makespan: bool = False) -> pyo.ConcreteModel:
    """The programme over rounds 0 .. rounds - 1."""
    able = np.isfinite(jobs.alone)
    count, nodes = able.shape
    there = able[:, :, None] & (np.arange(rounds) >= jobs.release[:, None, None])
    job, node, t = np.nonzero(there)
    of_job, of_round = np.nonzero(there.any(axis=1))
    id = Names.known(jobs.job_names, "job", count)
    host = Names.known(jobs.node_names, "node", nodes)
    with traced():
        m = pyo.ConcreteModel(name="hadare")
        m.J, m.H, m.T = tuples(id), tuples(host), pyo.RangeSet(0, rounds - 1)
        m.JHT = tuples(id[job], host[node], t)
        m.JT = tuples(id[of_job], of_round)
        m.HT = tuples(host[np.repeat(np.arange(nodes), rounds)], np.tile(np.arange(rounds), nodes))
        m.copies_of = subsets(m.J, id[job], host[node], t)
        m.nodes_of = subsets(m.JT, (id[job], t), host[node])
        m.jobs_at = subsets(m.HT, (host[node], t), id[job])
        m.p = param(np.where(able, jobs.alone, 0.0), m.J, m.H)
        m.w = param(jobs.weight, m.J)
        m.k, m.e, m.g = param(jobs.copies), param(jobs.restart), param(jobs.aggregation)
        m.x = pyo.Var(m.JHT, domain=pyo.Binary, dense=False)
        m.y = pyo.Var(m.JHT, bounds=(0, 1), dense=False)
        m.q = pyo.Var(m.JHT, bounds=(0, 1), dense=False)
        m.a = pyo.Var(m.JHT, bounds=(0, 1), dense=False)
        m.C = pyo.Var(m.J, bounds=(0, rounds), dense=False)

        @m.Constraint(m.J, doc="every job gets its work")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.y[j, h, t] for h, t in m.copies_of[j]) == 1

        @m.Constraint(m.jobs_at.nonempty, doc="a copy has its node whole")
        def whole_node(m: pyo.ConcreteModel, h: str, t: int) -> RelationalExpression:
            return sum(m.x[j, h, t] for j in m.jobs_at[h, t]) <= 1

        @m.Constraint(m.JT, doc="no more copies than are allowed")
        def copies(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            return sum(m.x[j, h, t] for h in m.nodes_of[j, t]) <= m.k

        @m.Constraint(m.JHT, doc="charges and work fit the round")
        def fits(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
            return (
                m.p[j, h] * m.y[j, h, t] + m.e * m.q[j, h, t] + m.g * m.a[j, h, t] <= m.x[j, h, t]
            )

        @m.Constraint(m.JHT, doc="a job ends when its last copy ends")
        def end(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
            charges = m.e * m.q[j, h, t] + m.g * m.a[j, h, t]
            return m.C[j] >= t * m.x[j, h, t] + m.p[j, h] * m.y[j, h, t] + charges

        if jobs.restart > 0:
            _restarts(m, there)
        if jobs.aggregation > 0:
            _averages(m)
        _objective(m, rounds, makespan)
    return m


def _restarts(m: pyo.ConcreteModel, there: NDArray[np.bool_]) -> None:
    """Charges of nodes that change jobs."""
    job, node, t = np.nonzero(there[:, :, :-1])
    id, host = m.J.columns[0], m.H.columns[0]
    m.before_last = tuples(id[job], host[node], t)
    m.l = pyo.Var(m.JHT, bounds=(0, 1), dense=False)

    @m.Constraint(m.before_last, doc="who runs on a node ran there last")
    def ran(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
        return m.l[j, h, t + 1] >= m.x[j, h, t]

    @m.Constraint(m.before_last, doc="and still if nobody else runs there")
    def idled(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
        others = sum(m.x[i, h, t] for i in m.jobs_at[h, t]) - m.x[j, h, t]
        return m.l[j, h, t + 1] >= m.l[j, h, t] - others

    @m.Constraint(m.jobs_at.nonempty, doc="one job ran there last")
    def one_last(m: pyo.ConcreteModel, h: str, t: int) -> RelationalExpression:
        return sum(m.l[j, h, t] for j in m.jobs_at[h, t]) <= 1

    @m.Constraint(m.JHT, doc="a copy pays where another job ran last")
    def restart(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
        others = sum(m.l[i, h, t] for i in m.jobs_at[h, t]) - m.l[j, h, t]
        return m.q[j, h, t] >= m.x[j, h, t] + others - 1


def _averages(m: pyo.ConcreteModel) -> None:
    """Charges of jobs that have several copies."""
    m.s = pyo.Var(m.JT, domain=pyo.Binary, dense=False)

    @m.Constraint(m.JT, doc="several copies of a job")
    def several(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
        return sum(m.x[j, h, t] for h in m.nodes_of[j, t]) <= 1 + (m.k - 1) * m.s[j, t]

    @m.Constraint(m.JHT, doc="each of several copies pays")
    def averaging(m: pyo.ConcreteModel, j: str, h: str, t: int) -> RelationalExpression:
        return m.a[j, h, t] >= m.x[j, h, t] + m.s[j, t] - 1


def _objective(m: pyo.ConcreteModel, rounds: int, makespan: bool) -> None:
    if makespan:
        m.z = pyo.Var(bounds=(0, rounds))

        @m.Constraint(m.J, doc="no job ends after the makespan")
        def last(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return m.z >= m.C[j]

        @m.Objective(doc="makespan [rounds]")
        def span(m: pyo.ConcreteModel) -> NumericValue:
            return m.z

    else:

        @m.Objective(doc="total weighted completion time [rounds]")
        def total(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.w[j] * m.C[j] for j in m.J)


def of_instance(instance: Instance) -> pyo.ConcreteModel:
    """The programme of an instance; where it has no rules of copies, with the published ones.

    Raises
    ------
    InputError
        If it would have more than :data:`MAX_CELLS` jobs times nodes times rounds.
    """
    if instance.copies is None:
        instance = replace(instance, copies=_published_rules(len(instance.cluster.nodes)))
    jobs = CopiesInRounds.of(instance)
    rounds = jobs.rounds_in_turn()
    jobs.expect_few(rounds)
    return build(jobs, rounds)


def _published_rules(nodes: int) -> CopyRules:
    """Rounds of 360 s, and 10 s for a node that changes jobs (both recalled), with a copy on each node."""
    return CopyRules(round_s=360.0, restart_s=10.0, aggregation_s=0.0, max_copies=nodes)
