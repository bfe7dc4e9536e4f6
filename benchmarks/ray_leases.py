"""Leases on a Ray cluster of one machine: from the decision to the running command.

::

    python benchmarks/ray_leases.py [--leases 64] [--repeats 5] [--an-actor-a-lease]

One node with a fake GPU for each lease, and a tiny command. Times are taken by polling, every 5 ms,
as a driver sees them. ``--an-actor-a-lease`` also starts as many actors of their own, what every
lease would cost if it had one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from shadowprice.hosts.protocol import Device, Host, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.registry import open_host


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leases", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--an-actor-a-lease", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    from ray.cluster_utils import Cluster

    count = options.leases
    node = {"num_cpus": count, "num_gpus": count, "include_dashboard": False, "node_name": "one"}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(str(cluster.address), Path(folder), count, options.repeats)
        if options.an_actor_a_lease:
            measure_actors(str(cluster.address), count)
    finally:
        cluster.shutdown()


def measure(address: str, state: Path, count: int, repeats: int) -> None:
    """Open a host, start leases again and again, and print how long that took."""
    began = time.perf_counter()
    host = open_host(f"ray:{address}", state, "benchmark")
    opened = time.perf_counter()
    devices = host.discover()[0].devices
    found = time.perf_counter()
    print(f"open {opened - began:.2f} s, discover {len(devices)} devices {found - opened:.2f} s")
    try:
        running: list[float] = []
        for epoch in range(1, repeats + 1):
            orders = [_order(state, k, epoch, device) for k, device in enumerate(devices)]
            took = _until(host, orders, Phase.RUNNING, partial(host.start, orders))
            keys = [order.key for order in orders]
            asked = time.perf_counter()
            for _ in range(20):
                host.poll(keys)
            polled = time.perf_counter()
            host.renew(keys)
            renewed = time.perf_counter()
            ended = _until(host, orders, Phase.ENDED, partial(host.stop, keys, 5.0, "measured"))
            print(
                f"epoch {epoch}: running {_text(took)}; poll of all {50 * (polled - asked):.1f} ms; "
                f"renewal of all {1e3 * (renewed - polled):.1f} ms; stop to ended {_text(ended)}"
            )
            running += took
        print(f"{count} leases x {repeats}: decision to running {_text(running)}")
        one = []
        for epoch in range(repeats + 1, repeats + 11):
            orders = [_order(state, 0, epoch, devices[0])]
            one += _until(host, orders, Phase.RUNNING, partial(host.start, orders))
            stop = partial(host.stop, [orders[0].key], 5.0, "measured")
            _until(host, orders, Phase.ENDED, stop)
        print(f"one lease x 10: decision to running {_text(one)}")
    finally:
        host.close()


def _order(state: Path, k: int, epoch: int, device: Device) -> LaunchSpec:
    key = LeaseKey(f"job{k}", epoch)
    folder = state / "jobs" / key.job / "leases" / key.folder
    return LaunchSpec(key, (device,), False, ("sleep", "600"), {}, folder, state, 120.0, 5.0)


def _until(
    host: Host, orders: Sequence[LaunchSpec], phase: Phase, act: Callable[[], None]
) -> list[float]:
    """Seconds from an action until each lease was seen in a phase."""
    began = time.perf_counter()
    act()
    waiting = {order.key for order in orders}
    took = []
    while waiting:
        seen = host.poll(waiting)
        now = time.perf_counter() - began
        there = {key for key in waiting if seen[key].phase is phase}
        took += [now] * len(there)
        waiting -= there
        if now > 300.0:
            raise TimeoutError(f"{len(waiting)} leases are not {phase} after 300 s")
        time.sleep(0.005)
    return took


def measure_actors(address: str, count: int) -> None:
    """Start an actor for each lease and print how long that took."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")

    @ray.remote(num_cpus=0)
    class One:
        def here(self) -> int:
            return os.getpid()

    began = time.perf_counter()
    calls = [One.remote().here.remote() for _ in range(count)]
    took = []
    while calls:
        _, calls = ray.wait(calls, timeout=300.0)
        took.append(time.perf_counter() - began)
    print(f"{count} actors: start to first answer {_text(took)}")
    ray.shutdown()


def _text(times_s: Sequence[float]) -> str:
    """Median, 95th percentile and largest."""
    ordered = sorted(times_s)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{statistics.median(ordered):.3f} s median, {p95:.3f} s p95, {ordered[-1]:.3f} s max"


if __name__ == "__main__":
    main()
