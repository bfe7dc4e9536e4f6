"""Profiles of models by CPUs and memory, and which of them the jobs of a workload have.

Files of profiles: JSON, ours and that of Synergy's recorded tables.

Ours is a list, one object a table::

    {"profiles": [
      {"model": "resnet-18", "gpus": 1,
       "cpus_per_gpu": [1, 3, 9], "memory_gb_per_gpu": [20, 62.5],
       "speed": [[0.1, 0.4], [0.1, 1.0], [0.1, 2.4]]}]}

``gpus`` may be left out: the table then holds for all gangs without one of their own. ``speed`` has a
row for each number of CPUs, in any unit, ``measured`` may record how it was found. Synergy's has objects by model
and by gang with the speeds under ``tput``, and the axes once, for each GPU::

    {"profiles": {"res18": {"1": {"tput": [[0.1, 0.4], [0.1, 1.0], [0.1, 2.4]]}}},
     "profile_axes": {"cpu_rows": [1, 3, 9], "mem_cols_gb": [20.83, 62.5]}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.cpu_memory import CpuMemory, proportional_share
from shadowprice.instances.documents.schema import Line, Name, Number, decode
from shadowprice.instances.entries import LARGEST, known_keys
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.model_names import plain_name
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.workload import MAX_GANG, Workload

# Profiles by family of models, made from what is published of them.
#
# Source: Mohan et al., OSDI'22, as its public simulator has them (github.com/msr-fiddle/synergy): for
# ten models the least CPUs and memory for each GPU with which they are fastest, and how much faster
# that is than with 3 CPUs and 62.5 GB, the share of a GPU in a node of 8 GPUs, 24 CPUs and 500 GB.
# What lies between is our reading of the paper's model of a job, an epoch as long as the longest of
# what it does at the same time (derived):
#
# * on the GPU, ``1 / s`` of an epoch with that share, s being the published speed-up;
# * on c CPUs, ``A + B / c`` through 1 at 3 CPUs and 1 / s at the published number of them;
# * from disk, ``F (1 - q)`` where the share q of the data is cached: all of it at the published
#   memory. F is fitted to the published tables, for images 1 (AlexNet with 62.5 GB: 2.0 as
#   published), for speech 1.25 (M5 with 62.5 and 125 GB: 1.2 and 2.4, published 1.5 and 2.0).
#
# With less than 62.5 GB the published tables have a tenth, whatever the CPUs; for language models,
# which need 20 GB and no CPUs to speak of, 1.


CPUS_PER_GPU = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0)
MEMORY_GB_PER_GPU = (20.0, 62.5, 125.0, 187.5, 250.0)
SHARE_CPUS, SHARE_MEMORY_GB = 3.0, 62.5
SHORT_OF_MEMORY = 0.1
"""Speed with less memory than the share."""


class ModelFamily(StrEnum):
    """Domain of the data that a model is trained on."""

    IMAGE = "image"
    LANGUAGE = "language"
    SPEECH = "speech"


ALL_FROM_DISK = {ModelFamily.IMAGE: 1.0, ModelFamily.LANGUAGE: 0.0, ModelFamily.SPEECH: 1.25}
"""F, the time to read all data from disk over that of an epoch with the share."""


@dataclass(frozen=True)
class ModelDemand:
    """Best-case CPUs and memory of a model, and its speedup with them.

    Parameters
    ----------
    family : ModelFamily
    cpus_per_gpu, memory_gb_per_gpu : float
        Least CPUs and memory [GB] for each GPU with which it is fastest.
    speedup : float
        How much faster that is than with 3 CPUs and 62.5 GB.
    """

    family: ModelFamily
    cpus_per_gpu: float
    memory_gb_per_gpu: float
    speedup: float

    def speed(self, cpus: float, memory_gb: float) -> float:
        """Speed with so much for each GPU, 1 with 3 CPUs and 62.5 GB."""
        if self.memory_gb_per_gpu < SHARE_MEMORY_GB:
            return self.speedup
        if memory_gb < SHARE_MEMORY_GB:
            return SHORT_OF_MEMORY
        missed = max(0.0, 1.0 - memory_gb / self.memory_gb_per_gpu)
        others = max(self._on_cpus(cpus), ALL_FROM_DISK[self.family] * missed)
        return min(self.speedup, 1.0 / others) if others > 0 else self.speedup

    def _on_cpus(self, cpus: float) -> float:
        """Time of an epoch's work on CPUs, that of an epoch with the share being 1; 0 if enough."""
        if cpus >= self.cpus_per_gpu:
            return 0.0
        if self.cpus_per_gpu <= SHARE_CPUS:
            return SHARE_CPUS / cpus
        part = (1.0 - 1.0 / self.speedup) / (1.0 / SHARE_CPUS - 1.0 / self.cpus_per_gpu)
        return 1.0 + part * (1.0 / cpus - 1.0 / SHARE_CPUS)


DEMANDS = {
    "alexnet": ModelDemand(ModelFamily.IMAGE, 12, 125.0, 2.94),
    "shufflenet": ModelDemand(ModelFamily.IMAGE, 12, 125.0, 2.89),
    "resnet-18": ModelDemand(ModelFamily.IMAGE, 9, 62.5, 2.4),
    "mobilenet": ModelDemand(ModelFamily.IMAGE, 6, 62.5, 1.55),
    "resnet-50": ModelDemand(ModelFamily.IMAGE, 4, 62.5, 1.15),
    "gnmt": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "lstm": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "transformer-xl": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "m5": ModelDemand(ModelFamily.SPEECH, 6, 187.5, 2.5),
    "deepspeech": ModelDemand(ModelFamily.SPEECH, 3, 62.5, 1.0),
}
"""The published models."""


def models_of(family: ModelFamily) -> tuple[str, ...]:
    """Names of the published models of a family."""
    return tuple(name for name, demand in DEMANDS.items() if demand.family is family)


def family_profile(model: str) -> Profile:
    """The profile of a published model on the published grid of CPUs and memory."""
    demand = DEMANDS[model]
    speed = [[demand.speed(cpus, memory) for memory in MEMORY_GB_PER_GPU] for cpus in CPUS_PER_GPU]
    return Profile(np.array(CPUS_PER_GPU), np.array(MEMORY_GB_PER_GPU), np.array(speed), model)


# Files of profiles.


ANY_GANG = 0
"""Gang size of tables that hold for all gangs."""

ProfileKey = tuple[str, int]
"""Model and gang size [GPUs]."""

_Axis: TypeAlias = Annotated[list[Number], Meta(min_length=1, description="a list of numbers")]
_Speed: TypeAlias = Annotated[
    float,
    Meta(
        gt=0,
        le=LARGEST,
        description="a number > 0; leave out amounts with which the model does not run",
    ),
]


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of our files."""

    model: Name
    gpus: (
        Annotated[int, Meta(ge=1, le=MAX_GANG, description="an integer >= 1")] | msgspec.UnsetType
    ) = msgspec.UNSET
    cpus_per_gpu: _Axis
    memory_gb_per_gpu: _Axis
    speed: list[list[_Speed]]
    measured: Any = None


class _SynergyAxes(msgspec.Struct, frozen=True):
    cpu_rows: _Axis
    mem_cols_gb: _Axis


class _SynergyTable(msgspec.Struct, frozen=True, kw_only=True):
    """One gang in Synergy's recorded tables; only the speeds are read here."""

    tput: list[list[_Speed]]
    iter_time_s: Any = None
    best_cpus_per_gpu: Any = None
    best_mem_gb_per_gpu: Any = None
    best_speedup: Any = None
    placement_penalty: Any = None


_Gang: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9]{1,9}\Z", description="a gang size")]


def read_profiles(path: str | Path) -> dict[ProfileKey, Profile]:
    """Read tables of either form.

    Raises
    ------
    InputError
        Naming the file, the model and the cell.
    """
    data = read_json(path)
    entries = data.get("profiles") if isinstance(data, dict) else None
    if not isinstance(entries, list | dict) or not entries:
        raise InputError(f"{path}: expected an object with profiles, a non-empty list of tables")
    if isinstance(entries, list):
        known_keys(data, str(path), ("profiles",))
        rows = _ours(entries, path)
    else:
        # The tables come within the record of a run, whose other entries are not about them.
        axes = decode(_SynergyAxes, data.get("profile_axes"), f"{path}: profile_axes")
        rows = _synergy(entries, axes, path)
    tables: dict[ProfileKey, Profile] = {}
    for key, profile in rows:
        if key in tables:
            raise InputError(f"{profile.name}: is there twice, expected once")
        tables[key] = profile
    return tables


def table_entry(model: str, gpus: int, profile: Profile, measured: object = None) -> dict[str, Any]:
    """One table as our files have it."""
    entry: dict[str, Any] = {"model": model}
    if gpus != ANY_GANG:
        entry["gpus"] = gpus
    entry |= {
        "cpus_per_gpu": profile.cpus_per_gpu.tolist(),
        "memory_gb_per_gpu": profile.memory_gb_per_gpu.tolist(),
        "speed": profile.speed.tolist(),
    }
    return entry if measured is None else entry | {"measured": measured}


def _ours(entries: object, path: str | Path) -> Iterator[tuple[ProfileKey, Profile]]:
    for table in decode(list[_Table], entries, f"{path}: profiles"):
        key = (table.model, ANY_GANG if table.gpus is msgspec.UNSET else table.gpus)
        yield key, _profile(table.cpus_per_gpu, table.memory_gb_per_gpu, table.speed, key, path)


def _synergy(
    entries: object, axes: _SynergyAxes, path: str | Path
) -> Iterator[tuple[ProfileKey, Profile]]:
    models = decode(dict[Line, dict[_Gang, _SynergyTable]], entries, f"{path}: profiles")
    for model, gangs in models.items():
        for size, table in gangs.items():
            key = (model, int(size))
            yield key, _profile(axes.cpu_rows, axes.mem_cols_gb, table.tput, key, path)


def _profile(
    cpus: list[float],
    memory_gb: list[float],
    speed: list[list[float]],
    key: ProfileKey,
    path: str | Path,
) -> Profile:
    model, gpus = key
    on = "" if gpus == ANY_GANG else f" on {gpus} GPU{'s' if gpus > 1 else ''}"
    name = f"{path}: model {model!r}{on}"
    if len(speed) != len(cpus):
        raise InputError(
            f"{name}: speed has {len(speed)} rows, expected one row for each of {len(cpus)} CPUs"
        )
    for many, row in zip(cpus, speed, strict=True):
        if len(row) != len(memory_gb):
            raise InputError(
                f"{name}: speed with {many:g} CPUs has {len(row)} cells, expected {len(memory_gb)}, "
                "one for each memory"
            )
    return Profile(np.array(cpus), np.array(memory_gb), np.array(speed), name)


@dataclass(frozen=True, eq=False, repr=False)
class Profiles(Brief):
    """Tables of speeds by model and gang.

    Parameters
    ----------
    tables : mapping of (str, int) to Profile
        By model, whatever its case, hyphens and underscores, and gang size [GPUs]; a size of 0
        stands for all gangs without a table of their own. Speeds are in any unit, one for each
        table, such as epochs a second.
    source : str
        Where they come from, for messages.

    Examples
    --------
    >>> jobs = Workload.from_columns(
    ...     arrival_s=[0, 0], gpus=[1, 1], work=[60, 60], model=["alexnet", "gnmt"]
    ... )
    >>> found = Profiles.synthetic().of(jobs, Cluster.parse("1x8+24cpu+500gb"))
    >>> found.best.tolist()
    [2.94, 1.0]
    """

    tables: Mapping[ProfileKey, Profile]
    source: str = "profiles"

    def __post_init__(self) -> None:
        names: dict[ProfileKey, str] = {}
        for model, gpus in self.tables:
            twin = names.setdefault((plain_name(model), gpus), model)
            if twin != model:
                raise InputError(
                    f"{self.source}: models {twin!r} and {model!r} are one, expected one table"
                )

    @classmethod
    def load(cls, path: str | Path) -> Profiles:
        """Read a file of profiles, see :mod:`shadowprice.instances.speeds.profiles` for its form.

        Raises
        ------
        InputError
            If the file is not of the form, or a table has a cell that is missing, no number, not
            above 0, or less than one with fewer CPUs or less memory; the message names file,
            model and cell.
        """
        return cls(read_profiles(path), str(path))

    @classmethod
    def synthetic(cls) -> Profiles:
        """Profiles of ten published models, see :mod:`shadowprice.instances.speeds.profiles`."""
        tables = {(model, ANY_GANG): family_profile(model) for model in DEMANDS}
        return cls(tables, "profiles by family of models")

    def table(self, model: str, gpus: int) -> Profile | None:
        """The table of a model for gangs of a size, or for all gangs; None if there is neither."""
        plain = plain_name(model)
        own = self._by_name.get((plain, gpus))
        return self._by_name.get((plain, ANY_GANG)) if own is None else own

    @cached_property
    def _by_name(self) -> dict[ProfileKey, Profile]:
        return {(plain_name(model), gpus): each for (model, gpus), each in self.tables.items()}

    def without(self, workload: Workload) -> tuple[ProfileKey, ...]:
        """Models of a workload and their gangs that have no table, sorted."""
        kinds = set(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
        return tuple(sorted(kind for kind in kinds if self.table(*kind) is None))

    def of(
        self,
        workload: Workload,
        cluster: Cluster,
        counted_at: CpuMemory | None = None,
    ) -> Sensitivity:
        """The profiles of jobs on a cluster.

        A job without a table is taken to need its proportional share: speed 1 with that and more,
        none with less, for nothing is known of it.

        Parameters
        ----------
        counted_at : (float, float), optional
            CPUs and memory [GB] for each GPU with which the jobs' work is counted, that is, where
            their speed is 1; by default the proportional share of the cluster.

        Returns
        -------
        Sensitivity
            O(jobs + tables).

        Raises
        ------
        InputError
            If the nodes of the cluster differ in CPUs or memory for a GPU, or have none, or if a
            table says nothing about the proportional share or about ``counted_at``.
        """
        Sensitivity((), np.zeros(0, dtype=np.int64)).check(cluster)
        share = proportional_share(cluster)
        kinds = list(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
        table_of = {kind: self.table(*kind) for kind in dict.fromkeys(kinds)}
        row = {table: k for k, table in enumerate(dict.fromkeys(table_of.values()))}
        profiles = tuple(
            _unknown(share) if table is None else _scaled(table, share, counted_at) for table in row
        )
        of = np.array([row[table_of[kind]] for kind in kinds], dtype=np.int64)
        return Sensitivity(profiles, of)


def _unknown(share: CpuMemory) -> Profile:
    cpus, memory_gb = share
    return Profile(np.array([cpus]), np.array([memory_gb]), np.array([[1.0]]), "no profile")


def _scaled(table: Profile, share: CpuMemory, counted_at: CpuMemory | None) -> Profile:
    """The table with speed 1 where work is counted."""
    for cpus, memory_gb in (share, counted_at or share):
        if table.at(cpus, memory_gb) <= 0:
            raise InputError(
                f"{table.name}: has no speed with {cpus:g} CPUs and {memory_gb:g} GB for each GPU, "
                f"its least are {table.cpus_per_gpu[0]:g} CPUs and {table.memory_gb_per_gpu[0]:g} GB; "
                "expected one, for jobs get at least that"
            )
    speed = table.speed / table.at(*(counted_at or share))
    return Profile(table.cpus_per_gpu, table.memory_gb_per_gpu, speed, table.name)
