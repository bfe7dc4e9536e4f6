"""A stand-in for Gandiva's nine-day trace: 8,800 jobs for 100 GPUs.

Source: Xiao et al., OSDI'18, section 6.5, Table 5: a trace of a shared Microsoft cluster of 2,000 GPUs
and 8,800 jobs, replayed on 100; makespan 13,371 minutes under a YARN-like scheduler and 11,349 under
Gandiva. How many jobs were replayed is not said: 8,800 with the durations of Figure 16 (mean 339
minutes) are more than twice what 100 GPUs do in that time. Derived here: 8,800 jobs, shortened until they
fit; arrivals are uniform over 10,693 minutes, the shorter
makespan less its mean time in the system; the mean service is what 100 GPUs do in 11,349 minutes,
with a log-normal law of sigma 1 (with the sigma of 1.5 and more of other production traces single
jobs would be longer than the published makespans); models as in the packing experiment; the
models that ran on several GPUs there ask for 1, 2, 4 or 8.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.generators.arrivals import (
    check_jobs,
    check_number,
    draw_gangs,
    random_generator,
)
from shadowprice.instances.generators.gandiva import WIDE, draw_models
from shadowprice.instances.workload import Workload

NAME = "gandiva-trace"

JOBS, GPUS = 8800, 100
ARRIVALS_S = 60.0 * (11349 - 656)
MEAN_GPU_S = 60.0 * 11349 * GPUS / JOBS
SIGMA = 1.0
WIDE_GANGS = {1: 0.4, 2: 0.2, 4: 0.3, 8: 0.1}
"""Gangs of the models that use several GPUs; our choice."""


def generate(*, jobs: int = JOBS, seed: int = 0, days: float | None = None) -> Workload:
    """Jobs of that law; O(jobs log jobs).

    Parameters
    ----------
    days : float, optional
        Time within which all jobs arrive; in proportion to their number if not given, so that
        fewer jobs ask for the same share of 100 GPUs.
    """
    jobs = check_jobs(jobs)
    span_s = ARRIVALS_S * jobs / JOBS
    if days is not None:
        span_s = 86_400.0 * check_number("days", days, 0.0, 1e5)
    rng = random_generator(seed, 12)
    model = draw_models(rng, jobs)
    gpus = np.where(np.isin(model, WIDE), draw_gangs(rng, jobs, WIDE_GANGS), 1)
    service_gpu_s = rng.lognormal(np.log(MEAN_GPU_S) - SIGMA**2 / 2, SIGMA, jobs)
    return Workload.from_columns(
        arrival_s=np.sort(np.floor(rng.uniform(0.0, span_s, jobs))),
        gpus=gpus,
        work=np.ceil(service_gpu_s / gpus),
        model=model,
        source=f"nine-day stand-in, seed {seed}",
    )
