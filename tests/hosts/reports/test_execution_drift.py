"""Drift: a run that went as the simulator says is simulated as it went; others are told apart."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import (
    LeaseTime,
    RealJob,
    lease_times,
    measured_overheads,
    measured_run,
    write_cluster,
    write_measured,
)
from shadowprice.hosts.reports.results import COLUMNS, Drift, drift, replay
from shadowprice.hosts.reports.unsimulated import unsimulated
from shadowprice.hosts.throughput_files import Observation, kind_name
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload

CLUSTER = Cluster((Node(2, "NVIDIA H200", cpus=8.0), Node(2, 'K"80\\')))
NODES = [
    {
        "name": f"n{k}",
        "gpu_type": node.gpu_type,
        "cpus": node.cpus,
        "memory_gb": node.memory_gb,
        "devices": [{"index": i, "uuid": f"n{k}-{i}"} for i in range(node.gpus)],
    }
    for k, node in enumerate(CLUSTER.nodes)
]


def jobs_of(rates: list[float], iterations: list[int]) -> Workload:
    n = len(rates)
    return Workload.from_columns(
        id=[f"j{k}" for k in range(n)],
        arrival_s=[7.0 * k for k in range(n)],
        gpus=[1 + k % 2 for k in range(n)],
        work=iterations,
        model=[kind_name(f"j{k}", "m" if k == 0 else "") for k in range(n)],
        throughput=[[rate, rate / 2] for rate in rates],
        gpu_types=CLUSTER.gpu_types,
    )


def as_if_real(outcome: Outcome, path: Path, policy: str, round_s: float) -> RunLedger:
    """The ledger of a real run that went just as simulated."""
    ledger = RunLedger.create(path)
    for key, value in {"nodes": NODES, "policy": policy, "round_s": round_s, "ended": True}.items():
        ledger.set(key, value)
    workload, schedule = outcome.instance.workload, outcome.schedule
    assert workload.throughput is not None
    names, work = workload.id.tolist(), workload.work.astype(int).tolist()
    for row, name in enumerate(names):
        ledger.add_job(
            name,
            position=row,
            iterations=work[row],
            step=work[row],
            gpus=int(workload.gpus[row]),
            arrival_s=float(workload.arrival_s[row]),
            state="finished",
            finish_s=float(outcome.end_s[row]),
            model="" if workload.model[row].startswith("job:") else workload.model[row],
        )
    log: list[tuple[float, str, str, int, dict[str, object]]] = [
        (0.0, "driver-started", "", 0, {"resumed": False})
    ]
    done, epoch = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    frame = schedule.to_frame().sort_values(["start_s", "job"])
    for (job, start_s), group in frame.groupby(["job", "start_s"], sort=False):
        name, end_s = names[int(job)], float(group["end_s"].iloc[0])
        kinds = outcome.instance.cluster.type_of_node[group["node"].to_numpy()]
        rate = float(workload.throughput[int(job), kinds].min())
        ran_s = end_s - start_s - float(group["overhead_s"].iloc[0])
        before = done[name]
        done[name] = min(before + ran_s * rate, work[int(job)])
        epoch[name] += 1
        last = end_s == outcome.end_s[int(job)]
        after = work[int(job)] if last else round(done[name])
        devices = [
            f"n{node}-{i}"
            for node, count in zip(group["node"], group["gpus"], strict=True)
            for i in range(count)
        ]
        log.append(
            (
                start_s,
                "granted",
                name,
                epoch[name],
                {"devices": devices, "from_step": round(before), "partner": None},
            )
        )
        told = {"checkpoint_step": after, "code": 0 if last else 75}
        if last:
            log += [
                (end_s, "released", name, epoch[name], told),
                (end_s, "finished", name, epoch[name], {"at_s": end_s}),
            ]
        else:
            log += [
                (end_s, "stop-asked", name, epoch[name], {}),
                (end_s, "released", name, epoch[name], told),
            ]
        key = {
            "job": name,
            "model": workload.model[int(job)],
            "gpus": int(workload.gpus[int(job)]),
            "co_runner": "",
            "co_model": "",
        }
        for kind in set(kinds.tolist()):
            about = key | {"gpu_type": CLUSTER.gpu_types[kind], "nodes": 1}
            ledger.observe(Observation(**about, steps=1000, seconds=1000 / rate))
    for time_s, kind, job, number, data in sorted(log, key=lambda each: each[0]):
        ledger.event(time_s, kind, job, number, **data)
    return ledger


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las"])
@pytest.mark.parametrize(
    "charges", [Overheads(2.5), Overheads(2.0, 1.5)], ids=["starts", "restarts"]
)
@pytest.mark.parametrize("seed", range(4))
def test_a_run_as_simulated_has_no_drift(
    policy: str, charges: Overheads, seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    # Long jobs: the end of a short one may fall to the other side of the end of a round.
    workload = jobs_of(
        rng.choice([8.0, 16.0, 32.0], n).tolist(), rng.integers(2000, 9000, n).tolist()
    )
    real = simulate(workload, CLUSTER, policy, RunOptions(round_s=16.0, overheads=charges))
    ledger = as_if_real(real, tmp_path / "run.db", policy, 16.0)
    run = measured_run(ledger)
    assert run.notes == ()
    assert run.overheads.start_s == pytest.approx(charges.start_s, abs=0.3)
    if real.jobs["preemptions"].sum():
        assert run.overheads.restart_s == pytest.approx(charges.restart_s, abs=0.3)
    found = replay(run)
    assert found.relative_error == pytest.approx(0.0, abs=0.02)
    assert len(found.frame) == n


def test_charges_are_told_apart() -> None:
    rates, types = {("a", "v100"): 10.0}, {"d": "v100"}

    def lease(extra_s: float, resumed: bool, finished: bool) -> LeaseTime:
        return LeaseTime("a", ("d",), 10.0 + extra_s, 100, resumed, finished)

    leases = [
        lease(3.0, False, True),
        lease(4.0, False, False),
        lease(5.5, True, True),
        lease(6.5, True, False),
        LeaseTime("unknown", ("d",), 99.0, 1, True, True),
    ]
    found = measured_overheads(leases, rates, types)
    assert (found.start_s, found.restart_s) == (
        pytest.approx(3.0, abs=1e-5),
        pytest.approx(3.5, abs=1e-5),
    )
    assert measured_overheads([], rates, types) == Overheads()
    assert measured_overheads([lease(-5.0, False, True)], rates, types) == Overheads()


def event(
    time_s: float, kind: str, job: str = "", epoch: int = 0, **data: object
) -> dict[str, object]:
    return {"time_s": time_s, "kind": kind, "job": job, "epoch": epoch, "data": data}


def test_only_plain_leases_are_timed() -> None:
    def grant(
        at_s: float, job: str, epoch: int, step: int = 0, partner: str | None = None
    ) -> dict[str, object]:
        return event(at_s, "granted", job, epoch, devices=["d"], from_step=step, partner=partner)

    def back(at_s: float, job: str, epoch: int, step: int, code: int) -> dict[str, object]:
        return event(at_s, "released", job, epoch, checkpoint_step=step, code=code)

    found = lease_times(
        [
            event(0.0, "driver-started", resumed=False),
            grant(0.0, "a", 1),
            event(5.0, "stop-asked", "a", 1),
            back(6.0, "a", 1, 40, 75),
            grant(10.0, "a", 2, 40),
            back(30.0, "a", 2, 100, 0),
            event(30.0, "finished", "a", 2, at_s=25.0),
            grant(30.0, "crashes", 1),
            back(31.0, "crashes", 1, 3, 1),
            grant(32.0, "b", 1),
            grant(33.0, "c", 1, partner="b"),
            back(40.0, "b", 1, 9, 0),
            event(40.0, "finished", "b", 1),
            back(41.0, "c", 1, 9, 0),
            event(41.0, "finished", "c", 1),
            grant(50.0, "d", 1),
            event(60.0, "driver-started", resumed=True),
            back(61.0, "d", 1, 9, 0),
            event(61.0, "finished", "d", 1),
        ]
    )
    assert found == [
        LeaseTime("a", ("d",), 6.0, 40, False, False),
        LeaseTime("a", ("d",), 15.0, 60, True, True),
    ]


@pytest.fixture
def ledger(tmp_path: Path) -> RunLedger:
    workload = jobs_of([8.0, 16.0, 8.0], [800, 1600, 400])
    outcome = simulate(workload, CLUSTER, "fifo", RunOptions(round_s=10.0))
    return as_if_real(outcome, tmp_path / "run.db", "fifo", 10.0)


def test_what_was_measured_is_simulated_by_one_command(ledger: RunLedger, tmp_path: Path) -> None:
    run = measured_run(ledger)
    directory = tmp_path / "run 1, of=2:3"
    words = shlex.split(write_measured(run, directory))
    assert directory.stat().st_mode & 0o77 == 0
    assert sorted(path.name for path in directory.iterdir()) == [
        "charges.json",
        "cluster.toml",
        "jobs.csv",
        "throughputs.json",
    ]
    assert words[:2] == ["shadowprice", "simulate"]
    result = CliRunner().invoke(app, [*words[1:], "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["avg_jct_s"] == pytest.approx(replay(run).simulated_mean_s)


def test_spread_runs_are_simulated_as_slow_as_they_were(ledger: RunLedger, tmp_path: Path) -> None:
    key = {
        "job": "j1",
        "model": "job:j1",
        "gpus": 2,
        "gpu_type": CLUSTER.gpu_types[1],
        "co_runner": "",
        "co_model": "",
    }
    ledger.observe(Observation(**key, nodes=2, steps=1000, seconds=1000 / 4.0))
    run = measured_run(ledger)
    command = write_measured(run, tmp_path / "measured")
    assert "--with spread:file=" in command
    result = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
    assert result.exit_code == 0, result.output
    assert len(replay(run).frame) == 3


def test_jobs_that_are_not_measured_are_told(ledger: RunLedger) -> None:
    common = {"gpus": 1, "arrival_s": 0.0, "iterations": 100}
    ledger.add_job("blind", position=3, state="finished", step=100, finish_s=20.0, **common)
    ledger.event(99.0, "granted", "blind", 1, devices=["n0-0"], from_step=0, partner=None)
    ledger.event(119.0, "released", "blind", 1, checkpoint_step=100, code=0)
    ledger.event(119.0, "finished", "blind", 1, at_s=119.0)
    ledger.add_job("packed", position=4, state="failed", step=50, predicted_rate=5.0, **common)
    ledger.add_job("idle", position=5, state="cancelled", **common)
    run = measured_run(ledger)
    assert run.workload.throughput is not None
    rates = dict(zip(run.workload.id.tolist(), run.workload.throughput[:, 0].tolist(), strict=True))
    assert (rates["blind"], rates["packed"]) == (5.0, 5.0)
    assert (
        dict(zip(run.workload.id.tolist(), run.workload.work.tolist(), strict=True))["packed"] == 50
    )
    assert [note.split(":")[0] for note in run.notes] == ["job blind", "job packed", "job idle"]
    found = replay(run)
    assert found.remarks == run.notes
    names = found.frame["job"].tolist()
    assert "blind" in names
    assert not {"packed", "idle"} & {*names}


def test_a_run_without_any_timed_step_can_be_simulated(tmp_path: Path) -> None:
    ledger = RunLedger.create(tmp_path / "run.db")
    for key, value in {"nodes": NODES, "policy": "fifo", "round_s": 0.0}.items():
        ledger.set(key, value)
    with pytest.raises(InputError, match="no job has done a step"):
        measured_run(ledger)
    ledger.add_job(
        "a",
        position=0,
        gpus=1,
        iterations=9,
        step=9,
        arrival_s=0.0,
        finish_s=3.0,
        state="finished",
        predicted_rate=3.0,
    )
    run = measured_run(ledger)
    assert "--throughputs" not in write_measured(run, tmp_path / "measured")
    assert replay(run).relative_error == 0.0


def test_means_and_errors_are_of_the_jobs_that_finished() -> None:
    workload = Workload.from_columns(
        id=["a", "b", "c"], arrival_s=[0, 0, 0], gpus=[1, 1, 1], work=[10, 20, 5]
    )
    outcome = simulate(workload, "3x1", "fifo")
    real = [
        RealJob("a", 0.0, 8.0),
        RealJob("b", 0.0, 25.0),
        RealJob("c", 0.0, math.inf),
        RealJob("x", 0.0, 5.0),
    ]
    found = drift(real, outcome)
    assert found.frame["difference_s"].tolist() == [2.0, -5.0]
    assert found.frame["relative_error"].tolist() == [0.25, -0.2]
    assert (found.real_mean_s, found.simulated_mean_s) == (16.5, 15.0)
    assert found.relative_error == pytest.approx(15.0 / 16.5 - 1.0)
    assert "mean JCT of 2 jobs was 16.5 s, simulated 15.0 s (-9.1 %)" in found.sentence()
    lines = found.table().splitlines()
    assert lines[1].split() == ["a", "8.0", "10.0", "2.0", "+25.0", "%"]
    assert len({len(line) for line in lines[:-1]}) == 1
    with pytest.raises(InputError, match="'a': finished at 0"):
        drift([RealJob("a", 0.0, 0.0)], outcome)


def test_no_job_that_finished_is_no_error() -> None:
    one = simulate(Workload.from_columns(arrival_s=[0], gpus=[1], work=[1]), "1x1", "fifo")
    empty = drift([], one)
    assert empty.relative_error is None
    assert "no job finished" in empty.table()


def test_clusters_are_read_back(tmp_path: Path) -> None:
    odd = Cluster((*CLUSTER.nodes, *CLUSTER.nodes[:1], Node(1, "é 😀", memory_gb=1e20)))
    write_cluster(odd, tmp_path / "cluster.toml")
    assert Cluster.load(tmp_path / "cluster.toml") == odd
    with pytest.raises(InputError, match="cannot be written"):
        write_cluster(odd, tmp_path / "none" / "cluster.toml")
    (tmp_path / "file").write_text("")
    assert np.isfinite(odd.total_gpus)


def at(time_s: float, kind: str, **data: object) -> dict[str, object]:
    return {"time_s": time_s, "kind": kind, "data": data}


CALM = [at(0.0, "driver-started", ready_s=0.01), at(1.0, "released", lost_steps=0)]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (CALM, ()),
        (
            [at(0.0, "driver-started", ready_s=6.84)],
            ("hosts were found in 6.8 s, and the run begins after that",),
        ),
        (
            [*CALM, at(4.5, "driver-started"), at(5.0, "arrived"), at(6.0, "driver-started")],
            ("2 drivers took over, and nothing was decided for 4.5 s",),
        ),
        (
            [*CALM, at(2.0, "failed"), at(3.0, "released", lost_steps=1200)],
            ("1 lease failed, and 1,200 steps were done again",),
        ),
        ([*CALM, at(2.0, "node-lost")], ("1 node did not answer for some time",)),
    ],
)
def test_what_a_simulation_does_not_know_is_said(
    events: list[dict[str, object]], words: tuple[str, ...]
) -> None:
    assert unsimulated(events) == tuple(f"not simulated: {cause}" for cause in words)


def test_the_table_says_what_is_not_simulated() -> None:
    found = Drift(pd.DataFrame(columns=list(COLUMNS)), "fifo", ("not simulated: a fault",))
    assert found.table().splitlines()[-1] == "not simulated: a fault"
