r"""Lower bounds of the offline optimum in exact arithmetic.

Every bound is computed in whole ticks of 2**-20 s or rationals and rounded down, so that no float error
can lift it above the optimum. ``m`` is the number of GPUs, g_j the gang, p_j the shortest time for which
any schedule has to run the job, w_j the weight. All hold for preemptive schedules and any placement;
proofs are in ``shadowprice.proofs``. They see an instance as :class:`Relaxation`:

*Charges.* A job pays at least one start charge s before it makes any progress, and holds its gang
meanwhile: it holds it for at least s more than it takes to run. Nothing in the proofs asks what a job
does while it runs, so p_j may include s. Restarts and migrations only restrict a schedule further.

*Widths.* A gang of g GPUs that holds w of them is at most w / g times as fast. With p_j the run time
at the best of speeds, :math:`\hat v`, let its *service* be its speed over that. It is at most 1, it
adds up to p_j, and g times it is at most :math:`g (w / g) / \hat v \le w`, what the job holds.

*Sharing.* :mod:`shadowprice.instances.sharing_gain` defines services such that gangs times services
are at most :math:`\kappa m` at every moment, that no job gets more than 1, and that those of j add up
to at least p_j. The proofs ask for nothing else of a schedule: replace "runs" by the service at which
it works. So all bounds hold with :math:`\kappa m` in the place of m. Only that two gangs of more than
m / 2 cannot overlap becomes that the services of such gangs are at most :math:`\kappa` together: at one
moment either one of them runs alone, or two that share. While two share GPUs both may
pay for their starts, hence p_j leaves out s there.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.asrpt.srpt_machine import virtual_completions

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # of the first start; others only restrict
        Feature.SHARING,  # by what pairs gain
        Feature.GRAPHS,  # of all mappings the fastest counts; so with profiles and spreading
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,  # who holds more GPUs is faster by no more than in proportion
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # count as GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

MOST_WIDE = 8
"""Gangs that fit at once, up to which they are looked at apart from others."""


@dataclass(frozen=True, repr=False)
class Bound:
    """No schedule of a class costs less.

    Parameters
    ----------
    ticks : Fraction
        The bound in the objective [ticks], exactly.
    kind : str
        How it was found: ``fluid``, ``job``, ``mean-busy-time``, ``wide-gangs``, ``area``, ``priced-plans``,
        ``configurations``, ``completion-windows``, ``interval-lp``, ``typed-interval-lp``, ``priced-fluid``,
        ``priced-mean-busy-time``, ``priced-span``, ``hesrpt``, of schedules without preemption
        ``list-schedules``, ``time-indexed-lp``, ``branching`` and ``enumeration``, or of what is not certified the
        offline solver that says so, ``milp`` or ``cp-sat``.
    holds_for : ScheduleClass
        Which schedules it is about.
    certified : bool
        Whether it holds in exact arithmetic, whatever a float solver did.
    witness : Schedule, optional
        A schedule that came with it, which may attain it. Nobody has verified it.
    record : dict, optional
        Kind and multipliers as a certificate has them, from which the checker evaluated a bound that is certified.
    parts : tuple of dict
        Records of a certificate that come after it.
    of_class : str
        The class in the words of certificates, of a bound that has a record.
    """

    ticks: Fraction
    kind: str
    holds_for: ScheduleClass
    certified: bool
    witness: Schedule | None = field(default=None, compare=False, repr=False)
    record: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    parts: tuple[Mapping[str, Any], ...] = field(default=(), compare=False, repr=False)
    of_class: str = field(default="", compare=False, repr=False)

    @property
    def value_s(self) -> float:
        """The bound [s], rounded down to a float."""
        return seconds_down(self.ticks)

    def __repr__(self) -> str:
        certified = "certified" if self.certified else "uncertified"
        return f"Bound({self.value_s!r} s of {self.holds_for} by {self.kind}, {certified})"


def seconds_down(ticks: Fraction | int) -> float:
    """Ticks in seconds, rounded down to a float."""
    exact = Fraction(ticks) / TICKS_PER_S
    value = float(exact)
    return float(np.nextafter(value, -np.inf)) if Fraction(value) > exact else value


@dataclass(frozen=True)
class Relaxation:
    """Relaxation of an instance to one machine: work that every schedule has to do; sequences of shape (n,).

    All searches for multipliers take this record. That of an instance is its solvers' reading; a certificate's is what
    the checker makes of the instance's records, the same to the tick but for a gain by sharing, which the checker
    rounds up, and for parts of GPUs in which it counts areas that are no whole gangs.

    Parameters
    ----------
    release, work : list of int
        r_j and p_j [ticks].
    gpus : list of int
        g_j.
    weight : list of Fraction
        w_j.
    total_gpus : int
        m.
    speedup : Fraction
        kappa, 1 where nobody shares GPUs.
    """

    release: list[int]
    work: list[int]
    gpus: list[int]
    weight: list[Fraction]
    total_gpus: int
    speedup: Fraction

    @classmethod
    def of(cls, instance: Instance) -> Relaxation:
        """The jobs of an instance; see the proofs at the top of this file.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``.
        """
        require(instance, KNOWS, "lower bounds")
        jobs, gain = instance.workload, SharingGain.of(instance)
        if gain is None:
            start = int(to_ticks(instance.overheads.start_s))
            work = [ticks + start for ticks in to_ticks(instance.shortest_s).tolist()]
        else:
            work = list(gain.service)
        return cls(
            to_ticks(jobs.arrival_s).tolist(),
            work,
            jobs.gpus.tolist(),
            [Fraction(w) for w in jobs.weight.tolist()],
            instance.cluster.total_gpus,
            Fraction(1) if gain is None else gain.kappa,
        )

    @property
    def capacity(self) -> Fraction:
        """Most service at a moment, kappa m."""
        return self.total_gpus * self.speedup


def fluid_ticks(
    release: list[int],
    work: list[int],
    gpus: list[int],
    capacity: int | Fraction,
    until: int | None = None,
) -> int:
    """Sum C_j of SRPT on one machine with work g_j p_j / m, in ticks, rounded down; LB-fluid.

    O(n log n). In units of 1/m tick everything is a whole number, also where m is a quotient. With ``until`` [ticks]
    jobs count until then at most: sum min(C_j, until).
    """
    capacity, scale = capacity.as_integer_ratio()
    latest = math.inf if until is None else until * capacity
    work = [scale * g * p for g, p in zip(gpus, work, strict=True)]
    completions = virtual_completions([r * capacity for r in release], work)
    return sum(int(min(end, latest)) for _, end in completions) // capacity


def mean_busy_ticks(
    release: list[int],
    work: list[int],
    gpus: list[int],
    weight: list[Fraction],
    capacity: int | Fraction,
) -> int:
    """Sum w_j (M_j + p_j / 2), M_j by preemptive WSPT on one machine, in ticks, rounded down; LB-mbt.

    O(n log n). Each job's term is rounded down by less than one tick.
    """
    area = [g * p for g, p in zip(gpus, work, strict=True)]
    return mean_busy_of_areas(release, work, area, weight, capacity)


def mean_busy_of_areas(
    release: list[int],
    work: list[int],
    area: list[int],
    weight: list[Fraction],
    capacity: int | Fraction,
) -> int:
    """Sum w_j (M_j + p_j / 2), M_j by preemptive WSPT on a machine of a speed with any work, in ticks.

    Parameters
    ----------
    work : list of int
        p_j [ticks].
    area : list of int
        Work of the machine, of which it does ``capacity`` a tick.
    """
    capacity, scale = capacity.as_integer_ratio()
    area = [scale * each for each in area]
    if len(set(weight)) <= 1:
        rank = area
    else:
        by_ratio = sorted(range(len(area)), key=lambda j: -weight[j] / area[j])
        rank = [0] * len(area)
        for position, j in enumerate(by_ratio):
            rank[j] = position
    order = sorted(range(len(area)), key=lambda j: release[j])
    left = list(area)
    twice_integral = [0] * len(area)
    heap: list[tuple[int, int]] = []
    now = k = 0
    while heap or k < len(order):
        if not heap:
            now = max(now, release[order[k]] * capacity)
        while k < len(order) and release[order[k]] * capacity <= now:
            heapq.heappush(heap, (rank[order[k]], order[k]))
            k += 1
        j = heap[0][1]
        until = now + left[j]
        if k < len(order):
            until = min(until, release[order[k]] * capacity)
        twice_integral[j] += (until - now) * (until + now)
        left[j] -= until - now
        now = until
        if not left[j]:
            heapq.heappop(heap)
    terms = zip(weight, twice_integral, area, work, strict=True)
    return sum(
        math.floor(w * Fraction(twice + p * a * capacity, 2 * a * capacity))
        for w, twice, a, p in terms
    )


def wide_gang_ticks(jobs: Relaxation) -> Fraction:
    """Weighted completion time if only gangs of which few fit stand in each other's way, in ticks; LB-wide.

    The largest over q = 1 .. ``MOST_WIDE`` of: jobs of more than m / (q + 1) GPUs, of which at most q run at once,
    on a machine of speed q, by SRPT where they weigh the same and else by their mean busy times; all others
    as if alone. O(n log n). For jobs that hold whole gangs of their own.
    """
    alone = [w * (r + p) for w, r, p in zip(jobs.weight, jobs.release, jobs.work, strict=True)]
    all_alone, best = sum(alone, Fraction(0)), Fraction(0)
    for most in range(1, min(MOST_WIDE, jobs.total_gpus) + 1):
        wide = [j for j, g in enumerate(jobs.gpus) if g * (most + 1) > jobs.total_gpus]
        if not wide:
            continue
        release, work = [jobs.release[j] for j in wide], [jobs.work[j] for j in wide]
        weight, each = [jobs.weight[j] for j in wide], [1] * len(wide)
        ticks = Fraction(mean_busy_ticks(release, work, each, weight, most))
        if len(set(weight)) == 1:
            ticks = max(ticks, weight[0] * fluid_ticks(release, work, each, most))
        best = max(best, ticks + all_alone - sum((alone[j] for j in wide), Fraction(0)))
    return best


def area_ticks(
    release: list[int],
    work: list[int],
    gpus: list[int],
    capacity: int,
    speedup: Fraction = Fraction(1),
) -> int:
    """Earliest possible last completion, in ticks, rounded down.

    The largest over release dates r of r + (work released from r on) / (kappa m), of r + (run times of
    gangs of more than m/2 released from r on, of which one runs at a time, or two that share) / kappa, and
    of r_j + p_j.
    """
    above, below = speedup.as_integer_ratio()
    area = lone = best = 0
    for j in sorted(range(len(release)), key=lambda j: -release[j]):
        area += gpus[j] * work[j]
        lone += work[j] if 2 * gpus[j] > capacity else 0
        shared = max(below * area // (above * capacity), below * lone // above)
        best = max(best, release[j] + max(shared, work[j]))
    return best


def simple_bounds(instance: Instance, objective: Objective) -> Iterator[Bound]:
    """All bounds that take O(n log n); they hold for every schedule that the instance allows."""
    jobs = Relaxation.of(instance)
    every = ScheduleClass.allowed(instance, preemptive=True)
    release, work, gpus, weight = jobs.release, jobs.work, jobs.gpus, jobs.weight
    offset = offset_ticks(weight, release, objective)
    if objective is Objective.MAKESPAN:
        span = area_ticks(release, work, gpus, jobs.total_gpus, jobs.speedup)
        yield bound_of(span - offset, "area", every)
        return
    alone = sum((w * (r + p) for w, r, p in zip(weight, release, work, strict=True)), Fraction(0))
    yield bound_of(alone - offset, "job", every)
    if all(w == weight[0] for w in weight):
        common = weight[0] if weight else Fraction(1)
        fluid = common * fluid_ticks(release, work, gpus, jobs.capacity)
        yield bound_of(fluid - offset, "fluid", every)
    busy = mean_busy_ticks(release, work, gpus, weight, jobs.capacity)
    yield bound_of(busy - offset, "mean-busy-time", every)
    if every.rigid:
        yield bound_of(wide_gang_ticks(jobs) - offset, "wide-gangs", every)


def offset_ticks(
    weight: Sequence[Fraction | int], release: list[int], objective: Objective
) -> Fraction:
    """Constant that the objective subtracts from completion times, in ticks; O(n)."""
    if objective is Objective.FLOW:
        # Weights that are one object are added up first: products of fractions are slow.
        sums: dict[int, tuple[Fraction | int, int]] = {}
        for each, ticks in zip(weight, release, strict=True):
            _, before = sums.get(id(each), (each, 0))
            sums[id(each)] = (each, before + ticks)
        return Fraction(sum(each * ticks for each, ticks in sums.values()))
    return Fraction(min(release, default=0) if objective is Objective.MAKESPAN else 0)


EVERY_RIGID = ScheduleClass(preemptive=True)
"""Preemptive schedules of rigid gangs that have their GPUs to themselves."""


def bound_of(
    ticks: Fraction | int,
    kind: str,
    holds_for: ScheduleClass = EVERY_RIGID,
    *,
    certified: bool = True,
) -> Bound:
    """A bound from ticks; never negative."""
    return Bound(max(Fraction(ticks), Fraction(0)), kind, holds_for, certified)
