"""Directories of runs of copies as they once were: ``forks.parquet`` instead of a schedule.

Its rows had the number of their round, and the id ``jobs * i + job`` of their copy, i from 1. No such
directory is written any more; those that there are can be read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.analysis.run_directory.files import (
    OLD_COPIES,
    RUN,
    WORKLOAD,
    Description,
    FoundRun,
    RunFile,
    parsed,
)
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.copies import CopyRules
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import read_bytes
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload_files import read_workload

KIND = "forks"


class OldCopiesFile(RunFile, frozen=True, kw_only=True):
    """``run.json`` of such a directory."""

    forks: CopyRules


def read(described: Description, directory: Path) -> FoundRun:
    """The run in such a directory.

    Raises
    ------
    InputError
        If a file is missing, corrupt or of another format.
    VerificationError
        If the numbers of rounds are not in the order of their beginnings, or a copy's id is not of
        its job.
    """
    run_path = directory / RUN
    saved = decode(OldCopiesFile, described, str(run_path))
    workload = parsed(directory / WORKLOAD, read_workload)
    instance = Instance(saved.nodes(run_path), workload, copies=saved.forks)
    schedule = parsed(directory / OLD_COPIES, lambda path: _schedule(path, len(workload)))
    return FoundRun(saved, instance, schedule, OLD_COPIES)


def _schedule(path: Path, jobs: int) -> Schedule:
    frame: pd.DataFrame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
    for name in ("round", "copy", "steps"):
        if name not in frame:
            raise InputError(f"{path}: column {name!r} is missing")
    rows = Schedule.from_frame(frame.drop(columns="round"), source=str(path))
    assert rows.copy is not None
    begun = np.unique(rows.start_s, return_inverse=True)[1]
    if not np.array_equal(frame["round"].to_numpy(), begun):
        raise VerificationError(f"{path}: round: expected numbers in order of the starts, from 0")
    number, job = np.divmod(rows.copy, max(jobs, 1))
    if not np.array_equal(job, rows.job):
        raise VerificationError(f"{path}: copy: expected {jobs} i + job, i from 1")
    return replace(rows, copy=number - 1)
