"""The report of a study: one HTML page with tables, pictures, intervals, settings and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml
from markupsafe import Markup

from shadowprice.analysis.pages.page import Sheet, page
from shadowprice.analysis.statistics.estimates import Estimate, shown
from shadowprice.analysis.study.comparisons import (
    MEAN_JCT,
    StudySetting,
    maybe_estimate,
    policies_of,
    policy_rows,
    rankings,
    settings_of,
)
from shadowprice.analysis.study.pictures import (
    SCREEN,
    StudyPicture,
    as_svg,
    pictures,
)
from shadowprice.analysis.study.results import StudyResults
from shadowprice.analysis.study.run_rows import ALL
from shadowprice.analysis.study.statements import (
    against_baseline,
    findings,
    headline,
    ranked_as,
    rules,
)
from shadowprice.analysis.wording import at_most, counted

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


@dataclass(frozen=True)
class Classes:
    """Mean JCT of classes of jobs by policy."""

    note: str
    sheet: Sheet


@dataclass(frozen=True)
class SettingPart:
    """Tables and pictures of one setting."""

    name: str
    note: str
    policies: Sheet
    statistics: Sheet
    picture: Markup | None
    classes: Sequence[Classes]


@dataclass(frozen=True)
class PicturePart:
    """A picture of the whole study."""

    name: str
    note: str
    picture: Markup


def study_page(results: StudyResults) -> str:
    """The page as HTML: no script, nothing from the network."""
    drawn = pictures(results, SCREEN)
    record = results.record
    versions = {"shadowprice": record.shadowprice, "code": record.code, "Python": record.python}
    return page(
        "study/study.html.j2",
        title=results.study.study,
        sentence=headline(results),
        findings=list(findings(results)),
        settings=list(_settings(results, drawn)),
        pictures=[
            PicturePart(each.title, each.note, Markup(as_svg(each.draw())))
            for name, each in drawn.items()
            if not name.startswith("jct-")
        ],
        rankings=[each.sentence() for each in rankings(results)] or ["Nothing to compare."],
        versions=Sheet(
            ("what", "version"), [*versions.items(), *record.libraries.items()], words=2
        ),
        files=Sheet(("file", "SHA-256, first digits"), list(record.files.items()), words=2),
        study=study_text(results),
        rules=[*rules(results), *record.notes],
        failed=Sheet(("run", "why"), [(name, why) for name, why in record.failed.items()], words=2),
        repeat=repeat_text(results),
    )


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


def _settings(results: StudyResults, drawn: Mapping[str, StudyPicture]) -> Iterator[SettingPart]:
    for place, setting in enumerate(settings_of(results), start=1):
        picture = drawn.get(f"jct-{place:02d}")
        yield SettingPart(
            str(setting),
            _note(setting),
            policies_sheet(setting),
            statistics_sheet(setting),
            None if picture is None else Markup(as_svg(picture.draw())),
            list(classes_of(setting)),
        )


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


def classes_of(setting: StudySetting) -> Iterator[Classes]:
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
        yield Classes(f"Mean JCT by {by}, with intervals over seeds.", Sheet(heads, cells, words=1))


def _natural(label: str) -> tuple[bool, float, str]:
    """Order in which numbers come by value, before words."""
    try:
        return False, float(label), ""
    except ValueError:
        return True, 0.0, label


def _text(found: Estimate | None) -> str:
    return "-" if found is None else found.text()


def _ratio_text(found: Estimate | None) -> str:
    """A mean of upper bounds with its interval; the bound of a single run rounded up, which it is at most."""
    if found is None or found.count > 1:
        return _text(found)
    return at_most(found.mean)
