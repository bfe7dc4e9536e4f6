"""No claim is refuted: on small worlds with every feature and every pair of features, against exhaustive search.

The search shares no code with the package (``tests/support/small_worlds.py``). What it finds are schedules that exist,
so that no bound of their class may be larger, no optimum either, and no run may cost more times as much as a
theorem, a comparison, a limit or a certificate says. Who refuses a world says nothing of it, and is not refuted.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

import pytest

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import compare
from shadowprice.analysis.limits import Measure, limit
from shadowprice.errors import InputError
from shadowprice.instances.features import APART, Feature
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.certificate import verify
from shadowprice.proofs import checker
from shadowprice.proofs.classic import hesrpt
from shadowprice.proofs.lower_bounds import fluid, job, mbt, srpt_one_machine, wide_gangs
from shadowprice.solvers.offline.bounds import Bound
from shadowprice.solvers.offline.strongest import lower_bounds, repeatable_bounds
from support.drawn_worlds import FEATURES, drawn
from support.paths import ROOT
from support.small_instances import instance_of, klass_of, schedule_of
from support.small_runs import outcome_on, semantics_of
from support.small_worlds import Klass, Least, World, all_at_once, cost, least, of_one_weight

SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST = int(os.environ["SEED"]) << 20 if SEARCHING else 0
NIGHTLY = 100
"""Worlds of each set of features in the nightly search, of each law."""

TOGETHER = [
    (),
    *((name,) for name in FEATURES),
    *(pair for pair in combinations(FEATURES, 2) if frozenset(map(Feature, pair)) not in APART),
]
each_set = pytest.mark.parametrize("features", TOGETHER, ids=lambda names: "-".join(names) or "plain")


def worlds(features: tuple[str, ...], usual: int) -> Iterator[World]:
    """So many worlds with these features, and many more in the nightly search."""
    for seed in range(FIRST, FIRST + (NIGHTLY if SEARCHING else usual)):
        yield drawn(features, seed)


class Refuted:
    """What was claimed of a world, held against schedules that were found by exhaustive search."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._least: dict[object, Least] = {}

    def least(self, klass: Klass, objective: str, world: World | None = None) -> Fraction:
        """Least cost [ticks] of schedules of a class."""
        world = world or self.world
        key = tuple((each.release, each.weight) for each in world.jobs), klass
        if key not in self._least:
            self._least[key] = least(world, klass)
        return cost(world, self._least[key], objective)

    def below(self, bound: Fraction, holds_for: ScheduleClass, objective: str, who: str) -> None:
        """Raise unless a lower bound [ticks] is no more than a schedule of its class."""
        found = self.least(klass_of(holds_for), objective)
        assert bound <= found, (
            f"{who}: {float(bound)} ticks bound the {objective} of {holds_for}, one has {float(found)}: {self.world}"
        )


def bounds_of(instance: Instance, goal: Objective, preemptive: bool, budget_s: float) -> Iterator[Bound]:
    """Every bound of the cascade."""
    try:
        yield from lower_bounds(
            instance, goal, preemptive=preemptive, budget_s=budget_s, consolidated=True
        )
    except InputError:
        return


@each_set
def test_no_bound_exceeds_a_schedule(features: tuple[str, ...]) -> None:
    for world in worlds(features, 2):
        instance, found = instance_of(world), Refuted(world)
        for goal in Objective:
            for preemptive in (True, False):
                for bound in bounds_of(instance, goal, preemptive, 0.05):
                    found.below(bound.ticks, bound.holds_for, goal, bound.kind)
