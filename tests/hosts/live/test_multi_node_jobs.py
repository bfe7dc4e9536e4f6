"""Jobs over several nodes: where their processes meet, and what is left of them when some die."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.job import Lease, LeaseError
from shadowprice.hosts.live.job_file import Job, load_job_file
from shadowprice.hosts.live.launch_specs import LaunchSpecs
from shadowprice.hosts.live.lease import LeaseProgress
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.meeting import MEETING_VARIABLES, Meeting
from shadowprice.hosts.protocol import Device, DiscoveredNode, LaunchSpec
from support.ddp_run import killed_and_resumed, undisturbed
from support.ray_cluster import running_cluster
from support.slurm_cluster import needs_slurm, slurm_cluster

has_torch = importlib.util.find_spec("torch") is not None
has_ray = importlib.util.find_spec("ray") is not None
needs_torch = pytest.mark.skipif(
    not has_torch or sys.platform != "linux",
    reason="PyTorch is not installed, or this is not Linux",
)
needs_ray = pytest.mark.skipif(not has_ray, reason="Ray is not installed")

# Where they meet.


def nodes_of(counts: list[int]) -> tuple[DiscoveredNode, ...]:
    return tuple(
        DiscoveredNode(
            f"n{k}",
            "v100",
            tuple(Device(f"n{k}", index, f"n{k}/gpu:{index}") for index in range(count)),
            address=f"10.0.0.{k + 1}",
        )
        for k, count in enumerate(counts)
    )


def orders_of(counts: list[int], name: str = "job", epoch: int = 1) -> tuple[LaunchSpec, ...]:
    """Orders of a gang of all devices of nodes with so many each."""
    nodes = nodes_of(counts)
    devices = [device for node in nodes for device in node.devices]
    job = Job(name, ("train",), {}, len(devices), 5, Path("/"))
    return LaunchSpecs(Path("/state"), nodes, Limits(), 60.0).build(job, epoch, devices)


def met(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in MEETING_VARIABLES if name in env}


COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(COUNTS)
def test_every_rank_of_a_gang_meets_the_others(counts: list[int]) -> None:
    envs = [met(order.env) for order in orders_of(counts)]
    assert [env.pop("RANK") for env in envs] == [str(k) for k in range(len(counts))]
    assert [env.pop("PET_NPROC_PER_NODE") for env in envs] == [str(count) for count in counts]
    # Each has its own address; all go to that of the first.
    assert [env.pop("PET_LOCAL_ADDR") for env in envs] == [
        f"10.0.0.{k + 1}" for k in range(len(counts))
    ]
    # The store is the first one's.
    hosts = [env.pop("PET_RDZV_CONF").partition(",")[0] for env in envs]
    assert hosts == ["is_host=1", *["is_host=0"] * (len(counts) - 1)]
    assert all(env == envs[0] for env in envs)
    assert envs[0]["MASTER_ADDR"] == "10.0.0.1"
    assert envs[0]["PET_RDZV_ENDPOINT"] == f"10.0.0.1:{envs[0]['MASTER_PORT']}"
    assert envs[0]["WORLD_SIZE"] == envs[0]["PET_NNODES"] == str(len(counts))


@given(COUNTS)
def test_ranks_of_torchrun_are_fixed_where_replicas_are_placed(counts: list[int]) -> None:
    """Else nodes have them as they come: each variable is there in one of the two cases."""
    fixed = Meeting("job", 1, "10.0.0.1", 20_000, fixed_ranks=True)
    as_they_come = Meeting("job", 1, "10.0.0.1", 20_000)
    for rank, count in enumerate(counts):
        told = fixed.variables(rank, len(counts), count, "10.0.0.9")
        assert (told["PET_RDZV_BACKEND"], told["PET_NODE_RANK"]) == ("static", str(rank))
        assert f"{told['PET_MASTER_ADDR']}:{told['PET_MASTER_PORT']}" == told["PET_RDZV_ENDPOINT"]
        assert set(told) == MEETING_VARIABLES
        plain = as_they_come.variables(rank, len(counts), count, "10.0.0.9")
        assert plain["PET_RDZV_BACKEND"] == "c10d"
        assert MEETING_VARIABLES - set(plain) == {
            "PET_NODE_RANK",
            "PET_MASTER_ADDR",
            "PET_MASTER_PORT",
        }


@given(COUNTS, st.integers(1, 1000), st.integers(1, 1000))
def test_two_attempts_never_meet(counts: list[int], epoch: int, later: int) -> None:
    def ids(name: str, epoch: int) -> str:
        return str(orders_of(counts, name, epoch)[0].env["PET_RDZV_ID"])

    assert (ids("a", epoch) == ids("a", later)) == (epoch == later)
    assert ids("a", epoch) != ids("b", epoch)


@pytest.mark.parametrize("name", sorted(MEETING_VARIABLES))
def test_a_job_cannot_set_where_it_meets(name: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    job = {"name": "a", "command": ["x"], "iterations": 1, "env": {name: "1"}}
    path.write_text(json.dumps({"jobs": [job]}))
    with pytest.raises(InputError, match=f"{name} is a variable that the scheduler sets"):
        load_job_file(path)


# Which process reports, and where.


@pytest.fixture
def lease_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of two ranks; this process is on the node of the second."""
    job, first, second = (tmp_path / name for name in ("job", "e1-r0", "e1-r1"))
    for folder in (job, first, second):
        folder.mkdir()
    (job / "fence").write_text("1\n")
    given = {"LEASE": second, "JOB_DIRECTORY": job, "EPOCH": 1, "ITERATIONS": 2, "RANK": 1}
    for name, value in given.items():
        monkeypatch.setenv(f"SHADOWPRICE_{name}", str(value))
    monkeypatch.setenv("SHADOWPRICE_REPORT_DIRECTORY", str(first))
    monkeypatch.delenv("RANK", raising=False)
    return [first, second]


@pytest.mark.parametrize(("rank", "reports"), [("", False), ("0", True), ("1", False)])
def test_the_rank_that_a_launcher_gives_counts(
    rank: str, reports: bool, lease_variables: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torchrun may give rank 0 to a process on any node; its report is read where that of rank 0 is."""
    if rank:
        monkeypatch.setenv("RANK", rank)
    with Lease() as lease:
        assert lease.rank == int(rank or 1)
        for _ in lease.steps():
            pass
    assert [(folder / "report.json").exists() for folder in lease_variables] == [reports, False]


def test_a_rank_that_is_no_number_is_an_error(
    lease_variables: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(LeaseError, match=r"^RANK='first': expected int >= 0$"):
        Lease()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 50))
def test_steps_are_counted_once_whenever_a_launcher_starts_again(ran: list[int], rate: int) -> None:
    """Attempts of one lease, none longer than the one before, are looked at from their beginnings."""
    progress = LeaseProgress(1.0)
    total_steps, total_s = 0, 0.0
    for steps in sorted(ran, reverse=True):
        for seen in (0, steps // 2, steps):
            more, passed_s = progress.timed_since(seen, seen / rate)
            assert min(more, passed_s) >= 0
            total_steps, total_s = total_steps + more, total_s + passed_s
            progress.counted = (seen, seen / rate)
    assert total_steps == sum(ran)
    assert total_s == pytest.approx(sum(ran) / rate)


# Real training.


def same(one: Any, two: Any) -> bool:
    """Whether two states are the same, to the bit."""
    import torch

    if torch.is_tensor(one):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("ddp") / "whole")


@needs_torch
@pytest.mark.slow
@pytest.mark.timeout(400)
class TestDataParallelTraining:
    """A worker is killed, a launcher is killed, the driver is stopped: bit for bit as without."""

    def test_on_two_nodes_of_this_machine(self, tmp_path: Path, expected: dict[str, Any]) -> None:
        found = killed_and_resumed(tmp_path, "local:2x1")
        assert found["step"] == expected["step"] == 400
        assert same(found, expected)
        changed = replace_one_bit(found)
        assert not same(changed, expected)

    @needs_ray
    @pytest.mark.ray
    @pytest.mark.filterwarnings("ignore")
    def test_on_ray(self, tmp_path: Path, expected: dict[str, Any]) -> None:
        with running_cluster({"n0": "A100", "n1": "A100"}, gpus=1) as cluster:
            assert same(killed_and_resumed(tmp_path, f"ray:{cluster.address}"), expected)

    @pytest.mark.slurm
    @needs_slurm[1]
    def test_on_slurm(
        self, tmp_path: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = tmp_path / "cluster"
        root.mkdir()
        with slurm_cluster(root, gpus_per_node=1) as cluster, monkeypatch.context() as patch:
            for name, value in cluster.environment.items():
                patch.setenv(name, value)
            assert same(killed_and_resumed(tmp_path, f"slurm:{cluster.allocate()}"), expected)


def replace_one_bit(found: dict[str, Any]) -> dict[str, Any]:
    """The same, but for the last bit of one parameter."""
    import torch

    parameters = {name: tensor.clone() for name, tensor in found["parameters"].items()}
    flat = next(iter(parameters.values())).view(-1)
    flat[0] = torch.nextafter(flat[0], torch.tensor(float("inf")))
    return {**found, "parameters": parameters}
