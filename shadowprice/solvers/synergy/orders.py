"""In which order Synergy serves jobs: FIFO, SRTF, LAS, FTF, and by demand DRF and Tetris.

Source: Synergy (OSDI'22) and the policies it takes up: LAS of Tiresias (NSDI'19), finish-time
fairness of Themis (NSDI'20), dominant resource fairness (Ghodsi et al., NSDI'11), Tetris (SIGCOMM'14).
FTF serves the job that is furthest behind first, as Themis does; Synergy's simulator sorts the other
way round. Shares are of the cluster's real GPUs, CPUs and memory.

``srtf`` ranks by time left at the best speed, as published, which a job rarely gets on a full cluster;
``srtf-share`` by time left at the speed of its GPU-proportional share, which it is sure of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.policy import JobColumns, Knowledge

STARVED_S = 1000 * 3600.0
"""A job that waits longer than this goes before the others for the rest of its life [s] (published)."""


@dataclass(frozen=True)
class Columns:
    """Columns that orders read, by live job.

    Parameters
    ----------
    live : JobColumns
    now_s : float
        Current time [s].
    gain : ndarray, shape (jobs,)
        Largest speed against that with the proportional share; 1 without profiles.
    fair : bool
        Whether jobs are run with proportional shares.
    shares : ndarray, shape (jobs, resources)
        Best-case demand of every resource that is counted, as a share of the cluster.
    """

    live: JobColumns
    now_s: float
    gain: NDArray[np.float64]
    fair: bool
    shares: NDArray[np.float64]

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Run time left [s]: with proportional shares if these are what jobs get, else at best."""
        left = self.live.remaining_s
        return np.asarray(left * self.gain) if self.fair else left


def _fifo(columns: Columns) -> NDArray[np.float64]:
    return columns.live.arrival_s


def _srtf(columns: Columns) -> NDArray[np.float64]:
    return columns.remaining_s


def _srtf_share(columns: Columns) -> NDArray[np.float64]:
    return columns.live.remaining_s * columns.gain


def _las(columns: Columns) -> NDArray[np.float64]:
    return columns.live.attained_s * columns.live.gpus


def _ftf(columns: Columns) -> NDArray[np.float64]:
    live = columns.live
    alone_s = live.processing_s * columns.gain
    rho = (columns.now_s - live.arrival_s + columns.remaining_s) / alone_s
    return np.asarray(-rho)


def _drf(columns: Columns) -> NDArray[np.float64]:
    return np.asarray(columns.shares.max(axis=1))


def _tetris(columns: Columns) -> NDArray[np.float64]:
    return np.asarray(columns.remaining_s * columns.shares.sum(axis=1))


@dataclass(frozen=True)
class JobOrder:
    """An order.

    Parameters
    ----------
    key : callable
        From columns to keys; the smallest is served first, ties by arrival.
    knows_durations : bool
        Whether it reads durations.
    boosts : bool
        Whether starved jobs go first.
    """

    key: Callable[[Columns], NDArray[np.float64]]
    knows_durations: bool
    boosts: bool = True

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Knowledge required by a policy with this order."""
        return frozenset({Knowledge.DURATION} if self.knows_durations else ())


ORDERS = {
    "fifo": JobOrder(_fifo, knows_durations=False, boosts=False),
    "srtf": JobOrder(_srtf, knows_durations=True),
    "srtf-share": JobOrder(_srtf_share, knows_durations=True),
    "las": JobOrder(_las, knows_durations=False),
    "ftf": JobOrder(_ftf, knows_durations=True),
    "drf": JobOrder(_drf, knows_durations=False),
    "tetris": JobOrder(_tetris, knows_durations=True),
}
"""By name; each of the same meaning on jobs without profiles, by their GPUs alone."""
