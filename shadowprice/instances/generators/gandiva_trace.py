"""A stand-in for Gandiva's nine-day trace: run times of its Figure 16 on 100 GPUs.

Source: Xiao et al., OSDI'18, section 6.5: Figure 16, run times of the synthesised trace (mean 339 minutes,
median 42, 95th percentile 1,135; points digitised); Table 2, classes: vision 10, language 60, speech 30 %; Table 5.
A trace of a cluster of 2,000 GPUs and 8,800 jobs was replayed on 100. How many jobs were replayed is not said;
8,800 with these run times would need more than twice the published makespan of 11,349 minutes on 100 GPUs.

Derived: 1,500 jobs within 8,000 minutes, uniformly; gangs of 1, 2 and 4 GPUs, 70, 15 and 15 %; the models of
Table 1 that stand for the classes: ResNet-50 for vision, LSTM (45 %) and MI-LSTM (15 %) for language,
ResNeXt-50, of the highest utilisation, for speech. Run times are stratified, one from each of as many equal
shares of the curve as there are jobs, for single jobs of a week would otherwise decide a mean over 1,500.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.generators.arrivals import (
    check_jobs,
    check_number,
    draw_gangs,
    random_generator,
)
from shadowprice.instances.generators.quantiles import QuantileLaw
from shadowprice.instances.workload import Workload

NAME = "gandiva-trace"

GANG_SHARES = {1: 0.70, 2: 0.15, 4: 0.15}
MODEL_SHARES = {"ResNet-50": 0.10, "LSTM": 0.45, "MI-LSTM": 0.15, "ResNeXt-50": 0.30}

RUN_TIMES_MIN = QuantileLaw.published("gandiva-figure-16")
"""Figure 16, synthesised trace [min]: the share of jobs that run at most so long; digitised."""


def generate(*, jobs: int = 1500, seed: int = 0, hours: float = 8000.0 / 60.0) -> Workload:
    """Jobs of that law, in whole seconds; O(jobs log jobs).

    Parameters
    ----------
    hours : float
        Time within which all jobs arrive [h].

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs = check_jobs(jobs)
    hours = check_number("hours", hours, 0.0, 1e5)
    rng = random_generator(seed, 16)
    share = (rng.permutation(jobs) + rng.random(jobs)) / jobs
    gpus = draw_gangs(rng, jobs, GANG_SHARES)
    models = np.array(list(MODEL_SHARES), dtype=object)
    model = rng.choice(models, jobs, p=list(MODEL_SHARES.values()))
    return Workload.from_columns(
        arrival_s=np.sort(np.floor(rng.uniform(0.0, 3600.0 * hours, jobs))),
        gpus=gpus,
        work=np.ceil(60.0 * RUN_TIMES_MIN.quantile(share)),
        model=model,
        source=f"nine-day stand-in, seed {seed}",
    )
