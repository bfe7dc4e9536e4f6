"""Workloads of Pollux and Sia: name, time, application, num_replicas, batch_size.

Source: Qiao et al., OSDI'21 (Pollux; github.com/petuum/adaptdl, Apache-2.0); Jayaram Subramanya et al., SOSP'23
(Sia). ``time`` is the arrival in seconds. How long a job runs is in neither: it follows from tables of the
applications. So the importer asks for ``applications.csv`` beside the workload, with columns application,
num_replicas, batch_size and duration_s, one row for each combination that occurs; a batch_size left
empty is any. Batch sizes and replicas stay as submitted: jobs do not adapt theirs. The application becomes the model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat
from shadowprice.instances.workload import MAX_GANG
from shadowprice.instances.workload_files import read_table

HEADER = "name,time,application,num_replicas,batch_size"
APPLICATIONS = "applications.csv"
_DURATION = ("application", "num_replicas", "batch_size", "duration_s")


def _run_s(log: JobLog) -> Seconds:
    """Run times from the table beside a workload [s].

    Raises
    ------
    InputError
        If the table is missing, or a combination is not in it.
    """
    path = log.path.parent / APPLICATIONS
    known = _durations(path)
    combinations = (log.text(name).tolist() for name in ("application", "batch_size"))
    run_s = []
    for row, application, batch, gang in zip(
        log.rows.tolist(), *combinations, log.gangs[log.rows].tolist(), strict=True
    ):
        duration_s = known.get((application, gang, batch), known.get((application, gang, "")))
        if duration_s is None:
            raise InputError(
                f"{log.path}: row {row + 1}: {path} has no duration of {application!r} on "
                f"{gang:g} replicas with batch size {batch or 'any'}"
            )
        run_s.append(duration_s)
    return np.array(run_s)


def _durations(path: Path) -> dict[tuple[str, float, str], float]:
    """Run times [s] by application, replicas and batch size."""
    if not path.is_file():
        raise InputError(
            f"{path}: is missing, expected a table of {', '.join(_DURATION)}: the workload does not say how "
            "long jobs run"
        )
    table = read_table(path)
    missing = [name for name in _DURATION if name not in table]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing, found {', '.join(table)}")
    check = ColumnChecks(str(path), np.arange(1, len(table["application"]) + 1))
    replicas = check.integers("num_replicas", table["num_replicas"], 1, MAX_GANG)
    duration_s = check.positive("duration_s", table["duration_s"], MAX_TIME_S)
    names = table["application"].tolist(), replicas.tolist(), table["batch_size"].tolist()
    return dict(zip(zip(*names, strict=True), duration_s.tolist(), strict=True))


FORMAT = LogFormat(
    name="pollux",
    about=__doc__,
    table=HeaderTable(HEADER, among=HEADER),
    gpus="num_replicas",
    submit="time",
    end=Computed("duration_s", _run_s),
    columns={"id": "name", "model": "application"},
    notes=(f"run times are those of {APPLICATIONS}; replicas and batch sizes do not adapt",),
)
