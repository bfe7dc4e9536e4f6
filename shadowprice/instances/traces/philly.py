"""Microsoft's Philly trace, flattened: timestamp, duration, num_gpus, gpu_time, cluster.

Source: Jeon et al., ATC'19; github.com/msr-fiddle/philly-traces (CC-BY-4.0), in the flat form
of the ElasticFlow repository (Apache-2.0). Bad rows are dropped and reported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from shadowprice.errors import InputError
from shadowprice.instances.throughputs import Throughputs
from shadowprice.instances.traces.imported import Finding, Imported
from shadowprice.instances.traces.table import drop, read_table, report_order
from shadowprice.instances.workload import Workload

NAME = "philly"

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def sniff(first_line: str, path: Path) -> bool:
    """Whether the header is exactly that of the flattened trace."""
    return tuple(name.strip() for name in first_line.split(",")) == COLUMNS


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read the trace; the virtual cluster becomes the tenant, ids are row numbers from 1."""
    frame = read_table(path)
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise InputError(
            f"{path}: column {missing[0]!r} is missing, found {', '.join(map(str, frame))}"
        )
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    report: list[Finding] = []
    dates = pd.to_datetime(frame["timestamp"], errors="coerce", format="%Y-%m-%d %H:%M:%S")
    frame = drop(frame, dates.isna().to_numpy(), "timestamp is not a date", report)
    for column, least in (("num_gpus", 1.0), ("duration", 2.0**-20)):
        numbers = pd.to_numeric(frame[column], errors="coerce").to_numpy()
        with np.errstate(invalid="ignore"):
            good = (numbers >= least) & (numbers < 2.0**32)
        frame = drop(frame, ~good, f"{column} is not a number > 0", report)
    if frame.empty:
        raise InputError(f"{path}: no usable row is left; {report[0]}")
    dates = dates[frame.index]
    arrival_s = np.asarray((dates - dates.min()).dt.total_seconds(), dtype=np.float64)
    report_order(arrival_s, frame.index.to_numpy(), report)
    workload = Workload.from_columns(
        id=[str(row) for row in frame.index],
        arrival_s=arrival_s,
        gpus=pd.to_numeric(frame["num_gpus"]),
        work=pd.to_numeric(frame["duration"]),
        tenant=frame["cluster"].to_numpy(dtype=object),
        source=str(path),
        rows=frame.index.to_numpy(),
    )
    return Imported(workload, tuple(report))
