"""Heavy-tailed jobs: lognormal durations in whole seconds, gangs of 1 to 16 GPUs, Poisson arrivals.

The law is ours; median, spread and gangs are of the order seen in published traces.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_count,
    check_jobs,
    check_number,
    draw_gangs,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.workload import Workload

NAME = "lognormal"
GANG_SHARES = {1: 0.55, 2: 0.15, 4: 0.15, 8: 0.10, 16: 0.05}


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float | None = None,
    gpus_total: int = 64,
    jobs_per_hour: float | None = None,
    median_s: float = 1800.0,
    sigma: float = 1.9,
    shortest_s: float = 60.0,
    longest_s: float = 200_000.0,
    gang_shares: Mapping[int, float] | None = None,
) -> Workload:
    """Durations exp(N(log median, sigma^2)), clipped to [shortest, longest] and rounded to seconds.

    Parameters
    ----------
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for; 0.9 if no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals instead of a load.
    median_s : float
        Median of the durations before they are clipped [s].
    sigma : float
        Standard deviation of the logarithm of the durations.
    shortest_s, longest_s : float
        Durations are at least and at most this [s].
    gang_shares : mapping of int to float, optional
        Share of each gang size; by default 55, 15, 15, 10, 5 % of 1, 2, 4, 8, 16 GPUs. Gangs
        wider than ``gpus_total`` are left out and the others scaled up.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs = check_jobs(jobs)
    gpus_total = check_count("gpus_total", gpus_total)
    shortest_s = check_number("shortest_s", shortest_s, 0.0, MAX_TIME_S)
    median_s = check_number("median_s", median_s, 0.0, MAX_TIME_S)
    longest_s = check_number("longest_s", longest_s, 0.0, MAX_TIME_S)
    sigma = check_number("sigma", sigma, -1e-300, 20.0)
    if not shortest_s <= median_s <= longest_s:
        raise InputError(
            "lognormal: expected shortest_s <= median_s <= longest_s, "
            f"got {shortest_s:g}, {median_s:g}, {longest_s:g}"
        )
    rng = random_generator(seed, 2)
    shares = GANG_SHARES if gang_shares is None else gang_shares
    fitting = {
        gang: share
        for gang, share in shares.items()
        if check_count("gang size", gang) <= gpus_total
    }
    gpus = draw_gangs(rng, jobs, fitting)
    drawn = np.exp(rng.normal(np.log(median_s), sigma, jobs))
    work: NDArray[np.float64] = np.clip(np.round(drawn), shortest_s, longest_s)
    arrival_s = poisson_arrivals(
        rng, work * gpus, load=load, gpus_total=gpus_total, jobs_per_hour=jobs_per_hour
    )
    return Workload.from_columns(
        arrival_s=arrival_s, gpus=gpus, work=work, source=f"lognormal, seed {seed}"
    )
