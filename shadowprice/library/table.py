"""Table of the library: of each instance and objective the best known cost and bound, and the gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.analysis.wording import cost_in_words
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.instances.documents.plain_data import plain
from shadowprice.instances.entries import expected_name
from shadowprice.instances.objective import Objective
from shadowprice.library.collection import FAMILIES, NAME, VERSION, instances
from shadowprice.library.entries.entry import ENTRIES, EntryFile, read_about, read_entry
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.publication import records_digest
from shadowprice.library.verification import VerifiedEntry, gap_text, verify_entry


@dataclass(frozen=True)
class Row:
    """An instance in an objective, and what its entry says.

    Parameters
    ----------
    which : LibraryInstance
    objective : Objective
    entry : EntryFile or None
        None if there is no entry.
    """

    which: LibraryInstance
    objective: Objective
    entry: EntryFile | None

    @property
    def values(self) -> VerifiedEntry | None:
        """Cost and bound as the entry says."""
        return None if self.entry is None else VerifiedEntry.stated(self.entry)

    def record(self) -> dict[str, Any]:
        """The row as JSON has it."""
        values, which = self.values, self.which
        about = {
            "instance": which.name,
            "family": which.family,
            "jobs": which.jobs,
            "objective": str(self.objective),
            "preemptive": which.preemptive,
            "absent": list(which.absent()),
        }
        if self.entry is None or values is None:
            return about
        return {
            **about,
            "cost_s": values.cost,
            "bound_s": values.bound,
            "gap": values.gap if math.isfinite(values.gap) else None,
            "closed": values.closed,
            "schedule": plain(self.entry.schedule),
            "bound": plain(self.entry.bound),
        }


def rows_of(family: str | None = None, root: Path = ENTRIES) -> list[Row]:
    """Rows of all instances, or of a family, unverified.

    Raises
    ------
    InputError
        If there is no such family, or an entry is not of the form.
    """
    known = [each.name for each in FAMILIES]
    if family is not None and family not in known:
        raise InputError(f"family {family!r}: {expected_name(family, known, 'library list')}")
    return [
        Row(which, goal, read_about(which.name, goal, root))
        for which in instances()
        if family in (None, which.family)
        for goal in which.objectives
    ]


def verified_rows(
    family: str | None, say: Callable[[str], None], root: Path = ENTRIES
) -> list[Row]:
    """Rows whose schedules and bounds were verified, and digests of instances compared.

    Parameters
    ----------
    say : callable
        Told of each instance that cannot be made here, since its data set is not here.

    Raises
    ------
    VerificationError
        Naming all entries that fail, or are missing.
    """
    rows, failures, absent_rows = rows_of(family, root), list[str](), 0
    for which in instances():
        mine = [row for row in rows if row.which is which]
        if not mine:
            continue
        if absent := which.absent():
            say(f"{which.name}: not verified, data set {absent[0]} is not here")
            absent_rows += len(mine)
            continue
        failures += _failures(which, mine, root)
    if failures:
        raise VerificationError("\n".join(failures))
    say(f"{len(rows) - absent_rows} of {len(rows)} entries verified")
    return rows


def _failures(which: LibraryInstance, rows: Iterable[Row], root: Path) -> list[str]:
    """Sentences on what fails of an instance and its entries."""
    found = []
    try:
        instance = which.instance()
        if records_digest(instance) != which.records_digest:
            return [f"{which.name}: its records in certificates are not those that were published"]
    except ShadowpriceError as error:
        return [str(error)]
    for row in rows:
        try:
            entry = read_entry(which.name, row.objective, root)
            verify_entry(which, row.objective, entry, instance)
        except ShadowpriceError as error:
            found.append(str(error))
    return found


def sentences_of(row: Row) -> list[str]:
    """Sentences on an instance in an objective: what is known, and whom it is from."""
    values, entry = row.values, row.entry
    if entry is None or values is None:
        return [f"{row.objective}: no entry"]
    gap = gap_text(values)
    said = "closed: no schedule costs less" if values.closed else f"gap at most {gap}"
    return [
        f"{row.objective}: {cost_in_words(values)}, {said}",
        *(
            f"  {what} by {each.credit.by}, {each.credit.date}: {each.credit.method} ({each.kind})"
            for what, each in (("schedule", entry.schedule), ("bound", entry.bound))
        ),
    ]


def as_record(rows: Iterable[Row]) -> dict[str, object]:
    """The table as JSON has it."""
    return {
        "collection": NAME,
        "version": VERSION,
        "rows": [row.record() for row in rows],
    }
