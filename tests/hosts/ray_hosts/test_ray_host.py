"""The Ray host on a real cluster of three nodes on this machine, with fake GPUs."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts import lease_files
from shadowprice.hosts.protocol import DiscoveredNode, Host, LaunchSpec, Phase
from shadowprice.hosts.ray import agent as ray_agent
from shadowprice.hosts.ray import cluster as ray_cluster
from shadowprice.hosts.registry import open_host
from support.host_conformance import (
    HostCase,
    HostConformance,
    living,
    output,
    python,
    record,
    shell,
)
from support.paths import ROOT
from support.ray_cluster import (
    Keeper,
    RayCluster,
    drop_driver,
    gone,
    open_ray,
    running_cluster,
    wait_until,
)

has_ray = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not has_ray, reason="Ray is not installed: pip install ray")
on_cluster = [needs_ray, pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

SAYS_DEVICES = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)"
HOLDS = f"{SAYS_DEVICES}; import time; time.sleep(600)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with running_cluster() as found:
        yield found


def _lost_or_none(host: Host) -> frozenset[str] | None:
    try:
        return host.lost_nodes()
    except HostError:
        return None


def _devices(nodes: tuple[DiscoveredNode, ...]) -> int:
    return sum(len(node.devices) for node in nodes)


def _supervisors_are_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """To this process, not to actors: nothing on a supervisor's machine can be looked at."""
    read = lease_files.read_supervisor

    def elsewhere(directory: Path) -> dict[str, Any] | None:
        found = read(directory)
        return found and found | {"machine": "another", "node": "another"}

    monkeypatch.setattr(lease_files, "read_supervisor", elsewhere)


def _devices_are_rays(environment: Mapping[str, str], order: LaunchSpec) -> None:
    shown = ",".join(device.uuid.rpartition(":")[2] for device in order.devices)
    assert environment["CUDA_VISIBLE_DEVICES"] == shown
    assert "RAY_JOB_ID" not in environment


def a_case(host: Host, state: Path, reopen: Callable[[Host], Host]) -> HostCase:
    return HostCase(
        host, state, reopen, start_s=20.0, end_s=20.0, many=8, check_environment=_devices_are_rays
    )


@pytest.fixture
def case(cluster: RayCluster, tmp_path: Path) -> Iterator[HostCase]:
    """A host of its own."""
    cluster.connect()
    cluster.restore()
    state = tmp_path / "state"
    made = a_case(open_ray(cluster, state), state, lambda host: host)
    try:
        yield made
    finally:
        made.clean_up()


@pytest.mark.timeout(120)
class TestConformance(HostConformance):
    pytestmark = on_cluster

    @pytest.fixture(scope="class")
    def keeper(
        self, cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Keeper]:
        cluster.connect()
        cluster.restore()
        made = Keeper(cluster, tmp_path_factory.mktemp("keeper") / "state")
        yield made
        made.opened.close()

    @pytest.fixture
    def case(self, keeper: Keeper, tmp_path: Path) -> Iterator[HostCase]:
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        made = a_case(keeper.host(), state, keeper.reopen)
        try:
            yield made
        finally:
            made.clean_up()


@pytest.mark.timeout(120)
class TestCluster:
    pytestmark = on_cluster

    def test_types_and_labels_come_from_the_cluster(self, case: HostCase) -> None:
        assert [(node.name, node.gpu_type) for node in case.nodes] == [
            ("n0", "A100"),
            ("n1", "V100"),
        ]
        assert all(node.cpus == 2.0 and node.memory_gb > 0 for node in case.nodes)

    def test_every_slot_is_another_device_and_two_leases_may_share_one(
        self, case: HostCase
    ) -> None:
        devices = [*case.devices, case.devices[3]]
        orders = [
            case.start(python(HOLDS), job=f"j{k}", devices=[device], shared=k > 2)
            for k, device in enumerate(devices)
        ]
        for order in orders:
            case.wait_output(order, "\n")
        assert [output(order).strip() for order in orders] == ["0", "1", "0", "1", "1"]

    def test_nobody_else_gets_a_device_of_the_run(self, case: HostCase) -> None:
        import ray

        waiting = ray.remote(num_gpus=1, num_cpus=0)(lambda: 1).remote()
        with pytest.raises(ray.exceptions.GetTimeoutError):
            ray.get(waiting, timeout=2.0)
        ray.cancel(waiting, force=True)  # else it takes a device of whoever comes next
        with pytest.raises(HostError, match=r"none of the devices \(2 on n0, 2 on n1\) is free"):
            open_host("ray", case.state.parent / "other", "other").discover()

    def test_a_device_that_a_stranger_held_is_found_when_it_is_free(
        self, cluster: RayCluster, tmp_path: Path
    ) -> None:
        import ray

        cluster.connect()
        cluster.restore()
        begun = tmp_path / "begun"
        hold = ray.remote(num_gpus=1, num_cpus=0, max_retries=0)(
            lambda: (begun.touch(), time.sleep(600))
        )
        holder = hold.remote()
        wait_until(begun.exists, 20.0)
        state = tmp_path / "state"
        opened = None
        try:
            opened = case = a_case(open_ray(cluster, state), state, lambda host: host)
            assert len(case.devices) == 3
            order = case.start(["sleep", "600"])
            case.wait(order, Phase.RUNNING)
            ray.cancel(holder, force=True)
            wait_until(lambda: _devices(case.host.discover()) == 4, 20.0)
            assert case.seen(order).phase is Phase.RUNNING
            assert case.host.lost_nodes() == frozenset()
            case.nodes = case.host.discover()
            other = case.start(["true"], job="other", devices=case.devices[2:])
            assert case.ended(other).code == 0
        finally:
            ray.cancel(holder, force=True)  # for ten minutes it would be missed by others
            if opened is not None:
                opened.clean_up()

    def test_an_actor_that_is_killed_takes_no_lease_with_it(self, case: HostCase) -> None:
        import ray

        order = case.start(["sleep", "600"])
        case.wait(order, Phase.RUNNING)
        node_id = next(n["NodeID"] for n in ray.nodes() if n["NodeName"] == "n0" and n["Alive"])
        namespace = f"shadowprice-test-{case.state.parent.name}"
        actor = ray.get_actor(f"agent-{node_id}", namespace=namespace)
        about = ray.get(actor.hold.remote([]), timeout=20.0)
        assert about["modules"] == [], "the package must not be needed on nodes"
        os.kill(about["pid"], signal.SIGKILL)
        for _ in range(5):
            assert case.seen(order).phase is Phase.RUNNING
            time.sleep(0.1)
        case.host.renew([order.key])
        other = case.start(["true"], job="other")
        assert case.ended(other).code == 0
        assert case.host.lost_nodes() == frozenset()
        case.host.stop([order.key], 5.0, "round over")
        assert case.ended(order).reason == "stopped"

    def test_a_driver_that_is_killed(self, cluster: RayCluster, case: HostCase) -> None:
        """Another process starts leases and is killed; this one goes on with them."""
        state = case.state.parent / "killed"
        run_id = f"killed-{case.state.parent.name}"
        case.host.close()  # its devices are to be the other's
        code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from shadowprice.hosts.registry import open_host
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey
state = Path({str(state)!r})
host = open_host("ray:{cluster.address}", state, {run_id!r})
device = host.discover()[0].devices[0]
key = LeaseKey("job", 1)
folder = state / "jobs" / "job" / "leases" / key.folder
host.start([LaunchSpec(key, (device,), False, ("sleep", "600"), {{}}, folder, state, 60.0, 5.0)])
while host.poll([key])[key].phase != "running": pass
print("up", flush=True)
import time; time.sleep(600)
"""
        driver = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"up\n"
        finally:
            driver.kill()
            driver.wait()
            if driver.stdout is not None:
                driver.stdout.close()
        case.state = state
        case.host = open_host(f"ray:{cluster.address}", state, run_id)
        began = time.monotonic()
        case.nodes = case.host.discover()
        assert time.monotonic() - began < 10.0
        order = case.order(["sleep", "600"], epoch=1)
        case.host.adopt([order])
        assert case.seen(order).phase is Phase.RUNNING
        case.host.renew([order.key])
        case.host.stop([order.key], 5.0, "round over")
        assert case.ended(order).reason == "stopped"

    def test_a_node_is_killed_and_comes_back(self, cluster: RayCluster, case: HostCase) -> None:
        here = case.start(["sleep", "600"], job="a")
        there = case.start(
            shell("setsid sleep 600 & echo up; sleep 600"), job="b", devices=case.nodes[1].devices
        )
        case.wait_output(there, "up")
        case.wait(there, Phase.RUNNING)
        cluster.kill("n1")
        noticed_s = wait_until(lambda: case.host.lost_nodes() == {"n1"}, 30.0)
        assert noticed_s < 15.0
        assert case.seen(there).phase in (Phase.LOST, Phase.ENDED)
        gone(case, there)  # that only Ray died, the shared storage tells
        assert case.seen(here).phase is Phase.RUNNING
        cluster.forget("n1")
        cluster.add("n1")
        wait_until(lambda: not case.host.lost_nodes(), 30.0)
        again = case.start(python(HOLDS), job="b", devices=case.nodes[1].devices)
        case.wait_output(again, "0,1")
        assert case.seen(here).phase is Phase.RUNNING

    def test_a_node_hangs(self, cluster: RayCluster, case: HostCase) -> None:
        order = case.start(["sleep", "600"], devices=case.nodes[1].devices)
        case.wait(order, Phase.RUNNING)
        os.kill(cluster.raylet("n1"), signal.SIGSTOP)
        try:
            began = time.monotonic()
            while case.host.lost_nodes() != {"n1"}:
                asked = time.monotonic()
                assert case.seen(order).phase is Phase.RUNNING
                case.host.renew([order.key])
                assert time.monotonic() - asked < 10.0, "no call may hang with the node"
                assert asked - began < 30.0
                time.sleep(0.05)
            gone(case, order)
        finally:
            os.kill(cluster.raylet("n1"), signal.SIGCONT)

    def test_a_lost_machine_counts_as_ended_only_after_its_leases_expired(
        self, cluster: RayCluster, case: HostCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As if the supervisor's machine were another one: nothing there can be looked at."""
        import shadowprice.hosts.ray.host as module

        monkeypatch.setattr(module, "CONFIRM_S", 1.0)
        _supervisors_are_elsewhere(monkeypatch)
        order = case.start(["sleep", "600"], devices=case.nodes[1].devices, ttl_s=4.0, grace_s=1.0)
        case.wait(order, Phase.RUNNING)
        case.host.renew([order.key])
        renewed = time.monotonic()
        found = record(order)
        os.kill(found["pid"], signal.SIGSTOP)  # so that it cannot answer through the storage
        cluster.kill("n1")
        wait_until(lambda: case.host.lost_nodes() == {"n1"}, 30.0)
        while time.monotonic() < renewed + 8.0:
            assert case.seen(order).phase is Phase.LOST, "its lock is held"
            time.sleep(0.2)
        os.kill(found["pid"], signal.SIGKILL)
        ended = gone(case, order)
        assert (ended.reason, ended.forced) == ("expired", True)

    def test_what_a_dead_supervisor_left_on_another_machine_is_ended_there(
        self, case: HostCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _supervisors_are_elsewhere(monkeypatch)
        order = case.start(shell("setsid sleep 600 & echo up; sleep 600"))
        case.wait_output(order, "up")
        case.wait(order, Phase.RUNNING)
        os.kill(record(order)["pid"], signal.SIGKILL)
        assert case.ended(order).code == -9

    def test_the_head_hangs(
        self, cluster: RayCluster, case: HostCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        order = case.start(["sleep", "600"], ttl_s=4.0)
        case.wait(order, Phase.RUNNING)
        monkeypatch.setattr(ray_cluster, "PATIENCE_S", 6.0)
        began = time.monotonic()
        os.kill(cluster.head_service, signal.SIGSTOP)
        try:
            while _lost_or_none(case.host) == frozenset():
                case.host.renew([order.key])
                assert case.seen(order).phase is Phase.RUNNING
                assert time.monotonic() - began < 20.0
                time.sleep(0.1)
            with pytest.raises(HostError, match="the cluster hangs: it still does not list"):
                case.host.lost_nodes()
            assert time.monotonic() - began > 6.0
        finally:
            os.kill(cluster.head_service, signal.SIGCONT)
        wait_until(lambda: _lost_or_none(case.host) == frozenset(), 20.0)
        assert case.seen(order).phase is Phase.RUNNING

    def test_a_driver_that_slept_too_long_reserves_its_devices_anew(
        self, cluster: RayCluster, case: HostCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import ray

        def free() -> float:
            return float(ray.available_resources().get("GPU", 0.0))

        case.host.close()
        monkeypatch.setattr(ray_agent, "IDLE_S", 3.0)
        case.state = case.state.parent / "second" / "state"
        case.host = open_ray(cluster, case.state)
        case.nodes = case.host.discover()
        # Nobody calls: actors give the devices back, which others could take now.
        wait_until(lambda: free() == 4.0, 60.0)
        monkeypatch.setattr(ray_agent, "IDLE_S", 900.0)
        wait_until(lambda: case.host.lost_nodes() == frozenset() and free() == 0.0, 60.0)
        order = case.start(["sleep", "600"])
        case.wait(order, Phase.RUNNING)

    def test_devices_are_given_back_when_no_driver_comes(
        self, cluster: RayCluster, case: HostCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import ray

        case.host.close()
        monkeypatch.setattr(ray_agent, "IDLE_S", 4.0)
        case.host = open_ray(cluster, case.state.parent / "second" / "state")
        case.state = case.state.parent / "second" / "state"
        case.nodes = case.host.discover()
        order = case.start(["sleep", "600"], ttl_s=20.0)
        case.wait(order, Phase.RUNNING)
        drop_driver()
        cluster.connect()
        # Only the other node's are free while the lease lasts.
        wait_until(lambda: ray.available_resources().get("GPU", 0.0) == 2.0, 15.0)
        assert living(str(order.directory))
        wait_until(lambda: ray.available_resources().get("GPU", 0.0) == 4.0, 60.0)
        assert not living(str(order.directory))
        case.orders.clear()
        case.host = open_ray(cluster, case.state)  # the one before lost its connection
