"""Profiles as a term: a run is as fast as the CPUs and memory of its worst supplied node let it be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.sensitivity import Amounts, Sensitivity, shared_out
from shadowprice.instances.terms.term import Fields, Pieces, SpeedFactor, Told


class ProfilesTerm(SpeedFactor):
    """The speed with some CPUs and memory; the field is both on each piece, the default if left open.

    Whoever gets others on the same GPUs goes on, and is charged nothing.

    Parameters
    ----------
    sensitivity : Sensitivity
    default : sequence of (float, float)
        CPUs and memory [GB] of each job for each of its pieces' GPUs, or cores
        (:func:`~shadowprice.instances.clusters.amounts.default_amounts`).
    part : sequence of float
        GPUs that each job holds of each of its pieces' GPUs: 1, the part of one, or 0 of jobs on cores, which
        are given nothing but the default beside these and run at speed 1.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    in_place: ClassVar[bool] = True

    def __init__(
        self,
        sensitivity: Sensitivity,
        default: Sequence[tuple[float, float]],
        part: Sequence[float],
    ) -> None:
        self._sensitivity, self._default, self._part = sensitivity, default, part

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Give the default: GPU-proportional shares, raised to what jobs ask for."""
        if not fields.get(Feature.PROFILES):
            fields[Feature.PROFILES] = self._of_default(job, pieces)

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of the slowest worker.

        Raises
        ------
        InputError
            If a job on cores is given other CPUs or memory than it asks for.
        """
        part, held = self._part[job], fields[Feature.PROFILES]
        if not part:
            expected = self._of_default(job, pieces)
            if held != expected:
                raise InputError(
                    f"job {job}: holds cores and is given CPUs and memory {held} beside them, expected {expected}"
                )
            return 1.0
        if part < 1:
            held = tuple((cpus / part, memory_gb / part) for cpus, memory_gb in held)
        return self._sensitivity.speed(job, pieces, held)

    def _of_default(self, job: int, pieces: Pieces) -> Amounts:
        return shared_out(self._default[job], pieces)

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """CPUs and memory [GB] of each row."""
        held = np.array(
            [each for _, _, fields in told for each in fields[Feature.PROFILES]], dtype=np.float64
        ).reshape(rows, 2)
        return {"cpus": held[:, 0].copy(), "memory_gb": held[:, 1].copy()}
