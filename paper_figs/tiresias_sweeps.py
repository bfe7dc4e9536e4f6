"""Tiresias (NSDI'19), Figures 14 and 15: thresholds, number of queues, and PROMOTEKNOB.

Mean, median and 95th percentile of Tiresias-L's JCT over those with K = 2, a threshold of one GPU-hour and no
promotion, on the stand-in for the large trace whose services are of the public sample (generator ``gpu-time-sample``,
12,000 jobs, 512 GPUs, load 1.12); ``--trace FILE`` takes a trace of one's own, the Philly trace for instance.

What differs: the trace is not public; see ``tiresias_trace.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from _measures import STATISTICS, measured, statistics
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.figures import (
    Cause,
    Estimate,
    Figure,
    Page,
    Published,
    Row,
    Size,
    Sized,
    estimate,
    main,
)
from shadowprice.analysis.plots.style import colour_of
from shadowprice.errors import InputError

HOUR = 3600.0
SWEEPS = {
    "threshold": "threshold of K = 2 [GPU-h]",
    "queues": "number of queues",
    "knob": "PROMOTEKNOB, K = 2 at 1 GPU-h",
}
BASE = "1"
"""Value of ``threshold`` that all are set against."""


@dataclass(frozen=True)
class Settings:
    """Workload and values."""

    hours: tuple[float, ...] = field(
        default=(0.25, 0.5, 1.0, 2.0, 4.0), metadata={"help": "thresholds of K = 2 [GPU-h]"}
    )
    queues: tuple[int, ...] = field(
        default=(2, 3, 4), metadata={"help": "numbers of queues, with limits at 1, 2, 4 ... GPU-h"}
    )
    knobs: tuple[float, ...] = field(
        default=(1.0, 2.0, 4.0, 8.0, 16.0), metadata={"help": "values of PROMOTEKNOB"}
    )
    jobs: int = field(default=12_000, metadata={"help": "number of jobs"})
    nodes: int = field(default=64, metadata={"help": "nodes of 8 GPUs"})
    load: float = field(default=1.12, metadata={"help": "offered load"})
    seeds: int = field(default=10, metadata={"help": "number of seeds, 0..n-1"})
    trace: Path | None = field(
        default=None, metadata={"help": "trace to take the first jobs of, instead; one run"}
    )


@dataclass(frozen=True)
class Point:
    """One policy on the jobs of one seed."""

    sweep: str
    value: str
    policy: str
    jobs: int
    nodes: int
    load: float
    seed: int
    trace: Path | None


def policy(hours: tuple[float, ...], knob: float = np.inf) -> str:
    """2D-LAS with thresholds in hours of one GPU."""
    limits = "/".join(f"{h * HOUR:g}" for h in hours)
    return f"las2d:thresholds_gpu_s={limits},promote_knob={knob:g}"


def points(settings: Settings) -> Iterator[Point]:
    """Every value of every sweep."""
    if 1.0 not in settings.hours:
        raise InputError("--hours: expected 1 among them, which all are set against")
    if min(settings.queues) < 2:
        raise InputError(f"--queues: got {min(settings.queues)}, expected 2 or more")
    chosen = [("threshold", f"{hours:g}", policy((hours,))) for hours in settings.hours]
    for count in settings.queues:
        limits = tuple(2.0**k for k in range(count - 1))
        chosen.append(("queues", f"{count}", policy(limits)))
    chosen += [("knob", f"{knob:g}", policy((1.0,), knob)) for knob in settings.knobs]
    for seed in range(1 if settings.trace else settings.seeds):
        for sweep, value, name in chosen:
            size = settings.jobs, settings.nodes, settings.load
            yield Point(sweep, value, name, *size, seed, settings.trace)


def run(point: Point) -> list[Row]:
    """Statistics of the JCT [s]."""
    if point.trace is None:
        jobs = sp.generate(
            "gpu-time-sample",
            jobs=point.jobs,
            seed=point.seed,
            load=point.load,
            gpus_total=8 * point.nodes,
        )
    else:
        read = sp.load(point.trace)
        jobs = read.select(np.arange(len(read)) < point.jobs)
    found = sp.simulate(jobs, f"{point.nodes}x8", point.policy)
    key: Row = {"seed": point.seed, "sweep": point.sweep, "of": point.value}
    return list(measured(key, statistics(found.jct_s)))


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``ratio``: over the base of the same seed and measure."""
    base = table[(table.sweep == "threshold") & (table["of"].astype(float) == float(BASE))]
    by = base.set_index(["seed", "measure"]).value
    found = table.copy()
    found["ratio"] = [
        value / by[seed, measure]
        for seed, measure, value in zip(table.seed, table.measure, table.value, strict=True)
    ]
    found["of"] = found["of"].astype(float)
    return found


def ratio(table: pd.DataFrame, sweep: str, value: float, measure: str = "mean") -> Estimate | None:
    """A measure at one value of a sweep over the base's; None without rows."""
    shown = relative(table)
    rows = shown[(shown.sweep == sweep) & (shown["of"] == value) & (shown.measure == measure)]
    return estimate(rows.ratio) if len(rows) else None


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One panel a sweep."""
    picture, panels = page.grid(1, 3, 2.3, sharey=True)
    shown = relative(table)
    colours = {name: colour_of(place) for place, name in enumerate(STATISTICS)}
    for axes, (sweep, label) in zip(panels, SWEEPS.items(), strict=True):
        part = shown[shown.sweep == sweep]
        page.lines(
            axes, part, x="of", y="ratio", by="measure", order=list(STATISTICS), colours=colours
        )
        values = sorted(part["of"].unique())
        if sweep != "queues":
            axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_xlabel(label)
    panels[0].set_ylabel("JCT over that of\nK = 2, 1 GPU-h")
    panels[0].legend(loc="best")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Workload, and how far each sweep moves the mean."""
    shown = relative(table)
    what = "a given trace" if settings.trace else "services of the public sample"
    seeds = table.seed.nunique()
    said = (
        f"Tiresias-L on {settings.jobs:,} jobs ({what}), {8 * settings.nodes} GPUs, {seeds} seeds."
    )
    for sweep in SWEEPS:
        part = shown[(shown.sweep == sweep) & (shown.measure == "mean")]
        mean = part.groupby("of").ratio.mean()
        said += (
            f" Over the {sweep} sweep the mean JCT lies between {mean.min():.3f} and "
            f"{mean.max():.3f} of that at K = 2, 1 GPU-h."
        )
    return said


def published(what: str, value: float, sweep: str, at: float) -> Published:
    """A statement of the paper about the mean JCT beside ours."""
    return Published(
        system="Tiresias",
        place="NSDI'19, Figures 14 and 15",
        what=what,
        value=value,
        unit="of the base",
        ours=lambda table: ratio(table, sweep, at),
        settings="12,000 jobs, public sample of GPU times, load 1.12, 512 GPUs",
        cause=Cause.NOT_PUBLIC,
        why="The trace is not public; of its services a sample is.",
    )


FIGURE = Figure(
    name="tiresias_sweeps",
    paper="Tiresias (NSDI'19), Figures 14 and 15",
    sizes={
        Size.QUICK: Sized(Settings(jobs=1000, nodes=8, seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=3.5),
        Size.FULL: Sized(Settings(seeds=50), minutes=17.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        published("mean JCT with K = 3 over K = 2 (1 % better)", 0.99, "queues", 3.0),
        published("mean JCT with K = 4 over K = 2 (1 % better)", 0.99, "queues", 4.0),
        published("mean JCT at a threshold of 2 GPU-h over 1 GPU-h (flat)", 1.0, "threshold", 2.0),
        published("mean JCT at a threshold of 4 GPU-h over 1 GPU-h (flat)", 1.0, "threshold", 4.0),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
