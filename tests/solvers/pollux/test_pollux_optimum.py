"""Pollux' round: the programme against all matrices, and the search against the programme."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.goodput.allocation_costs import AllocationCosts
from shadowprice.solvers.pollux.optimum import best_matrix
from shadowprice.solvers.pollux.search import searched
from support.elastic_rounds import drawn_round, least_cost

SEEDS = st.integers(0, 10**6)


@settings(max_examples=12)
@given(jobs=st.integers(1, 3), nodes=st.integers(1, 2), seed=SEEDS, avoid=st.booleans())
def test_the_programme_finds_the_least_cost_of_all_matrices(
    jobs: int, nodes: int, seed: int, avoid: bool
) -> None:
    costs = drawn_round(jobs, nodes, np.random.default_rng(seed), avoid=avoid)
    found, least = best_matrix(costs), least_cost(costs)
    assert costs.allows(found.matrix)
    assert found.cost == pytest.approx(least, rel=1e-6)
    assert found.bound <= least * (1 + 1e-9)
    assert found.missed(found.cost) <= 1e-5
    assert found.missed(2 * found.bound) == pytest.approx(0.5)


@settings(max_examples=25)
@given(jobs=st.integers(1, 8), nodes=st.integers(1, 5), seed=SEEDS, avoid=st.booleans())
def test_a_search_gives_what_the_round_allows_and_no_worse_than_what_is_held(
    jobs: int, nodes: int, seed: int, avoid: bool
) -> None:
    costs = drawn_round(jobs, nodes, np.random.default_rng(seed), gpus=4, avoid=avoid)
    wild = np.random.default_rng(seed).integers(0, 5, (3, jobs, nodes)).astype(np.int8)
    start = np.concatenate([costs.held[None], wild])
    found = searched(costs, start, np.random.default_rng(seed), size=10, generations=5)
    assert all(costs.allows(matrix) for matrix in found)
    values = [costs.of(matrix) for matrix in found]
    assert values == sorted(values)
    assert values[0] <= costs.of(costs.held)
    assert len({matrix.tobytes() for matrix in found}) == len(found)
    again = searched(costs, start, np.random.default_rng(seed), size=10, generations=5)
    assert np.array_equal(found, again)


@pytest.mark.parametrize("seed", range(6))
def test_a_search_of_a_few_jobs_finds_the_optimum(seed: int) -> None:
    costs = drawn_round(3, 3, np.random.default_rng(seed), gpus=2)
    found = searched(costs, costs.held[None], np.random.default_rng(seed))
    assert costs.of(found[0]) == pytest.approx(best_matrix(costs).cost, rel=1e-6)


def test_only_without_avoidance_two_jobs_across_nodes_share_one() -> None:
    """Both are fastest, and as fast as each other, with three GPUs of three nodes of two."""
    speed = np.broadcast_to(np.arange(7.0), (2, 2, 7))
    held, waits = np.zeros((2, 3), dtype=np.int8), np.full(2, 1e3)
    rest = 1 / (speed + 1e-3), waits, held, np.full(2, 3), np.full(3, 2)
    for avoid, width in ((False, [3, 3]), (True, [2, 3])):
        costs = AllocationCosts(*rest, avoid)
        for matrix in (
            best_matrix(costs).matrix,
            searched(costs, held[None], np.random.default_rng(0))[0],
        ):
            assert sorted(matrix.sum(axis=1).tolist()) == width


def test_costs_are_for_as_many_jobs_and_nodes() -> None:
    costs = drawn_round(2, 2, np.random.default_rng(0))
    parts = costs.by_width, costs.unchanged, costs.held, costs.most
    with pytest.raises(InputError, match="expected 2 jobs and 2 nodes"):
        AllocationCosts(*parts, np.array([2]))
    with pytest.raises(InputError, match="expected at most 127"):
        AllocationCosts(*parts, np.array([2, 128]))
