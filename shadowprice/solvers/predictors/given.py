r"""A predictor whose error was written down for each job: what an adversary over predictions chooses.

Job j of :math:`n` iterations is predicted to have :math:`f_j n`. The factors are given by the ids of
the jobs; those that are not named are predicted exactly. Source: derived, for the search of worst
cases of A-SRPT with predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.oracle import MAX_FACTOR
from shadowprice.solvers.predictors.predictor import Features, Predictor
from shadowprice.solvers.predictors.truth import require_truth


@dataclass(frozen=True)
class FixedPredictor:
    """The true iterations times a factor written down for each job.

    Parameters
    ----------
    factors : mapping of str to float
        By job id; 1 where a job is not named.
    name : str
        The specification.
    """

    factors: Mapping[str, float]
    name: str
    clairvoyant: bool = True

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,): f n, rounded once."""
        truth = require_truth(self.name, iterations)
        factors = np.array([self.factors.get(job, 1.0) for job in features.id.tolist()])
        predicted: NDArray[np.float64] = truth * factors
        return predicted

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Learn nothing: it is told."""


def specification(factors: Mapping[str, float]) -> str:
    """The text from which :func:`shadowprice.solvers.predictors.predictor.predictor` makes the predictor."""
    return "given:" + "/".join(f"{job}={factor:.17g}" for job, factor in factors.items())


def _given(settings: str, seed: int) -> Predictor:
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
    return FixedPredictor(factors, f"given:{settings}")


PREDICTORS = {"given": _given}
