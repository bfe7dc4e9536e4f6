"""The program as one meets it: how many words it has, and one form of results for all of them."""

from __future__ import annotations

import ast
import csv
import io
import json
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.cli.results import ResultForm, entries, print_result
from shadowprice.errors import InputError
from support.paths import ROOT

MOST_WORDS, MOST_OPTIONS = 30, 90
PRINT_NO_RESULT = {
    *("certify", "cancel", "retry", "drain", "undrain", "study report"),
    "library get",
}
"""Commands that write or change something, and say so in a sentence: no numbers, no rows."""


def leaves(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        words = f"{above} {name}".strip()
        if hasattr(command, "commands"):
            yield from leaves(command, words)
        else:
            yield words, command


PROGRAM = typer.main.get_command(app)
COMMANDS = dict(leaves(PROGRAM))


def options() -> dict[str, set[str]]:
    """Commands that take each option, by its longest spelling; the help of all is none."""
    found: dict[str, set[str]] = defaultdict(set)
    for words, command in COMMANDS.items():
        for each in command.params:
            if each.param_type_name == "option":
                found[max(each.opts, key=len)].add(words)
    return found


def test_words_and_options_are_as_few_as_one_can_know() -> None:
    assert len(PROGRAM.commands) <= MOST_WORDS
    assert len(options()) <= MOST_OPTIONS


def test_every_command_that_prints_a_result_prints_json_and_csv() -> None:
    found = options()
    assert found["--csv"] == found["--json"] == set(COMMANDS) - PRINT_NO_RESULT


def test_no_command_prints_a_result_by_itself() -> None:
    """JSON is printed in one place, and where a table is shown there is a result to print."""
    files = [path for path in (ROOT / "shadowprice").rglob("*.py") if "cli" in path.parts]
    assert len(files) > 20
    for path in files:
        text = path.read_text(encoding="utf-8")
        printed = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and ast.unparse(node.func) == "print"
            and "json.dumps" in ast.unparse(node)
        ]
        assert not printed or path.name == "results.py", path
        if "Table(" in text and path.name not in ("show.py", "view.py"):
            assert "print_result(" in text, path


GRAPH = """
name: {name}
stages:
  - {{name: front, replicas: 2, forward_s: 0.03, backward_s: 0.06, parameter_bytes: 4e8}}
"""
PROBLEM = {"cluster": {"a": 2, "b": 1}, "jobs": [{"tput": [1.0, 2.0]}, {"tput": [2.0, 1.0]}]}
LINES = {
    "policies": {"policy", "knows", "preempts"},
    "policies --preset tiresias": {"name", "value"},
    "policies las2d": {"name", "value"},
    "terms": {"term", "says"},
    "terms charges": {"name", "value"},
    "models": {"model", "title", "kind"},
    "models tiresias": {"row", "programme", "says"},
    "models hadar jobs.csv --cluster 1x2": {"row", "programme", "says"},
    "generate": {"generator", "law"},
    "generate lognormal": {"name", "default", "says"},
    "generate lognormal --jobs 5 --gpus 4 -o drawn.csv --force": {"jobs", "file"},
    "trace": {"format", "is", "from"},
    "trace jobs.csv --cluster 1x2": {"name", "value"},
    "trace jobs.csv --fit law.json --force": {"name", "value"},
    "simulate jobs.csv --cluster 1x2 --policy srtf": {"metric", "value"},
    "verify run": {"metric", "value"},
    "verify cert.jsonl": {"name", "value"},
    "verify cert.jsonl jobs.csv --cluster 1x2": {"name", "value"},
    "verify hard.json": {"job", "arrival_s", "gpus", "work_s", "end_s", "could_end_s"},
    "compare jobs.csv --cluster 1x2 --policies fifo,srtf --budget 0": {"policy", "cost", "ratio"},
    "compare jobs.csv --cluster 1x2 --policies fifo --objective utility --budget 0": {
        *("policy", "utility", "bound")
    },
    "audit ran.csv --cluster 1x2 --budget 0": {"run", "objective", "policy", "cost", "bound"},
    "allocate max_min_fairness problem.json": {"jobs", "share.a", "share.b", "throughput"},
    "place one.yaml --cluster 1x2 --with graphs:intra_gb_per_s=9,nic_gb_per_s=1": {
        *("node", "stage", "replicas")
    },
    "place joint one.yaml two.yaml --slot 1 --cluster 1x2 --with graphs:intra_gb_per_s=9,nic_gb_per_s=1": {
        *("job", "start_slot", "node", "stage", "replicas")
    },
    "place servers servers.yaml": {"node", "free", "workers_rule"},
    "laws fifo --examples 1": {"law", "holds", "broken"},
    "adversary --policy fifo --family jobs=2,gpus=1 --evaluations 5": {"job", "arrival_s", "end_s"},
    "doctor": {"name", "of", "installed"},
    "data": {"name", "what", "licence"},
}
"""Command lines of every form that a command of the core, or `data`, prints, and columns of their CSV."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("surface")
    rows = ["id,gpus,submit,duration", "a,1,0,10", "b,2,0,5", "c,1,1,3", "d,1,2,7.5"]
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "problem.json").write_text(json.dumps(PROBLEM))
    (folder / "servers.yaml").write_text("workers: 2\nshards_mb: [3, 1]\nfree_gpus: [2, 1]\n")
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(GRAPH.format(name=name))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            "simulate jobs.csv --cluster 1x2 --policy srtf -o run",
            "certify run -o cert.jsonl --budget 0",
            "adversary --policy fifo --family jobs=2,gpus=1 --evaluations 5 -o hard.json",
        ):
            assert CliRunner().invoke(app, shlex.split(line)).exit_code == 0
    (folder / "ran.csv").write_text("job,node,gpus,start,end\na,0,1,0,10\nb,0,1,0,5\n")
    return folder


@pytest.mark.parametrize("line", LINES)
def test_csv_is_a_table_with_numbers_in_full(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [*shlex.split(line), "--csv"], catch_exceptions=False)
    assert done.exit_code == 0
    names, *rows = csv.reader(io.StringIO(done.stdout))
    assert set(names) >= LINES[line]
    assert len(set(names)) == len(names)
    assert rows
    assert {len(row) for row in rows} == {len(names)}
    as_json = CliRunner().invoke(app, [*shlex.split(line), "--json"], catch_exceptions=False)
    document = json.loads(as_json.stdout)
    if isinstance(document, list):
        assert len(document) == len(rows)
    elif "metric" in names:
        values = dict(rows)
        assert float(values["avg_jct_s"]) == document["avg_jct_s"]
        assert values["policy"] == document["policy"]


def test_the_lines_are_of_every_command_of_the_core() -> None:
    tried = {words for words in COMMANDS for line in LINES if f"{line} ".startswith(f"{words} ")}
    tried.add("place graph")
    theirs = {"execute", "submit", "status", "profile", "study run", "study compare", "demo"}
    theirs |= {"library list", "library show", "library submit", "score"}
    assert tried == set(COMMANDS) - PRINT_NO_RESULT - theirs


def test_json_and_csv_are_one_too_many(folder: Path) -> None:
    refused = CliRunner().invoke(app, ["doctor", "--json", "--csv"]).exception
    assert isinstance(refused, InputError)
    assert "expected one of the two" in str(refused)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.lists(st.integers(), max_size=3),
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c.d"]), CELLS), max_size=6))
def test_what_is_written_as_csv_is_read_back(rows: list[dict[str, object]]) -> None:
    written = io.StringIO(newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", written)
        print_result(ResultForm(as_csv=True), lambda: None, lambda: rows, columns=("a", "b", "c.d"))
    names, *read = csv.reader(io.StringIO(written.getvalue(), newline=""))
    assert names == ["a", "b", "c.d"]
    assert len(read) == len(rows)
    for row, cells in zip(rows, read, strict=True):
        for name, cell in zip(names, cells, strict=True):
            value = row.get(name)
            if value is None:
                assert cell == ""
            elif isinstance(value, str):
                assert cell == value
            else:
                assert json.loads(cell.replace("inf", "Infinity")) == value


def test_entries_of_parts_have_their_path() -> None:
    record = {"a": 1, "b": {"c": [{"d": 2}, {"d": 3}], "e": []}, "f": [1, 2]}
    assert {row["name"]: row["value"] for row in entries(record)} == {
        **{"a": 1, "b.c.0.d": 2, "b.c.1.d": 3, "b.e": [], "f": [1, 2]}
    }
