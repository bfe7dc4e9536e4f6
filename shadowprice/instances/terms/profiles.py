"""Profiles as a term: a run is as fast as the CPUs and memory of its worst supplied node let it be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.sensitivity import Sensitivity, shared_out
from shadowprice.instances.terms.term import Fields, Pieces, SpeedFactor, Told


class ProfilesTerm(SpeedFactor):
    """The speed with some CPUs and memory; the field is both on each piece, GPU-proportional if left open.

    Whoever gets others on the same GPUs goes on, and is charged nothing.

    Parameters
    ----------
    sensitivity : Sensitivity
    share : tuple of (float, float)
        CPUs and memory [GB] for each GPU when both are divided by GPUs.
    part : sequence of float
        GPUs that each job holds of each of its pieces' GPUs: 1, the part of one, or 0 of jobs on cores, which
        hold neither CPUs nor memory beside these and run at speed 1.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    in_place: ClassVar[bool] = True

    def __init__(
        self, sensitivity: Sensitivity, share: tuple[float, float], part: Sequence[float]
    ) -> None:
        self._sensitivity, self._share, self._part = sensitivity, share, part

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Give GPU-proportional shares."""
        if not fields.get(Feature.PROFILES):
            cpus, memory_gb = (each * self._part[job] for each in self._share)
            fields[Feature.PROFILES] = shared_out((cpus, memory_gb), pieces)

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of the slowest worker.

        Raises
        ------
        InputError
            If a job on cores is given CPUs or memory.
        """
        part, held = self._part[job], fields[Feature.PROFILES]
        if not part:
            if any(max(each) > 0 for each in held):
                raise InputError(
                    f"job {job}: holds cores and is given CPUs and memory {held} beside them, expected none"
                )
            return 1.0
        if part < 1:
            held = tuple((cpus / part, memory_gb / part) for cpus, memory_gb in held)
        return self._sensitivity.speed(job, pieces, held)

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """CPUs and memory [GB] of each row."""
        held = np.array(
            [each for _, _, fields in told for each in fields[Feature.PROFILES]], dtype=np.float64
        ).reshape(rows, 2)
        return {"cpus": held[:, 0].copy(), "memory_gb": held[:, 1].copy()}
