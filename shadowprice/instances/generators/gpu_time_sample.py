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

PUBLIC_GPU_S = QuantileLaw.published("yarn-gput1000")
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
