"""Allocation problems: which fraction of time each job should spend on each GPU type.

The input of Gavel's policies (OSDI'20, sec. 3.1) at one moment: the jobs that are there, how fast
each one runs on each GPU type, and how many GPUs of each type there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import Brief, cut
from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import LARGEST, on_one_line

MAX_GANG = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Brief):
    """Pairs of jobs of equal gang size that may share GPUs.

    Parameters
    ----------
    first, second : ndarray of int, shape (pairs,)
        Rows of the two jobs, first < second.
    throughput_first, throughput_second : ndarray, shape (pairs, types)
        Steps per second of either job while both run on the same GPUs.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    throughput_first: NDArray[np.float64]
    throughput_second: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def select(self, keep: NDArray[np.bool_]) -> Pairs:
        """The pairs of a mask."""
        return Pairs(*(getattr(self, column.name)[keep] for column in fields(self)))

    @classmethod
    def none(cls, types: int) -> Pairs:
        """No pairs."""
        rows, rates = np.zeros(0, dtype=np.int64), np.zeros((0, types))
        return cls(rows, rows, rates, rates)


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """Jobs and GPUs at one moment; rows in order of arrival.

    Use :meth:`from_columns`, which converts and validates.

    Parameters
    ----------
    gpu_types : tuple of str
        GPU types j.
    accelerators : tuple of int
        Accelerator whose GPUs each type draws on. A type is usually its own accelerator;
        placement-sensitive types (consolidated and not) share one.
    capacity : ndarray, shape (accelerators,)
        GPUs of each accelerator, W_a.
    price : ndarray, shape (types,)
        Price of a GPU of each type [$/h].
    id : ndarray of str, shape (n,)
        Name of each job m.
    throughput : ndarray, shape (n, types)
        T_mj, steps per second of the whole gang running alone on GPUs of type j; 0 where it cannot.
    gpus : ndarray of int, shape (n,)
        Gang size s_m, Gavel's scale factor [GPUs].
    weight : ndarray, shape (n,)
        w_m > 0.
    steps : ndarray, shape (n,)
        Steps left, n_m > 0.
    elapsed_s : ndarray, shape (n,)
        Time since the job arrived [s].
    isolated_s : ndarray, shape (n,)
        Time the work done so far would have taken in an isolated share [s].
    slo_s : ndarray, shape (n,)
        Seconds from now until the job should be complete; infinity for no such objective.
    entity : ndarray of str, shape (n,)
        Organisation the job belongs to, empty if there are none.
    pairs : Pairs
        Who may share GPUs with whom.
    source : str
        Where the problem comes from, for messages.
    job_data, data : mapping of str to ndarray
        For models that ask for more, by name of a Param: numbers of each job, shape (n,) or (n, ...),
        and others, in the order and shape of the Param's index set.
    """

    gpu_types: tuple[str, ...]
    accelerators: tuple[int, ...]
    capacity: NDArray[np.float64]
    price: NDArray[np.float64]
    id: NDArray[np.object_]
    throughput: NDArray[np.float64]
    gpus: NDArray[np.int64]
    weight: NDArray[np.float64]
    steps: NDArray[np.float64]
    elapsed_s: NDArray[np.float64]
    isolated_s: NDArray[np.float64]
    slo_s: NDArray[np.float64]
    entity: NDArray[np.object_]
    pairs: Pairs
    source: str = field(default="problem")
    job_data: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    data: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        *,
        gpu_types: Sequence[str],
        capacity: ArrayLike,
        throughput: ArrayLike,
        gpus: ArrayLike = 1,
        weight: ArrayLike = 1.0,
        steps: ArrayLike = 1.0,
        elapsed_s: ArrayLike = 0.0,
        isolated_s: ArrayLike = 0.0,
        slo_s: ArrayLike = np.inf,
        price: ArrayLike = 1.0,
        accelerators: Sequence[int] | None = None,
        id: ArrayLike | None = None,
        entity: ArrayLike = "",
        pairs: Pairs | None = None,
        source: str = "problem",
        job_data: Mapping[str, ArrayLike] | None = None,
        data: Mapping[str, ArrayLike] | None = None,
    ) -> AllocationProblem:
        """Build a problem from columns; a single value counts for all rows.

        Raises
        ------
        InputError
            Naming source, row, column, value and expectation of the first bad value.
        """
        types = tuple(gpu_types)
        if not types or len(set(types)) != len(types) or not all(map(on_one_line, types)):
            raise InputError(
                f"{source}: gpu_types {types!r}, expected different names, each on one line"
            )
        draws_on = tuple(range(len(types))) if accelerators is None else tuple(accelerators)
        if len(draws_on) != len(types) or set(draws_on) != set(range(len(set(draws_on)))):
            raise InputError(
                f"{source}: accelerators {draws_on!r}, expected one of 0, 1, ... for each GPU type"
            )
        per_type = ColumnChecks(source, np.arange(1, len(types) + 1))
        per_accelerator = ColumnChecks(source, np.arange(1, len(set(draws_on)) + 1))
        rates = _table(source, throughput, types)
        check = ColumnChecks(source, np.arange(len(rates)))
        n = len(rates)
        number = "a number >= 0"
        problem = cls(
            types,
            draws_on,
            per_accelerator.numbers("capacity", capacity, 0.0, LARGEST, number),
            per_type.numbers("price", price, 0.0, LARGEST, number),
            check.texts("id", np.arange(n) if id is None else id, required=True),
            rates,
            check.integers("gpus", gpus, 1, MAX_GANG),
            check.positive("weight", weight, LARGEST),
            check.positive("steps", steps, LARGEST),
            check.numbers("elapsed_s", elapsed_s, 0.0, LARGEST, number),
            check.numbers("isolated_s", isolated_s, 0.0, LARGEST, number),
            check.numbers("slo_s", slo_s, 0.0, np.inf, number),
            check.texts("entity", entity, required=False),
            pairs or Pairs.none(len(types)),
            source,
            {name: _of_jobs(source, name, each, n) for name, each in (job_data or {}).items()},
            {name: _numbers(source, name, each) for name, each in (data or {}).items()},
        )
        check.unique("id", problem.id)
        problem._check_pairs()
        return problem

    def _check_pairs(self) -> None:
        pairs, n = self.pairs, len(self)
        check = ColumnChecks(f"{self.source}: pairs", np.arange(len(pairs)))
        inside = (pairs.first >= 0) & (pairs.first < pairs.second) & (pairs.second < n)
        check.holds("first", pairs.first, inside, f"two different rows of 0 to {n - 1}, in order")
        equal = self.gpus[pairs.first] == self.gpus[pairs.second]
        check.holds("second", pairs.second, equal, "a job of the same gang size")
        for name in ("throughput_first", "throughput_second"):
            rates = getattr(pairs, name)
            if rates.shape != (len(pairs), len(self.gpu_types)):
                raise InputError(f"{self.source}: {name} has shape {rates.shape}")
            check.holds(name, rates, (np.isfinite(rates) & (rates >= 0)).all(axis=1), "rates >= 0")

    def with_pairs(self, pairs: Pairs) -> AllocationProblem:
        """The same problem with other pairs, checked."""
        problem = replace(self, pairs=pairs)
        problem._check_pairs()
        return problem

    @property
    def users(self) -> NDArray[np.int64]:
        """Number of each job's entity, counted from 0 in order of their first jobs; shape (n,)."""
        names = self.entity.tolist()
        number = {name: k for k, name in enumerate(dict.fromkeys(names))}
        if len(number) < 2:
            return np.zeros(len(names), dtype=np.int64)
        return np.array([number[name] for name in names], dtype=np.int64)

    @property
    def type_capacity(self) -> NDArray[np.float64]:
        """GPUs a type can draw on, shape (types,)."""
        gpus: NDArray[np.float64] = self.capacity[list(self.accelerators)]
        return gpus

    @property
    def placeable(self) -> NDArray[np.bool_]:
        """True where a gang can ever hold its GPUs on a type, shape (n, types)."""
        able: NDArray[np.bool_] = (self.throughput > 0) & (
            self.gpus[:, None] <= self.type_capacity[None, :]
        )
        return able

    def select(self, keep: NDArray[np.bool_]) -> AllocationProblem:
        """The jobs of a mask, with the pairs among them."""
        row = np.cumsum(keep) - 1
        kept = self.pairs.select(keep[self.pairs.first] & keep[self.pairs.second])
        pairs = replace(kept, first=row[kept.first], second=row[kept.second])
        shared = {
            "gpu_types",
            "accelerators",
            "capacity",
            "price",
            "pairs",
            "source",
            "data",
            "job_data",
        }
        columns: dict[str, Any] = {
            column.name: getattr(self, column.name)[keep]
            for column in fields(self)
            if column.name not in shared
        }
        of_jobs = {name: values[keep] for name, values in self.job_data.items()}
        return replace(self, **columns, pairs=pairs, job_data=of_jobs)

    def __len__(self) -> int:
        return len(self.id)

    def __repr__(self) -> str:
        return (
            f"AllocationProblem({len(self)} jobs, {len(self.pairs)} pairs, {len(self.gpu_types)} GPU types "
            f"from {cut(self.source, 60)})"
        )


def _table(source: str, throughput: ArrayLike, types: tuple[str, ...]) -> NDArray[np.float64]:
    try:
        rates = np.array(throughput, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: throughputs are no table of numbers: {error}") from error
    if rates.size == 0:
        return np.zeros((0, len(types)))
    if rates.ndim != 2 or rates.shape[1] != len(types):
        raise InputError(
            f"{source}: throughputs have shape {rates.shape}, expected one column for each of "
            f"{', '.join(types)}"
        )
    check = ColumnChecks(source, np.arange(len(rates)))
    for k, name in enumerate(types):
        column = rates[:, k]
        ok = np.isfinite(column) & (column >= 0)
        check.holds(f"throughput:{name}", column, ok, "a finite rate >= 0")
    return rates


def _of_jobs(source: str, name: str, values: ArrayLike, count: int) -> NDArray[np.float64]:
    numbers = _numbers(source, name, values)
    if not numbers.ndim:
        return np.full(count, float(numbers))
    if len(numbers) != count:
        raise InputError(
            f"{source}: data {name!r} of jobs have {len(numbers)} rows, expected {count}"
        )
    return numbers


def _numbers(source: str, name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: data {name!r} are no numbers: {error}") from error
    if np.isnan(numbers).any():
        raise InputError(f"{source}: data {name!r} have a value that is not a number (NaN)")
    return numbers
