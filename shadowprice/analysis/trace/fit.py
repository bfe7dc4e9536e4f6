r"""Parameters of the generator ``lognormal`` that fit a trace, by maximum likelihood.

Run times of the generator are :math:`\exp N(\log m, \sigma^2)`, clipped to [shortest, longest]. Those of a trace
that are its shortest or longest are therefore known only to lie there or beyond (censored), and the likelihood is

.. math:: \Phi\Big(\frac{\log a - \mu}{\sigma}\Big)^{n_a} \, \Phi\Big(\frac{\mu - \log b}{\sigma}\Big)^{n_b}
          \prod_{a < p_j < b} \frac{1}{\sigma} \varphi\Big(\frac{\log p_j - \mu}{\sigma}\Big)

with a the shortest, b the longest. Arrivals are a Poisson process. Intervals are those of the normal distribution
about the estimates: of :math:`\mu` and :math:`\log \sigma` by the observed information, of the logarithm of the
rate by its n - 1 gaps, so that none reaches below 0. (derived)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.statistics.estimates import log_interval
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import read_json
from shadowprice.instances.workload import Workload

GENERATOR = "lognormal"
NORMAL_95 = 1.959963984540054
"""Half the width of an interval of 95 % in standard deviations."""


@dataclass(frozen=True)
class FittedParameter:
    """A parameter with an interval.

    Parameters
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Fit(Brief):
    """The law of a trace.

    Parameters
    ----------
    median_s, sigma, jobs_per_hour : FittedParameter
        With intervals of 95 %.
    shortest_s, longest_s : float
        Of the trace [s].
    gang_shares : mapping of int to float
        Share of each gang.
    jobs : int
        Of the trace.
    distance : float
        Largest distance between the distribution of run times in the trace and in the law, from 0 to 1
        (Kolmogorov-Smirnov).
    gap_cv : float
        Standard deviation of gaps over their mean: 1 of the law, more of a bursty trace.
    """

    median_s: FittedParameter
    sigma: FittedParameter
    jobs_per_hour: FittedParameter
    shortest_s: float
    longest_s: float
    gang_shares: dict[int, float]
    jobs: int
    distance: float
    gap_cv: float

    def parameters(self) -> dict[str, Any]:
        """Parameters for :func:`shadowprice.instances.generators.generate`, with as many jobs as the trace."""
        return {
            "jobs": self.jobs,
            "jobs_per_hour": self.jobs_per_hour.value,
            "median_s": self.median_s.value,
            "sigma": self.sigma.value,
            "shortest_s": self.shortest_s,
            "longest_s": self.longest_s,
            "gang_shares": self.gang_shares,
            "gpus_total": max(self.gang_shares),
        }


def fit(workload: Workload) -> Fit:
    """Fit the generator ``lognormal`` to a trace.

    Raises
    ------
    InputError
        If jobs hold cores or parts of GPUs, or have rates, arrive at one moment, or all run equally long.
    """
    source, jobs = workload.source, len(workload)
    if workload.throughput is not None:
        raise InputError(f"{source}: its work is iterations, expected seconds to fit run times")
    if workload.on_cores.any():
        raise InputError(f"{source}: jobs hold cores and no GPU, which {GENERATOR!r} does not draw")
    if workload.fractional.any():
        raise InputError(f"{source}: jobs hold parts of GPUs, which {GENERATOR!r} does not draw")
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0])
    if span_s == 0 or len(np.unique(workload.work)) < 3:
        raise InputError(f"{source}: expected jobs of three run times or more, at different times")
    gaps = np.diff(workload.arrival_s)
    (mu, sigma), error = _censored(np.log(workload.work))
    rate = len(gaps) / span_s * 3600.0
    gangs, count = np.unique(workload.gpus, return_counts=True)
    shares = dict(zip(gangs.tolist(), (count / jobs).tolist(), strict=True))
    median = [math.exp(mu + k * NORMAL_95 * error[0]) for k in (0, -1, 1)]
    return Fit(
        median_s=FittedParameter(*median),
        sigma=_about(sigma, float(error[1])),
        jobs_per_hour=_about(rate, rate / math.sqrt(len(gaps))),
        shortest_s=float(workload.work.min()),
        longest_s=float(workload.work.max()),
        gang_shares=shares,
        jobs=jobs,
        distance=_distance(np.log(workload.work), mu, sigma),
        gap_cv=float(gaps.std() / gaps.mean()),
    )


def write_fit(fit: Fit, source: str, path: Path) -> None:
    """Write the parameters as JSON, for ``generate --parameters``.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    intervals = {
        name: [getattr(fit, name).low, getattr(fit, name).high]
        for name in ("median_s", "sigma", "jobs_per_hour")
    }
    document = {
        "generator": GENERATOR,
        "parameters": fit.parameters(),
        "intervals_95": intervals,
        "distance": fit.distance,
        "gap_cv": fit.gap_cv,
        "fitted_to": source,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class _FitFile:
    """Entries of a file of parameters."""

    generator: str
    parameters: dict[str, Any]
    intervals_95: dict[str, list[float]] | None = None
    distance: float | None = None
    gap_cv: float | None = None
    fitted_to: str | None = None


def read_parameters(path: Path) -> tuple[str, dict[str, Any]]:
    """Generator and parameters of a file that :func:`write_fit` wrote, or of one's own.

    Raises
    ------
    InputError
        If the file is unreadable or has other entries.
    """
    written = decode(_FitFile, read_json(path), str(path))
    parameters = dict(written.parameters)
    shares = parameters.get("gang_shares")
    if isinstance(shares, dict):
        try:
            parameters["gang_shares"] = {int(gang): share for gang, share in shares.items()}
        except ValueError:
            raise InputError(f"{path}: gang_shares, expected whole numbers of GPUs") from None
    return written.generator, parameters


def parameters_for(name: str, path: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a generator: those of a file, and those given in place of them.

    A load that is given takes the place of the file's rate of arrivals.

    Raises
    ------
    InputError
        If the file is unreadable, or for another generator.
    """
    generator, parameters = read_parameters(path)
    if generator != name:
        raise InputError(f"{path}: is for generator {generator!r}, expected {name!r}")
    if "load" in chosen:
        parameters.pop("jobs_per_hour", None)
    return {**parameters, **chosen}


def _about(value: float, error: float) -> FittedParameter:
    return FittedParameter(value, *log_interval(value, NORMAL_95 * error))


def _censored(
    logs: NDArray[np.float64],
) -> tuple[tuple[float, float], NDArray[np.float64]]:
    """Mean and standard deviation of logarithms clipped to their least and greatest; and their errors."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    low, high = float(logs.min()), float(logs.max())
    inner = logs[(logs > low) & (logs < high)]
    below, above, n = int((logs == low).sum()), int((logs == high).sum()), len(inner)
    mean, square = float(inner.mean()), float(np.square(inner - inner.mean()).mean())

    def cost(at: NDArray[np.float64]) -> float:
        """Minus the logarithm of the likelihood, over the number of jobs; at (mu, log sigma)."""
        mu, sigma = at[0], math.exp(at[1])
        ends = below * log_ndtr((low - mu) / sigma) + above * log_ndtr((mu - high) / sigma)
        inside = -n * at[1] - n * (square + (mean - mu) ** 2) / (2 * sigma**2)
        return -float(ends + inside) / len(logs)

    start = np.array([logs.mean(), math.log(max(logs.std(), 1e-3))])
    best = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).x
    mu, sigma = float(best[0]), math.exp(best[1])
    information = _hessian(cost, best) * len(logs)
    errors = np.sqrt(np.abs(np.diag(np.linalg.inv(information))))
    return (mu, sigma), np.array([errors[0], errors[1] * sigma])


def _hessian(cost: Any, at: NDArray[np.float64], step: float = 1e-4) -> NDArray[np.float64]:
    """Second derivatives by central differences."""
    moves = np.eye(2) * step
    return np.array(
        [
            [
                (
                    cost(at + one + two)
                    - cost(at + one - two)
                    - cost(at - one + two)
                    + cost(at - one - two)
                )
                / (4 * step**2)
                for two in moves
            ]
            for one in moves
        ]
    )


def _distance(logs: NDArray[np.float64], mu: float, sigma: float) -> float:
    """Largest distance between the distributions, of values between the ends."""
    from scipy.special import ndtr

    values, count = np.unique(logs, return_counts=True)
    share = np.cumsum(count) / len(logs)
    law = ndtr((values - mu) / sigma)
    # At the greatest value the clipped law is 1, below the least it is 0.
    after = np.abs(share - law)[:-1]
    before = np.abs(np.append(0.0, share[:-1]) - law)[1:]
    return float(max(after.max(initial=0.0), before.max(initial=0.0)))
