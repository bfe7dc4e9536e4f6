"""Simulations of real runs charge what was measured, and their policy knows of no charge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.hosts.reports.simulated_run import simulate_as_executed
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.registry import policy as policy_named

CHARGES = Overheads(start_s=2.0, restart_s=0.25)
LAB = Workload.from_columns(
    arrival_s=[0, 0, 1, 6, 9, 12],
    gpus=[1, 1, 2, 2, 4, 1],
    work=[20.5, 15.25, 25.5, 8.25, 6.125, 10.25],
)
"""Six jobs as those of the lab on whose four slots real runs and dry runs were compared."""


@dataclass(frozen=True)
class Watching:
    """SRTF that writes down what it hears of charges."""

    inner: Policy = field(default_factory=lambda: policy_named("srtf"))
    heard: set[object] = field(default_factory=set, compare=False)
    name: str = "watching"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Decide as SRTF does."""
        self.heard.add(state.environment.overheads)
        self.heard.update(state.live().owed_s.tolist())
        return self.inner.decide(state)


def test_a_policy_hears_of_no_charge_and_its_runs_are_charged() -> None:
    for simulated, heard in ((simulate, True), (simulate_as_executed, False)):
        policy = Watching()
        outcome = simulated(LAB, Cluster.parse("1x4"), policy, RunOptions(overheads=CHARGES))
        assert outcome.instance.overheads == CHARGES
        assert outcome.schedule.overhead_s.sum() > 6 * CHARGES.start_s
        assert (policy.heard == {Overheads(), 0.0}) is not heard


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 4), st.integers(1, 20)), min_size=1, max_size=6
    ),
    st.sampled_from(["fifo", "srtf", "las2d", "easy"]),
    st.sampled_from([0.0, 4.0]),
)
def test_policies_that_count_no_charges_decide_as_they_do_where_they_are_told(
    jobs: list[tuple[int, int, int]], policy: str, round_s: float
) -> None:
    arrival_s, gpus, work = zip(*sorted(jobs), strict=True)
    workload = Workload.from_columns(arrival_s=arrival_s, gpus=gpus, work=work)
    options = RunOptions(overheads=CHARGES, round_s=round_s)
    told = simulate(workload, Cluster.parse("1x4"), policy, options)
    untold = simulate_as_executed(workload, Cluster.parse("1x4"), policy, options)
    assert np.array_equal(told.jct_s, untold.jct_s)


def test_hadar_stops_jobs_where_it_knows_of_no_charge() -> None:
    """On four real slots the third job is stopped for the last, which a simulation that tells charges never does."""
    options = RunOptions(overheads=CHARGES, round_s=4.0)
    told, untold = (
        simulated(LAB, Cluster.parse("1x4"), "hadar:round_s=4", options)
        for simulated in (simulate, simulate_as_executed)
    )
    assert np.bincount(told.schedule.job).max() == 1
    assert np.bincount(untold.schedule.job).argmax() == 2
    assert told.jct_s[2] < untold.jct_s[2]
    assert told.jct_s[5] > untold.jct_s[5]
