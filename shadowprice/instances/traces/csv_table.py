"""Tables of jobs under the usual column names: the researcher's own CSV.

A wrong value is an error that names row and column, since such a file can be mended; rows count
from 1 below the header, blank lines left out. The project's own CSV (columns id, arrival_s,
gpus, work, ...) is read without loss. A data frame is such a table in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import ANY_TYPE
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.traces import Finding, Imported
from shadowprice.instances.traces.table import read_dates, report_order, seconds, since
from shadowprice.instances.workload import MAX_GANG, MAX_ITERATIONS, Workload
from shadowprice.instances.workload_files import (
    expect_columns_once,
    expect_rows,
    own_table,
    read_table,
    read_workload,
    split_header,
)

if TYPE_CHECKING:
    import pandas as pd

NAME = "csv"
GENERAL = True  # Recognises many tables; a more particular importer comes first.

Columns = dict[str, Any]
"""Columns by our names, as read."""

ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("id", "job_id", "jobid", "job", "name", "job_name"),
    "arrival_s": (
        "arrival_s",
        "arrival",
        "arrival_time",
        "submit",
        "submit_s",
        "submit_time",
        "submitted_time",
        "submission_time",
        "timestamp",
        "release",
        "release_s",
        "time",
    ),
    "gpus": (
        "gpus",
        "num_gpus",
        "gpu_num",
        "num_gpu",
        "n_gpus",
        "gpu_count",
        "gpu",
        "gpu_demand",
        "scale_factor",
    ),
    "work": (
        "work",
        "duration",
        "duration_s",
        "runtime",
        "runtime_s",
        "run_time",
        "run_time_s",
        "processing_time",
    ),
    "iterations": ("iterations", "total_iterations", "num_iterations", "total_steps", "steps"),
    "iteration_s": (
        "iteration_s",
        "iteration_time",
        "iteration_time_s",
        "iter_time",
        "iter_time_s",
    ),
    "weight": ("weight", "priority_weight"),
    "deadline_s": ("deadline_s", "deadline"),
    "tenant": ("tenant", "vc", "virtual_cluster", "user", "cluster", "queue"),
    "model": ("model", "model_name", "job_type"),
    "job_class": ("job_class",),
    "allowed_types": ("allowed_types",),
    "gpu_milli": ("gpu_milli",),
    "cpus": ("cpus",),
    "memory_gb": ("memory_gb",),
    "batch_size": ("batch_size",),
}
"""Our column: the names it is known by, most specific first; case does not matter."""

OWN = frozenset({"id", "arrival_s", "gpus", "work", "weight", "deadline_s"})
"""Columns of every table that this project wrote."""


def sniff(first_line: str, path: Path) -> bool:
    """True if the header has an arrival, a gang size and an amount of work under known names."""
    found = _matches(split_header(first_line))
    return {"arrival_s", "gpus"} <= found.keys() and bool({"work", "iterations"} & found.keys())


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read a table; see :data:`ALIASES` for the names of columns.

    Times may be seconds or ISO dates (counted from the first arrival). Work is the ``duration``
    in seconds; a table with iterations and no duration needs an iteration time or, for its
    models, a throughput table. An empty weight is 1, an empty deadline none.
    """
    table = read_table(path)
    if set(table) >= OWN:
        return Imported(read_workload(path))
    return _imported(table, str(path), throughputs)


def load_frame(
    frame: pd.DataFrame, throughputs: Throughputs | None = None, *, source: str = "frame"
) -> Imported:
    """Read a data frame as :func:`load` reads a file; a missing value is an empty cell.

    Parameters
    ----------
    source : str
        Name of the table in messages.

    Raises
    ------
    InputError
        As of a file; rows count from 1.
    """
    expect_columns_once([str(name).strip() for name in frame.columns], source)
    if set(frame.columns) >= OWN:
        table = {str(name): _cells(column, strip=False) for name, column in frame.items()}
        return Imported(own_table(table, source))
    expect_rows(len(frame), source)
    table = {str(name).strip(): _cells(column, strip=True) for name, column in frame.items()}
    return _imported({name: each for name, each in table.items() if name}, source, throughputs)


def _cells(column: pd.Series[Any], *, strip: bool) -> NDArray[Any]:
    """Values of a column as a file has them: nothing for what is missing, the rest as it is."""
    import pandas as pd

    if column.dtype.kind in "iuf" and not column.isna().any():
        return column.to_numpy()
    values = column.astype(object).to_numpy(dtype=object)
    values = np.where(np.asarray(pd.isna(values), dtype=np.bool_), "", values)
    if not strip:
        return values
    stripped = [each.strip() if isinstance(each, str) else each for each in values.tolist()]
    return np.array([*stripped, None], dtype=object)[:-1]


def _imported(table: Columns, source: str, throughputs: Throughputs | None) -> Imported:
    """Jobs of a table whose columns have any of the known names."""
    found = _matches(list(table))
    for needed in ("arrival_s", "gpus"):
        if needed not in found:
            names = ", ".join(ALIASES[needed][:5])
            raise InputError(
                f"{source}: no column for {needed}, expected one of {names}, ...; found {', '.join(map(str, table))}"
            )
    _expect_one(source, table, found)
    # A column 'queue' of numbers says how long jobs waited, not whose they are.
    owner = found.get("tenant", "")
    if owner.lower() == "queue" and not np.isnan(ColumnChecks.floats(table[owner])).any():
        del found["tenant"]
    report: list[Finding] = []
    columns: Columns = {name: table[column] for name, column in found.items()}
    columns["arrival_s"], first = seconds(columns["arrival_s"], source, found["arrival_s"])
    report_order(columns["arrival_s"], np.arange(1, len(columns["arrival_s"]) + 1), report)
    if "deadline_s" in columns:
        columns["deadline_s"] = _deadlines(columns["deadline_s"], first)
    if "weight" in columns:
        columns["weight"] = _filled(columns["weight"], "1")
    for name in ("cpus", "memory_gb"):
        if name in columns:
            columns[name] = _filled(columns[name], "0")
    extra = _speeds(columns, found, source, throughputs)
    keep = {
        name: values
        for name, values in columns.items()
        if name not in ("iterations", "iteration_s")
    }
    in_file = {**found, "work": found["iterations" if extra else "work"]}
    workload = Workload.from_columns(**{**keep, **extra}, source=source, names=in_file)
    unused = [name for name in table if name not in found.values()]
    notes = (f"columns that are not used: {', '.join(unused)}",) if unused else ()
    return Imported(workload, tuple(report), len(workload), notes)


def _expect_one(source: str, table: Columns, named: dict[str, str]) -> None:
    """Refuse a table in which two columns of different values could be the same of ours."""
    by_lower = {name.lower(): name for name in table}
    for ours in ("arrival_s", "gpus", "work"):
        names = [by_lower[name] for name in ALIASES[ours] if name in by_lower]
        for other in names:
            chosen = named.get(ours, other)
            taken = other in named.values() and other != chosen
            if not taken and not np.array_equal(table[other], table[chosen]):
                raise InputError(
                    f"{source}: columns {chosen!r} and {other!r} could both be {ours} and differ; rename or "
                    "leave out one of them"
                )


def _filled(cells: NDArray[Any], usual: str) -> NDArray[np.object_]:
    """Values with the usual one where a cell is empty."""
    return np.where(cells == "", usual, cells.astype(object))


def _deadlines(cells: NDArray[np.object_], first: pd.Timestamp | None) -> Any:
    """Empty values as infinity, and dates as seconds from the first arrival if that is a date."""
    empty = cells == ""
    values = np.where(empty, np.inf, cells)
    if first is None:
        return values
    dates = read_dates(cells)
    dated = dates.notna().to_numpy()
    return np.where(dated & ~empty, since(dates, first), values)


def _speeds(
    columns: Columns, named: dict[str, str], source: str, throughputs: Throughputs | None
) -> Columns:
    if "work" in columns and not (throughputs is not None and "iterations" in columns):
        return {}
    if "iterations" not in columns:
        raise InputError(
            f"{source}: no column for work, expected one of {', '.join(ALIASES['work'][:4])}, ..."
        )
    work = columns["iterations"]
    check = ColumnChecks(source, np.arange(1, len(work) + 1), named)
    if "iteration_s" in columns:
        each_s = check.positive("iteration_s", columns["iteration_s"], MAX_ITERATIONS)
        with np.errstate(over="ignore"):  # A rate that is infinite is refused by the workload.
            rate = 1.0 / each_s
        return {"work": work, "throughput": rate[:, None], "gpu_types": (ANY_TYPE,)}
    if throughputs is None or "model" not in columns:
        raise InputError(
            f"{source}: has iterations but no durations, expected a column iteration_time_s, "
            "or a column model and a throughput table"
        )
    gpus = check.integers("gpus", columns["gpus"], 1, MAX_GANG)
    rates = []
    for row, (model, gang) in enumerate(zip(columns["model"], gpus.tolist(), strict=True), 1):
        found_rates = throughputs.rates(str(model), gang)
        if found_rates is None:
            raise InputError(
                f"{source}: row {row}: {throughputs.source} has no throughput of {model!r} on {gang} GPUs"
            )
        rates.append(found_rates)
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
