"""Claims of the package held against schedules that an exhaustive search found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pytest

from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.features import APART, Feature
from shadowprice.instances.schedule_class import ScheduleClass
from support.drawn_worlds import FEATURES, drawn
from support.small_costs import Least, cost
from support.small_instances import klass_of
from support.small_search import least
from support.small_worlds import TICKS, Klass, World

SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST = int(os.environ["SEED"]) << 20 if SEARCHING else 0
NIGHTLY = 50
"""How many times as many worlds the nightly search looks at."""

TOGETHER = [
    (),
    *((name,) for name in FEATURES),
    *(pair for pair in combinations(FEATURES, 2) if frozenset(map(Feature, pair)) not in APART),
]
# Of the scope of a module: what is asked of the same worlds is asked in a row, and searched once.
each_set = pytest.mark.parametrize(
    "features", TOGETHER, ids=lambda names: "-".join(names) or "plain", scope="module"
)
LATEST = 64
_latest: dict[tuple[str, ...], Any] = {}
Made = TypeVar("Made")


def latest(make: Callable[..., Made], *of: Any) -> Made:
    """What a function makes of worlds, classes and names; of the latest ones it is made once."""
    key = (make.__qualname__, *map(repr, of))
    if key not in _latest:
        if len(_latest) >= LATEST:
            del _latest[next(iter(_latest))]
        _latest[key] = make(*of)
    made: Made = _latest[key]
    return made


def worlds(features: tuple[str, ...], usual: int) -> Iterator[World]:
    """So many worlds with these features, and many more in the nightly search."""
    for seed in range(FIRST, FIRST + (NIGHTLY if SEARCHING else 1) * usual):
        yield drawn(features, seed)


class Found:
    """Least costs of a world's schedules, each class searched once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._least: dict[object, Least] = {}

    def least(self, klass: Klass, objective: str, world: World | None = None) -> Fraction:
        """Least cost [ticks] of schedules of a class; of this world, or of another with the same jobs."""
        world = world or self.world
        key = tuple((job.release, job.weight) for job in world.jobs), klass
        if key not in self._least:
            self._least[key] = latest(least, world, klass)
        return cost(world, self._least[key], objective)

    def refutes(self, bound: Fraction, holds_for: ScheduleClass, objective: str, who: str) -> None:
        """Fail where a schedule of a class costs less than a lower bound [ticks] of it."""
        found = self.least(klass_of(holds_for), objective)
        assert bound <= found, (
            f"{who}: no {holds_for} are said to have a {objective} below {float(bound)} ticks, one has "
            f"{float(found)}: {self.world}"
        )


def ends_of(outcome: Outcome) -> list[int]:
    """Last ends of all jobs [ticks], by rows of the schedule; of jobs that are not complete the end of the run."""
    stopped = outcome.instance.stopped_s
    ends = [0] * len(outcome.instance.workload)
    rows = zip(outcome.schedule.job.tolist(), outcome.schedule.end_s.tolist(), strict=True)
    for j, end_s in rows:
        ends[j] = max(ends[j], int(end_s * TICKS))
    if stopped is not None:
        for j in np.flatnonzero(~outcome.complete).tolist():
            ends[j] = int(stopped * TICKS)
    return ends


def cost_of(world: World, outcome: Outcome, objective: str) -> Fraction:
    """Cost of a run [ticks]."""
    ends, jobs = ends_of(outcome), world.jobs
    weighted = sum((jobs[j].weight * ends[j] for j in world.counted), Fraction(0))
    last = max((ends[j] for j in world.counted), default=0)
    return cost(world, Least(weighted, Fraction(last)), objective)
