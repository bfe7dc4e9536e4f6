"""Readers of instances: theorems, what is looked up of them, and adversaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from shadowprice.analysis.adversary import family
from shadowprice.analysis.adversary.judge import Judge
from shadowprice.analysis.adversary.search import FEASIBLE, rerun
from shadowprice.analysis.guarantees import any_order
from shadowprice.errors import InputError
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.shares import run_in_shares
from shadowprice.instances.documents import benchmark_document
from shadowprice.instances.features import Feature, unknown
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
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
from shadowprice.proofs.gandiva import matching
from shadowprice.proofs.gavel import proportional_fairness
from shadowprice.proofs.hadar import copies_work
from shadowprice.proofs.lower_bounds import srpt_one_machine
from shadowprice.proofs.tiresias import las
from shadowprice.solvers.asrpt.cycles import Cycles
from shadowprice.solvers.classic.b_scaling import BScaling
from support.consumers.consumer import Consumer
from support.feature_instances import instance_with

NOBODY = Schedule(
    *(np.zeros(0, dtype=np.int64) for _ in range(3)), *(np.zeros(0) for _ in range(3))
)
"""The schedule of no runs."""

LIMITS_GPU_S = (2.0, 8.0)


def single(*features: Feature) -> Instance:
    """As :func:`instance_with`, with gangs of one GPU."""
    found = instance_with(*features)
    return replace(found, workload=replace(found.workload, gpus=np.ones(4, dtype=np.int64)))


def on_one_gpu(*features: Feature) -> Instance:
    """Jobs of one GPU on a cluster of one."""
    found = single(*features)
    node = replace(found.cluster.nodes[0], gpus=1)
    return replace(found, cluster=replace(found.cluster, nodes=(node,)))


def together(*features: Feature) -> Instance:
    """Jobs of one GPU that are all there at 0."""
    found = single(*features)
    return replace(found, workload=replace(found.workload, arrival_s=np.zeros(4)))


def restarted(*features: Feature) -> Instance:
    """Jobs on one GPU, all there at 0, that restart when they are preempted."""
    found = on_one_gpu(*{*features, Feature.RESTART})
    return replace(found, workload=replace(found.workload, arrival_s=np.zeros(4)))


def copied(*features: Feature) -> Instance:
    """Jobs that run as several copies."""
    return instance_with(*{*features, Feature.COPIES})


def _copies(instance: Instance) -> object:
    schedule = NOBODY if instance.copies is None else HadarE().schedule(instance)
    assert copies_work.check(instance, schedule)
    return schedule


def _in_shares(instance: Instance) -> object:
    """Prices of the run of plain jobs, said to be of the instance."""
    plain = run_in_shares(instance_with(), "proportional_fairness:aware=true")
    run = replace(plain, instance=instance)
    return proportional_fairness.check(run), proportional_fairness.best_least_cost(run)


def _one_after_another(instance: Instance) -> object:
    found = any_order.any_order_ticks(instance, Objective.COMPLETION)
    if found is None:
        raise InputError("; ".join(unknown(instance, any_order.KNOWS)))
    return found


def _hard(instance: Instance) -> HardInstance:
    return HardInstance(
        "hard",
        "fifo",
        None,
        Objective.COMPLETION,
        instance,
        NOBODY,
        1.0,
        1.0,
        Fraction(1),
        FEASIBLE,
        {},
    )


def _hunted(instance: Instance) -> object:
    """Each that an adversary does with an instance refuses it."""
    judge = Judge("fifo", Objective.COMPLETION, family.InstanceFamily())
    refused = []
    for each in (
        lambda: rerun(_hard(instance)),
        lambda: judge.possible(instance, 7),
    ):
        try:
            each()
        except InputError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]
    return instance


def _theorem(
    module: ModuleType,
    read: Callable[[Instance], object],
    make: Callable[..., Instance] = instance_with,
) -> Consumer:
    name = module.__name__.removeprefix("shadowprice.")
    return Consumer(f"{name}.KNOWS", module.KNOWS, read, make)


def _all(*calls: Callable[..., Any]) -> Callable[[Instance], object]:
    """Calls of which each refuses what the first one refuses."""

    def read(instance: Instance) -> object:
        found = []
        for each in calls:
            try:
                found.append(each(instance))
            except InputError as error:
                found.append(error)
        errors = [each for each in found if isinstance(each, InputError)]
        assert len(errors) in (0, len(calls)), found
        if errors:
            raise errors[0]
        return found

    return read


TRIES = BScaling(b=2, first_s=1.0)
CYCLES = Cycles(8 * TICKS_PER_S, 4 * TICKS_PER_S)

CONSUMERS: tuple[Consumer, ...] = (
    _theorem(
        conversion,
        _all(
            conversion.bound,
            conversion.Gangs.of,
            conversion.longest_ticks,
            lambda i: conversion.check(i, 1),
        ),
    ),
    _theorem(prediction, _all(prediction.bound, lambda i: prediction.check(i, 1))),
    _theorem(ratio, _all(ratio.bound, lambda i: ratio.check(i, 1))),
    _theorem(sharper, _all(sharper.bound, lambda i: sharper.check(i, 1))),
    _theorem(early, _all(early.bound, lambda i: early.check(i, 1))),
    _theorem(
        robust,
        _all(
            lambda i: robust.bound(i, CYCLES),
            lambda i: robust.check(i, [1] * 4, CYCLES),
        ),
    ),
    _theorem(server_filling, _all(server_filling.bound, lambda i: server_filling.check(i, NOBODY))),
    _theorem(
        relevant_work,
        _all(
            relevant_work.bound,
            relevant_work.least_flow,
            relevant_work.more_jobs,
            lambda i: relevant_work.check(i, NOBODY),
        ),
    ),
    _theorem(
        saturation,
        _all(
            saturation.bound,
            saturation.last_in_order,
            lambda i: saturation.check(i, NOBODY),
            lambda i: saturation.check_in_order(i, NOBODY),
        ),
        together,
    ),
    _theorem(
        elapsed_time,
        _all(
            lambda i: elapsed_time.bound(i, Fraction(2)),
            lambda i: elapsed_time.check(i, Fraction(2), [Fraction(9)] * 4),
        ),
        on_one_gpu,
    ),
    _theorem(nonclairvoyant, lambda i: nonclairvoyant.check(i, 1, Fraction(1)), on_one_gpu),
    _theorem(
        least_parallelisable,
        _all(
            least_parallelisable.bound,
            least_parallelisable.makespan_bound,
            lambda i: least_parallelisable.check(i, NOBODY),
        ),
        single,
    ),
    _theorem(
        kill_restart,
        _all(
            lambda i: kill_restart.bound(i, TRIES),
            kill_restart.least,
            lambda i: kill_restart.check(i, 1, TRIES),
        ),
        restarted,
    ),
    _theorem(hesrpt, _all(hesrpt.bound, hesrpt.exponent, lambda i: hesrpt.check(i, 1))),
    _theorem(
        las,
        _all(
            lambda i: las.bound(i, LIMITS_GPU_S),
            lambda i: las.bounds(i, LIMITS_GPU_S),
            lambda i: las.check(i, LIMITS_GPU_S, [1] * 4),
        ),
    ),
    _theorem(
        srpt_one_machine,
        _all(srpt_one_machine.bound, lambda i: srpt_one_machine.check(i, 1)),
        on_one_gpu,
    ),
    _theorem(
        matching,
        _all(
            lambda i: list(matching.spells(i, NOBODY)),
            lambda i: matching.check_introspection(i, NOBODY, 60.0),
        ),
    ),
    _theorem(proportional_fairness, _in_shares),
    _theorem(copies_work, _copies, copied),
    _theorem(any_order, _one_after_another),
    _theorem(family, _hunted),
    _theorem(benchmark_document, lambda i: _hard(i).to_json()),
)
