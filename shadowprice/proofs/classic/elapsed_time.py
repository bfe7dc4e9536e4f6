r"""SETF-speed: what sharing among those that ran least costs on faster GPUs.

Statement. One machine, jobs with release dates :math:`r_j` and processing times :math:`p_j > 0`, preemption
without cost. SETF, shortest elapsed time first, gives the machine in equal parts to the unfinished jobs on
which it has done least; it does not know :math:`p_j`. On a machine of speed :math:`s = 1 + \varepsilon > 1` it
has, against any schedule of the same jobs on the machine of speed 1, which may know the future,

(a) at every moment at most :math:`(1 + 1 / \varepsilon)\,N(t)` unfinished jobs, where :math:`N(t)` are the
other's;

(b) :math:`\sum_j (C_j - r_j) \le (1 + 1 / \varepsilon)\,\mathrm{OPT}`, with OPT the least total flow time,
that of SRPT.

Without :math:`\varepsilon` no constant is possible for policies that do not know :math:`p_j` (NC-flow).

Status. Classic: Kalyanasundaram and Pruhs, JACM 47(4), 2000 (recalled); the proof here is derived.

Proof. Fix t and another schedule. :math:`e_j` is the work that SETF has done on j by t; D are the jobs that SETF has
left at t and the other has not, U those that the other has left.

1. Let x > 0 and let :math:`t_0` be the least time such that SETF is busy between it and t and raises no job above x
   there. Every job of D with :math:`e_j \le x` came at :math:`t_0` or later: just before it SETF was idle, or at
   work on jobs that had x or more, as all had that were there; j among them would have had its part of the machine,
   and so more than x.
2. Let R be the jobs that came between :math:`t_0` and t with :math:`e_j > 0`. SETF did nothing else there:
   earlier jobs have x or more at :math:`t_0`, for SETF was idle or worked above x. So :math:`\sum_R e_j = s (t - t_0)`
   and :math:`e_j \le x` on R. The other has done at most :math:`t - t_0` on R, and all of
   :math:`p_j \ge e_j` of those in R that are not in U:

   .. math:: \sum_R e_j \ge (1 + \varepsilon) \sum_{R - U} e_j, \quad\text{so}\quad
      \sum_{R \cap U} e_j \ge \varepsilon \sum_{R - U} e_j .

3. With 1, for every x > 0: :math:`\sum_{j \in U,\, e_j \le x} e_j \ge \varepsilon \sum_{j \in D,\, e_j \le x} e_j`.
   Multiply by :math:`x^{-2}` and integrate over x: as :math:`e \int_e^\infty x^{-2} dx = 1` for e > 0, at least
   :math:`\varepsilon |D|` jobs are in U. (Those of D have e > 0: a job that came before t had its part of the machine
   at once, and the other has done nothing of one that came at t.)
4. SETF has left those of D and others, all in U: at most :math:`(1 + 1 / \varepsilon) |U|`. That is (a); the integral
   over t of the number of unfinished jobs is the total flow time, so that (b) follows. Q.E.D.

If the machine was busy below x from the first arrival on, :math:`t_0` is that arrival.

Check. :func:`completions` shares the machine in exact fractions, and :func:`check` compares numbers of unfinished jobs
with SRPT's at every event, and the totals. Rounds or quanta in place of equal shares are not covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.proofs.hypotheses import Hypotheses, not_one_gpu

STATUS = "classic; the proof is derived"


KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("SETF-speed", KNOWS, (not_one_gpu,))


def completions(
    release: Sequence[Fraction], work: Sequence[Fraction], speed: Fraction
) -> list[Fraction]:
    """Completion times under SETF on one machine, exactly; O(n^2) operations.

    Parameters
    ----------
    release, work : sequence of Fraction
        r_j and p_j > 0, in any unit of time.
    speed : Fraction
        Work that the machine does in a unit of time.
    """
    order = sorted(range(len(work)), key=lambda job: release[job])
    ends = [Fraction(0)] * len(work)
    elapsed: dict[int, Fraction] = {}
    now, coming = Fraction(0), 0
    while coming < len(order) or elapsed:
        if not elapsed:
            now = max(now, release[order[coming]])
        while coming < len(order) and release[order[coming]] <= now:
            elapsed[order[coming]] = Fraction(0)
            coming += 1
        least = min(elapsed.values())
        served = [job for job, done in elapsed.items() if done == least]
        others = [done for done in elapsed.values() if done > least]
        # Until one is finished, the others are reached, or somebody comes.
        level = min([*(work[job] for job in served), *others])
        until = now + (level - least) * len(served) / speed
        if coming < len(order) and release[order[coming]] < until:
            until = release[order[coming]]
            level = least + (until - now) * speed / len(served)
        now = until
        for job in served:
            elapsed[job] = level
            if level == work[job]:
                ends[job] = now
                del elapsed[job]
    return ends


def srpt_completions(release: Sequence[Fraction], work: Sequence[Fraction]) -> list[Fraction]:
    """Completion times under SRPT on one machine of speed 1, exactly; O(n^2) operations."""
    left = list(work)
    ends = [Fraction(0)] * len(work)
    there: set[int] = set()
    coming = sorted(range(len(work)), key=lambda job: release[job])
    now = Fraction(0)
    while there or coming:
        if not there:
            now = max(now, release[coming[0]])
        while coming and release[coming[0]] <= now:
            there.add(coming.pop(0))
        job = min(there, key=lambda each: (left[each], each))
        until = now + left[job]
        if coming:
            until = min(until, release[coming[0]])
        left[job] -= until - now
        now = until
        if not left[job]:
            ends[job] = now
            there.remove(job)
    return ends


def factor(speed: Fraction) -> Fraction:
    """1 + 1 / eps for a speed of 1 + eps.

    Raises
    ------
    InputError
        If the speed is not above 1.
    """
    if speed <= 1:
        raise InputError(f"speed {speed}: expected one above 1")
    return 1 + 1 / (speed - 1)


def bound(instance: Instance, speed: Fraction) -> Fraction:
    """Largest total flow time of SETF on a machine of this speed [s], statement (b).

    Raises
    ------
    InputError
        If a hypothesis fails, or the speed is not above 1.
    """
    release, work = _columns(instance)
    flow = sum(srpt_completions(release, work), Fraction(0)) - sum(release, Fraction(0))
    return factor(speed) * flow / TICKS_PER_S


def check(instance: Instance, speed: Fraction, ends_s: Sequence[Fraction]) -> bool:
    """True if completions [s], such as SETF's on a machine of this speed, keep (a) and (b); O(n^2).

    Raises
    ------
    InputError
        If a hypothesis fails, or the speed is not above 1.
    """
    release, work = _columns(instance)
    most, others = factor(speed), srpt_completions(release, work)
    ends = [Fraction(end) * TICKS_PER_S for end in ends_s]
    # Counts rise at arrivals alone, of both by one, and the other's falls at its ends.
    moments = {*release, *others}
    return (
        all(
            _unfinished(release, ends, at) <= most * _unfinished(release, others, at)
            for at in moments
        )
        and sum(ends, Fraction(0)) - sum(release) <= bound(instance, speed) * TICKS_PER_S
    )


def _unfinished(release: Sequence[Fraction], ends: Sequence[Fraction], at: Fraction) -> int:
    """Number of jobs that are there just after a moment."""
    return sum(r <= at < end for r, end in zip(release, ends, strict=True))


def _columns(instance: Instance) -> tuple[list[Fraction], list[Fraction]]:
    """Releases and processing times [ticks]."""
    HYPOTHESES.expect(instance)
    jobs = instance.workload
    return (
        [Fraction(each) for each in to_ticks(jobs.arrival_s).tolist()],
        [Fraction(each) for each in to_ticks(instance.shortest_s).tolist()],
    )
