"""The local host: the conformance suite, and what is its own: GPUs, claims, registry."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from shadowprice.errors import HostError, InputError
from shadowprice.hosts import lease_files
from shadowprice.hosts.lease_files import read_supervisor
from shadowprice.hosts.local import launching
from shadowprice.hosts.local.claims import Claimant, DeviceClaims
from shadowprice.hosts.local.discovery import find_gpus, normalised
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import Device, Host, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.registry import host_kinds, open_host
from shadowprice.hosts.shared_storage import LoggedProcess
from shadowprice.hosts.supervision.processes import process
from support.host_conformance import HostCase, HostConformance, living, python
from support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(60),
]


launch = launching.LauncherProcess.launch


def _launch_late(launcher: launching.LauncherProcess, directory: Path, kept: list[int]) -> None:
    while not launcher.is_over():
        time.sleep(0.005)
    launch(launcher, directory, kept)


@pytest.fixture
def case(tmp_path: Path) -> Iterator[HostCase]:
    state = tmp_path / "state"

    def reopen(host: Host) -> Host:
        return open_host("local:8", state, "run")

    made = HostCase(open_host("local:8", state, "run"), state, reopen, ttl_s=0.5)
    yield made
    made.clean_up()


class TestLocalHost(HostConformance):
    @pytest.mark.parametrize("late", [False, True])
    def test_a_supervisor_that_cannot_start(
        self, case: HostCase, monkeypatch: pytest.MonkeyPatch, late: bool
    ) -> None:
        """The launcher ends after a lease was sent to it, or just before."""
        if late:
            monkeypatch.setattr(launching.LauncherProcess, "launch", _launch_late)
        damaged = "import absent_module"
        copied = lease_files.copy_supervisor
        # In the moment between the look at it and its start.
        monkeypatch.setattr(
            lease_files,
            "copy_supervisor",
            lambda state: (copied(state), (state / "supervisor.py").write_text(damaged)),
        )
        found = case.ended(case.start(["true"]))
        assert found.reason == "unstartable"  # a failure: it is not tried for ever
        assert "absent_module" in found.detail

    @pytest.mark.parametrize("name", ["supervisor.py", "library"])
    def test_a_supervisor_that_was_removed_is_there_again(self, case: HostCase, name: str) -> None:
        (case.state / name).rename(case.state / "elsewhere")
        assert case.ended(case.start(["true"])).code == 0

    @pytest.mark.parametrize("again", [False, True])
    def test_what_escapes_is_killed_before_the_device_is_free(
        self, case: HostCase, again: bool
    ) -> None:
        # A session of its own, two forks away, with nothing in its environment to know it by.
        code = (
            "import os, time\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        print(os.getpid(), 'escaped', flush=True)\n"
            "        os.execve('/bin/sleep', ['sleep', '600'], {})\n"
            "    os._exit(0)\n"
            "os.wait(); time.sleep(600)"
        )
        order = case.start(python(code))
        case.wait_output(order, "escaped")
        escaped = int((order.directory / "output.log").read_text().split()[0])
        case.wait(order, Phase.RUNNING)
        if again:  # by a driver that did not start it
            case.host.close()
            case.host = case.reopen(case.host)
            case.host.adopt([order])
        supervisor = read_supervisor(order.directory)
        assert supervisor is not None
        os.kill(supervisor["pid"], signal.SIGKILL)
        assert case.ended(order).code == -9
        assert process(escaped) is None

    def test_one_launcher_starts_all(self, case: HostCase) -> None:
        orders = [case.start(["sleep", "600"]) for _ in range(5)]
        for order in orders:
            case.wait(order, Phase.RUNNING)
        found = [read_supervisor(order.directory) for order in orders]
        (launcher,) = {each["parent_pid"] for each in found if each is not None}
        os.kill(launcher, signal.SIGKILL)
        while process(launcher) is not None:
            time.sleep(0.001)
        later = case.start(["true"])  # by another
        assert case.ended(later).code == 0
        for order in orders:  # they outlive it
            case.wait(order, Phase.RUNNING)
            case.host.stop([order.key], 5.0, "round over")
            assert case.ended(order).reason == "stopped"

    def test_supervisors_sleep_where_nothing_happens(self, case: HostCase) -> None:
        orders = [case.start(["sleep", "600"], ttl_s=60.0) for _ in range(3)]
        for order in orders:
            case.wait(order, Phase.RUNNING)
        found = [read_supervisor(order.directory) for order in orders]
        pids = [each["pid"] for each in found if each is not None]

        def switches() -> int:
            """Times that they were awake."""
            text = "".join(Path(f"/proc/{pid}/status").read_text() for pid in pids)
            return sum(map(int, re.findall(r"\bvoluntary_ctxt_switches:\s+(\d+)", text)))

        before, began_s = switches(), time.monotonic()
        time.sleep(1.0)
        passed_s = time.monotonic() - began_s
        # Each looks every two seconds, and asks for the time, a file and no more.
        assert switches() - before <= 3 * (passed_s / 2.0 + 1.0) * 2.0

    def test_supervisors_share_their_memory(self, case: HostCase) -> None:
        orders = [case.start(["sleep", "600"], ttl_s=60.0) for _ in range(12)]
        for order in orders:
            case.wait(order, Phase.RUNNING)
        found = [read_supervisor(order.directory) for order in orders]
        pids = [each["pid"] for each in found if each is not None]
        time.sleep(0.3)  # what executed commands had of them is theirs alone by then
        own = [
            int(re.findall(r"Private_Dirty:\s+(\d+)", text)[0])
            for text in (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids)
        ]
        # 0.6 MB; 1.7 MB where a supervisor does itself what its child does.
        assert sum(own) / len(own) < 1100, own

    def test_an_order_that_cannot_be_written(self, case: HostCase) -> None:
        (case.state / "jobs").write_text("in the way")
        found = case.ended(case.start(["true"]))
        assert found.reason == "unstartable"
        assert "jobs" in found.detail

    def test_an_unknown_lease(self, case: HostCase) -> None:
        with pytest.raises(HostError, match="e9-r0 of job j was neither started nor adopted"):
            case.host.poll([LeaseKey("j", 9)])


V100 = "Tesla V100-SXM2-16GB"


def program(folder: Path, code: str) -> str:
    path = folder / "smi"
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o700)
    return str(path)


def fake_smi(
    folder: Path,
    gpus: Sequence[str] = (V100,),
    pids: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> str:
    """A program that answers as nvidia-smi does: GPUs by their models, and processes by their number."""
    listed = [f"GPU {k}: {name} (UUID: GPU-{k})" for k, name in enumerate(gpus)]
    running = [f"GPU-{k}, {pid}" for k, each in pids.items() for pid in each]
    for name, lines in (("listed", listed), ("running", running)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return program(folder, f'case "$1" in -L) cat {folder}/listed;; *) cat {folder}/running;; esac')


@pytest.fixture
def claims() -> str:
    """A scope of its own: tests run side by side on one machine."""
    return f"test-{uuid.uuid4().hex[:20]}"


def local(tmp_path: Path, claims: str, smi: str, run_id: str = "run") -> LocalHost:
    state = tmp_path / run_id
    state.mkdir(exist_ok=True)
    return LocalHost(state, None, claims=DeviceClaims(run_id, claims), smi=smi)


def test_gpus_of_a_machine(tmp_path: Path, claims: str) -> None:
    host = local(tmp_path, claims, fake_smi(tmp_path, (V100, V100)))
    (node,) = host.discover()
    assert (node.name, node.gpu_type) == ("localhost", "v100-sxm2-16gb")
    assert [device.uuid for device in node.devices] == ["GPU-0", "GPU-1"]
    assert node.cpus == len(os.sched_getaffinity(0))
    assert node.memory_gb > 0.1
    host.close()


def test_types_are_nodes_of_their_own(tmp_path: Path, claims: str) -> None:
    host = local(tmp_path, claims, fake_smi(tmp_path, (V100, "NVIDIA A100", V100)))
    first, second = host.discover()
    assert (first.name, second.name) == ("localhost", "localhost-2")
    assert (first.gpu_type, second.gpu_type) == ("v100-sxm2-16gb", "a100")
    assert [device.uuid for device in first.devices] == ["GPU-0", "GPU-2"]
    assert second.devices == (Device("localhost-2", 0, "GPU-1"),)
    assert first.cpus + second.cpus == pytest.approx(len(os.sched_getaffinity(0)))
    host.close()


def test_no_program_or_no_driver_is_no_gpu(tmp_path: Path, claims: str) -> None:
    for smi in ("/absent/nvidia-smi", program(tmp_path, "exit 9")):
        (node,) = local(tmp_path, claims, smi).discover()
        assert node.gpu_type == "cpu"
        assert len(node.devices) == len(os.sched_getaffinity(0))
        assert node.devices[0].uuid == "localhost/cpu:0"


def test_a_driver_that_is_broken_is_an_error(tmp_path: Path, claims: str) -> None:
    code = "echo Failed to initialize NVML: Driver/library version mismatch; exit 18"
    host = local(tmp_path, claims, program(tmp_path, code))
    with pytest.raises(HostError, match=r"ended with 18: Failed to initialize .*local:SLOTS"):
        host.discover()


LISTED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa-0)
  MIG 1g.5gb      Device  0: (UUID: MIG-bb-1)
  MIG 2g.10gb     Device  1: (UUID: MIG-GPU-aa-0/5/0)
GPU 1: NVIDIA GeForce RTX 3090 (UUID: GPU-cc-2)
"""


def test_mig_instances_are_devices(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(LISTED)
    lease = {"SHADOWPRICE_LEASE": "/other/run/jobs/job/leases/e1-r0"}
    with subprocess.Popen(["sleep", "60"], env=lease) as other:
        while not living(lease["SHADOWPRICE_LEASE"]):
            time.sleep(0.001)
        rows = f"GPU-cc-2, 123\\nGPU-aa-0, {other.pid}\\nGPU-aa-0, 5\\nGPU-cc-2, {other.pid}\\n"
        code = f'case "$1" in -L) cat {tmp_path}/list;; *) printf "{rows}";; esac'
        found = find_gpus(program(tmp_path, code))
        other.kill()
    assert [(item.uuid, item.gpu_type) for item in found] == [
        ("MIG-bb-1", "a100-sxm4-40gb-mig-1g.5gb"),
        ("MIG-GPU-aa-0/5/0", "a100-sxm4-40gb-mig-2g.10gb"),
        ("GPU-cc-2", "rtx-3090"),
    ]
    # Which instance a lease computes on nobody says: claims keep leases of runs apart.
    assert [set(item.processes) for item in found] == [{5}, {5}, {123, other.pid}]


def test_a_log_goes_on_where_one_ended_but_for_launchers(tmp_path: Path) -> None:
    log = tmp_path / launching.LOG
    for words in ("first", "second"):
        ended = LoggedProcess(["sh", "-c", f"echo {words}"], str(log), os.environ)
        while not ended.is_over():
            time.sleep(0.001)
    assert log.read_text() == "first\nsecond\n"
    launching.LauncherProcess(tmp_path).close(wait=True)
    assert "first" not in log.read_text()


def test_names_of_types() -> None:
    assert normalised("Tesla K80") == "k80"
    assert normalised("NVIDIA H200") == "h200"
    assert normalised("NVIDIA") == "gpu"


def test_a_gpu_that_others_use_is_left_out(tmp_path: Path, claims: str) -> None:
    host = local(tmp_path, claims, fake_smi(tmp_path, (V100, V100), {0: (77, 5)}))
    (node,) = host.discover()
    assert [device.uuid for device in node.devices] == ["GPU-1"]
    assert host.notes == ("v100-sxm2-16gb GPU-0 is used by processes of others: 5, 77",)
    host.close()
    alone = local(tmp_path, claims, fake_smi(tmp_path, pids={0: (5,)}))
    with pytest.raises(HostError, match=r"no GPU of this machine is free.*processes of others: 5"):
        alone.discover()


def test_a_process_that_a_dead_supervisor_of_this_run_left_is_no_stranger(
    tmp_path: Path, claims: str
) -> None:
    lease = tmp_path / "run" / "jobs" / "job" / "leases" / "e1-r0"
    environment = {"SHADOWPRICE_LEASE": str(lease)}
    with subprocess.Popen(["sleep", "60"], env=environment) as left:
        while not living(str(lease)):
            time.sleep(0.001)
        host = local(tmp_path, claims, fake_smi(tmp_path, pids={0: (left.pid,)}))
        assert host.discover()[0].devices[0].uuid == "GPU-0"
        host.close()
        left.kill()


def test_two_runs_never_share_a_gpu(tmp_path: Path, claims: str) -> None:
    smi = fake_smi(tmp_path)
    first, second = (local(tmp_path, claims, smi, run) for run in ("one", "two"))
    first.discover()
    with pytest.raises(HostError, match="GPU-0 is claimed by run 'one' of user"):
        second.discover()
    first.close()
    second.discover()
    second.close()


def test_a_gpu_stays_claimed_while_a_supervisor_lives(tmp_path: Path, claims: str) -> None:
    smi = fake_smi(tmp_path)
    host = local(tmp_path, claims, smi, "one")
    (node,) = host.discover()
    key = LeaseKey("job", 1)
    directory = tmp_path / "one" / "jobs" / "job" / "leases" / key.folder
    argv = ("/bin/sh", "-c", "ls -l /proc/self/fd; exec sleep 600")
    order = LaunchSpec(key, node.devices, False, argv, {}, directory, tmp_path, 60.0, 5.0)
    host.start([order])
    wait(host, key, Phase.RUNNING)
    fake_smi(tmp_path, pids={0: (1234,)})  # its own process
    assert host.discover() == (node,)
    host.close()  # as if the driver had ended
    other = local(tmp_path, claims, smi, "two")
    with pytest.raises(HostError, match="claimed by run 'one'"):
        other.discover()
    again = local(tmp_path, claims, smi, "one")
    assert again.discover() == (node,)
    again.adopt([order])
    again.stop([key], 5.0, "round over")
    wait(again, key, Phase.ENDED)
    assert "socket:" not in (directory / "output.log").read_text(), "the command has the claim"
    fake_smi(tmp_path)
    later = LaunchSpec(
        LeaseKey("job", 2),
        node.devices,
        False,
        ("true",),
        {},
        directory.parent / "e2-r0",
        tmp_path,
        60.0,
        5.0,
    )
    again.start([later])
    wait(again, later.key, Phase.ENDED)
    with pytest.raises(HostError, match="claimed by run 'one'"):  # taken over
        other.discover()
    again.close()
    other.discover()
    other.close()
    assert not living(str(directory))


def wait(host: Host, key: LeaseKey, phase: Phase) -> None:
    until = time.monotonic() + 20.0
    while host.poll([key])[key].phase is not phase:
        assert time.monotonic() < until
        time.sleep(0.01)


CLAIMS = """
import os, sys
uuid, user = sys.argv[1], int(sys.argv[2])
from shadowprice.hosts.local.claims import DeviceClaims
claims = DeviceClaims("other-run")
os.setresuid(user, user, user)
print(claims.claim(uuid) is not None, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["runtime directory", "neither home nor environment", "user"])
def test_claims_are_the_machines_whoever_makes_them(tmp_path: Path, how: str) -> None:
    device = f"GPU-{uuid.uuid4()}"
    user = 65534 if how == "user" else os.getuid()
    if user != os.getuid() and os.getuid():
        pytest.skip("only root can become another user")
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    if how == "runtime directory":
        environment["XDG_RUNTIME_DIR"] = str(tmp_path)
    argv = [sys.executable, "-c", CLAIMS, device, str(user)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    mine = DeviceClaims("mine")
    with subprocess.Popen(argv, env=environment, text=True, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == "True\n"
        assert mine.claim(device) is None
        assert mine.holder(device) == Claimant("other-run", user)
        assert not mine.is_own(mine.holder(device))
        other.kill()  # what it held is free at once: the kernel's, not a file's
        other.wait()
        assert mine.claim(device, wait_s=5.0) is not None
        assert mine.is_own(mine.holder(device))
    mine.release_all()


def test_a_claim_of_another_users_run_of_the_same_name_is_not_ours(claims: str) -> None:
    mine, other = DeviceClaims("run", claims), Claimant("run", os.getuid() + 1)
    assert not mine.is_own(other)
    assert mine.holder("GPU-0") == Claimant("", -1)


def test_a_claim_dies_with_its_holder(claims: str) -> None:
    code = (
        "import sys,time\n"
        "from shadowprice.hosts.local.claims import DeviceClaims\n"
        "held = DeviceClaims('other', sys.argv[1])\n"
        "held.claim('GPU/0')\n"
        "print('held', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", code, claims]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        mine = DeviceClaims("mine", claims)
        assert mine.claim("GPU/0") is None
        assert mine.holder("GPU/0") == Claimant("other", os.getuid())
        holder.kill()
        holder.wait()
    assert mine.claim("GPU/0", wait_s=1.0) is not None
    assert mine.holder("GPU/0") == Claimant("mine", os.getuid())
    mine.release_all()


def test_hosts_are_found_by_name(tmp_path: Path) -> None:
    assert "local" in host_kinds()
    host = open_host("local:3", tmp_path / "new", "run")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (node,) = host.discover()
    assert len(node.devices) == 3
    host.close()


@pytest.mark.parametrize("name", ["loca", "", "registry", "local_claims", "../local", "local.x"])
def test_unknown_hosts_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"expected one of .*local"):
        open_host(name, tmp_path, "run")


@pytest.mark.parametrize("address", ["0", "-1", "x", "1.5", "\u0663"])
def test_numbers_of_slots(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match=f"local:{address}: expected a number of CPU slots"):
        open_host(f"local:{address}", tmp_path, "run")


def test_a_state_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="state directory"):
        open_host("local:1", tmp_path / "file" / "state", "run")
