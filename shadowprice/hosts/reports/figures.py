"""Interactive figures of a real run (plotly): who held what and what failed, load, throughput."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from shadowprice.analysis.plots.job_colours import JobColours, colours_of_few_or_gangs
from shadowprice.analysis.plots.style import COLOURS, GREY, readable_on, time_unit
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.timeline import (
    MAX_BARS,
    MAX_PANELS,
    RUNNING,
    STARTING,
    UNCONFIRMED,
    Curve,
    Hold,
    Incident,
    Piece,
    Row,
    devices_held,
    jobs_waiting,
    pieces,
)

MAX_NAMED = 24
"""Jobs up to which there is a legend; the bars say the names anyway."""


INK = "#1a1a1a"
_GRID = "#e4e4e4"
_PATTERNS = {RUNNING: "", STARTING: "/", UNCONFIRMED: "x"}
_GAP = 0.12
_MARKS = {
    "failed": ("x", "a job failed"),
    "node-lost": ("triangle-down", "a node was lost"),
    "quarantined": ("diamond-open", "a device was quarantined"),
}


def gantt_figure(run: RunReader) -> go.Figure:
    """Devices against time: a bar a lease, hatched until it runs; the latest 5,000 bars."""
    until_s = max(run.now_s, 1.0)
    unit_s, unit = time_unit(until_s)
    lanes = _lanes(run)
    bars = [piece for piece in pieces(run.timeline, until_s) if piece.device in lanes]
    left_out = max(len(bars) - MAX_BARS, 0)
    bars = sorted(bars, key=lambda piece: piece.start_s)[left_out:]
    colour = _colours_of_jobs(run)
    figure = go.Figure()
    groups = _grouped(bars)
    named = len({job for job, _ in groups}) <= MAX_NAMED
    for (job, phase), group in groups:
        figure.add_trace(_bar_trace(job, phase, group, lanes, unit_s, colour(job), named=named))
    _add_colours(figure, run)
    _add_marks(figure, run, lanes, unit_s)
    _add_outages(figure, run, lanes, unit_s, until_s)
    _style(figure, height=110 + (44 if len(lanes) <= 16 else 28) * max(len(lanes), 2))
    figure.update_layout(barmode="overlay", bargap=0, uniformtext={"minsize": 9, "mode": "hide"})
    start = bars[0].start_s / unit_s if left_out else 0.0
    figure.update_xaxes(title=f"time [{unit}]", range=[start, 1.01 * until_s / unit_s])
    figure.update_yaxes(
        tickvals=list(lanes.values()),
        ticktext=[_plain(run.device_label(uuid)) for uuid in lanes],
        range=[len(lanes) - 0.4, -0.6],
        showgrid=False,
    )
    return figure


def _lanes(run: RunReader) -> dict[str, int]:
    """Height of each device's lane, from the top: the run's devices, then those gone since."""
    names = [device.uuid for device in run.devices]
    held = (uuid for hold in run.timeline.holds.values() for uuid in hold.devices)
    return {uuid: place for place, uuid in enumerate(dict.fromkeys([*names, *held]))}


def _grouped(bars: Iterable[Piece]) -> list[tuple[tuple[str, str], list[Piece]]]:
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in bars:
        groups.setdefault((piece.hold.job, piece.phase), []).append(piece)
    return list(groups.items())


def _bar_trace(
    job: str,
    phase: str,
    bars: Sequence[Piece],
    lanes: dict[str, int],
    unit_s: float,
    colour: str,
    *,
    named: bool,
) -> go.Bar:
    top = [lanes[bar.device] - 0.5 + _GAP / 2 for bar in bars]
    room = 1 - _GAP
    marker: dict[str, Any] = {"color": colour, "line": {"color": "white", "width": 0.6}}
    if _PATTERNS[phase]:
        marker["pattern"] = {
            "shape": _PATTERNS[phase],
            "size": 6,
            "solidity": 0.35,
            "fgcolor": INK,
            "bgcolor": colour,
            "fillmode": "overlay",
        }
    return go.Bar(
        orientation="h",
        base=[bar.start_s / unit_s for bar in bars],
        x=[(bar.end_s - bar.start_s) / unit_s for bar in bars],
        y=[at + room * (bar.low + bar.high) / 2 for at, bar in zip(top, bars, strict=True)],
        width=[room * (bar.high - bar.low) for bar in bars],
        text=[_plain(job)] * len(bars) if phase == RUNNING else None,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside",
        insidetextfont={"color": readable_on(colour)},
        hovertext=[_bar_hover(bar) for bar in bars],
        hoverinfo="text",
        marker=marker,
        name=_plain(job),
        legendgroup=_plain(job),
        showlegend=named and phase == RUNNING,
    )


def _bar_hover(bar: Piece) -> str:
    hold = bar.hold
    steps = f"steps {hold.from_step} to {'...' if hold.step is None else hold.step}"
    lines = [
        f"{hold.job}, epoch {hold.epoch}: {bar.phase}",
        f"{bar.start_s:,.1f} to {bar.end_s:,.1f} s ({bar.end_s - bar.start_s:,.1f} s)",
        steps + (f", {hold.lost_steps} of them lost" if hold.lost_steps else ""),
        hold.how_it_ended(),
        *_last_lines(hold),
    ]
    return "<br>".join(map(_plain, lines))


def _last_lines(hold: Hold) -> list[str]:
    return [line[:120] for line in hold.detail.strip().splitlines()[-3:]]


def _add_marks(figure: go.Figure, run: RunReader, lanes: dict[str, int], unit_s: float) -> None:
    for kind, (symbol, name) in _MARKS.items():
        points = [
            (incident, lanes[uuid])
            for incident in run.timeline.incidents
            if incident.kind == kind
            for uuid in _devices_of(incident, run)
            if uuid in lanes
        ]
        if points:
            figure.add_trace(
                go.Scatter(
                    x=[incident.time_s / unit_s for incident, _ in points],
                    y=[lane for _, lane in points],
                    mode="markers",
                    marker={
                        "symbol": symbol,
                        "size": 11,
                        "color": INK,
                        "line": {"color": "white" if symbol[-4:] != "open" else INK, "width": 1.4},
                    },
                    hovertext=[_mark_hover(incident) for incident, _ in points],
                    hoverinfo="text",
                    name=name,
                )
            )


def _devices_of(incident: Incident, run: RunReader) -> list[str]:
    if incident.kind == "failed":
        hold = run.timeline.holds.get((incident.job, incident.epoch))
        return [] if hold is None else list(hold.devices)
    if incident.kind == "quarantined":
        return [incident.device]
    return [device.uuid for device in run.devices if device.node == incident.node]


def _mark_hover(incident: Incident) -> str:
    what = incident.job or incident.node or incident.device
    return _plain(f"{incident.kind}: {what} at {incident.time_s:,.1f} s") + (
        f"<br>{_plain(incident.text[:200])}" if incident.text else ""
    )


def _add_outages(
    figure: go.Figure, run: RunReader, lanes: dict[str, int], unit_s: float, until_s: float
) -> None:
    """Grey behind the devices of nodes that did not answer."""
    still = [(node, start_s, until_s) for node, start_s in run.timeline.lost_nodes.items()]
    for node, start_s, end_s in (*run.timeline.outages, *still):
        for device in run.devices:
            if device.node == node:
                figure.add_shape(
                    type="rect",
                    layer="below",
                    x0=start_s / unit_s,
                    x1=end_s / unit_s,
                    y0=lanes[device.uuid] - 0.5,
                    y1=lanes[device.uuid] + 0.5,
                    fillcolor="#d0d0d0",
                    line_width=0,
                )


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
    _style(figure, height=330)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(range=[0, 1.01 * until_s / unit_s])
    return figure


def throughput_figure(run: RunReader) -> go.Figure | None:
    """Measured iterations per second of each job against what was assumed (dashed); None if none."""
    samples_of: dict[str, list[Row]] = {}
    for sample in run.samples():
        if sample["rate"] is not None:
            samples_of.setdefault(str(sample["job"]), []).append(sample)
    most = set(sorted(samples_of, key=lambda job: -len(samples_of[job]))[:MAX_PANELS])
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
        subplot_titles=[_plain(job["name"]) for job in jobs],
        shared_xaxes="all",
        vertical_spacing=min(0.32 / rows, 0.16),
        horizontal_spacing=0.08,
    )
    colour = _colours_of_jobs(run)
    for place, job in enumerate(jobs):
        row, col = place // columns + 1, place % columns + 1
        name = str(job["name"])
        figure.add_trace(
            _rate_trace(samples_of[name], colour(name), unit_s, unit), row=row, col=col
        )
        if job["predicted_rate"] is not None:
            dashed = {"color": GREY, "width": 1.2, "dash": "dash"}
            figure.add_hline(float(job["predicted_rate"]), line=dashed, row=row, col=col)
        tops = [float(sample["rate"]) for sample in samples_of[name]]
        top = max(*tops, float(job["predicted_rate"] or 0.0), 1e-9)
        figure.update_yaxes(range=[0, 1.15 * top], row=row, col=col)
        if col == 1:
            figure.update_yaxes(title="iterations/s", row=row, col=col)
        if place + columns >= len(jobs):
            figure.update_xaxes(title=f"time [{unit}]", showticklabels=True, row=row, col=col)
    _style(figure, height=60 + 190 * rows)
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


def _colours(run: RunReader) -> JobColours:
    return colours_of_few_or_gangs([int(job["gpus"]) for job in run.jobs])


def _add_colours(figure: go.Figure, run: RunReader) -> None:
    """Say in the legend what colours stand for, where a job has none of its own."""
    for label, colour in _colours(run).meaning:
        figure.add_trace(
            go.Scatter(
                x=[None],
                y=[None],
                mode="markers",
                marker={"symbol": "square", "size": 11, "color": colour},
                name=f"{label} GPU{'s' if label != '1' else ''}",
            )
        )


def _colours_of_jobs(run: RunReader) -> Callable[[str], str]:
    """Colours of jobs; used by all pictures of the run."""
    place = {str(job["name"]): k for k, job in enumerate(run.jobs)}
    chosen = _colours(run)
    return lambda job: chosen.of[place[job]] if job in place else GREY


def _style(figure: go.Figure, height: int) -> None:
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


def _plain(value: object) -> str:
    """Text that plotly shows as it is: it would read tags in labels."""
    return html.escape(str(value), quote=True)
