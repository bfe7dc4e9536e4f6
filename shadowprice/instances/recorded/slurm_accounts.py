"""A cluster's own accounts as a record: ``sacct --allusers --allocations --parsable2``, with starts, ends and nodes.

Read are JobID, State, Submit, Start, End and AllocTRES, and where they are there User, Account, Partition, NodeList,
AllocNodes, ElapsedRaw and TimelimitRaw. GPUs are ``gres/gpu=N``, or the sum of ``gres/gpu:TYPE=N``; a type that alone
is named is the one that the job may run on. A gang is spread evenly over its nodes, the first having one more where it
is no multiple: accounts do not tell. Steps (``123.batch``) repeat their jobs. Runs of one JobID are one job that was
requeued and needs the time of all its runs; components of a heterogeneous job (``123+0``) that begin together are one
gang.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.recorded.assembly import (
    NO_LIMITS,
    NO_NODES,
    HoldingRows,
    LogRows,
    Texts,
    assembled,
    times_s,
    whole_pieces,
)
from shadowprice.instances.recorded.record import NOWHERE, ContradictionKind, Mask, RunRecord
from shadowprice.instances.workload_files import read_table

NEEDED = ("JobID", "State", "Submit", "Start", "End", "AllocTRES")
_NO_NODES = frozenset(("", "None assigned", "(null)", "None", "Unknown"))
_CLOCK_S = 1.0
"""Difference between two ways to say how long a job ran, up to which they say the same [s]."""

_TOTAL = re.compile(r"(?:^|,)gres/gpu=(\d+)(?=,|$)")
_TYPED = re.compile(r"(?:^|,)gres/gpu:([^=,]+)=(\d+)(?=,|$)")
_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_HOSTS = re.compile(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)")
_MOST_HOSTS = 100_000


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
    table = read_table(path)
    missing = [name for name in NEEDED if name not in table]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing, found {', '.join(table)}")
    log = LogRows(str(path), table)
    _without_steps(log)
    times, dated = _times(log, zone)
    held = _each(log.columns["AllocTRES"], _gpus)
    gpus = held[0].astype(np.int64)
    ran = _look_at_rows(log, times, gpus)
    log.keep(ran)
    submit_s, start_s, end_s = (each[ran] for each in times)
    gpus, types = gpus[ran], held[1][ran]
    _look_at_runs(log)
    pieces = _pieces(log, gpus)
    job = _jobs(log)
    of_rows = _columns(log, types)
    site = "the site's, without a zone: a change of its clocks is not seen"
    log.notes.append(f"dates are {site if zone is None else f'those of {zone}'}")
    log.notes.append("a job that was requeued needs the time of all its runs")
    runs = HoldingRows(job, submit_s, start_s, end_s, gpus, of_rows=of_rows, **pieces)
    record = assembled(log, runs, name=path.name, dated=dated)
    lacks = {NO_NODES: not record.places, NO_LIMITS: "limit_s" not in of_rows}
    return record.lacking(*(each for each, true in lacks.items() if true))


def _without_steps(log: LogRows) -> None:
    steps = np.array(["." in each for each in log.columns["JobID"].tolist()], dtype=np.bool_)
    if steps.any():
        log.notes.append(f"{int(steps.sum()):,} rows are steps, which repeat their jobs")
        log.keep(~steps)
    if not len(log.row):
        raise InputError(
            f"{log.source}: all rows are steps of jobs, expected jobs (sacct --allocations)"
        )


def _times(log: LogRows, zone: str | None) -> tuple[list[NDArray[np.float64]], bool]:
    """Submissions, starts and ends [s], and whether they are since 1970; texts that are none are noted."""
    result, job = [], _jobs(log)
    for name in ("Submit", "Start", "End"):
        values, odd, _ = times_s(log.columns[name], zone)
        if name == "Submit":
            odd |= np.isnan(values)
        text = log.columns[name]
        log.say(ContradictionKind.UNREADABLE, odd, job, _no_time(name, text))
        result.append(values)
    return result, True


def _no_time(name: str, text: Texts) -> Callable[[int], str]:
    return lambda k: f"{name} is {text[k]!r}, expected a date"


def _look_at_rows(log: LogRows, times: list[NDArray[np.float64]], gpus: NDArray[np.int64]) -> Mask:
    """Note rows that are no runs, and those whose end is not known; True for those that held GPUs."""
    job, state = _jobs(log), log.columns["State"]
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
    log.say(kinds.ARRAY, pending, job, "tasks of an array that had not begun")
    log.say(
        kinds.NEVER_RAN,
        never,
        job,
        lambda k: (
            "cancelled while pending" if status[k] == "CANCELLED" else f"{status[k]}, never started"
        ),
    )
    log.say(kinds.UNREADABLE, odd, job, lambda k: f"Start is unknown, State is {state[k]}")
    log.say(kinds.NO_GPUS, none, job, "held no GPU")
    log.say(kinds.REPEATED, repeated, job, "is the same run as a row above")
    running = status == "RUNNING"
    open_end = np.isnan(end_s) & ~unstarted & ~pending
    log.say(
        kinds.STILL_RUNNING, open_end & running, job, "still ran when the accounts were written"
    )
    log.say(
        kinds.UNKNOWN_END,
        open_end & ~running,
        job,
        lambda k: f"End is unknown, State is {state[k]}",
    )
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

    job, full = _jobs(log), log.columns["JobID"]
    times = np.zeros(len(full), dtype=np.int64)
    several = np.flatnonzero(pd.Series(full).duplicated(keep=False))
    times[several] = pd.Series(full[several]).groupby(full[several]).cumcount()
    kinds = ContradictionKind
    log.say(kinds.REQUEUED, times > 0, job, lambda k: f"run {times[k] + 1} of the job")
    parts = np.array(["+" in each for each in full.tolist()], dtype=np.bool_)
    log.say(
        kinds.HETEROGENEOUS,
        parts,
        job,
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
        _jobs(log),
        lambda k: (
            f"End - Start is {end_s[k] - start_s[k]:g} s, ElapsedRaw {elapsed[k]:g} s: {apart[k]:+g} s"
        ),
    )


def _jobs(log: LogRows) -> Texts:
    """Names of jobs: components of a heterogeneous one are one job."""
    full = log.columns["JobID"]
    if "+" not in "".join(full.tolist()):
        return full
    return np.array([each.partition("+")[0] for each in full.tolist()], dtype=object)


def _each(values: Texts, read: Callable[[str], tuple[Any, ...]]) -> list[NDArray[Any]]:
    """Columns of what is read of texts, of which many are the same."""
    import pandas as pd

    of, texts = pd.factorize(values)
    columns = zip(*(read(each) for each in texts), strict=True)
    return [np.array(column)[of] for column in columns]


def _gpus(resources: str) -> tuple[int, str]:
    """GPUs, and their type if all are of one that is named."""
    typed = _TYPED.findall(resources)
    total = _TOTAL.search(resources)
    count = int(total.group(1)) if total else sum(int(each) for _, each in typed)
    known = {name for name, _ in typed}
    all_named = sum(int(each) for _, each in typed) == count
    return count, known.pop() if len(known) == 1 and all_named else ""


def _pieces(log: LogRows, gpus: NDArray[np.int64]) -> dict[str, Any]:
    """Pieces of all rows on their nodes."""
    if "NodeList" not in log.columns:
        return whole_pieces(len(gpus), gpus)
    import pandas as pd

    lists = log.columns["NodeList"]
    of, texts = pd.factorize(lists)
    names: dict[str, int] = {}
    hosts = [
        np.array([names.setdefault(each, len(names)) for each in expanded(text)], dtype=np.int64)
        for text in texts
    ]
    if not names:
        return whole_pieces(len(gpus), gpus)
    count = np.array([len(each) for each in hosts])[of]
    job = _jobs(log)
    kinds = ContradictionKind
    log.say(
        kinds.UNREADABLE,
        count == 0,
        job,
        lambda k: f"NodeList is {lists[k]!r}, other rows have nodes",
    )
    if "AllocNodes" in log.columns:
        words = ColumnChecks.floats(log.columns["AllocNodes"])
        other = (words != count) & ~np.isnan(words) & (count > 0)
        log.say(
            kinds.UNREADABLE,
            other,
            job,
            lambda k: f"NodeList names {count[k]} nodes, AllocNodes is {words[k]:g}",
        )
    few = (count > gpus) & (count > 0)
    log.say(kinds.GANG, few, job, lambda k: f"{gpus[k]} GPUs on {count[k]} nodes")
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


@lru_cache(maxsize=65536)
def expanded(text: str) -> tuple[str, ...]:
    """Hosts of a list as Slurm writes it.

    Examples
    --------
    >>> expanded("gpu[01-03,7],login")
    ('gpu01', 'gpu02', 'gpu03', 'gpu7', 'login')
    >>> expanded("None assigned")
    ()
    """
    if text in _NO_NODES:
        return ()
    result: list[str] = []
    for head, ranges, tail in _HOSTS.findall(text):
        if not ranges:
            if head or tail:
                result.append(head + tail)
            continue
        for part in ranges.split(","):
            low, dash, high = part.partition("-")
            if not dash:
                result.append(f"{head}{low}{tail}")
            elif low.isdecimal() and high.isdecimal() and int(high) - int(low) < _MOST_HOSTS:
                result += [
                    f"{head}{each:0{len(low)}d}{tail}" for each in range(int(low), int(high) + 1)
                ]
            else:
                return ()
    return tuple(result)


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
        (limit,) = _each(log.columns["Timelimit"], lambda text: (_limit_s(text),))
        result["limit_s"] = limit
    return result


def _limit_s(text: str) -> float:
    """Seconds of a limit (days-hours:minutes:seconds); infinity for none."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        return float("inf")
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) or float("inf")
