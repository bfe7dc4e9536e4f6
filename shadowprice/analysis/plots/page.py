"""The page that a picture of a figure or a study is drawn on: width, text, means with intervals, published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from shadowprice.analysis.plots.style import GREY, colour_of, styled
from shadowprice.analysis.statistics.estimates import Estimate, estimate

POINTS = 8.0
"""Smallest size of text [pt]."""

COLUMN_IN, PAGE_IN = 3.3, 7.0
"""Widths of a column and of a page of two [in]."""

_STYLE: Any = {
    "font.size": POINTS,
    "axes.titlesize": POINTS + 1,
    "axes.titlelocation": "left",
    "axes.labelsize": POINTS,
    "xtick.labelsize": POINTS,
    "ytick.labelsize": POINTS,
    "legend.fontsize": POINTS,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "errorbar.capsize": 2.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "shadowprice",
}
"""Settings of Matplotlib while a picture is drawn and written."""

_NO_DATE: Mapping[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None, "Creator": None},
}
"""Metadata by kind of file: what differs from one day or library to the next is left out."""


@dataclass(frozen=True)
class Page:
    """Paper that a picture is drawn on.

    Parameters
    ----------
    width_in : float
        Of a column, such as 3.3, or of a page, 7 [in].
    compares : bool
        True if the run is large enough to stand beside published numbers; else none is drawn.
    fonts : str
        Family of fonts in which text and formulas are set; Matplotlib's own if empty.
    """

    width_in: float = PAGE_IN
    compares: bool = True
    fonts: str = ""

    def style(self) -> AbstractContextManager[None]:
        """Settings of Matplotlib while a picture is drawn on it, or written."""
        fonts: Any = {
            "font.family": self.fonts,
            "font.serif": ["STIXGeneral", "DejaVu Serif"],
            "mathtext.fontset": "stix",
        }
        context: AbstractContextManager[None] = matplotlib.rc_context(
            {**_STYLE, **fonts} if self.fonts else _STYLE
        )
        return context

    def grid(
        self, rows: int, columns: int, height_in: float, **subplots: Any
    ) -> tuple[Picture, list[Axes]]:
        """Axes row by row; in a column they stand below one another, each as high as a row was.

        Parameters
        ----------
        height_in : float
            Of the picture at full width [in].
        **subplots
            As for ``Figure.subplots``; ratios of widths are left out in a column.
        """
        if self.width_in < PAGE_IN and columns > 1:
            rows, columns, height_in = rows * columns, 1, height_in * columns
            subplots.pop("width_ratios", None)
        picture = Picture(figsize=(self.width_in, height_in), layout="constrained")
        axes = np.asarray(picture.subplots(rows, columns, squeeze=False, **subplots)).ravel()
        return picture, [styled(each) for each in axes]

    def lines(
        self,
        axes: Axes,
        table: pd.DataFrame,
        *,
        x: str,
        y: str,
        by: str,
        order: Sequence[str],
        colours: Mapping[str, str] | None = None,
    ) -> None:
        """Mean over the rows of every ``x``, a line for every entry of ``by``, with intervals of 95 %.

        Parameters
        ----------
        order : sequence of str
            Entries of ``by`` to draw; those without rows are left out.
        colours : mapping, optional
            Colour by entry; else by the place in ``order``.
        """
        for place, name in enumerate(order):
            rows = table[table[by] == name]
            if rows.empty:
                continue
            means = [(at, estimate(part)) for at, part in rows.groupby(x)[y]]
            colour = (colours or {}).get(name, colour_of(place))
            self.intervals(axes, means, color=colour, label=name)

    def intervals(
        self,
        axes: Axes,
        means: Sequence[tuple[Any, Estimate]],
        *,
        along: Literal["x", "y"] = "y",
        **line: Any,
    ) -> None:
        """Marks at means with their intervals, by their places on the other axis; along y a line joins them.

        Parameters
        ----------
        **line
            As for ``Axes.errorbar``.
        """
        at = [place for place, _ in means]
        mean = np.array([each.mean for _, each in means])
        # Bars of no length would be drawn as caps that look like a measured interval.
        several = any(each.count > 1 for _, each in means)
        error = np.array([each.reach for _, each in means]).T if several else None
        line = {"marker": "o", **line}
        if along == "y":
            axes.errorbar(at, mean, yerr=error, **line)
        else:
            axes.errorbar(mean, at, xerr=error, **{"linestyle": "none", **line})

    def ratio_axis(self, axes: Axes, label: str) -> None:
        """Make the x axis one of ratios that are never below 1, when all are drawn: logarithmic, in plain numbers."""
        axes.axvline(1.0, color=GREY, linestyle=":", linewidth=1.0)
        axes.set(xscale="log", xlabel=label)
        low, high = axes.get_xlim()
        subs = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0) if high / low < 4 else (1.0, 2.0, 5.0)
        axes.xaxis.set_major_locator(LogLocator(subs=subs if high / low < 40 else (1.0,)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))

    def bars(
        self,
        axes: Axes,
        values: Mapping[str, Estimate],
        *,
        form: str = ".3g",
        colours: Mapping[str, str] | None = None,
    ) -> None:
        """One horizontal bar for every entry, first on top, with interval and value."""
        reach = max(max(each.high, each.mean) for each in values.values())
        for place, (name, value) in enumerate(values.items()):
            error = [[each] for each in value.reach]
            axes.barh(
                place,
                value.mean,
                height=0.65,
                color=(colours or {}).get(name, colour_of(place)),
                xerr=error if value.count > 1 else None,
                error_kw={"lw": 0.8, "ecolor": "#333333"},
            )
            axes.annotate(
                f"{value.mean:{form}}",
                (max(value.high, value.mean), place),
                (3, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(values)), list(values))
        axes.set_xlim(0, 1.22 * reach)
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()

    def published_line(
        self, axes: Axes, value: float, label: str, *, along: Literal["x", "y"] = "y"
    ) -> None:
        """A dashed line at a published value of an axis."""
        self._line(axes, value, label, along, color="#222222", linestyle="--")

    def limit_line(
        self, axes: Axes, value: float, label: str, *, along: Literal["x", "y"] = "y"
    ) -> None:
        """A dotted line at a value that no scheduler can pass."""
        self._line(axes, value, label, along, color="#AA0000", linestyle=":")

    def limit_curve(self, axes: Axes, x: Any, y: Any, label: str) -> None:
        """A dotted curve of values that no scheduler can pass."""
        if self.compares:
            axes.plot(x, y, label=label, linewidth=1.0, color="#AA0000", linestyle=":")

    def _line(self, axes: Axes, value: float, label: str, along: str, **line: Any) -> None:
        if self.compares:
            draw = axes.axhline if along == "y" else axes.axvline
            draw(value, label=label, linewidth=1.0, **line)

    def published_curve(
        self, axes: Axes, x: Any, y: Any, label: str, *, colour: str = "#222222", **line: Any
    ) -> None:
        """A thin dashed curve, or marks, at published points."""
        if self.compares:
            axes.plot(
                x, y, **{"linestyle": "--", "linewidth": 0.9, "color": colour, **line}, label=label
            )

    def finish(self, picture: Picture, name: str) -> None:
        """Mark a picture that compares with nothing, and look at the sizes of its text.

        Raises
        ------
        ValueError
            If text is smaller than 8 pt, or reaches over the edge of the picture.
        """
        if not self.compares:
            mark: dict[str, Any] = {"fontsize": 40, "rotation": 25, "alpha": 0.18, "color": GREY}
            picture.text(0.5, 0.5, "quick run", ha="center", va="center", **mark)
        with self.style():
            picture.draw_without_rendering()
        edge = picture.bbox
        for text in picture.findobj(Text):
            if not isinstance(text, Text) or not text.get_visible() or not text.get_text().strip():
                continue
            if float(text.get_fontsize()) < POINTS:
                raise ValueError(
                    f"figure {name}: text {text.get_text()!r} is {text.get_fontsize()} pt; "
                    f"at least {POINTS:g} are asked for"
                )
            box = text.get_window_extent()
            outside = max(edge.x0 - box.x0, box.x1 - edge.x1, edge.y0 - box.y0, box.y1 - edge.y1)
            if outside > 2.0 and box.width > 0 and _is_drawn(text, picture):
                raise ValueError(f"figure {name}: text {text.get_text()!r} reaches over the edge")

    def write(
        self,
        picture: Picture,
        file: Path | IO[str],
        kind: Literal["png", "pdf", "svg"],
        *,
        dpi: float | None = None,
        made_by: str = "",
    ) -> None:
        """Write a picture, with its fonts, the same bytes each time.

        Parameters
        ----------
        dpi : float, optional
            Points an inch of a PNG.
        made_by : str
            Sentence on its origin, for the metadata.
        """
        metadata = _NO_DATE[kind] | ({"Subject": made_by} if made_by else {})
        with self.style():
            picture.savefig(file, format=kind, dpi=dpi or "figure", metadata=metadata)


def _is_drawn(text: Text, picture: Picture) -> bool:
    """True if a text is part of the picture: ticks beyond the limits of an axis are not."""
    for axes in picture.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                if text in (tick.label1, tick.label2):
                    return min(low, high) <= tick.get_loc() <= max(low, high)
    return True
