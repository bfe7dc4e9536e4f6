r"""HESRPT: the least total completion time of jobs whose speed is a power of the number of their GPUs.

Statement. :math:`N` GPUs, :math:`n` jobs, :math:`0 \le p \le 1`. A job that holds a real number :math:`k \ge 0`
of GPUs works at speed :math:`k^p`; job :math:`j` is complete when it has done :math:`x_j > 0`, in order
:math:`x_1 \ge \dots \ge x_n`. With :math:`a = 1 / (1 - p)`, and :math:`k` for :math:`p = 1`, let

.. math:: c_k = \left(k^a - (k - 1)^a\right)^{1 / a}, \qquad V = N^{-p} \sum_{k=1}^n c_k x_k .

(a) Every schedule, whatever its release dates, has :math:`\sum_j C_j \ge V`.

(b) With all jobs there at 0 it is attained, for :math:`p < 1`, by giving the job with the i-th most left of the
:math:`m` that are not complete the part :math:`\theta_i = (i / m)^a - ((i - 1) / m)^a` of the GPUs.

(c) A gang of :math:`g` GPUs and run time :math:`q` that may hold :math:`w`, at :math:`(w / g)^{p_j}` times its
speed, has in (a) :math:`x_j = q g^p` with :math:`p` the largest :math:`p_j`; whole widths of :math:`g` or more,
charges, placements and nodes that fail only restrict schedules, so that :math:`V` bounds every run from below.

(d) For any :math:`p < 1`, whatever the speeds: a gang that would take :math:`T_j(w)` on :math:`w` GPUs of the
best kind all the time has in (a) :math:`x_j = \min_w T_j(w) w^p`. For a set :math:`S` of jobs let :math:`V(S)`
be :math:`V` of these alone, and :math:`r(S)` the earliest of their release dates. Whatever the groups :math:`G`
into which the jobs are divided,

.. math:: \sum_j w_j C_j \ge \sum_G \int_0^\infty \bigl(|S| \, r(S) + V(S)\bigr) \, dy
          \quad\text{where}\quad S = \{j \in G : w_j > y\} .

Status. (b) is the paper's (Berg, Vesilo and Harchol-Balter, Performance Evaluation 144, 2020; recalled); the
proof here and (a) for any release dates are derived, (c) and (d) are ours.

Proof.

1. Earlier release dates allow all that later ones do: let all be 0. The powers :math:`c_k^a = k^a - (k - 1)^a` add
   up to :math:`m^a` for :math:`k \le m`, and rise with k since :math:`a \ge 1`. Hölder's inequality with exponents a
   and :math:`1 / p` gives for any parts with :math:`\sum_k \theta_k \le 1`

   .. math::

       \sum_{k \le m} c_k \theta_k^p \le \Bigl(\sum_{k \le m} c_k^a\Bigr)^{1 / a}
       \Bigl(\sum_{k \le m} \theta_k\Bigr)^p \le m .

2. (a) With what is left of the jobs for x let V(t) be the same sum, jobs in order of what is left. As c rises, that
   order has the least sum of all, so V is a minimum of linear functions, and at almost every t it falls at the rate
   of one whose order is right: with m jobs left, which have ranks 1 to m, and the others at 0, that is
   :math:`N^{-p} \sum_{k \le m} c_k (N \theta_k)^p \le m`. V ends at 0, so V(0) is at most the integral of m,
   which is the sum of completion times. For p = 1 the rate is :math:`\sum_k k \theta_k \le m` as well.
3. (b) :math:`\theta_k` is in proportion to :math:`c_k^a`, so that Hölder's inequality is an equality and V falls at
   the rate m as long as the order stays. The part and so the speed rises with the rank, hence who has less
   left stays so, and of equals the difference only grows in the order of the ranks.
4. (c) For :math:`w \ge g`, :math:`(w / g)^{p_j} \le (w / g)^p`, and in units of :math:`g^{-p}` the speed is at most
   :math:`w^p`.
5. (d) While j holds w GPUs it does :math:`x_j / T_j(w) \le w^p` a second, for any p. With time counted from r(S) on
   (a) has :math:`\sum_{j \in S} C_j \ge |S| \, r(S) + V(S)`, whatever other jobs do; and :math:`\sum_j w_j C_j` over a
   group is the integral over y of the sum of C_j over those of more weight than y. Q.E.D.

Arithmetic. c_k is rounded down in the 50th digit, and the sum of such numbers with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np

from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.proofs.hypotheses import Hypotheses

STATUS = "paper for (b); ours for (a) with any release dates, (c) and (d)"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.WIDTHS,
        Feature.CHARGES,  # this and the others only restrict schedules
        Feature.SPREAD,
        Feature.FAILURES,
        Feature.CPU_MEMORY,
        Feature.RESTART,
    }
)
HYPOTHESES = Hypotheses("HESRPT", KNOWS)
"""Of (c)."""

DIGITS = 60
_LESS = 1 - Decimal(10) ** -50
"""Factor that makes up for rounding in powers of 60 digits."""


@dataclass(frozen=True)
class GrowingJob:
    """A gang of (d).

    Parameters
    ----------
    release : int
        r_j [ticks].
    weight : Fraction
    times : sequence of (int, int)
        Widths, and T_j of each [ticks].
    """

    release: int
    weight: Fraction
    times: Sequence[tuple[int, int]]

    @property
    def shortest(self) -> int:
        """Least time of the job [ticks]."""
        return min(ticks for _, ticks in self.times)


def missing_hypotheses(instance: Instance) -> tuple[str, ...]:
    """Hypotheses of (c) that an instance does not meet, in words."""
    return HYPOTHESES.missing(instance)


def exponent(instance: Instance) -> Decimal:
    """Largest p_j of an instance: 1 + log2 of the largest efficiency of those that may grow, 0 if none does.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    HYPOTHESES.expect(instance)
    elastic = instance.elasticity
    if elastic is None:
        return Decimal(0)
    grows = elastic.widest > instance.workload.gpus
    if not grows.any():
        return Decimal(0)
    with localcontext(prec=DIGITS):
        efficiency = Decimal(float(elastic.efficiency[grows].max()))
        return 1 + efficiency.ln() / Decimal(2).ln()


def coefficients(count: int, p: Decimal) -> list[Decimal]:
    """c_1, ..., c_n, rounded down in the 50th digit; O(n) powers."""
    if p >= 1:
        return [Decimal(k) for k in range(1, count + 1)]
    with localcontext(prec=DIGITS, Emax=MAX_EMAX):
        a = 1 / (1 - p)
        # k^a - (k - 1)^a, over k^a: the powers themselves are too large where p is close to 1.
        kept = (1 - (Decimal(k - 1) / k) ** a if k > 1 else Decimal(1) for k in range(1, count + 1))
        return [k * each ** (1 - p) * _LESS for k, each in enumerate(kept, 1)]


def least_total(sizes: list[Decimal], gpus: int, p: Decimal) -> Decimal:
    """V for these x_j, rounded down; O(n log n)."""
    with localcontext(prec=DIGITS, rounding=ROUND_FLOOR):
        ordered = sorted(sizes, reverse=True)
        products = zip(coefficients(len(ordered), p), ordered, strict=True)
        return sum((c * x for c, x in products), Decimal(0)) / Decimal(gpus) ** p * _LESS


def least_weighted_total(
    jobs: Sequence[GrowingJob], gpus: int, p: Decimal, cuts: Sequence[int]
) -> Fraction:
    """Bound of (d) [ticks], where groups are of jobs that are released between cuts; O(n log n), n for each weight.

    Of a group the sum of its jobs as if alone is taken where that is more.

    Parameters
    ----------
    p : Decimal
        At least 0, less than 1.
    cuts : sequence of int
        Times in increasing order [ticks]; the groups are of jobs before, between and from them on.
    """
    with localcontext(prec=DIGITS):
        widths = {width for job in jobs for width, _ in job.times}
        factor = {width: (Decimal(width) / gpus) ** p * _LESS for width in widths}
        sizes = [min(Decimal(ticks) * factor[width] for width, ticks in job.times) for job in jobs]
    groups: dict[int, list[int]] = {}
    for j in sorted(range(len(jobs)), key=sizes.__getitem__, reverse=True):
        groups.setdefault(bisect_right(cuts, jobs[j].release), []).append(j)
    c = coefficients(max(map(len, groups.values())), p)
    found = Fraction(0)
    for group in groups.values():
        least = before = Fraction(0)
        for weight in sorted({jobs[j].weight for j in group}):
            some = [j for j in group if jobs[j].weight >= weight]
            with localcontext(prec=DIGITS, rounding=ROUND_FLOOR):
                work = sum((x * sizes[j] for x, j in zip(c, some, strict=False)), Decimal(0))
            since = min(jobs[j].release for j in some) * len(some)
            least += (weight - before) * (since + Fraction(work))
            before = weight
        alone = (jobs[j].weight * (jobs[j].release + jobs[j].shortest) for j in group)
        found += max(least, sum(alone, Fraction(0)))
    return found


def bound(instance: Instance) -> Fraction:
    """V for an instance [s], statement (c).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    p = exponent(instance)
    with localcontext(prec=DIGITS):
        factor = {g: Decimal(g) ** p * _LESS for g in np.unique(instance.workload.gpus).tolist()}
        rows = zip(instance.workload.work.tolist(), instance.workload.gpus.tolist(), strict=True)
        sizes = [Decimal(work) * factor[g] for work, g in rows]
    return Fraction(least_total(sizes, instance.cluster.total_gpus, p))


def check(instance: Instance, total_completion_s: float | Fraction) -> bool:
    """True if a schedule's total completion time [s] respects the bound.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return bound(instance) <= Fraction(total_completion_s)
