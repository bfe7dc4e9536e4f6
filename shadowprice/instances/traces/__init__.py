"""Importers of traces: one file each, found by name or by the first line of the file.

A log's format is a declaration, :class:`~shadowprice.instances.traces.log_format.LogFormat`, which its module has as
``FORMAT``; adding one is adding its file. Formats that are no logs are modules with ``NAME``,
``sniff(first_line, path) -> bool`` and ``load(path, throughputs) -> Imported``. One that also has
``GENERAL = True`` is asked only where no other importer recognises the file. Installed packages offer
declarations, or modules or objects with the same members, under names of their own
(:mod:`shadowprice.entry_points`).
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from shadowprice.brief import Brief
from shadowprice.entry_points import TRACES, Offer, offered, offers
from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name, on_one_line
from shadowprice.instances.files import expect_no_utf16, read_bytes
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.traces.recorded_runs import RecordedRuns
from shadowprice.user_code import sentence

if TYPE_CHECKING:
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.workload import Workload


ACTIONS = ("dropped", "censored", "repaired", "derived", "contradicted")
"""Actions of an importer: rows left out, left out since they had not ended when the log did, mended, filled in
from other columns, and at odds with them."""


@dataclass(frozen=True)
class Finding:
    """Rows an importer did not take as they were.

    Parameters
    ----------
    action : str
        One of :data:`ACTIONS`.
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


@dataclass(frozen=True, repr=False)
class Imported(Brief):
    """A workload and the report of its import.

    Parameters
    ----------
    workload : Workload
    report : tuple of Finding
    rows_read : int, optional
        Rows of the file, where the importer counts them.
    notes : tuple of str
        What was taken to be so.
    origin_s : float, optional
        Time 0 of the workload by the clock of the log, in seconds since 1970; None where it is not known.
    recorded : RecordedRuns, optional
        When and where the jobs ran, if that was asked for.
    """

    workload: Workload
    report: tuple[Finding, ...] = ()
    rows_read: int | None = None
    notes: tuple[str, ...] = ()
    origin_s: float | None = None
    recorded: RecordedRuns | None = None

    def counts(self) -> dict[str, int]:
        """Rows by what was done with them: read, kept, and each of :data:`ACTIONS`."""
        found = dict.fromkeys(ACTIONS, 0)
        for finding in self.report:
            found[finding.action] = found.get(finding.action, 0) + finding.count
        read = {} if self.rows_read is None else {"read": self.rows_read}
        return {**read, "kept": len(self.workload), **found}

    def document(self) -> dict[str, object]:
        """The report as JSON has it: source, counts, findings, notes."""
        return {
            "source": self.workload.source,
            "rows": self.counts(),
            "findings": [asdict(each) for each in self.report],
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The report, a line each."""
        counts = ((name, count) for name, count in self.counts().items() if count or name == "kept")
        head = f"rows {', '.join(f'{name} {count}' for name, count in counts)}"
        return [head, *map(str, self.report), *(f"note: {note}" for note in self.notes)]

    def __str__(self) -> str:
        return "\n".join(self.lines())


class BrokenImporter(UserWarning):
    """An importer of an installed package could not be asked whether a file is for it."""


class Importer(Protocol):
    """A reader of one format: a module, or any object with these members."""

    def sniff(self, first_line: str, path: Path) -> bool:
        """True if a file that begins like this is of the format."""

    def load(self, path: Path, throughputs: Throughputs | None) -> Imported:
        """Jobs of a file, and what was dropped or repaired."""


@runtime_checkable
class LogImporter(Protocol):
    """An importer of a log that can be read in several ways."""

    def load_log(self, path: Path, choices: LogReading) -> Imported:
        """Jobs of a log as chosen, and what was left out."""


def importers() -> dict[str, Importer]:
    """All importers by name: declarations, and modules."""
    names = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(name) for name in names]
    logs = {module.FORMAT.name: module.FORMAT for module in modules if hasattr(module, "FORMAT")}
    return logs | {module.NAME: module for module in modules if hasattr(module, "NAME")}


def about(importer: Importer) -> str:
    """Description of a format by its importer."""
    return str(getattr(importer, "about", importer.__doc__) or "")


def installed_importer(offer: Offer) -> Importer:
    """An importer that an installed package offers.

    Raises
    ------
    InputError
        If it cannot be imported, or is no importer.
    """
    found: Importer = offer.load()
    expected = ("sniff", "load_log" if isinstance(found, LogImporter) else "load")
    missing = [each for each in expected if not callable(getattr(found, each, None))]
    if missing:
        raise InputError(
            f"{offer}: has no {', '.join(missing)}, expected sniff(first_line, path) and "
            "load(path, throughputs)"
        )
    return found


def load_trace(
    path: str | Path,
    *,
    format: str | Importer | None = None,
    throughputs: Throughputs | None = None,
    recorded: bool = False,
) -> Imported:
    """Read a trace; gzip and xz are unpacked.

    Parameters
    ----------
    format : str or Importer, optional
        The importer or its name; by default the one that recognises the first line. Those of installed
        packages are asked after our own, and before those that are general. Choices (:class:`LogReading`)
        follow a colon: ``helios:keep=completed``, or ``:keep=completed`` for the importer that recognises the file.
    throughputs : Throughputs, optional
        Table for traces that count work in steps.
    recorded : bool
        Read when and where each job ran as well, into :attr:`Imported.recorded`.

    Raises
    ------
    InputError
        If no importer recognises the file, or the file is wrong.

    Warns
    -----
    BrokenImporter
        If an importer of an installed package could not be asked.
    """
    path = Path(path)
    if format is not None and not isinstance(format, str):
        return _load(format, path, throughputs, LogReading(recorded=recorded))
    name, _, given = (format or "").partition(":")
    choices = replace(LogReading.read(given), recorded=recorded)
    if name:
        return _load(_named(name), path, throughputs, choices)
    head = read_bytes(path)[:65536]
    if not head.strip():
        raise InputError(f"{path}: is empty")
    expect_no_utf16(head, path)
    text = head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    first_line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    known = importers()
    able = [name for name, importer in known.items() if importer.sniff(first_line, path)]
    general = {name for name in able if getattr(known[name], "GENERAL", False)}
    chosen: dict[str, Importer] = {name: known[name] for name in able if name not in general}
    chosen = chosen or _installed_able(first_line, path) or {name: known[name] for name in general}
    if not chosen:
        raise InputError(
            f"{path}: not recognised as one of {', '.join(_names())} by its first line {first_line[:80]!r}; "
            "a table needs columns such as id, gpus, submit, duration; or name the format"
        )
    if len(chosen) > 1:
        raise InputError(
            f"{path}: could be {' or '.join(sorted(chosen))}, expected the format to be named"
        )
    return _load(next(iter(chosen.values())), path, throughputs, choices)


def _names() -> list[str]:
    return sorted({*importers(), *(offer.name for offer in offers(TRACES))})


def _named(name: str) -> Importer:
    ours = importers().get(name)
    if ours is not None:
        return ours
    offer = offered(TRACES, name)
    if offer is None:
        raise InputError(f"format {name!r}: {expected_name(name, _names(), 'shadowprice trace')}")
    return installed_importer(offer)


def _installed_able(first_line: str, path: Path) -> dict[str, Importer]:
    """Importers of installed packages that recognise a file; a broken one hurts nobody else."""
    able: dict[str, Importer] = {}
    for offer in offers(TRACES):
        try:
            importer = installed_importer(offer)
            if importer.sniff(first_line, path):
                able[f"{offer.name} of {offer.distribution}"] = importer
        except InputError as error:
            warnings.warn(str(error), BrokenImporter, stacklevel=3)
        except Exception as error:
            told = f"{offer}: sniff: {sentence(error)}"
            warnings.warn(told, BrokenImporter, stacklevel=3)
    return able


def _load(
    importer: Importer, path: Path, throughputs: Throughputs | None, choices: LogReading
) -> Imported:
    if isinstance(importer, LogImporter):
        with collection_paused():
            imported = importer.load_log(path, choices)
    elif choices.recorded:
        raise InputError(f"{path}: its format is no log: it does not say when jobs started")
    elif choices.of_log:
        raise InputError(
            f"{path}: its format has one reading only; keep, attempts, fractions, cpu-jobs and zone are for logs"
        )
    else:
        with collection_paused():
            imported = importer.load(path, throughputs)
    if not isinstance(imported, Imported):
        raise InputError(
            f"{path}: its importer returned {type(imported).__name__}, expected Imported"
        )
    if len(imported.workload) == 0:
        raise InputError(f"{path}: has no jobs")
    return _cut(imported, choices, path)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Nothing is looked for that only refers to itself: millions of values of a table take a third of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _cut(imported: Imported, choices: LogReading, path: Path) -> Imported:
    """The jobs of a window, none longer than was chosen; both are reported."""
    # A message about a missing file loads little.
    import numpy as np

    from shadowprice.instances.grid import to_grid

    report, jobs, origin_s = list(imported.report), imported.workload, imported.origin_s
    recorded = imported.recorded
    if choices.window_s is not None:
        start_s, end_s = choices.window_s
        outside = (jobs.arrival_s < start_s) | (jobs.arrival_s >= end_s)
        if outside.all():
            raise InputError(f"{path}: no job arrives from {start_s:g} to {end_s:g} s")
        if outside.any():
            first = str(jobs.id[outside.argmax()])
            report.append(Finding("dropped", int(outside.sum()), "outside the window", first))
            jobs = jobs.select(np.flatnonzero(~outside))
            first_s = float(jobs.arrival_s[0])
            origin_s = None if origin_s is None else origin_s + first_s
            recorded = None if recorded is None else recorded.of_jobs(jobs.id, first_s)
            jobs = replace(jobs, arrival_s=jobs.arrival_s - first_s)
    if choices.longest_s is not None:
        if jobs.throughput is not None:
            raise InputError(f"{path}: its work is iterations, not time; longest_s cannot cut it")
        long = jobs.work > choices.longest_s
        if long.any():
            first = f"{jobs.id[long.argmax()]}: {jobs.work[long.argmax()]:g} s"
            report.append(
                Finding("repaired", int(long.sum()), f"cut to {choices.longest_s:g} s", first)
            )
            jobs = replace(jobs, work=to_grid(np.minimum(jobs.work, choices.longest_s)))
    return replace(
        imported, workload=jobs, report=tuple(report), origin_s=origin_s, recorded=recorded
    )
