"""What a real run leaves: a log that is verified, measurements and drift."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.reports.results import results, verify_run
from shadowprice.hosts.supervision.files import write_text
from support.fake_run import FakeRun


def job(name: str, iterations: int = 200, gpus: int = 1, **more: object) -> dict[str, object]:
    return {"name": name, "iterations": iterations, "gpus": gpus, "throughput": 10.0, **more}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    jobs = [job("a"), job("b", 300, 2), job("c", 100, 2, arrival_s=9.0)]
    run = FakeRun(tmp_path / "run", jobs, "las2d:thresholds_gpu_s=8")
    run.execute().close()
    return run.state


def test_a_run_is_verified_and_its_simulation_agrees_with_it(state: Path) -> None:
    found = results(state)
    assert found.checked["jobs"] == 3
    assert found.drift is not None
    # The host in memory does what simulation assumes, but for its rounding of times and steps.
    assert found.drift.relative_error == pytest.approx(0.0, abs=0.1)
    for name in ("throughputs.json", "jobs.csv", "cluster.toml", "drift.csv", "drift.txt"):
        assert (state / "measured" / name).is_file()
    printed = CliRunner().invoke(app, found.command.split()[1:])
    assert printed.exit_code == 0, printed.output


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("writes", [0, 1])
def test_a_crash_leaves_no_drift_beside_remarks_on_another(
    state: Path, monkeypatch: pytest.MonkeyPatch, before: bool, writes: int
) -> None:
    if before:
        results(state)
    left = iter(range(writes))

    def crash(path: str, text: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        write_text(path, text)

    monkeypatch.setattr("shadowprice.hosts.reports.results.write_text", crash)
    with pytest.raises(KeyboardInterrupt):
        results(state)
    assert not (state / "measured" / "drift.csv").exists()
    assert (state / "measured" / "drift.txt").exists() == (before or writes == 1)


def test_a_log_that_was_tampered_with_is_refused(state: Path) -> None:
    assert CliRunner().invoke(app, ["verify", str(state)]).exit_code == 0
    with sqlite3.connect(state / "run.db") as db:
        db.execute(
            "DELETE FROM events WHERE seq = (SELECT MIN(seq) FROM events WHERE kind = 'released')"
        )
    with pytest.raises(VerificationError, match="form: is numbered"):
        verify_run(state)


def test_a_run_of_an_earlier_program_is_shown_and_not_gone_on_with(state: Path) -> None:
    with sqlite3.connect(state / "run.db") as db:
        db.execute("PRAGMA user_version = 2")
    assert results(state).drift is not None
    with pytest.raises(InputError, match=r"run\.db: has version 2, expected 3"):
        RunLedger.open(state / "run.db")
    with sqlite3.connect(state / "run.db") as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(InputError, match=r"run\.db: has version 1, expected 3"):
        verify_run(state)


def test_something_else_is_no_state_directory(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a ledger"):
        verify_run(tmp_path)
