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

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.entries import is_number, known_keys, on_one_line, shown
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.profile import Profile
from shadowprice.instances.speeds.throughputs import SYNERGY_TABLE
from shadowprice.instances.workload import MAX_GANG

ANY_GANG = 0
"""Gang size of tables that hold for all gangs."""

ProfileKey = tuple[str, int]
"""Model and gang size [GPUs]."""

_NEEDED = ("model", "cpus_per_gpu", "memory_gb_per_gpu", "speed")
_KNOWN = (*_NEEDED, "gpus", "measured")


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
        rows = _synergy(entries, data, path)
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


def _ours(entries: list[Any], path: str | Path) -> Iterator[tuple[ProfileKey, Profile]]:
    for position, entry in enumerate(entries, 1):
        where = f"{path}: table {position}"
        known_keys(entry, where, _KNOWN, _NEEDED)
        model, gpus = entry["model"], entry.get("gpus", ANY_GANG)
        if not isinstance(model, str) or not model or not on_one_line(model):
            raise InputError(f"{where}: model is {shown(model)}, expected a name on one line")
        least = 1 if "gpus" in entry else ANY_GANG
        if type(gpus) is not int or not least <= gpus <= MAX_GANG:
            raise InputError(f"{where}: gpus is {shown(gpus)}, expected an integer >= 1")
        yield (model, gpus), _profile(entry, f"{path}: model {model!r}{_on(gpus)}")


def _synergy(
    entries: Mapping[str, Any], data: Mapping[str, Any], path: str | Path
) -> Iterator[tuple[ProfileKey, Profile]]:
    # The tables come within the record of a run, whose other entries are not about them.
    known = ("cpu_rows", "mem_cols_gb")
    axes = known_keys(data.get("profile_axes"), f"{path}: profile_axes", known, known)
    for model, gangs in entries.items():
        if not on_one_line(model):
            raise InputError(f"{path}: model {shown(model)}, expected a name on one line")
        for size, table in gangs.items() if isinstance(gangs, dict) else [("", None)]:
            where = f"{path}: model {model!r}"
            if not (size.isdecimal() and size.isascii() and isinstance(table, dict)):
                raise InputError(f"{where}: expected objects with tput by gang size")
            known_keys(table, f"{where}{_on(int(size))}", SYNERGY_TABLE)
            one = {
                "cpus_per_gpu": axes["cpu_rows"],
                "memory_gb_per_gpu": axes["mem_cols_gb"],
                "speed": table.get("tput"),
            }
            yield (model, int(size)), _profile(one, f"{where}{_on(int(size))}")


def _on(gpus: int) -> str:
    return "" if gpus == ANY_GANG else f" on {gpus} GPU{'s' if gpus > 1 else ''}"


def _profile(entry: Mapping[str, Any], name: str) -> Profile:
    cpus = _numbers(entry["cpus_per_gpu"], f"{name}: cpus_per_gpu")
    memory_gb = _numbers(entry["memory_gb_per_gpu"], f"{name}: memory_gb_per_gpu")
    rows = entry["speed"]
    if not isinstance(rows, list) or len(rows) != len(cpus):
        found = f"{len(rows)} rows" if isinstance(rows, list) else repr(rows)[:80]
        raise InputError(
            f"{name}: speed has {found}, expected one row for each of {len(cpus)} CPUs"
        )
    speed = []
    for many, row in zip(cpus, rows, strict=True):
        where = f"{name}: speed with {many:g} CPUs"
        if not isinstance(row, list) or len(row) != len(memory_gb):
            found = f"{len(row)} cells" if isinstance(row, list) else repr(row)[:80]
            raise InputError(
                f"{where}: has {found}, expected {len(memory_gb)}, one for each memory"
            )
        speed.append(
            [_speed(cell, f"{where} and {m:g} GB") for cell, m in zip(row, memory_gb, strict=True)]
        )
    return Profile(np.array(cpus), np.array(memory_gb), np.array(speed), name)


def _speed(cell: object, where: str) -> float:
    if not is_number(cell) or not cell > 0:
        what = "missing" if cell is None else repr(cell)[:80]
        raise InputError(
            f"{where} for each GPU is {what}, expected a number > 0; leave out amounts with which "
            "the model does not run"
        )
    return float(cell)


def _numbers(values: object, where: str) -> list[float]:
    if not isinstance(values, list) or not values or not all(map(is_number, values)):
        raise InputError(f"{where} is {values!r:.80}, expected a list of numbers")
    return [float(value) for value in values]
