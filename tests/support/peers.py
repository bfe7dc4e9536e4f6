"""Reading the recorded runs of public simulators; absent outside the project's own checkouts."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload
from support.paths import SHARED

PEERS = SHARED / "golden" / "peers"

needs_peers = pytest.mark.skipif(
    not PEERS.is_dir(), reason="recorded runs of public simulators are not here"
)


@cache
def recorded(file: str) -> dict[str, Any]:
    """One file of recorded runs."""
    return json.loads((PEERS / file).read_text())


def runs_of(pattern: str) -> list[tuple[str, str]]:
    """Pairs (file, run) of all files that match, for parametrisation."""
    files = sorted(path.name for path in PEERS.glob(pattern)) if PEERS.is_dir() else []
    return [(file, run) for file in files for run in recorded(file)["runs"]] if files else []


def peer_cluster(file: str) -> Cluster:
    """The cluster of a file."""
    c = recorded(file)["cluster"]
    nodes = c.get("nodes", c.get("servers"))
    return Cluster.parse(
        f"{nodes}x{c.get('gpus_per_node', c.get('gpus_per_server', c['gpus'] // nodes))}"
    )


def peer_workload(file: str) -> Workload:
    """The jobs of a file with columns id, gpus, submit, duration."""
    jobs = recorded(file)["jobs"]
    ids, gpus, submit, duration = zip(*jobs, strict=True)
    return Workload.from_columns(
        id=[str(name) for name in ids], gpus=gpus, arrival_s=submit, work=duration, source=file
    )


def in_file_order(
    workload: Workload, ids: list[Any], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values by workload row, in the order the file lists its jobs."""
    return np.array([values[workload.row_of[str(name)]] for name in ids])


def ends(workload: Workload, schedule: Schedule) -> NDArray[np.float64]:
    """Completion time of every job [s]."""
    last = np.zeros(len(workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return last


def synergy_workload(file: str) -> Workload:
    profiles = recorded("synergy_static32.json")["profiles"]
    jobs = recorded(file)["jobs"]
    return Workload.from_columns(
        id=[str(job[0]) for job in jobs],
        model=[job[1] for job in jobs],
        arrival_s=[job[2] for job in jobs],
        work=[job[3] for job in jobs],
        gpus=[job[4] for job in jobs],
        throughput=[[1 / profiles[job[1]][str(job[4])]["iter_time_s"]] for job in jobs],
        gpu_types=("gpu",),
    )
