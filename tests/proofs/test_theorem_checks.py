"""Every check of every theorem says yes at its bound and no just beyond it, term by term.

A check that cannot say no proves nothing. The table below shows each one what it has to refuse: its
bound exceeded by next to nothing, one hypothesis or one term broken at a time; and beside that what
it has to accept, exactly at the bound. A theorem file without rows here fails.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_theorems import theorems
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.shares import run_in_shares
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.grid import TICK_S, TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from shadowprice.models.slotted import Slotted
from shadowprice.proofs.asrpt import conversion as asrpt_conversion
from shadowprice.proofs.asrpt import early as asrpt_early
from shadowprice.proofs.asrpt import heavy_edge
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt import robust as asrpt_robust
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.certificate import verify
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
from shadowprice.proofs.gandiva import matching as gandiva_matching
from shadowprice.proofs.gavel import pop
from shadowprice.proofs.gavel import proportional_fairness as gavel_pf
from shadowprice.proofs.gavel import rounds as gavel_rounds
from shadowprice.proofs.gavel import share as gavel_share
from shadowprice.proofs.hadar import any_schedule as hadar_any_schedule
from shadowprice.proofs.hadar import competitive as hadar_competitive
from shadowprice.proofs.hadar import copies_work as hadare_work
from shadowprice.proofs.hadar import run_certificate as hadar_certificate
from shadowprice.proofs.lower_bounds import amounts as lb_amount
from shadowprice.proofs.lower_bounds import completion_windows as lb_windows
from shadowprice.proofs.lower_bounds import configurations as lb_conf
from shadowprice.proofs.lower_bounds import fluid as lb_fluid
from shadowprice.proofs.lower_bounds import goodput as lb_goodput
from shadowprice.proofs.lower_bounds import job as lb_job
from shadowprice.proofs.lower_bounds import list_schedules as lb_list
from shadowprice.proofs.lower_bounds import lp as lb_lp
from shadowprice.proofs.lower_bounds import mbt as lb_mbt
from shadowprice.proofs.lower_bounds import modes as lb_mode
from shadowprice.proofs.lower_bounds import nodes as lb_node
from shadowprice.proofs.lower_bounds import pairs as lb_pair
from shadowprice.proofs.lower_bounds import priced_machine as lb_price
from shadowprice.proofs.lower_bounds import priced_plans as lb_plan
from shadowprice.proofs.lower_bounds import span as lb_span
from shadowprice.proofs.lower_bounds import srpt_one_machine
from shadowprice.proofs.lower_bounds import wide_gangs as lb_wide
from shadowprice.proofs.synergy import floor as synergy_floor
from shadowprice.proofs.tiresias import gittins as tiresias_gittins
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.asrpt.robust import RobustAsrpt
from shadowprice.solvers.classic.b_scaling import BScaling
from shadowprice.solvers.gavel.policies.pop import Pop
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.hadar.commit_schedule import CommittableJob
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.offline.completions.completion_search import CompletionTree, Cut, Priced
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable
from shadowprice.solvers.offline.modes.nodes import node_modes
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices
from shadowprice.solvers.offline.type_prices import SpanPrices
from shadowprice.solvers.offline.typed_bound import TypedPrices
from shadowprice.solvers.synergy.servers import (
    ROUNDING,
    Demands,
    ResourceRequest,
    ServerGrant,
    Servers,
)
from support.goodput_tables import small

TICK = Fraction(1, TICKS_PER_S)
LEAST = Fraction(1, 10**40)
"""Next to nothing."""


@dataclass(frozen=True)
class Case:
    """What a check is asked, and what it has to answer; an error it has to raise instead."""

    check: Callable[..., bool]
    what: str
    answer: bool | type[Exception]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def yes(check: Callable[..., bool], what: str, *arguments: Any, **options: Any) -> Case:
    return Case(check, what, True, arguments, options)


def no(check: Callable[..., bool], what: str, *arguments: Any, **options: Any) -> Case:
    return Case(check, what, False, arguments, options)


def refused(
    error: type[Exception], check: Callable[..., bool], what: str, *arguments: Any, **options: Any
) -> Case:
    return Case(check, what, error, arguments, options)


def at_most(
    check: Callable[..., bool],
    what: str,
    instance: Instance,
    most: Fraction | int,
    *more: Any,
    **options: Any,
) -> Iterator[Case]:
    """An upper bound: accepted at it and below, refused next to nothing above."""
    yield yes(check, f"{what}, at the bound", instance, most, *more, **options)
    yield yes(check, f"{what}, below", instance, most - LEAST, *more, **options)
    yield no(check, f"{what}, above", instance, most + LEAST, *more, **options)


def at_least(
    check: Callable[..., bool], what: str, instance: Instance, least: Fraction | int
) -> Iterator[Case]:
    """A lower bound: accepted at it and above, refused next to nothing below."""
    yield yes(check, f"{what}, at the bound", instance, least)
    yield yes(check, f"{what}, above", instance, least + LEAST)
    yield no(check, f"{what}, below", instance, least - LEAST)


def on(
    cluster: str,
    arrival: Sequence[float],
    gpus: Sequence[int],
    work: Sequence[float],
    weight: Sequence[float] | None = None,
) -> Instance:
    more = {} if weight is None else {"weight": weight}
    columns = {"arrival_s": arrival, "gpus": gpus, "work": work, **more}
    return Instance(Cluster.parse(cluster), Workload.from_columns(**columns))


# Lower bounds of the optimum.


def of_proportional_fairness() -> Iterator[Case]:
    """A job of one GPU and one of both, run in shares; prices, rates and ends changed one at a time."""
    check = gavel_pf.check
    instance = on("1x2", [0, 1], [1, 2], [2, 3])
    run = run_in_shares(instance, "proportional_fairness:aware=true")
    yield yes(check, "the market's shares", run)
    yield no(check, "max-min", run_in_shares(instance, "max_min_fairness:aware=true"))
    yield refused(InputError, check, "no prices", run_in_shares(instance, "isolated"))
    yield no(check, "an end too late", replace(run, end_s=(run.end_s[0], run.end_s[1] + TICK)))
    yield no(check, "work left", replace(run, steps=run.steps[:-1]))
    first, *others = run.steps
    faster = replace(first, rate=tuple(2 * each for each in first.rate))
    yield no(check, "rates not of the shares", replace(run, steps=(faster, *others)))
    nothing = replace(first, rate=tuple(Fraction(0) for _ in first.rate))
    yield refused(InputError, check, "no rate", replace(run, steps=(nothing, *others)))
    prices = first.allocation.prices
    assert prices is not None
    dear = replace(first.allocation, prices=replace(prices, worker=prices.worker + 1e-3))
    wrong = (replace(first, allocation=dear), *others)
    yield no(check, "prices too high", replace(run, steps=wrong))


def rows(*given: tuple[int, int, float, float]) -> Schedule:
    """A schedule on one node, from job, GPUs, start and end of each run."""
    job, gpus, start, end = (np.array(column) for column in zip(*given, strict=True))
    none = np.zeros(len(job))
    at = (start.astype(float), end.astype(float))
    return Schedule(job, none.astype(np.int64), gpus, *at, none)


def of_saturation() -> Iterator[Case]:
    """Narrow jobs of 2, 2 and 4 on two GPUs around a wide one of 3: in order 2 + 3 + 4, else 3 + 4 + 2 at most."""
    check, in_order = saturation.check, saturation.check_in_order
    instance = on("1x2", [0] * 4, [1, 1, 2, 1], [2, 2, 3, 4])

    def wide_first(last: float) -> Schedule:
        return rows((2, 2, 0, 3), (0, 1, 3, 5), (1, 1, 3, 5), (3, 1, last - 4, last))

    yield yes(check, "at the bound", instance, wide_first(9))
    yield no(check, "later", instance, wide_first(9 + float(TICK)))
    order = rows((0, 1, 0, 2), (1, 1, 0, 2), (2, 2, 2, 5), (3, 1, 5, 9))
    yield yes(in_order, "in order", instance, order)
    yield no(in_order, "faster than in order", instance, wide_first(7))
    alone = on("1x2", [0], [2], [3])
    yield yes(check, "a wide one alone", alone, rows((0, 2, 0, 3)))
    yield no(check, "a wide one, later", alone, rows((0, 2, float(TICK), 3 + float(TICK))))
    other = on("1x3", [0], [2], [3])
    yield refused(InputError, check, "two of three GPUs", other, rows((0, 2, 0, 3)))
    late = on("1x2", [1], [2], [3])
    yield refused(InputError, in_order, "arrivals", late, rows((0, 2, 1, 4)))


def of_elapsed_time() -> Iterator[Case]:
    """Jobs of 2 and 1 at 0 and 1, which SRPT completes at 3 and 2: flow 4; at speed 2 twice that is allowed."""
    check, two = elapsed_time.check, Fraction(2)
    instance = on("1x1", [0, 1], [1, 1], [2, 1])
    yield yes(check, "SETF", instance, two, [Fraction(1), Fraction(3, 2)])
    # Flow times of 2 + 6 are allowed, but only while SRPT has a job left.
    yield yes(check, "both until the other has none", instance, two, [Fraction(3), Fraction(3)])
    yield no(check, "a job more than none", instance, two, [Fraction(3) + LEAST, Fraction(3)])
    yield no(check, "(a) without (b)", instance, two, [Fraction(2), Fraction(7)])
    # Speed 4 allows 4/3 of one job: no two, where SRPT has one left.
    four = Fraction(4)
    alone = [Fraction(1), Fraction(2)]
    yield yes(check, "one beside one", instance, four, alone)
    both = on("1x1", [0, 0], [1, 1], [1, 3])
    yield yes(check, "two beside two, then one", both, four, [Fraction(1), Fraction(4)])
    yield no(check, "two beside one", both, four, [Fraction(2), Fraction(2)])
    yield refused(InputError, check, "speed 1", instance, Fraction(1), [Fraction(3)] * 2)
    gangs = on("1x2", [0], [2], [1])
    yield refused(InputError, check, "two GPUs", gangs, two, [Fraction(1)])


def of_nonclairvoyant() -> Iterator[Case]:
    """Jobs of 1 and 3 at 0, of a least total of 5; and a third of 1 at 2, of a least total flow of 1 + 5 + 1."""
    check = nonclairvoyant.check
    for what, instance, least in (
        ("1 + 4", on("1x1", [0, 0], [1, 1], [1, 3]), 5),
        ("1 + 5 + 1", on("1x1", [0, 0, 2], [1, 1, 1], [1, 3, 1]), 7),
    ):
        for ratio in (Fraction(1), Fraction(4, 3)):
            yield yes(check, f"{ratio} of {what}, at the bound", instance, ratio * least, ratio)
            yield no(check, f"{ratio} of {what}, below", instance, ratio * least - LEAST, ratio)


def of_hesrpt() -> Iterator[Case]:
    """Jobs that grow on four GPUs; with linear speed-up the total is that of SRPT on one machine, (8 + 2 x 4) / 4."""
    check = hesrpt.check

    def growing(
        efficiency: float | Sequence[float], gpus: Sequence[int], work: Sequence[float]
    ) -> Instance:
        plain = on("1x4", [0] * len(gpus), gpus, work)
        each = np.broadcast_to(np.asarray(efficiency), len(gpus))
        elastic = Elasticity(np.full(len(gpus), 4), each)
        return replace(plain, elasticity=elastic)

    linear = growing(1.0, [1, 1], [8, 4])
    yield from at_least(check, "linear speed-up", linear, 4)
    yield from at_least(
        check, "a gang of two is of twice the size", growing(1.0, [2, 1], [4, 4]), 4
    )
    yield from at_least(check, "nobody grows", growing(1.0, [4, 4], [8, 4]), 12)
    # One that does not grow has no part in p, of others the best has.
    mixed = growing([0.75, 1.0], [1, 1], [8, 4])
    yield from at_least(check, "the best speed-up counts for all", mixed, 4)
    still = growing([1.0, 0.75], [4, 4], [8, 4])
    yield from at_least(check, "the speed-up of those who cannot grow counts for none", still, 12)
    # p = 1/2 but for the rounding of the efficiency: c = 1 and sqrt(3), and four GPUs are twice as fast.
    root = growing(math.sqrt(0.5), [1, 1], [8, 4])
    least = Fraction((8 + 4 * math.sqrt(3)) / 2)
    yield yes(check, "square roots, above", root, least + Fraction(1, 10**9))
    yield no(check, "square roots, below", root, least - Fraction(1, 10**9))
    typed = {"throughput": [[1.0]], "gpu_types": ("a",)}
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[1], **typed)
    yield refused(InputError, check, "types", Instance(Cluster.parse("1x1:a"), jobs), 1)


def with_widths(arrival: Sequence[float], work: Sequence[float], widest: Sequence[int]) -> Instance:
    """Jobs of one GPU that grow with no loss, on two GPUs."""
    plain = on("1x2", arrival, [1] * len(work), work)
    elastic = Elasticity(np.array(widest), np.ones(len(work)))
    return replace(plain, elasticity=elastic)


def of_least_parallelisable() -> Iterator[Case]:
    """On two GPUs jobs of one GPU and of up to two, with linear speed-ups, and one that grows with a loss."""
    check, beside = least_parallelisable.check, least_parallelisable.check_dominated
    ticks = float(TICK)

    # (b): the job of two GPUs by 6 / 2 + 2 / 2, and 2 ticks; the other by 2, and 1 tick.
    two = with_widths([0, 0], [6, 2], [2, 1])
    first = rows((0, 1, 0, 2), (1, 1, 0, 2), (0, 2, 2, 4))
    yield yes(check, "as lpf", two, first)
    idle = rows((0, 1, 0, 2), (1, 1, 0, 2), (0, 2, 2 + 2 * ticks, 4 + 2 * ticks))
    yield yes(check, "at the bound", two, idle)
    idle = rows((0, 1, 0, 2), (1, 1, 0, 2), (0, 2, 2 + 3 * ticks, 4 + 3 * ticks))
    yield no(check, "later", two, idle)
    last = rows((0, 2, 0, 3), (1, 1, 3, 5))
    yield no(check, "the lower level waits", two, last)
    yield yes(beside, "less left than the opposite order", two, first, last)
    yield no(beside, "more left than lpf", two, last, first)
    # (a): of level 1 there may be left 2 - 1 of the longest, 4, beside one machine, and 2 GPU-ticks a job.
    narrow = with_widths([0, 0, 0], [4, 4, 8], [1, 1, 1])
    each = rows((0, 1, 0, 4), (1, 1, 0, 4), (2, 1, 4, 12))
    yield yes(check, "in order of arrival", narrow, each)
    yield from of_work_left_of_levels()
    order = rows((2, 1, 0, 8), (0, 1, 0, 4), (1, 1, 4, 8))
    yield yes(beside, "beside itself", narrow, each, each)
    with_order = with_widths([0, 0, 0, 0], [4, 4, 8, 1], [1, 1, 1, 2])
    others = rows((2, 1, 0, 8), (0, 1, 0, 4), (1, 1, 4, 8), (3, 2, 8, 8.5))
    yield refused(InputError, beside, "the last first", narrow, each, order)
    yield refused(InputError, beside, "the last first, beside others", with_order, others, others)
    lossy = replace(two, elasticity=Elasticity(np.array([2, 1]), np.full(2, 0.75)))
    yield yes(
        check,
        "a job of 1.5 on two GPUs",
        lossy,
        rows((1, 1, 0, 2), (0, 1, 0, 2), (0, 2, 2, 2 + 8 / 3)),
    )
    yield refused(InputError, beside, "no linear speed-up", lossy, first, first)
    three = replace(
        on("1x3", [0], [1], [1]),
        elasticity=Elasticity(np.array([2]), np.ones(1)),
    )
    alone = rows((0, 2, 0, 0.5))
    yield refused(InputError, beside, "two of three GPUs", three, alone, alone)
    gang = on("1x2", [0], [2], [1])
    yield refused(InputError, check, "a gang of two", gang, rows((0, 2, 0, 1)))


def of_work_left_of_levels() -> Iterator[Case]:
    """Statement (a), where (b) holds."""
    check, ticks = least_parallelisable.check, float(TICK)
    # Ten at 0, for which (b) lets those at 100 wait, and (a) does not: at 101.5 one machine is done.
    later = with_widths([0] * 10 + [100] * 3, [1] * 13, [1] * 13)
    paired = [(k, 1, k // 2, k // 2 + 1) for k in range(10)]

    def idle_until(start: float) -> Schedule:
        return rows(*paired, *((10 + k, 1, start + k // 2, start + k // 2 + 1) for k in range(3)))

    yield yes(check, "idle, at the bound", later, idle_until(100.5 + 13 * ticks))
    yield no(check, "idle for longer", later, idle_until(100.5 + 14 * ticks))
    one_more = rows(
        *paired,
        (10, 1, 100.5 + 13 * ticks, 101.5 + 13 * ticks),
        (11, 1, 100.5 + 14 * ticks, 101.5 + 14 * ticks),
        (12, 1, 101.5 + 13 * ticks, 102.5 + 13 * ticks),
    )
    yield no(check, "one of two idle for a tick longer", later, one_more)
    # The same jobs wait for one of two GPUs: of all levels together nothing is left that a machine had done.
    above = with_widths([0] * 10 + [100] * 4, [1] * 13 + [20], [1] * 13 + [2])
    last_first = rows(
        *paired,
        (13, 2, 100, 103),
        *((10 + k, 1, 103 + k // 2, 104 + k // 2) for k in range(3)),
        (13, 1, 104, 105),
        (13, 2, 105, 111.5),
    )
    yield no(check, "a lower level waits for a higher one", above, last_first)
    plain = on("1x2", [0, 0], [1, 1], [1, 2])
    yield yes(check, "nobody grows", plain, rows((0, 1, 0, 1), (1, 1, 0, 2)))


def of_asrpt_robust() -> Iterator[Case]:
    """Half of the time is blind, cycles of 2 s; a job of 4 s before one of 8 s on one GPU, and gangs on two."""
    check, cycles = asrpt_robust.check, RobustAsrpt(share=0.5, cycle_s=2.0).cycles

    def within(
        what: str, instance: Instance, first: float, second: float, **more: Any
    ) -> Iterator[Case]:
        ends = [Fraction(first), Fraction(second)]
        yield yes(check, f"{what}, at the bounds", instance, ends, cycles, **more)
        for job in range(2):
            late = [end + LEAST * (k == job) for k, end in enumerate(ends)]
            yield no(check, f"{what}, job {job} above", instance, late, cycles, **more)

    # Virtual completions at 4 and 12: 2 (4 + 4) of (a), 1 + 2 (4 + 5) of (b); 2 (12 + 4 + 8), and 1 + 2 (8 + 4).
    yield from within("one GPU", on("1x1", [0, 0], [1, 1], [4, 8]), 16, 25)
    # Told 64 times as long the first comes last: (b) for both.
    yield from within(
        "a wrong prediction", on("1x1", [0, 0], [1, 1], [4, 8]), 19, 25, virtual_s=[256, 8]
    )
    # A wide gang of 2 s after a narrow one of 4 s: virtual work 2 and 2; m - g + 1 is 1 for the wide one.
    yield from within("gangs", on("1x2", [0, 0], [1, 2], [4, 2]), 12, 13)
    # From 10 s on, of which 5 are predicted; (a) is about 2 (5 + 4 + 4), (b) 10 + 1 + 2 (4 + 5).
    yield from within("a release", on("1x1", [10, 10], [1, 1], [4, 8]), 26, 35)
    charged = replace(on("1x1", [0], [1], [1]), overheads=Overheads(start_s=1.0))
    yield refused(InputError, check, "charges", charged, [1], cycles)
    anew = replace(on("1x1", [0], [1], [1]), preemption=Preemption.RESTART)
    yield refused(InputError, check, "restarts", anew, [1], cycles)


def of_kill_restart() -> Iterator[Case]:
    """Tries that grow fourfold: rho is 1 + 16 / 3, and a job of 1 and one of 3 cost 5 at best."""
    check, policy = kill_restart.check, BScaling(b=4, first_s=4.0)

    def tried(cluster: str, gpus: Sequence[int], work: Sequence[float], at: float = 0) -> Instance:
        return replace(on(cluster, [at] * len(gpus), gpus, work), preemption=Preemption.RESTART)

    two, rho = tried("1x1", [1, 1], [1, 3]), 1 + Fraction(16, 3)
    yield from at_most(check, "one GPU", two, 5 * rho, policy)
    wide = tried("1x5", [3, 5], [3, 1], at=7)
    yield from at_most(check, "gangs of more than half", wide, 5 * rho, policy)
    # A job of 0.5 counts as one of 1, a fourth of the first try.
    short = tried("1x1", [1, 1], [0.5, 3])
    yield from at_most(check, "shorter than a fourth of the first try", short, 5 * rho, policy)
    # rho is irrational for b = 3: 6.1961524227066 less a little.
    alone = tried("1x1", [1], [1])
    yield yes(check, "below a root", alone, Fraction(61961524227066, 10**13), BScaling())
    yield no(check, "above a root", alone, Fraction(61961524227067, 10**13), BScaling())
    late = replace(on("1x1", [0, 1], [1, 1], [1, 1]), preemption=Preemption.RESTART)
    weights = on("1x1", [0, 0], [1, 1], [1, 1], weight=[1, 2])
    for what, instance in (
        ("work that is kept", on("1x1", [0], [1], [1])),
        ("two at once", tried("1x2", [1, 1], [1, 1])),
        ("two at once, of four", tried("1x4", [2, 3], [1, 1])),
        ("arrivals", late),
        ("charges", replace(two, overheads=Overheads(start_s=1.0))),
        ("weights", replace(weights, preemption=Preemption.RESTART)),
    ):
        yield refused(InputError, check, what, instance, 1, policy)


def of_relevant_work() -> Iterator[Case]:
    """Five jobs on one GPU, and gangs that wait while single ones run."""
    check = relevant_work.check

    alike = on("1x1", [0] * 5, [1] * 5, [1] * 5)
    yield yes(check, "one after the other", alike, rows(*((k, 1, k, k + 1) for k in range(5))))
    # Work of at most 1 may be 1 more than on the machine.
    one = rows((0, 1, 0, 1), (1, 1, 1, 2), (2, 1, 3, 4), (3, 1, 4, 5), (4, 1, 5, 6))
    yield yes(check, "one job more than on the machine", alike, one)
    two = rows((0, 1, 0, 1), (1, 1, 1, 2), (2, 1, 4, 5), (3, 1, 5, 6), (4, 1, 6, 7))
    yield no(check, "two jobs more than on the machine", alike, two)
    late = rows((0, 1, 0, 1), (1, 1, 1, 2), (2, 1, 2, 3), (3, 1, 3, 4), (4, 1, 50, 51))
    yield no(check, "one job that waits: total flow time", alike, late)
    # Work of at most 1: the machine has one of them left at 4, here four are; few enough, but too much work.
    long_first = on("1x1", [0] * 5, [1] * 5, [1, 1, 1, 1, 64])
    last = rows((4, 1, 0, 64), (0, 1, 64, 65), (1, 1, 65, 66), (2, 1, 66, 67), (3, 1, 67, 68))
    yield no(check, "relevant work of the longest first", long_first, last)
    # With 1, 2, 4, ... left at 200 relevant work is close, but six jobs are there: N <= N^1 + 4.
    six = on("1x2", [0] * 6, [1] * 6, [64] * 6)
    begun = ((0, 1, 0, 63), (1, 1, 0, 62), (2, 1, 63, 123), (3, 1, 63, 119), (4, 1, 123, 171))
    begun = (*begun, (5, 1, 123, 155))
    ended = [(k, 1, 200, 200 + 2**k) for k in range(2)]
    ended += [(k, 1, 200 + 2 ** (k - 1), 200 + 2 ** (k - 1) + 2**k) for k in range(2, 6)]
    yield no(check, "many jobs with little left", six, rows(*begun, *ended))
    gangs = on("1x2", [0] * 3, [2, 1, 1], [4, 2, 2])
    whole = rows((1, 1, 0, 2), (2, 1, 0, 2), (0, 2, 2, 6))
    yield yes(check, "two single GPUs, then a gang of both", gangs, whole)
    yield refused(InputError, check, "three GPUs", on("1x3", [0], [1], [1]), rows((0, 1, 0, 1)))


def of_server_filling() -> Iterator[Case]:
    """A gang of both GPUs, and two of one that come a second apart."""
    check = server_filling.check
    jobs = Workload.from_columns(arrival_s=[0, 0, 1], gpus=[2, 1, 1], work=[2, 2, 2])
    instance = Instance(Cluster.parse("1x2"), jobs)

    filled = rows((0, 2, 0, 2), (1, 1, 2, 4), (2, 1, 2, 4))
    yield yes(check, "widest first", instance, filled)
    yield no(
        check,
        "one GPU idle while three are asked for",
        instance,
        rows((1, 1, 0, 2), (0, 2, 2, 4), (2, 1, 4, 6)),
    )
    late = rows((1, 1, 2, 4), (2, 1, 2, 4), (0, 2, 4, 6))
    yield no(check, "the gang of both after its last moment", instance, late)
    yield refused(InputError, check, "three GPUs", Instance(Cluster.parse("1x3"), jobs), filled)


def of_lb_job() -> Iterator[Case]:
    instance = on("1x4", [0, 3, 7], [4, 1, 2], [4, 1, 2], [1, 2, 5])
    yield from at_least(lb_job.check, "1 (0 + 4) + 2 (3 + 1) + 5 (7 + 2)", instance, 57)
    shifted = on("1x1", [TICK_S], [1], [TICK_S], [0.5])
    yield from at_least(lb_job.check, "two ticks at half the weight", shifted, TICK)


def of_lb_fluid() -> Iterator[Case]:
    """Works of 2, 1/2 and 1 on the machine; the first is interrupted at 1."""
    instance = on("1x4", [0, 1, 1], [4, 2, 1], [2, 1, 4])
    yield from at_least(lb_fluid.check, "3/2 + 5/2 + 7/2", instance, Fraction(15, 2))
    alone = on("1x3", [1], [1], [1])
    down = Fraction(TICKS_PER_S + TICKS_PER_S // 3, TICKS_PER_S)
    yield from at_least(lb_fluid.check, "a third of a second more, rounded down", alone, down)


def of_srpt_one_machine() -> Iterator[Case]:
    instance = on("1x1", [0, 1, 3], [1, 1, 1], [10, 1, 2])
    yield from at_least(srpt_one_machine.check, "13 + 2 + 5", instance, 20)
    yield from at_least(srpt_one_machine.check, "one job", on("1x1", [2], [1], [3]), 5)
    two = on("1x2", [0, 0], [1, 1], [1, 1])
    yield refused(InputError, srpt_one_machine.check, "two machines", two, 2)


def of_lb_mbt() -> Iterator[Case]:
    """The heavier job interrupts: mean busy times 11/4 and 3/2."""
    instance = on("1x1", [0, 1], [1, 1], [4, 1], [1, 3])
    yield from at_least(lb_mbt.check, "11/4 + 4/2 + 3 (3/2 + 1/2)", instance, Fraction(43, 4))
    gangs = on("1x2", [0, 0], [2, 1], [2, 2])
    yield from at_least(lb_mbt.check, "(2 + 1) + (1/2 + 1)", gangs, Fraction(9, 2))
    third = on("1x3", [0], [1], [1], [1])
    down = Fraction((2 * TICKS_PER_S) // 3, TICKS_PER_S)
    yield from at_least(lb_mbt.check, "1/6 + 1/2, rounded down", third, down)


def typed(arrival: Sequence[float], works: Sequence[float]) -> Instance:
    """Jobs of one GPU on two GPUs, the first of which is half as fast; pools have the faster one first."""
    rates = {"throughput": [[0.5, 1.0]] * len(works), "gpu_types": ("slow", "fast")}
    jobs = Workload.from_columns(arrival_s=arrival, gpus=[1] * len(works), work=works, **rates)
    return Instance(Cluster.parse("1x1:slow,1x1:fast"), jobs)


def of_lb_price() -> Iterator[Case]:
    """At prices (2, 1) a second of work costs 2 of the 3 that both GPUs cost; at (1, 1) 1 of 2."""
    for what, instance, prices, least in (
        ("1 + 3/2 and 3 + 3/2", typed([0, 0], [3, 3]), (2, 1), 7),
        ("1/2 + 1, 3/2 + 1 ...", typed([0] * 8, [2] * 8), (1, 1), 40),
        ("SRPT, 60 + 18 + 26 ...", typed([0] + [10] * 5, [30] + [12] * 5), (2, 1), 230),
        ("equal prices", typed([0, 2], [2, 2]), (1, 1), Fraction(5)),
    ):
        yield yes(lb_price.check, f"{what}, at the bound", instance, least, prices)
        yield no(lb_price.check, f"{what}, below", instance, least - LEAST, prices)


def of_lb_plan() -> Iterator[Case]:
    """Plans end later where that is cheaper; an interruption is charged for in full."""
    for what, instance, grid, prices, least in (
        ("4 + 4 - 2", on("1x1", [0, 0], [1, 1], [2, 2]), (0, 2), (1,), 6),
        ("3 + 3 - 1", on("1x1", [0, 1], [1, 1], [2, 1]), (0, 1, 2), (0, 1), 5),
        ("4 + 4 - 3/2", on("1x3", [0, 0], [2, 2], [3, 3]), (0, 1), (0.5,), Fraction(13, 2)),
        (
            "weights 2 and 1",
            on("1x1", [0, 0], [1, 1], [1, 1], [2, 1]),
            (0, 1),
            (Fraction(1, 2),),
            4,
        ),
        ("after the grid", on("1x1", [5], [1], [3], [4]), (0, 4), (7,), 32 - 4 * 28),
        ("before the grid", on("1x1", [0], [1], [3]), (2, 5), (4,), 6 - 12),
    ):
        whole = tuple(int(price * PRICE_UNIT) for price in prices)
        given = PlanPrices(tuple(each * TICKS_PER_S for each in grid), whole)
        yield yes(lb_plan.check, f"{what}, at the bound", instance, least, given)
        yield no(lb_plan.check, f"{what}, below", instance, least - LEAST, given)


def sharing_pair() -> Instance:
    """A job that may share its GPU with another of its model."""
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 1], model=["a", "a"])
    pair = Throughputs(("gpu",), {}, {("gpu", ("a", 1), ("a", 1)): (0.6, 0.6)})
    return Instance(Cluster.parse("1x1"), jobs, sharing_rates=pair)


def of_lb_conf() -> Iterator[Case]:
    """Of two gangs of 2 on 3 GPUs one at a time is paid for, of gangs of 1 and 2 both."""
    for what, instance, widths, rows, least in (
        ("2 + 2 - 1", on("1x3", [0, 0], [2, 2], [1, 1]), (2,), ((1,),), 3),
        ("2 + 2 - 2", on("1x3", [0, 0], [1, 2], [1, 1]), (1, 2), ((1,), (1,)), 2),
        ("one gang there", on("1x4", [0, 1], [2, 2], [1, 1]), (2,), ((1,),), 3),
        ("one free", on("1x3", [0, 0], [1, 2], [1, 1]), (1, 2), ((0,), (0.5,)), 2),
    ):
        whole = tuple(tuple(int(price * PRICE_UNIT) for price in row) for row in rows)
        given = GangPrices((0, TICKS_PER_S), widths, whole)
        yield yes(lb_conf.check, f"{what}, at the bound", instance, least, given)
        yield no(lb_conf.check, f"{what}, below", instance, least - LEAST, given)
    given = GangPrices((0, TICKS_PER_S), (1,), ((1,),))
    yield refused(ValueError, lb_conf.check, "sharing", sharing_pair(), 100, given)


def of_lb_windows() -> Iterator[Case]:
    """Two gangs of 2 on 3 GPUs, one after the other: 1 + 2 at prices of 1 in the first second."""
    instance, one, halves = on("1x3", [0, 0], [2, 2], [1, 1]), Fraction(1), Fraction(1, 2)
    second = (Fraction(0), Fraction(TICKS_PER_S))
    paid, free = Priced(second, ((1,), (1,))), Priced(second, ((0,), (0,)))
    for what, root, least in (
        ("2 + 2 - 1", paid, 3),
        ("prices of 0", free, 2),
        ("free before a cut", Cut(0, TICKS_PER_S * one, free, paid), 2),
        ("an empty part", Cut(0, TICKS_PER_S * halves, free, paid), 3),
        ("a window that ends", Cut(1, TICKS_PER_S * 2 * one, paid, free), 3),
    ):
        given = CompletionTree(root, (0, 1), one)
        yield yes(lb_windows.check, f"{what}, at the bound", instance, least, given)
        yield no(lb_windows.check, f"{what}, below", instance, least - LEAST, given)
    other = on("1x4", [0, 0, 1], [2, 2, 1], [1, 1, 5])
    fits = CompletionTree(paid, (0, 1), one)
    yield yes(lb_windows.check, "both fit, a third alone", other, 2 + 2 - 2 + 6, fits)
    yield no(lb_windows.check, "both fit, below", other, 8 - LEAST, fits)
    yield refused(ValueError, lb_windows.check, "sharing", sharing_pair(), 100, fits)


def of_lb_list() -> Iterator[Case]:
    """A gang of 3, and two of 1 and 2 that run together beside it or after it, on 4 GPUs."""
    instance = on("1x4", [0, 0, 1], [3, 1, 2], [4, 3, 2])
    yield from at_least(lb_list.check, "the gang of 3 first", instance, 4 + 3 + 6)
    weights = on("1x4", [0, 0, 1], [3, 1, 2], [4, 3, 2], weight=[1, 1, 9])
    yield from at_least(lb_list.check, "the gang of 3 last", weights, 7 + 3 + 9 * 3)
    charged = replace(instance, overheads=Overheads(1.0, 5.0))
    yield from at_least(lb_list.check, "a start of a second", charged, 5 + 4 + 8)
    yield refused(ValueError, lb_list.check, "sharing", sharing_pair(), 100)


def of_lb_wide() -> Iterator[Case]:
    yield from at_least(
        lb_wide.check, "SRPT", on("1x3", [0, 0, 1], [2, 2, 2], [3, 4, 1]), 2 + 4 + 8
    )
    yield from at_least(lb_wide.check, "two at once", on("1x4", [0] * 3, [2] * 3, [4] * 3), 15)
    yield from at_least(
        lb_wide.check, "beside others", on("1x3", [0, 0, 2], [2, 2, 1], [1, 1, 5]), 10
    )
    weights = on("1x3", [0, 0], [2, 2], [1, 1], [3, 1])
    yield from at_least(lb_wide.check, "weights", weights, 5)
    yield refused(ValueError, lb_wide.check, "sharing", sharing_pair(), 100)


def of_lb_goodput() -> Iterator[Case]:
    """20 steps of 2 s on one GPU, of 1 s on two; half on each; a job with no goodput."""
    check = lb_goodput.check
    jobs = Workload.from_columns(arrival_s=[0.0], gpus=[1], work=1.0, model="m", batch_size=8)
    instance = Instance(Cluster.parse("1x2"), jobs, declared=(Goodput((small("m"),)),))
    # A least time is at most two ticks less than what it takes, for what rounding may be.
    for what, runs in (
        ("one GPU", [(0, 1, 0.0, 40.0)]),
        ("two GPUs", [(0, 2, 0.0, 20.0)]),
        ("one, then two", [(0, 1, 0.0, 20.0), (0, 2, 20.0, 30.0)]),
    ):
        yield yes(check, what, instance, rows(*runs))
        *before, (job, gpus, start_s, end_s) = runs
        short = (job, gpus, start_s, end_s - 4 / TICKS_PER_S)
        yield no(check, f"{what}, cut short", instance, rows(*before, short))
    half = replace(rows((0, 1, 0.0, 40.0)), overhead_s=np.array([20.0]))
    yield no(check, "half of it is overhead", instance, half)
    plain = on("1x2", [0], [1], [2])
    yield refused(ValueError, check, "no goodput", plain, rows((0, 1, 0.0, 40.0)))
    charged = replace(instance, until_complete=JobWindow(0, 1))
    yield refused(InputError, check, "a window", charged, rows((0, 1, 0.0, 40.0)))


def of_lb_mode() -> Iterator[Case]:
    """Two resources that every job needs, one of them half; modes that are types; a mode that costs less."""
    both = ModeTable(
        np.array([0, 0]),
        (Fraction(1), Fraction(1)),
        np.array([[2 * TICKS_PER_S]] * 2),
        np.array([1, 1]),
        np.array([0, 0]),
        np.array([[[USE_UNIT, USE_UNIT]]]),
    )
    half = replace(both, use=np.array([[[USE_UNIT, USE_UNIT // 2]]]))
    slow = replace(both, time=both.time * [[1, 3]], use=np.array([[[USE_UNIT, 0], [0, USE_UNIT]]]))
    typed_modes = gpu_type_modes(typed([0, 0], [3, 3]))
    for what, jobs, prices, least in (
        ("2 + 4", both, (1, 1), 6),
        ("3/4 + 9/4 + 1 + 1", half, (1, 1), 5),
        ("half of 2: 1/2 + 3/2 + 1 + 1", slow, (1, 1), 4),
        ("cheap by a fifth: 6 / 6, 12 / 6 and 2", slow, (5, 1), 4),
        ("types", typed_modes, (2, 1), 7),
        ("one resource decides", half, SpanPrices((1, 0), (0, 0)), 4),
        ("the other", half, SpanPrices((0, 1), (0, 0)), 2),
        ("own time", slow, SpanPrices((1, 1), (1, 1)), 2),
    ):
        yield yes(lb_mode.check, f"{what}, at the bound", jobs, least, prices)
        yield no(lb_mode.check, f"{what}, below", jobs, least - LEAST, prices)
    grid = np.array([0, 2, 4, 8]) * TICKS_PER_S
    dear = TypedPrices(grid, np.array([[PRICE_UNIT // 2, 0], [0, 0], [0, 0]]))
    yield yes(lb_mode.check, "prices by interval", both, 6, dear)
    yield no(lb_mode.check, "the first alone", both, Fraction(7, 2), dear)
    yield refused(ValueError, lb_mode.check, "one price", both, 6, (1,))


def of_lb_pair() -> Iterator[Case]:
    """Two that keep all of their speed count for half each."""
    jobs = Workload.from_columns(arrival_s=[0] * 3, gpus=[1] * 3, work=[1] * 3, model=["a"] * 3)
    rates = {("gpu", ("a", 1), ("a", 1)): (1.0, 1.0)}
    instance = Instance(Cluster.parse("1x1"), jobs, sharing_rates=Throughputs(("gpu",), {}, rates))
    for what, prices, least in (
        ("1/4 + 3/4 + 5/4 + 3/2", (1,), Fraction(15, 4)),
        ("three halves", SpanPrices((1,), (0,) * 3), Fraction(3, 2)),
    ):
        yield yes(lb_pair.check, f"{what}, at the bound", instance, least, prices)
        yield no(lb_pair.check, f"{what}, below", instance, least - LEAST, prices)
    alone = on("1x1", [0], [1], [1])
    yield refused(ValueError, lb_pair.check, "nobody shares", alone, 1, (1,))


def of_lb_node() -> Iterator[Case]:
    """Gangs of 5 on nodes of 8: one a node among consolidated schedules, across nodes at half their speed else."""
    jobs = on("2x8", [0] * 4, [5] * 4, [10] * 4)
    slower = replace(jobs, locality=Locality(np.full(4, 0.5)))
    for what, instance, few, least in (
        ("40 on two nodes", jobs, True, 20),
        # Within a node a gang uses one of two, across none, and its time has its price.
        ("GPUs alone", slower, False, Fraction(25, 2)),
    ):
        found = node_modes(instance, consolidated=few)
        assert found is not None
        rows = tuple(int(q == int(few)) for q in range(len(found.capacity)))
        given = SpanPrices(rows, (0,) * 4)
        yield yes(lb_node.check, f"{what}, at the bound", instance, least, given, consolidated=few)
        yield no(lb_node.check, f"{what}, below", instance, least - LEAST, given, consolidated=few)
    given = SpanPrices((1,), (0,) * 4)
    yield refused(ValueError, lb_node.check, "anywhere", jobs, 20, given, consolidated=False)


def of_lb_amount() -> Iterator[Case]:
    """Twice the GPUs for twice the speed are the same area; both CPUs of a node for full speed."""
    four = on("1x4", [0] * 4, [1] * 4, [10] * 4)
    grown = replace(four, elasticity=Elasticity(np.full(4, 2), np.ones(4)))
    given = SpanPrices((1,), (0,) * 4)
    yield yes(lb_amount.check, "40 / 4, at the bound", grown, 10, given)
    yield no(lb_amount.check, "40 / 4, below", grown, 10 - LEAST, given)
    profile = Profile(np.array([1.0, 2.0]), np.array([5.0]), np.array([[0.5], [1.0]]))
    hungry = Instance(
        Cluster((Node(4, cpus=4.0, memory_gb=20.0),)),
        four.workload,
        sensitivity=Sensitivity((profile,), np.zeros(4, dtype=np.int64)),
    )
    cpus = SpanPrices((0, 1, 0), (0,) * 4)
    yield yes(lb_amount.check, "80 CPU-seconds of 4", hungry, 20, cpus)
    # What profiles forgive is taken off.
    yield no(lb_amount.check, "80 CPU-seconds of 4, below", hungry, Fraction(19999, 1000), cpus)
    yield refused(ValueError, lb_amount.check, "neither", four, 10, given)


def of_lb_span() -> Iterator[Case]:
    """At prices (2, 1) both GPUs do 3/2 of work a second; a job's own time keeps it from both."""
    nobody, itself = (0, 0), (0, 1)
    for what, instance, prices, least in (
        ("6 of work, 3/2 a second", typed([0, 0], [3, 3]), SpanPrices((2, 1), nobody), 4),
        ("those from 10 on", typed([0, 10], [1, 12]), SpanPrices((2, 1), nobody), 22),
        ("alone", typed([0, 10], [1, 12]), SpanPrices((1, 1), itself), 22),
        ("own time: (1 + 12 2) / (2 + 1)", typed([0, 0], [1, 12]), SpanPrices((1, 1), itself), 12),
        ("own time: (2 + 8 4) / (3 + 2)", typed([0] * 2, [1, 6]), SpanPrices((2, 1), (0, 2)), 6),
    ):
        yield yes(lb_span.check, f"{what}, at the bound", instance, least, prices)
        yield no(lb_span.check, f"{what}, below", instance, least - LEAST, prices)


def of_lb_lp() -> Iterator[Case]:
    """Two jobs of 2 and 1 slots on one GPU; with prices (b, 0, 0) the bound is 3 + b for b <= 1."""
    column = np.array([1, 1])
    jobs = Slotted(np.array([0, 0]), np.array([2, 1]), column, column.astype(float), 1, 1, True)
    both, ordered = np.array([0, 0]), np.array([1, 0])
    yield yes(lb_lp.check, "the optimum of 4, which prices attain", jobs, [1.0, 0.5, 0.0], ordered)
    yield yes(lb_lp.check, "a bound of 3", jobs, np.zeros(3), both)
    yield no(lb_lp.check, "a bound of 3 + 2**-20", jobs, np.array([2.0**-20, 0, 0]), both)
    yield no(lb_lp.check, "a bound of 4", jobs, np.array([1.0, 0.5, 0.0]), both)
    late = replace(jobs, release=np.array([1, 0]))
    yield no(lb_lp.check, "a start before the release", late, np.zeros(3), both)
    heavy = replace(jobs, weight=np.array([1.0, 4.0]))
    yield yes(lb_lp.check, "weights: 2 + 4", heavy, np.zeros(3), both)
    yield no(lb_lp.check, "weights: 2 + 4 less", heavy, np.zeros(3), np.array([0, -1]))
    wide = replace(jobs, gpus=np.array([2, 1]), capacity=2)
    # Rents 2 and 1 less 2 GPUs: 3 + 2 b + b - 2 b.
    yield no(lb_lp.check, "gangs pay for each GPU", wide, np.array([0.25, 0.0, 0.0]), both)
    yield yes(lb_lp.check, "gangs that follow", wide, np.array([0.25, 0.0, 0.0]), ordered)


# A-SRPT.


def of_asrpt_conversion() -> Iterator[Case]:
    """Virtual order 1, 2, 0, at 1, 3 and 6; the widest gang so far leaves one GPU."""
    check = asrpt_conversion.check
    instance = on("1x4", [0, 0, 0], [3, 2, 4], [4, 2, 2])
    yield from at_most(check, "(1 + 2) + (3 + 4/1 + 2) + (6 + 12/1 + 4)", instance, 34)
    pair = on("1x4", [0, 0], [2, 3], [2, 4])
    yield from at_most(check, "(1 + 2) + (4 + 4/2 + 4)", pair, 13)
    third = on("1x3", [0], [1], [1])
    up = 1 + Fraction(-(-TICKS_PER_S // 3), TICKS_PER_S)
    yield from at_most(check, "a virtual completion between ticks", third, up)
    late = on("1x1", [5], [1], [1])
    yield from at_most(check, "a release of 5", late, 7)
    yield from at_most(check, "a prediction of 3 for 1", late, 9, [3.0])
    rates = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[1], throughput=[[1.0, 2.0]], gpu_types=("a", "b")
    )
    mixed = Instance(Cluster.parse("1x1:a,1x1:b"), rates)
    yield refused(InputError, check, "GPUs of two speeds", mixed, 1)
    yield refused(InputError, check, "nor with predictions", mixed, 1, [1.0])
    single = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[6], throughput=[[2.0]], gpu_types=("a",)
    )
    alike = Instance(Cluster.parse("2x1:a"), single)
    yield from at_most(check, "one type with a rate of 2: 3/2 + 3", alike, Fraction(9, 2))
    yield from at_most(
        check, "two types of one speed", on("1x1:a,1x1:b", [0], [1], [3]), Fraction(9, 2)
    )


def of_asrpt_prediction() -> Iterator[Case]:
    check = asrpt_prediction.check
    wide = on("1x4", [0], [3], [1])
    # K = 4 / 2, Lambda = 2, kappa = 1/2, rho = 1; OPT is at least 1; a tick for the job.
    yield from at_most(check, "2 (1 + 1/2 * 2) + 1", wide, 5 + TICK, [2.0])
    queue = on("1x1", [0, 0], [1, 1], [1, 1])
    yield from at_most(check, "3 times 1 + 2, two ticks", queue, 9 + 2 * TICK)
    apart = on("1x4", [0, 1], [1, 1], [1, 1])
    yield from at_most(check, "3 times 1 + 2 alone", apart, 9 + 2 * TICK)
    short = on("1x1", [0], [1], [1])
    yield from at_most(check, "Lambda is at least 1: (1 + 2) + 1", short, 4 + TICK, [0.5])


def of_asrpt_ratio() -> Iterator[Case]:
    check = asrpt_ratio.check
    wide = on("1x4", [0], [3], [1])
    yield from at_most(check, "1 + 1 + 2", wide, 4 + TICK)
    yield from at_most(check, "1 (2 + 2)", wide, 4 + TICK, basis="alpha_max")
    slow = with_traffic()
    rho, least_s = facts(slow)
    crowding = Fraction(2, 1)
    yield from at_most(check, "1 + rho + 2 rho", slow, (1 + rho + rho * crowding) * least_s + TICK)
    yield from at_most(
        check, "rho (2 + 2)", slow, rho * (2 + crowding) * least_s + TICK, basis="alpha_max"
    )
    yield refused(InputError, check, "a basis that there is not", wide, 1, basis="alpha")


def of_asrpt_sharper() -> Iterator[Case]:
    check = asrpt_sharper.check
    wide = on("1x4", [0, 0], [3, 3], [1, 1])
    # B = 3, and LB-fluid is 3/4 + 3/2.
    yield from at_most(
        check, "(1 + 4/3) + (1 - 3/3)", wide, Fraction(7, 3) * Fraction(9, 4) + 2 * TICK
    )
    single = on("1x2", [0] * 3, [1] * 3, [1] * 3)
    yield from at_most(check, "3 - 1/2 times 3", single, Fraction(15, 2) + 3 * TICK)
    alone = on("1x2", [0], [2], [1])
    yield from at_most(check, "nobody to wait for: 1 + 1", alone, 2 + TICK)
    yield from at_most(check, "and Lambda = 3", alone, 4 + TICK, [3.0])
    # Sums of gangs are 1, 2 and 3, at least 4 GPUs would have to be busy.
    never = on("1x5", [0, 0], [2, 1], [1, 1])
    yield from at_most(check, "nobody ever waits", never, 4 + 2 * TICK)
    slow = with_traffic(2)
    rho, least_s = facts(slow)
    # B = 2 of 2 GPUs, nothing is left of the last term; with a job of one GPU half of it is.
    yield from at_most(check, "1 + rho", slow, (1 + rho) * 3 * least_s + 2 * TICK)
    full = on("1x3", [0, 0], [3, 3], [1, 1])
    yield from at_most(check, "whole clusters: 2 times 3", full, 6 + 2 * TICK)


def of_asrpt_early() -> Iterator[Case]:
    check = asrpt_early.check
    one = on("1x1", [0], [1], [1])
    yield from at_most(check, "beta = 1: (1 + 1 + 1) + 1", one, 4 + TICK)
    yield from at_most(check, "beta = 0", one, 3 + TICK, 0)
    yield from at_most(check, "beta = 3: (1 + 3 + 1) + 1", one, 6 + TICK, 3)
    yield from at_most(check, "beta = 1/3", one, Fraction(10, 3) + TICK, Fraction(1, 3))
    # eta = 1/2 where the guard judges twice as long, 2 where half as long.
    yield from at_most(check, "judged 2", one, Fraction(9, 2) + TICK, 3, None, [2.0])
    yield from at_most(check, "judged 1/2", one, 9 + TICK, 3, None, [0.5])
    yield from at_most(
        check, "Lambda = 2, kappa = 1/2: 2 (1 + 6 + 1/2) + 1", one, 16 + TICK, 3, [2.0], [0.5]
    )
    wide = on("1x4", [0], [3], [1])
    yield from at_most(check, "K = 2: (1 + 3 + 2) + 1", wide, 7 + TICK, 3)


def with_traffic(n: int = 1) -> Instance:
    """Gangs of two on two GPUs whose iterations take longer across nodes than inside one."""
    graph = JobGraph("drawn", (Stage("a", 2, 0.25, 0.25, 3.0),), ())
    network = Network(20.0, 1.0, 2, "per-job")
    jobs = Workload.from_columns(arrival_s=[0] * n, gpus=[2] * n, work=[4] * n)
    of = np.zeros(n, dtype=np.int64)
    return Instance(Cluster.parse("1x2"), jobs, graphs=JobGraphs((graph,), of, network))


def facts(instance: Instance) -> tuple[Fraction, Fraction]:
    """Rho, and p [s], of all jobs."""
    gangs = Gangs.of(instance)
    rho = Fraction(gangs.longest[0], gangs.shortest[0])
    assert rho > 2
    return rho, gangs.shortest[0] * TICK


# Gandiva and Gavel.


def of_gandiva_matching() -> Iterator[Case]:
    check = gandiva_matching.check
    ends = {(0, 1): 1.0, (2, 3): 1.0}
    yield yes(check, "exactly half", ends, [(0, 1)])
    yield yes(check, "all of it", ends, [(0, 1), (2, 3)])
    yield no(check, "less than half by an ulp", ends | {(0, 1): 1.0 - 2.0**-53}, [(0, 1)])
    yield no(check, "nothing", ends, [])
    yield yes(check, "nothing of nothing", {}, [])
    path = gandiva_matching.tight_family(1, 2.0**-52)
    yield yes(check, "the middle of a path", path, [(1, 2)])
    yield no(check, "a job in two pairs", path, [(0, 1), (1, 2)])
    yield from _of_introspection()


def _of_introspection() -> Iterator[Case]:
    """Pairs that make 1, a little more, and a little less than time slicing, for a minute."""
    check = gandiva_matching.check_introspection
    trial = Fraction(60) + TICK
    for gain, verdict in ((1.0, no), (0.9, no), (1.0 + 2.0**-10, yes)):
        instance, schedule = sharing(gain, float(trial + TICK))
        yield verdict(check, f"gain {gain} after the trial", instance, schedule, 60.0)
        instance, schedule = sharing(gain, float(trial))
        yield yes(check, f"gain {gain} in a trial", instance, schedule, 60.0)

    good, bad = (sharing(gain, 90.0) for gain in (1.5, 0.5))
    yield no(check, "one pair of two that hurts", *beside(good, bad), 60.0)
    # Gangs of two on two types: the slower GPU holds both back, and makes 1 of the pair.
    instance, schedule = sharing(1.5, 90.0, slower=1.0)
    yield no(check, "a pair that gains on one of its GPUs only", instance, schedule, 60.0)
    instance, schedule = sharing(1.0, 90.0, slower=1.5)
    yield yes(check, "a pair that gains where it is slow", instance, schedule, 60.0)


def beside(
    one: tuple[Instance, Schedule], other: tuple[Instance, Schedule]
) -> tuple[Instance, Schedule]:
    """Two instances of two jobs on one GPU each as one of four jobs on two; kinds of jobs differ."""
    jobs = one[0].workload
    models = ["one", "other", "third", "fourth"]
    workload = Workload.from_columns(
        arrival_s=[0] * 4,
        gpus=[1] * 4,
        work=jobs.work.tolist() * 2,
        throughput=jobs.throughput.tolist() * 2,
        gpu_types=("gpu",),
        model=models,
    )
    rates = {}
    for (instance, _), names in ((one, models[:2]), (other, models[2:])):
        (value,) = instance.sharing_rates.pairs.values()
        rates["gpu", (names[0], 1), (names[1], 1)] = value
    alone = {("gpu", (name, 1)): 2.0 + 2.0 * (k % 2) for k, name in enumerate(models)}
    together = Throughputs(("gpu",), alone, rates, "by hand")
    columns = {
        name: np.concatenate((getattr(one[1], name), getattr(other[1], name) + shift))
        for name, shift in (
            ("job", 2),
            ("node", 1),
            ("gpus", 0),
            ("start_s", 0),
            ("end_s", 0),
            ("overhead_s", 0),
            ("partner", 2),
        )
    }
    return Instance(Cluster.parse("2x1:gpu"), workload, sharing_rates=together), Schedule(**columns)


def sharing(gain: float, length_s: float, slower: float | None = None) -> tuple[Instance, Schedule]:
    """Two jobs whose shares of their own rates add up to a gain; times are on the grid.

    On one GPU, or on one and a second that is half as fast, where they have another gain.
    """
    types = {"gpu": gain} if slower is None else {"gpu": gain, "old": slower}
    kinds = [(name, len(types)) for name in ("one", "other")]
    rates, alone = {}, {}
    for k, (name, made) in enumerate(types.items()):
        alone |= {(name, kinds[0]): 2.0 / (k + 1), (name, kinds[1]): 4.0 / (k + 1)}
        rates[name, *kinds] = (1.0 * made / (k + 1), 2.0 * made / (k + 1))
    workload = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[len(types)] * 2,
        work=[2.0**14, 2.0**14],
        throughput=[[alone[name, kind] for name in types] for kind in kinds],
        gpu_types=tuple(types),
        model=["one", "other"],
    )
    together = Throughputs(tuple(types), alone, rates, "by hand")
    job, node = (column.ravel() for column in np.meshgrid([0, 1], range(len(types)), indexing="ij"))
    zero, one = np.zeros(len(job)), np.ones(len(job), dtype=np.int64)
    schedule = Schedule(job, node, one, zero + 1, zero + 1 + length_s, zero, partner=1 - job)
    cluster = Cluster.parse(",".join(f"1x{len(types)}:{name}" for name in types))
    return Instance(cluster, workload, sharing_rates=together), schedule


def of_gavel_rounds() -> Iterator[Case]:
    check, half = gavel_rounds.check, Fraction(1, 2)
    yield yes(check, "both bounds attained in the first round", [half, half], [0, 1])
    yield yes(check, "in turns", [half, half], [0, 1, 1, 0])
    yield no(check, "too many, healed later", [half, half], [0, 0, 1, 1])
    yield no(check, "too many in the last round", [half, half], [0, 1, 0, 0])
    rare = [Fraction(9, 10), Fraction(1, 10)]
    yield yes(check, "a rare job first", rare, [1] + [0] * 9)
    yield no(check, "a rare job twice", rare, [1, 1])
    yield no(check, "never a rare job", rare, [0] * 11)
    yield no(check, "a job twice before all once", rare, [0, 0, 1])
    yield no(check, "one job of three too often", [half, half / 2, half / 2], [0, 0])
    yield refused(InputError, check, "less than a GPU", [half, half - LEAST], [0])
    yield refused(InputError, check, "more than a GPU", [half, half + LEAST], [0])
    yield refused(InputError, check, "a fraction of 0", [Fraction(1), Fraction(0)], [0])
    yield refused(InputError, check, "a job that there is not", [half, half], [0, -1])
    yield refused(InputError, check, "nor this", [half, half], [0, 2])
    yield from _of_rounding()


def _of_rounding() -> Iterator[Case]:
    check = gavel_rounds.check_rounding
    halves, one = [[0.5], [0.5]], [1]
    first, second = np.array([[1], [0]]), np.array([[0], [1]])
    yield yes(check, "exactly what is asked", halves, one, [first, second])
    yield yes(check, "half a round off", halves, one, [first])
    yield no(check, "a round too many", halves, one, [first, first])
    yield no(check, "one job a round short", [[0.5], [0.25]], one, [second * 0, second])
    yield no(check, "more GPUs than there are", halves, one, [first + second])
    yield no(check, "a job on two types", [[0.5, 0.5]], [1, 1], [np.array([[1, 1]])])
    before = [np.array([[1, -1]]), np.array([[0, 1]])]
    yield no(check, "less than nothing", [[0.5, 0.25]], [1, 1], before)


def of_gavel_share() -> Iterator[Case]:
    check = gavel_share.check
    problem, alone = gavel_share.unequal_gangs()
    yield yes(check, "an optimum, at the bound", problem, alone)
    yield yes(check, "rounding of a solver", problem, alone * (1 - 0.9e-6))
    yield no(check, "less for everybody", problem, alone * (1 - 3e-6))
    yield no(check, "less for one", problem, alone * [[1], [0.9]])
    same = shares(capacity=[2], gpus=[1, 1])
    yield yes(check, "a GPU each", same, np.ones((2, 1)))
    yield no(check, "more than all the time", same, np.array([[1.1], [1.0]]))
    yield no(
        check, "less than none of it", shares(capacity=[2, 1], gpus=[1]), np.array([[2, -1.0]])
    )
    yield no(check, "more GPUs than there are", shares(capacity=[1], gpus=[1, 1]), np.ones((2, 1)))
    room = shares(capacity=[3], gpus=[1, 1])
    yield no(check, "more than all the time, GPUs enough", room, np.array([[1.1], [1.0]]))
    yield yes(check, "all the time to rounding", room, np.array([[1 + 0.5e-6], [1.0]]))
    pair = shares(capacity=[1, 2], gpus=[1, 1])
    yield no(check, "too much of one type", pair, np.array([[1.0, 0.0], [0.5, 0.5]]))
    rounded = np.array([[1.0, 0.0], [0.5e-6, 1.0 - 0.5e-6]])
    yield yes(check, "all of a type to rounding", pair, rounded)
    queue = shares(capacity=[1], gpus=[1, 1])
    yield yes(check, "half a GPU each", queue, np.full((2, 1), 0.5))
    yield no(check, "less than half of it", queue, np.array([[0.5], [0.49]]))
    # Twice as fast on a random GPU as on the slow one: half of the time on either is the level 1.
    rates = np.array([[1.0, 3.0], [1.0, 3.0]])
    mixed = replace(shares(capacity=[1, 1], gpus=[1, 1]), throughput=rates)
    yield yes(check, "half of each type", mixed, np.full((2, 2), 0.5))
    yield no(check, "the slow one for one, the fast one for the other", mixed, np.eye(2))
    weighted = replace(same, weight=np.array([1.0, 2.0]))
    yield refused(InputError, check, "weights", weighted, np.ones((2, 1)))
    shared = shares(capacity=[2], gpus=[1], types=2, accelerators=[0, 0])
    yield refused(InputError, check, "types that share GPUs", shared, np.ones((1, 2)) / 2)
    yield from _of_filling()


def _of_filling() -> Iterator[Case]:
    check = gavel_share.check_filling
    problem, _ = gavel_share.unequal_gangs()
    yield yes(check, "efficient and fair", problem, np.array([[1.0], [0.75]]))
    yield no(check, "fair, not efficient", problem, np.array([[1.0], [0.7]]))
    yield no(check, "efficient, not fair", problem, np.array([[0.0], [1.0]]))
    yield no(check, "too much", problem, np.array([[1.0], [1.0]]))
    # Levels are 1 and 3; so far may they be off together.
    for off, verdict in ((0.75e-5, yes), (1.5e-5, no)):
        yield verdict(check, f"{off} left over", problem, np.array([[1.0], [0.75 - off]]))
    queue = shares(capacity=[1], gpus=[1, 1])
    yield yes(check, "half a GPU each", queue, np.full((2, 1), 0.5))
    yield no(check, "all of it for one", queue, np.array([[0.6], [0.4]]))
    for off, verdict in ((0.45e-6, yes), (1.5e-6, no)):
        some = np.array([[0.5 + off], [0.5 - off]])
        yield verdict(check, f"{off} less than half", queue, some)
    # The second job can have no more, whatever that costs the first.
    rates = np.array([[4.0, 1.0], [2.0, 1.0]])
    mixed = replace(shares(capacity=[1, 1], gpus=[1, 1]), throughput=rates)
    yield yes(check, "efficient, not of the largest sum", mixed, np.eye(2)[::-1])
    yield no(check, "each half of the time", mixed, np.full((2, 2), 0.5) * [[1, 1], [1, 0]])
    weighted = replace(queue, weight=np.array([1.0, 2.0]))
    yield refused(InputError, check, "weights", weighted, np.full((2, 1), 0.5))
    types = shares(capacity=[1, 1], gpus=[1, 1, 1])
    some = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    yield yes(check, "efficient on two types, where nothing is said of fairness", types, some)
    yield no(check, "a GPU left over on two types", types, some * [[1], [0], [0]])


def shares(
    *, capacity: list[int], gpus: list[int], types: int | None = None, **more: Any
) -> AllocationProblem:
    """Jobs that are equally fast everywhere."""
    names = [f"type{k}" for k in range(types or len(capacity))]
    rates = np.ones((len(gpus), len(names)))
    return AllocationProblem.from_columns(
        gpu_types=names, capacity=capacity, throughput=rates, gpus=gpus, **more
    )


def of_pop() -> Iterator[Case]:
    check, parts = pop.check, 3
    problem = pop.unlucky_family(parts, seed=7)
    found = Pop(parts=parts, seed=7).allocate(problem, Workspace())
    least, most = pop.bound(problem, parts)
    assert most == pytest.approx(parts * least)
    yield yes(check, "the worst deal", parts, found)
    for scale, verdict in ((1 - 0.5e-6, yes), (1 - 2e-6, no)):
        yield verdict(
            check, f"{scale} of the least", parts, replace(found, objective=least * scale)
        )
    for scale, verdict in ((1 + 0.5e-6, yes), (1 + 2e-6, no)):
        yield verdict(check, f"{scale} of the most", parts, replace(found, objective=most * scale))
    yield no(check, "fewer parts", parts - 1, found)
    yield no(check, "no objective", parts, replace(found, objective=None))
    # No more parts than there are jobs.
    yield no(check, "as many parts as jobs", 99, replace(found, objective=most / 10))
    yield yes(check, "a ninth", 99, replace(found, objective=most / 9))
    twice = replace(found, alone=found.alone * 2 + 1)
    yield refused(VerificationError, check, "no allocation", parts, twice)


# Hadar and HadarE.


def of_hadar_any_schedule() -> Iterator[Case]:
    check = hadar_any_schedule.check

    def dual(
        demand: hadar_any_schedule.BoundedJob, prices: Sequence[float], gpus: int = 1
    ) -> hadar_any_schedule.UtilityBound:
        table = np.array(prices, dtype=float)[:, None]
        capacity = np.array([gpus])
        return hadar_any_schedule.bound([demand], capacity, table, 10, [Fraction(1)])

    def job(ticks: int, *values: float, **changes: Any) -> hadar_any_schedule.BoundedJob:
        given_ = {"gpus": 1, "arrival": 0, "share": Fraction(1), **changes}
        return hadar_any_schedule.BoundedJob(ticks=(ticks,), values=values, **given_)

    cases = (
        # Two rounds of work: not done before the prices end, and nothing is charged after.
        ("only after all rounds", dual(job(20, 7.0, 5.0), [0.0]), 5),
        ("free GPUs", dual(job(10, 7.0, 5.0), [0.0]), 7),
        ("8 - 2, and two GPUs at 2", dual(job(10, 8.0, 0.0), [2.0], gpus=2), 10),
        ("half of the job", dual(job(10, 8.0, 0.0, share=Fraction(1, 2)), [2.0]), 9),
        ("a gang of two at 2", dual(job(10, 8.0, 0.0, gpus=2), [2.0], gpus=2), 8),
        ("the cheaper round", dual(job(10, 8.0, 3.0, 0.0, arrival=5), [2.0, 1.0]), 5),
        ("a gang that never fits, after all rounds", dual(job(10, 7.0, 5.0, gpus=2), [0.0]), 5),
        ("nothing is worth its price", dual(job(10, 1.0, 0.0), [2.0]), 2),
        ("later is worth more than now at a price", dual(job(10, 6.0, 5.0), [2.0]), 7),
    )
    for what, found, value in cases:
        yield yes(check, f"{what}, at the bound", found, Fraction(value))
        yield no(check, f"{what}, above", found, value + LEAST)


def of_hadar_certificate() -> Iterator[Case]:
    task = CommittableJob(1, 0, (1,), 1, [8.0].__getitem__, 0)
    found = hadar_certificate.certify(
        [task], np.array([2]), np.array([0]), np.array([[2.0]]), Fraction(8), [Fraction(1)]
    )
    check = hadar_certificate.check
    # D = (8 - 2) + 2 * 2, P = 8.
    yield yes(check, "D", found, Fraction(10))
    yield no(check, "above D", found, 10 + LEAST)
    yield yes(check, "P", found, Fraction(8))
    yield no(check, "below P", found, 8 - LEAST)


def of_hadar_competitive() -> Iterator[Case]:
    check, slack = hadar_competitive.check, 1 + Fraction(1, 10**9)
    run = hadar_competitive.Committed(
        (), np.zeros((1, 1)), Fraction(4), Fraction(1), 2.0, (0.0, 0.0)
    )

    def cases(what: str, run: hadar_competitive.Committed, value: Fraction) -> Iterator[Case]:
        yield yes(check, f"{what}, at the bound", run, value * slack)
        yield no(check, f"{what}, above", run, value * slack + LEAST)

    yield from cases("(a) 1 + 2 * 4", run, Fraction(9))
    yield from cases("(c) 2 * 2 * 4", replace(run, initial=Fraction(10)), Fraction(16))
    refusing = replace(run, initial=Fraction(10), conflicts=(0.0, 0.5))
    yield from cases("(a) 10 + 2 * 4 + 1/2, and no (c)", refusing, Fraction(37, 2))


def of_hadare_work() -> Iterator[Case]:
    check, one = hadare_work.check, steps_on("2x1", [40])
    both = copies((0, 0, 0, 10), (0, 1, 0, 10), (0, 0, 10, 10), (0, 1, 10, 10))
    yield yes(check, "both nodes in all rounds", one, both)
    idle = copies((0, 0, 0, 10), (0, 0, 10, 10), (0, 1, 10, 10))
    yield no(check, "an idle node", one, idle)
    yield no(check, "an idle node at the end, and 10 steps not done", one, head(both, 3))
    yield no(check, "two copies where one is allowed", under(one, max_copies=1), both)
    single = copies((0, 0, 0, 10), (0, 0, 10, 10))
    yield yes(check, "an idle node, one copy allowed", under(one, max_copies=1), single)
    last = copies((0, 0, 0, 10), (0, 1, 0, 10), (0, 0, 10, 10))
    yield yes(check, "idle in a job's last round", steps_on("2x1", [30]), last)
    yield no(check, "idle, and a step is left", steps_on("2x1", [31]), last)
    two = copies((0, 0, 0, 10), (1, 0, 10, 10))
    yield yes(check, "the other comes later", steps_on("2x1", [10, 10], [0, 5]), two)
    yield no(check, "the other is there", steps_on("2x1", [10, 10], [0, 0]), two)
    now = copies((0, 0, 0, 10), (0, 1, 0, 10), (0, 0, 10, 5), (1, 0, 20, 10))
    yield no(check, "the other comes with the round", steps_on("2x1", [25, 10], [0, 10]), now)
    yield yes(check, "just after it", steps_on("2x1", [25, 10], [0, 10 + TICK_S]), now)
    ended = copies((0, 0, 0, 10), (1, 1, 0, 10), (0, 0, 10, 5), (0, 1, 10, 5))
    given = under(steps_on("2x1", [20, 10]), max_copies=1)
    yield no(check, "a copy for a job that has ended", given, ended)
    alone = copies((0, 0, 0, 10), (0, 0, 10, 10))
    for rate, verdict in ((0.0, yes), (0.1, yes), (0.11, no)):
        mixed = steps_on("1x1:a,1x1:b", [20], rates=[[1.0, rate]])
        yield verdict(check, f"{rate * 10} steps in a round elsewhere", mixed, alone)
        charged = under(mixed, restart_s=1.0, aggregation_s=0.5)
        verdict = yes if rate * 8.5 < 1 else no
        yield verdict(check, f"{rate * 8.5} steps after charges", charged, alone)
    # A gang of four is a quarter as fast on a node of one GPU, an eighth of a step a second.
    wide = steps_on("1x4:a,1x1:b", [20], rates=[[1.0, 0.5]], gpus=[4])
    yield yes(check, "one step to rounding", under(wide, round_s=8.0), alone)
    yield no(check, "more than one step", under(wide, round_s=8.5), alone)
    gangs = replace(one, copies=None)
    yield refused(InputError, check, "no rules of copies", gangs, both)
    yield refused(InputError, check, "no steps", one, replace(both, copy=None, steps=None))


def steps_on(
    cluster: str,
    work: list[float],
    arrival: list[float] | None = None,
    *,
    rates: list[list[float]] | None = None,
    gpus: list[int] | None = None,
) -> Instance:
    """Jobs in steps, one a second on each node if no rates are given; rounds of 10 s, two copies."""
    found = Cluster.parse(cluster)
    kinds = found.gpu_types
    n = len(work)
    jobs = Workload.from_columns(
        arrival_s=arrival or [0.0] * n,
        gpus=gpus or [1] * n,
        work=work,
        throughput=rates or [[1.0] * len(kinds)] * n,
        gpu_types=kinds,
    )
    return Instance(found, jobs, copies=CopyRules(10.0, 0.0, 0.0, 2))


def under(instance: Instance, **rules: float) -> Instance:
    """The same under other rules of copies."""
    assert instance.copies is not None
    return replace(instance, copies=replace(instance.copies, **rules))  # type: ignore[arg-type]


def copies(*rows: tuple[int, int, float, int]) -> Schedule:
    """Rows of job, node, start [s] and steps, one a second; a copy for each node."""
    job, node, start, steps = map(np.array, zip(*rows, strict=True))
    ones = np.ones(len(rows), dtype=np.int64)
    times = (start.astype(float), start + steps.astype(float), np.zeros(len(rows)))
    return Schedule(job, node, ones, *times, copy=node.copy(), steps=steps)


def head(schedule: Schedule, rows: int) -> Schedule:
    return Schedule.from_frame(schedule.to_frame().iloc[:rows])


# Heavy-Edge, Synergy.


def of_heavy_edge() -> Iterator[Case]:
    check, graph, network = heavy_edge.check, heavy_edge.clique_family(3), Network(100e9, 10e9, 8)
    left, right = (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)
    yield yes(check, "two full nodes", graph, [3, 3], network, ((0, left), (1, right)))
    yield yes(check, "no room", graph, [3, 2], network, None)
    yield no(check, "room for all, nothing placed", graph, [3, 3], network, None)
    yield no(check, "more replicas than GPUs", graph, [3, 3], network, ((0, (1,) * 6),))
    most = (1, 1, 1, 1, 0, 0), (0, 0, 0, 0, 1, 1)
    yield no(check, "one too many", graph, [3, 3], network, ((0, most[0]), (1, most[1])))
    yield no(check, "one missing", graph, [3, 3], network, ((0, left), (1, (0, 0, 0, 1, 1, 0))))
    more = ((0, left), (1, (1, 0, 0, 1, 1, 1)))
    yield no(check, "one replica twice", graph, [3, 4], network, more)
    three = ((0, left), (1, (0, 0, 0, 1, 1, 0)), (2, (0, 0, 0, 0, 0, 1)))
    yield no(check, "three nodes where two do", graph, [3, 3, 3], network, three)
    yield yes(check, "three nodes that are needed", graph, [3, 2, 1], network, three)
    yield yes(check, "one node", graph, [0, 6], network, ((1, (1,) * 6),))
    twice = ((0, left), (0, right))
    yield refused(InputError, check, "a node twice", graph, [3, 3], network, twice)
    yield refused(InputError, check, "a node twice, and no room", graph, [3], network, twice)
    # Two cuts that differ: the least time is not below this graph's, nor the most above.
    chain = JobGraph(
        "chain", (Stage("a", 1, 0.1, 0.1), Stage("b", 1, 0.1, 0.1)), (Link(0, 1, 1e9),)
    )
    yield yes(check, "a pipeline in two", chain, [1, 1], network, ((0, (1, 0)), (1, (0, 1))))


SHARE = (3.0, 62.5)


def of_synergy_floor() -> Iterator[Case]:
    check = synergy_floor.check
    # Speed 1 at the share of a GPU and above, 1/2 below.
    profile = Profile(
        np.array([1.0, 3.0]), np.array([20.0, 62.5]), np.array([[0.5, 0.5], [0.5, 1]])
    )
    demands = Demands(Sensitivity((profile,), np.zeros(3, np.int64)), np.array([2, 2]), SHARE)
    asks = [ResourceRequest(0, 1, *SHARE), ResourceRequest(1, 3, *SHARE)]

    def held(*grants: tuple[int, tuple[tuple[int, int], ...], float, float]) -> Servers:
        found = {job: ServerGrant(pieces, cpus, memory) for job, pieces, cpus, memory in grants}
        return Servers.holding(demands.size, SHARE, found)

    one, three = (0, ((0, 1),), *SHARE), (1, ((0, 1), (1, 2)), *SHARE)
    yield yes(check, "the share for everybody", held(one, three), asks, demands)
    yield no(check, "a job not placed", held(one), asks, demands)
    yield no(check, "a GPU missing", held(one, (1, ((1, 2),), *SHARE)), asks, demands)
    split = (0, ((0, 1), (1, 0)), *SHARE)
    yield no(check, "one GPU on two servers", held(split, three), asks, demands)
    for cpus, memory in ((2.9, 62.5), (3.0, 62.4)):
        less = (0, ((0, 1),), cpus, memory)
        yield no(check, f"{cpus} CPUs, {memory} GB", held(less, three), asks, demands)
    for k, amount in enumerate(("CPUs", "GB")):
        for over, verdict in ((0.9 * ROUNDING, yes), (3 * ROUNDING, no)):
            more = [*SHARE]
            more[k] += over
            yield verdict(
                check,
                f"{over} more {amount} than there are",
                held((0, ((0, 1),), *more), three),
                asks,
                demands,
            )
    crowded = held((0, ((1, 1),), *SHARE), three)
    yield no(check, "three GPUs of two", crowded, asks, demands)
    yield from _of_vertices()


def _of_vertices() -> Iterator[Case]:
    check = synergy_floor.check_vertex
    asks = [ResourceRequest(job, 1, *SHARE) for job in range(8)]

    def holding(jobs: Sequence[int]) -> Servers:
        grants = {job: ServerGrant(((0, 1),), *SHARE) for job in jobs}
        return Servers.holding(np.array([8, 8]), SHARE, grants)

    yield yes(check, "six of two servers left over", holding([0, 1]), asks, asks[2:])
    yield no(check, "seven", holding([0]), asks, asks[1:])
    yield yes(check, "all placed", holding(range(8)), asks, [])
    yield no(check, "one lost", holding(range(7)), asks, [])
    yield no(check, "one placed and left over", holding(range(8)), asks, asks[:1])
    yield no(check, "one lost, one twice", holding(range(7)), asks, asks[:1])


# Tiresias.


def of_tiresias_gittins() -> Iterator[Case]:
    """A unit of the first ends it with 2/3: then 1 + 3, else 3 + 11. The second first: 2 + 17/3."""
    check, jobs = tiresias_gittins.check, ((1, 1, 9), (2,))
    yield yes(check, "a unit first", jobs, Fraction(22, 3))
    yield no(check, "the sure job first", jobs, Fraction(23, 3))
    yield no(check, "more", jobs, Fraction(22, 3) + LEAST)
    yield no(check, "less than any rule", jobs, Fraction(22, 3) - LEAST)
    yield yes(check, "sure jobs", ((1,), (3,)), Fraction(5))


def of_tiresias_las() -> Iterator[Case]:
    check, long = tiresias_las.check, on("1x1", [0, 0], [1, 1], [1000, 1])
    ends = [Fraction(1001), 2 + TICK]
    yield yes(check, "waits of 1, and of the threshold and a tick", long, [1.0], ends)
    for job in (0, 1):
        late = [end + LEAST * (k == job) for k, end in enumerate(ends)]
        yield no(check, f"job {job} a little later", long, [1.0], late)
    yield yes(check, "a threshold of 4", long, [4.0], [Fraction(1001), 5 + TICK])
    yield no(check, "and no tick more", long, [4.0], [Fraction(1001), 5 + TICK + LEAST])
    yield yes(check, "below all thresholds", long, [0.5], [Fraction(1001), Fraction(1001)])
    yield no(check, "below all, and later", long, [0.5], [Fraction(1001), 1001 + LEAST])
    # Services of 8, 6 and 4 GPU-s; gangs of 4, 3 and 1 leave 1, 2 and 4 of 4 GPUs.
    gangs = on("1x4", [1, 2, 3], [4, 3, 1], [2, 2, 4])
    third = 3 + 4 + Fraction(4 + 4 + 7 * TICK, 4)
    ends = [1 + 2 + Fraction(10), 2 + 2 + Fraction(12, 2), third]
    yield yes(check, "gangs and releases", gangs, [4.0], ends)
    for job in range(3):
        late = [end + LEAST * (k == job) for k, end in enumerate(ends)]
        yield no(check, f"gang {job} a little later", gangs, [4.0], late)
    yield refused(ValueError, check, "a job missing", gangs, [4.0], ends[:2])


TABLE: dict[ModuleType, Callable[[], Iterator[Case]]] = {
    asrpt_conversion: of_asrpt_conversion,
    asrpt_early: of_asrpt_early,
    asrpt_prediction: of_asrpt_prediction,
    asrpt_ratio: of_asrpt_ratio,
    asrpt_sharper: of_asrpt_sharper,
    gandiva_matching: of_gandiva_matching,
    gavel_rounds: of_gavel_rounds,
    gavel_share: of_gavel_share,
    hadar_any_schedule: of_hadar_any_schedule,
    hadar_certificate: of_hadar_certificate,
    hadar_competitive: of_hadar_competitive,
    hadare_work: of_hadare_work,
    heavy_edge: of_heavy_edge,
    lb_fluid: of_lb_fluid,
    lb_job: of_lb_job,
    lb_lp: of_lb_lp,
    lb_mbt: of_lb_mbt,
    lb_price: of_lb_price,
    lb_plan: of_lb_plan,
    lb_conf: of_lb_conf,
    lb_wide: of_lb_wide,
    lb_goodput: of_lb_goodput,
    lb_mode: of_lb_mode,
    lb_pair: of_lb_pair,
    lb_node: of_lb_node,
    lb_amount: of_lb_amount,
    lb_windows: of_lb_windows,
    lb_list: of_lb_list,
    lb_span: of_lb_span,
    pop: of_pop,
    gavel_pf: of_proportional_fairness,
    hesrpt: of_hesrpt,
    kill_restart: of_kill_restart,
    least_parallelisable: of_least_parallelisable,
    asrpt_robust: of_asrpt_robust,
    relevant_work: of_relevant_work,
    saturation: of_saturation,
    elapsed_time: of_elapsed_time,
    nonclairvoyant: of_nonclairvoyant,
    server_filling: of_server_filling,
    srpt_one_machine: of_srpt_one_machine,
    synergy_floor: of_synergy_floor,
    tiresias_gittins: of_tiresias_gittins,
    tiresias_las: of_tiresias_las,
}
MODULES = [importlib.import_module(f"shadowprice.proofs.{each.module}") for each in theorems()]


def short(module: ModuleType) -> str:
    return module.__name__.removeprefix("shadowprice.proofs.")


@pytest.mark.parametrize("theorem", MODULES, ids=short)
def test_every_check_is_shown_what_is_true_and_what_is_false(theorem: ModuleType) -> None:
    checks = {
        name: value
        for name, value in vars(theorem).items()
        if name.startswith("check") and callable(value) and value.__module__ == theorem.__name__
    }
    assert "check" in checks
    rows = list(TABLE[theorem]())
    for name, check in checks.items():
        answers = [case.answer for case in rows if case.check is check]
        assert len([answer for answer in answers if answer is not True]) >= 2, (
            f"{name} never says no"
        )
        assert True in answers, f"{name} never says yes"


@pytest.mark.parametrize("theorem", TABLE, ids=short)
def test_a_check_says_yes_at_its_bound_and_no_beyond(theorem: ModuleType) -> None:
    for case in TABLE[theorem]():
        if isinstance(case.answer, bool):
            answer = case.check(*case.arguments, **case.options)
            assert answer is case.answer, case.what
        else:
            with pytest.raises(case.answer):
                case.check(*case.arguments, **case.options)


# The same at random, against the statements said once more from their own words.

SECONDS = st.integers(1, 6).map(float)


@st.composite
def predicted(draw: st.DrawFn) -> tuple[Instance, list[float], list[float]]:
    """Jobs, what the virtual machine assumes, and what the guard judges [s]."""
    instance = draw(instances(max_jobs=4, max_nodes=2, max_work_s=6, max_arrival_s=6))
    column = st.lists(SECONDS, min_size=len(instance.workload), max_size=len(instance.workload))
    return instance, draw(column), draw(column)


def shortest_remaining_first(release: list[Fraction], work: list[Fraction]) -> list[Fraction]:
    """Completions on one machine of speed 1, from one release or completion to the next."""
    left, now, ends = dict(enumerate(work)), Fraction(0), [Fraction(0)] * len(work)
    while left:
        ready = [j for j in left if release[j] <= now]
        later = [release[j] for j in left if release[j] > now]
        if not ready:
            now = min(later)
            continue
        job = min(ready, key=lambda j: (left[j], j))
        step = min([left[job], *(at - now for at in later)])
        left[job] -= step
        now += step
        if not left[job]:
            ends[job] = now
            del left[job]
    return ends


def least_total(instance: Instance) -> Fraction:
    """The larger of LB-fluid and LB-job [s]."""
    jobs, m = instance.workload, instance.cluster.total_gpus
    release = [Fraction(r) for r in jobs.arrival_s]
    work = [Fraction(p) for p in jobs.work]
    area = [int(g) * p / m for g, p in zip(jobs.gpus, work, strict=True)]
    return max(sum(shortest_remaining_first(release, area)), sum(release) + sum(work))


def busy_at_least(gang: list[int], m: int) -> int | None:
    """B of ASRPT-sharper, by trying all sets of jobs; None where nobody ever waits."""
    sums = {sum(some) for k in range(1, len(gang) + 1) for some in combinations(gang, k)}
    reached = [total for total in sums if m - max(gang) + 1 <= total <= m]
    return min(reached) if reached and len(gang) > 1 else None


@settings(max_examples=13)
@given(given_=predicted(), guard=st.fractions(0, 4, max_denominator=3))
def test_the_factors_of_asrpt_are_those_of_the_statements(
    given_: tuple[Instance, list[float], list[float]], guard: Fraction
) -> None:
    instance, virtual, judged = given_
    jobs, m = instance.workload, instance.cluster.total_gpus
    gang, n = jobs.gpus.tolist(), len(jobs)
    run, q, h = ([Fraction(x) for x in column] for column in (jobs.work, virtual, judged))
    over = max(Fraction(1), *(b / p for b, p in zip(q, run, strict=True)))
    kappa = max(p / b for p, b in zip(run, q, strict=True))
    eta = max(p / c for p, c in zip(run, h, strict=True))
    wide, reached = Fraction(m, m - max(gang) + 1), busy_at_least(gang, m)
    least = least_total(instance)
    sharper = over + 1
    if reached is not None:
        spare = max(0, 1 - Fraction(min(gang), reached))
        sharper = over * (1 + kappa * Fraction(m, reached)) + spare
    for check, factor, *more in (
        (asrpt_prediction.check, over * (1 + kappa * wide) + 1, virtual),
        (asrpt_ratio.check, 2 + wide),
        (asrpt_early.check, 2 + guard + wide, guard),
        (asrpt_sharper.check, sharper, virtual),
    ):
        assert_at_most(check, instance, factor * least + n * TICK, *more)
    early = over * (1 + eta * guard + kappa * wide) + 1
    assert_at_most(asrpt_early.check, instance, early * least + n * TICK, guard, virtual, judged)


@settings(max_examples=13)
@given(given_=predicted())
def test_the_bound_of_the_conversion_is_that_of_the_statement(
    given_: tuple[Instance, list[float], list[float]],
) -> None:
    instance, virtual, _ = given_
    jobs, m = instance.workload, instance.cluster.total_gpus
    gang, run = jobs.gpus.tolist(), [Fraction(p) for p in jobs.work]
    area = [g * Fraction(q) / m for g, q in zip(gang, virtual, strict=True)]
    ends = shortest_remaining_first([Fraction(r) for r in jobs.arrival_s], area)
    # Jobs in the order of V; of jobs that end together, any order is one.
    order = [job for job, _ in Gangs.of(instance, virtual).virtual_order()]
    assert [ends[job] for job in order] == sorted(ends)
    total = Fraction(0)
    for place, job in enumerate(order):
        before = order[:place]
        widest = max(gang[i] for i in order[: place + 1])
        waits = sum((gang[i] * run[i] for i in before), Fraction(0)) / (m - widest + 1)
        total += -(-ends[job] // TICK) * TICK + waits + run[job]
    assert_at_most(asrpt_conversion.check, instance, total, virtual)


@settings(max_examples=13)
@given(instance=instances(max_jobs=5, max_nodes=2), limits=st.sets(st.integers(1, 60), max_size=3))
def test_the_bounds_of_queues_are_those_of_the_statement(
    instance: Instance, limits: set[int]
) -> None:
    jobs, m = instance.workload, instance.cluster.total_gpus
    columns = (jobs.gpus, jobs.arrival_s, jobs.work)
    rows = [tuple(map(Fraction, row)) for row in zip(*(c.tolist() for c in columns), strict=True)]
    ends = []
    for j, (own, release, run) in enumerate(rows):
        above = [limit for limit in limits if limit >= own * run]
        others = (
            min(g * p, min(above) + g * TICK) if above else g * p
            for i, (g, _, p) in enumerate(rows)
            if i != j
        )
        ends.append(release + run + sum(others, Fraction(0)) / (m - own + 1))
    thresholds = [float(limit) for limit in sorted(limits)]
    assert tiresias_las.check(instance, thresholds, ends)
    for j in range(len(ends)):
        late = [end + LEAST * (k == j) for k, end in enumerate(ends)]
        assert not tiresias_las.check(instance, thresholds, late)


def mean_busy(
    release: list[Fraction], work: list[Fraction], density: list[Fraction]
) -> list[Fraction]:
    """Mean busy times on one machine of speed 1 that serves the largest density first."""
    left, now, twice = dict(enumerate(work)), Fraction(0), [Fraction(0)] * len(work)
    while left:
        ready = [j for j in left if release[j] <= now]
        later = [release[j] for j in left if release[j] > now]
        if not ready:
            now = min(later)
            continue
        job = max(ready, key=lambda j: (density[j], -j))
        until = min([now + left[job], *later])
        twice[job] += until**2 - now**2
        left[job] -= until - now
        now = until
        if not left[job]:
            del left[job]
    return [both / (2 * p) for both, p in zip(twice, work, strict=True)]


@settings(max_examples=13)
@given(instance=instances(max_jobs=6, max_nodes=2), data=st.data())
def test_the_lower_bounds_are_those_of_the_statements(
    instance: Instance, data: st.DataObject
) -> None:
    """Rounded down to ticks: LB-fluid as a sum, LB-mbt by terms."""
    jobs, m = instance.workload, instance.cluster.total_gpus
    release, run = ([Fraction(x) for x in column] for column in (jobs.arrival_s, jobs.work))
    area = [int(g) * p / m for g, p in zip(jobs.gpus, run, strict=True)]
    fluid = sum(shortest_remaining_first(release, area), Fraction(0))
    assert lb_fluid.bound(instance) == fluid // TICK * TICK
    # Densities differ, so that no tie is left to chance.
    n = len(jobs)
    weight = [Fraction(w) for w in data.draw(st.permutations(range(1, n + 1)))]
    density = [w / a for w, a in zip(weight, area, strict=True)]
    weighted = Instance(
        instance.cluster, replace(jobs, weight=np.array([float(w) for w in weight]))
    )
    terms = zip(weight, release, run, mean_busy(release, area, density), strict=True)
    expected = [(w * (busy + p / 2), w * (r + p)) for w, r, p, busy in terms]
    if len(set(density)) == n:
        assert lb_mbt.bound(weighted) == sum(term // TICK * TICK for term, _ in expected)
    assert lb_job.bound(weighted) == sum(alone for _, alone in expected)


def assert_at_most(
    check: Callable[..., bool], instance: Instance, most: Fraction, *more: Any
) -> None:
    assert check(instance, most, *more)
    assert not check(instance, most + LEAST, *more)


@pytest.mark.parametrize("gpus", [1, 2, 8, 64])
def test_the_factor_for_gangs_is_what_its_proof_needs(gpus: int) -> None:
    """(c) from the limit of (b): 2 m - 1 unit jobs have both lower bounds alike, and use it up to 2/m."""
    n = 2 * gpus - 1
    single = on(f"1x{gpus}", [0] * n, [1] * n, [1] * n)
    # Thresholds at every service there is: hi(v) = v.
    limit = tiresias_las.bound(single, [1.0])
    least = max(lb_fluid.bound(single), lb_job.bound(single))
    assert least == n
    assert limit == n + Fraction(n * (n - 1), gpus)
    assert limit / least == tiresias_las.gang_factor(gpus, 1) - Fraction(2, gpus)
    assert tiresias_las.gang_factor(gpus, gpus) == 1 + 2 * gpus


def test_the_iterations_of_a_placement_are_judged_by_its_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No mapping has an iteration outside; the bounds are moved beyond it instead."""
    graph, network = heavy_edge.clique_family(3), Network(100e9, 10e9, 8)
    mapping = ((0, (1, 1, 1, 0, 0, 0)), (1, (0, 0, 0, 1, 1, 1)))
    takes = heavy_edge.iteration_s(graph, mapping, network)
    for least, most, answer in (
        (takes, takes, True),
        (math.nextafter(takes, math.inf), math.inf, False),
        (0.0, math.nextafter(takes, 0.0), False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(heavy_edge, "bound", lambda *_, found=(least, most): found)
            assert heavy_edge.check(graph, [3, 3], network, mapping) is answer


@pytest.mark.parametrize("k", [3, 4])
def test_the_cliques_are_joined_by_an_edge_of_twice_the_weight(k: int) -> None:
    graph = heavy_edge.clique_family(k)
    links = {(link.source, link.target): link.bytes_per_replica for link in graph.links}
    inside = {pair for side in (range(k), range(k, 2 * k)) for pair in combinations(side, 2)}
    assert links == dict.fromkeys(inside, 1e9) | {(k - 1, k): 2e9}
    assert [stage.replicas for stage in graph.stages] == [1] * (2 * k)


def test_a_shift_of_prices_and_utilities_is_refused() -> None:
    """What HADAR-any and HADAR-cert need of prices and utilities, one at a time."""
    demand = hadar_any_schedule.BoundedJob(1, 0, (10,), Fraction(1), (8.0, 0.0))
    capacity = np.array([1])
    wrong = {
        "negative": (demand, [[-1.0]]),
        "infinite": (demand, [[np.inf]]),
        "no number": (demand, [[np.nan]]),
        "too few utilities": (replace(demand, values=(8.0,)), [[1.0]]),
        "too many": (replace(demand, values=(8.0, 1.0, 0.0)), [[1.0]]),
        "rising": (replace(demand, values=(7.0, 8.0)), [[1.0]]),
        "below 0": (replace(demand, values=(8.0, -1.0)), [[1.0]]),
        "unknown": (replace(demand, values=(8.0, np.nan)), [[1.0]]),
    }
    for job, prices in wrong.values():
        with pytest.raises(VerificationError, match="hadar"):
            hadar_any_schedule.bound([job], capacity, np.array(prices), 10)
    task = CommittableJob(1, 0, (1,), 1, [8.0, 8.0].__getitem__, 0)
    of_cert = {
        "negative": (task, [[-1.0]], 8),
        "no number": (task, [[np.nan]], 8),
        "beyond the prices": (replace(task, last_round=1), [[1.0]], 8),
        "earned more than D": (task, [[0.0]], 8 + LEAST),
    }
    for job, prices, primal in of_cert.values():
        with pytest.raises(VerificationError, match="hadar"):
            hadar_certificate.certify(
                [job], capacity, np.array([0]), np.array(prices), Fraction(primal)
            )


def test_bounds_that_no_check_takes() -> None:
    """By hand: what a job has too much and too little, and defaults."""
    parts = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    over = [Fraction(1, 2), Fraction(2, 3), Fraction(5, 6)]
    lack = [Fraction(3, 2), Fraction(4, 3), Fraction(7, 6)]
    assert gavel_rounds.bound(parts) == list(zip(over, lack, strict=True))
    one = on("1x1", [0], [1], [1])
    assert asrpt_early.bound(one) == 4
    assert asrpt_sharper.bound(one) == 2
    assert asrpt_sharper.bound(one, [3.0]) == 4
    alike = {
        "gangs alike": ([8], [2, 2], True),
        "gangs above an equal part": ([4], [2, 4], True),
        "one below it": ([8], [2, 4], False),
        "and before it": ([8], [4, 2], False),
    }
    for what, (capacity, gpus, answer) in alike.items():
        assert gavel_share.shares_alike(shares(capacity=capacity, gpus=gpus)) is answer, what


def test_a_pair_that_shares_is_one_spell() -> None:
    instance, schedule = sharing(1.5, 90.0, slower=1.25)
    (spell,) = gandiva_matching.spells(instance, schedule)
    assert (spell.jobs, spell.start_s, spell.end_s) == ((0, 1), 1.0, 91.0)
    assert spell.gain == pytest.approx(1.25, abs=1e-6)


@settings(max_examples=18)
@given(given_=predicted(), guard=st.none() | st.fractions(0, 4, max_denominator=3))
def test_the_guarded_algorithm_makes_schedules(
    given_: tuple[Instance, list[float], list[float]], guard: Fraction | None
) -> None:
    """No bound can fail for an algorithm that cheats: GPUs, arrivals, the guard, and no idle ones."""
    instance, virtual, judged_s = given_
    gangs = Gangs.of(instance, virtual)
    run, judged = gangs.longest, [round(h * TICKS_PER_S) for h in judged_s]
    ends = asrpt_early.completions(gangs, run, guard, judged)
    starts = [end - p for end, p in zip(ends, run, strict=True)]
    virtually = {job: Fraction(at, gangs.capacity) for job, at in gangs.virtual_order()}
    for j, start in enumerate(starts):
        held = [i for i in range(len(run)) if starts[i] <= start < ends[i]]
        assert sum(gangs.gang[i] for i in held) <= gangs.capacity
        assert start >= gangs.release[j]
        early = start < virtually[j]
        assert not early or guard is None or judged[j] <= guard * start
        waiting = [i for i in range(len(run)) if virtually[i] <= start < starts[i]]
        assert not early or not waiting
        # Before it starts it waits for GPUs, for the guard, or behind a queue.
        events = [Fraction(gangs.release[j]), *(end for end in ends if end < start)]
        since = max(events)
        if guard is None and since < start:
            busy = sum(
                gangs.gang[i] for i in range(len(run)) if starts[i] <= since < ends[i] and i != j
            )
            behind = any(virtually[i] <= since < starts[i] for i in range(len(run)) if i != j)
            assert behind or busy + gangs.gang[j] > gangs.capacity
    assert asrpt_early.completions(gangs, run, Fraction(0), judged) == asrpt_conversion.completions(
        gangs, run
    )


def test_the_certificates_of_hadar_by_hand() -> None:
    """Multiples of prices, and the upper bound of a payoff where there are too many plans."""
    one, kinds = np.array([1]), np.array([0])
    task = CommittableJob(1, 0, (1,), 1, [8.0].__getitem__, 0)
    found = hadar_certificate.certify([task], 2 * one, kinds, np.array([[2.0]]), Fraction(8))
    # (8 - 2 s) + 4 s, the least for the least multiple that is tried.
    assert found.dual == 8 + 2 * min(hadar_certificate.SCALES)
    assert list(hadar_certificate.SCALES) == [Fraction(1, 4**k) for k in range(9)]
    empty = hadar_certificate.certify([], one, kinds, np.array([[2.0]]), Fraction(0), [Fraction(1)])
    assert (empty.dual, empty.ratio) == (2, None)
    # Four units of work, three a round, at 2/3 a unit: 8 - 3 * 2/3 - 1 * 2/3, and two rounds at 2.
    long = CommittableJob(1, 0, (3,), 4, [9.0, 8.0].__getitem__, 1)
    prices = np.array([[2.0], [2.0]])
    bounds = {}
    for labels in (2_000, 0):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(hadar_certificate, "_LABELS", labels)
            made = hadar_certificate.certify([long], one, kinds, prices, Fraction(4), [Fraction(1)])
            bounds[labels] = made.dual
    assert bounds == {2_000: Fraction(8 - 4 + 4), 0: 8 - Fraction(8, 3) + 4}


@pytest.mark.parametrize("full", [[1, 2], [3, 1]])
def test_the_factor_of_hadar_is_the_largest_over_loads_that_fit(full: list[int]) -> None:
    """Node by node and load by load, as in the statement."""
    capacity = np.array(full)
    low, high = np.array([1.0, 0.5]), np.array([8.0, 32.0])
    prices = ExponentialPrices(low, high, capacity)
    for widest in (1, 2, 3):
        steps = [1.0]
        for h, c in enumerate(full):
            price = [low[h] * (high[h] / low[h]) ** min(load / c, 1) for load in range(c + 1)]
            steps += [
                c / w * (price[load + w] / price[load] - 1)
                for load in range(c + 1)
                for w in range(1, min(widest, c) + 1)
                if load + w <= c
            ]
        assert hadar_competitive.factor(prices, capacity, widest) == pytest.approx(max(steps))


def test_copies_that_do_more_than_their_work_are_refused() -> None:
    schedule = copies((0, 0, 0, 10), (0, 1, 0, 10))
    verify(steps_on("2x1", [20]), schedule)
    for work in (19, 21):
        with pytest.raises(VerificationError, match=f"work: job '0' did 20 steps, expected {work}"):
            verify(steps_on("2x1", [work]), schedule)
    empty = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    rules = CopyRules(10.0, 0.0, 0.0, 1)
    verify(Instance(Cluster.parse("1x1"), empty, copies=rules), head(schedule, 0))


def test_nobody_starts_early_while_a_queue_waits() -> None:
    """The second waits for the first from 3 on; the third, which would fit at 4, comes behind it."""
    gangs = Gangs(2, (0, 1, 4), (1, 2, 1), (10, 2, 10), (10, 2, 10), (10, 2, 10))
    for guard in (None, Fraction(100)):
        ends = asrpt_early.completions(gangs, gangs.longest, guard, gangs.longest)
        assert ends[1:] == [ends[0] + 2, ends[0] + 12]
    assert asrpt_early.completions(gangs, gangs.longest, None, gangs.longest)[0] == 10


def test_the_hypotheses_of_the_floor_are_looked_at() -> None:
    """H2, as many GPUs as there are, and H4, a demand that is no slower than the share."""
    profile = Profile(np.array([1.0, 3.0]), np.array([62.5]), np.array([[0.5], [1.0]]))
    demands = Demands(Sensitivity((profile,), np.zeros(2, np.int64)), np.array([2]), SHARE)
    asks = [ResourceRequest(0, 1, *SHARE), ResourceRequest(1, 1, *SHARE)]
    assert synergy_floor.hypotheses_hold(asks, demands)
    assert not synergy_floor.hypotheses_hold([asks[0], replace(asks[1], gpus=2)], demands)
    assert not synergy_floor.hypotheses_hold([asks[0], replace(asks[1], cpus=2.0)], demands)
