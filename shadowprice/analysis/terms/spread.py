"""Slowdowns of spread gangs as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec import UNSET, UnsetType

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews


@dataclass(frozen=True)
class SpreadSettings(WrittenTerm):
    """Speeds of models on more nodes than the gang needs.

    Parameters
    ----------
    file : str
        JSON or TOML file of models and their speeds when spread; Tiresias' ten models if left out.
    """

    feature: ClassVar[Feature] = Feature.SPREAD
    sets: ClassVar[tuple[str, ...]] = ("skews",)
    example: ClassVar[str] = (
        "simulate testbed.csv --cluster 15x4 --placement skew --policy las2d --with spread"
    )

    file: FileName | UnsetType = UNSET

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run with these slowdowns."""
        found = published_skews() if self.file is UNSET else ModelSkews.load(self.file)
        return run.switched(skews=found)
