"""Synergy (OSDI'22), the physical cluster of 32 GPUs: a static and a dynamic trace, proportional shares and TUNE.

The traces are the artifact's (100 jobs of one GPU, all there at once or within three hours and a half), run as its
simulator runs them, on 4 nodes of 8 GPUs, 24 CPUs and 500 GB; what a real cluster adds is missing. The dynamic one
is that of SRTF, by the name of its file; the orders of the published runs are recalled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _measures import clear_of_marks
from _synergy import ANY, cluster, instance, published_profiles
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.instances.generators.synergy_published import ITERATION_S
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.bounds import simple_bounds
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
    Sampling,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    require_known,
    setting,
)

STATIC, DYNAMIC = "static", "dynamic"
TRACES = {
    name: Path(__file__).parent / "published" / f"synergy_{name}_jobs.csv"
    for name in (STATIC, DYNAMIC)
}
POLICIES = ("fair", "tune")
"""Proportional shares, and TUNE, as the artifact calls them."""

FACTORS = {STATIC: ("FIFO", 1.4), DYNAMIC: ("SRTF", 1.5)}
"""Order, and published factor of TUNE over proportional shares, by trace."""

COLOURS_OF = {"fair": "#D55E00", "tune": "#0072B2"}


@dataclass(frozen=True)
class Settings:
    """Traces and orders."""

    traces: tuple[str, ...] = setting(tuple(TRACES), f"of {', '.join(TRACES)}")
    orders: tuple[str, ...] = setting(("FIFO", "SRTF", "LAS"), "orders, as the preset has them")
    gpus: int = setting(32, "GPUs, in nodes of 8")


@dataclass(frozen=True)
class Point:
    """One run."""

    trace: str
    order: str
    policy: str
    gpus: int


def points(settings: Settings) -> Iterator[Point]:
    """Both mechanisms under every order."""
    require_known("trace", settings.traces, TRACES)
    return crossed(Point, settings, trace=settings.traces, order=settings.orders, policy=POLICIES)


def jobs_of_trace(trace: str) -> sp.Workload:
    """The artifact's jobs, whose work is iterations."""
    table = pd.read_csv(TRACES[trace], comment="#")
    return sp.Workload.from_columns(
        arrival_s=table["arrival_s"],
        gpus=[1] * len(table),
        work=table["iterations"],
        model=table["model"],
        throughput=[[1.0 / ITERATION_S[name]] for name in table["model"]],
        gpu_types=("gpu",),
    )


def run(point: Point) -> list[Row]:
    """Makespan and mean JCT, and the least of each that any scheduler could have [h]."""
    jobs, where = jobs_of_trace(point.trace), cluster(point.gpus)
    options = sp.RunOptions(preset="synergy", profiles=published_profiles())
    done = sp.simulate(jobs, where, f"{point.order}+{point.policy}", options)
    given = instance(jobs, where, published_profiles())
    least_s = {
        goal: max(bound.value_s for bound in simple_bounds(given, goal))
        for goal in (Objective.MAKESPAN, Objective.FLOW)
    }
    return [
        {
            "trace": point.trace,
            "order": point.order,
            "policy": point.policy,
            "makespan_h": float(done.end_s.max() - jobs.arrival_s[0]) / 3600.0,
            "jct_h": float(done.jct_s.mean()) / 3600.0,
            "least_makespan_h": least_s[Objective.MAKESPAN] / 3600.0,
            "least_jct_h": least_s[Objective.FLOW] / len(jobs) / 3600.0,
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Makespan of the static trace, mean JCT of the dynamic one."""
    picture, every = page.grid(1, 2, 2.6)
    shown = ((STATIC, "makespan_h", "makespan [h]"), (DYNAMIC, "jct_h", "mean JCT [h]"))
    for axes, (trace, column, label) in zip(every, shown, strict=True):
        mine = table[table["trace"] == trace]
        axes.set(xlabel=label, title=f"{trace} trace")
        if mine.empty:
            continue
        values = {
            f"{order} {policy}": estimate(rows[column])
            for (order, policy), rows in mine.groupby(["order", "policy"], sort=False)
        }
        page.bars(axes, values, colours={name: COLOURS_OF[name.split()[-1]] for name in values})
        page.limit_line(axes, float(mine[f"least_{column}"].iloc[0]), ANY, along="x")
        order, factor = FACTORS[trace]
        fair = f"{order} {POLICIES[0]}"
        if fair in values and page.compares:
            at, place = values[fair].mean / factor, list(values).index(f"{order} {POLICIES[1]}")
            mark = {"linestyle": "none", "marker": "|", "markersize": 14, "markeredgewidth": 1.6}
            page.published_curve(axes, [at], [place], "published", **mark)
            clear_of_marks(axes, {place: at})
            axes.set_xlabel(f"{label}, | published: {fair} / {factor:g}")
    return picture


def gain(table: pd.DataFrame, trace: str, order: str, column: str) -> float | None:
    """Proportional over TUNE; None without both."""
    rows = table[(table["trace"] == trace) & (table["order"] == order)]
    mine = rows.set_index("policy")[column]
    return float(mine["fair"] / mine["tune"]) if set(POLICIES) <= set(mine.index) else None


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Factors of TUNE by trace and order."""
    said = []
    for trace in settings.traces:
        factors = [
            f"{order} {gain(table, trace, order, 'makespan_h'):.2f}x in makespan and "
            f"{gain(table, trace, order, 'jct_h'):.2f}x in mean JCT"
            for order in settings.orders
        ]
        said.append(f"{trace} trace: {', '.join(factors)}")
    return (
        f"The artifact's traces of 100 jobs on {settings.gpus} GPUs. Proportional / TUNE: "
        f"{'; '.join(said)}."
    )


def over_orders(table: pd.DataFrame, trace: str, column: str) -> Others | None:
    """Range of a factor over the orders."""
    orders = dict.fromkeys(table["order"])
    return Others.over((gain(table, trace, order, column) for order in orders), "orders")


def published(trace: str, column: str, what: str) -> Published:
    """A recalled factor beside ours, with what any scheduler could have."""
    order, value = FACTORS[trace]

    def ours(table: pd.DataFrame) -> Estimate | None:
        found = gain(table, trace, order, column)
        return None if found is None else estimate([found])

    def limit(table: pd.DataFrame) -> float | None:
        rows = table[(table["trace"] == trace) & (table["order"] == order)]
        fair = rows[rows["policy"] == "fair"]
        return None if fair.empty else float((fair[column] / fair[f"least_{column}"]).iloc[0])

    return Published(
        system="Synergy",
        place="OSDI'22, physical cluster",
        what=f"proportional / TUNE, {what} of the {trace} trace",
        value=value,
        unit="x",
        ours=ours,
        settings=f"the artifact's 100 jobs, 32 GPUs, {order}",
        evidence=Evidence.RECALLED,
        cause=Cause.TESTBED,
        why="A simulation without the effects of a real cluster; the order of the published run is recalled.",
        sampling=Sampling.NOTHING,
        independence=Independence.ONE_OF_MANY,
        own_jobs=True,
        limit=limit,
        others=lambda table: over_orders(table, trace, column),
    )


PUBLISHED = (
    published(STATIC, "makespan_h", "makespan"),
    published(DYNAMIC, "jct_h", "mean JCT"),
)

FIGURE = Figure(
    name="synergy_testbed",
    paper="Synergy (OSDI'22), physical cluster",
    sizes={
        Size.QUICK: Sized(Settings(), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=0.1),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
