"""Gavel's published generator, draw for draw: the jobs behind the figures of the paper.

Source: Narayanan et al., OSDI'20, section 7.1; github.com/stanford-futuredata/gavel at c4fa400,
scheduler/utils.py, job_table.py, scheduler.py (read). Two generators of Python's ``random``, seeded with
seed + 2 (jobs) and seed + 3 (arrivals). Of every job are drawn, in this order: the gang (always, also
where all gangs are one GPU), whether it is long, the exponent x of its 60 x 10^x s on V100s, and its
type among 26, again and again until one that runs on so many GPUs. Gaps are exponential, the first job
is there at 0. Steps are the duration times the rate on V100s, not rounded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_count, check_jobs, check_number
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.workload import Workload

NAME = "gavel-published"
REFERENCE_TYPE = "v100"

DISTRIBUTED_TYPES = (
    *(f"ResNet-18 (batch size {size})" for size in (16, 32, 64, 128, 256)),
    *(f"ResNet-50 (batch size {size})" for size in (16, 32, 64, 128)),
    *(f"Transformer (batch size {size})" for size in (16, 32, 64, 128, 256)),
    *(f"LM (batch size {size})" for size in (5, 10, 20, 40, 80)),
)
"""Job types that run on one GPU or several."""

JOB_TYPES = (
    *DISTRIBUTED_TYPES,
    *(f"Recommendation (batch size {size})" for size in (512, 1024, 2048, 4096, 8192)),
    "A3C",
    "CycleGAN",
)
"""All job types, in the original's order."""

LONG_SHARE_FROM = 0.8
"""Jobs whose draw from [0, 1) is at least this are long."""

EXPONENTS = {True: (3.0, 4.0), False: (1.5, 3.0)}
"""Ranges of x of long jobs and of the others."""

MODEL_STREAM, ARRIVAL_STREAM = 2, 3
"""What the original adds to its seed."""

ENTITIES = 3
"""Entities of the experiment on hierarchies; entity k has weight k."""


@dataclass(frozen=True)
class DrawnJob:
    """A job as it is drawn: arrival [s], gang [GPUs], duration on V100s [s] and type."""

    arrival_s: float
    gpus: int
    duration_s: float
    model: str


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    jobs_per_hour: float = 5.6,
    single_gpu: bool = False,
    throughputs: Throughputs | None = None,
) -> Workload:
    """Jobs of Gavel's published generator; O(jobs).

    Parameters
    ----------
    seed : int
        The original's ``--seed``; the paper has 0, 1 and 2.
    jobs_per_hour : float
        Rate of arrivals; infinite for all jobs at 0, as in the paper's static traces.
    single_gpu : bool
        The paper's continuous-single traces: every gang is one GPU.
    throughputs : Throughputs, optional
        The published table; jobs then work in steps. Without it work is in seconds and all GPUs are
        alike.

    Raises
    ------
    InputError
        If a parameter is out of range, or the table lacks a type that is drawn.
    """
    return endless(
        seed=seed, jobs_per_hour=jobs_per_hour, single_gpu=single_gpu, throughputs=throughputs
    ).first(jobs)


def endless(
    *,
    seed: int = 0,
    jobs_per_hour: float = 5.6,
    single_gpu: bool = False,
    throughputs: Throughputs | None = None,
) -> EndlessWorkload:
    """The same jobs without end; parameters as of :func:`generate`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    seed = check_count("seed", seed, least=0, most=2**128)
    if jobs_per_hour != math.inf:
        jobs_per_hour = check_number("jobs_per_hour", jobs_per_hour, 0.0, 1e9)
    source = f"Gavel's published generator, seed {seed}, {jobs_per_hour:g} jobs per hour"

    def first(jobs: int) -> Workload:
        drawn = draw_jobs(seed, jobs_per_hour, single_gpu=single_gpu)
        return _workload([next(drawn) for _ in range(check_jobs(jobs))], throughputs, source)

    return EndlessWorkload(first, source)


def draw_jobs(seed: int, jobs_per_hour: float, *, single_gpu: bool) -> Iterator[DrawnJob]:
    """Draw one job after the other, without end."""
    of_jobs = random.Random(seed + MODEL_STREAM)
    of_arrivals = random.Random(seed + ARRIVAL_STREAM)
    arrival_s = 0.0
    while True:
        gang = _gang(of_jobs.uniform(0.0, 1.0))
        low, high = EXPONENTS[of_jobs.random() >= LONG_SHARE_FROM]
        duration_s = 60.0 * 10.0 ** of_jobs.uniform(low, high)
        gang = 1 if single_gpu else gang
        model = of_jobs.choice(JOB_TYPES)
        while gang > 1 and model not in DISTRIBUTED_TYPES:
            model = of_jobs.choice(JOB_TYPES)
        yield DrawnJob(arrival_s, gang, duration_s, model)
        arrival_s += -math.log(1.0 - of_arrivals.random()) / (jobs_per_hour / 3600.0)


def hierarchy_jobs(throughputs: Throughputs, *, jobs: int = 18) -> Workload:
    """Jobs of the experiment on hierarchies (Figures 12 and 13): types, weights and entities.

    The original's notebook (``hierarchical.ipynb``) seeds Python's ``random`` with 0 and chooses one of the
    26 types for every job; weights are 1 and 2 in turn; a third of the jobs is of each entity, in order. They
    work in steps, one a second on V100s: the experiment asks for fractions of time and nothing is done.

    Parameters
    ----------
    throughputs : Throughputs
        The published table.
    jobs : int
        A multiple of 3.

    Raises
    ------
    InputError
        If the number of jobs is no multiple of 3, or the table lacks a type.
    """
    if check_jobs(jobs) % ENTITIES:
        raise InputError(f"jobs is {jobs!r}, expected a multiple of {ENTITIES}")
    choose = random.Random(0)
    models = [choose.choice(JOB_TYPES) for _ in range(jobs)]
    return Workload.from_columns(
        arrival_s=np.zeros(jobs),
        gpus=1,
        work=1.0,
        weight=[float(k % 2 + 1) for k in range(jobs)],
        tenant=np.array([f"entity {1 + k * ENTITIES // jobs}" for k in range(jobs)], dtype=object),
        model=np.array(models, dtype=object),
        throughput=[_rates(throughputs, model, 1) for model in models],
        gpu_types=throughputs.gpu_types,
        source="Gavel's jobs of Figures 12 and 13",
    )


def _gang(drawn: float) -> int:
    """Gang size from a number in [0, 1]: 70, 10, 15, 5 % of 1, 2, 4, 8 GPUs, with the original's limits."""
    if 0.7 <= drawn <= 0.8:
        return 2
    if 0.8 <= drawn <= 0.95:
        return 4
    return 8 if drawn >= 0.95 else 1


def _workload(drawn: list[DrawnJob], throughputs: Throughputs | None, source: str) -> Workload:
    arrival_s = [job.arrival_s for job in drawn]
    gpus = [job.gpus for job in drawn]
    duration_s = [job.duration_s for job in drawn]
    model = np.array([job.model for job in drawn], dtype=object)
    if throughputs is None:
        return Workload.from_columns(
            arrival_s=arrival_s, gpus=gpus, work=duration_s, model=model, source=source
        )
    column = throughputs.column(REFERENCE_TYPE)
    table = np.array([_rates(throughputs, job.model, job.gpus) for job in drawn])
    return Workload.from_columns(
        arrival_s=arrival_s,
        gpus=gpus,
        work=np.array(duration_s) * table[:, column],
        model=model,
        throughput=table,
        gpu_types=throughputs.gpu_types,
        source=source,
    )


def _rates(throughputs: Throughputs, model: str, gpus: int) -> tuple[float, ...]:
    found = throughputs.rates(model, gpus)
    if found is None:
        raise InputError(
            f"{throughputs.source}: has no rates of {model} on {gpus} GPUs, expected all {len(JOB_TYPES)} "
            "types of the published generator"
        )
    return found
