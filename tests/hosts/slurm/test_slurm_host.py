"""Leases on a real Slurm cluster of this machine: four slurmd with fake GPUs."""

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
from shadowprice.hosts import lease_files
from shadowprice.hosts.absent import AbsentDevices
from shadowprice.hosts.protocol import Device, Exit, Host, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.slurm.commands import gpus_of
from shadowprice.hosts.slurm.host import SlurmHost, open_host
from shadowprice.hosts.slurm.jobs import Comment
from support.host_conformance import HostCase, HostConformance
from support.slurm_cluster import NODES, SlurmCluster, needs_slurm, slurm_cluster

pytestmark = [*needs_slurm, pytest.mark.timeout(120)]

# Says which devices it sees, then runs until SIGTERM, which it answers with 143.
WORK = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
    "print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ['SLURM_JOB_ID'],"
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
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def case(slurm: SlurmCluster, state: Path) -> Iterator[HostCase]:
    state.mkdir(mode=0o700)

    def reopen(host: Host) -> Host:
        return open_host("", state, "run1")

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
    """What Slurm sets, and not what was in the order."""
    assert environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert environment["SHADOWPRICE_EPOCH"] == str(order.key.epoch)
    assert environment["SLURM_JOB_ID"].isdigit()


class TestSlurmHost(HostConformance):
    pass


def opened(state: Path, address: str = "", run: str = "run1") -> SlurmHost:
    state.mkdir(mode=0o700, exist_ok=True)
    host = open_host(address, state, run)
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


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def queue(cluster: SlurmCluster) -> list[str]:
    return cluster.run("squeue", "-h", "-o", "%i").split()


def test_discovers_types_and_counts(slurm: SlurmCluster, state: Path) -> None:
    nodes = opened(state).discover()
    assert {node.name: node.gpu_type for node in nodes} == NODES
    assert [device.uuid for device in nodes[2].devices] == ["n2/gpu:0", "n2/gpu:1"]
    assert {(node.cpus, round(node.memory_gb, 2), node.address) for node in nodes} == {
        (8.0, 4.19, "127.0.0.1")
    }


def test_nodes_are_as_slurm_s_json_has_them(slurm: SlurmCluster, state: Path) -> None:
    told = json.loads(slurm.run("sinfo", "--json"))["nodes"]
    found = opened(state)._slurm.nodes()
    assert {node["name"] for node in told} == found.keys()
    for node in told:
        mine = found[node["name"]]
        assert (mine.cpus, mine.memory_mb) == (node["cpus"], node["real_memory"])
        assert mine.address == node["address"]
        assert mine.gpus == gpus_of(node["gres"])
        assert mine.gpus_used == gpus_of(node["gres_used"])
        assert mine.states == {word.upper() for word in [node["state"], *node["state_flags"]]}
    assert opened(state)._slurm.nodes("first").keys() == {"n0", "n1"}


def test_partition_and_exclusion(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state, "first,exclude=n0")
    assert [node.name for node in host.discover()] == ["n1"]
    with pytest.raises(HostError, match="partition nowhere"):
        opened(state, "nowhere")


def test_gpus_of_strangers_are_left_out(slurm: SlurmCluster, state: Path) -> None:
    slurm.run(
        "sbatch",
        "-w",
        "n2",
        "--mem=10M",
        "--gres=gpu:k80:1",
        "--wrap",
        "sleep 60",
        "-o",
        "/dev/null",
    )
    wait(lambda: slurm.run("squeue", "-h", "-t", "R"))
    counts = {node.name: len(node.devices) for node in opened(state).discover()}
    assert counts == {"n0": 2, "n1": 2, "n2": 1, "n3": 2}


def test_what_a_resumed_run_missed_is_found_when_it_is_free(
    slurm: SlurmCluster, state: Path
) -> None:
    before = opened(state).discover()
    stranger = slurm.run(
        *("sbatch", "--parsable", "-w", "n2", "--mem=10M", "--gres=gpu:k80:1"),
        *("--wrap", "sleep 60", "-o", "/dev/null"),
    ).strip()
    wait(lambda: slurm.run("squeue", "-h", "-t", "R"))
    slurm.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
    host = opened(state)
    absent = AbsentDevices(host, before, host.discover())
    assert (absent.nodes, absent.devices) == ({"n1"}, {"n1/gpu:0", "n1/gpu:1", "n2/gpu:1"})
    slurm.run("scancel", stranger)
    slurm.run("scontrol", "update", "NodeName=n1", "State=RESUME")
    began_s = time.monotonic()

    def all_there() -> bool:
        absent.look(time.monotonic() - began_s)
        return not absent.devices

    wait(all_there)
    assert absent.nodes == frozenset()
    one = order(state, "one", ["n1/gpu:0"], argv=["/bin/true"])
    host.start([one])
    assert ended(host, one.key) == Exit(0, "exited")


def test_runs_on_its_node_with_devices_of_slurm(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    one = order(state, "one", ["n2/gpu:0", "n2/gpu:1"], epoch=7)
    host.start([one])
    wait_phase(host, one.key, Phase.RUNNING)
    assert output(one)[0:2] == ["sees", "0,1"]
    assert output(one)[3] == "7"
    (job,) = [job for job in host._slurm.jobs().values() if not job.is_over]
    assert job.node == "n2"
    assert Comment.parse(job.comment) == Comment("run1", one.key, 2)
    environment = slurm.run("squeue", "-h", "-o", "%b")
    assert environment.strip() == "gres:gpu:k80:2"
    host.stop([one.key], 5.0, "enough")
    assert ended(host, one.key) == Exit(143, "stopped")
    wait(lambda: not queue(slurm))


def test_ends_by_itself(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    good = order(state, "good", ["n0/gpu:0"], argv=["/bin/true"])
    bad = order(state, "bad", ["n0/gpu:1"], argv=["/bin/sh", "-c", "echo no luck; exit 3"])
    host.start([good, bad])
    host.start([good, bad])
    assert ended(host, good.key) == Exit(0, "exited")
    assert ended(host, bad.key) == Exit(3, "exited", detail="no luck")
    assert len(host._slurm.jobs()) >= 2


def test_several_leases_fit_on_a_node(slurm: SlurmCluster, state: Path) -> None:
    """Each takes its share of CPUs and memory, not the node's."""
    host = opened(state)
    both = [order(state, f"j{k}", [f"n1/gpu:{k}"]) for k in range(2)]
    host.start(both)
    for one in both:
        wait_phase(host, one.key, Phase.RUNNING)
    assert {output(one)[1] for one in both} == {"0", "1"}


def test_a_pair_shares_a_device_and_outlives_its_holder(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    first, second = order(state, "first", ["n0/gpu:1"]), order(state, "second", ["n0/gpu:1"])
    host.start([first])
    wait_phase(host, first.key, Phase.RUNNING)
    host.start([second])
    wait_phase(host, second.key, Phase.RUNNING)
    assert output(first)[:3] == output(second)[:3]  # one device, one job
    assert len(queue(slurm)) == 1
    host.stop([first.key], 5.0, "moved")
    assert ended(host, first.key).reason == "stopped"
    time.sleep(0.3)
    assert phase(host, second.key) is Phase.RUNNING
    third = order(state, "third", ["n0/gpu:1"])
    host.start([third])
    wait_phase(host, third.key, Phase.RUNNING)
    assert len(queue(slurm)) == 1
    host.stop([second.key, third.key], 5.0, "done")
    assert ended(host, second.key).reason == ended(host, third.key).reason == "stopped"
    wait(lambda: not queue(slurm))


def test_a_guest_sees_its_part_of_a_job(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    wide = order(state, "wide", ["n1/gpu:0", "n1/gpu:1"])
    narrow = order(state, "narrow", ["n1/gpu:1"])
    host.start([wide, narrow])
    wait_phase(host, narrow.key, Phase.RUNNING)
    assert (output(wide)[1], output(narrow)[1]) == ("0,1", "1")


def test_devices_of_two_jobs_cannot_be_shared(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    small = order(state, "small", ["n1/gpu:0"])
    wide = order(state, "wide", ["n1/gpu:0", "n1/gpu:1"])
    host.start([small, wide])
    exit = ended(host, wide.key)
    assert exit.reason == "unstartable"
    assert "holds all that the other wants" in exit.detail
    wait_phase(host, small.key, Phase.RUNNING)


def test_a_waiting_lease_is_void_when_stopped(slurm: SlurmCluster, state: Path) -> None:
    slurm.run(
        "sbatch",
        "-w",
        "n3",
        "--mem=10M",
        "--gres=gpu:k80:2",
        "--wrap",
        "sleep 60",
        "-o",
        "/dev/null",
    )
    host = opened(state)
    one = order(state, "one", ["n3/gpu:0"])
    stranger = queue(slurm)
    host._nodes["n3"] = host._nodes["n2"].__class__("n3", "k80", one.devices, 8.0, 4.0)
    host.start([one])
    time.sleep(0.5)
    assert phase(host, one.key) is Phase.STARTING
    host.stop([one.key], 5.0, "too late")
    assert ended(host, one.key, 2.0).reason == "void"
    wait(lambda: queue(slurm) == stranger)


def test_a_lease_that_waits_for_a_closed_node_is_void(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    one = order(state, "one", ["n3/gpu:0"])
    slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    try:
        host.start([one])
        found = ended(host, one.key, 10.0)
        assert (found.reason, found.detail) == ("void", "node n3 takes no jobs now")
        assert host.lost_nodes() == {"n3"}
        wait(lambda: queue(slurm) == [])
    finally:
        slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    wait(lambda: host.lost_nodes() == frozenset())
    two = order(state, "one", ["n3/gpu:0"], epoch=2)
    host.start([two])
    wait_phase(host, two.key, Phase.RUNNING)


def test_what_is_left_on_a_closed_node_is_lost_until_it_opens(
    slurm: SlurmCluster, state: Path
) -> None:
    """After a power cut, of which the record of the supervisor tells nothing: only a sweep can know."""
    host = opened(state)
    one = order(state, "one", ["n3/gpu:0"])
    host.start([one])
    output(one)
    found = recorded(one)
    slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    try:
        for pid in (found["pid"], found["command_pid"]):
            os.kill(pid, signal.SIGKILL)
        (one.directory / "supervisor.json").write_text("")
        host = opened(state)
        host.adopt([one])
        wait_phase(host, one.key, Phase.LOST)
        time.sleep(1.0)
        assert phase(host, one.key) is Phase.LOST
    finally:
        slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    assert ended(host, one.key).code == -9


def test_cancelled_by_somebody_else(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    one = order(state, "one", ["n0/gpu:0"])
    host.start([one])
    output(one)
    slurm.run("scancel", "--user=root")
    exit = ended(host, one.key)
    assert exit.reason == "stopped"
    # Slurm signals the supervisor and the command, and the supervisor hands the signal on: a second
    # SIGTERM may meet an interpreter that ends already and has put the default action back.
    assert exit.code in (143, -15)
    assert "cancelled by somebody" in exit.detail


def test_killed_outright(slurm: SlurmCluster, state: Path) -> None:
    """SIGKILL of all that is ours on the node, the holder of the job first."""
    host = opened(state)
    one = order(state, "one", ["n0/gpu:0"])
    host.start([one])
    output(one)
    supervisor = recorded(one)["pid"]
    for pid in (parent_of(supervisor), supervisor):
        os.kill(pid, signal.SIGKILL)
    assert ended(host, one.key).code == -9
    wait(lambda: not queue(slurm))


def test_cancelled_before_it_began(slurm: SlurmCluster, state: Path) -> None:
    slurm.run("scontrol", "update", "PartitionName=all", "State=DOWN")
    try:
        host = opened(state)
        one = order(state, "one", ["n0/gpu:0"])
        host.start([one])
        assert phase(host, one.key) is Phase.STARTING
        slurm.run("scancel", "--user=root")
        exit = ended(host, one.key)
        assert exit.reason == "void"
        assert "CANCELLED" in exit.detail
    finally:
        slurm.run("scontrol", "update", "PartitionName=all", "State=UP")


def test_a_later_driver_goes_on(slurm: SlurmCluster, state: Path) -> None:
    first = opened(state)
    runs, guest = order(state, "runs", ["n0/gpu:0"]), order(state, "guest", ["n0/gpu:0"])
    first.start([runs, guest])
    wait_phase(first, runs.key, Phase.RUNNING)
    wait_phase(first, guest.key, Phase.RUNNING)
    slurm.run("scontrol", "update", "PartitionName=all", "State=DOWN")
    waits, never = order(state, "waits", ["n1/gpu:0"]), order(state, "never", ["n1/gpu:1"])
    try:
        first.start([waits])
        second = open_host("", state, "run1")
        second.adopt([runs, guest, waits, never])
    finally:
        slurm.run("scontrol", "update", "PartitionName=all", "State=UP")
    assert phase(second, runs.key) is phase(second, guest.key) is Phase.RUNNING
    assert ended(second, waits.key, 2.0).reason == ended(second, never.key, 2.0).reason == "void"
    wait(lambda: len(queue(slurm)) == 1)
    nodes = second.discover()
    assert [len(node.devices) for node in nodes] == [2, 2, 2, 2]  # its own are not a stranger's
    third = order(state, "third", ["n0/gpu:0"])
    second.start([third])
    wait_phase(second, third.key, Phase.RUNNING)
    assert len(queue(slurm)) == 1
    second.stop([runs.key, guest.key, third.key], 5.0, "done")
    for key in (runs.key, guest.key, third.key):
        assert ended(second, key).reason == "stopped"


def test_a_stubborn_command_is_killed(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    one = order(state, "one", ["n0/gpu:0"], argv=[sys.executable, "-c", deaf])
    host.start([one])
    output(one)
    host.stop([one.key], 0.3, "now")
    exit = ended(host, one.key)
    assert (exit.code, exit.forced) == (-9, True)


def test_a_hung_supervisor_is_killed_by_slurm(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    one = order(state, "one", ["n0/gpu:0"])
    host.start([one])
    output(one)
    os.kill(recorded(one)["pid"], signal.SIGSTOP)
    host.stop([one.key], 0.2, "now")
    assert ended(host, one.key, 25.0).code in (
        143,
        -15,
        -9,
    )  # Slurm sends SIGCONT and SIGTERM first


def test_a_lost_node_and_its_return(slurm: SlurmCluster, state: Path) -> None:
    host = opened(state)
    stays, stops = order(state, "stays", ["n3/gpu:0"]), order(state, "stops", ["n3/gpu:1"])
    host.start([stays, stops])
    output(stays), output(stops)
    slurm.kill_node("n3")
    try:
        wait(lambda: "n3" in host.lost_nodes(), 40.0)
        wait_phase(host, stays.key, Phase.LOST, 40.0)
        # The job's script is still there, and its files still reach us: no end without them.
        assert (stays.directory / "exit.json").exists() is False
        host.stop([stops.key], 5.0, "leave")
        assert ended(host, stops.key).reason == "stopped"
        assert phase(host, stays.key) is Phase.LOST
    finally:
        slurm.start_node("n3")
    wait(lambda: host.lost_nodes() == frozenset(), 40.0)
    # Slurm has given the job up, so it ends it, or a sweep does.
    assert ended(host, stays.key, 30.0).code in (143, -15, -9)


def test_a_node_that_cannot_see_the_state(
    slurm: SlurmCluster, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = opened(state)
    one = order(state, "one", ["n0/gpu:0"])
    (state / "supervisor.py").unlink()
    # The driver sees it, and would write it again.
    monkeypatch.setattr(lease_files, "copy_supervisor", lambda state: ())
    host.start([one])
    with pytest.raises(HostError, match=r"n0 cannot read .*state; put --state on storage"):
        wait_phase(host, one.key, Phase.ENDED)


def test_no_gpu_anywhere_makes_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cluster"
    root.mkdir()
    with slurm_cluster(root, gpus=False) as cluster:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        host = opened(tmp_path / "state", "first")
        assert [(node.gpu_type, len(node.devices)) for node in host.discover()] == [("cpu", 8)] * 2
        one = order(tmp_path / "state", "one", ["n1/cpu:0", "n1/cpu:3"])
        host.start([one])
        wait_phase(host, one.key, Phase.RUNNING)
        assert cluster.run("squeue", "-h", "-o", "%N %C").split() == ["n1", "2"]
