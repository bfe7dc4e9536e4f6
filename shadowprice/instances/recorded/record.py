"""Records: jobs, their pieces on nodes with starts and ends, and what contradicts itself in them.

A record is not a schedule yet. It may lack nodes, contradict itself, or the cluster; what is wrong is kept row by row,
so that none of it hides another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from shadowprice.instances.cluster import Cluster

Mask = NDArray[np.bool_]
NOWHERE = -1
"""Node of a piece whose node the record does not tell."""


class Remedy(StrEnum):
    """Ways to go on with what was noticed."""

    SET_ASIDE = "job set aside"
    """The job is in no number of the verdict; its GPUs count as idle, which only makes a bound smaller."""
    LEFT_OUT = "row left out"
    """The row is about no run; the job is there if other rows are."""
    CUT = "run cut"
    JOINED = "rows joined"
    UNCHANGED = "kept"


class ContradictionKind(StrEnum):
    """Kinds of contradictions, and of rows that are no runs."""

    UNREADABLE = "unreadable"
    NEVER_RAN = "never ran"
    NO_GPUS = "no GPUs"
    STILL_RUNNING = "still running"
    UNKNOWN_END = "unknown end"
    BACKWARDS = "ends before it starts"
    NO_TIME = "no time"
    NEGATIVE = "negative time"
    EARLY = "before submission"
    CLOCK = "clock jump"
    REPEATED = "repeated row"
    REQUEUED = "requeued"
    HETEROGENEOUS = "heterogeneous job"
    ARRAY = "array not begun"
    SUBMISSIONS = "two submissions"
    UNKNOWN_NODE = "no such node"
    WIDE = "wider than its node"
    TYPE = "another GPU type"
    TWICE = "GPU held twice"
    CAPACITY = "over capacity"
    OVERLAP = "two runs at once"
    GANG = "gang not whole"
    AFTER_END = "after its end"
    BEYOND_ROWS = "end beyond its rows"
    WORK = "other work"
    NO_SUCH_JOB = "no such job"
    RULE = "breaks a rule"


REMEDIES: Mapping[ContradictionKind, Remedy] = {
    **dict.fromkeys(ContradictionKind, Remedy.SET_ASIDE),
    ContradictionKind.NEVER_RAN: Remedy.LEFT_OUT,
    ContradictionKind.NO_GPUS: Remedy.LEFT_OUT,
    ContradictionKind.ARRAY: Remedy.LEFT_OUT,
    ContradictionKind.REPEATED: Remedy.LEFT_OUT,
    ContradictionKind.NO_SUCH_JOB: Remedy.LEFT_OUT,
    ContradictionKind.AFTER_END: Remedy.CUT,
    ContradictionKind.BEYOND_ROWS: Remedy.UNCHANGED,
    ContradictionKind.CLOCK: Remedy.UNCHANGED,
    ContradictionKind.REQUEUED: Remedy.JOINED,
    ContradictionKind.HETEROGENEOUS: Remedy.JOINED,
}
"""Remedy of each kind: what is not named sets its job aside."""


@dataclass(frozen=True, eq=False, repr=False)
class Contradictions(Brief):
    """Rows of one kind.

    Parameters
    ----------
    kind : ContradictionKind
    row : ndarray of int
        Numbers of the rows in the record, from 1.
    job : ndarray of str
        Names of their jobs.
    detail : sequence of str
        Numbers that disagree, a text each.
    """

    kind: ContradictionKind
    row: NDArray[np.int64]
    job: NDArray[np.object_]
    detail: Sequence[str]

    def __post_init__(self) -> None:
        if not len(self.row) == len(self.job) == len(self.detail):
            raise InputError(f"{self.kind}: expected a row, a job and a detail each")

    def __len__(self) -> int:
        return len(self.row)

    @property
    def remedy(self) -> Remedy:
        """Remedy of the kind."""
        return REMEDIES[self.kind]


def table(result: Sequence[Contradictions]) -> pd.DataFrame:
    """All rows of all kinds, in order of their rows: row, job, kind, remedy, detail."""
    import pandas as pd

    columns = ("row", "job", "kind", "remedy", "detail")
    frames = [
        pd.DataFrame(
            {
                "row": each.row,
                "job": each.job,
                "kind": str(each.kind),
                "remedy": str(each.remedy),
                "detail": list(each.detail),
            }
        )
        for each in result
        if len(each)
    ]
    if not frames:
        return pd.DataFrame({name: [] for name in columns})
    return pd.concat(frames, ignore_index=True).sort_values("row", kind="stable", ignore_index=True)


@dataclass(frozen=True, eq=False, repr=False)
class RunRecord(Brief):
    """Jobs, and pieces of runs on nodes.

    Parameters
    ----------
    source : str
        File that it was read from.
    name : str
        Scheduler or run that it is of, as the file calls it.
    id : ndarray of str, shape (n,)
        Names of the jobs, each once.
    submit_s : ndarray, shape (n,)
        Submissions [s]; NaN where they are not known.
    gang : ndarray of int, shape (n,)
        GPUs of every job.
    of_jobs : mapping of str to ndarray, shape (n,)
        Further columns of the workload: tenant, name, job_class, limit_s, allowed_types.
    job, node, gpus : ndarray of int, shape (R,)
        Job of each piece, position among the names of nodes or :data:`NOWHERE`, and GPUs there.
    start_s, end_s : ndarray, shape (R,)
        Times [s], on the clock of the submissions.
    row : ndarray of int, shape (R,)
        Number of the row of the file, from 1.
    nodes : tuple of str
        Names of nodes.
    contradictions : tuple of Contradictions
        Those that were noticed while it was read.
    notes : tuple of str
        What was taken to be so.
    origin_s : float or None
        Time 0 in seconds since 1970 by the clock of the log; None where it is not known.
    cluster : Cluster or None
        Where it ran, if the file says so.
    stated : mapping of str to float
        Metrics that the file itself states: ``makespan_s``, ``avg_jct_s``, ``utilization``.
    unanswered : tuple of str
        Questions that the record cannot answer.
    """

    source: str
    name: str
    id: NDArray[np.object_]
    submit_s: NDArray[np.float64]
    gang: NDArray[np.int64]
    job: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    row: NDArray[np.int64]
    nodes: tuple[str, ...] = ()
    of_jobs: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    contradictions: tuple[Contradictions, ...] = ()
    notes: tuple[str, ...] = ()
    origin_s: float | None = None
    cluster: Cluster | None = None
    stated: Mapping[str, float] = field(default_factory=dict)
    unanswered: tuple[str, ...] = ()

    @cached_property
    def places(self) -> bool:
        """True if the record says on which nodes jobs ran."""
        return bool((self.node != NOWHERE).any())

    def pieces(self, keep: Mask) -> RunRecord:
        """The record with some of its pieces."""
        columns = ("job", "node", "gpus", "start_s", "end_s", "row")
        chosen: dict[str, Any] = {name: getattr(self, name)[keep] for name in columns}
        return replace(self, **chosen)

    def select(self, keep: Mask) -> RunRecord:
        """The record of some of its jobs."""
        position = np.cumsum(keep) - 1
        some = self.pieces(keep[self.job])
        return replace(
            some,
            id=self.id[keep],
            submit_s=self.submit_s[keep],
            gang=self.gang[keep],
            of_jobs={name: column[keep] for name, column in self.of_jobs.items()},
            job=position[some.job],
        )

    def wrong(
        self, kind: ContradictionKind, pieces: Mask | NDArray[np.int64], detail: Sequence[str]
    ) -> Contradictions:
        """Contradictions of some pieces: rows and jobs of theirs."""
        return Contradictions(kind, self.row[pieces], self.id[self.job[pieces]], detail)

    def with_more(self, *more: Contradictions) -> RunRecord:
        """The record with what else was noticed in it; kinds without rows are left out."""
        return replace(
            self, contradictions=(*self.contradictions, *(each for each in more if len(each)))
        )

    def lacking(self, *more: str) -> RunRecord:
        """The record with more questions that it cannot answer."""
        return replace(self, unanswered=(*self.unanswered, *more))
