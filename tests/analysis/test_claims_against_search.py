"""No claim is refuted: on small worlds with every feature and every pair of features, against exhaustive search.

The search shares no code with the package (``tests/support/small_worlds.py``). What it finds are schedules that exist,
so that no bound of their class may be larger, no optimum either, and no run may cost more times as much as a
comparison, a limit, a theorem or a certificate says. Who refuses a world says nothing of it, and is not refuted; what
has to be said is asked for as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import pytest

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of as every_bound
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import Comparison, compare
from shadowprice.analysis.guarantees.lookup import describe, guarantee, known_bound
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.offline.bounds import Bound
from support.drawn_worlds import FEATURES, drawn
from support.paths import ROOT
from support.refuted import SEARCHING, Found, cost_of, each_set, latest, worlds
from support.small_instances import cluster_of, instance_of, klass_of, schedule_of, workload_of
from support.small_runs import outcome_on, semantics_of
from support.small_search import least
from support.small_worlds import TICKS, Klass, World, all_at_once, of_one_weight

Case = TypeVar("Case")

POLICIES = ("srtf", "las", "asrpt", "lpf", "fifo-skip", "server-filling-srpt", "hesrpt", "gandiva")


OWN = ("small_worlds", "small_ways", "small_costs", "small_copies", "small_search", "drawn_worlds")
"""Files of the search."""


def policy_of(world: World) -> str:
    """A policy, others for other seeds and features; one that lets jobs share where they may."""
    if world.pairs and world.seed % 2 == 0:
        return "gavel:max_min_fairness:aware=true,packed=true"
    return POLICIES[(world.seed + sum(map(len, world.features))) % len(POLICIES)]


def one_of(world: World, cases: Sequence[Case], k: int = 0) -> Sequence[Case]:
    """Of a pair of features one case, another for another pair; of fewer features, and by night, all of them."""
    if SEARCHING or len(world.features) < 2:
        return cases
    return cases[(world.seed + sum(map(len, world.features)) + k) % len(cases) :][:1]


def test_search_shares_no_code() -> None:
    for name in OWN:
        tree = ast.parse((ROOT / "tests" / "support" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            elif isinstance(node, ast.Name):
                assert node.id not in {"__import__", "importlib", "eval", "exec"}
            for each in names:
                top = each.split(".")[0]
                mine = {f"support.{own}" for own in OWN}
                assert top in sys.stdlib_module_names or each in mine, f"{name} imports {each}"


@each_set
def test_what_the_search_found_is_verified(features: tuple[str, ...]) -> None:
    """Both readings of the semantics agree: the verifier's, and that of the search."""
    for world in worlds(features, 1):
        instance = instance_of(world)
        assert {str(each) for each in instance.features} >= set(features)
        if world.copies is not None or world.down or world.stopped is not None:
            continue  # Such schedules are not written row by row, or not of nodes that fail.
        for preemptive in (True, False):
            found = latest(least, world, Klass(preemptive, sharing=True, elastic=True))
            for path in (found.by_total, found.by_last):
                verify(instance, schedule_of(world, path))


def goals_of(world: World) -> tuple[Objective, Objective]:
    """The makespan, and one of the others, which differ by a constant."""
    return (Objective.FLOW, Objective.COMPLETION)[world.seed % 2], Objective.MAKESPAN


def bounds_of(world: World, budget_s: float) -> Iterator[tuple[Objective, Bound]]:
    """Every bound that is found in some time, and those of limits, whose interval LPs are of a fixed size."""
    instance = instance_of(world)
    spans = world.stopped is None
    goals = [goal for goal in goals_of(world) if spans or goal is not Objective.MAKESPAN]
    yield from certified_bounds(instance, goals, BoundEffort.of_size(60)).items()
    for k, goal in enumerate(goals):
        for preemptive in one_of(world, (True, False), k):
            for bound in every_bound(
                instance, goal, BoundEffort(budget_s), preemptive=preemptive, consolidated=True
            ):
                yield goal, bound


@each_set
def test_no_bound_exceeds_a_schedule(features: tuple[str, ...]) -> None:
    # Few tables of rates show of which type a rate is.
    usual = 12 if set(features) == {"types", "sharing"} else 3 - len(features)
    for world in worlds(features, usual):
        found = Found(world)
        for goal, bound in bounds_of(world, 0.02):
            found.refutes(bound.ticks, bound.holds_for, goal, bound.kind)


def optima_of(
    instance: Instance, goal: Objective
) -> Iterator[tuple[str, bool, Fraction, Fraction]]:
    """Who says what of an optimum: whether it is of preemptive schedules, the bound and the cost [s], if proven."""
    for method in ("milp", "cp-sat"):
        try:
            one = sp.optimum(instance, objective=goal, method=method, budget_s=1.0)
        except InputError:
            continue
        upper = Fraction(one.upper_s) if one.proven else Fraction(one.lower_s)
        yield method, False, Fraction(one.lower_s), upper
    try:
        other = sp.preemptive_optimum(instance, objective=goal, budget_s=0.2)
    except InputError:
        return
    upper = Fraction(other.upper_s) if other.proven else Fraction(other.lower_s)
    yield "windows", True, Fraction(other.lower_s), upper


@each_set
def test_no_optimum_exceeds_a_schedule(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        found, instance = Found(world), instance_of(world)
        for goal in Objective:
            for who, preemptive, lower_s, upper_s in optima_of(instance, goal):
                best = found.least(Klass(preemptive), goal)
                assert lower_s * TICKS <= best, f"{who} {goal}: {world}"
                # Times are whole seconds: without preemption the search has the best schedule.
                assert upper_s * TICKS <= best, f"{who} {goal}: {world}"
                if not preemptive and upper_s > lower_s and not any(world.charges):
                    assert upper_s * TICKS == best, f"{who} {goal}: {world}"


def to_its_end(world: World) -> World:
    """The world without a time at which a run was stopped, and without copies: no comparison is of these."""
    return replace(world, stopped=None, copies=None)


def compared(world: World, goal: Objective, budget_s: float) -> Comparison | None:
    """A comparison of two policies by the switches of a user; None where it is refused."""
    try:
        return compare(
            workload_of(world),
            cluster_of(world),
            ("fifo", policy_of(world)),
            goal,
            semantics_of(world),
            budget_s=budget_s,
        )
    except (InputError, PolicyError):
        return None


@each_set
def test_no_comparison_is_refuted(features: tuple[str, ...]) -> None:
    for world in map(to_its_end, worlds(features, 1)):
        found = Found(world)
        goal = list(Objective)[world.seed % 3]
        said = latest(compared, world, goal, 0.05)
        for row in () if said is None else said.rows:
            found.refutes(row.proven_by.ticks, row.holds_for, goal, row.bound_kind)
            if row.sharper is not None:
                found.refutes(row.sharper.ticks, row.sharper.holds_for, goal, row.sharper.kind)
            cost = cost_of(world, said.outcomes[row.policy], goal)
            assert cost == row.cost_ticks
            if row.optimum_s is not None:
                assert row.optimum_s == row.bound
            best = found.least(klass_of(row.holds_for), goal)
            assert cost <= row.factor * best if row.factor is not None else True


@each_set
def test_no_guarantee_is_refuted(features: tuple[str, ...]) -> None:
    for world in map(to_its_end, worlds(features, 1)):
        found = Found(world)
        said = latest(compared, world, list(Objective)[world.seed % 3], 0.05)
        for goal in Objective if said is not None else ():
            for name, run in said.runs.items():
                outcome, as_told = said.outcomes[name], describe(run, goal)
                if as_told is None:
                    continue
                cost = cost_of(world, outcome, goal)
                stated = guarantee(outcome, as_told)
                if stated is not None and stated.factor is not None:
                    best = found.least(klass_of(stated.holds_for), goal)
                    assert cost <= stated.factor * best, f"{stated.sentence(name)}: {world}"
                known = known_bound(outcome, as_told)
                if known is not None:
                    best = found.least(Klass(True), goal)
                    assert cost <= known.factor * best, f"{name} {known.sentence()}: {world}"


def run_on(world: World) -> Outcome | None:
    """A run of a policy, if that takes the world."""
    try:
        return latest(outcome_on, world, policy_of(world))
    except (InputError, PolicyError):  # Some policies place jobs beyond quotas, and are told so.
        return None


def best_of(found: Found, measure: Measure, klass: Klass) -> Fraction:
    """Least measure [ticks] that a schedule of a class has, of jobs that count the same."""
    same = of_one_weight(found.world)
    if measure is Measure.TTD:
        return found.least(klass, Objective.MAKESPAN, all_at_once(same))
    if measure is Measure.MAKESPAN:
        return found.least(klass, Objective.MAKESPAN, same)
    return found.least(klass, Objective.FLOW, same) / len(same.counted)


@each_set
def test_no_limit_is_exceeded(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        found = Found(world)
        outcome = run_on(world)
        for measure in one_of(world, list(Measure)) if outcome is not None else ():
            try:
                said = limit(outcome, measure, columns=60)
            except InputError:
                continue
            best = best_of(found, measure, klass_of(said.proven_by.holds_for))
            assert said.bound_ticks <= best, f"{said.sentence()}: {world}"


def klass_in(words: str, world: World) -> Klass:
    """The class that a certificate names."""
    grows = any(job.widest > job.gang for job in world.jobs)
    return Klass(
        preemptive="non-preemptive" not in words,
        sharing="at most two jobs share a GPU" in words,
        elastic=grows,
        consolidated="as few nodes as gangs fit on" in words,
    )


@each_set
def test_no_certificate_is_refuted(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        found = Found(world)
        outcome = run_on(world)
        for goal in goals_of(world) if outcome is not None else ():
            try:
                said = certify(outcome, goal, budget_s=0.02)
            except InputError:
                continue
            cost = cost_of(world, outcome, goal)
            best = found.least(klass_in(said.of_class, world), goal)
            assert cost <= said.factor * best, f"{said.sentence()} {float(cost / best)}: {world}"


def first_come(world: World) -> Outcome | None:
    """A run in which jobs begin once, if its policy takes the world."""
    try:
        return latest(outcome_on, world, "fifo")
    except (InputError, PolicyError):
        return None


@each_set
def test_no_certificate_without_preemption_is_refuted(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        found = Found(world)
        outcome = first_come(world)
        for goal in goals_of(world) if outcome is not None else ():
            try:
                said = certify(outcome, goal, budget_s=0.0, preemptive=False)
            except InputError:
                continue
            assert said.of_class.startswith("non-preemptive")
            cost = cost_of(world, outcome, goal)
            best = found.least(klass_in(said.of_class, world), goal)
            assert cost <= said.ratio * best, f"{said.sentence()} {float(cost / best)}: {world}"


WHOLE_RUNS = {
    "rates",
    "types",
    "charges",
    "sharing",
    "graphs",
    "profiles",
    "spread",
    "widths",
    "failures",
    "cores",
    "cpu-memory",
    "restart",
}
"""Features of which most that is said is about."""

SAID: dict[str, set[str]] = {
    "bounds": set(FEATURES),
    "compare": WHOLE_RUNS | {"parts", "quotas", "window"},
    "limit": WHOLE_RUNS | {"copies", "parts", "quotas", "window"},
    "certify": set(FEATURES) - {"racks"},
    "certify, each once": set(FEATURES) - {"racks", "copies", "failures"},
    "milp": {"charges", "rates"},
    "cp-sat": {"charges", "rates"},
    "windows": {"rates"},
}
"""Who has to say something of worlds with a feature: a law is empty where everything is refused."""


def says(who: str, world: World) -> bool:
    """True if something is said of a world."""
    if who == "bounds":
        return any(True for _ in bounds_of(world, 0.0))
    if who == "compare":
        return compared(world, Objective.FLOW, 0.0) is not None
    if who in ("milp", "cp-sat", "windows"):
        return any(method == who for method, *_ in optima_of(instance_of(world), Objective.FLOW))
    outcome = first_come(world) if who == "certify, each once" else run_on(world)
    try:
        if outcome is not None and who == "limit":
            limit(outcome, Measure.MEAN_JCT, columns=100)
        elif outcome is not None and who == "certify, each once":
            certify(outcome, Objective.FLOW, budget_s=0.0, preemptive=False)
        elif outcome is not None:
            certify(outcome, Objective.FLOW, budget_s=0.0)
    except InputError:
        return False
    return outcome is not None


@pytest.mark.parametrize("who", SAID)
def test_something_is_said(who: str) -> None:
    refused = {
        feature
        for feature in SAID[who]
        if not any(says(who, drawn((feature,), seed)) for seed in range(6))
    }
    assert not refused


def test_some_runs_share() -> None:
    """Certificates of schedules in which two jobs share a GPU are of another class."""
    every = (run_on(drawn(("types", "sharing"), seed)) for seed in range(0, 8, 2))
    assert any((run.schedule.partner >= 0).any() for run in every if run is not None)
