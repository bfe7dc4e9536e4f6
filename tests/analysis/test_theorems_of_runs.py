"""Factors of theorems stand beside certified ones, and those that say nothing are said to."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.guarantees.any_order import KNOWS, any_order_ticks
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    UnmetHypotheses,
    compare_with_certificate,
)
from shadowprice.cli.app import app
from shadowprice.instances.features import Feature
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from support.feature_instances import instance_with

JOBS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=7)


@given(JOBS, st.permutations(range(7)), st.sampled_from([Objective.COMPLETION, Objective.FLOW]))
def test_one_after_another_costs_no_more(
    jobs: list[tuple[int, int]], order: list[int], goal: Objective
) -> None:
    """Whichever of those that are there comes next."""
    arrival, work = zip(*sorted(jobs), strict=True)
    instance = sp.Instance(
        sp.Cluster.parse("1x2"),
        sp.Workload.from_columns(arrival_s=list(arrival), gpus=[1] * len(jobs), work=list(work)),
    )
    end, now = [0] * len(jobs), 0
    left = [k for k in order if k < len(jobs)]
    while left:
        now = max(now, min(arrival[k] for k in left))
        chosen = next(k for k in left if arrival[k] <= now)
        now += work[chosen]
        end[chosen] = now
        left.remove(chosen)
    most = any_order_ticks(instance, goal)
    assert most is not None
    assert exact_cost(instance, goal, np.array(end, dtype=np.float64)) <= most


def test_the_longest_first_from_one_moment_on_attains_it() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[5, 5], gpus=[1, 1], work=[1, 3])
    instance = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    tick = Fraction(1, 2**20)
    assert any_order_ticks(instance, Objective.COMPLETION) == (8 + 9) / tick
    assert any_order_ticks(instance, Objective.FLOW) == (3 + 4) / tick
    assert any_order_ticks(instance, Objective.MAKESPAN) is None
    heavy = sp.Workload.from_columns(arrival_s=[5, 5], gpus=[1, 1], work=[1, 3], weight=[1, 2])
    assert any_order_ticks(sp.Instance(instance.cluster, heavy), Objective.FLOW) is None


@pytest.mark.parametrize("feature", [each for each in Feature if each not in KNOWS])
def test_nothing_is_said_of_any_order_where_more_than_run_times_decides(feature: Feature) -> None:
    assert any_order_ticks(instance_with(feature), Objective.COMPLETION) is None


def test_of_job_graphs_the_longest_run_counts() -> None:
    """Each of the jobs may be where its iterations take longest."""
    instance = instance_with(Feature.GRAPHS)
    graphs = instance.graphs
    assert graphs is not None
    longest_s = instance.workload.work * graphs.longest_iteration_s[graphs.of]
    assert (longest_s > instance.shortest_s).any()
    most = any_order_ticks(instance, Objective.COMPLETION)
    assert most is not None
    waited_s = sum((k + 1) * each for k, each in enumerate(sorted(longest_s.tolist())))
    last_s = float(instance.workload.arrival_s.max())
    assert float(most) / 2**20 == pytest.approx(4 * last_s + waited_s)


def test_a_factor_needs_a_certified_one_beside_it() -> None:
    allowed = ScheduleClass(preemptive=True)
    stated = FactorGuarantee("T", "total flow time", Fraction(5), allowed, "and more")
    assert compare_with_certificate(stated, "p", None, None) is None
    told = compare_with_certificate(stated, "p", Fraction(3, 2), Fraction(6))
    assert told is not None
    assert told.endswith("certified for this run: 1.5x")
    vacuous = compare_with_certificate(stated, "p", Fraction(3, 2), Fraction(5))
    assert vacuous is not None
    assert vacuous.endswith("one job after another, in any order, costs at most 5x")
    silent = UnmetHypotheses("T", ("this",))
    assert compare_with_certificate(silent, "p", None, None) == silent.sentence("p")
    assert KnownBound("T", Fraction(2)).sentence() == "at most 2x by T"


def test_compare_says_that_a_factor_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("id,gpus,submit,duration\na,1,0,1\nb,1,1,1\n")
    words = ["compare", str(path), "--cluster", "1x2", "--policies", "asrpt", "--budget", "1"]
    words += ["--objective", "completion"]
    app(words, standalone_mode=False)
    printed = capsys.readouterr().out
    assert "by ASRPT-sharper" in printed
    assert "certified for this run: 1.334x; no better than any order" in printed
