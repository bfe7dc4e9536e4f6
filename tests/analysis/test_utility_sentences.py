"""Comparisons of utilities name the class of schedules that their bound speaks of."""

from __future__ import annotations

from fractions import Fraction

import pytest

import shadowprice as sp
from shadowprice.analysis.utility.bound import CertifiedBound

JOBS = sp.Workload.from_columns(
    arrival_s=[0, 0, 360], gpus=[1, 2, 1], work=[700.0, 900.0, 300.0], weight=[1.0, 2.0, 1.0]
)


@pytest.mark.parametrize(
    ("policies", "of_class"),
    [
        (("hadar", "fifo"), "preemptive schedules"),
        (("hadar",), "preemptive schedules, in whole rounds of 360 s"),
    ],
)
def test_a_share_of_the_largest_utility_names_the_class(
    policies: tuple[str, ...], of_class: str
) -> None:
    found = sp.compare_utility(JOBS, "1x2", policies, "completion_time", budget_s=0.5)
    for row in found.rows:
        assert row.holds_for in ("preemptive schedules", of_class)
        assert f"of the largest possible utility of {row.holds_for} (certified by" in row.sentence()
        assert "any schedule" not in row.sentence()
        assert row.to_dict()["class"] == row.holds_for
    assert list(found.frame["class"]) == [row.holds_for for row in found.rows]


def test_the_class_says_what_it_leaves_out() -> None:
    words = {
        (False, False): "preemptive schedules",
        (False, True): "preemptive schedules in which nobody shares GPUs",
        (True, False): "preemptive schedules, in whole rounds of 60 s",
        (True, True): "preemptive schedules in which nobody shares GPUs, in whole rounds of 60 s",
    }
    for (rounds, unshared), expected in words.items():
        found = CertifiedBound(Fraction(1), "prices", 60.0 if rounds else None, unshared)
        assert found.holds_for == expected


def test_the_class_says_that_gangs_use_no_type_with_fewer_gpus_than_they_have() -> None:
    """Else a gang of two might run on the one v100 and on a k80, at ten times the work."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0.0, 0.0],
        gpus=[2, 1],
        work=[3600.0, 3600.0],
        throughput=[[1.0, 10.0], [1.0, 1.0]],
        gpu_types=("k80", "v100"),
    )
    (row,) = sp.compare_utility(jobs, "1x2:k80,1x1:v100", ["fifo"], budget_s=0.1).rows
    none_small = "preemptive schedules in which no gang uses a GPU type with fewer GPUs than it"
    assert row.holds_for.startswith(none_small)
    both = CertifiedBound(Fraction(1), "prices", None, unshared=True, ample_types=True)
    assert both.holds_for == (
        "preemptive schedules in which nobody shares GPUs and no gang uses a GPU type with fewer GPUs than it"
    )
