"""Workloads of Pollux and Sia: name, time, application, num_replicas, batch_size.

Source: Qiao et al., OSDI'21 (Pollux; github.com/petuum/adaptdl, Apache-2.0); Jayaram Subramanya et al., SOSP'23
(Sia). ``time`` is the arrival in seconds of the simulation, which is kept. The application becomes the model; a
batch_size left empty, or 0, is any. How long a job runs is not said: it follows from tables of the applications, and
is the time on as many replicas as asked for, alone and on nodes of four. So the importer asks for Pollux' profile
tables in a folder ``traces`` beside the workload, or beside its folder, as the simulator has them; or else for
``applications.csv`` beside the workload, with columns application, num_replicas, batch_size and duration_s, one row
for each combination that occurs. With ``--with goodput:tables=...`` jobs adapt their replicas and batches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.goodput.application import packed
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.instances.terms.goodput import BatchField, Goodput
from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat
from shadowprice.instances.workload import MAX_GANG
from shadowprice.instances.workload_files import read_table

HEADER = "name,time,application,num_replicas,batch_size"
APPLICATIONS = "applications.csv"
TABLES = "traces"
NODE_GPUS = 4
"""GPUs of the nodes on which run times are counted, those of Pollux' cluster."""
_DURATION = ("application", "num_replicas", "batch_size", "duration_s")


def _run_s(log: JobLog) -> Seconds:
    """Run times from the tables beside a workload [s].

    Raises
    ------
    InputError
        If there are none, or a combination is not in them.
    """
    duration_s, where = _known(log.path)
    combinations = (log.text(name).tolist() for name in ("application", "batch_size"))
    run_s = []
    for row, application, batch, gang in zip(
        log.rows.tolist(), *combinations, log.gangs[log.rows].tolist(), strict=True
    ):
        result_s = duration_s(application, gang, batch)
        if result_s is None:
            raise InputError(
                f"{log.path}: row {row + 1}: {where} has no duration of {application!r} on "
                f"{gang:g} replicas with batch size {batch or 'any'}"
            )
        run_s.append(result_s)
    return np.array(run_s)


Durations = Callable[[str, float, str], float | None]
"""Run time [s] by application, replicas and batch size; None where it is not known."""


def _known(path: Path) -> tuple[Durations, Path]:
    """Run times beside a workload, and where they are from."""
    listed = path.parent / APPLICATIONS
    if listed.is_file():
        return _listed(listed), listed
    for folder in (path.parent / TABLES, path.parent.parent / TABLES):
        if folder.is_dir():
            return _measured(folder), folder
    raise InputError(
        f"{listed}: is missing, and so is a folder {TABLES} of profile tables; expected one of them, a table of "
        f"{', '.join(_DURATION)}: the workload does not say how long jobs run"
    )


def _measured(folder: Path) -> Durations:
    """Run times by profile tables [s]."""
    term = Goodput(load_applications(folder))

    def duration_s(application: str, gang: float, batch: str) -> float | None:
        known, gpus = term.by_name.get(application), int(gang)
        if known is None or gpus != gang or not (batch == "" or batch.isdigit()):
            return None
        run = term.run(
            known, packed(gpus, NODE_GPUS), BatchField(known.batching(int(batch or 0), gpus))
        )
        return None if run is None else run.whole_ticks() * TICK_S

    return duration_s


def _listed(path: Path) -> Durations:
    """Run times of a table [s]; a batch size that it leaves empty is any."""
    table = read_table(path, needed=_DURATION)
    check = ColumnChecks(str(path), np.arange(1, len(table["application"]) + 1))
    replicas = check.integers("num_replicas", table["num_replicas"], 1, MAX_GANG)
    duration_s = check.positive("duration_s", table["duration_s"], MAX_TIME_S)
    names = table["application"].tolist(), replicas.tolist(), table["batch_size"].tolist()
    known = dict(zip(zip(*names, strict=True), duration_s.tolist(), strict=True))
    return lambda application, gang, batch: known.get(
        (application, gang, batch), known.get((application, gang, ""))
    )


def _batch_sizes(log: JobLog) -> np.ndarray:
    """Batch sizes as text, 0 for any."""
    return np.array([text or "0" for text in log.text("batch_size").tolist()], dtype=object)


FORMAT = LogFormat(
    name="pollux",
    about=__doc__,
    table=HeaderTable(HEADER, among=HEADER),
    gpus="num_replicas",
    submit="time",
    end=Computed("duration_s", _run_s),
    columns={
        "id": "name",
        "model": "application",
        "batch_size": Computed("batch_size", _batch_sizes),
    },
    notes=(f"run times are those of {TABLES} or {APPLICATIONS} beside it, at replicas as asked",),
    own_zero=True,
)
