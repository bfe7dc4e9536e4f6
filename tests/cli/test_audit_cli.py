"""``shadowprice audit`` as a person uses it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import shadowprice as sp
from shadowprice.analysis.audit.rows import schedule_rows
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.workload_files import write_workload
from support.command_line import CommandLine


@pytest.fixture
def shadowprice(capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capfd, columns=200)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    jobs = sp.generate("lognormal", jobs=40, seed=3, load=1.2, gpus_total=16)
    write_workload(jobs, tmp_path / "jobs.csv")
    schedule_rows(sp.simulate(jobs, "4x4", "fifo")).to_csv(tmp_path / "ran.csv", index=False)
    return tmp_path / "ran.csv"


def test_a_verdict_in_words_and_as_json(shadowprice: CommandLine, ran: Path) -> None:
    words = (ran, "--cluster", "4x4", "--budget", "0")
    shown = shadowprice("audit", *words).stdout
    assert "40 verified" in shown
    assert "none has less than" in shown
    result = json.loads(shadowprice("audit", *words, "--json").stdout)
    assert result["runs"][0]["verified_jobs"] == 40
    assert result["runs"][0]["objectives"]["flow"]["policies"][1]["policy"] == "easy"
    assert "made_by" in result


def test_a_trace_says_what_the_jobs_are(shadowprice: CommandLine, ran: Path) -> None:
    words = ("--schedule", ran, "--cluster", "4x4", "--policies", "srtf", "--budget", "0", "--json")
    with_trace = json.loads(shadowprice("audit", ran.parent / "jobs.csv", *words).stdout)["runs"][0]
    alone = json.loads(shadowprice("audit", *words).stdout)["runs"][0]
    assert with_trace["objectives"] == alone["objectives"]
    assert with_trace["notes"] != alone["notes"]


def test_all_contradictions_are_written(
    shadowprice: CommandLine, ran: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(ran)
    rows.loc[3, "end"] = rows.loc[3, "start"] - 1
    rows.to_csv(ran, index=False)
    output = tmp_path / "wrong.csv"
    done = shadowprice(
        "audit", ran, "--cluster", "4x4", "--budget", "0", "--contradictions", output
    )
    assert "39 verified" in done.stdout
    table = pd.read_csv(output)
    assert (table["row"].tolist(), table["kind"].tolist()) == ([4], ["ends before it starts"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected a log, or --schedule"),
        (("nothing.csv", "--cluster", "4x4"), "nothing.csv: no such file"),
        (("--schedule", "nothing.csv", "--cluster", "4x4"), "nothing.csv: no such file"),
    ],
)
def test_what_is_missing_is_one_line(
    shadowprice: CommandLine, words: tuple[str, ...], message: str
) -> None:
    done = shadowprice("audit", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_pages_and_pictures_are_written(
    shadowprice: CommandLine, ran: Path, tmp_path: Path
) -> None:
    page, plot = tmp_path / "audit.html", tmp_path / "audit.png"
    words = ("--cluster", "4x4", "--budget", "0")
    done = shadowprice("audit", ran, *words, "--page", page, "--plot", plot, "--day", "0")
    assert done.returncode == 0
    assert "<svg" in page.read_text(encoding="utf-8")
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "exists" in shadowprice("audit", ran, *words, "--page", page).stderr
    assert "--day 1: goes with --page" in shadowprice("audit", ran, *words, "--day", "1").stderr


def test_several_runs_are_a_table(shadowprice: CommandLine, tmp_path: Path) -> None:
    jobs = [{"id": "a", "gpus": 1, "arrival_s": 0}]
    runs = {
        name: {"round_s": 10, "rounds": [{}] * wait + [{"a": [0]}]}
        for name, wait in (("late", 1), ("prompt", 0))
    }
    path = tmp_path / "rounds.json"
    path.write_text(json.dumps({"cluster": "1x1", "jobs": jobs, "runs": runs}))
    done = shadowprice("audit", path, "--budget", "0")
    assert done.returncode == 0
    assert "flow of all 2 runs" in done.stdout
    (late,) = [line for line in done.stdout.splitlines() if "late" in line and "JCT" in line]
    assert [each.strip() for each in late.split("│")][3:7] == ["20", "10", "2x", "2x"]


def test_what_was_run_is_written_for_others_to_verify_and_certify(
    shadowprice: CommandLine, ran: Path, tmp_path: Path
) -> None:
    words = ("--cluster", "4x4", "--budget", "0", "--json", "-o", tmp_path / "run")
    result = json.loads(shadowprice("audit", ran, *words).stdout)["runs"][0]
    assert shadowprice("verify", tmp_path / "run").returncode == 0
    proof = tmp_path / "run.jsonl"
    assert shadowprice("certify", tmp_path / "run", "-o", proof, "--budget", "0").returncode == 0
    claim = json.loads(shadowprice("verify", proof, "--json").stdout)
    assert claim["objective"] == "flow"
    first = result["objectives"]["flow"]["policies"][0]
    assert Fraction(claim["bound"]) / TICKS_PER_S >= Fraction(first["bound"])
    assert float(Fraction(claim["cost"]) / TICKS_PER_S) == first["cost"]
