"""The list of theorems and the record of their values: up to date, and made of what is there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import build_theorems as gallery
import build_values as values
import theorem_values
from shadowprice.errors import InputError
from shadowprice.instances.hard_instances import hard_instances
from shadowprice.solvers.registry import policies
from support.paths import ROOT

PAGE = ROOT / "docs" / "theorems.md"
RECORD = ROOT / "benchmarks" / "records" / "theorems.md"


def test_the_committed_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == gallery.page(), "run `make theorems`"
    assert RECORD.read_text(encoding="utf-8") == values.page(ROOT), "run `make theorems`"


def test_every_theorem_file_is_there_once() -> None:
    names = [theorem.identifier for theorem in gallery.theorems()]
    assert len(set(names)) == len(names)
    assert {"HE", "GAVEL-round", "GAVEL-share", "POP", "ASRPT-ratio", "SRPT-1"} <= set(names)
    text = PAGE.read_text(encoding="utf-8")
    for theorem in gallery.theorems():
        assert text.count(f"\n## {theorem.identifier}\n") == 1
        assert theorem.statement


def anchors_of(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line[3:].lower().replace(" ", "-") for line in lines if line.startswith("## ")}


@pytest.mark.parametrize("page", [PAGE, RECORD])
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        assert path.exists(), target
        assert not anchor or anchor in anchors_of(path) or path not in (PAGE, RECORD), target


def test_formulas_are_set_as_formulas() -> None:
    """No subscript, relation or Greek letter in plain text beside formulas."""
    text = re.sub(r"```math.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert text.count("$`") > 500
    plain = re.sub(r"\$`[^`]*`\$|`[^`]*`|\]\([^)]*\)", "", text)
    assert re.findall(r"\b\w_\w+|[<>]=|\b(?:rho|kappa|lambda|alpha|eps)\b", plain) == []


def test_what_a_theorem_knows_of_an_instance_is_on_the_page() -> None:
    """From its constant and its predicates; of theorems that read no instance nothing is said."""
    of = {theorem.identifier: theorem.hypotheses for theorem in gallery.theorems()}
    assert of["SF-fill"] == (
        "`rates`. *Not with*: gangs, or a cluster, of a number of GPUs that is no power of two"
    )
    assert of["GAVEL-pf"] == "`rates`, `types`"
    assert of["HE"] == of["POP"] == ""
    assert f"*Holds with*: {of['SF-fill']}." in PAGE.read_text(encoding="utf-8")


def test_restructured_text_becomes_markdown() -> None:
    text = "Let :math:`a_j\n< b` of ``x`` be :func:`large`:\n\n.. math:: a\n   + b\n\n* last"
    assert gallery.markdown(text) == (
        "Let $`a_j < b`$ of `x` be `large`:\n\n```math\na\n+ b\n```\n\n* last"
    )
    without_fences = PAGE.read_text(encoding="utf-8").replace("```", "")
    assert re.findall(r":\w+:`|\.\. math::|``", without_fences) == []


def test_values_are_of_theorems_that_exist_and_of_what_is_stored() -> None:
    modules = {theorem.module for theorem in gallery.theorems()}
    assert {*theorem_values.FACTORS, *theorem_values.BOUNDS, *theorem_values.CONSTANTS} <= modules
    stored = theorem_values.stored(ROOT)
    for theorem in theorem_values.FACTORS.values():
        rows = [row for row in stored if row.policy == theorem.policy]
        assert len({row.cell for row in rows if row.objective == theorem.objective}) == 70


def test_no_certified_ratio_exceeds_a_factor() -> None:
    """Of the same instances; a ratio to a bound may, of which the factor does not speak, but none does."""
    stored = theorem_values.stored(ROOT)
    one = next(row for row in stored if row.policy == "asrpt" and row.objective == "completion")
    instance = one.cell.instance(one.seed)
    assert one.ratio <= theorem_values.FACTORS["asrpt.sharper"].factor(instance)
    assert theorem_values.typical_value("asrpt.sharper", ROOT).endswith("vacuous on 25")


@pytest.mark.parametrize(
    "text", ["A title without its colon\n\nStatus. Ours.", "ID: a title.\n\nStatement. True."]
)
def test_a_file_that_is_no_theorem_is_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=r"expected 'ID: title\.' there, and a paragraph 'Status\.'"
    ):
        gallery.read_theorem("some_file", text, "ours")


def test_the_tightest_instance_is_the_one_closest_to_the_theorem() -> None:
    stored = hard_instances()
    for module, tried in values.TRIED.items():
        assert tried.policy in policies()
        assert module in {theorem.module for theorem in gallery.theorems()}
    assert stored
    one = next(hard for hard in stored if hard.name == "asrpt-one-gpu")
    worse = replace(one, name="worse", ratio=one.ratio + 1)
    assert values.tightest("asrpt.ratio", [one, worse, one]) is worse
    assert values.tightest("asrpt.ratio", [replace(one, predictor="given:a=2")]) is None
    assert values.tightest("tiresias.las", [one, worse]) is None
    assert values.tightest("lower_bounds.job", stored) is None
    for module, tried in values.TRIED.items():
        hard = values.tightest(module, stored)
        if hard is not None:
            assert hard.ratio <= tried.factor(hard)


def test_nothing_stored_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "hard_instances", tuple)
    text = values.page(ROOT)
    assert "None stored." in text
    assert "| none stored |" in text
    assert "none stored" not in RECORD.read_text(encoding="utf-8")
