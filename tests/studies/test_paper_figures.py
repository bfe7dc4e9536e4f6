"""Figures of papers, their stored tables, and the page made of them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Text

from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Independence,
    Page,
    ReproductionVerdict,
    Sampling,
    Size,
)
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import point_key, read_table
from shadowprice.studies.figures.settings import option, plain

ROOT = Path(__file__).resolve().parents[2]
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
        own = {"--size", "--width", "--processes", "--older", "--redraw", "--first-seed"}
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
    now = json.loads(json.dumps(plain(figure.sizes[Size.DEFAULT].settings)))
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
    rows = (ROOT / "benchmarks" / "records" / "reproduction.md").read_text(encoding="utf-8")
    assert rows == builder.record(entries), "make reproduction"


def test_every_row_has_seeds_and_a_cause(entries: list[builder.Entry]) -> None:
    """In the table, too, where cells must not be empty."""
    columns = list(builder.COLUMNS)
    for entry in entries:
        p, compared = entry.published, entry.compared
        assert compared is not None, f"{entry.figure.name}: {p.what} has no row"
        assert p.why.endswith("."), p.what
        row = list(builder.table([entry]))[-1].removeprefix("| ").removesuffix(" |").split(" | ")
        cells = dict(zip(columns, row, strict=True))
        assert cells["n"] == compared.seeds
        assert cells["n"], p.what
        assert cells["cause"].startswith(f"{compared.cause}: {p.why}"), p.what
        if p.sampling is not Sampling.NOTHING:
            assert str(compared.ours.count) in cells["n"]


def test_what_is_counted_apart_is_never_reproduced(entries: list[builder.Entry]) -> None:
    """And a setting that was picked has the range over all that were run beside it."""
    for entry in entries:
        p, compared = entry.published, entry.compared
        assert compared is not None
        if p.independence is not Independence.TESTED:
            assert compared.verdict is not ReproductionVerdict.REPRODUCED, p.what
        if p.independence is Independence.ONE_OF_MANY:
            assert compared.others is not None, p.what
            low, high = compared.others.low, compared.others.high
            assert low <= compared.ours.mean <= high or p.unit == "%", p.what


def test_known_choices_are_counted_apart(entries: list[builder.Entry]) -> None:
    """Inputs that were fitted, runs of the authors' own programs, settings that were picked."""
    by_independence: dict[Independence, set[str]] = {
        independence: set() for independence in Independence
    }
    for entry in entries:
        by_independence[entry.published.independence].add(
            f"{entry.figure.name}: {entry.published.what}"
        )

    def some(independence: Independence, *words: str) -> bool:
        return any(all(word in what for word in words) for what in by_independence[independence])

    assert some(Independence.CALIBRATED, "tiresias_testbed", "makespan under YARN-CS")
    assert some(Independence.CALIBRATED, "tiresias_testbed", "median JCT")
    assert some(Independence.CALIBRATED, "tiresias_testbed", "small, short")
    assert some(Independence.CALIBRATED, "gandiva_automl", "to their end")
    assert some(Independence.REPLAYED, "synergy_load", "mean JCT with TUNE")
    for figure, independence in (
        ("gavel_", Independence.REPLAYED),
        ("hadar_", Independence.ONE_OF_MANY),
        ("hadare_", Independence.ONE_OF_MANY),
        ("tiresias_trace", Independence.ONE_OF_MANY),
    ):
        others = set().union(
            *(by_independence[each] for each in Independence if each is not independence)
        )
        assert any(what.startswith(figure) for what in by_independence[independence])
        assert not any(what.startswith(figure) for what in others), figure


def test_a_claim_is_counted_once(entries: list[builder.Entry]) -> None:
    """Rows that one number of ours is compared in are of one claim, and so is a number printed for several."""
    by_claim: dict[tuple[str, str], list[builder.Entry]] = {}
    for entry in entries:
        by_claim.setdefault(entry.published.claim_key, []).append(entry)
    measured: dict[tuple[str, Estimate], set[tuple[str, str]]] = {}
    for entry in entries:
        assert entry.compared is not None
        ours = entry.compared.ours
        if ours.low < ours.high:  # Not exact numbers, such as 1 of policies that do the same.
            measured.setdefault((entry.figure.name, ours), set()).add(entry.published.claim_key)
    assert all(len(claims) == 1 for claims in measured.values()), measured
    values = {
        ("HadarE", "CRU"): [1.45] * 4,
        ("Synergy", "proportional / TUNE, mean JCT, up to"): [3.4] * 2,
        ("Synergy", "TUNE / OPT, mean JCT"): [1.1] * 4,
        ("Tiresias", "mean JCT, YARN-CS / Tiresias-L"): [5.11, 5.5],
        ("Hadar", "TTD over Gavel"): [1.2] * 3,
        ("Hadar", "mean JCT over Gavel"): [2.5] * 3,
    }
    for claim, expected in values.items():
        assert sorted(each.published.value for each in by_claim[claim]) == expected, claim
    counted = builder.counts(entries)
    assert sum(verdicts.total() for verdicts in counted.values()) == len(by_claim)
    # By the weakest of its rows.
    order = [str(verdict) for verdict in ReproductionVerdict]
    for claim, said in builder.claims(entries).items():
        rows = [str(each.compared.verdict) for each in by_claim[claim] if each.compared]
        assert said == max(rows, key=order.index)


def test_what_a_limit_excludes_is_said_of_whose_jobs(entries: list[builder.Entry]) -> None:
    """Only the paper's own jobs refute the paper."""
    for entry in entries:
        p, compared = entry.published, entry.compared
        assert compared is not None
        if compared.cause is Cause.IMPOSSIBLE:
            assert p.own_jobs, p.what
        if compared.limit is not None and compared.limit < p.value:
            assert compared.verdict is ReproductionVerdict.NOT, p.what
        if p.place.startswith("arXiv"):
            assert p.cause is not Cause.NOT_PUBLIC, p.what
            assert compared.cause in (Cause.NOT_READ, Cause.NOT_REACHABLE), p.what


def test_early_stopping_is_not_gandivas_gain(entries: list[builder.Entry]) -> None:
    rows = [each for each in entries if each.figure.name == "gandiva_automl"]
    early = [each for each in rows if each.published.independence is Independence.ONE_OF_MANY]
    assert len(early) == len(rows) - 4
    for entry in early:
        assert entry.compared is not None
        assert entry.compared.remark.startswith("FIFO with the same stopping takes "), entry


def test_queues_are_not_thresholds_again(entries: list[builder.Entry]) -> None:
    """K = 3 on jobs on which it is not K = 2 at the last threshold."""
    table = read_table(FOLDER / "data" / "tiresias_sweeps.csv")
    for count in (3.0, 4.0):
        queues, last = (
            table[(table.sweep == sweep) & (table["of"].astype(float) == count)]
            for sweep in ("queues", "last threshold")
        )
        assert len(queues) == len(last) > 0
        assert (queues.value.to_numpy() != last.value.to_numpy()).mean() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_published_numbers_are_in_the_picture(path: Path) -> None:
    """Of every figure that has any, and of none that does not compare."""
    figure = load_figure(path)
    if not figure.published:
        return
    table = read_table(FOLDER / "data" / f"{figure.name}.csv")
    settings = figure.sizes[Size.DEFAULT].settings

    def words(*, compares: bool) -> list[str]:
        page = Page(compares=compares)
        with page.style():
            picture = figure.draw(table, settings, page)
        found = [text.get_text() for text in picture.findobj(Text)]
        found += [str(line.get_label()) for line in picture.findobj(Line2D)]
        return [word for word in found if re.search("published|abstract|artifact,|text:", word)]

    assert words(compares=True)
    assert len(words(compares=True)) > len(words(compares=False))


def test_the_front_page_has_the_verdicts(entries: list[builder.Entry]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for system, verdicts in builder.counts(entries).items():
        assert f"| {system} | {builder.in_words(verdicts)} |" in readme, system
    assert builder.front_page(readme, entries) == readme, "make reproduction"
    stale = re.sub(r"^(\| Gavel \|)[^|]*\|", r"\1 all |", readme, flags=re.MULTILINE)
    assert stale != readme
    assert builder.front_page(stale, entries) == readme
