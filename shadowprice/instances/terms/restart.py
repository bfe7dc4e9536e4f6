"""Jobs that restart from nothing: a job that is preempted loses its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, NodesAndJobs, Term

if TYPE_CHECKING:
    from shadowprice.instances.failures.node_failures import NodeFailures


@dataclass(frozen=True)
class RestartSettings(TermSettings):
    """A job that is preempted starts from nothing; it has no settings."""

    feature: ClassVar[Feature] = Feature.RESTART
    sets: ClassVar[tuple[str, ...]] = ("preemption",)
    example: ClassVar[str] = "simulate jobs.csv --cluster 4x4 --policy b-scaling --with restart"

    def on(self, run: TermContext) -> TermContext:
        """The run in which preempted jobs restart."""
        return run.switched(preemption=Preemption.RESTART)


class HasPreemption(NodesAndJobs, Protocol):
    """Instance with a rule on what preempted jobs keep."""

    @property
    def preemption(self) -> Preemption:
        """The rule."""

    @property
    def failures(self) -> NodeFailures | None:
        """Downtimes of nodes."""


class RestartTerm(Term[HasPreemption]):
    """The rule on what preempted jobs keep, where that is nothing."""

    feature: ClassVar[Feature] = Feature.RESTART
    entry: ClassVar[str] = "preemption"
    record: ClassVar[Any] = Preemption
    settings: ClassVar[type[TermSettings] | None] = RestartSettings

    def present(self, instance: HasPreemption) -> bool:
        """True if preempted jobs restart."""
        return instance.preemption is Preemption.RESTART

    def check(self, instance: HasPreemption) -> None:
        """Refuse checkpoints."""
        if instance.failures is not None:
            who = f"{instance.workload.source}: jobs restart from nothing when preempted"
            instance.failures.checkpoints.expect_none(who, "they keep nothing of a run")

    def lifted(self, instance: HasPreemption) -> InstanceFields:
        """Jobs that keep their work, which can do whatever those that lose it can."""
        return {"preemption": Preemption.RESUME}
