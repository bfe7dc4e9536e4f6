"""Schedules of others as a table: a row for each piece of a run, with job, node, GPUs, start and end.

=============  ==========================================================  =================================
column         also called                                                 meaning
=============  ==========================================================  =================================
``job``        ``job_id``, ``jobid``, ``id``                               name of the job
``gpus``       ``num_gpus``, ``gpu_num``                                   GPUs held in this row
``start``      ``start_s``, ``start_time``                                 start [s], or a date
``end``        ``end_s``, ``end_time``                                     end [s], or a date
``node``       ``node_id``, ``host``, ``machine``                          optional: name of the node
``submit``     ``submit_s``, ``submit_time``, ``arrival``, ``arrival_s``   optional: submission
``gpu_ids``    ``devices``                                                 optional: numbers of the GPUs of the node
``user``, ``tenant`` (``vc``, ``account``), ``partition`` (``job_class``), ``limit_s``, ``allowed_types``
=============  ==========================================================  =================================

Rows of a job that begin together are one gang. Rows that are the same in all are one row repeated: who writes a row for
each GPU numbers them. How fast a job is on which GPU type a table of jobs says, with columns
``throughput:TYPE``, which is given beside this one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.recorded.assembly import (
    HoldingRows,
    LogRows,
    assembled,
    note_twice,
    whole_pieces,
)
from shadowprice.instances.recorded.record import ContradictionKind, RunRecord
from shadowprice.instances.workload import MAX_GANG
from shadowprice.instances.workload_files import read_table, split_header

ALIASES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "job_id", "jobid", "id"),
    "gpus": ("gpus", "num_gpus", "gpu_num"),
    "start": ("start", "start_s", "start_time"),
    "end": ("end", "end_s", "end_time"),
    "node": ("node", "node_id", "host", "machine"),
    "submit": ("submit", "submit_s", "submit_time", "arrival", "arrival_s"),
    "gpu_ids": ("gpu_ids", "devices"),
    "name": ("user",),
    "tenant": ("tenant", "vc", "account"),
    "job_class": ("partition", "job_class"),
    "limit_s": ("limit_s",),
    "allowed_types": ("allowed_types",),
}
NEEDED = ("job", "gpus", "start", "end")
_BETWEEN = re.compile(r"[\s,;|+]+")


def is_schedule_table(first_line: str) -> bool:
    """True if a header has a start under one of its names: a table that lacks another column is told so."""
    header = {name.lower() for name in split_header(first_line)}
    return bool(header & set(ALIASES["start"]))


def read_schedule_table(path: str | Path) -> RunRecord:
    """Record of a table.

    Raises
    ------
    InputError
        If a column is missing, or no row holds GPUs.
    """
    path = Path(path)
    table = read_table(path)
    by_lower = {name.lower(): name for name in table}
    columns = {
        ours: table[by_lower[name]]
        for ours, names in ALIASES.items()
        if (name := next((each for each in names if each in by_lower), None)) is not None
    }
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise InputError(
            f"{path}: column {missing[0]!r} is missing, expected {', '.join(NEEDED)}; found {', '.join(table)}"
        )
    log = LogRows(str(path), columns, columns["job"])
    gpus = ColumnChecks.floats(columns["gpus"])
    whole = (gpus >= 1) & (gpus <= MAX_GANG) & (gpus == np.floor(gpus))
    named = np.array([bool(each) for each in columns["job"].tolist()])
    kinds, odd = ContradictionKind, ~whole & (gpus != 0)
    log.say(kinds.UNREADABLE, ~named, "has no name of a job")
    text = columns["gpus"]
    log.say(kinds.UNREADABLE, odd, lambda k: f"gpus is {text[k]!r}, expected a whole number")
    log.say(kinds.NO_GPUS, gpus == 0, "holds no GPU")
    log.keep(whole & named)
    return _record(log, gpus[whole & named].astype(np.int64), path)


def _record(log: LogRows, gpus: NDArray[np.int64], path: Path) -> RunRecord:
    repeated = _repeated(log)
    log.say(ContradictionKind.REPEATED, repeated, "is the same as a row above")
    log.keep(~repeated)
    gpus = gpus[~repeated]
    dated, times = False, {}
    for name in ("submit", "start", "end"):
        if name not in log.columns:
            times[name] = np.full(len(gpus), np.nan)
            continue
        needed, expected = name != "submit", "seconds or a date"
        times[name], dates = log.times(name, needed=needed, expected=expected)
        dated |= dates and name == "start"
    pieces = whole_pieces(len(gpus), gpus)
    if "node" in log.columns:
        import pandas as pd

        node, names = pd.factorize(log.columns["node"])
        nowhere = log.columns["node"] == ""
        log.say(ContradictionKind.UNREADABLE, nowhere, "has no node, other rows do")
        pieces |= {"piece_node": node.astype(np.int64), "nodes": tuple(map(str, names))}
        if "gpu_ids" in log.columns:
            _numbered(log, times, pieces)
    of_rows: dict[str, NDArray[Any]] = {
        name: log.columns[name]
        for name in ("name", "tenant", "job_class", "allowed_types")
        if name in log.columns
    }
    if "limit_s" in log.columns:
        limits = ColumnChecks.floats(log.columns["limit_s"])
        of_rows["limit_s"] = np.where(limits > 0, limits, np.inf)
    runs = HoldingRows(
        times["submit"], times["start"], times["end"], gpus, of_rows=of_rows, **pieces
    )
    return assembled(log, runs, name=path.name, dated=dated)


def _repeated(log: LogRows) -> NDArray[np.bool_]:
    """True for rows that are the same as one above; on nodes that are not known they may be pieces of a gang."""
    import pandas as pd

    if "node" not in log.columns:
        return np.zeros(len(log.row), dtype=np.bool_)
    return np.asarray(pd.DataFrame(dict(log.columns)).duplicated(), dtype=np.bool_)


def _numbered(log: LogRows, times: Mapping[str, Any], pieces: Mapping[str, Any]) -> None:
    """Look for GPUs that two rows hold, and for numbers that are not as many as GPUs."""
    devices, holders, odd = [], [], np.zeros(len(log.row), dtype=np.bool_)
    for k, text in enumerate(log.columns["gpu_ids"].tolist()):
        parts = [each for each in _BETWEEN.split(text.strip("[]() ")) if each]
        if not parts:
            continue
        numbers = [int(each) for each in parts if each.isdecimal()]
        odd[k] = len(numbers) != len(parts) or len(set(numbers)) != pieces["piece_gpus"][k]
        devices += [(int(pieces["piece_node"][k]), each) for each in numbers]
        holders += [k] * len(numbers)
    text = log.columns["gpu_ids"]
    kind = ContradictionKind.UNREADABLE
    log.say(kind, odd, lambda k: f"gpu_ids is {text[k]!r}, expected the row's GPUs")
    note_twice(log, devices, holders, times["start"], times["end"], pieces["nodes"])
