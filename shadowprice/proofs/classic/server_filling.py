r"""SF-fill: ServerFilling leaves no GPU idle while there is work for all, and nobody starves.

Statement. :math:`m` GPUs in one pool, any of which will do for a gang; :math:`m` and all gangs :math:`g_j` are
powers of two, with :math:`g_j \le m`; nobody shares GPUs, a run costs nothing but its time :math:`p_j`, and the
scheduler is asked at every event, not in rounds. Any order of jobs, which may change from event to event, is
cut after its least prefix :math:`M` that asks for :math:`m` GPUs or more, and :math:`M` is served by decreasing
gangs. Then

(a) while the jobs that are there ask for :math:`m` GPUs or more, all :math:`m` are busy;

(b) every job :math:`j` is complete by

.. math::

    C_j \le r_j + p_j + \frac{1}{m} \sum_{i \ne j} g_i p_i ;

(c) the last is complete before twice the least time at which all can be.

Status. (a) is the paper's lemma, recalled and proven here; (b) and (c) are ours.

Proof.

1. (a) In M, by decreasing gangs, each partial sum is a multiple of the next gang, since all gangs before it are
   multiples of it, and so is m. The room that is left is a multiple of the next gang as well: it is 0, or the
   gang fits. So gangs are served until m are busy, for M asks for m or more. Between events neither who is
   there nor who runs changes.
2. (b) At any moment after r_j at which j waits, not all that are there run, so that they ask for more than m
   (otherwise all of them are served), and by (a) all m GPUs do others' work. Of that there is
   :math:`\sum_{i \ne j} g_i p_i` in all, so j waits for at most its m-th part, and runs for p_j.
3. (c) No schedule completes j before :math:`r_j + p_j`, nor all before :math:`\sum_i g_i p_i / m`. By (b) the last
   job is complete by the sum of the two less :math:`g_j p_j / m`. Q.E.D.

With gangs that are no powers of two (a) fails: of gangs 3, 3, 2 on 4 GPUs one of 3 is served, and a GPU is idle.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.hypotheses import Hypotheses, not_powers_of_two

STATUS = "paper for (a), ours for (b) and (c)"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("SF-fill", KNOWS, (not_powers_of_two,))


def bound(instance: Instance) -> list[Fraction]:
    """Latest completion of each job [s], statement (b); O(n).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    HYPOTHESES.expect(instance)
    jobs, gpus = instance.workload, instance.cluster.total_gpus
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    service = [g * p for g, p in zip(jobs.gpus.tolist(), work, strict=True)]
    total = sum(service)
    return [
        (r + p + Fraction(total - own, gpus)) / TICKS_PER_S
        for r, p, own in zip(release, work, service, strict=True)
    ]


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if a verified schedule keeps (a), (b) and (c); O(R log R) for R rows.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    latest = bound(instance)
    if not latest:
        return True
    jobs, gpus = instance.workload, instance.cluster.total_gpus
    end = np.zeros(len(jobs), dtype=np.int64)
    np.maximum.at(end, schedule.job, to_ticks(schedule.end_s))
    if any(Fraction(e, TICKS_PER_S) > most for e, most in zip(end.tolist(), latest, strict=True)):
        return False
    release, work = to_ticks(jobs.arrival_s), to_ticks(instance.shortest_s)
    service = sum(g * p for g, p in zip(jobs.gpus.tolist(), work.tolist(), strict=True))
    least = max(Fraction(service, gpus), Fraction(int((release + work).max())))
    return int(end.max()) < 2 * least and _never_idle(instance, schedule, release, end)


def _never_idle(
    instance: Instance,
    schedule: Schedule,
    release: NDArray[np.int64],
    end: NDArray[np.int64],
) -> bool:
    """Statement (a): all GPUs are busy while the jobs that are there ask for as many."""
    gang, held = instance.workload.gpus, schedule.gpus
    start, stop = to_ticks(schedule.start_s), to_ticks(schedule.end_s)
    times = np.concatenate((release, end, start, stop))
    asked = np.concatenate((gang, -gang, np.zeros(2 * len(held), dtype=np.int64)))
    busy = np.concatenate((np.zeros(2 * len(gang), dtype=np.int64), held, -held))
    order = np.argsort(times, kind="stable")
    lasts = np.diff(times[order]) > 0
    asked, busy = np.cumsum(asked[order])[:-1][lasts], np.cumsum(busy[order])[:-1][lasts]
    total = instance.cluster.total_gpus
    return bool((busy[asked >= total] == total).all())
