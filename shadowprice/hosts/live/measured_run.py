"""A real run as something to simulate: its jobs, cluster, measured throughputs and overheads.

``write_measured`` leaves ``throughputs.json``, ``jobs.csv``, ``cluster.toml`` and, where gangs were
spread, ``spread.json`` in a directory, and says the one command that simulates them.

Overheads. A lease takes longer than its steps at the measured rate: the command starts, imports and
restores, its first steps warm up, it saves, and is gone some time after it was asked to stop. What
leases take beyond their steps is explained by three costs of at least nothing: of every start, of
every start that resumes, and of every stop by the policy, such that absolute errors are least: of
starts alone that is the median, which one slow start among many does not move. The first is the
charge of a start, the other two together, work that was done again included, that of a restart. Leases
that shared their devices, failed, went down with a node, outlived their driver or ran while it was
stopped are left out: they have no one rate, or are exceptions that a simulation does not know.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.hosts.live.graphs.measured_mappings import (
    MeasuredMappings,
    done_workload,
    mapped_workload,
    measured_graphs,
)
from shadowprice.hosts.live.job_file import cluster_of
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.supervision.files import read_json, write_text
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.named_settings import joined_settings
from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.instances.speeds.profiles import Profiles, table_entry
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.speeds.throughput_files import (
    Observation,
    kind_name,
    measured_throughputs,
    observations_of,
    spread_speeds,
    write_spread,
    write_throughputs,
)
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_files import write_workload
from shadowprice.solvers.programs import gate
from shadowprice.solvers.programs.linear_program import LinearProgram

# Overheads.


Event = Mapping[str, Any]
OUTAGES = frozenset({"gap_s", "disk_full_s"})
"""Data of notes that a driver was not running, or could not write, for so long."""


@dataclass(frozen=True)
class LeaseTime:
    """A lease of a job that had its devices for itself.

    Parameters
    ----------
    devices : tuple of str
        UUIDs.
    held_s : float
        From grant to end [s].
    steps : int
        Steps that were committed.
    resumed : bool
        Whether the job had a lease before.
    finished : bool
        Whether it finished the job; else the policy stopped it.
    speed : float
        Of the job with the CPUs and memory that the policy gave it, by its profile; of one with a graph,
        iterations a second that the graph says of where its replicas were.
    """

    job: str
    devices: tuple[str, ...]
    held_s: float
    steps: int
    resumed: bool
    finished: bool
    speed: float = 1.0


@dataclass(frozen=True)
class _Open:
    granted_s: float
    devices: tuple[str, ...]
    from_step: int
    resumed: bool
    speed: float = 1.0
    stopped: bool = False
    released_s: float = 0.0
    steps: int = 0


def lease_times(events: Iterable[Event]) -> list[LeaseTime]:
    """Leases that finished their job or were stopped by the policy, and were never shared; O(n)."""
    leases: dict[tuple[str, int], _Open] = {}
    begun: set[str] = set()
    shared: set[tuple[str, int]] = set()
    found = []
    for event in events:
        kind, data = event["kind"], event["data"]
        key = (event["job"], event["epoch"])
        if kind in ("granted", "partner") and data.get("partner"):
            shared |= {key} | {other for other in leases if other[0] == data["partner"]}
        if kind == "driver-started" or OUTAGES & data.keys():
            leases.clear()
        elif kind == "granted":
            devices, name = tuple(data["devices"]), event["job"]
            began = (event["time_s"], devices, data["from_step"], name in begun)
            leases[key] = _Open(*began, _speed(data))
            begun.add(name)
        elif kind == "stop-asked" and key in leases:
            leases[key] = replace(leases[key], stopped=True)
        elif kind == "released" and key in leases:
            lease = leases.pop(key)
            steps = data["checkpoint_step"] - lease.from_step
            ended = replace(lease, released_s=event["time_s"], steps=steps)
            if key not in shared and data["code"] == 0:
                leases[key] = ended
            elif key not in shared and lease.stopped:
                found.append(_time(key[0], ended, event["time_s"], finished=False))
        elif kind == "finished" and key in leases:
            lease = leases.pop(key)
            end_s = min(data.get("at_s", lease.released_s), lease.released_s)
            found.append(_time(key[0], lease, end_s, finished=True))
    return found


def _speed(data: Mapping[str, Any]) -> float:
    """Speed of a lease that its profile, or its job's graph, explains."""
    said_s = data.get("iteration_s")
    return float(data.get("speed", 1.0)) if said_s is None else 1.0 / float(said_s)


def _time(job: str, lease: _Open, end_s: float, *, finished: bool) -> LeaseTime:
    held_s = end_s - lease.granted_s
    return LeaseTime(job, lease.devices, held_s, lease.steps, lease.resumed, finished, lease.speed)


def measured_overheads(
    leases: Iterable[LeaseTime],
    rates: Mapping[tuple[str, str], float],
    type_of: Mapping[str, str],
) -> Overheads:
    """Charges that these leases show, on the grid of times.

    Parameters
    ----------
    rates : mapping of (job, GPU type) to float
        Iterations per second; leases without a rate are left out.
    type_of : mapping of str to str
        GPU type of each device.

    Returns
    -------
    Overheads
        ``start_s`` and ``restart_s``; none if no lease tells.
    """
    causes, extra_s = [], []
    for lease in leases:
        rate = min((rates.get((lease.job, type_of[d]), 0.0) for d in lease.devices), default=0.0)
        if rate > 0:
            causes.append((1.0, float(lease.resumed), float(not lease.finished)))
            extra_s.append(max(lease.held_s - lease.steps / (rate * lease.speed), 0.0))
    if not causes:
        return Overheads()
    start_s, resume_s, stop_s = _least_absolute(np.array(causes), np.array(extra_s))
    return Overheads(start_s=_charge(start_s), restart_s=_charge(resume_s + stop_s))


def _least_absolute(causes: NDArray[np.float64], extra_s: NDArray[np.float64]) -> list[float]:
    """Costs of at least nothing for which the absolute errors of what they explain are least.

    Parameters
    ----------
    causes : ndarray, shape (n, k)
        How often each cause is in each row.
    extra_s : ndarray, shape (n,)
        To be explained [s].
    """
    rows, kinds = causes.shape
    # Errors below and above are variables; a little is taken for costs, so that there is one answer.
    price = np.concatenate([np.full(kinds, 1e-6), np.ones(2 * rows)])
    both = np.hstack([causes, np.eye(rows), -np.eye(rows)])
    none, free = np.zeros(len(price)), np.full(len(price), np.inf)
    found = gate.solve(LinearProgram.of(price, none, free, both, extra_s, extra_s))
    return [float(cost) for cost in found.primal[:kinds]]


def _charge(seconds: float) -> float:
    return min(float(to_grid(seconds)), MAX_TIME_S)


Row = Mapping[str, Any]


@dataclass(frozen=True)
class RealJob:
    """Outcome of a job in a real run.

    Parameters
    ----------
    arrival_s, finish_s : float
        Since the run began [s]; infinity if it did not finish.
    steps : int
        Steps it has done.
    """

    name: str
    arrival_s: float
    finish_s: float
    steps: int


@dataclass(frozen=True)
class MeasuredRun:
    """A real run, with what was measured in it.

    Parameters
    ----------
    jobs : tuple of RealJob
        In the order of the run.
    workload : Workload
        Those that did some work, with their measured rates. The work of jobs that did not finish
        is what they did, so that others wait for them as long as they did.
    notes : tuple of str
        What had to be assumed.
    profiles : Profiles or None
        Speeds of jobs by CPUs and memory, where the policy gave them out.
    mapped : MeasuredMappings or None
        Graphs of jobs, slower or faster than they were given by what was measured.
    shared : bool
        Whether jobs might share GPUs, as far as the run's settings tell.
    """

    policy: str
    round_s: float
    cluster: Cluster
    jobs: tuple[RealJob, ...]
    workload: Workload
    table: Throughputs
    observations: tuple[Observation, ...]
    overheads: Overheads
    notes: tuple[str, ...] = ()
    placement: str = "count"
    profiles: Profiles | None = None
    mapped: MeasuredMappings | None = None
    shared: bool = False


def measured_run(ledger: RunLedger) -> MeasuredRun:
    """Measured run of a ledger, whether it is over or not.

    Raises
    ------
    InputError
        If no job has done anything that could be simulated, or jobs changed their width.
    """
    if ledger.value("widths") is not None:
        raise InputError(
            f"{ledger.path}: its jobs change their width, and how fast they were at each is not simulated again"
        )
    source = f"{ledger.path}: measured throughputs"
    nodes = ledger.nodes()
    cluster = cluster_of(nodes)
    observations = tuple(observations_of(ledger.observations()))
    timed = any(each.steps and each.seconds > 0 for each in observations)
    table = (
        measured_throughputs(observations, source)
        if timed
        else Throughputs(cluster.gpu_types, {}, source=source)
    )
    events = list(ledger.events())
    rows, leases = ledger.jobs(), lease_times(events)
    type_of = {device.uuid: node.gpu_type for node in nodes for device in node.devices}
    rates = {
        (row["name"], name): rate for row in rows for name, rate in _table_rates(row, table).items()
    }
    names = [node.name for node in nodes]
    mapped = measured_graphs(ledger.value("graphs"), events, names, str(ledger.path))
    if mapped is None:
        asks = {} if _profiles(ledger) is not None else _asks(events)
        workload, notes = measured_workload(rows, cluster, table, leases, str(ledger.path), asks)
    else:
        workload, left_out = mapped_workload(rows, str(ledger.path))
        notes, (gpu_type,) = [*left_out, *mapped.notes], cluster.gpu_types
        rates = {(job, gpu_type): 1.0 / factor for job, factor in mapped.factors.items()}
    return MeasuredRun(
        str(ledger.value("policy")),
        float(ledger.value("round_s")),
        cluster,
        tuple(_real_job(row) for row in rows),
        workload,
        table,
        observations,
        measured_overheads(leases, rates, type_of),
        tuple(notes),
        str(ledger.value("placement", "count")),
        _profiles(ledger),
        mapped,
        ledger.value("share") is not None,
    )


def _profiles(ledger: RunLedger) -> Profiles | None:
    """Profiles that the policy of a run was told, None if none."""
    entries = ledger.value("profiles")
    if entries is None:
        return None
    tables = {
        (entry["model"], int(entry["gpus"])): Profile(
            np.array(entry["cpus_per_gpu"]),
            np.array(entry["memory_gb_per_gpu"]),
            np.array(entry["speed"]),
            entry["model"],
        )
        for entry in entries
    }
    return Profiles(tables, f"{ledger.path}: profiles")


def _asks(events: Iterable[Event]) -> dict[str, tuple[float, float]]:
    """CPUs and memory [GB] that jobs asked for, by name."""
    return {
        event["job"]: (
            float(event["data"].get("cpus", 0)),
            float(event["data"].get("memory_gb", 0)),
        )
        for event in events
        if event["kind"] == "arrived"
    }


def measured_workload(
    rows: Sequence[Row],
    cluster: Cluster,
    table: Throughputs,
    leases: Sequence[LeaseTime],
    source: str,
    asks: Mapping[str, tuple[float, float]],
) -> tuple[Workload, list[str]]:
    """Jobs of a run as a workload, and what had to be assumed of them.

    The rate of a job on a GPU type is that of its kind in the table; it is not run on types where its
    kind was not measured. Where the table has none, a job that finished (its command reported no steps)
    gets all its steps over the time it held devices for itself, and any other the rate that was
    expected of it, both on all types.

    Parameters
    ----------
    rows : sequence of mapping
        As of the ledger's jobs.
    asks : mapping of str to (float, float)
        Fixed amounts of CPUs and memory [GB] of jobs by their names; of others none.

    Raises
    ------
    InputError
        If no job has done anything.
    """
    kept, rates, notes = [], [], []
    for row in rows:
        known = _table_rates(row, table)
        speeds = [known.get(name, 0.0) for name in cluster.gpu_types]
        if not any(speeds):
            rate, why = _other_rate(row, leases)
            speeds = [rate] * len(cluster.gpu_types)
            if row["step"] and rate > 0:
                notes.append(f"job {row['name']}: {why}")
        if row["step"] and any(speeds):
            kept.append(row)
            rates.append(speeds)
        else:
            notes.append(f"job {row['name']}: did nothing that was measured, and is left out")
    held = [asks.get(row["name"], (0.0, 0.0)) for row in kept]
    workload = done_workload(
        kept,
        source,
        cpus=[cpus for cpus, _ in held],
        memory_gb=[memory_gb for _, memory_gb in held],
        throughput=rates,
        gpu_types=cluster.gpu_types,
    )
    return workload, notes


def _table_rates(row: Row, table: Throughputs) -> dict[str, float]:
    """Rates of a job by GPU type, where its kind was measured."""
    found = table.rates(kind_name(row["name"], row["model"]), row["gpus"])
    return {} if found is None else dict(zip(table.gpu_types, found, strict=True))


def _other_rate(row: Row, leases: Sequence[LeaseTime]) -> tuple[float, str]:
    """Rate of a job that was not measured alone, 0 if there is none, and where it is from."""
    held_s = math.fsum(lease.held_s for lease in leases if lease.job == row["name"])
    if row["state"] == "finished" and held_s > 0:
        return row["step"] / held_s, "reported no steps, its rate is that of its time on devices"
    return float(row["predicted_rate"] or 0.0), "was not measured alone, its expected rate is taken"


def write_measured(run: MeasuredRun, directory: Path) -> str:
    """Write a run to be simulated; returns the command that does it.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
    table, jobs, cluster = (directory / n for n in ("throughputs.json", "jobs.csv", "cluster.toml"))
    write_workload(run.workload, jobs)
    write_cluster(run.cluster, cluster)
    write_charges(run.overheads, directory / CHARGES)
    words = ["shadowprice", "simulate", str(jobs), "--cluster", str(cluster), *_switches(run)]
    if run.table.alone and run.mapped is None:
        write_throughputs(run.table, table)
        words += ["--throughputs", str(table)]
    if run.profiles is not None:
        profiles = directory / "profiles.json"
        entries = [table_entry(*kind, each) for kind, each in run.profiles.tables.items()]
        profiles.write_text(json.dumps({"profiles": entries}, indent=1) + "\n", encoding="utf-8")
        words += ["--with", joined_settings("profiles", {"file": profiles})]
    if run.mapped is not None:
        run.mapped.graphs.save(directory / "graphs.json")
        network = run.mapped.network
        graphs = {
            "intra_gb_per_s": network.intra_bytes_per_s / 1e9,
            "nic_gb_per_s": network.nic_bytes_per_s / 1e9,
            "nic_sharing": network.sharing,
            "file": directory / "graphs.json",
        }
        words += ["--with", joined_settings("graphs", graphs)]
        return shlex.join(words)
    speeds = spread_speeds(run.observations)
    if speeds.models and "--placement" in words:
        write_spread(speeds, directory / "spread.json")
        words += ["--with", joined_settings("spread", {"file": directory / "spread.json"})]
    return shlex.join(words)


CHARGES = "charges.json"
"""File of measured charges, beside the table of rates."""


def write_charges(charges: Overheads, path: Path) -> None:
    """Write the charges of a start and of a restart [s]."""
    told = {"start_s": charges.start_s, "restart_s": charges.restart_s}
    write_text(str(path), json.dumps(told) + "\n")


def read_charges(path: Path) -> Overheads | None:
    """Charges of a file that :func:`write_charges` made; None if there is none.

    Raises
    ------
    InputError
        If it is another file.
    """
    if not path.is_file():
        return None
    told = read_json(str(path)) or {}
    try:
        return Overheads(start_s=_charge(told["start_s"]), restart_s=_charge(told["restart_s"]))
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: {error!r}, expected start_s and restart_s in seconds, as a run measures them"
        ) from error


def _switches(run: MeasuredRun) -> list[str]:
    """Command-line switches for the policy, rounds and charges of a run."""
    charges = {"start_s": run.overheads.start_s, "restart_s": run.overheads.restart_s}
    return [
        "--policy",
        run.policy,
        "--round",
        repr(run.round_s),
        "--placement",
        run.placement,
        "--with",
        joined_settings("charges", charges),
    ]


def write_cluster(cluster: Cluster, path: Path) -> None:
    """Write a TOML file that ``Cluster.from_toml`` reads back.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    lines = []
    for count, node in cluster.groups():
        lines += ["[[nodes]]", f"count = {count}"]
        for field in fields(node):
            value = getattr(node, field.name)
            lines.append(f"{field.name} = {_toml(value)}")
        lines.append("")
    try:
        path.write_text("\n".join(lines), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _toml(value: object) -> str:
    if isinstance(value, str):
        # As in JSON, but DEL is escaped and other characters are not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _real_job(row: Row) -> RealJob:
    finished = row["state"] == "finished"
    finish_s = float(row["finish_s"]) if finished else math.inf
    return RealJob(row["name"], float(row["arrival_s"]), finish_s, int(row["step"]))
