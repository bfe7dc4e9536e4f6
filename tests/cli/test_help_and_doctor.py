"""Help in panels, an example of every command that parses, and `doctor`, which fails nowhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from shadowprice.cli import doctor
from shadowprice.cli.app import app
from shadowprice.cli.panels import examples, panels
from support.paths import ROOT

WIDE = {"COLUMNS": "200", "TERM": "dumb"}


def commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        words = f"{above} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield words, command


EXAMPLES, PANELS = examples(), panels()
COMMANDS = dict(commands(typer.main.get_command(app)))
LINES = [(words, example.line) for words, each in EXAMPLES.items() for example in each]


def test_every_command_is_in_one_panel() -> None:
    listed = [name for names in PANELS.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert {words.split()[0] for words in COMMANDS} <= set(listed)


def test_help_shows_the_panels_in_order() -> None:
    text = CliRunner().invoke(app, ["--help"], env=WIDE).output
    places = [text.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert "─ Commands ─" not in text
    assert "--install-completion" in text
    for panel, names in PANELS.items():
        part = text[text.index(f"─ {panel} ─") :].partition("╰")[0]
        there = [name for name in names if name in {words.split()[0] for words in COMMANDS}]
        assert re.findall(r"^│ (\w+)", part, re.MULTILINE) == there


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_of_a_command_ends_with_examples(words: str) -> None:
    assert EXAMPLES.get(words), f"cli/panels.py has no example of {words!r}"
    done = CliRunner().invoke(app, [*words.split(), "--help"], env=WIDE)
    assert done.exit_code == 0
    shown = done.output.partition("\n Examples\n")[2]
    assert shown.rstrip("\n") == "".join(example.text() for example in EXAMPLES[words]).rstrip("\n")


@pytest.mark.parametrize(("words", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_parses(words: str, line: str) -> None:
    given = shlex.split(line)
    named = (known for known in COMMANDS if given[: len(known.split())] == known.split())
    # A group may take a file for the name of its first command.
    name = next(named, None)
    rest = given[1:] if name is None else given[len(name.split()) :]
    COMMANDS[name or words].make_context(name or words, rest)


def test_an_example_that_is_wrong_does_not_parse() -> None:
    with pytest.raises(Exception, match=r"No such option:? '?--custer"):
        COMMANDS["simulate"].make_context("simulate", ["jobs.csv", "--custer", "4x4"])


RUN = (
    *("generate", "demo", "simulate", "compare", "certify", "verify", "adversary"),
    *("trace", "models", "policies"),
    *("data", "doctor"),
)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # 110 s of CPU time; one that hangs is named by the limit of its own
def test_the_examples_run_in_the_order_of_the_table(tmp_path: Path) -> None:
    """Those that need no file but what the examples before them wrote."""
    for words in RUN:
        for example in EXAMPLES[words]:
            line = shlex.split(example.line)
            done = subprocess.run(
                [sys.executable, "-m", "shadowprice", *line],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,  # what asks a question fails, and does not wait
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            assert done.returncode == 0, f"{example.line}\n{done.stderr}"


def test_completion_knows_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from shadowprice.cli.app import main; main()"],
        env={
            **os.environ,
            "_SHADOWPRICE_COMPLETE": "complete_bash",
            "COMP_WORDS": "shadowprice comp",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    # The name of the program decides the variable; under `python -c` there is none to complete.
    assert done.returncode in (0, 2)
    completed = typer.main.get_command(app).shell_complete(
        typer.Context(typer.main.get_command(app), info_name="shadowprice"), "comp"
    )
    assert [each.value for each in completed] == ["compare"]


def test_doctor_says_what_is_there_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"ray": "", "highspy": "1.13.1"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, "2.0"))
    monkeypatch.setattr(doctor, "_asked", lambda program, *_: "A100\nA100\nV100\n")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}")
    done = CliRunner().invoke(app, ["doctor", "--json"])
    found = {row["name"]: row for row in json.loads(done.output)}
    assert found["highspy"]["installed"] == "1.13.1"
    assert found["ray"]["installed"] == ""
    assert found["ray"]["how"] == "pip install 'shadowprice[ray]'"
    assert found["gpus"]["installed"] == "2 x A100, 1 x V100"
    assert found["slurm"]["installed"] == "A100"
    text = CliRunner().invoke(app, ["doctor"], env=WIDE).output
    assert "pip install 'shadowprice[ray]'" in text
    assert "all that the package itself needs is there" in text
    versions["highspy"] = ""
    text = CliRunner().invoke(app, ["doctor"], env=WIDE).output
    assert "the package itself needs highspy" in text


def test_doctor_waits_for_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs that hang, fail, or print what is no text."""
    hangs = tmp_path / "nvidia-smi"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    for client in ("sbatch", "squeue", "scancel", "scontrol", "sinfo"):
        (tmp_path / client).write_text("#!/bin/sh\nprintf '\\377'\nexit 1\n")
    for path in tmp_path.iterdir():
        path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(doctor, "LIMIT_S", 0.3)
    began_s = time.monotonic()
    found = {each.name: each.installed for each in doctor.installed_parts()}
    assert time.monotonic() - began_s < 3.0
    assert found["gpus"] == ""
    assert found["slurm"] == "version unknown"


def test_doctor_asks_for_extras_that_exist() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = {
        found
        for each in doctor.DISTRIBUTIONS
        for found in re.findall(r"shadowprice\[(\w+)\]", each.how)
    }
    assert extras
    for extra in extras:
        assert re.search(rf"^{extra} = \[", text, re.MULTILINE), extra
