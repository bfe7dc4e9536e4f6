"""The Standard Workload Format of the Parallel Workloads Archive, 18 fields between white space.

Source: Feitelson, www.cs.huji.ac.il/labs/parallel/workload/swf.html, version 2.2. Lines that begin with ``;`` are
comments; -1 is unknown. Processors are taken as GPUs: those that were allocated, or else asked for. Lines of
partial executions (status 2, 3, 4) repeat jobs and are left out. More than 18 fields, as Frontier's 21, are
read over. The group becomes the tenant, the user the name, the number of the executable the group that recurs,
the queue the class, the requested time the limit that was submitted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, known_or, replayed
from shadowprice.instances.traces.log_reading import LogReading

NAME = "swf"
FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "allocated",
    "cpu_time",
    "used_memory",
    "requested",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)

_ENDS = {"1": "completed", "0": "failed", "5": "cancelled", "-1": ""}


def sniff(first_line: str, path: Path) -> bool:
    """True for a comment of the format's header, or a line of 18 or more numbers."""
    if first_line.startswith(";"):
        return True
    fields = first_line.split()
    return len(fields) >= len(FIELDS) and all(_is_number(each) for each in fields)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the log; jobs without a status are taken to have ended well.

    Raises
    ------
    InputError
        If a line has fewer than 18 fields, or no job is left.
    """
    lines = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        fields = line.split()
        if len(fields) < len(FIELDS):
            raise InputError(f"{path}: line {number}: {len(fields)} fields, expected {len(FIELDS)}")
        lines.append(fields[: len(FIELDS)])
    if not lines:
        raise InputError(f"{path}: has no jobs")
    columns = dict(zip(FIELDS, np.array(lines, dtype=object).T, strict=True))
    log = JobLog(path, columns)
    status = log.text("status")
    log.drop(np.isin(status, ["2", "3", "4"]), "is part of an execution (status 2, 3 or 4)")
    status = np.where(log.text("status") == "-1", "1", log.text("status"))
    log.keep_ended(status, "1", choices)
    allocated, requested = log.numbers("allocated"), log.numbers("requested")
    gpus = np.where(allocated > 0, allocated, requested)
    log.say("derived", (allocated <= 0) & (requested > 0), "processors are those asked for")
    gpus = log.gangs(gpus, choices, "allocated")
    run = log.numbers("run")
    log.notes.append("processors are taken as GPUs")
    return replayed(
        log,
        gpus=gpus,
        submit_s=log.numbers("submit"),
        start_s=np.where(run < 0, np.nan, 0.0),
        end_s=run,
        columns={
            "id": log.text("job"),
            "tenant": _known(log, "group"),
            "name": _known(log, "user"),
            "group": _known(log, "executable"),
            "job_class": _known(log, "queue"),
            "outcome": log.outcomes(log.text("status"), _ENDS),
            "limit_s": known_or(log.numbers("requested_time"), np.inf),
        },
    )


def _known(log: JobLog, name: str) -> np.ndarray:
    values = log.text(name)
    return np.where(values == "-1", "", values)
