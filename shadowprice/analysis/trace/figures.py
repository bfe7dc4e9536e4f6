"""Interactive figures of a trace (plotly): arrivals, gangs, run times, whose GPU time it is, demand."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from shadowprice.analysis.plots.style import COLOURS, GREY, colour_of, time_unit
from shadowprice.analysis.trace.contents import HOUR_S, Contents, Part
from shadowprice.instances.workload import Workload

MOST_LINES = 6
"""Classes that have a line of their own: those with most GPU time."""

_POINTS = 400
_GRID = "#e4e4e4"
_INK = "#1a1a1a"


def arrivals_figure(workload: Workload, contents: Contents) -> go.Figure:
    """Arrivals over time, and by hour of the day counted from the first."""
    unit_s, unit = time_unit(max(contents.span_s, 1.0))
    bins = np.linspace(0.0, max(contents.span_s, 1.0), 121)
    count, _ = np.histogram(workload.arrival_s - workload.arrival_s[0], bins)
    figure = make_subplots(
        rows=1, cols=2, column_widths=[0.62, 0.38], horizontal_spacing=0.1, shared_yaxes=False
    )
    per_hour = count / (np.diff(bins) / HOUR_S)
    figure.add_trace(
        go.Scatter(
            x=bins[:-1] / unit_s,
            y=per_hour,
            mode="lines",
            line={"color": COLOURS[0], "width": 1.5, "shape": "hv"},
            hovertemplate=f"%{{x:.2f}} {unit}: %{{y:.3g}} jobs an hour<extra></extra>",
        ),
        row=1,
        col=1,
    )
    figure.add_trace(
        go.Bar(
            x=list(range(24)),
            y=list(contents.by_hour),
            marker_color=COLOURS[0],
            hovertemplate="hour %{x}: %{y} jobs<extra></extra>",
        ),
        row=1,
        col=2,
    )
    figure.update_xaxes(title=f"time since the first arrival [{unit}]", row=1, col=1)
    figure.update_xaxes(title="hour of the day, from the first arrival", row=1, col=2)
    figure.update_yaxes(title="arrivals [jobs/h]", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="arrivals [jobs]", rangemode="tozero", row=1, col=2)
    return _styled(figure, 300)


def shares_figure(parts: Sequence[Part], what: str) -> go.Figure:
    """Shares of jobs and of GPU time, a pair of bars for each part."""
    names = [_plain(part.name) for part in parts]
    figure = go.Figure()
    for place, (label, values) in enumerate(
        (
            ("share of jobs", [part.share_of_jobs for part in parts]),
            ("share of GPU time", [part.share_of_gpu_time for part in parts]),
        )
    ):
        figure.add_trace(
            go.Bar(
                name=label,
                x=names,
                y=values,
                marker_color=COLOURS[place],
                hovertemplate=f"%{{x}}: %{{y:.1%}} {label.removeprefix('share ')}<extra></extra>",
            )
        )
    figure.update_xaxes(title=what, type="category")
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    return _styled(figure, 280, legend=True)


def durations_figure(
    workload: Workload, contents: Contents, run_s: NDArray[np.float64]
) -> go.Figure:
    """Distribution of run times, of all jobs and of the classes with most GPU time."""
    figure = go.Figure()
    able = np.isfinite(run_s)
    lines = [("all jobs", run_s[able])]
    if len(contents.by_class) > 1:
        named = [part.name for part in contents.by_class][:MOST_LINES]
        lines += [(name, run_s[able & (workload.job_class == name)]) for name in named]
    for place, (name, values) in enumerate(lines):
        if not len(values):
            continue
        points = min(_POINTS, len(values))
        # In whole numbers: of n jobs, rank of them run at most as long as the one of that rank.
        ranks = -(-np.arange(1, points + 1) * len(values) // points)
        times_s = np.sort(values)[ranks - 1]
        figure.add_trace(
            go.Scatter(
                name=_plain(name),
                x=np.concatenate((times_s[:1], times_s)),
                y=np.concatenate(([0.0], ranks / len(values))),
                mode="lines",
                line={
                    "color": _INK if place == 0 else colour_of(place - 1),
                    "width": 2.5 if place == 0 else 1.5,
                    "shape": "hv",
                },
                hovertemplate="%{y:.0%} run at most %{x:.4g} s<extra></extra>",
            )
        )
    figure.update_xaxes(title="run time [s]", type="log", dtick=1)
    figure.update_yaxes(title="share of jobs", tickformat=".0%", range=[0, 1.02])
    return _styled(figure, 320, legend=len(lines) > 1)


def demand_figure(
    workload: Workload, run_s: NDArray[np.float64], gpus_total: int | None
) -> go.Figure:
    """GPUs that would be held if every job ran at its arrival, and those of a cluster."""
    able = np.isfinite(run_s)
    held, arrival_s = workload.held_gpus[able], workload.arrival_s[able]
    end_s = arrival_s + run_s[able]
    time = np.concatenate((arrival_s, end_s))
    order = np.argsort(time, kind="stable")
    level = np.cumsum(np.concatenate((held, -held))[order])
    unit_s, unit = time_unit(max(float(time.max()), 1.0))
    # Mean of each of so many pieces, so that a long trace stays a small page.
    edges = np.linspace(0.0, float(time.max()), _POINTS + 1)
    area = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(time[order]))))
    until = np.interp(edges, time[order], area)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=edges[:-1] / unit_s,
            y=np.diff(until) / np.diff(edges),
            mode="lines",
            line={"color": COLOURS[0], "width": 1.5, "shape": "hv"},
            hovertemplate=f"%{{x:.2f}} {unit}: %{{y:.4g}} GPUs<extra></extra>",
        )
    )
    if gpus_total is not None:
        figure.add_hline(
            gpus_total,
            line={"color": GREY, "width": 1.5, "dash": "dot"},
            annotation_text=f"{gpus_total:,} GPUs of the cluster",
        )
    figure.update_xaxes(title=f"time since the first arrival [{unit}]")
    figure.update_yaxes(title="GPUs", rangemode="tozero")
    return _styled(figure, 300)


def _styled(figure: go.Figure, height: int, *, legend: bool = False) -> go.Figure:
    figure.update_layout(
        height=height,
        template="none",
        margin={"l": 62, "r": 16, "t": 24, "b": 48},
        font={"color": _INK, "size": 13},
        bargap=0.25,
        showlegend=legend,
        legend={"orientation": "h", "y": 1.12, "x": 0},
    )
    figure.update_xaxes(gridcolor=_GRID, zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False, automargin=True)
    return figure


def _plain(text: str) -> str:
    """Text that plotly shows as it is: it would read tags in labels."""
    return html.escape(text if len(text) <= 30 else f"{text[:27]}...")
