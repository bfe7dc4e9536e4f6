"""Bounds that know nodes: below every schedule of their class, and exact where nodes alone decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import bounds_of, strongest_bound
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.compare import compare
from shadowprice.analysis.run_options import RunOptions
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.iteration_time import (
    iteration_s,
    shortest_iteration_s,
    shortest_spread_iteration_s,
)
from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.workload import Workload
from shadowprice.solvers.offline.modes.nodes import dual_feasible, most_weight, node_modes
from support.graph_strategies import job_graphs, mappings, networks
from support.mode_bounds import never_above
from support.mode_instances import placed, small_graphs
from support.slotted_placements import least_placed_costs


def gangs(*gpus: int, work: float = 10.0, **more: object) -> Workload:
    n = len(gpus)
    columns = {"arrival_s": [0.0] * n, "work": [work] * n, **more}
    return Workload.from_columns(gpus=list(gpus), **columns)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_never_above_exhaustive_search(data: st.DataObject) -> None:
    _compare_with_exhaustive_search(data, data.draw(st.integers(1, 2)))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_three_jobs_never_above_exhaustive_search(data: st.DataObject) -> None:
    _compare_with_exhaustive_search(data, 3)


def _compare_with_exhaustive_search(data: st.DataObject, n: int) -> None:
    """Consolidated schedules, or all where spread gangs are slower; with charges of starts or without."""
    instance, consolidated = data.draw(placed(n))
    start = data.draw(st.integers(0, 1)) if n < 3 else 0
    least = least_placed_costs(instance, 7, start_slots=start, consolidated=consolidated)
    modes = node_modes(instance, consolidated=consolidated)
    if modes is not None:
        never_above(modes, least, data)


def test_gangs_of_more_than_half_a_node_take_a_node_each() -> None:
    """Four gangs of 5 on two nodes of 8: two at a time within nodes, three of them across."""
    instance = Instance(Cluster.parse("2x8"), gangs(5, 5, 5, 5))
    for goal, few, anywhere in (
        (Objective.MAKESPAN, 20, Fraction(25, 2)),
        (Objective.COMPLETION, 60, None),
    ):
        found = strongest_bound(
            instance, objective=goal, preemptive=True, budget_s=0, consolidated=True
        )
        assert found.value_s == pytest.approx(few, rel=1e-5)
        assert found.value_s <= few
        assert found.holds_for.consolidated
        plain = strongest_bound(instance, objective=goal, preemptive=True, budget_s=0)
        assert not plain.holds_for.consolidated
        assert plain.value_s < found.value_s
        assert anywhere is None or plain.ticks <= anywhere * 2**20


def test_configurations_of_nodes_find_what_thresholds_do_not() -> None:
    """Of gangs of 4 and 3 a node of 10 holds 4 + 3 + 3 or 4 + 4: 3s are 3/11, not 3/10, beside many 4s."""
    jobs = gangs(*[4] * 20, *[3] * 10)
    instance = Instance(Cluster.parse("1x10"), jobs)
    found = strongest_bound(
        instance, objective=Objective.MAKESPAN, preemptive=True, budget_s=0, consolidated=True
    )
    # 5 configurations of 4 + 3 + 3 and 15 fours by twos: 125 s; GPUs alone say 110.
    assert found.value_s == pytest.approx(125, rel=1e-4)
    assert found.value_s <= 125


@given(gpus=st.integers(2, 24), steps=st.integers(1, 9))
def test_dual_feasible_functions_weigh_no_node_more_than_one(gpus: int, steps: int) -> None:
    weights = dual_feasible(steps, gpus)
    most, chosen = most_weight(weights, gpus)
    assert most <= steps * (steps + 1)
    assert sum(size * count for size, count in chosen.items()) <= gpus
    assert sum(weights[size] * count for size, count in chosen.items()) == most


@given(data=st.data(), network=networks())
def test_no_mapping_on_several_nodes_is_faster(data: st.DataObject, network: Network) -> None:
    graph = data.draw(job_graphs(max_stages=4, max_gpus=6))
    least = shortest_spread_iteration_s(graph, network)
    assert least >= shortest_iteration_s(graph, network)
    mapping = data.draw(mappings(graph, network.gpus_per_node))
    if len(mapping) > 1:
        assert least <= iteration_s(graph, mapping, network)


def test_job_graphs_cannot_all_have_the_best_mapping() -> None:
    """Three rings of 5 replicas on two nodes of 8: within a node 1 s an iteration, across 9 s or so."""
    ring = JobGraph("ring", (Stage("s", 5, 0.5, 0.5, 1e9),), ())
    network = Network(1e15, 2e8, 8)
    jobs = gangs(5, 5, 5, work=10)
    instance = Instance(
        Cluster.parse("2x8"), jobs, graphs=JobGraphs((ring,), np.zeros(3, dtype=int), network)
    )
    assert shortest_spread_iteration_s(ring, network) == pytest.approx(9, rel=1e-9)
    found = {
        bound.kind: bound.value_s
        for bound in bounds_of(instance, Objective.MAKESPAN, BoundEffort(0))
    }
    # Two nodes at full speed, a third across both at a ninth at most, and its GPUs count as well.
    assert 13 < found["priced-span-of-nodes"] <= 15.0001
    assert found["area"] == pytest.approx(10, rel=1e-4)


def test_a_gang_in_between_takes_what_is_left_of_two_nodes() -> None:
    """Three gangs of 2 on two nodes of 3, by turns: two within nodes and one across, at half its speed, in 12 s.

    The third is slower since spread gangs are, or because its ring takes a second more across nodes.
    """
    jobs, cluster = gangs(2, 2, 2), Cluster.parse("2x3")
    slower = Locality(np.full(3, 0.5))
    ring = JobGraph("ring", (Stage("s", 2, 0.5, 0.5, 1e9),), ())
    network = Network(1e18, 1e9, 3)
    graphs = JobGraphs((ring,), np.zeros(3, dtype=int), network)
    for instance in (
        Instance(cluster, jobs, locality=slower),
        Instance(cluster, jobs, graphs=graphs),
    ):
        found = strongest_bound(instance, objective=Objective.MAKESPAN, preemptive=True, budget_s=0)
        assert found.kind == "priced-span-of-nodes"
        assert found.value_s == pytest.approx(12, rel=1e-5)
        # A ring within a node takes a billionth of a second, which is rounded up to a tick.
        assert found.value_s <= 12 + 2 / 2**20


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_graphs_never_above_exhaustive_search(data: st.DataObject) -> None:
    instance = data.draw(small_graphs())
    least = least_placed_costs(instance, 9, start_slots=data.draw(st.integers(0, 1)))
    modes = node_modes(instance, consolidated=False)
    if modes is not None:
        never_above(modes, least, data)


def test_nodes_say_nothing_where_gangs_are_of_one_gpu_or_placement_is_free() -> None:
    single, wide = gangs(1, 1), gangs(2, 2)
    assert node_modes(Instance(Cluster.parse("2x2"), single), consolidated=True) is None
    assert node_modes(Instance(Cluster.parse("2x2"), wide), consolidated=False) is None
    assert node_modes(Instance(Cluster.parse("4x1"), wide), consolidated=True) is None


def test_a_class_without_schedules_has_no_bound() -> None:
    """A gang of 4 that runs on nodes of 2 alone, where others have 4, is never consolidated."""
    jobs = gangs(4, throughput=[[1.0, 0.0]], gpu_types=("small", "large"))
    instance = Instance(Cluster.parse("2x2:small,1x4:large"), jobs)
    assert node_modes(instance, consolidated=True) is None


def test_compare_names_the_class_of_consolidated_schedules() -> None:
    """A comparison of consolidated schedules says so; one in which a gang is spread does not."""
    jobs, cluster = gangs(5, 5, 5, 5), Cluster.parse("2x8")
    for placement, words, ratio in (
        ("consolidate", "preemptive schedules on as few nodes as gangs fit on", 1.0),
        ("count", "preemptive schedules", None),
    ):
        row = compare(
            jobs, cluster, ["srtf"], "makespan", RunOptions(placement=placement), budget_s=0
        ).rows[0]
        assert str(row.holds_for) == words
        assert row.holds_for.to_dict()["placement"] == (
            "consolidated" if row.holds_for.consolidated else "any"
        )
        assert words in row.sentence()
        assert ratio is None or row.ratio == pytest.approx(ratio, rel=1e-5)
