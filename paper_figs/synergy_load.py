"""Synergy (OSDI'22), Figures 1, 7 and 8: mean JCT against load, GPU-proportional and TUNE.

128 GPUs, 3 CPUs for each, classes (20, 70, 10). Single-GPU jobs under FIFO are the artifact's run, draw for draw
with seed 42; other seeds are further draws of its generator. Multi-GPU jobs under FIFO, SRTF and LAS are a
shorter trace of the same law, since the artifact takes its gangs from Microsoft's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from _synergy import (
    FULL_GPUS,
    MULTI,
    SINGLE,
    UP_TO,
    UP_TO_CLAIM,
    artifact_jobs,
    artifact_outcome,
    cluster,
    draw_lines,
    factors_by,
    instance,
    jct_h,
    jobs_of,
    least_jct_h,
    measured,
    most_possible,
    outcome,
    published_profiles,
)
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.wording import at_most
from shadowprice.instances.generators.synergy_published import PUBLISHED_SEED
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Independence,
    Others,
    Page,
    Published,
    Row,
    Sampling,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    setting,
)

POLICIES = ("proportional", "tune")
SPLIT = "20/70/10"
ARTIFACT_RATE = 9.0
"""Jobs an hour of the artifact's run."""

ARTIFACT_H = {"jct_h": 21.8766, "p99_h": 156.9331, "p999_h": 170.612}
"""What it prints of JCT with TUNE [h]."""


@dataclass(frozen=True)
class Settings:
    """Loads of both traces."""

    single_rates: tuple[float, ...] = setting(
        (7.0, 8.0, 8.5, 9.0), "single-GPU jobs per hour on 128 GPUs"
    )
    multi_rates: tuple[float, ...] = setting((3.0, 4.0, 5.0), "multi-GPU jobs per hour on 128 GPUs")
    orders: tuple[str, ...] = setting(("fifo", "srtf", "las"), "orders of multi-GPU jobs")
    single_jobs: int = setting(6_700, "single-GPU jobs")
    multi_jobs: int = setting(1_500, "multi-GPU jobs")
    gpus: int = setting(FULL_GPUS, "GPUs, in nodes of 8")
    single_seeds: int = setting(10, "number of seeds of single-GPU jobs, from 42")
    multi_seeds: int = setting(3, "number of seeds of multi-GPU jobs, from 0")


@dataclass(frozen=True)
class Point:
    """One run."""

    trace: str
    order: str
    jobs_per_hour: float
    policy: str
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """All runs, the artifact's first."""
    yield from crossed(
        Point,
        settings,
        trace=(SINGLE,),
        jobs=(settings.single_jobs,),
        order=("fifo",),
        jobs_per_hour=settings.single_rates,
        seed=range(PUBLISHED_SEED, PUBLISHED_SEED + settings.single_seeds),
        policy=POLICIES,
    )
    yield from crossed(
        Point,
        settings,
        trace=(MULTI,),
        jobs=(settings.multi_jobs,),
        order=settings.orders,
        jobs_per_hour=settings.multi_rates,
        seed=range(settings.multi_seeds),
        policy=POLICIES,
    )


def run(point: Point) -> list[Row]:
    """JCT of the measured jobs, and the least that any scheduler could give them."""
    where, rows = cluster(point.gpus), measured(point.jobs)
    if point.trace == SINGLE:
        rate = point.jobs_per_hour * point.gpus / FULL_GPUS
        jobs = artifact_jobs(SPLIT, rate, jobs=point.jobs, seed=point.seed)
        done = artifact_outcome(jobs, point.gpus, point.policy)
        least_h = least_jct_h(jobs, where, rows, published_profiles())
    else:
        jobs = jobs_of(
            MULTI, SPLIT, point.jobs_per_hour, gpus=point.gpus, jobs=point.jobs, seed=point.seed
        )
        done = outcome(instance(jobs, where), f"synergy-{point.policy}:{point.order}")
        least_h = least_jct_h(jobs, where, rows)
    return [
        {
            "trace": point.trace,
            "order": point.order,
            "jobs_per_hour": point.jobs_per_hour,
            "seed": point.seed,
            "policy": point.policy,
            **jct_h(done, rows),
            "least_h": least_h,
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One panel for each trace and order: both mechanisms, and the bound."""
    panels = list(dict.fromkeys(zip(table["trace"], table["order"], strict=True)))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    picture, every = page.grid(rows, columns, 2.5 * rows)
    for axes, (trace, order) in zip(every, panels, strict=False):
        mine = table[(table["trace"] == trace) & (table["order"] == order)]
        draw_lines(page, axes, mine, "jobs_per_hour")
        if trace == SINGLE and ARTIFACT_RATE in settings.single_rates:
            mark = {"linestyle": "", "marker": "x", "markersize": 7.0}
            page.published_curve(
                axes, [ARTIFACT_RATE], [ARTIFACT_H["jct_h"]], "tune, artifact", **mark
            )
            fair = mine[mine["policy"] == "proportional"].groupby("jobs_per_hour")["jct_h"].mean()
            label = f"proportional / {UP_TO:g}: published most"
            page.published_curve(axes, fair.index, fair / UP_TO, label, linestyle="-.")
        axes.set_title(f"{trace}, {order.upper()}")
        axes.set(xlabel="jobs per hour on 128 GPUs", ylabel="mean JCT [h]")
        axes.set_ylim(0.0, 1.05 * axes.get_ylim()[1])
    for axes in every[len(panels) :]:
        axes.set_visible(False)
    every[0].legend(loc="upper left")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Largest factor of each panel, and what was possible."""
    said = []
    for (trace, order), rows in table.groupby(["trace", "order"], sort=False):
        found = factors_by(rows, "jobs_per_hour")
        rate, best = max(found.items(), key=lambda each: each[1].mean)
        possible = most_possible(rows[rows["jobs_per_hour"] == rate])
        said.append(
            f"{trace} {order.upper()}: {best.text()}x at {rate:g} jobs an hour (any scheduler: at most "
            f"{at_most(possible)})"
        )
    return (
        f"Mean JCT of jobs {_window(settings.single_jobs)} of {settings.single_jobs:,} of one GPU "
        f"({settings.single_seeds} seeds), {_window(settings.multi_jobs)} of {settings.multi_jobs:,} of several "
        f"({settings.multi_seeds} seeds), on {settings.gpus} GPUs, with intervals of 95 %. Largest factor of TUNE over "
        "proportional shares: " + "; ".join(said) + "."
    )


def _window(jobs: int) -> str:
    """Measured jobs in words, from 0: ``4,000 to 4,999``."""
    rows = measured(jobs)
    return f"{rows.start:,} to {rows.stop - 1:,}"


def artifact(column: str, what: str) -> Published:
    """A number that the artifact prints, beside that of its own jobs."""

    def ours(table: pd.DataFrame) -> Estimate | None:
        rows = table[
            (table["trace"] == SINGLE)
            & (table["jobs_per_hour"] == ARTIFACT_RATE)
            & (table["policy"] == "tune")
            & (table["seed"] == PUBLISHED_SEED)
        ]
        return None if rows.empty else estimate(rows[column])

    return Published(
        system="Synergy",
        place="OSDI'22 artifact, Figure 8",
        what=f"{what} with TUNE, single-GPU FIFO, 9 jobs an hour, (20, 70, 10)",
        value=ARTIFACT_H[column],
        unit="h",
        ours=ours,
        settings="the artifact's jobs, 128 GPUs, seed 42",
        cause=Cause.NONE,
        why="The artifact's jobs and rules, run again.",
        sampling=Sampling.NOTHING,
        independence=Independence.REPLAYED,
        own_jobs=True,
    )


def at_best_rate(of: Callable[[pd.DataFrame], float | Estimate]) -> Callable[[pd.DataFrame], Any]:
    """A number of the single-GPU rows at the rate where TUNE gains most; None without rows."""

    def found(table: pd.DataFrame) -> float | Estimate | None:
        rows = table[table["trace"] == SINGLE]
        factors = factors_by(rows, "jobs_per_hour")
        if not factors:
            return None
        best = max(factors, key=lambda rate: factors[rate].mean)
        return of(rows[rows["jobs_per_hour"] == best])

    return found


def over_rates(table: pd.DataFrame) -> Others | None:
    """Range of the factor over the rates of single-GPU jobs."""
    rows = table[table["trace"] == SINGLE]
    return Others.over(factors_by(rows, "jobs_per_hour").values(), "loads")


PUBLISHED = (
    artifact("jct_h", "mean JCT"),
    artifact("p99_h", "99th percentile of JCT"),
    artifact("p999_h", "99.9th percentile of JCT"),
    Published(
        system="Synergy",
        place="OSDI'22, abstract",
        what="proportional / TUNE, mean JCT, up to, single-GPU FIFO, (20, 70, 10)",
        value=UP_TO,
        unit="x",
        ours=at_best_rate(lambda rows: factors_by(rows, "trace")[SINGLE]),
        settings="the artifact's jobs and further draws, 128 GPUs, the rate where it is largest",
        cause=Cause.NOT_PUBLIC,
        why="The abstract does not say at which load and split the largest factor was found; ours is the mean at the "
        "load where that is largest.",
        claim=UP_TO_CLAIM,
        independence=Independence.REPLAYED,
        own_jobs=True,
        limit=at_best_rate(most_possible),
        others=over_rates,
    ),
)

FIGURE = Figure(
    name="synergy_load",
    paper="Synergy (OSDI'22), Figures 1, 7 and 8",
    sizes={
        Size.QUICK: Sized(
            Settings(
                single_rates=(9.0,),
                multi_rates=(4.0,),
                single_jobs=160,
                multi_jobs=160,
                gpus=32,
                single_seeds=1,
                multi_seeds=1,
            ),
            minutes=0.05,
        ),
        Size.DEFAULT: Sized(Settings(), minutes=9.0),
        Size.FULL: Sized(
            Settings(
                single_rates=(6.0, 7.0, 8.0, 8.5, 9.0),
                multi_rates=(2.0, 3.0, 3.5, 4.0, 4.5, 5.0),
                multi_jobs=6_000,
                single_seeds=10,
                multi_seeds=5,
            ),
            minutes=120.0,
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
