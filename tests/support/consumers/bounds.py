"""Readers of instances that bound or find what is possible on them, and certify it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.analysis import bounds as every_bound
from shadowprice.analysis import certify, certify_utility, compare, limits, preparation
from shadowprice.analysis.audit import measures
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates import (
    cascade,
    checked_class,
    modes,
    records,
    speed_up,
    speeds,
)
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.limits import Measure
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.utility import compare as utility_compare
from shadowprice.errors import InputError
from shadowprice.execution import engine
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.job_window import cut_schedule
from shadowprice.instances import schedule_class
from shadowprice.instances.features import Feature, unknown
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.utility import over_duration
from shadowprice.library.score import measures as score_measures
from shadowprice.models import round_jobs, slotted
from shadowprice.proofs.classic import hesrpt
from shadowprice.proofs.hadar import copies_work
from shadowprice.proofs.lower_bounds import (
    amounts,
    completion_windows,
    configurations,
    fluid,
    goodput,
    job,
    list_schedules,
    mbt,
    nodes,
    pairs,
    priced_machine,
    priced_plans,
    span,
    wide_gangs,
)
from shadowprice.solvers.hadar.offline import optimum as hadar_optimum
from shadowprice.solvers.offline import (
    bounds,
    non_preemptive,
    one_pool,
    preemptive,
)
from shadowprice.solvers.offline.completions.completion_search import CompletionTree, Priced
from shadowprice.solvers.offline.modes import amounts as amount_modes
from shadowprice.solvers.offline.modes import nodes as node_modes
from shadowprice.solvers.offline.modes import pairs as pair_modes
from shadowprice.solvers.offline.modes import types as type_modes
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices
from shadowprice.solvers.offline.type_prices import SpanPrices
from shadowprice.solvers.registry import policy
from support.consumers.consumer import Consumer
from support.feature_instances import instance_with, may_meet

ROUND_S = 4.0
ROUNDS = 5
SECOND = (0, TICKS_PER_S)

Read = Callable[[Instance], object]


def ran(instance: Instance) -> Outcome:
    """A verified run of an instance with any features; FIFO's, of copies HadarE's."""
    if instance.copies is not None:
        return Outcome.verified(instance, HadarE().schedule(instance), policy="hadare")
    done = engine.run(replace(instance, stopped_s=None, until_complete=None), policy("fifo"))
    schedule, ends_s = done.schedule, instance.stopped_s
    if instance.until_complete is not None:
        ends_s = float(schedule.end_s[schedule.job < instance.until_complete.last].max())
    if ends_s is not None:
        schedule = cut_schedule(schedule, ends_s)
    made = replace(
        done.instance, stopped_s=instance.stopped_s, until_complete=instance.until_complete
    )
    return Outcome.verified(made, schedule, policy="fifo")


def shared(instance: Instance) -> bool:
    """True if there are rates of jobs that share GPUs."""
    return Feature.SHARING in instance.features


def with_one_of(*others: Feature) -> Callable[..., Instance]:
    """Instances with the first of these features that may be there beside what is asked for."""

    def make(*features: Feature) -> Instance:
        more = next(each for each in others if may_meet({each, *features}))
        return alone(more, *features)

    return make


def alone(*features: Feature) -> Instance:
    """Jobs of which no two may share GPUs: rates of pairs are of others."""
    instance = instance_with(*features)
    if shared(instance):
        others = ("none", 1)
        rates = {(name, others, others): (0.75, 0.75) for name in instance.cluster.gpu_types}
        table = Throughputs(instance.cluster.gpu_types, {}, rates)
        instance = replace(instance, sharing_rates=table)
    return instance


def rigid(*features: Feature) -> Instance:
    """Jobs of which none may grow and no two may share GPUs."""
    instance = alone(*features)
    jobs = instance.workload
    if Feature.WIDTHS in instance.features:
        instance = replace(instance, elasticity=Elasticity(jobs.gpus, np.ones(len(jobs))))
    return instance


def of_one_speed(*features: Feature) -> Instance:
    """Rigid jobs that are as fast on all GPU types."""
    instance = rigid(*features)
    rates = instance.workload.throughput
    if rates is None:
        return instance
    jobs = replace(instance.workload, throughput=np.ones_like(rates))
    return replace(instance, workload=jobs)


def left_out(found: Callable[[Instance], Iterable[Any]], knows: Collection[Feature]) -> Read:
    """Of a reader that has nothing to say of what it does not know: refuses with the words for that."""

    def read(instance: Instance) -> None:
        if not list(found(instance)):
            raise InputError("; ".join(unknown(instance, knows)))

    return read


def speed_ups(instance: Instance) -> Iterator[Any]:
    """Bounds at powers of widths."""
    yield from speed_up.speed_up_bounds(
        instance, checked_class.CheckedClass.of(instance, pairs=False)
    )


def modes_of(instance: Instance) -> Iterator[Any]:
    """Modes of a certificate."""
    pairs = shared(instance)
    work = checked_class.CheckedClass.of(instance, pairs=pairs)
    yield from modes.certificate_modes(instance, work, pairs=pairs, consolidated=True)


def type_modes_of(instance: Instance) -> Iterator[Any]:
    """Modes of GPU types, of jobs that share with nobody."""
    found = modes.type_modes(instance, checked_class.CheckedClass.of(instance, pairs=False))
    yield from () if found is None else (found,)


def at_prices_of(
    of: Callable[[Instance], Any], bound: Callable[[Instance, tuple[int, ...]], object]
) -> Read:
    """Asks for a bound at prices of 1 for each of the resources that modes have."""

    def read(instance: Instance) -> object:
        try:
            resources = len(of(instance).capacity)
        except InputError:
            resources = 1  # The bound has to refuse by itself.
        return bound(instance, (1,) * resources)

    return read


def window_tree(instance: Instance) -> CompletionTree:
    """One part that holds all schedules, at prices of 0."""
    rows = ((0,),) * len(instance.workload)
    second = (Fraction(0), Fraction(TICKS_PER_S))
    return CompletionTree(Priced(second, rows), tuple(range(len(rows))), Fraction(1))


def class_of(instance: Instance) -> None:
    """Asks for the class that is allowed, and for that of a run."""
    every = ScheduleClass.allowed(instance, preemptive=True)
    assert every.contains(ScheduleClass.used(instance, ran(instance).schedule))


CONSUMERS = (
    Consumer("proofs.lower_bounds.fluid.KNOWS", fluid.KNOWS, fluid.bound),
    Consumer("proofs.lower_bounds.mbt.KNOWS", mbt.KNOWS, mbt.bound),
    Consumer("proofs.lower_bounds.job.KNOWS", job.KNOWS, job.bound),
    Consumer(
        "proofs.lower_bounds.span.KNOWS",
        span.KNOWS,
        at_prices_of(
            type_modes.gpu_type_modes,
            lambda i, p: span.bound(i, SpanPrices(p, (0,) * len(i.workload))),
        ),
    ),
    Consumer(
        "proofs.lower_bounds.priced_machine.KNOWS",
        priced_machine.KNOWS,
        at_prices_of(type_modes.gpu_type_modes, priced_machine.bound),
    ),
    Consumer(
        "proofs.lower_bounds.priced_plans.KNOWS",
        priced_plans.KNOWS,
        lambda i: priced_plans.bound(i, PlanPrices(SECOND, (1,))),
    ),
    Consumer(
        "proofs.lower_bounds.configurations.KNOWS",
        configurations.KNOWS,
        lambda i: configurations.bound(i, GangPrices(SECOND, (1, 2), ((1,), (2,)))),
        rigid,
    ),
    Consumer(
        "proofs.lower_bounds.goodput.KNOWS",
        goodput.KNOWS,
        goodput.bound,
        lambda *more: instance_with(Feature.GOODPUT, *more),
    ),
    Consumer("proofs.lower_bounds.wide_gangs.KNOWS", wide_gangs.KNOWS, wide_gangs.bound, rigid),
    Consumer(
        "proofs.lower_bounds.completion_windows.KNOWS",
        completion_windows.KNOWS,
        lambda i: completion_windows.bound(i, window_tree(i)),
        rigid,
    ),
    Consumer(
        "proofs.lower_bounds.list_schedules.KNOWS",
        list_schedules.KNOWS,
        list_schedules.bound,
        rigid,
    ),
    Consumer(
        "proofs.lower_bounds.pairs.KNOWS",
        pairs.KNOWS,
        at_prices_of(pair_modes.pair_modes, pairs.bound),
        lambda *f: instance_with(Feature.SHARING, *f),
    ),
    Consumer(
        "proofs.lower_bounds.nodes.KNOWS",
        nodes.KNOWS,
        at_prices_of(
            lambda i: node_modes.node_modes(i, consolidated=True),
            lambda i, p: nodes.bound(i, p, consolidated=True),
        ),
        alone,
    ),
    Consumer(
        "proofs.lower_bounds.amounts.KNOWS",
        amounts.KNOWS,
        at_prices_of(amount_modes.amount_modes, amounts.bound),
        with_one_of(Feature.WIDTHS, Feature.PROFILES),
    ),
    Consumer("proofs.classic.hesrpt.KNOWS", hesrpt.KNOWS, hesrpt.bound, alone),
    Consumer(
        "proofs.hadar.copies_work.KNOWS",
        copies_work.KNOWS,
        lambda i: copies_work.check(i, ran(i).schedule),
        lambda *f: instance_with(Feature.COPIES, *f),
    ),
    Consumer("instances.schedule_class.KNOWS", schedule_class.KNOWS, class_of),
    Consumer("models.slotted.KNOWS", slotted.KNOWS, slotted.Slotted.of),
    Consumer(
        "models.round_jobs.KNOWS",
        round_jobs.KNOWS,
        lambda i: round_jobs.RoundJobs.of(i, over_duration(i, ROUND_S, ROUNDS)),
    ),
    Consumer(
        "solvers.hadar.offline.optimum.KNOWS",
        hadar_optimum.KNOWS,
        lambda i: hadar_optimum.optimum(i, over_duration(i, ROUND_S, ROUNDS), time_limit_s=0.1),
    ),
    Consumer("solvers.offline.bounds.KNOWS", bounds.KNOWS, bounds.Relaxation.of),
    Consumer("solvers.offline.modes.types.KNOWS", type_modes.KNOWS, type_modes.gpu_type_modes),
    Consumer("solvers.offline.modes.pairs.KNOWS", pair_modes.KNOWS, pair_modes.pair_modes),
    Consumer("solvers.offline.modes.amounts.KNOWS", amount_modes.KNOWS, amount_modes.amount_modes),
    Consumer(
        "solvers.offline.modes.nodes.KNOWS",
        node_modes.KNOWS,
        lambda i: node_modes.node_modes(i, consolidated=True),
    ),
    Consumer(
        "solvers.offline.one_pool.KNOWS",
        one_pool.KNOWS,
        lambda i: non_preemptive.optimum(i, budget_s=5.0),
        of_one_speed,
    ),
    Consumer(
        "solvers.offline.preemptive.KNOWS",
        preemptive.KNOWS,
        lambda i: preemptive.slotted_preemptive_optimum(i, budget_s=5.0),
        of_one_speed,
    ),
    Consumer(
        "analysis.preparation.BOUNDED_KNOWS",
        preparation.BOUNDED_KNOWS,
        lambda i: preparation.require_bounded(preparation.PreparedRun("fifo", i, policy("fifo"))),
    ),
    Consumer(
        "analysis.limits.KNOWS",
        limits.KNOWS,
        lambda i: limits.limit(ran(i), Measure.MEAN_JCT, columns=100),
    ),
    Consumer(
        "library.score.measures.KNOWS",
        score_measures.KNOWS,
        lambda i: score_measures.ScoreMeasures.of(ran(i)),
    ),
    Consumer(
        "analysis.audit.measures.KNOWS",
        measures.KNOWS,
        lambda i: measures.measure(ran(i)),
    ),
    Consumer(
        "analysis.utility.compare.KNOWS",
        utility_compare.KNOWS,
        lambda i: utility_compare.expect_comparable(ran(i), i),
    ),
    Consumer(
        "analysis.certificates.checked_class.KNOWS",
        checked_class.KNOWS,
        lambda i: checked_class.CheckedClass.of(i, pairs=shared(i)),
    ),
    Consumer(
        "analysis.certificates.speeds.TYPED_KNOWS",
        speeds.TYPED_KNOWS,
        left_out(lambda i: [i] * speeds.types_alone(i), speeds.TYPED_KNOWS),
    ),
    Consumer(
        "analysis.certificates.records.KNOWS",
        records.KNOWS,
        lambda i: list(records.instance_records(i, pairs=shared(i))),
    ),
    Consumer(
        "analysis.certificates.modes.KNOWS",
        modes.KNOWS,
        left_out(modes_of, modes.KNOWS),
        lambda *f: instance_with(Feature.TYPES, *f) if Feature.SHARING in f else instance_with(*f),
    ),
    Consumer(
        "analysis.certificates.modes.TYPE_KNOWS",
        modes.TYPE_KNOWS,
        left_out(type_modes_of, modes.TYPE_KNOWS),
        lambda *f: instance_with(Feature.TYPES, *f),
    ),
    Consumer(
        "analysis.certificates.speed_up.KNOWS",
        speed_up.KNOWS,
        left_out(speed_ups, speed_up.KNOWS),
        lambda *f: instance_with(Feature.WIDTHS, *f),
    ),
    Consumer(
        "analysis.bounds.KNOWS",
        every_bound.KNOWS,
        lambda i: certified_bounds(i, (Objective.FLOW,), BoundEffort.of_size(100)),
    ),
    Consumer(
        "analysis.compare.KNOWS",
        compare.KNOWS,
        lambda i: compare.require_comparable(preparation.PreparedRun("fifo", i, policy("fifo"))),
    ),
    Consumer(
        "analysis.certificates.cascade.KNOWS",
        cascade.KNOWS,
        cascade.Asked.of,
    ),
    Consumer(
        "analysis.certify.KNOWS",
        certify.KNOWS,
        lambda i: certify.certify(ran(i), Objective.FLOW, budget_s=0.0),
    ),
    Consumer(
        "analysis.certify_utility.KNOWS",
        certify_utility.KNOWS,
        lambda i: certify_utility.certify_utility(ran(i), "completion_time", ROUND_S, budget_s=0.0),
    ),
)
