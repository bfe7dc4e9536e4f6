"""Failures that are a host's, jobs that are taken up again, and jobs that crash at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log.execution_log import LogRejected, verify_ledger, verify_log
from shadowprice.hosts.protocol import Exit
from support import fake_run
from support.fake_host import two_nodes
from support.fake_run import FakeRun, events
from support.in_memory_runs import job

pytestmark = pytest.mark.usefixtures("no_power_cuts")


def crashing(
    until_s: float, names: str = "", exit: Exit | None = None, every_s: float = 0.5
) -> Any:
    """A fault that ends what runs, of jobs of these names, again and again until a time."""

    def crash(run: FakeRun) -> None:
        for key in run.host.running():
            if not names or key.job in names:
                run.host.crash(key)
                if exit is not None:
                    run.host.processes[key].exit = exit
        if run.clock.time_s + every_s < until_s:
            run.faults.insert(0, (run.clock.time_s + every_s, crash))

    return crash


def test_an_outage_of_all_jobs_is_not_counted_against_them(tmp_path: Path) -> None:
    """What all need is away for two minutes: without blame of the host, all would be given up."""
    jobs = [job(name, 2000) for name in "abcd"]
    run = FakeRun(tmp_path / "run", jobs, "fifo", faults=[(70.0, crashing(190.0))])
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}
    failed = [row["data"] for row in events(ledger, "failed")]
    assert len(failed) > 8
    assert all("its host failed, which is not counted" in data["why"] for data in failed)
    verify_ledger(ledger.path)
    ledger.close()


def test_jobs_that_never_worked_are_given_up_however_many_they_are(tmp_path: Path) -> None:
    jobs = [job(name, 2000) for name in "ab"]
    run = FakeRun(tmp_path / "run", jobs, "fifo", faults=[(0.1, crashing(1e9))])
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"failed"}
    verify_ledger(ledger.path)
    ledger.close()


def test_a_job_that_fails_beside_one_that_goes_on_is_given_up(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("a", 4000), job("b", 4000)],
        "fifo",
        faults=[(70.0, crashing(1e9, "a"))],
    )
    ledger = run.execute()
    assert run.states(ledger) == {"a": "failed", "b": "finished"}
    verify_ledger(ledger.path)
    ledger.close()


@pytest.mark.parametrize(("host_retries", "state"), [(100, "finished"), (2, "failed")])
def test_what_supervision_did_is_not_counted_unless_it_goes_on_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_retries: int, state: str
) -> None:
    limits = replace(fake_run.LIMITS, host_retries=host_retries, back_off_max_s=2.0)
    monkeypatch.setattr(fake_run, "LIMITS", limits)
    killed = Exit(-9, "exited", detail="the supervisor was killed", host_failed=True)
    fault = (0.1, crashing(60.0, "a", killed))
    run = FakeRun(tmp_path / "run", [job("a", 200)], "fifo", faults=[fault])
    ledger = run.execute()
    assert run.states(ledger) == {"a": state}
    assert len(events(ledger, "failed")) == (5 if state == "failed" else len(run.host.starts) - 1)
    verify_ledger(ledger.path)
    ledger.close()


def wish(ledger: RunLedger, *names: str) -> None:
    with ledger.transaction():
        for name in names:
            ledger.update_job(name, retry=1)
        ledger.set("ended", False)


@settings(max_examples=6)
@given(st.lists(st.integers(-40, 40).filter(bool), max_size=2))
def test_a_job_that_was_given_up_is_taken_up_from_its_checkpoint_after_the_run(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int]
) -> None:
    """By the same command, whatever is killed; the journal of the whole is one that can be read again."""
    folder = tmp_path_factory.mktemp("retry")
    run = FakeRun(
        folder / "run",
        [job("a", 300), job("b", 100)],
        round_s=4.0,
        faults=[(9.0, crashing(200.0, "a"))],
    )
    ledger = run.execute()
    assert run.states(ledger) == {"a": "failed", "b": "finished"}
    step = {row["name"]: row["step"] for row in ledger.jobs()}["a"]
    wish(ledger, "a")
    ledger.close()
    run.faults.clear()
    run.kill_at_write = sorted(
        (number + run.writes * (1 if number > 0 else -1) for number in kills), key=abs
    )
    ledger = run.execute()
    assert run.states(ledger) == {"a": "finished", "b": "finished"}
    ((again,),) = ([row["data"]["step"] for row in events(ledger, "retried")],)
    assert again == step
    grants = [row["data"]["from_step"] for row in events(ledger, "granted") if row["job"] == "a"]
    assert step in grants
    verify_ledger(ledger.path)
    ledger.close()


def test_a_job_is_taken_up_while_others_run(tmp_path: Path) -> None:
    def wanted(run: FakeRun) -> None:
        other = RunLedger.open(run.state / "run.db")
        wish(other, "a")
        other.close()

    run = FakeRun(
        tmp_path / "run",
        [job("a", 300), job("b", 5000)],
        "fifo",
        faults=[(1.0, crashing(100.0, "a")), (200.0, wanted)],
    )
    ledger = run.execute()
    assert run.states(ledger) == {"a": "finished", "b": "finished"}
    (again,) = events(ledger, "retried")
    assert 200.0 <= again["time_s"] < 202.0
    verify_ledger(ledger.path)
    ledger.close()


def test_only_what_was_given_up_is_taken_up() -> None:
    nodes = [{"name": "n", "devices": [{"uuid": "d"}]}]
    start = {"kind": "driver-started", "job": "", "epoch": 0, "data": {"resumed": False}}
    rows = [start, {"kind": "arrived", "job": "a", "epoch": 0, "data": {}}]
    rows.append({"kind": "retried", "job": "a", "epoch": 0, "data": {"step": 0}})
    log = [{"seq": k, "time_s": 0.0, **row} for k, row in enumerate(rows, 1)]
    with pytest.raises(LogRejected, match="a is taken up again, but is arrived"):
        verify_log(log, nodes)


@pytest.mark.parametrize("round_s", [0.0, 4.0])
def test_a_job_that_crashes_at_once_stops_others_once_and_then_waits_for_free_devices(
    tmp_path: Path, round_s: float
) -> None:
    """One stop when it came, one after it failed; then it waits, and is given up when the others are through."""
    run = FakeRun(
        tmp_path / "run",
        [job("wide", 3000, 2), job("crash", 50, 1, arrival_s=20.0)],
        "srtf",
        round_s,
        nodes=two_nodes(2)[:1],
        faults=[(20.25, crashing(1e9, "crash"))],
    )
    ledger = run.execute()
    assert run.states(ledger) == {"wide": "finished", "crash": "failed"}
    leases = [row for row in events(ledger, "granted") if row["job"] == "wide"]
    assert len(leases) <= 3
    finished_s = events(ledger, "finished")[0]["time_s"]
    assert sum(row["time_s"] >= finished_s for row in events(ledger, "granted")) == 2
    verify_ledger(ledger.path)
    ledger.close()


def test_a_job_that_lives_again_may_stop_others_again(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("wide", 6000, 2), job("once", 2000, 1, arrival_s=20.0)],
        "srtf",
        4.0,
        nodes=two_nodes(2)[:1],
        faults=[(20.25, crashing(21.0, "once")), (150.0, crashing(150.0, "once"))],
    )
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}
    ends = {row["job"]: row["time_s"] for row in events(ledger, "finished")}
    assert ends["once"] < ends["wide"]
    grants = [row["time_s"] for row in events(ledger, "granted") if row["job"] == "once"]
    assert len(grants) == 3
    assert grants[2] < 170.0
    verify_ledger(ledger.path)
    ledger.close()
