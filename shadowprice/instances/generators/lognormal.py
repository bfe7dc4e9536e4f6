"""Heavy-tailed jobs: lognormal durations in whole seconds, gangs of 1 to 16 GPUs, Poisson arrivals."""

from __future__ import annotations

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_jobs, poisson_arrivals
from shadowprice.instances.workload import Workload

NAME = "lognormal"
GANGS, SHARES = (1, 2, 4, 8, 16), (0.55, 0.15, 0.15, 0.10, 0.05)


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float = 0.9,
    gpus_total: int = 64,
    median_s: float = 1800.0,
    sigma: float = 1.9,
    shortest_s: float = 60.0,
    longest_s: float = 200_000.0,
) -> Workload:
    """Durations exp(N(log median, sigma^2)), clipped to [shortest, longest] and rounded to seconds.

    Gangs wider than ``gpus_total`` are left out of the mix and the others scaled up.
    """
    check_jobs(jobs)
    if not (0 < shortest_s <= median_s <= longest_s and 0 <= sigma < 20):
        raise InputError(
            f"lognormal: expected 0 < shortest_s <= median_s <= longest_s and 0 <= sigma < 20, "
            f"got {shortest_s}, {median_s}, {longest_s}, {sigma}"
        )
    rng = np.random.default_rng([seed, 2])
    shares = np.array(SHARES) * (np.array(GANGS) <= gpus_total)
    if shares.sum() == 0:
        raise InputError(f"gpus_total is {gpus_total!r}, expected an integer >= 1")
    gpus = rng.choice(GANGS, jobs, p=shares / shares.sum())
    work = np.clip(
        np.round(np.exp(rng.normal(np.log(median_s), sigma, jobs))), shortest_s, longest_s
    )
    arrival_s = poisson_arrivals(rng, work * gpus, load=load, gpus_total=gpus_total)
    return Workload.from_columns(
        arrival_s=arrival_s, gpus=gpus, work=work, source=f"lognormal, seed {seed}"
    )
