"""The exact worst instance of a list policy equals brute force over all instances."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pyomo.environ as pyo
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob, InstanceFamily
from shadowprice.analysis.adversary.judge import Judge, JudgeEffort
from shadowprice.analysis.adversary.search import adversary
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload
from shadowprice.models.bilevel import RULES, InstanceLimits, build
from shadowprice.solvers import registry
from shadowprice.solvers.offline.worst_case import worst_list
from shadowprice.solvers.programs.compile import compile_model


def all_cases(limits: InstanceLimits) -> Iterator[FamilyInstance]:
    """Every instance within the limits whose first job arrives at 0."""
    kinds = list(product(range(1, limits.max_work + 1), range(1, limits.widest + 1)))
    later = combinations_with_replacement(range(limits.max_arrival + 1), limits.jobs - 1)
    for arrivals in later:
        for jobs in product(kinds, repeat=limits.jobs):
            rows = zip((0, *arrivals), jobs, strict=True)
            yield FamilyInstance(
                tuple(FamilyJob(arrival, work, gpus) for arrival, (work, gpus) in rows)
            )


def by_force(policy: str, limits: InstanceLimits, goal: Objective) -> Fraction:
    family = InstanceFamily(
        limits.jobs, limits.gpus, limits.max_arrival, limits.max_work, limits.widest
    )
    judge = Judge(policy, goal, family)
    return max(judge.ratio(case) for case in all_cases(limits))


SMALL = InstanceLimits(jobs=3, gpus=2, max_arrival=1, max_work=3, widest=2)
SMALLER = InstanceLimits(jobs=3, gpus=2, max_arrival=1, max_work=2, widest=2)
TINY = InstanceLimits(jobs=3, gpus=2, max_arrival=0, max_work=2, widest=2)
THREE_GPUS = InstanceLimits(jobs=3, gpus=3, max_arrival=2, max_work=2, widest=3)


@pytest.mark.parametrize("flow", [False, True])
@pytest.mark.parametrize(
    ("policy", "limits"),
    [
        ("fifo", SMALLER),
        ("fifo-skip", SMALLER),
        ("sjf", TINY),
        pytest.param("fifo", SMALL, marks=pytest.mark.slow),
        pytest.param("fifo-skip", SMALL, marks=pytest.mark.slow),
        pytest.param("sjf", SMALLER, marks=pytest.mark.slow),
        pytest.param("fifo", THREE_GPUS, marks=pytest.mark.slow),
        pytest.param("fifo-skip", THREE_GPUS, marks=pytest.mark.slow),
        pytest.param("sjf", SMALL, marks=pytest.mark.slow),
        pytest.param("sjf", THREE_GPUS, marks=pytest.mark.slow),
    ],
)
def test_three_jobs_by_force(policy: str, limits: InstanceLimits, flow: bool) -> None:
    found = worst_list(policy, limits, flow=flow)
    goal = Objective.FLOW if flow else Objective.COMPLETION
    assert found.proven
    assert found.ratio == by_force(policy, limits, goal)
    # The instance that it names has that ratio, by the engine and by enumeration.
    family = InstanceFamily(
        limits.jobs, limits.gpus, limits.max_arrival, limits.max_work, limits.widest
    )
    rows = zip(found.arrival, found.work, found.gpus, strict=True)
    assert (
        Judge(policy, goal, family).ratio(FamilyInstance(tuple(FamilyJob(*row) for row in rows)))
        == found.ratio
    )


kinds = st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(1, 2))


@settings(max_examples=4)
@given(rows=st.lists(kinds, min_size=3, max_size=3), policy=st.sampled_from(sorted(RULES)))
@example(rows=[(0, 2, 1), (0, 2, 2), (0, 2, 1)], policy="fifo")
@example(rows=[(0, 2, 1), (0, 2, 2), (0, 2, 1)], policy="fifo-skip")
@example(rows=[(0, 2, 2), (1, 2, 1), (1, 1, 2)], policy="sjf")
def test_the_rules_leave_the_policy_no_choice(
    rows: list[tuple[int, int, int]], policy: str
) -> None:
    # Of given jobs the dearest and the cheapest schedule that obey the rules are the engine's.
    first = min(arrival for arrival, _, _ in rows)
    jobs = sorted((arrival - first, work, gpus) for arrival, work, gpus in rows)
    workload = Workload.from_columns(
        arrival_s=[job[0] for job in jobs],
        gpus=[job[2] for job in jobs],
        work=[job[1] for job in jobs],
    )
    outcome = simulate(workload, "1x2", policy)
    for sign in (1, -1):
        model = build(RULES[policy], SMALLER, (0, sign), flow=False)
        for j, (arrival, work, gpus) in enumerate(jobs):
            model.a[j, arrival].fix(1)
            model.add_component(
                f"given_{j}",
                pyo.Constraint(expr=sum(model.x[j, t, work, gpus] for t in model.T) == 1),
            )
        compiled = compile_model(model)
        assert sign * compiled.solve().objective == pytest.approx(float(outcome.end_s.sum()))


def test_a_single_gpu_and_all_at_once_leave_nothing_to_gain_for_shortest_first() -> None:
    # Smith 1956: SPT is optimal.
    found = worst_list("sjf", InstanceLimits(jobs=3, gpus=1, max_arrival=0, max_work=3, widest=1))
    assert found.proven
    assert found.ratio == 1


def test_the_adversary_uses_it_and_says_that_it_is_proven() -> None:
    family = InstanceFamily(jobs=3, gpus=2, max_arrival=1, max_work=3)
    found = adversary("fifo", family, method="bilevel", effort=JudgeEffort(budget_s=60))
    assert found.ratio == Fraction(11, 6)
    assert found.hard.provenance["worst_of_family"] is True


def test_what_is_not_covered_is_refused_by_name() -> None:
    limits = InstanceLimits(jobs=3, gpus=2, max_arrival=1, max_work=3, widest=2)
    with pytest.raises(InputError, match="'srtf' is not covered, expected one of fifo"):
        worst_list("srtf", limits)
    with pytest.raises(InputError, match="expected at most 6000"):
        worst_list("fifo", InstanceLimits(jobs=8, gpus=8, max_arrival=50, max_work=20, widest=8))
    with pytest.raises(InputError, match="makespan"):
        adversary("fifo", InstanceFamily(jobs=2), "makespan", method="bilevel")
    with pytest.raises(SolverError, match="no instance found"):
        worst_list("fifo", limits, budget_s=0.0)


def test_the_rules_are_policies() -> None:
    for name in RULES:
        policy = registry.policy(name)
        assert not policy.preemptive
