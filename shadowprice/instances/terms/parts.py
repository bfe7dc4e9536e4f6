"""Parts of GPUs as a term: several jobs hold one GPU, each as fast as its log or rates say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import Term, Told, filled

WHOLE = -1
"""Field of a run that holds whole GPUs."""


class PartsTerm(Term):
    """Field of a run: the number, from 0, of the GPU of its node that it holds a part of; ``WHOLE`` for whole GPUs."""

    feature: ClassVar[Feature] = Feature.PARTS

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """Number of the GPU of each row."""
        return {"shared_gpu": filled(rows, WHOLE, told, Feature.PARTS)}
