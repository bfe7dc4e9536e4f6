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
        Of each job when spread, against when it is not.
    fewest_nodes : sequence of int
        Of the cluster, for k GPUs from 0 to all.
    on_cores : sequence of bool
        Whether each job holds cores; such a job is never spread.
    """

    feature: ClassVar[Feature] = Feature.SPREAD

    def __init__(
        self, spread_speed: Sequence[float], fewest_nodes: Sequence[int], on_cores: Sequence[bool]
    ) -> None:
        self._speed, self._fewest, self._on_cores = spread_speed, fewest_nodes, on_cores

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a job on these nodes."""
        if len(pieces) == 1 or self._on_cores[job]:
            return 1.0
        spread = len(pieces) > self._fewest[sum(gpus for _, gpus in pieces)]
        return self._speed[job] if spread else 1.0
