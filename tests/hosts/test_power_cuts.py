"""Power cuts: whatever is left of a lease's files, its devices come back, and nothing is believed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts.lease_files import (
    copy_supervisor,
    read_status,
    supervisor_argv,
    write_order,
)
from shadowprice.hosts.live.checkpoints import last_commit
from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import Device, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.supervision import files
from shadowprice.hosts.supervision.processes import machine

KEY = LeaseKey("job", 1)

SUPERVISOR = {
    **{"pid": 2**22 + 1, "start_ticks": 1, "node": os.uname().nodename},
    **{"machine": "an earlier boot/1", "command_pid": 2**22 + 2, "command_start_ticks": 1},
}
WHOLE = {
    "order.json": json.dumps({"argv": ["true"], "env": {}}),
    "lease.json": json.dumps({"serial": 7, "stop": False, "grace_s": 1.0, "reason": ""}),
    "supervisor.json": json.dumps(SUPERVISOR),
    "report.json": json.dumps({"step": 12, "steps": 12}),
    "exit.json": json.dumps({"code": 0, "reason": "exited", "forced": False, "detail": ""}),
    "lock": "",
}


def left(name: str) -> st.SearchStrategy[bytes | None]:
    """A file that is lost, or of which a prefix is left, empty and whole included."""
    data = WHOLE[name].encode()
    return st.one_of(
        st.none(), st.just(data), st.integers(0, len(data)).map(lambda size: data[:size])
    )


states = st.fixed_dictionaries({name: left(name) for name in WHOLE})


def lease(state: Path, found: dict[str, bytes | None]) -> LaunchSpec:
    directory = state / "jobs" / "job" / "leases" / KEY.folder
    directory.mkdir(parents=True)
    for name, data in found.items():
        if data is not None:
            (directory / name).write_bytes(data)
    device = (Device("localhost", 0, "localhost/cpu:0"),)
    return LaunchSpec(KEY, device, False, ("true",), {}, directory, state, 60.0, 5.0)


@given(states, st.booleans())
@settings(max_examples=35, deadline=None)
def test_a_lease_ends_whatever_a_power_cut_left_of_it(
    found: dict[str, bytes | None], same_boot: bool
) -> None:
    if same_boot and found["supervisor.json"] == WHOLE["supervisor.json"].encode():
        here = SUPERVISOR | {"machine": machine()}
        found = found | {"supervisor.json": json.dumps(here).encode()}
    with tempfile.TemporaryDirectory() as folder:
        order = lease(Path(folder), found)
        host = LocalHost(Path(folder), 1, claims=DeviceClaims("run", "test-power"))
        host.adopt([order])
        status = host.poll([KEY])[KEY]
        assert status.phase is Phase.ENDED
        assert status.exit is not None
        # A success is believed only of an exit.json that is there to its last byte.
        whole = found["exit.json"] == WHOLE["exit.json"].encode()
        assert (status.exit.reason == "exited" and status.exit.code == 0) == whole
        assert not write_order(order) or found["order.json"] is None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State directory that holds the supervisor's program."""
    state = tmp_path_factory.mktemp("program")
    copy_supervisor(state)
    return state


@given(found=states)
@settings(max_examples=20, deadline=None)
def test_a_node_that_is_back_ends_what_is_left_of_a_lease(
    program: Path, found: dict[str, bytes | None]
) -> None:
    """By a process of its own: a supervisor kills all children of its process."""
    if found["supervisor.json"] is None:
        return  # nothing began: who adopts it makes it void
    with tempfile.TemporaryDirectory() as folder:
        order = lease(Path(folder), found)
        command = supervisor_argv(program, str(order.directory))
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert done.returncode == 0
        assert files.read_json(f"{order.directory}/exit.json") is not None


def test_a_record_that_is_no_use_elsewhere_does_not_free_devices(tmp_path: Path) -> None:
    order = lease(tmp_path, {"supervisor.json": b"", "order.json": WHOLE["order.json"].encode()})
    assert read_status(order.directory).phase is Phase.LOST
    assert read_status(order.directory, here=True).phase is Phase.ENDED


def test_what_a_command_left_is_killed_though_its_supervisors_record_is_lost(
    tmp_path: Path,
) -> None:
    order = lease(tmp_path, {"supervisor.json": b""})
    tagged = {"SHADOWPRICE_LEASE": str(order.directory)}
    with subprocess.Popen(["/bin/sleep", "60"], env=tagged) as orphan:
        host = LocalHost(tmp_path, 1, claims=DeviceClaims("run", "test-power"))
        host.adopt([order])
        while host.poll([KEY])[KEY].phase is not Phase.ENDED:
            orphan.poll()
        assert orphan.wait() == -9


def test_what_is_durable_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"
        calls.append(f"sync {kind}")
        fsync(descriptor)

    def renamed(old: str, new: str) -> None:
        calls.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    files.write_json(str(tmp_path / "a"), {}, durable=True)
    assert calls == ["sync file", "rename", "sync folder"]


def test_the_last_commit_is_found_though_its_name_was_lost(tmp_path: Path) -> None:
    for name in ("step-000000000010.epoch-1", "step-000000000007.epoch-2", "step-00009.epoch-3"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    for name in ("step-000000000010.epoch-1", "step-000000000007.epoch-2"):
        (tmp_path / "checkpoints" / name / "manifest.json").write_text("{}")
    for text in ("", "step-0000", None):
        if text is None:
            (tmp_path / "checkpoints" / "LATEST").unlink()
        else:
            (tmp_path / "checkpoints" / "LATEST").write_text(text)
        assert last_commit(tmp_path) == (7, 2)
