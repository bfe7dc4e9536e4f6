"""Importers of traces: one file each, found by name or by the first line of the file.

An importer is a module with ``NAME``, ``sniff(first_line, path) -> bool`` and
``load(path, throughputs) -> Imported``; adding one is adding its file. One that also has
``GENERAL = True`` is asked only where no other importer recognises the file.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.instances.entries import on_one_line
from shadowprice.instances.files import read_bytes

if TYPE_CHECKING:
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.workload import Workload


@dataclass(frozen=True)
class Finding:
    """Rows an importer did not take as they were.

    Parameters
    ----------
    action : str
        ``dropped`` or ``repaired``.
    count : int
        How many rows.
    why : str
        What was wrong with them, or what was done.
    example : str
        The first of them.
    """

    action: str
    count: int
    why: str
    example: str

    def __str__(self) -> str:
        # The example is of the file, and may hold line ends within quotes.
        first = self.example if on_one_line(self.example) else repr(self.example)
        return f"{self.action} {self.count} rows: {self.why} (first: {first})"


@dataclass(frozen=True)
class Imported:
    """A workload and the report of its import."""

    workload: Workload
    report: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{len(self.workload)} jobs", *map(str, self.report)])


def importers() -> dict[str, ModuleType]:
    """All importers by name."""
    names = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    modules = (importlib.import_module(name) for name in names)
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}


def load_trace(
    path: str | Path, *, format: str | None = None, throughputs: Throughputs | None = None
) -> Imported:
    """Read a trace; gzip and xz are unpacked.

    Parameters
    ----------
    format : str, optional
        Name of the importer; by default the one that recognises the first line.
    throughputs : Throughputs, optional
        Table for traces that count work in steps.

    Raises
    ------
    InputError
        If no importer recognises the file, or the file is wrong.
    """
    path = Path(path)
    if format is not None:
        known = importers()
        if format not in known:
            raise InputError(f"format {format!r}: expected one of {', '.join(sorted(known))}")
        return _load(known[format], path, throughputs)
    head = read_bytes(path)[:65536]
    if not head.strip():
        raise InputError(f"{path}: is empty")
    text = head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    first_line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    known = importers()
    able = [name for name, importer in known.items() if importer.sniff(first_line, path)]
    particular = [name for name in able if not getattr(known[name], "GENERAL", False)]
    found = particular or able
    if not found:
        raise InputError(
            f"{path}: not recognised as one of {', '.join(sorted(known))} by its first line {first_line[:80]!r}; "
            "a table needs columns such as id, gpus, submit, duration; or name the format"
        )
    if len(found) > 1:
        raise InputError(
            f"{path}: could be {' or '.join(sorted(found))}, expected the format to be named"
        )
    return _load(known[found[0]], path, throughputs)


def _load(importer: ModuleType, path: Path, throughputs: Throughputs | None) -> Imported:
    imported: Imported = importer.load(path, throughputs)
    if len(imported.workload) == 0:
        raise InputError(f"{path}: has no jobs")
    return imported
