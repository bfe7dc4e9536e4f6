"""Bounds that know widths, CPUs and memory: below every schedule, and exact where one of these decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.lower_bounds import amounts as lb_amount
from shadowprice.solvers.offline.modes.amounts import MOST_POINTS, amount_modes
from support.conditioned_jobs import CLUSTER, FLAT, PROFILE, Restless
from support.mode_bounds import never_above
from support.mode_instances import HUNGRY, grown_or_profiled
from support.slotted_placements import least_placed_costs
from support.typed_jobs import LeastCosts


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_never_above_exhaustive_search(data: st.DataObject) -> None:
    instance = data.draw(grown_or_profiled(data.draw(st.integers(1, 2))))
    least = least_placed_costs(instance, 8, start_slots=data.draw(st.integers(0, 1)))
    jobs = amount_modes(instance)
    assert jobs is not None
    never_above(jobs, least, data)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=st.integers(0, 99))
def test_never_above_a_restless_policy(data: st.DataObject, seed: int) -> None:
    """Half of what is proportional, or all of it, on any nodes, at widths that change, with charges."""
    n = 4
    draw = {
        name: data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 9), ("gpus", 1, 4), ("work", 1, 30))
    }
    jobs = Workload.from_columns(**draw)
    grown = Elasticity(np.maximum(jobs.gpus, 4), np.full(n, 0.8))
    of = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    conditions = {"sensitivity": Sensitivity((PROFILE, FLAT), of), "elasticity": grown}
    charges = Overheads(start_s=1.0, restart_s=2.0, migration_s=1.0)
    instance = Instance(CLUSTER, jobs, charges, **conditions)
    schedule = run(instance, Restless(seed)).schedule
    ends = np.zeros(n)
    np.maximum.at(ends, schedule.job, schedule.end_s)
    modes = amount_modes(instance)
    assert modes is not None
    exact = [Fraction(end) for end in ends.tolist()]
    never_above(modes, LeastCosts(sum(exact, Fraction(0)), max(exact)), data)


def test_jobs_that_all_want_the_same_cpus() -> None:
    """Four jobs of 10 s that need both CPUs of their share: three CPUs make them wait, GPUs would not."""
    jobs = Workload.from_columns(arrival_s=[0] * 4, gpus=[1] * 4, work=[10] * 4)
    cluster = Cluster((Node(4, cpus=4.0, memory_gb=20.0),))
    sensitivity = Sensitivity((HUNGRY,), np.zeros(4, dtype=int))
    instance = Instance(cluster, jobs, sensitivity=sensitivity)
    found = {
        bound.kind: bound.value_s
        for bound in bounds_of(instance, Objective.MAKESPAN, BoundEffort(0))
    }
    # Either two at a time at full speed or four at half of it: 20 s.
    assert found["priced-span-of-amounts"] == pytest.approx(20, rel=1e-4)
    assert found["priced-span-of-amounts"] <= 20
    assert found["area"] == pytest.approx(10, rel=1e-4)


def test_width_has_its_price() -> None:
    """Four jobs on four GPUs that grow to 4 at 2 e = 1.2 a doubling: together as they are, 10 s, is best."""
    jobs = Workload.from_columns(arrival_s=[0] * 4, gpus=[1] * 4, work=[10] * 4)
    grown = Elasticity(np.full(4, 4), np.full(4, 0.6))
    instance = Instance(Cluster.parse("1x4"), jobs, elasticity=grown)
    found = {
        bound.kind: bound.value_s
        for bound in bounds_of(instance, Objective.MAKESPAN, BoundEffort(0))
    }
    assert found["priced-span-of-amounts"] == pytest.approx(10, rel=1e-4)
    assert found["area"] == 10
    one = Instance(
        Cluster.parse("1x4"),
        jobs.select(np.array([True, False, False, False])),
        elasticity=Elasticity(np.array([4]), np.array([0.6])),
    )
    modes = amount_modes(one)
    assert modes is not None
    # Alone it may have all four GPUs.
    assert lb_amount.bound(one, (1,)) <= 10 / 1.44 + 1e-5
    assert sorted(np.flatnonzero(modes.time[0])) == [0, 1, 2, 3]


def test_many_points_become_few_that_are_no_worse() -> None:
    """A job that may hold 1 to 60 GPUs has 24 modes, and each width is no better than some of them."""
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[60])
    grown = Elasticity(np.array([60]), np.array([0.9]))
    instance = Instance(Cluster.parse("1x60"), jobs, elasticity=grown)
    modes = amount_modes(instance)
    assert modes is not None
    assert modes.time.shape == (1, MOST_POINTS)
    speed = grown.speed(np.zeros(60, dtype=int), np.ones(60, dtype=int), np.arange(1, 61))
    for width, gain in enumerate(speed.tolist(), 1):
        ticks = 60 * TICKS_PER_S / gain
        better = (modes.time[0] <= ticks + 1) & (modes.use[0, :, 0] <= width * 2**20)
        assert better.any()


def test_no_bound_of_amounts_where_they_do_not_matter() -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    instance = Instance(Cluster.parse("1x2"), jobs)
    assert amount_modes(instance) is None
    with pytest.raises(ValueError, match="no job has a profile or may grow"):
        lb_amount.bound(instance, (1,))
