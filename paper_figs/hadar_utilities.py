"""Hadar: utilities, price bounds and idle GPUs; which of them, if any, has both published factors.

The abstracts report TTD 1.20x (arXiv 2503.10918) and mean JCT 2.5x (IPDPS'24) over Gavel, without the utility
that was used in a way that is public. Here every utility that the policy has meets several bounds of the
prices, with and without jobs on GPUs that prices leave idle, on the workload of ``hadar_simulation.py``: TTD
and mean JCT over Gavel's, beside the factors that no scheduler exceeds (shadowprice.analysis.limits).

Bounds of prices: ``estimated`` from the jobs that are there, in every round (recalled); else U_max and U_min
of the jobs at the beginning, multiplied: ``1``, ``0.1`` or ``10`` times U_max; ``0`` is next to no
price at all, so that payoff alone decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _hadar import CLAIMS, ROUND_S, WORKLOADS, limits, published, table, workload
from _hadar import cluster as nodes
from _hadar import run as run_system
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.page import PAGE_IN
from shadowprice.analysis.plots.style import COLOURS
from shadowprice.analysis.wording import at_most
from shadowprice.solvers.hadar.prices import published_bounds
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
    estimate,
    main,
    require_known,
    setting,
)

UTILITIES = {
    "effective_throughput": "iterations / JCT",
    "completion_time": "1 / JCT",
    "fairness": "time alone / JCT",
}
BOUNDS = {"estimated": "o", "1": "s", "0.1": "v", "10": "^", "0": "X"}
"""Bounds of prices, and their marks."""
WORDS = {
    "estimated": "prices estimated",
    "1": "prices to U_max",
    "0.1": "to U_max / 10",
    "10": "to 10 U_max",
    "0": "next to no prices",
}
PUBLISHED_TTD, PUBLISHED_JCT = 1.20, 2.5
NO_PRICE = 1e-12
GAVEL = "Gavel"


@dataclass(frozen=True)
class Settings:
    """Combinations, and the jobs."""

    workload: str = setting("philly", "philly or classes")
    jobs: int = 480
    gpus_per_type: int = setting(20, "GPUs of each of three types")
    seeds: int = setting(3, "number of seeds, from 0")
    utilities: tuple[str, ...] = tuple(UTILITIES)
    bounds: tuple[str, ...] = setting(("estimated", "1", "0"), f"of prices: {', '.join(BOUNDS)}")
    beam: int = setting(8, "states that Hadar's dual subroutine keeps")
    throughputs: Path | None = setting(None, "Gavel's table, JSON")
    philly: Path | None = setting(None, "Philly trace, flat CSV")


@dataclass(frozen=True)
class Point:
    """A combination on one draw of the jobs; Gavel if the utility is empty."""

    utility: str
    bounds: str
    fill: bool
    seed: int
    workload: str
    jobs: int
    gpus_per_type: int
    beam: int
    throughputs: Path | None
    philly: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Gavel and every combination on every draw."""
    require_known("workload", (settings.workload,), WORKLOADS)
    require_known("utility", settings.utilities, UTILITIES)
    require_known("bounds of prices", settings.bounds, BOUNDS)
    s = settings
    for seed in range(s.seeds):
        yield from crossed(Point, s, utility=("",), bounds=("",), fill=(False,), seed=(seed,))
        yield from crossed(
            Point, s, utility=s.utilities, bounds=s.bounds, fill=(False, True), seed=(seed,)
        )


def run(point: Point) -> list[Row]:
    """TTD and mean JCT of a run; of Gavel's also what any scheduler could gain."""
    rates = table(point.throughputs)
    jobs = workload(point.workload, point.jobs, point.seed, rates, point.philly)
    where = sp.Cluster.parse(nodes(point.gpus_per_type))
    named: Row = {
        "utility": point.utility or GAVEL,
        "bounds": point.bounds or GAVEL,
        "fill": point.fill,
        "seed": point.seed,
        "rates": "made up" if point.throughputs is None else "measured",
    }
    if not point.utility:
        found = run_system(GAVEL, jobs, where)
        named |= limits(found)
    else:
        least, most = price_bounds(point, sp.Instance(where, jobs))
        options = (
            f"utility={point.utility},width={point.beam},fill={str(point.fill).lower()},"
            f"u_min={least!r},u_max={most!r}"
        )
        found = run_system("Hadar", jobs, where, options=options)
    ttd_h, jct_h = found.metrics.ttd_s / 3600, (found.metrics.mean_jct_s or 0.0) / 3600
    return [named | {"ttd_h": ttd_h, "mean_jct_h": jct_h}]


def price_bounds(point: Point, instance: sp.Instance) -> tuple[float, float]:
    """U_min and U_max to give, 0 and 0 where they are estimated in every round."""
    if point.bounds == "estimated":
        return 0.0, 0.0
    jobs, times = instance.workload, instance.processing_s
    fastest = times.min(axis=1)
    numerator = {
        "effective_throughput": jobs.work,
        "completion_time": jobs.weight,
        "fairness": fastest,
    }[point.utility]
    able = np.isfinite(times)
    rounds = np.maximum(np.ceil(np.where(able, times, 0.0) / ROUND_S), 1.0)
    shortest, longest = np.ceil(fastest / ROUND_S), rounds.max(axis=1)
    found = published_bounds(
        numerator / (np.maximum(shortest, 1.0) * ROUND_S),
        numerator / (longest * ROUND_S),
        longest,
        jobs.gpus,
        able,
        instance.cluster.total_gpus,
    )
    least, most = float(found.lowest.min()), float(found.highest.max())
    if point.bounds == "0":
        return NO_PRICE * least, NO_PRICE * least
    scaled = float(point.bounds) * most
    return min(least, scaled), scaled


def factors(table: pd.DataFrame) -> pd.DataFrame:
    """Columns utility, bounds, fill, seed, ttd and jct: times better than Gavel on the same draw."""
    gavel = table[table["utility"] == GAVEL].set_index("seed")
    rows = table[table["utility"] != GAVEL].copy()
    for column, name in (("ttd_h", "ttd"), ("mean_jct_h", "jct")):
        rows[name] = rows["seed"].map(gavel[column]) / rows[column]
    return rows


def most(table: pd.DataFrame, column: str) -> tuple[float, float]:
    """Least and largest limit over the seeds."""
    values = table.loc[table["utility"] == GAVEL, column]
    return float(values.min()), float(values.max())


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """TTD against mean JCT, a mark a combination, mean over the seeds."""
    picture, (axes,) = page.grid(1, 1, 3.6 if page.width_in >= PAGE_IN else 5.6)
    mean = factors(table).groupby(["utility", "bounds", "fill"], sort=False)[["ttd", "jct"]].mean()
    for (utility, bounds, fill), (ttd, jct) in zip(mean.index, mean.to_numpy(), strict=True):
        colour = COLOURS[list(UTILITIES).index(utility)]
        face = colour if fill else "white"
        axes.plot(ttd, jct, BOUNDS[bounds], mec=colour, mfc=face, ms=6, ls="none")
    for name, (utility, words) in enumerate(UTILITIES.items()):
        if utility in settings.utilities:
            axes.plot([], [], "o", color=COLOURS[name], label=words)
    for bounds in settings.bounds:
        axes.plot([], [], BOUNDS[bounds], color="#666666", mfc="white", label=WORDS[bounds])
    axes.plot([], [], "o", color="#666666", label="filled: jobs on idle GPUs")
    for column, label, along in (
        ("limit_ttd", "no scheduler exceeds", "x"),
        ("limit_jct", "", "y"),
    ):
        limit = mean_limit(table, column)
        if limit is not None:
            page.limit_line(axes, limit, label, along=along)
    page.published_curve(
        axes, [PUBLISHED_TTD], [PUBLISHED_JCT], "published", marker="*", linestyle="none", ms=10
    )
    axes.axhline(1.0, color="#BBBBBB", lw=0.8)
    axes.axvline(1.0, color="#BBBBBB", lw=0.8)
    axes.set(xlabel="TTD, times better than Gavel", ylabel="mean JCT, times better than Gavel")
    axes.set_xlim(0.0, None)
    axes.set_ylim(0.0, None)
    if page.width_in >= PAGE_IN:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Best combinations, and whether any has both factors."""
    rows = factors(table)
    keys = ["utility", "bounds", "fill"]
    mean = rows.groupby(keys, sort=False)[["ttd", "jct"]].mean()
    both = mean[(mean["ttd"] >= PUBLISHED_TTD) & (mean["jct"] >= PUBLISHED_JCT)]
    better = mean[(mean["ttd"] >= 1.0) & (mean["jct"] >= 1.0)]
    limit_ttd, limit_jct = most(table, "limit_ttd"), most(table, "limit_jct")
    single = rows.loc[rows["ttd"].idxmax()]
    return (
        f"{settings.jobs} jobs of {WORKLOADS[settings.workload]} on {3 * settings.gpus_per_type} GPUs, means "
        f"over the seeds (n = {settings.seeds}). Best TTD {mean['ttd'].max():.2f}x "
        f"({_named(mean['ttd'].idxmax())}), on one seed {single['ttd']:.2f}x ({_named(tuple(single[keys]))}); "
        f"best mean JCT {mean['jct'].max():.2f}x ({_named(mean['jct'].idxmax())}). Combinations with TTD "
        f"{PUBLISHED_TTD}x and mean JCT {PUBLISHED_JCT}x: {len(both)} of {len(mean)}; no worse than Gavel in "
        f"either: {len(better)}. No scheduler exceeds {at_most(limit_ttd[0])} to "
        f"{at_most(limit_ttd[1])} in TTD and {at_most(limit_jct[0])} to {at_most(limit_jct[1])} in mean JCT (by "
        "seed, certified)."
    )


def _named(key: tuple[str, str, bool]) -> str:
    utility, bounds, fill = key
    return f"{UTILITIES[utility]}, prices {bounds}{', filled' if fill else ''}"


def ours(utility: str, name: str) -> Callable[[pd.DataFrame], Estimate | None]:
    """A utility's factor with estimated prices and jobs on idle GPUs; of measured rates only."""

    def found(table: pd.DataFrame) -> Estimate | None:
        rows = factors(table[table["rates"] == "measured"])
        rows = rows[(rows["utility"] == utility) & (rows["bounds"] == "estimated") & rows["fill"]]
        return None if rows.empty else estimate(rows[name])

    return found


def over_combinations(name: str) -> Callable[[pd.DataFrame], Others | None]:
    """Range of a factor over all utilities, bounds and fills."""

    def found(table: pd.DataFrame) -> Others | None:
        rows = factors(table[table["rates"] == "measured"])
        means = rows.groupby(["utility", "bounds", "fill"])[name].mean()
        return Others.over(means, "utilities, bounds and fills")

    return found


def limit_by_seed(table: pd.DataFrame, column: str) -> pd.Series:
    """The limit over Gavel on each seed."""
    return table.loc[table["utility"] == GAVEL, column]


def mean_limit(table: pd.DataFrame, column: str) -> float | None:
    """Its mean over the seeds."""
    found = limit_by_seed(table, column)
    return None if found.empty else float(found.mean())


def beside(utility: str, key: str) -> Callable[[pd.DataFrame], str]:
    """On how many seeds the limit is below the published factor, and the other factor of the same runs."""

    def found(table: pd.DataFrame) -> str:
        limit = limit_by_seed(table, f"limit_{key}")
        value, other = CLAIMS[key][1], "jct" if key == "ttd" else "ttd"
        same = ours(utility, other)(table)
        if same is None:
            return ""
        words = {"jct": "mean JCT", "ttd": "TTD"}[other]
        return (
            f"The limit is below {value:g} on {int((limit < value).sum())} of {len(limit)} seeds; the {words} of the "
            f"same runs is {same.text()} times as good as Gavel's."
        )

    return found


def published_here() -> Iterator[Published]:
    """The abstracts' factors beside the utility that comes closest to each."""
    for key, utility in (("ttd", "fairness"), ("jct", "completion_time")):
        yield published(
            key,
            f"utility {UTILITIES[utility]}, filled",
            WORKLOADS["philly"],
            ours(utility, key),
            limit=lambda table, key=key: mean_limit(table, f"limit_{key}"),
            others=over_combinations(key),
            remark=beside(utility, key),
        )


FIGURE = Figure(
    name="hadar_utilities",
    paper="Hadar (IPDPS'24; arXiv 2503.10918), utilities and price bounds (the search is ours)",
    sizes={
        Size.QUICK: Sized(Settings("classes", 48, 8, 1, bounds=("estimated", "0")), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=7.0),
        Size.FULL: Sized(Settings(seeds=10, bounds=tuple(BOUNDS), beam=64), minutes=200.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(published_here()),
)

if __name__ == "__main__":
    main(FIGURE)
