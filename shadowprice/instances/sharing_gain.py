r"""Largest gain of two jobs that share GPUs, over one job alone on them.

Let job j work at most at rate :math:`r_j` [work/s], whatever it runs on and beside whom, and let its
*service* be the share of that rate at which it works. Alone it gets at most 1 from the GPUs it holds, a
pair that shares them gets :math:`a / r_1 + b / r_2` for their rates a and b together. The gain
:math:`\kappa \ge 1` is the largest of these sums over the pairs that an instance allows. At every moment
the jobs that run then have gangs times services of at most :math:`\kappa m` for m GPUs, and no
job gets more than 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.speeds.throughputs import Kind

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance


Pair = tuple[tuple[Kind, Kind], tuple[float, float]]
"""Two kinds, and their rates beside each other [work/s]."""

Shares = tuple[tuple[Kind, Kind], tuple[Fraction, Fraction]]
"""Two kinds, and their services beside each other."""


@dataclass(frozen=True)
class SharingGain:
    """Largest service of a shared GPU, and the service that each job needs.

    Parameters
    ----------
    kappa : Fraction
        Most service of a shared GPU, at least 1.
    service : tuple of int
        Service that each job needs [ticks]: its run time at its largest rate, rounded down.
    shares : tuple of ((kind, kind), (Fraction, Fraction))
        Most service of both kinds beside each other, at most 1 each: an entry for each pair that the instance
        allows and each GPU type on which it does, so that no type's rates replace another's.
    """

    kappa: Fraction
    service: tuple[int, ...]
    shares: tuple[Shares, ...] = field(compare=False)

    @classmethod
    def of(cls, instance: Instance) -> SharingGain | None:
        """The gain of an instance; None if no two of its jobs may share GPUs. O(n + pairs of kinds).

        Rates are the largest on any GPU type of the cluster, alone or beside another.
        """
        pairs = _usable(instance)
        if not pairs:
            return None
        every = [each for found in pairs.values() for each in found]
        return cls._of(
            instance, every, _alone(instance).max(axis=1, initial=0.0), instance.shortest_s
        )

    @classmethod
    def by_type(cls, instance: Instance) -> tuple[SharingGain, ...] | None:
        """The gain on each GPU type of the cluster, of the largest rates on that type; None as above.

        A job that cannot run on a type needs service of 0 there. A gang on several types works
        at the least of its rates there, beside another or alone, and its partner holds as much of each
        type. Charging each type for the part of the gang that is there at that rate, the jobs on type r
        have gangs times services of at most kappa_r times its GPUs, and services of a job are at most 1 in all.
        """
        pairs = _usable(instance)
        if not pairs:
            return None
        alone = _alone(instance)
        return tuple(
            cls._of(
                instance, pairs.get(name, []), alone[:, column], instance.processing_s[:, column]
            )
            for column, name in enumerate(instance.cluster.gpu_types)
        )

    @classmethod
    def _of(
        cls,
        instance: Instance,
        pairs: list[Pair],
        alone: NDArray[np.float64],
        shortest_s: NDArray[np.float64],
    ) -> SharingGain:
        """The gain of some pairs for jobs with these rates and run times alone."""
        beside: dict[Kind, float] = {}
        for kinds, rates in pairs:
            for kind, rate in zip(kinds, rates, strict=True):
                beside[kind] = max(beside.get(kind, 0.0), rate)
        jobs = kinds_of(instance)
        most = [
            max(rate, beside.get(kind, 0.0))
            for kind, rate in zip(jobs, alone.tolist(), strict=True)
        ]
        able = np.isfinite(shortest_s).tolist()
        least: dict[Kind, float] = {}
        for kind, rate, runs in zip(jobs, most, able, strict=True):
            if runs:
                least[kind] = min(least.get(kind, rate), rate)
        # A pair may be there once for each GPU type; the largest of its gains counts.
        shares = [
            (
                (one, other),
                (
                    Fraction(rates[0]) / Fraction(least[one]),
                    Fraction(rates[1]) / Fraction(least[other]),
                ),
            )
            for (one, other), rates in pairs
            if one in least and other in least
        ]
        kappa = max([Fraction(1), *(mine + theirs for _, (mine, theirs) in shares)])
        service = _service(instance, [kind in beside for kind in jobs], most, shortest_s)
        if any(runs and ticks < 1 for runs, ticks in zip(able, service, strict=True)):
            # Less than a tick of work takes a tick, alone as well as beside another.
            kappa = max(kappa, Fraction(2))
            shares = [(kinds, (Fraction(1), Fraction(1))) for kinds, _ in shares]
            service = [max(ticks, int(runs)) for runs, ticks in zip(able, service, strict=True)]
        return cls(kappa, tuple(service), tuple(shares))


def kinds_of(instance: Instance) -> list[Kind]:
    """Model and gang of every job."""
    jobs = instance.workload
    return list(zip(jobs.model.tolist(), jobs.gpus.tolist(), strict=True))


def _usable(instance: Instance) -> dict[str, list[Pair]]:
    """Pairs of kinds of two of the jobs that may share, by GPU type of the cluster."""
    if instance.sharing_rates is None:
        return {}
    count, types = Counter(kinds_of(instance)), set(instance.cluster.gpu_types)
    # A table may have a pair in both orders; the instance then takes a rate from each.
    most: dict[tuple[str, Kind, Kind], float] = {}
    for (gpu_type, one, other), rates in instance.sharing_rates.pairs.items():
        for key, rate in zip(((one, other), (other, one)), rates, strict=True):
            most[gpu_type, *key] = max(most.get((gpu_type, *key), 0.0), rate)
    found: dict[str, list[Pair]] = {}
    for (gpu_type, one, other), rate in most.items():
        back = most[gpu_type, other, one]
        there = count[one] >= 1 and count[other] >= (2 if one == other else 1)
        if gpu_type in types and one[1] == other[1] and min(rate, back) > 0 and there:
            found.setdefault(gpu_type, []).append(((one, other), (rate, back)))
    return found


def _alone(instance: Instance) -> NDArray[np.float64]:
    """Rate [work/s] of every job alone on each GPU type of the cluster, shape (n, types)."""
    jobs = instance.workload
    if jobs.throughput is None:
        return np.ones((len(jobs), len(instance.cluster.gpu_types)))
    columns = [jobs.gpu_types.index(name) for name in instance.cluster.gpu_types]
    return np.asarray(jobs.throughput[:, columns])


def _service(
    instance: Instance, shares: list[bool], most: list[float], shortest_s: NDArray[np.float64]
) -> list[int]:
    """Ticks of service of every job; what makes a job alone faster does so for a pair."""
    jobs, best = instance.workload, instance.best_speed
    alone = to_ticks(np.where(np.isfinite(shortest_s), shortest_s, 0.0)).tolist()
    graphs = instance.graphs
    work = jobs.work if graphs is None else graphs.shortest_s(jobs)
    columns = zip(shares, work.tolist(), most, best.tolist(), alone, strict=True)
    return [
        min(int(Fraction(needed) * TICKS_PER_S / (Fraction(rate) * Fraction(speed))), ticks)
        if shared and ticks
        else ticks
        for shared, needed, rate, speed, ticks in columns
    ]
