"""Programmes in whole numbers, as data: what CP-SAT is asked, and what its answers are checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Terms = Mapping[int, int]
"""Coefficients by variable."""


@dataclass(frozen=True)
class WholeRow:
    """A linear row.

    Parameters
    ----------
    terms : mapping of int to int
        Coefficients by variable.
    low, high : int or None
        Sides, None where there is none.
    only_if : int or None
        A variable of 0 and 1; the row holds where it is 1. Always, if None.
    """

    terms: Terms
    low: int | None
    high: int | None
    only_if: int | None = None


@dataclass(frozen=True)
class Cumulative:
    """Runs of fixed length that share a capacity.

    Parameters
    ----------
    starts : sequence of int
        Variables: when runs start.
    lengths, demands : sequence of int
    capacity : int
    """

    starts: Sequence[int]
    lengths: Sequence[int]
    demands: Sequence[int]
    capacity: int


@dataclass
class WholeProgram:
    """Variables in whole numbers, rows, and a cost to minimise if there is one.

    Attributes
    ----------
    lower, upper : list of int
        By variable.
    rows, cumulatives : list
    single : list of list of int
        Variables of 0 and 1 of which at most one is 1.
    cost : dict of int to int
        By variable; what is minimised.
    hint : dict of int to int
        Where to begin the search.
    assumed : list of int
        Variables of 0 and 1 that are 1, named in the core of an infeasible programme.
    """

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    rows: list[WholeRow] = field(default_factory=list)
    cumulatives: list[Cumulative] = field(default_factory=list)
    single: list[list[int]] = field(default_factory=list)
    cost: dict[int, int] = field(default_factory=dict)
    hint: dict[int, int] = field(default_factory=dict)
    assumed: list[int] = field(default_factory=list)

    def variable(self, lower: int, upper: int) -> int:
        """A new variable's position."""
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def binary(self) -> int:
        """A new variable of 0 and 1."""
        return self.variable(0, 1)

    def row(
        self,
        terms: Terms,
        *,
        low: int | None = None,
        high: int | None = None,
        only_if: int | None = None,
    ) -> None:
        """Add a row low <= terms <= high, where a variable is 1 if one is given."""
        self.rows.append(WholeRow(terms, low, high, only_if))

    def value(self, values: Sequence[int]) -> int:
        """Cost of values."""
        return sum(c * values[k] for k, c in self.cost.items())

    def holds(self, values: Sequence[int]) -> bool:
        """True if values satisfy all constraints, in whole numbers."""
        bounds = zip(self.lower, values, self.upper, strict=True)
        if not all(low <= value <= high for low, value, high in bounds):
            return False
        if not all(values[k] == 1 for k in self.assumed):
            return False
        if not all(sum(values[k] for k in group) <= 1 for group in self.single):
            return False
        return all(_keeps(row, values) for row in self.rows) and all(
            _fits(each, values) for each in self.cumulatives
        )


def _keeps(row: WholeRow, values: Sequence[int]) -> bool:
    if row.only_if is not None and not values[row.only_if]:
        return True
    total = sum(c * values[k] for k, c in row.terms.items())
    return (row.low is None or total >= row.low) and (row.high is None or total <= row.high)


def _fits(runs: Cumulative, values: Sequence[int]) -> bool:
    changes: list[tuple[int, int]] = []
    for start, length, demand in zip(runs.starts, runs.lengths, runs.demands, strict=True):
        if length:
            changes += [(values[start], demand), (values[start] + length, -demand)]
    used = 0
    for _, change in sorted(changes):  # Ends come before starts: a demand is >= 0.
        used += change
        if used > runs.capacity:
            return False
    return True


class SearchStatus(StrEnum):
    """Ending of a search of whole numbers, in the solver's words."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WholeAnswer:
    """An answer.

    Parameters
    ----------
    status : SearchStatus
    values : sequence of int or None
        By variable; they keep everything, evaluated here.
    bound : float
        The solver's bound of the cost: a float, and its word alone; -inf if it gave none.
    core : tuple of int
        Assumed variables that cannot all be 1, if the solver found the programme infeasible.
    """

    status: SearchStatus
    values: Sequence[int] | None
    bound: float
    core: tuple[int, ...] = ()


@dataclass(frozen=True)
class SearchEffort:
    """Time limits and settings of a search of whole numbers.

    Parameters
    ----------
    time_limit_s : float
        By the clock [s].
    counted_s : float or None
        In counted work, roughly seconds of a machine at rest: the same on a busy machine.
    relaxations : bool
        Whether linear relaxations may help.
    seed : int
    """

    time_limit_s: float
    counted_s: float | None = None
    relaxations: bool = True
    seed: int = 0
