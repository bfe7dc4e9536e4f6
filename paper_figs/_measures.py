"""Measures of runs as rows of a table, one a measure, and what figures read from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from shadowprice.studies.figures import Estimate, Row, estimate, ratio_by_seed

PUBLISHED_CURVES = Path(__file__).parent / "published"
STATISTICS = ("mean", "median", "p95")
SHARES = tuple(round(0.05 * k, 2) for k in range(1, 20))
"""Shares of the jobs whose quantiles are kept."""


def statistics(jct_s: np.ndarray) -> dict[str, float]:
    """Mean, median and 95th percentile [s], by name."""
    found = float(jct_s.mean()), float(np.median(jct_s)), float(np.percentile(jct_s, 95))
    return dict(zip(STATISTICS, found, strict=True))


def measured(key: Row, values: Mapping[str, float]) -> Iterator[Row]:
    """One row a measure."""
    for name, value in values.items():
        yield {**key, "measure": name, "value": float(value)}


def factor(
    table: pd.DataFrame, measure: str, better: str, than: str, by: str = "system"
) -> Estimate | None:
    """Times that a measure of one system is another's, over seeds; None without both."""
    rows = table[table.measure == measure]
    return ratio_by_seed(rows, better=better, than=than, column="value", on=by)


def level(table: pd.DataFrame, measure: str, system: str) -> Estimate | None:
    """A measure of a system over seeds; None without rows."""
    values = table[(table.measure == measure) & (table.system == system)].value
    return estimate(values) if len(values) else None


def quantile_rows(key: Row, values: np.ndarray) -> Iterator[Row]:
    """Quantiles at :data:`SHARES`."""
    return measured(key, {f"q{share:.2f}": float(np.quantile(values, share)) for share in SHARES})


def curve(table: pd.DataFrame, system: str) -> tuple[np.ndarray, Sequence[float]]:
    """Mean quantiles over seeds and their shares."""
    part = table[(table.system == system) & table.measure.str.startswith("q0.")]
    mean = part.groupby("measure", sort=True).value.mean()
    return mean.to_numpy(), [float(name[1:]) for name in mean.index]


def published_curve(name: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and shares of a published curve."""
    read = pd.read_csv(PUBLISHED_CURVES / f"{name}.csv", comment="#")
    part = read[read.curve == label]
    return part.iloc[:, 2].to_numpy(), part["share"].to_numpy()


def clear_of_marks(axes: Axes, marks: Mapping[int, float]) -> None:
    """Move the numbers of horizontal bars that a published mark would lie on into the bars.

    Parameters
    ----------
    marks : mapping of int to float
        Published value by place of the bar; the limits of the axes are already set.
    """
    share = axes.transData + axes.transAxes.inverted()
    for place, text in enumerate(axes.texts):
        if place in marks and isinstance(text, Annotation):
            number, mark = (share.transform((x, 0.0))[0] for x in (text.xy[0], marks[place]))
            if -0.01 < mark - number < 0.11:
                text.xy = (axes.get_xlim()[0], text.xy[1])
                text.set_color("white")
