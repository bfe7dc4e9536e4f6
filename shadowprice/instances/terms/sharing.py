"""Sharing as a term: while two jobs hold the same GPUs, each goes at its rate beside the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.term import (
    Fields,
    Pieces,
    Rate,
    SpeedFactor,
    Term,
    Told,
    filled,
)


class _Partners(Term):
    """Jobs beside a partner; the field is the partner's row, ``ALONE`` for nobody.

    A run whose partner comes, goes or changes goes on, and is charged nothing.
    """

    feature: ClassVar[Feature] = Feature.SHARING
    in_place: ClassVar[bool] = True

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """Partner of each row."""
        return {"partner": filled(rows, ALONE, told, Feature.SHARING)}


class SharingTerm(_Partners, Rate):
    """The rate of a job beside its partner.

    Parameters
    ----------
    shared_s : callable
        Run time [s] of a whole job beside a partner on a GPU type.
    type_of_node : sequence of int
    """

    def __init__(
        self, shared_s: Callable[[int, int, int], float], type_of_node: Sequence[int]
    ) -> None:
        self._shared_s, self._types = shared_s, type_of_node

    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float | None:
        """Run time on the slowest of its GPU types [s]; None alone."""
        partner = fields.get(Feature.SHARING, ALONE)
        if partner == ALONE:
            return None
        return max(self._shared_s(job, partner, self._types[node]) for node, _ in pieces)


class SharedGraphsTerm(_Partners, SpeedFactor):
    """The speed of a job with a graph beside its partner, against that alone.

    Parameters
    ----------
    rate : callable
        Of a job beside a partner on a GPU type, 1 alone.
    type_of_node : sequence of int
    """

    def __init__(self, rate: Callable[[int, int, int], float], type_of_node: Sequence[int]) -> None:
        self._rate, self._types = rate, type_of_node

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed on the slowest of its GPU types; 1 alone."""
        partner = fields.get(Feature.SHARING, ALONE)
        if partner == ALONE:
            return 1.0
        return min(self._rate(job, partner, self._types[node]) for node, _ in pieces)
