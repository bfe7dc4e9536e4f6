"""Origin of what commands write and print: version, command, options, digests of what was read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from shadowprice.instances.documents.named_settings import parts_of
from shadowprice.version import __version__

_DESCRIBED_BY = ("run.json", "study.json", "points.jsonl")
"""Files that say what is in a directory: of a run (with digests of its other files), of a study."""
_LEFT_OUT = ("force", "as_json", "as_csv", "version")


@dataclass(frozen=True)
class Origin:
    """Command that made a file; the same command on the same inputs has the same one.

    Parameters
    ----------
    version : str
        Of this package.
    command : str
        Words of the command, without the program's.
    options : dict
        Arguments and options that were given or have a default; not where the output goes.
    inputs_sha256 : dict of str to str
        SHA-256 digests of the files that arguments and options name, by their paths as given.
    """

    version: str
    command: str
    options: Mapping[str, object]
    inputs_sha256: Mapping[str, str]

    def record(self) -> dict[str, object]:
        """Entries for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The record in a line, for metadata of pictures."""
        return json.dumps(self.record())

    def sentence(self) -> str:
        """Line for a page."""
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        files = "; ".join(f"SHA-256 of {path}: {sha}" for path, sha in self.inputs_sha256.items())
        made = f"Made by shadowprice {self.version}: {self.command} {options}".strip()
        return f"{made}. {files}".strip()


@dataclass(frozen=True)
class _Running:
    """A command while it runs: its words, its options, the files that it said it writes."""

    words: str
    options: Mapping[str, object]
    outputs: set[str] = field(default_factory=set)


_RUNNING: ContextVar[_Running] = ContextVar("running command")


@contextmanager
def running(words: str, options: Mapping[str, object]) -> Iterator[None]:
    """Time in which :func:`origin` is that of a command."""
    token = _RUNNING.set(_Running(words, options))
    try:
        yield
    finally:
        _RUNNING.reset(token)


def note_outputs(*paths: Path) -> None:
    """Keep in mind that the running command writes these files: they are no inputs of it."""
    _RUNNING.get(_Running("", {})).outputs.update(map(str, paths))


def origin() -> Origin:
    """Origin of what the running command writes.

    Files are read for their digests: O(bytes). What is not a regular file, such as a pipe, has none.
    """
    command = _RUNNING.get()
    values = {
        name: _without_outputs(value, command.outputs)
        for name, value in command.options.items()
        if name not in _LEFT_OUT
    }
    values = {name: value for name, value in values.items() if value not in (None, False)}
    return Origin(
        __version__,
        command.words,
        {name: _as_json(value) for name, value in values.items()},
        {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for value in values.values()
            for path in _files(value)
        },
    )


def _without_outputs(value: object, outputs: Set[str]) -> object:
    """The value of an option without files that the command writes; None if nothing is left."""
    if isinstance(value, list | tuple):
        return [each for each in value if str(each) not in outputs] or None
    return None if str(value) in outputs else value


def _as_json(value: object) -> object:
    """The value of an option as JSON takes it: that has no infinity."""
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    plain = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if plain else str(value)


def _files(value: object) -> Iterator[Path]:
    """Files that an option names: by itself, before a colon (``FILE.py:NAME``), or as a value (``NAME:file=FILE``).

    Of a directory, those that say what is in it.
    """
    if isinstance(value, list | tuple):
        for each in value:
            yield from _files(each)
        return
    if not isinstance(value, str | Path):
        return
    if _is_directory(value):
        described = (Path(value) / name for name in _DESCRIBED_BY)
        yield from (path for path in described if _is_file(path))
        return
    for piece in [str(value)] if isinstance(value, Path) else parts_of(value):
        for name in dict.fromkeys((piece, piece.partition(":")[0], piece.partition("=")[2])):
            if name and _is_file(name):
                yield Path(name)
                break


def _is_file(name: str | Path) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _is_directory(name: str | Path) -> bool:
    try:
        return bool(str(name)) and Path(name).is_dir()
    except (OSError, ValueError):
        return False
