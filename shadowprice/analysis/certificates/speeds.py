"""Speeds of jobs as records of certificates have them: by width, beside partners, of copies and of graphs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.proofs import run_speed

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance

TYPED_KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,  # where nobody does
        Feature.FAILURES,
        Feature.CORES,
        Feature.CPU_MEMORY,
    }
)
"""With these the speed of whole gangs that run alone depends on their GPU type and on nothing else."""

WHOLE_GPU = 1000

Sort = tuple[str, int, bool]
"""Model and gang of a job, of which the speed of pairs depends, and whether it holds whole GPUs."""


def plain_gangs(instance: Instance) -> bool:
    """True if no job's speed depends on anything, GPU types, nodes and others among it."""
    ticks = run_speed.alone_ticks(instance)
    return types_alone(instance) and bool((ticks == ticks[:, :1]).all())


def types_alone(instance: Instance) -> bool:
    """True if no job's speed depends on anything but GPU types, where nobody shares."""
    return not missing(instance, TYPED_KNOWS)


def may_grow(instance: Instance) -> NDArray[np.bool_]:
    """True for jobs that may hold more than their gang, shape (n,)."""
    jobs, grown = instance.workload, instance.elasticity
    if grown is None:
        return np.zeros(len(jobs), dtype=np.bool_)
    return np.asarray(grown.widest > jobs.gpus)


def speeds_by_width(instance: Instance, job: int) -> list[float]:
    """Speeds of a job on as many GPUs as its gang has, on one more, and so on."""
    grown, gang = instance.elasticity, int(instance.workload.gpus[job])
    if grown is None:
        return [1.0]
    width = np.arange(gang, int(grown.widest[job]) + 1)
    row = np.full(len(width), job)
    gangs = np.full(len(width), gang)
    return [float(v) for v in run_speed.width_speed(grown, row, gangs, width)]


def sorts(instance: Instance) -> tuple[list[Sort], list[int]]:
    """Sorts of jobs in order of appearance, and that of every job; who holds a part or cores shares with nobody."""
    jobs = instance.workload
    columns = jobs.model, jobs.gpus, jobs.on_whole_gpus
    every = list(zip(*(column.tolist() for column in columns), strict=True))
    place = {sort: k for k, sort in enumerate(dict.fromkeys(every))}
    return list(place), [place[sort] for sort in every]


SharingBySort = list[dict[int, dict[int, float]]]
"""Of every job, by GPU type and sort of its partner, ticks of all of it; with graphs its speed against that alone."""


def sharing_by_sort(instance: Instance) -> SharingBySort:
    """Jobs beside a partner of each sort that they may share GPUs with, at speed 1; O(n sorts types)."""
    rates_of = run_speed.sharing_ticks if instance.graphs is None else run_speed.sharing_rates
    alone, (names, of) = run_speed.alone_ticks(instance), sorts(instance)
    first: list[list[int]] = [[] for _ in names]
    for job, sort in enumerate(of):
        if len(first[sort]) < 2:
            first[sort].append(job)
    by_type: SharingBySort = [{} for _ in of]
    for sort, some in enumerate(first):
        # A job is not its own partner; of another's sort there may be one job only.
        partner = [next((p for p in some if p != job), job) for job in range(len(of))]
        for kind in range(alone.shape[1]):
            rows = np.arange(len(of)), np.array(partner), np.full(len(of), kind)
            for job, each in enumerate(rates_of(instance, alone, *rows).tolist()):
                if each:
                    by_type[job].setdefault(kind, {})[sort] = each
    return by_type


def copy_rates(instance: Instance) -> list[dict[str, Fraction]]:
    """Of every job, steps a tick on one GPU of each type on which it can run."""
    jobs, names = instance.workload, dict.fromkeys(n.gpu_type for n in instance.cluster.nodes)
    rates = []
    for job, gang in enumerate(jobs.gpus.tolist()):
        rate = dict.fromkeys(names, Fraction(1, gang))
        if jobs.throughput is not None:
            row = {name: float(jobs.throughput[job, jobs.gpu_types.index(name)]) for name in names}
            rate = {name: Fraction(r) / gang / TICKS_PER_S for name, r in row.items() if r > 0}
        rates.append(rate)
    return rates
