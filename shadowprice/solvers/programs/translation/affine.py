"""Affine expressions over frames: one coefficient for every entry a rule's index ranges over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.programs.translation.index_sets import Column, NotTraceable

Number = float | NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """A number, or one for each entry of a frame, that depends on some Params.

    Parameters
    ----------
    needs : frozenset of int
        Identities of the Params it is computed from; empty for a constant.
    get : callable
        Computes it from the Params as they are.
    """

    needs: frozenset[int]
    get: Callable[[], Number]

    @classmethod
    def constant(cls, number: Number) -> Value:
        """A value that never changes."""
        return cls(frozenset(), lambda: number)

    def then(self, change: Callable[[Any], Number]) -> Value:
        """The value changed by a function of it alone."""
        if not self.needs:
            return Value.constant(change(self.get()))
        return Value(self.needs, lambda: change(self.get()))

    def with_(self, other: Value, combine: Callable[[Any, Any], Number]) -> Value:
        """Two values of one frame combined."""
        needs = self.needs | other.needs
        if not needs:
            return Value.constant(combine(self.get(), other.get()))
        return Value(needs, lambda: combine(self.get(), other.get()))


class Frame:
    """Entries of one place in an expression, and the index each template stands for there.

    Parameters
    ----------
    size : int
        Number of entries.
    indices : dict
        Values of the templates introduced here, by template.
    parent, lift
        The frame around this one, and the position of each entry in it.
    """

    def __init__(
        self,
        size: int,
        indices: dict[int, Column],
        parent: Frame | None = None,
        lift: NDArray[np.int64] | None = None,
    ) -> None:
        self.size = size
        self.parent = parent
        self.lift = lift
        self.positions: dict[Any, NDArray[np.int64]] = {}
        self._indices = dict(indices)
        self._own = frozenset(indices)

    def selected(self, where: NDArray[np.int64]) -> Frame:
        """Some of the entries, by position; expressions are evaluated for these alone."""
        return Frame(len(where), {}, self, where)

    def home(self, templates: Sequence[int]) -> Frame:
        """The outermost frame around, or this one, in which all these templates have a value.

        Not beyond a frame that keeps some entries: for the others they need not make sense.
        """
        frame = self
        while frame.parent is not None and frame._own and frame._own.isdisjoint(templates):
            frame = frame.parent
        return frame

    def index(self, template: int) -> Column:
        """Index a template stands for, at each entry."""
        if template not in self._indices:
            if self.parent is None:
                raise NotTraceable("an index is used outside its sum")
            self._indices[template] = self.parent.index(template)[self.lift]
        return self._indices[template]

    def within(self, ancestor: Frame) -> NDArray[np.int64] | None:
        """Position of each entry in a frame around this one; None if it is this one."""
        if self is ancestor:
            return None
        assert self.parent is not None
        assert self.lift is not None
        outer = self.parent.within(ancestor)
        return self.lift if outer is None else outer[self.lift]

    def rows(self) -> NDArray[np.int64]:
        """Position of each entry in the outermost frame."""
        if self.parent is None:
            return np.arange(self.size)
        outer = self.parent
        rows = self.lift
        while outer.parent is not None:
            rows, outer = outer.lift[rows], outer.parent  # type: ignore[index]
        assert rows is not None
        return rows


@dataclass(frozen=True)
class LinearTerm:
    """Coefficients of columns, one for each entry of a frame."""

    frame: Frame
    columns: NDArray[np.int64]
    coefficient: Value


@dataclass(frozen=True)
class Affine:
    """Terms plus a constant, which is over the frame the expression was walked in."""

    terms: tuple[LinearTerm, ...]
    constant: Value

    def scaled(self, factor: Value, frame: Frame, *, divide: bool = False) -> Affine:
        """Product with, or quotient by, a value of the frame."""
        combine = _divide if divide else _multiply
        terms = tuple(
            LinearTerm(
                t.frame, t.columns, t.coefficient.with_(_lifted(factor, t.frame, frame), combine)
            )
            for t in self.terms
        )
        nothing = self.constant is ZERO
        return Affine(terms, ZERO if nothing else self.constant.with_(factor, combine))

    def plus(self, other: Affine, sign: float = 1.0) -> Affine:
        """Sum, or difference, of two expressions of one frame."""
        if sign < 0:
            other = other.scaled(MINUS_ONE, Frame(0, {}))
        # Sums of thousands of terms have no constants: nothing is added to nothing.
        if other.constant is ZERO or self.constant is ZERO:
            constant = self.constant if other.constant is ZERO else other.constant
        else:
            constant = self.constant.with_(other.constant, _add)
        return Affine(self.terms + other.terms, constant)


ZERO, ONE, MINUS_ONE = Value.constant(0.0), Value.constant(1.0), Value.constant(-1.0)


def _multiply(a: Number, b: Number) -> Number:
    return a * b


def _divide(a: Number, b: Number) -> Number:
    return a / b


def _add(a: Number, b: Number) -> Number:
    return a + b


def _lifted(value: Value, inner: Frame, outer: Frame) -> Value:
    if inner is outer:
        return value
    constant = not value.needs and isinstance(value.get(), float)
    if constant:
        return value
    position = inner.within(outer)
    return value.then(lambda number: number if isinstance(number, float) else number[position])
