"""Every instance that features allow has a certified bound, or is refused in one sentence that says which it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

import shadowprice as sp
from shadowprice.analysis.bounds import KNOWS, bounds_of, certified_bounds
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.certify import KNOWS as CERTIFIED
from shadowprice.analysis.certify import certify
from shadowprice.errors import InputError
from shadowprice.instances.features import APART, Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs import checker
from shadowprice.solvers.offline import bounds
from support.certificate_text import records_of, signed
from support.consumers.bounds import ran
from support.drawn_worlds import FEATURES, drawn
from support.feature_instances import instance_with, may_meet, pairs_not_searched
from support.refuted import FIRST, NIGHTLY, SEARCHING, each_set, worlds
from support.small_instances import instance_of

GOALS = (Objective.FLOW, Objective.MAKESPAN)
NO_SPAN = r"the run was stopped at .* and has no makespan, expected flow or completion$"


def together(count: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Random sets of features, each as large as can be but for some that are left out."""
    random = Random(seed)
    for _ in range(count):
        found: tuple[str, ...] = ()
        for each in random.sample(FEATURES, len(FEATURES)):
            pairs = combinations((*found, each), 2)
            if random.random() < 0.7 and not any(
                frozenset(map(Feature, pair)) in APART for pair in pairs
            ):
                found = (*found, each)
        yield found


def certified(instance: Instance, goal: Objective) -> Fraction:
    """The largest certified bound of an instance [ticks], the same from whoever is asked."""
    said = {
        each.ticks
        for each in (
            sp.strongest_bound(instance, objective=goal, preemptive=True, budget_s=0.0),
            certified_bounds(instance, (goal,), BoundEffort.of_size(0))[goal],
        )
        if each.certified
    }
    assert said
    return min(said)


def expect_bounded(instance: Instance) -> None:
    """A bound of flow time and makespan, by all ways; no makespan of a run that was stopped."""
    for goal in GOALS:
        if instance.stopped_s is not None and goal is Objective.MAKESPAN:
            with pytest.raises(InputError, match=NO_SPAN):
                list(bounds_of(instance, goal, BoundEffort(0.0)))
        else:
            assert certified(instance, goal) >= 0
            best = max(
                bounds_of(instance, goal, BoundEffort(0.0)),
                key=lambda bound: (bound.ticks, bound.certified),
            )
            assert best.certified


@each_set
def test_every_pair_of_features_has_a_bound(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        expect_bounded(instance_of(world))


def test_every_set_of_features_has_a_bound() -> None:
    for number, features in enumerate(together((NIGHTLY if SEARCHING else 1) * 60, FIRST)):
        expect_bounded(instance_of(drawn(features, number)))


@pytest.mark.parametrize("feature", [each for each in Feature if each in CERTIFIED])
def test_what_is_bounded_is_what_is_certified(feature: Feature) -> None:
    """The bound of a run's instance is that of its certificate, which a program of its own has judged."""
    assert feature in KNOWS
    outcome = ran(instance_with(feature))
    pairs = bool((outcome.schedule.partner >= 0).any())
    for goal in GOALS if feature is not Feature.STOPPED else GOALS[:1]:
        found = certify(outcome, goal, budget_s=0.0)
        claim = checker.check(found.text)
        mine = max(each.ticks for each in found.history.bounds)
        if pairs or feature is not Feature.SHARING:  # Else its class is smaller.
            bound = max(each.ticks for each in bounds_of(outcome.instance, goal, BoundEffort(0.0)))
            assert bound >= mine >= Fraction(claim["bound"])
        assert exact_cost(outcome.instance, goal, outcome.end_s) == Fraction(claim["cost"])


READ_TWICE = sorted(bounds.KNOWS - {Feature.SHARING})
"""Features that solvers read and the checker reads; it rounds the gain of sharing up."""


@pytest.mark.parametrize("pair", [*filter(may_meet, combinations(READ_TWICE, 2))], ids="-".join)
def test_solvers_and_checker_relax_an_instance_alike(pair: tuple[Feature, Feature]) -> None:
    instance = instance_with(*pair)
    assert CheckedClass.of(instance, pairs=False).whole_gangs() == bounds.Relaxation.of(instance)


def test_a_feature_that_says_nothing_leaves_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_with(Feature.PARTS)
    for module in ("certificates.cascade", "certificates.checked_class"):
        knows = KNOWS - {Feature.PARTS}
        monkeypatch.setattr(f"shadowprice.analysis.{module}.KNOWS", knows)
        with pytest.raises(InputError, match=r"has jobs that hold a part of a GPU .* not known to"):
            sp.strongest_bound(instance, objective="flow", preemptive=True, budget_s=0.0)
        monkeypatch.undo()


def may_run(pair: tuple[Feature, Feature]) -> bool:
    """True if somebody makes a schedule with both: runs of copies are never stopped, and know no terms of one's own."""
    nobody = {(Feature.COPIES, Feature.STOPPED), (Feature.COPIES, Feature.OWN)}
    return may_meet(pair) and pair not in nobody


@pytest.mark.parametrize("pair", [*filter(may_run, pairs_not_searched())], ids="-".join)
def test_no_checked_bound_exceeds_a_run(pair: tuple[Feature, Feature]) -> None:
    """Of the other pairs exhaustive search shows more: test_claims_against_search.py."""
    outcome = ran(instance_with(*pair))
    for goal in GOALS if Feature.STOPPED not in pair else GOALS[:1]:
        cost = exact_cost(outcome.instance, goal, outcome.end_s)
        assert certified(outcome.instance, goal) <= cost


def test_copies_are_compared_beside_gangs() -> None:
    """Two GPUs on one node, of which a gang has one and a copy both: it is done in half of the time."""
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=1, work=[64])
    found = sp.compare(jobs, "1x2", ["fifo", "hadare"], "flow", budget_s=0.0)
    assert [row.cost for row in found.rows] == [64.0, 32.0]
    assert [row.bound for row in found.rows] == [64.0, 32.0]
    words = [row.sentence() for row in found.rows]
    assert words[0].startswith("fifo is optimal among preemptive schedules (certified by")
    assert "in which a job is at most 1 copies on whole nodes" in words[1]
    assert found.rows[1].to_dict()["class"]["copies"] == 1


def test_a_copy_is_as_fast_as_a_row_for_which_its_node_has_enough() -> None:
    """Of one CPU a GPU it is half as fast, of four it is fast; nodes have four."""
    instance = instance_with(Feature.COPIES, Feature.PROFILES)
    found = records_of(certify(ran(instance), "flow", budget_s=0.0).text)
    assert checker.check(signed(found))
    first = next(each for each in found if each["kind"] == "run")
    ((node, gpus, cell),) = first["pieces"]
    for pieces, says in (
        ([[node, gpus]], "has a row of a profile that is not its, or none"),
        ([[node, gpus, 9]], "a record is malformed"),
        ([[node, gpus, 1 - cell]], "ends neither with its steps nor with the round"),
    ):
        first["pieces"] = pieces
        with pytest.raises(checker.Rejected, match=says):
            checker.check(signed(found))
    first["pieces"] = [[node, gpus, cell]]
    scarce = next(each for each in found if each["kind"] == "node" and each["node"] == node)
    scarce["cpus"] = 3999 * gpus
    with pytest.raises(checker.Rejected, match=f"node {node}: job 0 has not the cpus of its row"):
        checker.check(signed(found))
