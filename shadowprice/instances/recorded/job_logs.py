"""Public logs as records: Helios and Acme, a row a run without nodes, and Philly with attempts, nodes and GPUs.

Formats are those of :mod:`shadowprice.instances.traces`, whose importers take run times of them and no starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from shadowprice.instances.traces.philly_log import read_jobs
from shadowprice.instances.workload_files import read_table, split_header

NEEDED = ("job_id", "gpu_num", "state", "submit_time", "start_time", "end_time")
_COLUMNS = {"vc": "tenant", "user": "name", "type": "job_class"}
_PHILLY_ZONE = "America/Los_Angeles"

_Held = Mapping[str, Sequence[int]]
"""Numbers of GPUs by machine."""


def is_job_log(first_line: str) -> bool:
    """True if a header has the columns that Helios' and Acme's logs have in common."""
    return set(NEEDED) <= set(split_header(first_line))


def read_job_log(path: str | Path) -> RunRecord:
    """Record of a log of Helios or Acme.

    Raises
    ------
    InputError
        If no row is a run on GPUs.
    """
    path = Path(path)
    table = read_table(path)
    log = LogRows(str(path), table, table["job_id"])
    state = log.columns["state"]
    kinds = ContradictionKind
    submit_s, _ = log.times("submit_time", needed=True)
    start_s, _ = log.times("start_time", needed=False)
    end_s, _ = log.times("end_time", needed=False)
    gpus = ColumnChecks.floats(log.columns["gpu_num"])
    whole = (gpus >= 0) & (gpus == np.floor(gpus))
    text = log.columns["gpu_num"]
    log.say(kinds.UNREADABLE, ~whole, lambda k: f"gpu_num is {text[k]!r}, expected whole GPUs")
    unstarted = np.isnan(start_s)
    open_end = np.isnan(end_s) & ~unstarted
    running = np.isin(state, ("RUNNING", "SUSPENDED"))
    log.say(kinds.NO_GPUS, gpus == 0, "held no GPU")
    log.say(kinds.NEVER_RAN, unstarted, lambda k: f"{state[k]}, never started")
    log.say(kinds.STILL_RUNNING, open_end & running, "still ran when the log ended")
    ended = open_end & ~running
    log.say(kinds.UNKNOWN_END, ended, lambda k: f"end is unknown, state is {state[k]}")
    ran = whole & (gpus > 0) & ~unstarted
    log.keep(ran)
    held = gpus[ran].astype(np.int64)
    of_rows: dict[str, NDArray[Any]] = {
        ours: log.columns[theirs] for theirs, ours in _COLUMNS.items() if theirs in log.columns
    }
    runs = HoldingRows(
        submit_s[ran],
        start_s[ran],
        end_s[ran],
        held,
        of_rows=of_rows,
        **whole_pieces(len(held), held),
    )
    return assembled(log, runs, name=path.name, dated=True)


def read_philly_log(path: str | Path) -> RunRecord:
    """Record of ``cluster_job_log``: attempts as runs, on the machines and GPUs that it names.

    Raises
    ------
    InputError
        If the file is no list of jobs, or no attempt held GPUs.
    """
    path = Path(path)
    raw = read_jobs(path)
    rows = [(number, job, each) for number, job in enumerate(raw, 1) for each in job["attempts"]]
    if not rows:
        raise InputError(f"{path}: no job has an attempt")
    try:
        held = [_held(each) for _, _, each in rows]
    except (KeyError, ValueError):
        raise InputError(
            f"{path}: expected attempts whose detail is a list of objects with ip, and gpus named as gpu0"
        ) from None
    times = ("submitted_time", "start_time", "end_time")
    words = {name: [str(job[name]) for _, job, _ in rows] for name in ("jobid", "vc", "user")}
    words[times[0]] = [job[times[0]] for _, job, _ in rows]
    words |= {name: [each[name] for _, _, each in rows] for name in times[1:]}
    columns = {
        name: np.array(["" if each is None else str(each) for each in values], dtype=object)
        for name, values in words.items()
    }
    log = LogRows(str(path), columns, columns["jobid"])
    log.row = np.array([number for number, _, _ in rows], dtype=np.int64)
    kinds = ContradictionKind
    never = sorted({str(each["jobid"]) for each in raw if not each["attempts"]})
    if never:
        log.notes.append(f"{len(never):,} jobs have no attempt")
    log.notes.append(
        "times are taken as Pacific, whose clocks change; rows are numbers of jobs in the file"
    )
    submit_s, start_s, end_s = (
        log.times(name, needed=False, zone=_PHILLY_ZONE)[0] for name in times
    )
    total = np.array([sum(map(len, each.values())) for each in held], dtype=np.int64)
    unstarted = np.isnan(start_s)
    log.say(kinds.NO_GPUS, total == 0, "the attempt held no GPU")
    log.say(kinds.NEVER_RAN, unstarted & (total > 0), "the attempt never started")
    log.say(kinds.STILL_RUNNING, np.isnan(end_s) & ~unstarted, "still ran when the log ended")
    _note_twice(log, held, start_s, end_s)
    ran = (total > 0) & ~unstarted
    log.keep(ran)
    runs = HoldingRows(
        submit_s[ran],
        start_s[ran],
        end_s[ran],
        total[ran],
        of_rows={"tenant": log.columns["vc"], "name": log.columns["user"]},
        **_machines([each for each, true in zip(held, ran.tolist(), strict=True) if true]),
    )
    log.notes.append("a job needs the time of all its attempts")
    return assembled(log, runs, name=path.name, dated=True)


def _held(attempt: Mapping[str, Any]) -> _Held:
    """Numbers of the GPUs that an attempt held, by machine."""
    held: dict[str, list[int]] = {}
    for part in attempt["detail"]:
        held.setdefault(str(part["ip"]), []).extend(
            int(str(name).removeprefix("gpu")) for name in part["gpus"]
        )
    return held


def _machines(held: Sequence[_Held]) -> dict[str, Any]:
    names: dict[str, int] = {}
    rows, nodes, counts = [], [], []
    for k, each in enumerate(held):
        for name, gpus in each.items():
            rows.append(k)
            nodes.append(names.setdefault(name, len(names)))
            counts.append(len(gpus))
    return {
        "piece_row": np.array(rows, dtype=np.int64),
        "piece_node": np.array(nodes, dtype=np.int64),
        "piece_gpus": np.array(counts, dtype=np.int64),
        "nodes": tuple(names),
    }


def _note_twice(
    log: LogRows, held: Sequence[_Held], start_s: NDArray[np.float64], end_s: NDArray[np.float64]
) -> None:
    names: dict[str, int] = {}
    devices, holders = [], []
    for k, each in enumerate(held):
        for name, gpus in each.items():
            devices += [(names.setdefault(name, len(names)), gpu) for gpu in gpus]
            holders += [k] * len(gpus)
    note_twice(log, devices, holders, start_s, end_s, list(names))
