"""``shadowprice library``: the newcomer's way from an instance to a row in the table."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.objective import Objective
from shadowprice.library import table
from shadowprice.library.cli import COMMANDS
from shadowprice.library.cli.library import library
from shadowprice.library.collection import instances, library_instance
from shadowprice.library.entries.entry import ENTRY, folder_of
from tests.support.first_entries import open_weak

NAME = "gangs-10-lognormal-2"


def run(*words: object) -> str:
    done = CliRunner().invoke(
        library, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.stdout


def test_the_table_lists_every_instance_and_objective() -> None:
    rows = json.loads(run("list", "--json"))["rows"]
    assert [(row["instance"], row["objective"]) for row in rows] == [
        (each.name, str(goal)) for each in instances() for goal in each.objectives
    ]
    gangs = json.loads(run("list", "--family", "gangs", "--json"))["rows"]
    assert {row["family"] for row in gangs} == {"gangs"}
    listed = list(csv.DictReader(run("list", "--family", "gangs", "--csv").splitlines()))
    assert [(row["instance"], row["objective"]) for row in listed] == [
        (row["instance"], row["objective"]) for row in gangs
    ]
    with pytest.raises(InputError, match="family 'gang': did you mean 'gangs'"):
        run("list", "--family", "gang")


def test_an_instance_is_written_as_it_was_published(tmp_path: Path) -> None:
    out = run("get", NAME, "-o", tmp_path)
    assert out.splitlines() == [
        str(tmp_path / f"{NAME}{end}") for end in (".json", ".jobs.csv", ".nodes.csv")
    ]
    written = (tmp_path / f"{NAME}.json").read_bytes()
    assert hashlib.sha256(written).hexdigest() == library_instance(NAME).digest
    with pytest.raises(InputError, match="exists, expected a new file, or --force"):
        run("get", NAME, "-o", tmp_path)


def test_show_says_how_an_instance_is_made() -> None:
    assert '"generator": "lognormal"' in run("show", NAME)
    shown = json.loads(run("show", NAME, "--json"))
    assert shown["recipe"]["seed"] == 2
    assert shown["preemptive"] is False
    rows = list(csv.DictReader(run("show", NAME, "--csv").splitlines()))
    assert [row["objective"] for row in rows] == [row["objective"] for row in shown["rows"]]


def test_submit_prints_the_place_and_the_path(tmp_path: Path) -> None:
    which = library_instance(NAME)
    open_weak(which, "2026-11-27", tmp_path)
    path = folder_of(NAME, Objective.FLOW, tmp_path) / ENTRY
    about = json.loads(path.read_text())
    rows = tmp_path / "rows.csv"
    from shadowprice.analysis.simulate import simulate
    from shadowprice.library.entries.schedule_rows import text_of_schedule

    outcome = simulate(which.instance(), policy="sjf")
    rows.write_text(text_of_schedule(outcome.schedule, {"instance": NAME}))
    words = ("submit", rows, "--by", "Ada", "--method", "search", "-o", tmp_path)
    assert f"{NAME}, flow: costs 39921 s: equals the least cost in" in run(*words)
    # With a worse entry before it, it is written, and the path is printed.
    worse = {**about["schedule"], "ticks": about["schedule"]["ticks"] + 1}
    path.write_text(json.dumps({**about, "schedule": worse}))
    out = run(*words, "--date", "2026-11-28")
    assert f"written: {path.parent}" in out.replace("\n", "")
    assert json.loads(path.read_text())["schedule"]["credit"] == {
        "by": "Ada",
        "method": "search",
        "date": "2026-11-28",
    }
    again = {each["objective"]: each for each in json.loads(run(*words, "--json"))}["flow"]
    assert (again["cost_s"], again["better"], again["folder"]) == (39921, False, None)
    assert f"{NAME},flow,39921.0,false," in run(*words, "--csv")


def test_verification_names_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = library_instance(NAME)
    monkeypatch.setattr(table, "instances", lambda: (which,))
    with pytest.raises(VerificationError, match=r"entry\.json: no such file"):
        table.verified_rows(None, pytest.fail, tmp_path)
    open_weak(which, "2026-11-27", tmp_path)
    said: list[str] = []
    rows = table.verified_rows(None, said.append, tmp_path)
    assert said == ["2 of 2 entries verified"]
    assert [row.values.closed for row in rows] == [False, True]
    path = folder_of(NAME, Objective.FLOW, tmp_path) / ENTRY
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "bound": {**about["bound"], "ticks": 5}}))
    with pytest.raises(VerificationError, match=f"{NAME}, flow: the bound is .* says 5"):
        table.verified_rows(None, pytest.fail, tmp_path)
    path.write_text(json.dumps({**about, "bound": {**about["bound"], "kind": "proof"}}))
    with pytest.raises(VerificationError, match=r"says kinds schedule, proof, expected schedule"):
        table.verified_rows(None, pytest.fail, tmp_path)
    path.write_text(json.dumps({**about, "schedule": {**about["schedule"], "ticks": 1}}))
    with pytest.raises(InputError, match="bound is larger than what the schedule costs"):
        table.verified_rows(None, pytest.fail, tmp_path)


def test_an_instance_whose_data_set_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADOWPRICE_DATA", str(tmp_path))
    which = library_instance("gangs-10-philly-1")
    monkeypatch.setattr(table, "instances", lambda: (which,))
    said: list[str] = []
    table.verified_rows(None, said.append, tmp_path)
    assert said == [
        "gangs-10-philly-1: not verified, data set philly-flat is not here",
        "0 of 1 entries verified",
    ]


def test_the_commands_are_in_a_panel_and_have_examples() -> None:
    assert COMMANDS.panels == {"Library": ("library",)}
    assert set(COMMANDS.examples) == {
        f"library {each.name}" for each in library.registered_commands
    }
