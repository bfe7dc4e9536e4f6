"""Gantt charts: which job held which GPUs when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from shadowprice.analysis.metrics import held_gpus
from shadowprice.analysis.plots.job_colours import JobColours, colours_of_jobs
from shadowprice.analysis.plots.style import GREY, new_axes, readable_on, styled, time_unit
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

MAX_ROWS = 20_000
"""Rows drawn; of a longer schedule the earliest."""

_OUTLINED = 600
_NAMED = 60
_NODE_LINES = 64
_OVERHEAD = "#222222"
_Corners = list[tuple[float, float]]


@dataclass(frozen=True)
class _Box:
    """A stretch of neighbouring GPUs that a run holds, or its half of them if it shares them.

    Times are in the unit of the axis.
    """

    row: int
    start: float
    paid: float
    end: float
    low: float
    high: float

    def corners(self, start: float, end: float) -> _Corners:
        return [(start, self.low), (end, self.low), (end, self.high), (start, self.high)]


def gantt(
    instance: Instance,
    schedule: Schedule,
    axes: Axes | None = None,
    *,
    title: str = "",
    until_s: float | None = None,
    colour_by: str | None = None,
) -> Axes:
    """Draw GPUs against time, overhead in black, each of a few jobs in its colour, many in that of their gang size.

    A schedule counts the GPUs held on a node and does not number them; here a run takes the
    lowest free ones of the node, or stays where it is when only its partner changes. A copy has all of
    its node. Two jobs that share GPUs have half the height each. Names are written where there are few rows. Of more
    than 20,000 rows the earliest are drawn, the axis ends where the first that is left out starts,
    and the title says so.

    Parameters
    ----------
    instance, schedule
        A schedule that fits the instance; O(R log R + R g) for R rows on nodes of g GPUs.
    until_s : float, optional
        End of the time axis [s], for schedules side by side; that of the schedule if not given.
    colour_by : str, optional
        What colours stand for, with a legend: ``job``, ``gang``, ``tenant``, ``job_class`` or ``model``. If not
        given, ``job`` for eight jobs or fewer and else ``gang``.

    Raises
    ------
    InputError
        If ``colour_by`` is none of these.
    """
    colours = colours_of_jobs(instance.workload, colour_by)
    gpus = instance.cluster.total_gpus
    height_in = min(max(2.4, 0.12 * gpus + 1.2), 9.0)
    axes = new_axes(9.0, height_in) if axes is None else styled(axes)
    by_start = np.lexsort((schedule.node, ~schedule.continues, schedule.start_s))
    order = by_start[:MAX_ROWS]
    until_s = _until_s(schedule, by_start) if until_s is None else until_s
    unit, name = time_unit(until_s)
    boxes = _boxes(instance, schedule, order, unit)
    _draw(axes, boxes, schedule, colours)
    _frame(axes, instance, until_s / unit, name)
    axes.set_title("; ".join([title, *_notes(schedule, len(order))]).strip("; "), loc="left")
    if len(order) <= _NAMED:
        _write_names(axes, instance, schedule, boxes, colours)
    colours.add_legend(axes)
    return axes


def _until_s(schedule: Schedule, by_start: NDArray[np.int64]) -> float:
    """End of the time axis [s]: beyond it no row is drawn, up to it every one is."""
    if len(schedule) > MAX_ROWS:
        return max(float(schedule.start_s[by_start[MAX_ROWS]]), 1.0)
    return 1.02 * float(schedule.end_s.max()) if len(schedule) else 1.0


def _notes(schedule: Schedule, drawn: int) -> list[str]:
    notes = ["black: overhead"] if np.any(schedule.overhead_s > 0) else []
    if np.any(schedule.partner >= 0):
        notes.append("half height: shared GPUs")
    if drawn < len(schedule):
        notes.append(f"the earliest {drawn:,} of {len(schedule):,} rows")
    return notes


def _boxes(
    instance: Instance, schedule: Schedule, order: NDArray[np.int64], unit: float
) -> list[_Box]:
    boxes: list[_Box] = []
    for row, lanes in zip(order.tolist(), _lanes(instance, schedule, order), strict=True):
        start, end = float(schedule.start_s[row]), float(schedule.end_s[row])
        paid = start + float(schedule.overhead_s[row])
        for part in np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1):
            low, high = float(part[0]), float(part[-1]) + 1
            if schedule.partner[row] > schedule.job[row]:
                high = (low + high) / 2
            elif schedule.partner[row] >= 0:
                low = (low + high) / 2
            boxes.append(_Box(row, start / unit, paid / unit, end / unit, low, high))
    return boxes


def _lanes(
    instance: Instance, schedule: Schedule, order: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """GPUs of each row, counted through the cluster; those that go on come first at their start."""
    first = np.concatenate(([0], np.cumsum(instance.cluster.gpus_per_node)))
    busy_until = np.zeros(instance.cluster.total_gpus)
    gpus = held_gpus(instance, schedule).tolist()
    held: dict[tuple[int, int], NDArray[np.int64]] = {}
    shared: dict[tuple[int, int, float], NDArray[np.int64]] = {}
    for row in order.tolist():
        job, node, partner = (int(c[row]) for c in (schedule.job, schedule.node, schedule.partner))
        start = float(schedule.start_s[row])
        lanes = shared.pop((job, node, start), None)
        if lanes is None:
            before = held[job, node] if schedule.continues[row] else None
            if before is not None and np.all(busy_until[before] <= start):
                lanes = before
            else:
                free = np.flatnonzero(busy_until[first[node] : first[node + 1]] <= start)
                lanes = free[: gpus[row]] + first[node]
            if partner >= 0:
                shared[partner, node, start] = lanes
        busy_until[lanes] = schedule.end_s[row]
        held[job, node] = lanes
        yield lanes


def _draw(axes: Axes, boxes: list[_Box], schedule: Schedule, jobs: JobColours) -> None:
    corners: list[_Corners] = []
    colours: list[str] = []
    for box in boxes:
        if box.paid > box.start:
            corners.append(box.corners(box.start, box.paid))
            colours.append(_OVERHEAD)
        if box.end > box.paid:
            corners.append(box.corners(box.paid, box.end))
            colours.append(jobs.of[int(schedule.job[box.row])])
    width = 0.5 if len(boxes) <= _OUTLINED else 0.0
    edge = "white" if width else "none"
    axes.add_collection(
        PolyCollection(corners, facecolors=colours, edgecolors=edge, linewidths=width)
    )


def _frame(axes: Axes, instance: Instance, until: float, unit_name: str) -> None:
    """Limits, labels and lines between nodes."""
    sizes = instance.cluster.gpus_per_node
    axes.set_xlim(0, until)
    axes.set_ylim(0, int(sizes.sum()))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"time [{unit_name}]")
    count = f"{len(sizes):,} node" + ("s" if len(sizes) > 1 else "")
    axes.set_ylabel(f"GPU, {count}")
    if len(sizes) <= _NODE_LINES:
        for boundary in np.cumsum(sizes)[:-1].tolist():
            axes.axhline(boundary, color=GREY, linewidth=0.6)


def _write_names(
    axes: Axes, instance: Instance, schedule: Schedule, boxes: list[_Box], colours: JobColours
) -> None:
    """The job's name in the largest box of each row that has room for it."""
    until = max((box.end for box in boxes), default=1.0)
    largest: dict[int, _Box] = {}
    for box in boxes:
        if (
            box.row not in largest
            or box.high - box.low > largest[box.row].high - largest[box.row].low
        ):
            largest[box.row] = box
    for row, box in largest.items():
        job = int(schedule.job[row])
        name = str(instance.workload.id[job])
        # A letter at this size takes about one part in 90 of the axis.
        if box.end - box.start > until * (len(name) + 1) / 90:
            x, y = (box.paid + box.end) / 2, (box.low + box.high) / 2
            ink = readable_on(colours.of[job])
            axes.text(x, y, name, ha="center", va="center", fontsize=8, color=ink)
