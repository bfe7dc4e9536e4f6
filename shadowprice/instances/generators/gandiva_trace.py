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

RUN_TIMES_MIN = QuantileLaw.of_points(
    (
        (0.0145, 1.003),
        (0.0384, 2.006),
        (0.1622, 4.005),
        (0.1764, 5.008),
        (0.2526, 6.013),
        (0.3666, 11.02),
        (0.3906, 14.01),
        (0.4381, 18.03),
        (0.4476, 21),
        (0.4523, 25.02),
        (0.481, 28.99),
        (0.4857, 35),
        (0.5002, 42.01),
        (0.5714, 53.03),
        (0.5855, 76.99),
        (0.6381, 91.91),
        (0.6429, 95.95),
        (0.6523, 116.9),
        (0.6712, 122),
        (0.6857, 151.7),
        (0.7046, 175.8),
        (0.7093, 193.7),
        (0.714, 195.9),
        (0.7191, 227.8),
        (0.7286, 252.9),
        (0.738, 258.6),
        (0.7427, 305.8),
        (0.7474, 321.6),
        (0.7808, 391.2),
        (0.7855, 431.8),
        (0.8048, 475.8),
        (0.8142, 572.2),
        (0.8665, 812.2),
        (0.9235, 942.8),
        (0.9282, 966.1),
        (0.933, 1068),
        (0.9522, 1143),
        (0.9569, 1304),
        (0.9616, 1764),
        (0.9663, 2523),
        (0.9711, 2556),
        (0.9758, 3040),
        (0.9855, 3476),
        (0.9903, 3483),
        (0.9997, 9965),
    )
)
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
