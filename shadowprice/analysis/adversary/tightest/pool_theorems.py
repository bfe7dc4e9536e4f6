"""Theorems on runs of gangs on one pool of GPUs: A-SRPT's, ServerFilling's, the widest first, heSRPT, SRPT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.adversary.tightest.comparisons import (
    TightnessOf,
    WholeColumn,
    WitnessedRatio,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.hard_instances import Rows
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import conversion, early, prediction, ratio, robust, sharper
from shadowprice.proofs.classic import (
    elapsed_time,
    hesrpt,
    kill_restart,
    least_parallelisable,
    relevant_work,
    saturation,
    server_filling,
)
from shadowprice.proofs.lower_bounds import srpt_one_machine
from shadowprice.solvers.asrpt.cycles import Cycles
from shadowprice.solvers.offline.list_optimum import optimal_starts_s
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.predictors.oracle import specification
from shadowprice.solvers.registry import policy

ARRIVAL, WORK = WholeColumn("arrival_s", 0, 8), WholeColumn("work_s", 1, 8)


def gangs(cluster: str, rows: Rows) -> Instance:
    """Jobs of arrival [s], work [s] and, in a third column, GPUs; in order of arrival, 1 GPU without that column."""
    ordered = sorted(rows, key=lambda row: row[0])
    workload = Workload.from_columns(
        arrival_s=[float(row[0]) for row in ordered],
        work=[float(row[1]) for row in ordered],
        gpus=[row[2] if len(row) > 2 else 1 for row in ordered],
    )
    return Instance(Cluster.parse(cluster), workload)


def verified_ends(instance: Instance, acting: Policy | str) -> NDArray[np.float64]:
    """Completions [s] of a policy's run, which is verified."""
    chosen = policy(acting) if isinstance(acting, str) else acting
    return Outcome.verified(instance, run(instance, chosen).schedule, policy=chosen.name).end_s


def cost_of(instance: Instance, acting: Policy | str, goal: Objective) -> Fraction:
    """Cost of a policy's verified run [s]."""
    return Fraction(goal.cost_s(instance.workload, verified_ends(instance, acting)))


def least_known(instance: Instance, goal: Objective = Objective.COMPLETION) -> Fraction:
    """The least cost [s] of some schedules that one could have made: not below the optimum.

    SRTF, SRSF, and for up to six jobs the best without preemption. On one GPU SRTF is optimal.
    """
    costs = [cost_of(instance, name, goal) for name in ("srtf", "srsf")]
    if len(instance.workload) <= 6 and instance.cluster.total_gpus > 1:
        ends = optimal_starts_s(instance) + instance.shortest_s
        costs.append(Fraction(goal.cost_s(instance.workload, ends)))
    return min(costs)


def of_conversion(rows: Rows) -> WitnessedRatio:
    """The job of A-SRPT that comes closest to its bound."""
    instance = gangs("1x4", rows)
    most = conversion.job_bounds(conversion.Gangs.of(instance))
    ends = verified_ends(instance, "asrpt").tolist()
    pairs = [(Fraction(end), each / TICKS_PER_S) for end, each in zip(ends, most, strict=True)]
    return WitnessedRatio(*max(pairs, key=lambda pair: pair[0] / pair[1]))


def of_blocked(rows: Rows, factor: Callable[[Instance], Fraction]) -> WitnessedRatio:
    """A narrow job and many short ones of all 4 GPUs behind it, under A-SRPT."""
    ((count, parts),) = rows
    instance = sharper.tight_family(4, (1,), 4, count, 2**parts)
    cost = cost_of(instance, "asrpt", Objective.COMPLETION)
    return WitnessedRatio(cost / least_known(instance), factor(instance))


def of_sharper(rows: Rows) -> WitnessedRatio:
    """The same with the factor of ASRPT-sharper."""
    return of_blocked(rows, sharper.bound)


def of_ratio(rows: Rows) -> WitnessedRatio:
    """The same with the factor of ASRPT-ratio."""
    return of_blocked(rows, ratio.bound)


def of_early(rows: Rows) -> WitnessedRatio:
    """A guard of 1, and a virtual machine as fast as the cluster, on one GPU."""
    instance = gangs("1x1", rows)
    cost = cost_of(instance, "asrpt-guarded:stretch=1", Objective.COMPLETION)
    return WitnessedRatio(cost / least_known(instance), early.bound(instance))


def of_prediction(rows: Rows) -> WitnessedRatio:
    """Predictions that are off by powers of two, on one GPU."""
    ordered = tuple(sorted(rows, key=lambda row: row[0]))
    instance = gangs("1x1", tuple(row[:2] for row in ordered))
    errors = [Fraction(2) ** row[2] for row in ordered]
    names = instance.workload.id.tolist()
    times = specification({name: float(e) for name, e in zip(names, errors, strict=True)})
    acting = policy(f"asrpt:predictor={times}")
    virtual = [row[1] * float(error) for row, error in zip(ordered, errors, strict=True)]
    cost = cost_of(instance, acting, Objective.COMPLETION)
    return WitnessedRatio(cost / least_known(instance), prediction.bound(instance, virtual))


def of_b_scaling(rows: Rows) -> WitnessedRatio:
    """Jobs a tick longer than powers of 3, the longest first, with tries of 3, 9, 27 ... on one machine."""
    tries = kill_restart.Tries(3, 3 * TICKS_PER_S)
    longest_first = sorted(rows, key=lambda row: -row[0])
    work = [TICKS_PER_S * 3**power + 1 for power, jobs in longest_first for _ in range(jobs)]
    least = kill_restart.least_flow([Fraction(each) for each in work])
    return WitnessedRatio(sum(tries.completions(work)) / least, tries.factor)


def of_robust(rows: Rows) -> WitnessedRatio:
    """Cycles of 4 s, half of them blind, predictions off by powers of two, on two GPUs."""
    ordered = tuple(sorted(rows, key=lambda row: row[0]))
    instance = gangs("1x2", tuple(row[:3] for row in ordered))
    errors = [2.0 ** row[3] for row in ordered]
    times = specification(dict(zip(instance.workload.id.tolist(), errors, strict=True)))
    cycles = Cycles(4 * TICKS_PER_S, 2 * TICKS_PER_S)
    acting = policy(f"asrpt-robust:cycle_s=4,predictor={times}")
    virtual = [row[1] * error for row, error in zip(ordered, errors, strict=True)]
    cost = cost_of(instance, acting, Objective.COMPLETION)
    return WitnessedRatio(cost, robust.bound(instance, cycles, virtual))


def of_filling_work(rows: Rows) -> WitnessedRatio:
    """Total flow time of ServerFilling-SRPT, statement (c)."""
    instance = gangs("1x4", tuple((a, w, 2**g) for a, w, g in rows))
    return WitnessedRatio(
        cost_of(instance, "server-filling-srpt", Objective.FLOW), relevant_work.bound(instance)
    )


def of_filling(rows: Rows) -> WitnessedRatio:
    """The last completion over the least time at which all can be complete, below 2 by statement (c)."""
    instance = gangs("1x4", tuple((a, w, 2**g) for a, w, g in rows))
    jobs = instance.workload
    area = sum(g * Fraction(p) for g, p in zip(jobs.gpus.tolist(), jobs.work.tolist(), strict=True))
    alone = max(Fraction(each) for each in (jobs.arrival_s + jobs.work).tolist())
    last = Fraction(float(verified_ends(instance, "server-filling-srpt").max()))
    server_filling.bound(instance)  # Its hypotheses.
    return WitnessedRatio(last / max(area / 4, alone), Fraction(2))


def of_widest_first(rows: Rows) -> WitnessedRatio:
    """The last completion of narrow and wide jobs on three GPUs, statement (b)."""
    instance = gangs("1x3", tuple((0, work, 3 if wide else 1) for work, wide in rows))
    last = Fraction(float(verified_ends(instance, "msf").max()))
    return WitnessedRatio(last, saturation.bound(instance))


def of_hesrpt(rows: Rows) -> WitnessedRatio:
    """Jobs that may grow to four GPUs, at three quarters of the speed for each doubling."""
    plain = gangs("1x4", tuple((0, *row) for row in rows))
    count = len(rows)
    elastic = Elasticity(np.full(count, 4), np.full(count, 0.75))
    instance = replace(plain, elasticity=elastic)
    total = cost_of(instance, "hesrpt", Objective.COMPLETION)
    return WitnessedRatio(hesrpt.bound(instance), total)


def of_least_parallelisable(rows: Rows) -> WitnessedRatio:
    """The last completion over the least time at which all can be complete, below 2 by statement (c)."""
    ordered = sorted(rows, key=lambda row: row[0])
    plain = gangs("1x4", tuple(row[:2] for row in ordered))
    elastic = Elasticity(np.array([row[2] for row in ordered]), np.ones(len(ordered)))
    instance = replace(plain, elasticity=elastic)
    last = cost_of(instance, "lpf", Objective.MAKESPAN)
    return WitnessedRatio(last / least_parallelisable.least_makespan(instance), Fraction(2))


def of_srpt(rows: Rows) -> WitnessedRatio:
    """SRPT on one GPU."""
    instance = gangs("1x1", rows)
    return WitnessedRatio(
        srpt_one_machine.bound(instance), cost_of(instance, "srtf", Objective.COMPLETION)
    )


SPEED = Fraction(5, 4)
"""Of the machine on which the machine is shared among those that ran least."""


def of_elapsed_time(rows: Rows) -> WitnessedRatio:
    """Total flow time of SETF on a machine a quarter as fast again, over the optimum's."""
    instance = gangs("1x1", rows)
    release, work = (
        [Fraction(each) for each in column.tolist()]
        for column in (instance.workload.arrival_s, instance.workload.work)
    )
    flow = sum(elapsed_time.completions(release, work, SPEED)) - sum(release)
    allowed = elapsed_time.factor(SPEED)
    return WitnessedRatio(flow * allowed / elapsed_time.bound(instance, SPEED), allowed)


_GANG = WholeColumn("gpus", 1, 4)
_POWER = WholeColumn("log2_gpus", 0, 2)

_BLOCKED = (WholeColumn("short_jobs", 1, 200), WholeColumn("log2_parts", 0, 14))

ENTRIES = (
    TightnessOf(
        "asrpt.sharper",
        "total completion time of A-SRPT behind a narrow job on 4 GPUs over the optimum's, and the factor",
        _BLOCKED,
        1,
        1,
        of_sharper,
        known=(((200, 14),),),
    ),
    TightnessOf(
        "asrpt.ratio",
        "total completion time of A-SRPT behind a narrow job on 4 GPUs over the optimum's, and the factor",
        _BLOCKED,
        1,
        1,
        of_ratio,
        known=(((200, 14),),),
    ),
    TightnessOf(
        "asrpt.conversion",
        "completion of the closest of three jobs or more on 4 GPUs under A-SRPT [s], and its bound",
        (ARRIVAL, WORK, _GANG),
        3,
        6,
        of_conversion,
    ),
    TightnessOf(
        "asrpt.early",
        "total completion time on one GPU with a guard of 1 over the optimum's, and the factor",
        (ARRIVAL, WholeColumn("work_s", 1, 16)),
        1,
        6,
        of_early,
    ),
    TightnessOf(
        "asrpt.prediction",
        "total completion time of A-SRPT on one GPU over the optimum's, and the factor",
        (ARRIVAL, WORK, WholeColumn("log2_error", -2, 2)),
        1,
        5,
        of_prediction,
    ),
    TightnessOf(
        "classic.relevant_work",
        "total flow time on 4 GPUs [s], and the bound (c)",
        (ARRIVAL, WORK, _POWER),
        1,
        8,
        of_filling_work,
    ),
    TightnessOf(
        "classic.server_filling",
        "last completion on 4 GPUs over the least possible, and the factor of (c)",
        (ARRIVAL, WORK, _POWER),
        1,
        8,
        of_filling,
        known=(((0, 1, 0),) * 4 + ((0, 1, 0),) * 4 + ((0, 2, 0),),),
    ),
    TightnessOf(
        "classic.saturation",
        "last completion under the widest first on 3 GPUs [s], and the bound (b)",
        (WORK, WholeColumn("wide", 0, 1)),
        2,
        7,
        of_widest_first,
    ),
    TightnessOf(
        "classic.hesrpt",
        "the bound [s] of two jobs or more on 4 GPUs, and the total of heSRPT's run in whole widths",
        (WholeColumn("work_s", 1, 64), _GANG),
        2,
        5,
        of_hesrpt,
    ),
    TightnessOf(
        "classic.least_parallelisable",
        "last completion of one-GPU jobs that grow on 4 GPUs over the least possible, and the factor of (c)",
        (ARRIVAL, WORK, WholeColumn("widest", 1, 4)),
        1,
        13,
        of_least_parallelisable,
        known=(((0, 1, 1),) * 12 + ((0, 4, 1),),),
    ),
    TightnessOf(
        "asrpt.robust",
        "total completion time of asrpt-robust on two GPUs [s], and the sum of the smaller bounds of each job",
        (ARRIVAL, WORK, WholeColumn("gpus", 1, 2), WholeColumn("log2_error", -4, 4)),
        1,
        6,
        of_robust,
    ),
    TightnessOf(
        "classic.kill_restart",
        "total flow time of b-scaling over the optimum's on one machine, and the factor for b = 3, rounded up",
        (WholeColumn("log3_work", 0, 9), WholeColumn("jobs", 1, 200)),
        1,
        10,
        of_b_scaling,
        known=(tuple(enumerate(kill_restart.family(3, 10, 200))),),
    ),
    TightnessOf(
        "classic.elapsed_time",
        f"total flow time of SETF at speed {SPEED} over the optimum's at speed 1, and the factor",
        (ARRIVAL, WORK),
        2,
        8,
        of_elapsed_time,
    ),
    TightnessOf(
        "lower_bounds.srpt_one_machine",
        "the least total completion time of three jobs or more on one GPU [s], and SRTF's",
        (ARRIVAL, WORK),
        3,
        5,
        of_srpt,
    ),
)
"""Entries of these theorems."""
