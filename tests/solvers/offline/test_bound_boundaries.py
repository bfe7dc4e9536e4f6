"""Bounds where they would first be wrong: values beyond the last interval, grids that end too early."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.proofs.checker import Rejected
from shadowprice.proofs.checker.bounds import BOUNDS
from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.solvers.offline import lagrangian
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.modes.types import gang_uses
from shadowprice.solvers.offline.typed_bound import TypedPrices, typed_bound


@given(data=st.data())
def test_any_value_of_work_and_any_grid_give_a_bound(data: st.DataObject) -> None:
    """One job costs its weight times release and shortest run, whatever values and prices are."""
    weight = Fraction(data.draw(st.integers(0, 5)), data.draw(st.integers(1, 3)))
    times = data.draw(st.lists(st.integers(1, 40), min_size=2, max_size=2))
    begin = data.draw(st.integers(0, 30))
    uses = gang_uses(np.array([1]), 2)
    jobs = ModeTable(np.array([begin]), (weight,), np.array([times]), np.array([1, 2]), *uses)
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    prices = st.lists(
        st.integers(0, PRICE_UNIT), min_size=2 * len(lengths), max_size=2 * len(lengths)
    )
    given_ = TypedPrices(
        np.cumsum([0, *lengths]), np.array(data.draw(prices)).reshape(len(lengths), 2)
    )
    value = data.draw(st.sampled_from([0.0, 0.5, 10.0, 100.0, 1e9]))
    alone = weight * (begin + min(times))
    found = typed_bound(jobs, given_, np.array([value]))
    assert found <= alone
    # Beyond the last interval a value says nothing more.
    end = float(weight * int(given_.bounds[-1]))
    assert value <= end or found == typed_bound(jobs, given_, np.array([1e12]))


def test_a_value_is_cut_at_the_end_of_the_grid() -> None:
    """Ten ticks of work, four of them before the end of the grid: half of the run and no more than 4."""
    uses = gang_uses(np.array([1]), 2)
    times = np.array([[10, 20]])
    jobs = ModeTable(np.array([0]), (Fraction(1),), times, np.array([1, 1]), *uses)
    given_ = TypedPrices(np.array([0, 4]), np.zeros((1, 2), dtype=np.int64))
    assert 0 < typed_bound(jobs, given_, np.array([1e6])) <= 9
    for wrong in (
        TypedPrices(np.array([4, 4]), given_.prices),
        TypedPrices(given_.bounds, given_.prices - 1),
    ):
        with pytest.raises(ValueError, match="not increasing, or a price is negative"):
            typed_bound(jobs, wrong)


def test_the_checker_asks_for_a_grid_as_long_as_all_work() -> None:
    """All work one after the other after the last arrival ends at 15: not one tick earlier."""
    weight = [Fraction(1), Fraction(3)]
    jobs = LeastWork([2, 5], weight, [4, 6], [4, 12], [1, 2], 2, 2, 1, gangs=True)
    bound = BOUNDS["interval-lp"]
    # Free GPUs: begin at once, in halves of at most the run time.
    alone = 1 * (2 + 4 - 2 // 2) + 3 * (5 + 6)
    for grid in ([2, 15], [0, 15], [2, 16]):
        assert 0 < bound(jobs, {"grid": grid, "prices": [0]}) <= alone + 1
    for grid, says in (([2, 14], "too early"), ([3, 15], "too late"), ([15, 15], "not increase")):
        with pytest.raises(Rejected, match=says):
            bound(jobs, {"grid": grid, "prices": [0]})


def test_the_scale_of_weights_is_a_power_of_two_near_the_largest() -> None:
    for weight, scale in (([5.0, 1.0], 4.0), ([0.3], 0.25), ([0.0, 0.0], 1.0), ([], 1.0)):
        assert lagrangian.weight_scale(np.array(weight)) == scale


def test_prices_beyond_whole_numbers_of_the_machine_are_counted_exactly() -> None:
    """Nobody works where GPUs are dear, so that dearer ones only cost their rent."""
    work, capacity, prices = 10**6, 8, (2**20, 2**54)

    def bound(price: int) -> Fraction:
        bounds = [0, work, 2 * work]
        one = [Fraction(1)]
        dear = np.array([0, price], dtype=np.int64)
        return lagrangian.interval_bound([0], [work], [8], one, capacity, bounds, dear)

    cheap, dear = map(bound, prices)
    rents = Fraction(capacity * work * (prices[1] - prices[0]), PRICE_UNIT)
    assert dear - cheap == -rents
