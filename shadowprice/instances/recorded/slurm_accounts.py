"""A cluster's own accounts as a record: ``sacct --allusers --allocations --parsable2``, with starts, ends and nodes.

Read are JobID, State, Submit, Start, End and AllocTRES, and where they are there User, Account, Partition, NodeList,
AllocNodes, ElapsedRaw and TimelimitRaw. GPUs are ``gres/gpu=N``, or the sum of ``gres/gpu:TYPE=N``; a type that alone
is named is the one that the job may run on. A gang is spread evenly over its nodes, the first having one more where it
is no multiple: accounts do not tell. Steps (``123.batch``) repeat their jobs. Runs of one JobID are one job that was
requeued and needs the time of all its runs; components of a heterogeneous job (``123+0``) that begin together are one
gang.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.recorded.assembly import (
    HoldingRows,
    LogRows,
    Texts,
    assembled,
    whole_pieces,
)
from shadowprice.instances.recorded.record import NOWHERE, ContradictionKind, Mask, RunRecord
from shadowprice.instances.traces.slurm_fields import gpus_and_type, limit_s, node_names
from shadowprice.instances.workload_files import read_table

NEEDED = ("JobID", "State", "Submit", "Start", "End", "AllocTRES")
_CLOCK_S = 1.0
"""Difference between two ways to say how long a job ran, up to which they say the same [s]."""


def is_accounts(first_line: str) -> bool:
    """True if a header has a job, its submission and what it held, between bars."""
    return {"JobID", "Submit", "AllocTRES"} <= set(first_line.strip().split("|"))


def read_accounts(path: str | Path, zone: str | None = None) -> RunRecord:
    """Record of accounts.

    Parameters
    ----------
    zone : str, optional
        Zone of dates, which are the site's; without one a change of its clocks is not seen.

    Raises
    ------
    InputError
        If a field is missing, or no row is a run on GPUs.
    """
    path = Path(path)
    table = read_table(path, needed=NEEDED)
    log = LogRows(str(path), table, _jobs(table["JobID"]))
    _without_steps(log)
    names = ("Submit", "Start", "End")
    times = [log.times(name, needed=name == "Submit", zone=zone)[0] for name in names]
    held = _each(log.columns["AllocTRES"], gpus_and_type)
    gpus = held[0].astype(np.int64)
    ran = _look_at_rows(log, times, gpus)
    log.keep(ran)
    submit_s, start_s, end_s = (each[ran] for each in times)
    gpus, types = gpus[ran], held[1][ran]
    _look_at_runs(log)
    pieces = _pieces(log, gpus)
    of_rows = _columns(log, types)
    site = "the site's, without a zone: a change of its clocks is not seen"
    log.notes.append(f"dates are {site if zone is None else f'those of {zone}'}")
    log.notes.append("a job that was requeued needs the time of all its runs")
    runs = HoldingRows(submit_s, start_s, end_s, gpus, of_rows=of_rows, **pieces)
    return assembled(log, runs, name=path.name, dated=True)


def _without_steps(log: LogRows) -> None:
    steps = np.array(["." in each for each in log.columns["JobID"].tolist()], dtype=np.bool_)
    if steps.any():
        log.notes.append(f"{int(steps.sum()):,} rows are steps, which repeat their jobs")
        log.keep(~steps)
    if not len(log.row):
        raise InputError(
            f"{log.source}: all rows are steps of jobs, expected jobs (sacct --allocations)"
        )


def _look_at_rows(log: LogRows, times: list[NDArray[np.float64]], gpus: NDArray[np.int64]) -> Mask:
    """Note rows that are no runs, and those whose end is not known; True for those that held GPUs."""
    job, state = log.job, log.columns["State"]
    _, start_s, end_s = times
    status = np.array([each.partition(" ")[0] for each in state.tolist()], dtype=object)
    pending = np.array(["[" in each for each in job.tolist()], dtype=np.bool_)
    unstarted = np.isnan(start_s)
    idle = (status == "CANCELLED") & (start_s == end_s)
    odd = unstarted & ~np.isin(status, ("CANCELLED", "PENDING", "REQUEUED", "DEADLINE")) & ~pending
    never = (unstarted & ~odd | idle) & ~pending
    none = (gpus == 0) & ~never & ~pending
    repeated = _repeated(log)
    kinds = ContradictionKind
    log.say(kinds.ARRAY, pending, "tasks of an array that had not begun")
    log.say(
        kinds.NEVER_RAN,
        never,
        lambda k: (
            "cancelled while pending" if status[k] == "CANCELLED" else f"{status[k]}, never started"
        ),
    )
    log.say(kinds.UNREADABLE, odd, lambda k: f"Start is unknown, State is {state[k]}")
    log.say(kinds.NO_GPUS, none, "held no GPU")
    log.say(kinds.REPEATED, repeated, "is the same run as a row above")
    running = status == "RUNNING"
    open_end = np.isnan(end_s) & ~unstarted & ~pending
    ended = open_end & ~running
    log.say(kinds.STILL_RUNNING, open_end & running, "still ran when the accounts were written")
    log.say(kinds.UNKNOWN_END, ended, lambda k: f"End is unknown, State is {state[k]}")
    _look_at_clocks(log, start_s, end_s)
    return np.asarray(~(pending | never | (gpus == 0) | repeated))


def _repeated(log: LogRows) -> Mask:
    """True for rows that are the same run as one above."""
    import pandas as pd

    result = np.zeros(len(log.row), dtype=np.bool_)
    several = np.flatnonzero(pd.Series(log.columns["JobID"]).duplicated(keep=False))
    if len(several):
        same = ("JobID", "Submit", "Start", "End", "AllocTRES")
        frame = pd.DataFrame({name: log.columns[name][several] for name in same})
        result[several] = frame.duplicated()
    return result


def _look_at_runs(log: LogRows) -> None:
    """Note requeues, and components of heterogeneous jobs."""
    import pandas as pd

    full = log.columns["JobID"]
    times = np.zeros(len(full), dtype=np.int64)
    several = np.flatnonzero(pd.Series(full).duplicated(keep=False))
    times[several] = pd.Series(full[several]).groupby(full[several]).cumcount()
    kinds = ContradictionKind
    log.say(kinds.REQUEUED, times > 0, lambda k: f"run {times[k] + 1} of the job")
    parts = np.array(["+" in each for each in full.tolist()], dtype=np.bool_)
    log.say(
        kinds.HETEROGENEOUS,
        parts,
        lambda k: f"component {full[k]}: those that begin together are one gang",
    )


def _look_at_clocks(log: LogRows, start_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> None:
    """Note clocks that contradict the time that Slurm counted by itself."""
    if "ElapsedRaw" not in log.columns:
        return
    elapsed = ColumnChecks.floats(log.columns["ElapsedRaw"])
    apart = (end_s - start_s) - elapsed
    log.say(
        ContradictionKind.CLOCK,
        np.abs(apart) > _CLOCK_S,
        lambda k: (
            f"End - Start is {end_s[k] - start_s[k]:g} s, ElapsedRaw {elapsed[k]:g} s: {apart[k]:+g} s"
        ),
    )


def _jobs(full: Texts) -> Texts:
    """Names of jobs: components of a heterogeneous one are one job."""
    if "+" not in "".join(full.tolist()):
        return full
    return np.array([each.partition("+")[0] for each in full.tolist()], dtype=object)


def _each(values: Texts, read: Callable[[str], tuple[Any, ...]]) -> list[NDArray[Any]]:
    """Columns of what is read of texts, of which many are the same."""
    import pandas as pd

    of, texts = pd.factorize(values)
    columns = zip(*(read(each) for each in texts), strict=True)
    return [np.array(column)[of] for column in columns]


def _pieces(log: LogRows, gpus: NDArray[np.int64]) -> dict[str, Any]:
    """Pieces of all rows on their nodes."""
    if "NodeList" not in log.columns:
        return whole_pieces(len(gpus), gpus)
    import pandas as pd

    lists = log.columns["NodeList"]
    of, texts = pd.factorize(lists)
    names: dict[str, int] = {}
    hosts = [
        np.array([names.setdefault(each, len(names)) for each in node_names(text)], dtype=np.int64)
        for text in texts
    ]
    if not names:
        return whole_pieces(len(gpus), gpus)
    count = np.array([len(each) for each in hosts])[of]
    kinds = ContradictionKind
    log.say(
        kinds.UNREADABLE, count == 0, lambda k: f"NodeList is {lists[k]!r}, other rows have nodes"
    )
    if "AllocNodes" in log.columns:
        words = ColumnChecks.floats(log.columns["AllocNodes"])
        other = (words != count) & ~np.isnan(words) & (count > 0)
        log.say(
            kinds.UNREADABLE,
            other,
            lambda k: f"NodeList names {count[k]} nodes, AllocNodes is {words[k]:g}",
        )
    few = (count > gpus) & (count > 0)
    log.say(kinds.GANG, few, lambda k: f"{gpus[k]} GPUs on {count[k]} nodes")
    # A row without nodes is one piece nowhere.
    number = np.maximum(count, 1)
    row = np.repeat(np.arange(len(gpus)), number)
    within = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    node = np.full(len(row), NOWHERE)
    start = np.concatenate(([0], np.cumsum([len(each) for each in hosts])))[:-1]
    flat = np.concatenate(hosts)
    placed = count[row] > 0
    node[placed] = flat[start[of[row[placed]]] + within[placed]]
    each, more = np.divmod(gpus, number)
    held = each[row] + (within < more[row])
    uneven = int(((more > 0) & (count > 1)).sum())
    if uneven:
        log.notes.append(
            f"{uneven:,} gangs are no multiple of their nodes: the first nodes are taken to have one GPU more"
        )
    there = held > 0
    return {
        "piece_row": row[there],
        "piece_node": node[there],
        "piece_gpus": held[there],
        "nodes": tuple(names),
    }


def _columns(log: LogRows, types: Texts) -> dict[str, NDArray[Any]]:
    names = {"tenant": "Account", "name": "User", "job_class": "Partition"}
    result: dict[str, NDArray[Any]] = {
        ours: log.columns[theirs] for ours, theirs in names.items() if theirs in log.columns
    }
    if (types != "").any():
        result["allowed_types"] = types.astype(object)
    if "TimelimitRaw" in log.columns:
        limit = ColumnChecks.floats(log.columns["TimelimitRaw"]) * 60.0
        result["limit_s"] = np.where(limit > 0, limit, np.inf)
    elif "Timelimit" in log.columns:
        (limit,) = _each(log.columns["Timelimit"], lambda text: (limit_s(text),))
        result["limit_s"] = limit
    return result
