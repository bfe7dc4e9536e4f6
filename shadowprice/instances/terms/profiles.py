"""Profiles by CPUs and memory: a run is as fast as those of its worst supplied node let it be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.clusters.cpu_memory import (
    CpuMemory,
    RunCpuMemory,
    default_cpu_memory,
    per_node,
)
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.terms.effect import Effect, Fields, Pieces, RecordedRun, SpeedFactor
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import SeenInstance, Term, expect_of_jobs


@dataclass(frozen=True)
class ProfilesSettings(TermSettings):
    """Speeds of models by the CPUs and memory of a run, on nodes that say how much they have.

    Parameters
    ----------
    file : str
        JSON file of models, such as `profile` writes; those made after Synergy's paper if left out.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    sets: ClassVar[tuple[str, ...]] = ("profiles",)
    example: ClassVar[str] = (
        "simulate sensitive.csv --cluster 4x8+24cpu+500gb --policy synergy-tune:srtf --with profiles"
    )

    file: FileName | UnsetType = UNSET

    def on(self, run: TermContext) -> TermContext:
        """The run with these profiles."""
        from shadowprice.instances.speeds.profiles import Profiles

        found = Profiles.synthetic() if self.file is UNSET else Profiles.load(self.file)
        return run.with_options(profiles=found)


class ProfileFactor(SpeedFactor):
    """The speed with some CPUs and memory; the field is both on each piece, the default if left open.

    Whoever gets others on the same GPUs goes on, and is charged nothing.

    Parameters
    ----------
    sensitivity : Sensitivity
    default : sequence of (float, float)
        CPUs and memory [GB] of each job for each of its pieces' GPUs, or cores
        (:func:`~shadowprice.instances.clusters.cpu_memory.default_cpu_memory`).
    part : sequence of float
        GPUs that each job holds of each of its pieces' GPUs: 1, the part of one, or 0 of jobs on cores, which
        are given nothing but the default beside these and run at speed 1.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    in_place: ClassVar[bool] = True

    def __init__(
        self,
        sensitivity: Sensitivity,
        default: Sequence[CpuMemory],
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

    def _of_default(self, job: int, pieces: Pieces) -> RunCpuMemory:
        return per_node(self._default[job], pieces)

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """CPUs and memory [GB] of each row."""
        held = np.array(
            [each for _, _, fields in runs for each in fields[Feature.PROFILES]], dtype=np.float64
        ).reshape(rows, 2)
        return {"cpus": held[:, 0].copy(), "memory_gb": held[:, 1].copy()}


class ProfilesTerm(Term[Sensitivity]):
    """Sensitivity of jobs to the CPUs and memory that their runs are given."""

    feature: ClassVar[Feature] = Feature.PROFILES
    entry: ClassVar[str] = "sensitivity"
    record: ClassVar[Any] = Sensitivity
    settings: ClassVar[type[TermSettings] | None] = ProfilesSettings
    varies: ClassVar[bool] = True
    by_job: ClassVar[bool] = True

    def check(self, value: Sensitivity, instance: SeenInstance) -> None:
        """Refuse profiles of other jobs, and nodes whose shares of CPUs and memory differ."""
        expect_of_jobs("profiles", len(value.of), instance.workload)
        value.check(instance.cluster)

    def effects(self, value: Sensitivity, instance: SeenInstance) -> Iterator[Effect]:
        """The speed with some CPUs and memory."""
        jobs = instance.workload
        default = default_cpu_memory(instance.cluster, jobs).tolist()
        yield ProfileFactor(value, default, (jobs.held_gpus / jobs.gpus).tolist())

    def best_speed(self, value: Sensitivity, instance: SeenInstance) -> NDArray[np.float64]:
        """Largest speeds of the profiles; 1 of jobs on cores."""
        return np.where(instance.workload.on_cores, 1.0, value.best)
