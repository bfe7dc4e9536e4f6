"""Our own, on Hadar's theorem: certified ratio of runs against the demand fraction theta.

The published guarantee 2 alpha asks for demands that are tiny beside a node. Here every run of the
commit-once algorithm certifies itself: D / P, its repaired dual value over the utility it earned, is no
less than OPT / P (proofs.hadar.run_certificate), and is drawn beside the theorem's bound for gangs of that
size, 2 alpha_theta (proofs.hadar.competitive). 'reserved' prices reach the top before a gang might not
fit, and the bound holds; with the published ones, at the top when a node is full, it does not where
capacity refuses a job that the prices admit. Black bars are where OPT / P is, by branch and price, for runs
with few jobs: a dot if proven. No paper has this picture.

One node of 16 V100s and one of 16 P100s at 0.6 of the speed, 12 rounds; gangs are powers of two, equally
frequent, up to theta times 16; jobs of 1 to 4 rounds on V100s arrive in the first 6 rounds, their number
such that they ask for 1.2 times the GPUs' time; utility: iterations over time in the system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import FixedLocator, NullLocator

import shadowprice as sp
from shadowprice.analysis.plots.style import COLOURS, GREY
from shadowprice.errors import InputError
from shadowprice.instances.utility import effective_throughput
from shadowprice.proofs.hadar.competitive import commit_once
from shadowprice.proofs.hadar.run_certificate import certify
from shadowprice.solvers.hadar.commit_schedule import committable_jobs
from shadowprice.solvers.hadar.offline.optimum import optimum
from shadowprice.studies.figures import Figure, Page, Row, Size, Sized, crossed, main, setting

NODE_GPUS, ROUNDS, ROUND_S, LOAD = 16, 12, 360.0, 1.2
CLUSTER = f"1x{NODE_GPUS}:v100,1x{NODE_GPUS}:p100"
SPEEDS = (10.0, 6.0)
LONGEST_ROUNDS = 4.0
PRICES = {"reserved": COLOURS[0], "published": COLOURS[1]}


@dataclass(frozen=True)
class Settings:
    """Gangs, draws, and how long an optimum is looked for."""

    largest_gangs: tuple[int, ...] = setting(
        (1, 2, 4, 8, 16), "largest gangs, powers of 2 up to 16"
    )
    seeds: int = setting(10, "draws of the jobs")
    optimum_s: float = setting(3.0, "time for an optimum [s]")
    optimum_jobs: int = setting(60, "most jobs whose optimum is tried")


@dataclass(frozen=True)
class Point:
    """One draw of the jobs."""

    largest_gang: int
    seed: int
    optimum_s: float
    optimum_jobs: int


def points(settings: Settings) -> Iterator[Point]:
    """Every draw for every size of gangs."""
    for gang in settings.largest_gangs:
        if gang not in (1, 2, 4, 8, NODE_GPUS):
            raise InputError(f"largest gang {gang}, expected a power of 2 up to {NODE_GPUS}")
    return crossed(Point, settings, largest_gang=settings.largest_gangs, seed=range(settings.seeds))


def instance(largest: int, seed: int) -> sp.Instance:
    """Jobs with gangs up to a size, as many as the load asks for."""
    rng = np.random.default_rng([seed, largest])
    where = sp.Cluster.parse(CLUSTER)
    sizes = 2 ** np.arange(largest.bit_length())
    each = sizes.mean() * (1.0 + LONGEST_ROUNDS) / 2.0
    jobs = round(LOAD * where.total_gpus * ROUNDS / each)
    rounds = 1.0 + (LONGEST_ROUNDS - 1.0) * rng.random(jobs)
    return sp.Instance(
        where,
        sp.Workload.from_columns(
            arrival_s=np.sort(rng.integers(0, ROUNDS // 2, jobs)) * ROUND_S,
            gpus=rng.choice(sizes, jobs),
            work=np.floor(rounds * ROUND_S * SPEEDS[0]),
            throughput=np.tile(SPEEDS, (jobs, 1)),
            gpu_types=("v100", "p100"),
            source=f"gangs up to {largest}, seed {seed}",
        ),
    )


def run(point: Point) -> list[Row]:
    """One row for either kind of prices; no optimum where there are too many jobs."""
    given = instance(point.largest_gang, point.seed)
    utility = effective_throughput(given, ROUND_S, ROUNDS)
    tasks, cluster = committable_jobs(given, utility), given.cluster
    size, kinds = cluster.gpus_per_node, cluster.type_of_node
    found = None
    if len(tasks) <= point.optimum_jobs:
        found = optimum(given, utility, time_limit_s=point.optimum_s)
    rows: list[Row] = []
    for prices in PRICES:
        made = commit_once(tasks, size, kinds, ROUNDS, reserved=prices == "reserved")
        proof = certify(tasks, size, kinds, made.prices, made.earned)
        earned = float(made.earned)
        known: Row = {}
        if found is not None:
            known = {
                "optimum_at_least": max(found.value / earned, 1.0),
                "optimum_at_most": found.bound / earned,
            }
        rows.append(
            {
                "prices": prices,
                "theta": point.largest_gang / NODE_GPUS,
                "seed": point.seed,
                "jobs": len(tasks),
                "committed": sum(each is not None for each in made.commitments),
                "certified": float(proof.dual) / earned,
                "bound": 2.0 * made.alpha,
                "conflicts": sum(delta > 0 for delta in made.conflicts),
                **known,
            }
        )
    return rows


def boxes(axes: Axes, table: pd.DataFrame) -> None:
    """Boxes of certified ratios, bars where the true ones are."""
    thetas = np.unique(table["theta"])
    for (prices, colour), shift in zip(PRICES.items(), (0.86, 1.16), strict=True):
        mine = table[table["prices"] == prices]
        drawn = axes.boxplot(
            [mine.loc[mine["theta"] == theta, "certified"] for theta in thetas],
            positions=thetas * shift,
            widths=thetas * 0.22,
            manage_ticks=False,
            patch_artist=True,
            medianprops={"color": "black"},
            flierprops={"ms": 3},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.6)
        drawn["boxes"][0].set_label(f"D / P, {prices}")
        if "optimum_at_least" in mine:
            mine = mine.dropna(subset=["optimum_at_least"])
            # Side by side, in the order of the draws.
            beside = shift * (0.92 + 0.16 * mine["seed"] / max(mine["seed"].max(), 1))
            low, high = mine["optimum_at_least"], mine["optimum_at_most"]
            label = "OPT / P" if prices == "reserved" else None
            axes.vlines(
                mine["theta"] * beside, 0.99 * low, 1.01 * high, color="black", lw=2, label=label
            )
    axes.axhline(1.0, color=GREY, ls=":", lw=1)
    axes.set(xscale="log", xlabel="largest gang / GPUs of a node")
    axes.xaxis.set_major_locator(FixedLocator(thetas.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{theta:.3g}" for theta in thetas])


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Left with the theorem's bounds, right what is certified alone."""
    picture, (left, right) = page.grid(1, 2, 3.0)
    for axes in (left, right):
        boxes(axes, table)
    for prices, colour in PRICES.items():
        bound = table[table["prices"] == prices].groupby("theta")["bound"].mean()
        dashed = "-" if prices == "reserved" else "--"
        left.plot(bound, color=colour, ls=dashed, label=f"$2\\,\\alpha_\\theta$, {prices}")
    left.set(yscale="log", title="with the theorem's bounds")
    left.set_ylabel("optimum over what was earned, at most")
    left.set_ylim(top=left.get_ylim()[1] * 1000)  # room for the legend
    left.legend(loc="upper left")
    right.set(title="what runs certify", ylim=(0, None))
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Bounds, certified ratios, and how often the published prices void the bound."""
    reserved, published = (table[table["prices"] == prices] for prices in PRICES)
    refused = (published["conflicts"] > 0).mean()
    lines = [
        f"Boxes over the draws of the jobs (n = {settings.seeds}). Reserved prices: the bound is "
        f"{reserved['bound'].min():.0f} to {reserved['bound'].max():,.0f}, "
        f"certified is at most {reserved['certified'].max():.2f}, median "
        f"{reserved['certified'].median():.2f}; published prices: median {published['certified'].median():.2f}, and in "
        f"{refused:.0%} of the runs capacity refuses a job that they admit, where no bound follows."
    ]
    if "optimum_at_least" in table and table["optimum_at_least"].notna().any():
        few = table.dropna(subset=["optimum_at_least"])
        low, high = few["optimum_at_least"].median(), few["optimum_at_most"].median()
        lines.append(
            f"Runs with at most {settings.optimum_jobs} jobs: OPT / P is {low:.2f} to {high:.2f} where D / P is "
            f"{few['certified'].median():.2f} (medians)."
        )
    return " ".join(lines)


FIGURE = Figure(
    name="hadar_certified_ratio",
    paper="Hadar's theorem, certified by runs (ours; no paper has this picture)",
    sizes={
        Size.QUICK: Sized(Settings((4, 8, 16), 2, 1.0, 40), minutes=0.15),
        Size.DEFAULT: Sized(Settings(), minutes=5.0),
        Size.FULL: Sized(Settings(seeds=100, optimum_s=30.0), minutes=200.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
