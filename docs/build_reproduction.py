"""The page of published numbers and ours, from the figures and their stored tables.

``python docs/build_reproduction.py docs/reproduction.md`` writes it; without a file it is printed. A number
of the page is in a table of ``paper_figs/data``, which a figure of the default size has written.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shadowprice.analysis.figures import Cause, Evidence, Figure, Published, ReproductionVerdict
from shadowprice.analysis.figures.command import load_figure
from shadowprice.analysis.figures.published import Compared
from shadowprice.analysis.figures.results import read_table
from shadowprice.analysis.statistics.estimates import shown

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "paper_figs"
SYSTEMS = ("Hadar", "HadarE", "A-SRPT", "Synergy", "Tiresias", "Gandiva", "Gavel")

INTRODUCTION = """\
# Published numbers, and ours

Made by `make reproduction` from the figures of [`paper_figs/`](../paper_figs) and the tables in
[`paper_figs/data/`](../paper_figs/data), which `make figures SIZE=default` writes. Do not edit this page.

*Ours*: mean over seeds, with Student's t interval of 95 % where there are several. *Reproduced*: the published
number is inside our interval, which excludes that there is no difference, or ours is within 5 % of it.
*In shape*: on the same side of no difference, and no more than a factor of 1.5 away. *Limit*: the certified best
factor that any scheduler could have in the setting that was run. A number without a mark was read in the paper;
*recalled* is defined in [semantics](semantics.md), *digitised* is measured in a drawing of the paper. Numbers in `x`
are times better.

Causes: *not public*: the trace, split or measurement is not to be had; *recalled*: the formula or setting is
recalled, not read; *testbed*: an effect of the hardware; *ours on purpose*: we do something else, and say what;
*cannot be right*: the limit shows that no scheduler reaches it in the setting that is known; *not explained*.
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


def counts(found: Iterable[Entry]) -> Mapping[str, Counter[str]]:
    """Verdicts by system, in the order of SYSTEMS; 'not run' where there is no table."""
    by_system: dict[str, Counter[str]] = {name: Counter() for name in SYSTEMS}
    for entry in found:
        said = "not run" if entry.compared is None else str(entry.compared.verdict)
        by_system[entry.published.system][said] += 1
    return by_system


def in_words(verdicts: Counter[str]) -> str:
    """Verdicts of a system in a few words: ``3 reproduced, 1 in shape, 2 not``."""
    order = [*map(str, ReproductionVerdict), "not run"]
    return ", ".join(f"{verdicts[name]} {name}" for name in order if verdicts[name]) or "none"


def page(found: list[Entry]) -> str:
    """The whole page."""
    lines = [INTRODUCTION, "| system | published numbers |", "|---|---|"]
    lines += [f"| {name} | {in_words(verdicts)} |" for name, verdicts in counts(found).items()]
    for name in SYSTEMS:
        mine = [entry for entry in found if entry.published.system == name]
        lines += ["", f"## {name}", "", *table(mine)]
    return "\n".join(lines) + "\n"


def table(found: Iterable[Entry]) -> Iterator[str]:
    """Lines of a Markdown table: a published number and ours a row."""
    yield "| place | quantity | published | ours | limit | verdict | setting of ours | figure |"
    yield "|---|---|---:|---:|---:|---|---|---|"
    for entry in found:
        p, link = entry.published, f"[{entry.figure.name}](../paper_figs/{entry.figure.name}.py)"
        known = "" if p.evidence is Evidence.READ else f" ({p.evidence})"
        published = f"{shown(p.value, 6)} {p.unit}{known}"
        ours, limit = _numbers(entry.compared)
        cells = (p.place, p.what, published, ours, limit, _verdict(entry), p.settings, link)
        yield "| " + " | ".join(cells) + " |"


def _numbers(compared: Compared | None) -> tuple[str, str]:
    """Our number and the limit, empty where there is none."""
    if compared is None:
        return "", ""
    return compared.ours.text(), "" if compared.limit is None else shown(compared.limit)


def _verdict(entry: Entry) -> str:
    if entry.compared is None:
        return "not run"
    verdict, p = entry.compared.verdict, entry.published
    if verdict is ReproductionVerdict.REPRODUCED:
        return f"**{verdict}**"
    cause = p.cause if p.cause is not None else Cause.UNEXPLAINED
    return f"**{verdict}**: {cause}" + (f"; {p.why}" if p.why else "")


if __name__ == "__main__":
    text = page(entries())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
