"""Submissions: a schedule or a bound of an instance, verified, and written as an entry if it is better."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.certificates.records import text_of
from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.entries.entry import (
    ENTRIES,
    Credit,
    Entry,
    EntryFile,
    Record,
    read_about,
    read_entry,
    write_entry,
)
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.verification import VerifiedEntry, verified_outcome, verify_entry


@dataclass(frozen=True)
class Place:
    """What became of a submission in an objective.

    Parameters
    ----------
    objective : Objective
    ticks : Fraction
        Its cost, or its bound.
    earlier : EntryFile or None
        The entry that was there.
    entry : VerifiedEntry
        The entry that is there now, verified.
    folder : Path or None
        Where it was written; None if it is not better than what was there.
    """

    objective: Objective
    ticks: Fraction
    earlier: EntryFile | None
    entry: VerifiedEntry
    folder: Path | None


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
    outcome = verified_outcome(which, given, schedule, credit.method)
    places = []
    for goal in which.objectives:
        cost, about = exact_cost(given, goal, outcome.end_s), read_about(which.name, goal, root)
        if about is None:
            raise InputError(f"{which.name}: has no entry in {goal}, expected one with a bound")
        now = read_entry(which.name, goal, root)
        folder = None
        if cost < about.schedule.exact:
            record = Record(text_of(cost), "schedule", credit)
            now = Entry(_replaced(about, schedule=record), schedule, now.bound)
            verified = verify_entry(which, goal, now, given)
            folder = write_entry(now, root)
        else:
            verified = VerifiedEntry(about.schedule.exact, about.bound.exact)
        places.append(Place(goal, cost, about, verified, folder))
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
    about = read_about(which.name, goal, root)
    if about is None:
        raise InputError(f"{which.name}: has no entry in {goal}, expected one with a schedule")
    if bound.ticks <= about.bound.exact:
        verified = VerifiedEntry(about.schedule.exact, about.bound.exact)
        return Place(goal, bound.ticks, about, verified, None)
    record = Record(text_of(bound.ticks), bound.kind, credit)
    schedule = read_entry(which.name, goal, root).schedule
    now = Entry(_replaced(about, bound=record), schedule, bound)
    verified = verify_entry(which, goal, now, instance)
    return Place(goal, bound.ticks, about, verified, write_entry(now, root))


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
    outcome = verified_outcome(which, given, schedule, credits[0].method)
    cost = exact_cost(given, goal, outcome.end_s)
    about = EntryFile(
        which.name,
        str(goal),
        which.digest,
        Record(text_of(cost), "schedule", credits[0]),
        Record(text_of(bound.ticks), bound.kind, credits[1]),
    )
    entry = Entry(about, schedule, bound)
    verified = verify_entry(which, goal, entry, given)
    write_entry(entry, root)
    return verified


def _replaced(
    about: EntryFile, *, schedule: Record | None = None, bound: Record | None = None
) -> EntryFile:
    return EntryFile(
        about.instance,
        about.objective,
        about.digest,
        schedule or about.schedule,
        bound or about.bound,
    )
