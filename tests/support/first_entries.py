"""Entries that are easily bettered: of a schedule by the shortest job first, and of a bound without search."""

from __future__ import annotations

from pathlib import Path

from shadowprice.analysis.simulate import simulate
from shadowprice.library.entries.entry import Credit
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.search.improve import FINDER, largest_bound
from shadowprice.library.submission import open_entry


def open_weak(which: LibraryInstance, date: str, root: Path) -> None:
    """Write such an entry in each objective of an instance."""
    instance, policy = which.instance(), "srtf" if which.preemptive else "sjf"
    schedule = simulate(instance, policy=policy).schedule
    credits = (Credit(FINDER, policy, date), Credit(FINDER, "cascade of bounds, 0 s", date))
    for goal in which.objectives:
        found = largest_bound(instance, goal, 0.0, preemptive=which.preemptive)
        bound = StoredBound.of_bound(found)
        open_entry(which, goal, schedule, bound, credits, instance=instance, root=root)
