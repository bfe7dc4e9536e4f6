"""A hyper-parameter search: configurations submitted together, most of which are stopped early.

Source: Gandiva (OSDI'18), section 6.3, Table 3: 374 configurations of a CIFAR-10 model on 4 GPUs;
a scheduler that runs one after the other finds a qualified one after 691.5 to 2,726 minutes,
depending on its position among them. 2,726 minutes are 4 x 2,726 / 374 = 29.2 GPU-minutes each.

**Early stopping** (derived; the paper uses a learning-curve model of its own). Every configuration has
a final accuracy and approaches it as 1 - exp(-5 s) in the share s of its training that is done. At
``judged_at`` of the training the final accuracy is predicted with an error that falls with what has
been seen, and the configuration is stopped if the prediction is below the target. Work is what is
trained in the end, so that stopping does not depend on the schedule; that a scheduler runs a
configuration to its end although it is hopeless is the case of ``judged_at=1``.
"""

from __future__ import annotations

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_count,
    check_jobs,
    check_number,
    random_generator,
)
from shadowprice.instances.workload import Workload

NAME = "automl"

TRAINING_S = 60.0 * 4 * 2726 / 374
TARGET = 0.9
CURVE = 5.0
NOISE = 0.2
"""Standard deviation of the prediction before anything is seen; it falls with exp(-5 s)."""

QUALIFIED, STOPPED, TRAINED = "qualified", "stopped", "trained"


def generate(
    *, jobs: int = 374, seed: int = 0, judged_at: float = 0.1, qualified: int | None = None
) -> Workload:
    """All configurations at 0, in the order in which the search drew them; O(jobs).

    Parameters
    ----------
    judged_at : float
        Share of its training after which a configuration may be stopped, 1 for never.
    qualified : int, optional
        Position from 1 of the one configuration that reaches the target; the last if not given.

    Returns
    -------
    Workload
        ``name`` says ``qualified``, ``trained`` (to the end, in vain) or ``stopped``.
    """
    jobs = check_jobs(jobs)
    judged_at = check_number("judged_at", judged_at, 0.0, 1.0)
    at = check_count("qualified", jobs if qualified is None else qualified, most=jobs) - 1
    rng = random_generator(seed, 13)
    final = TARGET * rng.beta(4.0, 2.0, jobs)
    predicted = final + rng.normal(0.0, NOISE, jobs) * np.exp(-CURVE * judged_at)
    full_s = np.ceil(TRAINING_S * rng.uniform(0.5, 1.5, jobs))
    stopped = (predicted < TARGET) & (judged_at < 1.0)
    name = np.where(stopped, STOPPED, TRAINED).astype(object)
    stopped[at], name[at] = False, QUALIFIED
    work = np.where(stopped, np.ceil(judged_at * full_s), full_s)
    if not np.all(work > 0):
        raise InputError(
            f"automl: judged_at is {judged_at!r}, expected enough for a second of work"
        )
    return Workload.from_columns(
        arrival_s=np.zeros(jobs),
        gpus=np.ones(jobs, dtype=np.int64),
        work=work,
        model="ResNet-50",
        name=name,
        source=f"automl search, seed {seed}",
    )
