"""Two drivers of one run: the ledger has one writer, whatever became of the lock's file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.state_directory import open_ledger, take_over
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.supervision.processes import machine, process
from support.driver_process import REFUSED, Driver, wait_until, write_jobs
from support.fake_run import FakeRun, events, log


def test_the_ledger_refuses_a_driver_that_was_taken_over_from(tmp_path: Path) -> None:
    first, _ = open_ledger(tmp_path, {})
    take_over(first, tmp_path)
    first.set("a", 1)
    second = RunLedger.open(tmp_path / "run.db")
    second.take_over({"pid": 77, "machine": "another"})
    second.set("b", 2)
    for write in (lambda: first.set("c", 3), lambda: first.event(0.0, "note")):
        with pytest.raises(
            HostError, match=r"another driver \(process 77\) has taken the run over"
        ):
            write()
    with pytest.raises(HostError, match="another driver"), first.transaction():
        raise AssertionError("inside")
    reader = RunLedger.open(tmp_path / "run.db")  # a person who cancels is no driver
    reader.set("d", 4)
    assert [reader.value(key) for key in "abcd"] == [1, 2, None, 4]
    third = RunLedger.open(tmp_path / "run.db")
    take_over(third, tmp_path)  # nobody sees whether one elsewhere lives: it is fenced
    with pytest.raises(HostError, match="another driver"):
        second.set("e", 5)


def test_a_driver_that_lives_is_seen_without_its_lock(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        about = process(other.pid)
        assert about is not None
        lives = {"pid": other.pid, "start_ticks": about[3], "machine": machine()}
        ledger.take_over(lives)
        with pytest.raises(HostError, match=rf"another driver \(process {other.pid}\) executes it"):
            take_over(ledger, tmp_path)
        ledger.take_over(lives | {"start_ticks": about[3] - 1})  # a stranger with its number
        take_over(ledger, tmp_path)
        ledger.take_over(lives)
        other.kill()
        other.wait()
        take_over(ledger, tmp_path)


@pytest.mark.parametrize("at_s", [2.0, 5.25, 9.0])
def test_a_run_goes_on_under_the_driver_that_took_it_over(tmp_path: Path, at_s: float) -> None:
    jobs: list[dict[str, Any]] = [
        {"name": name, "iterations": 150, "gpus": 2, "throughput": 10.0} for name in ("a", "b", "c")
    ]
    run = FakeRun(tmp_path / "run", jobs, "las:quantum_s=2", round_s=2.0)
    first: list[RunLedger] = []
    watch = run._watch_writes

    def watched(ledger: RunLedger) -> None:
        watch(ledger)
        ledger.take_over({"pid": len(first) + 1, "machine": "here"})
        first.append(ledger)

    def other(run: FakeRun) -> None:
        RunLedger.open(run.state / "run.db").take_over({"pid": 99, "machine": "elsewhere"})

    run._watch_writes = watched  # type: ignore[method-assign]
    run.faults = [(at_s, other)]
    with pytest.raises(HostError, match="process 99"):
        run.drive()
    first[0].close()
    ledger = run.drive()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    assert len(events(ledger, "driver-started")) == 2
    verify_ledger(run.state / "run.db")


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
@pytest.mark.timeout(120)
def test_a_second_driver_is_refused_though_the_lock_was_removed(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]
    jobs = write_jobs(
        tmp_path / "jobs.yaml",
        [{"name": "a", "command": command, "iterations": 1, "throughput": 1, "directory": "."}],
    )
    first = Driver(tmp_path, jobs, "fifo", hosts="local:1")
    first.start()
    try:
        wait_until(lambda: list(first.state.glob("jobs/*/leases/*/supervisor.json")), 60.0)
        (first.state / "driver.lock").unlink()
        (tmp_path / "second").mkdir()
        second = Driver(tmp_path / "second", jobs, "fifo", hosts="local:1", state=first.state)
        second.start()
        assert second.wait(60.0) == REFUSED
        assert "another driver" in second.output.read_text()
        (tmp_path / "go").touch()
        assert first.wait(60.0) == 0
    finally:
        first.clean_up()
    verify_ledger(first.state / "run.db")
