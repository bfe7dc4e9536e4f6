"""Pictures of placements: the graph of a job's replicas on the nodes that host them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from numpy.typing import NDArray

from shadowprice.analysis.plots.style import COLOURS, GREY
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.models.asrpt import cut_bytes, exchange

MAX_REPLICAS = 64
"""Replicas drawn one by one; of larger jobs those of a stage on a node are one circle."""

MAX_NODES = 256
"""Nodes drawn; of more the first."""

_INSIDE, _BETWEEN = "#aaaaaa", "black"
_THINNEST, _THICKEST = 0.3, 5.0
_GAP = 0.35


@dataclass(frozen=True)
class _Circle:
    """Replicas of a stage on a node, drawn as one."""

    box: int
    stage: int
    count: int
    x: float
    y: float


def plot_placement(
    graph: JobGraph, mapping: StageMapping, axes: Axes | None = None, *, note: str = ""
) -> Axes:
    """Draw replicas in the boxes of their nodes, coloured by stage, joined by what they exchange.

    The width of a line is the bytes of an iteration, forward and back and AllReduce; the bytes of the
    black ones, between nodes, are the cut. With more than 64 replicas those of a stage on a
    node are one circle with their number in it; with more than 256 nodes the first are drawn.

    Parameters
    ----------
    graph : JobGraph
    mapping : sequence of (node, replicas of each stage there)
    axes : Axes, optional
        By default on a figure of its own.
    note : str
        Added to the title, the job's name and the bytes cut.
    """
    drawn = mapping[:MAX_NODES]
    columns = len(drawn) if len(drawn) <= 4 else math.ceil(math.sqrt(1.6 * len(drawn)))
    if axes is None:
        rows = math.ceil(len(drawn) / columns)
        size = 2.2 if len(drawn) <= 12 else 1.2
        figure = Figure(figsize=(size * columns + 2.4, size * rows + 1.0), layout="constrained")
        axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    circles = list(_circles(graph, drawn, columns))
    _boxes(axes, drawn, columns)
    _lines(axes, graph, circles)
    _vertices(axes, graph, circles, small=len(drawn) > 12)
    crossing = cut_bytes(graph, mapping)
    more = f", first {MAX_NODES} nodes" if len(drawn) < len(mapping) else ""
    axes.set_title(f"{graph.name}: {_bytes(crossing)} cut {note}{more}", loc="left")
    return axes


def _corner(box: int, columns: int) -> tuple[float, float]:
    """Lower left of a node's box; boxes are 2 wide."""
    return (2 + _GAP) * (box % columns), -(2 + 2 * _GAP) * (box // columns)


def _circles(graph: JobGraph, mapping: StageMapping, columns: int) -> Iterator[_Circle]:
    """Every circle, those of a node on a ring, so that no line hides another."""
    single = graph.gpus <= MAX_REPLICAS
    for box, (_, row) in enumerate(mapping):
        x, y = _corner(box, columns)
        groups = [
            (stage, 1 if single else count)
            for stage, count in enumerate(row)
            for _ in range(count if single else min(count, 1))
        ]
        for k, (stage, count) in enumerate(groups):
            angle = math.pi / 2 - 2 * math.pi * k / len(groups) + 0.2 * (box % 3)
            radius = 0.62 if len(groups) > 1 else 0.0
            yield _Circle(
                box,
                stage,
                count,
                x + 1 + radius * math.cos(angle),
                y + 1 + radius * math.sin(angle),
            )


def _boxes(axes: Axes, mapping: StageMapping, columns: int) -> None:
    for box, (node, row) in enumerate(mapping):
        x, y = _corner(box, columns)
        axes.add_patch(
            FancyBboxPatch(
                (x + 0.1, y + 0.1),
                1.8,
                1.8,
                boxstyle="round,pad=0.08",
                facecolor="#f5f5f5",
                edgecolor=GREY,
                linewidth=1.0,
                zorder=0,
            )
        )
        label = f"node {node}: {sum(row)} GPUs" if len(mapping) <= 12 else f"{node}"
        axes.text(x + 1, y + 2.06, label, ha="center", va="bottom", fontsize=8, color=GREY)
    rows = math.ceil(len(mapping) / columns)
    axes.set_xlim(-0.1, (2 + _GAP) * min(columns, len(mapping)))
    axes.set_ylim(-(2 + 2 * _GAP) * (rows - 1) - 0.1, 2.5)


def _lines(axes: Axes, graph: JobGraph, circles: list[_Circle]) -> None:
    """Lines between circles, thinnest first and those between nodes above those inside."""
    place = np.array([(circle.x, circle.y) for circle in circles])
    stage = np.array([circle.stage for circle in circles])
    count = np.array([circle.count for circle in circles])
    box = np.array([circle.box for circle in circles])
    amount = exchange(graph)[np.ix_(stage, stage)] * np.outer(count, count)
    one, other = np.nonzero(np.triu(amount, 1))
    if len(one) == 0:
        return
    weight = amount[one, other]
    width = np.maximum(_THICKEST * weight / weight.max(), _THINNEST)
    handles = []
    for crossing, colour, name in (
        (False, _INSIDE, "inside a node"),
        (True, _BETWEEN, "between nodes"),
    ):
        chosen = np.flatnonzero((box[one] != box[other]) == crossing)
        chosen = chosen[np.argsort(weight[chosen], kind="stable")]
        if len(chosen) == 0:
            continue
        ends = np.stack([place[one[chosen]], place[other[chosen]]], axis=1)
        faint = 0.6 if len(chosen) <= 200 else 0.25
        axes.add_collection(
            LineCollection(
                list(ends),
                linewidths=width[chosen],
                colors=colour,
                alpha=faint,
                zorder=2 if crossing else 1,
            )
        )
        handles.append(Line2D([], [], color=colour, linewidth=2.0, label=name))
    handles.append(
        Line2D(
            [],
            [],
            color="black",
            linewidth=_THICKEST,
            label=f"{_bytes(float(weight.max()))}, the most",
        )
    )
    axes.figure.legend(
        handles=handles,
        title="each iteration",
        loc="outside right lower",
        frameon=False,
        fontsize=8,
        title_fontsize=8,
    )


def _vertices(axes: Axes, graph: JobGraph, circles: list[_Circle], *, small: bool) -> None:
    stages = len(graph.stages)
    colours = _colours(stages)
    area = 30.0 if small else 130.0
    for stage in range(stages):
        own = [circle for circle in circles if circle.stage == stage]
        label = f"{graph.stages[stage].name} ({graph.stages[stage].replicas})"
        axes.scatter(
            [c.x for c in own],
            [c.y for c in own],
            s=area,
            color=[colours[stage]],
            label=label,
            edgecolors="white",
            linewidths=0.8,
            zorder=3,
        )
    if not small and any(circle.count > 1 for circle in circles):
        for circle in circles:
            axes.text(
                circle.x,
                circle.y,
                f"{circle.count}",
                ha="center",
                va="center",
                fontsize=6,
                color="white",
                zorder=4,
            )
    if stages <= len(COLOURS):
        axes.figure.legend(
            *axes.get_legend_handles_labels(),
            title="stage (replicas)",
            loc="outside right upper",
            frameon=False,
            fontsize=8,
            title_fontsize=8,
            markerscale=0.7,
        )
        return
    scale = ScalarMappable(Normalize(1, stages), "viridis")
    bar = axes.figure.colorbar(scale, ax=axes, fraction=0.03, pad=0.01)
    bar.set_label("stage")


def _colours(stages: int) -> NDArray[np.float64] | tuple[str, ...]:
    if stages <= len(COLOURS):
        return COLOURS
    return np.asarray(colormaps["viridis"](np.linspace(0, 1, stages)))


def _bytes(amount: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= unit:
            return f"{amount / unit:.3g} {name}"
    return f"{amount:.3g} B"
