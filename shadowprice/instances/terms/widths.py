"""Jobs that may grow, as a term: a gang that holds more GPUs is faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.conditions import Elasticity, speed_up
from shadowprice.instances.terms.term import Fields, Pieces, SpeedFactor


class WidthsTerm(SpeedFactor):
    """The speed of a job on more GPUs than its gang.

    Parameters
    ----------
    elasticity : Elasticity
    gang : sequence of int
        Of each job [GPUs].
    """

    feature: ClassVar[Feature] = Feature.WIDTHS

    def __init__(self, elasticity: Elasticity, gang: Sequence[int]) -> None:
        self._gang = gang
        self._widest: list[int] = elasticity.widest.tolist()
        self._efficiency: list[float] = elasticity.efficiency.tolist()

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a job on so many GPUs.

        Raises
        ------
        InputError
            If it may not hold so many.
        """
        gang, width = self._gang[job], sum(gpus for _, gpus in pieces)
        if width == gang:
            return 1.0
        if not gang <= width <= self._widest[job]:
            raise InputError(
                f"job {job}: holds {width} GPUs, expected {gang} to {self._widest[job]}"
            )
        return speed_up(self._efficiency[job], gang, width)
