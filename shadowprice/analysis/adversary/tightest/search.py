"""Search of the tightest instance of a theorem, and the check of a stored one.

Random tables of one to three kinds of rows, several equal ones among them, and the known families of the theorem;
then one number is changed at a time, or a row left out or repeated, while the instance comes closer. The same seed
and number of evaluations find the same instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shadowprice.analysis.adversary.tightest.catalogue import TIGHTNESS
from shadowprice.analysis.adversary.tightest.comparisons import TightnessOf, WitnessedRatio
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.hard_instances import Rows, TightInstance
from shadowprice.version import __version__

_WORST = Fraction(-1)


def tightness_of(theorem: str) -> TightnessOf:
    """The entry of a theorem.

    Raises
    ------
    InputError
        If there is none.
    """
    if theorem not in TIGHTNESS:
        raise InputError(f"theorem {theorem!r}: expected one of {', '.join(TIGHTNESS)}")
    return TIGHTNESS[theorem]


class _Tried:
    """Closeness of tables, each computed once."""

    def __init__(self, entry: TightnessOf, evaluations: int) -> None:
        self.entry, self.left = entry, evaluations
        self.known: dict[Rows, Fraction] = {}

    def closeness(self, rows: Rows) -> Fraction:
        """Closeness of a table; below 0 if it is no instance of the theorem."""
        self.left -= 1
        if rows not in self.known:
            comparison = self.entry.compare(rows)
            self.known[rows] = _WORST if comparison is None else comparison.closeness
        return self.known[rows]


def tightest(theorem: str, *, evaluations: int = 1_000, seed: int = 0) -> TightInstance:
    """The instance that comes closest to what a theorem allows, of so many that are looked at.

    Raises
    ------
    InputError
        If the theorem has no entry, or none of the tables is an instance of it.
    """
    entry = tightness_of(theorem)
    tried, rng = _Tried(entry, evaluations), np.random.default_rng([seed, len(theorem)])
    best: tuple[Fraction, Rows] = (_WORST, ())
    starts = iter(entry.known)
    while tried.left > 0:
        rows = next(starts, None) or _random(entry, rng)
        now, improved = tried.closeness(rows), True
        while improved and tried.left > 0:
            improved = False
            for other in _neighbours(rows, entry, rng):
                closeness = tried.closeness(other)
                if closeness > now or (closeness == now and _simpler(other, rows)):
                    rows, now, improved = other, closeness, True
                    break
                if tried.left <= 0:
                    break
        if now > best[0] or (now == best[0] and _simpler(rows, best[1])):
            best = now, rows
    comparison = entry.compare(best[1]) if best[0] >= 0 else None
    if comparison is None:
        raise InputError(f"theorem {theorem!r}: none of {evaluations} tables is an instance of it")
    return TightInstance(
        theorem=theorem,
        says=entry.says,
        columns=tuple(column.name for column in entry.columns),
        rows=best[1],
        attained=comparison.attained,
        allowed=comparison.allowed,
        provenance={"seed": seed, "evaluations": evaluations, "version": __version__},
    )


def recheck(stored: TightInstance) -> WitnessedRatio:
    """Compute what a stored instance claims again.

    Raises
    ------
    InputError
        If its theorem has no entry, or its columns are others.
    VerificationError
        If it is no instance of the theorem, exceeds what that allows, or the numbers are not as stored.
    """
    entry = tightness_of(stored.theorem)
    columns = tuple(column.name for column in entry.columns)
    if stored.columns != columns or stored.says != entry.says:
        raise InputError(
            f"{stored.name}: columns {stored.columns} and {stored.says!r}, expected {columns} and {entry.says!r}"
        )
    comparison = entry.compare(stored.rows)
    if comparison is None:
        raise VerificationError(f"{stored.name}: its table is no instance of the theorem")
    for what, now, stated in (
        ("attained", comparison.attained, stored.attained),
        ("allowed", comparison.allowed, stored.allowed),
    ):
        same = now == stated
        if now is not None and stated is not None:
            same = abs(now - stated) <= entry.off * abs(stated)
        if not same:
            raise VerificationError(f"{stored.name}: {what} is {now}, stored is {stated}")
    if comparison.allowed is not None and comparison.attained > comparison.allowed * (
        1 + entry.off
    ):
        raise VerificationError(
            f"{stored.name}: attains {comparison.attained}, of {comparison.allowed} allowed"
        )
    return comparison


def _random(entry: TightnessOf, rng: np.random.Generator) -> Rows:
    """Rows of one to three kinds, numbers at the ends of their ranges more often than others."""
    kinds = [
        tuple(
            int(rng.choice((column.least, column.most)))
            if rng.random() < 0.5
            else int(rng.integers(column.least, column.most + 1))
            for column in entry.columns
        )
        for _ in range(int(rng.integers(1, 4)))
    ]
    count = int(rng.integers(entry.least_rows, entry.most_rows + 1))
    return tuple(kinds[int(rng.integers(len(kinds)))] for _ in range(count))


def _neighbours(rows: Rows, entry: TightnessOf, rng: np.random.Generator) -> Iterator[Rows]:
    """Tables with another number in one place, with a row less, or one twice; in random order."""
    changed: list[Rows] = []
    for k, row in enumerate(rows):
        for at, column in enumerate(entry.columns):
            near = {row[at] - 1, row[at] + 1, column.least, column.most, row[at] // 2, 2 * row[at]}
            changed += [
                (*rows[:k], (*row[:at], value, *row[at + 1 :]), *rows[k + 1 :])
                for value in sorted(near - {row[at]})
                if column.least <= value <= column.most
            ]
        if len(rows) > entry.least_rows:
            changed.append((*rows[:k], *rows[k + 1 :]))
        if len(rows) < entry.most_rows:
            changed.append((*rows[: k + 1], row, *rows[k + 1 :]))
    yield from (changed[at] for at in rng.permutation(len(changed)).tolist())


def _simpler(rows: Rows, other: Rows) -> bool:
    """Fewer rows, then smaller numbers."""

    def size(table: Rows) -> tuple[int, int, Rows]:
        return len(table), sum(map(sum, table)), table

    return size(rows) < size(other)
