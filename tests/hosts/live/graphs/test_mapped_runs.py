"""Job graphs in real runs: ranks follow the mapping, whoever fails, and the log is checked."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.analysis.run_options import RunOptions
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError
from shadowprice.hosts.live.measured_run import measured_run, write_measured
from shadowprice.hosts.log.execution_log import LogRejected, verify_log
from shadowprice.hosts.reports.results import replay
from shadowprice.solvers.policy import Decision, State
from support.command_line import CommandLine
from support.fake_host import two_nodes
from support.fake_run import FakeRun, events
from support.in_memory_runs import check
from support.mapped_runs import NETWORK, NODES, Shuffles, graph, mapped, run_of

pytestmark = pytest.mark.usefixtures("no_power_cuts")


@pytest.mark.parametrize(
    ("policy", "seed"),
    [
        ("shuffles", 0),
        ("asrpt-early", 0),
        *(
            pytest.param(name, seed, marks=pytest.mark.slow)
            for name in ("shuffles", "asrpt", "srtf")
            for seed in range(1, 6)
        ),
    ],
)
def test_ranks_follow_the_mapping(tmp_path: Path, policy: str, seed: int) -> None:
    """With crashes, lost nodes and drivers that are killed, also between a decision and its leases."""
    r = random.Random(seed)
    jobs = [
        mapped(
            f"j{k}",
            r.randint(20, 150),
            graph=graph(r.randint(1, 3), r.randint(1, 3)) if k else graph(3, 2),  # on two nodes
            arrival_s=float(r.choice([0, 3, 20])),
        )
        for k in range(4)
    ]

    def crash(run: FakeRun) -> None:
        if running := run.host.running():
            run.host.crash(r.choice(running))

    faults: list[tuple[float, Callable[[FakeRun], Any]]] = [
        (5.0, crash),
        (9.0, lambda run: run.host.down.add("n0")),
        (17.0, lambda run: run.host.down.clear()),
    ]
    killed = sorted(r.uniform(0, 40) for _ in range(2))
    chosen = Shuffles(seed) if policy == "shuffles" else policy
    run = run_of(tmp_path / "run", jobs, policy=chosen, faults=faults, kill_at_s=killed)
    run.kill_at_write = [r.randint(2, 30), -r.randint(31, 60)]
    told = check(run)
    granted = [e["data"] for e in told if e["kind"] == "granted"]
    assert any(data["ranks"] == 2 for data in granted)
    assert all(len(data["replicas"]) == len(data["devices"]) for data in granted)


class PlacesAnew:
    """Stops the one job once, and starts it on the GPUs it had: with the same replicas, or others."""

    name, knows, preemptive = "places-anew", frozenset(), True

    def __init__(self, first: Any, second: Any) -> None:
        self.mappings = [first, second]

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        if state.waiting:
            decision.start_mapped(0, self.mappings[0])
        elif state.running and state.now_s == 8.0:
            decision.stop(0)
            decision.start_mapped(0, self.mappings[1])
        if state.now_s < 8.0:
            decision.wake_at(8.0)
        return decision


@pytest.mark.parametrize(
    ("second", "leases"),
    [(((0, (1, 1)), (1, (1, 0))), 1), (((0, (2, 0)), (1, (0, 1))), 2)],
)
def test_a_lease_goes_on_where_its_replicas_stay(tmp_path: Path, second: Any, leases: int) -> None:
    """On the very same GPUs: only who gets other replicas there is started again."""
    policy = PlacesAnew(((0, (1, 1)), (1, (1, 0))), second)
    told = check(run_of(tmp_path / "run", [mapped("a", 200)], policy=policy))
    granted = [e["data"]["replicas"] for e in told if e["kind"] == "granted"]
    assert len(granted) == leases
    assert granted[0] == [["n0/0", "encoder", 0], ["n0/1", "decoder", 0], ["n1/0", "encoder", 1]]
    assert granted[-1] == [
        ["n0/0", "encoder", 0],
        ["n0/1", *(("decoder", 0) if leases == 1 else ("encoder", 1))],
        ["n1/0", *(("encoder", 1) if leases == 1 else ("decoder", 0))],
    ]


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (((0, (1, 1)), (7, (1, 0))), "expected different nodes of 0 to 1"),
        (((0, (1, 1)),), "replicas"),
    ],
)
def test_a_mapping_that_is_none_ends_the_run(tmp_path: Path, mapping: Any, said: str) -> None:
    run = run_of(tmp_path / "run", [mapped("a")], policy=PlacesAnew(mapping, mapping))
    with pytest.raises(PolicyError, match=f"wrong mapping: .*{said}"):
        run.execute()
    assert run.host.starts == []


def test_a_policy_that_chooses_gpus_has_stages_in_order(tmp_path: Path) -> None:
    told = check(run_of(tmp_path / "run", [mapped("a", graph=graph(3, 2))], policy="fifo"))
    (granted,) = [e["data"] for e in told if e["kind"] == "granted"]
    assert [stage for _, stage, _ in granted["replicas"]] == ["encoder"] * 3 + ["decoder"] * 2


# What the verifier finds.


def other_order(data: dict[str, Any]) -> None:
    data["replicas"][0], data["replicas"][1] = data["replicas"][1], data["replicas"][0]


def other_replica(data: dict[str, Any]) -> None:
    first, last = data["replicas"][0], data["replicas"][-1]
    first[1:], last[1:] = last[1:], first[1:]


def two_of_one(data: dict[str, Any]) -> None:
    data["replicas"][1] = [data["replicas"][1][0], *data["replicas"][0][1:]]


def numbered_otherwise(data: dict[str, Any]) -> None:
    data["replicas"][0][2] += 1


def faster(data: dict[str, Any]) -> None:
    data["iteration_s"] *= 1 - 2**-52


def none(data: dict[str, Any]) -> None:
    del data["replicas"]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Any, Any]:
    run = run_of(tmp_path_factory.mktemp("log") / "run", [mapped("a", graph=graph(3, 2))])
    ledger = run.execute()
    found = list(ledger.events()), ledger.value("nodes"), ledger.value("graphs")
    ledger.close()
    return found


@pytest.mark.parametrize(
    "change", [other_order, other_replica, two_of_one, numbered_otherwise, faster, none]
)
def test_the_verifier_refuses_other_replicas(logged: Any, change: Any) -> None:
    import copy

    told, nodes, graphs = copy.deepcopy(logged)
    verify_log(told, nodes, graphs=graphs, ended=True)
    change(next(e for e in told if e["kind"] == "granted")["data"])
    with pytest.raises(LogRejected, match=r"mapping|form"):
        verify_log(told, nodes, graphs=graphs, ended=True)


def test_the_verifier_compares_with_what_was_decided(logged: Any) -> None:
    import copy

    told, nodes, graphs = copy.deepcopy(logged)
    decided = next(e for e in told if e["data"].get("mappings"))["data"]["mappings"]
    rows = decided["a"]
    (node, first), (other, second) = rows
    decided["a"] = [[node, second], [other, first]]
    with pytest.raises(LogRejected, match=r"mapping: replicas of a are .*, but were placed"):
        verify_log(told, nodes, graphs=graphs)
    del decided["a"]
    with pytest.raises(LogRejected, match=r"mapping: the replicas of \['a'\] are placed nowhere"):
        verify_log(told, nodes, graphs=graphs)


def test_the_verifier_wants_no_replicas_without_a_graph(logged: Any) -> None:
    told, nodes, _ = logged
    with pytest.raises(LogRejected, match="mapping: a has no graph, but replicas"):
        verify_log(told, nodes)


# What is measured.


def test_graphs_are_as_slow_as_measured(tmp_path: Path) -> None:
    """The graph says some 0.13 s an iteration; it takes 0.2, of which the second job profits."""
    jobs = [mapped(name, 100, true_rate=5.0, arrival_s=at) for name, at in (("a", 0), ("b", 30))]
    run = run_of(tmp_path / "run", jobs)
    ledger = run.execute()
    rates = [row["predicted_rate"] for row in ledger.jobs()]
    (said_s,) = {e["data"]["iteration_s"] for e in events(ledger, "granted")}
    assert rates[0] == pytest.approx(1 / said_s)
    assert rates[1] == pytest.approx(5.0, rel=0.03)
    found = measured_run(ledger)
    ledger.close()
    assert found.mapped is not None
    assert found.mapped.factors == pytest.approx({"a": 0.2 / said_s, "b": 0.2 / said_s}, rel=0.01)
    drift = replay(found)
    assert drift.remarks == ()
    assert drift.relative_error == pytest.approx(0.0, abs=0.1)
    elsewhere = replace(found.mapped, placed={**found.mapped.placed, "a": [(0, (9, 9))]})
    sentence = "replicas are first on other nodes together than in the real run: a"
    assert replay(replace(found, mapped=elsewhere)).table().splitlines()[-1] == sentence


def test_the_command_that_is_printed_simulates_what_the_drift_does(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = [mapped("a", 100, true_rate=5.0), mapped("b", 60, true_rate=8.0, graph=graph(1, 3))]
    ledger = run_of(tmp_path / "run", jobs).execute()
    found = measured_run(ledger)
    ledger.close()
    state = tmp_path / "run 1, of=2:3"
    words = shlex.split(write_measured(found, state))[1:]
    line = CommandLine(capfd)
    done = line(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["avg_jct_s"] == replay(found).simulated_mean_s
    assert found.mapped is not None
    with pytest.raises(InputError, match="graphs are given, expected a network as well"):
        RunOptions(graphs=found.mapped.graphs).job_graphs(found.workload)
    (state / "graphs.json").write_text('{"graphs": [], "jobs": {}}')
    assert "has no graph of job 'a'" in line(*words).stderr.replace("\n", " ")


def test_a_job_without_a_graph_is_as_fast_anywhere(tmp_path: Path) -> None:
    plain = {"name": "b", "iterations": 50, "gpus": 4, "throughput": 5.0, "true_rate": 5.0}
    told = check(run_of(tmp_path / "run", [mapped("a"), plain]))
    granted = {e["job"]: e["data"] for e in told if e["kind"] == "granted"}
    assert granted["b"]["ranks"] == 2
    assert granted["b"]["iteration_s"] == 0.2


# What does not go together.


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"more": {}}, "jobs have graphs and there is no network"),
        ({"share": 0.5}, "expected no --share"),
        ({"nodes": two_nodes()}, "GPU types A100, V100, expected one"),
    ],
)
def test_what_does_not_go_with_graphs_is_refused(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    run = run_of(tmp_path / "run", [mapped("a")], **more)
    with pytest.raises(InputError, match=said):
        run.execute()
    assert run.host.starts == []


def test_cpus_and_memory_do_not_go_with_graphs(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="expected none: replicas of job graphs are placed by GPUs"
    ):
        run_of(tmp_path / "run", [mapped("a", cpus=2)]).execute()


def test_a_gang_that_no_nodes_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleJobError):
        run_of(tmp_path / "run", [mapped("a", graph=graph(4, 3))]).execute()


def test_a_network_without_graphs_is_refused(tmp_path: Path) -> None:
    jobs = [{"name": "a", "iterations": 5, "throughput": 5.0}]
    with pytest.raises(InputError, match="has a network, expected none"):
        FakeRun(tmp_path / "run", jobs, nodes=NODES, more={"network": NETWORK}).execute()
