"""Sia: its programme against all choices, and where what it chooses goes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.models import sia
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.sia.sia import Sia, configurations, spread_out

SEEDS = st.integers(0, 10**6)


@settings(max_examples=25)
@given(jobs=st.integers(1, 4), seed=SEEDS)
def test_the_programme_finds_the_least_loss_of_all_choices(jobs: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    job = np.repeat(np.arange(jobs), 3)
    both = np.concatenate([draw.choice(6, 3, replace=False) for _ in range(jobs)])
    pool, gpus = both // 3, both % 3 + 1
    capacity = np.array([3, 2])
    data = sia.JobConfigurations(job, pool, gpus, draw.uniform(0.3, 1.2, 3 * jobs), capacity, jobs)
    least = np.inf
    for choice in product(range(4), repeat=jobs):
        taken = [3 * row + k for row, k in enumerate(choice) if k < 3]
        used = np.bincount(pool[taken], gpus[taken], 2)
        if (used <= capacity).all():
            waiting = jobs - len(taken)
            least = min(least, float(data.loss[taken].sum()) + data.waits * waiting)
    assert compile_model(sia.build(data)).solve().objective == pytest.approx(least, abs=1e-6)


def test_configurations_are_powers_of_two_and_whole_nodes() -> None:
    assert configurations(4, 12) == [1, 2, 4, 8, 12]
    assert configurations(6, 12) == [1, 2, 4, 6, 12]
    assert configurations(1, 3) == [1, 2, 3]
    assert configurations(8, 2) == [1, 2]


@settings(max_examples=60)
@given(power=st.integers(0, 3), nodes=st.integers(1, 6), seed=SEEDS)
def test_all_that_the_programme_can_choose_finds_a_place(power: int, nodes: int, seed: int) -> None:
    """The guarantee: on equal nodes of a power of two, whatever is held before."""
    node_gpus, draw = 2**power, np.random.default_rng(seed)
    widths = configurations(node_gpus, nodes * node_gpus)

    def chosen() -> dict[int, int]:
        left, width = nodes * node_gpus, {}
        for job in draw.permutation(2 * nodes * node_gpus).tolist():
            can = [each for each in widths if each <= left]
            if not can:
                break
            width[job] = int(draw.choice(can))
            left -= width[job]
        return width

    before = spread_out(chosen(), [node_gpus] * nodes, {})
    wanted = chosen()
    rows = spread_out(wanted, [node_gpus] * nodes, before)
    assert {job: sum(gpus for _, gpus in pieces) for job, pieces in rows.items()} == wanted
    used = np.zeros(nodes, dtype=int)
    for pieces in rows.values():
        for node, gpus in pieces:
            used[node] += gpus
        assert len(pieces) == 1 or all(gpus == node_gpus for _, gpus in pieces)
    assert (used <= node_gpus).all()


def test_who_keeps_its_width_keeps_its_nodes_where_others_fit_beside_it() -> None:
    before = {0: ((1, 2),), 1: ((0, 2),)}
    assert spread_out({0: 2, 1: 1, 2: 2}, [4, 4], before)[0] == ((1, 2),)
    # A whole node is only free if one of the two moves.
    assert set(spread_out({0: 2, 1: 2, 2: 4}, [4, 4], before)) == {0, 1, 2}


def test_numbers_of_the_policy_are_checked() -> None:
    with pytest.raises(InputError, match="expected a power of -10 to below 0"):
        Sia(power=0.5)
