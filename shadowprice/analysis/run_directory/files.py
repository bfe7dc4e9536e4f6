"""Files of a run directory: written all together, read with digests."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from shadowprice.brief import Brief
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.instances.entries import shown
from shadowprice.instances.files import read_json

T = TypeVar("T")
Description = dict[str, Any]

FORMAT = 3
RUN, INSTANCE = "run.json", "instance.json"
WORKLOAD, SCHEDULE = "workload.parquet", "schedule.parquet"
CLEANING = "cleaning.json"
"""What an importer made of the rows of a trace."""
DATA = (INSTANCE, WORKLOAD, SCHEDULE, CLEANING)
_PARTIAL = ".partial-"


@dataclass(frozen=True, repr=False)
class Provenance(Brief):
    """Origin of a run, kept with it.

    Parameters
    ----------
    made_by : mapping, optional
        Command and digests of its inputs, as JSON takes them.
    cleaning : mapping, optional
        What an importer made of the rows of a trace, as ``Imported.document`` has it.
    """

    made_by: Mapping[str, object] | None = None
    cleaning: Mapping[str, object] | None = None


UNKNOWN = Provenance()
"""Origin of a run that was not told."""


def write_run(
    directory: Path, writers: Mapping[str, Callable[[Path], object]], described: Description
) -> None:
    """Write a run directory; an earlier run there is replaced.

    All files are written beside their targets and then renamed, so that none is ever there in
    part; a crash between two renames leaves files whose digests differ.

    Parameters
    ----------
    writers
        What writes each file of data, by its name in :data:`DATA`.
    described
        Content of ``run.json``, to which the digests are added.

    Raises
    ------
    InputError
        If the path is a file, is a directory that holds something else than an earlier run, or
        cannot be written; or if the description cannot be written as JSON.
    """
    try:
        claim(directory)
        for name, write in writers.items():
            write(partial(directory, name))
        finish(directory, list(writers), described)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error}") from error


def partial(directory: Path, name: str) -> Path:
    """Path of a file of data while it is written."""
    return directory / (_PARTIAL + name)


def finish(directory: Path, names: Sequence[str], described: Description) -> None:
    """Put the files of a run, which were written as partial ones, in their places, with a description."""
    digests = {name: file_sha256(partial(directory, name)) for name in names}
    partial(directory, RUN).write_text(_text(described, digests), encoding="utf-8")
    for name in (RUN, *names):
        with partial(directory, name).open("rb") as written:
            os.fsync(written.fileno())
        partial(directory, name).replace(directory / name)
    for name in set(DATA).difference(names):
        (directory / name).unlink(missing_ok=True)


def claim(directory: Path) -> None:
    """Make the directory, or make sure that it is empty or an earlier run.

    Raises
    ------
    InputError
        If it is a file, or holds anything else.
    OSError
        If it cannot be made.
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: is a file, expected a directory for the run")
    directory.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in directory.iterdir() if not path.name.startswith(_PARTIAL)}
    if not names:
        return
    foreign = names - {RUN, *DATA}
    if foreign:
        raise InputError(
            f"{directory}: has {min(foreign)!r} in it, expected a new directory or an earlier run"
        )
    if RUN not in names:
        raise InputError(
            f"{directory}: has {min(names)!r} but no {RUN!r}, "
            "expected a new directory or an earlier run"
        )
    _format_of(read_json(directory / RUN), directory / RUN)


def _text(described: Description, digests: Mapping[str, str]) -> str:
    """Text of ``run.json``."""
    try:
        complete = {**described, "sha256": {RUN: sha256(_canonical(described)), **digests}}
        return json.dumps(complete, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"{RUN}: settings or metrics are not JSON: {error}") from error


def _canonical(described: Mapping[str, Any]) -> bytes:
    """Bytes that depend on the content of a description only, its digests left out."""
    content = {key: value for key, value in described.items() if key != "sha256"}
    return json.dumps(content, sort_keys=True).encode()


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, read a piece at a time.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def check_digests(described: Description, directory: Path, data: Sequence[str]) -> None:
    """Compare all files of a run with what its description says of them.

    Raises
    ------
    VerificationError
        If one is not what was saved.
    """
    recorded = described["sha256"]
    digests = {name: file_sha256(directory / name) for name in data}
    digests[RUN] = sha256(_canonical(described))
    for name, digest in digests.items():
        if recorded.get(name) != digest:
            raise VerificationError(
                f"{directory / name}: is not what was saved: its SHA-256 is {digest}, "
                f"{RUN} has {recorded.get(name)!r}"
            )


def check_metrics(recorded: Mapping[str, Any], metrics: Mapping[str, Any], path: Path) -> None:
    """Compare recorded metrics with those of the checked run.

    Raises
    ------
    VerificationError
        Naming the first that differs.
    """
    for key, value in metrics.items():
        if recorded.get(key) != value:
            raise VerificationError(
                f"{path}: metric {key} is {recorded.get(key)!r}, the schedule gives {value!r}"
            )


def read_description(path: Path) -> Description:
    """A description of a run, of the format that is known here.

    Raises
    ------
    InputError
        If it is anything else.
    """
    described: Description = read_json(path)
    if (number := _format_of(described, path)) != FORMAT:
        raise InputError(
            f"{path}: is a run of format {number}, written by version {described.get('version', '1')}, expected one of "
            f"format {FORMAT}; simulate it again, or read it with that version"
        )
    return described


def _format_of(described: object, path: Path) -> int:
    """Number of the format of a run, known or not."""
    number = described.get("format") if isinstance(described, dict) else described
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise InputError(f"{path}: format is {shown(number)}, expected a run of format {FORMAT}")
    return number


def parsed(path: Path, read: Callable[[Path], T]) -> T:
    """Read a file with its reader; the various errors of damaged Parquet become ``InputError``."""
    try:
        return read(path)
    except ShadowpriceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        raise InputError(f"{path}: is not as saved: {error}") from error
