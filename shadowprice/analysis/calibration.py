r"""Calibration of predictions: share of jobs per error, and the worst factors.

The error of a job is :math:`|\tilde n - n| / n`, as in the figure of A-SRPT's paper (its caption;
the bins are ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError

ERROR_EDGES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, float("inf"))
"""Ends of the bins of errors; a bin has its lower end and not its upper."""


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Brief):
    """Predictions against the truth.

    Parameters
    ----------
    error : ndarray, shape (n,)
        Relative errors, absolute difference over the truth.
    mu, lambda_ : float
        Worst under- and over-estimation, max true / predicted and max predicted / true, at least
        1 each; the theorem's factors of this run, up to rounding.
    """

    error: NDArray[np.float64]
    mu: float
    lambda_: float

    @classmethod
    def of(cls, predicted: ArrayLike, true: ArrayLike) -> Calibration:
        """Compare predicted with true iterations, both of shape (n,), > 0 and finite."""
        guess, truth = np.asarray(predicted, np.float64), np.asarray(true, np.float64)
        if guess.shape != truth.shape or guess.ndim != 1:
            raise InputError(
                f"calibration: {guess.shape} predicted and {truth.shape} true iterations, "
                "expected two columns of one length"
            )
        for what, column in (("predicted", guess), ("true", truth)):
            bad = ~((column > 0) & np.isfinite(column))
            if bad.any():
                row = int(np.argmax(bad))
                raise InputError(
                    f"calibration: row {row + 1}: {what} iterations are {column[row]!s}, "
                    "expected a number > 0"
                )
        with np.errstate(over="ignore"):
            return cls(
                error=np.abs(guess - truth) / truth,
                mu=float(np.max(truth / guess, initial=1.0)),
                lambda_=float(np.max(guess / truth, initial=1.0)),
            )

    def share_below(self, error: float) -> float:
        """Share of jobs whose error is smaller; NaN without jobs."""
        return float(np.mean(self.error < error)) if len(self.error) else float("nan")

    def table(self, edges: Sequence[float] = ERROR_EDGES) -> pd.DataFrame:
        """Bins of errors, one row each.

        Returns
        -------
        DataFrame
            ``error`` (its text), ``low``, ``high`` (relative errors), ``jobs``, ``share`` of all
            jobs and ``cumulative`` share; shares are 0 without jobs.
        """
        ends = np.asarray(edges, dtype=np.float64)
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != np.inf or np.any(np.diff(ends) <= 0):
            raise InputError(
                f"calibration: edges are {tuple(edges)!r}, expected increasing from 0 to infinity"
            )
        # Only inner edges: an error that overflowed to infinity belongs to the last bin.
        bins = np.searchsorted(ends[1:-1], self.error, side="right")
        jobs = np.bincount(bins, minlength=len(ends) - 1)
        share = jobs / max(len(self.error), 1)
        return pd.DataFrame(
            {
                "error": [_bin(*pair) for pair in pairwise(ends)],
                "low": ends[:-1],
                "high": ends[1:],
                "jobs": jobs,
                "share": share,
                "cumulative": np.cumsum(jobs) / max(len(self.error), 1),
            }
        )


def _bin(low: float, high: float) -> str:
    return f">= {low:.0%}" if np.isinf(high) else f"{low:.0%} to {high:.0%}".replace("% to", " to")
