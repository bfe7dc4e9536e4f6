"""Assembly of a record from rows of a log: jobs by name, pieces by node, and what is wrong with a row by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.grid import to_grid
from shadowprice.instances.recorded.record import (
    NOWHERE,
    ContradictionKind,
    Contradictions,
    Mask,
    RunRecord,
)
from shadowprice.instances.traces.clocks import dates_s

Seconds = NDArray[np.float64]
Texts = NDArray[np.object_]
NO_TIME = frozenset(("", "Unknown", "None", "unknown", "none", "null", "NaT"))
"""Texts that stand for a time that there is none of."""
_LOOKED_AT = 1000


@dataclass
class LogRows:
    """Rows of a log that are runs, or would be.

    Parameters
    ----------
    source : str
    columns : mapping of str to ndarray
        Columns of text by the names of the file.
    job : ndarray of str
        Name of the job of each row.
    """

    source: str
    columns: Mapping[str, Texts]
    job: Texts
    noticed: list[Contradictions] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    row: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.row = np.arange(1, len(next(iter(self.columns.values()))) + 1)

    def keep(self, rows: Mask) -> None:
        """Go on with some rows; their numbers stay."""
        self.columns = {name: column[rows] for name, column in self.columns.items()}
        self.job, self.row = self.job[rows], self.row[rows]

    def say(self, kind: ContradictionKind, which: Mask, detail: str | Callable[[int], str]) -> None:
        """Note rows of a kind.

        Parameters
        ----------
        detail : str or callable
            What disagrees, or what tells it of a position among the rows.
        """
        places = np.flatnonzero(which)
        if len(places):
            texts = [detail if isinstance(detail, str) else detail(k) for k in places.tolist()]
            self.noticed.append(Contradictions(kind, self.row[places], self.job[places], texts))

    def times(
        self, name: str, *, needed: bool, zone: str | None = None, expected: str = "a date"
    ) -> tuple[Seconds, bool]:
        """Times of a column [s] as by :func:`times_s`, and whether they are dates; texts that are none are noted.

        Parameters
        ----------
        needed : bool
            Whether a text that stands for no time is noted as well.
        """
        text = self.columns[name]
        values, odd, dated = times_s(text, zone)
        if needed:
            odd |= np.isnan(values)
        kind = ContradictionKind.UNREADABLE
        self.say(kind, odd, lambda k: f"{name} is {text[k]!r}, expected {expected}")
        return values, dated


def times_s(values: Texts, zone: str | None = None) -> tuple[Seconds, Mask, bool]:
    """Times of a column [s]: numbers, or dates counted from 1970.

    Returns
    -------
    ndarray, ndarray of bool, bool
        The times, NaN where there is none; where a text is no time and does not stand for none; whether they are dates.
    """
    known = np.array([each not in NO_TIME for each in values.tolist()], dtype=np.bool_)
    # Which of the two a column has is known from some of it: of a million dates none is tried as a number.
    some = values[known][:: max(int(known.sum()) // _LOOKED_AT, 1)]
    dated = int(np.isfinite(ColumnChecks.floats(some)).sum()) < len(some) / 2
    texts = np.where(known, values, "" if dated else "nan")
    numbers = dates_s(texts, zone=zone) if dated else ColumnChecks.floats(texts)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return numbers, known & np.isnan(numbers), dated


@dataclass(frozen=True)
class HoldingRows:
    """Columns of rows that hold GPUs.

    Parameters
    ----------
    submit_s, start_s, end_s : ndarray
        NaN where unknown [s].
    gpus : ndarray of int
        GPUs of each row, all its nodes together.
    piece_row, piece_node, piece_gpus : ndarray of int
        Pieces of rows on nodes: position of the row, of the node among ``nodes``, and GPUs there.
    nodes : tuple of str
    of_rows : mapping of str to ndarray
        Further columns of the workload, a value a row; those of a job's first row count.
    """

    submit_s: Seconds
    start_s: Seconds
    end_s: Seconds
    gpus: NDArray[np.int64]
    piece_row: NDArray[np.int64]
    piece_node: NDArray[np.int64]
    piece_gpus: NDArray[np.int64]
    nodes: tuple[str, ...]
    of_rows: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def assembled(log: LogRows, runs: HoldingRows, *, name: str, dated: bool) -> RunRecord:
    """The record of some rows: times from the first submission where they are dates.

    A job is the rows of one name. It was submitted when the first of them says; its gang is the largest that it held.
    What cannot be answered without submissions, nodes or limits is said.

    Raises
    ------
    InputError
        If no row holds GPUs.
    """
    import pandas as pd

    if not len(log.job):
        words = "; ".join(f"{each.kind}: {len(each)} rows" for each in log.noticed)
        raise InputError(f"{log.source}: no row is a run on GPUs{f' ({words})' if words else ''}")
    job, names = pd.factorize(log.job)
    first = np.unique(job, return_index=True)[1]
    moments = np.concatenate((runs.submit_s, runs.start_s))
    moments = moments[np.isfinite(moments)]
    known = runs.submit_s[np.isfinite(runs.submit_s)]
    origin_s = float((known if len(known) else moments).min()) if dated and len(moments) else 0.0
    submit_s = np.full(len(names), np.inf)
    np.fmin.at(submit_s, job, runs.submit_s)
    submit_s = np.where(np.isfinite(submit_s), to_grid(submit_s - origin_s), np.nan)
    start_s, end_s = (to_grid(each - origin_s) for each in (runs.start_s, runs.end_s))
    of = runs.piece_row
    record = RunRecord(
        source=log.source,
        name=name,
        id=np.asarray(names, dtype=object),
        submit_s=submit_s,
        gang=_gangs(job, runs.start_s, runs.gpus, len(names)),
        job=job[of].astype(np.int64),
        node=runs.piece_node,
        gpus=runs.piece_gpus,
        start_s=start_s[of],
        end_s=end_s[of],
        row=log.row[of],
        nodes=runs.nodes,
        of_jobs={key: column[first] for key, column in runs.of_rows.items()},
        contradictions=tuple(log.noticed),
        notes=tuple(log.notes),
        origin_s=origin_s if dated else None,
    )
    lacks = {
        NO_SUBMISSIONS: not len(known),
        NO_NODES: not record.places,
        NO_LIMITS: "limit_s" not in runs.of_rows,
    }
    return record.lacking(*(each for each, true in lacks.items() if true))


NO_SUBMISSIONS = (
    "when jobs were submitted, and so how long they waited: job completion times have no bound here"
)
NO_NODES = "on which nodes jobs ran, and so what fragmentation cost: capacity is checked for the cluster as a whole"
NO_LIMITS = "which run times users asked for: EASY backfills by the times that jobs took"


def _gangs(
    job: NDArray[np.int64], start_s: Seconds, gpus: NDArray[np.int64], jobs: int
) -> NDArray[np.int64]:
    """Largest number of GPUs that each job held in rows that begin together, shape (jobs,)."""
    order = np.lexsort((start_s, job))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (job[order][1:] != job[order][:-1]) | (start_s[order][1:] != start_s[order][:-1])
    places = np.flatnonzero(new)
    held = np.add.reduceat(gpus[order], places)
    most = np.zeros(jobs, dtype=np.int64)
    np.maximum.at(most, job[order][places], held)
    return most


def whole_pieces(rows: int, gpus: NDArray[np.int64]) -> dict[str, Any]:
    """Pieces of rows whose nodes are not known: one a row, nowhere."""
    return {
        "piece_row": np.arange(rows),
        "piece_node": np.full(rows, NOWHERE),
        "piece_gpus": gpus,
        "nodes": (),
    }


def note_twice(
    log: LogRows,
    device: Sequence[tuple[int, int]],
    piece: Sequence[int],
    start_s: Seconds,
    end_s: Seconds,
    nodes: Sequence[str],
) -> None:
    """Note rows that hold a GPU which another row holds: of GPUs that are known by number.

    Parameters
    ----------
    device : sequence of (int, int)
        Node and number of each GPU held, with ``piece`` the position of the row that holds it.
    start_s, end_s : ndarray
        Of the rows [s].
    """
    place = np.array(piece, dtype=np.int64)
    where = np.array(device, dtype=np.int64).reshape(len(piece), 2)
    good = start_s[place] < end_s[place]
    place, where = place[good], where[good]
    order = np.lexsort((start_s[place], where[:, 1], where[:, 0]))
    rows: list[int] = []
    texts: list[str] = []
    until: dict[tuple[int, int], tuple[float, int]] = {}
    for k in order.tolist():
        key, mine = (int(where[k, 0]), int(where[k, 1])), int(place[k])
        end, holder = until.get(key, (-np.inf, mine))
        if start_s[mine] < end:
            rows.append(mine)
            texts.append(
                f"GPU {key[1]} of node {nodes[key[0]]}, which {log.job[holder]} holds until then"
            )
        if end_s[mine] > end:
            until[key] = (float(end_s[mine]), mine)
    if rows:
        kind = ContradictionKind.TWICE
        log.noticed.append(Contradictions(kind, log.row[rows], log.job[rows], texts))
