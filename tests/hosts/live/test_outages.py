"""A driver that was stopped, a disk that is full, a slow disk: what follows, and what is said of it."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from shadowprice.hosts.live.clock import suspended_s
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import LeaseTime, lease_times, measured_overheads
from shadowprice.hosts.live.observer import FullDisk
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.reports.results import results
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.status import status_record
from shadowprice.hosts.reports.unsimulated import unsimulated
from support.driver_process import Driver, wait_until, write_jobs
from support.fake_run import FakeRun, events
from support.in_memory_runs import job
from support.paths import ROOT

STEPPING = (
    "import sys, time\n"
    "from shadowprice.hosts.job import Lease\n"
    "with Lease() as lease:\n"
    "    lease.checkpoints(lambda folder: (folder / 'x').write_text('x'))\n"
    "    for step in lease.steps():\n"
    "        time.sleep(0.02)\n"
)


def stepping(name: str, iterations: int) -> dict[str, Any]:
    return {
        "name": name,
        "command": ["{python}", "-c", STEPPING],
        "iterations": iterations,
        "throughput": 45,
        "env": {"PYTHONPATH": str(ROOT)},
    }


def test_a_driver_that_was_stopped_says_so_and_its_leases_tell_no_charges(tmp_path: Path) -> None:
    jobs = [stepping("short", 100), stepping("long", 300)]
    driver = Driver(tmp_path, write_jobs(tmp_path / "jobs.yaml", jobs), "fifo", hosts="local:2")
    try:
        driver.start()
        ledger = driver.state / "run.db"
        wait_until(lambda: ledger.exists() and len(of_kind(ledger, "running")) == 2)
        driver.send(signal.SIGSTOP)
        time.sleep(3.5)
        driver.send(signal.SIGCONT)
        assert driver.wait(60.0) == 0, driver.said()
    finally:
        driver.clean_up()
    verify_ledger(ledger)
    (gap,) = (row["data"]["gap_s"] for row in of_kind(ledger, "note") if "gap_s" in row["data"])
    assert 3.0 < gap < 6.0
    found = results(driver.state)
    assert found.drift is not None
    assert f"1 gap of {gap:.1f} s together" in " ".join(found.drift.remarks)
    log = RunLedger.open(ledger, readonly=True)
    assert lease_times(log.events()) == []
    log.close()


def of_kind(ledger: Path, kind: str) -> list[dict[str, Any]]:
    opened = RunLedger.open(ledger, readonly=True)
    try:
        return [row for row in opened.events() if row["kind"] == kind]
    finally:
        opened.close()


def test_the_clock_of_suspended_machines_is_read() -> None:
    assert math.isfinite(suspended_s())
    assert suspended_s() >= -0.001


def test_one_slow_start_does_not_move_the_charge_of_a_start() -> None:
    """A mean did: one driver that was stopped made 0.90 s of 0.19 s."""
    fast = [LeaseTime("a", ("d",), 10.0 + 0.25, 100, False, True) for _ in range(6)]
    slow = LeaseTime("a", ("d",), 10.0 + 9.0, 100, False, True)
    charges = measured_overheads([*fast, slow], {("a", "t"): 10.0}, {"d": "t"})
    assert (charges.start_s, charges.restart_s) == (0.25, 0.0)


def test_starts_and_restarts_are_told_apart() -> None:
    leases = [
        *(LeaseTime("a", ("d",), 10.5, 100, False, False) for _ in range(3)),
        *(LeaseTime("a", ("d",), 10.75, 100, True, True) for _ in range(3)),
        *(LeaseTime("a", ("d",), 10.25, 100, False, True) for _ in range(3)),
    ]
    charges = measured_overheads(leases, {("a", "t"): 10.0}, {"d": "t"})
    assert charges.start_s == pytest.approx(0.25, abs=1e-6)
    # What a stop costs, 0.25, and a start that resumes, 0.5.
    assert charges.restart_s == pytest.approx(0.75, abs=1e-6)


def test_a_driver_waits_while_its_disk_is_full_and_goes_on(tmp_path: Path) -> None:
    """Jobs run on meanwhile; nothing is lost, and status says what it waits for."""
    notices: list[str] = []

    class Watched(FullDisk):
        def full(self, why: str) -> None:
            super().full(why)
            notices.append((tmp_path / "lock").read_text())
            ledger._db.execute("PRAGMA max_page_count = 1000000")

    run = FakeRun(tmp_path / "run", [job("a", 2000), job("b", 2000)], "las2d", 4.0)
    (tmp_path / "lock").write_text("")
    watch = run._watch_writes
    ledger: Any = None

    def watched(opened: RunLedger) -> None:
        nonlocal ledger
        ledger = opened
        watch(opened)

    run._watch_writes = watched  # type: ignore[method-assign]

    def fill(fake: FakeRun) -> None:
        pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
        assert fake.real_run is not None
        ledger.disk = Watched(fake.real_run, tmp_path / "lock")
        ledger._db.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(40):
            fake.real_run.events.note("note", text="x" * 4096)

    run.faults = [(9.0, fill)]
    done = run.execute()
    assert set(run.states(done).values()) == {"finished"}
    (note,) = (row for row in events(done, "note") if "disk_full_s" in row["data"])
    assert note["data"]["disk_full_s"] >= 0.5
    assert "waits since" in notices[0]
    assert "free space on its disk" in notices[0]
    (said,) = unsimulated(done.events())
    assert "the disk was full for" in said
    verify_ledger(done.path)
    done.close()


def test_status_says_what_the_driver_waits_for(tmp_path: Path) -> None:
    """On a disk of its own that is really full, where one can be made."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True
    )
    if made.returncode:
        pytest.skip("no disk can be mounted here")
    jobs = write_jobs(tmp_path / "jobs.yaml", [stepping("a", 400), stepping("b", 500)])
    limits = {"ttl_s": 8.0, "grace_s": 5.0, "poll_s": 0.05}
    driver = Driver(tmp_path, jobs, "fifo", hosts="local:2", limits=limits, state=disk / "state")
    try:
        driver.start()
        ledger = disk / "state" / "run.db"
        wait_until(lambda: ledger.exists() and len(of_kind(ledger, "running")) == 2)
        fill(disk / "ballast")
        wait_until(lambda: waits(disk / "state"), 30.0, every_s=0.2)
        assert driver.runs()
        time.sleep(9.0)  # longer than leases last without a renewal
        assert driver.runs(), driver.said()
        (disk / "ballast").unlink()
        assert driver.wait(90.0) == 0, driver.said()
        verify_ledger(ledger)
        assert [row for row in of_kind(ledger, "note") if "disk_full_s" in row["data"]]
        lost = sum(row["data"]["lost_steps"] for row in of_kind(ledger, "released"))
        assert lost == 0
        assert not of_kind(ledger, "failed")
        assert waits(disk / "state") == ""
    finally:
        driver.clean_up()
        subprocess.run(["umount", str(disk)], check=True)


def fill(path: Path) -> None:
    """Take all space of a disk."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def waits(state: Path) -> str:
    with RunReader(state) as run:
        told = json.loads(json.dumps(status_record(run)))
    return str(told["driver_waits"])


def test_the_first_decision_waits_for_few_writes(tmp_path: Path) -> None:
    """Where each takes 200 ms it is there within a second, however many jobs arrive."""
    run = FakeRun(tmp_path / "run", [job(f"j{k}", 20) for k in range(24)], "fifo", 4.0)
    statements: list[str] = []
    watch = run._watch_writes

    def watched(ledger: RunLedger) -> None:
        watch(ledger)
        ledger._db.set_trace_callback(statements.append)

    run._watch_writes = watched  # type: ignore[method-assign]
    ledger = run.execute()
    assert len(events(ledger, "arrived")) == 24
    began, decided = (
        next(k for k, said in enumerate(statements) if f"'{kind}'" in said)
        for kind in ("driver-started", "decided")
    )
    assert sum(said == "COMMIT" for said in statements[began:decided]) <= 4
    ledger.close()


@pytest.mark.parametrize("kill", range(-12, 13))
def test_drivers_that_are_killed_while_jobs_arrive_lose_none(kill: int, tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "run", [job(f"j{k}", 20) for k in range(5)], "las2d", 4.0)
    run.kill_at_write = [kill] if kill else []
    ledger = run.execute()
    assert len({row["job"] for row in events(ledger, "arrived")}) == 5
    assert set(run.states(ledger).values()) == {"finished"}
    verify_ledger(ledger.path)
    ledger.close()
