"""Records of traces whose importers tell starts and ends: such as SWF, and formats of one's own.

What an importer leaves out it counts by reason; these counts are notes of the record, and no rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.grid import to_grid
from shadowprice.instances.recorded.assembly import NO_LIMITS, NO_NODES
from shadowprice.instances.recorded.record import (
    NOWHERE,
    ContradictionKind,
    Contradictions,
    RunRecord,
)
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload

_COLUMNS = ("tenant", "name", "job_class", "limit_s", "allowed_types")


def read_imported(path: str | Path) -> RunRecord:
    """Record of a trace; without nodes, which these formats do not have.

    Raises
    ------
    InputError
        If no importer reads it, or its format has no starts and ends.
    """
    path = Path(path)
    imported = load_trace(path, recorded=True)
    runs, jobs = imported.recorded, imported.workload
    if runs is None or not len(runs):
        raise InputError(
            f"{path}: its format has no starts and ends, expected a record of what was run"
        )
    job = np.array([jobs.row_of[name] for name in runs.id.tolist()], dtype=np.int64)
    parts = jobs.fractional | jobs.on_cores
    known = bool(np.isfinite(jobs.limit_s).any())
    record = RunRecord(
        source=str(path),
        name=path.name,
        id=jobs.id,
        submit_s=jobs.arrival_s,
        gang=jobs.gpus,
        job=job,
        node=np.full(len(job), NOWHERE),
        gpus=jobs.gpus[job],
        start_s=to_grid(runs.start_s),
        end_s=to_grid(runs.end_s),
        row=runs.row,
        of_jobs={name: getattr(jobs, name) for name in _COLUMNS},
        contradictions=tuple(_parts(jobs)) if parts.any() else (),
        notes=tuple(imported.lines()),
        origin_s=imported.origin_s,
    )
    return record.lacking(NO_NODES, *(() if known else (NO_LIMITS,)))


def _parts(jobs: Workload) -> list[Contradictions]:
    """Jobs that hold no whole GPUs, which no schedule here can place: nobody knows which GPUs they shared."""
    places = np.flatnonzero(jobs.fractional | jobs.on_cores)
    words = ["holds part of a GPU, or cores: which one is not recorded"] * len(places)
    rows = np.zeros(len(places), dtype=np.int64)
    return [Contradictions(ContradictionKind.UNREADABLE, rows, jobs.id[places], words)]
