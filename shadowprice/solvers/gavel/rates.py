"""Data of a problem for an allocation programme: rates, gangs and workers as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.cluster import ANY_TYPE
from shadowprice.instances.names import Names
from shadowprice.models.gavel import Shape
from shadowprice.solvers.narrow_tables import across

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rates:
    """Rows of a programme, a row a job.

    Parameters
    ----------
    alone : ndarray, shape (rows, types)
        T_mj [steps/s].
    gang : ndarray, shape (rows,)
        s_m [GPUs].
    workers : ndarray, shape (accelerators,)
        W_a [GPUs].
    accelerators : tuple of int
        Accelerator of each type.
    pairs : Pairs
        Who may share GPUs; empty without space sharing.
    jobs, types : sequence of str
        Names of the rows and types.
    entities : ndarray of str, shape (rows,)
        User of each job.
    """

    alone: FloatArray
    gang: FloatArray
    workers: FloatArray
    accelerators: tuple[int, ...]
    pairs: Pairs
    jobs: NDArray[np.object_]
    types: tuple[str, ...]
    entities: NDArray[np.object_]

    @classmethod
    def of(cls, problem: AllocationProblem, *, aware: bool = True, packed: bool = False) -> Rates:
        """Rates of a problem; agnostic programmes see those of the reference type on every type.

        Raises
        ------
        InputError
            If a job has no throughput on any type.
        """
        stuck = ~across(np.logical_or, problem.throughput > 0)
        there = (problem.throughput > 0) & (problem.type_capacity > 0)
        idle = ~across(np.logical_or, there)
        if idle.any() and not stuck.any():
            raise InputError(
                f"{problem.source}: job {problem.id[idle.argmax()]!r} has throughput only on types "
                f"without GPUs; no allocation gives it progress"
            )
        if stuck.any():
            raise InputError(
                f"{problem.source}: job {problem.id[stuck.argmax()]!r} has no throughput on any of "
                f"{', '.join(problem.gpu_types)}; no allocation gives it progress"
            )
        types = len(problem.gpu_types)
        pairs = problem.pairs if packed else Pairs.none(types)
        alone = problem.throughput
        if not aware:
            alone, pairs = _agnostic(problem, pairs)
        return cls(
            alone,
            problem.gpus.astype(np.float64),
            problem.capacity,
            problem.accelerators,
            pairs,
            problem.id,
            problem.gpu_types,
            problem.entity,
        )

    @classmethod
    def for_levels(cls, problem: AllocationProblem, *, aware: bool, packed: bool) -> Rates:
        """Rates for programmes about levels only, in which agnostic ones see a single type.

        Where all types are alike to a programme, one with all the GPUs is the same programme;
        :func:`~shadowprice.solvers.gavel.spread.spread` divides the time evenly among them.
        """
        rates = cls.of(problem, aware=aware, packed=packed)
        if aware:
            return rates
        pairs = replace(
            rates.pairs,
            throughput_first=rates.pairs.throughput_first[:, :1],
            throughput_second=rates.pairs.throughput_second[:, :1],
        )
        total = np.array([problem.capacity.sum()])
        return replace(
            rates,
            alone=rates.alone[:, :1],
            workers=total,
            accelerators=(0,),
            pairs=pairs,
            types=(ANY_TYPE,),
        )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.gang)

    @property
    def best(self) -> FloatArray:
        """Highest throughput of each row on any type, alone or shared [steps/s]."""
        best: FloatArray = across(np.maximum, self.alone)
        if len(self.pairs):
            best = best.copy()
            np.maximum.at(best, self.pairs.first, self.pairs.throughput_first.max(axis=1))
            np.maximum.at(best, self.pairs.second, self.pairs.throughput_second.max(axis=1))
        return best

    @property
    def there(self) -> Rates:
        """The same rates, with no throughput on types that have no GPUs."""
        there = self.workers[list(self.accelerators)] > 0
        pairs = replace(
            self.pairs,
            throughput_first=self.pairs.throughput_first * there,
            throughput_second=self.pairs.throughput_second * there,
        )
        return replace(self, alone=self.alone * there, pairs=pairs)

    @property
    def best_there(self) -> FloatArray:
        """Highest throughput of each row on types that have GPUs, alone or shared [steps/s]."""
        return self.there.best

    @property
    def proportional(self) -> FloatArray:
        """throughput(m, X_equal): all the time, over accelerators in proportion to their GPUs [steps/s].

        Where several types draw on one accelerator, the job's fastest of them counts.
        """
        total = self.workers.sum()
        if not total > 0:
            raise InputError("the cluster has no GPUs")
        fastest = np.zeros((self.rows, len(self.workers)))
        for j, accelerator in enumerate(self.accelerators):
            np.maximum(fastest[:, accelerator], self.alone[:, j], out=fastest[:, accelerator])
        return np.asarray(fastest @ (self.workers / total))

    def in_units(self, unit: FloatArray) -> Rates:
        """The same rates with each job's steps counted in units of its own, shape (rows,)."""
        pairs = self.pairs
        counted = replace(
            pairs,
            throughput_first=pairs.throughput_first / unit[pairs.first][:, None],
            throughput_second=pairs.throughput_second / unit[pairs.second][:, None],
        )
        return replace(self, alone=self.alone / unit[:, None], pairs=counted)

    def no_better_than_turns(self) -> NDArray[np.bool_]:
        """True where two jobs sharing a type do no more than taking turns on it, shape (pairs, types).

        Sharing for a time q gives the jobs q T1 and q T2; taking turns for q T1 / T_first and
        q T2 / T_second gives the same, with no more of anybody's time if these add up to at most q.
        """
        pairs = self.pairs
        with np.errstate(divide="ignore", invalid="ignore"):
            turns = np.nan_to_num(
                pairs.throughput_first / self.alone[pairs.first], nan=0.0, posinf=2.0
            ) + np.nan_to_num(
                pairs.throughput_second / self.alone[pairs.second], nan=0.0, posinf=2.0
            )
        return np.asarray(turns <= 1.0)

    def shape(self) -> Shape:
        """The shape of the model."""
        draws = tuple(
            tuple(t for t, drawn in zip(self.types, self.accelerators, strict=True) if drawn == a)
            for a in range(len(self.workers))
        )
        pairs = self.pairs
        jobs = Names(self.jobs)
        return Shape(jobs, self.types, draws, pairs.first, pairs.second, self.entities)

    def data(self) -> Mapping[str, FloatArray]:
        """Values of the Params that all programmes share."""
        given = {"T": self.alone, "s": self.gang, "W": self.workers}
        if len(self.pairs):
            given |= {
                "T1": self.pairs.throughput_first,
                "T2": self.pairs.throughput_second,
                "s2": self.gang[self.pairs.first],
            }
        return given

    def throughput(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Steps per second of each row under an allocation."""
        total: FloatArray = across(np.add, self.alone * x)
        pairs = self.pairs
        if len(pairs):
            total = total + np.bincount(
                pairs.first, (pairs.throughput_first * y).sum(axis=1), self.rows
            )
            total += np.bincount(pairs.second, (pairs.throughput_second * y).sum(axis=1), self.rows)
        return total


def reference_type(problem: AllocationProblem) -> int:
    """The type heterogeneity-agnostic policies take for all: the fastest of most jobs.

    Ties go to the type that is on average nearest to each job's fastest. Gavel's code names the
    V100; here no name counts (derived).
    """
    if not len(problem):
        return 0
    best = problem.throughput.max(axis=1, keepdims=True)
    share = problem.throughput / np.where(best > 0, best, 1.0)
    return int(np.lexsort((share.sum(axis=0), (share == 1.0).sum(axis=0)))[-1])


def _agnostic(problem: AllocationProblem, pairs: Pairs) -> tuple[FloatArray, Pairs]:
    """Rates of the reference type on every type; a job's best rate where it cannot run there."""
    j = reference_type(problem)
    types = len(problem.gpu_types)
    column = problem.throughput[:, j]
    column = np.where(column > 0, column, problem.throughput.max(axis=1))
    alone = np.repeat(column[:, None], types, axis=1)
    shared = (
        np.repeat(rates[:, j : j + 1], types, axis=1)
        for rates in (pairs.throughput_first, pairs.throughput_second)
    )
    first, second = shared
    return alone, replace(pairs, throughput_first=first, throughput_second=second)
