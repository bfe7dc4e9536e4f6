"""Gandiva (OSDI'18), section 6.4 and Figure 15: packing 1,000 jobs on 180 GPUs.

Published: mean GPU utilisation 62.8 % with packing and 50.1 % without, between minutes 20 and 200 (25 % more, printed
as 26 %); mean time until a job has done its first 100 minibatches 498 s against 2,203 s of a baseline that bin-packs
jobs without oversubscription (4.4 times sooner).

What differs: all 180 GPUs are alike, since relative speeds of P100 and P40 are not published; at most two jobs share;
a job has a turn alone before it is packed, so turns are on; 100 minibatches are taken as 60 s of a job's own work,
their lengths not being published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd
from _gandiva import BIN_PACKING, YARN_LIKE, Run, instance, simulate
from _measures import clear_of_marks, factor, level, measured
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.page import PAGE_IN
from shadowprice.analysis.plots.style import colour_of
from shadowprice.errors import InputError
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Page,
    Published,
    Row,
    Size,
    Sized,
    crossed,
    main,
    setting,
)

SYSTEMS = {
    "head of the queue blocks": YARN_LIKE,
    "bin packing": BIN_PACKING,
    "turns, no packing": ("gandiva-reactive", "count"),
    "Gandiva, packing": ("gandiva:locality=false,defragmentation=false,growth=false", "count"),
}
BASELINE, PACKING = "bin packing", "Gandiva, packing"
STEP_MIN = 10


@dataclass(frozen=True)
class Settings:
    """Jobs, cluster, window of the utilisation and seeds."""

    jobs: int = setting(1000, "number of jobs, within two hours")
    nodes: int = setting(45, "servers of 4 GPUs")
    window_min: tuple[float, ...] = setting(
        (20.0, 200.0), "first and last minute of the utilisation"
    )
    first_s: float = setting(60.0, "work of 100 minibatches [s], not published")
    seeds: int = setting(20, "number of seeds, 0..n-1")


@dataclass(frozen=True)
class Point:
    """One system on the jobs of one seed."""

    jobs: int
    nodes: int
    window_min: tuple[float, ...]
    first_s: float
    seed: int
    system: str


def points(settings: Settings) -> Iterator[Point]:
    """Every system on every seed."""
    window = settings.window_min
    if len(window) != 2 or not 0 <= window[0] < window[1]:
        shown = ",".join(f"{minute:g}" for minute in window)
        raise InputError(
            f"--window-min: got {shown}, expected two minutes, the first before the last"
        )
    return crossed(Point, settings, seed=range(settings.seeds), system=SYSTEMS)


def run(point: Point) -> list[Row]:
    """Utilisation, early feedback and time in the system; and utilisation over time."""
    jobs = sp.generate("gandiva", jobs=point.jobs, seed=point.seed)
    found = simulate(instance(jobs, f"{point.nodes}x4"), SYSTEMS[point.system])
    begin_s, end_s = (60.0 * minute for minute in point.window_min)
    values = {
        "utilisation": 100 * found.utilisation(begin_s, end_s),
        "first": float(found.time_to(point.first_s).mean()),
        "mean": float(found.jct_s.mean()) / 60,
        "makespan": float(found.end_s.max()) / 60,
    }
    return list(measured({"seed": point.seed, "system": point.system}, values | over_time(found)))


def over_time(found: Run) -> dict[str, float]:
    """Utilisation in each step of ten minutes [%], by the minute in its middle."""
    steps = range(0, int(found.end_s.max() / 60), STEP_MIN)
    return {
        f"at{minute + STEP_MIN // 2:04d}": 100
        * found.utilisation(60.0 * minute, 60.0 * (minute + STEP_MIN))
        for minute in steps
    }


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Utilisation over time, its mean over the window, and the time to the first 100 minibatches."""
    picture, (left, middle, right) = page.grid(1, 3, 2.4, width_ratios=(1.15, 1, 1))
    for place, system in enumerate(SYSTEMS):
        rows = table[(table.system == system) & table.measure.str.startswith("at")]
        # After the last end of a seed its GPUs are idle.
        mean = rows.groupby("measure", sort=True).value.sum() / rows.seed.nunique()
        left.plot([int(name[2:]) for name in mean.index], mean, color=colour_of(place))
    begin, end = settings.window_min
    left.axvspan(begin, end, color="#000000", alpha=0.06, lw=0)
    left.set_ylim(0, 100)
    left.set_xlabel("time [min]; grey: window")
    left.set_ylabel("GPU utilisation [%]")
    found = {"utilisation": (50.1, 62.8), "first": (2203.0, 498.0)}
    for axes, (measure, values) in zip((middle, right), found.items(), strict=True):
        bars = {
            system: value
            for system in SYSTEMS
            if (value := level(table, measure, system)) is not None
        }
        page.bars(
            axes,
            bars,
            form=",.0f" if measure == "first" else ".1f",
            colours={system: colour_of(place) for place, system in enumerate(SYSTEMS)},
        )
        page.published_curve(
            axes,
            values,
            [list(bars).index(system) for system in (BASELINE, PACKING)],
            "published",
            linestyle="none",
            marker="|",
            markersize=14,
            markeredgewidth=1.6,
        )
    mark = ", | published" if page.compares else ""
    names = [name.replace(" of the queue ", "\n").replace(", ", ",\n") for name in SYSTEMS]
    middle.set_yticks(range(len(names)), names)
    beside = page.width_in >= PAGE_IN  # Below one another each panel needs the names.
    right.set_yticks([] if beside else range(len(names)), [] if beside else names)
    right.set_xscale("log")
    right.set_xlim(30, 12_000)
    right.xaxis.set_major_formatter("{x:g}")
    if page.compares:
        places = [list(SYSTEMS).index(system) for system in (BASELINE, PACKING)]
        for axes, measure in ((middle, "utilisation"), (right, "first")):
            clear_of_marks(axes, dict(zip(places, found[measure], strict=True)))
    middle.set_xlabel("utilisation [%]" + mark)
    right.set_xlabel("first 100 minibatches [s]")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Utilisation and early feedback of packing beside bin packing."""
    begin, end = settings.window_min
    used = [level(table, "utilisation", system) for system in (BASELINE, PACKING)]
    first = [level(table, "first", system) for system in (BASELINE, PACKING)]
    said = f"{settings.jobs:,} jobs on {4 * settings.nodes} GPUs, {settings.seeds} seeds."
    if used[0] and used[1] and first[0] and first[1]:
        said += (
            f" Between minutes {begin:g} and {end:g} the GPUs are busy {used[0].mean:.1f} % of the time with "
            f"bin packing and {used[1].mean:.1f} % with Gandiva's packing. A job has done {settings.first_s:g} s "
            f"of its work after {first[0].mean:,.0f} and {first[1].mean:,.0f} s on average."
        )
    return said


def more_utilised(table: pd.DataFrame) -> Estimate | None:
    """Utilisation with packing over that with bin packing."""
    return factor(table, "utilisation", BASELINE, PACKING)


def row(
    what: str,
    value: float,
    unit: str,
    ours: Callable[[pd.DataFrame], Estimate | None],
    why: str,
    claim: str = "",
) -> Published:
    """A number of Figure 15."""
    return Published(
        system="Gandiva",
        place="OSDI'18, section 6.4 and Figure 15",
        what=what,
        value=value,
        unit=unit,
        ours=ours,
        settings="1,000 jobs, 180 GPUs, minutes 20 to 200",
        cause=Cause.NOT_PUBLIC,
        why=why,
        claim=claim,
    )


MINIBATCHES = "Lengths of minibatches, and the speeds of the two GPU types, are not public."
PACKED = "utilisation with packing"
"""Claim of the level and of the factor made of it."""

UTILISED = "Utilisations of the models on a P100, and which jobs were drawn, are not public."

FIGURE = Figure(
    name="gandiva_packing",
    paper="Gandiva (OSDI'18), section 6.4 and Figure 15",
    sizes={
        Size.QUICK: Sized(Settings(jobs=200, nodes=9, seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=0.8),
        Size.FULL: Sized(Settings(seeds=50), minutes=2.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        row("utilisation, packing / no packing", 1.253, "x", more_utilised, UTILISED, PACKED),
        row(
            "utilisation without packing",
            50.1,
            "% of the time",
            lambda table: level(table, "utilisation", BASELINE),
            UTILISED,
        ),
        row(
            "utilisation with packing",
            62.8,
            "% of the time",
            lambda table: level(table, "utilisation", PACKING),
            UTILISED,
            PACKED,
        ),
        row(
            "first 100 minibatches without packing",
            2203.0,
            "s",
            lambda table: level(table, "first", BASELINE),
            MINIBATCHES,
        ),
        row(
            "first 100 minibatches, no packing / packing",
            4.42,
            "x",
            lambda table: factor(table, "first", PACKING, BASELINE),
            MINIBATCHES,
        ),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
