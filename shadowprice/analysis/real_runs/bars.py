"""Devices over time of a real run, interactive (plotly): who held what, how it ended, what failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from shadowprice.analysis.plots.style import readable_on, time_unit
from shadowprice.analysis.real_runs.pieces import RUNNING, STARTING, UNCONFIRMED, Piece, pieces
from shadowprice.analysis.real_runs.plotly import INK, colours_of_jobs, plain, style
from shadowprice.analysis.real_runs.run import RunReader
from shadowprice.analysis.real_runs.timeline import Hold, Incident, outages

MAX_BARS = 5_000
"""Bars drawn; of a longer run the latest."""

MAX_NAMED = 24
"""Jobs up to which there is a legend; the bars say the names anyway."""

_PATTERNS = {RUNNING: "", STARTING: "/", UNCONFIRMED: "x"}
_GAP = 0.12
_MARKS = {
    "failed": ("x", "a job failed"),
    "node-lost": ("triangle-down", "a node was lost"),
    "quarantined": ("diamond-open", "a device was put aside"),
}


def gantt_figure(run: RunReader) -> go.Figure:
    """Devices against time: a bar a lease, hatched until it runs; the latest 5,000 bars."""
    until_s = max(run.now_s, 1.0)
    unit_s, unit = time_unit(until_s)
    lanes = _lanes(run)
    bars = [piece for piece in pieces(run.timeline, until_s) if piece.device in lanes]
    left_out = max(len(bars) - MAX_BARS, 0)
    bars = sorted(bars, key=lambda piece: piece.start_s)[left_out:]
    colour = colours_of_jobs(run)
    figure = go.Figure()
    groups = _grouped(bars)
    named = len({job for job, _ in groups}) <= MAX_NAMED
    for (job, phase), group in groups:
        figure.add_trace(_bar_trace(job, phase, group, lanes, unit_s, colour(job), named=named))
    _add_marks(figure, run, lanes, unit_s)
    _add_outages(figure, run, lanes, unit_s, until_s)
    style(figure, height=110 + (44 if len(lanes) <= 16 else 28) * max(len(lanes), 2))
    figure.update_layout(barmode="overlay", bargap=0, uniformtext={"minsize": 9, "mode": "hide"})
    start = bars[0].start_s / unit_s if left_out else 0.0
    figure.update_xaxes(title=f"time [{unit}]", range=[start, 1.01 * until_s / unit_s])
    figure.update_yaxes(
        tickvals=list(lanes.values()),
        ticktext=[plain(run.device_label(uuid)) for uuid in lanes],
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
        text=[plain(job)] * len(bars) if phase == RUNNING else None,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside",
        insidetextfont={"color": readable_on(colour)},
        hovertext=[_bar_hover(bar) for bar in bars],
        hoverinfo="text",
        marker=marker,
        name=plain(job),
        legendgroup=plain(job),
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
    return "<br>".join(map(plain, lines))


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
    return plain(f"{incident.kind}: {what} at {incident.time_s:,.1f} s") + (
        f"<br>{plain(incident.text[:200])}" if incident.text else ""
    )


def _add_outages(
    figure: go.Figure, run: RunReader, lanes: dict[str, int], unit_s: float, until_s: float
) -> None:
    """Grey behind the devices of nodes that did not answer."""
    for node, start_s, end_s in outages(run.timeline.incidents, until_s):
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
