"""Tiresias (NSDI'19), Figure 12: what placement by profile gains each job.

Tiresias-L on the testbed's mix, 480 jobs on 15 nodes of 4 GPUs, where jobs that are spread run slower by their
model's skew: each job's JCT with GPUs by count (anywhere), over its JCT with placement ``skew`` (skewed models
together, the others in gaps) and with ``pack`` (all together if there is a place).

What differs: the slowdowns are assumptions, scaled so that the most skewed model is 1.67x slower when spread, see
``shadowprice.instances.speeds.model_skew``. That bounds a job's gain in speed, not in JCT, for jobs wait less as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import colour_of
from shadowprice.instances.speeds.model_skew import SHARE_AND_MB, published_skews
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Page,
    Published,
    Row,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    require_known,
    setting,
)

POLICY = "las2d:thresholds_gpu_s=3200"
GENERATORS = ("tiresias", "tiresias-published")
PLACED = ("skew", "pack")
MOST_GAIN = 1.67
"""Largest gain of a job, published."""

CLOSE = 1e-3
"""A job whose JCT changes by less than this share neither gains nor loses."""


@dataclass(frozen=True)
class Settings:
    """Workload and seeds."""

    workload: str = setting("tiresias-published", f"generator: {' or '.join(GENERATORS)}")
    seeds: int = setting(10, "number of seeds, 0..n-1")


@dataclass(frozen=True)
class Point:
    """All placements on the jobs of one seed."""

    workload: str
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """One for each seed."""
    require_known("workload", (settings.workload,), GENERATORS)
    return crossed(Point, settings, seed=range(settings.seeds))


def run(point: Point) -> list[Row]:
    """Mean JCT of each model's jobs, and how their gains are distributed, for each placement."""
    jobs = sp.generate(point.workload, seed=point.seed)
    skews = published_skews()
    jct_s = {
        place: sp.simulate(jobs, "15x4", POLICY, sp.RunOptions(placement=place, skews=skews)).jct_s
        for place in ("count", *PLACED)
    }
    rows: list[Row] = []
    for place in PLACED:
        gain = jct_s["count"] / jct_s[place]
        for model in SHARE_AND_MB:
            of_model = jobs.model == model
            rows.append(
                {
                    "seed": point.seed,
                    "placement": place,
                    "model": model,
                    "jobs": int(of_model.sum()),
                    "anywhere_s": float(jct_s["count"][of_model].mean()),
                    "placed_s": float(jct_s[place][of_model].mean()),
                    "gain": int((gain[of_model] > 1 + CLOSE).sum()),
                    "lose": int((gain[of_model] < 1 - CLOSE).sum()),
                    "lose_a_tenth": int((gain[of_model] < 0.9).sum()),
                    "most_gain": float(gain[of_model].max()),
                }
            )
    return rows


def per_seed(
    table: pd.DataFrame, placement: str, measure: Callable[[pd.DataFrame], float]
) -> Estimate | None:
    """A measure of one placement over seeds."""
    part = table[table.placement == placement]
    return estimate([measure(rows) for _, rows in part.groupby("seed")]) if len(part) else None


def mean_gain(rows: pd.DataFrame) -> float:
    """Mean JCT anywhere over placed, all models."""
    return float((rows.jobs * rows.anywhere_s).sum() / (rows.jobs * rows.placed_s).sum())


def best_job(rows: pd.DataFrame) -> float:
    """The largest gain of a job."""
    return float(rows.most_gain.max())


def losers(rows: pd.DataFrame) -> float:
    """Jobs that lose [%]."""
    return float(100 * rows.lose.sum() / rows.jobs.sum())


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Mean JCT by model, and the shares of jobs that gain and lose."""
    picture, (left, right) = page.grid(1, 2, 3.0, width_ratios=(1.4, 1))
    for place, placement in enumerate(PLACED):
        part = table[table.placement == placement]
        found = [
            estimate(rows.anywhere_s / rows.placed_s)
            for _, rows in part.groupby("model", sort=False)
        ]
        at = np.arange(len(found)) + 0.4 * place - 0.2
        error = [[e.mean - e.low for e in found], [e.high - e.mean for e in found]]
        left.barh(
            at,
            [e.mean for e in found],
            0.38,
            xerr=error if settings.seeds > 1 else None,
            color=colour_of(place),
            label=placement,
            error_kw={"lw": 0.7, "ecolor": "#333333"},
        )
    left.set_yticks(range(len(SHARE_AND_MB)), list(SHARE_AND_MB))
    left.invert_yaxis()
    left.grid(visible=False, axis="y")
    page.published_line(left, MOST_GAIN, "published: one job's most", along="x")
    left.set_xlabel("mean JCT, anywhere / placed")
    left.legend(loc="upper center", bbox_to_anchor=(0.4, 1.14), ncols=3)
    shares = {
        f"{placement}: {word}": per_seed(
            table, placement, lambda rows, column=column: 100 * rows[column].sum() / rows.jobs.sum()
        )
        for placement in PLACED
        for word, column in (("gain", "gain"), ("lose", "lose"), ("lose a tenth", "lose_a_tenth"))
    }
    shown = {label: value for label, value in shares.items() if value is not None}
    page.bars(right, shown, form=".0f", colours={k: colour_of("pack" in k) for k in shown})
    at = [place for place, label in enumerate(shown) if label.endswith("lose")]
    page.published_curve(
        right, [30.0] * len(at), at, "published", linestyle="none", marker="|", markersize=14
    )
    right.set_xlabel("jobs [%]" + (", | published: fewer lose" if page.compares else ""))
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Mean gains and losers of both placements."""
    said = f"Tiresias-L on 480 jobs and 60 GPUs, {settings.seeds} seeds."
    for placement in PLACED:
        gain, lose = per_seed(table, placement, mean_gain), per_seed(table, placement, losers)
        if gain is not None and lose is not None:
            said += (
                f" With {placement} the mean JCT is {gain.text()} times shorter than anywhere, and "
                f"{lose.mean:.0f} % of the jobs end later."
            )
    most = per_seed(table, "skew", best_job)
    if most is not None:
        said += f" The job that gains most by skew gains {most.text()} times, its queue included."
    return said


def published(
    what: str, value: float, unit: str, measure: Callable[[pd.DataFrame], float]
) -> Published:
    """A number of the paper beside placement by skew."""
    return Published(
        system="Tiresias",
        place="NSDI'19, Figure 12",
        what=what,
        value=value,
        unit=unit,
        ours=lambda table: per_seed(table, "skew", measure),
        settings="480 jobs, 60 GPUs, slowdowns of spread jobs assumed",
        cause=Cause.NOT_PUBLIC,
        why="How much slower each model runs when spread is drawn, not tabulated; ours is scaled to 1.67, and a "
        "job's JCT holds its queue.",
    )


FIGURE = Figure(
    name="tiresias_placement",
    paper="Tiresias (NSDI'19), Figure 12",
    sizes={
        Size.QUICK: Sized(Settings(seeds=1), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=0.05),
        Size.FULL: Sized(Settings(seeds=100), minutes=0.5),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(published("largest gain of a job by placement", MOST_GAIN, "x", best_job),),
)

if __name__ == "__main__":
    main(FIGURE)
