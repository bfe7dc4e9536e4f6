"""The library's table: a row an instance and objective, with a small picture, sorted in the browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from shadowprice.analysis.wording import cost_cells
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.library.collection import FAMILIES, NAME, VERSION
from shadowprice.library.job_counts import JobCounts, read_job_counts
from shadowprice.library.table import Row, rows_of
from shadowprice.library.verification import VerifiedEntry, gap_text

WIDTH, HEIGHT = 64, 24
"""Size of each of the three parts of a picture."""

INTRODUCTION = """\
# Table of the library

{name} {version}: {instances} instances, {rows} rows, one an instance and objective. {closed} are closed (no schedule
of the class costs less), {below} have a gap below 10 %. The gap is cost over bound less 1, rounded up. `make library`
verifies all of them anew, but those of traces that are not there. A click on a head of the table sorts it.
[Formats and rules](../../library.md) say how a row is beaten.

Each picture has, from the left, the bound as a part of the cost, the arrivals over time, and the jobs by the
GPU-seconds that they ask for, in classes that double.

{families}
"""

HEADS = ("instance", "jobs", "GPUs", "objective", "class", "cost [s]", "bound [s]", "gap", "", "by")


def pages() -> dict[str, str]:
    """Text of the page."""
    return {"library/index.md": page(rows_of(), read_job_counts())}


def page(rows: Sequence[Row], counts: dict[str, JobCounts]) -> str:
    """The whole page, in Markdown, with the table in HTML."""
    values = [row.values for row in rows if row.values is not None]
    families = "\n".join(f"- *{each.name}*: {each.about}" for each in FAMILIES)
    head = INTRODUCTION.format(
        name=NAME,
        version=VERSION,
        instances=len({row.which.name for row in rows}),
        rows=len(rows),
        closed=sum(each.closed for each in values),
        below=sum(each.gap < 0.1 for each in values),
        families=families,
    )
    heads = "".join(f"<th>{escape(name)}</th>" for name in HEADS)
    body = "\n".join(_row(row, counts[row.which.name]) for row in rows)
    inner = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    table = f'<div class="library">\n<table class="library sortable">\n{inner}\n</table>\n</div>'
    return f"{head}\n{table}\n"


def _row(row: Row, counts: JobCounts) -> str:
    which, entry, values = row.which, row.entry, row.values
    numbers, by = ["", "", ""], ""
    orders = ["", "", ""]
    if entry is not None and values is not None:
        ((cost, bound, _),) = cost_cells(
            [(values.cost_ticks / TICKS_PER_S, values.bound_ticks / TICKS_PER_S)]
        )
        numbers = [cost, bound, gap_text(values)]
        orders = [repr(values.cost), repr(values.bound), repr(values.gap)]
        found = (entry.schedule.credit, entry.bound.credit)
        by = "; ".join(dict.fromkeys(f"{each.method} ({each.by})" for each in found))
    kind = "preemptive" if which.preemptive else "begin once"
    cells = [
        f"<td><code>{escape(which.name)}</code></td>",
        _cell(f"{which.jobs:,}", str(which.jobs)),
        _cell(f"{counts.gpus:,}", str(counts.gpus)),
        f"<td>{escape(str(row.objective))}</td>",
        f"<td>{kind}</td>",
        *(_cell(text, order) for text, order in zip(numbers, orders, strict=True)),
        f"<td>{picture(counts, values)}</td>",
        f"<td>{escape(by)}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str, order: str) -> str:
    return f'<td class="number" data-order="{escape(order)}">{escape(text)}</td>'


def picture(counts: JobCounts, values: VerifiedEntry | None) -> str:
    """The picture of a row, as SVG in the page."""
    width = 3 * WIDTH + 16
    parts = [
        _gap_bar(values),
        f'<path class="arrivals" d="{_columns(counts.arrivals, WIDTH + 8)}"/>',
        f'<path class="sizes" d="{_columns(counts.sizes, 2 * WIDTH + 16)}"/>',
    ]
    return (
        f'<svg width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="gap, arrivals, sizes">{"".join(parts)}</svg>'
    )


def _gap_bar(values: VerifiedEntry | None) -> str:
    """The cost as a bar, of which the bound fills a part."""
    if values is None:
        return ""
    part = WIDTH * float(values.bound_ticks / values.cost_ticks) if values.cost_ticks else WIDTH
    box = f'y="{HEIGHT // 3}" height="{HEIGHT // 3}"'
    return (
        f'<rect class="cost" x="0" width="{WIDTH}" {box}/>'
        f'<rect class="bound" x="0" width="{part:.1f}" {box}/>'
    )


def _columns(heights: Iterable[int], left: int) -> str:
    """A path of columns as high as the numbers are, from a place on."""
    numbers = list(heights)
    most, wide = max(numbers), WIDTH / len(numbers)
    drawn = []
    for place, number in enumerate(numbers):
        if number:
            high = max(HEIGHT * number / most, 1.0)
            at = left + place * wide
            drawn.append(f"M{at:.1f} {HEIGHT}v-{high:.1f}h{max(wide - 0.6, 0.6):.1f}v{high:.1f}z")
    return "".join(drawn)
