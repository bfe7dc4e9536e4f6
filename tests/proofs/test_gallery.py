"""The gallery of theorems: the committed page is up to date, and made of what is there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import build_theorems as gallery
import theorem_values
from shadowprice.errors import InputError
from shadowprice.instances.hard_instances import hard_instances
from shadowprice.solvers.registry import policies
from support.paths import ROOT

PAGE = ROOT / "docs" / "theorems.md"


def test_the_committed_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == gallery.page(ROOT), "run `make theorems`"


def test_every_theorem_file_is_there_once() -> None:
    names = [theorem.identifier for theorem in gallery.theorems()]
    assert len(set(names)) == len(names)
    assert {"HE", "GAVEL-round", "GAVEL-share", "POP", "ASRPT-ratio", "SRPT-1"} <= set(names)
    text = PAGE.read_text(encoding="utf-8")
    for theorem in gallery.theorems():
        assert text.count(f"\n## {theorem.identifier}\n") == 1
        assert theorem.statement
        assert theorem.origin


def test_links_of_the_page_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = (line[3:].lower() for line in text.splitlines() if line.startswith("## "))
    anchors = {heading.replace(" ", "-") for heading in headings}
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in anchors
        else:
            assert (PAGE.parent / target).exists(), target


def test_what_a_theorem_knows_of_an_instance_is_on_the_page() -> None:
    """From its constant and its predicates; of theorems that read no instance nothing is said."""
    of = {theorem.identifier: theorem.hypotheses for theorem in gallery.theorems()}
    assert of["SF-fill"] == (
        "throughputs of jobs. *But not*: gangs, or a cluster, of a number of GPUs that is no power of two"
    )
    assert of["GAVEL-pf"] == "throughputs of jobs; GPU types that jobs tell apart"
    assert of["HE"] == of["POP"] == ""
    assert f"*Knows of an instance*: {of['SF-fill']}." in PAGE.read_text(encoding="utf-8")


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
    for module, tried in gallery.TRIED.items():
        assert tried.policy in policies()
        assert module in {theorem.module for theorem in gallery.theorems()}
    assert stored
    one = next(hard for hard in stored if hard.name == "asrpt-one-gpu")
    worse = replace(one, name="worse", ratio=one.ratio + 1)
    assert gallery.tightest("asrpt.ratio", [one, worse, one]) is worse
    assert gallery.tightest("asrpt.ratio", [replace(one, predictor="given:a=2")]) is None
    assert gallery.tightest("tiresias.las", [one, worse]) is None
    assert gallery.tightest("lower_bounds.job", stored) is None
    for module, tried in gallery.TRIED.items():
        hard = gallery.tightest(module, stored)
        if hard is not None:
            assert hard.ratio <= tried.factor(hard)


def test_nothing_stored_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "hard_instances", tuple)
    text = gallery.page(ROOT)
    assert "None stored." in text
    assert "*Tightest instance*: none stored." in text
    assert "none stored" not in PAGE.read_text(encoding="utf-8")


def test_pictures_are_linked_where_there_are_some(tmp_path: Path) -> None:
    stored = hard_instances()
    assert stored
    assert gallery._picture(stored[0], tmp_path) == ""
    folder = tmp_path / "docs" / "pictures"
    folder.mkdir(parents=True)
    (folder / f"{stored[0].name}.png").touch()
    assert gallery._picture(stored[0], tmp_path) == f", [picture](pictures/{stored[0].name}.png)"
