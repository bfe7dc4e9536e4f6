"""Placements of job graphs: laws, small cases by hand, exact ones against enumeration."""

from __future__ import annotations

import io
import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import assume, given, settings, target
from hypothesis import strategies as st
from matplotlib.patches import FancyBboxPatch
from typer.testing import CliRunner, Result

from shadowprice.analysis.plots.placement import MAX_REPLICAS, plot_placement
from shadowprice.cli.panels import shown
from shadowprice.cli.placement.graph import graph_command
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.graphs.iteration_time import (
    Network,
    iteration_s,
    longest_iteration_s,
    shortest_iteration_s,
)
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.models import asrpt_joint
from shadowprice.models.asrpt import cut_bytes, exchange
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.graph_placement.exact import Exact, as_mapping
from shadowprice.solvers.graph_placement.heavy_edge import HeavyEdge
from shadowprice.solvers.graph_placement.protocol import (
    as_free,
    fewest_nodes,
    graph_placement,
    graph_placements,
)
from shadowprice.solvers.offline.bounds import fluid_ticks
from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from support.printed import without_origin

NETWORK = Network(100e9, 10e9, 8)
QUICK = ("heavy-edge", "heavy-edge-swaps", "first-fit", "communities")
CONSOLIDATED = ("heavy-edge", "heavy-edge-swaps", "communities")
CLOSE = 1e-5


@st.composite
def graphs(draw: st.DrawFn, most_stages: int = 4, most_replicas: int = 6) -> JobGraph:
    """Random job graphs with bytes that are whole and often equal."""
    count = draw(st.integers(1, most_stages))
    sizes = st.sampled_from([0.0, 1e8, 2e8, 1e9, 8e9])
    stages = tuple(
        Stage(f"s{k}", draw(st.integers(1, most_replicas)), 0.01, 0.02, draw(sizes))
        for k in range(count)
    )
    pairs = [(s, t) for s in range(count) for t in range(s + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
    links = tuple(Link(s, t, draw(sizes)) for s, t in chosen)
    return JobGraph("job", stages, links, draw(st.sampled_from([0, 4])))


@st.composite
def placeable(
    draw: st.DrawFn, most_stages: int, most_replicas: int, most_nodes: int
) -> tuple[JobGraph, list[int]]:
    """A job graph and free GPUs that it fits in."""
    graph = draw(graphs(most_stages, most_replicas))
    free = draw(st.lists(st.integers(0, 3), min_size=1, max_size=most_nodes))
    free[-1] += max(0, graph.gpus - sum(free))
    assume(max(free) <= 8)
    return graph, free


free_gpus = st.lists(st.integers(0, 8), min_size=1, max_size=6)
networks = st.builds(
    Network,
    st.sampled_from([5e9, 100e9]),
    st.sampled_from([1e9, 10e9, 200e9]),
    st.just(8),
    st.sampled_from(["per-gpu", "per-job"]),
)


def mappings(graph: JobGraph, free: list[int]) -> Iterator[StageMapping]:
    """All placements."""

    def rows(stage: int, room: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
        if stage == len(graph.stages):
            yield []
            return
        k = graph.stages[stage].replicas
        for row in itertools.product(*(range(min(k, gpus) + 1) for gpus in room)):
            if sum(row) == k:
                rest = tuple(gpus - taken for gpus, taken in zip(room, row, strict=True))
                for others in rows(stage + 1, rest):
                    yield [row, *others]

    for chosen in rows(0, tuple(free)):
        yield as_mapping(np.array(chosen, dtype=np.float64), list(range(len(free))))


def naive_cut(graph: JobGraph, mapping: StageMapping) -> float:
    """Bytes between nodes, pair by pair of replicas."""
    replicas = [(m, s) for m, row in mapping for s, count in enumerate(row) for _ in range(count)]
    total = 0.0
    for (m, s), (o, t) in itertools.combinations(replicas, 2):
        if m != o:
            for link in graph.links:
                if {link.source, link.target} == {s, t}:
                    total += 2 * link.bytes_per_replica / graph.stages[link.target].replicas
            if s == t:
                k, h = graph.stages[s].replicas, graph.stages[s].parameter_bytes
                total += 2 * (k - 1) / k * h / (k - 1)
    return total


@pytest.mark.parametrize("name", QUICK)
@given(graph=graphs(), free=free_gpus, network=networks)
def test_placements_are_placements(
    name: str, graph: JobGraph, free: list[int], network: Network
) -> None:
    mapping = graph_placement(name).place(graph, free, network)
    if sum(free) < graph.gpus:
        assert mapping is None
        return
    assert mapping is not None
    nodes = [node for node, _ in mapping]
    assert len(set(nodes)) == len(nodes)
    assert all(0 < sum(row) <= free[node] for node, row in mapping)
    assert np.sum([row for _, row in mapping], axis=0).tolist() == [
        s.replicas for s in graph.stages
    ]
    alpha = iteration_s(graph, mapping, network)
    assert shortest_iteration_s(graph, network) <= alpha <= longest_iteration_s(graph, network)


@pytest.mark.parametrize("name", CONSOLIDATED)
@given(graph=graphs(), free=free_gpus)
def test_no_more_nodes_than_needed(name: str, graph: JobGraph, free: list[int]) -> None:
    mapping = graph_placement(name).place(graph, free, NETWORK)
    if mapping is not None:
        largest = np.cumsum(sorted(free, reverse=True))
        assert len(mapping) == int(np.searchsorted(largest, graph.gpus)) + 1


@given(free=free_gpus, gpus=st.integers(1, 40))
def test_fewest_nodes_end_with_the_best_fit(free: list[int], gpus: int) -> None:
    found = fewest_nodes(np.array(free, dtype=np.int64), gpus)
    order = sorted(range(len(free)), key=lambda node: (-free[node], node))
    prefix, total = [], 0
    while order and total < gpus:
        prefix.append(order.pop(0))
        total += free[prefix[-1]]
    if total < gpus:
        assert found is None
        return
    order.insert(0, prefix.pop())
    left = gpus - sum(free[node] for node in prefix)
    last = min((node for node in order if free[node] >= left), key=lambda node: (free[node], node))
    assert found == [*((node, free[node]) for node in prefix), (last, left)]


def replica_by_replica(graph: JobGraph, free: list[int]) -> StageMapping | None:
    """Heavy-Edge on single replicas, word for word."""
    nodes = fewest_nodes(np.array(free, dtype=np.int64), graph.gpus)
    if nodes is None:
        return None
    weight = exchange(graph)
    left = [(s, u) for s, stage in enumerate(graph.stages) for u in range(stage.replicas)]
    mapping = []

    def between(v: tuple[int, int], others: list[tuple[int, int]]) -> float:
        return sum(float(weight[v[0], u[0]]) for u in others if u != v)

    for node, gpus in nodes:
        if gpus == len(left):
            part = list(left)
        elif gpus == 1:
            part = [min(left, key=lambda v: (between(v, left), v))]
        else:
            edges = itertools.combinations(left, 2)
            part = list(min(edges, key=lambda e: (-between(e[0], [e[1]]), e)))
            while len(part) < gpus:
                rest = [v for v in left if v not in part]
                part.append(min(rest, key=lambda v: (-between(v, part), v)))
        left = [v for v in left if v not in part]
        stages = [s for s, _ in part]
        mapping.append((node, tuple(stages.count(s) for s in range(len(graph.stages)))))
    return tuple(mapping)


@given(
    powers=st.lists(st.sampled_from([1, 2, 4]), min_size=3, max_size=5),
    sizes=st.lists(st.integers(0, 9), min_size=15, max_size=15),
    free=st.lists(st.integers(1, 4), min_size=3, max_size=5),
)
def test_counts_give_the_same_as_single_replicas(
    powers: list[int], sizes: list[int], free: list[int]
) -> None:
    # Replicas in powers of two: sums of weights are exact, and equal ones are equal.
    amounts = iter([64.0 * size for size in sizes])
    stages = tuple(Stage(f"s{s}", n, 0.0, 0.0, next(amounts)) for s, n in enumerate(powers))
    pairs = itertools.combinations(range(len(powers)), 2)
    graph = JobGraph("job", stages, tuple(Link(s, t, next(amounts)) for s, t in pairs))
    free += [1] * max(0, graph.gpus - sum(free))
    assert HeavyEdge().place(graph, free, NETWORK) == replica_by_replica(graph, free)


@given(graph=graphs(), data=st.data())
def test_the_cut_is_the_sum_over_pairs_of_replicas(graph: JobGraph, data: st.DataObject) -> None:
    free = data.draw(st.lists(st.integers(0, 8), min_size=4, max_size=6))
    for name in QUICK:
        mapping = graph_placement(name).place(graph, free, NETWORK)
        if mapping is not None:
            expected = naive_cut(graph, mapping)
            assert cut_bytes(graph, mapping) == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_a_data_parallel_job_that_fits_one_node_is_on_one_node() -> None:
    graph = JobGraph("job", (Stage("all", 4, 0.1, 0.2, 1e9),))
    mapping = HeavyEdge().place(graph, [3, 8, 5, 4], NETWORK)
    assert mapping == ((3, (4,)),)
    assert cut_bytes(graph, mapping) == 0.0


def test_replicas_with_many_parameters_stay_together() -> None:
    stages = (Stage("first", 4, 0.1, 0.1, 50e9), Stage("second", 4, 0.1, 0.1, 1e6))
    graph = JobGraph("job", stages, (Link(0, 1, 1e6),))
    assert HeavyEdge().place(graph, [4, 4], NETWORK) == ((0, (4, 0)), (1, (0, 4)))


def test_a_node_with_one_gpu_takes_what_exchanges_least() -> None:
    stages = tuple(Stage(name, 1, 0.1, 0.1) for name in "abcd")
    graph = JobGraph("job", stages, (Link(0, 1, 8e9), Link(1, 2, 4e9), Link(2, 3, 1e9)))
    # The first node holds the heaviest link; of c and d, d and c exchange the same: the lowest.
    assert HeavyEdge().place(graph, [2, 1, 1], NETWORK) == (
        (0, (1, 1, 0, 0)),
        (1, (0, 0, 1, 0)),
        (2, (0, 0, 0, 1)),
    )
    assert HeavyEdge().place(graph, [1, 1, 1, 1], NETWORK) == (
        (0, (0, 0, 0, 1)),
        (1, (0, 0, 1, 0)),
        (2, (1, 0, 0, 0)),
        (3, (0, 1, 0, 0)),
    )


def test_first_fit_fills_nodes_in_order() -> None:
    graph = JobGraph("job", (Stage("a", 3, 0.1, 0.1), Stage("b", 3, 0.1, 0.1)))
    mapping = graph_placement("first-fit").place(graph, [0, 2, 0, 3, 8], NETWORK)
    assert mapping == ((1, (2, 0)), (3, (1, 2)), (4, (0, 1)))


def test_a_thousand_gpus_in_milliseconds() -> None:
    stages = tuple(Stage(f"s{k}", 32, 0.01, 0.01, 1e9) for k in range(32))
    graph = JobGraph("job", stages, tuple(Link(k, k + 1, 1e8) for k in range(31)))
    took = []
    for _ in range(3):
        began = time.process_time()
        mapping = HeavyEdge().place(graph, [8] * 128, NETWORK)
        took.append(time.process_time() - began)
    assert mapping is not None
    assert len(mapping) == 128
    assert min(took) < 0.05


@settings(max_examples=20)
@given(job=placeable(3, 3, 3), n=networks)
def test_exact_placements_equal_enumeration(job: tuple[JobGraph, list[int]], n: Network) -> None:
    graph, free = job
    every = list(mappings(graph, free))
    best, least = Exact().place(graph, free, n), Exact("cut", "cut").place(graph, free, n)
    assert best is not None
    assert least is not None
    alphas = [iteration_s(graph, mapping, n) for mapping in every]
    assert iteration_s(graph, best, n) == pytest.approx(min(alphas), rel=CLOSE)
    cuts = [cut_bytes(graph, mapping) for mapping in every]
    heaviest = float(exchange(graph).max())
    assert cut_bytes(graph, least) == pytest.approx(min(cuts), rel=CLOSE, abs=CLOSE * heaviest)
    for mapping in (best, least):
        assert all(sum(row) <= free[node] for node, row in mapping)
    greedy = HeavyEdge().place(graph, free, n)
    assert greedy is not None
    assert iteration_s(graph, best, n) <= iteration_s(graph, greedy, n)
    assert cut_bytes(graph, least) <= cut_bytes(graph, greedy)


def test_exact_placement_of_a_gang_that_does_not_fit() -> None:
    graph = JobGraph("job", (Stage("all", 4, 0.1, 0.2, 1e9),))
    assert Exact().place(graph, [2, 1], NETWORK) is None


@settings(max_examples=13)
@given(
    k=st.lists(st.integers(1, 2), min_size=3, max_size=5),
    sizes=st.lists(st.integers(0, 9), min_size=15, max_size=15),
    free=st.lists(st.integers(2, 4), min_size=2, max_size=4),
)
def test_search_for_the_worst_cut_of_heavy_edge(
    k: list[int], sizes: list[int], free: list[int]
) -> None:
    amounts = iter([1e8 * size for size in sizes])
    stages = tuple(Stage(f"s{s}", n, 0.01, 0.02, next(amounts)) for s, n in enumerate(k))
    pairs = itertools.combinations(range(len(k)), 2)
    graph = JobGraph("job", stages, tuple(Link(s, t, next(amounts)) for s, t in pairs))
    greedy = HeavyEdge().place(graph, free, NETWORK)
    assume(greedy is not None)
    assert greedy is not None
    every = list(mappings(graph, free))
    least = min(cut_bytes(graph, mapping) for mapping in every)
    found = cut_bytes(graph, greedy)
    assert found >= least * (1 - 1e-12)
    alpha = iteration_s(graph, greedy, NETWORK)
    best = min(iteration_s(graph, mapping, NETWORK) for mapping in every)
    assert best <= alpha <= longest_iteration_s(graph, NETWORK)
    assert alpha <= best * _rho(graph)
    if least > 0:
        target(found / least, label="cut of heavy-edge over the least")
    target(alpha / best, label="iteration of heavy-edge over the shortest")


def _rho(graph: JobGraph) -> float:
    return longest_iteration_s(graph, NETWORK) / shortest_iteration_s(graph, NETWORK)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_heavy_edge_has_no_constant_ratio_in_cut(k: int) -> None:
    # Two cliques of k, joined by the heaviest edge of all: Heavy-Edge begins with it, and then
    # tears both. With it cut only its own bytes cross.
    stages = tuple(Stage(f"s{n}", 1, 0.1, 0.1) for n in range(2 * k))
    cliques = [
        Link(s, t, 1e9) for s, t in itertools.combinations(range(2 * k), 2) if (s < k) == (t < k)
    ]
    graph = JobGraph("cliques", stages, (*cliques, Link(k - 1, k, 2e9)))
    cuts = {}
    for name in ("heavy-edge", "heavy-edge-swaps", "exact-cut"):
        mapping = graph_placement(name).place(graph, [k, k], NETWORK)
        assert mapping is not None
        cuts[name] = cut_bytes(graph, mapping)
    assert cuts["exact-cut"] == 2 * 2e9
    assert cuts["heavy-edge"] == (k - 1) * cuts["exact-cut"]
    assert cuts["heavy-edge-swaps"] == cuts["exact-cut"]


@given(graph=graphs(), free=free_gpus)
def test_swaps_never_cut_more(graph: JobGraph, free: list[int]) -> None:
    greedy, better = (
        graph_placement(name).place(graph, free, NETWORK)
        for name in ("heavy-edge", "heavy-edge-swaps")
    )
    if greedy is not None:
        assert better is not None
        assert cut_bytes(graph, better) <= cut_bytes(graph, greedy)


@given(graph=graphs(3, 4), free=st.lists(st.integers(1, 5), min_size=2, max_size=3))
def test_no_swap_is_left_that_cuts_less(graph: JobGraph, free: list[int]) -> None:
    mapping = graph_placement("heavy-edge-swaps").place(graph, free, NETWORK)
    if mapping is None:
        return
    least = cut_bytes(graph, mapping) - 1e-6 * float(exchange(graph).max())
    for (m, one), (n, other) in itertools.combinations(mapping, 2):
        for s, t in itertools.product(range(len(graph.stages)), repeat=2):
            if one[s] and other[t]:
                swapped = {m: list(one), n: list(other)}
                for node, stage, by in ((m, s, -1), (m, t, 1), (n, t, -1), (n, s, 1)):
                    swapped[node][stage] += by
                rest = [pair for pair in mapping if pair[0] not in swapped]
                pairs = (*rest, *((node, tuple(row)) for node, row in swapped.items()))
                assert cut_bytes(graph, pairs) >= least


def brute_force(jobs: asrpt_joint.Jobs) -> int | None:
    """Least total completion time over mappings and starts; None if they do not fit."""
    choices = []
    for j, graph in enumerate(jobs.graphs):
        seen: dict[tuple[tuple[int, int], ...], int] = {}
        for mapping in mappings(graph, list(jobs.nodes)):
            alpha = iteration_s(graph, mapping, jobs.network)
            slots = math.ceil(jobs.iterations[j] * alpha / jobs.slot_s - CLOSE)
            gpus = tuple((node, sum(row)) for node, row in mapping)
            seen[gpus] = min(seen.get(gpus, slots), slots)
        choices.append(
            [
                (start, slots, gpus)
                for gpus, slots in seen.items()
                for start in range(jobs.release[j], jobs.horizon - slots + 1)
            ]
        )
    best = math.inf
    for chosen in itertools.product(*choices):
        total = sum(start + slots for start, slots, _ in chosen)
        if total < best and _fits(chosen, jobs):
            best = total
    return None if best == math.inf else int(best)


def _fits(
    chosen: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...], jobs: asrpt_joint.Jobs
) -> bool:
    used = np.zeros((len(jobs.nodes), jobs.horizon), dtype=np.int64)
    for start, slots, gpus in chosen:
        for node, count in gpus:
            used[node, start : start + slots] += count
    return bool((used <= np.array(jobs.nodes)[:, None]).all())


@settings(max_examples=6)
@given(data=st.data())
def test_the_joint_programme_equals_enumeration(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 3))
    network = Network(100e9, 10e9, 2, data.draw(st.sampled_from(["per-gpu", "per-job"])))
    found = []
    for k in range(count):
        sizes = st.sampled_from([0.0, 1e9, 4e9])
        one, two = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 1))
        stages = [Stage("a", one, 0.5, 0.5, data.draw(sizes))]
        if two:
            stages.append(Stage("b", two, 0.5, 0.25, 0.0))
        links = (Link(0, 1, data.draw(sizes)),) if two else ()
        found.append(JobGraph(f"job{k}", tuple(stages), links))
    counts = tuple(data.draw(st.integers(1, 2)) for _ in found)
    release = tuple(data.draw(st.integers(0, 2)) for _ in found)
    longest = (n * longest_iteration_s(g, network) for g, n in zip(found, counts, strict=True))
    horizon = min(max(release) + sum(math.ceil(s) for s in longest), 9)
    jobs = asrpt_joint.Jobs(tuple(found), counts, release, (2, 2), network, 1.0, horizon)
    expected = brute_force(jobs)
    compiled = compile_model(asrpt_joint.build(jobs))
    if expected is None:
        with pytest.raises(SolverError, match="infeasible"):
            compiled.solve()
        return
    solution = compiled.solve(SolverOptions(absolute_gap=0.99))
    assert solution.objective == pytest.approx(expected, abs=1e-4)


def test_jobs_of_the_joint_programme_are_not_preempted() -> None:
    # With preemption the short job would go in between, for a total of 2 + 4.
    graph = JobGraph("job", (Stage("all", 2, 0.5, 0.5),))
    network = Network(100e9, 10e9, 2)
    jobs = asrpt_joint.Jobs((graph, graph), (3, 1), (0, 1), (2,), network, 1.0, 8)
    assert brute_force(jobs) == 7
    assert round(compile_model(asrpt_joint.build(jobs)).solve().objective) == 7


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)), max_size=3))
@settings(max_examples=12)
def test_one_machine_equals_srpt(rows: list[tuple[int, int, int]]) -> None:
    rows = rows or [(0, 1, 1)]
    release, duration, gpus = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    jobs = Slotted(release, duration, gpus, np.ones(len(rows)), 3, 1, True)
    solution = compile_model(asrpt_joint.one_machine(jobs)).solve()
    scaled = (3 * release).tolist(), (gpus * duration).tolist()
    assert round(solution.objective) == fluid_ticks(*scaled, [1] * len(rows), 1)


def test_a_limit_too_short_for_a_proof_is_an_error() -> None:
    rng = np.random.default_rng(0)
    stages = tuple(Stage(f"s{k}", 1, 0.01, 0.01) for k in range(24))
    pairs = itertools.combinations(range(24), 2)
    links = tuple(Link(s, t, float(rng.integers(1, 100)) * 1e6) for s, t in pairs)
    with pytest.raises(SolverError, match=r"not proven after 0\.05 s"):
        Exact("cut", "cut", 0.05).place(JobGraph("hard", stages, links), [6] * 4, NETWORK)


def test_names() -> None:
    known = graph_placements()
    assert {*QUICK, "exact", "exact-cut"} <= set(known)
    assert all(name == item.name for name, item in known.items())
    with pytest.raises(InputError, match=r"'nowhere': expected one of communities, exact"):
        graph_placement("nowhere")


@pytest.mark.parametrize("free", [[1.5, 2], [[1]], [2, -1], "44"])
def test_free_gpus_are_checked(free: object) -> None:
    with pytest.raises(InputError, match="free GPUs"):
        as_free(free)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "match"),
    [({"objective": "speed"}, "time, cut"), ({"time_limit_s": 0.0}, "seconds > 0")],
)
def test_exact_parameters_are_checked(changes: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Exact(**changes)  # type: ignore[arg-type]


GRAPH = """
name: translation
stages:
  - {name: encoder, replicas: 4, forward_s: 0.03, backward_s: 0.06, parameter_bytes: 4e8}
  - {name: decoder, replicas: 2, forward_s: 0.04, backward_s: 0.08, parameter_bytes: 1e8}
links:
  - {from: encoder, to: decoder, bytes_per_replica: 2e8}
"""
GRAPHS = "graphs:intra_gb_per_s"
RATES = f"{GRAPHS}=9,nic_gb_per_s=1"
NODES = "[[nodes]]\ncount = 2\ngpus = 4\nintra_gb_per_s = 100\nnic_gb_per_s = 10\n"


def place(tmp_path: Path, *arguments: str, graph: str = GRAPH) -> Result:
    app = typer.Typer()
    app.command(**shown("place graph"))(graph_command)
    path = tmp_path / "graph.yaml"
    path.write_text(graph)
    return CliRunner().invoke(app, [str(path), *arguments])


def test_place_prints_and_draws(tmp_path: Path) -> None:
    picture, nodes = tmp_path / "placed.png", tmp_path / "nodes.toml"
    nodes.write_text(NODES)
    rates = ("--with", "graphs:intra_gb_per_s=100,nic_gb_per_s=10")
    result = place(tmp_path, "--cluster", "2x4", *rates, "--json", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    report = without_origin(result.stdout)
    assert [row["node"] for row in report["mapping"]] == [0, 1]
    placed = [row["replicas"] for row in report["mapping"]]
    for name, count in (("encoder", 4), ("decoder", 2)):
        assert sum(row.get(name, 0) for row in placed) == count
    assert report["alpha_min"] <= report["alpha"] <= report["alpha_max"]
    assert report["cut"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    from_file = place(tmp_path, "--cluster", str(nodes), "--json")
    assert without_origin(from_file.stdout) == report
    assert f"cut       {report['cut']:.6g} bytes" in place(tmp_path, "--cluster", str(nodes)).stdout
    best = place(tmp_path, "--cluster", "2x4", *rates, "--json", "--placement", "exact")
    assert json.loads(best.stdout)["alpha"] <= report["alpha"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("--cluster", "2x4", "--with", "graphs:intra_gb_per_s=100"), "give nic_gb_per_s"),
        (("--cluster", "2x4", "--with", f"{GRAPHS}=0,nic_gb_per_s=1"), "intra_gb_per_s is 0"),
        (("--cluster", "1x4", "--with", RATES), "has 6 replicas, expected at most 4"),
        (("--cluster", "2x4:a,1x4:b", "--with", RATES), "expected one"),
        (("--cluster", "2x4", "--with", f"{RATES},nic_sharing=no"), "nic_sharing"),
        (("--cluster", "2x4", "--with", RATES, "--placement", "x"), "heavy-edge"),
        (("--cluster", "2x4", "--with", "restart"), "expected graphs:intra_gb_per_s="),
        (("--cluster", "2x4", "--with", f"{RATES},file=g.yaml"), "the graphs are arguments"),
    ],
)
def test_place_explains_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], match: str
) -> None:
    result = place(tmp_path, *arguments)
    assert isinstance(result.exception, InputError)
    assert match in str(result.exception)


def test_place_names_bandwidths_that_differ(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.toml"
    nodes.write_text(NODES + NODES.replace("= 100", "= 50"))
    result = place(tmp_path, "--cluster", str(nodes))
    assert "go from 50 to 100 GB/s" in str(result.exception)


@pytest.mark.parametrize(("stages", "replicas"), [(1, 1), (3, 4), (12, 2), (12, 20)])
def test_pictures_show_every_replica(stages: int, replicas: int) -> None:
    own = tuple(Stage(f"s{k}", replicas, 0.1, 0.1, 1e9) for k in range(stages))
    graph = JobGraph("job", own, tuple(Link(k, k + 1, 1e8) for k in range(stages - 1)))
    mapping = HeavyEdge().place(graph, [8] * 32, NETWORK)
    assert mapping is not None
    axes = plot_placement(graph, mapping)
    circles = sum(len(dots.get_offsets()) for dots in axes.collections[-stages:])
    groups = sum(np.count_nonzero(row) for _, row in mapping)
    assert circles == (graph.gpus if graph.gpus <= MAX_REPLICAS else groups)
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == len(mapping)
    axes.get_figure(root=True).savefig(io.BytesIO())  # type: ignore[union-attr]
