"""Gavel's traces: tab-separated, 10 fields today, 7 in the older ``msr`` traces.

Source: github.com/stanford-futuredata/gavel at c4fa400, directory scheduler/traces. Fields of
the current form: job type, command, working directory, steps argument, needs data directory,
total steps, scale factor, priority weight, SLO (-1: none), arrival [s]; of the older form: job
type, command, steps argument, needs data directory, total steps, arrival [s], scale factor.

Run times come from a throughput table, which must be given: work is in steps.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.files import read_text
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.traces import Finding, Imported
from shadowprice.instances.traces.table import drop, in_range, report_order
from shadowprice.instances.workload import MAX_GANG, MAX_ITERATIONS, Workload

if TYPE_CHECKING:
    import pandas as pd


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
    report: list[Finding] = []
    frame = _good_lines(path, report)
    rates = _rates(frame, throughputs)
    missing = np.array([rate is None for rate in rates], dtype=bool)
    idle = np.array([rate is not None and max(rate) == 0 for rate in rates], dtype=bool)
    frame = drop(frame, missing, f"job type and scale factor not in {throughputs.source}", report)
    frame = drop(frame, idle[~missing], "no throughput on any GPU type", report)
    if frame.empty:
        raise InputError(f"{path}: no usable job is left; {report[0]}")
    arrival_s, steps, slo = (ColumnChecks.floats(frame[c].to_numpy()) for c in _USED)
    table = np.array([rate for rate in _rates(frame, throughputs) if rate is not None])
    report_order(arrival_s, frame.index.to_numpy(), report)
    due = arrival_s + slo * steps / _reference_rates(table, throughputs.gpu_types)
    workload = Workload.from_columns(
        id=[str(row - 1) for row in frame.index],
        arrival_s=arrival_s,
        gpus=frame["gpus"].to_numpy(),
        work=steps,
        weight=frame["weight"].to_numpy(),
        deadline_s=np.where(slo > 0, due, np.inf),
        model=frame["model"].to_numpy(),
        throughput=table,
        gpu_types=throughputs.gpu_types,
        source=str(path),
        rows=frame.index.to_numpy(),
    )
    return Imported(workload, tuple(report))


def _good_lines(path: Path, report: list[Finding]) -> pd.DataFrame:
    """Lines as a frame of strings, without those that cannot be read."""
    import pandas as pd

    lines = [line.split("\t") for line in read_text(path).split("\n") if line.strip()]
    names = next((form for form in (CURRENT, OLDER) if len(lines[0]) == len(form)), None)
    if names is None:
        raise InputError(
            f"{path}: line 1 has {len(lines[0])} fields, expected {len(CURRENT)} or {len(OLDER)}, by tabs"
        )
    fits = np.array([len(fields) == len(names) for fields in lines], dtype=bool)
    if not fits.all():
        row = int(np.argmin(fits))
        why = f"have not the {len(names)} fields of line 1"
        example = f"row {row + 1}: {', '.join(lines[row])[:120]}"
        report.append(Finding("dropped", int((~fits).sum()), why, example))
    frame = pd.DataFrame(
        [fields for fields, fit in zip(lines, fits, strict=True) if fit],
        columns=list(names),
        index=np.flatnonzero(fits) + 1,
        dtype=object,
    )
    for name, value in (("weight", "1"), ("slo", "-1")):
        if name not in frame:
            frame[name] = np.full(len(frame), value, dtype=object)
    for column, low, high, whole, why in _RANGES:
        good = in_range(frame[column], low, high, whole=whole)
        frame = drop(frame, ~good, f"{column} is not {why}", report)
    return frame


_USED = ("arrival_s", "work", "slo")
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


def write_gavel(workload: Workload, path: str | Path) -> None:
    """Write a workload in the current form.

    Read again with the same table it gives the same jobs, numbered by line. A trace has no place
    for tenants, and its commands are not kept: the command written names the model only.

    Raises
    ------
    InputError
        If a job has no model name, or work that is not whole steps, or a deadline before its
        arrival, or if the file cannot be written.
    """
    if workload.throughput is None:
        raise InputError(f"{path}: {workload.source} has seconds of work, expected steps")
    rates = _reference_rates(workload.throughput, workload.gpu_types)
    lines = []
    for row in range(len(workload)):
        model, steps = str(workload.model[row]), float(workload.work[row])
        where = f"{path}: job {workload.id[row]!r}"
        if not model:
            raise InputError(f"{where}: model is {model!r}, expected a name")
        if steps != int(steps):
            raise InputError(f"{where}: work is {steps!r}, expected whole steps")
        arrival_s, due = float(workload.arrival_s[row]), float(workload.deadline_s[row])
        if due <= arrival_s:
            raise InputError(f"{where}: deadline is {due!r}, expected one after arrival")
        fields = (
            model,
            "python3 main.py %s",
            ".",
            "--num_steps",
            "0",
            str(int(steps)),
            str(workload.gpus[row]),
            repr(float(workload.weight[row])),
            _slo(arrival_s, due, steps, float(rates[row])),
            repr(arrival_s),
        )
        lines.append("\t".join(fields) + "\n")
    try:
        Path(path).write_text("".join(lines), encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _slo(arrival_s: float, due: float, steps: float, rate: float) -> str:
    """SLO that gives a deadline, to the last bit where there is such a number."""
    if math.isinf(due):
        return "-1"
    guess = (due - arrival_s) * rate / steps
    below = above = guess
    for _ in range(8):
        for slo in (below, above):
            if arrival_s + slo * steps / rate == due:
                return repr(slo)
        below, above = math.nextafter(below, 0.0), math.nextafter(above, math.inf)
    return repr(guess)


def _rates(frame: pd.DataFrame, throughputs: Throughputs) -> list[tuple[float, ...] | None]:
    gangs = ColumnChecks.floats(frame["gpus"].to_numpy()).astype(np.int64).tolist()
    return [
        throughputs.rates(model, gang) for model, gang in zip(frame["model"], gangs, strict=True)
    ]
