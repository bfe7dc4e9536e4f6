"""Predicting how many iterations a job will run, online and from completed jobs only.

A predictor is asked about a job when it arrives and told what a job took when it completes; it
can therefore not see the future, whatever it does. Those that are told the truth (an oracle, and
an oracle with errors) declare ``clairvoyant`` and get it in an argument of its own, which the
others refuse.

Source: the features (user, group, job name, gang, model) and the online protocol follow Luo et
al., INFOCOM'25 (A-SRPT) as far as its abstract goes, and Weng et al., NSDI'22 (recurrence in
Alibaba's PAI, read); the retraining protocol is derived, not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

import shadowprice.solvers.predictors
from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.workload import Workload
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.registry import modules
from shadowprice.user_code import file_of, load, names_a_file, sentence, split_parameters

Build = Callable[[str, int], "Predictor"]
"""Builds a predictor from the text after the colon of its specification and a seed."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of jobs known at their submission, one row a job.

    Parameters
    ----------
    id : ndarray of str, shape (n,)
        Names of the jobs, unique in a workload. No predictor learns from them; errors that are
        drawn for each job are drawn by them.
    user, group, name, model : ndarray of str, shape (n,)
        Categories; the empty string is one like any other.
    gpus : ndarray of int, shape (n,)
        Gang sizes.
    """

    id: NDArray[np.object_]
    user: NDArray[np.object_]
    group: NDArray[np.object_]
    name: NDArray[np.object_]
    model: NDArray[np.object_]
    gpus: NDArray[np.int64]

    @classmethod
    def of(cls, jobs: Workload | JobColumns) -> Features:
        """Features of jobs, in their order; the tenant is the user."""
        return cls(
            id=jobs.id,
            user=jobs.tenant,
            group=jobs.group,
            name=jobs.name,
            model=jobs.model,
            gpus=jobs.gpus,
        )

    def select(self, rows: ArrayLike | slice) -> Features:
        """Features of some rows: row numbers, a mask or a slice."""
        at: Any = rows if isinstance(rows, slice) else np.asarray(rows)
        return Features(
            id=self.id[at],
            user=self.user[at],
            group=self.group[at],
            name=self.name[at],
            model=self.model[at],
            gpus=self.gpus[at],
        )

    def __len__(self) -> int:
        return len(self.id)


@runtime_checkable
class Predictor(Protocol):
    """Predicts iterations; one object serves one run, for it learns.

    Two predictors of the same specification and seed that are asked and told the same in the
    same order answer the same.
    """

    @property
    def name(self) -> str:
        """The specification that :func:`predictor` makes it from."""

    @property
    def clairvoyant(self) -> bool:
        """True if :meth:`predict` is to be given the true iterations."""

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,), finite and > 0; changes nothing.

        Parameters
        ----------
        iterations : ndarray, shape (n,), optional
            True iterations, for clairvoyant predictors and nobody else.
        """

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Take in completed jobs, in order of completion, one or several at a time."""


def predictors() -> dict[str, Build]:
    """Builders of predictors, by name: the ``PREDICTORS`` of the modules of :mod:`.predictors`."""
    found: dict[str, Build] = {}
    for module in modules(shadowprice.solvers.predictors):
        offered: Mapping[str, Build] = getattr(module, "PREDICTORS", {})
        found.update(offered)
    return found


def predictor(spec: str, *, seed: int = 0) -> Predictor:
    """A fresh predictor by name, with parameters after a colon.

    ``forest``, ``forest:trees=50,retrain_every=1000``, ``median``, ``last``, ``oracle``,
    ``noisy:MU`` or ``noisy:MU/LAMBDA`` (true iterations times a factor from 1/MU to LAMBDA,
    LAMBDA = MU if left out), ``adversarial:MU/LAMBDA``, ``given:JOB=FACTOR/JOB=FACTOR``; or
    ``FILE.py:NAME`` of a :data:`Build` of your own, which runs that file.

    Parameters
    ----------
    seed : int
        Of whatever is random: trees, errors.

    Raises
    ------
    InputError
        If the name, a parameter or a value is unknown or out of range, or a file that is named
        cannot be run or builds no predictor.
    """
    if names_a_file(spec):
        return _own(spec, seed)
    base, _, settings = spec.partition(":")
    known = predictors()
    if base not in known:
        raise InputError(
            f"predictor {base!r}: expected one of {', '.join(sorted(known))}, or FILE.py:NAME"
        )
    return known[base](settings, seed)


def _own(spec: str, seed: int) -> Predictor:
    """A predictor that a file of the user's own builds."""
    target, settings = split_parameters(spec)
    build = load(target, "predictor")
    try:
        found = build(settings, seed)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"predictor {spec!r}: {sentence(error, file_of(build))}") from error
    if isinstance(found, type) or not isinstance(found, Predictor):
        raise InputError(
            f"predictor {spec!r}: built {found!r}, expected an object with name, clairvoyant, predict and learn"
        )
    return found


def predict_online(
    predictor: Predictor,
    features: Features,
    iterations: NDArray[np.float64],
    arrival_s: NDArray[np.float64],
    completion_s: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Predictions a predictor makes at every arrival of a run that has happened.

    A job that completes at the very moment of an arrival is known to it. Jobs between whose
    arrivals nothing completes are predicted together. Completions at one time are learnt in order
    of rows.

    Parameters
    ----------
    iterations : ndarray, shape (n,)
        True iterations.
    arrival_s, completion_s : ndarray, shape (n,)
        When each job is asked about and learnt [s]; infinity for a job that never completes.

    Returns
    -------
    ndarray, shape (n,)
        Predicted iterations, by row.
    """
    arrivals = np.argsort(arrival_s, kind="stable")
    completions = np.argsort(completion_s, kind="stable")
    # Jobs completed by each arrival; a new batch begins where that number changes.
    done = np.searchsorted(completion_s[completions], arrival_s[arrivals], side="right")
    starts = np.flatnonzero(np.diff(done, prepend=-1))
    predicted = np.empty(len(iterations))
    learnt = 0
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(arrivals)], strict=True):
        now = int(done[start])
        if now > learnt:
            rows = completions[learnt:now]
            predictor.learn(features.select(rows), iterations[rows])
            learnt = now
        asked = arrivals[start:end]
        truth = iterations[asked] if predictor.clairvoyant else None
        predicted[asked] = predictor.predict(features.select(asked), truth)
    return predicted


# Access of predictors to the true iterations: required, or refused.


def refuse_truth(name: str, iterations: NDArray[np.float64] | None) -> None:
    """Raise if a predictor that sees only the past is given the true iterations."""
    if iterations is not None:
        raise PolicyError(f"predictor {name!r}: given true iterations, but is not clairvoyant")


def require_truth(name: str, iterations: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The true iterations, which a clairvoyant predictor cannot do without."""
    if iterations is None:
        raise PolicyError(f"predictor {name!r}: is clairvoyant, expected the true iterations")
    return np.asarray(iterations, dtype=np.float64)
