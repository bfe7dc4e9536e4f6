r"""What Hadar's offline optimum asks of capacity, with GPU types chosen afterwards.

A schedule here says at which speed (level) a job runs in each round, not on which of the types
admitted at that speed: that choice is a transportation problem, which has an integer solution iff

.. math::

    \sum_j \max(0, W_j - c(A_j \setminus S)) \le c(S) \quad \forall S \subseteq R, \text{ every round}

where A_j are the types that job j admits in that round and c(S) their GPUs: no set of types is
asked for more than it has by gangs that find no other place (Hall's condition). The duals
:math:`\pi_S(t) \ge 0` of these rows give prices :math:`k_r(t) = \sum_{S \ni r} \pi_S(t)` of the
schedule form's dual with the same value, so both forms have the same bound. Derived.

Gangs are whole, so for every p / q < 1 the rows above, demands d and capacity c, imply those with
floor(d p / q) and floor(c p / q) (Chvatal and Gomory's rounding; a gang of 3 and a gang of 2 do
not share 4 GPUs). Those that no other row makes needless are rows too, which makes the bound
better than that of the schedule form; their coefficients depend on the round and the level only,
so the pricing stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs

MAX_ROUNDED = 64
"""Larger capacities are not rounded: there is little to gain."""

MAX_DIVISOR = 7


@dataclass(frozen=True, eq=False)
class Demand:
    """What levels ask of sets of types, and of their capacities rounded down.

    Parameters
    ----------
    capacity : ndarray, shape (rows,)
        GPUs of each non-empty set of types, then the rounded rows.
    gpus : tuple of ndarray, shape (levels of the job, rows)
        By job: GPUs that a set must give when the job runs at a level; rounded alike.
    share : ndarray, shape (rows, types)
        What a price of a row stands for in prices of types: its value spread over the GPUs of
        its set.
    """

    capacity: NDArray[np.float64]
    gpus: tuple[NDArray[np.float64], ...]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, jobs: RoundJobs) -> Demand:
        """The demands of all jobs."""
        types = range(jobs.types)
        sets = tuple(s for size in types for s in combinations(types, size + 1))
        inside = np.array([[r in s for r in types] for s in sets], dtype=np.float64)
        gpus = []
        for job, levels in enumerate(jobs.levels):
            admitted = np.array([[r in level.types for r in types] for level in levels])
            outside = (admitted.reshape(-1, jobs.types) * jobs.capacity) @ (1.0 - inside).T
            gpus.append(np.maximum(0.0, jobs.gang[job] - outside))
        room = inside @ jobs.capacity
        extra = [(k, f) for k, c in enumerate(room) for f in _roundings(int(c), _asked(gpus, k))]
        rounded = [
            np.array([f[asked[:, k].astype(np.int64)] for k, f in extra]).reshape(
                len(extra), len(asked)
            )
            for asked in gpus
        ]
        share = [inside, *(inside[[k]] * (f[int(room[k])] / room[k]) for k, f in extra)]
        return cls(
            np.concatenate((room, [f[int(room[k])] for k, f in extra])),
            tuple(np.hstack((asked, more.T)) for asked, more in zip(gpus, rounded, strict=True)),
            np.concatenate(share),
        )


def _asked(gpus: list[NDArray[np.float64]], place: int) -> list[int]:
    """Distinct positive demands for a set of types."""
    return sorted({int(d) for asked in gpus for d in asked[:, place].tolist() if d > 0})


def _roundings(capacity: int, asked: list[int]) -> list[NDArray[np.float64]]:
    """Functions floor(d p / q) of 0 <= d <= capacity that are no weaker than d itself or another."""
    if capacity > MAX_ROUNDED or not asked:
        return []
    gpus = np.arange(capacity + 1, dtype=np.int64)
    factors = {Fraction(p, q) for q in range(2, MAX_DIVISOR + 1) for p in range(1, q)}
    tables = [gpus, *(gpus * f.numerator // f.denominator for f in sorted(factors))]
    tables = [table for table in tables if table[-1] > 0]
    shapes = np.array([table[asked] / table[-1] for table in tables])
    kept: list[int] = []
    for k in range(len(tables)):
        at_least = np.all(shapes >= shapes[k] - 1e-12, axis=1)
        better = at_least & np.any(shapes > shapes[k] + 1e-12, axis=1)
        if not better.any() and not at_least[:k].any():
            kept.append(k)
    return [tables[k].astype(np.float64) for k in kept if k > 0]
