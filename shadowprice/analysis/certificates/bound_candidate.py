"""A lower bound that a certificate may have: its record, its parts and its value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.records import Record
    from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True, eq=False)
class BoundCandidate:
    """A bound with its multipliers.

    Parameters
    ----------
    record : dict
        Kind and multipliers.
    ticks : Fraction
        Lower bound of completions, or of the last one [ticks].
    parts : tuple of dict
        Records that come after it: of windows of completions.
    optimal : bool
        Whether it is as large as any bound of its class can be, so that none need be searched after it.
    consolidated : bool
        Whether it is of schedules alone that place every gang on as few nodes as it fits on.
    checked : Fraction, optional
        The bound as the checker has it, if it was asked before [ticks].
    witness : Schedule, optional
        A schedule that came with it, which may attain it. Nobody has verified it.
    """

    record: Record
    ticks: Fraction
    parts: tuple[Record, ...] = ()
    optimal: bool = False
    consolidated: bool = False
    checked: Fraction | None = None
    witness: Schedule | None = None

    @property
    def kind(self) -> str:
        """Name of the bound."""
        return str(self.record["bound"])
