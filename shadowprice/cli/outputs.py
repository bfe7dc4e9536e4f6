"""Files that commands write: looked at before the work, written whole, never replaced unasked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from shadowprice.errors import InputError, ShadowpriceError

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
    given = [path for path in paths if path is not None]
    for path in given:
        _expect_writable(path.parent, path)
        if path.is_dir():
            raise InputError(f"{path}: is a directory, expected a file to write")
        # What is no regular file, such as /dev/null, holds nothing.
        if path.is_file() and not force:
            raise InputError(f"{path}: exists, expected a new file, or --force to replace it")
    for path in given:
        if sum(path.absolute() == other.absolute() for other in given) > 1:
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


def made_by(context: typer.Context, *inputs: Path) -> dict[str, object]:
    """The command that is run with its options, and SHA-256 digests of files that it reads.

    Where the output goes is left out: the same inputs give the same bytes.
    """
    options = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in context.params.items()
        if value is not None and name not in ("output", "force")
    }
    digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs}
    return {"command": " ".join(_words(context)), "options": options, "inputs_sha256": digests}


def _words(context: typer.Context) -> list[str]:
    """Words of a command, without the program's."""
    parent: Any = context.parent
    return [] if parent is None else [*_words(parent), str(context.info_name)]


def write(path: Path, action: Callable[[Path], object]) -> None:
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
