"""Gandiva (OSDI'18), section 6.5, Table 5 and Figure 17: nine days of a shared cluster of 100 GPUs.

Published: mean time in the system 832 minutes under a YARN-like scheduler and 656 under Gandiva (21.2 % less;
the printed 26.8 % is the speed-up, 832 / 656 = 1.268), makespan 13,371 against 11,349 minutes (1.178 times),
470 migrations.

What differs: how many jobs were replayed is not said, so that several numbers are tried; run times are those of
Figure 16, classes those of Table 2; gangs and arrivals are ours, see the generator ``gandiva-trace``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _gandiva import (
    BIN_PACKING,
    GANDIVA,
    REACTIVE,
    YARN_LIKE,
    certified_limit,
    instance,
    simulate,
)
from _measures import clear_of_marks, curve, factor, level, measured, published_curve, quantile_rows
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.limits import Measure
from shadowprice.analysis.plots.style import colour_of
from shadowprice.analysis.wording import at_most
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Independence,
    Others,
    Page,
    Published,
    Row,
    Size,
    Sized,
    main,
    setting,
)

SYSTEMS = {
    "YARN-like": YARN_LIKE,
    "bin packing": BIN_PACKING,
    "Gandiva, turns only": REACTIVE,
    "Gandiva": GANDIVA,
}
COMPARED = ("YARN-like", "Gandiva")
"""Systems that are run for every number of jobs; the others for ``shown_jobs`` alone."""

LIMITS = {"mean": Measure.MEAN_JCT, "makespan": Measure.MAKESPAN}
"""Measures whose certified limits over the YARN-like run are kept."""


@dataclass(frozen=True)
class Settings:
    """Number of jobs, arrivals and seeds."""

    jobs: tuple[int, ...] = setting((1300, 1400, 1500, 1600), "numbers of jobs, not published")
    shown_jobs: int = setting(1500, "number of jobs that all systems are compared on")
    hours: float = setting(8000.0 / 60.0, "time within which jobs arrive [h]")
    seeds: int = setting(10, "number of seeds, 0..n-1")


@dataclass(frozen=True)
class Point:
    """One system on the jobs of one seed."""

    jobs: int
    hours: float
    seed: int
    system: str
    curve: bool


def points(settings: Settings) -> Iterator[Point]:
    """Every system on ``shown_jobs``, the two compared on every number of jobs."""
    for jobs in sorted({*settings.jobs, settings.shown_jobs}):
        shown = jobs == settings.shown_jobs
        for seed in range(settings.seeds):
            for system in SYSTEMS if shown else COMPARED:
                yield Point(jobs, settings.hours, seed, system, shown and system in COMPARED)


def run(point: Point) -> list[Row]:
    """Measures of one run, one a row."""
    jobs = sp.generate("gandiva-trace", jobs=point.jobs, seed=point.seed, hours=point.hours)
    found = simulate(instance(jobs, "25x4", locality=True), SYSTEMS[point.system])
    jct_min = found.jct_s / 60
    key: Row = {"jobs": point.jobs, "seed": point.seed, "system": point.system}
    rows = list(
        measured(
            key,
            {
                "mean": float(jct_min.mean()),
                "median": float(np.median(jct_min)),
                "below_100_min": float(100 * np.mean(jct_min < 100)),
                "makespan": float(found.end_s.max()) / 60,
                "utilisation": 100 * found.utilisation(),
                "migrations": float(found.migrations),
            },
        )
    )
    if point.system == "YARN-like":
        known = {
            f"limit {name}": certified_limit(found, measure) for name, measure in LIMITS.items()
        }
        rows += measured(key, known)
    return [*rows, *quantile_rows(key, jct_min)] if point.curve else rows


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Mean time in the system, its curves, and the factor by number of jobs."""
    picture, (left, middle, right) = page.grid(1, 3, 2.4, width_ratios=(1.35, 1, 1))
    part = table[table.jobs == settings.shown_jobs]
    bars = {label: found for label in SYSTEMS if (found := level(part, "mean", label)) is not None}
    page.bars(left, bars, form=",.0f", colours=dict.fromkeys(bars, colour_of(0)))
    page.published_curve(
        left,
        [832.0, 656.0],
        [list(bars).index(label) for label in COMPARED],
        "published",
        linestyle="none",
        marker="|",
        markersize=14,
        markeredgewidth=1.6,
    )
    left.set_xlim(0, 1.3 * max(832.0, *(found.high for found in bars.values())))
    if page.compares:
        marks = {"YARN-like": 832.0, "Gandiva": 656.0}
        clear_of_marks(left, {list(bars).index(label): marks[label] for label in COMPARED})
    left.set_title("mean")
    left.set_xlabel("[min]" + (", | published" if page.compares else ""))
    names = {"YARN-like": (380, 0.22, "left"), "Gandiva": (55, 0.72, "right")}
    for place, (label, (x, y, side)) in enumerate(names.items()):
        colour = colour_of(place)
        middle.plot(*curve(part, label), color=colour)
        middle.text(x, y, label, color=colour, ha=side)
        page.published_curve(
            middle, *published_curve("gandiva_nine_days_jct", label), "published", colour=colour
        )
    middle.set_xscale("log")
    middle.set_xlim(3, 8000)
    middle.set_ylim(0, 1)
    middle.set_title("time in the system")
    middle.set_xlabel("[min]" + (", dashed: published" if page.compares else ""))
    middle.set_ylabel("share of the jobs")
    wide = table[table.measure == "mean"].pivot_table(
        index=["jobs", "seed"], columns="system", values="value"
    )
    ratios = (wide["YARN-like"] / wide["Gandiva"]).rename("ratio").reset_index()
    ratios["by"] = "ours"
    page.lines(right, ratios, x="jobs", y="ratio", by="by", order=["ours"])
    page.published_line(right, 832 / 656, "published")
    limits = table[(table.measure == "limit mean")].groupby("jobs").value.mean()
    if page.compares:
        right.plot(limits.index, limits, color="#AA0000", linestyle=":", label="limit")
    right.set_ylim(bottom=0)
    right.set_title("YARN-like / Gandiva")
    right.set_xlabel("jobs replayed")
    right.legend(loc="upper left")
    return picture


def best_possible(table: pd.DataFrame, measure: str) -> float | None:
    """Certified best factor over YARN-like that any scheduler could have, mean over seeds."""
    found = level(table, f"limit {measure}", "YARN-like")
    return None if found is None else found.mean


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Means, factor and migrations."""
    part = table[table.jobs == settings.shown_jobs]
    ratio = factor(part, "mean", "Gandiva", "YARN-like")
    said = f"{settings.shown_jobs:,} jobs on 100 GPUs, {settings.seeds} seeds."
    means = [level(part, "mean", label) for label in COMPARED]
    moved = level(part, "migrations", "Gandiva")
    if ratio is not None and moved is not None and None not in means:
        said += (
            f" The mean time in the system is {means[0].mean:.0f} min under the YARN-like scheduler and "  # type: ignore[union-attr]
            f"{means[1].mean:.0f} under Gandiva, {ratio.text()} times less, with {moved.mean:,.0f} migrations."  # type: ignore[union-attr]
        )
    most = best_possible(part, "mean")
    if most is not None:
        said += (
            f" No scheduler whatever is more than {at_most(most)} better than the YARN-like one, on average over the "
            "seeds."
        )
    by_jobs = {
        jobs: found.mean
        for jobs, rows in table.groupby("jobs")
        if (found := factor(rows, "mean", "Gandiva", "YARN-like")) is not None
    }
    if len(by_jobs) > 1:
        few, many = min(by_jobs), max(by_jobs)
        said += f" The factor is {by_jobs[few]:.2f} with {few:,} jobs and {by_jobs[many]:.2f} with {many:,}."
    return said


def row(
    what: str,
    value: float,
    unit: str,
    ours: Callable[[pd.DataFrame], Estimate | None],
    limit_of: str | None = None,
    claim: str = "",
) -> Published:
    """A number of Table 5; ``limit_of`` is the measure whose limit bounds it."""
    return Published(
        system="Gandiva",
        place="OSDI'18, section 6.5 and Table 5",
        what=what,
        value=value,
        unit=unit,
        ours=lambda table: ours(table[table.jobs == 1500]),
        settings="1,500 jobs with the run times of Figure 16, 100 GPUs",
        cause=Cause.NOT_PUBLIC,
        why="Number of jobs, gangs and arrivals of the replayed trace are not public; the number was picked.",
        claim=claim,
        independence=Independence.ONE_OF_MANY,
        others=lambda table: Others.over(
            (ours(rows) for _, rows in table.groupby("jobs")), "numbers of jobs"
        ),
        limit=None
        if limit_of is None
        else lambda table: best_possible(table[table.jobs == 1500], limit_of),
    )


MEAN = "mean time in the system, Gandiva"
"""Claim of the level and of the factor made of it."""

FIGURE = Figure(
    name="gandiva_nine_days",
    paper="Gandiva (OSDI'18), section 6.5, Table 5 and Figure 17",
    sizes={
        Size.QUICK: Sized(Settings(jobs=(200, 300), shown_jobs=300, hours=27.0, seeds=1), 0.1),
        Size.DEFAULT: Sized(Settings(), minutes=1.0),
        Size.FULL: Sized(
            Settings(jobs=(1200, 1300, 1400, 1500, 1600, 1800, 2000), seeds=50), minutes=9.0
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        row(
            "mean time in the system, YARN-like / Gandiva",
            1.268,
            "x",
            lambda table: factor(table, "mean", "Gandiva", "YARN-like"),
            "mean",
            MEAN,
        ),
        row(
            "mean time in the system, YARN-like",
            832.0,
            "min",
            lambda table: level(table, "mean", "YARN-like"),
        ),
        row(
            "mean time in the system, Gandiva",
            656.0,
            "min",
            lambda table: level(table, "mean", "Gandiva"),
            claim=MEAN,
        ),
        row(
            "makespan, YARN-like / Gandiva",
            1.178,
            "x",
            lambda table: factor(table, "makespan", "Gandiva", "YARN-like"),
            "makespan",
        ),
        row(
            "migrations under Gandiva",
            470.0,
            "migrations",
            lambda table: level(table, "migrations", "Gandiva"),
        ),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
