"""Runs whose jobs ask for CPUs and memory: bounds are those of GPUs alone, and theorems on gangs say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import compare
from shadowprice.analysis.guarantees.lookup import describe, guarantee
from shadowprice.analysis.limits import limits
from shadowprice.analysis.optimum import optimum
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload

CLUSTER = Cluster.parse("1x2+4cpu+8gb")
JOBS = Workload.from_columns(
    arrival_s=[0, 0, 1], gpus=[1, 1, 2], work=[5, 6, 3], cpus=[3, 3, 0], weight=1
)


def test_bounds_of_gpus_alone_bound_these_runs() -> None:
    outcome = simulate(JOBS, CLUSTER, "srtf")
    # No two of them fit at once, and the shortest first is the best on one machine.
    assert float(outcome.jct_s.sum()) == 25.0
    found = compare(JOBS, CLUSTER, ["srtf"], "flow", budget_s=0.2)
    plain = replace(JOBS, cpus=np.zeros(3))
    relaxed = compare(plain, CLUSTER, ["srtf"], "flow", budget_s=0.2)
    assert found.rows[0].proven_by.ticks == relaxed.rows[0].proven_by.ticks <= 25 * 2**20
    assert found.rows[0].factor > relaxed.rows[0].factor >= 1
    assert certify(outcome).ratio > 1
    assert all(each.cost_ticks >= each.bound_ticks for each in limits(outcome).values())


def test_theorems_and_optima_are_of_gangs_that_need_gpus_alone() -> None:
    plain = replace(JOBS, gpus=np.ones(3, dtype=np.int64), cpus=np.zeros(3))
    for jobs, told in ((plain, True), (replace(plain, cpus=JOBS.cpus), False)):
        run = prepare_run(jobs, CLUSTER, "asrpt")
        seen = describe(run, Objective.COMPLETION)
        assert seen is not None
        known = guarantee(simulate(jobs, CLUSTER, "asrpt"), seen)
        assert known is not None
        assert (known.factor is not None) == told
        assert told or known.missing == ("there are jobs that ask for CPUs or memory",)
    with pytest.raises(
        InputError, match=r"has jobs that ask for CPUs or memory .*not known to the exact optimum"
    ):
        optimum(Instance(CLUSTER, JOBS))
