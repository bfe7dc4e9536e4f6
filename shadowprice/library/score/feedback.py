"""Sentences on a run: what its policy lost, and where."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.analysis.wording import counted
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.library.score.measures import ScoreMeasures, WaitingJob
from shadowprice.library.score.ratios import decimal_text

HOUR_S = 3600.0

_TIMES_AS_LONG = 1.5
"""Mean waiting of wide gangs, over that of the others, from which on it is remarked."""

_REMARKED = 0.05
"""Share of what a job takes longer from which on slower runs are remarked."""


def feedback(measures: ScoreMeasures, cost: Fraction, bound: Fraction, shortest: Fraction) -> str:
    """Sentences on where the cost of a run comes from.

    Parameters
    ----------
    cost, bound : Fraction
        Of the sum of job completion times [ticks].
    shortest : Fraction
        What the jobs would cost if none ever waited [ticks].
    """
    parts = [
        _of_waiting(measures, cost, bound, shortest),
        _of_longest(measures),
        _of_slower(measures),
        _of_idle(measures),
        _of_wide(measures),
        _of_preemption(measures),
    ]
    return " ".join(each for each in parts if each)


def _of_waiting(m: ScoreMeasures, cost: Fraction, bound: Fraction, shortest: Fraction) -> str:
    mine, proven = ((each - shortest) / m.jobs / TICKS_PER_S for each in (cost, bound))
    if cost == bound:
        return f"Optimal: it costs its bound, {_hours(float(mine))} beyond its run time a job."
    return (
        f"At most {decimal_text(cost / bound, 4)} times the optimum: a job takes {_hours(float(mine))} longer than "
        f"its run time on average, of which {_hours(float(proven))} are unavoidable, as the bound proves."
    )


def _of_longest(m: ScoreMeasures) -> str:
    if not m.longest:
        return "No job waited."
    named = ", ".join(map(_waited, m.longest))
    tenth = max(m.jobs // 10, 1)
    who = "the job" if tenth == 1 else f"the {tenth} jobs"
    return f"Longest waits: {named}; {who} that waited longest had {m.waiting_of_top_tenth:.0%} of all waiting."


def _waited(job: WaitingJob) -> str:
    return (
        f"{job.job_id} ({counted(job.gpus, 'GPU')}, {_hours(job.shortest_s)}) {_hours(job.wait_s)}"
    )


def _of_slower(m: ScoreMeasures) -> str:
    if m.mean_slower_s < _REMARKED * (m.mean_wait_s + m.mean_slower_s):
        return ""
    return f"Slower GPUs and checkpoints took {_hours(m.mean_slower_s)} a job."


def _of_idle(m: ScoreMeasures) -> str:
    if not m.idle_gpu_s:
        return "No GPU idled while a job waited that fits."
    return (
        f"{m.idle_gpu_s / HOUR_S:,.1f} GPU-hours ({m.idle_gpu_s / m.gpu_s:.1%}) idled while a job waited that would "
        "have fit."
    )


def _of_wide(m: ScoreMeasures) -> str:
    if not m.wide_jobs or m.wide_wait_s <= _TIMES_AS_LONG * m.narrow_wait_s:
        return ""
    return (
        f"Wide gangs starve: {counted(m.wide_jobs, 'job')} of {m.wide_gpus} GPUs or more waited "
        f"{_hours(m.wide_wait_s)} on average, the others {_hours(m.narrow_wait_s)}."
    )


def _of_preemption(m: ScoreMeasures) -> str:
    lost = []
    if m.charged_gpu_s:
        lost.append(f"{m.charged_gpu_s / HOUR_S:,.1f} GPU-hours of starts and restarts")
    if m.lost_gpu_s:
        lost.append(f"{m.lost_gpu_s / HOUR_S:,.1f} GPU-hours of work that was lost")
    if not lost:
        return f"{counted(m.preemptions, 'preemption')}, at no charge." if m.preemptions else ""
    return f"{counted(m.preemptions, 'preemption')}: {' and '.join(lost)}."


def _hours(seconds: float) -> str:
    """A length of time in the unit in which it is short to say."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 2 * HOUR_S:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / HOUR_S:,.3g} h"
