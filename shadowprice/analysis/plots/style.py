"""The one style of all pictures: axes, colours, units of time."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#F0E442")
"""Okabe and Ito's palette with black left out and a wine red of Tol's put in."""

GREY = "#555555"
"""Notes and secondary text."""

_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"))


def new_axes(width_in: float = 7.0, height_in: float = 4.0) -> Axes:
    """Axes on a figure of their own, outside pyplot: no window, no state to clean up."""
    return styled(Figure(figsize=(width_in, height_in), layout="constrained").add_subplot())


def styled(axes: Axes) -> Axes:
    """Give axes the house style: no box, a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def time_unit(longest_s: float) -> tuple[float, str]:
    """Choose the unit in which a time span reads well: its length [s] and name."""
    for length_s, name in _UNITS:
        if longest_s >= 3 * length_s:
            return length_s, name
    return 1.0, "seconds"


def colour_of(place: int) -> str:
    """Colour of the job or line at a place, from 0; after eight they begin again."""
    return COLOURS[place % len(COLOURS)]


def readable_on(colour: str) -> str:
    """Black or white, whichever stands out more (luminance weights of ITU-R BT.709)."""
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), to_rgb(colour), strict=True))
    return "black" if luminance > 0.5 else "white"
