"""Microsoft's Philly trace, flattened: timestamp, duration, num_gpus, gpu_time, cluster.

Source: Jeon et al., ATC'19; github.com/msr-fiddle/philly-traces (CC-BY-4.0), in the flat form
of the ElasticFlow repository (Apache-2.0). Bad rows are dropped and reported.
"""

from __future__ import annotations

from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.traces import Finding, Imported
from shadowprice.instances.traces.table import drop, in_range, report_order, since
from shadowprice.instances.workload import MAX_GANG, Workload
from shadowprice.instances.workload_files import read_table

NAME = "philly"

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def sniff(first_line: str, path: Path) -> bool:
    """True if the header is exactly that of the flattened trace."""
    return tuple(name.strip() for name in first_line.split(",")) == COLUMNS


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read the trace; the virtual cluster becomes the tenant, ids are row numbers from 1."""
    import pandas as pd

    table = read_table(path)
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(
            f"{path}: column {missing[0]!r} is missing, found {', '.join(map(str, table))}"
        )
    rows = pd.RangeIndex(1, len(table["timestamp"]) + 1)
    frame = pd.DataFrame(table, dtype=object, index=rows)
    report: list[Finding] = []
    dates = pd.to_datetime(frame["timestamp"], errors="coerce", format="%Y-%m-%d %H:%M:%S")
    frame = drop(frame, dates.isna().to_numpy(), "timestamp is not a date", report)
    good = in_range(frame["num_gpus"], 1, MAX_GANG, whole=True)
    frame = drop(frame, ~good, "num_gpus is not an integer > 0", report)
    good = in_range(frame["duration"], TICK_S, MAX_TIME_S)
    frame = drop(frame, ~good, "duration is not a number of seconds > 0", report)
    if frame.empty:
        raise InputError(f"{path}: no usable row is left; {report[0]}")
    dates = dates[frame.index]
    arrival_s = since(dates, dates.min())
    report_order(arrival_s, frame.index.to_numpy(), report)
    workload = Workload.from_columns(
        id=[str(row) for row in frame.index],
        arrival_s=arrival_s,
        gpus=frame["num_gpus"].to_numpy(),
        work=frame["duration"].to_numpy(),
        tenant=frame["cluster"].to_numpy(dtype=object),
        source=str(path),
        rows=frame.index.to_numpy(),
    )
    return Imported(workload, tuple(report))
