"""Synergy (OSDI'22), Figure 9: what TUNE gains by how many jobs are sensitive to CPUs and memory.

The artifact's run for this figure (``ae-readme.md``, read) is that of Figure 8 with other splits: single-GPU jobs
under FIFO, 128 GPUs, 9 jobs an hour, jobs 4,000 to 4,999; classes (image, language, speech) of (20, 70, 10),
(33, 33, 33) and (50, 0, 50). With seed 42 the jobs are the artifact's, draw for draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _synergy import (
    COLOUR,
    FULL_GPUS,
    UP_TO,
    UP_TO_CLAIM,
    artifact_jobs,
    artifact_outcome,
    cluster,
    factors_by,
    jct_h,
    least_jct_h,
    measured,
    most_possible,
    published_profiles,
    split_name,
)
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.wording import at_most
from shadowprice.instances.generators.synergy_published import PUBLISHED_SEED
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Evidence,
    Figure,
    Independence,
    Others,
    Page,
    Published,
    Row,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    setting,
)

POLICIES = ("proportional", "tune")


@dataclass(frozen=True)
class Settings:
    """Splits at one load."""

    splits: tuple[str, ...] = setting(
        ("20/70/10", "33/33/33", "50/0/50"), "shares of image, language and speech models"
    )
    rate: float = setting(9.0, "jobs per hour on 128 GPUs")
    jobs: int = setting(6_700, "single-GPU jobs")
    gpus: int = setting(FULL_GPUS, "GPUs, in nodes of 8")
    seeds: int = setting(10, "number of seeds, from 42")


@dataclass(frozen=True)
class Point:
    """One run."""

    split: str
    policy: str
    jobs_per_hour: float
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """Both policies for every split and seed."""
    return crossed(
        Point,
        settings,
        jobs_per_hour=(settings.rate,),
        split=settings.splits,
        seed=range(PUBLISHED_SEED, PUBLISHED_SEED + settings.seeds),
        policy=POLICIES,
    )


def run(point: Point) -> list[Row]:
    """JCT of the measured jobs, and the least that any scheduler could give them."""
    rate = point.jobs_per_hour * point.gpus / FULL_GPUS
    jobs = artifact_jobs(point.split, rate, jobs=point.jobs, seed=point.seed)
    where, rows = cluster(point.gpus), measured(point.jobs)
    done = artifact_outcome(jobs, point.gpus, point.policy)
    return [
        {
            "split": point.split,
            "seed": point.seed,
            "policy": point.policy,
            **jct_h(done, rows),
            "least_h": least_jct_h(jobs, where, rows, published_profiles()),
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Factors by split, beside what was possible; mean JCT of both mechanisms."""
    picture, (left, right) = page.grid(1, 2, 2.9)
    names = [split_name(split) for split in settings.splits]
    found = factors_by(table, "split")
    mean = [found[split].mean for split in settings.splits]
    reach = np.array([found[split].reach for split in settings.splits]).T
    possible = [most_possible(table[table["split"] == split]) for split in settings.splits]
    at = range(len(names))
    left.errorbar(mean, at, xerr=reach if reach.any() else None, fmt="o", label="TUNE")
    left.plot(possible, at, "|", color="#AA0000", markersize=14, label="any scheduler, at most")
    page.published_line(left, UP_TO, f"abstract: up to {UP_TO:g}x", along="x")
    left.set_yticks(at, names)
    left.set(xlabel="mean JCT, proportional / tune", xlim=(0.0, 1.08 * max(possible)))
    left.set_ylim(len(names) - 0.5, -0.5)
    hours = {
        f"{split_name(split)} {name}": estimate(
            table[(table["split"] == split) & (table["policy"] == name)]["jct_h"]
        )
        for split in settings.splits
        for name in POLICIES
    }
    page.bars(right, hours, colours={key: COLOUR[key.split()[-1]] for key in hours})
    right.set(xlabel="mean JCT [h]")
    columns = 3 if page.width_in > 4 else 1
    picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=columns)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Factors by split."""
    said = [
        f"{split_name(str(split))} {each.text()}x (any scheduler: at most "
        f"{at_most(most_possible(table[table['split'] == split]))})"
        for split, each in factors_by(table, "split").items()
    ]
    return (
        f"{settings.jobs:,} single-GPU jobs under FIFO at {settings.rate:g} an hour on 128 GPUs, run on "
        f"{settings.gpus}; {settings.seeds} seeds. Proportional / TUNE in mean JCT by shares of image, language and "
        f"speech models: {'; '.join(said)}."
    )


def largest(table: pd.DataFrame) -> Estimate | None:
    """Factor of the split where TUNE gains most."""
    found = factors_by(table, "split")
    return max(found.values(), key=lambda each: each.mean) if found else None


def largest_possible(table: pd.DataFrame) -> float | None:
    """Factor that any scheduler could have there."""
    found = factors_by(table, "split")
    if not found:
        return None
    best = max(found, key=lambda split: found[split].mean)
    return most_possible(table[table["split"] == best])


PUBLISHED = (
    Published(
        system="Synergy",
        place="OSDI'22, Figure 9",
        what="proportional / TUNE, mean JCT, up to, over the splits, single-GPU FIFO, 9 jobs an hour",
        value=UP_TO,
        unit="x",
        ours=largest,
        settings="the artifact's jobs and further draws, 128 GPUs, the split where it is largest",
        evidence=Evidence.RECALLED,
        cause=Cause.NOT_PUBLIC,
        why="That the largest factor is one of this figure's is recalled; ours is the mean at the split where that is "
        "largest.",
        claim=UP_TO_CLAIM,
        independence=Independence.REPLAYED,
        own_jobs=True,
        limit=largest_possible,
        others=lambda table: Others.over(factors_by(table, "split").values(), "splits"),
    ),
)

FIGURE = Figure(
    name="synergy_workload_splits",
    paper="Synergy (OSDI'22), Figure 9",
    sizes={
        Size.QUICK: Sized(Settings(jobs=160, gpus=32, seeds=1), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=14.0),
        Size.FULL: Sized(Settings(seeds=20), minutes=28.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
