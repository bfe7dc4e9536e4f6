"""Pictures of a study in the style of papers: distributions, loads, classes of jobs, ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from shadowprice.analysis.pages.figures import SCREEN
from shadowprice.analysis.plots.labels import CHARACTERS_PER_IN, legend_below, wrapped
from shadowprice.analysis.plots.page import POINTS, Page
from shadowprice.analysis.plots.style import colour_of, time_unit
from shadowprice.instances.objective import Objective
from shadowprice.studies.comparisons import (
    MEAN_JCT,
    StudySetting,
    maybe_estimate,
    policies_of,
    rows_of,
    settings_of,
    without,
)
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_rows import ALL

DASHES = ("-", "--", "-.", ":")
MOST_SETTINGS = 12
"""Settings whose distributions are drawn; the others are in the tables."""


# Widths of columns as the venues' LaTeX classes have them (recalled): acmart sigconf 241.15 pt, IEEEtran 252 pt,
# USENIX 7 in of text with a gutter of 0.33 in, NeurIPS one column of 5.5 in.
VENUES: Mapping[str, Page] = {
    "acm": Page(3.33, fonts="serif"),
    "ieee": Page(3.48, fonts="serif"),
    "usenix": Page(3.33, fonts="serif"),
    "neurips": Page(5.5, fonts="serif"),
}
"""Columns of papers by venue."""


@dataclass(frozen=True)
class StudyPicture:
    """A picture of a study.

    Parameters
    ----------
    title, note : str
        Words above it.
    draw : callable
    """

    title: str
    note: str
    draw: Callable[[], Figure]


def pictures(results: StudyResults, page: Page) -> dict[str, StudyPicture]:
    """All pictures that a study has something for, by name; those of settings begin with ``jct``."""
    drawn: dict[str, StudyPicture] = {}
    for place, setting in enumerate(settings_of(results)[:MOST_SETTINGS], start=1):
        draw = partial(plot_distributions, setting, page)
        drawn[f"jct-{place:02d}"] = StudyPicture(str(setting), "", draw)
    numbers = {axis.name: axis.title for axis in results.study.axes}
    for column, title in {"load": "load", **numbers}.items():
        values = results.runs[column]
        if is_numeric_dtype(values) and values.nunique() > 1:
            drawn["loads" if column == "load" else column.replace(".", "-")] = StudyPicture(
                f"Mean JCT against {title}",
                "Mean over seeds with intervals of 95 %.",
                partial(plot_against, results, column, page),
            )
    for column in results.runs.columns:
        if column.startswith("ratio_") and results.runs[column].notna().any():
            goal = column.removeprefix("ratio_")
            cost = goal if goal == Objective.MAKESPAN else f"total {goal} time"
            draw = partial(plot_ratios, results, column, page)
            drawn[f"ratio-{goal}"] = StudyPicture(f"Certified ratios, {cost}", "", draw)
    return drawn


def plot_distributions(setting: StudySetting, page: Page = SCREEN) -> Figure:
    """Cumulative distribution of job completion times of every policy, averaged over seeds.

    At each share of the jobs, the mean over seeds of the time within which that share was complete.
    """
    rows = rows_of(setting.results.distributions, setting.labels)
    rows = rows[rows["metric"] == "jct_s"]
    with page.style():
        figure, (axes,) = page.grid(1, 1, 0.62 * page.width_in)
        unit_s, unit = time_unit(float(rows.loc[rows["percentile"] == 50.0, "value"].median()))
        for place, policy in enumerate(policies_of(rows)):
            mine = rows[rows["policy"] == policy].groupby("percentile")["value"].mean()
            axes.plot(
                np.maximum(mine.to_numpy(), 1e-9) / unit_s,
                mine.index.to_numpy() / 100.0,
                label=policy,
                color=colour_of(place),
                linestyle=DASHES[place % len(DASHES)],
            )
        axes.set(xscale="log", ylim=(0, 1.01))
        axes.set_xlabel(f"job completion time [{unit}]")
        axes.set_ylabel("share of jobs")
        axes.set_title(_wrapped(str(setting), page), fontsize=POINTS)
        legend_below(figure, *axes.get_legend_handles_labels(), page.width_in)
    return figure


def plot_against(results: StudyResults, column: str, page: Page = SCREEN) -> Figure:
    """Mean JCT against load, or against what an axis over terms sweeps.

    A panel for each of the other settings, with intervals of 95 % over seeds.
    """
    titles = {axis.name: axis.title for axis in results.study.axes}
    groups = results.groups[results.groups["by"] == ALL]
    panels = list(without(results.study, groups, column))[:MOST_SETTINGS]
    unit_s, unit = time_unit(float(groups[MEAN_JCT].median()))
    with page.style():
        figure, every = page.grid(len(panels), 1, 0.62 * page.width_in * len(panels) + 0.3)
        for axes, (where, rows) in zip(every, panels, strict=True):
            in_units = rows.assign(**{MEAN_JCT: rows[MEAN_JCT] / unit_s})
            page.lines(axes, in_units, x=column, y=MEAN_JCT, by="policy", order=policies_of(rows))
            axes.set(
                yscale="log", xlabel=titles.get(column, "offered load"), ylabel=f"mean JCT [{unit}]"
            )
            axes.set_xticks(sorted(set(rows[column].dropna())))
            axes.set_title(_wrapped(where, page), fontsize=POINTS)
        handles, labels = every[0].get_legend_handles_labels()
        legend_below(figure, handles, labels, page.width_in)
    return figure


def plot_ratios(results: StudyResults, name: str, page: Page = SCREEN) -> Figure:
    """Mean cost over a certified bound by setting, a mark a policy, with intervals of 95 % over seeds."""
    settings = settings_of(results)
    names = policies_of(results.runs)
    height_in = 0.5 + (0.16 * len(names) + 0.12) * len(settings) + 0.2 * ((len(names) + 2) // 3)
    with page.style():
        figure, (axes,) = page.grid(1, 1, height_in)
        for place, policy in enumerate(names):
            means = []
            for row, setting in enumerate(settings):
                runs = setting.runs
                ratio = maybe_estimate(runs.loc[runs["policy"] == policy, name], least=1.0)
                if ratio is not None:
                    means.append((row + 0.8 * ((place + 0.5) / len(names) - 0.5), ratio))
            if means:
                page.intervals(axes, means, along="x", color=colour_of(place), label=policy)
        page.ratio_axis(axes, f"total {name.removeprefix('ratio_')} time / certified bound")
        axes.set_yticks(range(len(settings)), [_wrapped(str(s), page, 18) for s in settings])
        axes.set_ylim(len(settings) - 0.5, -0.5)
        legend_below(figure, *axes.get_legend_handles_labels(), page.width_in)
    return figure


def _wrapped(text: str, page: Page, width: int | None = None) -> str:
    return "\n".join(wrapped(text, width or int(CHARACTERS_PER_IN * page.width_in)))
