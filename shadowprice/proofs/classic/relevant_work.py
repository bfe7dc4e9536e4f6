r"""SF-work: the flow time of ServerFilling-SRPT exceeds the optimum by less than a constant number of mean services.

Statement. :math:`m` GPUs in one pool as in SF-fill: :math:`m` and all gangs :math:`g_j` powers of two, nobody
shares GPUs, runs cost nothing but their time :math:`p_j`, and a decision is made at every arrival and end at
least. Of the jobs that are there the least prefix :math:`M` that asks for :math:`m` GPUs or more, in order of
remaining service (gang times run time left, at first :math:`s_j = g_j p_j`), is served by decreasing gangs.
SRPT on one machine :math:`m` times as fast, with works :math:`s_j`, is marked with 1. At a moment :math:`t` let
:math:`W_r` be the sum of the remaining services of at most :math:`r` and :math:`N` the number of jobs that are
there; let :math:`g` be the least gang, :math:`k = m / g`, and :math:`s_{min}` and :math:`s_{max}` the least and
the largest :math:`s_j`. Then at every moment

.. math::

    \text{(a)}\quad W_r \le W^1_r + k r \quad (r > 0), \qquad
    \text{(b)}\quad N \le N^1 + k \left(2 + \ln \frac{s_{max}}{s_{min}}\right),

and with the flow times :math:`F_j`, since no schedule of the cluster has a smaller total than SRPT on that
machine (LB-fluid),

.. math::

    \text{(c)}\quad \sum_j F_j \le \sum_j F^1_j + \left(2 + \ln \frac{s_{max}}{s_{min}}\right)
    \sum_j \frac{s_j}{g} + \sum_j p_j .

What is added does not depend on when jobs arrive: as queues grow the ratio to the optimum tends to 1.

Status. Ours; in the mean, for Poisson arrivals and for loads that tend to 1, it is the paper's (Grosof, Scully,
Harchol-Balter and Scheller-Wolf, SIGMETRICS 2023; recalled), and so is the way by relevant work.

Proof. Call a job relevant if at most r of its service remains.

1. M has at most k jobs: without its last, or if all jobs together ask for less than m, it asks for less than m in
   gangs of g or more.
2. Let e be the last decision before t. If the relevant jobs asked for m or more at e, M was relevant, and until the
   next decision all m GPUs serve relevant jobs (SF-fill (a)). If not, all of them were in M, and who became relevant
   since was served, hence in M too: the relevant jobs of t are in M, and :math:`W_r \le k r` by 1.
3. (a) While all GPUs serve relevant jobs W_r falls at rate m and rises by arrivals alone; :math:`W^1_r` falls
   at rate m at most and rises by the same arrivals at least. So the difference does not grow from the last
   moment of the second kind on, where it was at most k r; before the first of them it was 0.
4. (b) With "less than s_min" for "at most r" 2 and 3 say that at most k jobs have less than s_min left, for none
   arrives so. Any other job has x with :math:`1 = \int_x^R x / r^2 \, dr + x / R`, where R = s_max. The sum of
   this over the other jobs is at most
   :math:`\int_{s_{min}}^R W_r / r^2 \, dr + W_R / R`, by (a) at most
   :math:`\int_{s_{min}}^R W^1_r / r^2 \, dr + W^1_R / R + k \ln (R / s_{min}) + k`, and of this the first two
   terms are the sum of :math:`x / \max(x, s_{min}) \le 1` over the jobs of the machine.
5. (c) The sum of flow times is the integral of N. While jobs ask for m or more all GPUs are busy, for at most
   :math:`\sum_j s_j / m` of time; there (b) holds. While they ask for less all that are there run, so that N adds up
   to the time in which jobs run, at most :math:`\sum_j p_j`. Q.E.D.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_of_policy
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight, not_powers_of_two
from shadowprice.solvers.classic.server_filling import ServerFillingSrpt
from shadowprice.solvers.offline.bounds import fluid_ticks

STATUS = "ours; in the mean, as the load tends to 1, the paper's"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("SF-work", KNOWS, (not_powers_of_two, not_one_weight))

LOGARITHM_OFF = Fraction(1, 2**40)
"""More than a logarithm in double precision, of a number in double precision, is off."""


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words."""
    policy = not_of_policy(run, ServerFillingSrpt, "server-filling-srpt")
    return missing_in(run, HYPOTHESES, policy)


def more_jobs(instance: Instance) -> Fraction:
    """Most jobs that are there beyond those on the machine, statement (b), at least 2.

    The logarithm is rounded up.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    service, gpus = _service(instance), instance.workload.gpus
    least = max(int(service.min()), 1)
    spread = Fraction(max(int(service.max()), 1), least)
    most = instance.cluster.total_gpus // int(gpus.min())
    return most * (2 + Fraction(math.log(spread)) + LOGARITHM_OFF)


def least_flow(instance: Instance) -> Fraction:
    """Total flow time of SRPT on the machine [s], exact but for less than a tick.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    jobs = instance.workload
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    capacity = instance.cluster.total_gpus
    ends = fluid_ticks(release, work, jobs.gpus.tolist(), capacity)
    return Fraction(ends - sum(release), TICKS_PER_S)


def bound(instance: Instance) -> Fraction:
    """Largest total flow time [s], statement (c); O(n log n).

    What is lost by rounding the machine's down to a tick is added.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    if not len(instance.workload):
        return Fraction(0)
    service, runs = int(_service(instance).sum()), int(to_ticks(instance.shortest_s).sum())
    full = Fraction(service, instance.cluster.total_gpus)
    added = more_jobs(instance) * full + runs + 1
    return least_flow(instance) + added / TICKS_PER_S


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if a verified schedule keeps (a) and (b) at every arrival, start and end, and (c).

    O(E (N log N + n)) for E such moments, N jobs at once and n jobs.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    most = bound(instance)
    jobs = instance.workload
    if not len(jobs):
        return True
    end = np.zeros(len(jobs), dtype=np.int64)
    np.maximum.at(end, schedule.job, to_ticks(schedule.end_s))
    release = to_ticks(jobs.arrival_s)
    if Fraction(int((end - release).sum()), TICKS_PER_S) > most:
        return False
    k = instance.cluster.total_gpus // int(jobs.gpus.min())
    more = more_jobs(instance)
    times = sorted({*release.tolist(), *to_ticks(schedule.start_s).tolist(), *end.tolist()})
    cluster = _left_on_cluster(instance, schedule, times)
    machine = _left_on_machine(release, _service(instance), times, instance.cluster.total_gpus)
    return all(
        len(here) <= len(there) + more and _relevant_work_is_close(here, there, k)
        for here, there in zip(cluster, machine, strict=True)
    )


def _relevant_work_is_close(here: list[int], there: list[int], k: int) -> bool:
    """Statement (a) at a moment, from the remaining services in order; W_r steps where r is one of ours."""
    sums = [0, *accumulate(there)]
    return all(
        work <= sums[bisect_right(there, r)] + k * r
        for r, work in zip(here, accumulate(here), strict=True)
        # Of equal services the last has all the work.
    )


def _service(instance: Instance) -> NDArray[np.int64]:
    """Service of each job [GPU ticks]."""
    return np.asarray(instance.workload.gpus * to_ticks(instance.shortest_s))


def _left_on_cluster(
    instance: Instance, schedule: Schedule, times: list[int]
) -> Iterator[list[int]]:
    """Remaining services in order of the jobs that are there, at each moment [GPU ticks]."""
    release = to_ticks(instance.workload.arrival_s)
    left, gpus = _service(instance), instance.workload.gpus
    start, end = to_ticks(schedule.start_s), to_ticks(schedule.end_s)
    done = np.zeros(len(left), dtype=np.int64)
    order = np.argsort(start, kind="stable")
    begun, open_rows, before = 0, np.zeros(0, dtype=np.int64), times[0]
    for now in times:
        progress = np.minimum(end[open_rows], now) - before
        np.add.at(done, schedule.job[open_rows], progress * gpus[schedule.job[open_rows]])
        upto = int(np.searchsorted(start[order], now, side="right"))
        open_rows = np.concatenate((open_rows[end[open_rows] > now], order[begun:upto]))
        begun, before = upto, now
        here = (left > done) & (release <= now)
        yield np.sort((left - done)[here]).tolist()


def _left_on_machine(
    release: NDArray[np.int64], service: NDArray[np.int64], times: list[int], speed: int
) -> Iterator[list[int]]:
    """The same on the machine, which does as many GPU ticks a tick as there are GPUs, least remaining first."""
    arrivals = sorted(zip(release.tolist(), service.tolist(), strict=True), reverse=True)
    heap: list[int] = []
    for now, after in pairwise([*times, times[-1]]):
        while arrivals and arrivals[-1][0] <= now:
            heapq.heappush(heap, arrivals.pop()[1])
        yield sorted(left for left in heap if left)
        able = speed * (after - now)
        while heap and able:
            done = min(able, heap[0])
            able -= done
            if done == heap[0]:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, heap[0] - done)
