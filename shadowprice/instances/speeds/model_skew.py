"""Skew of models: the share of the largest tensor, and what spreading a job costs.

Source: Gu et al., Tiresias, NSDI'19, sections 2.2 and 3.4: sizes of ten models and the share of
their largest tensor; those where it is large lose speed when their parameter servers and workers
are spread over nodes.

How much each loses is published as a picture only (Figure 3). The speeds of the built-in table
are assumptions (derived): the published gain by placement is up to 1.67x (Figure 12); that is
taken as the slowdown of the most skewed model, and the others' as linear in their skew,

    spread_speed = 1 / (1 + 0.67 S / 0.773).

A table of one's own is a JSON or TOML file with a table ``models`` of ``name = {skew = 0.715,
spread_speed = 0.62}``; an entry ``default = {...}`` beside ``models`` is for all other models
(:mod:`shadowprice.instances.speeds.model_table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from shadowprice.errors import InputError
from shadowprice.instances.speeds.model_table import ModelTable

MOST_SKEWED = 0.773
LARGEST_GAIN = 1.67

SHARE_AND_MB: Mapping[str, tuple[float, float]] = {
    "VGG19": (0.715, 548.0),
    "VGG16": (0.743, 528.0),
    "VGG11": (0.773, 507.0),
    "AlexNet": (0.610, 236.0),
    "ResNet152": (0.039, 230.0),
    "ResNet101": (0.053, 170.0),
    "ResNet50": (0.092, 97.7),
    "Inception4": (0.036, 163.0),
    "Inception3": (0.086, 91.0),
    "GoogleNet": (0.146, 26.7),
}
"""Published: share of the largest tensor, and size of the model [MB]."""


@dataclass(frozen=True)
class ModelSkew:
    """Skew of a model, and the relative speed of its jobs when spread.

    Parameters
    ----------
    skew : float
        Share of the model's largest tensor in its size, from 0 to 1.
    spread_speed : float
        Speed of a job that is spread, against that of one that is not; 0 < s <= 1.
    """

    skew: float
    spread_speed: float

    def __post_init__(self) -> None:
        if not 0 <= self.skew <= 1:
            raise InputError(f"skew is {self.skew!r}, expected a share from 0 to 1")
        if not 0 < self.spread_speed <= 1:
            raise InputError(f"spread_speed is {self.spread_speed!r}, expected 0 < s <= 1")


@dataclass(frozen=True, repr=False)
class ModelSkews(ModelTable[ModelSkew]):
    """Skews of models by name."""

    kind: ClassVar[Any] = ModelSkew

    source: str = "model skews"

    def skew_of(self, model: str) -> float | None:
        """Share of the largest tensor, None if unknown."""
        found = self.entry(model)
        return None if found is None else found.skew


@cache
def published_skews() -> ModelSkews:
    """The ten models of the paper, with the speeds assumed above."""
    return ModelSkews(
        {
            name: ModelSkew(skew, 1.0 / (1.0 + (LARGEST_GAIN - 1.0) * skew / MOST_SKEWED))
            for name, (skew, _) in SHARE_AND_MB.items()
        },
        source="Tiresias' ten models",
    )
