"""Runs of jobs that lose their work when preempted, as the verifier sees them: a job's last run has to do all of it.

A run may be cut into several, where its partner, its CPUs or its memory changed: then all of these count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import run_speed

RESUME = "resume"
"""Rule by which a job that is preempted keeps its work; else its next run starts from nothing."""


def last_runs(
    job: NDArray[np.int64],
    ran: NDArray[np.int64],
    whole: run_speed.Ticks,
    number: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Progress that counts of every part of a run, and True where one completed its job, which runs again.

    Parameters
    ----------
    job, ran : ndarray of int, shape (runs,)
        Jobs of the parts in order of job and start, and progress of these [ticks].
    whole : ndarray of int, shape (runs,)
        Time of the whole job [ticks] as each goes.
    number : ndarray of int, shape (runs,)
        Run of which each is a part.
    """
    again = np.append((number[1:] != number[:-1]) & (job[1:] == job[:-1]), False)
    lost = np.isin(number, number[again])
    completes = again & (ran >= whole)
    several = np.append(False, number[1:] == number[:-1])
    for last in np.flatnonzero(again & several).tolist():
        parts = slice(int(np.searchsorted(number, number[last])), last + 1)
        pace = int(whole[last])
        short, _ = run_speed.done_and_over(ran[parts].tolist(), whole[parts].tolist(), pace)
        completes[last] = not short
    return np.where(lost, 0, ran), completes
