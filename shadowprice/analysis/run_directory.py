"""Run directories: enough on disk to verify a run, and to plot it, again.

========================  ==================================================================
``run.json``              format version, policy, settings, cluster, overheads, metrics, and
                          the SHA-256 of everything, itself included
``workload.parquet``      the jobs
``schedule.parquet``      the schedule
``together.parquet``      rates of jobs that share GPUs, where the instance has them
``graphs.json``           job graphs and their network, where the instance has them
========================  ==================================================================

The digests catch damage, mixed-up files and careless edits, not forgery: whoever recomputes
them can still not pass a schedule that breaks a rule, nor metrics that are not the schedule's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.analysis.graphs_file import from_json, to_json
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.rates_table import from_table, to_table
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.files import read_bytes, read_text
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.io import read_workload, write_workload
from shadowprice.instances.job_graphs import JobGraphs
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.throughputs import Throughputs

T = TypeVar("T")

FORMAT = 1
RUN, WORKLOAD, SCHEDULE = "run.json", "workload.parquet", "schedule.parquet"
TOGETHER, GRAPHS = "together.parquet", "graphs.json"
_PARTIAL = ".partial-"
_KINDS: dict[str, type | tuple[type, ...]] = {
    "policy": str,
    "settings": dict,
    "decisions": int,
    "cpu_s": (int, float),
    "cluster": list,
    "overheads": dict,
    "metrics": dict,
    "sha256": dict,
}


def save(outcome: Outcome, directory: str | Path) -> None:
    """Write a run directory; an earlier run there is replaced.

    All files are written beside their targets and then renamed, so that none is ever there in
    part; a crash between two renames leaves files that :func:`load` refuses.

    Raises
    ------
    InputError
        If the path is a file, is a directory that holds something else than an earlier run, or
        cannot be written; or if a setting cannot be written as JSON.
    """
    directory = Path(directory)
    try:
        _claim(directory)
        together, graphs = outcome.instance.together, outcome.instance.graphs
        data = _files(together is not None, graphs is not None)
        partial = {name: directory / (_PARTIAL + name) for name in (*data, RUN)}
        write_workload(outcome.instance.workload, partial[WORKLOAD])
        table = pa.Table.from_pandas(outcome.schedule.to_frame(), preserve_index=False)
        pq.write_table(table, partial[SCHEDULE])
        if together is not None:
            pq.write_table(to_table(together), partial[TOGETHER])
        if graphs is not None:
            partial[GRAPHS].write_text(to_json(graphs), encoding="utf-8")
        digests = {name: _sha256(partial[name].read_bytes()) for name in data}
        partial[RUN].write_text(_describe(outcome, digests), encoding="utf-8")
        for name in (RUN, *data):
            partial[name].replace(directory / name)
        for name in {TOGETHER, GRAPHS}.difference(data):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error}") from error


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
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    run_path, schedule_path = directory / RUN, directory / SCHEDULE
    described = _read_description(run_path)
    instance = Instance(
        _cluster(described["cluster"], run_path),
        _parsed(directory / WORKLOAD, read_workload),
        _overheads(described["overheads"], run_path),
        _together(described.get("together"), run_path),
        _parsed(directory / GRAPHS, _read_graphs) if "graphs" in described else None,
    )
    schedule = _parsed(schedule_path, _read_schedule)
    try:
        outcome = Outcome.verified(
            instance,
            schedule,
            policy=described["policy"],
            settings=described["settings"],
            decisions=described["decisions"],
            cpu_s=float(described["cpu_s"]),
        )
    except VerificationError as error:
        raise VerificationError(f"{schedule_path}: {error}") from error
    _check_metrics(described["metrics"], outcome, run_path)
    # Last, since a broken rule or a wrong metric says more than a digest that differs.
    _check_digests(described, directory)
    return outcome


def _claim(directory: Path) -> None:
    """Make the directory, or make sure that it is empty or an earlier run."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: is a file, expected a directory for the run")
    directory.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in directory.iterdir() if not path.name.startswith(_PARTIAL)}
    if not names:
        return
    foreign = names - {RUN, *_files(True, True)}
    if foreign:
        raise InputError(
            f"{directory}: has {min(foreign)!r} in it, expected a new directory or an earlier run"
        )
    if RUN not in names:
        raise InputError(
            f"{directory}: has {min(names)!r} but no {RUN!r}, "
            "expected a new directory or an earlier run"
        )
    _read_json(directory / RUN)


def _files(together: bool, graphs: bool) -> tuple[str, ...]:
    """Files of a run that are data."""
    return (WORKLOAD, SCHEDULE, *[TOGETHER] * together, *[GRAPHS] * graphs)


def _describe(outcome: Outcome, digests: Mapping[str, str]) -> str:
    """Text of ``run.json``."""
    cluster, together = outcome.instance.cluster, outcome.instance.together
    described: dict[str, Any] = {
        "format": FORMAT,
        "policy": outcome.policy,
        "settings": dict(outcome.settings),
        "decisions": outcome.decisions,
        "cpu_s": outcome.cpu_s,
        "verify_cpu_s": outcome.verify_cpu_s,
        "cluster": [{"count": count, **asdict(node)} for count, node in cluster.groups()],
        "overheads": asdict(outcome.instance.overheads),
        "metrics": outcome.summary(),
    }
    if together is not None:
        described["together"] = {"gpu_types": together.gpu_types, "source": together.source}
    if outcome.instance.graphs is not None:
        described["graphs"] = len(outcome.instance.graphs.graph)
    try:
        described["sha256"] = {RUN: _sha256(_canonical(described)), **digests}
        return json.dumps(described, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"{RUN}: settings or metrics are not JSON: {error}") from error


def _canonical(described: Mapping[str, Any]) -> bytes:
    """Bytes that depend on the content of a description only, its digests left out."""
    content = {key: value for key, value in described.items() if key != "sha256"}
    return json.dumps(content, sort_keys=True).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        described = json.loads(read_text(path))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not JSON: {error}") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        found = described.get("format") if isinstance(described, dict) else described
        raise InputError(f"{path}: format is {found!r}, expected a run of format {FORMAT}")
    return described


def _read_description(path: Path) -> dict[str, Any]:
    described = _read_json(path)
    for key, kind in _KINDS.items():
        value = described.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{path}: {key} is {value!r}, not as a run is saved")
    return described


def _read_schedule(path: Path) -> Schedule:
    frame: pd.DataFrame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
    return Schedule.from_frame(frame, source=str(path))


def _read_graphs(path: Path) -> JobGraphs:
    return from_json(read_text(path), path=str(path))


def _parsed(path: Path, read: Callable[[Path], T]) -> T:
    """What a reader makes of a file; damaged Parquet raises a variety of errors."""
    try:
        return read(path)
    except ShadowpriceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        raise InputError(f"{path}: is not as saved: {error}") from error


def _check_digests(described: Mapping[str, Any], directory: Path) -> None:
    recorded = described["sha256"]
    data = _files("together" in described, "graphs" in described)
    found = {name: _sha256(read_bytes(directory / name)) for name in data}
    found[RUN] = _sha256(_canonical(described))
    for name, digest in found.items():
        if recorded.get(name) != digest:
            raise VerificationError(
                f"{directory / name}: is not what was saved: its SHA-256 is {digest}, "
                f"{RUN} has {recorded.get(name)!r}"
            )


def _check_metrics(recorded: Mapping[str, Any], outcome: Outcome, path: Path) -> None:
    for key, value in outcome.summary().items():
        if recorded.get(key) != value:
            raise VerificationError(
                f"{path}: metric {key} is {recorded.get(key)!r}, the schedule gives {value!r}"
            )


def _cluster(groups: list[Any], path: Path) -> Cluster:
    try:
        nodes = [
            (int(group["count"]), Node(**{k: v for k, v in group.items() if k != "count"}))
            for group in groups
        ]
        return Cluster(tuple(node for count, node in nodes for _ in range(count)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cluster is not a list of node groups: {error}") from error


def _overheads(values: dict[str, Any], path: Path) -> Overheads:
    try:
        steps = tuple((int(gpus), float(cost)) for gpus, cost in values["restart_by_gpus"])
        return Overheads(**{**values, "restart_by_gpus": steps})
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: overheads are not as saved: {error}") from error


def _together(described: Any, path: Path) -> Throughputs | None:
    """Rates of pairs, for which the description has only the names of GPU types and the source."""
    if described is None:
        return None
    try:
        types, source = (
            tuple(str(name) for name in described["gpu_types"]),
            str(described["source"]),
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: together is not as saved: {error}") from error

    def read(file: Path) -> Throughputs:
        table = pq.read_table(pa.BufferReader(read_bytes(file)))
        return from_table(table, types, source, path=str(file))

    return _parsed(path.with_name(TOGETHER), read)
