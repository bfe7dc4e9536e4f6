"""Run directories: enough on disk to verify a run, and to plot it, again.

========================  ==================================================================
``run.json``              format version, policy, settings, cluster, overheads, metrics
``workload.parquet``      the jobs
``schedule.parquet``      the schedule
========================  ==================================================================
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.files import read_bytes, read_text
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.io import read_workload, write_workload
from shadowprice.instances.schedule import Schedule

FORMAT = 1
RUN, WORKLOAD, SCHEDULE = "run.json", "workload.parquet", "schedule.parquet"


def save(outcome: Outcome, directory: str | Path) -> None:
    """Write a run directory; an older run there is replaced file by file.

    Raises
    ------
    InputError
        If the path is a file, cannot be written, or is a directory with something else in it.
    """
    directory = Path(directory)
    try:
        if directory.exists() and not directory.is_dir():
            raise InputError(f"{directory}: is a file, expected a directory for the run")
        directory.mkdir(parents=True, exist_ok=True)
        others = {path.name for path in directory.iterdir()} - {RUN, WORKLOAD, SCHEDULE}
        if others:
            raise InputError(f"{directory}: has {min(others)!r} in it, expected a new directory or an earlier run")
        (directory / RUN).unlink(missing_ok=True)
        table = pa.Table.from_pandas(outcome.schedule.to_frame(), preserve_index=False)
        _replace(directory / WORKLOAD, lambda path: write_workload(outcome.instance.workload, path))
        _replace(directory / SCHEDULE, lambda path: pq.write_table(table, path))
        text = json.dumps(_describe(outcome), indent=1, allow_nan=False)
        _replace(directory / RUN, lambda path: path.write_text(text + "\n", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error}") from error


def load(directory: str | Path) -> Outcome:
    """Read a run directory and verify it again, its recorded metrics included.

    Raises
    ------
    InputError
        If a file is missing, corrupt or of another format.
    VerificationError
        If the schedule breaks a rule, or a recorded metric is not what the schedule gives.
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory")
    described = _read_json(directory / RUN)
    instance = Instance(
        _cluster(described, directory / RUN), read_workload(directory / WORKLOAD), _overheads(described, directory / RUN)
    )
    path = directory / SCHEDULE
    try:
        frame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
    except pa.ArrowException as error:
        raise InputError(f"{path}: is not a Parquet file: {error}") from error
    outcome = Outcome.verified(
        instance,
        Schedule.from_frame(frame, source=str(path)),
        policy=str(described.get("policy", "")),
        settings=described.get("settings", {}),
        decisions=int(described.get("decisions", 0)),
        cpu_s=float(described.get("cpu_s", 0.0)),
    )
    recorded, found = described.get("metrics", {}), outcome.summary()
    for key, value in found.items():
        if recorded.get(key) != value:
            raise VerificationError(f"{directory / RUN}: metric {key} is {recorded.get(key)!r}, the schedule gives {value!r}")
    return outcome


def _describe(outcome: Outcome) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "policy": outcome.policy,
        "settings": dict(outcome.settings),
        "decisions": outcome.decisions,
        "cpu_s": outcome.cpu_s,
        "verify_cpu_s": outcome.verify_cpu_s,
        "cluster": [{"count": count, **asdict(node)} for count, node in outcome.instance.cluster.groups()],
        "overheads": asdict(outcome.instance.overheads),
        "metrics": outcome.summary(),
    }


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the target and rename, so that a crash leaves no half file under its name."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _read_json(path: Path) -> dict[str, Any]:
    try:
        described = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise InputError(f"{path}: expected a run of format {FORMAT}")
    return described


def _cluster(described: dict[str, Any], path: Path) -> Cluster:
    try:
        groups = [(int(group["count"]), Node(**{k: v for k, v in group.items() if k != "count"})) for group in described["cluster"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cluster is not a list of node groups: {error}") from error
    return Cluster(tuple(node for count, node in groups for _ in range(count)))


def _overheads(described: dict[str, Any], path: Path) -> Overheads:
    try:
        values = dict(described["overheads"])
        values["restart_by_gpus"] = tuple((int(gpus), float(cost)) for gpus, cost in values["restart_by_gpus"])
        return Overheads(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: overheads are not as written: {error}") from error
