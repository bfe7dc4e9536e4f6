"""The least makespan and the least largest finish-time ratio, against all plans of small instances."""

from itertools import product

import numpy as np
import pytest

from shadowprice.errors import InputError
from shadowprice.instances.utility import minus_completion
from shadowprice.solvers.hadar.offline.bottleneck import (
    finish_time_costs,
    least_worst,
    makespan_costs,
)
from support.hadar_plans import ROUND_S, make, schedules


def brute_force(instance, cost):
    """The least of the largest costs over all combinations of schedules."""
    rounds = cost.shape[1]
    table = minus_completion(instance, ROUND_S, rounds)
    options = [schedules(instance, job, table) for job in range(len(instance.workload))]
    sizes = instance.cluster.gpus_per_node
    best = np.inf
    for chosen in product(*options):
        worst = max(cost[job, end] for job, (end, _) in enumerate(chosen))
        if worst >= best:
            continue
        left = np.tile(sizes, (rounds, 1))
        for _, runs in chosen:
            for t, gpus in runs:
                for node, count in gpus:
                    left[t, node] -= count
        if (left >= 0).all():
            best = worst
    return best


@pytest.mark.parametrize("costs", [makespan_costs, finish_time_costs])
@pytest.mark.parametrize("seed", range(8))
def test_equals_brute_force(seed, costs):
    instance = make(seed, 2 + seed % 2, 4, ("1x2:a,1x1:b", "1x1:a,1x1:b,1x1:a")[seed % 2])
    cost = costs(instance, ROUND_S, 4)
    found = least_worst(instance, cost, ROUND_S)
    assert found.proven
    assert found.value == brute_force(instance, cost)
    if found.plan is not None:
        ends = [runs[-1][0] for runs in found.plan.runs]
        assert max(cost[job, end] for job, end in enumerate(ends)) <= found.value


def test_sixteen_jobs_in_sixteen_rounds():
    instance = make(0, 16, 16, "2x2:a,2x2:b,2x2:c")
    found = least_worst(instance, makespan_costs(instance, ROUND_S, 16), ROUND_S)
    assert found.bound <= found.value
    assert found.proven


def test_no_time_leaves_a_bound():
    instance = make(0, 8, 8, "2x2:a,2x2:b")
    cost = makespan_costs(instance, ROUND_S, 8)
    hasty, sure = (
        least_worst(instance, cost, ROUND_S, time_limit_s=0.0),
        least_worst(instance, cost, ROUND_S),
    )
    assert hasty.bound <= sure.value <= hasty.value


def test_falling_costs_are_refused():
    instance = make(0, 2, 3, "1x4:a")
    with pytest.raises(InputError, match="job 1, round 2 has 1"):
        least_worst(instance, np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 1.0]]), ROUND_S)
    with pytest.raises(InputError, match="shape"):
        least_worst(instance, np.ones((3, 3)), ROUND_S)
