"""Instances that grow by a job: its rates are those that are known of its kind by then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shadowprice.errors import InfeasibleJobError
from shadowprice.hosts.first_instance import instance_of, instance_with
from shadowprice.hosts.live.job_file import JobFile, jobs_of
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.protocol import Device, DiscoveredNode
from shadowprice.instances.instance import Instance

NODES = tuple(
    DiscoveredNode(name, gpu_type, (Device(name, 0, f"{name}/0"),), 1.0, 1.0)
    for name, gpu_type in (("n0", "k80"), ("n1", "v100"))
)


def jobs(*entries: dict[str, object]) -> JobFile:
    given = [{"command": ["x"], "iterations": 100} | entry for entry in entries]
    return JobFile(Path("x"), jobs_of({"jobs": given}, "x", Path("/")), "")


def grown(share: float | None = None, **more: object) -> tuple[Instance, Instance, list[str]]:
    """An instance whose rates were learned, the one with a further job, and notes."""
    settings = Settings(Path("x"), "fifo", "local", Path("s"), share=share)
    first = jobs({"name": "a", "model": "m", "throughput": {"k80": 10, "v100": 20}})
    before, _ = instance_of(settings, first, NODES)
    assert before.workload.throughput is not None
    learned = replace(before.workload, throughput=before.workload.throughput * 3)
    before = replace(before, workload=learned)
    further = {"name": "b", "model": "m", "arrival_s": 5, "gpu_types": ["v100"]}
    (job,) = jobs(further | more).jobs
    return before, *instance_with(before, job, settings, None)


def test_a_further_job_has_the_rates_that_were_learned_of_its_kind() -> None:
    before, after, notes = grown()
    table = after.workload.throughput
    assert table is not None
    assert after.cluster.gpu_types == ("k80", "v100")
    assert np.array_equal(table, [[30.0, 60.0], [0.0, 60.0]])  # and keeps off where it may not run
    assert notes == []
    assert after.workload.id.tolist() == ["a", "b"]
    assert after.workload.select(np.array([0])) == before.workload


def test_a_further_job_shares_with_those_before() -> None:
    before, after, _ = grown(share=0.5, model="n", throughput=40)
    assert before.sharing_rates is not None
    assert after.sharing_rates is not None
    pairs = after.sharing_rates.pairs
    assert pairs["v100", ("m", 1), ("n", 1)] == (30.0, 20.0)
    assert ("k80", ("m", 1), ("n", 1)) not in pairs  # where it may not run
    same = "v100", ("m", 1), ("m", 1)
    assert pairs[same] == before.sharing_rates.pairs[same]  # perhaps it was measured


def test_a_further_job_that_fits_nowhere_is_refused() -> None:
    settings = Settings(Path("x"), "fifo", "local", Path("s"))
    empty, _ = instance_of(settings, JobFile(Path("x"), (), ""), NODES)
    (job,) = jobs({"name": "b", "gpus": 2, "gpu_types": ["v100"]}).jobs
    with pytest.raises(InfeasibleJobError, match="b"):
        instance_with(empty, job, settings, None)
