"""Profile tables of applications: folders of CSV files as Pollux' simulator has them, or one JSON file of our own.

A folder has a folder for each application, with ``placements.csv`` (placement, local_bsz, step_time, sync_time),
``scalability.csv`` (num_nodes, num_replicas, local_bsz, step_time, sync_time; may be left out) and one
``validation-BATCH.csv`` for each batch (iteration, progress, grad_sqr, grad_var, a row an epoch). A placement is the
replicas of each node, a digit each (``112``), or numbers with dashes between them (``8-8``). ``application.toml`` may
say ``most_local``, the largest local batch; Pollux' simulator says that of its own applications in its code
(:data:`MOST_LOCAL`, read).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.documents.plain_data import plain
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_toml, read_text
from shadowprice.instances.goodput.application import (
    Application,
    BatchRecord,
    PlacedStep,
    ScaledStep,
)
from shadowprice.instances.workload_files import read_table

MOST_LOCAL: Mapping[str, int] = MappingProxyType({"yolov3": 8})
"""Largest local batches that Pollux' simulator says of its applications, where its tables go beyond them."""

_MOST = 2.0**40
_RECORD = re.compile(r"validation-([0-9]+)\.csv")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Applications in one file."""

    applications: Annotated[tuple[Application, ...], Meta(min_length=1)]


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts of an application beside its tables."""

    most_local: Annotated[int, Meta(ge=1, le=2**40, description="a whole number >= 1")] = 0


def load_applications(path: str | Path) -> tuple[Application, ...]:
    """Applications of a folder of CSV files, or of a JSON file, by name.

    Raises
    ------
    InputError
        Naming the file, the row, and what was expected.
    """
    place = Path(path)
    if place.is_dir():
        folders = sorted(each.parent for each in place.glob("*/placements.csv"))
        if not folders:
            raise InputError(
                f"{place}: has no folder with a file placements.csv, expected one for each application"
            )
        return tuple(map(load_application, folders))
    text = read_text(place)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{place}: is no JSON ({error}), expected applications with their tables, or a folder of them"
        ) from None
    result: _File = decode(_File, document, str(place))
    return tuple(sorted(result.applications, key=lambda each: each.name))


def applications_text(applications: tuple[Application, ...]) -> str:
    """Text of a JSON file of applications, which :func:`load_applications` reads."""
    return json.dumps({"applications": [plain(each) for each in applications]}) + "\n"


def load_application(folder: Path) -> Application:
    """An application from its folder.

    Raises
    ------
    InputError
        Naming the file, the row, and what was expected.
    """
    records = {
        int(known[1]): each
        for each in sorted(folder.iterdir())
        if (known := _RECORD.fullmatch(each.name))
    }
    if not records:
        raise InputError(f"{folder}: has no validation-BATCH.csv, expected one for each batch")
    scaled = folder / "scalability.csv"
    try:
        return Application(
            folder.name,
            tuple(_placed(folder / "placements.csv")),
            tuple(_scaled(scaled)) if scaled.is_file() else (),
            tuple(_record(batch, records[batch]) for batch in sorted(records)),
            _most_local(folder),
        )
    except InputError as error:
        if str(error).startswith(str(folder)):
            raise
        raise InputError(f"{folder}: {error}") from error


def _most_local(folder: Path) -> int:
    file = folder / "application.toml"
    if not file.is_file():
        return MOST_LOCAL.get(folder.name, 0)
    facts: _Facts = decode(_Facts, parse_toml(read_text(file), str(file)), str(file))
    return facts.most_local


def _table(path: Path, *names: str) -> tuple[ColumnChecks, dict[str, NDArray[Any]]]:
    columns = read_table(path, needed=names)
    count = len(columns[names[0]])
    return ColumnChecks(str(path), np.arange(1, count + 1)), columns


def _numbers(check: ColumnChecks, columns: Mapping[str, NDArray[Any]], name: str) -> list[float]:
    result = check.numbers(name, columns[name], 0.0, 1e300, "a number >= 0")
    return [float(each) for each in result.tolist()]


def _wholes(check: ColumnChecks, columns: Mapping[str, NDArray[Any]], name: str) -> list[int]:
    return [int(each) for each in check.integers(name, columns[name], 1, int(_MOST)).tolist()]


def _placed(path: Path) -> Iterator[PlacedStep]:
    check, columns = _table(path, "placement", "local_bsz", "step_time", "sync_time")
    rings = [_ring(text) for text in columns["placement"].tolist()]
    good = np.array([ring is not None for ring in rings], dtype=np.bool_)
    expected = "replicas of each node, a digit each or with dashes between them"
    check.holds("placement", columns["placement"], good, expected)
    local = _wholes(check, columns, "local_bsz")
    times = (_numbers(check, columns, name) for name in ("step_time", "sync_time"))
    for ring, *row in zip(rings, local, *times, strict=True):
        assert ring is not None
        yield PlacedStep(ring, *row)


def _ring(text: str) -> tuple[int, ...] | None:
    parts = text.split("-") if "-" in text else list(text)
    fine = bool(parts) and all(part.isascii() and part.isdigit() and int(part) for part in parts)
    return tuple(int(part) for part in parts) if fine else None


def _scaled(path: Path) -> Iterator[ScaledStep]:
    check, columns = _table(
        path, "num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"
    )
    counts = (_wholes(check, columns, name) for name in ("num_nodes", "num_replicas", "local_bsz"))
    times = (_numbers(check, columns, name) for name in ("step_time", "sync_time"))
    for row in zip(*counts, *times, strict=True):
        yield ScaledStep(*row)


def _record(batch: int, path: Path) -> BatchRecord:
    names = ("iteration", "progress", "grad_sqr", "grad_var")
    check, columns = _table(path, *names)
    rows: Callable[[str], tuple[float, ...]] = lambda name: tuple(_numbers(check, columns, name))  # noqa: E731
    return BatchRecord(batch, *map(rows, names))
