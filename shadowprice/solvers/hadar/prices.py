r"""Utilities of jobs, their bounds, and the exponential prices of GPUs that follow from them.

Source: Sultana et al., Hadar, IPDPS'24 (recalled: price function, bounds, utilities; derived: prices
of nodes that are full before their last GPU is taken, bounds with which the theorem holds).

.. math:: k_h(t) = U_{\min} (U_{\max} / U_{\min})^{\min(\gamma_h(t) / s_h,\, 1)}

with :math:`\gamma_h(t)` the GPUs of node h that are taken in round t. A node has GPUs of one type,
so that a price for a node and a type is one for a node. :math:`s_h = c_h`, its number of GPUs, is
the published form: the price reaches its maximum when nothing is left. With gangs of several GPUs
a node may be too full for a gang while its price is still low; :func:`reserved_full_at` lets
the price reach its maximum as soon as some gang might not fit (derived, see proofs.hadar.competitive).

The last section has what both policies, ``hadar`` and ``hadar-committed``, share beside prices: the
cluster by node, the checks of their settings, the count of rounds.

Complexity: prices O(nodes), bounds O(jobs x types).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.grid import check_seconds
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, JobColumns, State

# Utilities and their bounds


def _effective_throughput(live: JobColumns) -> NDArray[np.float64]:
    """Iterations E N of the whole job, as its time alone at its largest throughput has them."""
    fastest = live.throughput.max(axis=1)
    return np.asarray(live.processing_s * fastest)


def _completion_time(live: JobColumns) -> NDArray[np.float64]:
    return live.weight


def _fairness(live: JobColumns) -> NDArray[np.float64]:
    return live.processing_s


SCALES: dict[str, Callable[[JobColumns], NDArray[np.float64]]] = {
    "effective_throughput": _effective_throughput,
    "completion_time": _completion_time,
    "fairness": _fairness,
}
"""Numerators s_j of the utilities s_j / (f - a): iterations E N as published (for mean completion
times), weights, or times alone on the fastest type (for finish-time fairness)."""


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

    @classmethod
    def uniform(cls, types: int, lowest: float, highest: float) -> UtilityBounds:
        """Bounds that hold for all jobs, the same for each GPU type."""
        ones = np.ones(types)
        return cls(lowest * ones, highest * ones, known=True)

    def widened(self, other: UtilityBounds) -> UtilityBounds:
        """Bounds of both, as they are estimated while jobs come."""
        return UtilityBounds(
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.known and other.known,
        )


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


# Prices


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

    def same_as(self, other: ExponentialPrices) -> bool:
        """True if all nodes have the same prices."""
        return (
            np.array_equal(self.lowest, other.lowest)
            and np.array_equal(self.highest, other.highest)
            and np.array_equal(self.full_at, other.full_at)
        )

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


# What both policies share beside prices


@dataclass(frozen=True)
class Hardware:
    """The cluster by node.

    Parameters
    ----------
    capacity, pool : ndarray of int, shape (nodes,)
        GPUs and pool (GPU type) of each node.
    """

    capacity: NDArray[np.int64]
    pool: NDArray[np.int64]

    @classmethod
    def of(cls, state: State) -> Hardware:
        """Nodes of a state; O(nodes + GPUs held)."""
        capacity = np.array(state.free_gpus_by_node(), dtype=np.int64)
        for job, pieces in state.running.items():
            # Two jobs that share GPUs hold them once.
            if state.partner_of.get(job, job) >= job:
                for node, gpus in pieces:
                    capacity[node] += gpus
        pools = [state.allocator.pool_of(node) for node in range(state.nodes)]
        return cls(capacity, np.array(pools, dtype=np.int64))


def check_settings(name: str, utility: str, round_s: float, u_min: float, u_max: float) -> None:
    """Raise InputError unless the settings that both policies have make sense."""
    if utility not in SCALES:
        raise InputError(f"{name}: utility is {utility!r}, expected one of {', '.join(SCALES)}")
    check_seconds(f"{name}: round_s", round_s)
    if not (u_min == u_max == 0.0 or 0 < u_min <= u_max < math.inf):
        raise InputError(
            f"{name}: u_min is {u_min!r} and u_max {u_max!r}, expected 0 < u_min <= u_max, or 0 and 0 "
            "to estimate them from the jobs seen"
        )


def round_at(now_s: float, origin_s: float, round_s: float) -> int:
    """Number of the first round that begins at or after a time, counted from an origin."""
    return math.ceil((now_s - origin_s) / round_s)


def idle_before(state: State) -> bool:
    """True if the cluster was empty until the jobs that arrive now."""
    return not state.running and len(state.waiting) == len(state.arrived)


def start_exactly(state: State, decision: Decision, job: int, pieces: Pieces) -> None:
    """Reserve exactly these GPUs for a waiting job, of several types if need be.

    Raises
    ------
    PolicyError
        If they are not all free.
    """
    if not decision.start_at(job, pieces):
        raise PolicyError(
            f"job {job} is started on nodes and GPUs {pieces} at {state.now_s} s, which are not free"
        )
