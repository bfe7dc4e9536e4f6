"""The rules of the verifier in one compiled pass, for long schedules of the plainest kind.

Of jobs that run at one speed, alone and without charges, in schedules whose rows are in order of their ends,
as they are written down by whoever runs them. The pass only ever says that all rules hold. Where it
does not, or cannot say, the rules of ``shadowprice/proofs/certificate.py`` are checked one by one, which
also name what is wrong. It computes everything from the columns; that an instance says no more than these it
asks :mod:`shadowprice.instances.features`.

It goes from the last row to the first, so that rows may come in segments, the last segment first.

Capacity. Most GPUs of a node are held just before the end of some run: of the runs that go on at any moment,
all still do before the first of them ends. So for each row the runs on its node that end no earlier and
began before its end are added up. Who began later holds nothing at the end of any row before, either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, missing

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule

KNOWS: frozenset[Feature] = frozenset()
"""Features of instances that the pass knows: none. Of all others the rules are checked one by one."""

LEAST_ROWS = 20_000
"""Rows from which on loading compiled code is worth it."""

_TICKS_PER_S = 2.0**20
_LATEST_S = 2.0**33


def holds(instance: Instance, schedule: Schedule, whole: NDArray[np.int64]) -> bool:
    """True if a schedule obeys every rule; False if it does not, or is not of the kind looked at here.

    O(R) for R rows, times the GPUs of a node at most.

    Parameters
    ----------
    whole : ndarray, shape (n, types)
        Time of each whole job on each GPU type [ticks], 0 where it can never run.
    """
    found = CompiledPass.over(instance, whole, len(schedule))
    return found is not None and found.goes_on(schedule) and found.ends()


class CompiledPass:
    """A pass over a schedule in segments; it goes on with each, the last first, and ends before the first row.

    Once it has said no there is nothing more to ask it.

    Parameters
    ----------
    instance : Instance
        One of the kind looked at here, see :meth:`over`.
    whole : ndarray, shape (n,)
        Time of each whole job [ticks].
    """

    def __init__(
        self, instance: Instance, whole: NDArray[np.int64], function: Callable[..., bool]
    ) -> None:
        jobs, nodes = instance.workload, instance.cluster.nodes
        in_line, self._goes_on = np.ascontiguousarray, function
        self._jobs = _Jobs(in_line(jobs.arrival_s), in_line(jobs.gpus), in_line(whole))
        size = np.array([node.gpus for node in nodes], dtype=np.int64)
        total = int(size.sum())
        self._seen = _Seen(
            done=np.zeros(len(whole), dtype=np.int64),
            begins_s=np.full(len(whole), np.inf),
            size=size,
            first=np.cumsum(size) - size,
            used=np.zeros_like(size),
            runs_from_s=np.zeros(total),
            runs_on=np.zeros(total, dtype=np.int64),
            in_run=np.zeros_like(size),
            run=np.array([-1, 0, 0]),
            run_s=np.full(2, np.inf),
        )

    @classmethod
    def over(cls, instance: Instance, whole: NDArray[np.int64], rows: int) -> CompiledPass | None:
        """A pass over so many rows; None if the instance is not of the kind, they are few, or without numba."""
        if rows < LEAST_ROWS or missing(instance, KNOWS):
            return None
        if (whole != whole[:, :1]).any():
            return None
        function = _compiled()
        return None if function is None else cls(instance, whole[:, 0], function)

    def goes_on(self, segment: Schedule) -> bool:
        """Look at the rows of a segment, the last first; False if they break a rule, or are not of the kind."""
        s, in_line = segment, np.ascontiguousarray
        further = (s.stages, s.cpus, s.memory_gb, s.copy, s.steps, s.shared_gpu, s.goes_on)
        of_goodput = (s.local_batch, s.accumulated, s.slowed)
        if any(column is not None for column in (*further, *of_goodput)):
            return False
        if (s.partner >= 0).any() or s.overhead_s.any():
            return False
        job, node, gpus = map(in_line, (s.job, s.node, s.gpus))
        rows = _Rows(job, node, gpus, in_line(s.start_s), in_line(s.end_s))
        return bool(self._goes_on(rows, self._jobs, self._seen))

    def ends(self) -> bool:
        """True if all rules hold when there are no rows before."""
        seen, jobs = self._seen, self._jobs
        job, held, _ = seen.run.tolist()
        whole_gang = job < 0 or held == jobs.gang[job]
        return bool(whole_gang and np.all((seen.done == jobs.whole) & (seen.done > 0)))


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


class _Seen(NamedTuple):
    """Sums over the rows looked at so far, all later ones.

    ``done`` of each job [ticks], and when the first of its runs ``begins_s``. Each node has ``size`` GPUs and so
    many places from ``first`` on, so many of which are ``used``: when a run on it begins, and how many
    GPUs it holds. ``in_run`` is the last run seen on each node, by number. ``run`` is the run of the
    last row: job, GPUs, and number; ``run_s`` its start and end.
    """

    done: NDArray[np.int64]
    begins_s: NDArray[np.float64]
    size: NDArray[np.int64]
    first: NDArray[np.int64]
    used: NDArray[np.int64]
    runs_from_s: NDArray[np.float64]
    runs_on: NDArray[np.int64]
    in_run: NDArray[np.int64]
    run: NDArray[np.int64]
    run_s: NDArray[np.float64]


@cache
def _compiled() -> Callable[..., bool] | None:
    """The pass, compiled or read from numba's cache; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    compiled: Callable[..., bool] = njit(cache=True)(_goes_on)
    return compiled


def _goes_on(rows: _Rows, jobs: _Jobs, seen: _Seen) -> bool:
    """Every row by itself, whole gangs, jobs in one run at a time, their work, and capacity."""
    job, held, number = seen.run
    begin_s, end_s = seen.run_s
    for k in range(len(rows.job) - 1, -1, -1):
        j, here, gpus = rows.job[k], rows.node[k], rows.gpus[k]
        if j != job or rows.start_s[k] != begin_s or rows.end_s[k] != end_s:
            if job >= 0 and held != jobs.gang[job]:
                return False
            later_s = end_s
            begin_s, end_s = rows.start_s[k], rows.end_s[k]
            # Comparisons with what is not a number are false.
            in_order = 0.0 <= begin_s < end_s <= _LATEST_S and end_s <= later_s
            if not (0 <= j < len(jobs.gang) and in_order):
                return False
            begin, end = begin_s * _TICKS_PER_S, end_s * _TICKS_PER_S
            if begin != np.floor(begin) or end != np.floor(end):
                return False
            if begin_s < jobs.arrival_s[j] or end_s > seen.begins_s[j]:
                return False
            seen.begins_s[j] = begin_s
            seen.done[j] += np.int64(end) - np.int64(begin)
            job, held, number = j, 0, number + 1
        if not (0 <= here < len(seen.size)) or not 1 <= gpus <= seen.size[here]:
            return False
        if seen.in_run[here] == number:
            return False
        seen.in_run[here] = number
        held += gpus
        first, on_node = seen.first[here], gpus
        kept = first
        for place in range(first, first + seen.used[here]):
            if seen.runs_from_s[place] < end_s:
                seen.runs_from_s[kept] = seen.runs_from_s[place]
                seen.runs_on[kept] = seen.runs_on[place]
                on_node += seen.runs_on[kept]
                kept += 1
        if on_node > seen.size[here]:
            return False
        # Each of them holds a GPU at least, so that there is room for all that fit.
        seen.runs_from_s[kept], seen.runs_on[kept] = begin_s, gpus
        seen.used[here] = kept + 1 - first
    seen.run[0], seen.run[1], seen.run[2] = job, held, number
    seen.run_s[0], seen.run_s[1] = begin_s, end_s
    return True
