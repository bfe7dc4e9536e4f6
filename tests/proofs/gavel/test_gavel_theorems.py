"""GAVEL-round, GAVEL-share, POP and HE: the statements as laws, and their tight cases."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.models.asrpt import cut_bytes
from shadowprice.proofs.asrpt import heavy_edge
from shadowprice.proofs.gavel import pop
from shadowprice.proofs.gavel import rounds as gavel_rounds
from shadowprice.proofs.gavel import share as gavel_share
from shadowprice.solvers.gavel.policies.pop import Pop
from shadowprice.solvers.gavel.rounds import Combinations, fractions, priorities, select
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.graph_placement.heavy_edge import HeavyEdge
from shadowprice.solvers.graph_placement.protocol import graph_placement
from shadowprice.solvers.registry import allocation
from support.graph_strategies import job_graphs

few = settings(max_examples=15)


def served_by_the_rule(shares: list[Fraction], rounds: int, *, ties: bool = True) -> list[int]:
    """Who gets one GPU in each round, by the package's own mechanism."""
    n = len(shares)
    rows, one = np.arange(n), np.ones((n, 1), dtype=bool)
    queue = Combinations(rows, rows, np.ones(n, dtype=np.int64), one)
    x = np.array([[float(share)] for share in shares])
    received = np.zeros((n, 1))
    served = []
    for _ in range(rounds):
        keys = [priorities(x, fractions(received), one)]
        if ties:
            keys.append(x)
        chosen = select(queue, keys, np.array([1]))
        job = int(chosen.row[0])
        received[job] += 1.0
        served.append(job)
    return served


@given(
    parts=st.lists(st.integers(1, 30), min_size=1, max_size=7),
    rounds=st.integers(1, 60),
    ties=st.booleans(),
)
def test_the_rule_keeps_its_bounds(parts: list[int], rounds: int, ties: bool) -> None:
    shares = [Fraction(part, sum(parts)) for part in parts]
    assert gavel_rounds.check(shares, served_by_the_rule(shares, rounds, ties=ties))


@pytest.mark.parametrize("jobs", [2, 3, 10, 40])
def test_the_bounds_of_the_rule_are_tight(jobs: int) -> None:
    shares = gavel_rounds.starved_family(jobs, 10**6)
    served = served_by_the_rule(shares, jobs)
    assert served[0] == 0
    assert 1 - shares[0] == gavel_rounds.bound(shares)[0][0]
    lack = jobs * shares[0] - served.count(0)
    # The tiny fractions of the others are all that is missing.
    assert 0 < gavel_rounds.bound(shares)[0][1] - lack == Fraction((jobs - 1) ** 2, 10**6)


def test_another_rule_breaks_the_bounds() -> None:
    shares = [Fraction(1, 2), Fraction(1, 2)]
    assert gavel_rounds.check(shares, [0, 1, 1, 0])
    assert not gavel_rounds.check(shares, [0, 0, 1, 1])
    with pytest.raises(InputError, match="sum to 3/2"):
        gavel_rounds.bound([Fraction(1), Fraction(1, 2)])


@st.composite
def allocated(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Fractions of jobs of one worker on a few types, as full as random numbers make them."""
    n, types = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    gpus = np.array(draw(st.lists(st.integers(1, 3), min_size=types, max_size=types)))
    numbers = st.lists(st.integers(0, 20), min_size=n * types, max_size=n * types)
    x = np.array(draw(numbers), dtype=np.float64).reshape(n, types)
    # A little below the limits, so that rounding does not make it too much.
    x /= max(x.sum(axis=1).max(initial=0.0), (x.sum(axis=0) / gpus).max(), 1e-9) * (1 + 1e-12)
    return x, gpus


@few
@given(given=allocated(), rounds=st.integers(1, 30))
def test_a_rounding_deviates_by_less_than_a_round(
    given: tuple[np.ndarray, np.ndarray], rounds: int
) -> None:
    x, gpus = given
    found = gavel_rounds.round_robin(x, gpus, rounds)
    assert len(found) == rounds
    assert gavel_rounds.check_rounding(x, gpus, found)


def test_a_wrong_rounding_is_found() -> None:
    x, gpus = np.array([[0.5], [0.5]]), np.array([1])
    found = gavel_rounds.round_robin(x, gpus, 4)
    assert not gavel_rounds.check_rounding(x, gpus, [found[0]] * 4)
    assert not gavel_rounds.check_rounding(x, gpus, [np.ones((2, 1), dtype=np.int64)] * 4)
    with pytest.raises(InputError, match="no allocation"):
        gavel_rounds.round_robin(np.array([[1.0], [1.0]]), gpus, 4)


@st.composite
def problems(draw: st.DrawFn, *, types: int = 3, alike: bool = False) -> AllocationProblem:
    """Jobs of equal weight that can run on every type."""
    n, kinds = draw(st.integers(1, 6)), draw(st.integers(1, types))
    gangs = st.sampled_from([1, 2, 4])
    rates = st.integers(1, 40).map(float)
    gpus = [draw(gangs)] * n if alike else draw(st.lists(gangs, min_size=n, max_size=n))
    table = draw(st.lists(st.lists(rates, min_size=kinds, max_size=kinds), min_size=n, max_size=n))
    return AllocationProblem.from_columns(
        gpu_types=[f"type{k}" for k in range(kinds)],
        capacity=draw(st.lists(st.integers(1, 8), min_size=kinds, max_size=kinds)),
        throughput=table,
        gpus=gpus,
    )


def shares_of(name: str, problem: AllocationProblem) -> np.ndarray:
    found = allocation(name).allocate(problem, Workspace())
    found.verify()
    return found.alone


@few
@given(problem=st.one_of(problems(), problems(alike=True)))
def test_max_min_fairness_shares_as_claimed(problem: AllocationProblem) -> None:
    assert gavel_share.check(problem, shares_of("max_min_fairness:aware=true", problem))


@few
@given(problem=st.one_of(problems(), problems(types=1)))
def test_water_filling_is_efficient_and_fair_on_one_type(problem: AllocationProblem) -> None:
    found = shares_of("water_filling:aware=true", problem)
    assert gavel_share.check_filling(problem, found)


def test_without_its_hypothesis_the_incentive_fails() -> None:
    problem, alone = gavel_share.unequal_gangs()
    assert not gavel_share.shares_alike(problem)
    # An optimum: valid, and of the level that the programme attains.
    best = allocation("max_min_fairness:aware=true").allocate(problem, Workspace()).objective
    assert gavel_share.levels(problem, alone).min() == pytest.approx(best) == 1.0
    assert (problem.gpus @ alone <= problem.capacity).all()
    assert gavel_share.check(problem, alone)
    assert not gavel_share.has_incentive(problem, alone)
    assert gavel_share.levels(problem, alone).tolist() == [1.0, 1.0]
    # Filling repairs it, and what is left over shows in the gap.
    assert gavel_share.pareto_gap(problem, alone) == pytest.approx(2.0)
    filled = shares_of("water_filling:aware=true", problem)
    assert gavel_share.check_filling(problem, filled)
    assert not gavel_share.check_filling(problem, alone)


def test_weights_are_refused() -> None:
    problem = AllocationProblem.from_columns(
        gpu_types=["gpu"], capacity=[1], throughput=[[1.0], [1.0]], weight=[1.0, 2.0]
    )
    with pytest.raises(InputError, match="expected equal weights"):
        gavel_share.bound(problem)


@few
@given(problem=problems(), parts=st.integers(1, 4), seed=st.integers(0, 99))
def test_parts_lose_at_most_their_number(problem: AllocationProblem, parts: int, seed: int) -> None:
    found = Pop(parts=parts, seed=seed).allocate(problem, Workspace())
    assert pop.check(parts, found)


def test_parts_of_no_jobs_lose_nothing() -> None:
    problem = AllocationProblem.from_columns(
        gpu_types=["gpu"], capacity=[1], throughput=np.zeros((0, 1))
    )
    assert pop.bound(problem, 3) == (0.0, 0.0)
    assert pop.check(3, Pop(parts=3).allocate(problem, Workspace()))


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_parts_can_lose_their_number(parts: int) -> None:
    problem = pop.unlucky_family(parts, seed=7)
    found = allocation(f"pop:parts={parts},seed=7").allocate(problem, Workspace())
    least, most = pop.bound(problem, parts)
    assert found.objective == pytest.approx(least)
    assert most == pytest.approx(parts * least)
    # Other deals of the same jobs lose less.
    others = [
        allocation(f"pop:parts={parts},seed={seed}").allocate(problem, Workspace()).objective
        for seed in range(20)
    ]
    assert max(others) > 1.2 * least


networks = st.builds(
    Network,
    st.sampled_from([5e9, 100e9]),
    st.sampled_from([1e9, 10e9, 200e9]),
    st.just(8),
    st.sampled_from(["per-gpu", "per-job"]),
)


@given(
    graph=job_graphs(),
    free=st.lists(st.integers(0, 8), min_size=1, max_size=6),
    network=networks,
)
def test_heavy_edge_is_between_its_bounds(
    graph: JobGraph, free: list[int], network: Network
) -> None:
    placed = HeavyEdge().place(graph, np.array(free), network)
    assert heavy_edge.check(graph, free, network, placed)


@given(graph=job_graphs(), network=networks)
def test_the_bounds_of_an_iteration_are_in_order(graph: JobGraph, network: Network) -> None:
    least, most = heavy_edge.bound(graph, network)
    assert 0 < least <= most


@pytest.mark.parametrize("k", [3, 5, 8])
def test_heavy_edge_cuts_k_minus_one_times_the_least(k: int) -> None:
    graph, network = heavy_edge.clique_family(k), Network(100e9, 10e9, 8)
    greedy = graph_placement("heavy-edge").place(graph, [k, k], network)
    assert greedy is not None
    cut = (tuple([1] * k + [0] * k), tuple([0] * k + [1] * k))
    assert cut_bytes(graph, greedy) == (k - 1) * cut_bytes(graph, ((0, cut[0]), (1, cut[1])))
