"""Runs of jobs that lose their work when preempted, as the verifier sees them: a job's last run has to do all of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import run_speed

RESUME = "resume"
"""Rule by which a job that is preempted keeps its work; else its next run starts from nothing."""


def last_runs(
    job: NDArray[np.int64], ran: NDArray[np.int64], whole: run_speed.Ticks
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Progress that counts of every run, and True for each that completed its job, which runs again.

    Parameters
    ----------
    job, ran : ndarray of int, shape (runs,)
        Jobs of runs in order of job and start, and progress of these [ticks].
    whole : ndarray of int, shape (runs,)
        Time of the whole job [ticks] as each run goes.
    """
    again = np.diff(job, append=-1) == 0
    return np.where(again, 0, ran), again & (ran >= whole)
