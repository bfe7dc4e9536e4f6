"""Curves of a real run (plotly): load over time, throughput of each job."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from shadowprice.analysis.plots.style import COLOURS, GREY, time_unit
from shadowprice.analysis.real_runs.pieces import Curve, devices_held, jobs_waiting
from shadowprice.analysis.real_runs.plotly import INK, colours_of_jobs, plain, style
from shadowprice.analysis.real_runs.run import RunReader
from shadowprice.analysis.real_runs.timeline import Row

MAX_PANELS = 24
"""Jobs whose throughput is drawn: those measured most often."""


def load_figure(run: RunReader) -> go.Figure:
    """Jobs that wait and devices that are held, over time."""
    until_s = max(run.now_s, 1.0)
    unit_s, unit = time_unit(until_s)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    curves = (jobs_waiting(run.timeline, until_s), devices_held(run.timeline, until_s))
    names = ("jobs waiting", "devices held")
    for row, (name, curve) in enumerate(zip(names, curves, strict=True), start=1):
        figure.add_trace(_step_trace(curve, name, COLOURS[2 - row], unit_s, unit), row=row, col=1)
        figure.update_yaxes(title=name, rangemode="tozero", row=row, col=1)
    total = len(run.devices)
    figure.add_hline(total, line={"color": GREY, "width": 1, "dash": "dot"}, row=2, col=1)
    figure.update_yaxes(range=[0, 1.1 * max(total, 1)], row=2, col=1)
    figure.update_xaxes(title=f"time [{unit}]", row=2, col=1)
    style(figure, height=330)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(range=[0, 1.01 * until_s / unit_s])
    return figure


def throughput_figure(run: RunReader) -> go.Figure | None:
    """Measured iterations per second of each job against what was assumed (dashed); None if none."""
    job_allocator: dict[str, list[Row]] = {}
    for sample in run.samples():
        if sample["rate"] is not None:
            job_allocator.setdefault(str(sample["job"]), []).append(sample)
    most = set(sorted(job_allocator, key=lambda job: -len(job_allocator[job]))[:MAX_PANELS])
    jobs = [job for job in run.jobs if job["name"] in most]
    if not jobs:
        return None
    until_s = max(run.now_s, 1.0)
    unit_s, unit = time_unit(until_s)
    columns = min(3, len(jobs))
    rows = -(-len(jobs) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[plain(job["name"]) for job in jobs],
        shared_xaxes="all",
        vertical_spacing=min(0.32 / rows, 0.16),
        horizontal_spacing=0.08,
    )
    colour = colours_of_jobs(run)
    for place, job in enumerate(jobs):
        row, col = place // columns + 1, place % columns + 1
        name = str(job["name"])
        figure.add_trace(
            _rate_trace(job_allocator[name], colour(name), unit_s, unit), row=row, col=col
        )
        if job["predicted_rate"] is not None:
            dashed = {"color": GREY, "width": 1.2, "dash": "dash"}
            figure.add_hline(float(job["predicted_rate"]), line=dashed, row=row, col=col)
        tops = [float(sample["rate"]) for sample in job_allocator[name]]
        top = max(*tops, float(job["predicted_rate"] or 0.0), 1e-9)
        figure.update_yaxes(range=[0, 1.15 * top], row=row, col=col)
        if col == 1:
            figure.update_yaxes(title="iterations/s", row=row, col=col)
        if place + columns >= len(jobs):
            figure.update_xaxes(title=f"time [{unit}]", showticklabels=True, row=row, col=col)
    style(figure, height=60 + 190 * rows)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(range=[0, 1.01 * until_s / unit_s])
    figure.update_annotations(font={"size": 13, "color": INK})
    return figure


def _step_trace(curve: Curve, name: str, colour: str, unit_s: float, unit: str) -> go.Scatter:
    return go.Scatter(
        x=[time_s / unit_s for time_s in curve.times_s],
        y=curve.values,
        name=name,
        mode="lines",
        line={"shape": "hv", "color": colour, "width": 1.8},
        hovertemplate=f"%{{x:.2f}} {unit}: %{{y}} {name}<extra></extra>",
    )


def _rate_trace(samples: Sequence[Row], colour: str, unit_s: float, unit: str) -> go.Scatter:
    """A line that is broken between leases."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, sample in enumerate(samples):
        if place and sample["epoch"] != samples[place - 1]["epoch"]:
            x.append(None)
            y.append(None)
        x.append(float(sample["time_s"]) / unit_s)
        y.append(float(sample["rate"]))
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line={"color": colour, "width": 1.8},
        marker={"size": 5},
        hovertemplate=f"%{{x:.2f}} {unit}: %{{y:.4g}} iterations/s<extra></extra>",
    )
