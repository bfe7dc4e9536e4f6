"""Certificates by prices of nodes, pairs, amounts and types: two programs alike, and none above the optimum."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.modes import (
    certificate_modes,
    interval_bounds,
    steady_bounds,
    type_modes,
)
from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.graphs.iteration_time import iteration_s
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, canonical, check, digest
from shadowprice.solvers.registry import policy
from support.certificate_text import MALFORMED
from support.graph_strategies import mappings
from support.job_graph_runs import graph_instances
from support.mode_bounds import never_above
from support.mode_instances import HUNGRY, grown_or_profiled, placed, sharing, small_graphs
from support.slotted_placements import least_placed_costs
from support.typed_jobs import typed_instances

EFFORT = [3, pytest.param(60, marks=pytest.mark.slow)]


def read(instance, *, pairs=False, consolidated=False):
    """The instance as the checker has it, and what every schedule has to do."""
    found = checker.instance.CertificateInstance()
    header = records.header(instance, "some", "completion")
    if consolidated:
        header["placement"] = "consolidated"
    for record in [header, *records.instance_records(instance, pairs=pairs)]:
        kind = record.pop("kind")
        checker.instance.TAKE[kind](found, json.loads(json.dumps(record)))
    return found, found.relaxed()


def of_case(data):
    """An instance, its modes, and the least costs of its schedules."""
    which = data.draw(st.sampled_from(["nodes", "graphs", "pairs", "amounts"]))
    few = False
    if which == "nodes":
        instance, few = data.draw(placed(2))
    else:
        drawn = {"graphs": small_graphs(), "pairs": sharing(2), "amounts": grown_or_profiled(2)}
        instance = data.draw(drawn[which])
    pairs = which == "pairs"
    every = certificate_modes(
        instance, CheckedClass.of(instance, pairs=pairs), pairs=pairs, consolidated=few
    )
    modes = [each for each in every if each.consolidated == few]
    return instance, modes, pairs, few


def built(found, modes):
    given_instance, jobs = found
    build = {kind: builder for kind, builder, _ in checker.mode_bounds.SUBJECTS}
    build[""] = checker.modes.type_modes
    return build[modes.subject](given_instance, jobs, {"rows": [], **modes.fields})


def alike(jobs, modes):
    """The same times, kinds, uses and resources."""
    assert [list(row) for row in jobs.time] == modes.jobs.time.tolist()
    assert [Fraction(each) for each in modes.jobs.capacity.tolist()] == jobs.capacity
    for mine, theirs in zip(jobs.kind, modes.jobs.kind.tolist(), strict=True):
        for m, uses in enumerate(jobs.use[mine]):
            row = [0] * len(jobs.capacity)
            for q, amount in uses:
                row[q] += amount
            # Of points that a kind does not have, nothing is said.
            if any(times[m] for times, k in zip(jobs.time, jobs.kind, strict=True) if k == mine):
                assert row == modes.jobs.use[theirs, m].tolist()


@pytest.mark.parametrize("examples", EFFORT)
def test_no_modes_bound_more_than_the_least_cost(examples):
    """Whatever prices are, by whichever program; and both have the same modes."""

    @settings(max_examples=3 * examples, deadline=None)
    @given(data=st.data())
    def holds(data):
        instance, found, pairs, few = of_case(data)
        least = least_placed_costs(instance, 8, consolidated=few) if found else None
        for modes in found:
            mine = read(instance, pairs=pairs, consolidated=few)
            jobs = built(mine, modes)
            alike(jobs, modes)
            never_above(modes.jobs, least, data)
            priced(data, mine[1], jobs, least)

    holds()


def test_jobs_that_may_not_grow_after_all_have_no_modes_of_amounts():
    """The checker knows of widths only where a job has more than its gang."""
    jobs = Workload.from_columns(arrival_s=[0.0, 0.0], gpus=[2, 2], work=[1.0, 1.0])
    for widest, grows in ((2, False), (3, True)):
        widths = Elasticity(np.array([widest, 2]), np.array([0.6, 0.6]))
        instance = Instance(Cluster.parse("1x4"), jobs, elasticity=widths)
        found = list(
            certificate_modes(
                instance, CheckedClass.of(instance, pairs=False), pairs=False, consolidated=False
            )
        )
        assert any(modes.subject == "amounts" for modes in found) == grows
        for modes in found:
            alike(built(read(instance), modes), modes)


def priced(data, work, jobs, least):
    """The checker's bounds at drawn prices."""
    resources, n = len(jobs.capacity), len(jobs.kind)
    whole = st.lists(st.integers(1, 9), min_size=resources, max_size=resources)
    prices = data.draw(whole)
    own = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    total, last = (Fraction(each) * TICKS_PER_S for each in (least.total_s, least.last_s))
    assert checker.mode_bounds.busy_of_modes(work, jobs, {"prices": prices}) <= total
    if checker.costs.alike(work.weight):
        assert checker.mode_bounds.fluid_of_modes(work, jobs, {"prices": prices}) <= total
    assert checker.mode_bounds.span_of_modes(work, jobs, {"prices": [prices, own]}) <= last
    grid = [min(work.arrival) + k * TICKS_PER_S for k in range(5)]
    rows = [[each * 2**18 for each in data.draw(whole)] for _ in grid[1:]]
    value = st.integers(0, 8 * TICKS_PER_S)
    values = data.draw(st.lists(value, min_size=n, max_size=n))
    bound = {"grid": grid, "prices": rows, "values": values}
    assert checker.mode_bounds.interval_of_modes(work, jobs, bound) <= total


@settings(max_examples=4, deadline=None)
@given(typed_instances(max_jobs=3))
def test_two_programs_value_prices_alike(instance):
    modes = type_modes(instance, CheckedClass.of(instance, pairs=False))
    if modes is None:
        return
    found, work = read(instance)
    jobs = built((found, work), modes)
    alike(jobs, modes)
    tried = [*steady_bounds(modes, Objective.COMPLETION), *steady_bounds(modes, Objective.MAKESPAN)]
    tried += interval_bounds(modes, BoundEffort(0.05).begin())
    assert len(tried) > 1
    for each in tried:
        found.header["objective"] = "makespan" if each.kind == "priced-span" else "completion"
        bound = json.loads(json.dumps({k: v for k, v in each.record.items() if k != "kind"}))
        value = checker.bounds.bound_of(found, work, bound, None)
        assert each.ticks <= value + Fraction(1, 2**1000)
        if (
            each.kind != "priced-span"
        ):  # Its own value knows that no job ends before it could alone.
            # The other program rounds rents down to 2^-20 for each tick of the grid.
            ticks = sum(np.diff(bound["grid"]).tolist()) / 2**20
            assert value < each.ticks + (2 + int(ticks)) * len(jobs.kind) + sum(work.weight)


@settings(max_examples=8, deadline=None)
@given(graph_instances(), st.data())
def test_no_mapping_on_several_nodes_is_faster(instance, data):
    found, _ = read(instance)
    graphs = instance.graphs
    for mine, graph in zip(found.graphs, graphs.graph, strict=True):
        mapping = data.draw(mappings(graph, graphs.network.gpus_per_node))
        if len(mapping) > 1:
            assert float(mine.spread() * mine.factor) <= iteration_s(graph, mapping, graphs.network)


# Certificates.


def signed(every):
    lines = [canonical(record) for record in every[:-1]]
    claim = {**every[-1]}
    claim.pop("file", None)
    claim["file"] = digest([*lines, canonical(claim)])
    return "\n".join([*lines, canonical(claim), ""])


def gangs(gpus, **more):
    n = len(gpus)
    columns = {"arrival_s": [0] * n, "work": [60] * n, **more}
    return sp.Workload.from_columns(gpus=gpus, **columns)


def outcome_of(instance):
    return Outcome.verified(instance, run(instance, policy("srtf")).schedule, policy="srtf")


def consolidated_run():
    return sp.simulate(gangs([5, 5, 5, 5]), "2x8", "srtf", sp.RunOptions(placement="consolidate"))


def slower_when_spread():
    locality = Locality(np.full(4, 0.1))
    return outcome_of(Instance(Cluster.parse("2x8"), gangs([5, 5, 5, 5]), locality=locality))


def consolidated_queue():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 10, 20, 30, 40, 50, 60, 70, 75],
        gpus=[5, 5, 5, 5, 2, 8, 5, 6, 12],
        work=[60, 20, 30, 10, 100, 40, 30, 30, 5],
    )
    return sp.simulate(jobs, "2x8", "srtf", sp.RunOptions(placement="consolidate"))


def profiled():
    """Four jobs that need both CPUs of their share, of which there are enough for two of them."""
    sensitivity = Sensitivity((HUNGRY,), np.zeros(4, dtype=int))
    cluster = Cluster((Node(4, cpus=4.0, memory_gb=20.0),))
    return outcome_of(Instance(cluster, gangs([1] * 4), sensitivity=sensitivity))


def shared():
    """Two jobs that gain by sharing a GPU do so, others do not gain."""
    table = {
        ("v100", (one, 1), (other, 1)): rates
        for one, other, rates in (
            ("a", "a", (1.0, 1.0)),
            ("b", "b", (0.5, 0.5)),
            ("a", "b", (0.5, 0.5)),
        )
    }
    jobs = gangs([1] * 4, model=list("aabb"), throughput=[[1.0]] * 4, gpu_types=("v100",))
    throughputs = Throughputs(("v100",), {}, table)
    instance = Instance(Cluster.parse("1x1:v100"), jobs, sharing_rates=throughputs)
    start, end = np.array([0.0, 0.0, 60.0, 120.0]), np.array([60.0, 60.0, 120.0, 180.0])
    ones, none = np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    partner = np.array([1, 0, -1, -1])
    schedule = Schedule(np.arange(4), none, ones, start, end, np.zeros(4), partner=partner)
    return Outcome.verified(instance, schedule, policy="some")


CASES = {
    "consolidated": (consolidated_run, "makespan", "priced-span-of-nodes"),
    "consolidated, flow": (consolidated_queue, "flow", "interval-lp-of-nodes"),
    "spread": (slower_when_spread, "makespan", "priced-span-of-nodes"),
    "profiles": (profiled, "makespan", "priced-span-of-amounts"),
    "pairs": (shared, "makespan", "priced-span-of-pairs"),
    "pairs, completion": (shared, "completion", "priced-mean-busy-time-of-pairs"),
}


@pytest.fixture(scope="module")
def certified():
    with pytest.MonkeyPatch.context() as patch:
        # Windows of completions, which are best of few jobs, know no nodes.
        patch.setattr(
            "shadowprice.analysis.certificates.cascade.window_bounds",
            lambda instance, jobs, effort_s: iter(()),
        )
        # Prices that stay as they are take no part of the budget.
        budget = dict.fromkeys((kind for _, _, kind in CASES.values()), 0.01)
        budget["interval-lp-of-nodes"] = 4.0
        made = {name: (of(), goal, kind) for name, (of, goal, kind) in CASES.items()}
        return {
            name: (certify(outcome, goal, budget_s=budget[kind]), kind)
            for name, (outcome, goal, kind) in made.items()
        }


@pytest.mark.parametrize("name", CASES)
def test_they_say_more_than_one_pool_of_gpus(certified, name):
    found, kind = certified[name]
    assert found.bound_kind == kind
    pool = ("job", "fluid", "mean-busy-time", "area", "wide-gangs")
    said = {each.kind: each.ticks for each in found.history.bounds}
    assert said[kind] > max(said[each] for each in pool if each in said)
    assert check(found.text)["class"] == found.of_class
    assert found.of_class.endswith("on as few nodes as gangs fit on") == ("consolid" in name)


def test_four_gangs_of_five_are_optimal_on_two_nodes(certified):
    assert certified["consolidated"][0].ratio < Fraction(100_001, 100_000)


FORGED = [
    ("consolidated", {"rows": [[0, 8, [2**20 + 1], 0]]}, "a node is used twice"),
    ("consolidated", {"rows": [[0, 7, [1], 0]]}, "a row is of no nodes"),
    ("consolidated", {"rows": [[0, 8, [1, 1], 0]]}, "a row is not of gangs"),
    ("consolidated", {"rows": [[0, 8, [2**19], 2**18]]}, "a node is used twice"),
    ("consolidated", {"prices": [[0, 0], [0] * 4]}, "no prices of|no prices for"),
    ("consolidated", {"prices": [[1], [0] * 4]}, "no prices for"),
    ("consolidated", {"bound": "priced-span-of-pairs"}, "no two jobs may share"),
    ("consolidated", {"bound": "priced-span"}, "has fields rows"),
    ("consolidated", {"grid": [0]}, "takes no prices over time"),
    ("consolidated", {"values": [0]}, "has fields rows, values"),
    ("consolidated, flow", {"values": [0]}, "no values of all jobs"),
    ("consolidated, flow", {"grid": [1, 2]}, "does not increase|begins too late"),
    ("consolidated, flow", {"bound": "priced-span-of-nodes"}, "has fields rows, values"),
    ("consolidated", {"bound": "priced-fluid-of-nodes"}, "no bound of that"),
    ("profiles", {"bound": "priced-span-of-nodes"}, "has fields"),
    ("profiles", {"bound": "priced-span-of-pairs", "rows": []}, "no two jobs may share"),
    ("pairs", {"rows": [[0, [2**20, 2**20]]]}, "do more together than a GPU has"),
    ("pairs", {"rows": [[0, [2**20 + 1, 0]]]}, "a part is more than all"),
    ("pairs", {"rows": [[1, [0, 0]]]}, "of no GPU type"),
    ("pairs", {"rows": [[0, [0]]]}, "a sort has no part"),
    ("pairs", {"bound": "priced-span-of-nodes"}, "nodes: jobs share GPUs"),
]


@pytest.mark.parametrize(("name", "change", "says"), FORGED)
def test_a_forged_bound_is_refused(certified, name, change, says):
    every = [json.loads(line) for line in certified[name][0].text.splitlines()]
    with pytest.raises(Rejected, match=says):
        check(signed([*every[:-2], {**every[-2], **change}, every[-1]]))


def test_prices_begin_with_the_first_arrival_and_work_is_worth_its_end_at_most(certified):
    every = [json.loads(line) for line in certified["consolidated, flow"][0].text.splitlines()]
    bound = every[-2]
    late = {**bound, "grid": [1, *bound["grid"][1:]]}
    with pytest.raises(Rejected, match="the grid begins too late"):
        check(signed([*every[:-2], late, every[-1]]))
    short = {"grid": bound["grid"][:2], "prices": bound["prices"][:1]}
    dear = {**bound, **short, "values": [2**60] * len(bound["values"])}
    with pytest.raises(Rejected, match="the bound is"):
        check(signed([*every[:-2], dear, every[-1]]))


def test_a_gang_across_nodes_of_several_sizes_uses_none_of_them():
    jobs = gangs([5, 5, 3, 12])
    outcome = sp.simulate(jobs, "1x8,1x4", "srtf", sp.RunOptions(placement="consolidate"))
    every = [
        json.loads(line) for line in certify(outcome, "makespan", budget_s=0.5).text.splitlines()
    ]
    wrong = {"bound": "priced-span-of-nodes", "prices": [[1, 1], [0] * 4], "grid": []}
    every[-2] = {"kind": "bound", **wrong, "rows": [[0, 8, [1, 1], 1]]}
    with pytest.raises(Rejected, match="nodes of a type are of several sizes"):
        check(signed(every))


def others(value):
    """The value with one number in it changed."""
    if isinstance(value, list):
        for k, each in enumerate(value):
            for other in others(each):
                yield [*value[:k], other, *value[k + 1 :]]
    elif isinstance(value, int):
        yield from (value + 1, max(value - 1, 0), 2 * value)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_no_change_of_a_bound_proves_more_than_the_least_cost(data):
    instance, found, pairs, few = of_case(data)
    if not found:
        return
    least = least_placed_costs(instance, 8, consolidated=few)
    mine, work = read(instance, pairs=pairs, consolidated=few)
    for modes in found:
        for goal, cost in (
            (Objective.COMPLETION, least.total_s),
            (Objective.MAKESPAN, least.last_s),
        ):
            mine.header["objective"] = str(goal)
            for each in (
                *steady_bounds(modes, goal),
                *interval_bounds(modes, BoundEffort(0.02).begin()),
            ):
                record = {key: v for key, v in each.record.items() if key != "kind"}
                bound = json.loads(json.dumps(record))
                field = data.draw(st.sampled_from([key for key in bound if key != "bound"]))
                changed = [{**bound, field: other} for other in others(bound[field])]
                for other in [bound, *changed[:30]]:
                    try:
                        value = checker.bounds.bound_of(mine, work, other, None)
                    except (Rejected, *MALFORMED):
                        continue
                    assert value <= Fraction(cost) * TICKS_PER_S


def test_a_consolidated_class_is_of_consolidated_runs():
    jobs = gangs([5, 5, 5, 5])
    spread = sp.simulate(jobs, "2x8", "srtf", sp.RunOptions(placement="count"))
    every = [json.loads(line) for line in certify(spread, "flow", budget_s=0.0).text.splitlines()]
    every[0]["placement"] = "consolidated"
    with pytest.raises(Rejected, match="is on 2 nodes, which are more than need be"):
        check(signed(every))
    every[0]["placement"] = "some"
    with pytest.raises(Rejected, match="placement is 'some', not consolidated"):
        check(signed(every))


def test_a_bound_of_a_smaller_class_is_none_of_a_larger(certified):
    """Without the word, a gang may be across nodes, and the class is another."""
    every = [json.loads(line) for line in certified["consolidated"][0].text.splitlines()]
    del every[0]["placement"]
    with pytest.raises(Rejected, match="the bound is"):
        check(signed(every))
    every[-1]["bound"], every[-1]["ratio"] = 60 * TICKS_PER_S, 2
    with pytest.raises(Rejected, match="the class is"):
        check(signed(every))
