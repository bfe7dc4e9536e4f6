"""Verification of entries: the schedule by the verifier, the bound by the checker of certificates, the values anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.certificates.certificate_file import expect_each_begins_once
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.entries.entry import Entry, EntryFile
from shadowprice.library.library_instance import LibraryInstance


@dataclass(frozen=True)
class VerifiedEntry(BoundedCost):
    """Cost of a verified schedule, and a bound that the checker accepts.

    Parameters
    ----------
    cost_ticks, bound_ticks : Fraction
        In the objective.
    """

    cost_ticks: Fraction
    bound_ticks: Fraction

    @classmethod
    def stated(cls, about: EntryFile) -> VerifiedEntry:
        """Cost and bound that ``entry.json`` says; whoever wrote it verified them."""
        return cls(about.schedule.exact, about.bound.exact)

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.cost_ticks, self.bound_ticks

    @property
    def gap(self) -> float:
        """Cost over bound less 1, rounded up."""
        return self.ratio - 1.0

    @property
    def closed(self) -> bool:
        """True if no schedule costs less: times are whole ticks and weights whole numbers, so that costs are, too."""
        return self.cost_ticks <= math.ceil(self.bound_ticks)


def verified_outcome(
    which: LibraryInstance, instance: Instance, schedule: Schedule, policy: str = "best known"
) -> Outcome:
    """Outcome of a schedule of the instance's class.

    Parameters
    ----------
    policy : str
        Name of what made it, a name that certificates have.

    Raises
    ------
    VerificationError
        If it breaks a rule, naming the row, or a job begins again where each begins once.
    """
    try:
        outcome = Outcome.verified(instance, schedule, policy=policy)
        if not which.preemptive:
            expect_each_begins_once(outcome)
    except (VerificationError, InputError) as error:
        message = str(error).removeprefix(f"{which.name}: ")
        raise VerificationError(f"{which.name}: {message}") from None
    return outcome


def verify_entry(
    which: LibraryInstance, objective: Objective, entry: Entry, instance: Instance | None = None
) -> VerifiedEntry:
    """Verify an entry.

    Parameters
    ----------
    instance : Instance, optional
        That of ``which``, where it is at hand.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule, the checker rejects the bound, or ``entry.json`` says another value.
    InputError
        If the instance cannot be made.
    """
    given, about = instance or which.instance(), entry.about
    where = f"{which.name}, {objective}"
    if (about.instance, about.objective) != (which.name, str(objective)):
        raise VerificationError(f"{where}: is about {about.instance}, {about.objective}")
    if which.digest and about.digest != which.digest:
        raise VerificationError(
            f"{where}: is about SHA-256 {about.digest}, expected {which.digest}"
        )
    outcome = verified_outcome(which, given, entry.schedule)
    entry.bound.check(outcome, objective, preemptive=which.preemptive)
    cost = exact_cost(given, objective, outcome.end_s)
    for what, stated, value in (
        ("schedule costs", about.schedule.exact, cost),
        ("bound is", about.bound.exact, entry.bound.ticks),
    ):
        if stated != value:
            raise VerificationError(f"{where}: the {what} {value} ticks, entry.json says {stated}")
    kinds = about.schedule.kind, about.bound.kind
    if kinds != ("schedule", entry.bound.kind):
        raise VerificationError(
            f"{where}: entry.json says kinds {', '.join(kinds)}, expected schedule, {entry.bound.kind}"
        )
    return VerifiedEntry(cost, entry.bound.ticks)


def gap_text(values: VerifiedEntry) -> str:
    """A gap in per cent with two decimals, rounded up; ``closed`` where there is none."""
    if values.closed:
        return "closed"
    if not values.bound_ticks:
        return "no bound"
    gap: Fraction = values.cost_ticks / values.bound_ticks - 1
    return f"{math.ceil(gap * 10_000) / 100:,.2f} %"
