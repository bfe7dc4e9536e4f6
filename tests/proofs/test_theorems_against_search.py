"""Theorems called directly, feature by feature: on runs of their policies, and against exhaustive search.

``bound`` and ``check`` are called as a property test would, whatever ``uncovered`` says of the run. They may
refuse; what they say has to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pytest

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.instance import Instance
from shadowprice.proofs.asrpt import conversion, early, prediction, ratio, robust, sharper
from shadowprice.proofs.classic import (
    hesrpt,
    kill_restart,
    least_parallelisable,
    relevant_work,
    saturation,
    server_filling,
)
from shadowprice.proofs.lower_bounds import (
    fluid,
    job,
    list_schedules,
    mbt,
    srpt_one_machine,
    wide_gangs,
)
from shadowprice.proofs.tiresias import las
from shadowprice.solvers.asrpt.robust import RobustAsrpt
from shadowprice.solvers.classic.b_scaling import BScaling
from shadowprice.solvers.registry import policy
from shadowprice.solvers.tiresias.las2d import Las2d
from support.drawn_worlds import drawn
from support.refuted import Found, each_set, ends_of, worlds
from support.small_instances import instance_of
from support.small_runs import outcome_on
from support.small_worlds import TICKS, Klass, World, of_one_weight

SECOND = Fraction(1, TICKS)


@dataclass(frozen=True)
class Facts:
    """A verified run of a policy on a world, and what schedules there are beside it."""

    found: Found
    outcome: Outcome

    @property
    def instance(self) -> Instance:
        return self.outcome.instance

    @property
    def ends_s(self) -> list[Fraction]:
        """Completions [s]."""
        return [end * SECOND for end in ends_of(self.outcome)]

    @property
    def total_s(self) -> Fraction:
        """Total completion time [s]."""
        return sum(self.ends_s, Fraction(0))

    @property
    def flow_s(self) -> Fraction:
        """Total flow time [s]."""
        return self.total_s - sum(each.release for each in self.found.world.jobs)

    @property
    def best_total_s(self) -> Fraction:
        """Least total completion time of preemptive schedules in which nobody shares or grows [s]."""
        return self.least_s(Klass(preemptive=True), "completion")

    def least_s(self, klass: Klass, objective: str) -> Fraction:
        """Least cost of jobs that weigh the same [s]."""
        return self.found.least(klass, objective, of_one_weight(self.found.world)) * SECOND

    @cached_property
    def grid_s(self) -> Fraction:
        """What whole ticks may add to a completion [s], a tick for each job that is before or at it."""
        return len(self.found.world.jobs) * SECOND


Claim = Callable[[Facts], bool]


def _within(factor: Fraction, facts: Facts) -> bool:
    """True if a run costs at most so many times what the best schedule does, but for whole ticks."""
    grid = len(facts.found.world.jobs) * facts.grid_s
    return facts.total_s <= factor * (facts.best_total_s + grid)


def _robust(facts: Facts) -> bool:
    settled = policy("asrpt-robust")
    assert isinstance(settled, RobustAsrpt)
    fine = robust.check(facts.instance, facts.ends_s, settled.cycles)
    return fine and facts.total_s <= robust.bound(facts.instance, settled.cycles)


def _las(facts: Facts) -> bool:
    settled = policy("las2d")
    assert isinstance(settled, Las2d)
    limits = settled.thresholds_gpu_s
    fine = las.check(facts.instance, limits, facts.ends_s)
    return fine and facts.total_s <= las.bound(facts.instance, limits)


def _tried(facts: Facts) -> bool:
    settled = policy("b-scaling")
    assert isinstance(settled, BScaling)
    fine = kill_restart.check(facts.instance, facts.flow_s, settled)
    return fine and facts.flow_s <= kill_restart.bound(facts.instance, settled)


def _last_s(facts: Facts) -> Fraction:
    return max(facts.ends_s)


def _lpf(facts: Facts) -> bool:
    first = min(each.release for each in facts.found.world.jobs)
    fine = least_parallelisable.check(facts.instance, facts.outcome.schedule)
    return fine and _last_s(facts) - first <= least_parallelisable.makespan_bound(facts.instance)


def _lpf_least(facts: Facts) -> bool:
    klass = Klass(preemptive=True, elastic=True)
    return least_parallelisable.least_makespan(facts.instance) <= facts.least_s(klass, "makespan")


def _hesrpt(facts: Facts) -> bool:
    best = facts.least_s(Klass(preemptive=True, elastic=True), "completion")
    return hesrpt.check(facts.instance, best) and hesrpt.bound(facts.instance) <= best


def _one_machine(facts: Facts) -> bool:
    best = facts.least_s(Klass(preemptive=True, sharing=True, elastic=True), "completion")
    lower = srpt_one_machine.bound(facts.instance)
    return lower <= best and facts.total_s <= lower


ON_RUNS: dict[str, tuple[str, Claim]] = {
    "ASRPT-conv": ("asrpt", lambda f: conversion.check(f.instance, f.total_s)),
    "ASRPT-conv-jobs": ("asrpt", lambda f: f.total_s <= conversion.bound(f.instance)),
    "ASRPT-pred": ("asrpt", lambda f: prediction.check(f.instance, f.total_s)),
    "ASRPT-pred-factor": ("asrpt", lambda f: _within(prediction.bound(f.instance), f)),
    "ASRPT-ratio": ("asrpt", lambda f: ratio.check(f.instance, f.total_s)),
    "ASRPT-ratio-factor": ("asrpt", lambda f: _within(ratio.bound(f.instance), f)),
    "ASRPT-sharper": ("asrpt", lambda f: sharper.check(f.instance, f.total_s)),
    "ASRPT-sharper-factor": ("asrpt", lambda f: _within(sharper.bound(f.instance), f)),
    "ASRPT-early": ("asrpt-guarded:stretch=1", lambda f: early.check(f.instance, f.total_s)),
    "ASRPT-early-factor": (
        "asrpt-guarded:stretch=1",
        lambda f: _within(early.bound(f.instance), f),
    ),
    "ASRPT-robust": ("asrpt-robust", _robust),
    "SF-fill": (
        "server-filling-srpt",
        lambda f: server_filling.check(f.instance, f.outcome.schedule),
    ),
    "SF-work": (
        "server-filling-srpt",
        lambda f: (
            relevant_work.check(f.instance, f.outcome.schedule)
            and f.flow_s <= relevant_work.bound(f.instance)
        ),
    ),
    "SF-work-least": (
        "server-filling-srpt",
        lambda f: relevant_work.least_flow(f.instance) <= f.least_s(Klass(True), "flow"),
    ),
    "MSJ-cap": (
        "msf",
        lambda f: (
            saturation.check(f.instance, f.outcome.schedule)
            and _last_s(f) <= saturation.bound(f.instance)
        ),
    ),
    "MSJ-cap-fifo": (
        "fifo",
        lambda f: saturation.check_in_order(f.instance, f.outcome.schedule),
    ),
    "LPF-work": ("lpf", _lpf),
    "LPF-work-least": ("lpf", _lpf_least),
    "TIR-las": ("las2d", _las),
    "KR-scale": ("b-scaling", _tried),
    "HESRPT": ("hesrpt", _hesrpt),
    "SRPT-1": ("srtf", _one_machine),
}
"""Theorems with the policies that they are about, and whether what they say holds of a run."""

RIGID = Klass(preemptive=True)
ONCE = Klass(preemptive=False)
EVERY = Klass(preemptive=True, sharing=True, elastic=True)
LOWER: dict[str, tuple[Callable[[Instance], Fraction], Klass, bool]] = {
    "LB-fluid": (fluid.bound, EVERY, False),
    "LB-job": (job.bound, EVERY, True),
    "LB-mbt": (mbt.bound, EVERY, True),
    "LB-wide": (wide_gangs.bound, RIGID, True),
    "LB-list": (list_schedules.bound, ONCE, True),
}
"""Lower bounds of completion time [s], the schedules that they are about, and whether they are weighted."""

REFUSALS = (InputError, ValueError)


def runs(world: World, name: str) -> Iterator[Outcome]:
    """The run of a policy, if it takes the world; one without a time at which it was stopped."""
    try:
        yield outcome_on(world, name)
    except (InputError, PolicyError):
        return


def said(name: str, facts: Facts) -> bool | None:
    """Whether what a theorem says of a run holds; None where it refuses."""
    try:
        return ON_RUNS[name][1](facts)
    except REFUSALS:
        return None


@each_set
def test_theorems_say_nothing_false(features: tuple[str, ...]) -> None:
    false = []
    for world in worlds(features, 1):
        found, outcomes = Found(world), {}
        for name, (who, _) in ON_RUNS.items():
            if who not in outcomes:
                outcomes[who] = next(runs(world, who), None)
            outcome = outcomes[who]
            if outcome is not None and said(name, Facts(found, outcome)) is False:
                false.append((name, world))
    assert not false, f"{sorted({name for name, _ in false})}: {false[0]}"


@each_set
def test_lower_bounds_of_theorems_are_below_schedules(features: tuple[str, ...]) -> None:
    for world in worlds(features, 1):
        instance, found = instance_of(world), Found(world)
        for name, (bound, klass, weighted) in LOWER.items():
            try:
                value = bound(instance) / SECOND
            except REFUSALS:
                continue
            best = found.least(klass, "completion", world if weighted else of_one_weight(world))
            assert value <= best, f"{name} {float(value / best)}: {world}"


KNOWN: dict[str, set[str]] = {
    **{name: {"rates"} for name in (*ON_RUNS, *LOWER)},
    "ASRPT-conv": {"rates", "graphs"},
    "ASRPT-sharper": {"rates", "graphs"},
    "KR-scale": {"restart"},
    "HESRPT": {"widths"},
    "LPF-work": {"widths"},
    "LPF-work-least": {"widths"},
    "LB-fluid": {"rates", "types", "charges", "widths", "graphs"},
    "LB-job": {"rates", "types", "charges", "widths", "graphs", "sharing"},
    "LB-mbt": {"rates", "types", "charges", "widths", "graphs"},
    "LB-list": {"rates", "types", "charges", "graphs", "restart"},
}
"""Features of which each theorem has to speak: a law is empty where everything is refused."""


def speaks(name: str, world: World) -> bool:
    """True if a theorem does not refuse a world."""
    if name in LOWER:
        return _answers(LOWER[name][0], instance_of(world))
    outcome = next(runs(world, ON_RUNS[name][0]), None)
    return outcome is not None and said(name, Facts(Found(world), outcome)) is not None


def _answers(bound: Callable[[Instance], Fraction], instance: Instance) -> bool:
    try:
        bound(instance)
    except REFUSALS:
        return False
    return True


@pytest.mark.parametrize("name", KNOWN)
def test_theorems_speak(name: str) -> None:
    silent = {
        feature
        for feature in KNOWN[name]
        if not any(speaks(name, drawn((feature,), seed)) for seed in range(16))
    }
    assert not silent
