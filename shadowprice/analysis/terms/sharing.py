"""Rates of jobs that share GPUs as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec import UNSET, UnsetType

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.interference import Interference


@dataclass(frozen=True)
class SharingSettings(WrittenTerm):
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

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run in which jobs may share."""
        found = Interference() if self.file is UNSET else Interference.load(self.file)
        return run.switched(interference=found)
