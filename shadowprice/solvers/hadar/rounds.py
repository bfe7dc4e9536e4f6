"""What Hadar's policies share: rounds, utilities of live jobs, the cluster, and the prices they leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.grid import MAX_TIME_S, TICKS_PER_S
from shadowprice.instances.instance import Overheads
from shadowprice.solvers.decision import Decision
from shadowprice.solvers.job_columns import Live
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.state import State


def _effective_throughput(live: Live) -> NDArray[np.float64]:
    fastest = live.throughput.max(axis=1)
    return np.asarray(live.processing_s * fastest)


def _completion_time(live: Live) -> NDArray[np.float64]:
    return live.weight


def _fairness(live: Live) -> NDArray[np.float64]:
    return live.processing_s


SCALES: dict[str, Callable[[Live], NDArray[np.float64]]] = {
    "effective_throughput": _effective_throughput,
    "completion_time": _completion_time,
    "fairness": _fairness,
}
"""Numerators s_j of the utilities s_j / (f - a): iterations E N as published (for mean completion
times), weights, or times alone on the fastest type (for finish-time fairness)."""


@dataclass
class PriceLog:
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
        held = {
            (job if state.partner_of.get(job, job) > job else -1): p
            for job, p in state.running.items()
        }
        for pieces in held.values():
            for node, gpus in pieces:
                capacity[node] += gpus
        pools = [state.allocator.pool_of(node) for node in range(state.nodes)]
        return cls(capacity, np.array(pools, dtype=np.int64))


def check_settings(name: str, utility: str, round_s: float, u_min: float, u_max: float) -> None:
    """Raise InputError unless the settings that both policies have make sense."""
    if utility not in SCALES:
        raise InputError(f"{name}: utility is {utility!r}, expected one of {', '.join(SCALES)}")
    if not 0 < round_s <= MAX_TIME_S or round_s * TICKS_PER_S != int(round_s * TICKS_PER_S):
        raise InputError(
            f"{name}: round_s is {round_s!r}, expected seconds > 0, a multiple of 2**-20"
        )
    if not (u_min == u_max == 0.0 or 0 < u_min <= u_max < math.inf):
        raise InputError(
            f"{name}: u_min is {u_min!r} and u_max {u_max!r}, expected 0 < u_min <= u_max, or 0 and 0 "
            "to estimate them from the jobs seen"
        )


def round_at(now_s: float, origin_s: float, round_s: float) -> int:
    """Number of the first round that begins at or after a time, counted from an origin."""
    return math.ceil((now_s - origin_s) / round_s)


def idle_before(state: State) -> bool:
    """Whether the cluster was empty until the jobs that arrive now."""
    return not state.running and len(state.waiting) == len(state.arrived)


def overheads_of(state: State) -> Overheads:
    """What starts, restarts and migrations are charged."""
    return state._instance.overheads


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
