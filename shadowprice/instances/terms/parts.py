"""Parts of GPUs: several jobs hold one GPU, each as fast as its log or rates say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.effect import Effect, RecordedRun, filled
from shadowprice.instances.terms.term import ColumnTerm, SeenInstance
from shadowprice.instances.workload import Workload

WHOLE = -1
"""Field of a run that holds whole GPUs."""


class NumberOfGpu(Effect):
    """Field of a run: the number, from 0, of the GPU of its node that it holds a part of; ``WHOLE`` for whole GPUs."""

    feature: ClassVar[Feature] = Feature.PARTS

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """Number of the GPU of each row."""
        return {"shared_gpu": filled(rows, WHOLE, runs, Feature.PARTS)}


class PartsTerm(ColumnTerm):
    """Column ``gpu_milli`` of the jobs, in thousandths of a GPU."""

    feature: ClassVar[Feature] = Feature.PARTS
    origin: ClassVar[str] = "gangs below 1 in the trace (gpus 0.5)"

    def present(self, instance: SeenInstance) -> bool:
        """True if some job holds a part of a GPU."""
        return bool(instance.workload.fractional.any())

    def effects(self, value: Workload, instance: SeenInstance) -> Iterator[Effect]:
        """The number of the GPU."""
        yield NumberOfGpu()
