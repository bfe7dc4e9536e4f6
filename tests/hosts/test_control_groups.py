"""Control groups of commands: what is in them is ended, limits are written where there are any."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.supervision import control_groups
from shadowprice.hosts.supervision.control_groups import (
    enter,
    kill,
    left_in,
    make,
    name_of,
    own_group,
    remove,
)
from support.driver_process import wait_until

DETACHED = (
    "import os, sys, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.execve(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'], {})\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "print('up', flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def divisible(tmp_path: Path) -> None:
    group = make(str(tmp_path / "probe"))
    if not group:
        pytest.skip("control groups of version 2 are not here, or are somebody else's")
    remove(group, str(tmp_path / "probe"))


def test_a_group_is_ended_whole(divisible: None, tmp_path: Path) -> None:
    lease = str(tmp_path / "lease")
    group = make(lease)
    with subprocess.Popen(
        [sys.executable, "-c", DETACHED],
        preexec_fn=lambda: enter(group),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(left_in(group, lease)) == 2
        kill(group, lease)
        process.wait(5)
        wait_until(lambda: not left_in(group, lease), 5.0)
    remove(group, lease)
    assert not Path(group).exists()


def test_a_record_of_another_group_ends_nothing(tmp_path: Path) -> None:
    """A job may have written it."""
    mine = own_group()
    for group in (mine, f"{mine}/{name_of('other')}", "", None, 7, ["x"]):
        assert left_in(group, str(tmp_path)) == set()
        kill(group, str(tmp_path))
        remove(group, str(tmp_path))


def test_limits_are_written_where_the_kernel_hands_them_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_groups, "own_group", lambda: str(tmp_path))
    group = tmp_path / name_of("lease")
    group.mkdir()
    for name in ("cgroup.kill", "cgroup.procs", "cpu.max", "memory.max"):
        (group / name).write_text("")
    assert make("lease", 2500, 512) == str(group)
    assert (group / "cpu.max").read_text() == "250000 100000"
    assert (group / "memory.max").read_text() == str(512 << 20)
    (group / "cpu.max").unlink()
    assert make("lease", 1, None) == str(group)
    assert not (group / "cpu.max").exists()
    (group / "cgroup.kill").unlink()
    assert make("lease") == ""


def test_what_has_detached_itself_is_ended_where_supervisor_and_launcher_are_killed(
    divisible: None, tmp_path: Path
) -> None:
    """The one hole that a search of processes has."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    host = LocalHost(state, 1, claims=DeviceClaims("run", "groups"))
    (node,) = host.discover()
    key = LeaseKey("job", 1)
    order = LaunchSpec(
        key,
        node.devices,
        False,
        (sys.executable, "-c", DETACHED),
        {},
        state / "jobs/job/leases" / key.folder,
        tmp_path,
        ttl_s=60.0,
        grace_s=5.0,
    )
    host.start([order])
    wait_until(lambda: "up" in output(order.directory))
    lease = host._leases[key]
    recorded = dict(lease.reader.supervisor() or {})
    group = str(recorded["group"])
    left = left_in(group, str(order.directory))
    assert len(left) == 2
    for pid in (recorded["parent_pid"], recorded["pid"], recorded["command_pid"]):
        os.kill(int(pid), signal.SIGKILL)
    wait_until(lambda: host.poll([key])[key].phase is Phase.ENDED, 20.0)
    assert not any(Path(f"/proc/{pid}").exists() and alive(pid) for pid in left)
    assert not Path(group).exists()
    host.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def output(directory: Path) -> str:
    try:
        return (directory / "output.log").read_text()
    except OSError:
        return ""


def test_groups_of_leases_that_ended_are_removed(divisible: None, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    host = LocalHost(state, 1, claims=DeviceClaims("run", "groups"))
    (node,) = host.discover()
    key = LeaseKey("job", 1)
    directory = state / "jobs/job/leases" / key.folder
    argv = ("/bin/sh", "-c", "cat /proc/self/cgroup")
    host.start([LaunchSpec(key, node.devices, False, argv, {}, directory, tmp_path, 60.0, 5.0)])
    wait_until(lambda: host.poll([key])[key].phase is Phase.ENDED, 20.0)
    assert name_of(str(directory)) in output(directory)
    time.sleep(0.05)
    assert not Path(own_group(), name_of(str(directory))).exists()
    host.close()
