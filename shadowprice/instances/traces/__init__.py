"""Importers of traces: one file each, found by name or by the first line of the file.

An importer is a module with ``NAME``, ``sniff(first_line, path) -> bool`` and
``load(path, throughputs) -> Imported``; adding one is adding its file. One that also has
``GENERAL = True`` is asked only where no other importer recognises the file.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.instances.files import read_bytes
from shadowprice.instances.traces.imported import Finding, Imported

if TYPE_CHECKING:
    from shadowprice.instances.speeds.throughputs import Throughputs

__all__ = ["Finding", "Imported", "importers", "load_trace"]


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
