"""AFS: its rule, and the bound of elastic shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.solvers.afs.afs import shares
from shadowprice.solvers.afs.least_total import least_total_s

SPEEDS = st.integers(0, 10**6).map(np.random.default_rng)


def drawn(draw: np.random.Generator, jobs: int, gpus: int) -> np.ndarray:
    """Concave speeds."""
    steps = np.sort(draw.uniform(0.001, 0.1, (jobs, gpus)), axis=1)[:, ::-1]
    return np.concatenate([np.zeros((jobs, 1)), np.cumsum(steps, axis=1)], axis=1)


def total_s(speed: np.ndarray, gpus: int) -> float:
    """Sum of completion times of jobs that are all there, with shares at completions."""
    left, now_s, total = dict.fromkeys(range(len(speed)), 1.0), 0.0, 0.0
    while left:
        width = shares({job: (speed[job] / left[job]).tolist() for job in left}, gpus)
        assert sum(width.values()) <= gpus
        ends = {job: left[job] / speed[job][k] for job, k in width.items() if k}
        first = min(ends, key=ends.__getitem__)
        now_s += ends[first]
        for job, k in width.items():
            left[job] -= speed[job][k] * ends[first]
        del left[first]
        total += now_s
    return total


@settings(max_examples=20)
@given(draw=SPEEDS, jobs=st.integers(1, 3), gpus=st.integers(1, 4))
def test_no_shares_are_below_the_bound(draw: np.random.Generator, jobs: int, gpus: int) -> None:
    speed = drawn(draw, jobs, gpus)
    assert total_s(speed, gpus) >= least_total_s(speed, gpus) * (1 - 1e-9)


def test_the_bound_of_one_job_is_its_time_on_all_gpus() -> None:
    assert least_total_s(np.array([[0.0, 0.01, 0.019]]), 2) == pytest.approx(1 / 0.019)


def test_more_jobs_than_gpus_are_served_shortest_first() -> None:
    speed = {0: [0.0, 0.01], 1: [0.0, 0.03], 2: [0.0, 0.02]}
    assert shares(speed, 2) == {0: 0, 1: 1, 2: 1}


def test_a_gpu_goes_where_pairs_say() -> None:
    # The short job gains a tenth on a second GPU, the long one would lose half without it.
    assert shares({0: [0.0, 0.1, 0.11], 1: [0.0, 0.01, 0.02]}, 3) == {0: 1, 1: 2}
    # The short job gains all that the long one would lose, and more.
    assert shares({0: [0.0, 0.1, 0.2], 1: [0.0, 0.01, 0.012]}, 3) == {0: 2, 1: 1}


def test_widths_at_which_a_job_is_no_faster_are_left_out() -> None:
    assert shares({0: [0.0, 0.1, 0.1, 0.3]}, 3) == {0: 3}
    assert shares({0: [0.0, 0.1, 0.1, 0.3]}, 2) == {0: 1}
    assert shares({0: [0.0, 0.0]}, 1) == {0: 0}


def test_speeds_are_checked() -> None:
    with pytest.raises(InputError, match="expected 1 to 6 jobs and 3 widths"):
        least_total_s(np.zeros((1, 2)), 2)
    with pytest.raises(InputError, match="expected a speed above 0"):
        least_total_s(np.zeros((1, 3)), 2)
