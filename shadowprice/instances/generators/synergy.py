"""Synergy's workload: image, language and speech models, Poisson arrivals, gangs of 1, 2, 4, 8 GPUs.

Source: Mohan et al., OSDI'22, as its public simulator draws it (github.com/msr-fiddle/synergy):
classes of models by given shares, gangs 70, 10, 15, 5 % or all of one GPU, arrivals at a rate.
Durations are those with GPU-proportional CPUs and memory, by one of two laws or from a sample:

* ``decades``: 60 x 10^x s, x ~ U[1.5, 3] with probability 0.8, else U[3, 4]; the simulator's
  ``exponential`` switch. The percentiles published for its run of 9 jobs an hour are this law's
  (derived).
* ``philly``: lognormal with the mean and the deviation of the logarithms of the durations of
  Microsoft's Philly trace (82,247 jobs of 2017), cut to 10^1.5 to 10^4 minutes as the simulator
  cuts the trace.

Within a class all models are equally frequent. Other random numbers than the simulator's: same law,
not the same jobs. The simulator's own single-GPU jobs are those of ``synergy-published``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_jobs,
    check_number,
    draw_gangs,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.generators.gavel import GANG_SHARES, decades_s
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.profiles import ModelFamily, models_of
from shadowprice.instances.workload import Workload

NAME = "synergy"
CLASS_SHARES = (20.0, 70.0, 10.0)
CLASSES = (ModelFamily.IMAGE, ModelFamily.LANGUAGE, ModelFamily.SPEECH)
SHORTEST_S, LONGEST_S = 60.0 * 10.0**1.5, 60.0 * 10.0**4
PHILLY_LOG_MEAN, PHILLY_LOG_DEVIATION = 6.791, 2.156
"""Of the natural logarithms of durations in seconds."""


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float | None = None,
    gpus_total: int = 128,
    jobs_per_hour: float | None = None,
    single_gpu: bool = False,
    class_shares: tuple[float, float, float] = CLASS_SHARES,
    durations: str = "decades",
    sample_s: ArrayLike | None = None,
) -> Workload:
    """Jobs of Synergy's law, work in seconds with a GPU-proportional share; O(jobs).

    Parameters
    ----------
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for with proportional shares; 0.9 if
        no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals, as the paper's figures have it, instead of a load.
    single_gpu : bool
        Every gang is one GPU.
    class_shares : (float, float, float)
        Shares of image, language and speech models, in any unit.
    durations : str
        ``decades`` or ``philly``.
    sample_s : array_like, optional
        Durations [s] to draw from, with replacement, instead of a law.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs = check_jobs(jobs)
    rng = random_generator(seed, 8)
    if durations not in _LAWS:
        raise InputError(f"durations is {durations!r}, expected one of {', '.join(_LAWS)}")
    drawn = _LAWS[durations](rng, jobs) if sample_s is None else _resampled(rng, jobs, sample_s)
    work = np.maximum(np.round(drawn), 1.0)
    gpus = np.ones(jobs, dtype=np.int64) if single_gpu else draw_gangs(rng, jobs, GANG_SHARES)
    arrival_s = poisson_arrivals(
        rng, work * gpus, load=load, gpus_total=gpus_total, jobs_per_hour=jobs_per_hour
    )
    return Workload.from_columns(
        arrival_s=arrival_s,
        gpus=gpus,
        work=work,
        model=_models(rng, jobs, class_shares),
        source=f"synergy law, seed {seed}",
    )


def _philly(rng: np.random.Generator, jobs: int) -> NDArray[np.float64]:
    """Inverse of the distribution function between the cuts."""
    cuts = (np.log([SHORTEST_S, LONGEST_S]) - PHILLY_LOG_MEAN) / PHILLY_LOG_DEVIATION
    low, high = (float(cut) for cut in ndtr(cuts))
    normal = ndtri(rng.uniform(low, high, jobs))
    durations: NDArray[np.float64] = np.exp(PHILLY_LOG_MEAN + PHILLY_LOG_DEVIATION * normal)
    return durations


_LAWS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "decades": decades_s,
    "philly": _philly,
}


def _resampled(rng: np.random.Generator, jobs: int, sample_s: ArrayLike) -> NDArray[np.float64]:
    try:
        sample = np.asarray(sample_s, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sample_s is {sample_s!r:.80}, expected durations in seconds") from None
    if sample.ndim != 1 or not len(sample):
        raise InputError(f"sample_s has shape {sample.shape}, expected at least one duration")
    bad = ~((sample > 0) & (sample <= MAX_TIME_S))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"sample_s: duration {row} is {float(sample[row])!r}, expected seconds > 0"
        )
    return rng.choice(sample, jobs)


def _models(
    rng: np.random.Generator, jobs: int, class_shares: tuple[float, float, float]
) -> NDArray[np.object_]:
    """A model for every job: first its class, then one of the class."""
    if len(class_shares) != len(CLASSES):
        raise InputError(
            f"class_shares is {class_shares!r}, expected one each of {', '.join(CLASSES)}"
        )
    parts = [
        check_number(f"share of {family} models", share, -1e-300, 1e9)
        for family, share in zip(CLASSES, class_shares, strict=True)
    ]
    if sum(parts) <= 0:
        raise InputError(f"class_shares is {class_shares!r}, expected one share > 0")
    names = [
        (name, part / len(of))
        for family, part in zip(CLASSES, parts, strict=True)
        for of in [models_of(family)]
        for name in of
    ]
    shares = np.array([share for _, share in names])
    drawn = rng.choice(len(names), jobs, p=shares / shares.sum())
    return np.array([name for name, _ in names], dtype=object)[drawn]
