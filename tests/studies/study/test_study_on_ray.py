"""A study on a Ray cluster of two nodes on this machine, one of which is killed in the middle."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowprice.errors import HostError
from shadowprice.studies.points.runner import PointProgress
from shadowprice.studies.run_study import study
from support.ray_cluster import RayCluster, running_cluster, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow]
pytest.importorskip("ray")

STUDY = {
    "study": "on a cluster",
    "workloads": {"drawn": {"generator": "lognormal", "parameters": {"jobs": 2000}}},
    "loads": [0.7, 0.9],
    "clusters": ["4x4"],
    "seeds": 20,
}
SMALL = {**STUDY, "policies": ["fifo", "las2d", "srtf"]}


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with running_cluster() as started:
        yield started


@pytest.mark.filterwarnings("ignore")  # Ray leaves files of its client's server open.
def test_a_study_goes_through_the_client_of_ray(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Ray's client is not installed")
    few = {**SMALL, "seeds": 2}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running_cluster(client_port=port) as cluster:
        wait_until(lambda: _answers(port), what="Ray's client is served")
        found = study(few, tmp_path / "ray", on=f"ray://127.0.0.1:{port}")
        assert found.record.failed == {}
        with pytest.raises(HostError, match=r"no Ray client is served there .*expected the port"):
            study(few, tmp_path / "none", on=f"ray://{cluster.address}")
    with pytest.raises(HostError, match=rf"hosts ray://127.0.0.1:{port}: nothing answers there"):
        study(few, tmp_path / "none", on=f"ray://127.0.0.1:{port}")
    study(few, tmp_path / "here")
    for name in ("runs", "groups", "distributions"):
        here, there = (
            (tmp_path / each / f"{name}.parquet").read_bytes() for each in ("here", "ray")
        )
        assert here == there


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def test_a_killed_node_loses_nothing(
    cluster: RayCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed: list[int] = []

    def kill_one(now: PointProgress) -> None:
        if now.done >= 10 and not killed:
            killed.append(now.done)
            cluster.kill("n0")

    found = study(SMALL, tmp_path / "ray", on=f"ray:{cluster.address}", progress=kill_one)
    assert killed
    assert killed[0] < 60, "the node was to be killed in the middle"
    assert found.record.failed == {}
    assert len(found.runs) == 2 * 3 * 20
    study(SMALL, tmp_path / "here")
    for name in ("runs", "groups", "distributions"):
        here, there = (
            (tmp_path / each / f"{name}.parquet").read_bytes() for each in ("here", "ray")
        )
        assert here == there
    lines = (tmp_path / "ray" / "points.jsonl").read_text().splitlines()
    assert len(lines) == 120, "a run was kept twice"
