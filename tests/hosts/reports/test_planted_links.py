"""Links that a job plants where reports and measurements are written: nothing is written through them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.hosts.reports.results import MEASURED, results
from support.fake_run import FakeRun
from support.in_memory_runs import job


@pytest.fixture
def state(tmp_path: Path) -> Path:
    run = FakeRun(tmp_path / "run", [job("a"), job("b", 200)], "srtf")
    run.execute().close()
    return run.state


def test_reports_never_write_through_a_link(state: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    results(state)
    page = state / "report.html"
    written = [*(state / MEASURED).iterdir(), page]
    assert len(written) >= 5
    for path in written:
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
    results(state)
    done = CliRunner().invoke(
        app, ["status", str(state), "--page", str(page), "--force"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert precious.read_text() == "precious"
    assert {path.lstat().st_mode & 0o170777 for path in written} == {0o100600}


def test_measurements_are_not_written_into_a_folder_that_is_a_link(
    state: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (state / MEASURED).symlink_to(elsewhere)
    results(state)
    assert not list(elsewhere.iterdir())
    assert (state / MEASURED / "jobs.csv").is_file()
