"""Gavel's synthetic law: durations 60 x 10^x s, gangs of 1, 2, 4, 8 GPUs, Poisson arrivals.

Source: Narayanan et al., OSDI'20, section 7.1, and the published generator: x ~ U[1.5, 3] with
probability 0.8, U[3, 4] with 0.2; gangs 70, 10, 15, 5 %.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.generators.arrivals import check_jobs, poisson_arrivals
from shadowprice.instances.workload import Workload

NAME = "gavel"
GANGS, SHARES = (1, 2, 4, 8), (0.70, 0.10, 0.15, 0.05)


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float = 0.9,
    gpus_total: int = 108,
    single_gpu: bool = False,
) -> Workload:
    """Jobs of Gavel's law, as many GPU-hours a second as the load asks of the GPUs.

    Parameters
    ----------
    single_gpu : bool
        The paper's continuous-single traces: every gang is one GPU.
    """
    check_jobs(jobs)
    rng = np.random.default_rng([seed, 1])
    exponent = np.where(
        rng.random(jobs) < 0.8, rng.uniform(1.5, 3.0, jobs), rng.uniform(3.0, 4.0, jobs)
    )
    gpus = np.ones(jobs, dtype=np.int64) if single_gpu else rng.choice(GANGS, jobs, p=SHARES)
    work = 60.0 * 10.0**exponent
    arrival_s = poisson_arrivals(rng, work * gpus, load=load, gpus_total=gpus_total)
    return Workload.from_columns(
        arrival_s=arrival_s, gpus=gpus, work=work, source=f"gavel law, seed {seed}"
    )
