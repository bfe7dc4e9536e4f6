"""Synergy (OSDI'22), Figure 12: DRF and Tetris, with whole demands, with shares, and with TUNE.

128 GPUs, multi-GPU jobs. DRF and Tetris order jobs by demand; GREEDY gives each its whole demand or skips it,
the others place every job that the GPUs suffice for. FIFO, LAS and SRTF beside them. The figure's numbers are not
known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _synergy import (
    FULL_GPUS,
    MULTI,
    cluster,
    instance,
    jct_h,
    jobs_of,
    least_jct_h,
    measured,
    outcome,
    split_name,
)
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import COLOURS
from shadowprice.studies.figures import (
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    require_known,
    setting,
)

ORDERS = {
    "DRF": "drf:{}",
    "Tetris": "tetris:{}",
    "FIFO": "synergy-{}:fifo",
    "LAS": "synergy-{}:las",
    "SRTF": "synergy-{}:srtf",
}
MECHANISMS = ("greedy", "proportional", "tune")


@dataclass(frozen=True)
class Settings:
    """Orders and mechanisms at one load."""

    splits: tuple[str, ...] = setting(
        ("20/70/10", "50/0/50"), "shares of image, language and speech models"
    )
    orders: tuple[str, ...] = setting(tuple(ORDERS), f"of {', '.join(ORDERS)}")
    rate: float = setting(5.0, "jobs per hour on 128 GPUs")
    jobs: int = setting(600, "multi-GPU jobs")
    gpus: int = setting(FULL_GPUS, "GPUs, in nodes of 8")
    seeds: int = setting(3, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """One run."""

    split: str
    order: str
    policy: str
    jobs_per_hour: float
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """Every order with every mechanism."""
    require_known("order", settings.orders, ORDERS)
    return crossed(
        Point,
        settings,
        jobs_per_hour=(settings.rate,),
        split=settings.splits,
        order=settings.orders,
        seed=range(settings.seeds),
        policy=MECHANISMS,
    )


def run(point: Point) -> list[Row]:
    """JCT of the measured jobs, and the share of the GPUs that jobs held."""
    jobs = jobs_of(
        MULTI, point.split, point.jobs_per_hour, gpus=point.gpus, jobs=point.jobs, seed=point.seed
    )
    given, rows = instance(jobs, cluster(point.gpus)), measured(point.jobs)
    done = outcome(given, ORDERS[point.order].format(point.policy))
    return [
        {
            "split": point.split,
            "order": point.order,
            "seed": point.seed,
            "policy": point.policy,
            **jct_h(done, rows),
            "least_h": least_jct_h(jobs, given.cluster, rows),
            "gpus_held": gpus_held(done),
        }
    ]


def gpus_held(of: sp.Outcome) -> float:
    """Share of the GPUs held while jobs arrive."""
    rows, last_s = of.schedule, of.instance.workload.arrival_s[-1]
    held_s = np.maximum(np.minimum(rows.end_s, last_s) - rows.start_s, 0.0)
    return float(held_s @ rows.gpus) / (of.instance.cluster.total_gpus * float(last_s))


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Bars of mean JCT over its bound by order and mechanism, a panel for each split."""
    picture, every = page.grid(1, len(settings.splits), 2.9)
    ratio = table.assign(ratio=table["jct_h"] / table["least_h"])
    for axes, split in zip(every, settings.splits, strict=True):
        mine = ratio[ratio["split"] == split]
        for k, (colour, mechanism) in enumerate(zip(COLOURS, MECHANISMS, strict=False)):
            rows = mine[mine["policy"] == mechanism]
            found = [
                estimate(rows[rows["order"] == order]["ratio"], least=1.0)
                for order in settings.orders
            ]
            reach = np.array([each.reach for each in found]).T
            axes.bar(
                np.arange(len(found)) + 0.27 * (k - 1),
                [each.mean for each in found],
                0.25,
                yerr=reach if reach.any() else None,
                error_kw={"lw": 0.8},
                color=colour,
                label=mechanism,
            )
        page.limit_line(axes, 1.0, "any scheduler, at least")
        axes.set_xticks(np.arange(len(settings.orders)), settings.orders)
        axes.set(ylabel="mean JCT / bound", title=split_name(split))
    columns = 4 if page.width_in > 4 else 2
    picture.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """GPUs held by mechanism, and where whole demands are behind TUNE."""
    use = table.groupby("policy", sort=False)["gpus_held"].mean()
    mean = table.pivot_table(index=["split", "order"], columns="policy", values="jct_h", sort=False)
    behind = [
        f"{order} {split_name(split)} {row['greedy'] / row['tune']:.2f}x"
        for (split, order), row in mean.iterrows()
    ]
    return (
        f"{settings.jobs:,} multi-GPU jobs at {settings.rate:g} an hour on 128 GPUs, run on {settings.gpus}; "
        f"{settings.seeds} seeds; panels by shares of image, language and speech models. GPUs held while jobs arrive: "
        + ", ".join(f"{name} {share:.0%}" for name, share in use.items())
        + ". Mean JCT with whole demands (greedy) over that with TUNE: "
        + ", ".join(behind)
        + "."
    )


FIGURE = Figure(
    name="synergy_drf_tetris",
    paper="Synergy (OSDI'22), Figure 12",
    sizes={
        Size.QUICK: Sized(Settings(jobs=160, gpus=32, seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=3.5),
        Size.FULL: Sized(Settings(jobs=6_000, seeds=5), minutes=60.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
