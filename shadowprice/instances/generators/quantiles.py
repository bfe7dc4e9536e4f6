"""Laws of one number known by some of its quantiles, as read off a published curve or a thinned sample."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError


@dataclass(frozen=True)
class QuantileLaw:
    """A distribution by points of its cumulative curve, straight between them.

    Parameters
    ----------
    share : tuple of float
        Shares of the distribution in [0, 1], increasing; below the first and above the last the value
        is that of the first and the last.
    value : tuple of float
        Values up to which these shares lie, not decreasing.

    Raises
    ------
    InputError
        If there are fewer than two points, or they are not in order.
    """

    share: tuple[float, ...]
    value: tuple[float, ...]

    def __post_init__(self) -> None:
        share, value = np.array(self.share), np.array(self.value)
        ordered = np.all(np.diff(share) > 0) and np.all(np.diff(value) >= 0)
        if len(share) < 2 or len(share) != len(value) or not ordered:
            raise InputError("quantiles: expected two points or more, shares and values increasing")
        if not (share[0] >= 0 and share[-1] <= 1 and np.all(np.isfinite(value))):
            raise InputError("quantiles: expected shares within [0, 1] and finite values")

    @classmethod
    def published(cls, name: str) -> QuantileLaw:
        """The law through the points of a file of the package, ``curves/NAME.csv``."""
        text = files(__package__).joinpath("curves", f"{name}.csv").read_text(encoding="utf-8")
        rows = csv.DictReader(text.splitlines())
        points = [(float(row["share"]), float(row["value"])) for row in rows]
        return cls(*zip(*points, strict=True))

    def quantile(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at given shares; O(log points) each."""
        return np.interp(share, self.share, self.value)

    @property
    def mean(self) -> float:
        """Mean of the law, by the trapezoidal rule, which is exact between straight lines."""
        share = np.array((0.0, *self.share, 1.0))
        value = np.array((self.value[0], *self.value, self.value[-1]))
        return float(np.sum(np.diff(share) * (value[1:] + value[:-1]) / 2))
