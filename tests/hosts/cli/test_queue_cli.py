"""``shadowprice submit``, ``status`` and ``execute --queue``: what they print, and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.hosts.live.ledger import RunLedger
from support.fake_queue import FakeQueue

ENTRY = {"name": "j", "command": ["true", "\x1b[31m"], "iterations": 1500, "gpus": 1}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    run = FakeQueue(tmp_path / "r", (), plan=[(0.0, ENTRY)])
    ledger = run.execute()
    ledger.set("ended", False)  # it was stopped, as a queue is
    ledger.close()
    return run.state


def printed(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_its_owner_adds_lists_asks_why_and_cancels(state: Path, tmp_path: Path) -> None:
    jobs = [ENTRY | {"name": "k"}, ENTRY | {"name": "m"}]
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": jobs}))
    assert printed("submit", state, tmp_path / "jobs.yaml") == "k\nm\n"
    with pytest.raises(InputError, match="job k: its name is that of a job of the run, which is"):
        printed("submit", state, tmp_path / "jobs.yaml")
    listed = printed("status", state)
    assert "1,500/1,500" in listed
    rows = {job["name"]: job for job in json.loads(printed("status", state, "--json"))["jobs"]}
    listed = csv.DictReader(printed("status", state, "--csv").splitlines())
    assert [(row["name"], row["state"]) for row in listed] == [
        (name, job["state"]) for name, job in rows.items()
    ]
    assert printed("status", state, "k", "--csv").splitlines()[1].startswith("k,expected,")
    assert {name: job["state"] for name, job in rows.items()} == {
        **{"j": "finished", "k": "expected", "m": "expected"}
    }
    assert printed("status", state, "m") == "m is expected: the next decision sees it\n"
    with pytest.raises(InputError, match="has no job 'x', expected one of j, k, m"):
        printed("status", state, "x")
    assert printed("cancel", state, "k", "m").startswith("to be cancelled: k, m; ")
    (tmp_path / "more.yaml").write_text(json.dumps({"jobs": [ENTRY | {"name": "n"}]}))
    assert printed("submit", state, tmp_path / "more.yaml", "--csv") == "job\nn\n"
    with pytest.raises(InputError, match="job 'j' is finished already"):
        printed("cancel", state, "j", "m")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "expected JOBS, or --queue with --state"),
        (["--queue"], "expected JOBS, or --queue with --state"),
        (["--queue", "--state", "pool", "jobs.yaml"], "without JOBS"),
        (["--queue", "--state", "pool", "--dry-run"], "without JOBS and --dry-run"),
        (["--queue", "--state", "pool", "--health-check", "a 'b"], "--health-check"),
        (["--queue", "--state", "pool", "--policy", "no-such"], "no-such"),
        (
            ["--queue", "--state", "pool", "--policy", "hadare"],
            "has a simulator of its own, and is simulated only",
        ),
        (["--queue", "--state", "pool", "--policy", "gittins2d"], "services of all jobs"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["execute", "--policy", "fifo", "--no-view", *options]
    with pytest.raises(InputError, match=expected):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_what_was_given_up_is_taken_up_all_or_what_is_named(state: Path) -> None:
    with pytest.raises(InputError, match="no job was given up"):
        printed("retry", state)
    with pytest.raises(
        InputError, match="job 'j' is finished, expected one that was given up: there is"
    ):
        printed("retry", state, "j")
    ledger = RunLedger.open(state / "run.db")
    for name in ("bad", "worse"):
        ledger.add_job(name, position=9, iterations=5, gpus=1, arrival_s=0.0, state="failed")
    ledger.set("ended", True)
    with pytest.raises(InputError, match=r"job 'x' is none of the run, .* up: bad, worse; nothing"):
        printed("retry", state, "bad", "x")
    assert not ledger.retried()
    assert printed("retry", state, "bad").startswith(
        "to be taken up again: bad; the same `shadowprice"
    )
    assert ledger.retried() == {"bad"}
    assert ledger.value("ended") is False
    assert printed("retry", state).startswith("to be taken up again: bad, worse; ")
    ledger.close()


def test_a_drain_names_what_there_is(state: Path) -> None:
    assert printed("drain", state, "n1:0").startswith(
        "drained: n1:0; the driver will act when it is started"
    )
    assert printed("undrain", state, "n1").startswith("to be given out again: n1; ")
    with pytest.raises(InputError, match="no node or device 'n9', expected one of n0, n1, n0:0"):
        printed("drain", state, "n1", "n9")
