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
from shadowprice.hosts.live.graphs.run_graphs import (
    MeasuredMappings,
    measured_graphs,
)
from shadowprice.hosts.live.job_file import cluster_of
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.supervision.files import read_json
from shadowprice.hosts.throughput_files import (
    Observation,
    kind_name,
    measured_throughputs,
    observations_of,
    spread_speeds,
    write_json,
    write_spread,
    write_throughputs,
)
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.cpu_memory import CpuMemory
from shadowprice.instances.documents.named_settings import joined_settings
from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.instances.speeds.profiles import Profiles, table_entry
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.graphs import BYTES_PER_GB
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


def lease_times(events: Iterable[Event]) -> list[LeaseTime]:
    """Leases that finished their job or were stopped by the policy, and were never shared; O(n)."""
    granted: dict[tuple[str, int], tuple[Event, bool]] = {}
    ended: dict[tuple[str, int], tuple[LeaseTime, float]] = {}
    begun, shared, stopped = set[str](), set[tuple[str, int]](), set[tuple[str, int]]()
    times = []
    for event in events:
        kind, data = event["kind"], event["data"]
        key = (event["job"], event["epoch"])
        if kind in ("granted", "partner") and data.get("partner"):
            shared |= {key} | {other for other in granted if other[0] == data["partner"]}
        if kind == "driver-started" or OUTAGES & data.keys():
            granted.clear()
            ended.clear()
        elif kind == "granted":
            granted[key] = event, event["job"] in begun
            begun.add(event["job"])
        elif kind == "stop-asked":
            stopped.add(key)
        elif kind == "released" and key in granted:
            begin, resumed = granted.pop(key)
            lease = _time(begin, event, resumed)
            if key not in shared and data["code"] == 0:
                ended[key] = lease, begin["time_s"]
            elif key not in shared and key in stopped:
                times.append(lease)
        elif kind == "finished" and key in ended:
            lease, begun_s = ended.pop(key)
            held_s = min(data.get("at_s", math.inf) - begun_s, lease.held_s)
            times.append(replace(lease, held_s=held_s, finished=True))
    return times


def _time(granted: Event, released: Event, resumed: bool) -> LeaseTime:
    """A lease from its first and last events, which finished nothing as far as they tell."""
    data, iteration_s = granted["data"], granted["data"].get("iteration_s")
    return LeaseTime(
        granted["job"],
        tuple(data["devices"]),
        released["time_s"] - granted["time_s"],
        released["data"]["checkpoint_step"] - data["from_step"],
        resumed,
        False,
        # What its profile, or its job's graph, explains.
        float(data.get("speed", 1.0)) if iteration_s is None else 1.0 / float(iteration_s),
    )


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
    solution = gate.solve(LinearProgram.of(price, none, free, both, extra_s, extra_s))
    return [float(cost) for cost in solution.primal[:kinds]]


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
    """

    name: str
    arrival_s: float
    finish_s: float


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
    source = str(ledger.path)
    nodes = ledger.nodes()
    cluster = cluster_of(nodes)
    observations = tuple(observations_of(ledger.observations()))
    timed = any(each.steps and each.seconds > 0 for each in observations)
    table = (
        measured_throughputs(observations, f"{source}: measured throughputs")
        if timed
        else Throughputs(cluster.gpu_types, {}, source=source)
    )
    events = list(ledger.events())
    rows, leases = ledger.jobs(), lease_times(events)
    type_of = {device.uuid: node.gpu_type for node in nodes for device in node.devices}
    rates = {
        (row["name"], name): rate for row in rows for name, rate in _table_rates(row, table).items()
    }
    names, profiles = [node.name for node in nodes], _profiles(ledger)
    mapped = measured_graphs(ledger.value("graphs"), observations, events, names, source)
    asks = _asks(events) if profiles is None and mapped is None else {}
    workload, assumed, left_out = measured_workload(rows, cluster, table, leases, source, asks)
    if mapped is not None:
        workload, assumed = replace(workload, throughput=None, gpu_types=()), [*mapped.notes]
        (gpu_type,) = cluster.gpu_types
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
        (*assumed, *left_out),
        str(ledger.value("placement", "count")),
        profiles,
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


def _asks(events: Iterable[Event]) -> dict[str, CpuMemory]:
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
) -> tuple[Workload, list[str], list[str]]:
    """Jobs of a run as a workload of the steps that they did, what had to be assumed, and what is left out.

    The rate of a job on a GPU type is that of its kind in the table; it is not run on types where its
    kind was not measured. Where the table has none, a job that finished (its command reported no steps)
    gets all its steps over the time it held devices for itself, and any other the rate that was
    expected of it, both on all types.

    Parameters
    ----------
    rows : sequence of mapping
        As of the ledger's jobs.
    asks : mapping of str to (float, float)
        CPUs and memory [GB] that jobs ask for, by their names; others ask for none.

    Raises
    ------
    InputError
        If no job has done anything.
    """
    ran, rates, assumed, left_out = [], [], [], []
    for row in rows:
        known = _table_rates(row, table)
        speeds = [known.get(name, 0.0) for name in cluster.gpu_types]
        if not any(speeds):
            rate, why = _other_rate(row, leases)
            speeds = [rate] * len(cluster.gpu_types)
            if row["step"] and rate > 0:
                assumed.append(f"job {row['name']}: {why}")
        if row["step"] and any(speeds):
            ran.append(row)
            rates.append(speeds)
        else:
            left_out.append(f"job {row['name']}: did nothing that was measured, and is left out")
    if not ran:
        raise InputError(f"{source}: no job has done a step, expected at least one")
    held = [asks.get(row["name"], (0.0, 0.0)) for row in ran]
    workload = Workload.from_columns(
        id=[row["name"] for row in ran],
        arrival_s=[row["arrival_s"] for row in ran],
        gpus=[row["gpus"] for row in ran],
        work=[row["step"] for row in ran],
        model=[kind_name(row["name"], row["model"]) for row in ran],
        cpus=[cpus for cpus, _ in held],
        memory_gb=[memory_gb for _, memory_gb in held],
        throughput=rates,
        gpu_types=cluster.gpu_types,
        source=source,
    )
    return workload, assumed, left_out


def _table_rates(row: Row, table: Throughputs) -> dict[str, float]:
    """Rates of a job by GPU type, where its kind was measured."""
    rates = table.rates(kind_name(row["name"], row["model"]), row["gpus"])
    return {} if rates is None else dict(zip(table.gpu_types, rates, strict=True))


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
    jobs, cluster = directory / "jobs.csv", directory / "cluster.toml"
    write_workload(run.workload, jobs)
    write_cluster(run.cluster, cluster)
    charges = {"start_s": run.overheads.start_s, "restart_s": run.overheads.restart_s}
    write_json(charges, directory / CHARGES)
    words = ["shadowprice", "simulate", str(jobs), "--cluster", str(cluster)]
    words += ["--policy", run.policy, "--round", repr(run.round_s), "--placement", run.placement]
    terms: dict[str, dict[str, object]] = {"charges": {**charges}}
    if run.table.alone and run.mapped is None:
        write_throughputs(run.table, directory / "throughputs.json")
        words += ["--throughputs", str(directory / "throughputs.json")]
    if run.profiles is not None:
        terms["profiles"] = {"file": directory / "profiles.json"}
        entries = [table_entry(*kind, each) for kind, each in run.profiles.tables.items()]
        write_json({"profiles": entries}, directory / "profiles.json")
    speeds = spread_speeds(run.observations)
    if run.mapped is not None:
        run.mapped.graphs.save(directory / "graphs.json")
        network = run.mapped.network
        terms["graphs"] = {
            "intra_gb_per_s": network.intra_bytes_per_s / BYTES_PER_GB,
            "nic_gb_per_s": network.nic_bytes_per_s / BYTES_PER_GB,
            "nic_sharing": network.sharing,
            "file": directory / "graphs.json",
        }
    elif speeds.models:
        write_spread(speeds, directory / "spread.json")
        terms["spread"] = {"file": directory / "spread.json"}
    for name, settings in terms.items():
        words += ["--with", joined_settings(name, settings)]
    return shlex.join(words)


CHARGES = "charges.json"
"""File of measured charges, beside the table of rates."""


def read_charges(path: Path) -> Overheads | None:
    """Charges that a run measured, from its file; None if there is none.

    Raises
    ------
    InputError
        If it is another file.
    """
    if not path.is_file():
        return None
    charges = read_json(str(path)) or {}
    try:
        return Overheads(_charge(charges["start_s"]), _charge(charges["restart_s"]))
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: {error!r}, expected start_s and restart_s in seconds, as a run measures them"
        ) from error


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
    return RealJob(row["name"], float(row["arrival_s"]), finish_s)
