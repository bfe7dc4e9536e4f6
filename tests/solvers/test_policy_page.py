"""The page of what a policy reads and decides: it is up to date, complete, and its example runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import build_policy_state as builder
from shadowprice.cli.app import app
from shadowprice.proofs.testing import laws
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, Policy
from shadowprice.solvers.registry import policy
from shadowprice.solvers.state import State
from support.own_code import TRACE
from support.paths import ROOT

PAGE = ROOT / "docs" / "policy_state.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_committed_page_is_up_to_date() -> None:
    assert builder.page() == TEXT, "run `make policy-state`"


@pytest.mark.parametrize("owner", [Policy, State, JobColumns, Decision])
def test_all_that_is_public_is_there_but_what_the_engine_does(owner: type) -> None:
    for name, member in vars(owner).items():
        text = getattr(member, "__doc__", None) or ""
        if name.startswith("_") or not text or "object" in type(member).__name__:
            continue
        listed = re.search(rf"(?m)^- `(\w+, )*{name}[,`(]", TEXT) is not None
        slot = type(member).__name__ == "member_descriptor"
        assert slot or listed is not text.startswith("Engine:"), name


def test_every_attribute_and_all_knowledge_is_there() -> None:
    for owner in (State, Decision, JobColumns):
        for name in owner.__slots__:
            if not name.startswith("_"):
                assert re.search(rf"(?m)^- `(\w+, )*{name}(, \w+)*`", TEXT), name
    for each in Knowledge:
        assert f"`Knowledge.{each.name}`" in TEXT


def test_the_page_has_no_restructured_text_and_its_links_lead_somewhere() -> None:
    assert re.findall(r":\w+:`|``[^`]|\.\. math::", TEXT.replace("```", "")) == []
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (PAGE.parent / target).exists(), target


def test_the_commands_of_the_page_run_its_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    shown = re.search(r"```console\n\$ shadowprice generate[^\n]*\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None
    assert shown is not None
    file = tmp_path / builder.EXAMPLE.relative_to(ROOT)
    file.parent.mkdir(parents=True)
    file.write_text(code[1], encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(TRACE)
    monkeypatch.chdir(tmp_path)
    commands = shown[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        words = command.split()[2:]
        few = ["--examples", "3"] if words[0] == "laws" else []
        done = CliRunner().invoke(app, [*words, *few, "--json"])
        assert done.exit_code == 0, done.exception
        assert json.loads(done.stdout)


test_example = laws(policy(f"{builder.EXAMPLE}:NarrowestFirst"), times=("patience_s",), examples=10)
