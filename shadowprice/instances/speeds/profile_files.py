"""Files of profiles: JSON, ours and that of Synergy's recorded tables.

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

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Line, Name, Number, decode
from shadowprice.instances.entries import LARGEST, known_keys
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.profile import Profile
from shadowprice.instances.workload import MAX_GANG

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
