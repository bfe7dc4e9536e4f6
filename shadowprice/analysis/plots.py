"""Pictures: axes in, axes out, one style. Colours are Okabe and Ito's, safe for colour blindness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

if TYPE_CHECKING:
    from shadowprice.analysis.outcome import Outcome

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#F0E442")
MAX_GANTT_ROWS = 20_000
GREY = "#555555"


def new_axes(width_in: float = 7.0, height_in: float = 4.0) -> Axes:
    """Axes on a figure of their own, outside pyplot."""
    return styled(Figure(figsize=(width_in, height_in), layout="constrained").add_subplot())


def styled(axes: Axes) -> Axes:
    """The house style: no box, a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def time_unit(longest_s: float) -> tuple[float, str]:
    """A unit in which a time span reads well: its length [s] and name."""
    for length, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if longest_s >= 3 * length:
            return length, name
    return 1.0, "seconds"


def jct_cdf(jct_s: Mapping[str, NDArray[np.float64]], axes: Axes | None = None) -> Axes:
    """Cumulative distributions of job completion times, one line a policy, time on a log axis."""
    axes = new_axes() if axes is None else styled(axes)
    largest = max((float(values.max()) for values in jct_s.values() if len(values)), default=1.0)
    unit, name = time_unit(largest)
    for k, (label, values) in enumerate(jct_s.items()):
        ordered = np.sort(values) / unit
        share = np.arange(1, len(ordered) + 1) / max(len(ordered), 1)
        axes.step(ordered, share, where="post", label=label, color=COLOURS[k % len(COLOURS)], linewidth=1.6)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.01)
    axes.set_xlabel(f"job completion time [{name}]")
    axes.set_ylabel("share of jobs")
    axes.legend(frameon=False)
    return axes


def ratio_bars(
    ratios: Mapping[str, float], axes: Axes | None = None, *, objective: str = "", exact: Mapping[str, bool] | None = None
) -> Axes:
    """Bars of cost / bound; hatched where the bound is not the proven optimum."""
    axes = new_axes() if axes is None else styled(axes)
    exact = exact or {}
    for k, (label, ratio) in enumerate(ratios.items()):
        hatch = None if exact.get(label, False) else "////"
        axes.bar(k, ratio, color=COLOURS[k % len(COLOURS)], hatch=hatch, edgecolor="white", width=0.7)
        axes.annotate(f"{ratio:.3g}", (k, ratio), ha="center", va="bottom", fontsize=9, xytext=(0, 2), textcoords="offset points")
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    axes.set_xticks(range(len(ratios)), list(ratios))
    axes.margins(y=0.12)
    axes.set_ylabel(f"cost / bound ({objective})" if objective else "cost / bound")
    axes.grid(visible=False, axis="x")
    if not all(exact.get(label, False) for label in ratios):
        axes.set_title("hatched: against a lower bound of the optimum", fontsize=9, color=GREY, loc="left")
    return axes


def plot_comparison(
    outcomes: Mapping[str, Outcome], ratios: Mapping[str, float], *, objective: str, certified: Mapping[str, bool]
) -> Figure:
    """Job completion times beside certified ratios."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    jct_cdf({name: outcome.jct_s for name, outcome in outcomes.items()}, left)
    ratio_bars(ratios, right, objective=f"total {objective}" if objective != "makespan" else objective, exact=certified)
    return figure


def gantt(instance: Instance, schedule: Schedule, axes: Axes | None = None, *, title: str = "") -> Axes:
    """GPUs against time, one colour a job; overheads are dark.

    GPUs are numbered within nodes in the order they are taken, since the schedule counts them
    only. Of more than 20,000 rows the first are drawn, and the title says so.
    """
    gpus = instance.cluster.total_gpus
    axes = new_axes(9.0, min(max(2.2, 0.12 * gpus + 1.2), 9.0)) if axes is None else styled(axes)
    order = np.lexsort((schedule.node, schedule.start_s))[:MAX_GANTT_ROWS]
    unit, name = time_unit(float(schedule.end_s.max()) if len(schedule) else 1.0)
    boxes, colours = _boxes(instance, schedule, order, unit)
    few = len(boxes) <= 600
    axes.add_collection(
        PolyCollection(boxes, facecolors=colours, edgecolors="white" if few else "none", linewidths=0.5 if few else 0.0)
    )
    axes.autoscale_view()
    axes.set_ylim(0, gpus)
    axes.set_xlim(left=0)
    for first in np.cumsum(instance.cluster.gpus_per_node)[:-1].tolist():
        axes.axhline(first, color="#999999", linewidth=0.5)
    axes.set_xlabel(f"time [{name}]")
    axes.set_ylabel(f"GPU (lines: {len(instance.cluster.nodes)} nodes)")
    axes.grid(visible=False, axis="y")
    cut = f" (first {MAX_GANTT_ROWS} of {len(schedule)} rows)" if len(schedule) > MAX_GANTT_ROWS else ""
    axes.set_title(title + cut, loc="left")
    if few:
        _labels(axes, instance, schedule, order, boxes)
    return axes


Box = list[tuple[float, float]]


def _boxes(
    instance: Instance, schedule: Schedule, order: NDArray[np.int64], unit: float
) -> tuple[list[Box], list[str]]:
    """Rectangles of rows on numbered GPUs; a gang's GPUs on a node may be apart."""
    first = np.concatenate(([0], np.cumsum(instance.cluster.gpus_per_node)))
    busy_until = np.zeros(instance.cluster.total_gpus)
    boxes: list[Box] = []
    colours: list[str] = []
    for row in order.tolist():
        node, start, end = int(schedule.node[row]), float(schedule.start_s[row]), float(schedule.end_s[row])
        lanes = np.flatnonzero(busy_until[first[node] : first[node + 1]] <= start)[: schedule.gpus[row]] + first[node]
        busy_until[lanes] = end
        paid = start + float(schedule.overhead_s[row])
        for low, high in _stretches(lanes):
            if paid > start:
                boxes.append(_box(start, paid, low, high, unit))
                colours.append("#222222")
            boxes.append(_box(paid, end, low, high, unit))
            colours.append(COLOURS[int(schedule.job[row]) % len(COLOURS)])
    return boxes, colours


def _stretches(lanes: NDArray[np.int64]) -> list[tuple[int, int]]:
    parts = np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def _box(start: float, end: float, low: int, high: int, unit: float) -> Box:
    return [(start / unit, low), (end / unit, low), (end / unit, high), (start / unit, high)]


def _labels(
    axes: Axes, instance: Instance, schedule: Schedule, order: NDArray[np.int64], boxes: list[Box]
) -> None:
    if len(order) > 60 or len(order) != len(boxes):
        return
    width = max((box[1][0] for box in boxes), default=1.0)
    for row, box in zip(order.tolist(), boxes, strict=True):
        if box[1][0] - box[0][0] > 0.02 * width:
            x, y = (box[0][0] + box[1][0]) / 2, (box[0][1] + box[2][1]) / 2
            axes.text(x, y, str(instance.workload.id[int(schedule.job[row])]), ha="center", va="center", fontsize=7, color="white")
