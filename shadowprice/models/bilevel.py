r"""The worst instance of a list policy, as one mixed-integer programme.

Leader: arrivals, lengths and gangs. Follower: the policy, whose schedule follows from them. The
worst ratio is

.. math:: \max_I \frac{cost(policy, I)}{\min_S cost(S, I)} = \max_{I, S} \frac{cost(policy, I)}{cost(S, I)} ,

since the schedule S that is compared with stands below the fraction: choosing it well is in the
leader's interest too. So no optimality conditions of the offline problem are needed, its
feasible schedules suffice, and what remains of the bilevel problem is that the policy has no choice.
The ratio is maximised by Dinkelbach's method (Management Science 13, 1967): the programme below
maximises :math:`b \, cost(policy) - a \, cost(S)` for a ratio a / b known to be attained; it is the
largest iff the optimum is 0.

Source: derived.

Covered: policies without preemption that start waiting jobs in a fixed order, ``fifo`` (order of
arrival), ``sjf`` (shorter first, ties by arrival), where the first that does not fit blocks
all behind it, and ``fifo-skip``, where it does not.

========  ==================  ============  ======  ============================================
Symbol    Here                Index set     Unit    Meaning
========  ==================  ============  ======  ============================================
J         m.J                                       jobs, in order of arrival
T         m.T                               slots   slots 0 .. H-1
M         m.M                               GPUs    GPUs of the cluster
a / b     m.numerator, ..                           the ratio that is to be exceeded
p, g      P, G                              slots   lengths 1..p_max and gangs 1..g_max
x_jtpg    m.x[j, t, p, g]     J T P G               1 if the policy starts j at t with p, g
y_jtpg    m.y[j, t, p, g]     J T P G               the same in the schedule compared with
a_jt      m.a[j, t]           J T                   1 if j arrives at t
w_jt      (expression)        J T                   1 if j has come but not started after slot t's
                                                    decision: it waits
b_ij      m.b[i, j]           J J                   1 if i comes before j in the policy's order
h_jt      m.h[j, t]           J T                   1 if j waits because it does not fit
v_ijt     m.v[i, j, t]        J J T                 1 if i waits at t and comes before j
========  ==================  ============  ======  ============================================

.. math::

    \max \quad & b \sum_j C_j(x) - a \sum_j C_j(y) \quad (+ (a - b) \sum_j r_j \text{ for flow time}) \\
    \text{s.t.} \quad & \textstyle\sum_{tpg} x_{jtpg} = 1, \;
        \sum_t x_{jtpg} = \sum_t y_{jtpg}                             && (once, same)     \\
    & x, y \text{ start no job before it arrives}                     && (release)        \\
    & usage_t(x) \le M, \; usage_t(y) \le M                           && (capacity)       \\
    & w_{jt} \le h_{jt} + \textstyle\sum_i v_{ijt}, \;
        v_{ijt} \le b_{ij}, \; v_{ijt} \le w_{it}                     && (reason)         \\
    & seen_{jt}(x) + g_j \ge (M + 1) h_{jt}                           && (full)           \\
    & start_{jt} \le 2 - b_{ij} - w_{it}                              && (blocked)

usage counts who runs in slot t, seen those of them that the policy had already served when it came to
j: all when the head blocks (nobody behind a waiting job starts), all but the later jobs that start in
this very slot when it does not (then v = 0, and no row is blocked).

The rules say exactly what the policy does. Let i be the first job in the order that waits at t. All before it
have started or not come. (reason) gives h = 1, so by (full) it does not fit beside those that run, and by
(blocked) none behind it starts. Everybody before it who waited starts, and fits by (capacity).

Sets and Params are made of arrays (:mod:`shadowprice.models.arrays`), each as one of Pyomo's: ``param(v, S)`` is
``pyo.Param(S, initialize=dict(zip(S, v)), mutable=True)``.

Kind: exact for arrivals, lengths and gangs that are whole numbers up to the limits given.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.environ as pyo
from pyomo.core.expr import NumericValue, RelationalExpression

from shadowprice.models.arrays import param
from shadowprice.models.tracing import traced

KIND = "exact"
RUNS_IN = "shadowprice.solvers.offline.worst_case"
REFERENCE = "tests/solvers/offline/test_bilevel.py"


@dataclass(frozen=True)
class Rule:
    """A list policy.

    Parameters
    ----------
    by_length : bool
        Whether shorter jobs come first, ties in order of arrival; otherwise it is that order alone.
    blocks : bool
        Whether a job that does not fit blocks those behind it.
    """

    by_length: bool
    blocks: bool


RULES: dict[str, Rule] = {
    "fifo": Rule(by_length=False, blocks=True),
    "fifo-skip": Rule(by_length=False, blocks=False),
    "sjf": Rule(by_length=True, blocks=True),
}
"""Policies that the programme covers, by name."""


@dataclass(frozen=True)
class InstanceLimits:
    """Sizes of the instances: jobs, GPUs, latest arrival, longest job and widest gang."""

    jobs: int
    gpus: int
    max_arrival: int
    max_work: int
    widest: int

    @property
    def horizon(self) -> int:
        """A slot by which every list schedule has ended."""
        return self.max_arrival + self.jobs * self.max_work


def build(
    rule: Rule, limits: InstanceLimits, ratio: tuple[int, int], *, flow: bool
) -> pyo.ConcreteModel:
    """The programme for a ratio a / b, given as (a, b).

    Parameters
    ----------
    flow : bool
        Costs are total flow time instead of total completion time.
    """
    with traced():
        m = pyo.ConcreteModel(name="bilevel")
        m.J = pyo.RangeSet(0, limits.jobs - 1)
        m.T = pyo.RangeSet(0, limits.horizon - 1)
        m.P = pyo.RangeSet(1, limits.max_work)
        m.G = pyo.RangeSet(1, limits.widest)
        m.R = pyo.RangeSet(0, limits.max_arrival)
        m.M = param(limits.gpus)
        m.numerator, m.denominator = param(ratio[0]), param(ratio[1])
        m.x = pyo.Var(m.J, m.T, m.P, m.G, domain=pyo.Binary, dense=False)
        m.y = pyo.Var(m.J, m.T, m.P, m.G, domain=pyo.Binary, dense=False)
        m.a = pyo.Var(m.J, m.R, domain=pyo.Binary, dense=False)

        @m.Objective(sense=pyo.maximize, doc="b cost(policy) - a cost(schedule) [slots]")
        def lead(m: pyo.ConcreteModel) -> NumericValue:
            cost = sum(
                (t + p) * (m.denominator * m.x[j, t, p, g] - m.numerator * m.y[j, t, p, g])
                for j in m.J
                for t in m.T
                for p in m.P
                for g in m.G
            )
            arrivals = sum(t * m.a[j, t] for j in m.J for t in m.R)
            return cost + (m.numerator - m.denominator) * arrivals if flow else cost

        _feasible(m)
        if rule.by_length:
            _order(m, limits)
        _policy(m, rule)
    return m


def _feasible(m: pyo.ConcreteModel) -> None:
    """Arrivals in order, the first at 0; two feasible schedules of the same jobs."""

    @m.Constraint(m.J, doc="every job arrives once, the first at 0")
    def arrives(m: pyo.ConcreteModel, j: int) -> RelationalExpression:
        return m.a[j, 0] == 1 if j == 0 else sum(m.a[j, t] for t in m.R) == 1

    @m.Constraint(m.J, m.R, doc="jobs arrive in order")
    def in_order(m: pyo.ConcreteModel, j: int, t: int) -> RelationalExpression:
        if j == 0:
            return pyo.Constraint.Skip if t == 0 else m.a[j, t] == 0
        return arrived(m, j, t) <= arrived(m, j - 1, t)

    @m.Constraint(m.J, doc="every job starts once")
    def once(m: pyo.ConcreteModel, j: int) -> RelationalExpression:
        return sum(m.x[j, t, p, g] for t in m.T for p in m.P for g in m.G) == 1

    @m.Constraint(m.J, m.P, m.G, doc="both schedules are of the same jobs")
    def same(m: pyo.ConcreteModel, j: int, p: int, g: int) -> RelationalExpression:
        return sum(m.x[j, t, p, g] - m.y[j, t, p, g] for t in m.T) == 0

    for name, z in (("policy", m.x), ("schedule", m.y)):

        def after(m: pyo.ConcreteModel, j: int, t: int, z: pyo.Var = z) -> RelationalExpression:
            return started(z, m, j, t) <= arrived(m, j, t)

        def room(m: pyo.ConcreteModel, t: int, z: pyo.Var = z) -> RelationalExpression:
            return usage(z, m, t) <= m.M

        m.add_component(f"release_{name}", pyo.Constraint(m.J, m.T, rule=after))
        m.add_component(f"capacity_{name}", pyo.Constraint(m.T, rule=room))


def _order(m: pyo.ConcreteModel, limits: InstanceLimits) -> None:
    """b_ij follows from the lengths: for i < j it is 1 iff p_i <= p_j, for i > j iff p_i < p_j."""
    m.b = pyo.Var(m.J, m.J, domain=pyo.Binary, dense=False)

    @m.Constraint(m.J, m.J, m.P, doc="i comes first if some q has p_i <= q <= p_j, or < at a tie")
    def comes_first(m: pyo.ConcreteModel, i: int, j: int, q: int) -> RelationalExpression:
        if i == j:
            return pyo.Constraint.Skip
        return m.b[i, j] >= shorter(m, i, q if i < j else q - 1) - shorter(m, j, q - 1)

    @m.Constraint(m.J, m.J, doc="one of two comes first")
    def one_first(m: pyo.ConcreteModel, i: int, j: int) -> RelationalExpression:
        return m.b[i, j] + m.b[j, i] == 1 if i < j else pyo.Constraint.Skip

    @m.Constraint(m.J, m.R, m.P, doc="of jobs that arrive together the shorter is named first")
    def named(m: pyo.ConcreteModel, j: int, t: int, q: int) -> RelationalExpression:
        if j + 1 == limits.jobs:
            return pyo.Constraint.Skip
        together = m.a[j, t] + m.a[j + 1, t]
        return shorter(m, j + 1, q) - shorter(m, j, q) <= 2 - together


def _policy(m: pyo.ConcreteModel, rule: Rule) -> None:
    """Add the policy: a waiting job does not fit or, where the head blocks, one before it waits."""
    m.h = pyo.Var(m.J, m.T, domain=pyo.Binary, dense=False)
    if rule.blocks:
        _blocking(m, rule)

    @m.Constraint(m.J, m.T, doc="who waits has a reason")
    def reason(m: pyo.ConcreteModel, j: int, t: int) -> RelationalExpression:
        others = sum(m.v[i, j, t] for i in m.J if i != j) if rule.blocks else 0
        return waits(m, j, t) <= m.h[j, t] + others

    @m.Constraint(m.J, m.T, doc="who does not fit finds the GPUs taken")
    def full(m: pyo.ConcreteModel, j: int, t: int) -> RelationalExpression:
        seen = usage(m.x, m, t)
        if not rule.blocks:
            seen -= sum(g * m.x[i, t, p, g] for i in m.J if i > j for p in m.P for g in m.G)
        gang = sum(g * m.x[j, s, p, g] for s in m.T for p in m.P for g in m.G)
        return seen + gang >= (m.M + 1) * m.h[j, t]


def _blocking(m: pyo.ConcreteModel, rule: Rule) -> None:
    """Nobody starts behind a job that waits."""
    m.v = pyo.Var(m.J, m.J, m.T, domain=pyo.UnitInterval, dense=False)

    def comes_first(i: int, j: int) -> NumericValue:
        if rule.by_length:
            return m.b[i, j]
        return 1 if i < j else 0

    @m.Constraint(m.J, m.J, m.T, doc="i waits ...")
    def ahead_waits(m: pyo.ConcreteModel, i: int, j: int, t: int) -> RelationalExpression:
        return pyo.Constraint.Skip if i == j else m.v[i, j, t] <= waits(m, i, t)

    @m.Constraint(m.J, m.J, m.T, doc="... and comes before j")
    def ahead_first(m: pyo.ConcreteModel, i: int, j: int, t: int) -> RelationalExpression:
        return pyo.Constraint.Skip if i == j else m.v[i, j, t] <= comes_first(i, j)

    @m.Constraint(m.J, m.J, m.T, doc="nobody starts behind a job that waits")
    def blocked(m: pyo.ConcreteModel, i: int, j: int, t: int) -> RelationalExpression:
        if i == j:
            return pyo.Constraint.Skip
        start = sum(m.x[j, t, p, g] for p in m.P for g in m.G)
        return start <= 2 - comes_first(i, j) - waits(m, i, t)


def shorter(m: pyo.ConcreteModel, j: int, q: int) -> NumericValue:
    """1 if job j has length q or less."""
    return sum(m.x[j, t, p, g] for t in m.T for p in m.P if p <= q for g in m.G)


def arrived(m: pyo.ConcreteModel, j: int, t: int) -> NumericValue:
    """1 if job j has arrived by slot t."""
    return sum(m.a[j, r] for r in m.R if r <= t)


def started(z: pyo.Var, m: pyo.ConcreteModel, j: int, t: int) -> NumericValue:
    """1 if job j has started in slot t or before."""
    return sum(z[j, s, p, g] for s in range(t + 1) for p in m.P for g in m.G)


def waits(m: pyo.ConcreteModel, j: int, t: int) -> NumericValue:
    """1 if job j waits after the decision of slot t."""
    return arrived(m, j, t) - started(m.x, m, j, t)


def usage(z: pyo.Var, m: pyo.ConcreteModel, t: int) -> NumericValue:
    """GPUs held in slot t: of those who started in one of the last p slots."""
    return sum(
        g * z[j, s, p, g]
        for j in m.J
        for p in m.P
        for g in m.G
        for s in range(t - p + 1, t + 1)
        if s >= 0
    )


def example() -> pyo.ConcreteModel:
    """First in, first out, with two jobs on one GPU, beside a ratio of 1."""
    return build(RULES["fifo"], InstanceLimits(2, 1, 1, 2, 1), (1, 1), flow=False)
