"""Two storeys of fairness: entities share the cluster, jobs share their entity. Gavel, sec. 4.3.

The levels of an entity's jobs add up to its weight times tau. Inside, *fairness* raises jobs in
proportion to their weights among those not yet held back; *fifo* gives everything to the first
job, in order of arrival, that is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.gavel.rates import Numbers

INSIDE = ("fairness", "fifo")


@dataclass(frozen=True, eq=False)
class Entity:
    """Jobs of one organisation.

    Parameters
    ----------
    jobs : ndarray of int
        Rows, in order of arrival.
    weight : float
        Weight of the entity.
    job_weight : ndarray
        Weights of its jobs among each other.
    inside : str
        ``fairness`` or ``fifo``.
    """

    jobs: NDArray[np.int64]
    weight: float
    job_weight: Numbers
    inside: str

    def __post_init__(self) -> None:
        if self.inside not in INSIDE:
            raise InputError(f"inside an entity: {self.inside!r}, expected fairness or fifo")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"weight of an entity: {self.weight!r}, expected a number > 0")

    def levels(self, total: float, cap: Numbers) -> Numbers:
        """Levels of its jobs that add up to a total, or to all their caps."""
        if self.inside == "fifo":
            before = np.cumsum(cap) - cap
            return np.asarray(np.clip(total - before, 0.0, cap))
        return _common(total, cap, self.job_weight)


@dataclass(frozen=True, eq=False)
class Entities:
    """A path for water filling along which entities rise in proportion to their weights.

    Parameters
    ----------
    members : tuple of Entity
        Every job in exactly one.
    """

    members: tuple[Entity, ...]

    def levels(self, tau: float, cap: Numbers) -> Numbers:
        """Levels at tau, none above its cap; O(n log n)."""
        levels = np.zeros_like(cap)
        for entity in self.members:
            levels[entity.jobs] = entity.levels(entity.weight * tau, cap[entity.jobs])
        return levels

    def end(self, cap: Numbers) -> float:
        """The tau at which the last entity has all its jobs at their caps."""
        return max(float(cap[entity.jobs].sum()) / entity.weight for entity in self.members)


def _common(total: float, cap: Numbers, weight: Numbers) -> Numbers:
    """min(cap, weight h) with the height h at which these add up to the total."""
    if total >= cap.sum():
        return cap.copy()
    height = cap / weight
    order = np.argsort(height, kind="stable")
    rising = np.cumsum(weight[order][::-1])[::-1]
    full = np.concatenate(([0.0], np.cumsum(cap[order])[:-1]))
    # Sum of levels when the k-th job reaches its cap; the first above the total ends the search.
    reached = full + rising * height[order]
    k = int(np.searchsorted(reached, total))
    k = min(k, len(cap) - 1)
    return np.asarray(np.minimum(cap, weight * ((total - full[k]) / rising[k])))
