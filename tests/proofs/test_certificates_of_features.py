"""Certificates of instances beyond plain gangs: what is written proves its claim, and no change of it does."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.start_order import blocks_by_start
from shadowprice.analysis.certify import certify, certify_into
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.errors import VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.graphs.job_graph import Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.proofs import checker, graph_time, run_speed
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.checker import Rejected, canonical, check, digest
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.modes.types import gang_uses
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    busy_price_ticks,
    fluid_price_ticks,
    span_ticks,
)
from shadowprice.solvers.registry import policy
from support.certificate_cases import CASES
from support.certificate_text import changes, signed
from support.conditioned_jobs import CLUSTER, PROFILE
from support.graph_strategies import chain, mappings
from support.job_graph_runs import graph_instances
from support.schedule_segments import Cut, by_end, rows_of
from support.uneven_work import Fickle, uneven

EFFORT = [4, pytest.param(150, marks=pytest.mark.slow)]


def certified(instance, schedule, goal, budget_s=0.0):
    return certify(Outcome.verified(instance, schedule, policy="some"), goal, budget_s=budget_s)


@pytest.mark.parametrize("examples", EFFORT)
@pytest.mark.parametrize("of", CASES)
def test_what_is_written_proves_its_claim(of, examples):
    cases, words = CASES[of]

    @settings(max_examples=examples, deadline=None)
    @given(cases, st.sampled_from(list(Objective)))
    def proves(case, goal):
        instance, schedule = case
        assume(instance.stopped_s is None or goal is not Objective.MAKESPAN)
        outcome = Outcome.verified(instance, schedule, policy="some")
        found = certify(outcome, goal, budget_s=0.0)
        claim = check(found.text)
        cost = Fraction(claim["cost"]) / TICKS_PER_S
        jobs, end_s = instance.workload, outcome.end_s
        if instance.until_complete is not None:
            some = np.arange(len(jobs))[instance.until_complete.rows]
            jobs, end_s = jobs.select(some), end_s[some]
        if instance.stopped_s is not None:
            came = jobs.arrival_s < instance.stopped_s
            jobs, end_s = jobs.select(came), np.minimum(end_s, instance.stopped_s)[came]
        assert float(cost) == pytest.approx(goal.cost_s(jobs, end_s))
        assert claim["class"] == found.of_class
        assert words in found.of_class
        assert found.of_class in found.sentence()

    proves()


# What is changed.


def same_run(schedule, row):
    """Rows of a run: of copies each by itself."""
    if schedule.copy is not None:
        return np.array([row])
    same = (schedule.job == schedule.job[row]) & (schedule.start_s == schedule.start_s[row])
    return np.flatnonzero(same)


def column_changed(draw, instance, schedule, rows):
    """One column of a run, changed; the run's times in all of its rows."""
    names = ["start_s", "end_s", "overhead_s", "node", "gpus", "job", "partner"]
    names += [n for n in ("copy", "steps") if getattr(schedule, n) is not None]
    # A file has no number of a GPU of jobs that hold whole ones.
    in_part = instance.workload.fractional[schedule.job[rows[0]]]
    names += ["shared_gpu"] * bool(in_part)
    names += ["stages"] * (schedule.stages is not None) + ["cpus"] * (schedule.cpus is not None)
    name = draw(st.sampled_from(names))
    values = getattr(schedule, name).copy()
    some = rows if name.endswith("_s") or name in ("job", "partner") else rows[:1]
    if name.endswith("_s"):
        values[some] += draw(st.sampled_from([-1.0, -(2.0**-20), 2.0**-20, 1.0]))
    elif name == "cpus":
        values[some] *= 0.5
    elif name == "stages":
        values[some[0]] = tuple(draw(st.permutations(values[some[0]])))
    else:
        limits = {"node": len(instance.cluster.nodes), "gpus": 5, "shared_gpu": 2, "copy": 3}
        limits |= {"job": len(instance.workload), "partner": len(instance.workload), "steps": 2**40}
        low = {"gpus": 1, "partner": -1, "shared_gpu": -1}.get(name, 0)
        near = st.integers(-1, 1).map(lambda each: int(values[some[0]]) + each)
        value = draw(near | st.integers(low, limits[name] - 1))
        values[some] = min(max(value, low), limits[name] - 1)
    return replace(schedule, **{name: values})


def altered(draw, instance, schedule):
    """The schedule with a run lost, a column of a run changed, or two runs one after the other."""
    rows = same_run(schedule, draw(st.integers(0, len(schedule) - 1)))
    way = draw(st.sampled_from(["change", "change", "change", "lose", "change two"]))
    if way == "lose":
        mask = np.ones(len(schedule), dtype=bool)
        mask[rows] = False
        return rows_of(schedule, np.flatnonzero(mask))
    found = column_changed(draw, instance, schedule, rows)
    if way == "change two":
        other = same_run(found, draw(st.integers(0, len(found) - 1)))
        found = column_changed(draw, instance, found, other)
    return found


def claimed(instance, schedule, bound, pairs):
    """A certificate of a schedule, whatever it is, with a bound that holds."""
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)
    if instance.stopped_s is not None:
        with suppress(VerificationError):
            ends[~verify(instance, schedule)] = instance.stopped_s
    weight = [Fraction(w) for w in instance.workload.weight.tolist()]
    rows = measured_rows(instance).tolist()
    cost = sum((weight[j] * to_ticks(ends).tolist()[j] for j in rows), Fraction())
    given_lines = [canonical(record) for record in records.instance_records(instance, pairs=pairs)]
    lines = [canonical(records.header(instance, "some", "completion")), *given_lines]
    lines += [canonical(record) for record in records.runs(instance, schedule)]
    lines += [canonical({"kind": "bound", **bound["bound"]})]
    ratio = max(cost / Fraction(bound["least"]), Fraction(1))
    claim = {"kind": "claim", "class": bound["class"], "cost": records.text_of(cost)}
    claim |= {"bound": bound["least"], "ratio": records.text_of(ratio)}
    claim |= {"instance": digest(given_lines)}
    claim["file"] = digest([*lines, canonical(claim)])
    return "\n".join([*lines, canonical(claim), ""])


def accepts(judge, *arguments):
    try:
        judge(*arguments)
    except (VerificationError, Rejected):
        return False
    return True


@pytest.mark.parametrize("examples", [6, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of", CASES)
def test_the_checker_and_the_verifier_agree_on_every_change_of_a_schedule(of, examples):
    answers = set()

    @settings(max_examples=examples, deadline=None)
    @given(CASES[of][0], st.data())
    def agree(case, data):
        instance, schedule = case
        assume(len(schedule))
        original = [
            json.loads(x) for x in certified(instance, schedule, "completion").text.split("\n")[:-1]
        ]
        claim = original[-1]
        bound = {name: value for name, value in original[-2].items() if name != "kind"}
        bound = {"bound": bound, "least": claim["bound"], "class": claim["class"]}
        pairs = ScheduleClass.allowed(instance, preemptive=True).sharing
        assert accepts(check, claimed(instance, schedule, bound, pairs))
        other = altered(data.draw, instance, schedule)
        mine = accepts(verify, instance, other)
        assert accepts(check, claimed(instance, other, bound, pairs)) == mine
        answers.add(mine)

    agree()
    assert False in answers


@pytest.mark.parametrize("of", CASES)
def test_a_change_of_what_was_given_is_found(of):
    """Of every field of every record before the runs: refused, or told to be of another instance."""

    @settings(max_examples=2, deadline=None, derandomize=True)
    @given(CASES[of][0], st.data())
    def found(case, data):
        instance, schedule = case
        text = certified(instance, schedule, "completion").text
        every = [json.loads(line) for line in text.split("\n")[:-1]]
        about = check(text)["instance"]
        other_kinds = ("header", "run", "bound", "claim")
        places = [
            (k, field)
            for k, record in enumerate(every)
            for field in sorted(record.keys() - {"kind", "id"})
            if record["kind"] not in other_kinds
        ]
        for k, field in data.draw(st.lists(st.sampled_from(places), min_size=10, max_size=20)):
            others = [each for each in changes(every[k][field]) if each != every[k][field]]
            value = data.draw(st.sampled_from(others))
            other = signed([*every[:k], {**every[k], field: value}, *every[k + 1 :]])
            try:
                assert check(other)["instance"] != about
            except Rejected as error:
                assert "\n" not in str(error)  # noqa: PT017
        claim = every[-1]
        for least in (Fraction(claim["cost"]) + 1, 2 * Fraction(claim["cost"])):
            raised = {**claim, "bound": records.text_of(least), "ratio": 10**9}
            assert not accepts(check, signed([*every[:-1], raised]))

    found()


# Bounds that are attained: a tick more would be refuted here.


def one_job(cluster, **more):
    jobs = sp.Workload.from_columns(arrival_s=[3], gpus=[2], work=[7.3], weight=[1.5])
    return Instance(cluster, jobs, **more)


GRAPH = chain(
    "chain", (Stage("a", 1, 0.5, 1.0, 8.0), Stage("b", 1, 1.0, 0.25)), [4.0], microbatches=2
)
NETWORK = Network(4.0, 2.0, 2, "per-job")
ALONE = {
    "widths and spreading": one_job(
        Cluster.parse("2x4"),
        locality=Locality(np.array([0.4])),
        elasticity=Elasticity(np.array([4]), np.array([0.8])),
    ),
    "CPUs and memory": one_job(
        CLUSTER, sensitivity=Sensitivity((PROFILE,), np.zeros(1, dtype=np.int64))
    ),
    "a graph": one_job(
        Cluster.parse("2x2"), graphs=JobGraphs((GRAPH,), np.zeros(1, dtype=np.int64), NETWORK)
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_job_by_itself_attains_the_bound(name):
    """On the best of nodes, with the most GPUs, CPUs and memory that help."""
    instance = ALONE[name]
    ticks = CheckedClass.of(instance, pairs=False).work.shortest[0]
    node, width = {"widths and spreading": (4, 4)}.get(name, (2, 2))
    assert node >= width
    columns = {"job": [0], "node": [0], "gpus": [width]}
    times = {"start_s": [3.0], "end_s": [3.0 + ticks / TICKS_PER_S], "overhead_s": [0.0]}
    more = {}
    if name == "CPUs and memory":
        more = {"cpus": np.array([12.0]), "memory_gb": np.array([20.0])}
    if name == "a graph":
        more = {"stages": np.empty(1, dtype=object)}
        more["stages"][0] = (1, 1)
    rows = {n: np.array(c) for n, c in {**columns, **times}.items()}
    schedule = Schedule(**rows, **more)
    for goal in Objective:
        claim = check(certified(instance, schedule, goal).text)
        # Of odd run times the bound from prices of 0 loses half a tick.
        assert Fraction(claim["cost"]) - Fraction(claim["bound"]) <= Fraction(3, 4)


def test_two_jobs_that_share_from_begin_to_end_attain_the_bound():
    kind = ("m", 2)
    table = Throughputs(("gpu",), {}, {("gpu", kind, kind): (0.75, 0.75)})
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[2, 2],
        work=[6, 6],
        model=["m", "m"],
        throughput=[[1.0], [1.0]],
        gpu_types=("gpu",),
    )
    instance = Instance(Cluster.parse("1x2"), jobs, sharing_rates=table)
    schedule = Schedule(
        *(np.array(c) for c in ([0, 1], [0, 0], [2, 2], [0.0, 0.0], [8.0, 8.0], [0.0, 0.0])),
        partner=np.array([1, 0]),
    )
    found = certified(instance, schedule, "makespan")
    assert (found.bound_kind, found.ratio) == ("area", 1)
    assert "at most two jobs share a GPU" in found.of_class


@pytest.mark.parametrize(("cpus", "fits"), [(4.0, True), (3.0, False)])
def test_each_of_two_that_share_holds_cpus_of_its_own(cpus, fits):
    """At half rate, with two CPUs a piece, work of 4 s takes 8 s; the node has four, or three."""
    kind = ("", 1)
    table = Throughputs(("gpu",), {}, {("gpu", kind, kind): (0.5, 0.5)})
    by_cpus = Profile(np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.5], [1.0]]))
    profiles = Sensitivity((by_cpus,), np.zeros(2, dtype=np.int64))
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=4)
    plenty = Instance(
        Cluster((Node(1, cpus=4.0, memory_gb=2.0),)),
        jobs,
        sharing_rates=table,
        sensitivity=profiles,
    )
    instance = replace(plenty, cluster=Cluster((Node(1, cpus=cpus, memory_gb=2.0),)))
    schedule = Schedule(
        *(np.array(c) for c in ([0, 1], [0, 0], [1, 1], [0.0, 0.0], [8.0, 8.0], [0.0, 0.0])),
        partner=np.array([1, 0]),
        cpus=np.full(2, 2.0),
        memory_gb=np.ones(2),
    )
    claim = check(certified(plenty, schedule, "completion").text)
    bound = {"bound": "mean-busy-time", "grid": [], "prices": []}
    bound = {"bound": bound, "least": 1, "class": claim["class"]}
    assert accepts(verify, instance, schedule) == fits
    assert accepts(check, claimed(instance, schedule, bound, pairs=True)) == fits


def test_jobs_that_fill_a_gpu_in_parts_attain_the_bound():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 0], gpus=[1, 1, 1], gpu_milli=[500, 250, 250], work=[8, 8, 8]
    )
    found = sp.simulate(jobs, "1x1", "fifo")
    assert certified(found.instance, found.schedule, "makespan").ratio == 1


def test_jobs_that_grow_with_no_loss_beside_one_that_does_not():
    """Their least area is that of their shortest time, but no gang of as many GPUs."""
    jobs = sp.Workload.from_columns(arrival_s=[0] * 4, gpus=[1] * 4, work=[80.0, 80.0, 80.0, 4.0])
    widths = Elasticity(np.array([8, 8, 8, 1]), np.ones(4))
    instance = Instance(Cluster.parse("1x8"), jobs, elasticity=widths)
    found = certified(instance, run(instance, policy("lpf")).schedule, "completion", budget_s=0.05)
    assert check(found.text)


def test_copies_that_fill_all_nodes_attain_the_bound():
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[2], work=[16])
    instance = Instance(Cluster.parse("2x2"), jobs, copies=CopyRules(100.0, 0.0, 0.0, max_copies=2))
    half = 8 * TICKS_PER_S
    columns = ([0, 0], [0, 1], [2, 2], [0.0, 0.0], [8.0, 8.0], [0.0, 0.0])
    rows = (np.array(c) for c in columns)
    schedule = Schedule(*rows, copy=np.array([0, 1]), steps=np.array([half, half]))
    for goal in Objective:
        assert certified(instance, schedule, goal).ratio == 1
    none = replace(instance, copies=CopyRules(100.0, 0.0, 0.0, max_copies=1))
    assert not accepts(certified, none, schedule, "makespan")


TWICE = {
    "plain": {},
    "widths": {"elasticity": Elasticity(np.array([4, 4]), np.array([0.8, 0.8]))},
    "CPUs and memory": {"sensitivity": Sensitivity((PROFILE,), np.zeros(2, dtype=np.int64))},
    "graphs": {"graphs": JobGraphs((GRAPH,), np.zeros(2, dtype=np.int64), NETWORK)},
}


@pytest.mark.parametrize("name", TWICE)
def test_nobody_shares_gpus_without_speeds_of_pairs(name):
    """Two jobs on the same GPUs at the same times, each the other's partner."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[2, 2], work=[7.0, 7.0])
    nodes = CLUSTER if name == "CPUs and memory" else Cluster.parse("2x2")
    instance = Instance(nodes, jobs, **TWICE[name])
    ticks = CheckedClass.of(instance, pairs=False).work.shortest[0]
    if name == "widths":
        ticks = 7 * TICKS_PER_S
    more = {}
    if name == "CPUs and memory":
        more = {"cpus": np.full(2, 12.0), "memory_gb": np.full(2, 20.0)}
    if name == "graphs":
        more = {"stages": np.empty(2, dtype=object)}
        more["stages"][:] = [(1, 1), (1, 1)]
    columns = ([0, 1], [0, 0], [2, 2], [0.0, 0.0], [ticks / TICKS_PER_S] * 2, [0.0, 0.0])
    apart = Schedule(*(np.array(c) for c in columns), **more)
    apart = replace(apart, node=np.array([0, 1]))
    claim = check(certified(instance, apart, "completion").text)
    bound = {"bound": "mean-busy-time", "grid": [], "prices": []}
    bound = {"bound": bound, "least": 1, "class": claim["class"]}
    assert accepts(check, claimed(instance, apart, bound, pairs=False))
    shared_too = replace(apart, node=np.array([0, 0]), partner=np.array([1, 0]))
    assert not accepts(check, claimed(instance, shared_too, bound, pairs=False))


# Runs whose schedules are on disk.


@settings(max_examples=12, deadline=None)
@given(uneven(), st.integers(0, 99), st.integers(1, 4), st.integers(1, 6))
def test_rows_in_order_of_their_ends_are_read_in_order_of_their_starts(instance, seed, size, most):
    schedule = run(instance, Fickle(seed)).schedule
    segments = Cut(by_end(schedule), range(size, len(schedule), size))
    expected = list(records.runs(instance, schedule))
    blocks = list(blocks_by_start(segments, most))
    assert [run for block in blocks for run in records.runs(instance, block)] == expected
    assert sum(map(len, blocks)) == len(schedule)


def test_a_streamed_run_has_the_certificate_of_the_run_in_memory(tmp_path):
    jobs = sp.Workload.from_columns(
        arrival_s=np.arange(40) // 3, gpus=np.arange(40) % 4 + 1, work=np.arange(40) % 7 + 1.5
    )
    whole = sp.simulate(jobs, "2x4", "srtf")
    cut = Cut(by_end(whole.schedule), range(7, len(whole.schedule), 7))
    streamed = StreamedOutcome(whole.instance, cut, "srtf", {})
    found = certify_into(streamed, tmp_path / "cert.jsonl", "flow", budget_s=0.0)
    text = certify(whole, "flow", budget_s=0.0).text
    assert (tmp_path / "cert.jsonl").read_text() == text
    assert found.factor == Fraction(check(text)["ratio"])


# Prices by GPU type.


@settings(max_examples=15, deadline=None)
@given(uneven(), st.data())
def test_two_programs_bound_alike_at_prices_by_type(instance, data):
    prices = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=2))
    given_records = list(records.instance_records(instance, pairs=False))
    ticks = run_speed.alone_ticks(instance)
    gpus = np.array([2, 2])
    work = CheckedClass.of(instance, pairs=False).work
    uses = gang_uses(np.array(work.gang), len(gpus))
    jobs = ModeTable(np.array(work.arrival), tuple(work.weight), ticks, gpus, *uses)
    checked = checker.instance.CertificateInstance()
    for record in [records.header(instance, "some", "flow"), *given_records]:
        kind = record.pop("kind")
        checker.instance.TAKE[kind](checked, record)
    at = checked.at_prices(checked.relaxed(), prices)
    busy, fluid = busy_price_ticks(jobs, prices), fluid_price_ticks(jobs, prices)
    assert busy <= checker.one_machine.bound_mean_busy_time(at, {}) < busy + len(work.arrival)
    assert fluid <= checker.one_machine.bound_fluid(at, {}) < fluid + 1
    own = data.draw(
        st.lists(st.integers(0, 9), min_size=len(work.arrival), max_size=len(work.arrival))
    )
    span, _ = span_ticks(jobs, SpanPrices(tuple(prices), tuple(own)))
    shortest = checked.relaxed(charged=False).shortest
    alone = max(r + p for r, p in zip(work.arrival, shortest, strict=True))
    assert span == max(checked.span_at_prices(checked.relaxed(charged=False), [prices, own]), alone)


def test_prices_by_type_say_more_where_types_differ():
    rates = [[1.0, 0.1]] * 3 + [[1.0, 1.0]] * 3
    jobs = sp.Workload.from_columns(
        arrival_s=[0] * 6, gpus=[1] * 6, work=[60] * 6, throughput=rates, gpu_types=("a", "b")
    )
    found = sp.simulate(jobs, "1x1:a,1x2:b", "srtf")
    prices = certified(found.instance, found.schedule, "makespan", 0.1)
    said = {each.kind: each.ticks for each in prices.history.bounds}
    assert said["priced-span"] > said["area"]
    assert prices.bound_kind == "priced-span"
    every = [json.loads(line) for line in prices.text.split("\n")[:-1]]
    for wrong, says in (
        ({"prices": [[1], [0] * 6]}, "no prices for 2 types"),
        ({"prices": [[1, 1], [0] * 5]}, "no prices of GPUs or of jobs' time"),
        ({"prices": [[0, 0], [0] * 6]}, "no prices of GPUs or of jobs' time"),
        ({"prices": [[-1, 1], [0] * 6]}, "price is -1"),
        ({"prices": [[2**30, 1], [0] * 6]}, "the bound is"),
        ({"grid": [0]}, "takes no prices over time"),
    ):
        with pytest.raises(Rejected, match=says):
            check(signed([*every[:-2], {**every[-2], **wrong}, every[-1]]))


# What chance seldom draws.


@settings(max_examples=15, deadline=None)
@given(graph_instances(), st.data())
def test_two_programs_time_a_mapping_alike(instance, data):
    """And no mapping is faster than a bound takes the fastest to be."""
    graphs = instance.graphs
    checked = checker.instance.CertificateInstance()
    for record in [
        records.header(instance, "some", "flow"),
        *records.instance_records(instance, pairs=False),
    ]:
        checker.instance.TAKE[record.pop("kind")](checked, record)
    number = data.draw(st.integers(0, len(graphs.graph) - 1))
    graph = graphs.graph[number]
    nodes = [node for _, node in data.draw(mappings(graph, graphs.network.gpus_per_node))]
    work = np.array([7.25])
    alpha = np.array([graph_time.iteration_s(graph, nodes, graphs.network)])
    expected = int(run_speed.iterations_ticks(work, alpha)[0])
    rows = tuple(sorted(tuple(int(count) for count in node) for node in nodes))
    assert checked.graphs[number].ticks(7.25, rows) == expected
    assert checked.graphs[number].ticks(7.25, ()) <= expected


def test_only_replicas_with_remote_traffic_share_the_interface_of_their_job():
    """Of three stages in a chain the first two are on one node: the first sends nothing away."""
    stages = tuple(Stage(name, 1, 0.5, 0.25) for name in "abc")
    graph = chain("chain", stages, [8.0, 8.0])
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[3], work=[5])
    for sharing in ("per-job", "per-gpu"):
        graphs = JobGraphs((graph,), np.zeros(1, dtype=np.int64), Network(64.0, 2.0, 2, sharing))
        instance = Instance(Cluster.parse("2x2"), jobs, graphs=graphs)
        rows = {"job": [0, 0], "node": [0, 1], "gpus": [2, 1], "start_s": [0.0, 0.0]}
        nodes = [(1, 1, 0), (0, 0, 1)]
        stage_cells = np.empty(2, dtype=object)
        stage_cells[:] = nodes
        alpha = np.array([graph_time.iteration_s(graph, nodes, graphs.network)])
        end_s = run_speed.iterations_ticks(jobs.work, alpha)[0] / TICKS_PER_S
        rows |= {"end_s": [end_s] * 2, "overhead_s": [0.0] * 2}
        columns = {name: np.array(column) for name, column in rows.items()}
        certified(instance, Schedule(**columns, stages=stage_cells), "flow")


def test_no_gpu_is_held_by_more_than_all_of_it():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], gpu_milli=[600, 600], work=[8, 8]
    )
    instance = Instance(Cluster.parse("1x2"), jobs)
    columns = ([0, 1], [0, 0], [1, 1], [0.0, 0.0], [8.0, 8.0], [0.0, 0.0])
    rows = [np.array(column) for column in columns]
    apart = Schedule(*rows, shared_gpu=np.array([0, 1]))
    certified(instance, apart, "flow")
    text = certified(instance, apart, "completion").text
    every = [json.loads(line) for line in text.split("\n")[:-1]]
    every[-3]["pieces"] = [[0, 1, 0]]
    with pytest.raises(Rejected, match="GPU 0 of node 0: 1200 thousandths held"):
        check(signed(every))
