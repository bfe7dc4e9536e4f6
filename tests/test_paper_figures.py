"""Figures of papers, their stored tables, and the page made of them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from shadowprice.analysis.figures import Figure, Size
from shadowprice.analysis.figures.command import load_figure
from shadowprice.analysis.figures.results import point_key, settings_of
from shadowprice.analysis.figures.settings import option

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "paper_figs"
FILES = sorted(FOLDER.glob("[a-z]*.py"))

sys.path.insert(0, str(ROOT / "docs"))

import build_reproduction as builder  # noqa: E402


@pytest.fixture(scope="module")
def entries() -> list[builder.Entry]:
    return builder.entries()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_figure_has_settings_that_are_options(path: Path) -> None:
    figure: Figure = load_figure(path)
    assert {Size.QUICK, Size.DEFAULT} <= set(figure.sizes)
    for sized in figure.sizes.values():
        assert is_dataclass(sized.settings)
        assert sized.minutes > 0
        # Options of the command are not hidden by a setting of the same name.
        own = {"--size", "--width", "--processes", "--older", "--redraw"}
        assert not own & {option(field.name) for field in fields(sized.settings)}
    keys = [point_key(point) for point in figure.points(figure.sizes[Size.QUICK].settings)]
    assert keys
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stored_table_is_of_the_default_settings(path: Path) -> None:
    """A figure whose settings change has to be run again."""
    figure = load_figure(path)
    stored = FOLDER / "data" / f"{figure.name}.csv"
    said = json.loads(re.findall("^# settings (.*)$", stored.read_text(), re.MULTILINE)[0])
    now = json.loads(json.dumps(settings_of(figure.sizes[Size.DEFAULT].settings)))
    files = {
        field.name
        for field in fields(figure.sizes[Size.DEFAULT].settings)
        if "Path" in str(field.type)
    }
    assert {k: v for k, v in said.items() if k not in files} == {
        k: v for k, v in now.items() if k not in files
    }


def test_every_table_has_a_figure() -> None:
    names = {path.stem for path in FILES}
    assert {path.stem for path in (FOLDER / "data").glob("*.csv")} <= names


def test_published_curves_say_where_they_are_from() -> None:
    for path in sorted((FOLDER / "published").glob("*.csv")):
        assert path.read_text().startswith("# "), path.name
        assert path.stat().st_size < 20_000, path.name


def test_the_page_is_made_of_the_stored_tables(entries: list[builder.Entry]) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == builder.page(entries), "make reproduction"


def test_what_is_not_reproduced_has_a_cause(entries: list[builder.Entry]) -> None:
    for entry in entries:
        assert entry.compared is not None, f"{entry.figure.name}: {entry.published.what} has no row"
        if str(entry.compared.verdict) == "not":
            assert entry.published.cause is not None, entry.published.what
            assert entry.published.why, entry.published.what


def test_the_front_page_has_the_verdicts(entries: list[builder.Entry]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for system, verdicts in builder.counts(entries).items():
        assert f"| {system} | {builder.in_words(verdicts)}" in readme, system
