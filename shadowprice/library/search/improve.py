"""Entries of an instance, made and bettered: first rows, searches of schedules, bounds; each verified and credited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost, verified_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.entries.entry import ENTRIES, Credit, read_about, read_entry
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.library_instance import LibraryInstance
from shadowprice.library.search.compiled_orders import better_by_loops, is_plain
from shadowprice.library.search.engine_orders import better_by_engine
from shadowprice.library.search.exact import by_solver
from shadowprice.library.search.first_rows import FirstRow, first_rows
from shadowprice.library.submission import open_entry, submit_bound, submit_schedule
from shadowprice.library.verification import VerifiedEntry, verified_outcome
from shadowprice.solvers.offline.bounds import Bound

FINDER = "shadowprice"
"""Finder of what the package finds by itself."""
_THEN = ", then "
"""Between the method that a search begins with and what it does."""


@dataclass(frozen=True)
class EntrySearch:
    """A search for better entries of an instance.

    Parameters
    ----------
    which : LibraryInstance
    seconds : float
        CPU time for each search of schedules, and time of a solver [s]; 0 for none.
    bound_s : float
        Time for each bound [s]; 0 for none where there is an entry.
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
    bound_s: float
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
        goals, instance = self.which.objectives, self.which.instance()
        missing = [each for each in goals if read_about(self.which.name, each, self.root) is None]
        if missing:
            self._open(instance, missing)
        for goal in goals:
            if goal not in missing and self.bound_s and not self._is_closed(goal):
                self._bound(instance, goal)
            if self.seconds and not self._is_closed(goal):
                for method, schedule in self._schedules(instance, goal):
                    self._submit(instance, schedule, method)

    def _is_closed(self, goal: Objective) -> bool:
        about = read_about(self.which.name, goal, self.root)
        return about is not None and VerifiedEntry.stated(about).closed

    def _credit(self, method: str) -> Credit:
        return Credit(FINDER, method, self.date)

    def _open(self, instance: Instance, goals: list[Objective]) -> None:
        """Open entries with the best of systems and classics, or what came with a bound if that is better."""
        preemptive = self.which.preemptive
        rows = list(first_rows(instance, preemptive=preemptive, seconds=2 * self.seconds))
        for goal in goals:
            costs = [exact_cost(instance, goal, row.outcome.end_s) for row in rows]
            best: FirstRow = rows[costs.index(min(costs))]
            schedule, method = best.outcome.schedule, best.method
            bound, how = self._bound_of(instance, goal, best.outcome)
            witness = bound.witness
            cost = None if witness is None else verified_cost(instance, goal, witness)
            if witness is not None and cost is not None and cost < min(costs):
                schedule, method = witness, f"search of {bound.kind}"
            assert schedule is not None
            opened = open_entry(
                self.which,
                goal,
                schedule,
                StoredBound.of_bound(bound),
                (self._credit(method), self._credit(how)),
                instance=instance,
                root=self.root,
            )
            said = f"{self.which.name} {goal}: {best.method} of {len(rows)}: "
            self.say(f"{said}{method} by {bound.kind}: gap {opened.gap:.4%}")

    def _schedules(self, instance: Instance, goal: Objective) -> Iterator[tuple[str, Schedule]]:
        """Schedules of each search, and how they came about."""
        preemptive, seconds, seed = self.which.preemptive, self.seconds, self.seed
        plain = is_plain(instance)
        if plain:
            yield from by_solver(instance, goal, preemptive=preemptive, seconds=seconds)
            if self._is_closed(goal):
                return
        outcome, method = self._best(instance, goal)
        better = better_by_loops if plain else better_by_engine
        found, tried = better(
            instance, goal, outcome, preemptive=preemptive, seconds=seconds, seed=seed
        )
        if found is not None:
            yield f"{method}{_THEN}{tried:,} orders of jobs", found

    def _best(self, instance: Instance, goal: Objective) -> tuple[Outcome, str]:
        """The best known schedule, verified, and its origin: the first method that led to it."""
        entry = read_entry(self.which.name, goal, self.root)
        method = entry.about.schedule.credit.method
        outcome = verified_outcome(self.which, instance, entry.schedule)
        return outcome, method.partition(_THEN)[0]

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
        """A search of bounds, and what came with the best."""
        outcome, _ = self._best(instance, goal)
        bound, how = self._bound_of(instance, goal, outcome)
        place = submit_bound(
            self.which,
            goal,
            StoredBound.of_bound(bound),
            self._credit(how),
            instance=instance,
            root=self.root,
        )
        if place.folder is not None:
            self.say(f"{place.name} {goal}: bound {bound.kind}: gap {place.entry.gap:.4%}")
        if bound.witness is not None:
            self._submit(instance, bound.witness, f"search of {bound.kind}")

    def _bound_of(self, instance: Instance, goal: Objective, outcome: Outcome) -> tuple[Bound, str]:
        """The strongest certified bound within the time, and how it came about."""
        enough = exact_cost(instance, goal, outcome.end_s)
        bound = largest_bound(
            instance, goal, self.bound_s, preemptive=self.which.preemptive, enough=enough
        )
        return bound, f"cascade of bounds, {self.bound_s:g} s"


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
