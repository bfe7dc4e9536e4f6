"""CPUs and memory of leases: nodes give no more than they have, whoever fails, and the log is checked."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.hosts.lease_cpu_memory import LeaseCpuMemory
from shadowprice.hosts.live.job_file import load_job_file
from shadowprice.hosts.live.launch_specs import LaunchSpecs
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.queue.job_queue import NOT_COUNTED
from shadowprice.hosts.local.host import open_host
from shadowprice.hosts.log.execution_log import LogRejected, verify_ledger, verify_log
from shadowprice.hosts.protocol import Device, DiscoveredNode, LaunchSpec
from shadowprice.hosts.reports.unsimulated import unsimulated
from support.fake_host import FakeHost, held_cpu_memory, two_nodes
from support.fake_queue import FakeQueue
from support.fake_run import FakeRun, events
from support.in_memory_runs import check, job

pytestmark = pytest.mark.usefixtures("no_power_cuts")

NODES = tuple(replace(node, cpus=8.0, memory_gb=16.0) for node in two_nodes())


class CountingHost(FakeHost):
    """A host that has so many CPUs and so much memory, and sees when it would need more."""

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        super().start(orders)
        held: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for process in self.processes.values():
            if process.exit is None and process.order.node not in self.down:
                for k, amount in enumerate(held_cpu_memory(process.order)):
                    held[process.order.node][k] += amount
        for node in self.nodes:
            assert held[node.name][0] <= node.cpus * 1000, (node, held)
            assert held[node.name][1] <= node.memory_gb * 1e9 / 2**20, (node, held)


def run_of(path: Path, jobs: list[dict[str, Any]], **more: Any) -> FakeRun:
    run = FakeRun(path, jobs, **{"nodes": NODES, **more})
    host = run.host
    run.host = CountingHost(host.clock, host.nodes, host.jobs, host.state)
    run.host.on_poll = host.on_poll
    return run


@pytest.mark.parametrize(
    ("policy", "seed"),
    [
        ("srtf", 0),
        ("hadar:round_s=4,fill=true", 0),
        ("gandiva:quantum_s=4", 0),
        *(
            pytest.param(p, k, marks=pytest.mark.slow)
            for p in (
                *("srtf", "las2d", "hadar:round_s=4,fill=true", "hadar:round_s=4"),
                *("gandiva:quantum_s=4", "gandiva-reactive:quantum_s=4"),
            )
            for k in range(1, 6)
        ),
    ],
)
def test_nodes_give_no_more_than_they_have(tmp_path: Path, policy: str, seed: int) -> None:
    """With crashes, lost nodes and drivers that are killed."""
    r = random.Random(seed)
    jobs = [
        job(
            f"j{k}",
            r.randint(20, 200),
            r.choice([1, 1, 2]),
            arrival_s=float(r.choice([0, 3, 20])),
            cpus=r.choice([0, 0, 1.5, 4, 7]),
            memory_gb=r.choice([0, 0, 2, 10]),
        )
        for k in range(6)
    ]

    def crash(run: FakeRun) -> None:
        if running := run.host.running():
            run.host.crash(r.choice(running))

    faults = [
        (5.0, crash),
        (9.0, lambda run: run.host.down.add("n0")),
        (17.0, lambda run: run.host.down.clear()),
    ]
    killed = sorted(r.uniform(0, 40) for _ in range(2))
    run = run_of(tmp_path / "run", jobs, policy=policy, faults=faults, kill_at_s=killed)
    run.kill_at_write = [r.randint(2, 30)]
    check(run)


def test_who_asks_for_more_than_is_left_waits(tmp_path: Path) -> None:
    """Both run on a node of their own, the third, for whose GPU there are no CPUs left, after them."""
    run = run_of(tmp_path / "run", [job(name, cpus=6, gpu_types=["A100"]) for name in "ab"])
    told = check(run)
    held = [e["data"]["amounts"] for e in told if e["kind"] == "granted"]
    assert held == [{"n0": [6000, 7629]}] * 2
    first, second = (e["time_s"] for e in told if e["kind"] == "granted")
    assert second >= next(e["time_s"] for e in told if e["kind"] == "released") > first
    assert unsimulated(told) == ()


def test_priorities_count_cpus_and_memory(tmp_path: Path) -> None:
    """A shorter job that needs the CPUs of a longer one takes them, though GPUs are free."""
    jobs = [
        job("long", 300, cpus=5, gpu_types=["A100"]),
        job("short", 20, cpus=5, gpu_types=["A100"], arrival_s=8.0),
    ]
    told = check(run_of(tmp_path / "run", jobs, policy="srtf"))
    finished = [e["job"] for e in told if e["kind"] == "finished"]
    assert finished == ["short", "long"]


def test_hadar_gives_gpus_to_whom_there_are_cpus_for(tmp_path: Path) -> None:
    """The node of the faster type has too few CPUs for one job, and for the two others together."""
    nodes = (replace(NODES[0], cpus=4.0), NODES[1])
    jobs = [
        job("big", 100, cpus=6, throughput={"A100": 20, "V100": 10}),
        *(job(name, 100, cpus=3, throughput={"A100": 20, "V100": 1}) for name in "ab"),
    ]
    told = check(run_of(tmp_path / "run", jobs, policy="hadar:round_s=4,fill=true", nodes=nodes))
    first: dict[str, Any] = {}
    for event in told:
        if event["kind"] == "granted":
            first.setdefault(event["job"], event)
    assert list(first["big"]["data"]["amounts"]) == ["n1"]
    assert first["big"]["time_s"] == min(event["time_s"] for event in first.values())
    both = [e for e in told if e["job"] in ("a", "b") and e["kind"] in ("granted", "released")]
    on_n0 = [e for e in both if any(d.startswith("n0/") for d in e["data"]["devices"])]
    assert [e["kind"] for e in on_n0[:4]] == ["granted", "released", "granted", "released"]


def test_a_lease_that_is_not_confirmed_keeps_its_cpus_and_memory(tmp_path: Path) -> None:
    """The job whose node is lost goes on elsewhere; there nobody else gets its CPUs."""
    jobs = [job("a", 150, cpus=7), job("b", 150, cpus=7, arrival_s=1.0)]
    down = [(4.0, lambda run: run.host.down.add("n0")), (30.0, lambda run: run.host.down.clear())]
    check(run_of(tmp_path / "run", jobs, faults=down))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"cpus": 9},
            "asks for 9 CPUs and 0 GB for 1 GPUs, nodes .* at most 8 CPUs and 16 GB each",
        ),
        ({"memory_gb": 17}, "asks for 0 CPUs and 17 GB"),
        ({"gpus": 2, "cpus": 20}, "room for 0 of its GPUs"),
    ],
)
def test_what_no_node_has_is_refused(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InfeasibleJobError, match=said):
        run_of(tmp_path / "run", [job("a", **more)]).execute()


PACKS = "gavel:max_sum_throughput:aware=true,packed=true"


def pairs_of(told: list[dict[str, Any]]) -> set[frozenset[str]]:
    """Jobs that held the same devices at once."""
    named = [e for e in told if e["kind"] in ("granted", "partner") and e["data"]["partner"]]
    return {frozenset((e["job"], e["data"]["partner"])) for e in named}


@pytest.mark.parametrize("policy", [PACKS, "gandiva:quantum_s=4"])
@pytest.mark.parametrize(("cpus", "together"), [(4, True), (5, False)])
def test_a_pair_needs_what_both_ask_for(
    tmp_path: Path, cpus: float, together: bool, policy: str
) -> None:
    """On one GPU of a node of 8 CPUs; who asks for nothing holds nothing, and shares in any case."""
    node = replace(NODES[0], devices=NODES[0].devices[:1])
    jobs = [job(name, 300, cpus=cpus, memory_gb=2) for name in "ab"]
    run = run_of(tmp_path / "run", jobs, policy=policy, share=0.9, nodes=(node,))
    told = check(run)
    assert bool(pairs_of(told)) is together
    held = [e["data"]["amounts"]["n0"] for e in told if e["kind"] == "granted"]
    assert {cpus_held for cpus_held, _ in held} == {cpus * 1000}


def test_who_asks_for_nothing_holds_nothing_in_a_pair(tmp_path: Path) -> None:
    node = replace(NODES[0], devices=NODES[0].devices[:1])
    free = run_of(
        tmp_path / "free", [job("a", cpus=8), job("b")], policy=PACKS, share=0.9, nodes=(node,)
    )
    told = check(free)
    assert pairs_of(told) == {frozenset("ab")}
    held = [e["data"]["amounts"]["n0"] for e in told if e["kind"] == "granted" and e["job"] == "b"]
    assert held[0] == [0, 0]


@pytest.mark.parametrize("policy", [PACKS, "gandiva:quantum_s=4"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3, 5, 6))]
)
def test_pairs_hold_no_more_than_nodes_have(tmp_path: Path, seed: int, policy: str) -> None:
    """With crashes, lost nodes and drivers that are killed."""
    r = random.Random(seed)
    jobs = [
        job(
            f"j{k}",
            r.randint(20, 200),
            r.choice([1, 1, 2]),
            arrival_s=float(r.choice([0, 3, 20])),
            cpus=r.choice([0, 1.5, 3, 4]),
            memory_gb=r.choice([0, 2, 7]),
        )
        for k in range(7)
    ]
    faults = [
        (5.0, lambda run: run.host.crash(run.host.running()[0]) if run.host.running() else None),
        (9.0, lambda run: run.host.down.add("n0")),
        (17.0, lambda run: run.host.down.clear()),
    ]
    killed = sorted(r.uniform(0, 60) for _ in range(2))
    run = run_of(tmp_path / "run", jobs, policy=policy, share=0.9, faults=faults, kill_at_s=killed)
    told = check(run)
    if policy == PACKS:
        assert pairs_of(told)


@pytest.mark.parametrize("policy", ["hadar-committed"])
def test_policies_that_choose_nodes_themselves_take_none(tmp_path: Path, policy: str) -> None:
    rows = run_of(tmp_path / "run", [job("a")], policy=policy).execute().jobs()
    assert [row["state"] for row in rows] == ["finished"]
    with pytest.raises(InputError, match=f"expected none: {policy} chooses nodes by their GPUs"):
        run_of(tmp_path / "asks", [job("a", cpus=1)], policy=policy).execute()


def more_of(k: int) -> Any:
    def change(data: dict[str, Any]) -> None:
        (node,) = data["amounts"]
        data["amounts"][node][k] += 40_000

    return change


def less(data: dict[str, Any]) -> None:
    (node,) = data["amounts"]
    data["amounts"][node][0] -= 1


def elsewhere(data: dict[str, Any]) -> None:
    (node,) = data["amounts"]
    data["amounts"] = {"n1" if node == "n0" else "n0": data["amounts"][node]}


@pytest.mark.parametrize(
    "change", [more_of(0), more_of(1), less, elsewhere, lambda d: d.pop("amounts")]
)
def test_the_verifier_refuses_other_cpus_and_memory(tmp_path: Path, change: Any) -> None:
    run = run_of(tmp_path / "run", [job("a", cpus=5, memory_gb=3), job("b", cpus=2)])
    ledger = run.execute()
    told = list(ledger.events())
    nodes = ledger.value("nodes")
    ledger.close()
    verify_log(told, nodes, ended=True)
    change(next(e for e in told if e["kind"] == "granted" and e["job"] == "a")["data"])
    with pytest.raises(LogRejected, match="cpu_memory"):
        verify_log(told, nodes, ended=True)


def test_the_verifier_adds_leases_up(tmp_path: Path) -> None:
    """Each has little enough; together they hold more than the node has."""
    run = run_of(tmp_path / "run", [job(name, cpus=3, gpu_types=["A100"]) for name in "ab"])
    told = list(run.execute().events())
    nodes = [node.record() | {"cpus": 5.0} for node in NODES]
    with pytest.raises(LogRejected, match="6000 thousandths of a CPU of n0 are held, it has 5000"):
        verify_log(told, nodes)


def test_jobs_of_a_queue_ask_as_well(tmp_path: Path) -> None:
    """The second waits for the CPUs of the first; what no node has is refused when it is added."""
    plan = [(4.0, {"command": ["x"], **job(name, 60, cpus=6, gpu_types=["A100"])}) for name in "ab"]
    run = FakeQueue(tmp_path / "r", [], policy="srtf", nodes=NODES, plan=plan)
    host = run.host
    run.host = CountingHost(host.clock, host.nodes, host.jobs, host.state)
    run.host.on_poll = host.on_poll
    ledger = run.execute()
    assert {row["state"] for row in ledger.jobs()} == {"finished"}
    first, second = (e["time_s"] for e in events(ledger, "granted"))
    assert second >= events(ledger, "released")[0]["time_s"] > first
    verify_ledger(ledger.path)
    queue = run.queue()
    asks = {"jobs": [{"command": ["x"], **job("c", cpus=9)}]}
    with pytest.raises(InfeasibleJobError, match="asks for 9 CPUs"):
        queue.add(asks, "jobs", tmp_path)
    with ledger.transaction():
        ledger.set(NOT_COUNTED, "hadar chooses nodes by their GPUs alone")
    asks["jobs"][0]["cpus"] = 1
    with pytest.raises(InputError, match="expected none: hadar chooses nodes"):
        queue.add(asks, "jobs", tmp_path)
    queue.close()
    ledger.close()


# What becomes of them on hosts.


def spec(tmp_path: Path, text: str, uuid: str = "n0/cpu:0", **node: Any) -> LaunchSpec:
    (tmp_path / "jobs.yaml").write_text(f"jobs:\n  - {{name: a, iterations: 1, {text}}}\n")
    (given,) = load_job_file(tmp_path / "jobs.yaml").jobs
    device = Device("n0", 0, uuid)
    found = DiscoveredNode("n0", "cpu", (device,), **node)
    held = LeaseCpuMemory({"n0": (2500, 3000)})
    specs = LaunchSpecs(tmp_path, [found], Limits(), 60.0)
    return specs.build(given, 1, (device,), cpu_memory=held)[0]


def test_commands_are_told_what_they_hold(tmp_path: Path) -> None:
    env = spec(tmp_path, "command: [x], cpus: 2.5").env
    assert (env["SHADOWPRICE_CPUS"], env["SHADOWPRICE_MEMORY_GB"]) == ("2.5", "3.14573")
    assert env["OMP_NUM_THREADS"] == "2"
    assert spec(tmp_path, "command: [x]").env["OMP_NUM_THREADS"] == "1"


def test_containers_are_limited_to_what_was_asked_for(tmp_path: Path) -> None:
    image = "command: [x], container: {image: 'docker://a'}"
    argv = spec(tmp_path, f"{image}, cpus: 2.5, memory_gb: 3").argv
    assert argv[2:6] == ("--cpus", "2.5", "--memory", "3000M")
    assert not {"--cpus", "--memory"} & set(spec(tmp_path, image).argv)


def test_what_this_machine_gives_can_be_said(tmp_path: Path) -> None:
    (node,) = open_host("2,cpus=16,memory_gb=0.5", tmp_path, "run").discover()
    assert (len(node.devices), node.cpus, node.memory_gb) == (2, 16.0, 0.5)
    for address in ("2,cpus=0", "2,cpus=1,cpus=2", "cpus=1,2", "2,gpus=1", "2,", "2,cpus=x"):
        with pytest.raises(InputError, match="and cpus=N and memory_gb=N"):
            open_host(address, tmp_path, "run")


def test_nodes_of_a_release_that_knew_more_of_them_are_read() -> None:
    record = {**NODES[0].record(), "amounts_in_pairs": False}
    assert DiscoveredNode.from_record(record) == NODES[0]


def test_facts_of_whole_cpus_are_kept(tmp_path: Path) -> None:
    ledger = RunLedger.create(tmp_path / "run.db")
    node = replace(NODES[0], whole_cpus=True)
    ledger.set("nodes", [node.record()])
    assert ledger.nodes() == (node,)
    ledger.close()


def test_events_say_what_a_job_asks_for(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [job("a", cpus=2, memory_gb=1), job("b")])
    ledger = run.execute()
    assert [e["data"] for e in events(ledger, "arrived")] == [{"cpus": 2.0, "memory_gb": 1.0}, {}]
    ledger.close()
