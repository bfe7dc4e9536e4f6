"""First entries: of an order of jobs, which every instance runs, and of the cascade of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.simulate import simulate
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.library.entries.entry import ENTRIES, Credit, read_about
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.submission import open_entry
from shadowprice.library.verification import VerifiedEntry
from shadowprice.solvers.offline.bounds import Bound

FINDER = "shadowprice"
"""Finder of what the package finds by itself."""


def first_policy(instance: Instance, *, preemptive: bool) -> str:
    """Name of the order that the first schedule of an instance follows."""
    if Feature.GRAPHS in instance.features:
        return "asrpt-early" if preemptive else "asrpt"
    return "srtf" if preemptive else "sjf"


def largest_bound(
    instance: Instance,
    goal: Objective,
    seconds: float,
    *,
    preemptive: bool,
    enough: Fraction | None = None,
) -> Bound:
    """The strongest certified bound of the cascade within a time [s], which ends where a bound is ``enough``."""
    effort = BoundEffort(seconds)
    found = bounds_of(instance, goal, effort, preemptive=preemptive, enough=enough)
    return certified_and_largest(found)[0]


def certified_bound(
    instance: Instance, goal: Objective, seconds: float, *, preemptive: bool
) -> StoredBound:
    """The same as a record of entries."""
    return StoredBound.of_bound(largest_bound(instance, goal, seconds, preemptive=preemptive))


def method_of_bound(seconds: float) -> str:
    """Method of such a bound, as credits have it."""
    return f"cascade of bounds, {seconds:g} s"


def open_first(
    which: LibraryInstance, date: str, seconds: float, root: Path = ENTRIES
) -> Iterator[tuple[Objective, VerifiedEntry]]:
    """Write entries in the objectives of an instance that have none; each with its gap.

    Parameters
    ----------
    date : str
        Of the credits, YYYY-MM-DD.
    seconds : float
        Time for each bound [s].

    Raises
    ------
    InputError
        If the instance cannot be made.
    """
    missing = [goal for goal in which.objectives if read_about(which.name, goal, root) is None]
    if not missing:
        return
    instance = which.instance()
    policy = first_policy(instance, preemptive=which.preemptive)
    outcome = simulate(instance, policy=policy)
    for goal in missing:
        bound = certified_bound(instance, goal, seconds, preemptive=which.preemptive)
        credits = (
            Credit(FINDER, policy, date),
            Credit(FINDER, method_of_bound(seconds), date),
        )
        yield (
            goal,
            open_entry(which, goal, outcome.schedule, bound, credits, instance=instance, root=root),
        )
