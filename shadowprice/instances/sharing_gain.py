r"""How much more two jobs that share GPUs can get out of them than one job alone.

Let job j work at most at rate :math:`r_j` [work/s], whatever it runs on and beside whom, and let its
*service* be the share of that rate at which it works. Alone it gets at most 1 from the GPUs it holds, a
pair that shares them gets :math:`a / r_1 + b / r_2` for their rates a and b together. The gain
:math:`\kappa \ge 1` is the largest of these sums over the pairs that an instance allows. At every moment
the jobs that run then have gangs times services of at most :math:`\kappa m` for m GPUs, and no
job gets more than 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.throughputs import Kind

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance


@dataclass(frozen=True)
class SharingGain:
    """What sharing can do at best.

    Parameters
    ----------
    kappa : Fraction
        Most service of a shared GPU, at least 1.
    service : tuple of int
        Service that each job needs [ticks]: its run time at its largest rate, rounded down.
    """

    kappa: Fraction
    service: tuple[int, ...]

    @classmethod
    def of(cls, instance: Instance) -> SharingGain | None:
        """The gain of an instance; None if no two of its jobs may share GPUs. O(n + pairs of kinds).

        Rates that both jobs of a pair need to be above 0 are taken as they are given, in either order,
        for every GPU type of the cluster; the largest count, so that the gain is never too small.
        """
        pairs = list(_usable(instance))
        if not pairs:
            return None
        beside: dict[Kind, float] = {}
        for kinds, rates in pairs:
            for kind, rate in zip(kinds, rates, strict=True):
                beside[kind] = max(beside.get(kind, 0.0), rate)
        alone = _alone(instance)
        most = [max(rate, beside.get(kind, 0.0)) for kind, rate in alone]
        least: dict[Kind, float] = {}
        for (kind, _), rate in zip(alone, most, strict=True):
            least[kind] = min(least.get(kind, rate), rate)
        kappa = max(
            sum(
                (Fraction(rate) / Fraction(least[kind]) for kind, rate in zip(*each, strict=True)),
                Fraction(0),
            )
            for each in pairs
        )
        service = _service(instance, [kind in beside for kind, _ in alone], most)
        if min(service) < 1:
            # Less than a tick of work takes a tick, alone as well as beside another.
            kappa, service = max(kappa, Fraction(2)), [max(ticks, 1) for ticks in service]
        return cls(max(kappa, Fraction(1)), tuple(service))


def _kinds(instance: Instance) -> list[Kind]:
    jobs = instance.workload
    return list(zip(jobs.model.tolist(), jobs.gpus.tolist(), strict=True))


def _usable(instance: Instance) -> list[tuple[tuple[Kind, Kind], tuple[float, float]]]:
    """Pairs of kinds of two of the jobs, and their rates on some GPU type of the cluster."""
    if instance.together is None:
        return []
    count, types = Counter(_kinds(instance)), set(instance.cluster.gpu_types)
    # A table may have a pair in both orders; the instance then takes a rate from each.
    most: dict[tuple[str, Kind, Kind], float] = {}
    for (gpu_type, one, other), rates in instance.together.together.items():
        for key, rate in zip(((one, other), (other, one)), rates, strict=True):
            most[gpu_type, *key] = max(most.get((gpu_type, *key), 0.0), rate)
    return [
        ((one, other), (rate, most[gpu_type, other, one]))
        for (gpu_type, one, other), rate in most.items()
        if gpu_type in types and one[1] == other[1] and min(rate, most[gpu_type, other, one]) > 0
        if count[one] >= 1 and count[other] >= (2 if one == other else 1)
    ]


def _alone(instance: Instance) -> list[tuple[Kind, float]]:
    """Kind and largest rate [work/s] of every job alone."""
    jobs = instance.workload
    if jobs.throughput is None:
        return [(kind, 1.0) for kind in _kinds(instance)]
    columns = [jobs.gpu_types.index(name) for name in instance.cluster.gpu_types]
    most = jobs.throughput[:, columns].max(axis=1).tolist()
    return list(zip(_kinds(instance), most, strict=True))


def _service(instance: Instance, shares: list[bool], most: list[float]) -> list[int]:
    """Ticks of service of every job; conditions speed up both a job alone and a pair."""
    conditions, jobs = instance.conditions, instance.workload
    best = np.ones(len(jobs)) if conditions is None else conditions.best(jobs)
    alone = to_ticks(instance.shortest_s).tolist()
    columns = zip(shares, jobs.work.tolist(), most, best.tolist(), alone, strict=True)
    return [
        min(int(Fraction(work) * TICKS_PER_S / (Fraction(rate) * Fraction(speed))), ticks)
        if shared
        else ticks
        for shared, work, rate, speed, ticks in columns
    ]
