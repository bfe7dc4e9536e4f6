"""The command line, as a person uses it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shadowprice.instances.generators import generate
from shadowprice.instances.workload_files import write_workload
from support.command_line import CommandLine
from support.peers import PEERS, needs_peers, peer_workload, recorded
from support.printed import without_origin
from support.summary import SUMMARY_KEYS


def process(*words: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, as a shell starts it."""
    command = [sys.executable, "-m", "shadowprice", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


@pytest.fixture
def shadowprice(capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capfd, columns=200)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    write_workload(generate("lognormal", jobs=60, seed=3, load=1.2, gpus_total=16), path)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "--policy", "gavel"),
        ("simulate", "--policy", "fifo", "--json"),
        ("compare", "--policies", "fifo,srtf", "--budget", "0"),
    ],
)
def test_types_that_jobs_do_not_tell_apart_are_named_once(
    shadowprice: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    said = "GPUs of v100 and k80 are taken as equally fast: the jobs have no throughputs"
    path, (name, *words) = tmp_path / "jobs.csv", command
    path.write_text("id,arrival_s,gpus,work\na,0,1,10\nb,5,2,20\n")
    done = shadowprice(name, path, "--cluster", "1x4:v100,1x4:k80", *words)
    assert done.returncode == 0
    assert done.stderr.count(said) == 1
    assert said not in shadowprice(name, path, "--cluster", "2x4:v100", *words).stderr
    rates = tmp_path / "rates.json"
    rates.write_text(json.dumps({k: {"('m', 1)": {"null": 2.0}} for k in ("v100", "k80")}))
    path.write_text("id,arrival_s,gpus,iterations,model\na,0,1,10,m\n")
    told = shadowprice(name, path, "--cluster", "1x4:v100,1x4:k80", "--throughputs", rates, *words)
    path.write_text("id,arrival_s,gpus,work,allowed_types\na,0,1,10,k80\n")
    limited = shadowprice(name, path, "--cluster", "1x4:v100,1x4:k80", *words)
    for quiet in (told, limited):
        assert quiet.returncode == 0
        assert "equally fast" not in quiet.stderr


def test_rates_that_jobs_in_seconds_have_no_use_for(
    shadowprice: CommandLine, tmp_path: Path
) -> None:
    path, rates = tmp_path / "jobs.csv", tmp_path / "rates.json"
    path.write_text("id,arrival_s,gpus,work,model\na,0,1,10,m\n")
    words = ("simulate", path, "--cluster", "1x4:v100", "--policy", "fifo", "--throughputs", rates)
    rates.write_text(json.dumps({"v100": {"('m', 1)": {"null": 2.0}}}))
    done = shadowprice(*words)
    assert done.returncode == 0
    assert "rates are not used" in done.stderr
    rates.write_text(json.dumps({"v100": {"('m', 1)": {"null": 2.0, "('m', 1)": [1.0, 1.0]}}}))
    refused = shadowprice(*words)
    assert refused.returncode == 2
    assert "has rates of pairs in iterations a second" in refused.stderr


def test_simulate_verify_and_the_jobs_file(trace: Path, tmp_path: Path) -> None:
    done = process(
        "simulate",
        trace,
        "--cluster",
        "4x4",
        "--policy",
        "srtf",
        "--json",
        "--jobs-out",
        tmp_path / "out.csv",
        "-o",
        tmp_path / "run",
        "--seed",
        7,
    )
    assert done.returncode == 0, done.stderr
    summary = without_origin(done.stdout)
    assert list(summary) == SUMMARY_KEYS
    assert summary["completed"] == summary["jobs"] == 60
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(rows[0])[:6] == [
        "id",
        "arrival_s",
        "first_start_s",
        "end_s",
        "jct_s",
        "preemptions",
    ]
    assert sum(float(row["jct_s"]) for row in rows) / 60 == pytest.approx(summary["avg_jct_s"])
    again = process("verify", tmp_path / "run", "--json")
    assert without_origin(again.stdout) == summary


def test_compare_and_its_picture(shadowprice: CommandLine, trace: Path, tmp_path: Path) -> None:
    done = shadowprice(
        "compare",
        trace,
        "--cluster",
        "4x4",
        "--policies",
        "fifo,srtf",
        "--objective",
        "flow",
        "--budget",
        5,
        "--json",
        "--plot",
        tmp_path / "c.png",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["objective"] == "flow"
    assert [row["policy"] for row in result["policies"]] == ["fifo", "srtf"]
    for row in result["policies"]:
        assert list(row) == [
            "policy",
            "cost",
            "bound",
            "bound_kind",
            "class",
            "optimum",
            "ratio",
            "certified",
            "sharper",
        ]
        assert row["class"] == {
            "preemptive": True,
            "sharing": False,
            "widths": "rigid",
            "placement": "any",
        }
        assert row["ratio"] == pytest.approx(row["cost"] / row["bound"])
        assert row["ratio"] >= 1
        assert row["certified"]
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"


def test_policies_and_generate(shadowprice: CommandLine, tmp_path: Path) -> None:
    listed = shadowprice("policies", "--all").stdout
    for name in ("fifo", "fifo-skip", "easy", "sjf", "srtf", "srsf", "las", "las2d", "gittins2d"):
        assert name in listed
    assert "dlas-gpu" in shadowprice("policies", "--preset", "tiresias").stdout
    done = shadowprice("generate", "gavel", "-o", tmp_path / "g.parquet", "--jobs", 20)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cluster", "4y4", "--policy", "srtf"), "NODESxGPUS"),
        (("--cluster", "4x4", "--policy", "magic"), "that `shadowprice policies --all` lists"),
        (
            ("--cluster", "4x4", "--policy", "fifo", "--preset", "borg"),
            "expected one of gavel, helios",
        ),
        (("--cluster", "4x4", "--policy", "fifo", "--placement", "scatter"), "expected one of"),
        (("--cluster", "1x4", "--policy", "fifo"), "GPUs of one type"),
        (("--cluster", "4x4", "--policy", "fifo", "--round", "-5"), "expected seconds >= 0"),
        (("--cluster", "none.toml", "--policy", "fifo"), "no such file"),
        (("--cluster", "4x4", "--policy", "fifo", "--throughputs", "none.json"), "no such file"),
        (
            ("--cluster", "4x4", "--policy", "dlas-gpu-gittins", "--preset", "tiresias"),
            "needs a sample",
        ),
    ],
)
def test_bad_input_is_two_and_no_traceback(
    shadowprice: CommandLine, trace: Path, words: tuple[str, ...], message: str
) -> None:
    done = shadowprice("simulate", trace, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_process_ends_with_two_and_no_traceback(trace: Path) -> None:
    done = process("simulate", trace, "--cluster", "4y4", "--policy", "srtf")
    assert (done.returncode, done.stdout) == (2, "")
    assert "NODESxGPUS" in done.stderr
    assert "Traceback" not in done.stderr


def test_jobs_that_never_fit_can_be_dropped(shadowprice: CommandLine, trace: Path) -> None:
    done = shadowprice(
        "simulate", trace, "--cluster", "1x4", "--policy", "fifo", "--drop-infeasible", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert "dropped" in done.stderr
    assert 0 < json.loads(done.stdout)["jobs"] < 60


@needs_peers
@pytest.mark.parametrize(
    ("peer", "words", "run"),
    [
        ("tiresias", ("--policy", "dlas-gpu"), "dlas-gpu/count"),
        ("tiresias", ("--policy", "fifo/yarn"), "fifo/yarn"),
        ("helios", ("--policy", "sjf", "--placement", "consolidate"), "helios/sjf@consolidate"),
        ("pai", ("--policy", "SJF"), "pai/SJF"),
    ],
)
def test_presets_from_the_command_line(
    shadowprice: CommandLine, tmp_path: Path, peer: str, words: tuple[str, ...], run: str
) -> None:
    file = f"{peer}_W2.json"
    jobs = peer_workload(file)
    frame = jobs.to_frame()[["id", "gpus", "arrival_s", "work"]]
    frame.columns = ["id", "gpus", "submit", "duration"]
    frame.to_csv(tmp_path / "jobs.csv", index=False)
    c = recorded(file)["cluster"]
    cluster = f"{c['nodes']}x{c.get('gpus_per_node', c['gpus'])}"
    out = tmp_path / "out.csv"
    done = shadowprice(
        "simulate",
        tmp_path / "jobs.csv",
        "--cluster",
        cluster,
        "--preset",
        peer,
        *words,
        "--jobs-out",
        out,
    )
    assert done.returncode == 0, done.stderr
    ends = {row["id"]: float(row["end_s"]) for row in csv.DictReader(out.read_text().splitlines())}
    expected = recorded(file)["runs"][run]["end"]
    assert [ends[str(job[0])] for job in recorded(file)["jobs"]] == expected


@needs_peers
def test_synergy_from_the_command_line(shadowprice: CommandLine, tmp_path: Path) -> None:
    file = "synergy_static32.json"
    with (tmp_path / "jobs.csv").open("w", newline="") as sheet:
        rows = csv.writer(sheet)
        rows.writerow(["id", "model", "arrival", "iterations", "gpus"])
        rows.writerows(recorded(file)["jobs"])
    out = tmp_path / "out.csv"
    done = shadowprice(
        "simulate",
        tmp_path / "jobs.csv",
        "--cluster",
        "4x8",
        "--preset",
        "synergy",
        "--policy",
        "LAS+fair",
        "--throughputs",
        PEERS / file,
        "--first-round",
        1,
        "--jobs-out",
        out,
    )
    assert done.returncode == 0, done.stderr
    found = {row["id"]: float(row["jct_s"]) for row in csv.DictReader(out.read_text().splitlines())}
    golden = recorded(file)["runs"]["LAS+fair"]["jct"]
    assert [found[str(job[0])] for job in recorded(file)["jobs"]] == pytest.approx(golden, abs=1e-3)
