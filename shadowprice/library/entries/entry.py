"""Entries as files of a folder: ``entry.json``, ``schedule.csv.xz`` and ``bound.jsonl.xz``."""

from __future__ import annotations

import datetime
import lzma
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import plain, text_of
from shadowprice.instances.documents.schema import Name, decode
from shadowprice.instances.files import read_json, read_text
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.collection import FOLDER
from shadowprice.library.entries.schedule_rows import schedule_of_text, text_of_schedule
from shadowprice.library.entries.stored_bound import StoredBound

ENTRIES = FOLDER / "entries"
"""Folder of the entries of this version."""
LARGEST_BYTES = 64 * 2**20
"""Largest schedule or bound read, after decompression: some twenty times the largest published one."""
ENTRY, SCHEDULE, BOUND = "entry.json", "schedule.csv.xz", "bound.jsonl.xz"

_Ticks = (
    Annotated[
        str,
        Meta(
            pattern=r"\A[0-9]{1,400}(/[1-9][0-9]{0,400})?\Z",
            description="a fraction of whole numbers",
        ),
    ]
    | Annotated[int, Meta(ge=0, description="a whole number")]
)


class Credit(msgspec.Struct, frozen=True):
    """Finder of a schedule or a bound, method, and day."""

    by: Name
    method: Name
    date: Annotated[
        str, Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", description="a date YYYY-MM-DD")
    ]

    def checked(self) -> Credit:
        """The same credit, in the form that entries have.

        Raises
        ------
        InputError
            Naming the part that is not.
        """
        credit = decode(Credit, plain(self), "credit")
        try:
            datetime.date.fromisoformat(credit.date)
        except ValueError:
            raise InputError(
                f"credit: date {credit.date}: expected a day of the calendar"
            ) from None
        return credit


class CreditedValue(msgspec.Struct, frozen=True):
    """A value [ticks of 2**-20 s], what it rests on, and whom it is from."""

    ticks: _Ticks
    kind: Name
    credit: Credit

    @property
    def exact(self) -> Fraction:
        """The value as a rational."""
        return Fraction(self.ticks)


class EntryFile(msgspec.Struct, frozen=True):
    """``entry.json``."""

    instance: Name
    objective: Name
    digest: Name
    schedule: CreditedValue
    bound: CreditedValue


@dataclass(frozen=True, eq=False)
class Entry:
    """The best that is known of an instance in an objective.

    Parameters
    ----------
    about : EntryFile
    schedule : Schedule
    bound : StoredBound
    """

    about: EntryFile
    schedule: Schedule
    bound: StoredBound


def folder_of(name: str, objective: Objective, root: Path = ENTRIES) -> Path:
    """Folder of an entry."""
    return root / name / str(objective)


def read_about(name: str, objective: Objective, root: Path = ENTRIES) -> EntryFile | None:
    """Description of an entry, unverified; None if there is none.

    Raises
    ------
    InputError
        If the file is not of the form.
    """
    path = folder_of(name, objective, root) / ENTRY
    if not path.is_file():
        return None
    about = decode(EntryFile, read_json(path), str(path))
    for each in (about.schedule, about.bound):
        each.credit.checked()
    if about.bound.exact > about.schedule.exact:
        raise InputError(f"{path}: the bound is larger than what the schedule costs")
    return about


def read_entry(name: str, objective: Objective, root: Path = ENTRIES) -> Entry:
    """An entry, unverified.

    Raises
    ------
    InputError
        If there is none, or a file is not of the form.
    """
    folder, about = folder_of(name, objective, root), read_about(name, objective, root)
    if about is None:
        raise InputError(f"{folder / ENTRY}: no such file")
    rows = schedule_of_text(_text(folder / SCHEDULE), str(folder / SCHEDULE))
    if rows.about.get("instance", name) != name:
        raise InputError(f"{folder / SCHEDULE}: is of {rows.about['instance']}, expected {name}")
    bound = StoredBound.of_text(_text(folder / BOUND), str(folder / BOUND))
    return Entry(about, rows.schedule, bound)


def write_entry(entry: Entry, root: Path = ENTRIES) -> Path:
    """Write an entry in the place of an earlier one; returns its folder. Nothing is verified.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    about = entry.about
    folder = folder_of(about.instance, Objective(about.objective), root)
    rows = text_of_schedule(entry.schedule, {"instance": about.instance, "digest": about.digest})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCHEDULE).write_bytes(_packed(rows))
        (folder / BOUND).write_bytes(_packed(entry.bound.text()))
        (folder / ENTRY).write_text(text_of(plain(about)), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return folder


def _text(path: Path) -> str:
    return read_text(path, limit_bytes=LARGEST_BYTES)


def _packed(text: str) -> bytes:
    return lzma.compress(text.encode("utf-8"), preset=9)
