"""Jobs that change their width: stopped and started on other numbers of devices, from their own checkpoints."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from shadowprice.errors import InputError, PolicyError
from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import measured_run
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import LogRejected, verify_ledger, verify_log
from shadowprice.hosts.protocol import LaunchSpec
from shadowprice.solvers.goodput_jobs import Report
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.emptiest import allotted
from shadowprice.solvers.pollux.pollux import Genetic, Pollux
from support.fake_host import FakeHost, two_nodes
from support.fake_queue import FakeQueue
from support.fake_run import FakeRun, events, log
from support.paths import ROOT

pytestmark = pytest.mark.usefixtures("no_power_cuts")

NODES = tuple(replace(node, gpu_type="A100") for node in two_nodes(4)[:1])
RATES = {1: 5.0, 2: 9.0, 3: 12.0, 4: 14.0}
"""Steps a second by devices, of the jobs here."""


def application(name: str, epochs: Sequence[int]) -> dict[str, Any]:
    """Tables of a job with a batch of 12 that makes a unit of progress a step."""
    ends = [float(end) for end in epochs]
    noise = [1.0] * len(ends)
    return {
        "name": name,
        "placed": [
            [[width], 12 // width, 1 / rate, 0.5 / rate if width > 1 else 0.0]
            for width, rate in RATES.items()
        ],
        "scaled": [],
        "records": [
            {
                "batch": 12,
                "iterations": ends,
                "progress": ends,
                "grad_sqr": noise,
                "grad_var": noise,
            }
        ],
    }


TABLES = {"applications": [application("net", [100, 300, 400]), application("short", [150])]}


def job(name: str, model: str = "net", **more: Any) -> dict[str, Any]:
    steps = {"net": 400, "short": 150}[model]
    given = {"name": name, "model": model, "iterations": steps, "batch_size": 12, "gpus": 1}
    return {**given, "widths": "1-4", "true_rate": 5.0, **more}


class ElasticHost(FakeHost):
    """Jobs are as fast as their number of devices makes them, or a part of that."""

    part = 1.0

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        for order in orders:
            self.jobs[order.key.job].rate = self.part * RATES[len(order.devices)]
        super().start(orders)


POLLUX = Pollux(method=Genetic(size=20, generations=20), round_s=8.0, restart_s=1.0)
"""With a population for one node, not for a cluster."""


def run_of(path: Path, jobs: list[dict[str, Any]], **more: Any) -> FakeRun:
    given = {"policy": POLLUX, "round_s": 8.0, **more}
    tables = given.pop("tables", TABLES)
    nodes = given.pop("nodes", NODES)
    run = FakeRun(path, jobs, nodes=nodes, more={"goodput": "widths.json"}, **given)
    (path / "widths.json").write_text(json.dumps(tables))
    host = run.host
    run.host = ElasticHost(host.clock, host.nodes, host.jobs, host.state)
    run.host.on_poll = host.on_poll
    return run


def leases(ledger: RunLedger, name: str) -> list[tuple[int, int]]:
    """Step from which each lease of a job goes on, and its devices."""
    granted = (e for e in events(ledger, "granted") if e["job"] == name)
    return [(e["data"]["from_step"], len(e["data"]["devices"])) for e in granted]


def test_pollux_widens_and_narrows_a_job_through_its_checkpoint(tmp_path: Path) -> None:
    """Alone it gets one, two, then four devices; when two others come it gives some up."""
    jobs = [job("a"), *(job(name, "short", arrival_s=25.0) for name in "bc")]
    ledger = run_of(tmp_path / "run", jobs).execute()
    steps, widths = zip(*leases(ledger, "a"), strict=True)
    assert widths[:3] == (1, 2, 4), log(ledger)
    assert any(after < before for before, after in pairwise(widths)), log(ledger)
    assert all(before < after for before, after in pairwise(steps))
    released = [e["data"] for e in events(ledger, "released") if e["job"] == "a"]
    assert [each["checkpoint_step"] for each in released] == [*steps[1:], 400]
    assert {row["state"] for row in ledger.jobs()} == {"finished"}
    verify_ledger(tmp_path / "run/state/run.db")
    with pytest.raises(InputError, match="change their width"):
        measured_run(ledger)
    ledger.close()


@dataclass
class ByTime:
    """Width of every job by the round, all on the first node; what it sees of them is remembered."""

    widths: Sequence[int]
    seen: list[tuple[float, int, float]] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    name: str = "by-time"
    knows: frozenset[Knowledge] = frozenset()
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        goodput = state.goodput
        assert goodput is not None
        live = sorted((*state.running, *state.waiting))
        self.seen += [(state.now_s, goodput.epoch(job), goodput.progress(job)) for job in live]
        self.reports += [report for job in live if (report := goodput.report(job)) is not None]
        width = self.widths[min(int(state.now_s // 4), len(self.widths) - 1)]
        decision = allotted(state, dict.fromkeys(live, width))
        if live:
            decision.wake_at(state.now_s + 4.0)
        return decision


def test_progress_is_what_the_job_has_done_at_every_width(tmp_path: Path) -> None:
    """The policy sees steps that were done, whatever the table said: this host is half as fast."""
    chosen = ByTime([1, 3, 2, 4, 1])
    run = run_of(tmp_path / "run", [job("a")], policy=chosen, round_s=4.0)
    assert isinstance(run.host, ElasticHost)
    run.host.part = 0.5
    ledger = run.execute()
    assert [width for _, width in leases(ledger, "a")] == [1, 3, 2, 4, 1]
    begun = {e["time_s"]: e["data"]["from_step"] for e in events(ledger, "granted")}
    # At a decision that changes the width, what was seen is what the job saves right after, in 0.25 s.
    for now_s, epoch, progress in chosen.seen:
        later = [step for time_s, step in begun.items() if 0.0 < time_s - now_s <= 0.5]
        if later:
            assert later[0] - 0.25 * RATES[4] - 1 <= progress <= later[0]
            assert epoch == sum(progress >= end for end in (100, 300, 400))
    assert [progress for *_, progress in chosen.seen] == sorted(p for *_, p in chosen.seen)
    assert len(begun) == 5
    # Steps are as they were timed, and the part of them that exchanges gradients is that of the table.
    assert {sum(report.placement) for report in chosen.reports} == {1, 2, 3, 4}
    for report in chosen.reports:
        width = sum(report.placement)
        assert report.step_s == pytest.approx(2.0 / RATES[width], rel=0.15)
        assert report.sync_s == pytest.approx(report.step_s / 2 if width > 1 else 0.0)
    ledger.close()


def test_a_job_grows_over_nodes_and_shrinks_again(tmp_path: Path) -> None:
    """One, two, then four devices on two nodes, each with a command of its own; and one again."""
    net = application("net", [100, 300, 400])
    net["placed"] = [row for row in net["placed"] if row[0] != [4]]
    net["placed"].append([[2, 2], 3, 0.1, 0.05])
    nodes = tuple(replace(node, gpu_type="A100") for node in two_nodes(2))
    tables, chosen = {"applications": [net]}, ByTime([1, 2, 4, 1])
    run = run_of(
        tmp_path / "run", [job("a")], nodes=nodes, policy=chosen, round_s=4.0, tables=tables
    )
    ledger = run.execute()
    granted = [e["data"] for e in events(ledger, "granted")]
    assert [(len(each["devices"]), each["ranks"]) for each in granted] == [
        (1, 1),
        (2, 1),
        (4, 2),
        (1, 1),
    ]
    processes = [order.env["PET_NPROC_PER_NODE"] for _, order in run.host.starts]
    assert processes == ["1", "2", "2", "2", "1"]
    verify_ledger(tmp_path / "run/state/run.db")
    ledger.close()


def test_a_job_that_stops_too_late_keeps_its_width_until_it_has(tmp_path: Path) -> None:
    """Its lease is asked to end, and outlives the round: what should have begun then begins later."""

    def deafen(run: FakeRun) -> None:
        for key in run.host.running():
            run.host.processes[key].deaf = True

    run = run_of(
        tmp_path / "run",
        [job("a")],
        policy=ByTime([1, 2]),
        round_s=1.0,
        faults=[(3.0, deafen)],
    )
    ledger = run.execute()
    (one, two) = leases(ledger, "a")
    assert (one[1], two[1]) == (1, 2), log(ledger)
    asked, granted = (
        [e["time_s"] for e in events(ledger, kind)][-1] for kind in ("stop-asked", "granted")
    )
    assert granted - asked > 1.0
    verify_ledger(tmp_path / "run/state/run.db")
    ledger.close()


def test_a_policy_of_gangs_gives_each_job_the_number_it_asks_for(tmp_path: Path) -> None:
    jobs = [job("a", gpus=3), job("b", "short", gpus=1)]
    ledger = run_of(tmp_path / "run", jobs, policy="fifo").execute()
    assert leases(ledger, "a") == [(0, 3)]
    assert leases(ledger, "b") == [(0, 1)]
    ledger.close()


def test_devices_on_which_nobody_measured_are_refused(tmp_path: Path) -> None:
    net = application("net", [100, 300, 400])
    net["placed"] = [row for row in net["placed"] if row[0] != [3]]
    run = run_of(tmp_path / "run", [job("a")], policy=ByTime([3]), tables={"applications": [net]})
    with pytest.raises(PolicyError, match=r"started on \(\(0, 3\),\).*measured"):
        run.execute()


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))]
)
def test_nothing_is_lost_whoever_fails(tmp_path: Path, seed: int) -> None:
    """Crashes, and drivers that are killed at any write, while jobs change their width."""
    r = random.Random(seed)
    jobs = [job(f"j{k}", r.choice(["net", "short"]), arrival_s=8.0 * k) for k in range(3)]

    def crash(run: FakeRun) -> None:
        if running := run.host.running():
            run.host.crash(r.choice(running))

    faults = [(r.uniform(10.0, 60.0), crash) for _ in range(2)]
    kills = sorted((r.choice([-1, 1]) * r.randint(5, 50) for _ in range(3)), key=abs)
    run = run_of(tmp_path / "run", jobs, faults=faults, kill_at_write=kills)
    ledger = run.execute()
    assert {row["state"] for row in ledger.jobs()} == {"finished"}, log(ledger)
    assert run.drivers > 1
    assert len({len(e["data"]["devices"]) for e in events(ledger, "granted")}) > 1
    verify_ledger(tmp_path / "run/state/run.db")
    ledger.close()


def test_the_verifier_lets_only_those_change_that_said_so(tmp_path: Path) -> None:
    jobs = [job("a")]
    ledger = run_of(tmp_path / "run", jobs, policy=ByTime([2, 4, 1]), round_s=4.0).execute()
    about = {"gpus": {"a": 1}, "iterations": {"a": 400}, "ended": True}
    nodes, every = [node.record() for node in ledger.nodes()], list(ledger.events())
    assert ledger.value("widths") == {"a": [1, 4]}
    ledger.close()
    verify_log(every, nodes, widths={"a": [1, 4]}, **about)
    for widths, said in (
        (None, "2 devices for a gang of 1"),
        ({"b": [1, 4]}, "2 devices for a gang of 1"),
        ({"a": [1, 3]}, "4 devices for a gang of 1 to 3"),
        ({"a": [2, 4]}, "1 devices for a gang of 2 to 4"),
    ):
        with pytest.raises(LogRejected, match=f"gang: {said}"):
            verify_log(every, nodes, widths=widths, **about)
    with pytest.raises(LogRejected, match="malformed"):
        verify_log(every, nodes, widths={"a": [-1, 4]}, **about)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"widths": "1-8"},
            "job 1 (a): widths is 1-8, expected 1-4, the widths of net at batch 12",
        ),
        ({"widths": "2-4"}, "job 1 (a): widths is 2-4, expected 1-4"),
        ({"widths": "four"}, "fewest and most devices, as 1-4"),
        ({"widths": ""}, "job 1 (a): has no widths"),
        ({"model": "other"}, "job 1 (a): model is 'other'"),
        ({"batch_size": 0}, "job 1 (a): batch_size is 0, expected 12 to 12"),
        ({"iterations": 500}, "job 1 (a): iterations is 500, expected 400"),
        ({"gpus": 5}, "job 1 (a): gpus is 5"),
        ({"throughput": 5.0}, "expected no job with throughput"),
        ({"cpus": 2}, "job a: asks for CPUs or memory"),
    ],
)
def test_what_does_not_agree_with_the_tables_is_refused(
    tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        run_of(tmp_path / "run", [{**job("a"), **change}]).execute()


def test_widths_without_tables_are_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [job("a")])
    document = yaml.safe_load((tmp_path / "run/jobs.yaml").read_text())
    del document["goodput"]
    (tmp_path / "run/jobs.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(InputError, match="expected goodput: FILE"):
        run.execute()


def test_a_queue_takes_no_jobs_with_widths(tmp_path: Path) -> None:
    run = FakeQueue(tmp_path / "r", [], policy="srtf", nodes=NODES, plan=[])
    ledger, entry = run.execute(), {"name": "a", "command": ["x"], "iterations": 5, "widths": "1-4"}
    queue = run.queue()
    with pytest.raises(InputError, match="job a: has widths, expected none"):
        queue.add({"jobs": [entry]}, "more.yaml", tmp_path)
    with pytest.raises(InputError, match="names goodput, expected none"):
        queue.add({"jobs": [entry], "goodput": "widths.json"}, "more.yaml", tmp_path)
    queue.close()
    ledger.close()


# As processes.

EXAMPLES = ROOT / "examples/jobs"


def test_training_at_changing_widths_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    """The example on four slots, measured there, driven by pollux; against one worker without a scheduler."""
    for name in ("mlp.py", "elastic.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    python = [sys.executable, "elastic.py", "--part-ms", "2", "--seed", "1"]
    steps = "180"
    measure = [*python, "--profile", "elastic.json", "--iterations", steps]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(measure, cwd=tmp_path, env=environment, check=True)
    document = yaml.safe_load((EXAMPLES / "elastic.yaml").read_text())
    document["defaults"] |= {"iterations": int(steps), "env": {"PYTHONPATH": str(ROOT)}}
    first = document["jobs"][0]
    first["command"] = ["{python}", "{directory}/elastic.py", *python[2:]]
    document["jobs"] = [first]
    (tmp_path / "elastic.yaml").write_text(yaml.safe_dump(document))
    settings = Settings(
        tmp_path / "elastic.yaml",
        "pollux:round_s=2,restart_s=0.1",
        "local:1x4",
        tmp_path / "state",
        round_s=2.0,
    )
    assert execute(settings).all_finished
    verify_ledger(tmp_path / "state/run.db")
    ledger = RunLedger.open(tmp_path / "state/run.db", readonly=True)
    widths = [width for _, width in leases(ledger, "first")]
    ledger.close()
    assert widths[0] == 1
    assert max(widths) >= 2
    subprocess.run(
        [*python, "--iterations", steps, "--part-ms", "0"],
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    alone, _, _ = last_checkpoint(tmp_path / "checkpoints")
    elastic, _, _ = last_checkpoint(tmp_path / "state/jobs/first/checkpoints")
    assert alone is not None
    assert elastic is not None
    for name in ("parameters.npz", "state.npz", "losses.csv"):
        assert (alone / name).read_bytes() == (elastic / name).read_bytes(), name
