"""A real Ray cluster of three nodes on this machine: a head, and two with two fake GPUs each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shadowprice.hosts.protocol import Exit, Host, LaunchSpec, Phase
from shadowprice.hosts.ray.host import RayHost
from shadowprice.hosts.registry import open_host
from support.host_conformance import HostCase, living

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",  # one user, one machine; no token file in somebody's home
    # Ray gives its workers, and so the commands of leases, what all others leave, unless told not to.
    "RAY_worker_niceness": "0",
}
CHECKS = {
    "health_check_initial_delay_ms": 3000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
"""A dead node is noticed within about 2 s; Ray's own values take 15 s."""
STARTS = 3
"""Of a node, before it is given up."""
TYPES = {"n0": "A100", "n1": "V100"}


class RayCluster:
    """Nodes by name; ``address`` is the head's.

    Parameters
    ----------
    types
        GPU type of each node by its name.
    gpus
        Of a node.
    client_port
        Where Ray's client is served, if it is.
    """

    def __init__(
        self,
        types: Mapping[str, str] = TYPES,
        gpus: int = 2,
        client_port: int | None = None,
    ) -> None:
        from ray.cluster_utils import Cluster

        self._types, self._gpus = types, gpus
        client = {} if client_port is None else {"ray_client_server_port": client_port}

        self._cluster = _started(
            lambda: Cluster(
                initialize_head=True,
                head_node_args={
                    "num_cpus": 0,
                    "num_gpus": 0,
                    "include_dashboard": False,
                    "node_name": "head",
                    "_system_config": CHECKS,
                    **client,
                },
            )
        )
        self.address = str(self._cluster.address)
        self.nodes: dict[str, Any] = {}
        for name in types:
            self.add(name)

    def add(self, name: str) -> None:
        """Start a node, again if it was killed."""
        self.nodes[name] = _started(
            lambda: self._cluster.add_node(
                wait=False,
                num_cpus=2,
                num_gpus=self._gpus,
                resources={f"accelerator_type:{self._types[name]}": 1},
                labels={"lab/host": name},
                node_name=name,
            )
        )

    def connect(self) -> None:
        """Make this process a driver, unless it is one: workers of one driver are used again."""
        import ray

        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")

    def restore(self) -> None:
        """Bring all nodes up and let all devices get free, whatever a test did to them.

        Ray takes devices back a moment after the process that held them ended.
        """
        import ray

        self._wake()
        for name in self._types:
            if name in self.nodes and not self._is_up(name):
                self.forget(name)
            if name not in self.nodes:
                self.add(name)
        wait_until(lambda: {n["NodeName"] for n in ray.nodes() if n["Alive"]} >= set(self._types))
        wait_until(_all_devices_are_free, what="a test before left devices in use")

    def _is_up(self, name: str) -> bool:
        import ray

        node_id = self.nodes[name].node_id
        return any(n["NodeID"] == node_id and n["Alive"] for n in ray.nodes())

    @property
    def head_service(self) -> int:
        """Process number of what keeps the cluster's tables."""
        found = self._cluster.head_node.all_processes["gcs_server"]
        return int(found[0].process.pid)

    def raylet(self, name: str) -> int:
        """Process number of a node's Ray daemon."""
        return int(self.nodes[name].all_processes["raylet"][0].process.pid)

    def kill(self, name: str) -> None:
        """SIGKILL to a node's Ray daemon."""
        os.kill(self.raylet(name), signal.SIGKILL)

    def forget(self, name: str) -> None:
        """Take a node that is gone out of the books."""
        self._cluster.remove_node(self.nodes.pop(name), allow_graceful=False)

    def close(self) -> None:
        """End all processes."""
        import ray

        ray.shutdown()
        self._wake()
        self._cluster.shutdown()

    def tend(self) -> None:
        """Nothing: what is lost is brought back by whoever took it."""

    def told(self) -> str:
        """What Ray says of its nodes."""
        import ray

        alive = {n["NodeName"]: n["Alive"] for n in ray.nodes() if n["NodeName"] in self.nodes}
        return str(alive)

    def _wake(self) -> None:
        """Let daemons go on that a test stopped."""
        for node in self.nodes.values():
            for process in node.all_processes.get("raylet", ()):
                if process.process.poll() is None:
                    os.kill(process.process.pid, signal.SIGCONT)


def _started(start: Callable[[], Any]) -> Any:
    """What starts, tried again on a busy machine: Ray waits for its daemons for 30 s and no longer."""
    for _ in range(STARTS - 1):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


@contextmanager
def running_cluster(
    types: Mapping[str, str] = TYPES, gpus: int = 2, client_port: int | None = None
) -> Iterator[RayCluster]:
    """A cluster, and none of its processes afterwards; Ray's client is served at a port if one is given."""
    before = {name: os.environ.get(name) for name in SETTINGS}
    os.environ.update(SETTINGS)
    cluster = RayCluster(types, gpus, client_port)
    try:
        yield cluster
    finally:
        cluster.close()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def wait_until(condition: Any, timeout_s: float = 30.0, *, what: str = "") -> float:
    """Seconds until a condition holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < timeout_s, what or "not within the time"
        time.sleep(0.05)
    return time.monotonic() - began


def open_ray(cluster: RayCluster, state: Path) -> RayHost:
    host = open_host(f"ray:{cluster.address}", state, f"test-{state.parent.name}")
    assert isinstance(host, RayHost)
    return host


def _all_devices_are_free() -> bool:
    import ray

    free, all_devices = ray.available_resources(), ray.cluster_resources()
    return bool(free.get("GPU", 0.0) == all_devices.get("GPU", 0.0))


def drop_driver() -> None:
    """What becomes of a driver's connection when it is killed."""
    import ray

    ray.shutdown()


def gone(case: HostCase, order: LaunchSpec) -> Exit:
    """How a lease of a lost node ended; nothing is left of it."""
    wait_until(lambda: case.seen(order).phase is Phase.ENDED, 20.0)
    found = case.seen(order).exit
    assert found is not None
    assert not living(str(order.directory))
    return found


class Kept(RayHost):
    """Leaves its devices to the next test: actors take a second each to start."""

    def close(self) -> None:
        pass


class Keeper:
    """Devices and actors that many tests use, one after another."""

    def __init__(self, cluster: RayCluster, state: Path) -> None:
        self.cluster, self.state = cluster, state
        self.opened = open_ray(cluster, state)

    def host(self) -> Host:
        return Kept(self.opened._calls, self.opened._cluster, self.state, ours=False)

    def reopen(self, host: Host) -> Host:
        drop_driver()
        self.opened = open_ray(self.cluster, self.state)
        return self.host()
