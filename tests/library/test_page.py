"""The page of the library: a row each, sums that are those of the rows, and a script that sorts them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fractions import Fraction

import pytest

from shadowprice.library.collection import instances, library_instance
from shadowprice.library.entries.entry import Credit, CreditedValue, EntryFile
from shadowprice.library.job_counts import JobCounts, read_job_counts
from shadowprice.library.table import Row, rows_of
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "docs" / "sphinx_extensions"))

import library_pages

CREDIT = Credit("A <b> & c", "search", "2026-11-27")


def entry(name: str, cost: int, bound: int) -> EntryFile:
    return EntryFile(
        name,
        "flow",
        "0",
        CreditedValue(cost, "schedule", CREDIT),
        CreditedValue(bound, "job", CREDIT),
    )


def test_counts_are_those_of_the_instances() -> None:
    counts = read_job_counts()
    assert set(counts) == {each.name for each in instances()}
    for which in instances():
        assert sum(counts[which.name].arrivals) == which.jobs
        assert sum(counts[which.name].sizes) == which.jobs
    which = library_instance("amounts-10-lognormal-1")
    assert JobCounts.of(which.instance()) == counts[which.name]


def test_every_row_is_on_the_page() -> None:
    text = library_pages.pages()["library/index.md"]
    rows = rows_of()
    assert text.count("<tr><td>") == len(rows)
    assert "\n\n" not in text[text.index("<table") :], "Markdown ends a block of HTML there"
    for row in rows:
        assert f"<td><code>{row.which.name}</code></td>" in text
    assert f"{len(instances())} instances, {len(rows)} rows" in text


def test_the_sums_are_those_of_the_rows_and_names_are_escaped() -> None:
    which = library_instance("gangs-10-lognormal-1")
    tick = 2**20
    rows = [
        Row(which, which.objectives[0], entry(which.name, 300 * tick, 300 * tick)),
        Row(which, which.objectives[0], entry(which.name, 300 * tick, 290 * tick)),
        Row(which, which.objectives[1], entry(which.name, 300 * tick, 200 * tick)),
        Row(which, which.objectives[1], None),
    ]
    text = library_pages.page(rows, read_job_counts())
    assert "1 are closed (no schedule\nof the class costs less), 2 have a gap below 10 %" in text
    assert "search (A &lt;b&gt; &amp; c)" in text
    shown = re.findall(r'data-order="([\d.e-]*)">([^<]*)</td><td><svg', text)
    assert shown == [
        ("0.0", "closed"),
        (repr(float(Fraction(300, 290)) - 1), "3.45 %"),
        ("0.5", "50.00 %"),
        ("", ""),
    ]


@pytest.mark.parametrize(("bound", "part"), [(300, "64.0"), (150, "32.0")])
def test_the_bound_fills_its_part_of_the_bar(bound: int, part: str) -> None:
    which = library_instance("gangs-10-lognormal-1")
    row = Row(which, which.objectives[0], entry(which.name, 300, bound))
    drawn = library_pages.picture(read_job_counts()[which.name], row.values)
    assert f'<rect class="bound" x="0" width="{part}"' in drawn


def test_the_site_has_the_script_that_sorts() -> None:
    assert 'html_js_files = ["sortable.js"]' in (ROOT / "docs/conf.py").read_text()


DOCUMENT = """
const fs = require("fs");
let ready;
const cell = (text, order) => ({ textContent: text, dataset: order === null ? {} : { order } });
const rows = [["b", "2"], ["a", ""], ["c", "10"], ["d", "-1"]]
  .map(([name, order]) => ({ cells: [cell(name, null), cell(order, order)] }));
const body = { rows: [...rows], append(...sorted) { this.rows = sorted; } };
const head = (text) => ({
  textContent: text, attributes: {}, on: {},
  getAttribute(name) { return this.attributes[name] ?? null; },
  setAttribute(name, value) { this.attributes[name] = value; },
  removeAttribute(name) { delete this.attributes[name]; },
  addEventListener(event, action) { this.on[event] = action; },
});
const heads = [head("name"), head("number"), head("")];
global.document = {
  addEventListener(_, action) { ready = action; },
  querySelectorAll() { return [{ tBodies: [body], tHead: { rows: [{ cells: heads }] } }]; },
};
eval(fs.readFileSync(process.argv[1], "utf8"));
ready();
const orders = [];
for (const [column, event] of [[1, "click"], [1, "click"], [0, "click"], [0, "keydown"]]) {
  heads[column].on[event]({ key: "Enter" });
  orders.push(body.rows.map((row) => row.cells[0].textContent).join(""));
}
console.log(orders.join(" "));
"""
"""A document of one table, and clicks on its heads."""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_click_sorts_and_rows_without_a_number_stay_last() -> None:
    script = ROOT / "docs/_static/sortable.js"
    done = subprocess.run(
        ["node", "-e", DOCUMENT, script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["dbca", "cbda", "abcd", "dcba"]
