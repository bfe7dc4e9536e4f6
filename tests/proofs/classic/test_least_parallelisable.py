"""Least parallelisable first: beside any schedule, jobs in order, and the least mean by trying all policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    UnmetHypotheses,
    describe,
    guarantee,
    known_bound,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.objective import Objective
from shadowprice.instances.terms.widths import Elasticity, Growth
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.classic.least_parallelisable import (
    ExponentialJobs,
    bound,
    check,
    check_dominated,
    least_makespan,
    least_mean_total_s,
    makespan_bound,
    missing_hypotheses,
)
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.least_parallelisable import LeastParallelisableFirst
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.resizing import resized

GPUS = 4
LINEAR_JOBS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 9), st.integers(1, GPUS)), min_size=1, max_size=7
)
ANY_JOBS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(1, 9),
        st.integers(1, GPUS + 1),
        st.sampled_from([0.55, 0.75, 1.0]),
    ),
    min_size=1,
    max_size=7,
)


@dataclass(frozen=True)
class Drawn:
    """Widths drawn anew at every event, for one-GPU jobs in order of arrival."""

    seed: int
    name: str = "drawn"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Some of the GPUs for the first of the one-GPU jobs, some of the others for the rest."""
        draw = np.random.default_rng([self.seed, int(state.now_s * 2**20)])
        jobs = state.live().jobs.tolist()
        narrow = [job for job in jobs if state.widest(job) == 1]
        wide = [job for job in jobs if state.widest(job) > 1]
        wanted, room = dict.fromkeys(jobs, 0), state.total_gpus
        # Someone works, so that the run ends.
        for job in narrow[: int(draw.integers(0 if wide else 1, room + 1))]:
            wanted[job], room = 1, room - 1
        for job in draw.permutation(wide).tolist():
            wanted[job] = int(draw.integers(0 if room < state.total_gpus else 1, room + 1))
            room -= wanted[job]
        return resized(state, wanted)


Row = tuple[int, int, int, float]
"""Arrival [s], run time on one GPU [s], most GPUs, efficiency."""


def growing(rows: list[Row], gpus: int = GPUS) -> sp.Instance:
    arrival, work, widest, efficiency = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
    jobs = sp.Workload.from_columns(arrival_s=arrival, gpus=[1] * len(rows), work=work)
    elastic = Elasticity(np.array(widest), np.array(efficiency))
    return sp.Instance(sp.Cluster.parse(f"1x{gpus}"), jobs, elasticity=elastic)


def scheduled(instance: sp.Instance, policy: Policy | None = None) -> sp.Schedule:
    schedule = run(instance, policy or LeastParallelisableFirst()).schedule
    verify(instance, schedule)
    return schedule


def linear(rows: list[tuple[int, int, int]]) -> list[Row]:
    return [(*row, 1.0) for row in rows]


@given(ANY_JOBS)
def test_lpf_keeps_what_is_proven(rows: list[Row]) -> None:
    instance = growing(rows)
    assert check(instance, scheduled(instance))
    if all(e == 1.0 for *_, e in rows):
        assert makespan_bound(instance) < 2 * least_makespan(instance) + Fraction(1, 1000)


@given(LINEAR_JOBS, st.integers(0, 99))
@settings(max_examples=25)
def test_never_more_work_than_any_schedule_in_order_of_arrival(
    rows: list[tuple[int, int, int]], seed: int
) -> None:
    instance = growing(linear([(at, work, 1 if w < 3 else GPUS) for at, work, w in rows]))
    assert check_dominated(instance, scheduled(instance), scheduled(instance, Drawn(seed)))


@dataclass(frozen=True)
class Greedy:
    """As many GPUs as each may hold, or those that are left, in an order of the widest and the number of jobs."""

    name: str
    order: Callable[[int, int], tuple[int, int]]
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Give each its width, whatever it loses by it."""
        wanted, room = {}, state.total_gpus
        jobs = state.live().jobs.tolist()
        for job in sorted(jobs, key=lambda job: self.order(state.widest(job), job)):
            wanted[job] = min(state.widest(job), room)
            room -= wanted[job]
        return resized(state, wanted)


MOST_FIRST = Greedy("most-first", lambda widest, job: (-widest, job))
BY_ARRIVAL = Greedy("by-arrival", lambda _, job: (0, job))


def test_the_opposite_order_keeps_less() -> None:
    """A job of one GPU waits for one of all GPUs that comes later, and has more left than it would."""
    instance = growing(linear([(0, 8, 4), (0, 2, 1), (1, 8, 4)]))
    first, last = scheduled(instance), scheduled(instance, MOST_FIRST)
    assert check(instance, first)
    assert not check(instance, last)
    assert check_dominated(instance, first, last)
    assert not check_dominated(instance, last, first)


def test_worked_bounds() -> None:
    """Four GPUs: the job of one first, then the two that may hold all, in order of arrival."""
    instance = growing(linear([(0, 8, 4), (0, 2, 1), (1, 8, 4)]))
    tick = Fraction(1, 2**20)
    assert bound(instance) == [
        2 + Fraction(2, 4) + 2 * tick,
        2 + tick,
        1 + 2 + Fraction(10, 4) + 3 * tick,
    ]
    assert least_makespan(instance) == Fraction(18, 4)
    # From the first arrival on: the second comes 2 later, and by 4 / 4 + 8 / 4 after that it is complete.
    instance = growing(linear([(5, 8, 4), (7, 4, 4)]))
    assert makespan_bound(instance) == 2 + 3 + 2 * tick
    assert least_makespan(instance) == 3
    # Its speed-up is not linear: one GPU in its turn, and as high a level as its largest speed, 4^(1/2).
    instance = growing([(0, 8, 4, math.sqrt(0.5)), (0, 6, 3, 1.0)])
    assert bound(instance) == [8 + tick, 2 + Fraction(8, 4) + 2 * tick]


@dataclass(frozen=True)
class Arriving:
    """Jobs of one kind: most GPUs, completions and arrivals a second."""

    widest: int
    rate: Fraction
    arrives: Fraction = Fraction(0)


Counts = tuple[int, ...]


def least_total(
    kinds: tuple[Arriving, ...], start: Counts, gpus: int, steps: int, *, lpf: bool
) -> Fraction:
    """Expected number of jobs, added up over steps of a uniformised chain, of lpf or of the best policy."""
    all_s = sum(kind.arrives for kind in kinds) + gpus * max(kind.rate for kind in kinds)

    def choices(counts: Counts) -> Iterator[Counts]:
        most = [min(kind.widest * n, gpus) for kind, n in zip(kinds, counts, strict=True)]
        if not lpf:
            tried = product(*(range(each + 1) for each in most))
            yield from (each for each in tried if sum(each) <= gpus)
            return
        given, room = [], gpus
        for each in most:
            given.append(min(each, room))
            room -= given[-1]
        yield tuple(given)

    def changed(counts: Counts, k: int, by: int) -> Counts:
        return (*counts[:k], counts[k] + by, *counts[k + 1 :])

    @cache
    def cost(counts: Counts, left: int) -> Fraction:
        if not left:
            return Fraction(0)
        stays = cost(counts, left - 1)
        come = sum(
            (
                kind.arrives * (cost(changed(counts, k, 1), left - 1) - stays)
                for k, kind in enumerate(kinds)
            ),
            Fraction(0),
        )
        go = [
            cost(changed(counts, k, -1), left - 1) - stays if counts[k] else Fraction(0)
            for k in range(len(kinds))
        ]
        best = min(
            sum(
                (a * kind.rate * each for a, kind, each in zip(chosen, kinds, go, strict=True)),
                Fraction(0),
            )
            for chosen in choices(counts)
        )
        return sum(counts) + stays + (come + best) / all_s

    return cost(start, steps)


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=3, unique=True),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=3),
    st.integers(1, 4),
)
@settings(max_examples=15)
def test_with_one_mean_no_policy_has_fewer_jobs(
    widths: list[int], more: list[tuple[int, int]], gpus: int
) -> None:
    """Statement (e), all policies tried: arrivals and completions of exponential jobs of two or three levels."""
    drawn = list(zip(sorted(widths), more, strict=False))
    kinds = tuple(Arriving(width, Fraction(1), Fraction(often)) for width, (_, often) in drawn)
    start = tuple(count for _, (count, _) in drawn)
    assert least_total(kinds, start, gpus, 4, lpf=True) == least_total(
        kinds, start, gpus, 4, lpf=False
    )


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)
)
@settings(max_examples=15)
def test_with_shorter_jobs_of_one_gpu_no_policy_has_fewer(
    faster: int, gpus: int, narrow: int, wide: int, often: int
) -> None:
    kinds = (
        Arriving(1, Fraction(faster), Fraction(often)),
        Arriving(gpus, Fraction(1), Fraction(1)),
    )
    at = (narrow, wide), gpus, 4
    assert least_total(kinds, *at, lpf=True) == least_total(kinds, *at, lpf=False)


def test_with_longer_jobs_of_one_gpu_some_policy_is_better() -> None:
    kinds = (Arriving(1, Fraction(1)), Arriving(2, Fraction(4)))
    assert least_total(kinds, (2, 1), 2, 6, lpf=True) > least_total(kinds, (2, 1), 2, 6, lpf=False)


def two_kinds(count: int, load: float, seed: int) -> sp.Instance:
    """Half of the jobs of one GPU and 100 s, half of up to 8 GPUs and 400 GPU-seconds, on 8 GPUs."""
    draw = np.random.default_rng(seed)
    wide = draw.random(count) < 0.5
    work = np.maximum(draw.exponential(np.where(wide, 400.0, 100.0)), 1e-3)
    arrival = np.cumsum(draw.exponential(250.0 / 8 / load, count))
    jobs = sp.Workload.from_columns(arrival_s=arrival, gpus=np.ones(count, int), work=work)
    elastic = Elasticity(np.where(wide, 8, 1), np.ones(count))
    return sp.Instance(sp.Cluster.parse("1x8"), jobs, elasticity=elastic)


def test_least_parallelisable_first_has_the_least_mean() -> None:
    """At a load of 0.8; jobs of one GPU are served as if they were alone (Erlang C)."""
    instance = two_kinds(3_000, 0.8, 1)
    mean_s, narrow_s = {}, {}
    for acting in (LeastParallelisableFirst(), MOST_FIRST):
        outcome = Outcome.verified(instance, run(instance, acting).schedule, policy=acting.name)
        mean_s[acting.name] = float(outcome.jct_s.mean())
        assert instance.elasticity is not None
        narrow = instance.elasticity.widest == 1
        narrow_s[acting.name] = float(outcome.jct_s[narrow].mean())
    assert mean_s["lpf"] < 0.8 * mean_s["most-first"], mean_s
    assert narrow_s["lpf"] == pytest.approx(100.0, rel=0.1)


def test_hypotheses_are_named() -> None:
    gang = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[2, 1], work=[1, 1])
    outcome = sp.simulate(gang, "1x3", "lpf")
    with pytest.raises(InputError, match="has gangs of more than one GPU, not known to LPF-work"):
        check(outcome.instance, outcome.schedule)
    lossy = growing([(0, 8, 4, 0.75)])
    with pytest.raises(InputError, match="has speed-ups that are not linear"):
        least_makespan(lossy)
    between = growing(linear([(0, 8, 2)]))
    alone = scheduled(between)
    with pytest.raises(InputError, match="has jobs of neither one nor all GPUs"):
        check_dominated(between, alone, alone)
    charged = replace(lossy, overheads=sp.Overheads(start_s=1.0))
    with pytest.raises(InputError, match="has charges for starts"):
        bound(charged)


def said(
    efficiency: float, objective: Objective, policy: str = "lpf"
) -> FactorGuarantee | UnmetHypotheses | None:
    """The statement on two jobs of one GPU, 8 and 4 long, which come at 5 and may grow to four GPUs."""
    jobs = sp.Workload.from_columns(arrival_s=[5, 5], gpus=[1, 1], work=[8, 4])
    chosen = sp.RunOptions(growth=Growth(4, efficiency))
    outcome = sp.simulate(jobs, "1x4", policy, chosen)
    run = describe(prepare_run(jobs, "1x4", policy, chosen), objective)
    assert run is not None
    found = guarantee(outcome, run)
    if isinstance(found, FactorGuarantee):
        known = known_bound(outcome, run)
        assert known is not None
        assert known.factor == found.factor
    assert found is None or isinstance(found, FactorGuarantee | UnmetHypotheses)
    return found


def test_what_it_says_of_a_makespan() -> None:
    """The second by 8 / 4 + 4 / 4, two ticks and what a tick of four GPUs is; no schedule before 12 / 4."""
    stated = said(1.0, Objective.MAKESPAN)
    assert isinstance(stated, FactorGuarantee)
    assert stated.factor == 1 + Fraction(2, 3 * 2**20)
    told = stated.sentence("lpf")
    assert told.startswith("lpf: makespan at most")
    assert "the offline optimum of preemptive schedules that may grow by LPF-work (" in told
    assert said(1.0, Objective.FLOW) is None
    assert said(1.0, Objective.MAKESPAN, "hesrpt") is None
    silent = said(0.75, Objective.MAKESPAN)
    assert isinstance(silent, UnmetHypotheses)
    assert silent.missing == (
        "speed-ups are not linear, of which the theorem knows no least makespan",
    )


def test_with_a_loss_lpf_carries_loads_that_the_widest_at_once_does_not() -> None:
    """Statement (f) at a load of 0.8: on 8 GPUs jobs with an efficiency of 3/4 are only 3.4 times as fast."""
    draw, count = np.random.default_rng(3), 1_000
    work = np.maximum(draw.exponential(100.0, count), 1e-3)
    arrival = np.cumsum(draw.exponential(100.0 / 8 / 0.8, count))
    jobs = sp.Workload.from_columns(arrival_s=arrival, gpus=np.ones(count, int), work=work)
    elastic = Elasticity(np.full(count, 8), np.full(count, 0.75))
    instance = sp.Instance(sp.Cluster.parse("1x8"), jobs, elasticity=elastic)

    def halves_s(acting: Policy) -> tuple[float, float]:
        outcome = Outcome.verified(instance, run(instance, acting).schedule, policy=acting.name)
        return float(outcome.jct_s[: count // 2].mean()), float(outcome.jct_s[count // 2 :].mean())

    assert max(halves_s(LeastParallelisableFirst())) < 200.0
    early, late = halves_s(BY_ARRIVAL)
    assert late > 2 * early > 1_500.0


def test_one_speed_up_that_is_not_linear_will_not_do() -> None:
    def failing(*rows: Row) -> list[str]:
        acting = LeastParallelisableFirst()
        return list(
            missing_hypotheses(DescribedRun(growing(list(rows)), acting, Objective.MAKESPAN))
        )

    linear_one, still = (0, 8, 4, 1.0), (0, 8, 1, 0.75)
    assert failing(linear_one, still) == []
    lossy = "speed-ups are not linear, of which the theorem knows no least makespan"
    assert failing(linear_one, (0, 8, 2, 0.75)) == [lossy]


def least_of_all_policies(kinds: list[ExponentialJobs], gpus: int) -> Fraction:
    """Least mean total completion time, by trying all whole widths in every state."""

    @cache
    def total(counts: Counts) -> Fraction:
        most = [min(kind.widest * n, gpus) for kind, n in zip(kinds, counts, strict=True)]
        found = []
        for held in product(*(range(each + 1) for each in most)):
            if not 0 < sum(held) <= gpus:
                continue
            rates = [h / kind.mean_s for h, kind in zip(held, kinds, strict=True)]
            after = sum(
                (
                    rate * total((*counts[:k], counts[k] - 1, *counts[k + 1 :]))
                    for k, rate in enumerate(rates)
                    if rate
                ),
                Fraction(0),
            )
            found.append((sum(counts) + after) / sum(rates))
        return min(found, default=Fraction(0))

    return total(tuple(kind.jobs for kind in kinds))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3),
    st.integers(1, 4),
)
@settings(max_examples=20)
def test_the_least_mean_total_is_that_of_the_best_policy(
    rows: list[tuple[int, int]], gpus: int
) -> None:
    kinds = [ExponentialJobs(widest, Fraction(3), jobs) for widest, jobs in rows]
    assert least_mean_total_s(kinds, gpus) == least_of_all_policies(kinds, gpus)


@given(st.integers(2, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 3))
@settings(max_examples=20)
def test_the_least_mean_total_of_two_means_too(
    gpus: int, narrow: int, wide: int, more: int
) -> None:
    kinds = [
        ExponentialJobs(gpus, Fraction(2 + more), wide),
        ExponentialJobs(1, Fraction(2), narrow),
    ]
    assert least_mean_total_s(kinds, gpus) == least_of_all_policies(kinds, gpus)


def test_worked_mean_totals() -> None:
    """Two GPUs: one of one GPU beside one of two, of which the first to end leaves the other all it can use."""
    two = [ExponentialJobs(1, Fraction(1), 1), ExponentialJobs(2, Fraction(1), 1)]
    assert least_mean_total_s(two, 2) == Fraction(2, 2) + (Fraction(1, 2) + 1) / 2
    assert least_mean_total_s([], 2) == 0
    longer = [ExponentialJobs(1, Fraction(4), 2), ExponentialJobs(2, Fraction(1), 1)]
    with pytest.raises(InputError, match="means differ, expected one"):
        least_mean_total_s(longer, 2)
    between = [ExponentialJobs(1, Fraction(1), 1), ExponentialJobs(2, Fraction(2), 1)]
    with pytest.raises(InputError, match="means differ, expected one"):
        least_mean_total_s(between, 3)
