"""What many leases that do nothing cost on this machine: time to start and to stop, memory, CPU, disk.

``python benchmarks/idle_leases.py [--leases 500] [--seconds 20]``
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shadowprice.hosts.lease_files import read_supervisor
from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey, Phase


def memory_mb(pid: int) -> float:
    """Memory of a process, shared pages in equal parts [MB]."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def awake_s(pid: int) -> float:
    """CPU time of a process [s], to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def waited(condition: Callable[[], bool], began_s: float) -> float:
    """Time from a beginning until a condition holds [s]."""
    while not condition():
        time.sleep(0.05)
    return time.monotonic() - began_s


def measure(state: Path, leases: int, seconds: float) -> None:
    """Start leases, leave them alone, stop them; print what it cost."""
    host = LocalHost(state, leases, claims=DeviceClaims("benchmark"))
    (node,) = host.discover()
    orders = [
        LaunchSpec(
            LeaseKey(f"job-{k}", 1),
            (device,),
            False,
            ("sleep", "3600"),
            {},
            state / "jobs" / f"job-{k}" / "leases" / "e1-r0",
            state,
            ttl_s=3600.0,
            grace_s=5.0,
        )
        for k, device in enumerate(node.devices)
    ]
    keys = [order.key for order in orders]

    def all_in(phase: Phase) -> bool:
        return all(status.phase is phase for status in host.poll(keys).values())

    began_s = time.monotonic()
    host.start(orders)
    print(f"{leases} leases run after {waited(lambda: all_in(Phase.RUNNING), began_s):.1f} s")
    records = [read_supervisor(order.directory) for order in orders]
    pids = [record["pid"] for record in records if record is not None]
    launcher = {record["parent_pid"] for record in records if record is not None}
    print(f"supervisors and launcher: {sum(map(memory_mb, [*pids, *launcher])):.0f} MB")
    before_s = sum(map(awake_s, pids))
    time.sleep(seconds)
    print(f"supervisors: {(sum(map(awake_s, pids)) - before_s) / seconds:.1%} of a core")
    began_s = time.monotonic()
    host.renew(keys)
    print(f"renewal of all: {1e3 * (time.monotonic() - began_s):.0f} ms")
    began_s = time.monotonic()
    host.stop(keys, 5.0, "the benchmark is over")
    print(f"all gone after {waited(lambda: all_in(Phase.ENDED), began_s):.1f} s")
    host.close()
    files = [path for path in state.rglob("*") if path.is_file()]
    blocks = sum(path.stat().st_blocks for path in files) * 512 / 1024 / leases
    print(f"disk: {len(files) / leases:.1f} files and {blocks:.0f} KB a lease")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--leases", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0, help="for which they are left alone")
    given = parser.parse_args()
    load = "/".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.leases, given.seconds)


if __name__ == "__main__":
    main()
