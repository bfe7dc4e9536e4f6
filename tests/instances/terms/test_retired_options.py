"""Options that are terms now: each answers with its new word, and the new word works."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from shadowprice.analysis.run_directory.directory import load
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.terms.options.reading import terms_of_options
from shadowprice.instances.terms.options.retired import RETIRED, RetiredOption
from shadowprice.studies.plan import plan_study
from shadowprice.studies.run_study import study as run_study
from shadowprice.studies.study_file import study_of
from support.command_line import CommandLine

FILES = {
    "graphs": "graphs.json",
    "profiles": "profiles.json",
    "spread": "spread.json",
    "widths": "widths.json",
    "sharing": "busy.json",
    "quotas": "quotas.csv",
    "failures": "faults.csv",
}
GRAPH = {"name": "g", "model": {"name": "resnet-50", "data": 1, "batch": 16, "flop_per_s": 1e14}}
PROFILE = {
    "model": "resnet-50",
    "gpus": 1,
    "cpus_per_gpu": [1, 3],
    "memory_gb_per_gpu": [62.5],
    "speed": [[0.5], [1.0]],
}
TEXTS = {
    "graphs.json": json.dumps({"graphs": [GRAPH], "jobs": {f"j{k}": 0 for k in range(20)}}),
    "profiles.json": json.dumps({"profiles": [PROFILE]}),
    "spread.json": json.dumps(
        {"models": {}, "default": {"skew": 0.1, "spread_speed": 0.5}},
    ),
    "widths.json": json.dumps({"models": {}, "default": {"widest": 2}}),
    "busy.json": json.dumps({"resnet-50": 0.4}),
    "quotas.csv": "date,a,total\n2020-04-01,4,4\n",
    "faults.csv": "node,down_s,up_s\n0,30,60\n",
    "jobs.csv": "id,arrival_s,gpus,work,model,tenant\n"
    + "".join(f"j{k},{10 * k},1,100,resnet-50,a\n" for k in range(20)),
}
WORDS = {
    "SECONDS": "64",
    "INTRA": "300",
    "NIC": "12.5",
    "SHARING": "per-job",
    "WIDEST": "2",
    "EFFICIENCY": "0.75",
    "FIRST": "0",
    "LAST": "3",
    "LATEST": "100000",
    "LAW": "exponential",
    "DATE": "2020-04-01T00:00:00",
}
LAW = {"law": "exponential", "mtbf_s": 64.0, "repair_s": 64.0}
MEANT: dict[str, tuple[dict[str, dict[str, object]], ...]] = {
    "--start-cost": ({"charges": {"start_s": 64.0}},),
    "--restart-cost": ({"charges": {"restart_s": 64.0}},),
    "--migration-cost": ({"charges": {"migration_s": 64.0}},),
    "--network": (
        {"graphs": {"intra_gb_per_s": 300.0, "nic_gb_per_s": 12.5, "nic_sharing": "per-job"}},
    ),
    "--job-graphs": (
        {"graphs": {"intra_gb_per_s": 300.0, "nic_gb_per_s": 12.5, "file": "graphs.json"}},
    ),
    "--profiles": ({"profiles": {}}, {"profiles": {"file": "profiles.json"}}),
    "--spread": ({"spread": {}}, {"spread": {"file": "spread.json"}}),
    "--grow": (
        {"widths": {"widest": 2, "efficiency": 0.75}},
        {"widths": {"file": "widths.json"}},
    ),
    "--interference": ({"sharing": {}}, {"sharing": {"file": "busy.json"}}),
    "--quotas": ({"quotas": {"file": "quotas.csv", "date": "2020-04-01T00:00:00"}},),
    "--failures": ({"failures": LAW}, {"failures": {"file": "faults.csv"}}),
    "--checkpoint-interval": ({"failures": {**LAW, "interval_s": 64.0}},),
    "--checkpoint-cost": ({"failures": {**LAW, "interval_s": 64.0, "cost_s": 64.0}},),
    "--preemption": ({"restart": {}},),
    "--until-complete": ({"window": {"last": 3, "latest_s": 100000.0}},),
}
"""Terms and settings of each option, as its value has them where :data:`WORDS` are filled in."""

CLUSTER = "2x4+12cpu+250gb"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(text: str, term: str) -> str:
    """A new word with values for what it leaves open."""
    for word, value in {**WORDS, "FILE": FILES.get(term, "")}.items():
        text = text.replace(word, value)
    return text


@pytest.mark.parametrize("row", RETIRED, ids=lambda row: row.option)
def test_an_old_option_answers_with_a_new_word_that_works(
    row: RetiredOption, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    simulate = ["simulate", "jobs.csv", "--cluster", CLUSTER, "--policy", "fifo"]
    for given in ([row.option, row.value], [f"{row.option}={row.value}"]):
        told = CommandLine(capfd)(*simulate, *given)
        assert told.returncode == 2
        assert told.stderr.splitlines() == [f"error: {row.sentence}"]
    for k, (words, meant) in enumerate(zip(row.now, MEANT[row.option], strict=True)):
        assert f"--with {words}" in row.sentence
        name = words.partition(":")[0]
        (term,) = terms_of_options([filled(words, name)])
        assert {term.feature.value: term.settings} == meant
        given = ["--with", filled(words, name), "-o", f"run{k}"]
        done = CliRunner().invoke(app, [*simulate, *given])
        assert done.exit_code == 0, (done.output, done.exception)
        assert name in load(f"run{k}").instance.features


@pytest.mark.parametrize("row", [row for row in RETIRED if row.key], ids=lambda row: row.key)
def test_an_old_key_answers_with_a_new_one_that_works(row: RetiredOption, folder: Path) -> None:
    study = {
        "study": "s",
        "workloads": {"w": {"trace": "jobs.csv"}},
        "clusters": [CLUSTER],
        "policies": ["fifo"],
    }
    with pytest.raises(InputError) as caught:
        study_of({**study, "conditions": {"c": {row.key: "1"}}}, "study.yaml")
    assert str(caught.value) == f"study.yaml: conditions['c']: {row.key_sentence}"
    after = row.key_sentence.partition(f"{row.key} is now with: ")[2]
    for words in after.split(" or "):
        (name,) = yaml.safe_load(words)
        given = yaml.safe_load(filled(words, name))
        plan_study(study_of({**study, "conditions": {"c": {"with": given}}}, "study"), folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a study in their folder."""
    made = tmp_path_factory.mktemp("study") / "old.results"
    workload = {"generator": "lognormal", "parameters": {"jobs": 3}}
    given = {"study": "s", "workloads": {"w": workload}, "clusters": ["1x8"], "policies": ["fifo"]}
    run_study({**given, "conditions": {"c": {"with": {"restart": {}}}}}, made)
    return made


@pytest.mark.parametrize("row", [row for row in RETIRED if row.key], ids=lambda row: row.key)
def test_results_of_an_old_key_are_refused_with_file_key_and_new_word(
    row: RetiredOption, results: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copied = shutil.copytree(results, tmp_path / "old.results")
    record = json.loads((copied / "study.json").read_text())
    record["study"]["conditions"] = {"c": {row.key: "1"}}
    (copied / "study.json").write_text(json.dumps(record))
    line = CommandLine(capfd)
    for words in (("report", copied), ("compare", results, copied), ("compare", copied, results)):
        told = line("study", *map(str, words))
        assert told.returncode == 2
        assert told.stderr.splitlines() == [
            f"error: {copied / 'study.json'}: conditions['c']: {row.key_sentence}"
        ]


def test_old_options_are_told_where_terms_are_taken_alone(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = CommandLine(capfd)
    assert "No such option" in line("certify", "run", "--quotas", "x").stderr
    assert "is now --with" in line("compare", "jobs.csv", "4x4", "--grow", "4").stderr
    assert "is now --with" in line("verify", "cert.jsonl", "--quotas", "x").stderr
    for command in ("simulate", "compare", "verify"):
        told = line(command, "--help").stdout
        assert not [row.option for row in RETIRED if row.option in told]
