"""Hadar's simulated workload: jobs of four classes of GPU-hours, all there at the beginning.

Source: Sultana et al., IPDPS'24, section on trace-driven simulation (recalled): 480 jobs of the
Philly trace's busiest hours; classes S 0 to 1, M 1 to 10, L 10 to 50, XL 60 to 100 GPU-hours; and the
models of :data:`FAMILIES`, whose rates are those Gavel measured. Nothing is said about 50 to 60 h:
drawn jobs have none, jobs of a trace count as XL.

Assumed by us: GPU-hours are those on V100; classes are equally frequent and GPU-hours uniform within
one, where no trace is given; gangs as in Gavel's traces; batch sizes uniform among those measured.
A gang at which no model of the class was measured (CycleGAN: on one GPU only) is reduced to the
largest smaller one, its GPU-hours kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_jobs, draw_gangs, random_generator
from shadowprice.instances.generators.gavel import GANG_SHARES, REFERENCE_TYPE
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload

NAME = "hadar"
CLASSES = {"S": (0.0, 1.0), "M": (1.0, 10.0), "L": (10.0, 50.0), "XL": (60.0, 100.0)}
"""GPU-hours, more than the first and at most the second."""
FAMILIES = {
    "S": ("ResNet-18",),
    "M": ("CycleGAN",),
    "L": ("LM", "Transformer"),
    "XL": ("ResNet-50",),
}
"""Models on CIFAR-10, monet2photo, Wikitext-2 and Multi30k, ImageNet; by Gavel's names."""
BUSY_HOURS = 8
"""Length of the busiest stretch of a trace: hours 3 to 10 of it, as recalled; which ones is not."""


def generate(*, jobs: int = 480, seed: int = 0, throughputs: Throughputs | None = None) -> Workload:
    """Jobs of the four classes in a random order; O(jobs).

    Parameters
    ----------
    throughputs : Throughputs, optional
        Table of rates with a type ``v100``; jobs then have a model and work in whole steps.
        Without it, work is in seconds and all GPUs are alike.

    Raises
    ------
    InputError
        If a parameter is out of range, or the table has no V100 or no model of a class.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 5)
    low, high = np.array(list(CLASSES.values()))[rng.integers(len(CLASSES), size=jobs)].T
    gpu_hours = high - (high - low) * rng.random(jobs)
    gpus = draw_gangs(rng, jobs, GANG_SHARES)
    return _workload(rng, gpu_hours, gpus, throughputs, f"hadar classes, seed {seed}")


def sampled(
    trace: Workload, *, jobs: int = 480, seed: int = 0, throughputs: Throughputs | None = None
) -> Workload:
    """Jobs of a trace's busiest eight hours, without replacement, moved to the beginning.

    Jobs of more than 100 GPU-hours or with gangs that Gavel's traces do not have are left out; work
    of the trace is in seconds. O(n log n).

    Raises
    ------
    InputError
        If too few jobs are left.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 5)
    gpu_hours = trace.gpus * trace.work / 3600.0
    usable = np.isin(trace.gpus, list(GANG_SHARES)) & (gpu_hours <= CLASSES["XL"][1])
    rows = np.flatnonzero(usable)
    if len(rows):
        hour = (trace.arrival_s[rows] // 3600.0).astype(np.int64)
        until = np.cumsum(np.bincount(hour, minlength=BUSY_HOURS))
        stretch = until[BUSY_HOURS - 1 :] - np.concatenate(([0], until[:-BUSY_HOURS]))
        first = int(stretch.argmax())
        rows = rows[(hour >= first) & (hour < first + BUSY_HOURS)]
    if len(rows) < jobs:
        raise InputError(
            f"{trace.source}: {len(rows)} jobs of the four classes in its busiest {BUSY_HOURS} hours, "
            f"expected at least {jobs}"
        )
    rows = rng.choice(rows, jobs, replace=False)
    source = f"{trace.source}, busiest hours, seed {seed}"
    return _workload(rng, gpu_hours[rows], trace.gpus[rows], throughputs, source)


def _workload(
    rng: np.random.Generator,
    gpu_hours: NDArray[np.float64],
    gpus: NDArray[np.int64],
    throughputs: Throughputs | None,
    source: str,
) -> Workload:
    arrival_s = np.zeros(len(gpus))
    if throughputs is None:
        work = gpu_hours * 3600.0 / gpus
        return Workload.from_columns(arrival_s=arrival_s, gpus=gpus, work=work, source=source)
    edges = [upper for _, upper in CLASSES.values()]
    names = np.array(list(CLASSES), dtype=object)[np.searchsorted(edges, gpu_hours)]
    column = throughputs.column(REFERENCE_TYPE)
    kinds = [
        _draw_kind(rng, str(name), gang, throughputs, column)
        for name, gang in zip(names, gpus.tolist(), strict=True)
    ]
    rates = np.array([throughputs.alone[kind] for kind in kinds])
    gangs = np.array([gang for _, gang in kinds], dtype=np.int64)
    steps = gpu_hours * 3600.0 / gangs * rates[:, column]
    return Workload.from_columns(
        arrival_s=arrival_s,
        gpus=gangs,
        work=np.maximum(np.floor(steps), 1.0),
        model=np.array([model for model, _ in kinds], dtype=object),
        throughput=rates,
        gpu_types=throughputs.gpu_types,
        source=source,
    )


def _draw_kind(
    rng: np.random.Generator, name: str, gang: int, throughputs: Throughputs, column: int
) -> tuple[str, int]:
    """A family of the class, then one of its batch sizes, at the largest gang measured."""
    family = FAMILIES[name][rng.integers(len(FAMILIES[name]))]
    measured = sorted(
        kind
        for kind, rates in throughputs.alone.items()
        if kind[0].split(" (")[0] == family and kind[1] <= gang and rates[column] > 0
    )
    if not measured:
        raise InputError(
            f"{throughputs.source}: no {family} on at most {gang} GPUs of {REFERENCE_TYPE}"
        )
    largest = max(size for _, size in measured)
    same = [kind for kind in measured if kind[1] == largest]
    return same[rng.integers(len(same))]
