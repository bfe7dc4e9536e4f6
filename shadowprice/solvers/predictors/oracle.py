r"""Predictors that are told the truth: exact, with random errors, with adversarial errors.

With errors a job of :math:`n` iterations gets :math:`\tilde n \in [n/\mu, \lambda n]`, the
interval of the bound for A-SRPT with predictions: :math:`\lambda` is the worst over- and
:math:`\mu` the worst under-estimation. The interval holds exactly, in rationals, not up to
rounding. The error of a job depends on the job alone, not on when or how often one asks.

The adversary's rule (derived): sizes :math:`g n` [GPU-iterations] are put into classes
:math:`[r^k, r^{k+1})` with :math:`r = \lambda \mu`; in a class the jobs below its middle
:math:`r^{k+1/2}` are over-estimated to :math:`\lambda n`, the others under-estimated to
:math:`n / \mu`. Every job of an upper half is then predicted smaller than every job of the lower
half of its class, and no choice inside the intervals can swap two jobs of classes further apart
than neighbours: the order by size is wrong for all pairs across the middle of a class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.predictor import Features, Predictor, require_truth

MAX_FACTOR = 1e6


Errors = Callable[[Features, NDArray[np.float64]], NDArray[np.float64]]
"""Predicted iterations by features and true iterations."""


@dataclass(frozen=True)
class Oracle:
    """The true iterations, or what errors make of them.

    Parameters
    ----------
    name : str
        The specification.
    errors : callable, optional
        Predicted iterations of jobs, one by one; the true ones if None.
    """

    name: str = "oracle"
    errors: Errors | None = None
    clairvoyant: bool = True

    @property
    def learns_nothing(self) -> bool:
        """True if what it predicts is the same whether jobs are asked about one by one or all at once."""
        return self.errors is None

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,)."""
        truth = require_truth(self.name, iterations)
        return truth.copy() if self.errors is None else self.errors(features, truth)

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Learn nothing: an oracle knows."""


def noisy(
    features: Features, truth: NDArray[np.float64], *, mu: float, lambda_: float, seed: int
) -> NDArray[np.float64]:
    """The true iterations times a factor that is log-uniform in [1/mu, lambda], drawn by job.

    The factor is a hash of the seed and the job's id.
    """
    key = seed.to_bytes(16, "big")
    uniform = np.array([_uniform(key, job) for job in features.id.tolist()], dtype=np.float64)
    low, high = -math.log(mu), math.log(lambda_)
    return _inside(truth * np.exp(low + (high - low) * uniform), truth, mu, lambda_)


def misordered(
    features: Features, truth: NDArray[np.float64], *, mu: float, lambda_: float
) -> NDArray[np.float64]:
    """The end of [n/mu, lambda n] that misorders sizes most, up to one unit in the last place."""
    width = math.log(mu) + math.log(lambda_)
    if width == 0.0:
        return truth.copy()
    below = np.mod(np.log(truth * features.gpus) / width, 1.0) < 0.5
    return _inside(np.where(below, truth * lambda_, truth / mu), truth, mu, lambda_)


def scaled(
    features: Features, truth: NDArray[np.float64], *, factors: Mapping[str, float]
) -> NDArray[np.float64]:
    """The true iterations times a factor by job id, rounded once; 1 where a job is not named.

    What an adversary over predictions chooses. Source: derived, for the search of worst cases of
    A-SRPT with predictions.
    """
    factor = np.array([factors.get(job, 1.0) for job in features.id.tolist()])
    predicted: NDArray[np.float64] = truth * factor
    return predicted


def _uniform(key: bytes, job: str) -> float:
    """A number in [0, 1) by seed and job, from 53 bits of a hash."""
    digest = blake2b(job.encode(), digest_size=8, key=key).digest()
    return float((int.from_bytes(digest, "big") >> 11) * 2.0**-53)


def _inside(
    predicted: NDArray[np.float64], truth: NDArray[np.float64], mu: float, lambda_: float
) -> NDArray[np.float64]:
    """Clip to [n/mu, lambda n] exactly: quotient and product are rounded, so step inwards."""
    low = np.minimum(np.nextafter(truth / mu, np.inf), truth)
    high = np.maximum(np.nextafter(truth * lambda_, 0.0), truth)
    clipped: NDArray[np.float64] = np.clip(predicted, low, high)
    return clipped


def _oracle(settings: str, seed: int) -> Predictor:
    if settings:
        raise InputError(f"predictor 'oracle': got {settings!r}, but it takes no parameters")
    return Oracle()


def _noisy(settings: str, seed: int) -> Predictor:
    mu, lambda_ = _factors("noisy", settings, "MU or MU/LAMBDA, as in noisy:2 or noisy:2/3")
    if not 0 <= seed < 2**128:
        raise InputError(f"predictor 'noisy': seed is {seed!r}, expected 0 <= seed < 2^128")
    return Oracle(f"noisy:{settings}", partial(noisy, mu=mu, lambda_=lambda_, seed=seed))


def _adversarial(settings: str, seed: int) -> Predictor:
    expected = "MU/LAMBDA or MU, as in adversarial:2/3"
    mu, lambda_ = _factors("adversarial", settings, expected)
    return Oracle(f"adversarial:{settings}", partial(misordered, mu=mu, lambda_=lambda_))


def _factors(name: str, settings: str, expected: str) -> tuple[float, float]:
    """The pair mu, lambda of a specification, both at least 1."""
    words = settings.split("/")
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 2 or not all(1.0 <= value <= MAX_FACTOR for value in values):
        raise InputError(
            f"predictor {name!r}: got {settings!r}, expected factors from 1 to {MAX_FACTOR:g}: "
            f"{expected}"
        )
    return values[0], values[-1]


def specification(factors: Mapping[str, float]) -> str:
    """The text from which :func:`shadowprice.solvers.predictors.predictor.predictor` makes the predictor."""
    return "given:" + "/".join(f"{job}={factor:.17g}" for job, factor in factors.items())


def _with_factors(settings: str, seed: int) -> Predictor:
    factors: dict[str, float] = {}
    for word in settings.split("/"):
        job, _, text = word.rpartition("=")
        try:
            factor = float(text)
        except ValueError:
            factor = math.nan
        if not job or job in factors or not 1 / MAX_FACTOR <= factor <= MAX_FACTOR:
            raise InputError(
                f"predictor 'given': got {word!r}, expected JOB=FACTOR, each job once, with a factor "
                f"from {1 / MAX_FACTOR:g} to {MAX_FACTOR:g}, as in given:a=0.5/b=2"
            )
        factors[job] = factor
    return Oracle(f"given:{settings}", partial(scaled, factors=factors))


PREDICTORS = {
    "oracle": _oracle,
    "noisy": _noisy,
    "adversarial": _adversarial,
    "given": _with_factors,
}
