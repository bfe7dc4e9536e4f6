"""``--run``: switches of a run from a file, in the words of a study's conditions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.cli.app import app
from shadowprice.errors import InputError

TOML = """\
round_s = 60
placement = "consolidate"
drop_infeasible = true

[with.charges]
restart_s = 30

[with.spread]
file = "speeds.json"
"""
YAML = """\
round_s: 60
placement: consolidate
drop_infeasible: true
with:
  charges: {restart_s: 30}
  spread: {file: speeds.json}
"""
OPTIONS = (
    "--round",
    "60",
    "--placement",
    "consolidate",
    "--drop-infeasible",
    "--with",
    "charges:restart_s=30",
    "--with",
)


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("files").mkdir()
    speeds = {"models": {}, "default": {"skew": 0.5, "spread_speed": 0.5}}
    Path("files", "speeds.json").write_text(json.dumps(speeds))
    Path("jobs.csv").write_text("id,submit,gpus,duration\na,0,4,90\nb,5,2,40\nc,6,9,9\n")
    return "jobs.csv"


def simulated(trace: str, *words: str) -> dict[str, object]:
    given = ("simulate", trace, "--cluster", "2x4", "--policy", "srtf", "--json", *words)
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return {name: each for name, each in found.items() if name not in ("cpu_s", "made_by")}


@pytest.mark.parametrize(("name", "text"), [("run.toml", TOML), ("run.yaml", YAML)])
def test_a_file_says_what_options_say(trace: str, name: str, text: str) -> None:
    Path("files", name).write_text(text)
    by_file = simulated(trace, "--run", f"files/{name}")
    assert by_file == simulated(trace, *OPTIONS, "spread:file=files/speeds.json")
    assert by_file != simulated(trace, "--drop-infeasible")


def test_a_study_has_the_same_words(trace: str) -> None:
    Path("files", "run.yaml").write_text(YAML)
    switches = WrittenOptions.load("files/run.yaml")
    run = switches.read("2x4", jobs=trace)
    jobs = sp.load(trace)
    outcome = sp.simulate(jobs, run.cluster, "srtf", run.options, drop_infeasible=True)
    study = {
        "study": "same",
        "workloads": {"w": {"trace": trace}},
        "clusters": ["2x4"],
        "policies": ["srtf"],
        "conditions": {
            "c": {
                **{"round_s": 60, "placement": "consolidate", "drop_infeasible": True},
                "with": {
                    "charges": {"restart_s": 30},
                    "spread": {"file": "files/speeds.json"},
                },
            }
        },
    }
    assert sp.study(study).runs["avg_jct_s"].tolist() == [outcome.summary()["avg_jct_s"]]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (
            "round_s = 60",
            ("--round", "5"),
            "run.toml: says round_s, as options do; expected it in one",
        ),
        ("[with.charges]", ("--with", "charges"), "run.toml: says with charges, as options do"),
        ("rond_s = 60", (), "run.toml: unknown key 'rond_s'; did you mean 'round_s'?"),
        ("round_s = -1", (), "run.toml: round_s is -1, expected seconds >= 0"),
        ("[with.charge]", (), "run.toml: with: charge: no such term, did you mean 'charges'"),
        ("round_s = ", (), "run.toml: "),
    ],
)
def test_each_mistake_is_one_line(
    trace: str, text: str, words: tuple[str, ...], message: str
) -> None:
    Path("run.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        simulated(trace, "--run", "run.toml", *words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_preset_of_a_file_has_names_of_its_own(trace: str) -> None:
    Path("run.toml").write_text('preset = "tiresias"')
    given = ("compare", trace, "--cluster", "4x4", "--policies", "dlas-gpu", "--run", "run.toml")
    done = CliRunner().invoke(app, (*given, "--json"), catch_exceptions=False)
    assert json.loads(done.stdout)["policies"][0]["policy"] == "dlas-gpu"
