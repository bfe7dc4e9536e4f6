"""Least parallelisable first (``lpf``): jobs that can use few GPUs get them first, all others what is left.

Source: Berg, Moseley, Wang and Harchol-Balter, Asymptotically optimal scheduling of multiple parallelizable job
classes, 2024 (arXiv 2404.00346; the abstract was read): with more work than GPUs it does not matter who runs, with
less it does whether what is left can use them all, and so work that can wait is done last. With jobs of one and of
all GPUs it is Inelastic-First (Berg, Harchol-Balter, Moseley, Wang and Whitehouse, SPAA 2020, arXiv 2005.09745). The
papers' speed-ups are linear up to a number of GPUs, which is a job's *level*. Of a job that grows with a loss the
level is its largest speed, in GPUs; its gang comes in its turn, and GPUs that are left over go, one after the other,
where they add most (derived).

Guarantee: with gangs of one GPU and speed-ups that are at most linear, no level waits for jobs of higher ones, each
has at most a job on each GPU more to do than in any schedule, and every load below 1 is carried (LPF-work); on
jobs of one and of all GPUs no schedule that serves those of one in order of arrival ever has less to do. None for
wider gangs, charges or GPUs that differ.
Knows: speed-ups. Preempts: a width changes by a stop and a start. Cost per decision: O((L + m) log L) for L live jobs
and m GPUs. Where jobs cannot grow, or GPUs differ by type, tenant, part or profile, it is the narrowest gang first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.list_scheduling import serve_in_order
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.resizing import available_gpus, can_grow, resized


class Widths(NamedTuple):
    """GPUs that a job can use.

    Parameters
    ----------
    gang : int
        Least number.
    linear : int
        Largest number on which it is as many times as fast as on its gang.
    widest : int
        Largest number.
    """

    gang: int
    linear: int
    widest: int


@dataclass(frozen=True)
class LeastParallelisableFirst:
    """GPUs in order of the largest speed that jobs can have, ties by arrival."""

    name: str = "lpf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SPEED_UP})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Give every live job its width, where that is not what it holds."""
        if not can_grow(state):
            return serve_in_order(state, _narrowest_first)
        jobs = state.live().jobs.tolist()
        order = sorted(jobs, key=lambda job: (level(state, job), job))

        def speed(position: int, width: int) -> float:
            return speed_gpus(state, order[position], width)

        given = widths_in_order([usable(state, job) for job in order], speed, available_gpus(state))
        return resized(state, dict(zip(order, given, strict=True)))


def speed_gpus(state: State, job: int, width: int) -> float:
    """Speed of a job on so many GPUs, in GPUs: its gang's is the gang."""
    return state.gang[job] * state.speed_up(job, width)


def level(state: State, job: int) -> float:
    """Largest speed of a job in GPUs: as many as it can use, if its speed-up is linear."""
    return speed_gpus(state, job, state.widest(job))


def usable(state: State, job: int) -> Widths:
    """GPUs that a job can use; a speed-up k^p is linear everywhere or nowhere."""
    gang, widest = state.gang[job], state.widest(job)
    linear = state.speed_up(job, widest) == widest / gang
    return Widths(gang, widest if linear else gang, widest)


def widths_in_order(
    jobs: Sequence[Widths], speed: Callable[[int, int], float], total: int
) -> list[int]:
    """Width of each job, 0 or from gang to widest; together no more than a total.

    Each in turn gets as many GPUs as it uses without a loss, or those that are left if its gang fits into them. What is
    left over goes, one GPU after the other, to the job with a gang that gains most speed by it, the first of equals.
    With gangs of one GPU and speed-ups that are concave no widths have a larger sum of speeds (Fox, Operations
    Research 14, 1966; recalled). O((jobs + total) log jobs).

    Parameters
    ----------
    jobs : sequence of Widths
        In order of priority.
    speed : callable
        Speed in GPUs of a job, by its position, on a width that it may have.
    """
    given, room = [], total
    for job in jobs:
        width = min(job.linear, room)
        given.append(width if width >= job.gang else 0)
        room -= given[-1]

    def next_gpu(k: int) -> tuple[float, int]:
        return speed(k, given[k]) - speed(k, given[k] + 1), k

    grow = [next_gpu(k) for k, job in enumerate(jobs) if room and 0 < given[k] < job.widest]
    heapq.heapify(grow)
    while room and grow:
        k = grow[0][1]
        given[k] += 1
        room -= 1
        if given[k] < jobs[k].widest:
            heapq.heapreplace(grow, next_gpu(k))
        else:
            heapq.heappop(grow)
    return given


def _narrowest_first(live: JobColumns) -> NDArray[np.int64]:
    return np.argsort(live.gpus, kind="stable")


POLICIES = (LeastParallelisableFirst(),)
