r"""MSJ-cap: the load that first come first served carries with gangs of 1 and of all GPUs, and the widest first does.

Statement. :math:`m` GPUs in one pool; a gang has 1 GPU (narrow) or all :math:`m` (wide); nobody shares GPUs,
runs are not interrupted, cost nothing but their time :math:`p_j`, and decisions are made at every event.

(a) All jobs there at 0: under ``fifo`` the last is complete at exactly

.. math:: \sum_{j \text{ wide}} p_j + \sum_R L(R),

over the maximal runs :math:`R` of narrow jobs next to one another in the order of arrival, with :math:`L(R)`
the last completion of :math:`R` on :math:`m` empty GPUs, each job on the first GPU that is free.

(b) All jobs there at 0: under ``msf`` and ``quickswap`` the last is complete by

.. math:: \sum_{j \text{ wide}} p_j + \frac{1}{m} \sum_{j \text{ narrow}} p_j
    + \left(1 - \frac{1}{m}\right) \max_{j \text{ narrow}} p_j .

(c) If a job is wide with probability :math:`q`, and run times are exponential with means :math:`b_1` of narrow
and :math:`b_m` of wide jobs, all independent, then ``fifo`` completes in the long run, with jobs always
waiting,

.. math:: X = \frac{1 / q}{b_m + b_1 \left(\frac{(1 - q)^{m + 1}}{q m} + \sum_{i=1}^m \frac{(1 - q)^i}{i}\right)}

jobs a second, and so carries the load :math:`X (q b_m + (1 - q) b_1 / m)`, below 1 :math:`(m > 1)`; with
Poisson arrivals it is stable below that load and not above.

(d) With such arrivals ``msf`` is stable for every load below 1.

Status. That first come first served may carry little, and the widest first all, is the paper's (Chen et al.,
Performance Evaluation 171, 2026, arXiv 2509.01893; recalled), for FCFS with two classes older; formulas and
proofs here are derived. That FCFS is stable just below its rate with jobs always waiting is the saturation rule
of Baccelli and Foss, J. Applied Probability 32, 1995 (recalled).

Proof.

1. (a) A wide job needs all GPUs: it starts when all before it are complete, and none behind it starts earlier. So
   runs and wide jobs follow one another, and within a run each job takes the first GPU that is free.
2. (b) The widest first runs all wide jobs one after the other, and then the narrow ones, of which none waits beside
   a free GPU; no wide one is left to swap for. When the last to end starts, at s after the wide ones, all GPUs have
   been busy, so that :math:`m s \le \sum p_j - p_{last}` over the narrow (Graham), and it ends at :math:`s +
   p_{last}`.
3. (c) Between wide jobs there are k narrow ones with probability :math:`q (1 - q)^k`. While more than m of them are
   left one ends every :math:`b_1 / m` on average, and i that are left without others end after :math:`b_1 (1 + 1/2 +
   \dots + 1/i)`. So a run of k lasts :math:`b_1 ((k - m)^+ / m + \sum_{i \le \min(k, m)} 1 / i)` on average, and
   :math:`E (k - m)^+ = (1 - q)^{m + 1} / q`, :math:`P(k \ge i) = (1 - q)^i`. There are 1 / q jobs to a wide one.
   Of the time of a run all m GPUs are busy for less than the whole.
4. (d) Look at the moments at which a wide job starts while before it a narrow one ran or none. Narrow jobs that are
   there at them: none, for otherwise one would have started instead. Let w be the work in GPU-seconds there, all of
   it wide. Until the next such moment, T later, wide jobs run until none is left, and then narrow ones until none
   is. GPUs are idle, while there is work, only when fewer than m narrow jobs and no wide one runs. From the first
   time at which fewer than m are left on, the narrow jobs are those of a queue with m servers and a load below 1
   until it is empty, which takes a time of finite mean d, whatever w. So the work changes by
   :math:`E[w'] - w \le -m (1 - \rho) E[T] + m d + o`, where o, the wide work that comes while nobody was there, is
   finite, and :math:`T \ge w / m`. It falls on average by a fixed part of w once w is large: by Foster's criterion
   these moments, and with them the queue, are positive recurrent. Q.E.D.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby

import numpy as np

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.hypotheses import Hypotheses

STATUS = "paper, recalled; formulas and proofs ours, but for the saturation rule"


KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""


def _not_narrow_and_wide_at_0(instance: Instance) -> Iterator[str]:
    """Gangs of neither 1 nor all GPUs, and jobs that arrive after 0."""
    gpus = instance.workload.gpus
    if not np.all((gpus == 1) | (gpus == instance.cluster.total_gpus)):
        yield "gangs of neither 1 nor all GPUs"
    if (instance.workload.arrival_s > 0).any():
        yield "jobs that arrive after 0"


HYPOTHESES = Hypotheses("MSJ-cap", KNOWS, (_not_narrow_and_wide_at_0,))
"""Of (a) and (b)."""


def last_in_order(instance: Instance) -> Fraction:
    """Last completion under first come first served [s], statement (a); O(n log m).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return Fraction(_last_in_order(*_expected(instance)), TICKS_PER_S)


def bound(instance: Instance) -> Fraction:
    """Latest last completion under the widest first [s], statement (b); O(n).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    work, wide, gpus = _expected(instance)
    narrow = [p for p, each in zip(work, wide, strict=True) if not each]
    rest = Fraction(sum(narrow), gpus) + (1 - Fraction(1, gpus)) * max(narrow, default=0)
    return (sum(p for p, each in zip(work, wide, strict=True) if each) + rest) / TICKS_PER_S


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if the last completion of a verified schedule is within (b), as under ``msf`` and ``quickswap``.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return bound(instance) >= _last(schedule)


def check_in_order(instance: Instance, schedule: Schedule) -> bool:
    """True if the last completion of a verified schedule is that of (a), as under ``fifo``.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return last_in_order(instance) == _last(schedule)


def jobs_a_second(gpus: int, wide: float, narrow_s: float, wide_s: float) -> float:
    """X of statement (c).

    Parameters
    ----------
    gpus : int
        m.
    wide : float
        Probability q that a job asks for all GPUs, above 0.
    narrow_s, wide_s : float
        Mean run times [s].
    """
    drained = sum((1 - wide) ** i / i for i in range(1, gpus + 1))
    between_s = narrow_s * ((1 - wide) ** (gpus + 1) / (wide * gpus) + drained)
    return 1 / wide / (wide_s + between_s)


def carried_load(gpus: int, wide: float, narrow_s: float, wide_s: float) -> float:
    """Largest load that first come first served carries, statement (c)."""
    per_job = wide * wide_s + (1 - wide) * narrow_s / gpus
    return jobs_a_second(gpus, wide, narrow_s, wide_s) * per_job


def _last(schedule: Schedule) -> Fraction:
    ends = to_ticks(schedule.end_s)
    return Fraction(int(ends.max(initial=0)), TICKS_PER_S)


def _expected(instance: Instance) -> tuple[list[int], list[bool], int]:
    """Run times [ticks], who is wide, and the number of GPUs."""
    HYPOTHESES.expect(instance)
    gpus = instance.cluster.total_gpus
    # One GPU is all GPUs of a cluster of one.
    wide = (instance.workload.gpus == gpus).tolist()
    return to_ticks(instance.shortest_s).tolist(), wide, gpus


def _last_in_order(work: list[int], wide: list[bool], gpus: int) -> int:
    total = 0
    for all_gpus, run in groupby(zip(work, wide, strict=True), key=lambda each: each[1]):
        times = [p for p, _ in run]
        if all_gpus:
            total += sum(times)
            continue
        ends = [0] * gpus
        for p in times:
            heapq.heapreplace(ends, ends[0] + p)
        total += max(ends)
    return total
