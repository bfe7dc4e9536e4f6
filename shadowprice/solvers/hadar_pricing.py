r"""Hadar's dual subroutine for whole schedules: the most profitable schedule of a job under prices.

With prices :math:`k_r(t)` a gang that runs in round t no slower than type r0 pays for its W_j
cheapest GPUs among the types at least as fast, so a schedule is a choice in every round: idle, or
one of the job's speeds (levels). What is left to do after some rounds depends on how often each
level was used, not when; those counts are the states of a shortest path through the rounds. That
is exact: no rounding of work, whose completeness is decided in integers. Derived (the paper's
subroutine, spec sec. 2.5, is a search over the jobs of one round).

Complexity for R levels, H rounds and N states: O(R H N) a job; N is at most the number of count
vectors that leave something to do, O(H^R), in practice tens to a few thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs

IDLE = -1
Levels = tuple[int, ...]
"""A schedule: for every round a level of the job, or IDLE; ends with its last busy round."""


@dataclass(frozen=True, eq=False)
class JobStates:
    """States of one job and how levels lead from one to another.

    Parameters
    ----------
    size : int
        Number of states; state 0 has nothing done.
    steps : tuple of (ndarray, ndarray)
        By level: states from which the level leads to an unfinished state, and to which.
    last : tuple of ndarray
        By level: states from which it finishes the job.
    """

    size: int
    steps: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
    last: tuple[NDArray[np.int64], ...]


def states_of(jobs: RoundJobs, job: int) -> JobStates:
    """All counts of levels that leave something to do and fit the rounds after the arrival."""
    done = [Fraction(jobs.utility.round_s) / Fraction(level.seconds) for level in jobs.levels[job]]
    whole = lcm(*(share.denominator for share in done))
    shares = [int(share * whole) for share in done]
    rounds = jobs.rounds - int(jobs.first[job])
    start = (0,) * len(shares)
    number, work, queue = {start: 0}, [0], [start]
    steps: list[tuple[list[int], list[int]]] = [([], []) for _ in shares]
    last: list[list[int]] = [[] for _ in shares]
    for counts in queue:  # It grows while it is read: breadth first.
        here = number[counts]
        if sum(counts) >= rounds:
            continue
        for level, share in enumerate(shares):
            if work[here] + share >= whole:
                last[level].append(here)
                continue
            after = (*counts[:level], counts[level] + 1, *counts[level + 1 :])
            if after not in number:
                number[after] = len(queue)
                work.append(work[here] + share)
                queue.append(after)
            steps[level][0].append(here)
            steps[level][1].append(number[after])
    arrays = tuple((np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)) for a, b in steps)
    return JobStates(len(queue), arrays, tuple(np.array(a, dtype=np.int64) for a in last))


def forward(
    states: JobStates, cost: NDArray[np.float64], idle: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cheapest ways to every state and to completion.

    Parameters
    ----------
    cost : ndarray, shape (rounds, levels)
        Price of running; infinite where it is forbidden.
    idle : ndarray, shape (rounds,)
        Price of idling while unfinished: 0, or infinite where the job must run.

    Returns
    -------
    before : ndarray, shape (rounds + 1, states)
        Least price of being in a state before each round.
    complete : ndarray, shape (rounds,)
        Least price of completing in each round.
    """
    rounds = len(idle)
    before = np.full((rounds + 1, states.size), np.inf)
    before[0, 0] = 0.0
    complete = np.full(rounds, np.inf)
    for t in range(rounds):
        now, then = before[t], before[t + 1]
        then[:] = now + idle[t]
        for level, (source, target) in enumerate(states.steps):
            price = cost[t, level]
            if price == np.inf:
                continue
            then[target] = np.minimum(then[target], now[source] + price)
            ends = states.last[level]
            if len(ends):
                complete[t] = min(complete[t], now[ends].min() + price)
    return before, complete


def schedule(
    states: JobStates,
    cost: NDArray[np.float64],
    idle: NDArray[np.float64],
    before: NDArray[np.float64],
    end: int,
) -> Levels:
    """The cheapest schedule that completes in a round, from :func:`forward`."""
    chosen = [IDLE] * (end + 1)
    options = [
        (before[end, ends].min() + cost[end, level], level, int(ends[before[end, ends].argmin()]))
        for level, ends in enumerate(states.last)
        if len(ends)
    ]
    _, chosen[end], state = min(options)
    for t in range(end - 1, -1, -1):
        # The same sums as on the way forward, so equality is exact.
        if before[t, state] + idle[t] == before[t + 1, state]:
            continue
        for level, (source, target) in enumerate(states.steps):
            place = np.flatnonzero(target == state)
            if len(place) and before[t, source[place[0]]] + cost[t, level] == before[t + 1, state]:
                chosen[t], state = level, int(source[place[0]])
                break
    return tuple(chosen)
