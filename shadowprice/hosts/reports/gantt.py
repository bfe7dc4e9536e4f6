"""A still picture of a real run: which job held which device when (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from shadowprice.analysis.plots.job_colours import colours_of_few_or_gangs
from shadowprice.analysis.plots.style import (
    GREY,
    new_axes,
    readable_on,
    styled,
    time_unit,
)
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.timeline import (
    RUNNING,
    STARTING,
    UNCONFIRMED,
    Piece,
    outages,
    pieces,
)

_GAP = 0.1
_HATCHES = {RUNNING: "", STARTING: "////", UNCONFIRMED: "xxxx"}
_SAID = {STARTING: "hatched: starting", UNCONFIRMED: "crossed: end not confirmed"}


def execution_gantt(
    run: RunReader,
    axes: Axes | None = None,
    *,
    title: str = "",
    until_s: float | None = None,
) -> Axes:
    """Draw devices against time; O(L log L) for L leases times devices.

    Each of eight jobs or fewer has a colour of its own; more have that of their gang size, with a legend.
    A bar is hatched until its command runs; jobs that share a device have a part of its height
    each; grey behind a device: its node does not answer; a cross: a job failed.

    Parameters
    ----------
    until_s : float, optional
        End of the time axis [s], for runs one above the other; that of the run if not given.
    """
    until_s = max(run.now_s, 1.0) if until_s is None else until_s
    unit_s, unit = time_unit(until_s)
    lanes = {device.uuid: k for k, device in enumerate(run.devices)}
    if axes is None:
        axes = new_axes(9.0, min(1.3 + 0.38 * max(len(lanes), 2), 12.0))
    axes = styled(axes)
    bars = [piece for piece in pieces(run.timeline, until_s) if piece.device in lanes]
    chosen = colours_of_few_or_gangs([int(job["gpus"]) for job in run.jobs])
    names = [str(job["name"]) for job in run.jobs]
    colours = dict(zip(names, chosen.of, strict=True))
    _draw(axes, bars, lanes, colours, unit_s)
    _write_names(axes, bars, lanes, colours, unit_s, until_s)
    _draw_failures(axes, run, lanes, unit_s)
    gone = outages(run.timeline.incidents, until_s)
    for node, start_s, end_s in gone:
        for lane in (lanes[device.uuid] for device in run.devices if device.node == node):
            axes.fill_between(
                [start_s / unit_s, end_s / unit_s],
                lane,
                lane + 1,
                color="#d9d9d9",
                zorder=0.5,
                linewidth=0,
            )
    axes.set_yticks([lane + 0.5 for lane in lanes.values()], map(run.device_label, lanes))
    axes.set_xlim(0, 1.01 * until_s / unit_s)
    axes.set_ylim(max(len(lanes), 1), 0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"time [{unit}]")
    axes.set_ylabel("device")
    phases = {bar.phase for bar in bars}
    notes = [said for phase, said in _SAID.items() if phase in phases]
    if gone:
        notes.append("grey: the node did not answer")
    axes.set_title("; ".join([title, *notes]).strip("; "), loc="left", fontsize=9)
    chosen.add_legend(axes)
    return axes


def _corners(bar: Piece, lane: int, unit_s: float) -> list[tuple[float, float]]:
    left, right = bar.start_s / unit_s, bar.end_s / unit_s
    low, high = (lane + _GAP / 2 + (1 - _GAP) * part for part in (bar.low, bar.high))
    return [(left, low), (right, low), (right, high), (left, high)]


def _draw(
    axes: Axes,
    bars: Sequence[Piece],
    lanes: dict[str, int],
    colours: dict[str, str],
    unit_s: float,
) -> None:
    for phase, hatch in _HATCHES.items():
        drawn = [bar for bar in bars if bar.phase == phase]
        axes.add_collection(
            PolyCollection(
                [_corners(bar, lanes[bar.device], unit_s) for bar in drawn],
                facecolors=[colours.get(bar.hold.job, GREY) for bar in drawn],
                edgecolors="white",
                linewidths=0.5,
                hatch=hatch or None,
                zorder=2,
            )
        )


def _write_names(
    axes: Axes,
    bars: Sequence[Piece],
    lanes: dict[str, int],
    colours: dict[str, str],
    unit_s: float,
    until_s: float,
) -> None:
    for bar in bars:
        # A letter at this size takes about one part in 90 of the axis.
        roomy = bar.end_s - bar.start_s > until_s * (len(bar.hold.job) + 1) / 90
        if bar.phase == RUNNING and roomy and bar.high - bar.low > 0.4:
            x = (bar.start_s + bar.end_s) / 2 / unit_s
            y = lanes[bar.device] + _GAP / 2 + (1 - _GAP) * (bar.low + bar.high) / 2
            ink = readable_on(colours.get(bar.hold.job, GREY))
            axes.text(
                x,
                y,
                bar.hold.job,
                ha="center",
                va="center",
                fontsize=7,
                color=ink,
                zorder=3,
                parse_math=False,
                clip_on=True,
            )


def _draw_failures(axes: Axes, run: RunReader, lanes: dict[str, int], unit_s: float) -> None:
    points = [
        (hold.failed_s / unit_s, lanes[uuid] + 0.5)
        for hold in run.timeline.holds.values()
        if hold.failed_s is not None
        for uuid in hold.devices
        if uuid in lanes
    ]
    if points:
        x, y = zip(*points, strict=True)
        axes.scatter(
            x,
            y,
            marker="X",
            s=48,
            color="black",
            edgecolors="white",
            linewidths=0.8,
            zorder=4,
            clip_on=False,
        )
