"""Files around the package: containers, metadata, issue forms, release notes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from release_notes import CHANGELOG, notes, versions
from shadowprice.cli.app import app
from shadowprice.cli.panels import panels
from support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMANDS = {command.name or command.callback.__name__ for command in app.registered_commands}


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_container_installs_what_is_listed_and_runs_a_command() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    steps = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    copied = next(rest.split()[0] for word, rest in steps if word == "COPY")
    assert (ROOT / copied).is_file()
    assert any(f"--requirement {copied}" in rest for word, rest in steps if word == "RUN")
    said = {word: rest for word, rest in steps}
    assert json.loads(said["ENTRYPOINT"]) == ["shadowprice"]
    (command,) = json.loads(said["CMD"])
    assert command in COMMANDS
    assert said["FROM"] == f"python:{PROJECT['requires-python'].removeprefix('>=')}-slim"


def test_the_development_container_runs_targets_that_exist() -> None:
    given = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    commands = [words.split() for words in given["postCreateCommand"].split(" && ")]
    assert [["make", name] for _, name in commands] == commands
    assert {name for _, name in commands} <= targets()


def test_metadata_agree() -> None:
    meta = json.loads((ROOT / "codemeta.json").read_text())
    cite = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert meta["version"] == cite["version"] == PROJECT["version"]
    assert meta["description"] == PROJECT["description"]
    assert meta["keywords"] == PROJECT["keywords"]
    assert meta["license"].endswith(PROJECT["license"])
    assert cite["license"] == PROJECT["license"]


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    for extra in PROJECT["optional-dependencies"]:
        assert f"`{extra}`" in page, extra


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")))
def test_issue_forms_have_what_a_form_needs(path: str) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    names = [part["id"] for part in form["body"]]
    assert len(set(names)) == len(names)
    assert all(part["attributes"]["label"] for part in form["body"])


TEXT = """# Changelog

## [Unreleased]

### Added

- Something.

### Numbers that changed

- A number.

## [0.1.0] - 2026-01-02

### Added

- All of it.

## [0.0.1]
"""


def test_release_notes_begin_with_numbers_that_changed() -> None:
    assert notes(TEXT, "unreleased") == (
        "# shadowprice Unreleased\n\n### Numbers that changed\n\n- A number.\n\n### Added\n\n- Something.\n"
    )
    assert notes(TEXT, "0.1.0") == "# shadowprice 0.1.0, 2026-01-02\n\n### Added\n\n- All of it.\n"
    assert versions(TEXT) == ["Unreleased", "0.1.0", "0.0.1"]


def test_there_are_no_notes_on_nothing() -> None:
    with pytest.raises(ValueError, match=r"expected one of \['Unreleased', '0.1.0', '0.0.1'\]"):
        notes(TEXT, "0.2.0")
    with pytest.raises(ValueError, match=r"nothing is said of version 0\.0\.1"):
        notes(TEXT, "0.0.1")


def test_the_notes_of_the_changelog_hold_every_line_of_it() -> None:
    text = CHANGELOG.read_text()
    made = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "release_notes.py"), versions(text)[0]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first = text.partition("## [")[2].partition("\n## [")[0].splitlines()[1:]
    assert sorted(filter(None, made.splitlines()[1:])) == sorted(filter(None, first))


def test_panels_name_commands_of_this_version_or_of_parts_to_come() -> None:
    listed = {name for names in panels().values() for name in names}
    assert listed >= COMMANDS
