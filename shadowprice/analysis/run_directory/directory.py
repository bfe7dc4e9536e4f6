"""Run directories: enough on disk to verify a run, and to plot it, again.

========================  ==================================================================
``run.json``              format version, policy, settings, metrics, and the SHA-256 of
                          everything, itself included
``instance.json``         what was given but the jobs, as
                          :mod:`shadowprice.instances.documents.written_instance` has it
``workload.parquet``      the jobs
``schedule.parquet``      the schedule, its rows in order of end where a run was streamed
``cleaning.json``         what an importer made of the rows of a trace: how many were read, kept,
                          dropped, ..., why, the first of each, and what was taken to be so
========================  ==================================================================

Directories of earlier formats are refused in one line, and may be written over.

The digests catch damage, mixed-up files and careless edits, not forgery: whoever recomputes
them can still not pass a schedule that breaks a rule, nor metrics that are not the schedule's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import UNSET, UnsetType

from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.run_directory.files import (
    CLEANING,
    FORMAT,
    INSTANCE,
    RUN,
    SCHEDULE,
    UNKNOWN,
    WORKLOAD,
    Description,
    Provenance,
    check_digests,
    check_metrics,
    parsed,
    read_description,
    write_run,
)
from shadowprice.analysis.run_directory.schedule_file import ScheduleFile
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.brief import Brief
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.documents.plain_data import text_of
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import read_written, written
from shadowprice.instances.files import read_bytes, read_json
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload_files import read_workload, write_workload
from shadowprice.proofs.certificate import Violation
from shadowprice.proofs.verification.segments import ORDER, verifiable_in_segments
from shadowprice.version import __version__

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

__all__ = [
    "INSTANCE",
    "RUN",
    "SCHEDULE",
    "WORKLOAD",
    "check",
    "cleaning_writer",
    "describe",
    "load",
    "save",
]

MOST_ROWS_AT_ONCE = 2**22
"""Rows of a schedule that is read in one piece."""


class MadeBy(Brief, msgspec.Struct, frozen=True):
    """The command that made a run."""

    version: str
    command: str
    options: dict[str, Any]
    inputs_sha256: dict[str, str]


class RunFile(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """``run.json`` of a run; the last two only where there is such a thing."""

    format: int
    version: str
    policy: str
    settings: dict[str, Any]
    decisions: int
    cpu_s: float
    verify_cpu_s: float | None = None
    metrics: dict[str, Any]
    sha256: dict[str, Any]
    cleaning: bool | UnsetType = UNSET
    made_by: MadeBy | UnsetType = UNSET


def save(
    outcome: Outcome,
    directory: str | Path,
    *,
    provenance: Provenance = UNKNOWN,
) -> None:
    """Write a run directory; an earlier run there is replaced.

    Parameters
    ----------
    provenance : Provenance
        Command and trace that it comes from.

    Raises
    ------
    InputError
        If the path is a file, is a directory that holds something else than an earlier run, or
        cannot be written; or if a setting cannot be written as JSON.
    """
    instance = outcome.instance
    schedule = pa.Table.from_pandas(outcome.schedule.to_frame(), preserve_index=False)
    described = describe(outcome, provenance)
    writers: dict[str, Callable[[Path], object]] = {
        INSTANCE: instance_writer(instance),
        WORKLOAD: lambda path: write_workload(instance.workload, path),
        SCHEDULE: lambda path: pq.write_table(schedule, path),
        **cleaning_writer(provenance, described),
    }
    write_run(Path(directory), writers, described)


def instance_writer(instance: Instance) -> Callable[[Path], object]:
    """Writer of the file on all that was given but the jobs.

    Raises
    ------
    InputError
        If the instance has a feature that cannot be written.
    """
    text = text_of(written(instance))
    return lambda path: path.write_text(text, encoding="utf-8")


def cleaning_writer(
    provenance: Provenance, described: Description
) -> dict[str, Callable[[Path], object]]:
    """Writer of the file on the rows of a trace, by its name, which the description then names; none of none."""
    if provenance.cleaning is None:
        return {}
    described["cleaning"] = True
    report = json.dumps(provenance.cleaning, indent=1, ensure_ascii=False) + "\n"
    return {CLEANING: lambda path: path.write_text(report, encoding="utf-8")}


def load(directory: str | Path) -> Outcome:
    """Read a run directory and verify it again, its recorded metrics included.

    Raises
    ------
    InputError
        If a file is missing, corrupt or of another format.
    VerificationError
        If a file is not the one that was saved, the schedule breaks a rule, or a recorded metric
        is not what the schedule gives.
    """
    saved, described, directory = _described(Path(directory))
    instance = _instance(directory)
    schedule = parsed(directory / SCHEDULE, _read_schedule)
    try:
        outcome = Outcome.verified(
            instance,
            schedule,
            policy=saved.policy,
            settings=saved.settings,
            decisions=saved.decisions,
            cpu_s=saved.cpu_s,
        )
    except VerificationError as error:
        raise VerificationError(f"{directory / SCHEDULE}: {error}") from error
    _check_recorded(outcome, described, directory)
    return outcome


def check(directory: str | Path, watch: Watch | None = None) -> VerifiedRun:
    """As :func:`load`; a long schedule is read in segments and stays on disk.

    Parameters
    ----------
    watch : Watch, optional
        Told how much of a schedule in segments is verified.
    """
    saved, described, directory = _described(Path(directory))
    path = directory / SCHEDULE
    if not path.is_file() or parsed(path, pq.read_metadata).num_rows <= MOST_ROWS_AT_ONCE:
        return load(directory)
    instance = _instance(directory)
    if not verifiable_in_segments(instance):
        return load(directory)
    try:
        outcome = StreamedOutcome(
            instance,
            ScheduleFile(path),
            saved.policy,
            saved.settings,
            saved.decisions,
            saved.cpu_s,
            watch,
        )
    except VerificationError as error:
        if isinstance(error, Violation) and error.rule == ORDER:
            return load(directory)
        raise VerificationError(f"{path}: {error}") from error
    _check_recorded(outcome, described, directory)
    return outcome


def _described(directory: Path) -> tuple[RunFile, Description, Path]:
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    described = read_description(directory / RUN)
    return decode(RunFile, described, str(directory / RUN)), described, directory


def _instance(directory: Path) -> Instance:
    path = directory / INSTANCE
    written = read_written(read_json(path), str(path))
    return written.instance(parsed(directory / WORKLOAD, read_workload), str(path))


def _check_recorded(outcome: VerifiedRun, described: Description, directory: Path) -> None:
    """Compare all that was recorded with what was found."""
    check_metrics(described["metrics"], outcome.summary(), directory / RUN)
    more = (CLEANING,) if "cleaning" in described else ()
    # Last, since a broken rule or a wrong metric says more than a digest that differs.
    check_digests(described, directory, (INSTANCE, WORKLOAD, SCHEDULE, *more))


def describe(outcome: VerifiedRun, provenance: Provenance = UNKNOWN) -> Description:
    """Content of ``run.json`` but the digests."""
    described: Description = {
        "format": FORMAT,
        "version": __version__,
        "policy": outcome.policy,
        "settings": dict(outcome.settings),
        "decisions": outcome.decisions,
        "cpu_s": outcome.cpu_s,
        "verify_cpu_s": outcome.verify_cpu_s,
        "metrics": outcome.summary(),
    }
    if provenance.made_by is not None:
        described["made_by"] = dict(provenance.made_by)
    return described


def _read_schedule(path: Path) -> Schedule:
    frame: pd.DataFrame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
    return Schedule.from_frame(frame, source=str(path))
