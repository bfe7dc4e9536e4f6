"""Faults by law: every node fails and is repaired again and again, with times drawn from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import MOST_FAULTS, NodeFailures, merged
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, up_to_grid

_AT_ONCE = 64
"""Times that are drawn at once; more would be drawn for nothing, fewer one by one."""


@dataclass(frozen=True)
class FaultLaw:
    """Alternating renewal process of every node: up for a time, down for a time, independently.

    Times up and times of repair are Weibull with the given means; with shape 1 they are exponential. All
    nodes are up and as new at time 0. A node's times depend on the seed and its position alone, not on
    what runs: policies compared on one seed meet the same faults.

    Parameters
    ----------
    mtbf_s : float
        Mean time from a repair to the next fault of a node [s].
    repair_s : float
        Mean time of a repair [s].
    shape, repair_shape : float
        Weibull shapes; below 1 faults come early after a repair, above 1 late.
    seed : int
        Seed of all draws, at least 0.

    Raises
    ------
    InputError
        If a mean is shorter than a tick of the time grid, a shape not positive, or the seed negative.
    """

    mtbf_s: float
    repair_s: float
    shape: float = 1.0
    repair_shape: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("mtbf_s", "repair_s"):
            value = getattr(self, name)
            if not TICK_S <= value <= MAX_TIME_S:
                raise InputError(
                    f"failures: {name} is {value!r}, expected seconds, at least one tick of {TICK_S}"
                )
        for name in ("shape", "repair_shape"):
            value = getattr(self, name)
            # Below, means of a Weibull law are beyond all numbers.
            if not 0.05 <= value <= 100:
                raise InputError(
                    f"failures: {name} is {value!r}, expected a number from 0.05 to 100"
                )
        if self.seed < 0:
            raise InputError(f"failures: seed is {self.seed}, expected a whole number from 0")

    @property
    def name(self) -> str:
        """The law as it is written."""
        law = "exponential" if self.shape == self.repair_shape == 1.0 else "weibull"
        shapes = (
            "" if law == "exponential" else f",shape={self.shape},repair_shape={self.repair_shape}"
        )
        return f"{law}:mtbf_s={self.mtbf_s},repair_s={self.repair_s}{shapes},seed={self.seed}"

    def seeded(self, seed: int) -> FaultLaw:
        """The same law with another seed."""
        return replace(self, seed=seed)

    def of(
        self, cluster: Cluster, checkpoints: Checkpointing, known_until_s: float
    ) -> NodeFailures:
        """Faults of a cluster that begin before a time [s]; O(faults)."""
        nodes, downs, ups, count = [], [], [], 0
        for node in range(len(cluster.nodes)):
            down_s, up_s = self._downtimes(node, known_until_s, MOST_FAULTS + 1 - count)
            nodes.append(np.full(len(down_s), node, dtype=np.int64))
            downs.append(down_s)
            ups.append(up_s)
            count += len(down_s)
            if count > MOST_FAULTS:
                break
        return merged(
            np.concatenate(nodes),
            np.concatenate(downs),
            np.concatenate(ups),
            self.name,
            checkpoints,
            known_until_s,
            lambda until_s: self.of(cluster, checkpoints, until_s),
        )

    def _downtimes(
        self, node: int, until_s: float, most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Downtimes of a node that begin before a time [s]; at least one tick up and down each."""
        failing, mending = (np.random.default_rng([self.seed, node, purpose]) for purpose in (0, 1))
        begun_s, downs, ups, count = 0.0, [], [], 0
        while begun_s < until_s and count < most:
            up_for_s = self._times(failing, self.mtbf_s, self.shape)
            down_for_s = self._times(mending, self.repair_s, self.repair_shape)
            ends_s = begun_s + np.cumsum(up_for_s + down_for_s)
            downs.append(ends_s - down_for_s)
            ups.append(ends_s)
            begun_s, count = float(ends_s[-1]), count + len(ends_s)
        down_s, up_s = np.concatenate(downs), np.concatenate(ups)
        kept = down_s < until_s
        # What is mended beyond the largest time is not mended in any run.
        up_s = np.where(up_s <= MAX_TIME_S, up_s, np.inf)
        return down_s[kept], up_s[kept]

    @staticmethod
    def _times(rng: np.random.Generator, mean_s: float, shape: float) -> NDArray[np.float64]:
        scale_s = mean_s / math.gamma(1 + 1 / shape)
        # Half of the largest time, so that sums of two with a time before it are exact.
        drawn = up_to_grid(np.minimum(rng.weibull(shape, _AT_ONCE) * scale_s, MAX_TIME_S / 2))
        return np.maximum(drawn, TICK_S)
