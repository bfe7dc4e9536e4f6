"""List scheduling: GPUs in order of priority, each gang whole, skipping what does not fit.

:func:`greedy` preempts; :class:`Backlog` keeps waiting jobs by gang size for policies that do not.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.policy import Decision, JobColumns, State

Priority = Callable[[JobColumns], NDArray[np.int64]]
"""Positions in the live columns, highest priority first."""


def serve_in_order(state: State, priority: Priority) -> Decision:
    """Run the live jobs in order of priority and preempt the others.

    A gang that does not fit beside those before it is skipped, not waited for. O(L log L) for L
    live jobs, O(waiting) when everything fits.
    """
    if state.everything_fits:
        return Decision(state).start_all()
    if not state.waiting:
        return Decision(state)
    live = state.live()
    return run_exactly(state, live, priority(live))


def widest_of_prefix_first(
    order: NDArray[np.int64], gpus: NDArray[np.int64], total_gpus: int
) -> NDArray[np.int64]:
    """An order whose least prefix that asks for all GPUs is by gang, the widest first; all of it if none asks for all.

    Parameters
    ----------
    order : ndarray of int, shape (L,)
        Positions of the jobs, first in order first; equal gangs stay in it.
    gpus : ndarray of int, shape (L,)
        Gangs by position [GPUs].
    total_gpus : int
        GPUs of the cluster.
    """
    gangs = gpus[order]
    prefix = int(np.searchsorted(np.cumsum(gangs), total_gpus)) + 1
    widest_first = np.argsort(-gangs[:prefix], kind="stable")
    return np.concatenate((order[:prefix][widest_first], order[prefix:]))


def run_exactly(state: State, live: JobColumns, order: NDArray[np.int64]) -> Decision:
    """Give GPUs in this order, by count for each pool; then place, then fill what is left over."""
    jobs, running = live.jobs[order], live.running[order]
    if state.allocator.limits_starts:
        chosen = choose_by_pool(state, jobs.tolist())
    elif state.allocator.cpu_memory.says:
        chosen = choose_with_cpu_memory(state, jobs.tolist())
    elif state.allocator.in_parts and state.one_pool:
        held = live.gpus * live.gpu_milli
        chosen = choose_by_count(held[order], state.up_gpus * WHOLE_GPU)
    elif state.allocator.anywhere or state.one_pool:
        chosen = choose_by_count(live.gpus[order], state.up_gpus)
    else:
        chosen = choose_by_pool(state, jobs.tolist())
    decision = Decision(state)
    stopped = jobs[running & ~chosen].tolist()
    for job in stopped:
        decision.stop(job)
    refused = [job for job in jobs[chosen & ~running].tolist() if not decision.start(job)]
    if stopped and not state.allocator.anywhere:
        left = ~running | ~chosen
    elif refused:
        left = ~chosen & ~running
    else:
        return decision
    if not state.partner_of:  # Who shares with a partner needs no free GPUs.
        left &= live.gpus[order] <= decision.free_gpus
    _fill(decision, jobs[left], set(stopped), state)
    return decision


def choose_by_count(gpus: NDArray[np.int64], capacity: int) -> NDArray[np.bool_]:
    """Mask of gangs, taken in order, that fit into a number of GPUs; the others are skipped."""
    chosen = np.zeros(len(gpus), dtype=bool)
    first_too_many = int(np.searchsorted(np.cumsum(gpus), capacity, side="right"))
    chosen[:first_too_many] = True
    left = capacity - int(gpus[:first_too_many].sum())
    position = first_too_many + 1
    while left > 0 and position < len(gpus):
        fits = gpus[position:] <= left
        step = int(fits.argmax())
        if not fits[step]:
            break
        position += step
        chosen[position] = True
        left -= int(gpus[position])
        position += 1
    return chosen


def choose_by_pool(state: State, jobs: list[int]) -> NDArray[np.bool_]:
    """The same over several pools: a running job keeps its pool, a waiting one takes its first with room."""
    allocator, size = state.allocator, _sizes(state, jobs)
    free = allocator.free_milli_in if allocator.in_parts else allocator.free_in
    room = {pool: free(pool) for pool in {pool for job in jobs for pool in state.pools[job]}}
    held = _pools_held(state)
    for job, pool in held.items():
        room[pool] += size[job]
    chosen = np.zeros(len(jobs), dtype=bool)
    limited, starts = allocator.limits_starts, allocator.planned_starts()
    for position, job in enumerate(jobs):
        wanted = (held[job],) if job in held else state.pools[job]
        for pool in wanted:
            if room[pool] >= size[job]:
                if not limited or starts.take(job, state.gang[job]):
                    room[pool] -= size[job]
                    chosen[position] = True
                break
    return chosen


def _pools_held(state: State) -> dict[int, int]:
    """Pool that each running job is on."""
    if state.one_pool:
        return dict.fromkeys(state.running, 0)
    pool_of = state.allocator.pool_of
    return {job: pool_of(pieces[0][0]) for job, pieces in state.running.items()}


def _sizes(state: State, jobs: list[int]) -> Mapping[int, int] | list[int]:
    """GPUs of each job, in thousandths where jobs hold parts of them."""
    if not state.allocator.in_parts:
        return state.gang
    columns = state.columns(jobs)
    return dict(zip(jobs, (columns.gpus * columns.gpu_milli).tolist(), strict=True))


def choose_with_cpu_memory(state: State, jobs: list[int]) -> NDArray[np.bool_]:
    """The same where jobs hold CPUs and memory: a waiting job takes its first pool with room for all three.

    What is rounded on each node may be less than what is rounded once for the pool: who fits into an empty pool
    is not refused for that.
    """
    allocator, size = state.allocator, _sizes(state, jobs)
    ledger = allocator.cpu_memory
    held = _pools_held(state)
    pools = {pool for job in jobs for pool in state.pools[job]} | set(held.values())
    free = allocator.free_milli_in if allocator.in_parts else allocator.free_in
    room = {pool: (free(pool), *ledger.left_in(pool)) for pool in pools}
    holds = {job: ledger.held_by(job, pieces) for job, pieces in state.running.items()}
    for job, pool in held.items():
        gpus, cpus, memory = room[pool]
        room[pool] = (gpus + size[job], cpus + holds[job][0], memory + holds[job][1])
    chosen, used = np.zeros(len(jobs), dtype=bool), set[int]()
    for position, job in enumerate(jobs):
        for pool in (held[job],) if job in held else state.pools[job]:
            its = holds[job] if job in held else ledger.needed(job, state.gang[job], pool)
            left = tuple(
                now - part for now, part in zip(room[pool], (size[job], *its), strict=True)
            )
            if min(left) >= 0 or (pool not in used and ledger.fits_in(job, pool)):
                room[pool] = (left[0], left[1], left[2])
                chosen[position] = True
                used.add(pool)
                break
    return chosen


def _fill(decision: Decision, jobs: NDArray[np.int64], stopped: set[int], state: State) -> None:
    """Use what fragmentation left over: preempted jobs stay where they were, others start if they fit."""
    gang, sharing, free = state.gang, bool(state.partner_of), decision.free_gpus
    for job in jobs.tolist():
        if not sharing and gang[job] > free:
            if not free:
                break
            continue
        if job in stopped:
            decision.resume_in_place(job)
        elif job not in decision.starts:
            decision.start(job)
        free = decision.free_gpus


Key = TypeVar("Key", int, float)


class Backlog(Generic[Key]):
    """A heap for each of the d gang sizes that occur.

    Scanning a queue for jobs that fit costs its length at every event; here the first job in order
    that fits is the least of at most d heaps.
    """

    __slots__ = ("_gangs", "_heaps", "_jobs")

    def __init__(self) -> None:
        self._heaps: dict[int, list[tuple[Key, int]]] = {}
        self._gangs: list[int] = []
        self._jobs: set[int] = set()

    def push(self, gang: int, key: Key, job: int) -> None:
        """Add a job; O(log n), and O(d) for a gang size that did not occur before."""
        heap = self._heaps.get(gang)
        if heap is None:
            heap = self._heaps[gang] = []
            bisect.insort(self._gangs, gang)
        heapq.heappush(heap, (key, job))
        self._jobs.add(job)

    def discard(self, job: int) -> None:
        """Take a job out if it is in; its entry is dropped when it comes to the top."""
        self._jobs.discard(job)

    def pop(self, limit: int | None = None) -> tuple[int, Key, int] | None:
        """Take out the job with the least key, ties to the smaller number; O(d + log n).

        Parameters
        ----------
        limit : int, optional
            Largest gang considered [GPUs]; any if not given.

        Returns
        -------
        (int, key, int) or None
            Gang size, key and job, what :meth:`push` takes; None if there is none so small.
        """
        best: tuple[Key, int] | None = None
        found = 0
        for gang in self._gangs:
            if limit is not None and gang > limit:
                break
            heap = self._heaps[gang]
            while heap and heap[0][1] not in self._jobs:
                heapq.heappop(heap)
            if heap and (best is None or heap[0] < best):
                best, found = heap[0], gang
        if best is None:
            return None
        key, job = heapq.heappop(self._heaps[found])
        self._jobs.remove(job)
        return found, key, job

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)
