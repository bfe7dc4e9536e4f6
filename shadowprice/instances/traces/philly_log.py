"""Microsoft's Philly log as published: ``cluster_job_log``, a JSON array of jobs with their attempts.

Source: Jeon et al., ATC'19; github.com/msr-fiddle/philly-traces at 29a1b87 (CC-BY-4.0), in
``trace-data.tar.gz``. Times are Pacific, without a zone; "None" stands for missing. The gang is that of the first
attempt; run time is the sum of attempts, their span with the gaps, or the last attempt, as chosen:
the authors' notebook takes the span, Synergy's simulator the sum. The virtual cluster becomes the tenant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.traces.clocks import LogClock, Seconds
from shadowprice.instances.traces.job_log import JobLog, Mask, Tables
from shadowprice.instances.traces.log_format import (
    Computed,
    EndStates,
    LogFormat,
    OtherText,
    Remark,
)
from shadowprice.instances.traces.log_reading import Attempts, LogReading

FIELDS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
_MISSING = (None, "None", "")
_CLOCK = LogClock("%Y-%m-%d %H:%M:%S", zone="America/Los_Angeles")


def _recognises(first_line: str, path: Path) -> bool:
    """True if the text begins as an array of jobs."""
    begin = first_line.lstrip()
    return begin.startswith("[") and (begin == "[" or '"attempts"' in begin or '"jobid"' in begin)


def _read(path: Path) -> Tables:
    """Fields of the jobs, and their attempts.

    Raises
    ------
    InputError
        If the text is no such array, or a job lacks a field.
    """
    jobs = read_jobs(path)
    columns = {
        name: np.array([str(job[name]) for job in jobs], dtype=object)
        for name in ("jobid", "vc", "user", "status", "submitted_time")
    }
    attempts: list[list[dict[str, Any]]] = [job["attempts"] for job in jobs]
    gangs = [sum(len(one["gpus"]) for one in each[0]["detail"]) if each else 0 for each in attempts]
    start, end = (_times_s(attempts, name) for name in ("start_time", "end_time"))
    computed: dict[str, NDArray[Any]] = {
        "gpus": np.array(gangs, dtype=np.float64),
        "start": start,
        "end": end,
    }
    computed["count"] = np.array(list(map(len, attempts)))
    return Tables(columns, computed)


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """Jobs of a log, each an object with :data:`FIELDS`, its attempts lists of what they held.

    Raises
    ------
    InputError
        If the text is no such array, or a job lacks a field.
    """
    try:
        jobs = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    if not isinstance(jobs, list) or not jobs:
        raise InputError(f"{path}: expected a list of jobs")
    for number, job in enumerate(jobs, 1):
        if not isinstance(job, dict):
            raise InputError(f"{path}: job {number}: expected an object with {', '.join(FIELDS)}")
        for name in FIELDS:
            if name not in job:
                raise InputError(f"{path}: job {number}: {name!r} is missing")
        if not _well_formed(job["attempts"]):
            raise InputError(
                f"{path}: job {number}: attempts, expected a list of objects with start_time, end_time "
                "and detail, a list of objects with gpus"
            )
    return jobs


def _well_formed(attempts: Any) -> bool:
    return isinstance(attempts, list) and all(
        isinstance(each, dict)
        and {"start_time", "end_time", "detail"} <= each.keys()
        and isinstance(each["detail"], list)
        and all(
            isinstance(one, dict) and isinstance(one.get("gpus"), list) for one in each["detail"]
        )
        for each in attempts
    )


def _times_s(attempts: list[list[dict[str, Any]]], name: str) -> Seconds:
    """Times of attempts [s], shape (n, most), last ones last, NaN where a job has no more."""
    count = np.array(list(map(len, attempts)))
    most = max(int(count.max()), 1)
    times = np.full((len(attempts), most), np.nan)
    text = [one[name] for each in attempts for one in each]
    text = [None if each in _MISSING else str(each) for each in text]
    # Filled from the right, so that the last attempt of every job is in the last column.
    times[np.arange(most) >= most - count[:, None]] = _CLOCK.seconds(np.array(text, object))
    return times


def _without_attempts(log: JobLog) -> Mask:
    return np.asarray(log.computed("gpus") == 0)


def _first_s(log: JobLog) -> Seconds:
    start = log.computed("start")
    return np.asarray(
        start[np.arange(len(start)), start.shape[1] - log.computed("count")], dtype=np.float64
    )


def _last_s(log: JobLog) -> Seconds:
    """End of each job [s]: its attempts are taken as one run that begins with the first of them."""
    start, end, count = (log.computed(name) for name in ("start", "end", "count"))
    chosen = log.choices.attempts
    if chosen is Attempts.SPAN:
        return np.asarray(end[:, -1])
    if chosen is Attempts.LAST:
        return np.asarray(_first_s(log) + (end - start)[:, -1])
    most = start.shape[1]
    spent = np.where(np.arange(most) >= most - count[:, None], end - start, 0.0)
    return np.asarray(_first_s(log) + spent.sum(axis=1))


def _attempts_note(choices: LogReading) -> str:
    return f"run time is the {choices.attempts} of attempts"


FORMAT = LogFormat(
    name="philly-log",
    about=__doc__,
    table=OtherText(_recognises, _read),
    remarks=(
        Remark(
            "dropped",
            "has no attempt with GPUs, so that its gang is not known",
            _without_attempts,
        ),
    ),
    gpus=Computed("attempts", lambda log: log.computed("gpus")),
    states=EndStates(
        "status",
        completed=("Pass",),
        ends={"Pass": "completed", "Killed": "cancelled", "Failed": "failed"},
    ),
    clock=_CLOCK,
    submit="submitted_time",
    start=Computed("start_time", _first_s),
    end=Computed("end_time", _last_s),
    columns={"id": "jobid", "tenant": "vc", "name": "user"},
    notes=(
        "times are taken as Pacific, whose clocks change, and told in UTC",
        _attempts_note,
    ),
)
