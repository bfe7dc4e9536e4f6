r"""Prices of GPUs that grow exponentially with the load; Hadar (IPDPS'24), price function, recalled.

.. math:: k_h(t) = U_{\min} (U_{\max} / U_{\min})^{\min(\gamma_h(t) / s_h,\, 1)}

with :math:`\gamma_h(t)` the GPUs of node h that are taken in round t. A node has GPUs of one type,
so that a price for a node and a type is one for a node. :math:`s_h = c_h`, its number of GPUs, is
the published form: the price reaches its maximum when nothing is left. With gangs of several GPUs
a node may be too full for a gang while its price is still low; :func:`reserved_full_at` lets
the price reach its maximum as soon as some gang might not fit (derived, see proofs.hadar.competitive).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError


@dataclass(frozen=True)
class UtilityBounds:
    """U_min and U_max for each GPU type, and where they come from.

    Parameters
    ----------
    lowest, highest : ndarray, shape (types,)
        Utility for a GPU and round.
    known : bool
        Whether they hold for all jobs, also those to come; otherwise they are those of the jobs
        seen so far, and no competitive ratio follows from them.
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    known: bool

    def __post_init__(self) -> None:
        if not (np.all(self.lowest > 0) and np.all(self.lowest <= self.highest)):
            raise InputError(
                f"hadar: U_min is {self.lowest.tolist()} and U_max {self.highest.tolist()}, "
                "expected 0 < U_min <= U_max for every GPU type"
            )

    def widened(self, other: UtilityBounds) -> UtilityBounds:
        """Bounds of both, as they are estimated while jobs come."""
        lowest, highest = (
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )
        return UtilityBounds(lowest, highest, self.known and other.known)


@dataclass(frozen=True)
class ExponentialPrices:
    """Price of a GPU and round by the load of its node.

    Parameters
    ----------
    lowest, highest : ndarray, shape (nodes,)
        Prices of the empty and of the full node.
    full_at : ndarray, shape (nodes,)
        Load [GPUs] from which on the price is the highest.
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    full_at: NDArray[np.int64]

    def at(self, load: ArrayLike) -> NDArray[np.float64]:
        """Prices by load [GPUs], shape (..., nodes); monotone in it, and exact at both ends."""
        load = np.asarray(load, dtype=np.float64)
        # A real node that does not answer has no GPUs: it is full.
        share = np.ones(np.broadcast_shapes(load.shape, self.full_at.shape))
        np.divide(load, self.full_at, out=share, where=self.full_at > 0)
        share = np.minimum(share, 1.0)
        grown = self.lowest * (self.highest / self.lowest) ** share
        return np.where(share == 1.0, self.highest, np.minimum(grown, self.highest))

    @classmethod
    def of(
        cls, bounds: UtilityBounds, type_of_node: NDArray[np.int64], full_at: NDArray[np.int64]
    ) -> ExponentialPrices:
        """Prices of nodes by the bounds of their types."""
        return cls(bounds.lowest[type_of_node], bounds.highest[type_of_node], full_at)


def reserved_full_at(capacity: NDArray[np.int64], largest_gang: int) -> NDArray[np.int64]:
    """Load [GPUs] of each node from which on a gang's part might not fit: c - min(g, c) + 1."""
    return np.asarray(capacity - np.minimum(capacity, largest_gang) + 1)


def whole_prices(prices: NDArray[np.float64], bits: int) -> tuple[NDArray[np.int64], int]:
    """Prices rounded down to whole multiples of a power of two, and its exponent.

    The highest has ``bits`` bits then, so that costs are whole numbers; O(prices).
    """
    exponent = math.frexp(float(prices.max(initial=0.0)))[1] - bits
    return np.floor(np.ldexp(prices, -exponent)).astype(np.int64), exponent


def published_bounds(
    best: NDArray[np.float64],
    worst: NDArray[np.float64],
    longest_rounds: NDArray[np.float64],
    gpus: NDArray[np.int64],
    usable: NDArray[np.bool_],
    total_gpus: int,
) -> UtilityBounds:
    r"""U_max and U_min of some jobs in the published form (recalled; its eta made precise).

    :math:`U^r_{\max} = \max_j U_j(t_j^{\min}) / W_j` over the jobs that can use type r, and
    :math:`U_{\min} = \frac{1}{4\eta} \min_j U_j(t_j^{\max}) / (t_j^{\max} W_j)` with
    :math:`1/\eta = \min_j t_j^{\max} W_j / \sum_h c_h`. Neither formula counts the rounds of the
    horizon, so the initial dual value is at most OPT/2 only where that is short. O(jobs x types).

    Parameters
    ----------
    best, worst : ndarray, shape (jobs,)
        Utilities if the job runs alone on its fastest and on its slowest type.
    longest_rounds, gpus : ndarray, shape (jobs,)
        t^max [rounds], W.
    usable : ndarray of bool, shape (jobs, types)
        Types on which a job can run.
    """
    demand = longest_rounds * gpus
    lowest = 0.25 * float(demand.min()) / total_gpus * float((worst / demand).min())
    per_gpu = np.where(usable, (best / gpus)[:, None], 0.0).max(axis=0)
    lowest_of = np.full(usable.shape[1], lowest)
    return UtilityBounds(lowest_of, np.maximum(per_gpu, lowest_of), known=False)


def guaranteed_bounds(
    best: NDArray[np.float64], rounds: int, total_gpus: int, types: int
) -> UtilityBounds:
    r"""Bounds with which HADAR-2a holds (derived); ``best`` are the jobs' utilities when alone.

    :math:`U_{\max} = \max_j U_j`, since a gang may have a single GPU on a full node, and
    :math:`U_{\min} = \min_j U_j / (2 T \sum_h c_h)`, so that the initial dual value is at most
    OPT/2: OPT is no less than any one job's utility.
    """
    earning = best[best > 0]
    if not len(earning):
        raise InputError("hadar: no job has a positive utility when it runs alone, expected one")
    highest = np.full(types, float(earning.max()))
    lowest = np.full(types, float(earning.min()) / (2 * rounds * total_gpus))
    return UtilityBounds(lowest, highest, known=True)
