"""Every theorem against policies, optima, and its own tight cases."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice.proofs
from shadowprice.analysis.metrics import end_s
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.models.slotted import Slotted
from shadowprice.proofs.lower_bounds import fluid as lb_fluid
from shadowprice.proofs.lower_bounds import job as lb_job
from shadowprice.proofs.lower_bounds import lp as lb_lp
from shadowprice.proofs.lower_bounds import mbt as lb_mbt
from shadowprice.proofs.lower_bounds import srpt_one_machine
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.registry import policies

THEOREMS = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(shadowprice.proofs.__path__, "shadowprice.proofs.")
    # Theorems lie in folders by system; files beside the folders are verifiers and checkers.
    if module.name.count(".") == 3
    and not module.name.startswith(
        tuple(f"shadowprice.proofs.{name}." for name in ("checker", "testing", "verification"))
    )
]


@pytest.mark.parametrize(
    "theorem", THEOREMS, ids=lambda theorem: theorem.__name__.removeprefix("shadowprice.proofs.")
)
def test_a_theorem_states_its_status_and_proves_itself(theorem) -> None:  # type: ignore[no-untyped-def]
    assert theorem.STATUS
    assert "Proof" in theorem.__doc__
    assert callable(theorem.bound)
    assert callable(theorem.check)


def completion_s(instance: Instance, name: str) -> float:
    schedule = run(instance, policies()[name]).schedule
    return Objective.COMPLETION.cost_s(instance.workload, end_s(instance, schedule))


@given(instance=instances(), name=st.sampled_from(sorted(policies())), costly=st.booleans())
def test_no_policy_beats_a_bound(instance: Instance, name: str, costly: bool) -> None:
    if costly:
        instance = Instance(
            instance.cluster, instance.workload, Overheads(start_s=1.0, restart_s=3.0)
        )
    cost = completion_s(instance, name)
    for theorem in (lb_fluid, lb_job, lb_mbt):
        assert theorem.check(instance, cost), theorem.__name__


@settings(max_examples=12)
@given(instance=instances(max_nodes=1, max_gpus=1))
def test_srpt_attains_its_value(instance: Instance) -> None:
    assert completion_s(instance, "srtf") == srpt_one_machine.bound(instance)
    assert srpt_one_machine.bound(instance) == lb_fluid.bound(instance)
    for name in policies():
        assert srpt_one_machine.check(instance, completion_s(instance, name))


@given(instance=instances(max_jobs=6), data=st.data())
def test_prices_never_lift_the_bound_above_a_schedule(
    instance: Instance, data: st.DataObject
) -> None:
    jobs = Slotted.of(instance, 1.0)
    order = data.draw(st.permutations(range(jobs.jobs)))
    starts = list_schedule.place(jobs, list(order))
    horizon = int((starts + jobs.duration).max())
    prices = data.draw(st.lists(st.floats(-1, 9), min_size=horizon, max_size=horizon))
    assert lb_lp.check(jobs, np.array(prices), starts)


def test_tight_cases() -> None:
    """Full-width jobs released at 0: fluid and mean-busy-time are attained by shortest first."""
    jobs = Workload.from_columns(arrival_s=[0, 0, 0], gpus=[4, 4, 4], work=[1, 2, 3])
    instance = Instance(Cluster.parse("1x4"), jobs)
    assert (
        completion_s(instance, "srtf") == lb_fluid.bound(instance) == lb_mbt.bound(instance) == 10
    )
    alone = Instance(Cluster.parse("3x4"), jobs)
    assert completion_s(alone, "fifo") == lb_job.bound(alone) == 6


def test_the_bounds_are_not_comparable() -> None:
    """Each of the three is the best one somewhere."""
    cases = {
        lb_job: ([0, 50], [1, 1], [5, 5]),
        lb_fluid: ([0, 5], [4, 4], [10, 1]),
        lb_mbt: ([0] * 4, [2, 2, 2, 2], [9, 9, 9, 9]),
    }
    best = set()
    for arrival, gpus, work in cases.values():
        instance = Instance(
            Cluster.parse("1x4"), Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)
        )
        values = {theorem: float(theorem.bound(instance)) for theorem in cases}
        best.add(max(values, key=values.__getitem__))
    assert best == set(cases)
