"""Devices that a person drains, or a health check: nobody gets them, and no job is lost by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts.live.devices import Drains
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from support.driver_process import kill_left_over, write_jobs
from support.fake_run import FakeRun, events

JOBS = [{"name": f"j{k}", "iterations": 100, "gpus": 1} for k in range(3)]


def wish(act: Callable[[Drains], None]) -> Callable[[FakeRun], None]:
    def do(run: FakeRun) -> None:
        ledger = RunLedger.open(run.state / "run.db")
        act(Drains(ledger))
        ledger.close()

    return do


def uuids(run: FakeRun, node: int) -> list[str]:
    return [device.uuid for device in run.nodes[node].devices]


def granted_after(ledger: RunLedger, time_s: float) -> set[str]:
    return {
        uuid
        for each in events(ledger, "granted")
        if each["time_s"] > time_s
        for uuid in each["data"]["devices"]
    }


@settings(max_examples=4)
@given(
    drained_s=st.integers(1, 40),
    back_s=st.integers(41, 80),
    now=st.booleans(),
    round_s=st.sampled_from([0.0, 4.0]),
    kills=st.lists(st.integers(-60, 60).filter(bool), max_size=2),
)
def test_nobody_gets_a_drained_device_and_all_jobs_finish(
    tmp_path_factory: pytest.TempPathFactory,
    drained_s: int,
    back_s: int,
    now: bool,
    round_s: float,
    kills: list[int],
) -> None:
    # Six jobs on two nodes, so that all devices are wanted at any time.
    jobs = [{"name": f"j{k}", "iterations": 150, "gpus": 1} for k in range(6)]
    run = FakeRun(tmp_path_factory.mktemp("drained") / "r", jobs, "las2d", round_s)
    node = uuids(run, 0)
    run.faults = [
        (float(drained_s), wish(lambda drains: drains.drain(node, "fan", now=now))),
        (float(back_s), wish(lambda drains: drains.undrain(node))),
    ]
    run.kill_at_write = sorted(kills, key=abs)
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}
    verify_ledger(ledger.path)  # no lease on a quarantined device
    told = [(each["kind"], each["data"]) for each in ledger.events() if each["kind"].endswith("d")]
    quarantined = [data for kind, data in told if kind == "quarantined" and not data.get("copy")]
    drained = {data["device"] for data in quarantined if data["why"] == "drained: fan"}
    assert drained in (set(), set(node))  # none, if all was over before
    ledger.close()


def test_a_job_stays_on_a_drained_device_unless_it_is_to_leave_at_once(tmp_path: Path) -> None:
    ends: dict[bool, tuple[int, bool]] = {}
    for now in (False, True):
        run = FakeRun(tmp_path / str(now), JOBS[:1])
        held = uuids(run, 0)
        act = wish(lambda drains, held=held, now=now: drains.drain(held, "fan", now=now))  # type: ignore[misc]
        run.faults = [(3.0, act)]
        ledger = run.execute()
        grants = events(ledger, "granted")
        ends[now] = (len(grants), set(grants[-1]["data"]["devices"]) <= set(held))
        if now:
            (asked,) = events(ledger, "stop-asked")
            assert asked["data"]["why"] == "its device is drained: fan"
            assert sum(each["data"]["lost_steps"] for each in events(ledger, "released")) == 0
        ledger.close()
    assert ends == {False: (1, True), True: (2, False)}


def test_jobs_wait_while_all_is_drained_and_go_on_after(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "r", JOBS)
    everything = uuids(run, 0) + uuids(run, 1)
    run.faults = [
        (0.0, wish(lambda drains: drains.drain(everything, "power"))),
        (50.0, wish(lambda drains: drains.undrain(everything))),
    ]
    ledger = run.execute()
    grants = [each["time_s"] for each in events(ledger, "granted")]
    assert set(run.states(ledger).values()) == {"finished"}
    assert not [time_s for time_s in grants if 8.0 < time_s < 50.0]
    verify_ledger(ledger.path)
    ledger.close()


CHECK = """
import os, sys
if "cpu:0" in os.environ["SHADOWPRICE_DEVICES"]:
    {what}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
@pytest.mark.parametrize(
    ("what", "said"),
    [
        (
            "sys.exit('NVRM: Xid 79 of ' + os.environ['SHADOWPRICE_JOB'])",
            "ended with 1: NVRM: Xid 79 of a",
        ),
        # What it leaves behind is killed, and is not waited for.
        ("os.fork() or os.execvp('sleep', ['sleep', '99']); os._exit(3)", "ended with 3"),
    ],
)
def test_a_device_whose_health_check_fails_is_drained(tmp_path: Path, what: str, said: str) -> None:
    jobs: list[dict[str, Any]] = [
        {"name": name, "command": ["{python}", "-I", "-S", "-c", "print('ran')"], "iterations": 1}
        for name in "ab"
    ]
    state = tmp_path / "state"
    settings = Settings(
        write_jobs(tmp_path / "jobs.yaml", jobs),
        "fifo",
        "local:2",
        state,
        round_s=0.0,
        limits=Limits(poll_s=0.02, grace_s=2.0),
        health_check=(sys.executable, "-I", "-S", "-c", CHECK.format(what=what)),
    )
    try:
        assert execute(settings).all_finished
    finally:
        kill_left_over(state)
    ledger = RunLedger.open(state / "run.db", readonly=True)
    (quarantined,) = events(ledger, "quarantined")
    assert quarantined["data"]["device"] == "localhost/cpu:0"
    assert said in quarantined["data"]["why"]
    assert all(row["tries"] == 0 for row in ledger.jobs())
    runs = {each["job"]: each["data"] for each in events(ledger, "running")}
    assert runs.keys() == {"a", "b"}
    ledger.close()
    verify_ledger(state / "run.db")


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
def test_a_health_check_that_cannot_be_run_says_so(tmp_path: Path) -> None:
    from shadowprice.hosts.supervision.health import why_unfit

    why = why_unfit(["/no/such/program"], {}, str(tmp_path), lambda: False)
    assert why == "health check program cannot be run: No such file or directory"


HANGING_CHECK = """
import sys
from shadowprice.hosts.supervision import health
health.LIMIT_S = 0.1
print(health.why_unfit(["sleep", "99"], {}, sys.argv[1], lambda: False))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
def test_a_health_check_that_hangs_is_killed(tmp_path: Path) -> None:
    """In a process of its own, as a supervisor is: all children of that process are killed."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING_CHECK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "health check sleep did not end within 0.1 s\n"
