"""Ray without a cluster: what it says of nodes, how its calls end, what is not there."""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.ray.agent import Agent
from shadowprice.hosts.ray.connection import RayThread
from shadowprice.hosts.ray.nodes import check_shared, members, node_names, slots_of
from shadowprice.hosts.registry import open_host
from support.paths import ROOT

has_ray = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not has_ray, reason="Ray is not installed: pip install ray")

STARTS_ITS_OWN = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import psutil
from shadowprice.hosts.registry import open_host
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey
state = Path(sys.argv[2])
host = open_host("ray", state, "own")
(node,) = host.discover()
key = LeaseKey("job", 1)
folder = state / "jobs" / "job" / "leases" / key.folder
priority = (sys.executable, "-I", "-S", "-c", "import os, sys; sys.exit(os.nice(0))")
host.start([LaunchSpec(key, node.devices[:1], False, priority, {}, folder, state, 60.0, 5.0)])
until = time.monotonic() + 30.0
while host.poll([key])[key].phase != "ended" and time.monotonic() < until: time.sleep(0.01)
mine = psutil.Process()
listens = set()
for process in [mine, *mine.children(recursive=True)]:
    try:
        found = process.net_connections("inet")
    except psutil.NoSuchProcess:
        continue  # it has ended since it was listed
    listens |= {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}
seen = host.poll([key])[key]
host.close()
print(json.dumps([node.gpu_type, [d.uuid for d in node.devices], sorted(listens), seen.exit.code]))
"""


@needs_ray
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(120)
class TestNoCluster:
    def test_a_wrong_address_ends_soon(self, tmp_path: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            began = time.monotonic()
            with pytest.raises(HostError, match=f"ray:127.0.0.1:{port}: nothing answers there"):
                open_host(f"ray:127.0.0.1:{port}", tmp_path / "state", "run")
            assert time.monotonic() - began < 10.0

    def test_something_else_at_the_address_ends_soon(self, tmp_path: Path) -> None:
        code = (
            "import socket, sys, time\n"
            f"sys.path.insert(0, {str(ROOT)!r})\n"
            "from pathlib import Path\n"
            "from shadowprice.errors import HostError\n"
            "from shadowprice.hosts.ray import connection as ray_calls\n"
            "from shadowprice.hosts.registry import open_host\n"
            "ray_calls.CONNECT_S = 8.0\n"
            "server = socket.create_server(('127.0.0.1', 0))\n"
            "try:\n"
            "    open_host(f'ray:127.0.0.1:{server.getsockname()[1]}',\n"
            f"              Path({str(tmp_path / 'state')!r}), 'run')\n"
            "except HostError as error:\n"
            "    print('said:', error, flush=True)\n"
            "sys.exit(3)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert "said: hosts ray: the cluster did not let this driver in" in done.stdout, done.stderr
        assert done.returncode == 3, "the process ends, too"

    def test_one_of_its_own_is_reached_by_loopback_only(self, tmp_path: Path) -> None:
        environment = os.environ | {
            "RAY_ADDRESS": "local",
            "HOME": str(tmp_path),
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        }
        environment.pop("RAY_AUTH_MODE", None)  # tokens are on, in a home of their own
        done = subprocess.run(
            [sys.executable, "-c", STARTS_ITS_OWN, str(ROOT), str(tmp_path / "state")],
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        gpu_type, uuids, listens, code = json.loads(done.stdout.splitlines()[-1])
        assert code == os.nice(0), "jobs have the priority of whoever starts the run"
        assert all(ip.removeprefix("::ffff:").startswith("127.") for ip in listens), listens
        assert len(listens) > 0
        if gpu_type == "cpu":
            assert uuids == [f"{uuids[0].rpartition('/')[0]}/cpu:{k}" for k in range(len(uuids))]
        assert (tmp_path / ".ray" / "auth_token").exists(), "token authentication is left on"

    @pytest.mark.parametrize(
        "address", ["nowhere", "host:", ":6379", "host:port", "h:70000", "ray://x"]
    )
    def test_what_is_no_address(self, address: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="expected HOST:PORT"):
            open_host(f"ray:{address}", tmp_path / "state", "run")


def test_ray_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real_import = builtins.__import__

    def no_ray(name: str, *arguments: Any, **settings: Any) -> Any:
        if name == "ray":
            raise ModuleNotFoundError("No module named 'ray'")
        return real_import(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", no_ray)
    with pytest.raises(
        HostError, match=r"Ray cannot be imported .*pip install 'shadowprice\[ray\]'"
    ):
        open_host("ray", tmp_path / "state", "run")


def _row(node_id: str, **settings: Any) -> dict[str, Any]:
    row = {
        "NodeID": node_id,
        "Alive": True,
        "NodeName": "10.0.0.1",
        "NodeManagerAddress": "10.0.0.1",
        "NodeManagerHostname": "host",
        "Resources": {"CPU": 8.0, "memory": 16e9},
        "Labels": {},
    }
    return row | settings


class TestTable:
    def test_nodes_without_gpus_count_only_where_nobody_has_one(self) -> None:
        plain = _row("a" * 16, NodeName="plain")
        gpus = _row(
            "b" * 16, NodeName="b", Resources={"CPU": 8.0, "GPU": 4.0, "accelerator_type:A100": 1.0}
        )
        dead = _row("c" * 16, Alive=False)
        (cpu,) = members([plain, dead])
        assert (cpu.name, cpu.gpu_type, cpu.slots, cpu.bundle) == ("plain", "cpu", 8, {"CPU": 1.0})
        (gpu,) = members([plain, gpus])
        assert (gpu.gpu_type, gpu.slots, gpu.bundle) == ("A100", 4, {"GPU": 1.0, "CPU": 2.0})

    def test_a_slot_without_a_whole_core_asks_for_none(self) -> None:
        (member,) = members([_row("a", Resources={"CPU": 3.0, "GPU": 4.0})])
        assert (member.bundle, member.gpu_type) == ({"GPU": 1.0}, "GPU")

    def test_a_type_from_a_label(self) -> None:
        labels = {"ray.io/accelerator-type": "H200"}
        (member,) = members([_row("a", Resources={"GPU": 1.0}, Labels=labels)])
        assert member.gpu_type == "H200"

    def test_two_types_in_one_node(self) -> None:
        resources = {"GPU": 2.0, "accelerator_type:K80": 1.0, "accelerator_type:A100": 1.0}
        with pytest.raises(HostError, match="node host has GPUs of types A100, K80"):
            members([_row("a", Resources=resources)])

    def test_names(self) -> None:
        rows = [
            _row("1" * 16),
            _row("2" * 16, NodeName="named"),
            _row("3" * 16, NodeName="twice"),
            _row("4" * 16, NodeName="twice"),
            _row("5" * 16, NodeName="named", Alive=False),
        ]
        assert list(node_names(rows).values()) == [
            "host",
            "named",
            "twice-33333333",
            "twice-44444444",
        ]


class TestSlots:
    (member,) = members([_row("a", Resources={"GPU": 3.0, "CPU": 3.0})])

    def test_devices_are_named_as_a_process_sees_them(self) -> None:
        visible = {"x": "10", "y": "2", "z": "MIG-7"}
        slots = slots_of(self.member, ["x", "y", "z"], visible)
        assert [(s.group, s.device.index, s.device.uuid, s.visible) for s in slots] == [
            ("y", 0, "host/gpu:2", "2"),
            ("x", 1, "host/gpu:10", "10"),
            ("z", 2, "host/gpu:MIG-7", "MIG-7"),
        ]

    def test_one_gpu_in_two_slots(self) -> None:
        with pytest.raises(HostError, match="node host gives one GPU to two placement groups"):
            slots_of(self.member, ["x", "y"], {"x": "1", "y": "1"})


class TestSharedStorage:
    """Nodes in the place of actors: the same code, on this machine."""

    def node(self, state: Path) -> Agent:
        return Agent(str(state), 900.0)

    def test_a_shared_directory(self, tmp_path: Path) -> None:
        nodes = {"a": self.node(tmp_path), "b": self.node(tmp_path)}
        check_shared(tmp_path, lambda name: {node: nodes[node].probe(name) for node in nodes})
        assert not list(tmp_path.iterdir())

    def test_a_directory_of_the_same_name_elsewhere(self, tmp_path: Path) -> None:
        state, other = tmp_path / "state", tmp_path / "other"
        state.mkdir()
        other.mkdir()
        nodes = {"a": self.node(state), "b": self.node(other)}
        with pytest.raises(HostError, match="node b does not share the state directory"):
            check_shared(state, lambda name: {node: nodes[node].probe(name) for node in nodes})

    def test_a_copy_that_takes_no_answer_back(self, tmp_path: Path) -> None:
        def reads_only(name: str) -> dict[str, tuple[str, bool]]:
            text = json.loads((tmp_path / name / "probe.json").read_text())["token"]
            return {"a": (text, True)}

        with pytest.raises(HostError, match="node a does not share"):
            check_shared(tmp_path, reads_only)

    def test_locks_that_do_not_hold(self, tmp_path: Path) -> None:
        node = self.node(tmp_path)
        with pytest.raises(HostError, match=r"on node a locks .* do not hold"):
            check_shared(tmp_path, lambda name: {"a": (node.probe(name)[0], False)})


class TestRayThread:
    pytestmark = needs_ray

    def test_a_call_that_hangs_is_left_alone_and_named(self) -> None:
        calls = RayThread()
        with pytest.raises(HostError, match=r"did not take a nap within 0.1 s"):
            calls.call("take a nap", lambda: time.sleep(0.5), 0.1)
        began = time.monotonic()
        with pytest.raises(HostError, match="still does not take a nap"):
            calls.call("wake up", lambda: 1, 5.0)
        assert time.monotonic() - began < 0.1
        time.sleep(0.6)
        assert calls.call("wake up", lambda: 1, 5.0) == 1

    def test_troubles_of_a_cluster_and_mistakes_of_ours(self) -> None:
        calls = RayThread()

        def fail(error: Exception) -> None:
            raise error

        with pytest.raises(HostError, match="did not go: no way"):
            calls.call("go", lambda: fail(ConnectionError("no way\nmore")), 5.0)
        with pytest.raises(AttributeError):
            calls.call("go", lambda: fail(AttributeError("x")), 5.0)
