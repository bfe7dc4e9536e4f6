"""Limits of what any scheduler could gain: never below what one does gain, on the same instance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.limits import Measure, limit, limits
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy as policy_by_name
from support.typed_jobs import least_slotted_costs, slotted_instances, typed_instances

POLICIES = (
    "fifo",
    "srtf",
    "las2d",
    "hadar",
    "gavel:max_min_fairness:aware=true,round_s=10",
)


def outcome_of(instance: Instance, policy: str) -> Outcome:
    return Outcome.verified(instance, run(instance, policy_by_name(policy)).schedule, policy=policy)


def measured(outcome: Outcome, measure: Measure, rows: np.ndarray) -> float:
    """The measure from its definition."""
    ends, jobs = outcome.end_s[rows], outcome.instance.workload
    if measure is Measure.MEAN_JCT:
        return float(np.mean(ends - jobs.arrival_s[rows]))
    if measure is Measure.MAKESPAN:
        return float(ends.max() - jobs.arrival_s[rows].min())
    starts = outcome.schedule.start_s[np.isin(outcome.schedule.job, rows)]
    return float(ends.max() - starts.min())


@settings(max_examples=4, deadline=None)
@given(
    instance=typed_instances(max_jobs=6),
    policies=st.lists(st.sampled_from(POLICIES), min_size=2, max_size=2),
    start_s=st.sampled_from([0.0, 2.0]),
    data=st.data(),
)
def test_no_policy_is_better_by_more(
    instance: Instance, policies: list[str], start_s: float, data: st.DataObject
) -> None:
    """Of all jobs, and of some of them."""
    given_ = replace(instance, overheads=Overheads(start_s=start_s, restart_s=1.0))
    baseline, other = (outcome_of(given_, name) for name in policies)
    n = len(instance.workload)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    for mine in (np.arange(n), rows):
        for measure, found in limits(baseline, jobs=mine, columns=400).items():
            assert found.cost == pytest.approx(measured(baseline, measure, mine))
            assert found.jobs == len(mine)
            gain = measured(baseline, measure, mine) / measured(other, measure, mine)
            assert gain <= found.factor * (1 + 1e-12)


@settings(max_examples=5, deadline=None)
@given(instance=slotted_instances())
def test_exhaustive_search_does_not_gain_more(instance: Instance) -> None:
    least = least_slotted_costs(instance, 7)
    arrivals = [Fraction(each) for each in instance.workload.arrival_s.tolist()]
    best = {
        Measure.MEAN_JCT: (least.total_s - sum(arrivals)) / len(arrivals),
        Measure.MAKESPAN: least.last_s - min(arrivals),
    }
    for measure, value in best.items():
        found = limit(outcome_of(instance, "fifo"), measure, columns=400)
        assert found.bound_ticks / TICKS_PER_S <= value
        assert found.factor >= found.cost / float(value) * (1 - 1e-12)


def test_a_limit_that_is_reached() -> None:
    """Two jobs on one GPU, long before short: shortest first has mean 6 s, and nothing is better."""
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 2])
    instance = Instance(sp.Cluster.parse("1x1"), jobs)
    found = limits(outcome_of(instance, "fifo"))
    assert found[Measure.MEAN_JCT].factor == 1.5
    assert found[Measure.TTD].factor == found[Measure.MAKESPAN].factor == 1.0
    assert limit(outcome_of(instance, "srtf"), "mean JCT").factor == 1.0
    assert found[Measure.MEAN_JCT].sentence() == (
        "none of all preemptive schedules is more than 1.5x better than fifo's mean JCT of 9 s "
        "(certified by fluid)"
    )
    assert found[Measure.TTD].to_dict()["bound_s"] == 10.0


def test_of_a_run_that_ends_with_a_window_that_window_is_measured() -> None:
    """Two GPUs, two jobs at a time; the run ends when jobs 2 and 3 are complete, and not job 4."""
    jobs = Workload.from_columns(
        arrival_s=[0, 0, 0, 0, 0, 100], gpus=[1] * 6, work=[6, 6, 4, 2, 50, 1]
    )
    outcome = sp.simulate(jobs, "1x2", "fifo", sp.RunOptions(until_complete=sp.JobWindow(2, 4)))
    found = limit(outcome, Measure.MEAN_JCT)
    assert found.jobs == 2
    assert found.cost == 9.0  # They end at 10 and 8, and could at 4 and 2.
    assert found.bound == 3.0
    assert limit(outcome, Measure.TTD).cost == limit(outcome, Measure.TTD).bound == 4.0
    with pytest.raises(InputError, match="job '4' is measured and the run ended before it was"):
        limit(outcome, Measure.MEAN_JCT, jobs=np.arange(5))


def test_who_waits_for_all_has_a_shorter_ttd() -> None:
    """With arrivals at 0 and 9 FIFO takes 10 s from first start to last end; two GPUs could take 1."""
    jobs = Workload.from_columns(arrival_s=[0, 9], gpus=[1, 1], work=[1, 1])
    baseline = outcome_of(Instance(sp.Cluster.parse("1x2"), jobs), "fifo")
    found = limits(baseline)
    assert found[Measure.TTD].factor == 10.0
    assert found[Measure.MAKESPAN].factor == 1.0


def test_fast_gpus_that_are_scarce_count() -> None:
    """Gavel at rest: one pool of the fastest GPUs would allow twice what types do."""
    n = 40
    jobs = Workload.from_columns(
        arrival_s=np.zeros(n),
        gpus=np.ones(n),
        work=np.arange(1, n + 1) * 100,
        throughput=[[0.2, 1.0]] * n,
        gpu_types=("k80", "v100"),
    )
    baseline = outcome_of(
        Instance(sp.Cluster.parse("2x4:k80,1x8:v100"), jobs), "gavel:max_min_fairness:aware=true"
    )
    found = limit(baseline, Measure.MEAN_JCT, columns=2_000)
    assert found.proven_by.kind in {"priced-mean-busy-time", "typed-interval-lp"}
    assert found.proven_by.certified
    assert limit(baseline, Measure.MEAN_JCT, columns=2_000).bound_ticks == found.bound_ticks
    assert limit(baseline, Measure.TTD).proven_by.kind == "priced-span"


def test_what_limits_are_not_about() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 2], model=["a", "b"])
    instance = Instance(sp.Cluster.parse("2x1"), jobs)
    outcome = outcome_of(instance, "fifo")
    with pytest.raises(InputError, match="measure 'p99': expected one of mean JCT, TTD, makespan"):
        limit(outcome, "p99")
    for rows, message in (
        ([], "no jobs are measured"),
        ([2], "from 0 to 1"),
        ([-1], "from 0 to 1"),
    ):
        with pytest.raises(InputError, match=message):
            limit(outcome, Measure.TTD, jobs=np.array(rows, dtype=np.int64))
    rates = Throughputs(
        alone={("a", 1): (1.0,), ("b", 1): (1.0,)},
        pairs={("gpu", ("a", 1), ("b", 1)): (0.8, 0.8)},
        gpu_types=("gpu",),
    )
    shared = Outcome(replace(instance, sharing_rates=rates), outcome.schedule, "fifo")
    assert limit(shared, Measure.MEAN_JCT).proven_by.holds_for.sharing
    with pytest.raises(InputError, match="limits of 1 of 2 jobs are for instances in which nobody"):
        limit(shared, Measure.MEAN_JCT, jobs=np.array([0]))
    stopped = replace(instance, stopped_s=60.0)
    with pytest.raises(InputError, match="for the run was stopped, not known to limits"):
        limit(replace_instance(outcome, stopped), Measure.TTD)


def replace_instance(outcome: Outcome, instance: Instance) -> Outcome:
    """An outcome that says it is of another instance, unverified."""
    object.__setattr__(outcome, "instance", instance)
    return outcome


def test_a_run_below_the_bound_is_an_error_of_ours() -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[8])
    outcome = outcome_of(Instance(sp.Cluster.parse("1x1"), jobs), "fifo")
    longer = Workload.from_columns(arrival_s=[0], gpus=[1], work=[9])
    with pytest.raises(VerificationError, match=r"fifo: TTD of 8\.0 s is below the bound 9\.0 s"):
        limit(replace_instance(outcome, Instance(sp.Cluster.parse("1x1"), longer)), Measure.TTD)
