"""Profiles named in a job file: the policy gives CPUs and memory out, and rates are known by them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shadowprice.errors import InputError
from shadowprice.hosts.live.job_file import load_job_file
from shadowprice.hosts.live.measured_run import measured_run
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import LaunchSpec
from shadowprice.hosts.reports.results import results
from shadowprice.instances.speeds.profiles import Profiles
from support.fake_host import FakeHost, held_cpu_memory, two_nodes
from support.fake_run import FakeRun, events, log

pytestmark = pytest.mark.usefixtures("no_power_cuts")

NODES = tuple(replace(node, gpu_type="A100", cpus=8.0, memory_gb=16.0) for node in two_nodes())
TABLES = {
    "hungry": {"cpus_per_gpu": [1, 4, 6], "memory_gb_per_gpu": [4], "speed": [[4], [8], [12]]},
    "modest": {"cpus_per_gpu": [1, 2], "memory_gb_per_gpu": [2], "speed": [[0.9], [1.0]]},
}


def job(name: str, model: str, iterations: int = 100, **more: Any) -> dict[str, Any]:
    return {"name": name, "model": model, "iterations": iterations, "throughput": 10.0, **more}


class ProfiledHost(FakeHost):
    """Hungry jobs are as fast as their profile says, by the CPUs of their leases."""

    def start(self, orders: list[LaunchSpec]) -> None:  # type: ignore[override]
        super().start(orders)
        for order in orders:
            known = self.jobs[order.key.job]
            if order.key.job.startswith("h"):
                cpus = held_cpu_memory(order)[0] / 1000 / len(order.devices)
                known.rate = 15.0 if cpus >= 6 else 10.0 if cpus >= 4 else 5.0


def run_of(path: Path, jobs: list[dict[str, Any]], **more: Any) -> FakeRun:
    given = {"policy": "synergy-tune:srtf,round_s=8", **more}
    run = FakeRun(path, jobs, nodes=NODES, **given)
    tables = [{"model": model, **table} for model, table in TABLES.items()]
    (path / "profiles.json").write_text(json.dumps({"profiles": tables}))
    document = yaml.safe_load((path / "jobs.yaml").read_text())
    (path / "jobs.yaml").write_text(yaml.safe_dump({"profiles": "profiles.json", **document}))
    host = run.host
    run.host = ProfiledHost(host.clock, host.nodes, host.jobs, host.state)
    run.host.on_poll = host.on_poll
    return run


def test_the_policy_gives_cpus_out(tmp_path: Path) -> None:
    """On two GPUs of a node 6 of 8 CPUs go to the job that is faster with them."""
    jobs = [job("h", "hungry", 200), job("m", "modest", 100), job("m2", "modest", 100)]
    ledger = run_of(tmp_path / "run", jobs).execute()
    first = {e["job"]: e["data"] for e in reversed(events(ledger, "granted"))}
    assert [cpus for cpus, _ in first["h"]["amounts"].values()] == [6000]
    assert first["h"]["speed"] == 1.5
    assert all(cpus <= 2000 for cpus, _ in first["m"]["amounts"].values())
    verify_ledger(tmp_path / "run/state/run.db")
    # 15 iterations a second with 6 CPUs are 10 with the share of a GPU, which the next run assumes.
    assert measured_run(ledger).table.rates("hungry", 1) == pytest.approx((10.0,), rel=0.1)
    ledger.close()
    found = results(tmp_path / "run/state")
    assert "--with profiles:file=" in found.command
    assert found.drift is not None
    assert found.drift.relative_error == pytest.approx(0.0, abs=0.05)
    written = Profiles.load(tmp_path / "run/state/measured/profiles.json")
    assert {model for model, _ in written.tables} == {"hungry", "modest"}


def test_whoever_gets_other_cpus_starts_again_on_the_same_node(tmp_path: Path) -> None:
    """Alone it has 6 CPUs of its node; beside three others of its kind the share, 4."""
    jobs = [
        job("h1", "hungry", 500),
        *(job(f"h{k}", "hungry", 200, arrival_s=20.0) for k in (2, 3, 4)),
    ]
    ledger = run_of(tmp_path / "run", jobs, policy="synergy-tune:fifo,round_s=8").execute()
    mine = [e for e in events(ledger, "granted") if e["job"] == "h1"]
    cpus = [next(iter(e["data"]["amounts"].values()))[0] for e in mine]
    assert cpus[:2] == [6000, 4000], log(ledger)
    assert mine[0]["data"]["amounts"].keys() == mine[1]["data"]["amounts"].keys()
    assert mine[1]["data"]["from_step"] > 0
    verify_ledger(tmp_path / "run/state/run.db")
    ledger.close()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 6))]
)
def test_nothing_is_lost_whoever_fails(tmp_path: Path, seed: int) -> None:
    """Crashes, a node that is lost and comes back, drivers that are killed at any write."""
    r = random.Random(seed)
    jobs = [
        job(
            f"{r.choice('hm')}{k}",
            r.choice(["hungry", "modest", ""]),
            r.randint(50, 300),
            gpus=r.choice([1, 1, 2]),
            arrival_s=float(r.choice([0, 10])),
        )
        for k in range(5)
    ]

    def crash(run: FakeRun) -> None:
        if running := run.host.running():
            run.host.crash(r.choice(running))

    faults = [
        (6.0, crash),
        (12.0, lambda run: run.host.down.add("n1")),
        (30.0, lambda run: run.host.down.clear()),
    ]
    policy = r.choice(["synergy-tune:srtf,round_s=4", "synergy-greedy:fifo,round_s=4"])
    run = run_of(tmp_path / "run", jobs, policy=policy, faults=faults, kill_at_s=[9.0, 25.0])
    run.kill_at_write = [r.randint(2, 20), r.randint(30, 60)]
    ledger = run.execute()
    assert {row["state"] for row in ledger.jobs()} == {"finished"}, log(ledger)
    ledger.close()
    verify_ledger(run.state / "run.db")


def test_a_job_that_asks_for_cpus_or_memory_has_these_alone(tmp_path: Path) -> None:
    ledger = run_of(tmp_path / "run", [job("m", "", cpus=3, memory_gb=2)]).execute()
    (granted,) = events(ledger, "granted")
    assert list(granted["data"]["amounts"].values()) == [[3000, 1907]]
    ledger.close()


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([job("m", "modest", cpus=3, memory_gb=2)], "and .* has a table of it, expected one of"),
        ([job("a", "x", cpus=2), job("b", "x", cpus=3)], "asks for other CPUs or memory than"),
        ([job("a", "x", cpus=7)], "has no speed with 4 CPUs and 8 GB for each GPU"),
    ],
)
def test_what_cannot_be_given_is_refused(
    tmp_path: Path, jobs: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        run_of(tmp_path / "run", jobs).execute()


def test_a_run_goes_on_with_the_same_profiles_only(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [job("h", "hungry")])
    before = load_job_file(run.path / "jobs.yaml")
    assert before.profiles is not None
    text = (run.path / "profiles.json").read_text()
    (run.path / "profiles.json").write_text(text.replace("12", "13"))
    assert load_job_file(run.path / "jobs.yaml").sha256 != before.sha256


@pytest.mark.parametrize("text", ["profiles: [a]\n", "profiles: gone.json\n"])
def test_a_file_of_profiles_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "jobs.yaml").write_text(f"{text}jobs: [{{name: a, command: [x], iterations: 1}}]")
    with pytest.raises(InputError, match=r"profiles is|gone\.json"):
        load_job_file(tmp_path / "jobs.yaml")
