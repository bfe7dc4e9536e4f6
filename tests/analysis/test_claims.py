"""Claims printed around the theorems: each holds where it is printed, and is not printed elsewhere."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis import bounds as every_bound
from shadowprice.analysis.bounds import bounds_of, certified_and_largest, strongest_bound
from shadowprice.analysis.certificates import cascade, effort, windows
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import attains, exact_cost
from shadowprice.analysis.certify import certify
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    Statement,
    UnmetHypotheses,
    describe,
    guarantee,
    known_bound,
)
from shadowprice.analysis.limits import limits
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import execute_bounded, simulate
from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import rounded_up
from shadowprice.instances.schedule_class import AMPLE_TYPES, ScheduleClass
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import published_skews
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.terms.widths import Elasticity, Growth
from shadowprice.models.slotted import Slotted
from shadowprice.proofs.asrpt import conversion as asrpt_conversion
from shadowprice.proofs.asrpt import early as asrpt_early
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.offline import interval_prices, lagrangian, priced_plans
from shadowprice.solvers.offline import non_preemptive as offline
from shadowprice.solvers.offline.bounds import Bound, area_ticks, bound_of, simple_bounds
from shadowprice.solvers.offline.completions import completion_search
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.typed_bound import TypedPrices, typed_bound
from shadowprice.solvers.registry import placement, policy
from support.paths import ROOT

COMPLETION = sp.Objective.COMPLETION
TICK = 1 / TICKS_PER_S


# --- brute force ------------------------------------------------------------------------------


Way = tuple[tuple[int, ...], tuple[Fraction, ...]]
"""GPUs held of each type, and the rates of the jobs that hold them: of one, or of two that share."""


@dataclass(frozen=True)
class Given:
    """A small instance for exhaustive search: work and rates in rationals, times in seconds.

    ``alone`` are the ways in which each job may run by itself, ``pairs`` those in which two may share;
    ``start_s`` is charged whenever a job starts.
    """

    gpus: tuple[int, ...]
    arrival: tuple[Fraction, ...]
    work: tuple[Fraction, ...]
    weight: tuple[Fraction, ...]
    alone: tuple[tuple[Way, ...], ...]
    pairs: Mapping[tuple[int, int], tuple[Way, ...]]
    start_s: Fraction = Fraction(0)


def settings_of(
    given_: Given, ready: tuple[int, ...], free: tuple[int, ...]
) -> Iterator[dict[int, Fraction]]:
    """Who runs how fast: all ways to use the GPUs."""
    if not ready:
        yield {}
        return
    first, others = ready[0], ready[1:]
    yield from settings_of(given_, others, free)
    ways: list[tuple[tuple[int, ...], Way]] = [((first,), way) for way in given_.alone[first]]
    ways += [((first, j), way) for j in others for way in given_.pairs.get((first, j), ())]
    for jobs, (held, rates) in ways:
        left = tuple(f - h for f, h in zip(free, held, strict=True))
        if min(left) >= 0:
            rest = tuple(j for j in others if j not in jobs)
            for more in settings_of(given_, rest, left):
                yield {**dict(zip(jobs, rates, strict=True)), **more}


def least_cost(given_: Given, goal: sp.Objective) -> Fraction:
    """Least cost [s] of schedules that change at arrivals and completions only; exhaustive."""
    span = goal is sp.Objective.MAKESPAN

    none = (Fraction(0),) * len(given_.work)

    @cache
    def after(
        now: Fraction,
        left: tuple[Fraction, ...],
        owed: tuple[Fraction, ...],
        running: frozenset[int],
    ) -> Fraction:
        if not any(left):
            return Fraction(0)
        ready = tuple(j for j, rest in enumerate(left) if rest and given_.arrival[j] <= now)
        coming = min((r for r in given_.arrival if r > now), default=None)
        best = None
        for rates in settings_of(given_, ready, given_.gpus):
            if not rates and coming is None:
                continue
            due = list(owed)
            for j in rates.keys() - running:
                due[j] += given_.start_s
            ends = [now + due[j] + left[j] / rate for j, rate in rates.items()]
            then = min([*ends, *([] if coming is None else [coming])])
            rest, cost = list(left), Fraction(0)
            for j, rate in rates.items():
                paid = min(due[j], then - now)
                due[j] -= paid
                rest[j] -= (then - now - paid) * rate
                if not rest[j]:
                    cost += Fraction(0) if span else given_.weight[j] * then
            cost = then - now if span else cost
            going = frozenset(j for j in rates if rest[j])
            value = cost + after(then, tuple(rest), tuple(due), going)
            best = value if best is None else min(best, value)
        assert best is not None
        return best

    least = min(given_.arrival)
    total = after(least, given_.work, none, frozenset())
    if goal is sp.Objective.FLOW:
        total -= sum(w * r for w, r in zip(given_.weight, given_.arrival, strict=True))
    return total


def rigid(jobs: sp.Workload, gpus: int, start_s: float = 0.0) -> Given:
    """Jobs of one speed that hold their gangs, each alone."""
    columns = (jobs.arrival_s, jobs.work, jobs.weight)
    arrival, work, weight = (tuple(map(Fraction, column.tolist())) for column in columns)
    alone = tuple((((gang,), (Fraction(1),)),) for gang in jobs.gpus.tolist())
    return Given((gpus,), arrival, work, weight, alone, {}, Fraction(start_s))


def grid_slack(jobs: sp.Workload) -> Fraction:
    """What costs more [ticks] if each run ends at the next tick, as the search's need not."""
    return len(jobs) * sum(
        (max(Fraction(w), Fraction(1)) for w in jobs.weight.tolist()), Fraction(0)
    )


def below(instance: sp.Instance, known: Given, *, budget_s: float = 0.3) -> None:
    """No bound of the instance is above the cost of the best schedule that was searched out."""
    for goal in sp.Objective:
        least = least_cost(known, goal) * TICKS_PER_S
        for bound in bounds_of(instance, goal, BoundEffort(budget_s)):
            assert bound.ticks <= least + grid_slack(instance.workload), (goal, bound.kind)
            assert bound.holds_for == ScheduleClass.allowed(instance, preemptive=True)


@st.composite
def few_jobs(draw: st.DrawFn, gangs: int = 2, models: bool = False) -> sp.Workload:
    n = draw(st.integers(2, 3))
    numbers = {
        name: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 4), ("gpus", 1, gangs), ("work", 1, 6))
    }
    weight = draw(st.lists(st.sampled_from([1.0, 1.0, 0.5, 3.0]), min_size=n, max_size=n))
    names = draw(st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n))
    return sp.Workload.from_columns(**numbers, weight=weight, model=names if models else None)


# --- theorems say which runs they cover ------------------------------------------------------------


def told(
    jobs: sp.Workload,
    cluster: str,
    run_options: sp.RunOptions | None = None,
    name: str = "asrpt",
    goal: sp.Objective = COMPLETION,
) -> tuple[Outcome, Statement | None]:
    settled = prepare_run(jobs, cluster, name, run_options)
    outcome, seen = execute_bounded(settled), describe(settled, goal)
    assert seen is not None
    return outcome, guarantee(outcome, seen)


TWO = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[1, 1], model=["VGG19", "VGG16"])


@pytest.mark.parametrize(
    ("cluster", "switches", "goal", "words"),
    [
        ("1x1", {"round_s": 1000.0}, COMPLETION, "decisions are made every 1000 s"),
        ("2x2", {"placement": "consolidate"}, COMPLETION, "placement consolidate lets a gang wait"),
        (
            "1x2",
            {"overheads": sp.Overheads(start_s=5.0)},
            COMPLETION,
            "there are charges for starts",
        ),
        (
            "1x2",
            {"interference": Interference({"VGG16": 0.1, "VGG19": 0.5})},
            COMPLETION,
            "there are rates of jobs that share GPUs",
        ),
        ("2x2", {"skews": published_skews()}, COMPLETION, "there are slowdowns of spread gangs"),
        ("1x2", {"growth": Growth(2)}, COMPLETION, "there are jobs that may grow"),
        (
            "1x8+24cpu+500gb",
            {"profiles": Profiles.synthetic()},
            COMPLETION,
            "there are profiles by CPUs and memory",
        ),
        ("1x2", {}, sp.Objective.FLOW, "the objective is flow"),
    ],
)
def test_a_theorem_names_the_hypothesis_that_fails(
    cluster: str, switches: dict[str, Any], goal: sp.Objective, words: str
) -> None:
    run_options = sp.RunOptions(**switches)
    _, found = told(TWO, cluster, run_options, goal=goal)
    assert isinstance(found, UnmetHypotheses)
    assert len(found.missing) == 1
    assert words in found.missing[0]
    assert found.sentence("asrpt") == f"asrpt: ASRPT-sharper does not apply: {found.missing[0]}"
    assert isinstance(told(TWO, cluster)[1], FactorGuarantee)


def test_weights_and_speeds_are_hypotheses_too() -> None:
    heavy = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 2], weight=[1, 2])
    _, found = told(heavy, "1x1")
    assert isinstance(found, UnmetHypotheses)
    assert "unweighted sum" in found.missing[0]
    typed = sp.Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[1], throughput=[[1, 2]], gpu_types=("a", "b")
    )
    _, found = told(typed, "1x1:a,1x1:b")
    assert isinstance(found, UnmetHypotheses)
    assert "there are GPU types that jobs tell apart" in found.missing[0]
    assert isinstance(told(typed, "1x1:a")[1], FactorGuarantee)


def test_each_file_on_a_srpt_has_its_own_hypotheses() -> None:
    instance = sp.Instance(sp.Cluster.parse("1x2"), TWO)

    def words(missing: Callable[[DescribedRun], tuple[str, ...]], name: str) -> str:
        return "; ".join(missing(DescribedRun(instance, policy(name))))

    assert words(asrpt_conversion.missing_hypotheses, "asrpt") == ""
    assert "may overtake" in words(asrpt_conversion.missing_hypotheses, "asrpt:overtake=true")
    assert "virtual completion" in words(asrpt_conversion.missing_hypotheses, "asrpt-early")
    assert "the policy is fifo" in words(asrpt_conversion.missing_hypotheses, "fifo")
    assert words(asrpt_ratio.missing_hypotheses, "asrpt") == ""
    assert "by noisy:2" in words(asrpt_ratio.missing_hypotheses, "asrpt:predictor=noisy:2")
    assert "stretched" in words(asrpt_ratio.missing_hypotheses, "asrpt:stretch=2")
    assert words(asrpt_early.missing_hypotheses, "asrpt-guarded") == ""
    assert "have no guard" in words(asrpt_early.missing_hypotheses, "asrpt-early")
    assert "may overtake" in words(asrpt_early.missing_hypotheses, "asrpt:overtake=true")
    assert "the policy is fifo" in words(asrpt_early.missing_hypotheses, "fifo")


@pytest.mark.parametrize("name", ["srtf", "las2d:thresholds_gpu_s=2"])
@pytest.mark.parametrize(
    "switches",
    [
        {"round_s": 1000.0},
        {"overheads": sp.Overheads(start_s=5.0)},
        {"interference": Interference({"VGG16": 0.1, "VGG19": 0.5})},
        {"preemption": sp.Preemption.RESTART},
    ],
)
def test_a_factor_of_an_adversary_is_none_of_other_runs(
    name: str, switches: dict[str, Any]
) -> None:
    """SRPT-1 and TIR-las (b) know neither weights nor charges, rounds, sharing or restarts."""

    def known(jobs: sp.Workload, run_options: sp.RunOptions) -> KnownBound | None:
        settled = prepare_run(jobs, "1x1", name, run_options)
        seen = describe(settled, COMPLETION)
        assert seen is not None
        return known_bound(execute_bounded(settled), seen)

    assert known(TWO, sp.RunOptions()) is not None
    assert known(TWO, sp.RunOptions(**switches)) is None
    heavy = replace(TWO, weight=np.array([1.0, 9.0]))
    assert known(heavy, sp.RunOptions()) is None


def test_the_factor_of_las2d_is_its_bound_over_the_least() -> None:
    """One queue up to 2 GPU-s: jobs of 3 and 1 on one GPU may end at 4 each; the least total is 1 + 4."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[3, 1])
    settled = prepare_run(jobs, "1x1", "las2d:thresholds_gpu_s=2")
    seen = describe(settled, COMPLETION)
    assert seen is not None
    known = known_bound(execute_bounded(settled), seen)
    assert known is not None
    assert known.factor == tiresias_las.bound(settled.instance, (2.0,)) / 5
    assert known.factor >= 1


def test_rounds_break_the_factor_and_it_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.csv"
    path.write_text("id,gpus,submit,duration\na,1,0,1\nb,1,1,1\n")
    words = ["compare", str(path), "--cluster", "1x1", "--policies", "asrpt", "--budget", "1"]
    words += ["--objective", "completion"]
    app([*words, "--round", "1000"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "1001x" in printed
    assert "the offline optimum of non-preemptive schedules is at least 3 s" in printed
    assert (
        "asrpt: ASRPT-sharper does not apply: decisions are made every 1000 s, the theorem is about "
        "decisions at events" in printed
    )
    assert "by ASRPT-sharper" not in printed
    app(words, standalone_mode=False)
    printed = capsys.readouterr().out
    assert "asrpt: total completion time at most 2x the offline optimum of preemptive" in printed


def crowded(nodes: int, size: int, long_s: float, fill_s: float, narrow: int) -> sp.Workload:
    """One long job ends up on every node; then come gangs that want a whole one."""
    rows, at = [], 0.0
    for _ in range(nodes):
        rows.append((at, 1, long_s))
        begun = at + long_s / (nodes * size)
        rows += [(begun + 1, 1, fill_s - begun)] * (size - 1)
        at = begun + 1 + (size - 1) * (fill_s - begun) / (nodes * size) + 2
    end = fill_s + (size - 1) * fill_s / (nodes * size) + 50
    rows += [(end, size, 1.0)] * narrow
    arrival, gpus, work = zip(*rows, strict=True)
    return sp.Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)


def test_consolidation_breaks_the_factor_and_it_is_not_printed() -> None:
    jobs = crowded(4, 8, 50_000.0, 12_000.0, 600)
    outcome, found = told(jobs, "4x8", sp.RunOptions(placement="consolidate"))
    _, stated = told(jobs, "4x8")
    assert isinstance(found, UnmetHypotheses)
    assert isinstance(stated, FactorGuarantee)
    # A schedule that takes any free GPUs costs no more than 1.01 times a bound, so this ratio is real.
    least = max(bound.ticks for bound in simple_bounds(outcome.instance, COMPLETION))
    count = simulate(jobs, "4x8", "asrpt")
    assert exact_cost(count.instance, COMPLETION, count.end_s) <= Fraction(102, 100) * least
    cost = exact_cost(outcome.instance, COMPLETION, outcome.end_s)
    assert cost / exact_cost(count.instance, COMPLETION, count.end_s) > stated.factor


TEST_RATES = Interference({"a": 0.1, "b": 0.2})
"""Any two of these share without loss."""

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "round_s": st.sampled_from([2.0, 1000.0]),
        "placement": st.sampled_from(["count", "consolidate", "pack"]),
        "overheads": st.sampled_from([sp.Overheads(start_s=1000.0), sp.Overheads(restart_s=3.0)]),
        "growth": st.just(Growth(2, 0.9)),
        "interference": st.just(TEST_RATES),
        "predictor": st.sampled_from(["noisy:2", "median"]),
    },
)
NAMES = ("asrpt", "asrpt:stretch=3", "asrpt:overtake=true", "asrpt-early", "asrpt-guarded")


PACKED = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[9, 9], model=["a", "a"])
LATE = asrpt_ratio.flow_family(2).workload


@settings(max_examples=25, deadline=None)
@example(TWO, "1x2", {"round_s": 1000.0}, "asrpt", COMPLETION, 1.0)
@example(TWO, "1x2", {"overheads": sp.Overheads(start_s=1000.0)}, "asrpt", COMPLETION, 1.0)
@example(PACKED, "1x1", {"interference": TEST_RATES}, "asrpt", COMPLETION, 1.0)
@example(LATE, "1x1", {}, "asrpt", sp.Objective.FLOW, 1.0)
@given(
    jobs=few_jobs(models=True),
    cluster=st.sampled_from(["1x2", "2x1", "1x3", "2x2"]),
    options=OPTIONS,
    name=st.sampled_from(NAMES),
    goal=st.sampled_from(list(sp.Objective)),
    unit_s=st.sampled_from([1.0, TICK, 3 * TICK]),
)
def test_a_printed_factor_holds_whatever_the_options(
    jobs: sp.Workload,
    cluster: str,
    options: dict[str, Any],
    name: str,
    goal: sp.Objective,
    unit_s: float,
) -> None:
    """In the objective that is compared, against schedules that share where jobs may.

    Also where jobs are so short that starting at whole ticks matters.
    """
    jobs = sp.Workload.from_columns(
        arrival_s=jobs.arrival_s * unit_s,
        gpus=jobs.gpus,
        work=jobs.work * unit_s,
        weight=jobs.weight,
        model=jobs.model,
    )
    outcome, found = told(jobs, cluster, sp.RunOptions(**options), name, goal)
    assert found is not None
    if isinstance(found, UnmetHypotheses):
        assert found.missing
        return
    instance, gangs = outcome.instance, jobs.gpus.tolist()
    known = rigid(instance.workload, instance.cluster.total_gpus)
    if instance.sharing_rates is not None:
        one = Fraction(1)
        couples = combinations(range(len(jobs)), 2)
        pairs = {(j, k): (((gangs[j],), (one, one)),) for j, k in couples if gangs[j] == gangs[k]}
        known = replace(known, pairs=pairs)
    cost = exact_cost(instance, goal, outcome.end_s)
    assert cost <= found.factor * least_cost(known, goal) * TICKS_PER_S


def test_what_the_time_grid_adds_is_in_the_factor() -> None:
    """Two jobs of a tick on two GPUs: the virtual machine completes the first after half a tick."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[TICK, TICK])
    _, found = told(jobs, "1x2")
    assert isinstance(found, FactorGuarantee)
    assert found.factor == Fraction(5, 2) + Fraction(1, 2) / 2


def test_every_option_of_that_law_occurs_in_a_guarantee_or_a_silence() -> None:
    """The law is not about nothing: the plain run of each name is covered as it should be."""
    kinds = {name: type(told(TWO, "1x2", name=name)[1]) for name in NAMES}
    assert kinds == dict(
        zip(
            NAMES,
            [FactorGuarantee, FactorGuarantee, UnmetHypotheses, UnmetHypotheses, UnmetHypotheses],
            strict=True,
        )
    )


# --- an optimum needs a verified schedule ------------------------------------------------------------


THREE = sp.Workload.from_columns(arrival_s=[0, 2, 4], gpus=[1, 1, 1], work=[15, 8, 6])


def test_charges_of_starts_count_and_nothing_less_is_called_an_optimum() -> None:
    charged = sp.RunOptions(overheads=sp.Overheads(start_s=5.0))
    known = rigid(THREE, 1, 5.0)
    for goal in sp.Objective:
        for row in sp.compare(THREE, "1x1", ["fifo", "srtf"], goal, charged, budget_s=1).rows:
            assert Fraction(row.bound) <= least_cost(known, goal)
            assert row.optimum_s is None or Fraction(row.optimum_s) == least_cost(known, goal)
    alone = sp.Workload.from_columns(arrival_s=[0, 30], gpus=[1, 1], work=[15, 8])
    row = sp.compare(alone, "1x1", ["fifo"], "flow", charged, budget_s=1).rows[0]
    assert (row.cost, row.optimum_s) == (33.0, 33.0)


@settings(max_examples=15, deadline=None)
@given(jobs=few_jobs(), gpus=st.integers(2, 3), start_s=st.sampled_from([0.0, 1.0, 5.0]))
def test_bounds_with_charges_are_below_brute_force(
    jobs: sp.Workload, gpus: int, start_s: float
) -> None:
    instance = sp.Instance(sp.Cluster.parse(f"1x{gpus}"), jobs, sp.Overheads(start_s=start_s))
    below(instance, rigid(jobs, gpus, start_s))


def test_the_optimum_for_users_is_one_that_the_verifier_accepts() -> None:
    instance = sp.Instance(sp.Cluster.parse("1x2"), THREE, sp.Overheads(start_s=5.0))
    found = sp.optimum(instance, method="cp-sat", budget_s=3)
    assert str(found.holds_for) == "non-preemptive schedules"
    assert not found.proven or found.schedule is not None
    if found.schedule is not None:
        outcome = Outcome.verified(instance, found.schedule, policy="optimum")
        assert found.upper_s == float(outcome.end_s.sum())
    assert found.lower_s <= float(least_cost(rigid(THREE, 2, 5.0), COMPLETION))


def an_optimum(instance: sp.Instance, **changed: Any) -> offline.Optimum:
    """What the offline solver says of a plain instance, or says wrongly."""
    plain = sp.Instance(instance.cluster, instance.workload)
    found = offline.Optimum(
        lower_s=0.0,
        upper_s=0.0,
        schedule=None,
        method="cp-sat",
        certified=True,
        slot_s=1.0,
        exact_grid=True,
        evidence=offline.OptimalityEvidence.PROVEN,
        certified_lower_s=0.0,
        certified_by="branching",
    )
    schedule = run(plain, policy("sjf")).schedule
    cost_s = float(Outcome.verified(plain, schedule, policy="sjf").end_s.sum())
    return replace(found, **{"lower_s": cost_s, "upper_s": cost_s, "schedule": schedule, **changed})


SOLVER = Callable[..., offline.Optimum]


def test_a_placement_that_goes_by_jobs_is_judged_by_the_jobs_there_are() -> None:
    """Gangs of models without large tensors go anywhere, the others wait for a place."""
    skews = published_skews()
    for model, anywhere in (("resnet-50", True), ("vgg-19", False)):
        jobs = sp.Workload.from_columns(arrival_s=[0.0], gpus=[2], work=[1.0], model=[model])
        instance = sp.Instance(sp.Cluster.parse("2x2"), jobs)
        placing = replace(placement("skew-wait"), skews=skews)
        assert DescribedRun(instance, policy("asrpt"), placement=placing).anywhere is anywhere


def told_by_a_solver(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    def answer(instance: sp.Instance, *words: Any, **more: Any) -> offline.Optimum:
        return an_optimum(instance, **changed)

    monkeypatch.setattr(offline, "optimum", answer)


PAIR = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 1], work=[9, 10, 10])
"""On two GPUs: shortest first costs 9 + 19 + 19 = 47."""

WIDE_FIRST = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 2, 2], work=[9, 1, 1])
"""On three GPUs one after the other: in order 9 + 10 + 11 = 30, the other way round 1 + 2 + 11 = 14."""


def test_a_solver_s_optimum_is_shown_if_its_schedule_is_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told_by_a_solver(monkeypatch)
    without_prices_of_gangs(monkeypatch)
    row = sp.compare(PAIR, "1x2", ["easy"], budget_s=1).rows[0]
    # The solver does not certify: what was evaluated does.
    assert row.sharper is not None
    assert (row.sharper.kind, row.sharper.value_s) == ("cp-sat", 47.0)
    assert str(row.sharper.holds_for) == "non-preemptive schedules"
    assert row.bound < row.sharper.value_s == row.cost
    assert row.certified
    assert sp.optimum(sp.Instance(sp.Cluster.parse("1x2"), PAIR)).proven


@pytest.mark.parametrize(
    ("evidence", "asked"),
    [
        (offline.OptimalityEvidence.POINT_ONLY, ["cp-sat", "milp"]),
        (offline.OptimalityEvidence.CONFIRMED, ["cp-sat"]),
        (offline.OptimalityEvidence.PROVEN, ["cp-sat"]),
    ],
)
def test_an_optimum_that_is_confirmed_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, evidence: offline.OptimalityEvidence, asked: list[str]
) -> None:
    instance = sp.Instance(sp.Cluster.parse("1x2"), PAIR)
    proven = evidence is offline.OptimalityEvidence.PROVEN
    methods: list[str] = []

    def answer(*_: Any, method: str, **more: Any) -> offline.Optimum:
        methods.append(method)
        exact_s = 47.0 if proven else 30.0
        told = an_optimum(instance, evidence=evidence, certified=proven, certified_lower_s=exact_s)
        return replace(told, method=method, certified_by="time-indexed-lp")

    without_prices_of_gangs(monkeypatch)
    monkeypatch.setattr(offline, "optimum", answer)
    bounds = list(bounds_of(instance, COMPLETION, BoundEffort(2), preemptive=False))
    assert methods == asked
    kinds = [bound.kind for bound in bounds]
    # The word is never what is certified.
    assert {"job", *asked} <= set(kinds)
    assert {bound.kind for bound in bounds if bound.record is None} == set(asked)
    assert sum(bound.certified for bound in bounds) == 1


def without_prices_of_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out all bounds that a few wide jobs attain without any solver."""
    for search in ("_interval_prices", "_plans", "window_bounds", "non_preemptive_bounds"):
        monkeypatch.setattr(cascade, search, lambda *words: iter(()))
    monkeypatch.setattr(cascade, "wide_gang_ticks", lambda jobs: Fraction(0))
    monkeypatch.setattr(cascade, "certificate_modes", lambda *words, **more: iter(()))


def test_no_optimum_without_a_schedule_that_is_verified_at_that_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_prices_of_gangs(monkeypatch)
    cluster, plain = sp.Cluster.parse("1x3"), sp.RunOptions()
    charged = sp.RunOptions(overheads=sp.Overheads(start_s=5.0))
    for changed, run_options in (
        ({"schedule": None}, plain),  # No schedule,
        ({"lower_s": 13.5, "upper_s": 13.5}, plain),  # one that costs more than the solver says,
        ({"certified": False}, plain),  # a bound in floats,
        ({"lower_s": 40.0, "upper_s": 40.0}, charged),  # a schedule that pays no charges.
    ):
        told_by_a_solver(monkeypatch, **changed)
        (row,) = sp.compare(WIDE_FIRST, "1x3", ["fifo"], options=run_options, budget_s=1).rows
        assert row.sharper is not None
        assert row.sharper.kind == "cp-sat"
        assert row.optimum_s is None, changed
        assert row.to_dict()["optimum"] is None
        assert "optimal" not in row.sentence()
        assert "attains" not in row.sentence()
    told_by_a_solver(monkeypatch)
    (row,) = sp.compare(WIDE_FIRST, "1x3", ["fifo"], budget_s=1).rows
    assert row.sharper is not None
    assert (row.cost, row.sharper.value_s, row.optimum_s) == (30.0, 14.0, None)
    found = sp.optimum(sp.Instance(cluster, WIDE_FIRST, sp.Overheads(start_s=5.0)))
    assert (found.proven, found.schedule, found.upper_s) == (False, None, math.inf)
    told_by_a_solver(monkeypatch, lower_s=13.5, upper_s=13.5)
    found = sp.optimum(sp.Instance(cluster, WIDE_FIRST))
    assert (found.proven, found.upper_s) == (False, 14.0)
    # A bound that a verified schedule refutes.
    told_by_a_solver(monkeypatch, lower_s=1000.0, upper_s=1000.0)
    with pytest.raises(VerificationError, match="no schedule costs less than 1000"):
        sp.optimum(sp.Instance(cluster, WIDE_FIRST))


def test_a_witness_of_another_class_attains_nothing() -> None:
    """A preemptive schedule is no optimum of the schedules without preemption."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[10, 2])
    instance = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    schedule = run(instance, policy("srtf")).schedule
    assert ScheduleClass.used(instance, schedule) == ScheduleClass(True, consolidated=True)
    cost = exact_cost(instance, COMPLETION, Outcome.verified(instance, schedule, policy="s").end_s)
    for preemptive in (True, False):
        bound = bound_of(cost, "job", ScheduleClass(preemptive))
        assert attains(instance, COMPLETION, bound, schedule) is preemptive


SOLVER_OF_SLOTS = "shadowprice.solvers.offline.preemptive.slotted_preemptive_optimum"


def test_the_slotted_optimum_needs_a_verified_schedule_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = sp.Instance(sp.Cluster.parse("1x2"), WIDE_FIRST)
    true = sp.slotted_preemptive_optimum(instance)
    assert true.proven
    assert true.schedule is not None
    nothing = sp.Workload.from_columns(arrival_s=[], gpus=[], work=[])
    assert sp.slotted_preemptive_optimum(sp.Instance(instance.cluster, nothing)).proven
    rows = true.schedule.to_frame()
    early = sp.Schedule.from_frame(rows.assign(end_s=rows["end_s"] - 0.5))
    for wrong in ({"schedule": early}, {"schedule": None}):
        answer = replace(true, **wrong)
        monkeypatch.setattr(SOLVER_OF_SLOTS, lambda *_, answer=answer, **__: answer)
        found = sp.slotted_preemptive_optimum(instance)
        assert (found.schedule, found.upper_s, found.proven) == (None, math.inf, False)
        assert found.evidence is offline.OptimalityEvidence.POINT_ONLY
    # The cost is the schedule's own, whatever the solver says; a bound above it is refuted.
    answer = replace(true, upper_s=true.upper_s - 1.0)
    monkeypatch.setattr(SOLVER_OF_SLOTS, lambda *_, **__: answer)
    assert sp.slotted_preemptive_optimum(instance).upper_s == true.upper_s
    above = replace(true, lower_s=true.lower_s + 1.0)
    monkeypatch.setattr(SOLVER_OF_SLOTS, lambda *_, **__: above)
    with pytest.raises(VerificationError, match="a verified one costs"):
        sp.slotted_preemptive_optimum(instance)


def test_profiles_that_no_node_can_give_are_out_of_reach() -> None:
    """A node of 3 CPUs: nobody gets the best of speeds, and modes of CPUs know that."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[100, 100], model="alexnet")
    profiled = sp.RunOptions(profiles=Profiles.synthetic())
    for row in sp.compare(
        jobs, "1x1+3cpu+62.5gb", ["fifo", "srtf"], "flow", profiled, budget_s=0.5
    ).rows:
        assert row.bound_kind.endswith("-of-amounts")
        assert row.bound == row.cost == row.optimum_s == 300.0


@settings(max_examples=8, deadline=None)
@given(jobs=few_jobs(gangs=1), start_s=st.sampled_from([0.0, 2.0]))
def test_an_optimum_on_one_gpu_is_one(jobs: sp.Workload, start_s: float) -> None:
    run_options = sp.RunOptions(overheads=sp.Overheads(start_s=start_s))
    for goal in sp.Objective:
        least = least_cost(rigid(jobs, 1, start_s), goal)
        for row in sp.compare(jobs, "1x1", ["fifo", "srtf"], goal, run_options, budget_s=0.1).rows:
            assert row.optimum_s is None or Fraction(row.optimum_s) == least
            assert row.ratio >= 1


# --- sharing and widths -----------------------------------------------------------------------------


def test_bounds_know_what_jobs_that_share_could_do() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[100, 100], model="VAE")
    run_options = sp.RunOptions(interference=Interference())
    rows = sp.compare(jobs, "1x1", ["fifo", "srtf"], options=run_options, budget_s=1).rows
    runs = pd.DataFrame(
        {
            "job": [0, 1],
            "node": 0,
            "gpus": 1,
            "start_s": 0.0,
            "end_s": 100.0,
            "overhead_s": 0.0,
            "partner": [1, 0],
        }
    )
    instance = sp.Instance(
        sp.Cluster.parse("1x1"),
        jobs,
        sharing_rates=Interference().of(jobs, sp.Cluster.parse("1x1")),
    )
    shared = Outcome.verified(instance, sp.Schedule.from_frame(runs), policy="shared")
    for row in rows:
        assert (row.cost, row.bound, row.optimum_s) == (300.0, 200.0, None)
        assert row.bound <= float(shared.end_s.sum()) == 200.0
        assert row.sentence() == (
            f"{row.policy} costs at most 1.5x the offline optimum of preemptive schedules that may "
            "share GPUs (certified by job)"
        )
    used = ScheduleClass.used(instance, shared.schedule)
    assert used == ScheduleClass(preemptive=False, sharing=True, consolidated=True)
    assert ScheduleClass.allowed(instance, preemptive=True).contains(used)


def test_gandiva_is_compared_with_schedules_that_share() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[30, 30], model="VAE")
    run_options = sp.RunOptions(interference=Interference())
    for row in sp.compare(jobs, "1x1", ["fifo", "gandiva"], options=run_options).rows:
        assert row.bound == 60.0
        assert row.optimum_s == (60.0 if row.cost == 60.0 else None)


def sharing(jobs: sp.Workload, gpus: int, rates: Mapping[str, float]) -> tuple[sp.Instance, Given]:
    """Jobs of models a and b that may share, at rates by the two models' names."""
    table = Throughputs(("gpu",), {}, together("gpu", rates), "drawn")
    models, gangs = jobs.model.tolist(), jobs.gpus.tolist()
    pairs = {
        (j, k): (((gangs[j],), rates_of(models, j, k, rates)),)
        for j, k in combinations(range(len(jobs)), 2)
        if gangs[j] == gangs[k] and min(rates_of(models, j, k, rates)) > 0
    }
    cluster = sp.Cluster.parse(f"1x{gpus}:gpu")
    return sp.Instance(cluster, jobs, sharing_rates=table), replace(rigid(jobs, gpus), pairs=pairs)


KINDS = [(name, gpus) for name in "ab" for gpus in (1, 2)]


def together(
    gpu_type: str, rates: Mapping[str, float]
) -> dict[tuple[str, Kind, Kind], tuple[float, float]]:
    return {
        (gpu_type, one, other): (rates[one[0] + other[0]], rates[other[0] + one[0]])
        for one, other in product(KINDS, repeat=2)
        if one[1] == other[1]
    }


def rates_of(
    models: list[str], one: int, other: int, rates: Mapping[str, float]
) -> tuple[Fraction, Fraction]:
    first, second = models[one], models[other]
    return Fraction(rates[first + second]), Fraction(rates[second + first])


RATES = st.fixed_dictionaries(
    {key: st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.25]) for key in ("aa", "ab", "ba", "bb")}
)


@settings(max_examples=6, deadline=None)
@given(
    jobs=few_jobs(gangs=1, models=True),
    fast=RATES,
    slow=RATES,
    alone=st.fixed_dictionaries({name: st.sampled_from([0.25, 0.5, 1.0]) for name in "ab"}),
)
def test_bounds_with_sharing_and_types_are_below_brute_force(
    jobs: sp.Workload, fast: dict[str, float], slow: dict[str, float], alone: dict[str, float]
) -> None:
    """One GPU of each of two types; alone on the fast one every job has rate 1."""
    models = jobs.model.tolist()
    typed = sp.Workload.from_columns(
        arrival_s=jobs.arrival_s,
        gpus=jobs.gpus,
        work=jobs.work,
        weight=jobs.weight,
        model=jobs.model,
        throughput=[[1.0, alone[name]] for name in models],
        gpu_types=("fast", "slow"),
    )
    table = Throughputs(
        ("fast", "slow"), {}, {**together("fast", fast), **together("slow", slow)}, "drawn"
    )
    instance = sp.Instance(sp.Cluster.parse("1x1:fast,1x1:slow"), typed, sharing_rates=table)
    held = ((1, 0), (0, 1))
    ways = tuple(((held[0], (Fraction(1),)), (held[1], (Fraction(alone[n]),))) for n in models)
    pairs = {
        (j, k): tuple(
            (gpus, rates_of(models, j, k, rates))
            for gpus, rates in zip(held, (fast, slow), strict=True)
            if min(rates_of(models, j, k, rates)) > 0
        )
        for j, k in combinations(range(len(jobs)), 2)
    }
    below(instance, replace(rigid(jobs, 1), gpus=(1, 1), alone=ways, pairs=pairs))
    mine = gpu_type_modes(instance)
    bounds = np.arange(0, 30) * TICKS_PER_S
    prices = TypedPrices(bounds, np.full((29, len(mine.capacity)), lagrangian.PRICE_UNIT // 3))
    least = least_cost(replace(rigid(jobs, 1), gpus=(1, 1), alone=ways, pairs=pairs), COMPLETION)
    assert typed_bound(mine, prices) <= least * TICKS_PER_S + grid_slack(jobs)


@settings(max_examples=6, deadline=None)
@given(jobs=few_jobs(models=True), gpus=st.integers(2, 3), rates=RATES)
def test_bounds_with_sharing_are_below_brute_force(
    jobs: sp.Workload, gpus: int, rates: dict[str, float]
) -> None:
    instance, known = sharing(jobs, gpus, rates)
    gain = SharingGain.of(instance)
    assert (gain is not None) == bool(known.pairs)
    by_type = SharingGain.by_type(instance)
    assert by_type == (None if gain is None else (gain,))
    below(instance, known)


def test_the_bounds_with_sharing_are_attained() -> None:
    """Four equal jobs on one GPU, two at a time without loss: kappa is 2, and it is reached."""
    jobs = sp.Workload.from_columns(arrival_s=[0] * 4, gpus=[1] * 4, work=[4] * 4, model=["a"] * 4)
    instance, known = sharing(jobs, 1, dict.fromkeys(("aa", "ab", "ba", "bb"), 1.0))
    gain = SharingGain.of(instance)
    assert gain is not None
    assert gain.kappa == 2
    (span,) = simple_bounds(instance, sp.Objective.MAKESPAN)
    assert span.value_s == 8.0 == float(least_cost(known, sp.Objective.MAKESPAN))
    slower, _ = sharing(jobs, 1, dict.fromkeys(("aa", "ab", "ba", "bb"), 0.75))
    half = SharingGain.of(slower)
    assert half is not None
    assert half.kappa == Fraction(3, 2)


def test_rates_that_no_two_of_the_jobs_have_are_no_sharing() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 2], work=[4, 4], model=["a", "a"])
    instance, _ = sharing(jobs, 2, dict.fromkeys(("aa", "ab", "ba", "bb"), 1.0))
    assert SharingGain.of(instance) is None
    assert str(ScheduleClass.allowed(instance, preemptive=False)) == "non-preemptive schedules"


def test_a_pair_in_both_orders_takes_a_rate_from_each() -> None:
    """The instance takes each job's rate from the entry that names it first."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[4, 4], model=["a", "b"])
    one, other = ("a", 1), ("b", 1)
    table = Throughputs(
        ("gpu",), {}, {("gpu", one, other): (1.0, 0.25), ("gpu", other, one): (1.0, 0.25)}, "drawn"
    )
    instance = sp.Instance(sp.Cluster.parse("1x1:gpu"), jobs, sharing_rates=table)
    assert instance.shared_runs.run_s([0, 1], [1, 0], 0).tolist() == [4.0, 4.0]
    gain = SharingGain.of(instance)
    assert gain is not None
    assert gain.kappa == 2


@settings(max_examples=6, deadline=None)
@given(
    jobs=few_jobs(),
    gpus=st.integers(2, 4),
    efficiency=st.sampled_from([0.75, 1.0]),
    start_s=st.sampled_from([0.0, 2.0]),
)
def test_bounds_with_widths_are_below_brute_force(
    jobs: sp.Workload, gpus: int, efficiency: float, start_s: float
) -> None:
    widest = np.minimum(jobs.gpus * 2, gpus)
    grown = Elasticity(widest, np.full(len(jobs), efficiency))
    instance = sp.Instance(
        sp.Cluster.parse(f"1x{gpus}"),
        jobs,
        sp.Overheads(start_s=start_s),
        elasticity=grown,
    )
    ways = tuple(
        tuple(
            ((w,), (Fraction(float(grown.speed(np.array([j]), np.array([g]), np.array([w]))[0])),))
            for w in range(g, most + 1)
        )
        for j, (g, most) in enumerate(zip(jobs.gpus.tolist(), widest.tolist(), strict=True))
    )
    below(instance, replace(rigid(jobs, gpus, start_s), alone=ways))
    allowed = ScheduleClass.allowed(instance, preemptive=True)
    assert allowed.elastic == bool((widest > jobs.gpus).any())


@settings(max_examples=4, deadline=None)
@given(
    work=st.lists(st.integers(1, 4000), min_size=1, max_size=4),
    goal=st.sampled_from(sp.Objective),
)
def test_no_bound_is_printed_above_the_one_that_was_found(
    work: list[int], goal: sp.Objective
) -> None:
    """A job of 0.6 s costs 1 s to the nearest second, and no bound of it is 1 s."""
    rows = [f"j{k},1,0,{each / 1000}" for k, each in enumerate(work)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text("\n".join(["id,gpus,submit,duration", *rows, ""]))
        words = ["compare", str(path), "--cluster", "1x2", "--policies", "srtf", "--budget", "0"]
        words += ["--explain", "--objective", str(goal)]
        printed = CliRunner().invoke(app, words, env={"COLUMNS": "120"})
        (row,) = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["policies"]
    (line,) = (each for each in printed.stdout.splitlines() if "│ srtf" in each)
    cells = [each.strip().replace(",", "") for each in line.strip("│").split("│")]
    said = printed.stdout.replace(",", "").split(" is at least ")[1].split(" s")[0]
    assert Fraction(row["bound"]) - 1 < Fraction(said) <= Fraction(row["bound"])
    assert Fraction(cells[2].removesuffix("x")) >= Fraction(row["cost"]) / Fraction(row["bound"])
    told = [each for each in printed.stderr.splitlines() if each.startswith("bound ")]
    assert told
    for each in told:
        assert Fraction(each.split(": ")[1].split(" s")[0]) <= Fraction(row["bound"])


# --- the class is named -------------------------------------------------------------------------------


def test_the_class_of_an_optimum_is_in_rows_sentences_and_json() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[10, 2])
    (row,) = sp.compare(jobs, "1x1", ["srtf"], "flow", budget_s=1).rows
    assert row.sentence() == "srtf is optimal among preemptive schedules (certified by fluid)"
    assert row.to_dict()["class"] == {
        "preemptive": True,
        "sharing": False,
        "widths": "rigid",
        "placement": "any",
    }
    result = sp.compare(jobs, "1x1", ["fifo", "srtf"], "flow", budget_s=1)
    assert result.rows[0].sentence() == (
        "fifo costs at most 1.5x the offline optimum of preemptive schedules (certified by fluid, "
        "which a verified schedule attains)"
    )
    assert set(result.frame["class"]) == {"preemptive schedules"}
    assert "preemptive schedules" in result.plot().axes[1].get_ylabel()
    assert json.loads(json.dumps(result.to_dict()))["policies"][0]["optimum"] == 14.0


def test_classes_contain_each_other_as_they_say() -> None:
    every = [ScheduleClass(*flags) for flags in product((False, True), repeat=5)]
    for one, other in product(every, repeat=2):
        flags = ("preemptive", "sharing", "elastic")
        expected = all(getattr(one, f) or not getattr(other, f) for f in flags)
        expected &= other.consolidated or not one.consolidated
        expected &= other.ample_types or not one.ample_types
        assert one.contains(other) is expected
    assert str(every[-4]) == "preemptive schedules that may share GPUs and grow"
    assert str(every[-2]) == f"{every[-4]} on as few nodes as gangs fit on"
    assert str(every[-1]) == f"{every[-2]}, in which {AMPLE_TYPES}"
    assert len({str(each) for each in every}) == 32


def two_gangs(cluster: str) -> sp.Instance:
    """Two gangs of two, with rates on both types."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1],
        gpus=[2, 2],
        work=[10, 10],
        throughput=[[1.0, 1.0], [2.0, 1.0]],
        gpu_types=("v100", "k80"),
    )
    return sp.Instance(sp.Cluster.parse(cluster), jobs)


@pytest.mark.parametrize(
    "names", [["fifo", "srtf"], ["fifo", "sjf"]], ids=["preemptive", "non-preemptive"]
)
def test_a_class_says_that_gangs_use_no_type_with_fewer_gpus(names: list[str]) -> None:
    """The gangs would fit on the k80 and a v100 together; no schedule of the class does that."""
    said = "preemptive schedules in which no gang uses a GPU type with fewer GPUs than it"
    for cluster, bites in (("1x2:v100,1x1:k80", True), ("1x2:v100,1x2:k80", False)):
        instance = two_gangs(cluster)
        compared = sp.compare(instance.workload, instance.cluster, names, "flow", budget_s=1)
        for row in compared.rows:
            assert (f"{said} (" in row.sentence()) is bites
            assert ("types" in row.to_dict()["class"]) is bites  # type: ignore[operator]
            assert str(row.holds_for).endswith(said) is bites
        if bites:  # Its cost is attained by a schedule of the class.
            assert (compared.rows[1].optimum_s is not None) is (names[1] == "srtf")
        outcome = compared.outcomes[names[1]]
        assert all(
            (AMPLE_TYPES in str(each.proven_by.holds_for)) is bites
            for each in limits(outcome).values()
        )
        certificate = certify(outcome, "flow", budget_s=0)
        checked = check(certificate.text)
        assert checked["class"] == certificate.of_class
        assert (f", {AMPLE_TYPES}" in checked["class"]) is bites
    page = " ".join((ROOT / "docs" / "semantics.md").read_text().split())
    assert f'"preemptive schedules in which {AMPLE_TYPES}"' in page
    assert "a gang uses no type of which the cluster has fewer GPUs than the gang has" in page


def test_a_word_on_types_that_a_certificate_does_not_know_is_refused() -> None:
    instance = two_gangs("1x2:v100,1x1:k80")
    outcome = sp.simulate(instance.workload, instance.cluster, "fifo")
    text = certify(outcome, "flow", budget_s=0).text
    with pytest.raises(Rejected, match="types are 'all', not ample"):
        check(text.replace('"types":"ample"', '"types":"all"'))


# --- what is certified -------------------------------------------------------------------------------


def test_what_was_found_and_not_certified_is_shown_beside_what_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told_by_a_solver(monkeypatch, certified=False)
    without_prices_of_gangs(monkeypatch)
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 2, 2], work=[3, 3, 3])
    wide = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 2, 2], work=[9, 1, 1])
    (row,) = sp.compare(jobs, "1x3", ["fifo"], budget_s=1).rows
    assert row.certified
    assert row.sharper is not None
    assert row.bound_kind != "cp-sat"
    assert row.bound < row.sharper.value_s == 18.0
    assert row.optimum_s is None
    shown = row.to_dict()["sharper"]
    assert isinstance(shown, dict)
    assert (shown["ratio"], shown["certified"]) == (1.0, False)
    (row,) = sp.compare(wide, "1x3", ["fifo"], budget_s=1).rows
    assert row.sentence().endswith("; 2.143x by cp-sat, not certified)")


def test_among_equal_bounds_a_certified_one_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    every = ScheduleClass(preemptive=True)
    one, other = (Bound(Fraction(5), "x", every, certified) for certified in (False, True))
    for order in ([one, other], [other, one]):
        assert certified_and_largest(order) == (other, None)
        monkeypatch.setattr(every_bound, "bounds_of", lambda *words, order=order, **more: order)
        instance = sp.Instance(sp.Cluster.parse("1x1"), THREE)
        assert strongest_bound(
            instance, objective=COMPLETION, preemptive=True, budget_s=1
        ).certified
    larger = Bound(Fraction(6), "y", every, False)
    assert certified_and_largest([one, other, larger]) == (other, larger)
    with pytest.raises(ValueError, match="empty"):
        certified_and_largest([one])


# --- large numbers -----------------------------------------------------------------------------------


def test_the_area_bound_is_rounded_down() -> None:
    assert area_ticks([0, 0], [1, 2], [1, 1], 2) == 2
    assert area_ticks([0] * 3, [1] * 3, [1] * 3, 2) == 1
    assert area_ticks([0, 0], [3, 3], [2, 2], 3, Fraction(4, 3)) == 4


@pytest.mark.parametrize(
    ("weight", "most", "kind"),
    [(w, 0, "interval-lp") for w in (1e13, 1e15, 1e18)] + [(1e18, 4, "completion-windows")],
)
def test_bounds_of_large_weights_are_as_sharp_as_of_small_ones(
    weight: float, most: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a search would find the optimum of so few jobs.

    The clock stands still: the time that is left chooses the grid of the LP, and so its bound.
    """
    monkeypatch.setattr(completion_search, "MOST_SEARCHED", most)
    for module in (effort, interval_prices, windows, priced_plans, completion_search):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2, 3], gpus=[1, 2, 1, 2], work=[10, 5, 3, 20], weight=[1, 2, 1, 1]
    )
    heavy = replace(jobs, weight=jobs.weight * weight)
    cluster = sp.Cluster.parse("1x3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small, large = (
            {
                bound.kind: bound
                for bound in bounds_of(sp.Instance(cluster, each), COMPLETION, BoundEffort(1))
            }
            for each in (jobs, heavy)
        )
    best = least_cost(rigid(heavy, 3), COMPLETION) * TICKS_PER_S
    assert small.keys() == large.keys()
    assert kind in large
    for each, bound in large.items():
        assert bound.ticks <= best
        assert float(bound.ticks / small[each].ticks) == pytest.approx(weight, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(prices=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=9))
def test_any_floats_become_prices(prices: list[float]) -> None:
    """Whatever a solver returns: rounded, not wrapped around, and a bound of the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lagrangian.exact_prices(np.array(prices))
    assert all(isinstance(each, int) and each >= 0 for each in found.tolist())
    jobs = Slotted.of(sp.Instance(sp.Cluster.parse("1x1"), THREE))
    padded = np.append(found, np.zeros(50, dtype=found.dtype))
    bound, reduced = lagrangian.reduced_costs(jobs, padded, len(padded))
    assert bound <= (15 + 21 + 29) * lagrangian.PRICE_UNIT
    assert (np.asarray(reduced >= -1)).all()


def test_two_thousand_jobs_of_a_century() -> None:
    """Their run times do not add up in 64 bits of ticks, and such instances are refused; half of them fit."""
    with pytest.raises(InputError, match="GPU-seconds of all jobs together"):
        sp.Workload.from_columns(arrival_s=[0.0] * 2_100, gpus=[1] * 2_100, work=[2.0**32] * 2_100)
    n = 1_000
    jobs = sp.Workload.from_columns(arrival_s=[0.0] * n, gpus=[1] * n, work=[2.0**32] * n)
    row = sp.compare(jobs, f"{n}x1", ["fifo"], budget_s=1).rows[0]
    assert row.optimum_s == row.cost == n * 2.0**32
    typed = sp.Workload.from_columns(
        arrival_s=[0.0] * n,
        gpus=[1] * n,
        work=[2.0**32] * n,
        throughput=[[1.0, 2.0]] * n,
        gpu_types=("a", "b"),
    )
    instance = sp.Instance(sp.Cluster.parse("2x1000:a,2x1000:b"), typed)
    assert (
        strongest_bound(instance, objective="completion", preemptive=True, budget_s=1).value_s > 0
    )


def test_ratios_beyond_the_range_of_floats_are_printed() -> None:
    every = ScheduleClass(preemptive=True)
    row = sp.analysis.compare.ComparisonRow(
        "slow", Fraction(1), Bound(Fraction(1, 10**320), "job", every, True), False, None
    )
    assert row.ratio == math.inf
    assert "slow costs at most 1.000E+320x the" in row.sentence()
    assert json.loads(json.dumps(row.to_dict(), allow_nan=False))["ratio"] is None
    nothing = replace(row, proven_by=Bound(Fraction(0), "job", every, True), cost_ticks=Fraction(1))
    assert nothing.sentence() == (
        "slow: no bound above 0 of the offline optimum of preemptive schedules was found"
    )
    assert Fraction(rounded_up(Fraction(1, 3))) >= Fraction(1, 3)


def test_weights_of_all_sizes_at_once_are_compared() -> None:
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 0], gpus=[1, 1, 1], work=[1, 5, 3], weight=[1e-300, 1e18, 0.0]
    )
    for goal in sp.Objective:
        for row in sp.compare(jobs, "1x1", ["fifo", "srtf"], goal, budget_s=0.5).rows:
            assert row.ratio >= 1
            json.dumps(row.to_dict(), allow_nan=False)
            assert row.sentence()


def test_a_guarded_run_has_no_factor_of_the_strict_order() -> None:
    acting = Asrpt("mine", work_conserving=True, guard=1.0)
    outcome = simulate(TWO, "1x2", acting)
    found = guarantee(outcome, DescribedRun(outcome.instance, acting))
    assert isinstance(found, UnmetHypotheses)
    assert found.missing == ("jobs may start before their virtual completion",)
