r"""Gandiva's packing and defragmentation as programmes.

Source: Xiao et al., OSDI'18, sec. 3.2.2, which has heuristics only; both programmes are derived.

========  ==============  ===========  =====  ===============================================
Symbol    Here            Index set    Unit   Meaning
========  ==============  ===========  =====  ===============================================
j         m.J                                 jobs
s         m.S                                 packings: sets of jobs that may share GPUs
v_s       m.v[s]          S                   what they make of the GPUs beyond time slicing
x_s       m.x[s]          S                   1 if the packing is made
n         m.N                                 servers
c_n       m.c[n]          N            GPUs   GPUs of a server
g_j       m.g[j]          J            GPUs   gang
o_j       m.home          J, N                (j, n) if j runs on server n; none if it waits
y_jn      m.y[j, n]       J, N                1 if job j is on server n
u_n       m.u[n]          N                   1 if a job is on server n
beta      fragmented                          share of GPUs that may not be free on it
========  ==============  ===========  =====  ===============================================

Maximum-gain packing, a set packing; a matching if all packings are pairs:

.. math:: \max \sum_s v_s x_s \quad \text{s.t.} \sum_{s \ni j} x_s \le 1 \;\forall j && (once)

Defragmentation: the fewest migrations after which all waiting gangs have a server, and, if asked for,
no server with a job has a share beta of its GPUs free (the paper's 3 of 4):

.. math::

    \min \sum_{j: o_j \ge 0} (1 - y_{j o_j}) \quad
    \text{s.t.} & \sum_n y_{jn} = 1                        && (placed) \\
                & \sum_j g_j y_{jn} \le c_n                && (room) \\
                & y_{jn} \le u_n                           && (used) \\
                & \sum_j g_j y_{jn} \ge (\lfloor (1 - \beta) c_n \rfloor + 1) u_n && (dense)

with x, y, u binary. Kind: exact; relaxed, bounds from above (packing) and below (migrations).

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``tuples(a, b)`` is
``pyo.Set(initialize=zip(a, b))``; ``subsets(S, a, b)`` has, for each s of S, the set of b[n] with a[n] = s;
``param(v, S)`` is ``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``. ``id[j]`` are the names of jobs j.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.errors import InputError
from shadowprice.instances.names import Names
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.gandiva.exact"
REFERENCE = "tests/solvers/gandiva/test_gandiva_models.py"


@dataclass(frozen=True)
class Packings:
    """Sets of jobs that may share GPUs.

    Parameters
    ----------
    jobs : int
    members : tuple of tuple of int
        Two or more different jobs each.
    gain : tuple of float
        What each set makes of its GPUs beyond what turns would, in GPUs.
    job_names : sequence of str
        ``job-0``, ... if there are none.

    Raises
    ------
    InputError
        If a set has fewer than two jobs, or jobs that do not exist, or gains are missing.
    """

    jobs: int
    members: tuple[tuple[int, ...], ...]
    gain: tuple[float, ...]
    job_names: Sequence[str] = ()

    @cached_property
    def id(self) -> Names:
        """Name of each job."""
        return Names.known(self.job_names, "job", self.jobs)

    @cached_property
    def sets(self) -> Names:
        """Name of each set, of those of its jobs: ``ada-1+bob-3``; the second set of the same jobs ends in ``#2``."""
        id = self.id.tolist()
        names = ["+".join([id[job] for job in members]) for members in self.members]
        if len(set(names)) < len(names):
            seen: Counter[str] = Counter()
            for k, name in enumerate(names):
                seen[name] += 1
                names[k] = f"{name}#{seen[name]}" if seen[name] > 1 else name
        return Names(names)

    def __post_init__(self) -> None:
        if len(self.members) != len(self.gain):
            raise InputError(
                f"packings: {len(self.members)} sets and {len(self.gain)} gains, expected as many"
            )
        for members, gain in zip(self.members, self.gain, strict=True):
            different = len(set(members)) == len(members) >= 2
            if not different or not all(0 <= job < self.jobs for job in members):
                raise InputError(
                    f"packings: got jobs {members}, expected two or more different ones of 0 to {self.jobs - 1}"
                )
            if not math.isfinite(gain):
                raise InputError(
                    f"packings: the gain of jobs {members} is {gain!r}, expected a number"
                )


@dataclass(frozen=True)
class Homes:
    """Gangs on servers, each on one.

    Parameters
    ----------
    size : tuple of int
        GPUs of each server.
    gang : tuple of int
        GPUs of each job.
    node : tuple of int
        Server of each job, -1 if it waits for one.
    job_names, server_names : sequence of str
        ``job-0``, ... and ``server-0``, ... if there are none.

    Raises
    ------
    InputError
        If a job is on no server there is, or they do not fit.
    """

    size: tuple[int, ...]
    gang: tuple[int, ...]
    node: tuple[int, ...]
    job_names: Sequence[str] = ()
    server_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if len(self.gang) != len(self.node):
            raise InputError(
                f"homes: {len(self.gang)} gangs and {len(self.node)} servers, expected as many"
            )
        load = [0] * len(self.size)
        for job, (gang, node) in enumerate(zip(self.gang, self.node, strict=True)):
            if gang < 1 or not -1 <= node < len(self.size):
                raise InputError(
                    f"homes: job {job} has {gang} GPUs on server {node}, expected at least 1 on -1 to "
                    f"{len(self.size) - 1}"
                )
            if node >= 0:
                load[node] += gang
        for node, (used, size) in enumerate(zip(load, self.size, strict=True)):
            if used > size:
                raise InputError(
                    f"homes: the jobs of server {node} hold {used} GPUs, expected at most {size}"
                )


def packing(packings: Packings, *, relaxed: bool = False) -> pyo.ConcreteModel:
    """Model of packing: the sets of jobs that share GPUs, for the largest total gain."""
    sizes = [len(members) for members in packings.members]
    made = np.repeat(np.arange(len(sizes)), sizes)
    job = np.array([each for members in packings.members for each in members], dtype=np.int64)
    with traced():
        m = pyo.ConcreteModel(name="gandiva_packing")
        m.J, m.S = tuples(packings.id), tuples(packings.sets)
        m.packings_of = subsets(m.J, packings.id[job], packings.sets[made])
        m.v = param(np.array(packings.gain, dtype=np.float64), m.S)
        m.x = pyo.Var(m.S, domain=pyo.UnitInterval if relaxed else pyo.Binary, dense=False)

        @m.Objective(sense=pyo.maximize, doc="gain over time slicing [GPUs]")
        def total(m: pyo.ConcreteModel) -> NumericValue:
            return sum(m.v[s] * m.x[s] for s in m.S)

        @m.Constraint(m.packings_of.nonempty, doc="a job is in one packing")
        def once(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.x[s] for s in m.packings_of[j]) <= 1

    return m


def defragmentation(
    homes: Homes, *, fragmented: Fraction | None = None, relaxed: bool = False
) -> pyo.ConcreteModel:
    """Model of defragmentation: the fewest migrations after which all waiting gangs fit.

    Parameters
    ----------
    fragmented : Fraction, optional
        beta; servers may have any share of their GPUs free if not given.
    """
    size, node = np.array(homes.size, dtype=np.int64), np.array(homes.node, dtype=np.int64)
    id = Names.known(homes.job_names, "job", len(homes.gang))
    server = Names.known(homes.server_names, "server", len(homes.size))
    domain = pyo.UnitInterval if relaxed else pyo.Binary
    with traced():
        m = pyo.ConcreteModel(name="gandiva_defragmentation")
        m.J, m.N = tuples(id), tuples(server)
        m.home = tuples(id[node >= 0], server[node[node >= 0]])
        m.g = param(np.array(homes.gang, dtype=np.int64), m.J)
        m.c = param(size, m.N)
        m.y = pyo.Var(m.J, m.N, domain=domain, dense=False)

        @m.Objective(doc="migrations")
        def migrations(m: pyo.ConcreteModel) -> NumericValue:
            return sum(1 - m.y[j, n] for j, n in m.home)

        @m.Constraint(m.J, doc="every job is on one server")
        def placed(m: pyo.ConcreteModel, j: str) -> RelationalExpression:
            return sum(m.y[j, n] for n in m.N) == 1

        @m.Constraint(m.N, doc="no more GPUs than there are")
        def room(m: pyo.ConcreteModel, n: str) -> RelationalExpression:
            return sum(m.g[j] * m.y[j, n] for j in m.J) <= m.c[n]

        if fragmented is not None:
            # In exact fractions: whole limits must not be lost to rounding.
            least = [math.floor((1 - fragmented) * each) + 1 for each in homes.size]
            m.least = param(np.array(least, dtype=np.int64), m.N)
            m.u = pyo.Var(m.N, domain=domain, dense=False)

            @m.Constraint(m.J, m.N, doc="a server with a job is used")
            def used(m: pyo.ConcreteModel, j: str, n: str) -> RelationalExpression:
                return m.y[j, n] <= m.u[n]

            @m.Constraint(m.N, doc="less than the share beta of a used server is free")
            def dense(m: pyo.ConcreteModel, n: str) -> RelationalExpression:
                return sum(m.g[j] * m.y[j, n] for j in m.J) >= m.least[n] * m.u[n]

    return m


def example() -> pyo.ConcreteModel:
    """Defragmentation: a gang of 2 waits while two servers have a free GPU each."""
    return defragmentation(Homes((2, 2), (1, 1, 2), (0, 1, -1)))
