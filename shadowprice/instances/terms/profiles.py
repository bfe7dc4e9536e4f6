"""Profiles as a term: a run is as fast as the CPUs and memory of its worst supplied node let it be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.terms.term import Fields, Pieces, SpeedFactor, Told


class ProfilesTerm(SpeedFactor):
    """The speed with some CPUs and memory; the field is both on each piece, GPU-proportional if left open.

    Whoever gets others on the same GPUs goes on, and is charged nothing.

    Parameters
    ----------
    sensitivity : Sensitivity
    share : tuple of (float, float)
        CPUs and memory [GB] for each GPU when both are divided by GPUs.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    in_place: ClassVar[bool] = True

    def __init__(self, sensitivity: Sensitivity, share: tuple[float, float]) -> None:
        self._sensitivity, self._share = sensitivity, share

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Give GPU-proportional shares."""
        if not fields.get(Feature.PROFILES):
            cpus, memory_gb = self._share
            fields[Feature.PROFILES] = tuple((cpus * gpus, memory_gb * gpus) for _, gpus in pieces)

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of the slowest worker."""
        return self._sensitivity.speed(job, pieces, fields[Feature.PROFILES])

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """CPUs and memory [GB] of each row."""
        held = np.array(
            [each for _, _, fields in told for each in fields[Feature.PROFILES]], dtype=np.float64
        ).reshape(rows, 2)
        return {"cpus": held[:, 0].copy(), "memory_gb": held[:, 1].copy()}
