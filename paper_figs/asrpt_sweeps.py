"""A-SRPT against the baselines over cluster size, errors of predictions, bandwidth and its own parameters.

The published sweeps (Figures 6 to 9) could not be read; these are of the same kind, at load 0.9, with one parameter
changed at a time. Mean JCT over that of the best of five baselines, which is chosen for each instance. ``theta`` is the
ratio of longest to shortest iteration from which a job waits for a better placement, ``stretch`` slows the
virtual machine down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from _asrpt import (
    ANY,
    BASELINES,
    EARLY,
    OURS,
    OVERTAKING,
    STRICT,
    Scenario,
    draw_ratios,
    log_axis,
    network,
    relative,
    rows_of,
    trace,
)
from matplotlib.figure import Figure as Picture

from shadowprice.studies.figures import (
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    main,
    require_known,
    setting,
)

LOAD = 0.9
USUAL_GPUS, USUAL_NIC = 64, 12.5
SWEEPS = {
    "gpus": ("GPUs", (32.0, 64.0, 128.0, 256.0)),
    "noise": ("predictions off by up to a factor", (1.0, 1.5, 2.0, 4.0, 8.0)),
    "nic": ("NIC [GB/s]", (0.3, 1.25, 3.125, 12.5, 25.0)),
    "theta": ("theta", (1.0, 1.25, 1.5, 2.0)),
    "stretch": ("stretch", (1.0, 1.25, 1.5, 2.0, 4.0)),
}
INSTANCE = ["sweep", "value", "seed"]


@dataclass(frozen=True)
class Settings:
    """Parameters that are swept, one at a time."""

    sweeps: tuple[str, ...] = setting(tuple(SWEEPS), f"of {', '.join(SWEEPS)}")
    every: int = setting(1, "take every so many of a sweep's values")
    jobs: int = setting(2_000, "jobs")
    seeds: int = setting(3, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """All policies on one instance."""

    sweep: str
    value: float
    jobs: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """All instances."""
    require_known("sweep", settings.sweeps, SWEEPS)
    for sweep in settings.sweeps:
        values = SWEEPS[sweep][1][:: settings.every]
        yield from crossed(
            Point, settings, sweep=(sweep,), value=values, seed=range(settings.seeds)
        )


def run(point: Point) -> list[Row]:
    """One row for each policy, and one for the bound."""
    gpus = int(point.value) if point.sweep == "gpus" else USUAL_GPUS
    nic = point.value if point.sweep == "nic" else USUAL_NIC
    noisy = point.sweep == "noise" and point.value > 1.0
    under = Scenario(
        point.sweep, nic_gb_per_s=nic, predictor=f"noisy:{point.value:g}" if noisy else "oracle"
    )
    jobs = trace(point.jobs, LOAD, gpus, point.seed, network(nic))
    where: Row = {"sweep": point.sweep, "value": point.value, "seed": point.seed}
    return [{**where, **row} for row in rows_of(under, policies(point), jobs, gpus)]


def policies(point: Point) -> dict[str, str]:
    """A-SRPT with the swept parameter, and the baselines; ``stretch`` is about the strict form alone."""
    if point.sweep == "stretch":
        ours = {STRICT: f"asrpt:stretch={point.value:g}"}
    else:
        ours = {name: OURS[name] for name in (STRICT, EARLY, OVERTAKING)}
    if point.sweep == "theta":
        ours = {
            name: f"{given}{',' if ':' in given else ':'}theta={point.value:g}"
            for name, given in ours.items()
        }
    return {**ours, **BASELINES}


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A panel for each parameter."""
    rows = -(-len(settings.sweeps) // 2)
    picture, panels = page.grid(rows, 2, 2.3 * rows + 0.7)
    for axes, sweep in zip(panels, settings.sweeps, strict=False):
        mine = relative(table[table["sweep"] == sweep], "jct_s", INSTANCE)
        draw_ratios(page, axes, mine, "value")
        values = sorted(mine["value"].unique())
        axes.set(xlabel=SWEEPS[sweep][0], ylabel="mean JCT / best baseline", xscale="log")
        axes.set_xticks(values, [f"{value:g}" for value in values], minor=False)
        axes.set_xticks([], minor=True)
        log_axis(axes, mine.groupby(["policy", "value"])["ratio"].mean())
    for axes in panels[len(settings.sweeps) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    columns = 4 if page.width_in > 4 else 2
    picture.legend(handles, labels, loc="outside lower center", ncols=columns)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Range of each form of A-SRPT over every sweep."""
    said = []
    for sweep in settings.sweeps:
        mine = relative(table[table["sweep"] == sweep], "jct_s", INSTANCE)
        mean = mine.groupby(["policy", "value"])["ratio"].mean()
        ranges = [
            f"{policy} {mean[policy].min():.2f} to {mean[policy].max():.2f}"
            for policy in (STRICT, EARLY, OVERTAKING, ANY)
            if policy in mean.index.get_level_values(0)
        ]
        said.append(f"over {SWEEPS[sweep][0]}: {', '.join(ranges)}")
    return (
        f"{settings.jobs:,} jobs at load {LOAD:g}, {settings.seeds} seeds, Heavy-Edge placement; {USUAL_GPUS} GPUs and "
        f"{USUAL_NIC:g} GB/s unless swept. Mean JCT over that of the best baseline, mean over the seeds. "
        + "; ".join(said)
        + "."
    )


FIGURE = Figure(
    name="asrpt_sweeps",
    paper="A-SRPT (arXiv 2501.05563), Figures 6 to 9; settings ours",
    sizes={
        Size.QUICK: Sized(Settings(every=3, jobs=60, seeds=1), minutes=0.15),
        Size.DEFAULT: Sized(Settings(), minutes=4.0),
        Size.FULL: Sized(Settings(seeds=20), minutes=15.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
