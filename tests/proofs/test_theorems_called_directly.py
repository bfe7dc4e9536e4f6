"""Theorems called directly, as a property test of somebody else would, on verified runs of instances with any features.

A theorem holds there, or refuses the instance: it never says of a run that is as it should be that it breaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from shadowprice.analysis.guarantees.lookup import UnmetHypotheses, guarantee, known_bound
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.execution.job_window import cut_schedule, window_end_s
from shadowprice.execution.shares import run_in_shares
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import conversion, early, prediction, ratio, robust, sharper
from shadowprice.proofs.classic import (
    elapsed_time,
    hesrpt,
    kill_restart,
    least_parallelisable,
    nonclairvoyant,
    relevant_work,
    saturation,
    server_filling,
)
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.gandiva import matching
from shadowprice.proofs.gavel import proportional_fairness
from shadowprice.proofs.lower_bounds import srpt_one_machine
from shadowprice.proofs.tiresias import las
from shadowprice.solvers.classic.b_scaling import BScaling
from shadowprice.solvers.registry import policy
from support.drawn_instances import Shape, drawn
from support.feature_instances import pairs_that_meet, with_implied

ANY = Shape()
ONE_GPU = Shape(nodes=((1,),), gangs=(1,))
GUARD = Fraction(1)
LIMITS_GPU_S = (2.0, 8.0)


def total(outcome: Outcome) -> float:
    """Total completion time [s], without end where a job never ends."""
    return float(outcome.end_s.sum())


def flow(outcome: Outcome) -> float:
    return float(outcome.jct_s.sum())


def _filled(outcome: Outcome) -> bool:
    instance = outcome.instance
    return relevant_work.check(instance, outcome.schedule) and (
        relevant_work.least_flow(instance) <= flow(outcome) <= relevant_work.bound(instance)
    )


def _served(outcome: Outcome) -> bool:
    least = srpt_one_machine.bound(outcome.instance)
    return least == total(outcome) and srpt_one_machine.check(outcome.instance, total(outcome))


def _shared(outcome: Outcome) -> bool:
    """In shares, with the bound of a run's prices beside a schedule of whole gangs."""
    shares = run_in_shares(outcome.instance, "proportional_fairness:aware=true")
    proven = proportional_fairness.best_least_cost(shares) <= total(outcome)
    return proven and proportional_fairness.check(shares)


@dataclass(frozen=True)
class Direct:
    """A theorem, and what it says of a run of a policy when it is called directly."""

    name: str
    knows: frozenset[Feature]
    policy: str
    holds: Callable[[Outcome], bool]
    shape: Shape = ANY
    always: frozenset[Feature] = frozenset()


POWERS = Shape(nodes=((1,), (2,), (4,), (2, 2)), gangs=(1, 1, 2, 4))
TWO_WIDTHS = Shape(nodes=((1,), (2,), (1, 1)), gangs=(1, 1, 2), together=True)
SINGLE = Shape(nodes=((1,), (2,), (3,), (2, 2)), gangs=(1,))
TRIES = BScaling(b=2, first_s=1.0)

THEOREMS = (
    Direct(
        "ASRPT-conv", conversion.KNOWS, "asrpt", lambda o: conversion.check(o.instance, total(o))
    ),
    Direct(
        "ASRPT-pred", prediction.KNOWS, "asrpt", lambda o: prediction.check(o.instance, total(o))
    ),
    Direct("ASRPT-ratio", ratio.KNOWS, "asrpt", lambda o: ratio.check(o.instance, total(o))),
    Direct("ASRPT-sharper", sharper.KNOWS, "asrpt", lambda o: sharper.check(o.instance, total(o))),
    Direct(
        "ASRPT-early",
        early.KNOWS,
        "asrpt-guarded",
        lambda o: early.check(o.instance, total(o), GUARD),
    ),
    Direct(
        "ASRPT-robust",
        robust.KNOWS,
        "asrpt-robust",
        lambda o: robust.check(o.instance, o.end_s.tolist(), policy("asrpt-robust").cycles),
    ),
    Direct(
        "SF-fill",
        server_filling.KNOWS,
        "server-filling-srpt",
        lambda o: server_filling.check(o.instance, o.schedule),
        POWERS,
    ),
    Direct("SF-work", relevant_work.KNOWS, "server-filling-srpt", _filled, POWERS),
    Direct(
        "MSJ-cap",
        saturation.KNOWS,
        "msf",
        lambda o: saturation.check(o.instance, o.schedule),
        TWO_WIDTHS,
    ),
    Direct(
        "MSJ-cap (fifo)",
        saturation.KNOWS,
        "fifo",
        lambda o: saturation.check_in_order(o.instance, o.schedule),
        TWO_WIDTHS,
    ),
    Direct(
        "SETF-speed",
        elapsed_time.KNOWS,
        "srtf",
        # What SETF costs at twice the speed is within 2 of any schedule.
        lambda o: elapsed_time.bound(o.instance, Fraction(2)) <= 2 * flow(o),
        ONE_GPU,
    ),
    Direct(
        "NC-flow",
        nonclairvoyant.KNOWS,
        "srtf",
        lambda o: nonclairvoyant.check(o.instance, flow(o), Fraction(1)),
        ONE_GPU,
    ),
    Direct("SRPT-1", srpt_one_machine.KNOWS, "srtf", _served, ONE_GPU),
    Direct(
        "LPF-work",
        least_parallelisable.KNOWS,
        "lpf",
        lambda o: least_parallelisable.check(o.instance, o.schedule),
        SINGLE,
    ),
    Direct(
        "KR-scale",
        kill_restart.KNOWS,
        "b-scaling:b=2,first_s=1",
        lambda o: kill_restart.check(o.instance, flow(o), TRIES),
        replace(ONE_GPU, together=True),
        frozenset({Feature.RESTART}),
    ),
    Direct("HESRPT", hesrpt.KNOWS, "srtf", lambda o: hesrpt.check(o.instance, total(o))),
    Direct(
        "HESRPT (lpf)", hesrpt.KNOWS, "lpf", lambda o: hesrpt.check(o.instance, total(o)), SINGLE
    ),
    Direct(
        "TIR-las",
        las.KNOWS,
        "las2d:thresholds_gpu_s=2/8",
        lambda o: las.check(o.instance, LIMITS_GPU_S, o.end_s.tolist()),
    ),
    Direct(
        "GAN-match",
        matching.KNOWS,
        "gandiva",
        lambda o: matching.check_introspection(o.instance, o.schedule, 60.0),
    ),
    Direct("GAVEL-pf", proportional_fairness.KNOWS, "srtf", _shared),
)
SINGLES: list[tuple[Feature, ...]] = [(), *((each,) for each in Feature)]
INSIDE, OUTSIDE = 10, 2
"""Runs of instances with features that a theorem knows, and of others."""


def verified(instance: Instance, name: str) -> Outcome | None:
    """A policy's run, verified; None where it does not run such instances."""
    acting = policy(name)
    try:
        done = run(instance, acting)
    except (InputError, PolicyError):
        return None
    schedule = done.schedule
    if instance.until_complete is not None:
        schedule = cut_schedule(schedule, window_end_s(schedule, instance.until_complete))
    if instance.stopped_s is not None:
        schedule = cut_schedule(schedule, instance.stopped_s)
    return Outcome.verified(done.instance, schedule, policy=name)


def runs(theorem: Direct, features: Collection[Feature], seeds: range) -> Iterator[Outcome]:
    """Verified runs of drawn instances with these features."""
    for seed in seeds:
        has = theorem.always | set(features)
        random = np.random.default_rng([seed, *sorted(list(Feature).index(f) for f in has)])
        try:
            instance = drawn(random, has, theorem.shape)
        except InputError:
            continue
        outcome = verified(instance, theorem.policy)
        if outcome is not None:
            yield outcome


def holds_or_refuses(theorem: Direct, outcome: Outcome) -> bool:
    """True if it speaks of the run; it must then hold."""
    try:
        said = theorem.holds(outcome)
    except InputError:
        return False
    assert said, (theorem.name, outcome.instance.features, outcome.instance.workload.to_frame())
    return True


def try_directly(theorem: Direct, features: Collection[Feature], more: int = 1) -> None:
    """Every run is refused where the theorem does not know the features; else it holds of all and speaks of some."""
    inside = with_implied(theorem.always | set(features)) <= theorem.knows
    seeds = range(more * (INSIDE if inside else OUTSIDE))
    spoken = [holds_or_refuses(theorem, each) for each in runs(theorem, features, seeds)]
    assert any(spoken) if inside else not any(spoken), (theorem.name, features)


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda each: each.name)
def test_a_theorem_holds_of_a_verified_run_or_refuses_it(theorem: Direct) -> None:
    for features in SINGLES:
        try_directly(theorem, features)


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda each: each.name)
def test_the_same_of_two_features_that_meet(theorem: Direct) -> None:
    for pair in pairs_that_meet():
        if with_implied(pair) <= theorem.knows:
            try_directly(theorem, pair)


@pytest.mark.slow
@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda each: each.name)
def test_the_same_of_many_runs(theorem: Direct) -> None:
    for features in (*SINGLES, *pairs_that_meet()):
        try_directly(theorem, features, more=10)


# Runs of which theorems once said something false, each with what is true of it.


def instance_of(cluster: Cluster | str, seconds: Sequence[float], **columns: Any) -> Instance:
    """Jobs of one GPU that are all there at 0."""
    count = len(seconds)
    jobs = Workload.from_columns(arrival_s=[0.0] * count, gpus=[1] * count, work=seconds, **columns)
    return Instance(cluster if isinstance(cluster, Cluster) else Cluster.parse(cluster), jobs)


def with_quotas(gpus: int, quotas: Mapping[str, int]) -> Cluster:
    limits = (tuple(quotas.values()),)
    return Cluster((Node(gpus),), quotas=Quotas(tuple(quotas), (0.0,), limits))


def done(instance: Instance, name: str) -> Outcome:
    outcome = verified(instance, name)
    assert outcome is not None
    return outcome


def expect_nothing_said(outcome: Outcome, name: str, goal: Objective, phrase: str) -> None:
    """No factor, and where there is a reason it is this."""
    seen = DescribedRun(outcome.instance, policy(name), goal)
    assert known_bound(outcome, seen) is None
    stated = guarantee(outcome, seen)
    if stated is not None:
        assert isinstance(stated, UnmetHypotheses)
        assert stated.missing == (f"there are {phrase}",)


def expect_refused(calls: Iterable[Callable[[], object]], phrase: str) -> None:
    for call in calls:
        with pytest.raises(InputError, match=rf"has {phrase}( \(as .*\))?, not known to "):
            call()


QUOTA, PART = Feature.QUOTAS.phrase, Feature.PARTS.phrase


def test_a_quota_of_one_makes_eight_jobs_wait_for_one_another() -> None:
    """Eight jobs of 16 s on four GPUs, of which their tenant may have one: 576 s, where SF-work said 528 s."""
    instance = instance_of(with_quotas(4, {"a": 1}), [16.0] * 8, tenant=["a"] * 8)
    outcome = done(instance, "server-filling-srpt")
    assert flow(outcome) == 576.0
    last = outcome.schedule
    expect_refused(
        (
            lambda: relevant_work.bound(instance),
            lambda: relevant_work.check(instance, last),
            lambda: relevant_work.least_flow(instance),
            lambda: relevant_work.more_jobs(instance),
            lambda: server_filling.bound(instance),
            lambda: server_filling.check(instance, last),
            lambda: conversion.bound(instance),
            lambda: sharper.bound(instance),
        ),
        QUOTA,
    )
    expect_nothing_said(outcome, "server-filling-srpt", Objective.FLOW, QUOTA)
    expect_nothing_said(done(instance, "asrpt"), "asrpt", Objective.COMPLETION, QUOTA)


def test_jobs_of_parts_of_gpus_end_before_any_whole_ones_could() -> None:
    """Four jobs of 0.4 GPUs on two: a flow of 64 s, below the least of whole ones."""
    instance = instance_of("1x2", [16.0] * 4, gpu_milli=[400] * 4)
    outcome = done(instance, "server-filling-srpt")
    assert flow(outcome) == 64.0
    expect_refused(
        (
            lambda: relevant_work.least_flow(instance),
            lambda: relevant_work.bound(instance),
            lambda: server_filling.check(instance, outcome.schedule),
        ),
        PART,
    )
    expect_nothing_said(outcome, "server-filling-srpt", Objective.FLOW, PART)


def test_sharper_says_nothing_of_parts_of_gpus() -> None:
    """Ten jobs of a tenth of a GPU: A-SRPT costs 6.5 times what first come first served does, not twice."""
    instance = instance_of("1x1", [1.0] * 10, gpu_milli=[100] * 10)
    ours, other = done(instance, "asrpt"), done(instance, "fifo")
    assert total(ours) == 6.5 * total(other)
    expect_nothing_said(ours, "asrpt", Objective.COMPLETION, PART)
    expect_refused((lambda: sharper.bound(instance), lambda: ratio.check(instance, 65.0)), PART)


def test_sharper_says_nothing_of_quotas() -> None:
    """Ten short jobs of a tenant with one GPU before fifty of one with fifty: 5.27 times, not 2.981."""
    instance = instance_of(
        with_quotas(51, {"a": 1, "b": 50}),
        [1.0] * 10 + [1.01] * 50,
        tenant=["a"] * 10 + ["b"] * 50,
    )
    ours, other = done(instance, "asrpt"), done(instance, "srtf")
    assert total(ours) > 5.27 * total(other)
    expect_nothing_said(ours, "asrpt", Objective.COMPLETION, QUOTA)
    for module in (conversion, prediction, ratio, sharper, early):
        expect_refused((partial(module.check, instance, total(ours)),), QUOTA)


def test_srpt_is_not_the_optimum_of_parts_of_gpus() -> None:
    """Ten jobs of a tenth and a shorter whole one: first come first served has 35 s where SRTF has 52 s."""
    instance = instance_of("1x1", [3.0] * 10 + [2.0], gpu_milli=[100] * 10 + [1000])
    ours, other = done(instance, "srtf"), done(instance, "fifo")
    assert total(ours) > 1.48 * total(other)
    expect_nothing_said(ours, "srtf", Objective.COMPLETION, PART)
    expect_refused((lambda: srpt_one_machine.bound(instance),), PART)


def test_widths_are_not_beside_throughputs() -> None:
    """LPF-work takes work for run time: with half an iteration a second a job takes twice as long."""
    instance = instance_of("1x1", [4.0], throughput=[[0.5]], gpu_types=("gpu",))
    outcome = done(instance, "lpf")
    assert total(outcome) == 8.0
    expect_refused(
        (lambda: least_parallelisable.check(instance, outcome.schedule),), Feature.RATES.phrase
    )
    expect_nothing_said(outcome, "lpf", Objective.MAKESPAN, Feature.RATES.phrase)


STATED = (
    ("asrpt", Objective.COMPLETION, sharper.KNOWS),
    ("asrpt-robust", Objective.COMPLETION, robust.KNOWS),
    ("b-scaling:b=2,first_s=1", Objective.FLOW, kill_restart.KNOWS),
    ("las2d:thresholds_gpu_s=2/8", Objective.COMPLETION, las.KNOWS),
    ("lpf", Objective.MAKESPAN, least_parallelisable.KNOWS),
    ("server-filling-srpt", Objective.FLOW, relevant_work.KNOWS),
    ("srtf", Objective.COMPLETION, srpt_one_machine.KNOWS),
)
"""Policies of which theorems state factors, in which objective, and what these know."""


@pytest.mark.parametrize("feature", Feature)
@pytest.mark.parametrize(
    ("name", "goal", "knows"), [pytest.param(*each, id=each[0]) for each in STATED]
)
def test_no_factor_is_stated_of_what_a_theorem_does_not_know(
    name: str, goal: Objective, knows: frozenset[Feature], feature: Feature
) -> None:
    """A factor that two other verified runs do not break, or none; never an error."""
    for seed in range(3):
        random = np.random.default_rng([seed, list(Feature).index(feature)])
        instance = drawn(random, (feature,), replace(ONE_GPU, together=True))
        outcome = verified(instance, name)
        if outcome is None:
            continue
        seen = DescribedRun(outcome.instance, policy(name), goal)
        found, stated = known_bound(outcome, seen), guarantee(outcome, seen)
        if not instance.features <= knows:
            assert found is None
            assert stated is None or stated.factor is None
        elif found is not None:
            others = [verified(instance, other) for other in ("srtf", "fifo")]
            costs = [
                Fraction(goal.cost_s(instance.workload, each.end_s))
                for each in (outcome, *others)
                if each is not None
            ]
            assert costs[0] <= found.factor * min(costs)
