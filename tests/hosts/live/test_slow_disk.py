"""A disk on which each wait for it takes 200 ms: the first decision does not wait for many."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.settings import Settings

SYNC_S, JOBS = 0.2, 24
FIRST_DECISION_S, MOST_SYNCS = 1.0, 3
"""Three: what the run begins with, what hosts answered, the decision. A fourth is of its starts."""


def test_the_first_decision_is_taken_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waits for the disk with each commit, in C, where a test cannot slow it: commits are slowed here."""
    syncs: list[tuple[float, str]] = []
    fsync, run_statement = os.fsync, RunLedger._execute

    def slow_fsync(descriptor: int) -> None:
        syncs.append((time.monotonic(), "fsync"))
        time.sleep(SYNC_S)
        fsync(descriptor)

    def slow_commit(ledger: RunLedger, statement: str, values: tuple[object, ...] = ()) -> None:
        if statement == "COMMIT":
            syncs.append((time.monotonic(), statement))
            time.sleep(SYNC_S)
        run_statement(ledger, statement, values)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    monkeypatch.setattr(RunLedger, "_execute", slow_commit)
    jobs = tmp_path / "jobs.yaml"
    lines = (f"  - {{name: j{k}, command: ['true'], iterations: 1}}" for k in range(JOBS))
    jobs.write_text("\n".join(["jobs:", *lines]))
    state = tmp_path / "state"
    settings = Settings(jobs, "srtf", "local:24", round_s=0.0, state=state)
    assert execute(settings).all_finished
    ledger = RunLedger.open(state / "run.db", readonly=True)
    try:
        events = ledger.events()
        began_s = time.monotonic() - (time.time() - float(ledger.value("began_unix")))
    finally:
        ledger.close()
    (first, *_) = (event for event in events if event["kind"] == "decided")
    assert len(first["data"]["starts"]) == JOBS
    # It is on the disk with the commit that follows.
    assert first["time_s"] + SYNC_S < FIRST_DECISION_S
    until_s = began_s + first["time_s"] + SYNC_S / 2
    assert len([at_s for at_s, _ in syncs if began_s <= at_s <= until_s]) <= MOST_SYNCS
