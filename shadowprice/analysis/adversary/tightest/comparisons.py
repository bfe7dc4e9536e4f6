"""Entries of theorems: an instance from a table of whole numbers, what it attains and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from shadowprice.instances.hard_instances import Rows


@dataclass(frozen=True)
class WholeColumn:
    """A column of whole numbers within limits."""

    name: str
    least: int
    most: int


@dataclass(frozen=True)
class WitnessedRatio:
    """The part that an instance attains of what a theorem allows.

    Parameters
    ----------
    attained : Fraction
        The quantity that the theorem bounds.
    allowed : Fraction or None
        What it is bounded by, no less than attained; None where the theorem states no factor of it.
    """

    attained: Fraction
    allowed: Fraction | None = None

    @property
    def closeness(self) -> Fraction:
        """Attained over allowed, 1 where the theorem cannot be better; attained alone without a factor."""
        return self.attained if self.allowed is None else self.attained / self.allowed


@dataclass(frozen=True)
class TightnessOf:
    """A theorem, the instances it is tried on, and what is compared.

    Parameters
    ----------
    theorem : str
        Its file in :mod:`shadowprice.proofs`.
    says : str
        What is attained, and what is allowed; one line.
    columns : tuple of WholeColumn
        Of the tables.
    least_rows, most_rows : int
        Rows of the tables.
    compare : callable
        For a table; None where it is no instance of the theorem.
    known : tuple of tables
        Families of the theorem's file, which the search begins with.
    off : Fraction
        What a solver's rounding may change of both numbers, relative to them; 0 where all is exact.
    """

    theorem: str
    says: str
    columns: tuple[WholeColumn, ...]
    least_rows: int
    most_rows: int
    compare: Callable[[Rows], WitnessedRatio | None]
    known: tuple[Rows, ...] = ()
    off: Fraction = Fraction(0)


SOLVED = Fraction(1, 10**6)
"""The most that rounding of a solver may change, relative to the number."""


def as_solved(value: float) -> Fraction:
    """A number of a solver as the simplest fraction of a denominator up to 10^6 beside it."""
    return Fraction(value).limit_denominator(10**6)
