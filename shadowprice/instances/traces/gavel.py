"""Gavel's traces: tab-separated, 10 fields today, 7 in the older ``msr`` traces.

Source: github.com/stanford-futuredata/gavel at c4fa400, directory scheduler/traces. Fields of
the current form: job type, command, working directory, steps argument, needs data directory,
total steps, scale factor, priority weight, SLO (-1: none), arrival [s]; of the older form: job
type, command, steps argument, needs data directory, total steps, arrival [s], scale factor.

Run times come from a throughput table, which must be given: work is in steps.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.files import read_text
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.job_log import JobLog, Tables
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.traces.table import report_order
from shadowprice.instances.workload import MAX_GANG, MAX_ITERATIONS, Workload

NAME = "gavel"
REFERENCE_TYPE = "v100"
"""Type on which the simulator counts the run time of a job."""

CURRENT = (
    "model",
    "command",
    "directory",
    "steps_argument",
    "data",
    "work",
    "gpus",
    "weight",
    "slo",
    "arrival_s",
)
OLDER = ("model", "command", "steps_argument", "data", "work", "arrival_s", "gpus")


def sniff(first_line: str, path: Path) -> bool:
    """True if the line has 10 or 7 fields between tabs, with a command and the numbers in place."""
    fields = first_line.split("\t")
    names = next((form for form in (CURRENT, OLDER) if len(fields) == len(form)), None)
    if names is None or " " not in fields[1]:
        return False
    numbers = np.array([fields[names.index(name)] for name in ("work", "gpus", "arrival_s")])
    return not bool(np.isnan(ColumnChecks.floats(numbers)).any())


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read either form; job ids are line numbers from 0, as in the published simulator.

    A line that is wrong, and a job whose type and scale factor are not in the table or have no
    throughput on any GPU type, is dropped and reported. The SLO is a multiple of the run time, as
    in the simulator (scheduler.py, add_job): deadline = arrival + SLO x steps / rate, with the
    rate on a V100, or on the fastest type where the table has none.
    """
    if throughputs is None:
        raise InputError(
            f"{path}: a Gavel trace counts work in steps, expected a throughput table (--throughputs)"
        )
    log = _good_lines(path)
    rates = _rates(log, throughputs)
    missing = np.array([rate is None for rate in rates], dtype=bool)
    log.drop(missing, f"job type and scale factor not in {throughputs.source}")
    idle = np.array([max(rate) == 0 for rate in rates if rate is not None], dtype=bool)
    log.drop(idle, "no throughput on any GPU type")
    table = np.array(_rates(log, throughputs), dtype=np.float64)
    arrival_s, steps, slo = (log.numbers(name) for name in ("arrival_s", "work", "slo"))
    report_order(arrival_s, log.rows + 1, log.report)
    due = arrival_s + slo * steps / _reference_rates(table, throughputs.gpu_types)
    workload = Workload.from_columns(
        id=[str(row) for row in log.rows],
        arrival_s=arrival_s,
        gpus=log.text("gpus"),
        work=steps,
        weight=log.text("weight"),
        deadline_s=np.where(slo > 0, due, np.inf),
        model=log.text("model"),
        throughput=table,
        gpu_types=throughputs.gpu_types,
        source=str(path),
        rows=log.rows + 1,
    )
    return Imported(workload, tuple(log.report))


def _good_lines(path: Path) -> JobLog:
    """Lines of a file, those left out that cannot be read."""
    lines = [line.split("\t") for line in read_text(path).split("\n") if line.strip()]
    names = next((form for form in (CURRENT, OLDER) if len(lines[0]) == len(form)), None)
    if names is None:
        raise InputError(
            f"{path}: line 1 has {len(lines[0])} fields, expected {len(CURRENT)} or {len(OLDER)}, by tabs"
        )
    filled = [(fields + [""] * len(names))[: len(names)] for fields in lines]
    table = dict(zip(names, np.array(filled, dtype=object).T, strict=True))
    for name, usual in (("weight", "1"), ("slo", "-1")):
        table.setdefault(name, np.full(len(lines), usual, dtype=object))
    log = JobLog(path, Tables(table), LogReading(), None)
    counts = np.array([len(fields) for fields in lines])
    log.drop(counts < len(names), f"fewer than the {len(names)} fields of line 1")
    log.drop(counts[log.rows] > len(names), f"more than the {len(names)} fields of line 1")
    for column, low, high, whole, why in _RANGES:
        numbers = log.numbers(column)
        good = (numbers >= low) & (numbers <= high)
        if whole:
            good &= numbers == np.floor(numbers)
        log.drop(~good, f"{column} is not {why}")
    return log


_RANGES = (
    ("work", 1.0, MAX_ITERATIONS, False, "a number of steps >= 1"),
    ("gpus", 1, MAX_GANG, True, "an integer >= 1"),
    ("arrival_s", 0.0, MAX_TIME_S, False, "a number of seconds >= 0"),
    ("weight", 0.0, 1e18, False, "a number >= 0"),
    ("slo", -1e9, 1e9, False, "a number, or -1 for none"),
)


def _reference_rates(table: NDArray[np.float64], gpu_types: tuple[str, ...]) -> NDArray[np.float64]:
    """Rate of every job on a V100, on its fastest type where it has none."""
    fastest: NDArray[np.float64] = table.max(axis=1)
    if REFERENCE_TYPE not in gpu_types:
        return fastest
    rate = table[:, gpu_types.index(REFERENCE_TYPE)]
    return np.where(rate > 0, rate, fastest)


def _rates(log: JobLog, throughputs: Throughputs) -> list[tuple[float, ...] | None]:
    models, gangs = log.text("model").tolist(), log.numbers("gpus").astype(np.int64).tolist()
    return [throughputs.rates(*kind) for kind in zip(models, gangs, strict=True)]
