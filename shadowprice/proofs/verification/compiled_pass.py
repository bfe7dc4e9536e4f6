"""The rules of the verifier in one compiled pass, for long schedules of the plainest kind.

Of jobs that run at one speed, alone and without charges, in schedules whose rows are in order of their ends,
as they are written down by whoever runs them. The pass only ever says that all rules hold. Where it
does not, or cannot say, the rules of ``shadowprice/proofs/certificate.py`` are checked one by one, which
also name what is wrong. It computes everything from the columns and calls no other code.

Capacity. Most GPUs of a node are held just before the end of some run: of the runs that go on at any moment,
all still do before the first of them ends. So rows are looked at from the last end to the first, and for
each the runs on its node that end no earlier and began before its end are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule

LEAST_ROWS = 20_000
"""Rows from which on loading compiled code is worth it."""

_TICKS_PER_S = 2.0**20
_WHOLE_GPU = 1000
_CORES = "cores"
_LATEST_S = 2.0**33


def holds(instance: Instance, schedule: Schedule, whole: NDArray[np.int64]) -> bool:
    """True if a schedule obeys every rule; False if it does not, or is not of the kind looked at here.

    O(R) for R rows, times the GPUs of a node at most.

    Parameters
    ----------
    whole : ndarray, shape (n, types)
        Time of each whole job on each GPU type [ticks], 0 where it can never run.
    """
    if len(schedule) < LEAST_ROWS or not _is_plain(instance, schedule):
        return False
    jobs = instance.workload
    if (whole != whole[:, :1]).any() or (jobs.gpu_milli < _WHOLE_GPU).any():
        return False
    if (jobs.allowed_types != "").any():
        return False
    if any(node.gpu_type == _CORES for node in instance.cluster.nodes):
        return False
    found = _compiled()
    if found is None:
        return False
    runs_fit, capacity_fits = found
    s = schedule
    in_line = np.ascontiguousarray
    job, node, gpus = map(in_line, (s.job, s.node, s.gpus))
    rows = _Rows(job, node, gpus, in_line(s.start_s), in_line(s.end_s))
    told = _Jobs(in_line(jobs.arrival_s), in_line(jobs.gpus), in_line(whole[:, 0]))
    size = np.array([node.gpus for node in instance.cluster.nodes], dtype=np.int64)
    return bool(runs_fit(rows, told, len(size))) and bool(capacity_fits(rows, size))


class _Rows(NamedTuple):
    job: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


class _Jobs(NamedTuple):
    arrival_s: NDArray[np.float64]
    gang: NDArray[np.int64]
    whole: NDArray[np.int64]


def _is_plain(instance: Instance, schedule: Schedule) -> bool:
    s, rules = schedule, instance.overheads
    further = (s.stages, s.cpus, s.memory_gb, s.copy, s.steps, s.shared_gpu)
    told = (
        instance.workload.throughput,
        instance.pair_throughputs,
        instance.graphs,
        instance.conditions,
        instance.copies,
        instance.until_complete,
        instance.failures,
        instance.stopped_s,
        instance.cluster.quotas,
    )
    charged = (rules.start_s, rules.restart_s, rules.migration_s, *rules.restart_by_gpus)
    plain = all(column is None for column in (*further, *told)) and not any(charged)
    return plain and bool((s.partner < 0).all()) and not s.overhead_s.any()


@cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """The two halves of the pass, compiled or read from numba's cache; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    compiler = njit(cache=True)
    return compiler(_runs_fit), compiler(_capacity_fits)


def _runs_fit(rows: _Rows, jobs: _Jobs, nodes: int) -> bool:
    """Forwards: every row by itself, whole gangs, jobs in one run at a time, and their work."""
    done = np.zeros(len(jobs.gang), dtype=np.int64)
    free_from_s, seen_in = jobs.arrival_s.copy(), np.full(nodes, -1, dtype=np.int64)
    k, last_s = 0, 0.0
    while k < len(rows.job):
        j, begin_s, end_s, held, head = rows.job[k], rows.start_s[k], rows.end_s[k], 0, k
        # Comparisons with what is not a number are false.
        if not (0 <= j < len(done) and 0.0 <= begin_s < end_s <= _LATEST_S and last_s <= end_s):
            return False
        begin, end = begin_s * _TICKS_PER_S, end_s * _TICKS_PER_S
        if begin != np.floor(begin) or end != np.floor(end) or begin_s < free_from_s[j]:
            return False
        while (
            k < len(rows.job)
            and rows.job[k] == j
            and rows.start_s[k] == begin_s
            and rows.end_s[k] == end_s
        ):
            here = rows.node[k]
            if not (0 <= here < nodes) or rows.gpus[k] < 1 or seen_in[here] >= head:
                return False
            seen_in[here] = k
            held += rows.gpus[k]
            k += 1
        if held != jobs.gang[j]:
            return False
        free_from_s[j] = last_s = end_s
        done[j] += np.int64(end) - np.int64(begin)
    return bool(np.all((done == jobs.whole) & (done > 0)))


def _capacity_fits(rows: _Rows, size: NDArray[np.int64]) -> bool:
    """Backwards: beside each row the runs on its node that began before its end."""
    first = np.cumsum(size) - size
    count, going = np.zeros_like(size), np.zeros(size.sum(), dtype=np.int64)
    for k in range(len(rows.job) - 1, -1, -1):
        here = rows.node[k]
        kept, held = first[here], rows.gpus[k]
        for place in range(first[here], first[here] + count[here]):
            other = going[place]
            if rows.start_s[other] < rows.end_s[k]:
                going[kept] = other
                held += rows.gpus[other]
                kept += 1
        if held > size[here]:
            return False
        # Each of them holds a GPU at least, so that there is room for all that fit.
        going[kept] = k
        count[here] = kept + 1 - first[here]
    return True
