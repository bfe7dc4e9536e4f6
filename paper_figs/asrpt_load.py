"""A-SRPT against the baselines over load: mean JCT, and total completion time, the objective of its theorem.

64 GPUs. A-SRPT itself starts no job before its virtual completion, as the theorem asks. Stretched: the virtual
machine is slower by 1.25. Early: jobs may start before; overtaking: and pass those that do not fit, as the WCS
baselines do, which gives up the guarantee. With a fast NIC; with a slow one and baselines placed first-fit; with
many narrow gangs, in the manner of PAI's trace; and with predictions by the random forest where the others
are told the truth. The paper's own settings are not known; these are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from _asrpt import (
    ANY,
    OURS,
    POLICIES,
    SCENARIOS,
    STRICT,
    draw_ratios,
    log_axis,
    network,
    relative,
    rows_of,
    scenario,
    trace,
)
from matplotlib.figure import Figure as Picture

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

INSTANCE = ["scenario", "load", "seed"]


@dataclass(frozen=True)
class Settings:
    """Loads of every scenario."""

    scenarios: tuple[str, ...] = setting(tuple(SCENARIOS), f"of {', '.join(SCENARIOS)}")
    loads: tuple[float, ...] = setting(
        (0.3, 0.5, 0.7, 0.8, 0.9), "shares of the cluster's time that jobs ask for"
    )
    jobs: int = setting(2_000, "jobs")
    gpus: int = setting(64, "GPUs, in nodes of 8")
    seeds: int = setting(5, "number of seeds, from 0")


@dataclass(frozen=True)
class Point:
    """All policies on one instance."""

    scenario: str
    load: float
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """All instances."""
    require_known("scenario", settings.scenarios, SCENARIOS)
    seeds = range(settings.seeds)
    return crossed(Point, settings, scenario=settings.scenarios, load=settings.loads, seed=seeds)


def run(point: Point) -> list[Row]:
    """One row for each policy, and one for the bound."""
    under = scenario(point.scenario)
    of = network(under.nic_gb_per_s)
    jobs = trace(point.jobs, point.load, point.gpus, point.seed, of, under.gang_shares)
    where: Row = {"scenario": point.scenario, "load": point.load, "seed": point.seed}
    return [{**where, **row} for row in rows_of(under, POLICIES, jobs, point.gpus)]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Mean JCT over that of the best baseline in every scenario; total completion time in the first two."""
    shown = [("jct_s", name) for name in settings.scenarios]
    shown += [("total_completion_s", name) for name in settings.scenarios[:2]]
    rows = -(-len(shown) // 2)
    picture, every = page.grid(rows, 2, 2.3 * rows + 0.7)
    for axes, (column, name) in zip(every, shown, strict=False):
        mine = relative(table[table["scenario"] == name], column, INSTANCE)
        draw_ratios(page, axes, mine, "load")
        axes.set(title=scenario(name).title, xlabel="load", xticks=settings.loads)
        if column == "jct_s":
            axes.set_ylabel("mean JCT / best baseline")
            log_axis(axes, mine.groupby(["policy", "load"])["ratio"].mean())
        else:
            axes.set_ylabel("total completion / best baseline")
    for axes in every[len(shown) :]:
        axes.set_visible(False)
    handles, labels = every[0].get_legend_handles_labels()
    columns = 4 if page.width_in > 4 else 2
    picture.legend(handles, labels, loc="outside lower center", ncols=columns)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Range over the loads of each form of A-SRPT, and of what was possible, in every scenario."""
    said = []
    for name in settings.scenarios:
        mine = relative(table[table["scenario"] == name], "jct_s", INSTANCE)
        mean = mine.groupby(["policy", "load"])["ratio"].mean()
        ranges = [
            f"{policy} {mean[policy].min():.2f} to {mean[policy].max():.2f}"
            for policy in (*OURS, ANY)
        ]
        total = relative(table[table["scenario"] == name], "total_completion_s", INSTANCE)
        most = total[total["policy"] == STRICT].groupby("load")["ratio"].mean().max()
        said.append(
            f"{scenario(name).title}: {', '.join(ranges)}; total completion time of {STRICT} at most {most:.4f}."
        )
    return (
        f"{settings.jobs:,} jobs on {settings.gpus} GPUs, {settings.seeds} seeds, mean over them by load. Mean JCT "
        "over that of the best of five baselines, which is chosen for each instance. "
        + " ".join(said)
    )


FIGURE = Figure(
    name="asrpt_load",
    paper="A-SRPT (arXiv 2501.05563), evaluation; settings ours",
    sizes={
        Size.QUICK: Sized(Settings(loads=(0.5, 0.9), jobs=100, seeds=1), minutes=0.15),
        Size.DEFAULT: Sized(Settings(), minutes=6.0),
        Size.FULL: Sized(
            Settings(loads=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), seeds=30), minutes=50.0
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
