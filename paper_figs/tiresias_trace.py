"""Tiresias (NSDI'19), Table 5 and Figure 13: a large trace, JCTs over those of Tiresias-L.

The trace, of a Microsoft cluster, is not public. Two stand-ins, 12,000 jobs on 512 GPUs: ``services`` has GPU
times of the public sample of that trace (``--samples FILE`` takes another one), ``durations`` those of Figure 19;
see the generators ``gpu-time-sample`` and ``tiresias-trace``. The load is not published: all of ``--loads`` are run.
K = 2, threshold one GPU-hour; no charges, as there. Gandiva is that of the public simulator; as it moves jobs
every 10 s it has a quarter of the jobs and of the GPUs, and is set beside Tiresias-L on these.

What differs: gangs are drawn apart from services and durations; load, cluster and number of jobs are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _measures import STATISTICS, clear_of_marks, measured, statistics
from _tiresias import OURS, simulate
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.plots.style import colour_of
from shadowprice.analysis.wording import at_most
from shadowprice.errors import InputError
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
    estimate,
    main,
    require_known,
    setting,
)

THRESHOLD_GPU_S = 3600.0
VARIANTS = {"services": "gpu-time-sample", "durations": "tiresias-trace"}
"""Generator of each stand-in."""

ANY = "any scheduler"
"""Its mean JCT is that of YARN-CS over its certified limit: no scheduler has a shorter one."""

PART = "services, part"
"""The smaller workload of Gandiva."""

TABLE_5 = {
    "YARN-CS": (2.41, 30.85, 1.25),
    "Best-effort": (1.50, 9.03, 1.08),
    "SRTF": (1.00, 1.00, 0.84),
    "Gandiva": (2.00, 2.59, 2.08),
    "Tiresias-G": (0.97, 1.00, 0.85),
}
"""Mean, median and 95th percentile over those of Tiresias-L."""


@dataclass(frozen=True)
class Settings:
    """Workloads and cluster."""

    variants: tuple[str, ...] = setting(
        tuple(VARIANTS), "stand-ins for the trace: services, durations"
    )
    loads: tuple[float, ...] = setting((0.9, 1.0, 1.12), "offered loads")
    table_load: float = setting(1.12, "load at which services are set beside Table 5")
    seeds: int = setting(10, "number of seeds, 0..n-1")
    jobs: int = setting(12_000, "number of jobs")
    nodes: int = setting(64, "nodes of 8 GPUs")
    part: int = setting(4, "Gandiva has 1/part of jobs and nodes")
    samples: Path | None = setting(
        None, "file of GPU times, one a line; the public one if not given"
    )


@dataclass(frozen=True)
class Point:
    """One scheduler on the jobs of one stand-in, load and seed."""

    variant: str
    load: float
    seed: int
    system: str
    jobs: int
    nodes: int
    samples: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Every scheduler at every load; Gandiva, the longest, first."""
    require_known("variant", settings.variants, VARIANTS)
    if not 1 <= settings.part <= min(settings.nodes, settings.jobs):
        raise InputError(f"--part: got {settings.part}, expected 1 to the number of nodes and jobs")
    if "services" in settings.variants:
        size = settings.jobs // settings.part, settings.nodes // settings.part
        for seed in range(settings.seeds):
            for system in ("Gandiva", "Tiresias-L"):
                yield Point(PART, settings.table_load, seed, system, *size, settings.samples)
    for variant in settings.variants:
        for load in sorted({*settings.loads, settings.table_load}):
            for seed in range(settings.seeds):
                for system in (*OURS, ANY):
                    size = settings.jobs, settings.nodes
                    yield Point(variant, load, seed, system, *size, settings.samples)


def run(point: Point) -> list[Row]:
    """Statistics of the JCT [s]; of any scheduler the certified lower bound of the mean."""
    measured_services = point.variant != "durations"
    jobs = sp.generate(
        VARIANTS["services" if measured_services else "durations"],
        jobs=point.jobs,
        seed=point.seed,
        load=point.load,
        gpus_total=8 * point.nodes,
        **({"samples": point.samples} if measured_services else {}),
    )
    simulator = "public" if point.system == "Gandiva" else "ours"
    system = "YARN-CS" if point.system == ANY else point.system
    found = simulate(jobs, f"{point.nodes}x8", simulator, system, limit=THRESHOLD_GPU_S)
    key: Row = {
        "variant": point.variant,
        "load": point.load,
        "seed": point.seed,
        "system": point.system,
    }
    if point.system == ANY:
        least_s = float(found.jct_s.mean()) / limit(found, Measure.MEAN_JCT).ratio
        return list(measured(key, {"mean": least_s}))
    return list(measured(key, statistics(found.jct_s)))


def relative(table: pd.DataFrame, variant: str, load: float, measure: str) -> pd.DataFrame:
    """A measure of every system over that of Tiresias-L, a row a seed and a column a system."""
    rows = (table.variant == variant) & (table.load == load) & (table.measure == measure)
    wide = table[rows].pivot_table(index="seed", columns="system", values="value")
    return wide.div(wide["Tiresias-L"], axis=0) if "Tiresias-L" in wide else wide


def ratio(
    table: pd.DataFrame, variant: str, load: float, measure: str, system: str
) -> Estimate | None:
    """The same of one system over seeds; None without rows. Gandiva's is on its smaller workload."""
    if system == "Gandiva":
        variant = PART
    wide = relative(table, variant, load, measure)
    if system not in wide or "Tiresias-L" not in wide:
        return None
    values = wide[system].dropna()
    return estimate(values) if len(values) else None


def best_possible(table: pd.DataFrame, variant: str, load: float) -> float | None:
    """Certified best factor in mean JCT over YARN-CS that any scheduler could have, mean over seeds."""
    wide = relative(table, variant, load, "mean")
    if ANY not in wide or "YARN-CS" not in wide:
        return None
    return float((wide["YARN-CS"] / wide[ANY]).mean())


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Table 5 in three panels, and the two of its factors that depend most on the load."""
    picture, panels = page.grid(2, 2, 4.6)
    at = settings.table_load
    for place, (axes, measure) in enumerate(zip(panels, STATISTICS, strict=False)):
        shown = {
            system: found
            for system in TABLE_5
            if (found := ratio(table, "services", at, measure, system)) is not None
        }
        if not shown:
            axes.set_axis_off()
            continue
        page.bars(axes, shown, colours=dict.fromkeys(shown, colour_of(0)))
        values = [TABLE_5[system][place] for system in shown]
        page.published_curve(
            axes,
            values,
            range(len(shown)),
            "published",
            linestyle="none",
            marker="|",
            markersize=14,
            markeredgewidth=1.6,
        )
        most = max(*(found.high for found in shown.values()), *(values if page.compares else ()))
        axes.set_xlim(0, 1.25 * most)
        if measure == "median":  # Spans a factor of 30 as published.
            axes.set_xscale("log")
            axes.set_xlim(0.2, 3 * most)
            axes.xaxis.set_major_formatter("{x:g}")
        if page.compares:
            clear_of_marks(axes, dict(enumerate(values)))
        axes.set_title(f"{measure} JCT, load {at:g}")
        axes.set_xlabel("over Tiresias-L" + (", | published" if page.compares else ""))
    by_load(table, settings, page, panels[3])
    return picture


def by_load(table: pd.DataFrame, settings: Settings, page: Page, axes: Axes) -> None:
    """Mean JCT of YARN-CS over Tiresias-L by load."""
    rows = [
        {"variant": variant, "load": load, "seed": seed, "ratio": value}
        for variant in settings.variants
        for load in sorted(table.load.unique())
        for seed, value in relative(table, variant, load, "mean")["YARN-CS"].dropna().items()
    ]
    page.lines(axes, pd.DataFrame(rows), x="load", y="ratio", by="variant", order=list(VARIANTS))
    page.published_line(axes, TABLE_5["YARN-CS"][0], "published")
    loads = sorted(table.load.unique())
    for place, variant in enumerate(settings.variants):
        most = [best_possible(table, variant, load) for load in loads]
        if page.compares and None not in most:
            axes.plot(
                loads, most, color=colour_of(place), linestyle=":", label="limit" if place else "_"
            )  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    axes.set_title("mean JCT by load")
    axes.set_xlabel("offered load")
    axes.set_ylabel("YARN-CS / Tiresias-L")
    axes.legend(loc="upper left")


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Workload, and what YARN-CS and Gandiva lose."""
    at = settings.table_load
    said = (
        f"{settings.jobs:,} jobs on {8 * settings.nodes} GPUs, {settings.seeds} seeds; JCT over that of "
        "Tiresias-L."
    )
    for variant in settings.variants:
        found = ratio(table, variant, at, "mean", "YARN-CS")
        if found is not None:
            said += f" With {variant} at load {at:g} the mean JCT under YARN-CS is {found.text()} times as long."
    most = best_possible(table, "services", at)
    if most is not None:
        said += (
            f" No scheduler whatever is more than {at_most(most)} better than YARN-CS on these services, on average "
            "over the seeds."
        )
    gandiva = ratio(table, "services", at, "mean", "Gandiva")
    if gandiva is not None:
        said += (
            f" Under the public simulator's Gandiva, on 1/{settings.part} of jobs and GPUs, it is "
            f"{gandiva.text()} times."
        )
    return said


def over_settings(table: pd.DataFrame, measure: str, system: str) -> Others | None:
    """Range over all stand-ins and loads that were run; Gandiva has one of each."""
    if system == "Gandiva":
        chosen = [ratio(table, PART, load, measure, system) for load in table.load.unique()]
        return Others.over(chosen, "loads")
    found = [
        ratio(table, variant, load, measure, system)
        for variant in VARIANTS
        for load in table.load.unique()
    ]
    return Others.over(found, "stand-ins and loads")


def published(system: str, place: int, value: float) -> Published:
    """An entry of Table 5 beside the services of the public sample."""
    measure = STATISTICS[place]
    smaller = system == "Gandiva"
    part = Settings().part if smaller else 1
    size = f"{Settings().jobs // part:,} jobs, {8 * (Settings().nodes // part)} GPUs"
    of = "of the other schedulers" if smaller else "that were run"
    return Published(
        system="Tiresias",
        place="NSDI'19, Table 5",
        what=f"{system} / Tiresias-L, {measure} JCT, large trace",
        value=value,
        unit="x",
        ours=lambda table: ratio(table, "services", 1.12, measure, system),
        settings=f"{size}, public sample of GPU times, load 1.12",
        cause=Cause.NOT_PUBLIC,
        why="Arrivals, gangs and cluster of the trace are not public; of its services a sample is. The load was "
        f"picked among those {of}.",
        printed=f"{value:.2f}",
        independence=Independence.ONE_OF_MANY,
        others=lambda table: over_settings(table, measure, system),
        limit=(lambda table: best_possible(table, "services", 1.12))
        if (system, measure) == ("YARN-CS", "mean")
        else None,
    )


FIGURE = Figure(
    name="tiresias_trace",
    paper="Tiresias (NSDI'19), Table 5 and Figure 13",
    sizes={
        Size.QUICK: Sized(Settings(jobs=500, nodes=8, seeds=2, part=2, loads=(1.0,)), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=7.0),
        Size.FULL: Sized(Settings(seeds=30, loads=(0.8, 0.9, 1.0, 1.12, 1.25)), minutes=25.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(
        published(system, place, value)
        for system, values in TABLE_5.items()
        for place, value in enumerate(values)
    ),
)

if __name__ == "__main__":
    main(FIGURE)
