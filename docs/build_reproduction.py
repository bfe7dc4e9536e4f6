"""The page of published numbers and ours, from the figures and their stored tables.

``python docs/build_reproduction.py docs/reproduction.md README.md`` writes it, and the column of verdicts of the front
page; without a file the page is printed. A number of the page is in a table of ``paper_figs/data``, which a figure of
the default size has written.
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

Made by `make reproduction` from the figures of [`paper_figs/`](../paper_figs) and the tables in
[`paper_figs/data/`](../paper_figs/data), which `make figures SIZE=default` writes. Do not edit this page.
`python paper_figs NAME --first-seed 100` runs a figure with other seeds.

**Verdicts.** *Ours* is a mean over *n* seeds with an interval of 95 %. Two spans about the published number were fixed
before the verdicts were computed. The narrow one is the margin: {100 * OF_THE_EFFECT:.0f} % of the distance from
'no difference' for factors (`x`: times better, *of the base*) and changes (`%`), {100 * OF_THE_VALUE:.0f} % of the
value for other quantities. The wide one is the shape: on the same side of no difference, within a factor of
{SHAPE_FACTOR:g}, and for factors from {1 / SHAPE_EFFECT:g} to {SHAPE_EFFECT:g} times the distance from 1.

- *reproduced*: the whole interval is within the margin.
- *in shape*: the whole interval is within the wide span.
- *open*: neither that nor its contrary is shown, or there are fewer than {LEAST_SEEDS} seeds.
- *not*: the whole interval is outside the wide span, or a certified limit of all schedulers, mean over the same
  seeds, is below the number, however that was rounded.

So less evidence is never better: a wider interval cannot make a number *reproduced*, and one that holds 'no difference'
is no evidence for a published difference: it is *open*, or *not* where all of the wide span is outside. Where the paper
itself says 'no difference', the margin is how it is rounded; a word such as *flat* has none. Of a bound (*at most*,
*at least*) the whole interval has to keep it. Where nothing is drawn, the printed digits are compared. Three further
words stand in place of *reproduced* and *in shape*, and are counted apart:

- *replayed*: the authors' own generator and simulator, or their jobs, run again, and the number agrees: a test of our
  port, not of the claim. With *the paper's seeds* the means are compared; that they are the authors' is recalled.
- *calibrated*: an input was fitted to the published number, or derived from it.
- *one of many*: the setting was picked among several that were run; *other settings* has the range over all of them.

A published claim is counted once, by its weakest row, however often it is printed or measured: 1.45x beside two
baselines on two clusters is one claim, 5.11x and 5.5x are one measurement of ours. An earlier form of this page counted
rows, and an interval passed by being wide: 56 of 119 were called reproduced.

**Causes** are those of the difference, or what one could come from. *Not public*: the trace, split or measurement is
not to be had; *not read by us*: the text is to be had, and we have the abstract alone; *recalled*: the formula or
setting is recalled; *testbed*: an effect of the hardware; *ours on purpose*: we do something else, and say what;
*cannot be right*: a certified limit of the paper's own jobs is below it; *not reachable on our substitute*: the same,
of jobs that stand for the paper's; *none known*: the same jobs and rules, as far as we know; *not explained*. *Limit*
is the certified best factor that any scheduler could have, rounded up. A published number without a mark was read in
the paper; *recalled* is defined in [semantics](semantics.md), *digitised* is measured in a drawing of it.
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


def page(found: list[Entry]) -> str:
    """The whole page."""
    by_system = counts(found)
    total: Counter[str] = sum(by_system.values(), Counter())
    lines = [
        INTRODUCTION,
        f"Of {total.total()} claims in {len(found)} rows: {in_words(total)}.",
        "",
        "| system | claims | verdicts |",
        "|---|---:|---|",
    ]
    lines += [
        f"| {name} | {verdicts.total()} | {in_words(verdicts)} |"
        for name, verdicts in by_system.items()
    ]
    for name in SYSTEMS:
        mine = [entry for entry in found if entry.published.system == name]
        lines += ["", f"## {name}", "", *table(mine)]
    return "\n".join(lines) + "\n"


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


def table(found: Iterable[Entry]) -> Iterator[str]:
    """Lines of a Markdown table: a published number and ours a row."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "|".join(COLUMNS.values()) + "|"
    for entry in found:
        yield "| " + " | ".join(_cells(entry)) + " |"


def _cells(entry: Entry) -> Iterator[str]:
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
    yield f"[{entry.figure.name}](../paper_figs/{entry.figure.name}.py)"


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
    """Write the page, and the column of the front page if that is named, too."""
    found = entries()
    if not files:
        print(page(found), end="")
        return
    Path(files[0]).write_text(page(found), encoding="utf-8")
    for name in files[1:]:
        path = Path(name)
        path.write_text(front_page(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
