"""Files that commands write: looked at before the work, written whole, never replaced unasked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.origin import note_outputs, origin
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.instances.documents.table_files import write_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_ORIGIN_INSIDE = frozenset({".html", ".parquet", ".pdf", ".png", ".svg", ".tex", ".zip"})
"""Endings of files that have a place for what made them."""

ForceOption = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]


def expect_outputs(force: bool, *paths: Path | None) -> None:
    """Refuse outputs that could not be written at the end, before anything is done for them.

    Parameters
    ----------
    force : bool
        Whether files that exist may be replaced.
    paths : Path or None
        Files to be written; None where there is none.

    Raises
    ------
    InputError
        If the folder of one does not exist or cannot be written to, two are the same, or one is a folder or
        exists already.
    """
    named = [path for path in paths if path is not None]
    metadata = [metadata_of(path) for path in named]
    every = [*named, *(path for path in metadata if path is not None)]
    note_outputs(*every)
    for path in every:
        _expect_writable(path.parent, path)
        if path.is_dir():
            raise InputError(f"{path}: is a directory, expected a file to write")
        # What is no regular file, such as /dev/null, holds nothing.
        if path.is_file() and not force:
            raise InputError(f"{path}: exists, expected a new file, or --force to replace it")
    for path in every:
        if sum(path.absolute() == other.absolute() for other in every) > 1:
            raise InputError(f"{path}: is to be written twice, expected different files")


def expect_run_directory(force: bool, directory: Path | None) -> None:
    """Refuse a run directory that could not be written, or has a run in it.

    Raises
    ------
    InputError
        If its folder cannot be written to, or it is there and not empty.
    """
    if directory is None:
        return
    note_outputs(directory)
    if directory.is_dir():
        _expect_writable(directory, directory)
        if not force and any(directory.iterdir()):
            raise InputError(
                f"{directory}: is not empty, expected a new directory, or --force to replace the run in it"
            )
        return
    if directory.exists():
        raise InputError(f"{directory}: is a file, expected a directory for the run")
    above = next(parent for parent in directory.absolute().parents if parent.exists())
    _expect_writable(above, directory)


def _expect_writable(folder: Path, path: Path) -> None:
    if not folder.exists():
        raise InputError(f"{path}: cannot be written: there is no directory {folder}")
    if not folder.is_dir():
        raise InputError(f"{path}: cannot be written: {folder} is no directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written: {folder} is not yours to write to")


def write_whole(path: Path, action: Callable[[Path], object]) -> None:
    """Write a file whole: beside its place, and renamed when all of it is on disk.

    Parameters
    ----------
    action : callable
        Writes the file that it is given the path of, which ends as the path does.

    Raises
    ------
    ShadowpriceError
        If it cannot be written; a file that was there is as it was.
    """
    place = path.resolve() if path.is_symlink() else path
    partial = place.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    if path.exists() and not path.is_file():
        place = partial = path  # A device or a pipe.
    try:
        action(partial)
        if partial != place:
            with partial.open("rb") as written:
                os.fsync(written.fileno())
            partial.replace(place)
    except ShadowpriceError as error:
        raise type(error)(str(error).replace(str(partial), str(path))) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ShadowpriceError(f"{path}: cannot be written: {reason}") from error
    finally:
        if partial != place:
            partial.unlink(missing_ok=True)


def metadata_of(path: Path) -> Path | None:
    """File beside another that says where that comes from; None if the other has a place for it inside.

    Named as the W3C's Metadata Vocabulary for Tabular Data says of tables (2015, section 5.3):
    ``jobs.csv-metadata.json``.
    """
    place = path.with_name(f"{path.name}-metadata.json")
    return None if path.suffix.lower() in _ORIGIN_INSIDE else place


def write_file(path: Path, action: Callable[[Path], object]) -> None:
    """Write a file whole; beside one of a format that has no place for it, a file with its origin.

    Raises
    ------
    ShadowpriceError
        As of :func:`write_whole`.
    """
    write_whole(path, action)
    metadata = metadata_of(path)
    if metadata is None or not path.is_file():
        return
    context = {"@context": "http://www.w3.org/ns/csvw"} if path.suffix == ".csv" else {}
    document = {**context, "url": path.name, "notes": [{"made_by": origin().record()}]}
    text = json.dumps(document, indent=1) + "\n"
    write_whole(metadata, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_table(path: Path, frame: pd.DataFrame) -> None:
    """Write a table whole, with its origin, as Parquet or CSV by the ending of the name.

    Raises
    ------
    InputError
        If the name has another ending.
    ShadowpriceError
        As of :func:`write_whole`.
    """
    made_by = origin().record()
    write_file(path, lambda partial: write_frame(frame, partial, made_by))


def with_origin(record: Mapping[str, object]) -> dict[str, object]:
    """A result as JSON has it, with its origin as ``made_by``."""
    return {**record, "made_by": origin().record()}


def write_picture(path: Path, figure: Figure) -> None:
    """Write a picture whole, its origin in its metadata, or beside it where the format has none.

    Raises
    ------
    ShadowpriceError
        As of :func:`write`, or if matplotlib has no such format.
    """
    made = origin()
    keys = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}
    key = keys.get(path.suffix.lower())
    # Dates of PDF and SVG would give other bytes for the same picture.
    fields: dict[str, str | None] = {} if key is None else {key: made.to_json()}
    if path.suffix.lower() == ".pdf":
        fields["CreationDate"] = None
    if path.suffix.lower() == ".svg":
        fields["Date"] = None
    write_file(path, lambda partial: figure.savefig(partial, dpi=150, metadata=fields or None))
