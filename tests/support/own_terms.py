"""Terms of one's own, as a user would write them, and their rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor
from typing import ClassVar

from shadowprice.instances.terms.declared import (
    Amount,
    DeclaredRun,
    HoldingTerm,
    Place,
    SlowingTerm,
)
from shadowprice.proofs.verification.rules import SeenRun, TermRule

UNLIMITED = 2**40


def _halves(run: SeenRun) -> int:
    """Halves of GPUs that a run holds: one of each that it shares."""
    return sum(gpus for _, gpus in run.pieces) * (1 if run.shared else 2)


def _begins_beyond(term: Curfew, runs: Sequence[SeenRun]) -> Iterator[tuple[int, str]]:
    for k, one in enumerate(runs):
        if one.goes_on or floor(one.start_s / term.half_s) % 2 == 0:
            continue
        now = [each for each in runs if each.start_s <= one.start_s < each.end_s]
        held = sum(_halves(each) for each in now)
        if held > 2 * term.gpus:
            yield k, f"{held} halves of GPUs are held by night, at most {2 * term.gpus}"


def _speed(term: Curfew, run: SeenRun) -> float:
    return term.dimmed if run.job % 2 else 1.0


@dataclass(frozen=True)
class Curfew(HoldingTerm, SlowingTerm):
    """Every other half of a day runs begin only within so many GPUs, and every other job is slower.

    Parameters
    ----------
    gpus : int
        By night.
    half_s : float
        Half a day [s].
    dimmed : float
        Speed of every other job.
    """

    name: ClassVar[str] = "curfew"
    of_starts: ClassVar[bool] = True
    rule: ClassVar[TermRule] = TermRule(_begins_beyond, _speed)

    gpus: int
    half_s: float
    dimmed: float = 1.0

    def holds(self, run: DeclaredRun) -> Iterator[Amount]:
        """Halves of GPUs of the site."""
        yield "site", run.gpus if run.shared else 2 * run.gpus

    def limit(self, place: Place, now_s: float) -> int:
        """Halves of GPUs of now."""
        return 2 * self.gpus if floor(now_s / self.half_s) % 2 else UNLIMITED

    def next_change_s(self, now_s: float) -> float:
        """Time at which half a day is over next [s]."""
        return (floor(now_s / self.half_s) + 1) * self.half_s

    def speed(self, run: DeclaredRun) -> float:
        """Speed of a job by its number."""
        return self.dimmed if run.job % 2 else 1.0
