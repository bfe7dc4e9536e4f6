"""Page of an audit: the verdict, what cost most, pictures and contradictions, in one HTML file."""

from __future__ import annotations

from markupsafe import Markup

from shadowprice.analysis.audit.audit import Audit, AuditedRun
from shadowprice.analysis.audit.figures import (
    busiest_day,
    day_figure,
    gap_figure,
    use_figure,
    waits_figure,
)
from shadowprice.analysis.pages.figures import as_svg
from shadowprice.analysis.pages.page import Items, Section, Sheet, page

MOST_ROWS = 200
"""Contradictions of one run that a page lists."""


def audit_page(result: Audit, day: int | None = None, *, made_by: str = "") -> str:
    """The page as HTML.

    Parameters
    ----------
    day : int, optional
        Day of which GPUs are drawn, counted from 0; the one on which most were held at once if not given.
    made_by : str
        What made the page, for its foot.

    Raises
    ------
    InputError
        If nothing ran on that day.
    """
    sections: list[Section] = []
    if len(result.runs) > 1:
        frame = result.frame.drop(columns="class")
        rows = [
            [f"{each:,.4g}" if isinstance(each, float) else str(each) for each in row]
            for row in frame.itertuples(index=False)
        ]
        sections.append(Section("All runs", [Sheet(list(frame.columns), rows, words=2)]))
    for each in result.runs:
        sections += _sections(each, day, head=each.name if len(result.runs) > 1 else "")
    return page(
        f"Audit of {result.source}",
        result.runs[0].lines()[0] if len(result.runs) == 1 else f"{len(result.runs)} recorded runs",
        sections,
        made_by=made_by,
    )


def _sections(audited: AuditedRun, day: int | None, *, head: str) -> list[Section]:
    before = f"{head}: " if head else ""
    sections: list[Section] = [Section(f"{before}verdict", [Items(list(audited.report()))])]
    if audited.run.outcome is not None and audited.measures is not None:
        drawn = busiest_day(audited) if day is None else day
        bound = "Costs over the bound: no schedule of the class is lower than 1."
        sections += [
            Section(f"{before}the gap", [_svg(gap_figure(audited))], bound),
            Section(f"{before}use and queue", [_svg(use_figure(audited))]),
            Section(f"{before}waits", [_svg(waits_figure(audited)), _waits(audited)]),
            Section(f"{before}a day", [_svg(day_figure(audited, drawn))]),
        ]
    table = audited.contradictions
    if len(table):
        rows = [
            [str(cell) for cell in row] for row in table.head(MOST_ROWS).itertuples(index=False)
        ]
        more = f"The first {MOST_ROWS} of {len(table):,}." if len(table) > MOST_ROWS else ""
        sections.append(
            Section(f"{before}contradictions", [Sheet(list(table.columns), rows, words=5)], more)
        )
    unanswered = (f"cannot be answered: {each}" for each in audited.run.record.unanswered)
    notes = Items([*audited.run.notes, *unanswered])
    sections.append(Section(f"{before}what was taken to be so", [notes]))
    return sections


def _svg(figure: object) -> Markup:
    return Markup(as_svg(figure))  # type: ignore[arg-type]


def _waits(audited: AuditedRun) -> Sheet:
    assert audited.measures is not None
    rows = [
        (
            each.kind,
            each.name,
            f"{each.jobs:,}",
            f"{each.mean_s:,.0f}",
            f"{each.p95_s:,.0f}",
            f"{each.total_h:,.1f}",
        )
        for each in audited.measures.waits
    ]
    heads = ("by", "", "jobs", "mean wait [s]", "95 % [s]", "together [h]")
    return Sheet(heads, rows, words=2)
