"""Synergy's published single-GPU jobs, draw for draw: those behind the numbers that its artifact prints.

Source: github.com/msr-fiddle/synergy at 1bb2bed, simulator/runner.py, jobs/workload.py, jobs/model_zoo.py,
helpers/utils.py (read). Python's ``random`` is seeded with 42. Of every job are drawn whether it is long and the
exponent x of its 60 x 10^x s with a GPU-proportional share. The original keeps these jobs in a file, and draws arrivals
with the generator seeded anew: gaps are exponential, rounded up to whole seconds, and after each a number
from 0 to 9 is drawn that nobody uses. Models are not random: the next job is of the class that is furthest behind
its share of the jobs so far, ties to image, then language, then speech, and classes take their models in turn.

With them the preset ``synergy`` prints what the artifact prints of FIFO with TUNE at 9 jobs an hour: mean JCT
21.8766 h, p99 156.933 h, p99.9 170.612 h. Its gangs of several GPUs are those of Microsoft's log and are not drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_count, check_jobs, check_number
from shadowprice.instances.workload import Workload

NAME = "synergy-published"
PUBLISHED_SEED = 42
CLASS_SHARES = (20.0, 70.0, 10.0)
MODELS = (
    ("alexnet", "res18", "res50", "mobilenet", "shufflenet"),
    ("gnmt", "transformer", "lstm"),
    ("m5", "deepspeech"),
)
"""Image, language and speech models, in the order in which they are taken."""

ITERATION_S = {
    "alexnet": 0.6,
    "res18": 0.64,
    "res50": 0.78,
    "mobilenet": 0.71,
    "shufflenet": 0.615,
    "gnmt": 0.12,
    "transformer": 0.67,
    "lstm": 0.011,
    "m5": 0.6,
    "deepspeech": 0.757,
}
"""Time of an iteration with a GPU-proportional share [s]."""

LONG_SHARE_FROM = 0.8
"""Jobs whose draw from [0, 1) is at least this are long."""

EXPONENTS = {True: (3.0, 4.0), False: (1.5, 3.0)}
"""Ranges of x of long jobs and of the others."""

UNUSED_DRAW = 9
"""Largest number of the draw after each gap that nobody uses."""


def generate(
    *,
    jobs: int = 6_000,
    seed: int = PUBLISHED_SEED,
    jobs_per_hour: float = 9.0,
    class_shares: tuple[float, float, float] = CLASS_SHARES,
) -> Workload:
    """Jobs of one GPU whose work is whole iterations, at the rate of their model; O(jobs).

    Parameters
    ----------
    jobs : int
        A longer trace begins with the same jobs.
    seed : int
        42 for the published jobs.
    jobs_per_hour : float
        Mean rate of arrivals; durations and models do not depend on it.
    class_shares : (float, float, float)
        Shares of image, language and speech models [%].

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs, seed = check_jobs(jobs), check_count("seed", seed, least=0, most=2**64)
    rate = check_number("jobs_per_hour", jobs_per_hour, 0.0, 1e9)
    model = list(islice(_models(class_shares), jobs))
    iteration_s = [ITERATION_S[name] for name in model]
    duration_s = islice(_durations_s(seed), jobs)
    # Python's conversion, not NumPy's: the original drops the fraction of each quotient.
    work = [max(int(d / i), 1) for d, i in zip(duration_s, iteration_s, strict=True)]
    return Workload.from_columns(
        arrival_s=list(islice(_arrivals_s(seed, rate), jobs)),
        gpus=np.ones(jobs, dtype=np.int64),
        work=work,
        model=model,
        throughput=[[1.0 / each] for each in iteration_s],
        gpu_types=("gpu",),
        source=f"synergy published, seed {seed}",
    )


def _durations_s(seed: int) -> Iterator[float]:
    draw = random.Random(seed)
    while True:
        long = draw.random() >= LONG_SHARE_FROM
        yield 60.0 * 10.0 ** draw.uniform(*EXPONENTS[long])


def _arrivals_s(seed: int, jobs_per_hour: float) -> Iterator[int]:
    draw, now_s = random.Random(seed), 0
    while True:
        hours = -math.log(1.0 - draw.random()) / jobs_per_hour
        now_s += math.ceil(hours * 60 * 60)
        draw.randint(0, UNUSED_DRAW)
        yield now_s


def _models(class_shares: tuple[float, float, float]) -> Iterator[str]:
    """The next model of the class that is furthest behind its share."""
    if len(class_shares) != len(MODELS):
        raise InputError(
            f"class_shares is {class_shares!r}, expected one each of image, language, speech"
        )
    names = ("image", "language", "speech")
    shares = [
        check_number(f"share of {name} models", share, -1e-300, 1e9) / 100.0
        for name, share in zip(names, class_shares, strict=True)
    ]
    if not sum(shares) > 0.0:
        raise InputError(f"class_shares is {class_shares!r}, expected one share > 0")
    turns = [cycle(models) for models in MODELS]
    taken, behind = [0] * len(MODELS), [0.0] * len(MODELS)
    while True:
        chosen = behind.index(max(behind))
        yield next(turns[chosen])
        taken[chosen] += 1
        total = sum(taken)
        behind = [share - count / total for share, count in zip(shares, taken, strict=True)]
