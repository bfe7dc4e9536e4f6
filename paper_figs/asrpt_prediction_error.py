"""A-SRPT, Figure 4: share of jobs per prediction error, learnt online from completed jobs only.

Recurrent jobs (``instances/generators/recurrent.py``; the paper uses the trace of Alibaba's PAI, and its numbers
are not known); predictions are those made at arrival in a FIFO run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _asrpt import network, outcome, trace
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.calibration import Calibration
from shadowprice.analysis.plots.style import colour_of
from shadowprice.solvers.predictors.predictor import Features, predict_online, predictor
from shadowprice.studies.figures import (
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    setting,
)

LOAD = 0.9
CLOSE = 0.25
"""Relative error up to which PAI's own study counts predictions."""


@dataclass(frozen=True)
class Settings:
    """Predictors on one trace."""

    predictors: tuple[str, ...] = setting(("forest", "median", "last"), "predictors by name")
    jobs: int = setting(10_000, "jobs")
    gpus: int = setting(256, "GPUs, in nodes of 8")
    seeds: int = setting(10, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """One run, and what the predictors said in it."""

    predictors: tuple[str, ...]
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """One run for each seed."""
    return crossed(Point, settings, seed=range(settings.seeds))


def run(point: Point) -> list[Row]:
    """Share of the jobs in each bin of errors, and of those with less than 25 %."""
    jobs = trace(point.jobs, LOAD, point.gpus, point.seed, network())
    ends = outcome(jobs, point.gpus, "fifo", network()).end_s
    rows: list[Row] = []
    for name in point.predictors:
        made = predict_online(predictor(name), Features.of(jobs), jobs.work, jobs.arrival_s, ends)
        found = Calibration.of(made, jobs.work)
        rows += [
            {
                "predictor": name,
                "seed": point.seed,
                "error": str(each.error),
                "share": float(each.share),
                "close": found.share_below(CLOSE),
            }
            for each in found.table().itertuples()
        ]
    return rows


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Bars by bin, one colour a predictor."""
    picture, (axes,) = page.grid(1, 1, 2.8)
    bins = list(dict.fromkeys(table["error"]))
    width = 0.8 / len(settings.predictors)
    for k, name in enumerate(settings.predictors):
        mine = table[table["predictor"] == name]
        found = [estimate(mine[mine["error"] == each]["share"], most=1.0) for each in bins]
        reach = np.array([each.reach for each in found]).T
        axes.bar(
            np.arange(len(bins)) - 0.4 + (k + 0.5) * width,
            [each.mean for each in found],
            width,
            yerr=reach if reach.any() else None,
            error_kw={"lw": 0.8},
            color=colour_of(k),
            label=name,
        )
    axes.set_xticks(range(len(bins)), bins, rotation=30, ha="right")
    axes.set(xlabel="relative error of the predicted iterations", ylabel="share of jobs")
    axes.legend()
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Share of the jobs with less than 25 % error, by predictor."""
    close = table.groupby(["predictor", "seed"], sort=False)["close"].first()
    said = [
        f"{name} {estimate(100 * close[name], most=100.0).text()} %"
        for name in dict.fromkeys(table["predictor"])
    ]
    return (
        f"{settings.jobs:,} jobs on {settings.gpus} GPUs under FIFO, {settings.seeds} seeds. Predicted within "
        f"{CLOSE:.0%}: {', '.join(said)} of the jobs."
    )


FIGURE = Figure(
    name="asrpt_prediction_error",
    paper="A-SRPT (arXiv 2501.05563), Figure 4; trace ours",
    sizes={
        Size.QUICK: Sized(Settings(jobs=400, seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=2.0),
        Size.FULL: Sized(Settings(jobs=50_000, seeds=5), minutes=20.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
