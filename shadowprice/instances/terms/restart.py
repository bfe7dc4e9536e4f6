"""Jobs that restart from nothing: a job that is preempted loses its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term


@dataclass(frozen=True)
class RestartSettings(TermSettings):
    """A job that is preempted starts from nothing; it has no settings."""

    feature: ClassVar[Feature] = Feature.RESTART
    sets: ClassVar[tuple[str, ...]] = ("preemption",)
    example: ClassVar[str] = "simulate jobs.csv --cluster 4x4 --policy b-scaling --with restart"

    def on(self, run: TermContext) -> TermContext:
        """The run in which preempted jobs restart."""
        return run.with_options(preemption=Preemption.RESTART)


class RestartTerm(Term[Preemption]):
    """The rule on what preempted jobs keep, where that is nothing."""

    feature: ClassVar[Feature] = Feature.RESTART
    entry: ClassVar[str] = "preemption"
    record: ClassVar[Any] = Preemption
    settings: ClassVar[type[TermSettings] | None] = RestartSettings

    def present(self, instance: SeenInstance) -> bool:
        """True if preempted jobs restart."""
        return self.of(instance) is Preemption.RESTART

    def check(self, value: Preemption, instance: SeenInstance) -> None:
        """Refuse checkpoints."""
        if instance.failures is not None:
            who = f"{instance.workload.source}: jobs restart from nothing when preempted"
            instance.failures.checkpoints.expect_none(who, "they keep nothing of a run")

    def lifted(self, instance: SeenInstance) -> InstanceFields:
        """Jobs that keep their work, which can do whatever those that lose it can."""
        return {"preemption": Preemption.RESUME}
