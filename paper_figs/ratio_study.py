"""Ours: certified ratio of every policy, over families of instances and sizes. No paper has this.

Total flow time over a bound that holds for any preemptive schedule: a ratio contains both what the policy lost and
what the bound misses. In the families 'mixed' GPUs differ in speed by type, and many policies do not look at that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from _ratio_families import FAMILIES, Cell
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.plots.style import colour_of
from shadowprice.instances.objective import Objective, rounded_up
from shadowprice.solvers.registry import policies
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

OBJECTIVES = (Objective.COMPLETION, Objective.FLOW)


@dataclass(frozen=True)
class Settings:
    """Instances of every family and size."""

    families: tuple[str, ...] = setting(tuple(FAMILIES), f"of {', '.join(FAMILIES)}")
    sizes: tuple[int, ...] = setting((30, 100), "numbers of jobs")
    draws: int = setting(5, "instances of each family and size")
    columns: int = setting(20_000, "size of the interval programmes behind the bounds")

    def __post_init__(self) -> None:
        if min(*self.sizes, self.draws, self.columns) < 1:
            raise ValueError("expected sizes, draws and columns of at least 1")


@dataclass(frozen=True)
class Point:
    """All policies on one instance."""

    family: str
    jobs: int
    draw: int
    columns: int


def points(settings: Settings) -> Iterator[Point]:
    """All instances."""
    require_known("family", settings.families, FAMILIES)
    draws = range(settings.draws)
    return crossed(Point, settings, family=settings.families, jobs=settings.sizes, draw=draws)


def run(point: Point) -> list[Row]:
    """Ratio of each policy in each objective; every schedule is verified, every bound exact."""
    cell = Cell(point.family, point.jobs, point.draw)
    instance = cell.instance()
    bounds = certified_bounds(instance, OBJECTIVES, BoundEffort.of_size(point.columns))
    rows: list[Row] = []
    for name in policies():
        outcome = sp.simulate(instance.workload, instance.cluster, name)
        for goal, bound in bounds.items():
            ratio = exact_cost(instance, goal, outcome.end_s) / bound.ticks
            rows.append(
                {
                    **asdict(cell),
                    "policy": name,
                    "objective": str(goal),
                    "cost_s": goal.cost_s(instance.workload, outcome.end_s),
                    "bound_s": bound.value_s,
                    "bound_kind": bound.kind,
                    "ratio": rounded_up(ratio),
                    "seed": 0,
                    "columns": point.columns,
                }
            )
    return rows


def of_flow(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ratios in total flow time."""
    return table[table["objective"] == str(Objective.FLOW)]


def mean_ratios(flow: pd.DataFrame) -> pd.Series:
    """Mean over the draws by family, size and policy."""
    return flow.groupby(["family", "jobs", "policy"], sort=False)["ratio"].mean()


def worst_first(means: pd.Series) -> list[str]:
    """Policies in order of the geometric mean of their means, largest first."""
    overall = np.exp(np.log(means).groupby("policy").mean())
    return overall.sort_values(ascending=False, kind="stable").index.tolist()


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One panel a family: mean of every policy with its interval, one mark a size; the best on top."""
    flow = of_flow(table)
    names = worst_first(mean_ratios(flow))
    across = min(4, len(settings.families))
    down = -(-len(settings.families) // across)
    height_in = (0.145 * len(names) + 0.7) * down + 0.4
    picture, every = page.grid(down, across, height_in, sharey=True)
    for axes, family in zip(every, settings.families, strict=False):
        for place, jobs in enumerate(settings.sizes):
            rows = flow[(flow["family"] == family) & (flow["jobs"] == jobs)]
            shift = (place - (len(settings.sizes) - 1) / 2) * 0.5 / len(settings.sizes)
            means = [
                (names.index(name) + shift, estimate(of_policy["ratio"], least=1.0))
                for name, of_policy in rows.groupby("policy")
            ]
            label = f"{jobs} jobs"
            page.intervals(axes, means, along="x", color=colour_of(place), label=label, lw=1, ms=3)
        page.ratio_axis(axes, "cost / bound")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_title(family)
    for axes in every[len(settings.families) :]:
        axes.set_visible(False)
    handles, labels = every[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Policies with the smallest and the largest ratio, and how often one attained its bound."""
    flow = of_flow(table)
    means = mean_ratios(flow)
    worst, *_, best = worst_first(means)
    family, jobs, policy = means.idxmax()
    return (
        "Total flow time over a certified bound of preemptive schedules: mean with its interval of 95 %, "
        f"{settings.draws} instances of each family and size. In the geometric mean over families and sizes {best} "
        f"is best and {worst} worst; the largest mean is {means.max():.2f}, of {policy} on {family} with {jobs} jobs. "
        f"The bound is attained in {(flow['ratio'] == 1.0).mean():.1%} of the runs."
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
