"""Files between driver and supervisors: what a job plants there hurts nobody."""

from __future__ import annotations

import fcntl
import json
import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shadowprice.errors import HostError
from shadowprice.hosts import lease_files
from shadowprice.hosts.lease_files import (
    LeaseReader,
    ask_stop,
    copy_supervisor,
    prune,
    read_exit,
    read_report,
    read_status,
    renew,
    void,
    write_order,
)
from shadowprice.hosts.live import checkpoints
from shadowprice.hosts.live.checkpoints import raise_fence, raise_fences, read_fence
from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import Device, Exit, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.supervision.files import read_json, take_lock, write_json, write_text
from shadowprice.hosts.supervision.processes import machine, process
from support.host_conformance import living

pytestmark = pytest.mark.timeout(60)
ANY_FILE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def order(state: Path, **env: str) -> LaunchSpec:
    key = LeaseKey("job", 7, 1)
    directory = state / "jobs" / "job" / "leases" / key.folder
    device = (Device("localhost", 0, "localhost/cpu:0"),)
    return LaunchSpec(key, device, False, ("true",), env, directory, state, 30.0, 10.0)


@pytest.fixture
def lease(tmp_path: Path) -> Path:
    made = order(tmp_path)
    assert write_order(made)
    return made.directory


def supervisor_json(lease: Path, **fields: object) -> None:
    """What a supervisor wrote that is dead now."""
    values = {"pid": 2**22, "start_ticks": 1, "command_pid": 2**22 - 1, "command_start_ticks": 1}
    here = {"node": os.uname().nodename, "machine": machine()}
    write_json(f"{lease}/supervisor.json", {**values, **here, **fields})


def test_an_order_is_private_and_written_once(tmp_path: Path) -> None:
    made = order(tmp_path, TOKEN="s\u00e9cret")
    assert write_order(made)
    assert not write_order(made)
    assert made.directory.stat().st_mode & 0o777 == 0o700
    assert (made.directory / "order.json").stat().st_mode & 0o777 == 0o600
    text = json.loads((made.directory / "order.json").read_text())
    assert (text["job"], text["epoch"], text["rank"]) == ("job", 7, 1)
    assert (text["argv"], text["env"]) == (["true"], {"TOKEN": "s\u00e9cret"})


def test_a_link_in_place_of_a_lease_is_refused(tmp_path: Path) -> None:
    made = order(tmp_path)
    made.directory.parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    made.directory.symlink_to(elsewhere)
    with pytest.raises(OSError, match="is a link"):
        write_order(made)
    assert not list(elsewhere.iterdir())


def test_renewals_have_new_serials_and_keep_a_stop(lease: Path) -> None:
    serials = []
    for _ in range(3):
        renew(lease)
        serials.append((read_json(f"{lease}/lease.json") or {})["serial"])
    assert serials == [2, 3, 4]
    ask_stop(lease, 3.0, "round over")
    stopped = read_json(f"{lease}/lease.json")
    renew(lease)
    assert read_json(f"{lease}/lease.json") == stopped
    assert stopped == {"serial": 5, "stop": True, "grace_s": 3.0, "reason": "round over"}


@pytest.mark.parametrize("kind", ["absent", "link", "folder", "pipe", "garbage", "wrong"])
def test_renewal_replaces_what_was_planted(lease: Path, tmp_path: Path, kind: str) -> None:
    path, victim = lease / "lease.json", tmp_path / "victim"
    victim.write_text("mine")
    path.unlink()
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
        (path / "x").touch()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "absent":
        path.write_text({"garbage": "{", "wrong": '{"serial": "x", "stop": 1}'}[kind])
    renew(lease)
    first = read_json(f"{path}") or {}
    renew(lease)
    second = read_json(f"{path}") or {}
    assert second["serial"] > first["serial"] > 0
    assert second["stop"] is False
    assert victim.read_text() == "mine"


def test_renewal_does_not_write_into_a_file_with_another_name(lease: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text(json.dumps({"serial": 1, "stop": False}).ljust(500))
    before = victim.read_text()
    (lease / "lease.json").unlink()
    os.link(victim, lease / "lease.json")
    renew(lease)
    assert victim.read_text() == before
    assert (read_json(f"{lease}/lease.json") or {})["serial"] == 2


def test_renewal_changes_no_directory(lease: Path) -> None:
    before = lease.stat().st_mtime_ns
    time.sleep(0.02)
    renew(lease)
    assert lease.stat().st_mtime_ns == before
    ask_stop(lease, 1.0, "\u00e9" * 500)
    assert (read_json(f"{lease}/lease.json") or {})["reason"] == "\u00e9" * 500


def test_calls_on_a_lease_that_was_removed_raise_nothing(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    renew(gone)
    assert read_status(gone).phase is Phase.STARTING
    assert read_report(gone) == {}
    ask_stop(gone, 1.0, "x")  # makes sure that it never begins
    assert read_status(gone).phase is Phase.ENDED


@given(st.binary(max_size=200))
@ANY_FILE
def test_any_bytes_are_read(tmp_path: Path, data: bytes) -> None:
    for name in ("report", "exit", "supervisor", "lease"):
        (tmp_path / f"{name}.json").write_bytes(data)
    assert read_status(tmp_path).phase in Phase


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
KEYS = st.sampled_from(["step", "seconds", "state", "pid", "code", "reason", "machine", "x"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@given(st.dictionaries(KEYS, VALUES))
@ANY_FILE
def test_any_object_is_read_and_numbers_are_sane(tmp_path: Path, value: dict[str, object]) -> None:
    for name in ("report", "exit", "supervisor", "lease"):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    report = read_report(tmp_path)
    for key, found in report.items():
        assert found == value[key]
        assert isinstance(found, (bool, str)) or 0 <= found <= 2**53
        assert not isinstance(found, float) or math.isfinite(found)
    assert read_exit(tmp_path) is None or isinstance(read_exit(tmp_path), Exit)


@pytest.mark.parametrize("text", ["[" * 60000, '{"a":' * 9000, "9" * 60000, '{"step": 1e999}', ""])
def test_deep_and_long_numbers(lease: Path, text: str) -> None:
    (lease / "report.json").write_text(text)
    assert read_report(lease) == {}


def test_files_that_are_no_files(lease: Path, tmp_path: Path) -> None:
    report = lease / "report.json"
    with open(report, "wb") as file:
        file.truncate(1 << 30)
    began = time.monotonic()
    assert read_report(lease) == {}
    report.unlink()
    os.mkfifo(report)
    assert read_report(lease) == {}
    report.unlink()
    report.mkdir()
    assert read_report(lease) == {}
    report.rmdir()
    (tmp_path / "victim.json").write_text('{"step": 3}')
    report.symlink_to(tmp_path / "victim.json")
    assert read_report(lease) == {}
    assert time.monotonic() - began < 1.0


def test_long_texts_are_cut(lease: Path) -> None:
    (lease / "report.json").write_text(json.dumps({"error": "x" * 60000, "step": 4}))
    found = read_report(lease)
    assert (len(found["error"]), found["step"]) == (2000, 4)


def test_void_is_for_leases_that_have_not_begun(lease: Path) -> None:
    assert void(lease, "why")
    assert void(lease)
    assert read_status(lease).exit == Exit(0, "void", detail="why")


def test_void_spares_a_supervisor_that_lives(lease: Path) -> None:
    lock = take_lock(str(lease))
    assert lock is not None
    assert not void(lease)
    assert read_exit(lease) is None
    os.close(lock)
    supervisor_json(lease)
    assert not void(lease)


@pytest.fixture
def adopted(tmp_path: Path) -> tuple[LocalHost, LaunchSpec, int]:
    """A lease that was adopted while a supervisor had just taken it; the lock that this one holds."""
    made = order(tmp_path)
    assert write_order(made)
    lock = take_lock(str(made.directory))
    assert lock is not None
    host = LocalHost(tmp_path, 1, claims=DeviceClaims("run", str(tmp_path)[-20:]))
    host.adopt([made])
    return host, made, lock


def test_an_adopted_lease_begins_however_slow_its_supervisor_is(
    adopted: tuple[LocalHost, LaunchSpec, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, made, lock = adopted
    for days in range(1, 4):
        monkeypatch.setattr(time, "monotonic", lambda now_s=86400.0 * days: now_s)
        assert host.poll([made.key])[made.key].exit is None
    assert read_exit(made.directory) is None
    mine = process(os.getpid())
    assert mine is not None
    supervisor_json(made.directory, pid=os.getpid(), start_ticks=mine[3])
    assert host.poll([made.key])[made.key].phase is Phase.RUNNING
    os.close(lock)


def test_an_adopted_lease_is_void_once_its_supervisor_gave_up(
    adopted: tuple[LocalHost, LaunchSpec, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, made, lock = adopted
    monkeypatch.setattr(time, "monotonic", lambda: 1e6)
    assert host.poll([made.key])[made.key].exit is None
    os.close(lock)
    monkeypatch.setattr(time, "monotonic", lambda: 2e6)
    seen = host.poll([made.key])[made.key]
    assert seen.phase is Phase.ENDED
    assert seen.exit is not None
    assert seen.exit.reason == "void"


def test_old_leases_that_ended_are_removed(tmp_path: Path) -> None:
    made = [tmp_path / f"e{epoch}-r{rank}" for epoch in (2, 9, 10, 11) for rank in (0, 1)]
    for directory in (*made, tmp_path / "theirs"):
        directory.mkdir()
        if directory.name != "e9-r1":
            write_json(f"{directory}/exit.json", {"code": 0, "reason": "exited"})
    lock = take_lock(str(tmp_path / "e2-r1"))  # its supervisor lives
    assert lock is not None
    prune(tmp_path, 3)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"theirs", "e2-r1", "e9-r1", "e10-r1", "e11-r0", "e11-r1"}
    os.close(lock)
    prune(tmp_path / "absent", 3)
    prune(tmp_path, 0)
    assert {path.name for path in tmp_path.iterdir()} == {"theirs", "e9-r1"}


def test_a_planted_end_counts_for_nothing_while_the_supervisor_lives(lease: Path) -> None:
    lock = take_lock(str(lease))
    assert lock is not None
    supervisor_json(lease)
    write_json(f"{lease}/exit.json", {"code": 0, "reason": "exited"})
    assert read_status(lease).phase is Phase.RUNNING
    os.close(lock)
    assert read_status(lease).phase is Phase.ENDED


def test_a_lock_that_was_replaced_is_no_death(lease: Path) -> None:
    me = process(os.getpid())
    assert me is not None
    supervisor_json(lease, pid=os.getpid(), start_ticks=me[3])
    (lease / "lock").touch()
    write_json(f"{lease}/exit.json", {"code": 0, "reason": "exited"})
    assert read_status(lease).phase is Phase.RUNNING


def test_a_dead_supervisor_elsewhere_is_lost_and_before_a_reboot_is_gone(lease: Path) -> None:
    supervisor_json(lease, node="far-away", machine="another boot/1")
    assert read_status(lease).phase is Phase.LOST
    supervisor_json(lease, machine="an earlier boot/1")
    killed = Exit(-9, "exited", detail="the supervisor was killed", host_failed=True)
    assert read_status(lease).exit == killed


def test_a_stranger_with_the_same_number_is_spared(lease: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        supervisor_json(lease, command_pid=stranger.pid, command_start_ticks=1)
        assert read_status(lease).phase is Phase.ENDED
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("tagged", [True, False])
def test_what_a_dead_supervisor_left_is_killed(lease: Path, tagged: bool) -> None:
    environment = {"SHADOWPRICE_LEASE": str(lease)} if tagged else {}
    left = subprocess.Popen(["sleep", "60"], start_new_session=True, env=environment)
    about = process(left.pid)
    assert about is not None
    try:
        fields = {} if tagged else {"command_pid": left.pid, "command_start_ticks": about[3]}
        supervisor_json(lease, **fields)
        while tagged and not living(str(lease)):  # a new program gets its environment a bit late
            time.sleep(0.001)
        assert read_status(lease).phase is Phase.ENDED
        assert left.wait(5.0) == -9
    finally:
        left.kill()
        left.wait()


def test_a_reader_reads_only_what_changed(lease: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = take_lock(str(lease))
    assert lock is not None
    supervisor_json(lease)
    reader = LeaseReader(lease)
    assert reader.status().phase is Phase.RUNNING
    time.sleep(0.1)
    reader.status()
    calls = []
    read = lease_files.read_status
    monkeypatch.setattr(
        lease_files, "read_status", lambda *a, **k: (calls.append(a), read(*a, **k))[1]
    )
    for _ in range(50):
        reader.status()
    assert not calls
    tick = time.time_ns()
    with monkeypatch.context() as clock:
        clock.setattr(time, "time_ns", lambda: tick + 1_000_000)
        for step in range(5):  # changes within one tick of the clock
            write_json(f"{lease}/report.json", {"step": step})
            os.utime(lease, ns=(tick, tick))
            assert reader.status().report == {"step": step}
    (lease / "supervisor.json").write_text("garbage")
    assert reader.status(doubt=True).phase is Phase.RUNNING
    write_json(f"{lease}/exit.json", {"code": 3, "reason": "exited"})
    os.close(lock)
    assert reader.status().exit == Exit(3, "exited")


def test_a_reader_notices_a_death_that_changes_no_file(lease: Path) -> None:
    lock = take_lock(str(lease))
    assert lock is not None
    supervisor_json(lease)
    time.sleep(0.1)
    reader = LeaseReader(lease)
    assert reader.status().phase is Phase.RUNNING
    os.close(lock)
    time.sleep(lease_files.LIVENESS_S + 0.05)
    assert reader.status().phase is Phase.ENDED


def test_a_command_that_removed_what_its_supervisor_wrote_has_begun(
    lease: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_files, "BEGIN_S", 0.2)
    lock = take_lock(str(lease))
    assert lock is not None
    reader = LeaseReader(lease)
    assert reader.status().phase is Phase.STARTING, "its supervisor has just come"
    time.sleep(0.3)
    assert reader.status(doubt=True).phase is Phase.RUNNING
    os.close(lock)
    assert reader.status(doubt=True).phase is Phase.STARTING, "nothing shows that it began"


def test_the_fence_only_rises(tmp_path: Path) -> None:
    job = tmp_path / "jobs" / "job"
    assert read_fence(job) == 0
    raise_fence(job, 3)
    raise_fence(job, 2)
    assert (job / "fence").read_text() == "3\n"
    threads = [threading.Thread(target=raise_fence, args=[job, k]) for k in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_fence(job) == 29
    assert sorted(path.name for path in job.iterdir()) == ["fence", "fence.lock"]


@pytest.mark.parametrize("count", [1, 40])
def test_fences_of_many_jobs_rise_together(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are raised, in order; that of a job whose worker holds its lock is refused, and no other."""
    monkeypatch.setattr(checkpoints, "PATIENCE_S", 0.1)
    jobs = {tmp_path / f"job-{k}": k + 1 for k in range(count)}
    held = tmp_path / f"job-{count // 2}"
    raise_fence(held, 0)
    lock = os.open(held / "fence.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        refused = list(raise_fences(jobs))
    finally:
        os.close(lock)
    assert [None if error is None else str(error) for error in refused] == [
        f"{job}: a worker holds the fence's lock" if job == held else None for job in jobs
    ]
    for job, epoch in jobs.items():
        assert read_fence(job) == (0 if job == held else epoch)
    assert list(raise_fences(dict.fromkeys(jobs, count + 1))) == [None] * count
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        list(raise_fences({**jobs, tmp_path / "file" / "job": 1}))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    stop = threading.Event()

    def write() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            write_json(str(path), {"k": k, "text": "x" * (k % 5000)})

    write_json(str(path), {"k": 0, "text": ""})
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(2000):
            found = read_json(str(path))
            assert found is not None
            assert len(found["text"]) == found["k"] % 5000
    finally:
        stop.set()
        writer.join()


def test_writers_of_a_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads are within one write of the same file at once."""
    path, both, replace = str(tmp_path / "value"), threading.Barrier(2, timeout=10), os.replace

    def late(source: str, target: str) -> None:
        both.wait()
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda letter: write_text(path, letter * 9), "ab"))
    assert Path(path).read_text() in ("a" * 9, "b" * 9)
    assert os.listdir(tmp_path) == ["value"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_text(str(tmp_path / "absent" / "x"), "text")
    assert not list(tmp_path.iterdir())


def test_the_supervisor_is_copied_with_its_parts(tmp_path: Path) -> None:
    assert copy_supervisor(tmp_path) == ()
    path = tmp_path / "supervisor.py"
    before = {part: part.stat().st_mtime_ns for part in tmp_path.rglob("*.py")}
    assert len(before) >= 6
    assert copy_supervisor(tmp_path) == ()
    assert {part: part.stat().st_mtime_ns for part in tmp_path.rglob("*.py")} == before
    path.write_text("old version")
    assert copy_supervisor(tmp_path) == ("supervisor.py",)
    assert path.read_text() != "old version"
    library = str(tmp_path / "library")
    module = "shadowprice.hosts.supervision.rank"
    code = f"import sys; sys.path.insert(0, {library!r}); import {module}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code]
    loaded = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert {"typing", "pathlib", "numpy", "shadowprice.errors"}.isdisjoint(loaded.split())


def test_a_damaged_supervisor_is_mended(tmp_path: Path) -> None:
    copy_supervisor(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    for path, text in files.items():
        path.write_bytes(text[:-1] + b"#")  # as long as before
        copy_supervisor(tmp_path)
        assert path.read_bytes() == text
        path.unlink()
        copy_supervisor(tmp_path)
        assert path.read_bytes() == text


@pytest.mark.parametrize("damage", [b"\xff", b"", b"x" * 100_000, None])
def test_whatever_is_in_the_place_of_a_part_is_replaced(
    tmp_path: Path, damage: bytes | None
) -> None:
    """Not UTF-8, empty, longer; a folder or a pipe; compiled files, which would be read in its place."""
    copy_supervisor(tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    for path in whole:
        if damage is None:
            path.unlink()
            path.mkdir() if "rank" in path.name else os.mkfifo(path)
        else:
            path.write_bytes(damage)
    compiled = tmp_path / "library/shadowprice/hosts/supervision/__pycache__"
    compiled.mkdir()
    (compiled / "rank.cpython-311.pyc").write_bytes(b"torn")
    differed = copy_supervisor(tmp_path)
    assert {path: path.read_bytes() for path in whole} == whole
    assert not compiled.exists()
    assert ("supervisor.py" in differed) == (damage is not None)


def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot write the supervisor"):
        copy_supervisor(tmp_path / "file")
