"""Nodes that fail, and checkpoints: nodes are down at times, and jobs lose what they have not saved by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import or_endless, or_null
from shadowprice.instances.documents.schema import Amount, FileName, Line, Number, Whole
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.failures import NONE, Failures, FaultSource
from shadowprice.instances.failures.fault_file import FaultLog, FaultTable, load
from shadowprice.instances.failures.fault_law import FaultLaw
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.settings import (
    PositiveSeconds,
    Seconds,
    TermContext,
    TermSettings,
)
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term

_Shape = Annotated[float, Meta(ge=0.05, le=100, description="a number from 0.05 to 100")]
_Seed = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number from 0")]
_Nodes = Annotated[int, Meta(ge=1, lt=2**31, description="a number of nodes from 1")]
_Day = Annotated[float, Meta(ge=0, le=1e9, description="a day >= 0", extra={"unit": "days"})]


class FailureLaw(StrEnum):
    """Law of the times between faults and of repairs."""

    EXPONENTIAL = "exponential"
    WEIBULL = "weibull"
    NONE = "none"
    """Nodes never fail; checkpoints cost what they cost."""


_OF_LAWS = {
    FailureLaw.EXPONENTIAL: ("mtbf_s", "repair_s", "seed"),
    FailureLaw.WEIBULL: ("mtbf_s", "repair_s", "shape", "repair_shape", "seed"),
    FailureLaw.NONE: (),
}
"""Settings that say what a law draws."""
_OF_FILES = ("file", "nodes", "from_day", "seed")
_OF_ALL = ("interval_s", "cost_s")


@dataclass(frozen=True)
class FailuresSettings(TermSettings):
    """Times at which nodes go down and come up, by a law or from a file; and what jobs save of their work.

    Parameters
    ----------
    law : str
        Law of faults and repairs of each node; exponential if neither it nor a file is given, none for nodes that
        never fail, where checkpoints cost what they cost.
    mtbf_s : float
        Mean time from a repair to the next fault of a node; of a law.
    repair_s : float
        Mean time of a repair; of a law.
    shape : float
        Weibull's shape of the times up: below 1 faults come early after a repair.
    repair_shape : float
        Weibull's shape of the times of repair; 1 if left out.
    file : str
        Table of downtimes (CSV: node, down_s, up_s) or log of faults (JSON of InfiniteHBD), instead of a law.
    nodes : int
        Nodes of the cluster that a log is of; the simulated ones are drawn from them.
    from_day : float
        Day of a log at which the run begins; 0 if left out.
    seed : int
        Seed of a law, or of the draw of nodes of a log; 0 if left out, in a study that of the run.
    interval_s : float
        Progress between two checkpoints of a run; never if left out, so that a failure costs the whole run.
    cost_s : float
        Time of a checkpoint, in which the run holds its GPUs.
    """

    feature: ClassVar[Feature] = Feature.FAILURES
    sets: ClassVar[tuple[str, ...]] = ("failures",)
    example: ClassVar[str] = (
        "simulate jobs.csv --cluster 4x4 --policy srtf "
        "--with failures:mtbf_s=864000,repair_s=3600,seed=1,interval_s=1800,cost_s=30"
    )

    law: FailureLaw | UnsetType = UNSET
    mtbf_s: PositiveSeconds | UnsetType = UNSET
    repair_s: PositiveSeconds | UnsetType = UNSET
    shape: _Shape | UnsetType = UNSET
    repair_shape: _Shape | UnsetType = UNSET
    file: FileName | UnsetType = UNSET
    nodes: _Nodes | UnsetType = UNSET
    from_day: _Day | UnsetType = UNSET
    seed: _Seed | UnsetType = UNSET
    interval_s: PositiveSeconds | UnsetType = UNSET
    cost_s: Seconds = 0.0

    def __post_init__(self) -> None:
        self._checkpoints()
        if self.file is UNSET:
            self._by_law(0)
        else:
            self._expect_only(_OF_FILES, "a file of faults")

    def on(self, run: TermContext) -> TermContext:
        """The run on nodes that fail."""
        return run.with_options(failures=Failures(self._faults(run.seed), self._checkpoints()))

    def _faults(self, seed: int) -> FaultSource:
        """Faults, drawn by a seed where they are drawn and no other is given."""
        if self.file is UNSET:
            return self._by_law(seed)
        faults = load(Path(self.file), self._settings_of(_OF_FILES[1:]))
        return (
            faults.seeded(seed) if isinstance(faults, FaultLog) and self.seed is UNSET else faults
        )

    def _by_law(self, seed: int) -> FaultSource:
        law = FailureLaw.EXPONENTIAL if self.law is UNSET else self.law
        known = _OF_LAWS[law]
        self._expect_only(("law", *known), f"law {law}")
        if law is FailureLaw.NONE:
            return FaultTable(NONE)
        given = {"seed": seed, **self._settings_of(known)}
        needed = ("mtbf_s", "repair_s", *(("shape",) if law is FailureLaw.WEIBULL else ()))
        missing = [name for name in needed if name not in given]
        if missing:
            raise InputError(f"law {law} has no {missing[0]}, expected {', '.join(needed)}")
        return FaultLaw(**given)

    def _checkpoints(self) -> Checkpointing:
        if self.interval_s is UNSET:
            return Checkpointing(cost_s=self.cost_s)
        return Checkpointing(self.interval_s, self.cost_s)

    def _settings_of(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: value for name, value in self.settings.items() if name in names}

    def _expect_only(self, names: Iterable[str], what: str) -> None:
        """Refuse settings that do not apply with others."""
        taken = (*names, *_OF_ALL)
        other = [name for name in self.settings if name not in taken]
        if other:
            raise InputError(f"{other[0]} does not apply to {what}, expected {', '.join(taken)}")


class WrittenFailures(msgspec.Struct, frozen=True):
    """Faults as rows of node, beginning and end [s], and checkpoints; null stands for infinity."""

    source: Line
    known_until_s: Amount | None
    checkpoint_interval_s: Amount | None
    checkpoint_cost_s: Amount
    faults: list[tuple[Whole, Number, Number | None]]

    @classmethod
    def of(cls, failures: NodeFailures) -> WrittenFailures:
        """Failures without their law, which may know more."""
        columns = (failures.node.tolist(), failures.down_s.tolist(), failures.up_s.tolist())
        rule = failures.checkpoints
        return cls(
            failures.source,
            or_null(failures.known_until_s),
            or_null(rule.interval_s),
            rule.cost_s,
            [(node, down, or_null(up)) for node, down, up in zip(*columns, strict=True)],
        )

    def failures(self) -> NodeFailures:
        """Inverse of :meth:`of`."""
        return NodeFailures(
            np.array([node for node, _, _ in self.faults], dtype=np.int64),
            np.array([down for _, down, _ in self.faults], dtype=np.float64),
            np.array([or_endless(up) for _, _, up in self.faults], dtype=np.float64),
            or_endless(self.known_until_s),
            Checkpointing(or_endless(self.checkpoint_interval_s), self.checkpoint_cost_s),
            self.source,
        )


class FailuresTerm(Term[NodeFailures]):
    """Times in which nodes are down, and what runs save."""

    feature: ClassVar[Feature] = Feature.FAILURES
    entry: ClassVar[str] = "failures"
    record: ClassVar[Any] = WrittenFailures
    settings: ClassVar[type[TermSettings] | None] = FailuresSettings

    def check(self, value: NodeFailures, instance: SeenInstance) -> None:
        """Refuse faults of nodes that there are not."""
        value.check(instance.cluster)

    def written(self, value: NodeFailures) -> Any:
        """Faults as a table, and checkpoints."""
        return WrittenFailures.of(value)

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """Faults and checkpoints."""
        return {**so_far, "failures": record.failures()}
