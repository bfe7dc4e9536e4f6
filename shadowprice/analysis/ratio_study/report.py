"""The ratio study's table and picture: means of certified ratios with confidence intervals."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from shadowprice.analysis.plots.style import COLOURS, GREY, styled
from shadowprice.instances.objective import Objective

KEYS = ["family", "jobs", "policy", "objective"]
RESAMPLES = 2000
CONFIDENCE = 0.95
_LEAST_GAP = 0.18
"""Between two ticks, of the length of the axis."""

_TICKS = (1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def summary(rows: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Distribution of the ratios of every family, size, policy and objective.

    The interval is that of the mean, by the percentile bootstrap (Efron 1979); its seed depends on
    what the group is, so that more groups change no other.

    Returns
    -------
    DataFrame
        In the order of the rows: ``KEYS``, draws, mean, mean_low, mean_high, median, p95, worst, and
        proven, the share of the draws in which the policy attained its bound.
    """
    found = []
    for key, group in rows.groupby(KEYS, sort=False):
        ratios = group["ratio"].to_numpy(dtype=np.float64)
        low, high = interval(ratios, np.random.SeedSequence(seed, spawn_key=_key(key)))
        found.append(
            {
                **dict(zip(KEYS, key, strict=True)),
                "draws": len(ratios),
                "mean": ratios.mean(),
                "mean_low": low,
                "mean_high": high,
                "median": np.median(ratios),
                "p95": np.quantile(ratios, 0.95),
                "worst": ratios.max(),
                "proven": (ratios == 1.0).mean(),
            }
        )
    return pd.DataFrame(found)


def interval(
    values: np.ndarray, seed: np.random.SeedSequence, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean; the value itself if there is only one."""
    drawn = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    means = values[drawn].mean(axis=1)
    tail = (1.0 - confidence) / 2
    return float(np.quantile(means, tail)), float(np.quantile(means, 1.0 - tail))


def _key(names: object) -> tuple[int, ...]:
    digest = hashlib.sha256(repr(names).encode()).digest()
    return tuple(int.from_bytes(digest[k : k + 4], "big") for k in (0, 4))


def plot_study(table: pd.DataFrame, objective: Objective = Objective.FLOW) -> Figure:
    """One panel a family: mean certified ratio of every policy with its interval, one mark a size."""
    mine = table[table["objective"] == str(objective)]
    families = list(dict.fromkeys(mine["family"]))
    names = worst_first(mine)
    across = min(4, len(families))
    down = -(-len(families) // across)
    figure = Figure(
        figsize=(3.4 * across + 1.6, 0.19 * len(names) * down + 1.3 * down + 0.6),
        layout="constrained",
    )
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes in panels.flat[len(families) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, families, strict=False):
        plot_family(axes, mine[mine["family"] == name], names, name)
    figure.suptitle(
        f"Certified ratio, total {objective} time over a bound of preemptive schedules: mean of the draws, "
        f"{CONFIDENCE:.0%} bootstrap interval; ours, nothing published to compare with",
        fontsize=11,
    )
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def worst_first(table: pd.DataFrame) -> list[str]:
    """Policies in order of the geometric mean of their means, largest first."""
    order = table.groupby("policy")["mean"].apply(lambda means: np.exp(np.log(means).mean()))
    names: list[str] = order.sort_values(ascending=False, kind="stable").index.tolist()
    return names


def _spaced_ticks(most: float) -> list[float]:
    """Ticks of a logarithmic axis from 1, far enough from one another to be read in a narrow panel."""
    reach = np.log(max(1.1, most) * 1.05)
    kept = [1.0]
    for tick in _TICKS[1:]:
        far = np.log(tick / kept[-1]) >= _LEAST_GAP * reach
        if far and tick <= most * 1.05:
            kept.append(tick)
    return kept


def plot_family(axes: Axes, table: pd.DataFrame, names: list[str], title: str) -> None:
    """Draw the mean ratio of every policy on one family with its interval, one mark a size.

    Parameters
    ----------
    table : DataFrame
        Rows of :func:`summary` of one family and objective.
    names : list of str
        Policies, from the bottom up.
    """
    styled(axes)
    sizes = sorted(set(table["jobs"]))
    for k, size in enumerate(sizes):
        rows = table[table["jobs"] == size].set_index("policy").reindex(names)
        shift = (k - (len(sizes) - 1) / 2) * 0.5 / len(sizes)
        mean, low, high = (rows[name].to_numpy() for name in ("mean", "mean_low", "mean_high"))
        axes.errorbar(
            mean,
            np.arange(len(names)) + shift,
            xerr=np.stack((np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0))),
            fmt="o",
            ms=3,
            lw=1,
            color=COLOURS[k % len(COLOURS)],
            label=f"{size} jobs",
        )
    axes.axvline(1.0, color=GREY, ls=":", lw=1)
    most = float(table["mean_high"].max())
    axes.set(xscale="log", xlim=(0.97, max(1.1, most) * 1.05), xlabel="cost / bound")
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.xaxis.set_major_locator(FixedLocator(_spaced_ticks(most)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(np.arange(len(names)), names, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10)
