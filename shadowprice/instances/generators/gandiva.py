"""Gandiva's packing experiment: 1,000 jobs of the eight models of its Table 1 within two hours.

Source: Xiao et al., OSDI'18, section 6.4 and Figure 15: 30 % of the jobs have low GPU utilisation
(VAE, SuperRes), 25 % middle (RHN, SCRNN, MI-LSTM), 45 % high (LSTM, ResNet-50, ResNeXt-50); the
last two models use 2 or 4 GPUs; a job takes 30 to 45 GPU-minutes. Derived: uniform arrivals, models
of a class alike, gangs of 2 and 4 alike, uniform GPU-minutes, in whole seconds of run time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.generators.arrivals import check_jobs, check_number, random_generator
from shadowprice.instances.workload import Workload

NAME = "gandiva"

CLASSES = (
    (0.30, ("VAE", "SuperRes")),
    (0.25, ("RHN", "SCRNN", "MI-LSTM")),
    (0.45, ("LSTM", "ResNet-50", "ResNeXt-50")),
)
"""Share of the jobs and models: low, middle and high GPU utilisation."""

WIDE = ("ResNet-50", "ResNeXt-50")
GPU_MINUTES = (30.0, 45.0)


def generate(*, jobs: int = 1000, seed: int = 0, hours: float = 2.0) -> Workload:
    """The mix in a random order; O(jobs log jobs).

    Parameters
    ----------
    hours : float
        Time within which all jobs arrive [h].
    """
    jobs = check_jobs(jobs)
    hours = check_number("hours", hours, 0.0, 1e5)
    rng = random_generator(seed, 11)
    model = draw_models(rng, jobs)
    gpus = np.where(np.isin(model, WIDE), rng.choice((2, 4), jobs), 1)
    service_gpu_s = 60.0 * rng.uniform(*GPU_MINUTES, jobs)
    return Workload.from_columns(
        arrival_s=np.sort(np.floor(rng.uniform(0.0, 3600.0 * hours, jobs))),
        gpus=gpus,
        work=np.ceil(service_gpu_s / gpus),
        model=model,
        source=f"gandiva mix, seed {seed}",
    )


def draw_models(rng: np.random.Generator, jobs: int) -> NDArray[np.object_]:
    """Models with the published shares of low, middle and high utilisation, shape (jobs,)."""
    models = [name for _, names in CLASSES for name in names]
    shares = [part / len(names) for part, names in CLASSES for _ in names]
    return rng.choice(np.array(models, dtype=object), jobs, p=np.array(shares))
