"""``execute``, ``status``, ``cancel`` and ``report``, as a person uses them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from shadowprice.cli import show
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.hosts.cli.view import Following, view
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.reports.run import RunReader
from support.execution_ledgers import GPUS, NAMES, Script, written

SECRET = "hunter2-token"
QUICK = f"""
jobs:
  - {{name: first, command: [sleep, "0.3"], iterations: 3, env: {{TOKEN: {SECRET}}}}}
  - {{name: second, command: ["{{python}}", -c, "print('hello')"], iterations: 2, gpus: 2}}
"""


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def started(*words: object, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shadowprice", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "160"},
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show.console, "_width", 160)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return written(tmp_path / "state", ended=False)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "jobs.yaml"
    path.write_text(QUICK)
    yield path
    stop_everything(tmp_path)


def stop_everything(folder: Path) -> None:
    """End the supervisors of leases below a folder, by the processes they wrote down."""
    for found in folder.rglob("supervisor.json"):
        told = json.loads(found.read_text())
        for pid, ticks in (
            (told.get("command_pid"), told.get("command_start_ticks")),
            (told.get("pid"), told.get("start_ticks")),
        ):
            if pid and start_ticks(pid) == ticks:
                os.kill(pid, signal.SIGKILL)


def start_ticks(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def test_status_shows_jobs_nodes_and_events(state: Path) -> None:
    done = call("status", state)
    assert done.exit_code == 0
    text = done.stdout
    assert "gavel:las on local:2" in text
    assert re.search(r"n0 +v100 +0:transformer +1:transformer", text)
    assert re.search(r"transformer +running .* 640/1,000 +n0:0 n0:1", text)
    assert "cancelled by a person" in text
    assert "transformer (epoch 1) runs, 8.0 s after the grant" in text
    assert "no driver runs here" in text
    record = json.loads(call("status", state, "--json").stdout)
    assert [job["name"] for job in record["jobs"]] == list(NAMES)
    assert record["now_s"] == 308.0


def test_follow_ends_when_nothing_follows(state: Path) -> None:
    done = call("status", state, "--follow")
    assert done.exit_code == 0
    assert done.stdout.count("\n") > 30
    # The date is of the zone of this machine.
    assert re.search(r"0:02:30 \d\d:\d\d:30  node n1 does not answer", done.stdout)


@pytest.mark.parametrize("command", [("status",), ("status", "--follow"), ("cancel",)])
def test_no_state_directory_is_two_and_no_traceback(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    words = (*command, tmp_path, *(["job"] if command == ("cancel",) else []))
    found = call(*words).exception
    assert isinstance(found, InputError)
    assert f"{tmp_path}: is no state directory of a run" in str(found)
    assert list(tmp_path.iterdir()) == []


def test_errors_leave_with_two_and_a_line(tmp_path: Path) -> None:
    process = started("status", tmp_path)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, "")
    assert stderr.startswith("error: ")
    assert "Traceback" not in stderr


def cancelled(state: Path) -> list[str]:
    ledger = RunLedger.open(state / "run.db", readonly=True)
    try:
        return ledger.cancelled()
    finally:
        ledger.close()


def test_cancel_writes_a_wish(state: Path) -> None:
    before = cancelled(state)
    done = call("cancel", state, "transformer", "transformer")
    assert done.exit_code == 0
    assert "started again" in done.stdout
    assert sorted(cancelled(state)) == sorted([*before, "transformer"])


@pytest.mark.parametrize(
    ("name", "message"), [("nobody", "has no job 'nobody'"), ("lstm", "is finished already")]
)
def test_cancel_is_all_or_nothing(state: Path, name: str, message: str) -> None:
    before = cancelled(state)
    found = call("cancel", state, "transformer", name).exception
    assert isinstance(found, InputError)
    assert message in str(found)
    assert cancelled(state) == before


def test_report_is_written(state: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = call("status", state, "--page", page)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == str(page)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "exists, expected a new file" in str(call("status", state, "--page", page).exception)
    refused = call("status", state, "--page", tmp_path / "none" / "x.html")
    assert "cannot be written" in str(refused.exception)


def shown(state: Path, width: int, height: int | None = None) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    with RunReader(state) as run:
        console.print(view(run, width, height=height))
    return console.export_text()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 110, 200])
def test_the_view_fits_every_terminal(state: Path, width: int) -> None:
    text = shown(state, width)
    assert max(map(len, text.splitlines())) <= width
    assert "transf" in text


def test_the_view_fits_a_low_terminal(tmp_path: Path) -> None:
    names = tuple(f"job-{k:03d}" for k in range(200))
    script = Script(tmp_path / "s", names=names)
    for name in names:
        script.arrive(name, 0.0)
        script.ledger.update_job(name, why="no GPU is free, " + "and long explained " * 9)
    script.grant(names[150], 1, 1.0, GPUS[:1])
    text = shown(tmp_path / "s", 100, height=30)
    assert text.count("\n") <= 30
    assert re.search(f"{names[150]} +running", text)  # who runs is shown before who waits
    assert re.search(r"and \d+ more", text)
    assert text.count("no GPU is free") > 5


def test_markup_and_escapes_in_names_are_text(tmp_path: Path) -> None:
    script = Script(tmp_path / "s", names=("[red]x[/red]", "y\x1b[2J"))
    for name in script.names:
        script.arrive(name, 0.0)
        script.ledger.update_job(name, why="[/]\x1b]0;title\x07 [bold")
    text = shown(tmp_path / "s", 160)
    assert "[red]x[/red]" in text
    assert "[/] ]0;title [bold" in text
    assert "\x1b" not in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_following_a_run_that_begins_later(tmp_path: Path, terminal: bool) -> None:
    file = Terminal() if terminal else io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120, height=40)
    with Following(tmp_path / "s", console) as following:
        time.sleep(0.3)
        script = Script(tmp_path / "s")
        script.ledger.set("ready", True)
        script.arrive("lstm", 1.0)
        time.sleep(0.7)
        script.grant("lstm", 1, 2.0, GPUS[:1])
    assert following.error is None
    assert "lstm (epoch 1) gets n0:0" in file.getvalue()
    assert ("\x1b[" in file.getvalue()) == terminal
    assert threading.active_count() == 1 or not any(t.name == "view" for t in threading.enumerate())


def test_a_view_that_fails_says_so_and_hurts_nobody(tmp_path: Path) -> None:
    script = Script(tmp_path / "s")
    script.ledger.set("ready", True)
    with Following(tmp_path / "s", Console(file=io.StringIO())) as following:
        time.sleep(0.5)
        script.ledger._db.execute("DROP TABLE events")
        time.sleep(0.6)
    assert following.error is not None
    assert "cannot be read" in str(following.error)


def test_dry_run_tells_all_and_does_nothing(jobs: Path, tmp_path: Path) -> None:
    words = ("execute", jobs, "--policy", "srtf", "--hosts", "local:2", "--round", 10, "--dry-run")
    done = call(*words)
    assert done.exit_code == 0, done.exception
    text = done.stdout
    assert "localhost/cpu:0 localhost/cpu:1" in text
    assert "sleep 0.3" in text
    assert "with TOKEN" in text
    assert "job first: no rate is known" in text
    assert "first decision: " in text
    assert "makespan 13.0 s" in text
    assert SECRET not in text
    told = call(*words, "--json").stdout
    assert SECRET not in told
    listed = call(*words, "--csv").stdout
    assert SECRET not in listed
    record = json.loads(told)
    rows = list(csv.DictReader(listed.splitlines()))
    assert [row["name"] for row in rows] == [job["name"] for job in record["jobs"]]
    assert record["jobs"][1]["command"] == [sys.executable, "-c", "print('hello')"]
    assert record["predicted"]["makespan_s"] == 13.0
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.yaml"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "magic"), "policy 'magic'"),
        (("--policy", "srtf", "--hosts", "moon"), "hosts 'moon'"),
        (("--policy", "srtf", "--round", "-1"), "round"),
        (("--policy", "srtf", "--limits", "retries=-1"), "retries"),
        (("--policy", "srtf", "--placement", "scatter"), "scatter"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_bad_options_name_themselves(
    jobs: Path, words: tuple[str, ...], message: str, dry: bool
) -> None:
    found = call("execute", jobs, *words, *(["--dry-run"] if dry else [])).exception
    assert isinstance(found, InputError)
    assert message in str(found)


def test_execute_status_and_report_of_a_real_run(jobs: Path, tmp_path: Path) -> None:
    where = tmp_path / "here"
    words = (
        "execute",
        jobs,
        "--policy",
        "fifo",
        "--hosts",
        "local:2",
        "--round",
        1,
        "--state",
        where,
    )
    done = call(*words)
    assert done.exit_code == 0, done.exception
    assert "second (epoch 1) gets localhost:0 localhost:1" in done.stdout
    assert "2 jobs: 2 finished" in done.stdout
    assert SECRET not in done.stdout
    record = json.loads(call("status", where, "--json").stdout)
    assert record["driver"] == "ended"
    assert [job["state"] for job in record["jobs"]] == ["finished", "finished"]
    assert call("status", where, "--page", where / "page.html").exit_code == 0
    page = (where / "page.html").read_text()
    written = [path for path in where.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}, written
    assert SECRET not in page
    assert "2 finished" in page
    # The same command again has nothing left to do.
    again = call(*words, "--json")
    assert (again.exit_code, json.loads(again.stdout)["driver"]) == (0, "ended")
    rows = list(csv.DictReader(call(*words, "--csv").stdout.splitlines()))
    assert [row["state"] for row in rows] == ["finished", "finished"]


def test_a_job_that_is_given_up_is_one(jobs: Path) -> None:
    jobs.write_text("jobs: [{name: bad, command: ['false'], iterations: 1}]")
    done = call(
        "execute",
        jobs,
        "--policy",
        "fifo",
        "--hosts",
        "local:1",
        "--round",
        0,
        "--limits",
        "retries=0",
        "--no-view",
    )
    assert done.exit_code == 1, done.exception
    assert "1 failed" in done.stdout
    assert "epoch" not in done.stdout


def wait_for(state: Path, kind: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            with RunReader(state) as run:
                if any(event["kind"] == kind for event in run.last_events):
                    return
        except InputError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no {kind} in {state}")


def test_ctrl_c_keeps_the_run_and_the_same_command_goes_on(jobs: Path, tmp_path: Path) -> None:
    done_file = tmp_path / "go"
    jobs.write_text(
        f"""
jobs:
  - name: long
    command: ["sh", "-c", "test -e {done_file} || exec sleep 60"]
    iterations: 1
  - {{name: other, command: [sleep, "60"], iterations: 1}}
"""
    )
    where = tmp_path / "jobs.state"
    words = (
        "execute",
        jobs,
        "--policy",
        "fifo",
        "--hosts",
        "local:2",
        "--round",
        1,
        "--limits",
        "grace_s=5",
    )
    process = started(*words)
    try:
        wait_for(where, "running")
        assert json.loads(call("status", where, "--json").stdout)["driver"] == "running"
        asked = call("cancel", where, "other")
        assert "at once" in asked.stdout
        wait_for(where, "cancelled")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert "the same command goes on with it" in stderr
    assert "other (epoch 1) is cancelled" in stdout
    assert json.loads(call("status", where, "--json").stdout)["driver"] == "stopped"
    done_file.touch()
    again = call(*words)
    assert again.exit_code == 1, again.exception  # one finished, one was cancelled
    assert "the driver goes on" in again.stdout
    assert "2 jobs: 1 finished, 1 cancelled" in again.stdout
