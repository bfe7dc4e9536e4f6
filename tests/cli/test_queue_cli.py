"""``shadowprice serve`` and ``queue``: what they print, and what they refuse."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("aiohttp", reason="the extra serve is not installed")

from shadowprice.analysis.service.http_server import ServiceServer
from shadowprice.cli import app
from shadowprice.errors import InputError
from shadowprice.execution.service.users import Access
from support.fake_service import ALICE, FakeService

ENTRY = {"name": "j", "command": ["true", "\x1b[31m"], "iterations": 1500, "gpus": 1}


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    # Not pytest's folder: paths of sockets are short.
    folder = Path(tempfile.mkdtemp())
    run = FakeService(folder / "r", (), plan=[(0.0, ALICE, ENTRY)])
    run.execute().close()
    with ServiceServer(run.state, Access(os.getuid(), {}), run.state / "service.sock"):
        yield run.state
    shutil.rmtree(folder)


def said(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["queue", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_users_submit_list_ask_why_and_cancel(state: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": [ENTRY, ENTRY | {"name": "k"}]}))
    assert said("submit", state, tmp_path / "jobs.yaml", "--request", "r") == "j-2\nk-3\n"
    again = said("submit", state, tmp_path / "jobs.yaml", "--request", "r", "--json")
    assert json.loads(again)["jobs"] == ["j-2", "k-3"]
    listed = said("list", state)
    assert "1,500 / 1,500" in listed
    assert "0 of 4 devices are held" in listed
    assert {job["name"] for job in json.loads(said("list", state, "--json"))["jobs"]} == {
        *("j-1", "j-2", "k-3")
    }
    mine = json.loads(said("list", state, "--mine", "--json"))["jobs"]
    assert {job["name"] for job in mine} == {"j-2", "k-3"}
    assert said("why", state, "k-3") == "k-3 was submitted; the next decision sees it\n"
    assert said("output", state, "j-1") == "\n"
    assert said("cancel", state, "j-2", "k-3") == "to be cancelled: j-2, k-3\n"
    assert said("token", state, "--drop") == "your tokens are dropped\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--policy", "no-such"], "no-such"),
        (["--policy", "fifo", "--http", "99999"], "--http is 99999"),
        (["--policy", "fifo", "--webhook", "ftp://x"], "expected an address"),
        (["--policy", "fifo", "--user", "no-such-user-9"], "no user 'no-such-user-9'"),
        (["--policy", "fifo", "--health-check", "a 'b"], "--health-check"),
        (["--policy", "hadare"], "expected one that runs gangs"),
        (["--policy", "gittins2d"], "services of all jobs"),
    ],
)
def test_a_service_that_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, options: list[str], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        CliRunner().invoke(app, ["serve", str(tmp_path / "pool"), *options], catch_exceptions=False)
    assert not (tmp_path / "pool").exists()


def test_a_drain_names_what_there_is(state: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["drain", str(state), "n1:0"], catch_exceptions=False)
    assert done.output.startswith("drained: n1:0; the driver will act when it is started")
    done = runner.invoke(app, ["drain", str(state), "n1", "--back"], catch_exceptions=False)
    assert done.output.startswith("to be given out again: n1; ")
    with pytest.raises(InputError, match="no node or device 'n9', expected one of n0, n1, n0:0"):
        runner.invoke(app, ["drain", str(state), "n1", "n9"], catch_exceptions=False)
    with pytest.raises(InputError, match="expected no --now"):
        runner.invoke(app, ["drain", str(state), "n1", "--now", "--back"], catch_exceptions=False)
