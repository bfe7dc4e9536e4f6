"""Times of leases in an allocation of Slurm: start to running, stop to gone, and what a poll costs.

Run as root where Slurm is installed: ``python benchmarks/slurm_leases.py [--leases 20]``. Starts a
cluster of its own: four slurmd with two fake GPUs each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from shadowprice.hosts.protocol import Device, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.slurm.host import SlurmHost, open_host

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.slurm_cluster import missing, slurm_cluster

PROMPT = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(143)); time.sleep(600)"


def order(state: Path, job: str, device: Device) -> LaunchSpec:
    key = LeaseKey(job, 1)
    argv = (sys.executable, "-I", "-S", "-c", PROMPT)
    directory = state / "jobs" / job / "leases" / key.folder
    return LaunchSpec(key, (device,), False, argv, {}, directory, state, 600.0, 10.0)


def wait(host: SlurmHost, orders: list[LaunchSpec], phase: Phase, began: float) -> list[float]:
    """Seconds until each lease is in a phase."""
    reached: dict[LeaseKey, float] = {}
    while len(reached) < len(orders):
        for key, seen in host.poll([one.key for one in orders]).items():
            if seen.phase is phase:
                reached.setdefault(key, time.perf_counter() - began)
        time.sleep(0.002)
    return sorted(reached.values())


def told(what: str, seconds: list[float]) -> None:
    print(f"{what:44} median {median(seconds) * 1e3:7.1f} ms, largest {max(seconds) * 1e3:7.1f} ms")


def one_by_one(host: SlurmHost, state: Path, device: Device, leases: int) -> None:
    started, running, gone = [], [], []
    for number in range(leases):
        one = order(state, f"single{number}", device)
        began = time.perf_counter()
        host.start([one])
        started.append(time.perf_counter() - began)
        running += wait(host, [one], Phase.RUNNING, began)
        time.sleep(0.1)
        began = time.perf_counter()
        host.stop([one.key], 10.0, "measured")
        gone += wait(host, [one], Phase.ENDED, began)
    told("start() of one lease", started)
    told("start() to running", running)
    told("stop() to confirmed gone", gone)


def all_at_once(host: SlurmHost, state: Path, devices: list[Device]) -> None:
    orders = [order(state, f"many{k}", device) for k, device in enumerate(devices)]
    began = time.perf_counter()
    host.start(orders)
    submitted = time.perf_counter() - began
    running = wait(host, orders, Phase.RUNNING, began)
    print(
        f"{len(orders)} leases at once: start() {submitted * 1e3:.0f} ms, all running {running[-1]:.2f} s"
    )
    keys = [one.key for one in orders]
    polls, cpu_s = [], time.process_time()
    for _ in range(500):
        began = time.perf_counter()
        host.poll(keys)
        host.lost_nodes()
        polls.append(time.perf_counter() - began)
        time.sleep(0.01)
    cpu_s = time.process_time() - cpu_s
    told(f"poll() of {len(keys)} running leases", polls)
    print(f"{'':44} {cpu_s / 500 * 1e6:.0f} us CPU a poll, the commands' own left out")
    began = time.perf_counter()
    host.renew(keys)
    print(f"renew() of {len(keys)} leases: {(time.perf_counter() - began) * 1e3:.1f} ms")
    began = time.perf_counter()
    host.stop(keys, 10.0, "measured")
    gone = wait(host, orders, Phase.ENDED, began)
    print(f"{len(orders)} leases stopped: all gone after {gone[-1] * 1e3:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leases", type=int, default=20)
    leases = parser.parse_args().leases
    if missing():
        raise SystemExit(f"skipped: {missing()}")
    with tempfile.TemporaryDirectory() as folder:
        root, state = Path(folder, "cluster"), Path(folder, "state")
        root.mkdir()
        state.mkdir(mode=0o700)
        began = time.perf_counter()
        with slurm_cluster(root) as cluster:
            print(f"four nodes ready in {time.perf_counter() - began:.2f} s")
            os.environ |= cluster.environment
            host = open_host(str(cluster.allocate("n0,n1,n2,n3")), state, "bench")
            began = time.perf_counter()
            nodes = host.discover()
            print(f"discover() {(time.perf_counter() - began) * 1e3:.0f} ms")
            one_by_one(host, state, nodes[0].devices[0], leases)
            all_at_once(host, state, [device for node in nodes for device in node.devices])


if __name__ == "__main__":
    main()
