"""Leases as steps of an allocation on a real Slurm cluster of this machine: four slurmd with fake GPUs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import Device, Exit, Host, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.slurm.host import SlurmHost, open_host
from support.host_conformance import HostCase, HostConformance
from support.slurm_cluster import SlurmCluster, needs_slurm, slurm_cluster

pytestmark = [*needs_slurm, pytest.mark.timeout(120)]

# Says which devices it sees, then runs until SIGTERM, which it answers with 143.
WORK = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
    "print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ['SLURM_STEP_ID'],"
    " os.environ['SHADOWPRICE_EPOCH'], flush=True)\n"
    "time.sleep(float(sys.argv[1]))\n"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture
def slurm(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    yield cluster
    cluster.cancel_all()


@pytest.fixture
def job(slurm: SlurmCluster) -> int:
    """All nodes, in one job."""
    return slurm.allocate("n0,n1,n2,n3")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def case(job: int, state: Path) -> Iterator[HostCase]:
    state.mkdir(mode=0o700)

    def reopen(host: Host) -> Host:
        return open_host(str(job), state, "run1")

    made = HostCase(
        reopen(None),
        state,
        reopen,
        start_s=20.0,
        check_environment=check_environment,  # type: ignore[arg-type]
    )
    yield made
    made.clean_up()


def check_environment(environment: Mapping[str, str], order: LaunchSpec) -> None:
    """The GPUs of its devices, by their numbers in the allocation."""
    numbers = [str(device.index) for device in order.devices]
    assert environment["CUDA_VISIBLE_DEVICES"] == ",".join(numbers)
    assert environment["SLURM_JOB_ID"].isdigit()


class TestSlurmHost(HostConformance):
    pass


def opened(state: Path, job: int) -> SlurmHost:
    state.mkdir(mode=0o700, exist_ok=True)
    host = open_host(str(job), state, "run1")
    host.discover()
    return host


def order(
    state: Path,
    job: str,
    devices: Sequence[str],
    epoch: int = 1,
    argv: Sequence[str] | None = None,
    seconds: float = 60.0,
    **more: object,
) -> LaunchSpec:
    key = LeaseKey(job, epoch)
    directory = state / "jobs" / job / "leases" / key.folder
    held = tuple(Device(uuid.split("/")[0], int(uuid[-1]), uuid) for uuid in devices)
    env = {
        "SHADOWPRICE_LEASE": str(directory),
        "SHADOWPRICE_EPOCH": str(epoch),
        "CUDA_VISIBLE_DEVICES": ",".join(devices),
    }
    command = tuple(argv or (sys.executable, "-c", WORK, str(seconds)))
    settings: dict[str, object] = {"ttl_s": 60.0, "grace_s": 5.0, **more}
    return LaunchSpec(key, held, False, command, env, directory, state, **settings)  # type: ignore[arg-type]


def wait(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    limit = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


def phase(host: SlurmHost, key: LeaseKey) -> Phase:
    return host.poll([key])[key].phase


def wait_phase(host: SlurmHost, key: LeaseKey, wanted: Phase, limit_s: float = 20.0) -> None:
    seen = []

    def reached() -> bool:
        seen.append(host.poll([key])[key])
        return seen[-1].phase is wanted

    try:
        wait(reached, limit_s)
    except AssertionError:
        raise AssertionError(f"{key} is {seen[-1]}, not {wanted}") from None


def ended(host: SlurmHost, key: LeaseKey, limit_s: float = 20.0) -> Exit:
    wait_phase(host, key, Phase.ENDED, limit_s)
    exit = host.poll([key])[key].exit
    assert exit is not None
    return exit


def output(one: LaunchSpec) -> list[str]:
    path = one.directory / "output.log"
    wait(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().split()


def recorded(one: LaunchSpec) -> dict[str, int]:
    found: dict[str, int] = json.loads((one.directory / "supervisor.json").read_text())
    return found


def steps(cluster: SlurmCluster) -> list[str]:
    """Steps that hold supervisors; those of the batch script and of the node are none."""
    said = cluster.run("squeue", "-h", "-s", "-o", "%i").split()
    return [step for step in said if step.rpartition(".")[2].isdigit()]


def test_discovers_types_and_counts(slurm: SlurmCluster, job: int, state: Path) -> None:
    nodes = opened(state, job).discover()
    # By type, then by name.
    assert [node.gpu_type for node in nodes] == ["k80", "k80", "v100", "v100"]
    assert [device.uuid for device in nodes[2].devices] == ["node-2/gpu:0", "node-2/gpu:1"]
    assert {(node.cpus, round(node.memory_gb, 2), node.address) for node in nodes} == {
        (8.0, 4.19, "127.0.0.1")
    }


def test_only_what_the_job_has_is_given_out(slurm: SlurmCluster, state: Path) -> None:
    job = slurm.allocate("n1", gpus=1)
    (node,) = opened(state, job).discover()
    assert [device.uuid for device in node.devices] == ["node-0/gpu:0"]
    slurm.run("scancel", str(job))
    wait(lambda: not slurm.run("squeue", "-h", "-o", "%i"))
    with pytest.raises(HostError, match=f"job {job} does not run"):
        open_host(str(job), state, "run1").discover()


def test_no_gpu_anywhere_makes_slots(slurm: SlurmCluster, state: Path) -> None:
    (node,) = opened(state, slurm.allocate("n1", gpus=0)).discover()
    assert (node.gpu_type, len(node.devices)) == ("cpu", 8)
    assert node.devices[3].uuid == "node-0/cpu:3"


def test_runs_on_its_node_with_its_devices(slurm: SlurmCluster, job: int, state: Path) -> None:
    host = opened(state, job)
    one = order(state, "one", ["node-2/gpu:1"], epoch=7)
    host.start([one])
    wait_phase(host, one.key, Phase.RUNNING)
    assert output(one)[0:2] == ["sees", "1"]
    assert output(one)[3] == "7"
    assert slurm.run("squeue", "-h", "-s", "-o", "%i %N").split()[-1] in ("n0", "n1", "n2", "n3")
    host.stop([one.key], 5.0, "enough")
    assert ended(host, one.key) == Exit(143, "stopped")
    wait(lambda: not steps(slurm))


def test_ends_by_itself(job: int, state: Path) -> None:
    host = opened(state, job)
    good = order(state, "good", ["node-0/gpu:0"], argv=["/bin/true"])
    bad = order(state, "bad", ["node-0/gpu:1"], argv=["/bin/sh", "-c", "echo no luck; exit 3"])
    host.start([good, bad])
    host.start([good, bad])
    assert ended(host, good.key) == Exit(0, "exited")
    assert ended(host, bad.key) == Exit(3, "exited", detail="no luck")


def test_a_step_that_somebody_cancels_is_swept(slurm: SlurmCluster, job: int, state: Path) -> None:
    host = opened(state, job)
    one = order(state, "one", ["node-0/gpu:0"])
    host.start([one])
    output(one)
    for step in steps(slurm):
        slurm.run("scancel", step)
    found = ended(host, one.key, 30.0)
    # Slurm tells the supervisor and the command to end; what does not is killed.
    assert found.code in (143, -15, -9)
    wait(lambda: not steps(slurm))


def test_killed_outright(slurm: SlurmCluster, job: int, state: Path) -> None:
    """SIGKILL of the supervisor: a step on its node ends what it left."""
    host = opened(state, job)
    one = order(state, "one", ["node-0/gpu:0"])
    host.start([one])
    output(one)
    os.kill(recorded(one)["pid"], signal.SIGKILL)
    found = ended(host, one.key, 30.0)
    assert (found.code, found.host_failed) == (-9, True)
    wait(lambda: not steps(slurm))


def test_after_a_power_cut_a_step_ends_what_is_left(job: int, state: Path) -> None:
    """The record of the supervisor tells nothing."""
    host = opened(state, job)
    one = order(state, "one", ["node-0/gpu:0"])
    host.start([one])
    output(one)
    found = recorded(one)
    for pid in (found["pid"], found["command_pid"]):
        os.kill(pid, signal.SIGKILL)
    (one.directory / "supervisor.json").write_text("")
    host = opened(state, job)
    host.adopt([one])
    assert ended(host, one.key, 30.0).code == -9


def test_a_later_driver_goes_on(slurm: SlurmCluster, job: int, state: Path) -> None:
    one = order(state, "one", ["node-0/gpu:0"])
    opened(state, job).start([one])
    output(one)
    host = opened(state, job)
    host.adopt([one])
    wait_phase(host, one.key, Phase.RUNNING)
    host.stop([one.key], 5.0, "enough")
    assert ended(host, one.key) == Exit(143, "stopped")


def test_another_allocation_goes_on(slurm: SlurmCluster, state: Path) -> None:
    """On other nodes under the same names; what ran in the job before is over with it."""
    first = slurm.allocate("n0,n1")
    one = order(state, "one", ["node-1/gpu:0"])
    before = opened(state, first)
    before.start([one])
    output(one)
    second = slurm.allocate("n2,n3")
    with pytest.raises(HostError, match=f"this run has job {first}, which still runs"):
        open_host(str(second), state, "run1").discover()
    os.kill(recorded(one)["pid"], signal.SIGKILL)
    slurm.run("scancel", str(first))
    wait(lambda: before._slurm.living_jobs().keys() == {second})
    (one.directory / "exit.json").unlink(missing_ok=True)
    (one.directory / "supervisor.json").write_text(
        json.dumps({**recorded(one), "machine": "another", "node": "another"})
    )
    host = open_host(str(second), state, "run1")
    assert [node.name for node in host.discover()] == ["node-0", "node-1"]
    host.adopt([one])
    found = ended(host, one.key)
    assert (found.code, found.detail) == (-9, "the allocation it ran in is over")
    two = order(state, "one", ["node-1/gpu:0"], epoch=2)
    host.start([two])
    wait_phase(host, two.key, Phase.RUNNING)


def test_a_stubborn_command_is_killed(job: int, state: Path) -> None:
    host = opened(state, job)
    deaf = ["/bin/sh", "-c", "trap '' TERM; echo up; sleep 60 & wait; sleep 60"]
    one = order(state, "one", ["node-0/gpu:0"], argv=deaf)
    host.start([one])
    output(one)
    host.stop([one.key], 1.0, "now")
    found = ended(host, one.key)
    assert (found.forced, found.reason) == (True, "stopped")


def test_a_node_that_does_not_answer_and_its_return(
    slurm: SlurmCluster, job: int, state: Path
) -> None:
    host = opened(state, job)
    one = order(state, "one", ["node-0/gpu:0"])
    host.start([one])
    output(one)
    (name,) = (name for name, real in host._real.items() if real == "n2")
    assert name == "node-0"
    slurm.kill_node("n2")
    two = order(state, "two", ["node-0/gpu:1"])
    host.start([two])
    assert ended(host, two.key, 30.0).reason == "void"
    wait(lambda: host.lost_nodes() == {name}, 60.0)
    assert phase(host, one.key) is Phase.LOST
    slurm.start_node("n2")
    try:
        wait(lambda: host.lost_nodes() == frozenset(), 60.0)
        assert phase(host, one.key) is Phase.RUNNING
    finally:
        slurm.restore()


def test_a_node_that_cannot_write_the_state(
    job: int, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir(mode=0o700)
    host = open_host(str(job), state, "run1")
    told = """print('["n0", "0", 8, false]')"""
    monkeypatch.setattr("shadowprice.hosts.slurm.host._PROBE", told)
    with pytest.raises(HostError, match=r"node n0 cannot write .*; put --state on storage"):
        host.discover()
