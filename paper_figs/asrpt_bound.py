"""Ours: the measured ratio of A-SRPT against its theorem, over errors of predictions and over rho.

Total completion time of the strict algorithm (no early starts, no delays) over the larger of two exact lower
bounds of the optimum, and the factor of ASRPT-pred with the instance's own rho and predictions within
[n / mu, lambda n] (``proofs/asrpt/prediction.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Picture

from shadowprice.proofs.asrpt.conversion import Gangs, completions
from shadowprice.proofs.asrpt.prediction import optimum_at_least, ratio
from shadowprice.studies.figures import Figure, Page, Row, Size, Sized, crossed, main, setting

CAPACITY = 16
"""GPUs."""

OFF, RHO = "off", "rho"
LABELS = {OFF: "lambda = mu", RHO: "rho"}
USUAL = 2.0
"""Of the one while the other is swept."""


@dataclass(frozen=True)
class Settings:
    """Two sweeps."""

    off: tuple[float, ...] = setting(
        (1.0, 1.5, 2.0, 4.0, 8.0, 16.0), "factors by which predictions are off at most"
    )
    rho: tuple[float, ...] = setting(
        (1.0, 2.0, 5.0, 10.0, 30.0, 100.0), "largest ratios of longest to shortest run"
    )
    jobs: int = setting(400, "jobs")
    seeds: int = setting(20, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """One random instance."""

    sweep: str
    off: float
    rho: float
    jobs: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """All instances of both sweeps."""
    seeds = range(settings.seeds)
    yield from crossed(Point, settings, sweep=(OFF,), off=settings.off, rho=(USUAL,), seed=seeds)
    yield from crossed(Point, settings, sweep=(RHO,), off=(USUAL,), rho=settings.rho, seed=seeds)


def run(point: Point) -> list[Row]:
    """Measured ratio and the theorem's factor."""
    gangs = drawn(point)
    total = sum(completions(gangs, list(gangs.longest)), Fraction(0))
    factor = ratio(gangs.rho, gangs.virtual_over, gangs.kappa, gangs.crowding)
    return [
        {
            "sweep": point.sweep,
            "value": point.off if point.sweep == OFF else point.rho,
            "seed": point.seed,
            "ratio": float(total / optimum_at_least(gangs)),
            "factor": float(factor),
        }
    ]


def drawn(point: Point) -> Gangs:
    """Gangs of 1, 2, 4 and 8 GPUs, lognormal lengths, Poisson arrivals."""
    rng = np.random.default_rng(point.seed)
    jobs = point.jobs
    release = np.cumsum(rng.exponential(40.0, jobs)).astype(int)
    gang = rng.choice([1, 2, 4, 8], jobs, p=[0.4, 0.3, 0.2, 0.1])
    shortest = np.maximum(np.round(60 * rng.lognormal(1.0, 1.0, jobs)), 1).astype(int)
    longest = np.maximum((shortest * rng.uniform(1.0, point.rho, jobs)).astype(int), shortest)
    error = point.off ** rng.uniform(-1.0, 1.0, jobs)
    virtual = np.maximum((shortest * error).astype(int), 1)
    columns = (
        tuple(int(v) for v in column) for column in (release, gang, shortest, longest, virtual)
    )
    return Gangs(CAPACITY, *columns)


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Measured ratios as points, the factor as a line."""
    picture, every = page.grid(1, 2, 2.7)
    for axes, sweep in zip(every, LABELS, strict=True):
        mine = table[table["sweep"] == sweep]
        axes.plot(mine["value"], mine["ratio"], ".", color="#0072B2", alpha=0.5, label="measured")
        factor = mine.groupby("value")["factor"].mean()
        axes.plot(factor.index, factor, color="#D55E00", label="theorem, mean over instances")
        axes.set(xlabel=LABELS[sweep], ylabel="total completion time / bound")
        axes.set(xscale="log", yscale="log")
        values = sorted(mine["value"].unique())
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xticks([], minor=True)
    every[0].legend()
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Largest measured ratio, and how much of the factor an instance used at most."""
    said = []
    for sweep, label in LABELS.items():
        mine = table[table["sweep"] == sweep]
        used = (mine["ratio"] / mine["factor"]).max()
        said.append(f"over {label} at most {mine['ratio'].max():.2f}, {used:.2f} of the factor")
    return (
        f"{settings.jobs} jobs on {CAPACITY} GPUs, {settings.seeds} instances a value; the one is {USUAL:g} while the "
        f"other is swept. Total completion time over an exact lower bound of the optimum: {'; '.join(said)}."
    )


FIGURE = Figure(
    name="asrpt_bound",
    paper="A-SRPT, our theorem ASRPT-pred",
    sizes={
        Size.QUICK: Sized(Settings(jobs=60, seeds=3), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=1.0),
        Size.FULL: Sized(Settings(jobs=2_000, seeds=50), minutes=30.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
