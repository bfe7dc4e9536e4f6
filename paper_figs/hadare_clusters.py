"""HadarE (arXiv 2503.10918): CRU, TTD and JCT on two clusters of five nodes, by workload mix.

Mixes M-1 to M-12 have as many jobs as their name says, all there at 0. Beside HadarE: Gavel, Hadar, and a
baseline that never leaves the node it started on (FIFO, one job a node), since the abstract does not say beside
which scheduler, and in which mix, its numbers are.

Assumed by us: one GPU a node; the lab's types are recalled with low confidence, of AWS' only V100 and
T4 are. Rates: V100 and K80 as measured by Gavel, the others in proportion to a GPU's peak FP32
beside a V100's. Jobs take turns at five models and are 0.5 to 4 h long on a V100, log-uniform; the
published mixes' weather model was not measured on any of these GPUs and is left out. Averaging
the copies of a job costs 10 s a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _hadar import COLOUR_OF, COPIES, POLICIES, table
from _hadare import AGGREGATION_S, CLUSTERS, MIXES, mix, system_on
from matplotlib.figure import Figure as Picture

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
    crossed,
    estimate,
    main,
    require_known,
    setting,
)

BASELINES = ("Gavel", "Hadar", "no migration")


@dataclass(frozen=True)
class Settings:
    """Clusters, mixes and draws."""

    clusters: tuple[str, ...] = setting(tuple(CLUSTERS), "AWS, lab")
    mixes: tuple[int, ...] = setting(MIXES, "numbers of jobs")
    seeds: int = setting(20, "draws of the jobs")
    systems: tuple[str, ...] = (*BASELINES, "HadarE")
    throughputs: Path | None = setting(None, "Gavel's table, JSON")


@dataclass(frozen=True)
class Point:
    """A mix on a cluster, under all systems."""

    cluster: str
    jobs: int
    seed: int
    systems: tuple[str, ...]
    throughputs: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Every draw of every mix."""
    require_known("cluster", settings.clusters, CLUSTERS)
    require_known("system", settings.systems, {**POLICIES, **COPIES})
    seeds = range(settings.seeds)
    return crossed(Point, settings, cluster=settings.clusters, jobs=settings.mixes, seed=seeds)


def run(point: Point) -> list[Row]:
    """A row of metrics for every system."""
    rates = table(point.throughputs)
    jobs = mix(point.jobs, point.seed, point.cluster, rates)
    measured = "made up" if point.throughputs is None else "measured"
    named: Row = {"jobs": point.jobs, "seed": point.seed, "rates": measured}
    return [
        named | system_on(system, point.cluster, jobs, aggregation_s=AGGREGATION_S)
        for system in point.systems
    ]


def beside(table: pd.DataFrame, column: str, baseline: str) -> pd.DataFrame:
    """HadarE's value over a baseline's of the same draw: columns cluster, jobs, seed, ratio."""
    wide = table.pivot_table(index=["cluster", "jobs", "seed"], columns="system", values=column)
    if not {"HadarE", baseline} <= set(wide):
        return pd.DataFrame(columns=["cluster", "jobs", "seed", "ratio"])
    return (wide["HadarE"] / wide[baseline]).rename("ratio").dropna().reset_index()


PANELS = (("cru", "CRU"), ("ttd_h", "TTD"), ("mean_jct_h", "mean JCT"))
"""Column and words of what is divided by the baseline's."""

PUBLISHED_CRU = 1.45
PUBLISHED_TTD = {"AWS": -50.0, "lab": -80.0}


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A row a cluster, a column a metric; a line for every baseline."""
    clusters = list(dict.fromkeys(table["cluster"]))
    picture, panels = page.grid(len(clusters), len(PANELS), 2.1 * len(clusters))
    for number, axes in enumerate(panels):
        where = clusters[number // len(PANELS)]
        column, words = PANELS[number % len(PANELS)]
        parts = [
            beside(table[table["cluster"] == where], column, name).assign(baseline=name)
            for name in BASELINES
        ]
        rows = pd.concat([part for part in parts if len(part)])
        page.lines(
            axes,
            rows,
            x="jobs",
            y="ratio",
            by="baseline",
            order=BASELINES,
            colours=COLOUR_OF,
        )
        if column == "cru":
            page.published_line(axes, PUBLISHED_CRU, "published")
        elif column == "ttd_h" and where in PUBLISHED_TTD:
            page.published_line(axes, 1.0 + PUBLISHED_TTD[where] / 100.0, "published")
        axes.set_ylim(0.0, None)
        axes.set(title=f"{where}: {words} / baseline's", xlabel="mix M-n, jobs n")
        axes.set_xticks(sorted(set(table["jobs"])))
    handles, labels = panels[0].get_legend_handles_labels()
    beside_each = [name if name == "published" else f"beside {name}" for name in labels]
    picture.legend(
        handles, beside_each, loc="outside upper center", ncols=2 if page.width_in < 5 else 4
    )
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """HadarE beside each baseline, by cluster."""
    lines = [
        "HadarE beside three baselines by the number of jobs; means over the draws of the jobs "
        f"(n = {settings.seeds}) with 95 % intervals. The published numbers are of some mix and some baseline."
    ]
    for where, rows in table.groupby("cluster", sort=False):
        for name in BASELINES:
            cru, ttd = beside(rows, "cru", name), beside(rows, "ttd_h", name)
            if cru.empty:
                continue
            by_mix = 100.0 * (ttd.groupby("jobs")["ratio"].mean() - 1.0)
            lines.append(
                f"{where}, beside {name}: CRU {_span(cru.groupby('jobs')['ratio'].mean(), '.2f')}x, TTD "
                f"{_span(by_mix, '+.0f')} %, mean over the mixes {by_mix.mean():+.0f} %."
            )
    return " ".join(lines)


def _span(values: pd.Series, form: str) -> str:
    return f"{values.min():{form}} to {values.max():{form}}"


def ours(
    where: str, column: str, baseline: str, jobs: int | None
) -> Callable[[pd.DataFrame], Estimate | None]:
    """HadarE beside a baseline on one mix, or on average over all; measured rates only."""

    def found(table: pd.DataFrame) -> Estimate | None:
        rows = table[(table["cluster"] == where) & (table["rates"] == "measured")]
        rows = rows if jobs is None else rows[rows["jobs"] == jobs]
        ratio = beside(rows, column, baseline)
        if ratio.empty:
            return None
        factor = estimate(ratio.groupby("seed")["ratio"].mean())
        return factor if column == "cru" else as_change(factor)

    return found


def as_change(factor: Estimate) -> Estimate:
    """A factor of the baseline's value as a change in per cent."""
    mean, low, high = (100.0 * (end - 1.0) for end in (factor.mean, factor.low, factor.high))
    return Estimate(mean, low, high, factor.count)


def over_settings(where: str, column: str) -> Callable[[pd.DataFrame], Others | None]:
    """Range over all mixes and baselines on a cluster."""

    def found(table: pd.DataFrame) -> Others | None:
        mixes = sorted(table.loc[table["cluster"] == where, "jobs"].unique())
        means = (
            ours(where, column, baseline, jobs)(table) for baseline in BASELINES for jobs in mixes
        )
        return Others.over(means, "mixes and baselines")

    return found


MIX = 5
"""Mix whose CRU is set beside the published one: as many jobs as nodes."""


def published() -> Iterator[Published]:
    """The abstract's numbers beside ours."""
    for where, cut in PUBLISHED_TTD.items():
        for baseline in ("Gavel", "Hadar"):
            yield entry(where, "cru", baseline, PUBLISHED_CRU, MIX)
        for baseline in ("no migration", "Hadar"):
            yield entry(where, "ttd_h", baseline, cut, None)


def entry(where: str, column: str, baseline: str, value: float, mix: int | None) -> Published:
    """One number beside one baseline; on one mix, or on average over all."""
    cru = column == "cru"
    words = f"CRU beside {baseline}, {where}" if cru else f"TTD beside {baseline}, {where}"
    return Published(
        system="HadarE",
        place="arXiv 2503.10918, abstract",
        what=f"{words}, " + ("mean of all mixes" if mix is None else f"mix M-{mix}"),
        value=value,
        unit="x" if cru else "%",
        ours=ours(where, column, baseline, mix),
        settings="M-1 to M-12 on 5 nodes" if mix is None else f"{mix} jobs on 5 nodes",
        cause=Cause.NOT_READ,
        why="The abstract names neither baseline nor mix; both were picked, and GPU types, rates and jobs are "
        "assumed. The paper's text was not read by us.",
        claim="CRU" if cru else f"TTD, {where}",
        independence=Independence.ONE_OF_MANY,
        others=over_settings(where, column),
    )


FIGURE = Figure(
    name="hadare_clusters",
    paper="HadarE (arXiv 2503.10918), two clusters of five nodes",
    sizes={
        Size.QUICK: Sized(Settings(mixes=(1, 5), seeds=1), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=1.0),
        Size.FULL: Sized(Settings(seeds=50), minutes=3.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(published()),
)

if __name__ == "__main__":
    main(FIGURE)
