"""Entries of an instance made and bettered: first rows, searches of schedules, long bounds; each verified and credited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.entries.entry import ENTRIES, Credit, read_about, read_entry
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.first_entries import FINDER
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.search.compiled_orders import better_by_loops, is_plain
from shadowprice.library.search.engine_orders import better_by_engine
from shadowprice.library.search.exact import exact_schedules
from shadowprice.library.search.first_rows import first_rows
from shadowprice.library.submission import open_entry, submit_bound, submit_schedule
from shadowprice.library.verification import verified_outcome

_FIRST_BOUND_S = 5.0
"""Time for the bound of an entry that is opened [s]."""


@dataclass(frozen=True)
class Search:
    """A search for better entries of an instance.

    Parameters
    ----------
    which : LibraryInstance
    seconds : float
        Time for each search of schedules, and for each bound [s].
    seed : int
        Of random moves.
    date : str
        Of credits, YYYY-MM-DD.
    root : Path
        Folder of entries.
    say : callable
        Told what became of each step.
    """

    which: LibraryInstance
    seconds: float
    seed: int
    date: str
    root: Path = ENTRIES
    say: Callable[[str], None] = field(default=print)

    def run(self) -> None:
        """Open entries that are missing, and better them.

        Raises
        ------
        InputError
            If the instance cannot be made.
        """
        instance = self.which.instance()
        self._first_rows(instance)
        for goal in self.which.objectives:
            if self._is_closed(goal):
                continue
            for method, schedule in self._schedules(instance, goal):
                self._submit(instance, schedule, method)
                if self._is_closed(goal):
                    break
            else:
                self._bound(instance, goal)

    def _is_closed(self, goal: Objective) -> bool:
        about = read_about(self.which.name, goal, self.root)
        return about is not None and about.schedule.exact == about.bound.exact

    def _credit(self, method: str) -> Credit:
        return Credit(FINDER, method, self.date)

    def _first_rows(self, instance: Instance) -> None:
        """Open the entries that are missing with the best of systems and classics."""
        missing = [
            goal
            for goal in self.which.objectives
            if read_about(self.which.name, goal, self.root) is None
        ]
        if not missing:
            return
        rows = list(
            first_rows(instance, preemptive=self.which.preemptive, seconds=2 * self.seconds)
        )
        for goal in missing:
            costs = [exact_cost(instance, goal, row.outcome.end_s) for row in rows]
            best = rows[costs.index(min(costs))]
            bound, how = self._bound_of(instance, goal, _FIRST_BOUND_S, best.outcome)
            credits = (self._credit(best.method), self._credit(how))
            schedule = best.outcome.schedule
            assert schedule is not None
            opened = open_entry(
                self.which, goal, schedule, bound, credits, instance=instance, root=self.root
            )
            self.say(
                f"{self.which.name} {goal}: best of {len(rows)}: {best.method}, gap {opened.gap:.4%}"
            )

    def _schedules(self, instance: Instance, goal: Objective) -> Iterator[tuple[str, Schedule]]:
        """Schedules of each search, and how they came about."""
        preemptive, seconds, seed = self.which.preemptive, self.seconds, self.seed
        plain = is_plain(instance)
        if plain:
            yield from exact_schedules(instance, goal, preemptive=preemptive, seconds=seconds)
        outcome, method = self._best(instance, goal)
        if plain:
            schedule, tried = better_by_loops(
                instance, goal, outcome, preemptive=preemptive, seconds=seconds, seed=seed
            )
            yield f"{method}, then {tried:,} orders of jobs", schedule
            return
        found, tried = better_by_engine(
            instance, goal, outcome, preemptive=preemptive, seconds=seconds, seed=seed
        )
        if found is not None:
            yield f"{method}, then {tried:,} orders of jobs", found

    def _best(self, instance: Instance, goal: Objective) -> tuple[Outcome, str]:
        """The best known schedule, verified, and its origin: the first method that led to it."""
        entry = read_entry(self.which.name, goal, self.root)
        method = entry.about.schedule.credit.method
        outcome = verified_outcome(self.which, instance, entry.schedule, method)
        return outcome, method.partition(", then ")[0]

    def _submit(self, instance: Instance, schedule: Schedule, method: str) -> None:
        try:
            places = submit_schedule(
                self.which, schedule, self._credit(method), instance=instance, root=self.root
            )
        except ShadowpriceError as error:
            self.say(f"{self.which.name}: {method}: refused: {error}")
            return
        for place in places:
            if place.folder is not None:
                self.say(f"{place.name} {place.objective}: {method}: gap {place.entry.gap:.4%}")

    def _bound(self, instance: Instance, goal: Objective) -> None:
        """A longer search of bounds."""
        outcome, _ = self._best(instance, goal)
        bound, how = self._bound_of(instance, goal, self.seconds, outcome)
        try:
            place = submit_bound(
                self.which, goal, bound, self._credit(how), instance=instance, root=self.root
            )
        except ShadowpriceError as error:
            self.say(f"{self.which.name} {goal}: {bound.kind}: refused: {error}")
            return
        if place.folder is not None:
            self.say(f"{place.name} {goal}: bound {bound.kind}: gap {place.entry.gap:.4%}")

    def _bound_of(
        self, instance: Instance, goal: Objective, seconds: float, outcome: Outcome
    ) -> tuple[StoredBound, str]:
        """The strongest certified bound within a time, and how it came about."""
        found = bounds_of(
            instance,
            goal,
            BoundEffort(seconds),
            preemptive=self.which.preemptive,
            enough=exact_cost(instance, goal, outcome.end_s),
        )
        return (
            StoredBound.of_bound(certified_and_largest(found)[0]),
            f"cascade of bounds, {seconds:g} s",
        )
