"""Pictures of job completion times and ratios: axes in, axes out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shadowprice.analysis.plots.gantt import gantt
from shadowprice.analysis.plots.style import COLOURS, GREY, new_axes, styled, time_unit
from shadowprice.analysis.wording import at_most
from shadowprice.user_code import names_a_file

__all__ = ["gantt", "jct_cdf", "plot_comparison", "ratio_bars"]

Ratio = Fraction | float | None
"""A proven ratio; None where there is no bound above 0."""

_DASHES = ("-", "--", "-.", ":")


def jct_cdf(jct_s: Mapping[str, NDArray[np.float64]], axes: Axes | None = None) -> Axes:
    """Draw cumulative distributions of job completion times, one line a policy, on a log axis.

    Parameters
    ----------
    jct_s : mapping of str to ndarray, shape (n,)
        Job completion times [s] by label.
    """
    axes = new_axes() if axes is None else styled(axes)
    axes.set_xscale("log")
    pooled = np.concatenate([np.zeros(0), *jct_s.values()])
    unit, name = time_unit(float(np.median(pooled)) if len(pooled) else 0.0)
    # Policies often agree on part of the jobs: dashes let a line show through the one above it.
    labels = without_files(list(jct_s))
    for values, label, colour, dash in zip(
        jct_s.values(), labels, cycle(COLOURS), cycle(_DASHES), strict=False
    ):
        # Each share is reached at its job's time, from the share before it.
        ordered = np.repeat(np.sort(values) / unit, 2)
        share = np.repeat(np.linspace(0.0, 1.0, len(values) + 1), 2)[1:-1]
        axes.plot(ordered, share, label=label, color=colour, linestyle=dash, linewidth=1.8)
    if len(pooled) == 0:
        axes.set_xlim(1.0, 10.0)
        axes.text(0.5, 0.5, "no jobs", transform=axes.transAxes, ha="center", color=GREY)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel(f"job completion time [{name}]")
    axes.set_ylabel("share of jobs")
    if jct_s:
        axes.legend(frameon=False, loc="upper left")
    return axes


def ratio_bars(
    ratios: Mapping[str, Ratio],
    axes: Axes | None = None,
    *,
    objective: str = "",
    exact: Mapping[str, bool] | None = None,
    name: str = "cost / bound",
    hatched: str = "hatched: against a lower bound, not the proven optimum",
) -> Axes:
    """Draw bars of ratios, hatched where the bound is not the proven optimum.

    Parameters
    ----------
    ratios : mapping of str to Fraction, float or None
        Certified ratio by label, written rounded up; None or infinite where the bound is 0.
    objective : str
        What the ratio is about, for the label of the axis.
    exact : mapping of str to bool, optional
        Whether the bound is the proven optimum; False where it is missing.
    name, hatched : str
        What the ratio is, and what hatching means.
    """
    axes = new_axes() if axes is None else styled(axes)
    proven = exact or {}
    drawn = {label: _height(ratio) for label, ratio in ratios.items()}
    top = 1.04 * max([*(height for height in drawn.values() if height is not None), 1.0])
    for k, ((label, ratio), colour) in enumerate(zip(ratios.items(), cycle(COLOURS), strict=False)):
        bars = drawn[label]
        height = top if bars is None else bars
        hatch = None if proven.get(label, False) else "///"
        axes.bar(k, height, color=colour, hatch=hatch, edgecolor="white", width=0.7)
        text = "no bound" if ratio is None or ratio == math.inf else at_most(ratio)
        axes.text(k, height + 0.01 * top, text, ha="center", va="bottom", fontsize=9)
    axes.axhline(1.0, color="black", linewidth=1.0)
    axes.set_ylim(0, 1.06 * top)
    _policy_ticks(axes, without_files(list(ratios)))
    axes.set_ylabel(f"{name}, {objective}" if objective else name)
    axes.grid(visible=False, axis="x")
    if not all(proven.get(label, False) for label in ratios):
        axes.set_title(hatched, fontsize=9, color=GREY, loc="left")
    return axes


def _height(ratio: Ratio) -> float | None:
    """Height of a bar; None for what is off every scale."""
    try:
        height = math.inf if ratio is None else float(ratio)
    except OverflowError:
        return None
    return height if height < 1e300 else None


def plot_comparison(
    jct_s: Mapping[str, NDArray[np.float64]],
    ratios: Mapping[str, Ratio],
    *,
    objective: str,
    certified: Mapping[str, bool],
    ratio_name: str = "cost / bound",
    hatched: str = "hatched: against a lower bound, not the proven optimum",
) -> Figure:
    """Draw job completion times beside certified ratios.

    Parameters
    ----------
    jct_s : mapping of str to ndarray
        Completion minus arrival of every job [s], by policy.
    ratios, certified : mapping of str to Fraction, float or None, to bool
        Cost over bound, and whether the bound is the proven optimum, by policy.
    objective : str
        Name of the objective of the ratios.
    ratio_name, hatched : str
        What a ratio is, and what hatching means.
    """
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    jct_cdf(jct_s, left)
    ratio_bars(
        ratios, right, objective=objective, exact=certified, name=ratio_name, hatched=hatched
    )
    return figure


def without_files(labels: list[str]) -> list[str]:
    """Names without the files that they are in, as they are where two would be the same then.

    >>> without_files(["fifo", "examples/mine.py:Own:window_s=60"])
    ['fifo', 'Own:window_s=60']
    >>> without_files(["mine.py:Own", "more.py:Own"])
    ['mine.py:Own', 'more.py:Own']
    """
    short = [label.partition(":")[2] if names_a_file(label) else label for label in labels]
    return short if len(set(short)) == len(set(labels)) else labels


def _policy_ticks(axes: Axes, labels: list[str]) -> None:
    """Names under bars, slanted where they would touch."""
    axes.set_xticks(range(len(labels)), labels)
    if sum(len(label) + 2 for label in labels) > 42:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
