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

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import to_ticks
from shadowprice.instances.workload import Workload

USE_UNIT = 2**20
"""Uses of resources are whole multiples of 1 / USE_UNIT."""


@dataclass(frozen=True, eq=False)
class ModeTable:
    """Modes of jobs and what they use.

    Parameters
    ----------
    release : ndarray of int, shape (n,)
        r_j [ticks].
    weight : tuple of Fraction, shape (n,)
        w_j.
    time : ndarray of int, shape (n, modes)
        p_jm [ticks], 0 where the job has no such mode.
    capacity : ndarray of int or of Fraction, shape (resources,)
        U_q.
    kind : ndarray of int, shape (n,)
        Row of each job in ``use``.
    use : ndarray, shape (kinds, modes, resources)
        v_jmq of jobs of each kind, whole numbers in units of 1 / USE_UNIT.
    """

    release: NDArray[np.int64]
    weight: tuple[Fraction, ...]
    time: NDArray[np.int64]
    capacity: NDArray[Any]
    kind: NDArray[np.int64]
    use: NDArray[Any]

    @classmethod
    def of_workload(
        cls,
        jobs: Workload,
        time: NDArray[np.int64],
        capacity: NDArray[Any],
        kind: NDArray[np.int64],
        use: NDArray[Any],
    ) -> ModeTable:
        """The modes of a workload, which has releases and weights."""
        weight = tuple(Fraction(w) for w in jobs.weight.tolist())
        return cls(to_ticks(jobs.arrival_s), weight, time, capacity, kind, use)


def every_kth(jobs: ModeTable, k: int) -> ModeTable:
    """Every k-th of the jobs in order of release, and a k-th of all resources."""
    rows = np.argsort(jobs.release, kind="stable")[::k]
    capacity = np.array([Fraction(units) / k for units in jobs.capacity.tolist()], dtype=object)
    weight = tuple(jobs.weight[j] for j in rows.tolist())
    return replace(
        jobs,
        release=jobs.release[rows],
        weight=weight,
        time=jobs.time[rows],
        capacity=capacity,
        kind=jobs.kind[rows],
    )


def capacity_floats(jobs: ModeTable) -> NDArray[np.float64]:
    """U_q rounded to floats."""
    return np.asarray(jobs.capacity, dtype=np.float64)


def use_floats(jobs: ModeTable) -> NDArray[np.float64]:
    """v_jmq rounded to floats, shape (kinds, modes, resources)."""
    return np.asarray(jobs.use, dtype=np.float64) / USE_UNIT


def shortest(jobs: ModeTable) -> NDArray[np.int64]:
    """q_j [ticks], the time of the fastest mode, shape (n,)."""
    top = np.iinfo(np.int64).max
    return np.asarray(np.where(jobs.time > 0, jobs.time, top).min(axis=1, initial=top))


def rents(jobs: ModeTable, prices: NDArray[Any]) -> NDArray[Any]:
    """Price of a unit of time in each mode, rounded down; shape (kinds, intervals, modes), Python's whole numbers.

    Parameters
    ----------
    prices : ndarray of int, shape (intervals, resources)
        Of a unit of each resource.
    """
    each = np.einsum("kmq,iq->kim", jobs.use.astype(object), prices.astype(object))
    return np.asarray(each // USE_UNIT)


def pieces(
    jobs: ModeTable, bounds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """b_jk, d_jkl, c_jkl [ticks] on a grid; first pieces are rounded up, which keeps the bound."""
    begin = np.maximum(bounds[None, :-1], jobs.release[:, None])
    room = np.maximum(bounds[None, 1:] - begin, 0)
    u = np.minimum(room, shortest(jobs)[:, None])
    v = np.minimum(room, jobs.time.max(axis=1)[:, None])
    cuts = (np.zeros_like(u), (u + 1) // 2, (u + v + 1) // 2, v)
    size = np.stack([late - early for early, late in pairwise(cuts)], axis=2)
    return begin, size, np.stack((np.zeros_like(u), u, v), axis=2)
