"""Jobs that lose their work when stopped: the optimum, the b-scaling strategy and its tight factor."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICK_S
from shadowprice.proofs.classic.kill_restart import (
    Tries,
    bound,
    check,
    family,
    family_ratio,
    least,
    least_flow,
)
from shadowprice.solvers.classic.b_scaling import BScaling
from shadowprice.solvers.offline.list_optimum import optimal_starts_s

RESTART = sp.RunOptions(preemption=sp.Preemption.RESTART)
WORK = st.lists(st.integers(1, 200), min_size=1, max_size=8)
TRIES = st.builds(Tries, st.integers(2, 5), st.integers(1, 6))


def within(tries: Tries, work: list[int]) -> bool:
    return tries.respects(Fraction(sum(tries.completions(work))), work)


@given(TRIES, WORK)
def test_total_flow_time_is_within_the_factor(tries: Tries, work: list[int]) -> None:
    assert within(tries, work)


@given(TRIES, st.data())
def test_jobs_just_longer_than_a_try_are_within_the_factor(
    tries: Tries, data: st.DataObject
) -> None:
    """Where the bound is nearest: lengths just over those of tries, the longest first."""
    classes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=40))
    work = [tries.first * tries.b**i + 1 for i in sorted(classes, reverse=True)]
    assert within(tries, work)


def test_the_factor_is_tight() -> None:
    """The family of (c) is beyond any smaller factor, for two b; by enumeration where it is small."""
    for b, near in ((2, 6.64), (3, 6.19)):
        rho = 1 + 2 * b * math.sqrt(b) / (b - 1)
        ratio = family_ratio(b, family(b, 80, 10**20))
        assert near < ratio < rho
        assert Tries(b, 1).factor == pytest.approx(rho, rel=1e-15)
        counts, unit = family(b, 5, 20), 10**6
        work = [unit * b**i + 1 for i in reversed(range(5)) for _ in range(counts[i])]
        cost = sum(Tries(b, unit * b).completions(work))
        found = cost / least_flow([Fraction(each) for each in work])
        assert float(found) == pytest.approx(float(family_ratio(b, counts)), rel=1e-5)


def test_the_check_says_no_to_another_order_of_tries() -> None:
    """Tries that do not grow cost ever more: the check can fail."""
    tries, work = Tries(3, 1), [1000] * 7 + [1]
    assert within(tries, work)
    assert not tries.respects(Fraction(1000 * sum(work)), work)


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=6),
    st.sampled_from(["1x1", "1x4", "2x2"]),
    st.integers(2, 4),
    st.sampled_from([0.25, 1.0, 8.0]),
)
def test_the_engine_does_what_the_statement_says(
    eighths: list[int], cluster: str, b: int, first_s: float
) -> None:
    gang = 1 if cluster == "1x1" else 3
    jobs = sp.Workload.from_columns(
        arrival_s=[5] * len(eighths), gpus=[gang] * len(eighths), work=[x / 8 for x in eighths]
    )
    policy = BScaling(b=b, first_s=first_s)
    outcome = sp.simulate(jobs, cluster, policy, RESTART)
    ends = Tries.of(policy).completions([x << 17 for x in eighths])
    assert [(end - 5) * 2**20 for end in outcome.end_s.tolist()] == ends
    assert check(outcome.instance, Fraction(sum(ends), 2**20), policy)
    flow = Fraction(outcome.jct_s.sum())
    assert least(outcome.instance) <= flow <= bound(outcome.instance, policy)


def kill_and_restart_optimum(release: list[int], work: list[int]) -> int:
    """Least total completion time of schedules on one machine that stop jobs, which restart, by trying all slots."""

    def choices(now: int, left: frozenset[int], job: int | None) -> Iterator[int | None]:
        yield None
        yield from (each for each in left if release[each] <= now)

    @cache
    def best(now: int, left: frozenset[int], job: int | None, done: int) -> float:
        if not left:
            return 0
        if now > max(release) + sum(work) + 2:
            return math.inf
        found = math.inf
        for each in choices(now, left, job):
            if each is None:
                found = min(found, best(now + 1, left, None, 0))
                continue
            ran = done + 1 if each == job else 1
            if ran == work[each]:
                found = min(found, now + 1 + best(now + 1, left - {each}, None, 0))
            else:
                found = min(found, best(now + 1, left, each, ran))
        return found

    return int(best(0, frozenset(range(len(work))), None, 0))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=4))
def test_stopping_jobs_that_restart_gains_nothing(jobs: list[tuple[int, int]]) -> None:
    """(a) on one machine, against all schedules that may stop jobs."""
    release, work = (list(column) for column in zip(*sorted(jobs), strict=True))
    instance = sp.Instance(
        sp.Cluster.parse("1x1"),
        sp.Workload.from_columns(arrival_s=release, gpus=[1] * len(work), work=work),
    )
    assert kill_and_restart_optimum(release, work) == sum(optimal_starts_s(instance)) + sum(work)


def test_comparisons_say_the_factor_or_why_there_is_none() -> None:
    from shadowprice.analysis.guarantees.lookup import describe, guarantee, known_bound
    from shadowprice.analysis.preparation import prepare_run
    from shadowprice.instances.objective import Objective

    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 3])
    for cluster, switches, words in (
        ("1x1", RESTART, "at most 6.197x the offline optimum of non-preemptive schedules"),
        ("1x1", sp.RunOptions(), "preempted jobs that keep their work"),
        ("1x2", RESTART, "gangs of which two may run at once"),
    ):
        run = prepare_run(jobs, cluster, "b-scaling", switches)
        told = describe(run, Objective.FLOW)
        assert told is not None
        outcome = sp.simulate(jobs, cluster, "b-scaling", switches)
        stated = guarantee(outcome, told)
        assert stated is not None
        assert words in stated.sentence("b-scaling")
        known = known_bound(outcome, told)
        assert (known is None) == (stated.factor is None)


def test_parameters_that_make_no_sense() -> None:
    whole = "expected a whole number from 2 to"
    cases = [
        *(({"b": b}, whole) for b in (1, 2.5, math.nan, 10**400)),
        ({"first_s": 0.0}, "first_s"),
    ]
    for given_, words in cases:
        with pytest.raises(InputError, match=words):
            BScaling(**given_)


@pytest.mark.parametrize("seed", range(20))
def test_no_job_waits_beside_free_gpus_of_any_node(seed: int) -> None:
    """Whatever fits starts, also who was stopped and has lost its place: within two ticks."""
    r = random.Random(seed)
    jobs = sp.Workload.from_columns(
        arrival_s=sorted(r.randint(0, 8) for _ in range(6)),
        gpus=[r.randint(1, 3) for _ in range(6)],
        work=[r.randint(1, 12) for _ in range(6)],
    )
    options = sp.RunOptions(overheads=sp.Overheads(start_s=2.0, restart_s=1.0))
    rows = sp.simulate(jobs, sp.Cluster.parse("2x2"), "b-scaling", options).schedule
    runs = [(j, rows.start_s[rows.job == j], rows.end_s[rows.job == j]) for j in range(6)]
    times = sorted({*rows.start_s.tolist(), *rows.end_s.tolist(), *jobs.arrival_s.tolist()})
    for now_s, next_s in pairwise(times):
        if next_s - now_s <= 2 * TICK_S:
            continue
        busy = {j for j, start_s, end_s in runs if ((start_s <= now_s) & (now_s < end_s)).any()}
        free = 4 - sum(int(jobs.gpus[j]) for j in busy)
        waits = [
            j for j, _, end_s in runs if j not in busy and jobs.arrival_s[j] <= now_s < end_s.max()
        ]
        assert all(jobs.gpus[j] > free for j in waits), (now_s, free, waits)
