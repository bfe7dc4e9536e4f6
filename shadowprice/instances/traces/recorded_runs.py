"""Runs that a log recorded: when each job ran, and on which nodes where the log tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief


@dataclass(frozen=True, repr=False)
class RecordedRuns(Brief):
    """Runs of the jobs of a workload as their log has them, one each.

    They are what the log says, unchecked: a run may begin before its job was submitted, or overlap others.

    Parameters
    ----------
    id : ndarray of str, shape (n,)
        Job of each run, as the workload names it.
    row : ndarray of int, shape (n,)
        Row of the file, for messages.
    start_s, end_s : ndarray of float, shape (n,)
        From time 0 of the workload [s], not rounded; NaN where the log has none.
    nodes : ndarray of tuple of str, shape (n,), optional
        Names of the nodes of each run, none twice, in the log's order; empty where a row has none, None
        where the format has no column for them.
    """

    id: NDArray[np.object_]
    row: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    nodes: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.id)

    def of_jobs(self, ids: NDArray[np.object_], earlier_s: float) -> RecordedRuns:
        """Runs of some of the jobs, by a clock whose time 0 is later by ``earlier_s`` [s]."""
        chosen = np.isin(self.id.astype(str), ids.astype(str))
        return replace(
            self,
            id=self.id[chosen],
            row=self.row[chosen],
            start_s=self.start_s[chosen] - earlier_s,
            end_s=self.end_s[chosen] - earlier_s,
            nodes=None if self.nodes is None else self.nodes[chosen],
        )


def tuples(values: list[tuple[Any, ...]]) -> NDArray[np.object_]:
    """Tuples as a column of objects, whatever their lengths."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
