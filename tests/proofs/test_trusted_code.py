"""What has to be trusted: the verifier finds faults in every speed, and shares no code with them."""

from __future__ import annotations

import ast
import math
import re
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice
from shadowprice.execution import simulated_hosts as hosts
from shadowprice.execution.engine import run
from shadowprice.instances import grid
from shadowprice.instances import workload as workload_module
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.node_sizes import fewest_nodes
from shadowprice.instances.graphs import iteration_time
from shadowprice.instances.graphs import workload_graphs as job_graphs
from shadowprice.instances.graphs.iteration_time import iteration_s
from shadowprice.instances.graphs.job_graph import Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds import sharing as sharing_module
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.sharing import SharedRuns
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms import graphs as graphs_term
from shadowprice.instances.terms import spread as spread_term
from shadowprice.instances.terms import widths as widths_term
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs import checker, graph_time, run_speed
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.testing.cases import conditioned, shared, typed
from shadowprice.proofs.verification.segments import verifiable_in_segments, verify_segments
from support.conditioned_jobs import CLUSTER, FLAT, PROFILE, Restless
from support.copies import in_copies
from support.graph_strategies import chain, mappings, networks
from support.graph_strategies import job_graphs as any_graph
from support.job_graph_runs import Chance, graph_instances
from support.uneven_work import Fickle, uneven

ROOT = Path(shadowprice.__file__).parent
DOCS = ROOT.parent / "docs" / "certificates.md"

SPEED_MODULES = {
    f"instances/{name}.py"
    for name in (
        "graphs/iteration_time",
        "graphs/link_ends",
        "graphs/workload_graphs",
        "instance",
        "speeds/conditions",
        "speeds/elasticity",
        "speeds/interference",
        "speeds/locality",
        "speeds/profile",
        "speeds/profiles",
        "speeds/sensitivity",
        "speeds/throughputs",
        "workload",
    )
}
"""Files of instances that say how fast runs are; ``instance`` and ``workload`` hold data as well."""


# Every fault in a speed is found.


def graphs_instance():
    stages = (Stage("a", 2, 0.5, 1.0, 8.0), Stage("b", 1, 1.0, 0.25))
    graph = chain("chain", stages, [4.0], microbatches=2)
    jobs = Workload.from_columns(arrival_s=[0, 1], gpus=[3, 3], work=[20, 30])
    network = Network(4.0, 2.0, 2, "per-job")
    return Instance(
        Cluster.parse("3x2"), jobs, graphs=JobGraphs((graph,), np.zeros(2, dtype=np.int64), network)
    )


def conditions_instance(**parts):
    jobs = Workload.from_columns(arrival_s=[0, 1, 3], gpus=[2, 5, 1], work=[30, 20, 17])
    whole = {
        "sensitivity": Sensitivity((PROFILE,), np.zeros(3, dtype=np.int64)),
        "locality": Locality(np.array([0.4, 0.6, 0.9])),
        "elasticity": Elasticity(np.array([4, 10, 4]), np.array([0.9, 0.8, 0.75])),
    }
    return Instance(CLUSTER, jobs, **{name: whole[name] for name in parts})


def typed_instance():
    jobs = Workload.from_columns(
        arrival_s=[0, 1, 2],
        gpus=[1, 2, 1],
        work=[30, 20, 17],
        throughput=[[1.3, 0.7], [0.9, 0.4], [1.1, 2.3]],
        gpu_types=("a", "b"),
        model=["m", "m", "n"],
    )
    kinds = [("m", 1), ("n", 1)]
    rates = {(kind, one, other): (0.7, 0.6) for kind in "ab" for one in kinds for other in kinds}
    return Instance(
        Cluster.parse("1x2:a,1x2:b"), jobs, sharing_rates=Throughputs(("a", "b"), {}, rates)
    )


def times(factor, function):
    """The same function with its result multiplied."""
    return lambda *arguments: factor * function(*arguments)


def patch(owner, name, made):
    return lambda monkeypatch: monkeypatch.setattr(owner, name, made(getattr(owner, name)))


def halved(function):
    return times(0.5, function)


def doubled(function):
    return times(2.0, function)


def none(function):
    return lambda *arguments: np.full(1000, 1000)


def steeper(function):
    def speed(efficiency, gang, width):
        return function(efficiency, gang, width) * (width / gang)

    return speed


def generous(function):
    """The fastest worker counts, not the slowest."""

    def speed(self, job, pieces, held):
        profile = self.profile_of(job)
        return max(
            profile.at(cpus / gpus, memory / gpus)
            for (_, gpus), (cpus, memory) in zip(pieces, held, strict=True)
        )

    return speed


def down(function):
    return lambda time_s: math.floor(time_s * 2**20) / 2**20


def all_down(function):
    return lambda times_s: np.floor(np.asarray(times_s) * 2**20) / 2**20


def early(function):
    """A row counts for a tick more than it has, so that the work is done a tick early."""
    return lambda self, job, whole, ran: function(self, job, whole, ran + 1)


def forgetful(function):
    """A run counts for two."""

    return lambda self, job, whole, ran: function(self, job, whole, 2 * ran)


PROFILES, SPREAD, GROW = ({name: True} for name in ("sensitivity", "locality", "elasticity"))

FAULTS = {
    "an iteration takes half as long": (graphs_instance, patch(job_graphs, "iteration_s", halved)),
    "an iteration takes twice as long": (
        graphs_instance,
        patch(job_graphs, "iteration_s", doubled),
    ),
    "a flush costs half": (
        graphs_instance,
        patch(iteration_time, "_flush", lambda f: times(Fraction(1, 2), f)),
    ),
    "no AllReduce": (
        graphs_instance,
        patch(iteration_time, "_alone", lambda f: lambda graph: [(c, 0 * r) for c, r in f(graph)]),
    ),
    "no traffic": (
        graphs_instance,
        patch(iteration_time, "_peers", lambda f: lambda graph: [[] for _ in f(graph)]),
    ),
    "iterations are fewer": (graphs_instance, patch(graphs_term, "one_run_s", halved)),
    "gangs that grew are faster": (
        lambda: conditions_instance(**GROW),
        patch(widths_term, "speed_up", steeper),
    ),
    "nobody is spread": (
        lambda: conditions_instance(**SPREAD),
        patch(spread_term, "fewest_nodes", none),
    ),
    "profiles are faster": (lambda: conditions_instance(**PROFILES), patch(Profile, "at", doubled)),
    "the fastest worker counts": (
        lambda: conditions_instance(**PROFILES),
        patch(Sensitivity, "speed", generous),
    ),
    "all conditions are kinder": (
        lambda: conditions_instance(**PROFILES, **SPREAD, **GROW),
        patch(hosts.SimulatedHosts, "whole_s", halved),
    ),
    "conditions are rounded down": (
        lambda: conditions_instance(**SPREAD, **GROW),
        patch(hosts, "ceil_time", down),
    ),
    "GPUs are faster": (typed_instance, patch(Workload, "processing_s", halved)),
    "run times are rounded down": (typed_instance, patch(workload_module, "up_to_grid", all_down)),
    "partners are faster": (typed_instance, patch(SharedRuns, "one_run_s", halved)),
    "times beside partners are rounded down": (
        typed_instance,
        patch(sharing_module, "ceil_time", down),
    ),
    "a tick early": (typed_instance, patch(hosts.SimulatedHosts, "_work", early)),
    "runs count double": (typed_instance, patch(hosts.SimulatedHosts, "_work", forgetful)),
}


def acting(instance, seed):
    if instance.graphs is not None:
        return Chance(seed)
    varies = any(each.varies for each in instance.present)
    return Restless(seed) if varies else Fickle(seed)


@pytest.fixture
def fresh():
    """Nothing that was computed is remembered."""
    iteration_time._Terms.of.cache_clear()
    yield
    iteration_time._Terms.of.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_speed_is_found(fault, monkeypatch):
    """Before the evaluator, runs with iterations of half the time passed."""
    make, break_it = FAULTS[fault]
    for seed in range(20):
        instance = make()
        verify(instance, run(instance, acting(instance, seed)).schedule)
    break_it(monkeypatch)
    iteration_time._Terms.of.cache_clear()
    rules = []
    for seed in range(20):
        instance = make()
        try:
            verify(instance, run(instance, acting(instance, seed)).schedule)
        except Violation as violation:
            rules.append(violation.rule)
    assert rules
    assert set(rules) == {"work"}


# The evaluator and the package agree.


@settings(max_examples=45, deadline=None)
@given(data=st.data(), graph=any_graph(), network=networks())
def test_iterations(data, graph, network):
    mapping = data.draw(mappings(graph, network.gpus_per_node))
    nodes = [counts for _, counts in mapping]
    assert graph_time.iteration_s(graph, nodes, network) == iteration_s(graph, mapping, network)
    work = np.array([1.0, 7.0, 1e6])
    alpha = np.full(3, iteration_s(graph, mapping, network))
    ticks = run_speed.iterations_ticks(work, alpha) / run_speed.TICKS_PER_S
    assert ticks.tolist() == job_graphs.run_s(work, alpha).tolist()


def in_seconds(ticks):
    return np.where(ticks > 0, ticks / run_speed.TICKS_PER_S, np.inf)


@settings(max_examples=30, deadline=None)
@given(st.one_of(uneven(), st.one_of(typed(), shared()).map(lambda case: case.instance)))
def test_types_and_partners(instance):
    alone = run_speed.alone_ticks(instance)
    assert in_seconds(alone).tolist() == instance.processing_s.tolist()
    n, types = alone.shape
    job, partner, kind = (each.ravel() for each in np.meshgrid(*map(np.arange, (n, n, types))))
    found = in_seconds(run_speed.sharing_ticks(instance, alone, job, partner, kind))
    assert found.tolist() == instance.shared_runs.run_s(job, partner, kind).tolist()
    one_by_one = [
        instance.shared_runs.one_run_s(*key)
        for key in zip(*(c.tolist() for c in (job, partner, kind)), strict=True)
    ]
    assert found.tolist() == one_by_one


per_gpu = st.floats(0, 9) | st.sampled_from([1.0, 3.0, 6.0, 3.0 * (1 - 1e-9), 6 * (1 - 2e-9)])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5), per_gpu, per_gpu), min_size=1))
def test_profiles(rows):
    job, gpus, cpus, memory_gb = (np.array(column) for column in zip(*rows, strict=True))
    sensitivity = Sensitivity((PROFILE, FLAT), np.arange(2))
    found = run_speed.profile_speed(sensitivity, job, gpus, cpus * gpus, memory_gb * 2 * gpus)
    for k, (which, held, cpu, memory) in enumerate(rows):
        expected = (PROFILE, FLAT)[which].at(cpu * held / held, memory * 2 * held / held)
        assert found[k] == expected


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.5, 1, exclude_min=True),
    st.integers(1, 64),
    st.integers(0, 200),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_widths_and_spreading(efficiency, gang, more, sizes):
    elasticity = Elasticity(np.array([gang + more]), np.array([efficiency]))
    row, gangs, widths = np.zeros(1, dtype=np.int64), np.array([gang]), np.array([gang + more])
    found = run_speed.width_speed(elasticity, row, gangs, widths)
    assert found.tolist() == elasticity.speed(row, gangs, widths).tolist()
    exact = ((gang + more) / gang) ** (1 + math.log2(efficiency))
    assert found[0] == pytest.approx(exact, rel=1e-13)
    cluster = Cluster.parse(",".join(f"1x{size}" for size in sizes))
    width = np.arange(1, cluster.total_gpus + 1)
    assert run_speed.fewest_nodes(cluster, width).tolist() == fewest_nodes(cluster)[1:].tolist()


def test_doubling_multiplies_by_exactly_twice_the_efficiency():
    for efficiency in (0.75, 0.9, 0.6, 1.0):
        wide = Elasticity(np.array([8]), np.array([efficiency]))
        one = np.array([0]), np.array([4]), np.array([8])
        assert wide.speed(*one).tolist() == [2 * efficiency]
        assert run_speed.width_speed(wide, *one).tolist() == [2 * efficiency]


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from([7, 11, 1000, 2**40])), min_size=1))
def test_shares_add_up_exactly(runs):
    ticks, whole = zip(*runs, strict=True)
    done = sum((Fraction(t, p) for t, p in runs), Fraction(0))
    short, over = run_speed.done_and_over(ticks, whole, whole[-1])
    missing = (1 - done) * whole[-1]
    assert (short, over) == (max(math.ceil(missing), 0), max(math.floor(-missing), 0))


# Nothing is shared.


def imported(path):
    """Files of the package that a file imports when it runs, under the package's root."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _running(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            module = node.module
            if node.level:  # Within a folder that runs alone too.
                assert (node.level, path.parent.name) == (1, "checker")
                module = ".".join([*path.relative_to(ROOT.parent).parent.parts, node.module])
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            file = ROOT.parent / (name.replace(".", "/") + ".py")
            if name.split(".")[0] == "shadowprice" and file.is_file():
                found.add(file)
    return found


def _running(tree):
    """All statements but those for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _running(node)


@cache
def closure(*names):
    """All files of the package that these need, themselves included, and their lines."""
    todo, found = [ROOT / name for name in names], set()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += imported(path)
    return {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(found)
    }


VERIFIER = ("proofs/verification/segments.py",)
EVALUATOR = ("proofs/run_speed.py", "proofs/graph_time.py")
CHECKER = ("proofs/checker/__init__.py", "proofs/checker/__main__.py", "proofs/checker/command.py")


def test_the_evaluator_imports_nothing_of_the_package():
    assert set(closure(*EVALUATOR)) == {"proofs/run_speed.py", "proofs/graph_time.py"}
    folder = ROOT / "proofs" / "checker"
    assert set(closure(*CHECKER)) == {f"proofs/checker/{path.name}" for path in folder.glob("*.py")}


def test_the_verifier_imports_no_speed_and_nothing_of_the_engine():
    assert set(closure(*VERIFIER)) == {
        "errors.py",
        "instances/features.py",
        "proofs/certificate.py",
        *(
            f"proofs/verification/{part}.py"
            for part in (
                *("compiled_pass", "copies", "cpu_memory", "declared", "failures", "features"),
                *(
                    "goodput",
                    "horizons",
                    "parts",
                    "quotas",
                    "racks",
                    "restarts",
                    "rules",
                    "segments",
                    "speeds",
                ),
            )
        ),
        "proofs/graph_time.py",
        "proofs/run_speed.py",
    }
    engine = closure("execution/engine.py")
    assert SPEED_MODULES & set(engine)
    assert set(closure(*VERIFIER)) & set(engine) == {"errors.py", "instances/features.py"}


class InOneSegment:
    """A schedule as the only segment."""

    def __init__(self, schedule):
        self.schedule, self.lengths = schedule, [len(schedule)]

    def read(self, segment):
        return self.schedule


def test_no_speed_of_the_package_runs_while_a_schedule_is_verified():
    """Not only imports: methods of what the verifier is given are code as well."""
    instances = [
        graphs_instance(),
        typed_instance(),
        conditions_instance(**PROFILES, **SPREAD, **GROW),
    ]
    runs = [(made, run(made, acting(made, 1)).schedule) for made in instances]
    alone = replace(typed_instance(), sharing_rates=None)
    runs.append(in_copies(alone))
    runs.append((alone, run(alone, Fickle(1)).schedule))
    for made, schedule in runs:
        fresh = replace(made, overheads=Overheads())  # Nothing is remembered from the run.
        called = set()

        def note(frame, event, argument, called=called):
            path = Path(frame.f_code.co_filename)
            if event == "call" and path.is_relative_to(ROOT):
                called.add(path.relative_to(ROOT).as_posix())

        sys.setprofile(note)
        try:
            verify(fresh, schedule)
            if verifiable_in_segments(fresh):
                verify_segments(fresh, InOneSegment(schedule))
        finally:
            sys.setprofile(None)
        assert "proofs/run_speed.py" in called
        # Number of rows of columns, and nothing else.
        assert called <= {*closure(*VERIFIER), "instances/workload.py", "instances/schedule.py"}


def test_the_docs_say_how_much_there_is_to_trust():
    text = DOCS.read_text(encoding="utf-8")
    for name, first in (("verifier", VERIFIER), ("evaluator", EVALUATOR), ("checker", CHECKER)):
        files = closure(*first)
        said = re.search(rf"\| {name} \| .* \| (\d+) \| ([\d,]+) \|", text)
        assert said, name
        numbers = int(said[1]), int(said[2].replace(",", ""))
        assert numbers == (len(files), sum(files.values())), name


def test_the_grid_is_the_same():
    assert run_speed.TICKS_PER_S == grid.TICKS_PER_S
    assert run_speed.LONGEST_TICKS == grid.MAX_TIME_S * grid.TICKS_PER_S
    assert checker.form.PRICE_UNIT == 2**20


@settings(max_examples=12, deadline=None)
@given(graph_instances(), conditioned(), st.integers(0, 99))
def test_honest_runs_pass(instance, case, seed):
    for made in (instance, case.instance):
        verify(made, run(made, acting(made, seed)).schedule)
