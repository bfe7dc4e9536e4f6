"""Charges as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.analysis.terms.written_term import Seconds, WrittenRun, WrittenTerm
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Overheads


@dataclass(frozen=True)
class ChargesSettings(WrittenTerm):
    """Time in which a gang holds its GPUs without progress; without settings none, also where a preset has some.

    Parameters
    ----------
    start_s : float
        Owed for every run of a job.
    restart_s : float
        Owed in addition when a job resumes after a preemption.
    migration_s : float
        Owed in addition when it resumes on other nodes.
    """

    feature: ClassVar[Feature] = Feature.CHARGES
    sets: ClassVar[tuple[str, ...]] = ("overheads",)
    example: ClassVar[str] = (
        "simulate jobs.csv --cluster 4x4 --policy srtf --with charges:restart_s=30,migration_s=15"
    )

    start_s: Seconds = 0.0
    restart_s: Seconds = 0.0
    migration_s: Seconds = 0.0

    def __post_init__(self) -> None:
        self._overheads()

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run with these charges."""
        return run.switched(overheads=self._overheads())

    def _overheads(self) -> Overheads:
        return Overheads(self.start_s, self.restart_s, self.migration_s)
