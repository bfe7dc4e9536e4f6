"""Shockwave's traces: Gavel's fields between tabs, with how a job adapts its batch and how long it takes; 12 fields.

Source: Zheng et al., NSDI'23; github.com/uw-mad-dash/shockwave at e07dd20, directory scheduler/traces (read): job type,
command, working directory, steps argument, needs data directory, total steps, scale factor, mode (static, accordion
or gns), priority weight, SLO (-1: none), duration [s], arrival [s]. The mode becomes the class, line numbers from 0
the ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog, Tables
from shadowprice.instances.traces.log_format import (
    Computed,
    LogFormat,
    OtherText,
    lines_of_fields,
)

FIELDS = "model,command,directory,steps_argument,data,total_steps,scale_factor,mode,weight,slo,duration,arrival"
MODES = ("static", "accordion", "gns")


def _recognises(first_line: str, path: Path) -> bool:
    """True for a line of 12 fields between tabs, the eighth a mode."""
    fields = first_line.rstrip("\r\n").split("\t")
    return len(fields) == len(FIELDS.split(",")) and fields[7] in MODES


def _read(path: Path) -> Tables:
    return Tables(lines_of_fields(path, FIELDS.split(","), "\t"))


def _numbered(log: JobLog) -> NDArray[Any]:
    return log.rows.astype(str).astype(object)


def _due(log: JobLog) -> Seconds:
    """Deadlines [s]: as many times the duration as the SLO says, from the arrival."""
    arrival_s, slo = log.numbers("arrival"), log.numbers("slo")
    due = arrival_s - arrival_s.min() + slo * log.numbers("duration")
    return np.where(slo > 0, due, np.inf)


FORMAT = LogFormat(
    name="shockwave",
    about=__doc__,
    table=OtherText(_recognises, _read),
    gpus="scale_factor",
    submit="arrival",
    end="duration",
    columns={
        "id": Computed("", _numbered),
        "model": "model",
        "weight": "weight",
        "job_class": "mode",
        "deadline_s": Computed("slo", _due),
    },
    notes=("work is the duration that the trace states for the gang; batches do not adapt",),
)
