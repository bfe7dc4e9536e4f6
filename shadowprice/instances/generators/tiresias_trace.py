"""A stand-in for Tiresias' large trace: durations of its Figure 19.

Source: Gu et al., NSDI'19, section 6.4 and Figure 19: durations of the deep-learning jobs of a Microsoft
cluster of more than 2,000 GPUs, ten weeks; mean 11.3 hours, median 0.52, 95th percentile 45. Points were
digitised. The trace itself, gangs with it, is not public; gangs here are 60, 12, 12, 12, 3 and 1 % of 1 to
32 GPUs, independent of the duration (our choice, after the Philly trace). A sample of its GPU times is public:
``gpu-time-sample`` draws from that.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.generators.arrivals import (
    check_jobs,
    draw_gangs,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.generators.quantiles import QuantileLaw
from shadowprice.instances.workload import Workload

NAME = "tiresias-trace"

GANG_SHARES = {1: 0.60, 2: 0.12, 4: 0.12, 8: 0.12, 16: 0.03, 32: 0.01}
SHORTEST_S = 60.0

DURATIONS_H = QuantileLaw.published("tiresias-figure-19")
"""Figure 19, all jobs [h]: the share of jobs that last at most so long; digitised."""


def generate(
    *,
    jobs: int = 12_000,
    seed: int = 0,
    load: float | None = None,
    gpus_total: int = 512,
    jobs_per_hour: float | None = None,
) -> Workload:
    """Jobs of that law, with whole seconds; O(jobs).

    Parameters
    ----------
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for; 0.9 if no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals instead of a load.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 19)
    work = np.maximum(np.round(3600.0 * DURATIONS_H.quantile(rng.random(jobs))), SHORTEST_S)
    gpus = draw_gangs(rng, jobs, GANG_SHARES)
    return Workload.from_columns(
        arrival_s=poisson_arrivals(
            rng, work * gpus, load=load, gpus_total=gpus_total, jobs_per_hour=jobs_per_hour
        ),
        gpus=gpus,
        work=work,
        source=f"tiresias trace law, seed {seed}",
    )
