"""Figures as parts of pages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from markupsafe import Markup

from shadowprice.analysis.plots.page import Page
from shadowprice.errors import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

SCREEN = Page(6.0, fonts="sans-serif")
"""Column of an HTML page."""


def plotly_library() -> Markup:
    """The script that draws interactive figures, for a page that has some.

    Raises
    ------
    InputError
        If Plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError(
            "interactive pages: the package plotly is not installed; pip install 'shadowprice[pages]'"
        ) from None
    return Markup(get_plotlyjs())


def as_svg(figure: Figure) -> str:
    """A picture of the screen as an SVG element."""
    buffer = io.StringIO()
    SCREEN.write(figure, buffer, "svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def figure_html(name: str, figure: go.Figure) -> Markup:
    """A figure as plotly writes it, with an id and without the library; its data end no element."""
    options = {"responsive": True, "displayModeBar": False}
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=options)
    )
