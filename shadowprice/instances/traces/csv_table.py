"""Tables of jobs under the usual column names: the researcher's own CSV.

A wrong value is an error that names row and column, since such a file can be mended. The
project's own CSV (columns id, arrival_s, gpus, work, ...) is read without loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shadowprice.errors import InputError
from shadowprice.instances.io import read_workload
from shadowprice.instances.throughputs import Throughputs
from shadowprice.instances.traces.imported import Finding, Imported
from shadowprice.instances.traces.table import read_table, report_order, seconds
from shadowprice.instances.workload import Workload

NAME = "csv"

Columns = dict[str, Any]
"""Columns by our names, as read."""

ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("id", "job_id", "jobid", "job", "name", "job_name"),
    "arrival_s": (
        "arrival_s", "arrival", "arrival_time", "submit", "submit_s", "submit_time", "submitted_time",
        "submission_time", "timestamp", "release", "release_s", "time",
    ),
    "gpus": ("gpus", "num_gpus", "gpu_num", "num_gpu", "n_gpus", "gpu_count", "gpu", "gpu_demand", "scale_factor"),
    "work": ("work", "duration", "duration_s", "runtime", "runtime_s", "run_time", "run_time_s", "processing_time"),
    "iterations": ("iterations", "total_iterations", "num_iterations", "total_steps", "steps"),
    "iteration_s": ("iteration_s", "iteration_time", "iteration_time_s", "iter_time", "iter_time_s"),
    "weight": ("weight", "priority_weight"),
    "deadline_s": ("deadline_s", "deadline"),
    "tenant": ("tenant", "user", "vc", "virtual_cluster", "cluster", "queue"),
    "model": ("model", "model_name", "job_type"),
}  # fmt: skip
"""Our column: the names it is known by, most specific first; case does not matter."""


def sniff(first_line: str, path: Path) -> bool:
    """Whether the header has an arrival, a gang size and an amount of work under known names."""
    found = _matches([name.strip().strip('"') for name in _split(first_line)])
    return {"arrival_s", "gpus"} <= found.keys() and bool({"work", "iterations"} & found.keys())


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read a table; see :data:`ALIASES` for the names of columns.

    Times may be seconds or ISO dates (counted from the first). Work is the ``duration`` in
    seconds; a table with iterations and no duration needs an iteration time or, for its models,
    a throughput table.
    """
    frame = read_table(path)
    if {"id", "arrival_s", "gpus", "work", "weight", "deadline_s"} <= set(frame.columns):
        return Imported(read_workload(path))
    found = _matches(list(frame.columns))
    for needed in ("arrival_s", "gpus"):
        if needed not in found:
            names = ", ".join(ALIASES[needed][:5])
            raise InputError(
                f"{path}: no column for {needed}, expected one of {names}, ...; found {', '.join(map(str, frame))}"
            )
    report: list[Finding] = []
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    columns: Columns = {
        name: frame[column].to_numpy(dtype=object) for name, column in found.items()
    }
    columns["arrival_s"] = seconds(frame[found["arrival_s"]], path, found["arrival_s"])
    _explain(columns, frame, found, path)
    report_order(columns["arrival_s"], frame.index.to_numpy(), report)
    if "deadline_s" in columns:
        columns["deadline_s"] = pd.to_numeric(
            frame[found["deadline_s"]].replace("", "inf"), errors="coerce"
        ).to_numpy()
    if "weight" in columns:
        columns["weight"] = frame[found["weight"]].replace("", "1").to_numpy(dtype=object)
    extra = _speeds(columns, path, throughputs)
    keep = {
        name: values
        for name, values in columns.items()
        if name not in ("iterations", "iteration_s")
    }
    return Imported(Workload.from_columns(**{**keep, **extra}, source=str(path)), tuple(report))


def _explain(columns: Columns, frame: pd.DataFrame, found: dict[str, str], path: Path) -> None:
    """Name the file's own column where a value is not a number; ranges are checked by the workload."""
    for name in ("arrival_s", "gpus", "work", "iterations", "iteration_s", "weight", "deadline_s"):
        if name not in found:
            continue
        given = frame[found[name]]
        numbers = pd.Series(columns[name], index=frame.index) if name == "arrival_s" else given
        bad = pd.to_numeric(numbers, errors="coerce").isna() & ~(
            given.eq("") & (name in ("weight", "deadline_s"))
        )
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise InputError(
                f"{path}: row {row + 1}, column {found[name]!r}: got {given.iloc[row]!r}, expected a number"
            )


def _speeds(columns: Columns, path: Path, throughputs: Throughputs | None) -> Columns:
    if "work" in columns and not (throughputs is not None and "iterations" in columns):
        return {}
    if "iterations" not in columns:
        raise InputError(
            f"{path}: no column for work, expected one of {', '.join(ALIASES['work'][:4])}, ..."
        )
    work = columns["iterations"]
    if "iteration_s" in columns:
        rate = 1.0 / pd.to_numeric(pd.Series(columns["iteration_s"]), errors="coerce").to_numpy(
            np.float64
        )
        return {"work": work, "throughput": rate[:, None], "gpu_types": ("gpu",)}
    if throughputs is None or "model" not in columns:
        raise InputError(
            f"{path}: has iterations but no durations, expected a column iteration_time_s, "
            "or a column model and a throughput table"
        )
    gpus = pd.to_numeric(pd.Series(columns["gpus"]), errors="coerce")
    rates = []
    for row, (model, gang) in enumerate(zip(columns["model"], gpus, strict=True), 1):
        found = throughputs.rates(str(model), int(gang)) if gang == gang else None
        if found is None:
            raise InputError(
                f"{path}: row {row}: {throughputs.source} has no throughput of {model!r} on {gang:g} GPUs"
            )
        rates.append(found)
    return {"work": work, "throughput": rates, "gpu_types": throughputs.gpu_types}


def _matches(header: list[str]) -> dict[str, str]:
    by_lower = {name.lower(): name for name in header}
    found: dict[str, str] = {}
    for ours, names in ALIASES.items():
        for name in names:
            if name in by_lower and by_lower[name] not in found.values():
                found[ours] = by_lower[name]
                break
    return found


def _split(line: str) -> list[str]:
    return line.split(max(",;\t", key=line.count))
