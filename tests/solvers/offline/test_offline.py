"""The offline optimum against brute force, two solvers against each other, bounds against both."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, permutations, product

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import bounds_of, certified_bounds, strongest_bound
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.metrics import end_s
from shadowprice.errors import InputError, SolverError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.models import time_indexed
from shadowprice.models.slotted import Slotted
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.offline import constraint_programming as cp_sat
from shadowprice.solvers.offline import lagrangian, non_preemptive, slot_prices
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.offline.bounds import Relaxation, bound_of, simple_bounds
from shadowprice.solvers.offline.interval_prices import interval_prices
from shadowprice.solvers.offline.non_preemptive import Method, optimum
from shadowprice.solvers.offline.preemptive import slotted_preemptive_optimum
from shadowprice.solvers.programs.compile import SolverOptions, Status, compile_model
from shadowprice.solvers.programs.highs import BasicSolution, WarmProgram
from shadowprice.solvers.registry import policies

TINY = instances(max_jobs=4, max_nodes=2, max_gpus=2, max_arrival_s=6, max_work_s=4)
SMALL = instances(max_jobs=6, max_nodes=2, max_gpus=4, max_arrival_s=10, max_work_s=8)
OBJECTIVES = list(Objective)


def brute_force(instance: Instance, objective: Objective) -> float:
    """The best list schedule: every regular objective is minimised by one of them."""
    jobs = Slotted.of(instance)
    best = float("inf")
    for order in permutations(range(jobs.jobs)):
        starts = list_schedule.place(jobs, list(order))
        ends = (starts + jobs.duration) * jobs.slot_ticks / TICKS_PER_S
        best = min(best, objective.cost_s(instance.workload, ends))
    return best


def every_slotted_preemptive_cost(instance: Instance, objective: Objective) -> float:
    """Exhaustive search over preemptive schedules that change at whole seconds; tiny only."""
    jobs = Slotted.of(instance, 1.0)
    capacity, n = jobs.capacity, jobs.jobs
    horizon = list_schedule.safe_horizon(jobs)
    states = {tuple(jobs.duration.tolist()): {tuple([0] * n)}}
    for slot in range(horizon):
        following: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for left, ends in states.items():
            ready = [j for j in range(n) if left[j] and jobs.release[j] <= slot]
            for chosen in product((0, 1), repeat=len(ready)):
                runs = [j for j, c in zip(ready, chosen, strict=True) if c]
                if sum(jobs.gpus[j] for j in runs) > capacity:
                    continue
                now = tuple(left[j] - (j in runs) for j in range(n))
                after = {
                    tuple(slot + 1 if j in runs and not now[j] else e[j] for j in range(n))
                    for e in ends
                }
                following.setdefault(now, set()).update(after)
        states = following
    done = states[tuple([0] * n)]
    return min(objective.cost_s(instance.workload, np.array(ends, float)) for ends in done)


@settings(max_examples=20)
@given(
    instance=TINY, objective=st.sampled_from(OBJECTIVES), method=st.sampled_from(["milp", "cp-sat"])
)
def test_the_optimum_is_what_brute_force_finds(
    instance: Instance, objective: Objective, method: str
) -> None:
    found = optimum(instance, objective, method=method, budget_s=20)
    assert found.proven
    assert found.lower_s == found.upper_s == brute_force(instance, objective)
    assert found.schedule is not None
    verify(instance, found.schedule)
    assert objective.cost_s(instance.workload, end_s(instance, found.schedule)) == found.upper_s


@settings(max_examples=10)
@given(instance=SMALL, objective=st.sampled_from(OBJECTIVES))
def test_two_solvers_agree(instance: Instance, objective: Objective) -> None:
    milp = optimum(instance, objective, method="milp", budget_s=20)
    cp_sat = optimum(instance, objective, method="cp-sat", budget_s=20)
    assert milp.proven
    assert cp_sat.proven
    assert milp.upper_s == cp_sat.upper_s


@settings(max_examples=6)
@given(instance=SMALL, objective=st.sampled_from(OBJECTIVES), data=st.data())
def test_bound_optimum_policy(
    instance: Instance, objective: Objective, data: st.DataObject
) -> None:
    """bound <= optimum <= every policy that does not preempt; preemptive bounds <= every policy."""
    best = optimum(instance, objective, method="cp-sat", budget_s=20)
    weak = list(bounds_of(instance, objective, BoundEffort(5)))
    for bound in weak:
        assert bound.value_s <= best.lower_s
    for name, policy in policies().items():
        schedule = run(instance, policy).schedule
        cost_s = objective.cost_s(instance.workload, end_s(instance, schedule))
        assert max(bound.value_s for bound in weak) <= cost_s, name
        if not policy.preemptive:
            assert best.lower_s <= cost_s, name


@settings(max_examples=15)
@given(
    instance=instances(max_jobs=3, max_nodes=1, max_gpus=3, max_arrival_s=3, max_work_s=3),
    objective=st.sampled_from(OBJECTIVES),
)
def test_bounds_hold_for_every_preemptive_schedule(
    instance: Instance, objective: Objective
) -> None:
    cost = every_slotted_preemptive_cost(instance, objective)
    for bound in bounds_of(instance, objective, BoundEffort(5)):
        assert bound.value_s <= cost, bound.kind


@settings(max_examples=15)
@given(
    instance=instances(max_jobs=3, max_nodes=1, max_gpus=3, max_arrival_s=3, max_work_s=3),
    objective=st.sampled_from(OBJECTIVES),
    method=st.sampled_from(["milp", "cp-sat"]),
)
def test_the_slotted_preemptive_optimum(
    instance: Instance, objective: Objective, method: Method
) -> None:
    found = slotted_preemptive_optimum(instance, objective, method=method, slot_s=1.0, budget_s=20)
    assert found.proven
    assert found.upper_s == every_slotted_preemptive_cost(instance, objective)
    assert found.schedule is not None
    verify(instance, found.schedule)
    assert objective.cost_s(instance.workload, end_s(instance, found.schedule)) == found.upper_s


@settings(max_examples=4)
@given(
    instance=instances(max_jobs=5, max_nodes=2, max_gpus=3, max_arrival_s=5, max_work_s=5),
    objective=st.sampled_from(OBJECTIVES),
)
def test_two_solvers_agree_with_preemption(instance: Instance, objective: Objective) -> None:
    both = [slotted_preemptive_optimum(instance, objective, method=m) for m in ("milp", "cp-sat")]
    assert both[0].proven
    assert both[1].proven
    assert both[0].upper_s == both[1].upper_s <= optimum(instance, objective).upper_s
    for bound in bounds_of(instance, objective, BoundEffort(0.2)):
        assert bound.value_s <= both[0].upper_s


@given(instance=instances(max_nodes=1, max_gpus=1))
def test_srtf_on_one_gpu_is_the_preemptive_optimum(instance: Instance) -> None:
    for objective in (Objective.COMPLETION, Objective.FLOW):
        bound = strongest_bound(instance, objective=objective, preemptive=True, budget_s=0.0)
        schedule = run(instance, policies()["srtf"]).schedule
        assert bound.certified
        assert objective.cost_s(instance.workload, end_s(instance, schedule)) == bound.value_s


def test_on_one_gpu_more_is_tried_where_jobs_share_it() -> None:
    """There the fluid works faster than any job can, and the interval LP is better than it.

    The GPU does 1.2 times as much for two jobs. 6 s of work from 4 s on, 18 s from 6 s on.
    """
    jobs = Workload.from_columns(arrival_s=[4, 6], gpus=[1, 1], work=[6, 18], model=["a", "a"])
    pair = Throughputs(("gpu",), {}, {("gpu", ("a", 1), ("a", 1)): (0.6, 0.6)})
    shared = Instance(Cluster.parse("1x1"), jobs, sharing_rates=pair)
    goal = Objective.COMPLETION
    simple = max(bound.ticks for bound in simple_bounds(shared, goal))
    best = certified_bounds(shared, [goal], BoundEffort.of_size(2000))[goal]
    assert best.kind == "interval-lp"
    assert best.ticks > simple + TICKS_PER_S
    kinds = {bound.kind for bound in bounds_of(shared, goal, BoundEffort(2))}
    assert "interval-lp" in kinds
    alone = Instance(shared.cluster, jobs)
    kinds = {bound.kind for bound in bounds_of(alone, goal, BoundEffort(2))}
    assert "interval-lp" not in kinds


@settings(max_examples=15)
@given(instance=instances(max_jobs=3, max_nodes=1, max_gpus=1, max_arrival_s=3, max_work_s=3))
def test_schrage_by_exhaustive_search(instance: Instance) -> None:
    bound = strongest_bound(instance, objective="completion", preemptive=True, budget_s=0.0)
    assert bound.value_s == every_slotted_preemptive_cost(instance, Objective.COMPLETION)


@given(instance=SMALL, data=st.data())
def test_any_prices_give_a_bound(instance: Instance, data: st.DataObject) -> None:
    """LB-lp: perturbed duals may weaken the bound, never lift it above a feasible schedule."""
    jobs = Slotted.of(instance)
    starts = list_schedule.search(jobs, span=False, seed=0, budget_s=1, moves=50)
    horizon = int((starts + jobs.duration).max()) + 1
    prices = np.array(data.draw(st.lists(st.floats(-2, 5), min_size=horizon, max_size=horizon)))
    bound, reduced = lagrangian.reduced_costs(jobs, lagrangian.exact_prices(prices), horizon)
    assert bound <= list_schedule.total(jobs, starts) * lagrangian.PRICE_UNIT
    for j, start in enumerate(starts.tolist()):
        assert reduced[j, start] >= 0


@settings(max_examples=6)
@given(
    instance=instances(max_jobs=5, max_arrival_s=10, max_work_s=10),
    weights=st.lists(st.integers(1, 9), min_size=5, max_size=5),
)
def test_weighted_bounds(instance: Instance, weights: list[int]) -> None:
    jobs = instance.workload
    weighted = Workload.from_columns(
        arrival_s=jobs.arrival_s, gpus=jobs.gpus, work=jobs.work, weight=weights[: len(jobs)]
    )
    heavier = Instance(instance.cluster, weighted)
    found = optimum(heavier, "completion", method="cp-sat", budget_s=20)
    milp = optimum(heavier, "completion", budget_s=20)
    assert found.upper_s == milp.upper_s
    for bound in bounds_of(heavier, "completion", BoundEffort(5)):
        assert bound.value_s <= found.lower_s, bound.kind


def test_a_coarser_grid_is_honest() -> None:
    rng = np.random.default_rng(3)
    jobs = Workload.from_columns(
        arrival_s=rng.integers(0, 900, 8),
        gpus=rng.choice([1, 2, 4], 8),
        work=rng.integers(50, 1000, 8),
    )
    instance = Instance(Cluster.parse("2x4"), jobs)
    exact = optimum(instance, "completion", method="cp-sat", budget_s=30)
    assert exact.proven
    for slot_s in (100.0, 37.0, 250.0):
        coarse = optimum(instance, "completion", slot_s=slot_s, budget_s=20)
        assert not coarse.proven
        assert 0.7 * exact.upper_s < coarse.lower_s <= exact.upper_s <= coarse.upper_s


@pytest.mark.parametrize("work", [[100], [100, 1], [5, 90, 1]])
def test_one_job_longer_than_all_others(work: list[int]) -> None:
    """The grid of the interval LP ends after its last interval began, whatever dominates."""
    # More jobs than are searched for the optimum, which would be the end of it.
    work = [*work, *[1] * 13]
    jobs = Workload.from_columns(arrival_s=[0] * len(work), gpus=[4] * len(work), work=work)
    instance = Instance(Cluster.parse("1x4"), jobs)
    # Every job takes all GPUs from 0 on: none is better than the shortest first, one after another.
    best = sum(accumulate(sorted(work)))
    bounds = list(bounds_of(instance, "completion", BoundEffort(2)))
    assert "interval-lp" in {bound.kind for bound in bounds}
    assert max(bound.value_s for bound in bounds) <= best


def test_interval_bounds_must_increase() -> None:
    with pytest.raises(ValueError, match="not increasing"):
        lagrangian.interval_bound([0], [1], [1], [Fraction(1)], 1, [0, 3, 2], np.zeros(2, np.int64))


def test_jobs_much_shorter_than_the_trace_keep_the_model_small() -> None:
    """Sixty jobs of a second in two weeks: rounded down to no slot at all they still are columns."""
    n = 60
    jobs = Workload.from_columns(
        arrival_s=np.minimum(np.arange(n), n - 4) * 20_000, gpus=1, work=np.arange(n) % 2 + 1
    )
    found = optimum(Instance(Cluster.parse("1x2"), jobs), Objective.FLOW, budget_s=0.01)
    assert n * jobs.arrival_s.max() / found.slot_s <= slot_prices.MAX_ENTRIES


def test_a_programme_that_a_solver_calls_unbounded_costs_its_bound_alone() -> None:
    """HiGHS 1.14 says so of run times that differ by nine digits; the bounds that need no solver are there."""
    jobs = Workload.from_columns(arrival_s=[0, 0, 0], gpus=2, work=[2.0**30, 1.0, 1.0])
    instance = Instance(Cluster.parse("1x2"), jobs)
    (found,) = certified_bounds(
        instance, (Objective.COMPLETION,), BoundEffort.of_size(2000)
    ).values()
    assert found.certified
    assert 2**30 < found.value_s <= 2**30 + 5


def test_times_off_any_grid_are_no_trouble() -> None:
    """Seconds with fractions make slots of a microsecond; nothing is as long as the horizon."""
    rng = np.random.default_rng(8)
    jobs = Workload.from_columns(
        arrival_s=rng.uniform(0, 1e5, 10),
        gpus=rng.choice([1, 2, 4], 10),
        work=rng.uniform(1, 1e5, 10),
    )
    instance = Instance(Cluster.parse("1x4"), jobs)
    found = optimum(instance, "flow", budget_s=1)
    assert 0 < found.lower_s <= found.upper_s
    assert found.schedule is not None
    verify(instance, found.schedule)
    assert (
        strongest_bound(instance, objective="flow", preemptive=False, budget_s=1).value_s
        <= found.upper_s
    )
    with pytest.raises(InputError, match="expected at most"):
        slotted_preemptive_optimum(instance)


def test_mixed_types_have_bounds_but_no_exact_optimum() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[1, 1],
        work=[10, 20],
        throughput=[[1, 2], [1, 2]],
        gpu_types=("k80", "v100"),
    )
    instance = Instance(Cluster.parse("1x1:k80,1x1:v100"), jobs)
    with pytest.raises(InputError, match="equal speed"):
        optimum(instance)
    assert (
        0
        < strongest_bound(instance, objective="completion", preemptive=False, budget_s=1).value_s
        <= 5 + 20
    )


def test_bounds_round_down() -> None:
    third = Fraction(TICKS_PER_S * 10**9, 3)
    assert Fraction(bound_of(third, "job").value_s) <= third / TICKS_PER_S


def test_no_jobs() -> None:
    empty = Instance(Cluster.parse("1x1"), Workload.from_columns(arrival_s=[], gpus=[], work=[]))
    for objective in OBJECTIVES:
        assert (
            strongest_bound(empty, objective=objective, preemptive=True, budget_s=1).value_s == 0.0
        )
        assert optimum(empty, objective).proven


def test_infeasible_names_the_constraints() -> None:
    m = pyo.ConcreteModel(name="two_rules")
    m.x = pyo.Var([1, 2], domain=pyo.Binary)
    m.goal = pyo.Objective(expr=m.x[1])
    m.at_least = pyo.Constraint(expr=m.x[1] + m.x[2] >= 3)
    m.harmless = pyo.Constraint(expr=m.x[1] <= 1)
    with pytest.raises(SolverError, match=r"cannot hold together: at_least$"):
        compile_model(m).solve()


def test_unbounded_and_nonlinear_models_are_explained() -> None:
    m = pyo.ConcreteModel(name="open")
    m.x = pyo.Var()
    m.goal = pyo.Objective(expr=m.x)
    m.row = pyo.Constraint(expr=m.x <= 4)
    with pytest.raises(SolverError, match="unbounded"):
        compile_model(m).solve()
    m.curve = pyo.Constraint(expr=m.x**2 <= 4)
    with pytest.raises(SolverError, match="cannot be translated"):
        compile_model(m)


def test_duals_have_the_documented_signs() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, None))
    m.y = pyo.Var(bounds=(0, None))
    m.goal = pyo.Objective(expr=3 * m.x + m.y, sense=pyo.maximize)
    m.cap = pyo.Constraint(expr=m.x + m.y <= 10)
    solution = compile_model(m).solve()
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(30)
    assert solution.duals[0] == pytest.approx(3)


def test_a_model_solves_to_the_same_value_by_every_method() -> None:
    rng = np.random.default_rng(0)
    jobs = Slotted.of(
        Instance(
            Cluster.parse("1x4"),
            Workload.from_columns(
                arrival_s=rng.integers(0, 9, 6),
                gpus=rng.choice([1, 2], 6),
                work=rng.integers(1, 6, 6),
            ),
        )
    )
    windows = [np.arange(r, 40) for r in jobs.release.tolist()]
    model = time_indexed.build(jobs, windows, relaxed=True)
    values = [
        compile_model(model).solve(SolverOptions(method=method)).objective
        for method in ("highs-simplex", "highs-ipx")
    ]
    assert values[0] == pytest.approx(values[1])


def test_simple_bounds_of_a_large_trace_are_quick_and_ordered() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    jobs = Workload.from_columns(
        arrival_s=rng.integers(0, 10**6, n),
        gpus=rng.choice([1, 2, 8], n),
        work=rng.integers(1, 10**5, n),
    )
    instance = Instance(Cluster.parse("32x8"), jobs)
    kinds = {bound.kind: bound.value_s for bound in simple_bounds(instance, Objective.FLOW)}
    assert set(kinds) == {"job", "fluid", "mean-busy-time", "wide-gangs"}
    assert kinds["job"] >= float(jobs.work.sum()) - 1e-3


# Start charges, and what the models do not describe.


def charged(instance: Instance, start_s: float) -> Instance:
    return Instance(instance.cluster, instance.workload, Overheads(start_s=start_s))


def best_of_all_orders(instance: Instance, objective: Objective) -> float:
    """Every order, each job as early as it fits, by seconds and GPUs counted here."""
    jobs, charge = instance.workload, instance.overheads.start_s
    length = [int(p + charge) for p in instance.shortest_s.tolist()]
    release, gpus = jobs.arrival_s.astype(int).tolist(), jobs.gpus.tolist()
    best = float("inf")
    for order in permutations(range(len(jobs))):
        used: dict[int, int] = {}
        ends = [0.0] * len(jobs)
        for j in order:
            start = release[j]
            while any(
                used.get(t, 0) + gpus[j] > instance.cluster.total_gpus
                for t in range(start, start + length[j])
            ):
                start += 1
            for t in range(start, start + length[j]):
                used[t] = used.get(t, 0) + gpus[j]
            ends[j] = float(start + length[j])
        best = min(best, objective.cost_s(jobs, np.array(ends)))
    return best


@settings(max_examples=10)
@given(
    instance=instances(max_jobs=4, max_nodes=2, max_gpus=2, max_arrival_s=6, max_work_s=4),
    start_s=st.sampled_from([1.0, 2.0, 5.0]),
    objective=st.sampled_from(OBJECTIVES),
    method=st.sampled_from(["milp", "cp-sat"]),
)
def test_every_job_pays_one_start_charge(
    instance: Instance, start_s: float, objective: Objective, method: Method
) -> None:
    case = charged(instance, start_s)
    found = optimum(case, objective, method=method, budget_s=20)
    assert found.proven
    assert found.lower_s == found.upper_s == best_of_all_orders(case, objective)
    assert found.schedule is not None
    verify(case, found.schedule)
    assert objective.cost_s(case.workload, end_s(case, found.schedule)) == found.upper_s


def test_an_optimum_with_start_charges_is_attained() -> None:
    """One GPU, runs of 15, 8 and 6 s that each cost 5 s more: not 55 without, but what they take."""
    jobs = Workload.from_columns(arrival_s=[0, 2, 4], gpus=[1, 1, 1], work=[15, 8, 6])
    case = charged(Instance(Cluster.parse("1x1"), jobs), 5.0)
    found = optimum(case)
    assert found.schedule is not None
    verify(case, found.schedule)
    assert found.upper_s == best_of_all_orders(case, Objective.COMPLETION)
    assert found.schedule.overhead_s.tolist() == [5.0] * 3
    with pytest.raises(InputError, match="has charges for starts"):
        slotted_preemptive_optimum(case)


def test_jobs_that_can_share_have_no_exact_optimum() -> None:
    """Two jobs that share are done after 200 s, alone one after the other after 300."""
    jobs = Workload.from_columns(
        arrival_s=[0, 0], gpus=[2, 2], work=[100, 100], model=["vae", "vae"]
    )
    kind, cluster = ("vae", 2), Cluster.parse("1x2")
    rates = Throughputs(("gpu",), {kind: (1.0,)}, {("gpu", kind, kind): (1.0, 1.0)})
    with pytest.raises(InputError, match="share their GPUs"):
        optimum(Instance(cluster, jobs, sharing_rates=rates))
    bounds = bounds_of(
        Instance(cluster, jobs, sharing_rates=rates),
        "completion",
        BoundEffort(1.0),
        preemptive=False,
    )
    assert {"optimum", "milp", "cp-sat"}.isdisjoint(bound.kind for bound in bounds)
    strangers = Workload.from_columns(arrival_s=[0, 0], gpus=[2, 2], work=[100, 100])
    assert optimum(Instance(cluster, strangers, sharing_rates=rates)).upper_s == 300


def test_conditions_have_no_exact_optimum() -> None:
    workload = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[100, 100])
    elasticity = Elasticity(np.array([2, 2]), np.array([0.9, 0.9]))
    instance = Instance(Cluster.parse("1x2"), workload, elasticity=elasticity)
    for solve in (optimum, slotted_preemptive_optimum):
        with pytest.raises(InputError, match="has jobs that may grow, not known to the exact"):
            solve(instance)


# What a solver says.


@settings(max_examples=15)
@given(n=st.integers(3, 6), gap=st.integers(0, 5), gpus=st.integers(1, 2), first=st.booleans())
def test_identical_jobs_are_no_trouble(n: int, gap: int, gpus: int, first: bool) -> None:
    """CP-SAT 9.15 throws at 27 of 160 such batches."""
    arrival = [0.0 if first else float(gap), *[float(gap)] * (n - 1)]
    jobs = Workload.from_columns(arrival_s=arrival, gpus=[1] * n, work=[1.0] * n)
    instance = Instance(Cluster.parse(f"1x{gpus}"), jobs)
    found = optimum(instance, method="cp-sat", budget_s=10)
    assert found.proven
    assert found.upper_s == brute_force(instance, Objective.COMPLETION)


@pytest.mark.parametrize("lie", [0.5, 2.0])
def test_the_word_of_cp_sat_is_not_certified(lie: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that says any bound, and that its schedule is optimal, certifies and proves nothing."""
    jobs = Workload.from_columns(
        arrival_s=[0, 0, 1, 2, 3], gpus=[2, 1, 3, 1, 2], work=[7, 5, 3, 9, 2]
    )
    instance = Instance(Cluster.parse("1x4"), jobs)
    true = optimum(instance, budget_s=20)
    assert true.proven
    late = np.cumsum([0, 20, 20, 20, 20])

    def says(slotted: Slotted, **how: object) -> cp_sat.Proof:
        return cp_sat.Proof(late, lie * true.upper_s, True)

    monkeypatch.setattr(cp_sat, "solve", says)
    found = optimum(instance, method="cp-sat", budget_s=20)
    assert found.upper_s == true.upper_s
    assert found.certified_lower_s <= true.upper_s
    if found.certified:
        assert found.lower_s <= true.upper_s
    assert not found.proven or found.lower_s == true.upper_s


@settings(max_examples=4)
@given(instance=SMALL, objective=st.sampled_from(OBJECTIVES), data=st.data())
def test_what_is_certified_holds_whatever_the_solvers_say(
    instance: Instance, objective: Objective, data: st.DataObject
) -> None:
    """Prices and schedules of solvers only propose: false ones make bounds weaker, never false."""
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    honest = WarmProgram.solve

    def other(self: WarmProgram, **how: object) -> BasicSolution:
        vertex = honest(self, **how)  # type: ignore[arg-type]
        return replace(vertex, duals=vertex.duals * rng.uniform(0.0, 2.0, len(vertex.duals)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WarmProgram, "solve", other)
        found = optimum(instance, objective, method="cp-sat", budget_s=10)
    assert found.certified_lower_s <= brute_force(instance, objective) <= found.upper_s


@pytest.mark.parametrize("weights", [(3, 3, 3), (3, 1, 7), (1, 7, 7)])
def test_without_solvers_all_lists_of_a_few_jobs_are_gone_through(
    weights: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 1, 2], gpus=[2, 1, 2], work=[5, 3, 4], weight=weights
    )
    nothing = cp_sat.Proof(None, -np.inf, False)
    monkeypatch.setattr(cp_sat, "solve", lambda *given, **options: nothing)
    monkeypatch.setattr(non_preemptive, "_branch", lambda *given, **options: None)
    found = optimum(Instance(Cluster.parse("1x3"), jobs), Objective.COMPLETION, budget_s=5.0)
    assert str(found.evidence) == "proven"


EVALUATED = ("job", "fluid", "mean-busy-time", "wide-gangs", "area")
"""Bounds that need no solver, before it is asked."""


@settings(max_examples=15, deadline=None)
@given(instance=SMALL, objective=st.sampled_from(OBJECTIVES))
def test_a_certified_optimum_names_what_was_evaluated_and_no_solver(
    instance: Instance, objective: Objective
) -> None:
    found = optimum(instance, objective, budget_s=2)
    kinds = (*EVALUATED, "time-indexed-lp", "branching", "list-schedules")
    assert found.certified_by in kinds
    simple = {each.kind: each.value_s for each in simple_bounds(instance, objective)}
    if found.certified_by in simple and objective is not Objective.MAKESPAN:
        slots = Slotted.of(instance)
        step_s = float(slots.step) * slots.slot_ticks / TICKS_PER_S
        assert found.certified_lower_s <= simple[found.certified_by] + step_s
    bounds = list(bounds_of(instance, objective, BoundEffort(1), preemptive=False))
    assert {each.kind for each in bounds if each.certified}.isdisjoint({"milp", "cp-sat"})
    assert {each.kind for each in bounds if each.record is None} <= {"milp", "cp-sat"}
    assert sum(each.certified for each in bounds) == 1


def test_an_optimum_by_lists_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(
        Cluster.parse("1x3"),
        Workload.from_columns(arrival_s=[0, 0, 1, 1], gpus=[2, 1, 2, 3], work=[5, 2, 4, 3]),
    )
    assert optimum(instance, "flow", budget_s=5).proven
    monkeypatch.setattr(non_preemptive._Search, "by_milp", lambda self, known, jobs: known)
    found = optimum(instance, "flow", budget_s=5)
    assert (found.certified, found.certified_by) == (True, "list-schedules")


@settings(max_examples=10, deadline=None)
@given(instance=instances(max_jobs=3, max_nodes=1, max_gpus=3, max_arrival_s=3, max_work_s=3))
def test_prices_of_an_interval_programme_bound_every_preemptive_schedule(
    instance: Instance,
) -> None:
    """At prices of an LP of a fixed size, which are the same on every run."""
    jobs = Relaxation.of(instance)
    found = interval_prices(jobs, math.inf, 400)
    assert found is not None
    again = interval_prices(jobs, math.inf, 400)
    assert again is not None
    assert found.grid_ticks == again.grid_ticks
    assert (found.prices == again.prices).all()
    grid = list(found.grid_ticks)
    ticks = lagrangian.interval_bound(
        jobs.release, jobs.work, jobs.gpus, jobs.weight, jobs.capacity, grid, found.prices
    )
    cost = every_slotted_preemptive_cost(instance, Objective.COMPLETION)
    assert ticks / TICKS_PER_S <= cost
