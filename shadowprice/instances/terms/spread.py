"""Slowdowns of spread gangs as a term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import Fields, Pieces, SpeedFactor


class SpreadTerm(SpeedFactor):
    """The speed of a run on more nodes than the fewest that could hold as many GPUs.

    Parameters
    ----------
    spread_speed : sequence of float
        Of each job when spread, against when it is not; 1 of jobs that hold no GPUs.
    fewest_nodes : sequence of int
        Of the cluster, for k GPUs from 0 to all.
    """

    feature: ClassVar[Feature] = Feature.SPREAD

    def __init__(self, spread_speed: Sequence[float], fewest_nodes: Sequence[int]) -> None:
        self._speed, self._fewest = spread_speed, fewest_nodes

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a job on these nodes."""
        slow = self._speed[job]
        if len(pieces) == 1 or slow == 1.0:
            return 1.0
        spread = len(pieces) > self._fewest[sum(gpus for _, gpus in pieces)]
        return slow if spread else 1.0
