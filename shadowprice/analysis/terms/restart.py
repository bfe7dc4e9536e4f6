"""Restarts from nothing as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature


@dataclass(frozen=True)
class RestartSettings(WrittenTerm):
    """A job that is preempted starts from nothing; it has no settings."""

    feature: ClassVar[Feature] = Feature.RESTART
    sets: ClassVar[tuple[str, ...]] = ("preemption",)
    example: ClassVar[str] = "simulate jobs.csv --cluster 4x4 --policy b-scaling --with restart"

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run in which preempted jobs restart."""
        return run.switched(preemption=Preemption.RESTART)
