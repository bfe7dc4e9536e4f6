"""Comparisons of utilities name the class of schedules that their bound speaks of."""

from __future__ import annotations

import io
from fractions import Fraction

import pytest

import shadowprice as sp
from shadowprice.analysis.certify_utility import certify_utility
from shadowprice.proofs import checker

JOBS = sp.Workload.from_columns(
    arrival_s=[0, 0, 360], gpus=[1, 2, 1], work=[700.0, 900.0, 300.0], weight=[1.0, 2.0, 1.0]
)
TYPED_JOBS = sp.Workload.from_columns(
    arrival_s=[0.0, 0.0],
    gpus=[2, 1],
    work=[3600.0, 3600.0],
    throughput=[[1.0, 10.0], [1.0, 1.0]],
    gpu_types=("k80", "v100"),
)
ALONE = "preemptive schedules in which no two jobs share a GPU"


@pytest.mark.parametrize(
    ("policies", "of_class"),
    [
        (("hadar", "fifo"), ALONE),
        (("hadar",), f"{ALONE}, in whole rounds of 360.0 s"),
    ],
)
def test_a_share_of_the_largest_utility_names_the_class(
    policies: tuple[str, ...], of_class: str
) -> None:
    found = sp.compare_utility(JOBS, "1x2", policies, "completion_time", budget_s=0.5)
    for row in found.rows:
        assert row.holds_for in (ALONE, of_class)
        assert f"of the largest possible utility of {row.holds_for} (certified by" in row.sentence()
        assert "any schedule" not in row.sentence()
        assert row.to_dict()["class"] == row.holds_for
    assert list(found.frame["class"]) == [row.holds_for for row in found.rows]


@pytest.mark.parametrize("name", ["hadar", "fifo"])
@pytest.mark.parametrize("utility", ["completion_time", "deadline"])
def test_what_compare_prints_is_what_certify_writes_and_the_checker_accepts(
    name: str, utility: str
) -> None:
    """Of the same prices: each job alone, those of the run, and the same steps from them."""
    for jobs, cluster in ((JOBS, "1x2"), (TYPED_JOBS, "1x2:k80,1x1:v100")):
        found = sp.compare_utility(jobs, cluster, [name], utility, budget_s=0.0)
        (row,) = found.rows
        written = certify_utility(found.outcomes[name], utility, budget_s=0.0)
        claim = checker.check_lines(io.StringIO(written.text))
        assert row.holds_for == written.of_class == claim["class"]
        assert found.bound.kind == written.bound_kind
        assert Fraction(claim["bound"]) >= found.bound.value
        assert (row.bound, row.bound_kind) == (written.bound, "each job alone")
        assert row.utility == float(written.earned)
        assert row.ratio == pytest.approx(written.ratio)


def test_the_class_says_that_gangs_use_no_type_with_fewer_gpus_than_they_have() -> None:
    """Else a gang of two might run on the one v100 and on a k80, at ten times the work."""
    (row,) = sp.compare_utility(TYPED_JOBS, "1x2:k80,1x1:v100", ["fifo"], budget_s=0.1).rows
    assert "no gang uses a GPU type with fewer GPUs than it" in row.holds_for
