"""Hadar with jobs on the GPUs that its prices leave idle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import PolicyError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.about import about
from shadowprice.solvers.hadar.hadar import Hadar
from shadowprice.solvers.hadar.node_classes import NodeClasses
from shadowprice.solvers.hadar.prices import ExponentialPrices, UtilityBounds
from shadowprice.solvers.hadar.round_selection import QueuedJob, dual_subroutine
from shadowprice.solvers.hadar.work_conserving import filled
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.registry import policy as policy_by_name

NODES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=4)
JOBS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.0, 1.0, 3.0])).filter(any),
        st.floats(0.001, 5.0),
    ),
    max_size=7,
)


@given(nodes=NODES, asked=JOBS)
def test_what_was_chosen_stays_and_nothing_that_is_left_fits(
    nodes: list[tuple[int, int]], asked: list[tuple[int, tuple[float, float], float]]
) -> None:
    type_of_node, capacity = np.array(nodes).T
    bounds = UtilityBounds(np.array([0.01, 0.02]), np.array([2.0, 1.0]), known=True)
    prices = ExponentialPrices.of(bounds, type_of_node, capacity)
    classes = NodeClasses(capacity, type_of_node, prices)
    queue = [QueuedJob(g, np.array(rate), worth * np.array(rate)) for g, rate, worth in asked]
    chosen = dual_subroutine(classes, classes.empty_cluster(), queue, 4, 0.1)
    found = filled(classes, chosen, queue, 0.1)
    assert found.gangs[: len(chosen.gangs)] == chosen.gangs
    positions = [position for position, _ in found.gangs]
    assert len(set(positions)) == len(positions)
    # Capacity by type, counted from the nodes themselves.
    free = [int(capacity[type_of_node == kind].sum()) for kind in (0, 1)]
    for position, parts in found.gangs:
        assert sum(size for _, size in parts) == queue[position].gpus
        for kind, size in parts:
            assert queue[position].rate[kind] > 0
            free[kind] -= size
    assert min(free) >= 0
    assert sum(free) == found.state @ classes.free
    for position in set(range(len(queue))) - set(positions):
        usable = queue[position].rate > 0
        assert sum(itertools.compress(free, usable)) < queue[position].gpus


class Watched(Hadar):
    """Asserts in every round that no job waits beside idle GPUs that it could use."""

    def decide(self, state: State) -> Decision:
        decision = super().decide(state)
        held: dict[int, int] = {}
        after = {job: at for job, at in state.running.items() if job not in decision.stops}
        after |= decision.starts
        for pieces in after.values():
            for node, gpus in pieces:
                held[node] = held.get(node, 0) + gpus
        idle = 4 - held.get(0, 0), 4 - held.get(1, 0)
        begins = state.now_s % self.round_s == 0
        for job in state.live().jobs.tolist():
            if begins and job not in after:
                assert state.gang[job] > sum(idle)
        return decision


def jobs_of(seed: int) -> Workload:
    """Jobs whose iterations do not compare: many small steps beside few large ones."""
    rng = np.random.default_rng(seed)
    base = rng.choice([0.1, 100.0], 20)
    return Workload.from_columns(
        arrival_s=rng.integers(0, 10, 20) * 360.0,
        gpus=rng.choice([1, 2, 4], 20),
        work=base * rng.integers(100, 4000, 20),
        throughput=base[:, None] * np.array([1.0, 0.5]),
        gpu_types=("v100", "p100"),
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_job_waits_beside_gpus_it_could_use_when_a_round_begins(seed: int) -> None:
    instance = Instance(
        Cluster.parse("1x4:v100,1x4:p100"), jobs_of(seed), Overheads(restart_s=10.0)
    )
    schedule = run(instance, Watched(fill=True, aligned=True)).schedule
    verify(instance, schedule)
    # What is asserted does not hold of Algorithm 1 as it is published.
    with pytest.raises(PolicyError, match="AssertionError"):
        run(instance, Watched(aligned=True))


def test_the_option_is_off_unless_asked_for_and_promises_nothing() -> None:
    assert not Hadar().fill
    assert policy_by_name("hadar:fill=true") == Hadar(fill=True)
    assert about(Hadar(fill=True)).guarantee.startswith("none, with fill or without.")
