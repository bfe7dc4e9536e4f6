"""Tiresias' testbed workload: 480 jobs of ten models on 60 GPUs.

Source: Gu et al., NSDI'19, section 6.1: gangs 240 x 1, 40 x 2, 80 x 4, 90 x 8, 25 x 16, 5 x 32
GPUs; 48 jobs a model; 2 minutes to 2 hours; Poisson arrivals, mean gap 30 s; bins small (at most
4 GPUs) and short (under 800 s): SS 63.5, SL 12.5, LS 16.5, LL 7.5 %.

The published shares cannot all hold: 360 of 480 jobs have at most 4 GPUs, which is 75 %, not
63.5 + 12.5. Gang counts are kept exactly; within small and within large gangs the short ones
have the published share (301 of 360, 83 of 120). The density of run times inside the bins falls here as
1/t^2, which makes the total work fit the published makespan of about 27,400 s on 60 GPUs (log-uniform
run times would need 35,000 s). This is our choice; ``tiresias-published`` takes the short ones from Figure 10a.
"""

from __future__ import annotations

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_number, poisson, random_generator
from shadowprice.instances.workload import Workload

NAME = "tiresias"

GANGS = {1: 240, 2: 40, 4: 80, 8: 90, 16: 25, 32: 5}
MODELS = (
    "VGG19",
    "VGG16",
    "VGG11",
    "AlexNet",
    "ResNet152",
    "ResNet101",
    "ResNet50",
    "Inception4",
    "Inception3",
    "GoogleNet",
)
SHORT_S, LONG_S = (120.0, 799.0), (800.0, 7200.0)
SHORT_SHARE = {"small": 63.5 / 76.0, "large": 16.5 / 24.0}


def generate(*, jobs: int = 480, seed: int = 0, mean_gap_s: float = 30.0) -> Workload:
    """The mix in a random order, with whole seconds; the number of jobs is fixed at 480.

    Parameters
    ----------
    mean_gap_s : float
        Mean time between two arrivals [s].

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_480(NAME, jobs)
    mean_gap_s = check_number("mean_gap_s", mean_gap_s, -1e-300, 1e6)
    rng = random_generator(seed, 3)
    gpus = np.repeat(list(GANGS), list(GANGS.values()))
    short = np.zeros(jobs, dtype=bool)
    for rows, share in ((gpus <= 4, SHORT_SHARE["small"]), (gpus > 4, SHORT_SHARE["large"])):
        members = np.flatnonzero(rows)
        short[rng.permutation(members)[: round(share * len(members))]] = True
    low, high = np.where(short[:, None], SHORT_S, LONG_S).T
    work = np.round(1.0 / rng.uniform(1.0 / high, 1.0 / low))
    order = rng.permutation(jobs)
    return Workload.from_columns(
        arrival_s=poisson(rng, jobs, mean_gap_s),
        gpus=gpus[order],
        work=work[order],
        model=rng.permutation(np.repeat(np.array(MODELS, dtype=object), jobs // len(MODELS))),
        source=f"tiresias mix, seed {seed}",
    )


def check_480(name: str, jobs: int) -> None:
    """Refuse any number of jobs but the paper's, whose gangs are counted."""
    if jobs != sum(GANGS.values()):
        raise InputError(f"{name}: jobs is {jobs!r}, expected 480, the number in the paper")
