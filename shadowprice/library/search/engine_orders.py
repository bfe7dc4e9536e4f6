"""Orders and choices of jobs, carried out by the engine, for instances of any terms."""

from __future__ import annotations

import numpy as np

from shadowprice.analysis.metrics import end_s
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import ShadowpriceError
from shadowprice.execution.engine import run
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.search.list_loops import TIE
from shadowprice.library.search.moves import Ints, climb
from shadowprice.library.search.ranked.failing import RankedOnFailing
from shadowprice.library.search.ranked.fed import RankedOnServers
from shadowprice.library.search.ranked.mapped import RankedGraphs
from shadowprice.library.search.ranked.paired import RankedPairs
from shadowprice.library.search.ranked.plain import RankedGangs
from shadowprice.library.search.ranked.planned import RankedOnce, knows_plans
from shadowprice.library.search.ranked.protocol import Make, Ranked
from shadowprice.library.search.ranked.wide import RankedWidths
from shadowprice.library.search.rated_loops import Floats
from shadowprice.library.search.rated_orders import compiled_ends
from shadowprice.solvers.placement.consolidated import Consolidate
from shadowprice.solvers.placement.count import Count

KINDS: tuple[tuple[Feature, type[Ranked]], ...] = (
    (Feature.GRAPHS, RankedGraphs),
    (Feature.WIDTHS, RankedWidths),
    (Feature.PROFILES, RankedOnServers),
    (Feature.FAILURES, RankedOnFailing),
    (Feature.SHARING, RankedPairs),
)
"""Policies that suit a term; of several the first."""


def maker(instance: Instance, *, preemptive: bool) -> tuple[Make, Ints]:
    """Makes the policy that suits the terms of an instance, and the choices of each job."""
    suited = (kind for feature, kind in KINDS if feature in instance.features)
    kind = next(suited, RankedGangs)
    if not preemptive and knows_plans(instance):
        kind = RankedOnce
    return kind.made_for(instance, preemptive=preemptive), kind.choices(instance)


def better_by_engine(
    instance: Instance,
    goal: Objective,
    outcome: Outcome,
    *,
    preemptive: bool,
    seconds: float,
    seed: int,
) -> tuple[Schedule | None, int]:
    """The best schedule that orders and choices near those of a run come to, unverified, and how many were tried."""
    make, choices = maker(instance, preemptive=preemptive)
    placement = Consolidate() if Feature.SPREAD in instance.features else Count()
    weight, arrival = instance.workload.weight, instance.workload.arrival_s

    quick = compiled_ends(instance, preemptive=preemptive)

    def rank_of(order: Ints) -> Ints:
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank

    def schedule_of(order: Ints, choice: Ints) -> Schedule:
        return run(instance, make(rank_of(order), choice), placement=placement).schedule

    def ends_of(order: Ints, choice: Ints) -> Floats:
        if quick is not None:
            return quick(rank_of(order), choice)
        try:
            return end_s(instance, schedule_of(order, choice))
        except ShadowpriceError:
            return np.full(len(order), np.inf)

    def cost(order: Ints, choice: Ints) -> float:
        ends = ends_of(order, choice)
        if goal is Objective.MAKESPAN:
            return float(ends.max() + TIE * ends.mean())
        return float(np.dot(weight, ends - arrival))

    ends = outcome.end_s
    key = ends if preemptive else ends - instance.shortest_s
    order = np.lexsort((arrival, key))
    start = cost(order, np.zeros(len(order), dtype=np.int64))
    heat = 0.02 * start / len(order) if goal is not Objective.MAKESPAN else 1e-4 * start
    found = climb(order, choices, cost, seconds=seconds, heat=heat, seed=seed)
    if not np.isfinite(found.cost):
        return None, found.moves
    try:
        return schedule_of(found.order, found.choice), found.moves
    except ShadowpriceError:
        return None, found.moves
