"""A-SRPT against the baselines in a burst: all jobs arrive within a small part of the time that they take.

Jobs of the setting of :mod:`asrpt_load` at a load of 1,000: what the theorem is about, total completion time, is then
decided by the order of the jobs and not by when they arrive. Every cost is over the certified lower bound of any
scheduler on the same instance. The paper's own settings are not known; these are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from _asrpt import (
    ANY,
    BASELINES,
    COLOUR,
    OURS,
    POLICIES,
    SCENARIOS,
    STRICT,
    network,
    rows_of,
    scenario,
    trace,
)
from matplotlib.figure import Figure as Picture

from shadowprice.studies.figures import (
    Estimate,
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    ratio_by_seed,
    require_known,
    setting,
)

BURST_LOAD = 1_000.0


@dataclass(frozen=True)
class Settings:
    """Scenarios of one burst."""

    scenarios: tuple[str, ...] = setting(("fast-nic", "slow-nic"), f"of {', '.join(SCENARIOS)}")
    load: float = setting(BURST_LOAD, "share of the cluster's time that jobs ask for")
    jobs: int = setting(500, "jobs")
    gpus: int = setting(64, "GPUs, in nodes of 8")
    seeds: int = setting(10, "number of seeds, from 0")


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
    return crossed(Point, settings, scenario=settings.scenarios, seed=range(settings.seeds))


def run(point: Point) -> list[Row]:
    """One row for each policy, and one for the bound."""
    under = scenario(point.scenario)
    of = network(under.nic_gb_per_s)
    jobs = trace(point.jobs, point.load, point.gpus, point.seed, of, under.gang_shares)
    where: Row = {"scenario": point.scenario, "seed": point.seed}
    return [{**where, **row} for row in rows_of(under, POLICIES, jobs, point.gpus)]


def over_bound(table: pd.DataFrame, column: str) -> dict[str, Estimate]:
    """A cost of each policy over the bound of any scheduler."""
    found = {}
    for name in POLICIES:
        ratio = ratio_by_seed(table, better=ANY, than=name, column=column, least=1.0)
        if ratio is not None:
            found[name] = ratio
    return found


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Total completion time over its bound, a panel for each scenario."""
    picture, every = page.grid(1, len(settings.scenarios), 2.9)
    for axes, name in zip(every, settings.scenarios, strict=True):
        found = over_bound(table[table["scenario"] == name], "total_completion_s")
        page.bars(axes, found, form=".2f", colours=COLOUR)
        axes.set(title=scenario(name).title, xlabel="total completion time / bound")
        page.limit_line(axes, 1.0, "any scheduler", along="x")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """What every form of A-SRPT costs over the best baseline, and the strict one over each."""
    said = []
    for name in settings.scenarios:
        mine = table[table["scenario"] == name]
        wide = mine.pivot_table(index="seed", columns="policy", values="jct_s")
        best = wide[list(BASELINES)].min(axis=1)
        to_best = ", ".join(f"{each} {estimate(wide[each] / best).text()}" for each in OURS)
        to_each = ", ".join(
            f"{each} {estimate(wide[STRICT] / wide[each]).text()}" for each in BASELINES
        )
        bound = over_bound(mine, "total_completion_s")[STRICT]
        said.append(
            f"{scenario(name).title}: {to_best}; {STRICT} over each: {to_each}; its total completion time is "
            f"{bound.text()} of the bound."
        )
    return (
        f"{settings.jobs} jobs at load {settings.load:g} on {settings.gpus} GPUs, {settings.seeds} seeds. Mean JCT "
        "over that of the best baseline of each instance. " + " ".join(said)
    )


FIGURE = Figure(
    name="asrpt_burst",
    paper="A-SRPT (arXiv 2501.05563), evaluation; settings ours",
    sizes={
        Size.QUICK: Sized(Settings(jobs=60, seeds=2), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=0.5),
        Size.FULL: Sized(Settings(scenarios=tuple(SCENARIOS), jobs=2_000, seeds=30), minutes=20.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
