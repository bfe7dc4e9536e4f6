"""Other arrivals for the same jobs: a load, a shuffle, Poisson times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.rescaling import (
    offered_load,
    shuffled,
    with_load,
    with_poisson_arrivals,
)
from shadowprice.instances.workload import Workload

CLUSTER = Cluster.parse("4x4")
JOBS = generate("lognormal", jobs=200, seed=3, gpus_total=16)


@given(st.floats(0.05, 3.0))
def test_jobs_offer_the_load_and_stay_what_they_are(load: float) -> None:
    moved = with_load(JOBS, CLUSTER, load)
    assert offered_load(moved, CLUSTER) == pytest.approx(load, rel=1e-6)
    assert moved.arrival_s[0] == JOBS.arrival_s[0]
    for name in ("id", "gpus", "work"):
        assert np.array_equal(getattr(moved, name), getattr(JOBS, name))


def test_a_load_is_gpu_time_over_that_of_the_cluster() -> None:
    jobs = Workload.from_columns(arrival_s=[5, 15], gpus=[2, 4], work=[10, 20])
    assert offered_load(jobs, Cluster.parse("1x4")) == (20 + 80) / (4 * 10)
    typed = Workload.from_columns(
        arrival_s=[0, 10],
        gpus=[1, 9],
        work=[10, 10],
        throughput=[[1, 2], [1, 2]],
        gpu_types=("slow", "fast"),
    )
    assert offered_load(typed, Cluster.parse("1x4:slow,1x4:fast")) == 5 / (8 * 10)


@pytest.mark.parametrize("draw", [shuffled, with_poisson_arrivals])
def test_the_same_jobs_come_in_another_order_by_the_seed(draw: object) -> None:
    moved, again, other = (draw(JOBS, seed) for seed in (1, 1, 2))  # type: ignore[operator]
    assert moved == again
    assert moved != other
    rows = [JOBS.row_of[name] for name in moved.id.tolist()]
    assert sorted(rows) == list(range(len(JOBS)))
    assert rows != sorted(rows)
    assert np.array_equal(moved.work, JOBS.work[rows])
    assert np.array_equal(moved.gpus, JOBS.gpus[rows])


def test_times_are_kept_by_a_shuffle_and_have_the_rate_under_poisson() -> None:
    assert np.array_equal(shuffled(JOBS, 1).arrival_s, JOBS.arrival_s)
    span_s = np.ptp(JOBS.arrival_s)
    spans = [np.ptp(with_poisson_arrivals(JOBS, seed).arrival_s) / span_s for seed in range(200)]
    assert np.mean(spans) == pytest.approx(1.0, abs=0.02)
    gaps = np.diff(with_poisson_arrivals(JOBS, 5).arrival_s)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.25)


def test_a_deadline_stays_as_far_from_its_job() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 10], gpus=1, work=5, deadline_s=[7, np.inf])
    moved = with_load(jobs, Cluster.parse("1x1"), 0.5)
    assert moved.arrival_s.tolist() == [0.0, 20.0]
    assert moved.deadline_s.tolist() == [7.0, np.inf]
    swapped = next(each for each in (shuffled(jobs, s) for s in range(9)) if each.id[0] == "1")
    assert swapped.deadline_s.tolist() == [np.inf, 17.0]


def test_jobs_that_come_at_once_have_no_rate() -> None:
    jobs = Workload.from_columns(arrival_s=[3, 3], gpus=1, work=5)
    for change in (
        lambda: with_load(jobs, CLUSTER, 0.5),
        lambda: with_poisson_arrivals(jobs, 1),
        lambda: with_load(JOBS, CLUSTER, 0.0),
    ):
        with pytest.raises(InputError):
            change()
