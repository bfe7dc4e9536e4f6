r"""LB-list: the cheapest of all lists of jobs that begin once, each as early as it fits after the one before.

Statement. :math:`m` GPUs, gangs :math:`g_j \le m`, releases :math:`r_j`, weights :math:`w_j \ge 0`; job
:math:`j` holds at least its gang for :math:`\ell_j > 0` without a gap: its start charge, and its shortest run
time. Any schedule in which each job begins once, or in which a job that is stopped loses all that it has done,
and nobody shares GPUs; any placement. A *list* is an order of the jobs, each of which starts as early as it
fits at or after the start of the one before, and is complete :math:`\ell_j` later. Costs are
:math:`\sum_j w_j C_j` or :math:`\max_j C_j`.

(a) No such schedule costs less than the cheapest list.

Let a *beginning* be a set of jobs with their starts, of cost :math:`c` and last start :math:`t`, who hold
:math:`h(s)` GPUs at :math:`s \ge t`, and let others be left.

(b) Some cheapest list from a beginning has next a job :math:`j` such that no job left, started next, would be
complete by the start of :math:`j`, and none left is *preferred* to :math:`j`: one of equal gang and
:math:`\ell`, no later release and no less weight, of two that are equal in these the one with the smaller
number.

(c) If another beginning of the same jobs has :math:`c' \le c`, :math:`t' \le t` and :math:`h'(s) \le h(s)` for
all :math:`s \ge t`, then some list from it costs no more than any list from the first.

(d) For a price :math:`\lambda(s) \ge 0` of a GPU at every moment, a list from a beginning has a total of at
least

.. math:: c + \sum_{j\ \text{left}} \min_{s \ge \max(t, r_j)} \Bigl( w_j (s + \ell_j)
          + g_j \int_s^{s + \ell_j} \lambda \Bigr) - \int_t^\infty \lambda(s)\,(m - h(s))\,ds,

and its last completion is at least :math:`c`, that of each job left as if alone after :math:`t`, and :math:`t`
and the area over :math:`m` of all that is left or held after :math:`t`.

Status. Ours; (a) is the argument of active schedules (Giffler and Thompson, Operations Research 8, 1960), (d)
Lagrangian duality on the capacity, as in LB-plan with plans of one piece.

Proof.

1. A job that begins once holds its gang for :math:`\ell_j` from its start. Of one that loses its work when it is
   stopped the last run does all of it, and the runs before may be left out. What is held beyond the gang, or longer,
   or on which nodes only restricts. So it is enough to bound schedules of intervals :math:`[s_j, s_j + \ell_j)` whose
   gangs add up to at most m at every moment.
2. Let V be the least cost of starting all jobs that are left at or after t, beside the beginning. It is attained,
   for what is allowed is a finite union of closed polyhedra and costs do not fall in any start. Of the cheapest ways
   take one with the least sum of starts. Its first job j starts as early as it fits: between that moment and its
   start only the beginning's jobs run, of which GPUs only become free, so it could be moved there; it would end no
   later, and the sum would be less.
3. Suppose that a job i left, started next, would be complete by the start of j. There it would run beside the
   beginning's jobs alone, for its start is not before that of j in this way; the cost would be no more and the sum of
   starts less, which cannot be. If i is preferred to j, let them exchange their starts: i is released when j
   starts, the later one weighs no more than the earlier, so the cost is no more, and the sum of starts is the same.
   Preference is strict, so after some exchanges nobody left is preferred to the first. What is left of such a way
   is one from the beginning that has its first job, too; and every way from there is one from here. So V is
   the least of V over the next jobs that (b) allows, and by induction the cost of the cheapest list. This is (b), and
   without a beginning (a).
4. What follows the first beginning of (c) starts at or after :math:`t \ge t'`, and fits beside the other: (c).
5. Jobs that are left hold at most m - h(s) GPUs at :math:`s \ge t`. Adding :math:`\lambda` times what they hold less
   that, which is not above 0, to the cost leaves a sum over jobs, each of which is at least its minimum: (d). Q.E.D.

So lists may be cut off that cost at least some number, at any prices, and beginnings that others make needless; if
none is left, no schedule costs less than that number. The search that proposes prices and the number need not be
trusted. Prices are constant on cells of a grid: then the minimum in (d) is at the earliest start, or where the start
or the end of the job is at a border of a cell.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.list_optimum import cheapest_list
from shadowprice.solvers.offline.plan_prices import PlanPrices

STATUS = "ours"

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # of the one start
        Feature.SHARING,  # where no two of the jobs may
        Feature.GRAPHS,  # of all mappings the fastest counts; so with profiles and spreading
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.CORES,  # count as GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # lost runs are left out
    }
)


def bound(instance: Instance, prices: PlanPrices | None = None) -> Fraction:
    """Lower bound of total weighted completion time [s] of schedules in which each job begins once, exactly.

    Parameters
    ----------
    prices : PlanPrices or None
        Prices at which lists are cut off. The bound is the cheapest list's at any prices, unless there are so many
        lists that the search ends before.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If jobs may share GPUs.
    """
    return cheapest_list(_gangs(instance), prices=prices).ticks / TICKS_PER_S


def check(instance: Instance, weighted_completion_s: float | Fraction) -> bool:
    """True if the total weighted completion time [s] of a schedule in which each job begins once respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance)


def _gangs(instance: Instance) -> Relaxation:
    require(instance, KNOWS, "LB-list")
    every = ScheduleClass.allowed(instance, preemptive=False)
    if not every.rigid:
        raise ValueError(f"{every}: expected jobs that hold whole gangs of their own")
    return Relaxation.of(instance)
