"""Published numbers beside ours: the page of verdicts and the record of all rows, from the figures' stored tables.

``python docs/build_reproduction.py docs/reproduction.md benchmarks/records/reproduction.md README.md`` writes both,
and the column of verdicts of the front page; without files the page is printed. A number of the record is in a table of
``paper_figs/data``, which a figure of the default size has written.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shadowprice.analysis.wording import at_most
from shadowprice.studies.figures import Evidence, Figure, Published, ReproductionVerdict
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.published import Compared
from shadowprice.studies.figures.results import read_table
from shadowprice.studies.figures.verdicts import (
    LEAST_SEEDS,
    OF_THE_EFFECT,
    OF_THE_VALUE,
    SHAPE_EFFECT,
    SHAPE_FACTOR,
    weakest,
)

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "paper_figs"
SYSTEMS = ("Hadar", "HadarE", "A-SRPT", "Synergy", "Tiresias", "Gandiva", "Gavel", "Pollux")
NOT_RUN = "not run"

INTRODUCTION = f"""\
# Published numbers, and ours

Made by `make reproduction` from the figures of [`paper_figs/`](../paper_figs) and the tables that `make figures
SIZE=default` writes. Do not edit this page. Every number with its cause is on the page of its
[system](systems/index.md), and [in one file](../benchmarks/records/reproduction.md). `python paper_figs NAME
--first-seed 100` runs a figure with other seeds.

**Verdicts.** *Ours* is a mean over *n* seeds with an interval of 95 %. Two spans about the published number
were fixed before any verdict. The *margin*: {
    100 * OF_THE_EFFECT:.0f} % of the distance from 'no difference'
for factors (`x`) and changes (`%`), {
    100 * OF_THE_VALUE:.0f} % of the value for other quantities. The *shape*:
on the same side of no difference, within a factor of {SHAPE_FACTOR:g}, and for factors from {
    1 / SHAPE_EFFECT:g} to {SHAPE_EFFECT:g} times the distance from 1.

| verdict | the whole interval is |
|---|---|
| reproduced | within the margin |
| in shape | within the shape |
| not | outside the shape; or a certified limit of all schedulers on the same seeds is below the number |
| open | none of these, or there are fewer than {LEAST_SEEDS} seeds |

Less evidence is never better: a wider interval makes no number *reproduced*, and one that holds 'no difference'
is no evidence of a published difference. Where the paper itself says 'no difference', the margin is its
rounding. A bound (*at most*, *at least*) has to hold for the whole interval. Where nothing is drawn at random,
the printed digits are compared. Counted apart, in place of *reproduced* and *in shape*:

- *replayed*: the authors' own generator and simulator, or their jobs, run again: a test of our port, not of the
  claim. With *the paper's seeds* the means are compared.
- *calibrated*: an input was fitted to the published number, or derived from it.
- *one of many*: the setting was picked among several; *other settings* has the range over all.

A claim is counted once, by its weakest row, however often it is printed or measured.

**Causes** of a difference: *not public* (trace, split or measurement); *not read by us* (we have the abstract
alone); *recalled* (formula or setting); *testbed* (the hardware); *ours on purpose*; *cannot be right* (a
certified limit of the paper's own jobs is below it); *not reachable on our substitute* (the same, of jobs that
stand for the paper's); *none known*; *not explained*. *Limit* is the certified best factor that any scheduler
could have, rounded up. Numbers without a mark were read in the paper; *recalled* is defined in
[semantics](semantics.md#words-for-evidence), *digitised* is measured in a drawing.
"""

RECORD = """\
# Published numbers, and ours: all rows

Made by `make reproduction`. Do not edit this page. [What verdicts and causes mean](../../docs/reproduction.md).
"""


@dataclass(frozen=True)
class Entry:
    """A published number of a figure, and ours if the figure's table is stored and has it."""

    figure: Figure
    published: Published
    compared: Compared | None


def entries(folder: Path = FOLDER) -> list[Entry]:
    """All published numbers of a folder's figures, in the order of files and of each file."""
    found = []
    for path in sorted(folder.glob("[a-z]*.py")):
        figure = load_figure(path)
        stored = folder / "data" / f"{figure.name}.csv"
        table = read_table(stored) if stored.exists() else None
        for published in figure.published:
            compared = None if table is None else published.compared(table)
            found.append(Entry(figure, published, compared))
    return found


def claims(found: Iterable[Entry]) -> Mapping[tuple[str, str], str]:
    """Verdict of each claim, the weakest of its rows, by system and claim; 'not run' where a table lacks one."""
    rows: dict[tuple[str, str], list[Compared | None]] = {}
    for entry in found:
        rows.setdefault(entry.published.claim_key, []).append(entry.compared)
    said = {}
    for key, several in rows.items():
        known = [each.verdict for each in several if each is not None]
        said[key] = NOT_RUN if len(known) < len(several) else str(weakest(known))
    return said


def counts(found: Iterable[Entry]) -> Mapping[str, Counter[str]]:
    """Verdicts of claims by system, in the order of SYSTEMS; 'not run' where there is no table."""
    by_system: dict[str, Counter[str]] = {name: Counter() for name in SYSTEMS}
    for (system, _), said in claims(found).items():
        by_system[system][said] += 1
    return by_system


def in_words(verdicts: Counter[str]) -> str:
    """Verdicts of a system in a few words: ``3 reproduced, 1 in shape, 2 not``."""
    order = [*map(str, ReproductionVerdict), NOT_RUN]
    return ", ".join(f"{verdicts[name]} {name}" for name in order if verdicts[name]) or "none"


PAGES = {"HadarE": "hadar", "A-SRPT": "asrpt"}
"""Pages of systems that are not called by the system."""


def page(found: list[Entry]) -> str:
    """The page of verdicts by system."""
    by_system = counts(found)
    total: Counter[str] = sum(by_system.values(), Counter())
    lines = [
        INTRODUCTION,
        f"Of {total.total()} claims in {len(found)} rows: {in_words(total)}.",
        "",
        "| system | claims | verdicts |",
        "|---|---:|---|",
    ]
    for name, verdicts in by_system.items():
        link = f"[{name}](systems/{PAGES.get(name, name.lower())}.md)"
        lines.append(f"| {link} | {verdicts.total()} | {in_words(verdicts)} |")
    return "\n".join(lines) + "\n"


def record(found: list[Entry]) -> str:
    """All rows, by system."""
    lines = [RECORD]
    for name in SYSTEMS:
        mine = [entry for entry in found if entry.published.system == name]
        lines += [f"## {name}", "", *table(mine, "../../paper_figs"), ""]
    return "\n".join(lines).rstrip() + "\n"


COLUMNS = {
    "place": "---",
    "quantity": "---",
    "published": "---:",
    "ours": "---:",
    "n": "---:",
    "limit": "---:",
    "verdict": "---",
    "other settings": "---",
    "cause": "---",
    "setting of ours": "---",
    "figure": "---",
}
"""Heads of the table, and how its columns are set."""


def table(found: Iterable[Entry], folder: str = "../paper_figs") -> Iterator[str]:
    """Lines of a Markdown table: a published number and ours a row, with links to the folder of figures."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "|".join(COLUMNS.values()) + "|"
    for entry in found:
        yield "| " + " | ".join(_cells(entry, folder)) + " |"


def _cells(entry: Entry, folder: str) -> Iterator[str]:
    """Cells of a row, in the order of COLUMNS."""
    p, compared = entry.published, entry.compared
    yield p.place
    yield p.what
    yield p.text + ("" if p.evidence is Evidence.READ else f" ({p.evidence})")
    yield from ("", "", "", f"**{NOT_RUN}**", "") if compared is None else _measured(compared)
    cause = p.cause if compared is None else compared.cause
    remark = "" if compared is None or not compared.remark else f" {compared.remark}"
    yield f"{cause}: {p.why}{remark}"
    yield p.settings
    yield f"[{entry.figure.name}]({folder}/{entry.figure.name}.py)"


def _measured(compared: Compared) -> Iterator[str]:
    """Our number, seeds, limit, verdict and other settings."""
    yield compared.ours.text()
    yield compared.seeds
    yield "" if compared.limit is None else at_most(compared.limit)
    yield f"**{compared.verdict}**"
    yield "" if compared.others is None else compared.others.text()


def front_page(text: str, found: Iterable[Entry]) -> str:
    """The front page with the verdicts of each system in the second column of its table."""
    for system, verdicts in counts(found).items():
        row = re.compile(rf"^(\| {re.escape(system)} \|)[^|]*\|", re.MULTILINE)
        text = row.sub(rf"\1 {in_words(verdicts)} |", text, count=1)
    return text


def main(files: Sequence[str]) -> None:
    """Write the page, the record, and the column of the front page, as far as they are named."""
    found = entries()
    if not files:
        print(page(found), end="")
        return
    Path(files[0]).write_text(page(found), encoding="utf-8")
    if len(files) > 1:
        Path(files[1]).write_text(record(found), encoding="utf-8")
    for name in files[2:]:
        path = Path(name)
        path.write_text(front_page(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
