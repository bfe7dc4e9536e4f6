"""Widths of jobs as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.conditions import Growth
from shadowprice.instances.speeds.widths import ModelGrowth

_Width = Annotated[int, Meta(ge=1, le=2**31, description="a number of GPUs from 1")]
_Efficiency = Annotated[float, Meta(gt=0.5, le=1.0, description="1/2 < e <= 1")]


@dataclass(frozen=True)
class WidthsSettings(WrittenTerm):
    """Jobs may hold more GPUs than their gang, within a node: all alike, or by model.

    Parameters
    ----------
    widest : int
        Most GPUs of a job whose gang is smaller.
    efficiency : float
        Every doubling of its GPUs makes a job twice this as fast; 0.9 if left out.
    file : str
        JSON or TOML file of models with widest and efficiency of each; instead of the two.
    """

    feature: ClassVar[Feature] = Feature.WIDTHS
    sets: ClassVar[tuple[str, ...]] = ("growth",)
    example: ClassVar[str] = (
        "simulate jobs.csv --cluster 1x8 --policy gandiva --with widths:widest=4,efficiency=0.8"
    )

    widest: _Width | UnsetType = UNSET
    efficiency: _Efficiency | UnsetType = UNSET
    file: FileName | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.file is not UNSET and (self.widest, self.efficiency) != (UNSET, UNSET):
            raise InputError(
                "file says widest and efficiency of each model, expected it or these two"
            )
        if self.file is UNSET and self.widest is UNSET:
            raise InputError("has neither widest nor file, expected one of the two")

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run in which jobs may grow."""
        if self.file is not UNSET:
            return run.switched(growth=ModelGrowth.load(self.file))
        assert self.widest is not UNSET
        if self.efficiency is UNSET:
            return run.switched(growth=Growth(self.widest))
        return run.switched(growth=Growth(self.widest, self.efficiency))
