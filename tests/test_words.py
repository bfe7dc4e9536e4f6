"""Claims in words, each with what would break it: names, definitions, exceptions, hypotheses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis import hadar_metrics, metrics
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S

# Finish-time fairness: n is the number of jobs present.


def counted(arrival_s: list[int], end_s: list[int]) -> list[float]:
    """Jobs present by looking at every second of every stay."""
    stays = list(zip(arrival_s, end_s, strict=True))
    return [
        sum(sum(r <= t < c for r, c in stays) for t in range(own, done)) / (done - own)
        for own, done in stays
    ]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 15)), min_size=1, max_size=8))
def test_jobs_present_are_counted_second_by_second(stays: list[tuple[int, int]]) -> None:
    arrival = [r for r, _ in stays]
    end = [r + length for r, length in stays]
    found = metrics.jobs_present(np.array(arrival, dtype=float), np.array(end, dtype=float))
    assert found.tolist() == pytest.approx(counted(arrival, end), rel=1e-15)


def test_jobs_present_are_exact_where_sums_of_floats_are_not() -> None:
    """A tick beside 3,000 jobs of 100 years: their sum needs 84 bits."""
    years = 2.0**31
    arrival = np.concatenate((np.zeros(3000), [years / 2], [years / 2 + 1 / TICKS_PER_S]))
    end = np.concatenate((np.full(3000, years), arrival[-2:] + 1 / TICKS_PER_S))
    found = metrics.jobs_present(arrival, end)
    assert found[-2:].tolist() == [3001.0, 3001.0]
    assert found[0] == 3000.0 + 2 / TICKS_PER_S / years


def test_a_job_alone_in_its_time_is_fair_however_many_others_the_trace_has() -> None:
    """Jobs that never meet each have the cluster to themselves, and take as long as they do alone."""
    many = sp.Workload.from_columns(arrival_s=np.arange(50) * 100.0, gpus=[1] * 50, work=[10] * 50)
    summary = sp.simulate(many, "1x1", "fifo").summary()
    assert (summary["mean_ftf"], summary["max_ftf"]) == (1.0, 1.0)


def test_fairness_does_not_depend_on_how_often_a_trace_is_repeated() -> None:
    jobs = {"gpus": [1, 2, 1], "work": [10, 20, 30]}
    once = sp.Workload.from_columns(arrival_s=[0, 1, 2], **jobs)
    twice = sp.Workload.from_columns(
        arrival_s=[0, 1, 2, 1000, 1001, 1002], gpus=jobs["gpus"] * 2, work=jobs["work"] * 2
    )
    one, two = (sp.simulate(each, "1x2", "srtf").summary() for each in (once, twice))
    assert (one["mean_ftf"], one["max_ftf"]) == (two["mean_ftf"], two["max_ftf"])
    assert one["mean_ftf"] != 0


def test_shares_by_hand() -> None:
    """One GPU: 10 s from 0, 10 s from 5. The first is there with 1, then 2; fifo."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 5], gpus=[1, 1], work=[10, 10])
    found = hadar_metrics.of_outcome(sp.simulate(jobs, "1x1", "fifo"))
    # 1.5 jobs in 0-10: 15 s alone. From 5 to 20: 5 s with 2, 10 s with 1: 4/3, 40/3 s alone.
    assert found.mean_ftf == pytest.approx((10 / 15 + 15 / (40 / 3)) / 2)
    fixed = hadar_metrics.of_outcome(sp.simulate(jobs, "1x1", "fifo"), sharing=2)
    assert fixed.mean_ftf == pytest.approx((10 / 20 + 15 / 20) / 2)
    with pytest.raises(InputError, match="sharing is 0"):
        hadar_metrics.of_outcome(sp.simulate(jobs, "1x1", "fifo"), sharing=0)
    assert math.isfinite(found.max_ftf or math.inf)
