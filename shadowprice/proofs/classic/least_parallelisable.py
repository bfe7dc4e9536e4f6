r"""LPF-work: least parallelisable first has never more than a few jobs' work beyond any schedule, level by level.

Statement. :math:`N` GPUs in one pool; a gang has one GPU, and job :math:`j` may hold up to :math:`w_j`, at
:math:`k^{p_j}` times its speed on :math:`k` of them, :math:`0 < p_j \le 1`; nobody shares GPUs, widths change
at every event and cost nothing. Let :math:`x_j` be its run time on one GPU, :math:`w_j^{p_j}` its level, and
:math:`l_j = \min(w_j, N)` if its speed-up is linear (:math:`p_j = 1` or :math:`w_j = 1`), else 1. Under ``lpf``
jobs are in order of level, ties by arrival.

(a) Of the jobs up to any level :math:`v`, let :math:`W(t)` be the sum of what is left of :math:`x_j` of those
that are there at :math:`t`, and :math:`W'(t)` the same in any other schedule, in any widths and by those who
know all. Then

.. math:: W(t) \le W'(t) + (N - 1) \max_j \frac{x_j}{l_j} .

(b) Every job is complete by

.. math:: C_j \le r_j + \frac{x_j}{l_j} + \frac{1}{N} \sum_{i \text{ before } j} x_i ,

over the jobs before it in the order, whenever they arrive: none waits for jobs of higher levels.

(c) If all speed-ups are linear, the last is complete, after the first arrival, before twice the least time
after it at which all can be.

(d) If all speed-ups are linear and each :math:`w_j` is 1 or :math:`N` or more, there is at no time more left of
the jobs of one GPU, nor of all jobs, than in any schedule in which a job of one GPU runs only while fewer than
:math:`N` of those that came before it are there (Inelastic-First).

(e) Let run times be exponential, independent of arrivals, which may be any, and unknown, and speed-ups linear.
If they have one mean, then at each time the number of jobs that are there is stochastically the least that any
policy can have; if each :math:`w_j` is 1 or :math:`N` or more, and jobs of one GPU have a mean of their own
that is no larger than the others', then it is the least in expectation. So the mean JCT is the least as well.

(f) If arrivals are Poisson and :math:`x_j / l_j` is bounded, ``lpf`` is stable for every load
:math:`\lambda E[x] / N` below 1; above 1 nothing is.

Times are whole ticks: a job holds its GPUs to the end of the tick that completes it. That adds :math:`N`
GPU-ticks to
(a) and (d) and a tick to (b) for each of the jobs that are spoken of.

Status. (e) is the papers': Berg, Moseley, Wang and Harchol-Balter, arXiv 2404.00346, for one mean (read in a
summary), and for jobs of one and of all GPUs Berg, Harchol-Balter, Moseley, Wang and Whitehouse, SPAA 2020,
arXiv 2005.09745 (the abstract was read). The proofs here are derived, of (d) after the sample path argument
that the abstract names; (a) to (c) and (f) are ours, by standard arguments.
Remarks. Not claimed: that it is
asymptotically optimal for other means in light load, and that in heavy load it is not, which is the first
paper's main result.

Proof.

1. GPUs are given in order, :math:`l_j` to each until none is left, and only then does a job hold more. On
   :math:`l_j` or fewer it works at a speed of as many GPUs, on k at no more than k. So if the jobs
   up to a level work at less than N, each that is there holds its :math:`l_j`, and these add up to N - 1 at most.
2. (a) Let s be the last time up to t at which the jobs up to v worked at less than N, or 0. Then :math:`W(s) \le \sum
   l_j x_j / l_j \le (N - 1) \max x_j / l_j` just before the arrivals at s, and from s to t W falls at the rate N, which
   no schedule exceeds, and rises by the same arrivals as :math:`W'`.
3. (b) While j is there and holds less than :math:`l_j`, all N GPUs do work of j and of those before it, by 1. Let a be
   what is done of j in that time; it lasts for at most :math:`(a + \sum x_i) / N`, and the rest for at most
   :math:`(x_j - a) / l_j`. As :math:`l_j \le N` the sum is largest for a = 0.
4. (c) Let the first arrive at 0. No schedule completes all before :math:`r_j + x_j / l_j`, nor before
   :math:`\sum x_i / N`, j included.
5. (d) No job of one GPU ever has less left in the other schedule, by induction in the order of arrival: if that one
   serves it, fewer than N earlier ones are there, so no more under lpf, which gives it its GPU, if it is not complete.
   This is the first half. If under lpf all GPUs work, what is left of all falls as fast as it can.
   If not, no job of N GPUs is there, and all that is left is of jobs of one GPU. So the difference is not above 0 at
   such moments, and does not rise between them.
6. (e), one mean. Let services be those of N Poisson processes, one a GPU, of which each completes a job that
   holds its GPU; in either schedule the first GPUs serve the lowest levels. Let T be the number of jobs up to
   level v. It is never larger under lpf, for any v: arrivals keep that. Let it be equal before a service, while those
   up to lower levels are no larger. Then what the jobs up to v can use, :math:`\sum w_i n_i`, is no smaller under
   lpf: with T given it falls with the numbers up to lower levels. So if a GPU serves a job up to v in the other
   schedule it does so under lpf, and if T falls there it falls here.
7. (e), two means. Whoever is not told run times loses nothing by serving jobs of one GPU in order of arrival, with as
   many GPUs at each time: what is left of each is exponential, whatever was done. By (d) the expectations of what is
   left of the jobs of one GPU, and of all, are then the least. The expected number of jobs is what is left over
   the mean, :math:`E W_1 / b_1 + E (W - W_1) / b_N = E W / b_N + E W_1 (1 / b_1 - 1 / b_N)`, where both
   coefficients are at least 0. JCTs are the integral of the number of jobs.
8. (f) By (a) with the schedule of one machine N times as fast, which works whenever there is work: its work is
   positive recurrent for loads below 1, and lpf has at most a constant more. Nobody works faster than N. Q.E.D.

In (d) the order matters: of jobs of one GPU with 1, 1 and 2 to do, on two GPUs, who begins with the longest is done at
2, lpf at 3. With levels between 1 and N (d) fails: of three jobs of 1 on a GPU each and one of 4 on up to two, on
three GPUs, who serves the last first has 1/2 left at 2.5, lpf has 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_of_policy
from shadowprice.proofs.hypotheses import Hypotheses
from shadowprice.proofs.run_speed import width_speed
from shadowprice.solvers.classic.least_parallelisable import LeastParallelisableFirst

STATUS = "ours; papers for (e), with proofs of ours"


@dataclass(frozen=True)
class _Job:
    """r_j and x_j [ticks], l_j, w_j and the level."""

    release: int
    work: int
    linear: int
    widest: int
    level: float


KNOWS: frozenset[Feature] = frozenset({Feature.WIDTHS})
"""Widths, of which it is a theorem. Not throughputs: work is run time on one GPU."""


def _not_of_one_gpu(instance: Instance) -> Iterator[str]:
    """Gangs of more than one GPU."""
    if (instance.workload.gpus != 1).any():
        yield "gangs of more than one GPU"


HYPOTHESES = Hypotheses("LPF-work", KNOWS, (_not_of_one_gpu,))


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses of (c) that a run does not meet, in words."""
    policy = not_of_policy(run, LeastParallelisableFirst, "lpf")
    return missing_in(run, HYPOTHESES, policy, _not_linear(run))


def _not_linear(run: DescribedRun) -> Iterator[str]:
    elastic = run.instance.elasticity
    if elastic is not None and ((elastic.efficiency < 1) & (elastic.widest > 1)).any():
        yield "speed-ups are not linear, of which the theorem knows no least makespan"


def bound(instance: Instance) -> list[Fraction]:
    """Latest completion of each job [s], statement (b); O(n log n).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    jobs, gpus = _jobs(instance), instance.cluster.total_gpus
    latest, before = [Fraction(0)] * len(jobs), 0
    for k, job in sorted(enumerate(jobs), key=lambda each: (each[1].level, each[0])):
        latest[k] = (
            job.release + Fraction(job.work, job.linear) + Fraction(before, gpus)
        ) / TICKS_PER_S
        before += job.work + gpus
        latest[k] += Fraction(1, TICKS_PER_S)
    return latest


def makespan_bound(instance: Instance) -> Fraction:
    """Latest completion of the last job after the first arrival [s], by (b); of one job or more.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return max(bound(instance)) - Fraction(float(instance.workload.arrival_s.min()))


def least_makespan(instance: Instance) -> Fraction:
    """Time after the first arrival before which no schedule completes all jobs [s], as in (c); of one job or more.

    Raises
    ------
    InputError
        If a hypothesis fails, or a speed-up is not linear.
    """
    jobs = _linear(instance)
    alone = max(job.release + Fraction(job.work, job.linear) for job in jobs)
    area = Fraction(sum(job.work for job in jobs), instance.cluster.total_gpus)
    return max(alone - min(job.release for job in jobs), area) / TICKS_PER_S


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if a verified schedule keeps (b), and (a) beside one machine as fast as all GPUs.

    That has the least work left of all schedules, at every time and for every level. O(v (n + R) log R) for R rows and
    v levels.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    jobs, gpus = _jobs(instance), instance.cluster.total_gpus
    end = np.zeros(len(jobs), dtype=np.int64)
    np.maximum.at(end, schedule.job, to_ticks(schedule.end_s))
    latest = bound(instance)
    if any(Fraction(e, TICKS_PER_S) > most for e, most in zip(end.tolist(), latest, strict=True)):
        return False
    for top in sorted({job.level for job in jobs}):
        kept = [k for k, job in enumerate(jobs) if job.level <= top]
        longest = max(Fraction(jobs[k].work, jobs[k].linear) for k in kept)
        more = (gpus - 1) * longest + gpus * len(kept)
        if _lead(_left(instance, schedule, kept), _on_one_machine(jobs, kept, gpus)) > more:
            return False
    return True


def check_dominated(instance: Instance, schedule: Schedule, other: Schedule) -> bool:
    """True if a verified schedule has at no time more left than another one, statement (d).

    Raises
    ------
    InputError
        If a hypothesis fails: on the jobs, or on the order in which the other schedule serves those of one GPU.
    """
    jobs, gpus = _linear(instance), instance.cluster.total_gpus
    if any(1 < job.linear < gpus for job in jobs):
        raise _unknown(instance, "jobs of neither one nor all GPUs")
    narrow = [k for k, job in enumerate(jobs) if job.linear == 1]
    if not _in_order_of_arrival(other, narrow, gpus):
        raise _unknown(instance, "a schedule that serves jobs of one GPU in another order")
    return all(
        _lead(_left(instance, schedule, kept), _left(instance, other, kept)) <= gpus * len(kept)
        for kept in (narrow, list(range(len(jobs))))
    )


@dataclass(frozen=True)
class ExponentialJobs:
    """Jobs that are there at 0, with linear speed-ups and exponential run times, as in (e).

    Parameters
    ----------
    widest : int
        Most GPUs of each.
    mean_s : Fraction
        Mean run time on one GPU [s].
    jobs : int
        How many there are.
    """

    widest: int
    mean_s: Fraction
    jobs: int


def least_mean_total_s(kinds: Sequence[ExponentialJobs], gpus: int) -> Fraction:
    """Least mean total completion time of policies that are not told run times [s]: that of ``lpf``, by (e).

    O(kinds x product of their numbers of jobs).

    Raises
    ------
    InputError
        If there is not one mean, nor jobs of one and of all GPUs only, of which the former are no longer.
    """
    kinds = sorted(kinds, key=lambda kind: kind.widest)
    narrow = {kind.mean_s for kind in kinds if kind.widest == 1}
    wide = {kind.mean_s for kind in kinds if kind.widest >= gpus}
    two = all(kind.widest == 1 or kind.widest >= gpus for kind in kinds)
    two = two and len(narrow) == len(wide) == 1 and max(narrow) <= min(wide)
    if not two and len({kind.mean_s for kind in kinds}) > 1:
        raise InputError(
            "LPF-work: means differ, expected one, or jobs of one and of all GPUs of which the former are no longer"
        )
    # States in an order in which those with a job less come before.
    total: dict[tuple[int, ...], Fraction] = {}
    for counts in product(*(range(kind.jobs + 1) for kind in kinds)):
        room, sums, rates = gpus, Fraction(sum(counts)), Fraction(0)
        for k, kind in enumerate(kinds):
            held = min(kind.widest * counts[k], room)
            room -= held
            if held:
                rates += held / kind.mean_s
                fewer = (*counts[:k], counts[k] - 1, *counts[k + 1 :])
                sums += held / kind.mean_s * total[fewer]
        total[counts] = sums / rates if rates else Fraction(0)
    return total[tuple(kind.jobs for kind in kinds)]


def _jobs(instance: Instance) -> list[_Job]:
    HYPOTHESES.expect(instance)
    jobs, gpus = instance.workload, instance.cluster.total_gpus
    elastic = instance.elasticity
    widest = jobs.gpus if elastic is None else elastic.widest
    speed = _speeds(instance, np.arange(len(jobs)), widest)
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(jobs.work).tolist()
    return [
        _Job(r, x, min(w, gpus) if v == w else 1, w, v)
        for r, x, w, v in zip(release, work, widest.tolist(), speed, strict=True)
    ]


def _linear(instance: Instance) -> list[_Job]:
    jobs = _jobs(instance)
    if any(job.level != job.widest for job in jobs):
        raise _unknown(instance, "speed-ups that are not linear")
    return jobs


def _unknown(instance: Instance, reason: str) -> InputError:
    return InputError(f"{instance.workload.source}: has {reason}, not known to LPF-work")


def _speeds(instance: Instance, job: NDArray[np.int64], width: NDArray[np.int64]) -> list[float]:
    """Speeds of jobs on some widths, in GPUs."""
    elastic = instance.elasticity
    if elastic is None:
        return [1.0] * len(job)
    speeds: list[float] = width_speed(elastic, job, np.ones_like(job), width).tolist()
    return speeds


@dataclass(frozen=True)
class _Piece:
    """Part of a function of time that is linear: from when [ticks], its value there, and its slope."""

    since: Fraction
    value: Fraction
    slope: Fraction


def _left(instance: Instance, schedule: Schedule, chosen: Sequence[int]) -> list[_Piece]:
    """Work that is left of some jobs [GPU-ticks], until the first event 0."""
    jobs = instance.workload
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(jobs.work).tolist()
    wanted = set(chosen)
    width: Counter[tuple[int, int, int]] = Counter()
    start, end = to_ticks(schedule.start_s).tolist(), to_ticks(schedule.end_s).tolist()
    for job, held, s, e in zip(
        schedule.job.tolist(), schedule.gpus.tolist(), start, end, strict=True
    ):
        if job in wanted:
            width[job, s, e] += held
    jumps: dict[int, Fraction] = defaultdict(Fraction)
    slopes: dict[int, Fraction] = defaultdict(Fraction)
    over = {job: Fraction(-work[job]) for job in chosen}
    last = {job: release[job] for job in chosen}
    whose = np.array([job for job, _, _ in width], dtype=np.int64)
    speeds = _speeds(instance, whose, np.array(list(width.values()), dtype=np.int64))
    for (job, s, e), speed in zip(width, map(Fraction, speeds), strict=True):
        slopes[s] -= speed
        slopes[e] += speed
        over[job] += speed * (e - s)
        last[job] = max(last[job], e)
    for job in chosen:
        jumps[release[job]] += work[job]
        # In its last tick a job may be faster than it needs to be.
        jumps[last[job]] += over[job]
    return list(_summed(jumps, slopes))


def _summed(jumps: dict[int, Fraction], slopes: dict[int, Fraction]) -> Iterator[_Piece]:
    value, slope, now = Fraction(0), Fraction(0), 0
    for time in sorted({*jumps, *slopes}):
        value += slope * (time - now) + jumps.get(time, 0)
        slope += slopes.get(time, 0)
        now = time
        yield _Piece(Fraction(time), value, slope)


def _on_one_machine(jobs: Sequence[_Job], chosen: Sequence[int], gpus: int) -> list[_Piece]:
    """Work that is left of some jobs on one machine as fast as all GPUs [GPU-ticks]."""
    come: Counter[int] = Counter()
    for k in chosen:
        come[jobs[k].release] += jobs[k].work
    pieces: list[_Piece] = []
    for time, work in sorted(come.items()):
        left = Fraction(0)
        if pieces:
            before = pieces[-1]
            left = max(before.value - gpus * (time - before.since), Fraction(0))
            pieces += _empty(before, gpus) if not left else []
        pieces.append(_Piece(Fraction(time), left + work, Fraction(-gpus)))
    return pieces + _empty(pieces[-1], gpus) if pieces else []


def _empty(busy: _Piece, gpus: int) -> list[_Piece]:
    return [_Piece(busy.since + busy.value / gpus, Fraction(0), Fraction(0))]


def _lead(one: Sequence[_Piece], other: Sequence[_Piece]) -> Fraction:
    """Largest difference of two such functions, which have their jumps of more than some ticks in common."""
    times = sorted({piece.since for piece in (*one, *other)})
    pairs = zip(_at(one, times), _at(other, times), strict=True)
    return max((mine - theirs for mine, theirs in pairs), default=Fraction(0))


def _at(pieces: Sequence[_Piece], times: Sequence[Fraction]) -> Iterator[Fraction]:
    """Values at some times, in order."""
    here = -1
    for time in times:
        while here + 1 < len(pieces) and pieces[here + 1].since <= time:
            here += 1
        piece = pieces[here] if here >= 0 else _Piece(time, Fraction(0), Fraction(0))
        yield piece.value + piece.slope * (time - piece.since)


def _in_order_of_arrival(schedule: Schedule, narrow: Sequence[int], gpus: int) -> bool:
    """True if each of these jobs runs only while fewer than so many that came before it are there."""
    end: Counter[int] = Counter()
    for job, e in zip(schedule.job.tolist(), schedule.end_s.tolist(), strict=True):
        end[job] = max(end[job], e)
    position = {job: k for k, job in enumerate(narrow)}
    return all(
        sum(end[earlier] > start for earlier in narrow[: position[job]]) < gpus
        for job, start in zip(schedule.job.tolist(), schedule.start_s.tolist(), strict=True)
        if job in position
    )
