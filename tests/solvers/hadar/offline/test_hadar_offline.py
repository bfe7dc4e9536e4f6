"""Hadar's offline optimum against brute force, its programmes and an independent check of plans."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import (
    UtilityTable,
    deadline,
    effective_throughput,
    finish_time_fairness,
    from_rounds,
    minus_completion,
)
from shadowprice.instances.workload import Workload
from shadowprice.models.hadar import GpuSchedule, dual, schedule_form, time_indexed
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.cuts import Conflicts
from shadowprice.solvers.hadar.offline.feasibility import Deadlines, gpus_of, plan_on_nodes
from shadowprice.solvers.hadar.offline.heuristics import Plans
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.optimum import optimum
from shadowprice.solvers.hadar.offline.pricing import states_of
from shadowprice.solvers.programs.compile import compile_model
from support.hadar_plans import ROUND_S, brute_force, check, make, schedules


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 4), st.booleans())
def test_equals_brute_force(seed, rounds, fair):
    cluster = ("1x2:a,1x1:b", "1x1:a,1x1:b,1x1:a")[seed % 2]
    instance = make(seed, 2 + (rounds == 3), rounds, cluster)
    utility = finish_time_fairness if fair else effective_throughput
    table = utility(instance, ROUND_S, rounds)
    found = optimum(instance, table)
    assert found.proven
    assert found.value == pytest.approx(brute_force(instance, table), rel=1e-7, abs=1e-9)
    assert check(instance, table, found.plan) == pytest.approx(found.value, rel=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_deadlines_are_decided_as_by_brute_force(seed, data):
    cluster, rounds = ("1x2:a,1x1:b", "1x1:a,1x1:b,1x1:a")[seed % 2], 3
    instance = make(seed, 3, rounds, cluster)
    n = len(instance.workload)
    ends = data.draw(st.lists(st.integers(0, rounds - 1), min_size=n, max_size=n))
    in_time = from_rounds(np.arange(rounds)[None, :] <= np.array(ends)[:, None], ROUND_S)
    jobs = RoundJobs.of(instance, in_time)
    decide = Deadlines(jobs, CapacityRows.of(jobs), [states_of(jobs, job) for job in range(n)])
    assert decide.usable
    found = decide.check(dict(enumerate(ends)), 60.0)
    assert found.known
    assert (found.schedules is not None) == (brute_force(instance, in_time) == n)
    if found.schedules is None:
        kept = np.isin(np.arange(n), found.core)
        alone = from_rounds(in_time.values[:, :-1] * kept[:, None], ROUND_S)
        assert brute_force(instance, alone) < len(found.core)
    else:
        plan = plan_on_nodes(instance, gpus_of(jobs, found.schedules))
        assert check(instance, in_time, plan) == n


@pytest.mark.parametrize("seed", range(4))
def test_cuts_hold_for_every_plan_and_cut_off_their_conflict(seed):
    rounds, n = 3, 3
    instance = make(seed, n, rounds, "1x2:a,1x1:b")
    jobs = RoundJobs.of(instance, effective_throughput(instance, ROUND_S, rounds))
    rows, states = CapacityRows.of(jobs), [states_of(jobs, job) for job in range(n)]
    decide = Conflicts(Deadlines(jobs, rows, states), Plans(jobs, rows, states))
    kept, conflicts = [], []
    for ends in map(np.array, product(range(rounds + 1), repeat=n)):
        in_time = np.arange(rounds)[None, :] <= np.where(ends < rounds, ends, -1)[:, None]
        all_kept = brute_force(instance, from_rounds(in_time, ROUND_S)) == (ends < rounds).sum()
        assert decide.decide(ends, 60.0) == all_kept
        (kept if all_kept else conflicts).append(ends)
    weights, limits = decide.cuts(conflicts)
    for ends in kept:
        assert (weights[:, np.arange(n), ends].sum(axis=1) <= limits).all()
    for ends, weight, limit in zip(conflicts, weights, limits, strict=True):
        assert weight[np.arange(n), ends].sum() == limit + 1


@pytest.mark.parametrize("seed", range(3))
def test_prices_of_the_root_bound_the_optimum(seed):
    """Weak duality over all schedules there are, and not far above the relaxation."""
    instance = make(seed, 3, 3, "1x2:a,1x2:b")
    table = effective_throughput(instance, ROUND_S, 3)
    found = optimum(instance, table)
    assert found.prices.shape == (3, 2)
    assert (found.prices >= 0).all()
    kind = instance.cluster.type_of_node
    dual_value = float((found.prices @ instance.cluster.gpus_per_type).sum())
    for job in range(len(instance.workload)):
        payoffs = [
            table.values[job, end]
            - sum(count * found.prices[t, kind[node]] for t, gpus in runs for node, count in gpus)
            for end, runs in schedules(instance, job, table)
        ]
        dual_value += max(0.0, *payoffs, 0.0)
    assert found.value <= dual_value + 1e-9
    assert dual_value <= 1.5 * found.relaxation


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_middling_instances_are_proven(seed):
    instance = make(seed, 8, 12, "1x3:a,1x2:b,1x3:c")
    table = minus_completion(instance, ROUND_S, 12)
    found = optimum(instance, table, time_limit_s=120.0)
    exact = compile_model(time_indexed(RoundJobs.of(instance, table))).solve()
    assert found.proven
    assert found.value == pytest.approx(exact.objective, rel=1e-6)


@pytest.mark.parametrize("seed", [*(pytest.param(k, marks=pytest.mark.slow) for k in (0, 2, 3)), 1])
@pytest.mark.parametrize("utility", [effective_throughput, minus_completion])
def test_equals_the_time_indexed_programme(seed, utility):
    instance = make(seed, 5, 6, "1x3:a,1x1:b,1x3:c")
    table = utility(instance, ROUND_S, 6)
    found = optimum(instance, table)
    jobs = RoundJobs.of(instance, table)
    exact = compile_model(time_indexed(jobs)).solve()
    loose = compile_model(time_indexed(jobs, relaxed=True)).solve()
    assert found.proven
    assert found.value == pytest.approx(exact.objective, rel=1e-6)
    assert found.value <= found.relaxation * (1 + 1e-9)
    assert found.relaxation <= loose.objective * (1 + 1e-9)
    assert check(instance, table, found.plan) == pytest.approx(found.value, rel=1e-9)


def test_nodes_of_a_type_are_as_good_as_one_pool():
    for seed in range(2):
        instance = make(seed, 3, 4, "2x1:a,1x2:b,1x1:a")
        table = minus_completion(instance, ROUND_S, 4)
        jobs, cluster = RoundJobs.of(instance, table), instance.cluster
        nodes = {f"node-{k}": (one.gpu_type, one.gpus) for k, one in enumerate(cluster.nodes)}
        by_node = time_indexed(jobs, pools=nodes)
        assert compile_model(by_node).solve().objective == pytest.approx(
            compile_model(time_indexed(jobs)).solve().objective
        )


def test_relaxation_is_no_worse_than_the_schedule_forms():
    for seed in range(2):
        instance = make(seed, 3, 3, "1x2:a,1x2:b")
        table = effective_throughput(instance, ROUND_S, 3)
        found = optimum(instance, table)
        columns = [
            GpuSchedule(
                instance.workload.id[job],
                float(table.values[job, end]),
                tuple((t, f"node-{node}", count) for t, gpus in runs for node, count in gpus),
            )
            for job in range(len(instance.workload))
            for end, runs in schedules(instance, job, table)
        ]
        nodes = {f"node-{k}": one.gpus for k, one in enumerate(instance.cluster.nodes)}
        size = (nodes, instance.workload.id.tolist(), 3)
        relaxed = compile_model(schedule_form(columns, *size, relaxed=True)).solve()
        exact = compile_model(schedule_form(columns, *size)).solve()
        assert exact.objective - 1e-6 <= found.relaxation <= relaxed.objective + 1e-6
        assert relaxed.objective == pytest.approx(
            compile_model(dual(columns, *size)).solve().objective
        )
        assert found.value == pytest.approx(exact.objective, rel=1e-6)


def test_mixed_gangs_run_at_the_slowest_type():
    workload = Workload.from_columns(
        arrival_s=[0.0],
        gpus=[3],
        work=[2.0 * ROUND_S],
        throughput=[[2.0, 1.0]],
        gpu_types=("a", "b"),
    )
    instance = Instance.feasible(Cluster.parse("1x2:a,1x3:b"), workload)[0]
    table = minus_completion(instance, ROUND_S, 4)
    # Three GPUs need type b, so two rounds; on type a alone it would be one.
    assert optimum(instance, table).value == table.values[0, 1]


def test_deadlines_that_cannot_all_be_kept():
    workload = Workload.from_columns(
        arrival_s=[0.0, 0.0],
        gpus=[1, 1],
        work=[ROUND_S, ROUND_S],
        weight=[2.0, 3.0],
        deadline_s=[ROUND_S, ROUND_S],
        throughput=[[1.0], [1.0]],
        gpu_types=("a",),
    )
    instance = Instance(Cluster.parse("1x1:a"), workload)
    assert optimum(instance, deadline(instance, ROUND_S, 3)).value == 3.0


def test_no_time_gives_a_bound_that_holds():
    instance = make(1, 6, 6, "1x3:a,1x1:b,1x3:c")
    table = effective_throughput(instance, ROUND_S, 6)
    hasty, sure = optimum(instance, table, time_limit_s=0.0), optimum(instance, table)
    assert hasty.value <= sure.value <= hasty.bound < 2.0 * sure.value
    assert check(instance, table, hasty.plan) == pytest.approx(hasty.value)


def test_increasing_utilities_are_refused():
    with pytest.raises(InputError, match=r"job 1, round 2 has value 4\.0"):
        from_rounds([[3.0, 2.0, 2.0], [3.0, 2.0, 4.0]])
    with pytest.raises(InputError, match="finite number >= 0"):
        from_rounds([[1.0, float("nan")]])
    with pytest.raises(InputError, match="0 beyond the last round"):
        UtilityTable(np.ones((1, 3)))


def test_utilities_of_other_jobs_are_refused():
    instance = make(0, 3, 3, "1x4:a")
    with pytest.raises(InputError, match="has 1 jobs, expected 3"):
        optimum(instance, from_rounds([[1.0, 1.0]], ROUND_S))


def test_value_at_a_time_is_that_of_its_round():
    table = from_rounds([[3.0, 2.0]], ROUND_S)
    assert [table.value(0, s) for s in (1.0, 64.0, 64.5, 128.0, 129.0)] == [3, 3, 2, 2, 0]
