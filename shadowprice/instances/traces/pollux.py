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
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload import MAX_GANG
from shadowprice.instances.workload_files import read_table, split_header

NAME = "pollux"
COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
APPLICATIONS = "applications.csv"
_DURATION = ("application", "num_replicas", "batch_size", "duration_s")


def sniff(first_line: str, path: Path) -> bool:
    """True if the header has the columns of a workload."""
    return set(COLUMNS) <= set(split_header(first_line))


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read a workload, and run times from the table beside it.

    Raises
    ------
    InputError
        If a column or the table is missing, a combination is not in the table, or no job is left.
    """
    log = JobLog.of(path, read_table(path), COLUMNS)
    log.without_states(choices)
    gpus = log.gangs(log.numbers("num_replicas"), choices, "num_replicas")
    known = _durations(path.parent / APPLICATIONS)
    rows = zip(*(log.text(name).tolist() for name in COLUMNS[2:]), gpus.tolist(), strict=True)
    run_s = []
    for number, (application, _, batch, gang) in zip(log.rows.tolist(), rows, strict=True):
        found = known.get((application, gang, batch), known.get((application, gang, "")))
        if found is None:
            raise InputError(
                f"{path}: row {number + 1}: {path.parent / APPLICATIONS} has no duration of {application!r} on "
                f"{gang:g} replicas with batch size {batch or 'any'}"
            )
        run_s.append(found)
    log.notes.append(
        f"run times are those of {APPLICATIONS}; replicas and batch sizes do not adapt"
    )
    return replayed(
        log,
        gpus=gpus,
        submit_s=log.numbers("time"),
        start_s=np.zeros(len(run_s)),
        end_s=np.array(run_s),
        columns={"id": log.text("name"), "model": log.text("application")},
    )


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
