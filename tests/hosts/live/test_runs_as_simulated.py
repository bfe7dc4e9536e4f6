"""Law: on hosts that take no time, a real run is the simulation of its job file, CPUs and memory included."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.analysis.outcome import Outcome
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import measured_run, write_measured
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.protocol import LeaseKey
from shadowprice.hosts.reports import plan as planning
from shadowprice.hosts.reports.plan import plan
from shadowprice.hosts.reports.results import replay
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.workload_files import read_workload
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import policies
from support.fake_host import FakeHost, VirtualClock, two_nodes
from support.fake_run import LIMITS, FakeRun
from support.in_memory_runs import check, job

pytestmark = pytest.mark.usefixtures("no_power_cuts")

ROUND_S = 4.0
NODES = tuple(
    replace(node, cpus=8.0, memory_gb=16.0, whole_cpus=whole)
    for node, whole in zip(two_nodes(), (False, True), strict=True)
)
BY_GPUS_ALONE = {"hadar-committed", "oasis"}
ALL = [
    name
    for name, one in sorted(policies().items())
    # The last place of a service is not that of the time that was measured, and decides ties.
    if name not in BY_GPUS_ALONE and Knowledge.DISTRIBUTION not in one.knows
]
FEW = ("fifo", "srtf", "hadar:round_s=4,fill=true", "gandiva:quantum_s=4")


class PromptClock(VirtualClock):
    """Time in which waiting for a lease that ends at once takes none."""

    def sleep(self, seconds: float) -> None:
        if seconds > 0.01:
            super().sleep(seconds)


class PromptHost(FakeHost):
    """Leases begin and end at once."""

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        super().stop(keys, grace_s, reason)
        for key in keys:
            self._advance(self.processes[key])


def some_jobs(seed: int) -> list[dict[str, Any]]:
    r = random.Random(seed)
    return [
        job(
            f"j{k}",
            40 * r.randint(1, 8),
            r.choice([1, 1, 2]),
            arrival_s=ROUND_S * r.choice([0, 0, 1, 3]),
            cpus=r.choice([0, 0, 1.5, 4, 7]),
            memory_gb=r.choice([0, 0, 2, 10]),
        )
        for k in range(6)
    ]


def run_of(path: Path, jobs: list[dict[str, Any]], policy: str) -> FakeRun:
    run = FakeRun(path, jobs, policy=policy, nodes=NODES, round_s=ROUND_S)
    run.clock = PromptClock()
    run.host = PromptHost(run.clock, run.nodes, run.host.jobs, run.state, start_s=0.0, save_s=0.0)
    return run


def leases(told: list[dict[str, Any]]) -> list[tuple[str, str, int, float, float]]:
    """Job, node, devices, begin and end of each piece of a lease, in order."""
    began: dict[tuple[str, int], tuple[float, Counter[str]]] = {}
    found = []
    for event in told:
        key = event["job"], event["epoch"]
        if event["kind"] == "granted":
            nodes = Counter(device.split("/")[0] for device in event["data"]["devices"])
            began[key] = event["time_s"], nodes
        elif event["kind"] == "released":
            start_s, nodes = began.pop(key)
            found += [(key[0], node, n, start_s, event["time_s"]) for node, n in nodes.items()]
    return sorted(found)


def rows(outcome: Outcome) -> list[tuple[str, str, int, float, float]]:
    """The same of a simulation."""
    s, names = outcome.schedule, outcome.instance.workload.id
    columns = (s.job, s.node, s.gpus, s.start_s, s.end_s)
    each = zip(*(column.tolist() for column in columns), strict=True)
    return sorted((str(names[job]), f"n{node}", *rest) for job, node, *rest in each)


def dry(run: FakeRun, policy: str, monkeypatch: pytest.MonkeyPatch) -> planning.ExecutionPlan:
    monkeypatch.setattr(planning, "discovered", lambda hosts: (NODES, ()))
    file = run.path / "jobs.yaml"
    return plan(Settings(file, policy, "fake", run.state, round_s=ROUND_S, limits=LIMITS))


@pytest.mark.parametrize(
    ("policy", "seed"),
    [
        *((policy, seed) for seed, policy in enumerate(FEW)),
        *(pytest.param(p, k, marks=pytest.mark.slow) for p in (*FEW, *ALL) for k in range(4, 8)),
    ],
)
def test_a_real_run_is_what_its_dry_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, seed: int
) -> None:
    run = run_of(tmp_path / "run", some_jobs(seed), policy)
    planned = dry(run, policy, monkeypatch)
    assert not any("CPU" in note for note in planned.notes)
    assert leases(check(run)) == rows(planned.outcome)


def test_the_drift_of_a_run_that_waits_for_cpus_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other on the node that both may use, in the run, its dry run and its replay."""
    jobs = [job(name, 400, cpus=6, gpu_types=["A100"]) for name in "ab"]
    run = run_of(tmp_path / "run", jobs, "fifo")
    planned = dry(run, "fifo", monkeypatch)
    assert planned.outcome.jct_s.tolist() == [40.0, 80.0]
    check(run)
    ledger = RunLedger.open(run.state / "run.db", readonly=True)
    measured = measured_run(ledger)
    ledger.close()
    drift = replay(measured)
    assert drift.frame["real_jct_s"].tolist() == [40.0, 80.0]
    assert drift.frame["simulated_jct_s"].tolist() == pytest.approx([40.0, 80.0], rel=0.01)
    command = write_measured(measured, tmp_path / "measured")
    assert "jobs.csv" in command
    assert read_workload(tmp_path / "measured" / "jobs.csv").cpus.tolist() == [6.0, 6.0]
    nodes = Cluster.load(tmp_path / "measured" / "cluster.toml").nodes
    assert [node.whole_cpus for node in nodes] == [False, True]


def test_who_holds_nothing_beside_others_does_so_in_the_replay(tmp_path: Path) -> None:
    """Where jobs may share GPUs, though none did: who asks for nothing needs no share of the CPUs."""
    jobs = [job("a", 400, cpus=7, gpu_types=["A100"]), job("b", 400, gpu_types=["A100"])]
    run = replace(run_of(tmp_path / "run", jobs, "fifo"), share=0.5)
    run.clock = PromptClock()
    run.host = PromptHost(run.clock, NODES, run.host.jobs, run.state, start_s=0.0, save_s=0.0)
    check(run)
    ledger = RunLedger.open(run.state / "run.db", readonly=True)
    drift = replay(measured_run(ledger))
    ledger.close()
    assert drift.frame["real_jct_s"].tolist() == [40.0, 40.0]
    assert drift.frame["simulated_jct_s"].tolist() == pytest.approx([40.0, 40.0], rel=0.01)
