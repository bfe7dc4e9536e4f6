"""A-SRPT, the idea of its Figure 2: where Heavy-Edge, first fit and the optimum put one job.

A pipeline of four stages with four replicas each, heavy parameters in the last, on three nodes with 5, 5 and 6 free
GPUs. The job is ours; the figure's own could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _asrpt import network
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.plots.style import colour_of
from shadowprice.instances.graphs.iteration_time import iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.models.asrpt import cut_bytes
from shadowprice.solvers.graph_placement.protocol import graph_placement
from shadowprice.studies.figures import Figure, Page, Row, Size, Sized, crossed, main, setting

PARAMETER_BYTES = (5e7, 5e7, 2e8, 1.2e9)
ACTIVATION_BYTES = (4e8, 2e8, 1e8)
JOB = JobGraph(
    "four stages of four",
    tuple(Stage(f"stage {k + 1}", 4, 0.02, 0.04, size) for k, size in enumerate(PARAMETER_BYTES)),
    tuple(Link(k, k + 1, size) for k, size in enumerate(ACTIVATION_BYTES)),
)


@dataclass(frozen=True)
class Settings:
    """Placements of one job."""

    placements: tuple[str, ...] = setting(
        ("heavy-edge", "first-fit", "exact"), "graph placements by name"
    )
    free: tuple[int, ...] = setting((5, 5, 6), "free GPUs of each node, 16 in all at least")


@dataclass(frozen=True)
class Point:
    """One placement."""

    placement: str
    free: tuple[int, ...]


def points(settings: Settings) -> Iterator[Point]:
    """All placements."""
    return crossed(Point, settings, placement=settings.placements)


def run(point: Point) -> list[Row]:
    """Replicas of every stage on every node; time of an iteration, and what crosses between nodes."""
    mapping = placed(point)
    iteration = iteration_s(JOB, mapping, network())
    return [
        {
            "placement": point.placement,
            "iteration_s": float(iteration),
            "cut_bytes": float(cut_bytes(JOB, mapping)),
            "node": int(node),
            "stage": stage.name,
            "replicas": int(count),
        }
        for node, counts in mapping
        for stage, count in zip(JOB.stages, counts, strict=True)
    ]


def placed(point: Point) -> StageMapping:
    """Replicas by node.

    Raises
    ------
    ValueError
        If the job does not fit.
    """
    mapping = graph_placement(point.placement).place(JOB, point.free, network())
    if mapping is None:
        raise ValueError(f"{JOB.gpus} GPUs do not fit into nodes with {point.free} free ones")
    return mapping


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Replicas on the nodes as stacked bars, a panel for each placement."""
    picture, every = page.grid(1, len(settings.placements), 2.5, sharey=True)
    for axes, name in zip(every, settings.placements, strict=True):
        mine = table[table["placement"] == name]
        _draw_nodes(axes, mine)
        axes.set_title(f"{name}: {1000 * mine['iteration_s'].iloc[0]:.0f} ms")
        axes.set(xlabel=f"{mine['cut_bytes'].iloc[0] / 1e9:.1f} GB between nodes")
    every[0].set_ylabel("replicas on the node")
    handles, labels = every[0].get_legend_handles_labels()
    columns = len(labels) if page.width_in > 4 else 2
    picture.legend(handles, labels, loc="outside lower center", ncols=columns)
    return picture


def _draw_nodes(axes: Axes, table: pd.DataFrame) -> None:
    nodes = sorted(table["node"].unique())
    below = np.zeros(len(nodes))
    for k, stage in enumerate(dict.fromkeys(table["stage"])):
        mine = table[table["stage"] == stage].set_index("node")["replicas"]
        height = np.array([float(mine.get(node, 0)) for node in nodes])
        axes.bar(range(len(nodes)), height, 0.7, below, color=colour_of(k), label=str(stage))
        below += height
    axes.set_xticks(range(len(nodes)), [f"node {node}" for node in nodes])
    axes.grid(visible=False, axis="x")


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Time of an iteration and bytes between nodes under each placement."""
    first = table.groupby("placement", sort=False)[["iteration_s", "cut_bytes"]].first()
    said = [
        f"{name} {1000 * row['iteration_s']:.0f} ms with {row['cut_bytes'] / 1e9:.2f} GB between nodes"
        for name, row in first.iterrows()
    ]
    sizes = ", ".join(f"{size / 1e6:g}" for size in PARAMETER_BYTES)
    return (
        f"A pipeline of {len(JOB.stages)} stages of 4 replicas with {sizes} MB of parameters, on nodes with "
        f"{', '.join(map(str, settings.free))} free GPUs. An iteration takes: {'; '.join(said)}."
    )


FIGURE = Figure(
    name="asrpt_placement",
    paper="A-SRPT (arXiv 2501.05563), Figure 2; job ours",
    sizes={
        Size.QUICK: Sized(Settings(), minutes=0.02),
        Size.DEFAULT: Sized(Settings(), minutes=0.02),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
