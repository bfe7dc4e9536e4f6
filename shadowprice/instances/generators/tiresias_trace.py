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

DURATIONS_H = QuantileLaw.of_points(
    (
        (0.1111, 0.09968),
        (0.1484, 0.1472),
        (0.2144, 0.1691),
        (0.2863, 0.2286),
        (0.3605, 0.2721),
        (0.4675, 0.4409),
        (0.6133, 0.7721),
        (0.6694, 1.147),
        (0.6922, 1.407),
        (0.7284, 1.664),
        (0.7394, 1.818),
        (0.7532, 2.262),
        (0.7723, 2.63),
        (0.7894, 3.13),
        (0.8074, 3.965),
        (0.8313, 4.185),
        (0.8433, 4.913),
        (0.8554, 6.199),
        (0.8734, 8.772),
        (0.8914, 12.52),
        (0.9133, 19.19),
        (0.9313, 28.15),
        (0.9403, 35.27),
        (0.9543, 50.04),
        (0.9664, 72.8),
        (0.9692, 80.98),
        (0.9754, 102.5),
        (0.9793, 124.5),
        (0.9802, 134.2),
        (0.9821, 146.6),
        (0.9843, 164),
        (0.9852, 174.3),
        (0.9903, 247.9),
        (0.9914, 271.6),
        (0.9933, 346),
        (0.9942, 395.2),
        (0.9953, 451.9),
        (0.9962, 514),
        (0.9973, 575.7),
        (0.9982, 717.3),
    )
)
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
