"""Common parts of the interactive figures of real runs: colours of jobs, style, escaped text."""

from __future__ import annotations

import html
from collections.abc import Callable

import plotly.graph_objects as go

from shadowprice.analysis.plots.style import GREY, colour_of
from shadowprice.analysis.real_runs.run import RunReader

INK = "#1a1a1a"
_GRID = "#e4e4e4"


def colours_of_jobs(run: RunReader) -> Callable[[str], str]:
    """Colours of jobs by their place in the workload; used by all pictures of the run."""
    place = {str(job["name"]): k for k, job in enumerate(run.jobs)}
    return lambda job: colour_of(place.get(job, len(place)))


def style(figure: go.Figure, height: int) -> None:
    """The look of all figures: dark text on white, light grid, ``height`` in pixels."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 70, "r": 20, "t": 28, "b": 46},
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        hoverlabel={"align": "left", "bgcolor": "white", "font": {"color": INK}},
        hovermode="closest",
    )
    figure.update_xaxes(gridcolor=_GRID, zeroline=False, linecolor=GREY, title_standoff=8)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False, linecolor=GREY, automargin=True)


def plain(value: object) -> str:
    """Text that plotly shows as it is: it would read tags in labels."""
    return html.escape(str(value), quote=True)
