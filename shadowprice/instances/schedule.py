"""Schedules: who ran where, when. Plain columns, produced by the engine and checked by proofs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shadowprice.errors import InputError


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows (job, node, gpus, start, end, overhead).

    A gang that spans nodes has one row for each, with equal times. Nothing here has been
    checked: :func:`shadowprice.proofs.certificate.verify` does that.

    Parameters
    ----------
    job : ndarray of int
        Row of the job in the workload.
    node : ndarray of int
        Position of the node in the cluster.
    gpus : ndarray of int
        GPUs held there.
    start_s, end_s : ndarray
        The run holds its GPUs in [start, end) [s].
    overhead_s : ndarray
        Part of the run without progress, at its beginning [s].
    """

    job: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    overhead_s: NDArray[np.float64]

    def __post_init__(self) -> None:
        for column in fields(self):
            values = getattr(self, column.name)
            if values.shape != self.job.shape:
                raise InputError(
                    f"schedule: column {column.name!r} has {len(values)} rows, expected {len(self.job)}"
                )
            values.flags.writeable = False

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, source: str = "schedule") -> Schedule:
        """Inverse of :meth:`to_frame`."""
        columns = {}
        for column in fields(cls):
            if column.name not in frame:
                raise InputError(f"{source}: column {column.name!r} is missing")
            kind = np.float64 if column.name.endswith("_s") else np.int64
            try:
                columns[column.name] = frame[column.name].to_numpy(dtype=kind).copy()
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"{source}: column {column.name!r} is not numeric: {error}"
                ) from error
        return cls(**columns)

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        return pd.DataFrame({column.name: getattr(self, column.name) for column in fields(self)})

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """One row index for each uninterrupted run of a gang, ordered by job and start."""
        order = np.lexsort((self.start_s, self.job))
        job, start = self.job[order], self.start_s[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (job[1:] != job[:-1]) | (start[1:] != start[:-1])
        return order[first]

    def __len__(self) -> int:
        return len(self.job)

    def __repr__(self) -> str:
        return f"Schedule({len(self)} rows, {len(self.runs)} runs)"
