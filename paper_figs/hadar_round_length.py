"""HadarE (arXiv 2503.10918), slot-time sweep: CRU, TTD and JCT against the length of a round.

The lab cluster of ``hadare_clusters.py`` with one mix. The paper's numbers are not known. Here a restart
costs 10 s and averaging copies, an assumption, 10 s for each round with several copies of a job. Time
spent on either counts as busy in CRU, hence a line beside it without overheads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _hadar import COLOUR_OF, COPIES, POLICIES, RESTART_S, table
from _hadare import AGGREGATION_S, CLUSTERS, mix, system_on
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import NullLocator, StrMethodFormatter

from shadowprice.studies.figures import (
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    main,
    require_known,
    setting,
)


@dataclass(frozen=True)
class Settings:
    """Lengths of a round, and the jobs."""

    rounds_s: tuple[float, ...] = setting(
        (45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 2880.0), "lengths of a round [s]"
    )
    seeds: int = setting(10, "draws of the jobs")
    cluster: str = setting("lab", "AWS or lab")
    jobs: int = setting(8, "n of the mix M-n")
    aggregation_s: float = setting(AGGREGATION_S, "averaging the copies of a job, a round [s]")
    systems: tuple[str, ...] = ("Hadar", "HadarE")
    throughputs: Path | None = setting(None, "Gavel's table, JSON")


@dataclass(frozen=True)
class Point:
    """A draw with rounds of one length, under all systems."""

    round_s: float
    seed: int
    cluster: str
    jobs: int
    aggregation_s: float
    systems: tuple[str, ...]
    throughputs: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Every draw with every length."""
    require_known("cluster", (settings.cluster,), CLUSTERS)
    require_known("system", settings.systems, {**POLICIES, **COPIES})
    return crossed(Point, settings, seed=range(settings.seeds), round_s=settings.rounds_s)


def run(point: Point) -> list[Row]:
    """A row of metrics for every system."""
    jobs = mix(point.jobs, point.seed, point.cluster, table(point.throughputs))
    found = [
        system_on(
            system,
            point.cluster,
            jobs,
            aggregation_s=point.aggregation_s,
            round_s=point.round_s,
        )
        for system in point.systems
    ]
    named: Row = {"seed": point.seed, "jobs": point.jobs}
    return [named | each for each in found]


PANELS = {"cru": "CRU [share of node time]", "ttd_h": "TTD [h]", "mean_jct_h": "mean JCT [h]"}


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A panel a metric, a line a system."""
    picture, panels = page.grid(1, len(PANELS), 2.3)
    for axes, (column, words) in zip(panels, PANELS.items(), strict=True):
        page.lines(
            axes,
            table,
            x="round_s",
            y=column,
            by="system",
            order=settings.systems,
            colours=COLOUR_OF,
        )
        if column == "cru":
            for name, rows in table.groupby("system", sort=False):
                useful = rows.groupby("round_s")["useful"].mean()
                axes.plot(useful, ls="--", lw=1.0, color=COLOUR_OF[str(name)])
        axes.set(xlabel="length of a round [s]", title=words, xscale="log")
        axes.set_ylim(0, 1.05 if column == "cru" else 1.15 * table[column].max())
        axes.set_xticks(list(settings.rounds_s)[::2])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    panels[1].legend(loc="lower left")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """The best length of a round for each system and metric."""
    said = []
    for name, rows in table.groupby("system", sort=False):
        mean = rows.groupby("round_s")[list(PANELS)].mean()
        best = f"{mean['ttd_h'].idxmin():.0f} s for TTD, {mean['mean_jct_h'].idxmin():.0f} s for mean JCT"
        said.append(f"{name} {best}")
    return (
        f"{settings.cluster} cluster, mix M-{settings.jobs}, means over the draws of the jobs "
        f"(n = {settings.seeds}) with 95 % intervals; "
        f"a restart costs {RESTART_S:.0f} s, averaging copies {settings.aggregation_s:.0f} s a round. "
        f"Dashed: CRU without these. Best lengths here: {'; '.join(said)}."
    )


FIGURE = Figure(
    name="hadar_round_length",
    paper="HadarE (arXiv 2503.10918), length of a round",
    sizes={
        Size.QUICK: Sized(Settings(rounds_s=(90.0, 360.0, 1440.0), seeds=1), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=1.0),
        Size.FULL: Sized(
            Settings((30.0, 45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 2880.0, 5760.0), 20),
            minutes=3.0,
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
