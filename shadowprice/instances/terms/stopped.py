"""Runs that were stopped before their end: no job need be complete, and nothing goes on after it."""

from __future__ import annotations

from typing import Any, ClassVar

from shadowprice.instances.documents.schema import Amount
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import check_seconds
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term


class StoppedTerm(Term[float]):
    """The time at which a run was stopped [s]."""

    feature: ClassVar[Feature] = Feature.STOPPED
    entry: ClassVar[str] = "stopped_s"
    record: ClassVar[Any] = Amount
    origin: ClassVar[str] = "Ctrl-C while the run goes on"

    def check(self, value: float, instance: SeenInstance) -> None:
        """Refuse what is no time."""
        check_seconds("stopped_s", value, zero=True)

    def lifted(self, instance: SeenInstance) -> InstanceFields:
        """No end: what counts until then is for the caller to say."""
        return {"stopped_s": None}
