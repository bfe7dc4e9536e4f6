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
import pandas as pd

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.throughputs import Throughputs
from shadowprice.instances.traces.imported import Finding, Imported
from shadowprice.instances.traces.table import drop, report_order
from shadowprice.instances.workload import Workload

NAME = "gavel"

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
    """Whether the line has 10 or 7 tab-separated fields, the second with a command in it."""
    fields = first_line.split("\t")
    return len(fields) in (len(CURRENT), len(OLDER)) and " " in fields[1]


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read either form; job ids are line numbers from 0, as in the published simulator.

    A job whose kind is not in the table, or has no throughput on any type, is dropped and
    reported. SLOs become deadlines (arrival + SLO).
    """
    if throughputs is None:
        raise InputError(
            f"{path}: a Gavel trace counts work in steps, expected a throughput table (--throughputs)"
        )
    lines = [line.split("\t") for line in read_text(path).splitlines() if line.strip()]
    names = CURRENT if len(lines[0]) == len(CURRENT) else OLDER
    for number, fields in enumerate(lines, 1):
        if len(fields) != len(names):
            raise InputError(
                f"{path}: line {number} has {len(fields)} fields, expected {len(names)} as in line 1"
            )
    frame = pd.DataFrame(lines, columns=list(names), index=pd.RangeIndex(1, len(lines) + 1))
    report: list[Finding] = []
    for column, least in (("work", 1.0), ("gpus", 1.0), ("arrival_s", 0.0)):
        numbers = pd.to_numeric(frame[column], errors="coerce").to_numpy()
        frame = drop(frame, ~(numbers >= least), f"{column} is not a number >= {least:g}", report)
    rates = _rates(frame, throughputs)
    missing = np.array([rate is None for rate in rates])
    frame = drop(frame, missing, f"kind is not in {throughputs.source}", report)
    idle = np.array([rate is not None and max(rate) == 0 for rate in rates])[~missing]
    frame = drop(frame, idle, "kind has no throughput on any GPU type", report)
    if frame.empty:
        raise InputError(f"{path}: no usable job is left; {report[0]}")
    arrival_s = pd.to_numeric(frame["arrival_s"]).to_numpy()
    report_order(arrival_s, frame.index.to_numpy(), report)
    slo = (
        pd.to_numeric(frame["slo"], errors="coerce").to_numpy()
        if "slo" in frame
        else np.full(len(frame), -1.0)
    )
    weight = pd.to_numeric(frame["weight"]).to_numpy() if "weight" in frame else np.ones(len(frame))
    workload = Workload.from_columns(
        id=[str(row - 1) for row in frame.index],
        arrival_s=arrival_s,
        gpus=pd.to_numeric(frame["gpus"]),
        work=pd.to_numeric(frame["work"]),
        weight=weight,
        deadline_s=np.where(slo > 0, arrival_s + slo, np.inf),
        model=frame["model"].to_numpy(dtype=object),
        throughput=[rate for rate in _rates(frame, throughputs) if rate is not None],
        gpu_types=throughputs.gpu_types,
        source=str(path),
        rows=frame.index.to_numpy(),
    )
    return Imported(workload, tuple(report))


def write_gavel(workload: Workload, path: str | Path) -> None:
    """Write a workload in the current form; commands are placeholders that keep the model's name.

    Raises
    ------
    InputError
        If a job has no model name, or work that is not whole steps.
    """
    lines = []
    for row in range(len(workload)):
        model, steps = str(workload.model[row]), float(workload.work[row])
        if not model or "\t" in model or "\n" in model:
            raise InputError(
                f"{path}: job {workload.id[row]!r} has model {model!r}, expected a name without tabs"
            )
        if workload.throughput is None or steps != int(steps):
            raise InputError(
                f"{path}: job {workload.id[row]!r} has work {steps!r}, expected whole steps and throughputs"
            )
        slo = workload.deadline_s[row] - workload.arrival_s[row]
        fields = (
            model, "python3 main.py %s", ".", "--num_steps", "0", str(int(steps)), str(workload.gpus[row]),
            f"{workload.weight[row]:g}", f"{slo!r}" if np.isfinite(slo) else "-1", repr(float(workload.arrival_s[row])),
        )  # fmt: skip
        lines.append("\t".join(fields) + "\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def _rates(frame: pd.DataFrame, throughputs: Throughputs) -> list[tuple[float, ...] | None]:
    gpus = pd.to_numeric(frame["gpus"]).astype(int)
    return [
        throughputs.rates(model, gang) for model, gang in zip(frame["model"], gpus, strict=True)
    ]
