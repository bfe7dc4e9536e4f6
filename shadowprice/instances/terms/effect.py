"""Effects of terms on runs, and the speed of a run under several of them.

A *run* holds GPUs (pieces) and, for each term that has to be told more, a *field*: the job that shares its GPUs,
where the replicas of its graph are, its CPUs and memory, the GPU that it holds a part of. What a policy leaves open
the effect of the term fills in.

The speed of a run comes in two stages, each rounded up to whole ticks: a *rate* says how long the whole job would
take there, then it is divided by the product of all *factors*, multiplied in the order of the terms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature

Pieces = tuple[tuple[int, int], ...]
"""A gang on its nodes: pairs (node, gpus)."""

Fields = Mapping[Feature, Any]
"""Further data of a run, by term."""

NO_FIELDS: Fields = MappingProxyType({})

RecordedRun = tuple[int, Pieces, Fields]
"""A run in a schedule: its first row, its pieces with a row each, and its fields."""


class Effect:
    """Effect of a term of one instance on its runs.

    Attributes
    ----------
    feature : Feature
        That of the term, also the name of its field.
    in_place : bool
        True if its field may change while a run goes on.
    """

    feature: ClassVar[Feature]
    in_place: ClassVar[bool] = False

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Fill in the term's own field of a run that begins, where the policy left it open."""

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """Columns of the schedule that show the term's field, from the runs that have fields; O(rows)."""
        return {}


class Rate(Effect, ABC):
    """Run time of the whole job, by what a run holds. At most one rate speaks of a run."""

    @abstractmethod
    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float | None:
        """Run time of the whole job in such a run [s]; None if this rate is not about it."""


class SpeedFactor(Effect, ABC):
    """Factor on the speed of a run; those of several terms are multiplied."""

    @abstractmethod
    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of such a run against the rate; 0 if it makes no progress."""


def fielded(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Effects with a field: those that have to be told more of a run than its GPUs, and show it in the schedule."""
    return tuple(each for each in effects if type(each).columns is not Effect.columns)


def filled(
    rows: int, empty: int, runs: Sequence[RecordedRun], feature: Feature
) -> NDArray[np.int64]:
    """A column of whole numbers: a field that is one number, and a number where it is not there."""
    column = np.full(rows, empty, dtype=np.int64)
    for first, pieces, fields in runs:
        column[first : first + len(pieces)] = fields.get(feature, empty)
    return column
