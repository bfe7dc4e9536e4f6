"""Jobs with graphs run as fast as where their replicas are; what does not add up is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import INSTANCE, SCHEDULE, load, save
from shadowprice.errors import InputError, PolicyError, ShadowpriceError, VerificationError
from shadowprice.execution.engine import EngineRun, run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.graphs import workload_graphs as instance_graphs
from shadowprice.instances.graphs.iteration_time import Network, iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, in_order
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs import graph_time
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.registry import placements, policies, policy
from support.job_graph_runs import COSTLY, Chance, graph_instances

# Those that choose GPUs only; the others place graphs themselves.
POLICIES = {name: each for name, each in policies().items() if not hasattr(each, "placement")}
# Their utility is in iterations, not in seconds.
COUNT_ITERATIONS = {"hadar", "hadar-committed", "oasis"}
NETWORK = Network(intra_bytes_per_s=16.0, nic_bytes_per_s=4.0, gpus_per_node=2)
# One iteration takes 1 + 2 * 8 / 16 = 2 s on one node and 1 + 2 * 8 / (4 / 2) = 9 s on two.
PAIR = JobGraph("pair", (Stage("a", 1, 0.25, 0.75), Stage("b", 1, 0.5, 0.5)), (Link(0, 1, 8.0),))
# On two nodes 5.5 s if each has a replica of both stages, 9 s if each has one stage.
SQUARE = JobGraph("square", (Stage("a", 2, 0.5, 0.5), Stage("b", 2, 0.5, 0.5)), (Link(0, 1, 8.0),))
TOGETHER, APART = ((0, (1, 1)),), ((0, (1, 0)), (1, (0, 1)))


def one_graph(
    graph: JobGraph, cluster: str = "2x2", work: float = 10.0, jobs: int = 1, **given: Any
) -> Instance:
    """Equal jobs that arrive a second apart."""
    workload = Workload.from_columns(
        arrival_s=np.arange(float(jobs)), gpus=[graph.gpus] * jobs, work=[work] * jobs
    )
    graphs = JobGraphs((graph,), np.zeros(jobs, dtype=np.int64), NETWORK)
    return Instance(Cluster.parse(cluster), workload, graphs=graphs, **given)


@dataclass(frozen=True)
class Planned:
    """Stops what runs and starts jobs under mappings at given times, then waits for the end."""

    plan: dict[float, dict[int, StageMapping]]
    name: str = "planned"
    knows: frozenset[Knowledge] = field(default=frozenset({Knowledge.DURATION}))
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job, mapping in self.plan.get(state.now_s, {}).items():
            if job in state.running:
                decision.stop(job)
            assert decision.start_mapped(job, mapping)
        later = [time_s for time_s in self.plan if time_s > state.now_s]
        if later:
            decision.wake_at(min(later))
        return decision


def planned(instance: Instance, plan: dict[float, dict[int, StageMapping]]) -> EngineRun:
    return run(instance, Planned(plan))


# Hand-computed


@pytest.mark.parametrize(("mapping", "end_s"), [(TOGETHER, 20.0), (APART, 90.0)])
def test_a_run_takes_as_long_as_its_mapping_says(mapping: StageMapping, end_s: float) -> None:
    instance = one_graph(PAIR)
    schedule = planned(instance, {0.0: {0: mapping}}).schedule
    verify(instance, schedule)
    assert set(schedule.end_s) == {end_s}
    assert schedule.stages is not None
    assert schedule.stages.tolist() == [stages for _, stages in mapping]
    assert instance.shortest_s.tolist() == [20.0]


def test_iterations_done_are_kept_when_a_job_resumes_elsewhere() -> None:
    # 3.5 of 10 iterations in 7 s, 2 of them in 18 s on two nodes, the last 4.5 in 9 s.
    instance = one_graph(PAIR)
    plan = {0.0: {0: TOGETHER}, 7.0: {0: APART}, 25.0: {0: ((1, (1, 1)),)}}
    schedule = planned(instance, plan).schedule
    verify(instance, schedule)
    assert schedule.end_s[schedule.runs].tolist() == [
        7.0,
        25.0,
        pytest.approx(34.0, abs=3 * TICK_S),
    ]
    assert schedule.node.tolist() == [0, 0, 1, 1]


def test_moving_to_other_nodes_is_charged_and_paid_first() -> None:
    instance = one_graph(PAIR, overheads=COSTLY)
    schedule = planned(instance, {0.0: {0: TOGETHER}, 9.0: {0: ((1, (1, 1)),)}}).schedule
    verify(instance, schedule)
    assert schedule.overhead_s.tolist() == [1.0, 8.0]
    # 4 iterations in the 8 s after the first charge, 6 in the last 12 s.
    assert schedule.end_s.tolist() == [9.0, 9.0 + 8.0 + 12.0]


def test_the_same_gpus_with_other_replicas_are_another_speed() -> None:
    instance = one_graph(SQUARE)
    graphs = instance.graphs
    assert graphs is not None
    mixed, sorted_out = ((0, (1, 1)), (1, (1, 1))), ((0, (2, 0)), (1, (0, 2)))
    alphas = [iteration_s(SQUARE, mapping, NETWORK) for mapping in (mixed, sorted_out)]
    assert alphas[0] < alphas[1]
    for mapping, alpha in zip((mixed, sorted_out), alphas, strict=True):
        schedule = planned(instance, {0.0: {0: mapping}}).schedule
        verify(instance, schedule)
        assert set(schedule.end_s) == {10.0 * alpha}


def test_what_is_left_is_known_at_the_shortest_iteration() -> None:
    seen: list[tuple[float, ...]] = []

    @dataclass(frozen=True)
    class Watching(Planned):
        def decide(self, state: State) -> Decision:
            live = state.columns([0] if state.running or state.waiting else [])
            if len(live):
                columns = (
                    live.remaining_s,
                    live.processing_s,
                    live.remaining_work,
                    live.attained_s,
                )
                seen.append((state.now_s, *(float(column[0]) for column in columns)))
                assert live.throughput.item() == pytest.approx(0.5)
            return super().decide(state)

    run(one_graph(PAIR), Watching({0.0: {0: APART}, 45.0: {0: TOGETHER}, 47.0: {0: APART}}))
    expected = [
        (0.0, 20.0, 20.0, 10.0, 0.0),
        (45.0, 10.0, 20.0, 5.0, 45.0),
        (47.0, 8.0, 20.0, 4.0, 47.0),
    ]
    assert seen == [pytest.approx(row, abs=1e-9) for row in expected]


def test_stages_are_in_order_for_who_chooses_gpus_only() -> None:
    graph = JobGraph("three", tuple(Stage(name, 2, 1.0, 1.0) for name in "abc"))
    assert in_order(graph, ((7, 3), (2, 1), (4, 2))) == (
        (7, (2, 1, 0)),
        (2, (0, 1, 0)),
        (4, (0, 0, 2)),
    )
    instance = one_graph(PAIR, cluster="2x1")
    graphs = replace(instance.graphs, network=Network(16.0, 4.0, 2))  # type: ignore[type-var]
    outcome = run(replace(instance, graphs=graphs), policy("fifo"))
    assert outcome.schedule.stages is not None
    assert sorted(outcome.schedule.stages.tolist()) == [(0, 1), (1, 0)]
    assert set(outcome.schedule.end_s) == {90.0}


# Laws


@given(instance=graph_instances(), seed=st.integers(0, 2**32))
def test_random_mappings_do_exactly_their_work(instance: Instance, seed: int) -> None:
    schedule = run(instance, Chance(seed)).schedule
    verify(instance, schedule)
    assert schedule.stages is not None
    graphs, jobs = instance.graphs, instance.workload
    assert graphs is not None
    done = np.zeros(len(jobs))
    runs = np.zeros(len(jobs), dtype=int)
    for row in schedule.runs:
        job = int(schedule.job[row])
        of_run = (schedule.job == job) & (schedule.start_s == schedule.start_s[row])
        mapping = tuple(zip(schedule.node[of_run].tolist(), schedule.stages[of_run], strict=True))
        alpha = iteration_s(graphs.graph[graphs.of[job]], mapping, graphs.network)
        low, high = (
            each[graphs.of[job]]
            for each in (graphs.shortest_iteration_s, graphs.longest_iteration_s)
        )
        assert low <= alpha <= high
        ran = schedule.end_s[row] - schedule.start_s[row] - schedule.overhead_s[row]
        done[job] += ran / max(alpha, TICK_S)
        runs[job] += 1
        if ran == np.ceil(jobs.work[job] * alpha / TICK_S) * TICK_S:
            done[job] = jobs.work[job]
    alpha_min = np.maximum(graphs.shortest_iteration_s[graphs.of], TICK_S)
    assert np.all(
        np.abs(done - jobs.work) <= 2 * TICK_S * (runs + 1) / alpha_min + 1e-9 * jobs.work
    )


@given(
    instance=graph_instances(),
    name=st.sampled_from(sorted(POLICIES)),
    placement=st.sampled_from(sorted(placements())),
)
def test_every_policy_runs_jobs_with_graphs(instance: Instance, name: str, placement: str) -> None:
    schedule = run(instance, POLICIES[name], placement=placements()[placement]).schedule
    verify(instance, schedule)


@given(instance=graph_instances(), seed=st.integers(0, 2**32))
def test_no_schedule_costs_less_than_the_bounds(instance: Instance, seed: int) -> None:
    schedule = run(instance, Chance(seed, stops=0)).schedule
    end_s = np.zeros(len(instance.workload))
    np.maximum.at(end_s, schedule.job, schedule.end_s)
    for bound in simple_bounds(instance, Objective.COMPLETION):
        assert bound.value_s <= end_s.sum()


@given(
    data=st.data(),
    name=st.sampled_from(sorted(POLICIES)),
    placement=st.sampled_from(sorted(placements())),
    overheads=st.sampled_from([Overheads(), COSTLY]),
)
def test_data_parallel_jobs_without_parameters_are_plain_gangs(
    data: st.DataObject, name: str, placement: str, overheads: Overheads
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    n = data.draw(st.integers(1, 6))
    gpus = data.draw(st.lists(st.integers(1, sum(sizes)), min_size=n, max_size=n))
    # Powers of two have exact rates.
    half_s = data.draw(st.lists(st.sampled_from([0.125, 0.25, 0.5]), min_size=n, max_size=n))
    graphs = tuple(
        JobGraph(str(k), (Stage("all", k, half, half),))
        for k, half in zip(gpus, half_s, strict=True)
    )
    alpha = 2.0 * np.array(half_s)
    iterations = np.array(data.draw(st.lists(st.integers(1, 40), min_size=n, max_size=n)))
    arrival = sorted(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)))
    cluster = Cluster(tuple(Node(size) for size in sizes))
    mapped = JobGraphs(graphs, np.arange(n), Network(1e9, 1e8, max(sizes)))
    columns: dict[str, Any] = {"arrival_s": arrival, "gpus": gpus}
    with_graphs = Instance(
        cluster, Workload.from_columns(**columns, work=iterations), overheads, graphs=mapped
    )
    columns |= {"work": iterations, "throughput": 1.0 / alpha[:, None], "gpu_types": ["gpu"]}
    plain = Instance(cluster, Workload.from_columns(**columns), overheads)
    chosen: Policy = POLICIES[name]
    place = placements()[placement]
    first, second_run = (run(each, chosen, placement=place) for each in (plain, with_graphs))
    mine = second_run.schedule.to_frame().drop(columns="stages")
    pd.testing.assert_frame_equal(first.schedule.to_frame(), mine)
    assert first.decisions == second_run.decisions
    if name not in COUNT_ITERATIONS:
        in_seconds = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=iterations * alpha)
        third = run(Instance(cluster, in_seconds, overheads), chosen, placement=place)
        pd.testing.assert_frame_equal(third.schedule.to_frame(), mine)


# Schedules that are refused


def changed(schedule: Schedule, **columns: Any) -> Schedule:
    return replace(schedule, **columns)


def with_stages(*stages: object) -> Callable[[Schedule], Schedule]:
    column = np.empty(len(stages), dtype=object)
    for row, cell in enumerate(stages):
        column[row] = cell
    return lambda schedule: changed(schedule, stages=column.copy())


def one_row_less(schedule: Schedule) -> Schedule:
    return Schedule.from_frame(schedule.to_frame().iloc[:-1])


def on_one_node(schedule: Schedule) -> Schedule:
    frame = schedule.to_frame().iloc[:1].assign(gpus=4)
    frame["stages"] = [(2, 2)]
    return Schedule.from_frame(frame)


def ends_later_by(ticks: int) -> Callable[[Schedule], Schedule]:
    return lambda schedule: changed(schedule, end_s=schedule.end_s + ticks * TICK_S)


def fewer_gpus(schedule: Schedule) -> Schedule:
    return with_stages((1, 1), (1, 0))(changed(schedule, gpus=np.array([2, 1])))


@pytest.mark.parametrize(
    ("change", "rule", "says"),
    [
        (with_stages((2, 0), (1, 1)), "stages", "3 replicas of stage 'a', its job's graph has 2"),
        (with_stages((1, 2), (1, 1)), "stages", "has 3 replicas on 2 GPUs"),
        (with_stages((1, 0), (1, 1)), "stages", "has 1 replicas on 2 GPUs"),
        (with_stages((1, 1, 0), (1, 1, 0)), "stages", "has 3 stages, its job's graph has 2"),
        (with_stages((2,), (2,)), "stages", "has 1 stages, its job's graph has 2"),
        (with_stages((3, -1), (1, 1)), "stages", "expected a tuple of whole numbers"),
        (with_stages((1.5, 0.5), (1, 1)), "stages", "expected a tuple of whole numbers"),
        (with_stages(([1], 1), (1, 1)), "stages", "expected a tuple of whole numbers"),
        (with_stages((10**30, 1), (1, 1)), "stages", "expected a tuple of whole numbers"),
        (with_stages("ab", (1, 1)), "stages", "expected a tuple of whole numbers"),
        (with_stages(b"\x01\x01", (1, 1)), "stages", "expected a tuple of whole numbers"),
        (lambda schedule: changed(schedule, stages=None), "stages", "no column stages"),
        (fewer_gpus, "gang", "holds 3 GPUs, its gang is 4"),
        (one_row_less, "gang", "holds 2 GPUs, its gang is 4"),
        (on_one_node, "stages", "4 replicas on one node, expected at most 2"),
        # The mapping of the other speed, in the time of this one, and a tick more or less.
        (with_stages((2, 0), (0, 2)), "work", "its work takes 90.0 s"),
        (ends_later_by(1), "work", "its work takes 55.0 s"),
        (ends_later_by(-1), "work", "its work takes 55.0 s"),
    ],
)
def test_a_schedule_that_does_not_add_up_is_refused(
    change: Callable[[Schedule], Schedule], rule: str, says: str
) -> None:
    # Half of the traffic stays on a node: 1 + 2 * 4 / 16 + 2 * 4 / 2 = 5.5 s an iteration.
    instance = one_graph(SQUARE)
    schedule = planned(instance, {0.0: {0: ((0, (1, 1)), (1, (1, 1)))}}).schedule
    verify(instance, schedule)
    with pytest.raises(Violation, match=says) as caught:
        verify(instance, change(schedule))
    assert caught.value.rule == rule


def test_a_resumed_job_may_not_be_faster_than_its_mapping() -> None:
    instance = one_graph(PAIR)
    schedule = planned(instance, {0.0: {0: TOGETHER}, 7.0: {0: ((1, (1, 1)),)}}).schedule
    verify(instance, schedule)
    for ticks in (-5, 5):
        late = schedule.end_s.copy()
        late[-1] += ticks * TICK_S
        with pytest.raises(Violation) as caught:
            verify(instance, changed(schedule, end_s=late))
        assert caught.value.rule == "work"


def test_gpus_held_twice_are_refused() -> None:
    instance = one_graph(PAIR, jobs=2, cluster="2x2")
    schedule = planned(instance, {0.0: {0: TOGETHER}, 1.0: {1: ((1, (1, 1)),)}}).schedule
    verify(instance, schedule)
    with pytest.raises(Violation) as caught:
        verify(instance, changed(schedule, node=np.zeros(2, dtype=np.int64)))
    assert caught.value.rule == "capacity"


def test_stages_without_graphs_are_refused() -> None:
    workload = Workload.from_columns(arrival_s=[0.0], gpus=[2], work=[10.0])
    instance = Instance(Cluster.parse("1x2"), workload)
    schedule = run(instance, policy("fifo")).schedule
    with pytest.raises(Violation, match="its jobs have no graphs") as caught:
        verify(instance, with_stages((2,))(schedule))
    assert caught.value.rule == "stages"


# Decisions and instances that are refused


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        (((0, (1, 0)), (0, (0, 1))), "different nodes"),
        (((0, (1, 0)), (2, (0, 1))), "different nodes of 0 to 1"),
        (((-1, (1, 1)),), "different nodes of 0 to 1"),
        (((0, (1, 1)), (1, (0, 0))), "at least one replica each"),
        (((0, (1, 0)),), "places 0 replicas of stage 'b', expected 1"),
        (((0, (2, 0)),), "places 2 replicas of stage 'a', expected 1"),
        (((0, (1,)),), "expected pairs of a node and 2 numbers"),
        (((0, (1.0, 1.0)),), "expected pairs of a node and 2 numbers"),
        ((("0", (1, 1)),), "wrong mapping"),
        (((0, 1, 1),), "wrong mapping"),
        (None, "wrong mapping"),
    ],
)
def test_a_wrong_mapping_is_the_policys_error(mapping: StageMapping, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        planned(one_graph(PAIR), {0.0: {0: mapping}})


def test_gpus_that_are_not_free_are_not_given() -> None:
    answers: list[bool] = []

    @dataclass(frozen=True)
    class Greedy(Planned):
        def decide(self, state: State) -> Decision:
            decision = Decision(state)
            for job in state.waiting:
                before = state.free_gpus_by_node()
                answers.append(decision.start_mapped(job, TOGETHER))
                taken = [2, 0] if answers[-1] else [0, 0]
                after = state.free_gpus_by_node()
                assert [b - a for b, a in zip(before, after, strict=True)] == taken
            return decision

    run(one_graph(PAIR, jobs=2), Greedy({}))
    assert answers == [True, False, True]


def test_a_mapping_needs_graphs() -> None:
    workload = Workload.from_columns(arrival_s=[0.0], gpus=[2], work=[10.0])
    with pytest.raises(PolicyError, match="the instance has none"):
        planned(Instance(Cluster.parse("1x2"), workload), {0.0: {0: TOGETHER}})


def rated(instance: Instance) -> Instance:
    jobs = instance.workload
    rates = np.ones((len(jobs), 1))
    return replace(instance, workload=replace(jobs, throughput=rates, gpu_types=("gpu",)))


def with_graphs(**given: Any) -> Callable[[Instance], Instance]:
    def change(instance: Instance) -> Instance:
        assert instance.graphs is not None
        return replace(instance, graphs=replace(instance.graphs, **given))

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (rated, "has throughputs of jobs and job graphs"),
        (
            lambda instance: replace(
                instance, sharing_rates=Throughputs(("a",), {("m", 2): (30.0,)})
            ),
            "'m' on 2 GPUs has rate 30.0 alone on 'a', expected 1",
        ),
        (with_graphs(of=np.array([1])), "has graph 1, expected 0 to 0"),
        (with_graphs(of=np.array([0.5])), "expected one integer a job"),
        (with_graphs(of=np.array([[0]])), r"of has shape \(1, 1\)"),
        (with_graphs(of=np.array([0, 0])), "of 2 jobs, expected 1"),
        (with_graphs(graph=(SQUARE,)), "gang is 2, its graph has 4 replicas|gang is 4"),
        (with_graphs(network=Network(16.0, 4.0, 1)), "a node has 2 GPUs"),
        (with_graphs(network=Network(1.0, 1e-9, 2)), "times go to 2"),
    ],
)
def test_an_instance_that_does_not_add_up_is_refused(
    change: Callable[[Instance], Instance], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        change(one_graph(PAIR))


def test_dropping_jobs_drops_their_graphs() -> None:
    workload = Workload.from_columns(arrival_s=[0, 1, 2], gpus=[4, 2, 2], work=[5, 10, 20])
    graphs = JobGraphs((PAIR, SQUARE), np.array([1, 0, 0]), NETWORK)
    cluster = Cluster.parse("2x2")
    instance = Instance(cluster, workload, graphs=graphs).select(workload.gpus < 4)
    assert instance.graphs is not None
    assert instance.graphs.of.tolist() == [0, 0]
    assert instance.shortest_s.tolist() == [20.0, 40.0]
    assert not instance.equal_speeds


# Run directories


def outcome_of(instance: Instance) -> Outcome:
    result = run(instance, Chance(7))
    return Outcome.verified(instance, result.schedule, policy="chance")


@given(instance=graph_instances())
def test_saved_runs_are_the_same_when_loaded(
    tmp_path_factory: pytest.TempPathFactory, instance: Instance
) -> None:
    outcome = outcome_of(instance)
    directory = tmp_path_factory.mktemp("run")
    save(outcome, directory)
    again = load(directory)
    pd.testing.assert_frame_equal(again.schedule.to_frame(), outcome.schedule.to_frame())
    mine, other = instance.graphs, again.instance.graphs
    assert mine is not None
    assert other is not None
    assert (mine.graph, mine.network) == (other.graph, other.network)
    assert mine.of.tolist() == other.of.tolist()


def test_a_run_without_graphs_replaces_one_with_them(tmp_path: Path) -> None:
    save(outcome_of(one_graph(PAIR)), tmp_path)
    assert "graphs" in json.loads((tmp_path / INSTANCE).read_text())
    workload = Workload.from_columns(arrival_s=[0.0], gpus=[2], work=[10.0])
    instance = Instance(Cluster.parse("1x2"), workload)
    save(Outcome(instance, run(instance, policy("fifo")).schedule, "fifo"), tmp_path)
    assert "graphs" not in json.loads((tmp_path / INSTANCE).read_text())
    assert load(tmp_path).instance.graphs is None


def test_whole_amounts_beyond_what_floats_hold_come_back(tmp_path: Path) -> None:
    amount = 2**60 + 1
    graph = replace(PAIR, stages=tuple(replace(s, parameter_bytes=amount) for s in PAIR.stages))
    save(outcome_of(one_graph(graph)), tmp_path)
    found = load(tmp_path).instance.graphs
    assert found is not None
    assert [stage.parameter_bytes for stage in found.graph[0].stages] == [amount] * len(
        graph.stages
    )


def rewrite(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda described: described.__setitem__(key, value)


def slower(described: dict[str, Any]) -> None:
    described["graphs"][0]["stages"][0]["forward_s"] += 0.5


def renamed(described: dict[str, Any]) -> None:
    described["graphs"][0]["name"] = "other"


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (slower, VerificationError, "work: job '0' runs for"),
        (renamed, VerificationError, "is not what was saved"),
        (rewrite("of", [3]), InputError, "job 0 has graph 3"),
        (rewrite("of", [True]), InputError, r"of\[0\] is True, expected an integer"),
        (rewrite("of", [2**80]), InputError, r"of\[0\] is \d+, expected an integer of 64 bits"),
        (rewrite("of", 3), InputError, "of is 3, expected a list of numbers"),
        (rewrite("graphs", {}), InputError, "graphs is {}, expected a list"),
        (rewrite("graphs", []), InputError, "expected 0 to -1"),
        (
            rewrite("graphs", [[]]),
            InputError,
            r"graphs\[0\]: is \[\], expected a mapping with name",
        ),
        (
            rewrite("graphs", [{"name": "x", "stages": [{}], "links": []}]),
            InputError,
            r"graphs\[0\] \('x'\): stages\[0\]: has no name",
        ),
        (rewrite("network", {}), InputError, "network: has no intra_bytes_per_s"),
        (rewrite("network", 1), InputError, "network: is 1, expected a mapping with intra"),
    ],
)
def test_changed_graphs_are_refused(
    tmp_path: Path,
    change: Callable[[dict[str, Any]], None],
    error: type[ShadowpriceError],
    says: str,
) -> None:
    save(outcome_of(one_graph(PAIR)), tmp_path)
    described = json.loads((tmp_path / INSTANCE).read_text())
    change(described["graphs"])
    (tmp_path / INSTANCE).write_text(json.dumps(described))
    with pytest.raises(error, match=says):
        load(tmp_path)


def test_graphs_that_are_missing_or_hidden_are_noticed(tmp_path: Path) -> None:
    save(outcome_of(one_graph(PAIR)), tmp_path)
    described = json.loads((tmp_path / INSTANCE).read_text())
    del described["graphs"]
    (tmp_path / INSTANCE).write_text(json.dumps(described))
    with pytest.raises(VerificationError, match="its jobs have no graphs"):
        load(tmp_path)
    (tmp_path / INSTANCE).unlink()
    with pytest.raises(InputError, match=INSTANCE):
        load(tmp_path)


@pytest.mark.parametrize("cell", [[1.5, 0.5], ["a", "b"], None])
def test_cells_of_stages_that_are_no_numbers_are_refused(tmp_path: Path, cell: object) -> None:
    save(outcome_of(one_graph(PAIR)), tmp_path)
    frame = pd.read_parquet(tmp_path / SCHEDULE)
    frame["stages"] = [cell] * len(frame)
    frame.to_parquet(tmp_path / SCHEDULE)
    with pytest.raises(InputError, match="column 'stages'"):
        load(tmp_path)


def test_the_engine_and_the_verifier_know_a_shape_after_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    for module in (instance_graphs, graph_time):
        own = module.iteration_s

        def counted(graph: JobGraph, *where: Any, own: Any = own) -> float:
            calls.append(graph.name)
            return own(graph, *where)

        monkeypatch.setattr(module, "iteration_s", counted)
    # Other nodes and another order of them are the same shape.
    mirrored = ((0, (0, 1)), (1, (1, 0)))
    plan = {100.0 * job: {job: (APART, mirrored, APART[::-1])[job % 3]} for job in range(30)}
    schedule = planned(one_graph(PAIR, jobs=30), plan).schedule
    assert calls == ["pair"]
    verify(one_graph(PAIR, jobs=30), schedule)
    assert 2 <= len(calls) <= 3
