"""Submissions: a schedule or a bound of an instance, verified, and written as an entry if it is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.run_directory.directory import load
from shadowprice.analysis.wording import amount_at_least, amount_at_most
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.collection import instances, library_instance
from shadowprice.library.entries.entry import (
    ENTRIES,
    Credit,
    CreditedValue,
    Entry,
    EntryFile,
    read_about,
    read_entry,
    write_entry,
)
from shadowprice.library.entries.schedule_rows import schedule_of_text
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.publication import records_digest
from shadowprice.library.verification import VerifiedEntry, gap_text, verified_outcome, verify_entry


@dataclass(frozen=True)
class Place:
    """Place of a submission in an objective.

    Parameters
    ----------
    name : str
        The instance.
    objective : Objective
    ticks : Fraction
        Its cost, or its bound.
    of_schedule : bool
        Whether it is a schedule; else a bound.
    earlier : EntryFile
        The entry that was there.
    entry : VerifiedEntry
        The entry that is there now, verified.
    folder : Path or None
        Where it was written; None if it is not better than what was there.
    own : Path or None
        Folder of one's own whose entry was there; None if it was that of the package.
    """

    name: str
    objective: Objective
    ticks: Fraction
    of_schedule: bool
    earlier: EntryFile
    entry: VerifiedEntry
    folder: Path | None
    own: Path | None

    def sentence(self) -> str:
        """The place of the submission, in words."""
        before = self.earlier.schedule if self.of_schedule else self.earlier.bound
        if self.of_schedule:
            mine, theirs = (
                amount_at_most(_seconds(self.ticks)),
                amount_at_most(_seconds(before.exact)),
            )
            verb, best = (
                "costs",
                "least known cost" if self.own is None else f"least cost in {self.own}",
            )
        else:
            mine, theirs = (
                amount_at_least(_seconds(self.ticks)),
                amount_at_least(_seconds(before.exact)),
            )
            verb = "no schedule costs less than"
            best = "largest known bound" if self.own is None else f"largest bound in {self.own}"
        credit = f"{before.credit.method} of {before.credit.by}, {before.credit.date}"
        if self.folder is not None:
            place = f"the {best}, before it {theirs} s by {credit}"
        elif self.ticks == before.exact:
            place = f"equals the {best}, by {credit}"
        else:
            place = f"second to the {best}, {theirs} s by {credit}"
        gap = gap_text(self.entry)
        left = f"the entry {'is closed' if self.entry.closed else f'has a gap of at most {gap}'}"
        return f"{self.name}, {self.objective}: {verb} {mine} s: {place}; {left}"

    def record(self) -> dict[str, object]:
        """The place of the submission as JSON and CSV have it."""
        return {
            "instance": self.name,
            "objective": str(self.objective),
            "cost_s" if self.of_schedule else "bound_s": float(_seconds(self.ticks)),
            "better": self.folder is not None,
            "gap": self.entry.gap if math.isfinite(self.entry.gap) else None,
            "closed": self.entry.closed,
            "folder": None if self.folder is None else str(self.folder),
        }


def submit_path(path: Path, credit: Credit, root: Path = ENTRIES) -> list[Place]:
    """Submit a file as :func:`submit_text` does, or the schedule of a run directory that ``simulate -o`` wrote.

    Raises
    ------
    VerificationError, InputError
        As :func:`submit_text`.
    """
    if not path.is_dir():
        return submit_text(read_text(path), str(path), credit, root)
    run = load(path)
    which = _by_records(records_digest(run.instance), str(path))
    return submit_schedule(which, run.schedule, credit, root=root)


def submit_text(text: str, where: str, credit: Credit, root: Path = ENTRIES) -> list[Place]:
    """Submit a file: a schedule as CSV, whose first lines name the instance, or a certificate as JSON lines.

    Parameters
    ----------
    where : str
        File, for messages.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule, naming the row, the checker rejects the certificate, or either is about another
        instance than it says.
    InputError
        If it is neither, or its instance is none of the library.
    """
    if text.lstrip().startswith("{"):
        which, goal = _of_certificate(text, where)
        instance = which.instance()
        bound = StoredBound.of_certificate(
            text, instance, goal, preemptive=which.preemptive, where=where
        )
        return [submit_bound(which, goal, bound, credit, instance=instance, root=root)]
    rows = schedule_of_text(text, where)
    if "instance" not in rows.about:
        raise InputError(f"{where}: names no instance, expected a first line '# instance: NAME'")
    which = library_instance(rows.about["instance"])
    digest = rows.about.get("digest", which.digest)
    if digest != which.digest:
        raise VerificationError(
            f"{where}: is about {which.name} of SHA-256 {digest}, expected {which.digest}"
        )
    return submit_schedule(which, rows.schedule, credit, root=root)


def _of_certificate(text: str, where: str) -> tuple[LibraryInstance, Objective]:
    """Instance and objective that a certificate says it is about; the checker has not seen it yet."""
    lines = text.strip().splitlines()
    head, claim = parse_json(lines[0], where), parse_json(lines[-1], where)
    fine = isinstance(head, dict) and isinstance(claim, dict)
    about = claim.get("instance") if fine else None
    which = _by_records(about, where)
    return which, which.objective(str(head.get("objective")))


def _by_records(digest: object, where: str) -> LibraryInstance:
    """Instance by the digest of its records in certificates."""
    for which in instances():
        if digest and which.records_digest == digest:
            return which
    raise InputError(
        f"{where}: is about SHA-256 {digest!s:.80}, expected that of an instance of the library"
    )


def submit_schedule(
    which: LibraryInstance,
    schedule: Schedule,
    credit: Credit,
    *,
    instance: Instance | None = None,
    root: Path = ENTRIES,
) -> list[Place]:
    """Verify a schedule, and write it where it costs less than the best known one; an objective each.

    Raises
    ------
    VerificationError
        If it breaks a rule, naming the row.
    InputError
        If the instance has no entry in an objective yet, which :func:`open_entry` makes with a bound.
    """
    given = instance or which.instance()
    outcome = verified_outcome(which, given, schedule)
    places = []
    for goal in which.objectives:
        cost, now = exact_cost(given, goal, outcome.end_s), best_known(which.name, goal, root)
        about, folder, own = now.about, None, _own(which.name, goal, root)
        if cost < about.schedule.exact:
            record = CreditedValue(text_of(cost), "schedule", credit)
            now = Entry(_replaced(about, schedule=record), schedule, now.bound)
            verified = verify_entry(which, goal, now, given)
            folder = write_entry(now, root)
        else:
            verified = verify_entry(which, goal, now, given)
        places.append(Place(which.name, goal, cost, True, about, verified, folder, own))
    return places


def submit_bound(
    which: LibraryInstance,
    goal: Objective,
    bound: StoredBound,
    credit: Credit,
    *,
    instance: Instance | None = None,
    root: Path = ENTRIES,
) -> Place:
    """Check a bound with the best known schedule, and write it where it is larger than the best known one.

    Raises
    ------
    VerificationError
        If the checker rejects it, or it is of fewer schedules than the instance allows.
    InputError
        If the instance has no entry in the objective.
    """
    before = best_known(which.name, goal, root)
    about, own = before.about, _own(which.name, goal, root)
    if bound.ticks <= about.bound.exact:
        verified = verify_entry(which, goal, before, instance)
        return Place(which.name, goal, bound.ticks, False, about, verified, None, own)
    record = CreditedValue(text_of(bound.ticks), bound.kind, credit)
    now = Entry(_replaced(about, bound=record), before.schedule, bound)
    verified = verify_entry(which, goal, now, instance)
    folder = write_entry(now, root)
    return Place(which.name, goal, bound.ticks, False, about, verified, folder, own)


def best_known(name: str, goal: Objective, root: Path = ENTRIES) -> Entry:
    """The entry of a folder, or else that of the package.

    Raises
    ------
    InputError
        If neither has one, or a file is not of the form.
    """
    return read_entry(name, goal, _own(name, goal, root) or ENTRIES)


def _own(name: str, goal: Objective, root: Path) -> Path | None:
    """The folder, if it is not the package's and has an entry."""
    own = root != ENTRIES and read_about(name, goal, root) is not None
    return root if own else None


def open_entry(
    which: LibraryInstance,
    goal: Objective,
    schedule: Schedule,
    bound: StoredBound,
    credits: tuple[Credit, Credit],
    *,
    instance: Instance | None = None,
    root: Path = ENTRIES,
) -> VerifiedEntry:
    """The first entry of an instance in an objective, verified and written.

    Parameters
    ----------
    credits : (Credit, Credit)
        Of the schedule, and of the bound.

    Raises
    ------
    VerificationError
        If one of the two is rejected.
    """
    given = instance or which.instance()
    outcome = verified_outcome(which, given, schedule)
    cost = exact_cost(given, goal, outcome.end_s)
    about = EntryFile(
        which.name,
        str(goal),
        which.digest,
        CreditedValue(text_of(cost), "schedule", credits[0]),
        CreditedValue(text_of(bound.ticks), bound.kind, credits[1]),
    )
    entry = Entry(about, schedule, bound)
    verified = verify_entry(which, goal, entry, given)
    write_entry(entry, root)
    return verified


def _replaced(
    about: EntryFile, *, schedule: CreditedValue | None = None, bound: CreditedValue | None = None
) -> EntryFile:
    return EntryFile(
        about.instance,
        about.objective,
        about.digest,
        schedule or about.schedule,
        bound or about.bound,
    )


def _seconds(ticks: Fraction) -> Fraction:
    return ticks / TICKS_PER_S
