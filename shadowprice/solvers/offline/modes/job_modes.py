r"""Jobs that run in one of several modes, which use several resources: what bounds need to know of an instance.

A *mode* of a job is a way to run: on a type of GPUs, within a node, at a width, with so many CPUs. In mode m it takes
p_jm of time and uses v_jmq of resource q, of which there is U_q at every moment. These are the modes and renewable
resources of multi-mode project scheduling, with jobs that may stop, resume and change their mode at any time. What
the bounds ask of a schedule: at every moment t there are shares :math:`z_{jm}(t) \ge 0` with

.. math:: \sum_m z_{jm} \le 1, \qquad \sum_{j,m} v_{jmq} z_{jm} \le U_q,

and job j makes progress :math:`\rho_j = \sum_m z_{jm} / p_{jm}`, which integrates to 1 between its release and its
completion. That every schedule of a class has such shares is what the proof of each bound shows
(``shadowprice.proofs.lower_bounds``); a resource may be one that no operator would name, such as the places for gangs
of more than half a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

USE_UNIT = 2**20
"""Uses of resources are whole multiples of 1 / USE_UNIT."""


class Modes(Protocol):
    """Modes of jobs and what they use; :class:`JobModes`, or those of :class:`TypedJobs`."""

    @property
    def release(self) -> NDArray[np.int64]:
        """r_j [ticks], shape (n,)."""

    @property
    def weight(self) -> tuple[Fraction, ...]:
        """w_j."""

    @property
    def time(self) -> NDArray[np.int64]:
        """p_jm [ticks], 0 where the job has no such mode, shape (n, modes)."""

    @property
    def capacity(self) -> NDArray[Any]:
        """U_q, whole numbers or fractions, shape (resources,)."""

    @property
    def kind(self) -> NDArray[np.int64]:
        """Row of each job in :attr:`use`, shape (n,)."""

    @property
    def use(self) -> NDArray[Any]:
        """v_jmq of jobs of each kind, in units of 1 / USE_UNIT, shape (kinds, modes, resources)."""


@dataclass(frozen=True, eq=False)
class JobModes:
    """Jobs by kind; see :class:`Modes`."""

    release: NDArray[np.int64]
    weight: tuple[Fraction, ...]
    time: NDArray[np.int64]
    capacity: NDArray[Any]
    kind: NDArray[np.int64]
    use: NDArray[Any]


def every_kth(jobs: Modes, k: int) -> JobModes:
    """Every k-th of the jobs in order of release, and a k-th of all resources."""
    kept = np.argsort(jobs.release, kind="stable")[::k]
    capacity = np.array([Fraction(units) / k for units in jobs.capacity.tolist()], dtype=object)
    weight = tuple(jobs.weight[j] for j in kept.tolist())
    return JobModes(
        jobs.release[kept], weight, jobs.time[kept], capacity, jobs.kind[kept], jobs.use
    )


def capacity_floats(jobs: Modes) -> NDArray[np.float64]:
    """U_q rounded to floats."""
    return np.asarray(jobs.capacity, dtype=np.float64)


def use_floats(jobs: Modes) -> NDArray[np.float64]:
    """v_jmq rounded to floats, shape (kinds, modes, resources)."""
    return np.asarray(jobs.use, dtype=np.float64) / USE_UNIT


def shortest(jobs: Modes) -> NDArray[np.int64]:
    """q_j [ticks], the time of the fastest mode, shape (n,)."""
    top = np.iinfo(np.int64).max
    return np.asarray(np.where(jobs.time > 0, jobs.time, top).min(axis=1, initial=top))


def rents(jobs: Modes, prices: NDArray[Any]) -> NDArray[Any]:
    """Price of a unit of time in each mode, rounded down; shape (kinds, intervals, modes), Python's whole numbers.

    Parameters
    ----------
    prices : ndarray of int, shape (intervals, resources)
        Of a unit of each resource.
    """
    each = np.einsum("kmq,iq->kim", jobs.use.astype(object), prices.astype(object))
    return np.asarray(each // USE_UNIT)


def pieces(
    jobs: Modes, bounds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """b_jk, d_jkl, c_jkl [ticks] on a grid; first pieces are rounded up, which keeps the bound."""
    begin = np.maximum(bounds[None, :-1], jobs.release[:, None])
    room = np.maximum(bounds[None, 1:] - begin, 0)
    u = np.minimum(room, shortest(jobs)[:, None])
    v = np.minimum(room, jobs.time.max(axis=1)[:, None])
    cuts = (np.zeros_like(u), (u + 1) // 2, (u + v + 1) // 2, v)
    size = np.stack([late - early for early, late in pairwise(cuts)], axis=2)
    return begin, size, np.stack((np.zeros_like(u), u, v), axis=2)
