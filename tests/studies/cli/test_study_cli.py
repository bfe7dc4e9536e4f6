"""``shadowprice study`` as a person uses it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.cli.show import note
from shadowprice.errors import InputError

STUDY = """
study: small
workloads: {drawn: {generator: lognormal, parameters: {jobs: 30}}}
clusters: [2x4]
policies: [fifo, srtf]
seeds: 2
"""


def said(*words: object) -> str:
    done = CliRunner().invoke(app, ["study", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def test_a_study_is_run_reported_and_compared(file: Path, tmp_path: Path) -> None:
    found = json.loads(said("run", file, "--json"))
    assert (found["runs"], found["of"], found["failed"], found["verified"]) == (4, 4, 0, True)
    assert len(pd.read_parquet(tmp_path / "study.results" / "runs.parquet")) == 4
    assert "4 of 4 runs, each verified" in said("run", file)
    page = tmp_path / "study.results" / "report.html"
    assert said("report", file).strip() == str(page)
    assert "4 runs of 2 policies in 1 setting" in page.read_text()
    said("run", file, "-o", tmp_path / "again", "--jobs", 1)
    assert json.loads(said("compare", file, tmp_path / "again", "--json"))["same"] is True
    (row,) = csv.DictReader(said("run", file, "--csv").splitlines())
    assert (row["runs"], row["failed"], row["verified"]) == ("4", "0", "true")
    rows = csv.DictReader(said("compare", file, tmp_path / "again", "--csv").splitlines())
    assert "the same to the last bit" in [each["difference"] for each in rows][-1]
    file.write_text(STUDY.replace("jobs: 30", "jobs: 31"))
    said("run", file, "-o", tmp_path / "again")
    lines = said("compare", tmp_path / "study.results", tmp_path / "again")
    assert "workloads: drawn: parameters: jobs: 30 -> 31" in lines
    with pytest.raises(AssertionError):
        said("compare", tmp_path / "study.results", tmp_path / "again", "--same")


def test_reports_that_exist_are_not_replaced_unasked(file: Path, tmp_path: Path) -> None:
    said("run", file)
    page, paper = tmp_path / "page.html", tmp_path / "paper"
    paper.mkdir()
    of_paper = ("--paper", paper, "--style", "acm")
    report = ("report", file, "-o", page)
    for words, there in (
        (report, page),
        ((*report, *of_paper), paper / "tables.tex"),
    ):
        there.write_bytes(b"mine")
        with pytest.raises(InputError, match=f"{there.name}: exists, expected a new file, or"):
            said(*words)
        assert there.read_bytes() == b"mine"
        if words[-2:] != of_paper[-2:]:
            assert said(*words, "--force").strip() == str(there)
            assert len(there.read_bytes()) > 1000
            there.unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="paper: cannot be made: Not a directory"):
        said(*report, "--paper", tmp_path / "file" / "paper", "--style", "acm", "--force")
    with pytest.raises(InputError, match=r"cannot be written: there is no directory"):
        said("report", file, "-o", tmp_path / "none" / "page.html")


def test_results_without_a_row_are_refused(file: Path, tmp_path: Path) -> None:
    wide = STUDY.replace("jobs: 30", "jobs: 30, gang_shares: {2: 1.0}")
    file.write_text(wide.replace("2x4", "1x1"))
    with pytest.raises(AssertionError):
        said("run", file)
    for words in (("report", file), ("compare", file, file)):
        with pytest.raises(InputError, match="no run has a row, 4 failed"):
            said(*words)


def test_an_address_is_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    note("hosts ray:x:1")
    assert "hosts ray:x:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "none.yaml"), "none.yaml: no such file or folder"),
        (("report", "none"), "none: no such file or folder"),
        (("run", "FILE", "--jobs", -1), "--jobs is -1, expected 0 or more"),
        (("run", "FILE", "--on", "slurm"), "on 'slurm': expected ray, ray:HOST:PORT"),
        (("report", "FILE", "--style", "acm"), "--paper and --style go together"),
        (("report", "FILE"), "has no study.json, expected the folder"),
    ],
)
def test_mistakes_are_told_in_one_line(file: Path, words: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        said(*(file if word == "FILE" else word for word in words))
    assert message in str(caught.value)


def test_conditions_may_seal_policies(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "from shadowprice.solvers.policy import Decision\n"
        "if os.getcwd() != '/':\n"
        "    raise RuntimeError('is run where the workload is')\n"
        "class Mine:\n"
        "    name, knows, preemptive = 'mine', frozenset(), False\n"
        "    def decide(self, state):\n"
        "        return Decision(state).start_all()\n"
    )
    sealed = "policies: [mine.py:Mine]\nconditions: {sealed: {sealed: true}}\n"
    file.write_text(STUDY.replace("policies: [fifo, srtf]\n", sealed))
    found = json.loads(said("run", file, "--json"))
    assert (found["runs"], found["failed"], found["verified"]) == (2, 0, True)
    file.write_text(STUDY.replace("[fifo, srtf]", "[mine.py:Mine]"))
    with pytest.raises(InputError, match="is run where the workload is"):
        said("run", file, "-o", tmp_path / "again")
