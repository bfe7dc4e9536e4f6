"""A sealed policy whose process serves run after run, as searches among many instances want it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shadowprice.errors import PolicyError
from shadowprice.execution.engine import run
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload

COUNTS = """
from shadowprice.solvers.policy import Decision, State

RUNS = []


class Counts:
    name, knows, preemptive = "counts", frozenset(), False

    def decide(self, state: State) -> Decision:
        if state.arrived and 0 in state.arrived:
            RUNS.append(state.total_gpus)
        if len(RUNS) == 3:
            raise ValueError(f"{len(RUNS)} runs")
        return Decision(state).start_all()
"""


def instance(jobs: int) -> Instance:
    workload = Workload.from_columns(arrival_s=range(jobs), gpus=1, work=[2] * jobs, source="test")
    return Instance(Cluster.parse("1x2"), workload)


def test_a_process_that_serves_many_runs_remembers_and_one_a_run_does_not(tmp_path: Path) -> None:
    path = tmp_path / "counts.py"
    path.write_text(COUNTS, encoding="utf-8")
    with SealedPolicy(f"{path}:Counts") as fresh:
        assert len({len(run(instance(3), fresh).schedule) for _ in range(4)}) == 1
    with SealedPolicy(f"{path}:Counts", fresh_runs=False) as lasting:
        for _ in range(2):
            assert len(run(instance(3), lasting).schedule) == 3
        with pytest.raises(PolicyError, match="3 runs"):
            run(instance(3), lasting)
        # One that failed is begun anew.
        assert len(run(instance(3), lasting).schedule) == 3


def test_runs_in_one_process_are_those_of_fresh_ones() -> None:
    with SealedPolicy("srtf", fresh_runs=False) as lasting, SealedPolicy("srtf") as fresh:
        for jobs in (2, 5, 3):
            one, other = (run(instance(jobs), each).schedule for each in (lasting, fresh))
            assert one.to_frame().equals(other.to_frame())
