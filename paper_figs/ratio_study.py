"""Ours: certified ratio of every policy, over families of instances and sizes. No paper has this.

Total flow time over a bound that holds for any preemptive schedule: a ratio contains both what the policy lost and
what the bound misses. In the families 'mixed' GPUs differ in speed by type, and many policies do not look at that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import pandas as pd
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.figures import Figure, Page, Row, Size, Sized, main
from shadowprice.analysis.ratio_study.ratios import FAMILIES, Cell, RatioStudy, family, run_cell
from shadowprice.analysis.ratio_study.report import plot_family, summary, worst_first
from shadowprice.instances.objective import Objective


@dataclass(frozen=True)
class Settings:
    """Instances of every family and size."""

    families: tuple[str, ...] = field(
        default=tuple(FAMILIES), metadata={"help": f"of {', '.join(FAMILIES)}"}
    )
    sizes: tuple[int, ...] = field(default=(30, 100), metadata={"help": "numbers of jobs"})
    draws: int = field(default=5, metadata={"help": "instances of each family and size"})
    columns: int = field(
        default=20_000, metadata={"help": "size of the interval programmes behind the bounds"}
    )


@dataclass(frozen=True)
class Point:
    """All policies on one instance."""

    family: str
    jobs: int
    draw: int
    columns: int


def points(settings: Settings) -> Iterator[Point]:
    """All instances."""
    for name in settings.families:
        family(name)
        for jobs in settings.sizes:
            for draw_ in range(settings.draws):
                yield Point(name, jobs, draw_, settings.columns)


def run(point: Point) -> list[Row]:
    """Ratio of each policy in each objective; every schedule is verified, every bound exact."""
    study = RatioStudy(families=(point.family,), sizes=(point.jobs,), columns=point.columns)
    cell = Cell(point.family, point.jobs, point.draw)
    return [asdict(row) for row in run_cell(cell, study, tuple(study.by_name))]


def flow_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means and intervals of the ratios in total flow time."""
    return summary(table[table["objective"] == str(Objective.FLOW)])


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One panel a family: mean of every policy with its interval, one mark a size."""
    means = flow_summary(table)
    names = worst_first(means)
    across = min(4, len(settings.families))
    down = -(-len(settings.families) // across)
    height_in = (0.145 * len(names) + 0.7) * down + 0.4
    picture, every = page.grid(down, across, height_in, sharey=True)
    for axes, name in zip(every, settings.families, strict=False):
        plot_family(axes, means[means["family"] == name], names, name)
    for axes in every[len(settings.families) :]:
        axes.set_visible(False)
    handles, labels = every[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Policies with the smallest and the largest ratio, and how often one attained its bound."""
    means = flow_summary(table)
    worst, best = worst_first(means)[0], worst_first(means)[-1]
    top = means.loc[means["mean"].idxmax()]
    return (
        "Total flow time over a certified bound of preemptive schedules: mean with a bootstrap interval of 95 %, "
        f"{settings.draws} instances of each family and size. In the geometric mean over families and sizes {best} "
        f"is best and {worst} worst; the largest mean is {top['mean']:.2f}, of {top['policy']} on {top['family']} "
        f"with {top['jobs']} jobs. The bound is attained in {means['proven'].mean():.1%} of the runs."
    )


FIGURE = Figure(
    name="ratio_study",
    paper="Certified ratios of all policies, ours",
    sizes={
        Size.QUICK: Sized(Settings(sizes=(12,), draws=2, columns=3_000), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=5.0),
        Size.FULL: Sized(Settings(sizes=(30, 100, 300), draws=30, columns=100_000), minutes=120.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
