"""Tiresias (NSDI'19), Figures 14 and 15: thresholds, number of queues, and PROMOTEKNOB.

Mean, median and 95th percentile of Tiresias-L's JCT over those with K = 2, a threshold of one GPU-hour and no
promotion, on the stand-in for the large trace whose services are of the public sample (generator ``gpu-time-sample``,
12,000 jobs, 512 GPUs, load 1.12). There the younger jobs always fit, so that the last threshold alone decides and
K queues are job for job two: numbers of queues are compared on the testbed's 480 jobs and 60 GPUs (generator
``tiresias-published``), where they differ. ``--trace FILE`` takes a trace of one's own for both, the Philly trace for
instance.

What differs: the trace is not public; see ``tiresias_trace.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _measures import STATISTICS, measured, statistics
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import colour_of
from shadowprice.errors import InputError
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Others,
    Page,
    Published,
    Row,
    Size,
    Sized,
    estimate,
    main,
    setting,
)

HOUR = 3600.0
SWEEPS = {
    "threshold": "threshold of K = 2 [GPU-h]",
    "queues": "queues K, testbed's jobs",
    "knob": "PROMOTEKNOB, K = 2 at 1 GPU-h",
}
LAST = "last threshold"
"""Sweep of K = 2 at the last thresholds of more queues, on the same jobs as these."""

BASES = {"threshold": ("threshold", 1.0), "knob": ("threshold", 1.0)}
BASES |= dict.fromkeys(("queues", LAST), ("queues", 2.0))
"""Sweep and value that each sweep is set against: K = 2 at one GPU-hour, on the same jobs."""

PUBLISHED_LINES = {"threshold": (1.0, "published: flat"), "queues": (0.99, "published: 1 % better")}
"""Mean JCT that is published of a sweep, and words for it."""

WORDS = {"threshold": "other thresholds", "queues": "numbers of queues"}


@dataclass(frozen=True)
class Settings:
    """Workload and values."""

    hours: tuple[float, ...] = setting((0.25, 0.5, 1.0, 2.0, 4.0), "thresholds of K = 2 [GPU-h]")
    queues: tuple[int, ...] = setting(
        (2, 3, 4), "numbers of queues, with limits at 1, 2, 4 ... GPU-h"
    )
    knobs: tuple[float, ...] = setting((1.0, 2.0, 4.0, 8.0, 16.0), "values of PROMOTEKNOB")
    jobs: int = setting(12_000, "number of jobs")
    nodes: int = setting(64, "nodes of 8 GPUs")
    load: float = setting(1.12, "offered load")
    seeds: int = setting(10, "number of seeds, 0..n-1")
    testbed_seeds: int = setting(20, "the same for the testbed's jobs")
    trace: Path | None = setting(None, "trace to take the first jobs of, instead; one run")


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
    testbed: bool


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
    large = [("threshold", f"{hours:g}", policy((hours,))) for hours in settings.hours]
    large += [("knob", f"{knob:g}", policy((1.0,), knob)) for knob in settings.knobs]
    few = []
    for count in sorted({2, *settings.queues}):
        limits = tuple(2.0**k for k in range(count - 1))
        few.append(("queues", f"{count}", policy(limits)))
        few.append((LAST, f"{count}", policy(limits[-1:])))
    size = settings.jobs, settings.nodes, settings.load
    for sweeps, seeds in ((large, settings.seeds), (few, settings.testbed_seeds)):
        for seed in range(1 if settings.trace else seeds):
            for sweep, value, name in sweeps:
                testbed = sweeps is few and settings.trace is None
                yield Point(sweep, value, name, *size, seed, settings.trace, testbed)


def run(point: Point) -> list[Row]:
    """Statistics of the JCT [s]."""
    cluster = f"{point.nodes}x8"
    if point.testbed:
        jobs, cluster = sp.generate("tiresias-published", seed=point.seed), "15x4"
    elif point.trace is None:
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
    found = sp.simulate(jobs, cluster, point.policy)
    key: Row = {"seed": point.seed, "sweep": point.sweep, "of": point.value}
    return list(measured(key, statistics(found.jct_s)))


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``ratio``: over the base of the same seed and measure."""
    found = table.assign(of=table["of"].astype(float))
    by = found.set_index(["sweep", "of", "seed", "measure"]).value
    found["ratio"] = [
        row.value / by[(*BASES[row.sweep], row.seed, row.measure)] for row in table.itertuples()
    ]
    return found


def ratio(table: pd.DataFrame, sweep: str, value: float, measure: str = "mean") -> Estimate | None:
    """A measure at one value of a sweep over the base's; None without rows."""
    shown = relative(table)
    rows = shown[(shown.sweep == sweep) & (shown["of"] == value) & (shown.measure == measure)]
    return estimate(rows.ratio) if len(rows) else None


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One panel a sweep."""
    picture, panels = page.grid(1, 3, 2.5, sharey=True)
    shown = relative(table)
    colours = {name: colour_of(place) for place, name in enumerate(STATISTICS)}
    for axes, (sweep, label) in zip(panels, SWEEPS.items(), strict=True):
        part = shown[shown.sweep == sweep]
        page.lines(
            axes, part, x="of", y="ratio", by="measure", order=list(STATISTICS), colours=colours
        )
        if sweep == "queues":
            same = shown[(shown.sweep == LAST) & (shown.measure == "mean")]
            mean = same.groupby("of").ratio.mean()
            axes.plot(mean.index, mean, ":", color=colours["mean"], label="K = 2, last threshold")
            axes.legend(loc="best")
        if sweep in PUBLISHED_LINES:
            value, words = PUBLISHED_LINES[sweep]
            page.published_line(axes, value, words)
            axes.legend(loc="best")
        values = sorted(part["of"].unique())
        if sweep != "queues":
            axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_xlabel(label)
    panels[0].set_ylabel("JCT over that of\nK = 2, 1 GPU-h")
    panels[2].legend(loc="best")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Workload, and how far each sweep moves the mean."""
    shown = relative(table)
    what = "a given trace" if settings.trace else "services of the public sample"
    few = "the same" if settings.trace else f"480 jobs and 60 GPUs, {settings.testbed_seeds} seeds"
    said = (
        f"Tiresias-L on {settings.jobs:,} jobs ({what}), {8 * settings.nodes} GPUs, {settings.seeds} seeds; "
        f"numbers of queues on {few}."
    )
    for sweep in SWEEPS:
        part = shown[(shown.sweep == sweep) & (shown.measure == "mean")]
        mean = part.groupby("of").ratio.mean()
        said += (
            f" Over the {sweep} sweep the mean JCT lies between {mean.min():.3f} and "
            f"{mean.max():.3f} of that at K = 2, 1 GPU-h."
        )
    return said


def over_sweep(table: pd.DataFrame, sweep: str) -> Others | None:
    """Range of the mean JCT over all values of a sweep but the base."""
    values = sorted({float(at) for at in table[table.sweep == sweep]["of"]} - {BASES[sweep][1]})
    return Others.over((ratio(table, sweep, at) for at in values), WORDS[sweep])


def of_queues(table: pd.DataFrame, count: float) -> str:
    """What K = 2 with the last of the same thresholds gives."""
    same = ratio(table, LAST, count)
    return "" if same is None else f"K = 2 with the last threshold alone: {same.text()}."


def published(sweep: str, at: float) -> Published:
    """A statement of the paper about the mean JCT beside ours."""
    queues = sweep == "queues"
    what = f"K = {at:g} over K = 2" if queues else f"a threshold of {at:g} GPU-h over 1 GPU-h"
    large = "12,000 jobs, public sample of GPU times, load 1.12, 512 GPUs"
    return Published(
        system="Tiresias",
        place="NSDI'19, Figures 14 and 15",
        what=f"mean JCT with {what}" + (" (1 % better)" if queues else ""),
        value=PUBLISHED_LINES[sweep][0],
        unit="of the base",
        ours=lambda table: ratio(table, sweep, at),
        settings="the testbed's 480 jobs, 60 GPUs, not the trace: there K does not matter"
        if queues
        else large,
        cause=Cause.NOT_PUBLIC,
        why="The trace is not public; of its services a sample is.",
        claim=f"mean JCT over the {sweep} sweep",
        printed="" if queues else "1 (flat)",
        others=lambda table: over_sweep(table, sweep),
        remark=(lambda table: of_queues(table, at)) if queues else None,
    )


FIGURE = Figure(
    name="tiresias_sweeps",
    paper="Tiresias (NSDI'19), Figures 14 and 15",
    sizes={
        Size.QUICK: Sized(Settings(jobs=1000, nodes=8, seeds=1, testbed_seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=3.5),
        Size.FULL: Sized(Settings(seeds=50, testbed_seeds=100), minutes=17.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(
        published(sweep, at)
        for sweep, values in (("queues", (3.0, 4.0)), ("threshold", (2.0, 4.0)))
        for at in values
    ),
)

if __name__ == "__main__":
    main(FIGURE)
