r"""A-SRPT's whole problem: which node hosts which replica and when each job runs; and one machine.

Source: Luo, Liu, Lee, Shroff, arXiv 2501.05563, as recalled; the linearisation and the statement
about one machine derived. Symbols of placements as in :mod:`shadowprice.models.asrpt`.

=========  ===============  =========== =======  ================================================
Symbol     Here             Index set   Unit     Meaning
=========  ===============  =========== =======  ================================================
j          m.J                                   jobs
T          m.T                          slots    slots 0 .. H-1
n_j        jobs.iterations  J                    iterations
delta      jobs.slot_s                  s        length of a slot; m.n[j] is n_j / delta in unit_s
r_j        m.r[j]           J           slots    release
G_m        m.G[m]           M           GPUs     GPUs of a node
alpha_j    m.job[j].alpha   J           unit_s   time of an iteration of j where it is placed
f_jt       m.f[j, t]        J, t >= r_j          1 if j runs in slot t
v_jt       m.v[j, t]        J, t >= r_j          1 if a run of j begins with slot t
o_jt^m     m.o[j, t, m]     J, T, M     GPUs     GPUs of m that j holds in slot t
C_j        m.C[j]           J           slots    completion
=========  ===============  =========== =======  ================================================

.. math::

    \min \sum_j C_j && (total) \\
    \delta \sum_t f_{jt} \ge n_j \alpha_j \;\forall j && (work) \\
    v_{jt} \ge f_{jt} - f_{j,t-1} \;\forall j, t && (begins) \qquad
    \sum_t v_{jt} = 1 \;\forall j && (once) \\
    o_{jt}^m \ge \sum_s x_{js}^m - G_m (1 - f_{jt}) \;\forall j, t, m && (held) \qquad
    \sum_j o_{jt}^m \le G_m \;\forall m, t && (capacity) \\
    C_j \ge (t + 1) f_{jt} \;\forall j, t && (end)

with every job's valid placement and alpha_j as blocks.

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.

Kind: exact on the grid, for a few jobs on a few nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.names import Names
from shadowprice.models import preemptive
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.asrpt import PlacementData, timed_placement
from shadowprice.models.slotted import Slotted
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.asrpt.joint"
REFERENCE = "tests/solvers/asrpt/test_joint.py"


@dataclass(frozen=True)
class Jobs:
    """Jobs on the nodes of a cluster, in slots.

    Parameters
    ----------
    graphs : tuple of JobGraph
    iterations : tuple of int
        n_j.
    release : tuple of int
        r_j [slots].
    nodes : tuple of int
        GPUs of each node.
    network : Network
    slot_s : float
        Length of a slot [s]; a job ends with the slot in which its last iteration ends.
    horizon : int
        H, slots in which all must end.
    job_names : tuple of str
        ``job-0``, ... if there are none.
    """

    graphs: tuple[JobGraph, ...]
    iterations: tuple[int, ...]
    release: tuple[int, ...]
    nodes: tuple[int, ...]
    network: Network
    slot_s: float
    horizon: int
    job_names: tuple[str, ...] = ()


def build(jobs: Jobs) -> pyo.ConcreteModel:
    """Placement and time together: total completion time [slots]."""
    count, release = len(jobs.graphs), np.array(jobs.release)
    given = [PlacementData(graph, jobs.nodes, jobs.network) for graph in jobs.graphs]
    unit_s = np.array([one.unit_s for one in given])
    job = np.repeat(np.arange(count), jobs.horizon - release)
    slot = np.concatenate([np.arange(first, jobs.horizon) for first in jobs.release])
    id, nodes = Names.known(jobs.job_names, "job", count), given[0].nodes
    with traced():
        m = pyo.ConcreteModel(name="asrpt_joint")
        m.J, m.M = tuples(id), tuples(nodes)
        m.T = pyo.RangeSet(0, jobs.horizon - 1)
        m.JT = tuples(id[job], slot)
        m.slots_of = subsets(m.J, id[job], slot)
        m.arrived = subsets(m.T, slot, id[job])
        m.r = param(release, m.J, mutable=False)
        m.n = param(np.array(jobs.iterations) * unit_s / jobs.slot_s, m.J)
        m.G = param(np.array(jobs.nodes), m.M)
        m.job = pyo.Block(m.J)
        for j, one in zip(m.J, given, strict=True):
            timed_placement(m.job[j], one)
        m.f = pyo.Var(m.JT, domain=pyo.Binary, dense=False)
        m.v = pyo.Var(m.JT, domain=pyo.Binary, dense=False)
        m.o = pyo.Var(m.JT, m.M, bounds=(0, None), dense=False)
        m.C = pyo.Var(m.J, bounds=(0, jobs.horizon), dense=False)

        @m.Objective(doc="total completion time [slots]")
        def total(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.C[j] for j in m.J)

        @m.Constraint(m.J, doc="every job gets its iterations")
        def work(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.f[j, t] for t in m.slots_of[j]) >= m.n[j] * m.job[j].alpha

        @m.Constraint(m.JT, doc="where a run begins")
        def begins(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            before = m.f[j, t - 1] if t > m.r[j] else 0
            return m.v[j, t] >= m.f[j, t] - before

        @m.Constraint(m.J, doc="a job runs once")
        def once(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.v[j, t] for t in m.slots_of[j]) == 1

        @m.Constraint(m.JT, m.M, doc="GPUs that are held while it runs")
        def held(m: pyo.ConcreteModel, j: str, t: int, i: str) -> RelationalExpression:
            here = sum(m.job[j].x[s, i] for s in m.job[j].S)
            return m.o[j, t, i] >= here - m.G[i] * (1 - m.f[j, t])

        @m.Constraint(m.M, m.arrived.nonempty, doc="no more GPUs than there are")
        def capacity(m: pyo.ConcreteModel, i: str, t: int) -> RelationalExpression:
            return sum(m.o[j, t, i] for j in m.arrived[t]) <= m.G[i]

        @m.Constraint(m.JT, doc="a job ends after the last slot it runs in")
        def end(m: pyo.ConcreteModel, j: str, t: int) -> RelationalExpression:
            return m.C[j] >= (t + 1) * m.f[j, t]

    return m


def one_machine(jobs: Slotted) -> pyo.ConcreteModel:
    r"""The same jobs on one machine as fast as all GPUs, with preemption; a relaxation.

    *Statement* (A-SRPT's step from its problem A1 to A2, derived): let every job hold g_j of G GPUs
    for p_j slots. Running j on the machine at rate g_j / G while it holds its GPUs is feasible,
    processor sharing with the same completion times; sharing is no better than the best preemptive
    schedule (SRPT). So the optimum here is at most that of the gangs. With p_j = n_j alpha_j^min it
    bounds every placement of them.

    A machine that does G units of work in a slot, in slots of 1 / G of the length, does one: then
    releases G r_j and works g_j p_j are whole, and preemption at whole slots loses nothing.

    Returns
    -------
    ConcreteModel
        :mod:`shadowprice.models.preemptive` on one machine; its objective is G times the total
        completion time [slots].
    """
    capacity, work = jobs.capacity, jobs.gpus * jobs.duration
    ones = np.ones(jobs.jobs, dtype=np.int64)
    scaled = Slotted(
        capacity * jobs.release, work, ones, np.ones(jobs.jobs), 1, jobs.slot_ticks, jobs.exact
    )
    return preemptive.build(scaled, int(capacity * jobs.release.max(initial=0) + work.sum()))


def example() -> pyo.ConcreteModel:
    """Two jobs on one node of 2 GPUs, in 4 slots of a second."""
    graph = JobGraph("example", (Stage("all", 2, 0.5, 0.5),))
    network = Network(300e9, 12.5e9, 2)
    return build(Jobs((graph, graph), (2, 1), (0, 1), (2,), network, 1.0, 4))
