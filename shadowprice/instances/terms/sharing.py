"""Jobs that share GPUs: while two hold the same GPUs, each goes at its rate with the other there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Amount, FileName, Line, Name, Whole
from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.terms.effect import (
    Effect,
    Fields,
    Pieces,
    Rate,
    RecordedRun,
    SpeedFactor,
    filled,
)
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term


@dataclass(frozen=True)
class SharingSettings(TermSettings):
    """Two jobs may hold the same GPUs, each slowed by how busy their models keep them.

    Parameters
    ----------
    file : str
        JSON file of models and their GPU utilisations; Gandiva's Table 1 if left out.
    """

    feature: ClassVar[Feature] = Feature.SHARING
    sets: ClassVar[tuple[str, ...]] = ("interference",)
    example: ClassVar[str] = "simulate shared.csv --cluster 2x4 --policy gandiva --with sharing"

    file: FileName | UnsetType = UNSET

    def on(self, run: TermContext) -> TermContext:
        """The run in which jobs may share."""
        from shadowprice.instances.speeds.interference import Interference

        found = Interference() if self.file is UNSET else Interference.load(self.file)
        return run.with_options(interference=found)


class WrittenRates(msgspec.Struct, frozen=True):
    """Rates of jobs that share GPUs: rows of model, gang and rates by type; of type, two such jobs and their rates."""

    source: Line
    gpu_types: tuple[Name, ...]
    alone: list[tuple[Line, Whole, list[Amount]]]
    together: list[tuple[Line, Line, Whole, Line, Whole, Amount, Amount]]

    @classmethod
    def of(cls, table: Throughputs) -> WrittenRates:
        """A table without loss."""
        alone = [(*kind, list(rates)) for kind, rates in table.alone.items()]
        together = [(kind, *a, *b, *rates) for (kind, a, b), rates in table.pairs.items()]
        return cls(table.source, table.gpu_types, alone, together)

    def table(self) -> Throughputs:
        """Inverse of :meth:`of`.

        Raises
        ------
        InputError
            If a row has not one rate for each type.
        """
        alone: dict[Kind, tuple[float, ...]] = {}
        for model, gpus, rates in self.alone:
            if len(rates) != len(self.gpu_types):
                raise InputError(
                    f"alone: {model!r} on {gpus} GPUs has {len(rates)} rates, expected {len(self.gpu_types)}"
                )
            alone[model, gpus] = tuple(rates)
        pairs = {
            (kind, (one, gpus), (other, theirs)): (rate, beside)
            for kind, one, gpus, other, theirs, rate, beside in self.together
        }
        return Throughputs(self.gpu_types, alone, pairs, self.source)


class _Partners(Effect):
    """Jobs beside a partner; the field is the partner's row, ``ALONE`` for nobody.

    A run whose partner comes, goes or changes goes on, and is charged nothing.
    """

    feature: ClassVar[Feature] = Feature.SHARING
    in_place: ClassVar[bool] = True

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """Partner of each row."""
        return {"partner": filled(rows, ALONE, runs, Feature.SHARING)}


class SharedRate(_Partners, Rate):
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


class SharedFactor(_Partners, SpeedFactor):
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


class SharingTerm(Term[Throughputs]):
    """Rates of jobs that share GPUs; relative to those alone where there are job graphs."""

    feature: ClassVar[Feature] = Feature.SHARING
    # Not the name of its field: digests of stored instances are of this word.
    entry: ClassVar[str] = "pair_throughputs"
    record: ClassVar[Any] = WrittenRates
    settings: ClassVar[type[TermSettings] | None] = SharingSettings
    origin: ClassVar[str] = "--throughputs with rates of pairs of jobs"

    def of(self, instance: SeenInstance) -> Throughputs | None:
        """The table of rates."""
        return instance.sharing_rates

    def check(self, value: Throughputs, instance: SeenInstance) -> None:
        """Refuse rates in iterations a second where graphs say how fast a job is alone."""
        if instance.graphs is not None:
            value.expect_relative()

    def effects(self, value: Throughputs, instance: SeenInstance) -> Iterator[Effect]:
        """The rate with a partner, or a factor on that of the graph."""
        types = instance.cluster.type_of_node.tolist()
        if instance.graphs is None:
            yield SharedRate(instance.shared_runs.one_run_s, types)
        else:
            yield SharedFactor(instance.shared_runs.one_rate, types)

    def written(self, value: Throughputs) -> Any:
        """The table of rates."""
        return WrittenRates.of(value)

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """The table of rates."""
        return {**so_far, "sharing_rates": record.table()}
