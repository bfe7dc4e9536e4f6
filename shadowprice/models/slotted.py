"""Instances on a grid of equal slots: whole numbers for time-indexed models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # of one start
        Feature.SHARING,  # the gangs as they are alone
        Feature.GRAPHS,  # of all mappings the fastest counts; so with profiles and spreading
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,  # a gang at the speed of the best width
        Feature.FAILURES,  # only restrict
        Feature.CORES,  # count as GPUs
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)


@dataclass(frozen=True)
class Slotted:
    """Rigid gangs on a pool of GPUs, in slots.

    Parameters
    ----------
    release, duration : ndarray of int, shape (n,)
        r_j and p_j [slots], rounded down; p_j is the processing time and one start charge, which
        every job pays at least once, and a job that is not preempted exactly once.
    gpus : ndarray of int, shape (n,)
        g_j [GPUs].
    weight : ndarray, shape (n,)
        w_j.
    capacity : int
        G [GPUs].
    slot_ticks : int
        Length of a slot in ticks of 2**-20 s.
    exact : bool
        Whether nothing had to be rounded.
    job_names : sequence of str
        ``job-0``, ... if there are none.

    Notes
    -----
    Rounding keeps lower bounds: let S start job j at s_j. Starting it at floor(s_j) with
    duration floor(p_j) is feasible on the grid, since a job that then occupies slot k is running
    in S just before the end of slot k: s_j < floor(s_j) + 1 <= k + 1 <= floor(s_j) + floor(p_j)
    <= s_j + p_j. Hence sum w_j C_j >= OPT(grid) + sum w_j (p_j - floor(p_j)).
    """

    release: NDArray[np.int64]
    duration: NDArray[np.int64]
    gpus: NDArray[np.int64]
    weight: NDArray[np.float64]
    capacity: int
    slot_ticks: int
    exact: bool
    job_names: Sequence[str] | NDArray[np.object_] = ()

    @classmethod
    def of(cls, instance: Instance, slot_s: float | None = None) -> Slotted:
        """The instance in slots of a given length [s], by default the largest that is exact.

        GPUs are one pool and every job takes its shortest processing time, which only relaxes
        a cluster of several types.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``, or the slot is no length.
        """
        require(instance, KNOWS, "models in slots")
        release = to_ticks(instance.workload.arrival_s)
        charge = int(to_ticks(np.array([instance.overheads.start_s]))[0])
        duration = to_ticks(instance.shortest_s) + charge
        common = math.gcd(*release.tolist(), *duration.tolist()) or 1
        if slot_s is not None and not 2.0**-20 <= slot_s <= 2.0**40:
            raise InputError(f"slot_s is {slot_s!r}, expected seconds > 0")
        slot = common if slot_s is None else round(slot_s * TICKS_PER_S)
        return cls(
            release // slot,
            duration // slot,
            instance.workload.gpus,
            instance.workload.weight,
            instance.cluster.total_gpus,
            slot,
            common % slot == 0,
            instance.workload.id,
        )

    def enough_slots(self, most: int) -> int:
        """Slots that suffice for all jobs one after another.

        Raises
        ------
        InputError
            If there are more than ``most`` jobs times slots.
        """
        slots = int(self.release.max(initial=0) + self.duration.sum())
        if self.jobs * slots > most:
            raise InputError(
                f"model in slots: {self.jobs} jobs and {slots} slots of {self.slot_s:g} s, expected at "
                f"most {most} jobs times slots; take fewer jobs, or times that are multiples of more"
            )
        return slots

    @property
    def jobs(self) -> int:
        """Number of jobs n."""
        return len(self.release)

    @cached_property
    def id(self) -> Names:
        """Name of each job."""
        return Names.known(self.job_names, "job", self.jobs)

    @property
    def slot_s(self) -> float:
        """Length of a slot [s]."""
        return self.slot_ticks / TICKS_PER_S

    @property
    def exact_weight(self) -> list[Fraction]:
        """Weights w_j as rationals."""
        return [Fraction(w) for w in self.weight.tolist()]

    @property
    def step(self) -> Fraction:
        """Granularity of weighted total completion times, in slots: gcd of the weights."""
        weight = [w for w in self.exact_weight if w]
        whole = math.lcm(*(w.denominator for w in weight))
        return Fraction(math.gcd(*(int(w * whole) for w in weight)), whole) or Fraction(1)

    @property
    def release_ticks(self) -> list[int]:
        """r_j in ticks, exact if the grid is."""
        ticks: list[int] = (self.release * self.slot_ticks).tolist()
        return ticks
