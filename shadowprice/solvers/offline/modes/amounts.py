r"""Modes of jobs by their width and by the CPUs and memory that they hold: LB-amount.

A job that may grow has a mode for each width, in which it uses so many GPUs and is faster by less than in proportion;
one with a profile has a mode for each point of it, in which it uses as many CPUs and as much memory as the point asks
for each GPU, and is as fast as it says. Resources are the GPUs of each type, and all CPUs and memory of the cluster.
Points that are no faster than others which use no more are left out; of more than ``MOST_POINTS`` some are replaced by
one that is as fast as the fastest of them and uses of each resource what the most modest does.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICK_S, to_ticks, up_to_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # where no two of the jobs may
        Feature.PROFILES,  # are the modes
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,  # are the modes
        Feature.FAILURES,  # what is lost is done again
        Feature.RESTART,  # only restricts
    }
)

MOST_POINTS = 24
"""Points of a job, of width, CPUs and memory, on each type."""

_SHORT = 1 - 2.0**-27
"""Share of CPUs and memory that reaches a point, and less."""

_MICRO = 1e-6
"""Unit in which CPUs and memory that are held count on a node, rounded down."""

Point = tuple[float, float, float, float]
"""Speed, GPUs, CPUs, memory [GB]."""


def amount_modes(instance: Instance) -> ModeTable | None:
    """Modes by width, CPUs and memory; None where neither matters, or jobs may share GPUs.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "modes by width, CPUs and memory")
    if instance.sensitivity is None and instance.elasticity is None:
        return None
    if SharingGain.of(instance) is not None:
        return None
    jobs, cluster = instance.workload, instance.cluster
    pools = 1 if jobs.throughput is None else len(cluster.gpu_types)
    plain = instance.plain_processing_s[:, :pools]
    number: dict[tuple[float, ...], int] = {}
    points: list[list[Point]] = []
    kind = np.zeros(len(jobs), dtype=np.int64)
    for j in range(len(jobs)):
        key = _key(instance, j)
        if key not in number:
            number[key] = len(points)
            points.append(_fewer(_points(instance, j)))
        kind[j] = number[key]
    most = max(map(len, points), default=1)
    time = np.zeros((len(jobs), pools * most), dtype=np.int64)
    speed = np.ones((len(points), most))
    for c, mine in enumerate(points):
        speed[c, : len(mine)] = [point[0] for point in mine]
    there = np.array([[m < len(mine) for m in range(most)] for mine in points])
    for r, m in product(range(pools), range(most)):
        here = there[kind, m] & np.isfinite(plain[:, r])
        needed = up_to_grid(plain[here, r] / speed[kind[here], m])
        time[here, r * most + m] = to_ticks(np.maximum(needed, TICK_S))
    use = _uses(points, pools, most)
    sizes = [cluster.total_gpus] if pools == 1 else cluster.gpus_per_type.tolist()
    capacity = [
        *map(Fraction, sizes),
        _in_all(node.cpus for node in cluster.nodes),
        _in_all(node.memory_gb for node in cluster.nodes),
    ]
    asked = (use != 0).any(axis=(0, 1))
    units = np.array(capacity, dtype=object)[asked]
    return ModeTable.of_workload(jobs, time, units, kind, use[:, :, asked])


def _in_all(amounts: Iterable[float]) -> Fraction:
    """Amounts of all nodes, each a millionth more."""
    return sum((Fraction(amount) + Fraction(_MICRO) for amount in amounts), Fraction(0))


def _key(instance: Instance, job: int) -> tuple[float, ...]:
    """Gang, profile and widths of a job, on which its points depend."""
    known, grown = instance.sensitivity, instance.elasticity
    profile = -1 if known is None else int(known.of[job])
    widths = () if grown is None else (float(grown.widest[job]), float(grown.efficiency[job]))
    return float(instance.workload.gpus[job]), float(profile), *widths


def _points(instance: Instance, job: int) -> list[Point]:
    """Speeds and uses of a job, by all widths and all amounts that it may have."""
    known, grown = instance.sensitivity, instance.elasticity
    gang = int(instance.workload.gpus[job])
    widths, gains = np.array([gang]), np.ones(1)
    if grown is not None:
        widths = np.arange(gang, int(grown.widest[job]) + 1)
        gains = grown.speed(np.full(len(widths), job), np.array([gang]), widths)
    each: list[tuple[float, float, float]] = [(1.0, 0.0, 0.0)]
    if known is not None:
        profile = known.profile_of(job)
        each = [
            (float(profile.speed[a, b]), float(cpus), float(memory))
            for (a, cpus), (b, memory) in product(
                enumerate(profile.cpus_per_gpu), enumerate(profile.memory_gb_per_gpu)
            )
            if profile.speed[a, b] > 0
        ]
    return [
        (speed * gain, float(width), width * cpus, width * memory)
        for (width, gain), (speed, cpus, memory) in product(
            zip(widths.tolist(), gains.tolist(), strict=True), each
        )
    ]


def _fewer(points: list[Point]) -> list[Point]:
    """Points that some other is not as good as; of too many, the best that neighbours in speed could be together."""
    efficient: list[Point] = []
    for point in sorted(points, key=lambda each: (-each[0], each[1:])):
        if not any(all(a <= b for a, b in zip(k[1:], point[1:], strict=True)) for k in efficient):
            efficient.append(point)
    if len(efficient) <= MOST_POINTS:
        return efficient
    chunks = np.array_split(np.arange(len(efficient)), MOST_POINTS)
    return [
        (
            max(efficient[i][0] for i in chunk),
            *(min(efficient[i][axis] for i in chunk) for axis in (1, 2, 3)),
        )
        for chunk in (each.tolist() for each in chunks)
    ]


def _uses(points: list[list[Point]], pools: int, most: int) -> NDArray[np.object_]:
    """Uses of GPUs by pool, of CPUs and of memory, shape (kinds, modes, pools + 2); rounded down."""
    use = np.zeros((len(points), pools * most, pools + 2), dtype=object)
    for c, mine in enumerate(points):
        for (m, (_, gpus, cpus, memory)), r in product(enumerate(mine), range(pools)):
            use[c, r * most + m, r] = int(gpus) * USE_UNIT
            for q, amount in ((pools, cpus), (pools + 1, memory)):
                asked = amount * _SHORT - gpus * 2 * _MICRO
                use[c, r * most + m, q] = max(int(asked * USE_UNIT), 0)
    return use
