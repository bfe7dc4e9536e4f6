"""Policies on faster GPUs: times are over the speed, and the bound is that of the given ones."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.compare import compare
from shadowprice.analysis.resource_augmentation import SPEEDS, speed_curve
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.speeds.augmentation import at_speed
from shadowprice.instances.workload import Workload
from shadowprice.proofs.classic.elapsed_time import srpt_completions

JOBS = Workload.from_columns(arrival_s=[0, 1, 3], gpus=1, work=[6, 2, 4])


@settings(max_examples=30)
@given(
    work=st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
    speed=st.fractions(1, 9, max_denominator=7),
)
def test_runs_are_never_faster_than_the_speed_says(work: list[int], speed: Fraction) -> None:
    seconds = [ticks / TICKS_PER_S for ticks in work]
    faster = at_speed(
        Workload.from_columns(arrival_s=[0.0] * len(work), gpus=1, work=seconds), speed
    )
    for before, after in zip(work, faster.work.tolist(), strict=True):
        ticks = Fraction(after) * TICKS_PER_S
        assert ticks == math.ceil(before / speed)


def test_srpt_at_a_speed_is_srpt_of_shorter_jobs() -> None:
    curve = speed_curve(JOBS, "1x1", ["srtf"], [1, Fraction(5, 4), 2], "completion", budget_s=0.5)
    release = [Fraction(each) for each in (0, 1, 3)]
    for row in curve.rows:
        ends = srpt_completions(release, [Fraction(p) / row.speed for p in (6, 2, 4)])
        off = row.cost_ticks / TICKS_PER_S - sum(ends)
        assert 0 <= off <= Fraction(9, TICKS_PER_S)
        # On one GPU the bound is the optimum at speed 1.
        assert row.proven_by.ticks == TICKS_PER_S * (12 + 3 + 7)


def test_at_speed_1_it_is_what_compare_says() -> None:
    curve = speed_curve(JOBS, "1x1", ["fifo", "las"], [1, 2], budget_s=0.5)
    table = compare(JOBS, "1x1", ["fifo", "las"], budget_s=0.5)
    slow = [row for row in curve.rows if row.speed == 1]
    assert [row.cost_ticks for row in slow] == [row.cost_ticks for row in table.rows]
    assert [row.factor for row in slow] == [row.factor for row in table.rows]
    assert list(curve.frame.index) == ["fifo", "las"]
    assert list(curve.frame.columns) == [1.0, 2.0]
    fast = next(row for row in curve.rows if row.speed == 2)
    assert fast.sentence().startswith("fifo at speed 2 costs at most 0.5")
    assert "at speed 1 (certified by" in fast.sentence()
    assert [row["speed"] for row in curve.to_dict()["rows"]] == ["1", "2", "1", "2"]  # type: ignore[index, attr-defined]
    assert SPEEDS[0] == 1


def test_what_is_no_speed_is_refused() -> None:
    for speed in (0.5, math.nan, math.inf, Fraction(1001)):
        with pytest.raises(InputError, match=r"speed .*: expected 1 to 1,000"):
            at_speed(JOBS, speed)
    typed = Workload.from_columns(
        arrival_s=[0], gpus=1, work=[1], throughput=[[1.0]], gpu_types=("a",)
    )
    with pytest.raises(InputError, match="rates by GPU type"):
        at_speed(typed, 2)
    with pytest.raises(InputError, match="speeds: there are none"):
        speed_curve(JOBS, "1x1", speeds=[])
    with pytest.raises(InputError, match="objective 'joy'"):
        speed_curve(JOBS, sp.Cluster.parse("1x1"), objective="joy")
