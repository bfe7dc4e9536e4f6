r"""Utilities of jobs by the round in which they are complete, and round-based schedules.

Hadar (Sultana et al., IPDPS 2024; here from spec, recalled) maximises :math:`\sum_j U_j(f_j - a_j)`
for non-increasing :math:`U_j`. Everything in this package about it needs only the values at the
ends of rounds, so a utility is a table. Round k lasts from ``k * round_s`` to ``(k + 1) * round_s``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance


class Utility(Protocol):
    """Utility of a job's completion; non-increasing in the completion."""

    def value(self, job: int, completion_s: float) -> float:
        """Utility of a job that is complete at a time [s] of the instance's clock."""
        ...


@dataclass(frozen=True, eq=False)
class UtilityTable:
    """Utilities at the ends of rounds.

    Parameters
    ----------
    values : ndarray, shape (jobs, rounds + 1)
        Utility if complete by the end of round k. The last column is that of a job which is not
        complete within the rounds, and is 0: a job that is left out is worth nothing.
    round_s : float
        Length of a round [s].

    Raises
    ------
    InputError
        If a utility increases, is not finite or negative, naming job and round.
    """

    values: NDArray[np.float64]
    round_s: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.round_s < np.inf):
            raise InputError(
                f"utility: round_s is {self.round_s!r}, expected a positive number of seconds"
            )
        table = np.array(self.values, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] < 2:
            raise InputError(
                f"utility: values have shape {table.shape}, expected (jobs, rounds + 1), rounds >= 1"
            )
        _refuse(table, ~np.isfinite(table) | (table < 0), "a finite number >= 0")
        rises = np.zeros(table.shape, dtype=bool)
        rises[:, 1:-1] = np.diff(table[:, :-1], axis=1) > 0
        _refuse(table, rises, "at most the value of the round before: utilities do not increase")
        beyond = np.zeros(table.shape, dtype=bool)
        beyond[:, -1] = table[:, -1] != 0
        _refuse(table, beyond, "0 beyond the last round")
        table.flags.writeable = False
        object.__setattr__(self, "values", table)

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return int(self.values.shape[0])

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.values.shape[1] - 1)

    def value(self, job: int, completion_s: float) -> float:
        """Utility at the end of the round in which the job completes, 0 beyond the last."""
        ends = np.ceil(completion_s / self.round_s) - 1
        return float(self.values[job, int(min(max(ends, 0), self.rounds))])


def from_rounds(values: ArrayLike, round_s: float = 1.0) -> UtilityTable:
    """Table of utilities by round, shape (jobs, rounds); the 0 beyond the last is added."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"utility: values have shape {table.shape}, expected (jobs, rounds)")
    return UtilityTable(np.pad(table, ((0, 0), (0, 1))), round_s)


def effective_throughput(instance: Instance, round_s: float, rounds: int) -> UtilityTable:
    r"""Iterations over the time in the system, :math:`E_j N_j / (f_j - a_j)` [iterations/s].

    Hadar's utility for mean completion times (recalled). A completion before the arrival, which no
    schedule has, counts as one round after it, so that the table does not increase.
    """
    since = _since_arrival(instance, round_s, rounds)
    return from_rounds(instance.workload.work[:, None] / since, round_s)


def over_duration(instance: Instance, round_s: float, rounds: int) -> UtilityTable:
    r"""Weight over the time in the system, :math:`w_j / (f_j - a_j)` [1/s].

    As :func:`effective_throughput` with one unit of work a job; favours short times. Derived.
    """
    since = _since_arrival(instance, round_s, rounds)
    return from_rounds(instance.workload.weight[:, None] / since, round_s)


def minus_completion(instance: Instance, round_s: float, rounds: int) -> UtilityTable:
    r"""Weighted :math:`-(f_j - a_j)`, shifted to be positive: :math:`w_j (H + 1 - f_j)` in rounds.

    H is the number of rounds, f_j = k + 1 for completion in round k. Maximal utility is minimal
    total weighted completion time where every job completes within the rounds: each is then worth
    at least w_j, so leaving one out pays only where not all fit. Derived.
    """
    left = float(rounds) - np.arange(rounds, dtype=np.float64)
    return from_rounds(instance.workload.weight[:, None] * left[None, :], round_s)


def deadline(instance: Instance, round_s: float, rounds: int) -> UtilityTable:
    """Weight of a job whose round of completion ends by its deadline, 0 of one that is late."""
    ends = round_s * np.arange(1, rounds + 1, dtype=np.float64)
    in_time = ends[None, :] <= instance.workload.deadline_s[:, None]
    return from_rounds(np.where(in_time, instance.workload.weight[:, None], 0.0), round_s)


def finish_time_fairness(instance: Instance, round_s: float, rounds: int) -> UtilityTable:
    r"""Isolated over actual time in the system, :math:`T_j^{iso} / (f_j - a_j)`, the inverse of FTF.

    The isolated time is that on a 1/n share of the cluster: n times the time on the fastest type
    (Themis, NSDI 2020, by way of spec; recalled). The sum favours short times as a mean of
    inverses does; it is not the maximum of FTF.
    """
    isolated = len(instance.workload) * instance.shortest_s
    return from_rounds(isolated[:, None] / _since_arrival(instance, round_s, rounds), round_s)


def _since_arrival(instance: Instance, round_s: float, rounds: int) -> NDArray[np.float64]:
    """Time [s] from arrival to the end of each round, shape (jobs, rounds), at least one round."""
    ends = round_s * np.arange(1, rounds + 1, dtype=np.float64)
    return np.maximum(ends[None, :] - instance.workload.arrival_s[:, None], round_s)


def _refuse(table: NDArray[np.float64], bad: NDArray[np.bool_], expected: str) -> None:
    """Raise an error about the first entry of a mask."""
    if bad.any():
        job, k = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"utility: job {job}, round {k} has value {float(table[job, k])!r}, expected {expected}"
        )


# Round-based schedules.


GpusByNode = tuple[tuple[int, int], ...]
"""Pairs (node, GPUs), by increasing node."""


@dataclass(frozen=True)
class RoundPlan:
    """A round-based schedule.

    Parameters
    ----------
    runs : tuple of tuple of (int, GpusByNode)
        By job, in the order of the workload: pairs (round, GPUs held in it), by increasing round.
    """

    runs: tuple[tuple[tuple[int, GpusByNode], ...], ...]
