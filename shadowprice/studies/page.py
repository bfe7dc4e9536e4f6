"""The report of a study: one HTML page with tables, pictures, intervals, settings and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from markupsafe import Markup

from shadowprice.analysis.pages.figures import SCREEN, as_svg
from shadowprice.analysis.pages.page import Items, Note, PagePart, Section, Sheet, Typed, page
from shadowprice.analysis.statistics.estimates import Estimate, shown
from shadowprice.analysis.wording import at_most, counted
from shadowprice.studies.comparisons import (
    MEAN_JCT,
    StudySetting,
    maybe_estimate,
    policies_of,
    policy_rows,
    rankings,
    settings_of,
)
from shadowprice.studies.pictures import (
    StudyPicture,
    pictures,
)
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_rows import ALL
from shadowprice.studies.statements import (
    against_baseline,
    findings,
    headline,
    ranked_as,
    rules,
)

HEADS = {
    MEAN_JCT: "mean JCT [s]",
    "jct_s_p50": "median [s]",
    "jct_s_p95": "95 % [s]",
    "jct_s_p99": "99 % [s]",
    "slowdown_mean": "slowdown",
    "queueing_s_mean": "queueing [s]",
    "ftf_mean": "fairness",
}
"""Columns of the table of a setting, and what they are called."""


def study_page(results: StudyResults) -> str:
    """The page as HTML: no script, nothing from the network."""
    drawn = pictures(results, SCREEN)
    record = results.record
    versions = {"shadowprice": record.shadowprice, "code": record.code, "Python": record.python}
    used = [Sheet(("what", "version"), [*versions.items(), *record.libraries.items()], words=2)]
    if record.files:
        used.append(Sheet(("file", "SHA-256, first digits"), list(record.files.items()), words=2))
    sections = [
        Section("What was found", [Items(findings(results))]),
        *(
            _of_setting(setting, drawn.get(f"jct-{place:02d}"))
            for place, setting in enumerate(settings_of(results), start=1)
        ),
        *(
            Section(each.title, [Markup(as_svg(each.draw()))], each.note)
            for name, each in drawn.items()
            if not name.startswith("jct-")
        ),
        Section(
            "Rankings",
            [Items([each.sentence() for each in rankings(results)] or ["Nothing to compare."])],
            "Whether the order by mean JCT is the same elsewhere, of policies that leave no class of jobs unserved.",
        ),
        Section("Settings and versions", [*used, Typed(study_text(results))]),
        Section("How the numbers are made", [Items([*rules(results), *record.notes])]),
    ]
    if record.failed:
        failed = Sheet(("run", "why"), list(record.failed.items()), words=2)
        sections.append(Section("Runs that failed", [failed], "The same command tries them again."))
    note = "Rows that exist are not computed again; the tables come out as the same bytes."
    sections.append(Section("How to repeat it", [Typed(repeat_text(results))], note))
    return page(results.study.study, headline(results), sections)


def study_text(results: StudyResults) -> str:
    """The study as a file that can be run."""
    return yaml.safe_dump(results.study.to_plain(), sort_keys=False, allow_unicode=True)


def repeat_text(results: StudyResults) -> str:
    """Commands that repeat the study."""
    record = results.record
    libraries = " ".join(f"{name}=={number}" for name, number in record.libraries.items())
    command = record.command or "shadowprice study run study.yaml  # the settings above"
    return (
        f"# Python {record.python}\npip install shadowprice=={record.shadowprice} {libraries}\n{command}\n"
        "shadowprice study report study.results"
    )


def _of_setting(setting: StudySetting, picture: StudyPicture | None) -> Section:
    """Tables and picture of a setting."""
    statistics = "Percentiles of JCT; means of slowdown, queueing and finish-time fairness."
    parts: list[PagePart] = [
        policies_sheet(setting),
        Note(statistics),
        statistics_sheet(setting),
    ]
    if picture is not None:
        parts.append(Markup(as_svg(picture.draw())))
    for sheet in classes_of(setting):
        note = f"Mean JCT by {sheet.heads[0]}, with intervals over seeds."
        parts += [Note(note), sheet]
    return Section(str(setting), parts, _note(setting))


def _note(setting: StudySetting) -> str:
    runs = setting.runs
    seeds, jobs = runs["seed"].nunique(), runs["completed"].mean()
    note = f"{counted(seeds, 'seed')}, {jobs:,.0f} jobs a run."
    within = runs["batches_independent"].dropna()
    if seeds < 2 and len(within):
        columns = ["policy", "steady_low_s", "steady_high_s", "batches_independent"]
        spans = [
            f"{policy} [{shown(float(low))}, {shown(float(high))}] s"
            + ("" if independent else " (batches are not independent: too narrow)")
            for policy, low, high, independent in runs[columns].dropna().to_numpy().tolist()
        ]
        note += " One seed: intervals of mean JCT from 20 batches within the run: " + "; ".join(
            spans
        )
    return note


def policies_sheet(setting: StudySetting) -> Sheet:
    """Table of a setting: mean JCT, place and ratios of every policy, in order of the study."""
    ranked = ranked_as(setting)
    baseline = setting.results.study.baseline
    ratios = [name for name in setting.runs.columns if name.startswith("ratio_")]
    heads = [
        "policy",
        HEADS[MEAN_JCT],
        f"against {baseline}",
        "seeds for ±1 %",
        *(f"mean of upper bounds of the ratio, {name.removeprefix('ratio_')}" for name in ratios),
        "place",
    ]
    cells = [
        [
            row.policy,
            _text(row.values.get(MEAN_JCT)),
            against_baseline(row, baseline) or "-",
            "-" if row.seeds_needed is None else f"{row.seeds_needed:,}",
            *(_ratio_text(row.values.get(name)) for name in ratios),
            ranked.get(row.policy, ""),
        ]
        for row in policy_rows(setting)
    ]
    return Sheet(heads, cells, words=1)


def statistics_sheet(setting: StudySetting) -> Sheet:
    """Table of a setting: percentiles of JCT, mean slowdown, queueing and finish-time fairness."""
    columns = [name for name in HEADS if name != MEAN_JCT]
    cells = [
        [row.policy, *(_text(row.values.get(name)) for name in columns)]
        for row in policy_rows(setting)
    ]
    return Sheet(["policy", *(HEADS[name] for name in columns)], cells, words=1)


def classes_of(setting: StudySetting) -> Iterator[Sheet]:
    """Mean JCT of every class of jobs by policy, a table a column of classes."""
    groups = setting.groups
    names = policies_of(groups)
    for by, rows in groups[groups["by"] != ALL].groupby("by", sort=False):
        cells = []
        labels = sorted(dict.fromkeys(rows["group"]), key=_natural)
        for label in labels:
            mine = rows[rows["group"] == label]
            by_policy = {name: mine[mine["policy"] == name] for name in names}
            cells.append(
                [
                    label,
                    f"{mine['jobs'].mean():,.0f}",
                    *(_text(maybe_estimate(by_policy[name][MEAN_JCT])) for name in names),
                ]
            )
        heads = [str(by), "jobs a run", *(f"{name} [s]" for name in names)]
        yield Sheet(heads, cells, words=1)


def _natural(label: str) -> tuple[bool, float, str]:
    """Order in which numbers come by value, before words."""
    try:
        return False, float(label), ""
    except ValueError:
        return True, 0.0, label


def _text(estimate: Estimate | None) -> str:
    return "-" if estimate is None else estimate.text()


def _ratio_text(estimate: Estimate | None) -> str:
    """A mean of upper bounds with its interval; the bound of a single run rounded up, which it is at most."""
    if estimate is None or estimate.count > 1:
        return _text(estimate)
    return at_most(estimate.mean)
