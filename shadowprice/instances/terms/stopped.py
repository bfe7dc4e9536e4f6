"""Runs that were stopped before their end: no job need be complete, and nothing goes on after it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from shadowprice.instances.documents.schema import Amount
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import check_seconds
from shadowprice.instances.terms.term import InstanceFields, NodesAndJobs, Term


class HasStop(NodesAndJobs, Protocol):
    """Instance of a run that may have been stopped."""

    @property
    def stopped_s(self) -> float | None:
        """Time of the stop [s]."""


class StoppedTerm(Term[HasStop]):
    """The time at which a run was stopped [s]."""

    feature: ClassVar[Feature] = Feature.STOPPED
    entry: ClassVar[str] = "stopped_s"
    record: ClassVar[Any] = Amount
    origin: ClassVar[str] = "Ctrl-C while the run goes on"

    def present(self, instance: HasStop) -> bool:
        """True if the run was stopped."""
        return instance.stopped_s is not None

    def check(self, instance: HasStop) -> None:
        """Refuse what is no time."""
        assert instance.stopped_s is not None
        check_seconds("stopped_s", instance.stopped_s, zero=True)

    def lifted(self, instance: HasStop) -> InstanceFields:
        """No end: what counts until then is for the caller to say."""
        return {"stopped_s": None}
