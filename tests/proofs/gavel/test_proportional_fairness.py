"""Proportional fairness: the market's equilibrium, runs in shares, and what their prices prove."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.shares import run_in_shares
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.proofs.gavel import proportional_fairness as theorem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.market import equilibrium
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.workspace import Workspace

PF = "proportional_fairness:aware=true"
SPEED = st.sampled_from([0.0, 0.5, 1.0, 3.0, 40.0])
JOB = st.tuples(
    st.integers(0, 9),
    st.sampled_from([1, 2, 3]),
    st.integers(1, 20),
    st.tuples(SPEED, st.sampled_from([0.25, 1.0, 7.0])),
    st.sampled_from([0.5, 1.0, 10.0]),
)
TYPED = "1x3:a,1x3:b"


def instance(jobs: list[tuple[int, int, int, tuple[float, float], float]]) -> sp.Instance:
    arrival, gpus, work, speed, weight = (list(each) for each in zip(*jobs, strict=True))
    columns = {"arrival_s": arrival, "gpus": gpus, "work": work, "weight": weight}
    loads = sp.Workload.from_columns(**columns, throughput=speed, gpu_types=("a", "b"))
    return sp.Instance(sp.Cluster.parse(TYPED), loads)


def problem_of(throughput: list[list[float]], **columns: object) -> AllocationProblem:
    types = [f"t{k}" for k in range(len(throughput[0]))]
    given = {"capacity": [1.0] * len(types), **columns}
    return AllocationProblem.from_columns(gpu_types=types, throughput=throughput, **given)


@given(st.lists(JOB, min_size=1, max_size=8))
@settings(max_examples=15)
def test_it_keeps_what_is_proven(
    jobs: list[tuple[int, int, int, tuple[float, float], float]],
) -> None:
    run = run_in_shares(instance(jobs), PF)
    assert theorem.check(run)


@given(st.lists(JOB, min_size=1, max_size=6), st.sampled_from([PF, "max_min_fairness:aware=true"]))
@settings(max_examples=8)
def test_no_schedule_costs_less_than_prices_prove(
    jobs: list[tuple[int, int, int, tuple[float, float], float]], allocation: str
) -> None:
    """Whatever gave the prices; three policies on real gangs."""
    given_ = instance(jobs)
    least = theorem.best_least_cost(run_in_shares(given_, allocation))
    for policy in ("srtf", "fifo-skip", f"gavel:{PF},round_s=5"):
        outcome = sp.simulate(given_.workload, TYPED, policy)
        cost = sum(map(Fraction, (given_.workload.weight * outcome.end_s).tolist()))
        assert cost >= least, policy


def test_the_worked_bound() -> None:
    """Two jobs of 1 on one GPU, at once: each runs at 1/2 until 2, prices add up to 2, zeta is 1/2.

    A = 4 and B = 2, the integral of t; with lambda = 1 that is 2, below the optimum of 3.
    """
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 1])
    run = run_in_shares(sp.Instance(sp.Cluster.parse("1x1"), jobs), PF)
    assert [float(each) for each in run.end_s] == pytest.approx([2.0, 2.0])
    assert float(theorem.least_cost(run, Fraction(2, 3))) == pytest.approx(2.0, rel=1e-6)
    assert float(theorem.bound(run.total_completion_s)) == pytest.approx(4 / 27)


def test_on_one_type_money_buys_time() -> None:
    """Weights 1, 2 and 9 for one GPU each of 3: the last runs all the time, the others share 2 as 1 to 2."""
    problem = problem_of([[1.0]] * 3, capacity=[2.0], weight=[1.0, 2.0, 9.0])
    found = equilibrium(Rates.of(problem), problem.weight)
    assert found.throughput == pytest.approx([1 / 3, 2 / 3, 1.0], rel=1e-6)
    assert found.worker == pytest.approx([3.0], rel=1e-6)
    assert found.time == pytest.approx([0.0, 0.0, 6.0], abs=1e-6)


def test_who_is_faster_elsewhere_goes_there() -> None:
    """Two jobs, two types of one GPU, each ten times as fast on another: each has its own, all the time."""
    problem = problem_of([[10.0, 1.0], [1.0, 10.0]])
    found = sp.allocate(problem, PF)
    assert found.alone == pytest.approx(np.eye(2), abs=1e-6)
    assert found.objective == pytest.approx(1.0)
    assert found.bound is not None
    assert 0 <= found.bound - found.objective <= 1e-7


@given(
    st.lists(
        st.tuples(st.tuples(SPEED, st.sampled_from([0.25, 1.0])), st.integers(1, 4)),
        min_size=1,
        max_size=7,
    ),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=30)
def test_nobody_finds_a_larger_sum_of_logarithms(
    jobs: list[tuple[tuple[float, float], int]], seed: int
) -> None:
    problem = problem_of([list(t) for t, _ in jobs], gpus=[g for _, g in jobs], capacity=[2.0, 1.0])
    found = sp.allocate(problem, PF)
    found.verify()
    best = np.log(found.effective_throughput).sum()
    draw = np.random.default_rng(seed)
    for _ in range(20):
        other = draw.dirichlet(np.ones(3), len(problem))[:, :2]
        other = 0.5 * (other + found.alone)
        used = problem.gpus @ other / problem.type_capacity
        other = other / max(1.0, float(used.max()))
        assert np.log((problem.throughput * other).sum(axis=1)).sum() <= best + 1e-6


def test_a_run_in_shares_waits_for_arrivals() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 10, 11], gpus=[2, 1, 2], work=[2, 1, 3])
    run = run_in_shares(sp.Instance(sp.Cluster.parse("1x2"), jobs), PF)
    assert [float(each) for each in run.end_s] == pytest.approx([2.0, 11.0, 14.0])
    assert [step.start_s for step in run.steps][:3] == [0, 10, 11]


class Nothing:
    """Gives nobody anything."""

    name, needs_steps, packed, aware = "nothing", False, False, True

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        empty = nothing(self.name, problem)
        return replace(empty, alone=np.zeros(problem.throughput.shape))


def test_what_cannot_run_in_shares_is_said() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    plain = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    with pytest.raises(PolicyError, match="nothing: gives nothing to any of 1 jobs at 0 s"):
        run_in_shares(plain, Nothing())
    with pytest.raises(InputError, match="'allox' is told the work left"):
        run_in_shares(plain, "allox")
    with pytest.raises(
        InputError, match="'max_min_fairness:aware=true,packed=true' lets jobs share GPUs"
    ):
        run_in_shares(plain, "max_min_fairness:aware=true,packed=true")
    charged = sp.Instance(plain.cluster, jobs, sp.Overheads(start_s=1.0))
    with pytest.raises(InputError, match="has charges for starts"):
        run_in_shares(charged, PF)
