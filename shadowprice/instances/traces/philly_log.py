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
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, dates_s, replayed
from shadowprice.instances.traces.log_reading import Attempts, LogReading

NAME = "philly-log"
FIELDS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
_FORM, _ZONE = "%Y-%m-%d %H:%M:%S", "America/Los_Angeles"
_ENDS = {"Pass": "completed", "Killed": "cancelled", "Failed": "failed"}
_MISSING = (None, "None", "")


def sniff(first_line: str, path: Path) -> bool:
    """True if the text begins as an array of jobs."""
    begin = first_line.lstrip()
    return begin.startswith("[") and (begin == "[" or '"attempts"' in begin or '"jobid"' in begin)


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the log; jobs are numbered from 1 in messages.

    Raises
    ------
    InputError
        If the text is no such array, a job lacks a field, or none is left.
    """
    jobs = _jobs(path)
    columns = {
        name: np.array([str(job[name]) for job in jobs], dtype=object)
        for name in ("jobid", "vc", "user", "status", "submitted_time")
    }
    log = JobLog(path, columns)
    gangs = np.array([_gang(job["attempts"]) for job in jobs], dtype=np.float64)
    log.drop(gangs == 0, "has no attempt with GPUs, so that its gang is not known")
    log.keep_ended(log.text("status"), "Pass", choices)
    first, last, sums = _attempts(jobs, log.rows)
    if choices.attempts is Attempts.SPAN:
        start_s, end_s = first, last
    else:
        spent = sums.sum(axis=1) if choices.attempts is Attempts.SUM else sums[:, -1]
        # Attempts as one run that begins with the first of them.
        start_s, end_s = first, first + spent
    log.notes.append("times are taken as Pacific, whose clocks change, and told in UTC")
    log.notes.append(f"run time is the {choices.attempts} of attempts")
    return replayed(
        log,
        gpus=gangs[log.rows],
        submit_s=dates_s(log.text("submitted_time"), _FORM, _ZONE),
        dated=True,
        start_s=start_s,
        end_s=end_s,
        columns={
            "id": log.text("jobid"),
            "tenant": log.text("vc"),
            "name": log.text("user"),
            "outcome": log.outcomes(log.text("status"), _ENDS),
        },
    )


def _jobs(path: Path) -> list[dict[str, Any]]:
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


def _gang(attempts: list[dict[str, Any]]) -> int:
    """GPUs of the first attempt; 0 if there is none."""
    return sum(len(one["gpus"]) for one in attempts[0]["detail"]) if attempts else 0


def _attempts(
    jobs: list[dict[str, Any]], rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """First start and last end [s], shape (n,), and attempts [s], shape (n, most), last ones last."""
    chosen = [jobs[row]["attempts"] for row in rows.tolist()]
    count = np.array([len(each) for each in chosen])
    at = np.repeat(np.arange(len(chosen)), count)
    # Filled from the right, so that the last attempt of every job is in the last column.
    place = np.concatenate([np.arange(-k, 0) for k in count]) + count.max()
    flat = [one for each in chosen for one in each]
    times = [np.full((len(chosen), count.max()), np.nan) for _ in range(2)]
    for table, name in zip(times, ("start_time", "end_time"), strict=True):
        text = np.array([None if one[name] in _MISSING else str(one[name]) for one in flat], object)
        table[at, place] = dates_s(text, _FORM, _ZONE)
    start, end = times
    there = np.zeros(start.shape, dtype=np.bool_)
    there[at, place] = True
    spent = np.where(there, end - start, 0.0)
    first = start[np.arange(len(chosen)), count.max() - count]
    return first, end[:, -1], spent
