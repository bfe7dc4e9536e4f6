r"""Schedules in whole rounds: which runs are such, and what a job's rounds cost at least. HADAR-cert in a certificate.

A run is in whole rounds of length L if each of its gangs begins with a round and ends with one, or with its job. What
is freed by a completion then stays idle until the next round: all gangs of a round are held together at its
beginning, so that what they pay for all of it is at most the price of all GPUs.

A job that takes p_k at the speed of its type k does :math:`L / p_k` of itself in a round at most, so that
:math:`\sum_k x_k L / p_k \ge 1` for the whole numbers x_k of its rounds at these speeds, the one in which it completes
among them; and none begins before its arrival. For any of its speeds, of which it takes p, that times
:math:`p / L`, rounded up, is

.. math:: \sum_k \lceil p / p_k \rceil \, x_k \ge \lceil p / L \rceil

(Chvátal-Gomory, recalled). For each of these conditions, as for the first, the cheapest parts of rounds that meet it
cost no more than any whole rounds that do the job; the largest of these costs is taken. With one speed it is what the
cheapest :math:`\lceil p / L \rceil` rounds cost, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm

from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.hadar.any_schedule import BoundedJob


def in_whole_rounds(outcome: VerifiedRun, length: int) -> bool:
    """True if every gang of a run begins with a round of so many ticks and ends with one, or with its job."""
    return all(
        bool((to_ticks(rows.start_s) % length == 0).all())
        and bool(
            ((rows.end_s == outcome.end_s[rows.job]) | (to_ticks(rows.end_s) % length == 0)).all()
        )
        for rows in _rows(outcome)
    )


def _rows(outcome: VerifiedRun) -> Iterator[Schedule]:
    if isinstance(outcome, Outcome):
        yield outcome.schedule
    elif isinstance(outcome, StreamedOutcome):
        for segment in range(len(outcome.segments.lengths)):
            yield outcome.segments.read(segment)


def whole_round_jobs(job: BoundedJob, length: int) -> tuple[BoundedJob, ...]:
    """Jobs whose cheapest schedules cost no more than the cheapest rounds of a job; the job itself the first."""
    arrival = -(-job.arrival // length) * length
    relaxed = [BoundedJob(job.gpus, arrival, job.ticks, Fraction(1), ())]
    for most in sorted({ticks for ticks in job.ticks if ticks}):
        units = [ticks and -(-most // ticks) for ticks in job.ticks]
        common = lcm(*(each for each in units if each))
        work = -(-most // length) * length * common
        times = tuple(each and work // each for each in units)
        relaxed.append(BoundedJob(job.gpus, arrival, times, Fraction(1, common), ()))
    return tuple(relaxed)


def proposing(job: BoundedJob, length: int) -> BoundedJob:
    """A job in time that is like this one in whole rounds: its times at each speed are rounded up to rounds."""
    times = tuple(-(-ticks // length) * length for ticks in job.ticks)
    return BoundedJob(job.gpus, -(-job.arrival // length) * length, times, Fraction(1), ())
