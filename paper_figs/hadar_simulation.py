"""Hadar (IPDPS'24), trace-driven simulation: TTD, mean JCT, queueing delay and FTF of all systems.

15 nodes of 4 GPUs, 20 each of V100, P100, K80; 480 jobs, all there at 0 (recalled). Jobs:
shadowprice.instances.generators.hadar; from Philly's busiest hours with ``--philly FILE``, else of equally
frequent classes of GPU-hours, an assumption of ours. What no scheduler can exceed is certified
(shadowprice.analysis.limits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _hadar import (
    COLOUR_OF,
    COPIES,
    POLICIES,
    WORKLOADS,
    idle_beside_waiting,
    limits,
    mean_limit,
    published,
    range_of,
    ratios,
    row,
    table,
    work_on_several_types,
    workload,
)
from _hadar import cluster as nodes
from _hadar import run as run_system
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.page import PAGE_IN
from shadowprice.analysis.wording import at_most
from shadowprice.studies.figures import (
    Estimate,
    Figure,
    Others,
    Page,
    Published,
    Row,
    Size,
    Sized,
    crossed,
    main,
    ratio_by_seed,
    require_known,
    setting,
)

SYSTEMS = tuple(name for name in POLICIES if name != "no migration")
MADE_UP = "made up"


@dataclass(frozen=True)
class Settings:
    """Workloads, systems and sizes."""

    workloads: tuple[str, ...] = setting(("philly", "classes"), "jobs: philly, classes")
    jobs: int = 480
    gpus_per_type: int = setting(20, "GPUs of each of three types")
    seeds: int = setting(3, "number of seeds, from 0")
    classes_seeds: int = setting(1, "the same for classes, whose runs take ten times as long")
    systems: tuple[str, ...] = setting(SYSTEMS, "by their names")
    beam: int = setting(8, "states that Hadar's dual subroutine keeps")
    throughputs: Path | None = setting(None, "Gavel's table, JSON")
    philly: Path | None = setting(None, "Philly trace, flat CSV")


@dataclass(frozen=True)
class Point:
    """A system on one draw of the jobs."""

    workload: str
    seed: int
    system: str
    jobs: int
    gpus_per_type: int
    beam: int
    throughputs: Path | None
    philly: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Every system on every draw."""
    require_known("workload", settings.workloads, WORKLOADS)
    require_known("system", settings.systems, {**POLICIES, **COPIES})
    for kind in settings.workloads:
        seeds = range(settings.classes_seeds if kind == "classes" else settings.seeds)
        yield from crossed(Point, settings, workload=(kind,), seed=seeds, system=settings.systems)


def run(point: Point) -> list[Row]:
    """Metrics of a run, and what any scheduler could gain over it."""
    rates = table(point.throughputs)
    jobs = workload(point.workload, point.jobs, point.seed, rates, point.philly)
    where = sp.Cluster.parse(nodes(point.gpus_per_type))
    found = run_system(point.system, jobs, where, options=f"width={point.beam}")
    more: Row = {}
    if point.system not in COPIES:
        more = {
            "idle_waiting": idle_beside_waiting(found.outcome),
            "mixed": work_on_several_types(found.outcome),
            **limits(found),
        }
    measured = MADE_UP if point.throughputs is None else "measured"
    named = {"workload": point.workload, "seed": point.seed, "system": point.system}
    return [row(found.metrics, **named, rates=measured, lost=found.lost, **more)]


PANELS = (
    ("ttd_h", "Gavel", "limit_ttd", "TTD", 1.20),
    ("mean_jct_h", "Gavel", "limit_jct", "mean JCT", 2.5),
)
PANELS += (("mean_jct_h", "YARN-CS", "limit_jct", "mean JCT", 3.0),)
"""Column, baseline, column of its limit, words, published factor."""


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Factors over the baselines, a row a workload; limits as lines."""
    kinds = list(dict.fromkeys(table["workload"]))
    picture, panels = page.grid(len(kinds), len(PANELS), 2.5 * len(kinds))
    for number, axes in enumerate(panels):
        kind = kinds[number // len(PANELS)]
        column, than, limited, words, theirs = PANELS[number % len(PANELS)]
        rows = table[table["workload"] == kind]
        values = ratios(rows, than, column)
        if not values:
            axes.set_axis_off()
            continue
        page.bars(axes, values, form=".2f", colours=COLOUR_OF)
        for text in axes.texts:  # Lines are drawn through them.
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6})
            text.set_zorder(4)
        reach = max(axes.get_xlim()[1], 1.1 * theirs if page.compares else 0.0)
        most = mean_limit(rows, than, limited)
        if most is not None and page.compares:
            reach = max(reach, 1.1 * most)
            page.limit_line(axes, most, "", along="x")
            axes.axvspan(most, 100.0, color="#AA0000", alpha=0.06, lw=0)
        page.published_line(axes, theirs, "", along="x")
        axes.set_xlim(0.0, reach)
        axes.set_title(f"{words} over {than}")
        axes.set_xlabel("times better" + (", - - published" if page.compares else ""))
        if number % len(PANELS) == 0 or page.width_in < PAGE_IN:
            axes.set_ylabel(WORKLOADS[kind])
        if number % len(PANELS) and page.width_in >= PAGE_IN:
            axes.tick_params(labelleft=False)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """What is drawn, what no scheduler exceeds, and what was idle."""
    lines = [
        f"{settings.jobs} jobs at 0 on {3 * settings.gpus_per_type} GPUs, seeds from {table['seed'].min()}; rates: "
        f"{', '.join(dict.fromkeys(table['rates']))}. Bars: means with 95 % intervals. Dashed: published. "
        "Dotted red: the factor that no scheduler exceeds, certified, mean over the seeds; below by seed."
    ]
    for kind, rows in table.groupby("workload", sort=False):
        parts = []
        for system, column, words in (
            ("Gavel", "limit_ttd", "TTD over Gavel"),
            ("Gavel", "limit_jct", "mean JCT over Gavel"),
            ("YARN-CS", "limit_jct", "mean JCT over YARN-CS"),
        ):
            most = range_of(rows, system, column)
            if most is not None:
                ends = dict.fromkeys(at_most(value) for value in most)
                parts.append(f"{words} {' to '.join(ends)}")
        idle = rows.groupby("system", sort=False)["idle_waiting"].mean().dropna()
        said = ", ".join(f"{name} {value:.0%}" for name, value in idle.items())
        lines.append(
            f"{WORKLOADS[str(kind)]}: limits of {'; '.join(parts)}. GPU time idle while a job waits: {said}."
        )
    return " ".join(lines)


def ours(
    kind: str, better: str, than: str, column: str
) -> Callable[[pd.DataFrame], Estimate | None]:
    """A factor of the table, of measured rates only."""

    def found(table: pd.DataFrame) -> Estimate | None:
        rows = table[(table["workload"] == kind) & (table["rates"] != MADE_UP)]
        return ratio_by_seed(rows, better=better, than=than, column=column, on="system")

    return found


def limit_of(kind: str, than: str, column: str) -> Callable[[pd.DataFrame], float | None]:
    """The limit over a baseline, mean over the seeds."""
    return lambda table: mean_limit(table[table["workload"] == kind], than, column)


def over_variants(kind: str, than: str, column: str) -> Callable[[pd.DataFrame], Others | None]:
    """Range of a factor over the variants of Hadar."""

    def found(table: pd.DataFrame) -> Others | None:
        means = (ours(kind, each, than, column)(table) for each in VARIANTS)
        return Others.over(means, "variants of Hadar")

    return found


def beside_jct(kind: str, system: str) -> Callable[[pd.DataFrame], str]:
    """The mean JCT that goes with a TTD."""

    def found(table: pd.DataFrame) -> str:
        jct = ours(kind, system, "Gavel", "mean_jct_h")(table)
        return "" if jct is None else f"Its mean JCT is {jct.text()} times as good as Gavel's."

    return found


VARIANTS = tuple(name for name in SYSTEMS if name.startswith("Hadar"))
COMPARED = (
    ("ttd", "Hadar filled", "Gavel", "ttd_h", "limit_ttd"),
    ("jct", "Hadar 1/JCT filled", "Gavel", "mean_jct_h", "limit_jct"),
    ("jct_yarn", "Hadar 1/JCT filled", "YARN-CS", "mean_jct_h", "limit_jct"),
    ("queueing", "Hadar 1/JCT filled", "Gavel", "mean_queueing_h", None),
    ("ftf", "Hadar 1/JCT filled", "Gavel", "mean_ftf", None),
)
"""Claim, variant that is best in it, baseline, column, and column of its limit."""


def published_on(kind: str) -> Iterator[Published]:
    """The abstracts' factors beside ours on one workload."""
    for key, system, than, column, limited in COMPARED:
        yield published(
            key,
            system,
            WORKLOADS[kind],
            ours(kind, system, than, column),
            limit=None if limited is None else limit_of(kind, than, limited),
            others=over_variants(kind, than, column),
            remark=beside_jct(kind, system) if key == "ttd" else None,
        )


FIGURE = Figure(
    name="hadar_simulation",
    paper="Hadar (IPDPS'24), trace-driven simulation",
    sizes={
        Size.QUICK: Sized(
            Settings(workloads=("classes",), jobs=48, gpus_per_type=8, seeds=1), minutes=0.1
        ),
        Size.DEFAULT: Sized(Settings(), minutes=9.0),
        Size.FULL: Sized(
            Settings(seeds=10, classes_seeds=10, beam=64, systems=(*SYSTEMS, *COPIES)),
            minutes=500.0,
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(*published_on("philly"), *published_on("classes")),
)

if __name__ == "__main__":
    main(FIGURE)
