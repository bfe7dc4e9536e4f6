"""Synergy (OSDI'22), the CPU:GPU ratio: what TUNE gains with 3 to 6 CPUs for each GPU.

128 GPUs, multi-GPU jobs under SRTF and FIFO, classes (20, 70, 10). As in the public simulator, a job's work is its run
time with the share of the cluster it runs on: with 6 CPUs as long as with 3, and less to gain. No
numbers of this experiment are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from _synergy import (
    FULL_GPUS,
    MULTI,
    cluster,
    draw_lines,
    factors_by,
    instance,
    jct_h,
    jobs_of,
    least_jct_h,
    measured,
    outcome,
)
from matplotlib.figure import Figure as Picture

from shadowprice.studies.figures import Figure, Page, Row, Size, Sized, crossed, main, setting

POLICIES = ("proportional", "tune")
SPLIT = "20/70/10"


@dataclass(frozen=True)
class Settings:
    """Ratios at one load."""

    ratios: tuple[int, ...] = setting((3, 4, 5, 6), "CPUs for each GPU")
    orders: tuple[str, ...] = setting(("fifo", "srtf"), "orders of jobs")
    rate: float = setting(4.0, "jobs per hour on 128 GPUs")
    jobs: int = setting(1_000, "multi-GPU jobs")
    gpus: int = setting(FULL_GPUS, "GPUs, in nodes of 8")
    seeds: int = setting(3, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """One run."""

    cpus_per_gpu: int
    order: str
    policy: str
    jobs_per_hour: float
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """Both policies for every ratio, order and seed."""
    return crossed(
        Point,
        settings,
        jobs_per_hour=(settings.rate,),
        cpus_per_gpu=settings.ratios,
        order=settings.orders,
        seed=range(settings.seeds),
        policy=POLICIES,
    )


def run(point: Point) -> list[Row]:
    """JCT of the measured jobs, and the least that any scheduler could give them."""
    jobs = jobs_of(
        MULTI, SPLIT, point.jobs_per_hour, gpus=point.gpus, jobs=point.jobs, seed=point.seed
    )
    given, rows = instance(jobs, cluster(point.gpus, point.cpus_per_gpu)), measured(point.jobs)
    done = outcome(given, f"synergy-{point.policy}:{point.order}")
    return [
        {
            "cpus_per_gpu": point.cpus_per_gpu,
            "order": point.order,
            "seed": point.seed,
            "policy": point.policy,
            **jct_h(done, rows),
            "least_h": least_jct_h(jobs, given.cluster, rows),
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """JCT by ratio under each order."""
    picture, every = page.grid(1, len(settings.orders), 2.6)
    for axes, order in zip(every, settings.orders, strict=True):
        draw_lines(page, axes, table[table["order"] == order], "cpus_per_gpu")
        axes.set(xlabel="CPUs for each GPU", ylabel="mean JCT [h]", xticks=settings.ratios)
        axes.set(title=order.upper(), ylim=(0.0, None))
    handles, labels = every[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Factors by ratio, under each order."""
    said = []
    for order, rows in table.groupby("order", sort=False):
        found = factors_by(rows, "cpus_per_gpu")
        factors = ", ".join(f"{each.text()}x with {ratio}" for ratio, each in found.items())
        said.append(f"{str(order).upper()}: {factors}")
    return (
        f"{settings.jobs:,} multi-GPU jobs at {settings.rate:g} an hour on 128 GPUs, run on {settings.gpus}; "
        f"{settings.seeds} seeds. Proportional / TUNE in mean JCT by CPUs for each GPU. {'; '.join(said)}."
    )


FIGURE = Figure(
    name="synergy_cpu_ratio",
    paper="Synergy (OSDI'22), CPU:GPU ratio",
    sizes={
        Size.QUICK: Sized(Settings(jobs=160, gpus=32, seeds=1), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=2.5),
        Size.FULL: Sized(Settings(jobs=6_000, seeds=5), minutes=40.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
