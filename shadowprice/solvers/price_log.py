"""Prices of GPUs over time that a policy sets, kept for what is computed from a run afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief


@dataclass(repr=False)
class PriceLog(Brief):
    """Prices over time that a run leaves behind; give one to a policy and read it after the run.

    Attributes
    ----------
    time_s : list of float
        Beginnings of rounds [s].
    prices : list of ndarray, shape (nodes,)
        Price of a GPU of each node for that round, at the load after the decision.
    known : bool
        Whether U_min and U_max were given; otherwise they were estimated while jobs came.
    """

    time_s: list[float] = field(default_factory=list)
    prices: list[NDArray[np.float64]] = field(default_factory=list)
    known: bool = False

    def by_round(self, round_s: float, rounds: int, nodes: int) -> NDArray[np.float64]:
        """Prices by round and node, 0 where none were set; the last of a round counts."""
        table = np.zeros((rounds, nodes))
        for time_s, row in zip(self.time_s, self.prices, strict=True):
            number = int(time_s // round_s)
            if number < rounds:
                table[number] = row
        return table


@runtime_checkable
class KeepsPrices(Protocol):
    """A policy that sets prices of GPUs and can keep them in a log."""

    @property
    def log(self) -> PriceLog | None:
        """Log of the prices of the run; None to keep none."""

    def keeping(self, log: PriceLog) -> Self:
        """The same policy, with a log for its prices."""
