"""The optimum of copies against all plans of small instances, and against HadarE."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import pyomo.environ as pyo
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import verified_cost
from shadowprice.analysis.optimum import copies_optimum
from shadowprice.analysis.preparation import prepare_run
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError
from shadowprice.execution.copies.simulation import run_plan
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.models import hadare
from shadowprice.models.tracing import traced

TICK_S = 2.0**-20


def rules(**charges: float) -> str:
    """The policy with rounds of 8 s."""
    return "hadare:round_s=8," + ",".join(f"{name}={value}" for name, value in charges.items())


def cheapest(instance: Instance, goal: Objective, rounds: range) -> float:
    """Least verified cost [s] of all plans of some rounds, each continued as plans are; infinite if none ends."""
    jobs, nodes = len(instance.workload), len(instance.cluster.nodes)
    most = instance.copies.max_copies if instance.copies else 0
    best = float("inf")
    one_round = [
        choice
        for choice in product(range(-1, jobs), repeat=nodes)
        if all(choice.count(job) <= most for job in range(jobs))
    ]
    for choices in product(one_round, repeat=len(rounds)):
        plan: dict[int, dict[int, list[int]]] = {}
        for number, choice in zip(rounds, choices, strict=True):
            for node, job in enumerate(choice):
                if job >= 0:
                    plan.setdefault(number, {}).setdefault(job, []).append(node)
        try:
            cost = verified_cost(instance, goal, run_plan(instance, plan))
        except PolicyError:  # Somebody has no node, or none on which a step fits.
            continue
        assert cost is not None
        best = min(best, float(cost) * TICK_S)
    return best


@settings(max_examples=4)
@example([9, 12], (1, 1), 1, (1, 0), 2, Objective.MAKESPAN, 4, [1, 1])
@given(
    work=st.lists(st.integers(1, 16), min_size=1, max_size=2),
    gangs=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    late=st.integers(0, 8),
    charges=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    copies=st.integers(1, 2),
    goal=st.sampled_from(Objective),
    begin=st.sampled_from([0, 4, 80_000]),
    weight=st.sampled_from([[1, 1], [0, 1], [50, 1e-300]]),
)
def test_no_plan_is_cheaper(
    work: list[int],
    gangs: tuple[int, int],
    late: int,
    charges: tuple[int, int],
    copies: int,
    goal: Objective,
    begin: int,
    weight: list[float],
) -> None:
    some = slice(len(work))
    jobs = sp.Workload.from_columns(
        arrival_s=[begin, begin + late][some], gpus=gangs[some], work=work, weight=weight[some]
    )
    policy = rules(restart_s=charges[0], aggregation_s=charges[1], max_copies=copies)
    cluster = sp.Cluster((sp.Node(2), sp.Node(1)))
    found = copies_optimum(jobs, cluster, goal, policy=policy)
    instance = prepare_run(jobs, cluster, policy).instance
    first = -(-begin // 8)
    least = cheapest(instance, goal, range(first, first + 3))
    # A plan of the programme may lose a tick by whole steps for every copy.
    slack = 1e-4 * max(weight)
    assert found.upper_s <= least + slack
    assert found.claimed.value_s <= found.aligned.value_s <= least
    assert found.aligned.value_s == pytest.approx(least, abs=10 * slack)
    assert found.lower_s <= found.upper_s
    hadare_ends = sp.simulate(jobs, cluster, policy).end_s
    assert found.upper_s <= goal.cost_s(jobs, hadare_ends) * (1 + 1e-12)


RATES = st.lists(st.sampled_from([0.0, 0.1, 0.126, 0.25, 0.9]), min_size=2, max_size=2).filter(any)


@settings(max_examples=4)
@example([2, 2], [[0.125, 0.25], [0.25, 0.125]], 0, Objective.FLOW)
@given(
    work=st.lists(st.integers(1, 6), min_size=2, max_size=2),
    rates=st.lists(RATES, min_size=2, max_size=2),
    restart_s=st.integers(0, 2),
    goal=st.sampled_from(Objective),
)
def test_bounds_hold_where_steps_are_long(
    work: list[int], rates: list[list[float]], restart_s: int, goal: Objective
) -> None:
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 8], gpus=[1, 1], work=work, throughput=rates, gpu_types=("a", "b")
    )
    policy = rules(restart_s=restart_s)
    instance = prepare_run(jobs, "1x1:a,1x1:b", policy).instance
    with suppress(InfeasibleJobError):
        # The interval LP is as fine as the budget affords.
        found = copies_optimum(jobs, "1x1:a,1x1:b", goal, policy=policy, budget_s=5.0)
        least = cheapest(instance, goal, range(2))
        assert found.aligned.value_s <= min(least, found.upper_s)
        assert found.lower_s <= min(least, found.upper_s)


def test_a_step_that_takes_exactly_a_round_is_one() -> None:
    jobs = sp.Workload.from_columns(
        arrival_s=[0],
        gpus=[7],
        work=[2],
        throughput=[[7 / (0.6 * 10 * 25), 0.028]],
        gpu_types=("a", "b"),
    )
    cluster = sp.Cluster((sp.Node(25, "a"), sp.Node(25, "b")))
    found = copies_optimum(jobs, cluster, policy="hadare:round_s=10,restart_s=0")
    assert found.lower_s <= found.claimed.value_s <= 10.0
    assert found.upper_s == 10.0


def test_charges_decide_whether_a_job_is_several_copies() -> None:
    # Two steps of work on two nodes: 1 s each if averaging is free, 2 s on one node if it costs more.
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[2])
    for aggregation_s, cost_s in ((0, 1.0), (0.5, 1.5), (2, 2.0)):
        found = copies_optimum(jobs, "2x1", policy=rules(aggregation_s=aggregation_s, restart_s=0))
        assert found.upper_s == cost_s
        assert found.schedule.job.tolist() == [0, 0] if cost_s < 2 else [0]


def test_a_node_that_changes_jobs_costs_a_restart() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 4])
    free, charged = (
        copies_optimum(jobs, "1x1", "makespan", policy=rules(restart_s=each)) for each in (0, 3)
    )
    assert (free.upper_s, charged.upper_s) == (12.0, 15.0)
    assert charged.schedule.overhead_s.tolist() == [0.0, 3.0]
    assert charged.lower_s == pytest.approx(15.0, abs=1e-3)


def test_a_job_that_stays_pays_nothing() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[20])
    found = copies_optimum(jobs, "1x1", policy=rules(restart_s=3))
    assert found.upper_s == 20.0
    assert found.aligned.value_s == pytest.approx(20.0, abs=1e-3)


@pytest.mark.parametrize(("copies", "cost_s"), [(1, 6.0), (2, 3.0), (3, 2.0)])
def test_no_more_copies_than_are_allowed(copies: int, cost_s: float) -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[6])
    found = copies_optimum(jobs, "3x1", policy=rules(restart_s=0, max_copies=copies))
    assert found.upper_s == cost_s
    assert found.aligned.value_s == pytest.approx(cost_s, abs=1e-3)


def test_rounds_that_begin_with_an_arrival_are_in_the_bound() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[4], gpus=[1], work=[4])
    found = copies_optimum(jobs, "1x1", policy=rules(restart_s=0))
    # HadarE begins with the next round, at 8 s; others may begin at 4 s.
    assert found.upper_s == 8.0
    assert found.aligned.value_s == pytest.approx(8.0, abs=1e-3)
    assert found.lower_s <= 4.0
    assert found.claimed.value_s <= 4.0


def test_weights_of_any_size_and_late_arrivals() -> None:
    jobs = sp.Workload.from_columns(
        arrival_s=[1e8, 1e8], gpus=[1, 1], work=[9, 5], weight=[1e9, 1e-310]
    )
    found = copies_optimum(jobs, "1x1", policy=rules(restart_s=3))
    assert found.schedule.job.tolist() == [0, 0, 1]
    assert found.lower_s <= found.upper_s == 9e9


def test_a_job_without_a_weight_runs_last() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 8], weight=[0, 1])
    found = copies_optimum(jobs, "1x1", policy=rules(restart_s=0))
    assert found.upper_s == 8.0
    assert found.schedule.job.tolist() == [1, 0]


def test_an_edited_model_is_what_is_solved() -> None:
    def away_from_the_first(jobs: Any, rounds: int, *, makespan: bool = False) -> Any:
        m = hadare.build(jobs, rounds, makespan=makespan)
        with traced():
            m.first = pyo.Set(initialize=[key for key in m.JHT if key[:2] == ("job-0", "node-0")])

            @m.Constraint(m.first)
            def away(m: Any, j: str, h: str, t: int) -> Any:
                return m.x[j, h, t] == 0

        return m

    jobs = sp.Workload.from_columns(id=["job-0"], arrival_s=[0], gpus=[1], work=[20])
    with pytest.warns(UserWarning, match="edited|published"):
        found = copies_optimum(jobs, "2x1", policy=rules(restart_s=0), model=away_from_the_first)
    assert found.edited
    assert set(found.schedule.node.tolist()) == {1}
    assert found.upper_s == 20.0
    assert found.lower_s <= 10.0  # Of the instance, about which an edited model says nothing.
    assert copies_optimum(jobs, "2x1", policy=rules(restart_s=0)).upper_s == 10.0
    # Where the node that is left is the slow one, and no step fits it beside a restart.
    slow = sp.Workload.from_columns(
        id=["job-0"],
        arrival_s=[0],
        gpus=[1],
        work=[3],
        throughput=[[1 / 100, 1 / 352]],
        gpu_types=("a", "b"),
    )
    with pytest.warns(UserWarning, match="edited|published"):
        found = copies_optimum(slow, "1x1:a,1x1:b", model=away_from_the_first)
    assert set(found.schedule.node.tolist()) == {1}
    assert found.upper_s == 2 * 360 + 352


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "srtf"}, "runs no copies of jobs, expected hadare"),
        ({"policy": "hadare:width=gang"}, "expected width=node"),
        ({"objective": "utility"}, "objective 'utility': expected one of"),
        ({"policy": "hadare:round_s=0.25,restart_s=0"}, "expected at most 20000 in all"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[2000, 1000])
    with pytest.raises(InputError, match=message):
        copies_optimum(jobs, "2x1", **options)


def test_a_plan_that_ends_early_goes_on_where_it_was() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[20, 4])
    instance = prepare_run(jobs, "2x1", rules(restart_s=0)).instance
    schedule = run_plan(instance, {0: {0: [0]}, 1: {1: [0]}})
    # Job 0 waits in round 1 for its node, which job 1 has, and goes on in rounds 2 and 3.
    assert schedule.job.tolist() == [0, 1, 0, 0]
    assert schedule.start_s.tolist() == [0.0, 8.0, 16.0, 24.0]
    assert (schedule.node == 0).all()
    assert verified_cost(instance, Objective.MAKESPAN, schedule) is not None
