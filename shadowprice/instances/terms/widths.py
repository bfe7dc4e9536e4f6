"""Jobs that may grow: they may hold more GPUs than their gang, and are faster with them.

Widths by model are a JSON or TOML file with a table ``models`` of ``name = {widest = 8, efficiency = 0.95}``, and
an entry ``default = {...}`` beside ``models`` for all other models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.model_table import ModelTable
from shadowprice.instances.terms.effect import Effect, Fields, Pieces, SpeedFactor
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import SeenInstance, Term, expect_of_jobs

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

_Width = Annotated[int, Meta(ge=1, le=2**31, description="a number of GPUs from 1")]
_Efficiency = Annotated[float, Meta(gt=0.5, le=1.0, description="1/2 < e <= 1")]

# Jobs that can use more GPUs than they asked for. Gandiva (OSDI'18), grow-shrink.


@dataclass(frozen=True, repr=False)
class Growth(Brief):
    """One rule for all jobs: how far they may grow within a node.

    Parameters
    ----------
    widest : int
        Most GPUs of a job whose gang is smaller, and no more than the largest node has.
    efficiency : float
        As in :class:`Elasticity`.
    """

    widest: _Width
    efficiency: _Efficiency = 0.9

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        """Widths of the jobs of a workload; O(n)."""
        return _grown([self] * len(workload), workload, cluster)


@dataclass(frozen=True, eq=False, repr=False)
class Elasticity(Brief):
    r"""Largest width of each job, and its efficiency when wider.

    A gang of g GPUs that holds w is :math:`(w / g)^{\log_2 (2 e)}` times as fast, rounded to the nearest
    double on every machine: every doubling multiplies its speed by 2 e. Derived; the paper has no formula.

    Parameters
    ----------
    widest : ndarray of int, shape (n,)
        Most GPUs of each job; its gang if it did not opt in.
    efficiency : ndarray, shape (n,)
        e, from above 1/2 to 1.
    """

    widest: NDArray[np.int64]
    efficiency: NDArray[np.float64]

    def __post_init__(self) -> None:
        widest = np.array(self.widest, dtype=np.int64)
        efficiency = np.array(self.efficiency, dtype=np.float64)
        if widest.shape != efficiency.shape:
            raise InputError(
                f"elasticity: {len(widest)} widths and {len(efficiency)} efficiencies, expected as many"
            )
        bad = ~((efficiency > 0.5) & (efficiency <= 1.0))
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: the efficiency of job {job} is {efficiency[job]!r}, expected 1/2 < e <= 1"
            )
        for name, values in (("widest", widest), ("efficiency", efficiency)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def check(self, workload: Workload) -> None:
        """Raise :class:`InputError` if a job's widest is less than its gang, or it grows from a part of a GPU."""
        bad = self.widest < workload.gpus
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: job {job} has a gang of {workload.gpus[job]} GPUs and may hold at most "
                f"{self.widest[job]}, expected no less than its gang"
            )
        bad = ~workload.on_whole_gpus & (self.widest > workload.gpus)
        if bad.any():
            job = int(bad.argmax())
            holds = "cores" if workload.on_cores[job] else "a part of a GPU"
            raise InputError(
                f"elasticity: job {job} holds {holds} and may hold {self.widest[job]}, expected at most "
                f"{workload.gpus[job]}: it does not grow by GPUs"
            )

    def speed(
        self, job: NDArray[np.int64], gpus: NDArray[np.int64], width: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Speed of jobs with these gangs on so many GPUs."""
        shape = np.broadcast_shapes(np.shape(job), np.shape(gpus), np.shape(width))
        columns = (self.efficiency[job], gpus, width)
        rows = zip(
            *(np.broadcast_to(each, shape).ravel().tolist() for each in columns), strict=True
        )
        return np.array([speed_up(*row) for row in rows], dtype=np.float64).reshape(shape)

    def select(self, keep: NDArray[np.bool_]) -> Elasticity:
        """The same for some of the jobs."""
        return Elasticity(self.widest[keep], self.efficiency[keep])


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredWidths(Elasticity):
    """Speeds that were measured at each width, instead of an efficiency; of instances that bounds are about.

    Parameters
    ----------
    speeds : tuple of tuple of float
        Of each job on its gang, which is 1, on one GPU more, and so on: never falling, and at most in proportion.
    """

    speeds: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(cls, speeds: Sequence[tuple[float, ...]]) -> MeasuredWidths:
        """Those of jobs whose gangs are one GPU."""
        widest = np.array([len(each) for each in speeds], dtype=np.int64)
        return cls(widest, np.ones(len(widest)), tuple(speeds))

    def speed(
        self, job: NDArray[np.int64], gpus: NDArray[np.int64], width: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Speed of jobs with these gangs on so many GPUs."""
        columns = np.broadcast_arrays(job, gpus, width)
        rows = zip(*(each.ravel().tolist() for each in columns), strict=True)
        found = [self.speeds[one][held - gang] for one, gang, held in rows]
        return np.array(found, dtype=np.float64).reshape(columns[0].shape)

    def select(self, keep: NDArray[Any]) -> MeasuredWidths:
        """The same for some of the jobs."""
        rows = np.arange(len(self.widest))[keep].tolist()
        return MeasuredWidths(
            self.widest[keep], self.efficiency[keep], tuple(self.speeds[row] for row in rows)
        )


@lru_cache(maxsize=4096)
def speed_up(efficiency: float, gpus: int, width: int) -> float:
    """Speed of a gang on so many GPUs, over that on its own, rounded to the nearest double on every machine."""
    # Powers of floats differ from machine to machine in the last place, which a run would show.
    with localcontext(prec=60):
        exponent = 1 + Decimal(efficiency).ln() / Decimal(2).ln()
        return float((Decimal(width) / Decimal(gpus)) ** exponent)


@dataclass(frozen=True, repr=False)
class ModelGrowth(ModelTable[Growth]):
    """Growth within a node of the jobs of each model."""

    kind: ClassVar[Any] = Growth

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        """Widths of the jobs of a workload, by their models; O(n).

        Raises
        ------
        InputError
            Naming the job and the model if that is not listed and there is no default.
        """
        return _grown(self.of_jobs(workload), workload, cluster)


def _grown(growth: Sequence[Growth], workload: Workload, cluster: Cluster) -> Elasticity:
    """Widths by a rule for each job; those with a part of a GPU, or on cores, do not grow."""
    most = np.array([each.widest for each in growth], dtype=np.int64)
    widest = np.maximum(workload.gpus, np.minimum(most, cluster.gpus_per_node.max()))
    return Elasticity(
        np.where(workload.on_whole_gpus, widest, workload.gpus),
        np.array([each.efficiency for each in growth], dtype=np.float64),
    )


@dataclass(frozen=True)
class WidthsSettings(TermSettings):
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

    def on(self, run: TermContext) -> TermContext:
        """The run in which jobs may grow."""
        if self.file is not UNSET:
            return run.with_options(growth=ModelGrowth.load(self.file))
        assert self.widest is not UNSET
        if self.efficiency is UNSET:
            return run.with_options(growth=Growth(self.widest))
        return run.with_options(growth=Growth(self.widest, self.efficiency))


class WidthFactor(SpeedFactor):
    """The speed of a job on more GPUs than its gang.

    Parameters
    ----------
    elasticity : Elasticity
    gang : sequence of int
        Of each job [GPUs].
    """

    feature: ClassVar[Feature] = Feature.WIDTHS

    def __init__(self, elasticity: Elasticity, gang: Sequence[int]) -> None:
        self._gang = gang
        self._widest: list[int] = elasticity.widest.tolist()
        self._efficiency: list[float] = elasticity.efficiency.tolist()

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a job on so many GPUs.

        Raises
        ------
        InputError
            If it may not hold so many.
        """
        gang, width = self._gang[job], sum(gpus for _, gpus in pieces)
        if width == gang:
            return 1.0
        if not gang <= width <= self._widest[job]:
            raise InputError(
                f"job {job}: holds {width} GPUs, expected {gang} to {self._widest[job]}"
            )
        return speed_up(self._efficiency[job], gang, width)


class WidthsTerm(Term[Elasticity]):
    """Largest width of each job, and how fast it is there."""

    feature: ClassVar[Feature] = Feature.WIDTHS
    entry: ClassVar[str] = "elasticity"
    record: ClassVar[Any] = Elasticity
    settings: ClassVar[type[TermSettings] | None] = WidthsSettings
    varies: ClassVar[bool] = True
    by_job: ClassVar[bool] = True

    def check(self, value: Elasticity, instance: SeenInstance) -> None:
        """Refuse widths of other jobs, or below their gangs."""
        expect_of_jobs("widths", len(value.widest), instance.workload)
        value.check(instance.workload)

    def effects(self, value: Elasticity, instance: SeenInstance) -> Iterator[Effect]:
        """The speed of a job on more GPUs than its gang."""
        yield WidthFactor(value, instance.workload.gpus.tolist())

    def best_speed(self, value: Elasticity, instance: SeenInstance) -> NDArray[np.float64]:
        """Speed of every job on as many GPUs as it may hold."""
        gpus = instance.workload.gpus
        return value.speed(np.arange(len(gpus)), gpus, value.widest)
