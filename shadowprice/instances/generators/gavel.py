"""Gavel's synthetic law: durations 60 x 10^x s, gangs of 1, 2, 4, 8 GPUs, Poisson arrivals.

Source: Narayanan et al., OSDI'20, section 7.1, and the published generator (scheduler/utils.py):
x ~ U[1.5, 3] with probability 0.8, U[3, 4] with 0.2; gangs 70, 10, 15, 5 %; job types uniform,
among those measured at the gang's size; steps = duration on a V100 x its rate. With other random
numbers than the published generator: same law, not the same jobs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_jobs,
    draw_gangs,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload

NAME = "gavel"
GANG_SHARES = {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}
REFERENCE_TYPE = "v100"


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float | None = None,
    gpus_total: int = 108,
    jobs_per_hour: float | None = None,
    single_gpu: bool = False,
    throughputs: Throughputs | None = None,
) -> Workload:
    """Jobs of Gavel's law; O(jobs).

    Parameters
    ----------
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for, in durations on a V100; 0.9 if
        no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals, as the paper's figures have it, instead of a load.
    single_gpu : bool
        The paper's continuous-single traces: every gang is one GPU.
    throughputs : Throughputs, optional
        Table of rates with a type ``v100``; jobs then have a job type and work in whole steps.
        Without it, work is in seconds and all GPUs are alike.

    Raises
    ------
    InputError
        If a parameter is out of range, or the table has no V100 or no type for a gang.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 1)
    duration_s = decades_s(rng, jobs)
    gpus = np.ones(jobs, dtype=np.int64) if single_gpu else draw_gangs(rng, jobs, GANG_SHARES)
    arrival_s = poisson_arrivals(
        rng, duration_s * gpus, load=load, gpus_total=gpus_total, jobs_per_hour=jobs_per_hour
    )
    source = f"gavel law, seed {seed}"
    if throughputs is None:
        return Workload.from_columns(arrival_s=arrival_s, gpus=gpus, work=duration_s, source=source)
    model, table = _job_types(rng, gpus, throughputs)
    reference = table[:, throughputs.column(REFERENCE_TYPE)]
    return Workload.from_columns(
        arrival_s=arrival_s,
        gpus=gpus,
        work=np.maximum(np.floor(duration_s * reference), 1.0),
        model=model,
        throughput=table,
        gpu_types=throughputs.gpu_types,
        source=source,
    )


def decades_s(rng: np.random.Generator, jobs: int) -> NDArray[np.float64]:
    """Durations 60 x 10^x s, x ~ U[1.5, 3] with probability 0.8, else U[3, 4]."""
    short = rng.random(jobs) < 0.8
    exponent = np.where(short, rng.uniform(1.5, 3.0, jobs), rng.uniform(3.0, 4.0, jobs))
    durations: NDArray[np.float64] = 60.0 * 10.0**exponent
    return durations


def _job_types(
    rng: np.random.Generator, gpus: NDArray[np.int64], throughputs: Throughputs
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Uniform job types for gangs, shape (n,), and their rates, shape (n, types)."""
    column = throughputs.column(REFERENCE_TYPE)
    model = np.empty(len(gpus), dtype=object)
    table = np.empty((len(gpus), len(throughputs.gpu_types)))
    for gang in np.unique(gpus).tolist():
        rates = {
            name: rate
            for (name, size), rate in sorted(throughputs.alone.items())
            if size == gang and rate[column] > 0
        }
        if not rates:
            raise InputError(
                f"{throughputs.source}: no job type on {gang} GPUs of {REFERENCE_TYPE}"
            )
        rows = np.flatnonzero(gpus == gang)
        drawn = rng.integers(len(rates), size=len(rows))
        model[rows] = np.array(list(rates), dtype=object)[drawn]
        table[rows] = np.array(list(rates.values()))[drawn]
    return model, table
