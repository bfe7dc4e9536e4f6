"""Jobs whose GPU times are drawn from a sample, such as the public one of Tiresias' large trace.

Source: github.com/SymbioticLab/Tiresias at 959f9b0, ``simulator/yarn-gput{1000,5000,10000}.csv``: GPU times
[GPU-s] of jobs of the trace that Gu et al., NSDI'19, section 6.4, simulate, thinned by their authors and
published for the Gittins index. Without a file of samples, quantiles of the smallest of the three are used
(1,001 values, of which 80 are kept here, all of the largest). Gangs are those of ``tiresias-trace``, our choice,
drawn again until the job runs for a minute to 1,000 hours, about the span of Figure 19.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_jobs,
    draw_gangs,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.generators.quantiles import QuantileLaw
from shadowprice.instances.generators.tiresias_trace import GANG_SHARES
from shadowprice.instances.samples import load_samples
from shadowprice.instances.workload import Workload

NAME = "gpu-time-sample"

SHORTEST_S, LONGEST_S = 60.0, 3.6e6

PUBLIC_GPU_S = QuantileLaw.of_points(
    (
        (0, 121),
        (0.025, 165),
        (0.05, 211),
        (0.075, 285),
        (0.1, 357),
        (0.125, 488),
        (0.15, 552),
        (0.175, 595),
        (0.2, 672),
        (0.225, 766),
        (0.25, 860),
        (0.275, 929),
        (0.3, 1049),
        (0.325, 1185),
        (0.35, 1331),
        (0.375, 1467),
        (0.4, 1559),
        (0.425, 1741),
        (0.45, 1908),
        (0.475, 2046),
        (0.5, 2227),
        (0.525, 2450),
        (0.55, 2577),
        (0.575, 2710),
        (0.6, 3064),
        (0.625, 3583),
        (0.65, 4081),
        (0.675, 4953),
        (0.7, 5555),
        (0.71, 5770),
        (0.72, 5937),
        (0.73, 6228),
        (0.74, 6974),
        (0.75, 8215),
        (0.76, 8884),
        (0.77, 9375),
        (0.78, 10424),
        (0.79, 11185),
        (0.8, 12706),
        (0.81, 14384),
        (0.82, 16048),
        (0.83, 19387),
        (0.84, 23840),
        (0.85, 29168),
        (0.86, 36641),
        (0.87, 44431),
        (0.88, 54232),
        (0.89, 61692),
        (0.9, 75999),
        (0.91, 99075),
        (0.92, 124655),
        (0.93, 167080),
        (0.94, 230480),
        (0.95, 326172),
        (0.955, 387104),
        (0.96, 467939),
        (0.965, 592368),
        (0.97, 721700),
        (0.975, 901096),
        (0.98, 1.25918e06),
        (0.981, 1.34811e06),
        (0.982, 1.42872e06),
        (0.983, 1.51568e06),
        (0.984, 1.608e06),
        (0.985, 1.65054e06),
        (0.986, 1.73187e06),
        (0.987, 1.82912e06),
        (0.988, 1.96672e06),
        (0.989, 2.06601e06),
        (0.99, 2.26882e06),
        (0.991, 2.60047e06),
        (0.992, 2.90486e06),
        (0.993, 3.20383e06),
        (0.994, 3.67869e06),
        (0.995, 4.3079e06),
        (0.996, 4.93336e06),
        (0.997, 6.0127e06),
        (0.998, 7.90175e06),
        (0.999, 1.13484e07),
        (1, 5.32946e07),
    )
)
"""yarn-gput1000.csv: the share of its values up to a GPU time [GPU-s]."""


def generate(
    *,
    jobs: int = 12_000,
    seed: int = 0,
    samples: str | Path | None = None,
    load: float | None = None,
    gpus_total: int = 512,
    jobs_per_hour: float | None = None,
) -> Workload:
    """Jobs with services of the sample and gangs of the trace, in whole seconds; O(jobs).

    Parameters
    ----------
    samples : path, optional
        File of GPU times [GPU-s], one a line; the public sample's quantiles if not given.
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for; 0.9 if no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals instead of a load.

    Raises
    ------
    InputError
        If a parameter is out of range, or the file is no sample or has none that a gang could run in
        a minute to 1,000 hours.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 23)
    known = None if samples is None else load_samples(samples)
    if known is not None:
        possible = np.any([_runs_in_time(known, gang) for gang in GANG_SHARES], axis=0)
        known = known[possible]
        if not len(known):
            raise InputError(
                f"{samples}: expected a GPU time that 1 to {max(GANG_SHARES)} GPUs do in "
                f"{SHORTEST_S:g} to {LONGEST_S:g} s"
            )
    service_gpu_s = _services(rng, jobs, known)
    gpus = draw_gangs(rng, jobs, GANG_SHARES)
    while np.any(wrong := ~_runs_in_time(service_gpu_s, gpus)):
        gpus[wrong] = draw_gangs(rng, int(wrong.sum()), GANG_SHARES)
    work = np.round(service_gpu_s / gpus)
    return Workload.from_columns(
        arrival_s=poisson_arrivals(
            rng, work * gpus, load=load, gpus_total=gpus_total, jobs_per_hour=jobs_per_hour
        ),
        gpus=gpus,
        work=work,
        source=f"sampled GPU times, seed {seed}",
    )


def _services(
    rng: np.random.Generator, jobs: int, known: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Independent GPU times [GPU-s], of those that some gang can do in time."""
    if known is None:
        return PUBLIC_GPU_S.quantile(rng.random(jobs))
    return rng.choice(known, jobs)


def _runs_in_time(
    service_gpu_s: NDArray[np.float64], gpus: NDArray[np.int64] | int
) -> NDArray[np.bool_]:
    """Jobs whose run times are within the span."""
    work = np.round(service_gpu_s / gpus)
    return np.asarray((work >= SHORTEST_S) & (work <= LONGEST_S))
