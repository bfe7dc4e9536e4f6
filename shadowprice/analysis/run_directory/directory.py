"""Run directories: enough on disk to verify a run, and to plot it, again.

========================  ==================================================================
``run.json``              format version, kind, policy, settings, cluster, overheads, rules of
                          copies where jobs run as several, the window of jobs that ended it if one did,
                          the time at which it was stopped if it was, metrics, and the SHA-256 of
                          everything, itself included
``workload.parquet``      the jobs
``schedule.parquet``      the schedule, its rows in order of end where a run was streamed
``together.parquet``      rates of jobs that share GPUs, where the instance has them
``graphs.json``           job graphs and their network, where the instance has them
``conditions.json``       conditions of runs, where the instance has them
``failures.parquet``      when nodes were down, where they fail
``cleaning.json``         what an importer made of the rows of a trace: how many were read, kept,
                          dropped, ..., why, the first of each, and what was taken to be so
========================  ==================================================================

Directories of copies that earlier versions wrote (:mod:`.old_copies`) can be read, too.

The digests catch damage, mixed-up files and careless edits, not forgery: whoever recomputes
them can still not pass a schedule that breaks a rule, nor metrics that are not the schedule's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import UNSET, UnsetType

from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.run_directory import conditions as conditions_file
from shadowprice.analysis.run_directory import failures as failures_file
from shadowprice.analysis.run_directory import old_copies
from shadowprice.analysis.run_directory.files import (
    CLEANING,
    CONDITIONS,
    FAILURES,
    FORMAT,
    GRAPHS,
    RUN,
    SCHEDULE,
    TOGETHER,
    UNKNOWN,
    WORKLOAD,
    Description,
    FoundRun,
    Provenance,
    RunFile,
    check_digests,
    check_metrics,
    described_cluster,
    parsed,
    read_json,
    write_run,
)
from shadowprice.analysis.run_directory.graphs import from_json, to_json
from shadowprice.analysis.run_directory.rates import from_table, to_table
from shadowprice.analysis.run_directory.schedule_file import ScheduleFile
from shadowprice.analysis.run_metrics import SUMMARY
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.analysis.terms.reading import declared_terms
from shadowprice.analysis.terms.written_term import settings_in
from shadowprice.brief import Brief
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.copies import CopyRules
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.files import read_bytes, read_text
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.steady_state.job_window import JobWindow
from shadowprice.instances.workload_files import read_workload, write_workload
from shadowprice.proofs.certificate import Violation
from shadowprice.proofs.verification.segments import ORDER, verifiable_in_segments
from shadowprice.version import __version__

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

__all__ = [
    "GRAPHS",
    "RUN",
    "SCHEDULE",
    "TOGETHER",
    "WORKLOAD",
    "check",
    "cleaning_writer",
    "describe",
    "load",
    "save",
]

KNOWS = (
    frozenset(
        {
            Feature.RATES,
            Feature.TYPES,
            Feature.CHARGES,
            Feature.SHARING,
            Feature.GRAPHS,
            Feature.PROFILES,
            Feature.SPREAD,
            Feature.WIDTHS,
            Feature.COPIES,
            Feature.FAILURES,
            Feature.QUOTAS,
            Feature.PARTS,
            Feature.CORES,
            Feature.AMOUNTS,
            Feature.WINDOW,
            Feature.STOPPED,
            Feature.RESTART,
        }
    )
    | DECLARED_KNOWS
)
"""Features that run directories write down; no file of one's own is run to read one."""

MOST_ROWS_AT_ONCE = 2**22
"""Rows of a schedule that is read in one piece."""

SCHEDULE_KIND = "schedule"
"""Kind of a run with a schedule, also where none is written."""


class _Overheads(msgspec.Struct, frozen=True, kw_only=True):
    start_s: float = 0.0
    restart_s: float = 0.0
    migration_s: float = 0.0
    restart_by_gpus: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        self.overheads()

    def overheads(self) -> Overheads:
        return Overheads(**msgspec.structs.asdict(self))


class _Together(msgspec.Struct, frozen=True):
    """Names that the table of rates of pairs does not have in order."""

    gpu_types: tuple[str, ...]
    source: str


class MadeBy(Brief, msgspec.Struct, frozen=True):
    """The command that made a run."""

    version: str
    command: str
    options: dict[str, Any]
    inputs_sha256: dict[str, str]


class ScheduleRunFile(RunFile, frozen=True, kw_only=True):
    """``run.json`` of a run; the last eleven only where there is such a thing."""

    decisions: int
    overheads: _Overheads
    together: _Together | UnsetType = UNSET
    graphs: int | UnsetType = UNSET
    conditions: bool | UnsetType = UNSET
    copies: CopyRules | UnsetType = UNSET
    until_complete: str | UnsetType = UNSET
    failures: failures_file.SavedFailures | UnsetType = UNSET
    stopped_s: float | UnsetType = UNSET
    preemption: Preemption | UnsetType = UNSET
    declared: dict[str, dict[str, Any]] | UnsetType = UNSET
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
    writers: dict[str, Callable[[Path], object]] = {
        WORKLOAD: lambda path: write_workload(instance.workload, path),
        SCHEDULE: lambda path: pq.write_table(schedule, path),
    }
    for feature, (file, write) in _FILES.items():
        if feature in instance.features:
            writers[file] = partial(write, instance)
    described = describe(outcome, provenance)
    writers |= cleaning_writer(provenance, described)
    write_run(Path(directory), writers, described)


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
    described, directory = _described(Path(directory))
    if described.get("kind", SCHEDULE_KIND) == old_copies.KIND:
        found = old_copies.read(described, directory)
    else:
        found = _read(described, directory)
    return _verified(found, described, directory)


def check(directory: str | Path, watch: Watch | None = None) -> VerifiedRun:
    """As :func:`load`; a long schedule is read in segments and stays on disk.

    Parameters
    ----------
    watch : Watch, optional
        Told how much of a schedule in segments is verified.
    """
    described, directory = _described(Path(directory))
    path = directory / SCHEDULE
    if described.get("kind", SCHEDULE_KIND) != SCHEDULE_KIND or not path.is_file():
        return load(directory)
    saved = decode(ScheduleRunFile, described, str(directory / RUN))
    if parsed(path, pq.read_metadata).num_rows <= MOST_ROWS_AT_ONCE:
        return load(directory)
    instance = _instance(saved, directory)
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
    check_metrics(saved.metrics, outcome.summary(), directory / RUN)
    more = (CLEANING,) if "cleaning" in described else ()
    check_digests(described, directory, (WORKLOAD, SCHEDULE, *more))
    return outcome


def _described(directory: Path) -> tuple[Description, Path]:
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    described = read_json(directory / RUN)
    kind = described.get("kind", SCHEDULE_KIND)
    if kind not in (SCHEDULE_KIND, old_copies.KIND):
        raise InputError(
            f"{directory / RUN}: kind is {kind!r}, expected {SCHEDULE_KIND!r}, or {old_copies.KIND!r} of "
            "an earlier version"
        )
    return described, directory


def _read(described: Description, directory: Path) -> FoundRun:
    saved = decode(ScheduleRunFile, described, str(directory / RUN))
    instance = _instance(saved, directory)
    schedule = parsed(directory / SCHEDULE, _read_schedule)
    parts = {"together": TOGETHER, "graphs": GRAPHS, "conditions": CONDITIONS, "failures": FAILURES}
    parts["cleaning"] = CLEANING
    more = tuple(name for part, name in parts.items() if part in described)
    return FoundRun(saved, instance, schedule, SCHEDULE, more, saved.decisions)


def _instance(saved: ScheduleRunFile, directory: Path) -> Instance:
    graphs, conditions = directory / GRAPHS, directory / CONDITIONS
    declared = {} if saved.declared is UNSET else saved.declared
    terms = declared_terms(declared, f"{directory / RUN}: declared:")
    return Instance(
        saved.nodes(directory / RUN),
        parsed(directory / WORKLOAD, read_workload),
        saved.overheads.overheads(),
        None if saved.together is UNSET else _read_together(saved.together, directory / TOGETHER),
        None if saved.graphs is UNSET else from_json(read_text(graphs), path=str(graphs)),
        None
        if saved.conditions is UNSET
        else conditions_file.from_json(read_text(conditions), path=str(conditions)),
        None if saved.copies is UNSET else saved.copies,
        None if saved.until_complete is UNSET else JobWindow.parse(saved.until_complete),
        None if saved.failures is UNSET else _read_failures(saved.failures, directory / FAILURES),
        None if saved.stopped_s is UNSET else saved.stopped_s,
        Preemption.RESUME if saved.preemption is UNSET else saved.preemption,
        terms,
    )


def _verified(found: FoundRun, described: Description, directory: Path) -> Outcome:
    """The outcome of what was read, after all that was recorded of it was compared."""
    saved = found.saved
    try:
        outcome = Outcome.verified(
            found.instance,
            found.schedule,
            policy=saved.policy,
            settings=saved.settings,
            decisions=found.decisions,
            cpu_s=saved.cpu_s,
        )
    except VerificationError as error:
        raise VerificationError(f"{directory / found.rows}: {error}") from error
    # Runs of copies had these metrics from the beginning.
    later = SUMMARY if found.instance.copies is None else ()
    check_metrics(saved.metrics, outcome.summary(), directory / RUN, later=later)
    # Last, since a broken rule or a wrong metric says more than a digest that differs.
    check_digests(described, directory, (WORKLOAD, found.rows, *found.more))
    return outcome


def describe(outcome: VerifiedRun, provenance: Provenance = UNKNOWN) -> Description:
    """Content of ``run.json`` but the digests.

    Raises
    ------
    InputError
        If the instance has a feature that run directories do not write down.
    """
    instance = outcome.instance
    require(instance, KNOWS, "run directories")
    described: Description = {
        "format": FORMAT,
        "kind": SCHEDULE_KIND,
        "version": __version__,
        "policy": outcome.policy,
        "settings": dict(outcome.settings),
        "decisions": outcome.decisions,
        "cpu_s": outcome.cpu_s,
        "verify_cpu_s": outcome.verify_cpu_s,
        "cluster": described_cluster(instance.cluster),
        "overheads": asdict(instance.overheads),
        "metrics": outcome.summary(),
    }
    if provenance.made_by is not None:
        described["made_by"] = dict(provenance.made_by)
    for feature, (entry, written) in _ENTRIES.items():
        if feature in instance.features:
            described[entry] = written(instance)
    if instance.declared:
        described["declared"] = {each.name: settings_in(each) for each in instance.declared}
    return described


def _together(instance: Instance) -> dict[str, object]:
    table = instance.pair_throughputs
    assert table is not None
    return {"gpu_types": table.gpu_types, "source": table.source}


def _graphs(instance: Instance) -> int:
    assert instance.graphs is not None
    return len(instance.graphs.graph)


def _copies(instance: Instance) -> dict[str, object]:
    assert instance.copies is not None
    return asdict(instance.copies)


def _quotas(instance: Instance) -> dict[str, object]:
    assert instance.cluster.quotas is not None
    return asdict(instance.cluster.quotas)


def _failures(instance: Instance) -> object:
    assert instance.failures is not None
    return failures_file.described(instance.failures)


_ENTRIES: Mapping[Feature, tuple[str, Callable[[Instance], object]]] = MappingProxyType(
    {
        Feature.SHARING: ("together", _together),
        Feature.GRAPHS: ("graphs", _graphs),
        Feature.PROFILES: ("conditions", lambda instance: True),
        Feature.SPREAD: ("conditions", lambda instance: True),
        Feature.WIDTHS: ("conditions", lambda instance: True),
        Feature.COPIES: ("copies", _copies),
        Feature.QUOTAS: ("quotas", _quotas),
        Feature.WINDOW: ("until_complete", lambda instance: str(instance.until_complete)),
        Feature.FAILURES: ("failures", _failures),
        Feature.STOPPED: ("stopped_s", lambda instance: instance.stopped_s),
        Feature.RESTART: ("preemption", lambda instance: str(instance.preemption)),
    }
)
"""Entries of ``run.json`` on what an instance has beside jobs, nodes and charges."""


def _write_together(instance: Instance, path: Path) -> None:
    assert instance.pair_throughputs is not None
    pq.write_table(to_table(instance.pair_throughputs), path)


def _write_graphs(instance: Instance, path: Path) -> None:
    assert instance.graphs is not None
    path.write_text(to_json(instance.graphs), encoding="utf-8")


def _write_conditions(instance: Instance, path: Path) -> None:
    assert instance.conditions is not None
    path.write_text(conditions_file.to_json(instance.conditions), encoding="utf-8")


def _write_failures(instance: Instance, path: Path) -> None:
    assert instance.failures is not None
    pq.write_table(failures_file.to_table(instance.failures), path)


_FILES: Mapping[Feature, tuple[str, Callable[[Instance, Path], None]]] = MappingProxyType(
    {
        Feature.SHARING: (TOGETHER, _write_together),
        Feature.GRAPHS: (GRAPHS, _write_graphs),
        Feature.PROFILES: (CONDITIONS, _write_conditions),
        Feature.SPREAD: (CONDITIONS, _write_conditions),
        Feature.WIDTHS: (CONDITIONS, _write_conditions),
        Feature.FAILURES: (FAILURES, _write_failures),
    }
)
"""Files on what an instance has beside jobs, nodes and charges."""


def _read_schedule(path: Path) -> Schedule:
    frame: pd.DataFrame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
    return Schedule.from_frame(frame, source=str(path))


def _read_failures(saved: failures_file.SavedFailures, path: Path) -> NodeFailures:
    def read(file: Path) -> NodeFailures:
        return saved.failures(pq.read_table(pa.BufferReader(read_bytes(file))), str(path))

    return parsed(path, read)


def _read_together(saved: _Together, path: Path) -> Throughputs:
    def read(file: Path) -> Throughputs:
        table = pq.read_table(pa.BufferReader(read_bytes(file)))
        return from_table(table, saved.gpu_types, saved.source, path=str(file))

    return parsed(path, read)
