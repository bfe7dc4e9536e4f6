"""Pictures of a study in the style of papers: distributions, loads, classes of jobs, ratios."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from pandas.api.types import is_numeric_dtype

from shadowprice.analysis.figures.page import POINTS, STYLE, finished
from shadowprice.analysis.plots.style import GREY, colour_of, styled, time_unit
from shadowprice.analysis.statistics.estimates import estimate
from shadowprice.analysis.study.comparisons import (
    MEAN_JCT,
    StudySetting,
    maybe_estimate,
    policies_of,
    settings_of,
    without,
)
from shadowprice.analysis.study.results import StudyResults
from shadowprice.analysis.study.run_rows import ALL
from shadowprice.analysis.study.term_axes import TermAxis

DASHES = ("-", "--", "-.", ":")
MOST_SETTINGS = 12
"""Settings whose distributions are drawn; the others are in the tables."""


@dataclass(frozen=True)
class PaperStyle:
    """Column of a venue's paper.

    Parameters
    ----------
    name : str
    width_in : float
        Of a column [in].
    family : str
        Family of fonts.
    """

    name: str
    width_in: float
    family: str = "serif"

    def applied(self) -> AbstractContextManager[None]:
        """Settings of Matplotlib while a picture is drawn."""
        fonts: Any = {
            "font.family": self.family,
            "font.serif": ["STIXGeneral", "DejaVu Serif"],
            "mathtext.fontset": "stix",
        }
        found: AbstractContextManager[None] = matplotlib.rc_context({**STYLE, **fonts})
        return found


# Widths of columns as the venues' LaTeX classes have them (recalled): acmart sigconf 241.15 pt, IEEEtran 252 pt,
# USENIX 7 in of text with a gutter of 0.33 in, NeurIPS one column of 5.5 in.
STYLES: Mapping[str, PaperStyle] = {
    each.name: each
    for each in (
        PaperStyle("acm", 3.33),
        PaperStyle("ieee", 3.48),
        PaperStyle("usenix", 3.33),
        PaperStyle("neurips", 5.5),
    )
}

SCREEN = PaperStyle("screen", 6.0, "sans-serif")
"""Style of the HTML page."""


Picture = Callable[[], Figure]


def pictures(results: StudyResults, style: PaperStyle) -> dict[str, Picture]:
    """All pictures that a study has something for, by name; each is drawn when it is called."""
    found: dict[str, Picture] = {}
    for place, setting in enumerate(settings_of(results)[:MOST_SETTINGS], start=1):
        found[f"jct-{place:02d}"] = partial(plot_distributions, results, setting, style)
    if results.runs["load"].nunique() > 1:
        found["loads"] = partial(plot_loads, results, style)
    for axis in drawn_axes(results):
        found[picture_name(axis)] = partial(plot_axis, results, axis, style)
    for name in results.runs.columns:
        if name.startswith("ratio_") and results.runs[name].notna().any():
            found[name.replace("_", "-")] = partial(plot_ratios, results, name, style)
    return found


def as_svg(figure: Figure, style: PaperStyle = SCREEN) -> str:
    """A picture as an SVG element, the same bytes each time."""
    buffer = io.StringIO()
    with style.applied():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def write_picture(figure: Figure, path: Path, style: PaperStyle, made_by: str) -> None:
    """Write a picture as PDF, with its fonts, the same bytes each time; no text below 8 pt or beyond the edge.

    Parameters
    ----------
    made_by : str
        Sentence on its origin, for the metadata.

    Raises
    ------
    ValueError
        If text is too small or reaches over the edge.
    """
    with style.applied():
        finished(figure, path.stem, compares=True)
        figure.savefig(path, metadata={"CreationDate": None, "Subject": made_by})


def plot_distributions(
    results: StudyResults, setting: StudySetting, style: PaperStyle = SCREEN
) -> Figure:
    """Cumulative distribution of job completion times of every policy, averaged over seeds.

    At each share of the jobs, the mean over seeds of the time within which that share was complete.
    """
    rows = setting.rows(results.distributions)
    rows = rows[rows["metric"] == "jct_s"]
    with style.applied():
        figure, axes = _axes(style, 0.62)
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
        axes.set_title(_wrapped(str(setting), style), fontsize=POINTS)
        figure.legend(loc="outside lower center", ncols=_columns(style))
    return figure


def drawn_axes(results: StudyResults) -> Iterator[TermAxis]:
    """Axes over settings of terms that are numbers, of which there are several."""
    for axis in results.study.axes:
        column = results.runs[axis.name]
        if is_numeric_dtype(column) and column.nunique() > 1:
            yield axis


def picture_name(axis: TermAxis) -> str:
    """Name of the picture of an axis, and of its file."""
    return axis.name.replace(".", "-")


def plot_loads(results: StudyResults, style: PaperStyle = SCREEN) -> Figure:
    """Mean JCT against load, a panel for each of the other settings, with intervals of 95 % over seeds."""
    return _plot_against(results, "load", "offered load", style)


def plot_axis(results: StudyResults, axis: TermAxis, style: PaperStyle = SCREEN) -> Figure:
    """Mean JCT against what an axis over terms sweeps, drawn as :func:`plot_loads` draws loads."""
    return _plot_against(results, axis.name, axis.title, style)


def _plot_against(results: StudyResults, column: str, title: str, style: PaperStyle) -> Figure:
    groups = results.groups[results.groups["by"] == ALL]
    panels = list(without(results.study, groups, column))[:MOST_SETTINGS]
    with style.applied():
        figure = Figure(
            figsize=(style.width_in, 0.62 * style.width_in * len(panels) + 0.3),
            layout="constrained",
        )
        every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        unit_s, unit = time_unit(float(groups[MEAN_JCT].median()))
        for axes, (where, rows) in zip(every, panels, strict=True):
            styled(axes)
            for place, policy in enumerate(policies_of(rows)):
                mine = rows[rows["policy"] == policy]
                found = [(at, estimate(each[MEAN_JCT])) for at, each in mine.groupby(column)]
                _errorbar(axes, found, unit_s, place, policy)
            axes.set(yscale="log", xlabel=title, ylabel=f"mean JCT [{unit}]")
            axes.set_xticks(sorted(set(rows[column].dropna())))
            axes.set_title(_wrapped(where, style), fontsize=POINTS)
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=_columns(style))
    return figure


def plot_ratios(results: StudyResults, name: str, style: PaperStyle = SCREEN) -> Figure:
    """Mean cost over a certified bound by setting, a mark a policy, with intervals of 95 % over seeds."""
    settings = settings_of(results)
    names = policies_of(results.runs)
    with style.applied():
        height_in = 0.5 + (0.16 * len(names) + 0.12) * len(settings) + 0.2 * ((len(names) + 2) // 3)
        figure, axes = _axes(style, height_in / style.width_in)
        for place, policy in enumerate(names):
            found = []
            for row, setting in enumerate(settings):
                runs = setting.rows(results.runs)
                ratio = maybe_estimate(runs.loc[runs["policy"] == policy, name], least=1.0)
                if ratio is not None:
                    at = row + 0.8 * ((place + 0.5) / len(names) - 0.5)
                    found.append((at, ratio))
            _errorbar(axes, found, 1.0, place, policy, along="x")
        axes.axvline(1.0, color=GREY, linestyle=":", linewidth=1.0)
        goal = name.removeprefix("ratio_")
        axes.set(xscale="log", xlabel=f"total {goal} time / certified bound")
        _plain_ticks(axes)
        axes.set_yticks(range(len(settings)), [_wrapped(str(s), style, 18) for s in settings])
        axes.set_ylim(len(settings) - 0.5, -0.5)
        figure.legend(loc="outside lower center", ncols=_columns(style))
    return figure


def _plain_ticks(axes: Axes) -> None:
    """Ticks of a logarithmic axis as plain numbers, few enough to be read."""
    low, high = axes.get_xlim()
    subs = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0) if high / low < 4 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs if high / low < 40 else (1.0,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _errorbar(
    axes: Axes,
    found: list[tuple[Any, Any]],
    unit: float,
    place: int,
    label: str,
    *,
    along: str = "y",
) -> None:
    if not found:
        return
    at = [each for each, _ in found]
    mean = np.array([each.mean for _, each in found]) / unit
    low = mean - np.array([each.low for _, each in found]) / unit
    high = np.array([each.high for _, each in found]) / unit - mean
    error = np.stack((low, high))
    several = any(each.count > 1 for _, each in found)
    shown: dict[str, Any] = {"color": colour_of(place), "label": label, "marker": "o"}
    if along == "y":
        axes.errorbar(at, mean, yerr=error if several else None, **shown)
    else:
        axes.errorbar(mean, at, xerr=error if several else None, linestyle="none", **shown)


def _columns(style: PaperStyle) -> int:
    """Columns of a legend."""
    return max(2, int(style.width_in))


def _axes(style: PaperStyle, high: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(style.width_in, high * style.width_in), layout="constrained")
    return figure, styled(figure.add_subplot())


def _wrapped(text: str, style: PaperStyle, width: int | None = None) -> str:
    return "\n".join(textwrap.wrap(text, width or int(14 * style.width_in)))
