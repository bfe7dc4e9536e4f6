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
from numpy.typing import NDArray

from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog, Mask, Tables
from shadowprice.instances.traces.log_format import (
    Computed,
    EndStates,
    LogFormat,
    OtherText,
    Recording,
    Remark,
    above_zero,
    lines_of_fields,
)

FIELDS = (
    "job submit wait run allocated cpu_time used_memory requested requested_time requested_memory status "
    "user group executable queue partition preceding_job think_time"
)


def _recognises(first_line: str, path: Path) -> bool:
    """True for a comment of the format's header, or a line of 18 or more numbers."""
    if first_line.startswith(";"):
        return True
    fields = first_line.split()
    return len(fields) >= len(FIELDS.split()) and all(_is_number(each) for each in fields)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(path: Path) -> Tables:
    return Tables(lines_of_fields(path, FIELDS.split(), comment=";", more=True))


def _is_partial(log: JobLog) -> Mask:
    return np.isin(log.text("status"), ["2", "3", "4"])


def _is_as_requested(log: JobLog) -> Mask:
    return np.asarray((log.numbers("allocated") <= 0) & (log.numbers("requested") > 0))


def _processors(log: JobLog) -> Seconds:
    allocated = log.numbers("allocated")
    return np.where(allocated > 0, allocated, log.numbers("requested"))


def _began(log: JobLog) -> Seconds:
    """Zero for jobs that ran, of which the log has the run time."""
    return np.where(log.numbers("run") < 0, np.nan, 0.0)


def _start_s(log: JobLog) -> Seconds:
    wait = log.numbers("wait")
    return log.numbers("submit") + np.where(wait < 0, np.nan, wait)


def _end_s(log: JobLog) -> Seconds:
    return _start_s(log) + log.numbers("run")


def _known(name: str) -> Computed:
    """Values of a column, nothing for what is not known."""

    def values(log: JobLog) -> NDArray[np.object_]:
        return np.where(log.text(name) == "-1", "", log.text(name))

    return Computed(name, values)


FORMAT = LogFormat(
    name="swf",
    about=__doc__,
    table=OtherText(_recognises, _read),
    remarks=(
        Remark("dropped", "is part of an execution (status 2, 3 or 4)", _is_partial),
        Remark("derived", "processors are those asked for", _is_as_requested),
    ),
    gpus=Computed("allocated", _processors),
    states=EndStates(
        "status",
        completed=("1", "-1"),
        ends={"1": "completed", "0": "failed", "5": "cancelled", "-1": ""},
    ),
    submit="submit",
    start=Computed("run", _began),
    end="run",
    columns={
        "id": "job",
        "tenant": _known("group"),
        "name": _known("user"),
        "group": _known("executable"),
        "job_class": _known("queue"),
        "limit_s": above_zero("requested_time", np.inf),
    },
    notes=("processors are taken as GPUs",),
    recorded=Recording(start=Computed("wait", _start_s), end=Computed("run", _end_s)),
)
