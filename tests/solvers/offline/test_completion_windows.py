"""The preemptive optimum of a few gangs: trees bound every schedule, the search ends with what enumeration finds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.proofs.lower_bounds import completion_windows as lb_windows
from shadowprice.proofs.lower_bounds.completion_windows import tree_bound
from shadowprice.solvers.offline.bounds import Relaxation, fluid_ticks
from shadowprice.solvers.offline.completions.completion_orders import events_of, solve_order
from shadowprice.solvers.offline.completions.completion_search import (
    TOLERANCE,
    CompletionTree,
    Cut,
    Part,
    Priced,
    search_optimum,
)
from shadowprice.solvers.offline.completions.window_prices import WindowJobs, maximal_sets
from shadowprice.solvers.registry import policy as policy_by_name

POLICIES = ("fifo", "srtf", "srsf", "las", "easy")


def relaxed(
    release: list[int],
    work: list[int],
    gpus: list[int],
    total: int,
    weight: list[int] | None = None,
    unit: int = 6,
) -> Relaxation:
    """Jobs whose times are in units of some ticks."""
    weights = [Fraction(w) for w in weight or [1] * len(work)]
    times = ([unit * r for r in release], [unit * p for p in work])
    return Relaxation(*times, gpus, weights, total, Fraction(1))


@st.composite
def few_jobs(draw: st.DrawFn, *, most: int = 4, last: int = 5, longest: int = 3) -> Relaxation:
    n = draw(st.integers(1, most))
    columns = [
        draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for low, high in ((0, last), (1, longest), (1, 4), (0, 2))
    ]
    weight = columns[3] if any(columns[3]) else [1] * n
    return relaxed(*columns[:3], draw(st.integers(4, 6)), weight)


def least_on_grid(jobs: Relaxation, slot: int) -> Fraction:
    """Least weighted completion time if jobs stop and resume at multiples of a slot, by dynamic programming."""
    sets = maximal_sets(jobs.gpus, jobs.total_gpus)

    @cache
    def least(now: int, left: tuple[int, ...]) -> Fraction:
        if not any(left):
            return Fraction(0)
        found = None
        for members in sets:
            runs = [j for j in members if left[j] and jobs.release[j] <= now]
            after = list(left)
            for j in runs:
                after[j] -= slot
            ends = sum((jobs.weight[j] * (now + slot) for j in runs if not after[j]), Fraction(0))
            if runs or any(r > now for r in jobs.release):
                cost = ends + least(now + slot, tuple(after))
                found = cost if found is None else min(found, cost)
        assert found is not None
        return found

    return least(min(jobs.release), tuple(jobs.work))


@settings(max_examples=15, deadline=None)
@given(jobs=few_jobs())
def test_the_search_finds_what_enumeration_finds(jobs: Relaxation) -> None:
    """No schedule on a grid of half units costs less, and the search comes to its end with a schedule."""
    found = list(search_optimum(jobs))[-1]
    assert found.finished
    allowed = sum(w * (p + 100) for w, p in zip(jobs.weight, jobs.work, strict=True)) * TOLERANCE
    assert found.upper_ticks - found.lower_ticks <= allowed
    assert tree_bound(jobs, found.tree) == found.lower_ticks or (
        found.lower_ticks == found.upper_ticks <= tree_bound(jobs, found.tree)
    )
    assert found.lower_ticks <= least_on_grid(jobs, 3)
    assert found.upper_ticks <= least_on_grid(jobs, 6)
    held: dict[int, int] = {}
    done = [0] * len(jobs.release)
    for job, start, end in found.runs:
        assert start >= jobs.release[job]
        done[job] += end - start
        for t in range(start, end):
            held[t] = held.get(t, 0) + jobs.gpus[job]
    assert max(held.values()) <= jobs.total_gpus
    assert done == jobs.work


def test_half_a_unit_is_worth_something() -> None:
    """Three gangs of 2 on 4 GPUs of which two fit at once, before a wide gang that all of them delay."""
    jobs = relaxed([0, 0, 0, 0], [1, 1, 1, 4], [2, 2, 2, 4], 4, weight=[1, 1, 1, 30])
    late = replace(jobs, weight=[Fraction(1)] * 3 + [Fraction(1, 100)])
    for each in (jobs, late):
        found = list(search_optimum(each))[-1]
        assert found.lower_ticks == found.upper_ticks == least_on_grid(each, 3)
    # The last of the three ends at 3/2 units where all are run at once: 1 + 3/2 + 3/2 = 1 + 1 + 2.
    assert least_on_grid(late, 3) < least_on_grid(late, 6)


@pytest.mark.parametrize("seed", range(3))
def test_known_optima(seed: int) -> None:
    """SRPT where one gang runs at a time; shortest first for gangs of one that are all there (McNaughton 1959)."""
    rng = np.random.default_rng(seed)
    n = 6
    release, work = rng.integers(0, 12, n).tolist(), rng.integers(1, 7, n).tolist()
    one = relaxed(release, work, [3] * n, 4)
    found = list(search_optimum(one))[-1]
    srpt = fluid_ticks(one.release, one.work, [1] * n, 1)
    assert found.lower_ticks == found.upper_ticks == srpt
    there = relaxed([0] * n, work, [1] * n, 3)
    at, finished = [0, 0, 0], 0
    for p in sorted(there.work):
        k = at.index(min(at))
        at[k] += p
        finished += at[k]
    found = list(search_optimum(there))[-1]
    assert found.lower_ticks == found.upper_ticks == finished


@settings(max_examples=15, deadline=None)
@given(
    instance=instances(max_jobs=5),
    policy=st.sampled_from(POLICIES),
    charges=st.sampled_from([Overheads(), Overheads(start_s=2.0, restart_s=1.0, migration_s=3.0)]),
    data=st.data(),
)
def test_any_tree_bounds_any_policy(
    instance: Instance, policy: str, charges: Overheads, data: st.DataObject
) -> None:
    charged = Instance(instance.cluster, instance.workload, charges)
    schedule = run(charged, policy_by_name(policy)).schedule
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)
    pairs = zip(instance.workload.weight.tolist(), ends.tolist(), strict=True)
    cost = sum((Fraction(w) * Fraction(end) for w, end in pairs), Fraction(0))
    jobs = tuple(range(len(instance.workload)))
    assert lb_windows.check(charged, cost, data.draw(trees(jobs, TICKS_PER_S)))
    for found in search_optimum(Relaxation.of(charged)):
        assert found.lower_ticks / TICKS_PER_S <= cost
        assert lb_windows.check(charged, cost, found.tree)


@st.composite
def trees(draw: st.DrawFn, jobs: tuple[int, ...], unit: int, depth: int = 2) -> CompletionTree:
    """Cuts anywhere, and any prices."""

    def part(depth: int) -> Part:
        if depth and draw(st.booleans()):
            at = Fraction(draw(st.integers(0, 60)) * unit, draw(st.integers(1, 3)))
            return Cut(draw(st.sampled_from(jobs)), at, part(depth - 1), part(depth - 1))
        grid = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=5)))
        row = st.lists(st.integers(0, 8), min_size=len(grid) - 1, max_size=len(grid) - 1).map(tuple)
        return Priced(
            tuple(Fraction(at * unit) for at in grid), tuple(draw(row) for _ in range(len(jobs)))
        )

    return CompletionTree(part(depth), jobs, Fraction(1, 4))


@settings(max_examples=35, deadline=None)
@given(data=st.data())
def test_the_exact_evaluation_thinks_of_every_plan(data: st.DataObject) -> None:
    """A leaf of one job against all plans in whole units within its window."""
    r, p = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 3))
    first = data.draw(st.integers(r + p, r + p + 4))
    jobs = Relaxation([r], [p], [1], [Fraction(data.draw(st.integers(1, 3)))], 2, Fraction(1))
    late = Relaxation([r, r + 5], [p, 3], [1, 1], jobs.weight * 2, 2, Fraction(1))
    leaf = data.draw(trees((0,), 1, 0))
    tree = replace(leaf, root=Cut(0, Fraction(first), nobody(), leaf.root))
    last = late.release[1] + sum(late.work)
    assert isinstance(leaf.root, Priced)
    grid, row = leaf.root.grid_ticks, leaf.root.rows[0]

    def price(t: int) -> int:
        cells = zip(grid, grid[1:], row, strict=False)
        return sum(each for begin, end, each in cells if begin <= t < end)

    least = min(
        late.weight[0] * max(first, plan[-1] + 1) + leaf.price_unit * sum(map(price, plan))
        for plan in combinations(range(r, last), p)
    )
    rent = sum(
        max(each, 0) * (end - begin)
        for begin, end, each in zip(grid, grid[1:], row, strict=False)
        if r < end and begin < last
    )
    expected = least - leaf.price_unit * rent
    other = late.weight[1] * (late.release[1] + late.work[1])
    assert tree_bound(late, tree) == min(expected, _early(late, first, r + p)) + other


def nobody() -> Priced:
    """Prices that are 0."""
    return Priced((Fraction(0), Fraction(1)), ((0,),))


def _early(jobs: Relaxation, first: int, alone: int) -> Fraction | float:
    """What a job costs at least that is done by a moment, if it can be."""
    return jobs.weight[0] * alone if alone <= first else math.inf


def test_trees_that_are_none_are_refused() -> None:
    jobs = relaxed([0, 0], [1, 2], [1, 1], 4, unit=1)
    good = CompletionTree(Priced((Fraction(0), Fraction(1)), ((1,), (0,))), (0, 1), Fraction(1))
    assert tree_bound(jobs, good) <= 3
    for rows, grid, listed in (
        (((1,), (-1,)), (0, 1), (0, 1)),
        (((1,),), (0, 1), (0, 1)),
        (((1,), (1,)), (1, 1), (0, 1)),
        (((1,), (1,)), (0, 1), (0, 0)),
        (((1,), (1,)), (0, 1), (0, 2)),
    ):
        bad = CompletionTree(Priced(tuple(map(Fraction, grid)), rows), listed, Fraction(1))
        with pytest.raises(ValueError, match="expected"):
            tree_bound(jobs, bad)
    cut = replace(good, jobs=(0,), root=Cut(1, Fraction(1), nobody(), nobody()))
    with pytest.raises(ValueError, match="a cut of job 1"):
        tree_bound(jobs, cut)


def test_an_order_has_a_best_schedule() -> None:
    jobs = WindowJobs.of(relaxed([0, 1], [2, 1], [4, 4], 4))
    assert jobs is not None
    other = solve_order(jobs, events_of(jobs, [2.0 * jobs.divisor, 3.0 * jobs.divisor]))
    first = solve_order(jobs, events_of(jobs, [3.0 * jobs.divisor, 2.0 * jobs.divisor]))
    assert other is not None
    assert first is not None
    unit = jobs.divisor * jobs.weight_units
    assert other.value == pytest.approx(5 * unit)
    assert first.value == pytest.approx(5 * unit)
    assert (
        solve_order(jobs, (("completion", 1), ("release", jobs.divisor), ("completion", 0))) is None
    )


def workload(n: int = 10) -> sp.Workload:
    """Gangs of 1 to 8 of 8 GPUs."""
    rng = np.random.default_rng(7)
    arrival = np.sort(rng.integers(0, 20, n))
    return sp.Workload.from_columns(
        arrival_s=arrival, gpus=rng.integers(1, 9, n), work=rng.integers(1, 13, n)
    )


def test_the_preemptive_optimum_is_verified_and_evaluated_again() -> None:
    instance = Instance(sp.Cluster.parse("2x4"), workload())
    found = sp.preemptive_optimum(instance)
    assert found.finished
    assert found.proven
    assert found.lower_s == found.upper_s == 124.0
    completion = Fraction(found.upper_s) + Fraction(instance.workload.arrival_s.sum())
    assert lb_windows.check(instance, completion, found.tree)
    assert not lb_windows.check(instance, completion - Fraction(1, 10**9), found.tree)


def test_bounds_of_few_jobs_end_with_the_optimum() -> None:
    instance = Instance(sp.Cluster.parse("1x8"), workload())
    last = list(bounds_of(instance, "flow", BoundEffort(30.0)))[-1]
    assert last.kind == "completion-windows"
    assert last.value_s == 124.0
    assert last.witness is not None


@pytest.mark.parametrize(
    ("jobs", "objective", "charge_s", "said"),
    [
        (13, "flow", 0.0, "13 jobs"),
        (3, "makespan", 0.0, "makespan"),
        (3, "flow", 1.0, "has charges for starts"),
    ],
)
def test_what_the_preemptive_optimum_is_not_for(
    jobs: int, objective: str, charge_s: float, said: str
) -> None:
    charges = Overheads(start_s=charge_s)
    instance = Instance(sp.Cluster.parse("1x8"), workload(jobs), charges)
    with pytest.raises(InputError, match=said):
        sp.preemptive_optimum(instance, objective=objective)
