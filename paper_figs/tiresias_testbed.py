"""Tiresias (NSDI'19), sections 6.2 and 6.3.1, Figures 10 and 11, Table 4: the testbed, simulated.

480 jobs on 15 nodes of 4 GPUs: short run times from Figure 10a, long ones by a power law inside the published
bins, see ``shadowprice.instances.generators.tiresias_published``. The public simulator (preset ``tiresias``) runs
YARN-CS as fifo on ``yarn`` and Tiresias-L as dlas-gpu; ours beside it has K = 2 with the paper's 3,200 GPU-s, without
charges and with a restart of 60 s for each preemption, about what the testbed measured (13,724 s in 221 preemptions).

What differs: the long run times are not public; a simulator charges nothing for placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from _measures import (
    curve,
    factor,
    level,
    measured,
    published_curve,
    quantile_rows,
    statistics,
)
from _tiresias import OURS, simulate
from matplotlib.figure import Figure as Picture
from matplotlib.text import Annotation

import shadowprice as sp
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.plots.style import colour_of
from shadowprice.analysis.wording import at_most
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Evidence,
    Figure,
    Independence,
    Page,
    Published,
    Row,
    Size,
    Sized,
    crossed,
    main,
    setting,
)

THRESHOLD_GPU_S = 3200.0
PUBLIC_SCHEDULERS = ("YARN-CS", "SRTF", "Gandiva", "Tiresias-G", "Tiresias-L")
OUR_SCHEDULERS = tuple(name for name in OURS if name != "Best-effort")
BINS = {"SS": "small, short", "SL": "small, long", "LS": "large, short", "LL": "large, long"}
"""Small: at most 4 GPUs; short: less than 800 s."""

PUBLISHED_BINS = {"SS": 27.7, "SL": 5.47, "LS": 3.22, "LL": 1.08}
"""YARN-CS over Tiresias-L, mean JCT by bin, Figure 10b."""

FACTORS = (5.11, 5.5)
"""YARN-CS over Tiresias-L, mean JCT, simulated and on the testbed."""

LIMITS = {"mean": Measure.MEAN_JCT, "makespan": Measure.MAKESPAN}
"""Measures of YARN-CS whose certified limits are kept: no scheduler is better by more."""

MARK: dict[str, Any] = {
    "linestyle": "none",
    "marker": "|",
    "markersize": 14,
    "markeredgewidth": 1.6,
}
"""A published value on a bar."""


@dataclass(frozen=True)
class Settings:
    """Settings of the comparison."""

    seeds: int = setting(20, "number of seeds, 0..n-1")
    restart_s: tuple[float, ...] = setting(
        (0.0, 60.0), "charges for a preemption in our simulator [s]"
    )
    small_exponent: float = setting(3.0, "exponent of long run times, at most 4 GPUs")
    large_exponent: float = setting(1.0, "exponent of long run times, more than 4 GPUs")


@dataclass(frozen=True)
class Point:
    """All schedulers on the jobs of one seed."""

    seed: int
    restart_s: tuple[float, ...]
    small_exponent: float
    large_exponent: float


def points(settings: Settings) -> Iterator[Point]:
    """One for each seed."""
    return crossed(Point, settings, seed=range(settings.seeds))


def ours_named(scheduler: str, restart_s: float) -> str:
    """Label of one of our schedulers."""
    return f"{scheduler}, ours" + (f" at {restart_s:g} s" if restart_s else "")


def run(point: Point) -> list[Row]:
    """Measures of every scheduler, one a row."""
    jobs = sp.generate(
        "tiresias-published",
        seed=point.seed,
        small_exponent=point.small_exponent,
        large_exponent=point.large_exponent,
    )
    rows: list[Row] = []
    for scheduler in PUBLIC_SCHEDULERS:
        found = simulate(jobs, "15x4", "public", scheduler, limit=THRESHOLD_GPU_S)
        key: Row = {"seed": point.seed, "system": scheduler}
        rows += measured(key, measures(jobs, found))
        if scheduler in ("YARN-CS", "Tiresias-L"):
            rows += quantile_rows(key, found.jct_s)
        if scheduler == "YARN-CS":
            known = {f"limit {what}": limit(found, what).ratio for what in LIMITS.values()}
            rows += measured(key, known)
    for restart_s in point.restart_s:
        for scheduler in OUR_SCHEDULERS:
            found = simulate(
                jobs, "15x4", "ours", scheduler, limit=THRESHOLD_GPU_S, restart_s=restart_s
            )
            key = {"seed": point.seed, "system": ours_named(scheduler, restart_s)}
            rows += measured(key, measures(jobs, found))
    return rows


def measures(jobs: sp.Workload, found: sp.Outcome) -> dict[str, float]:
    """JCT, queueing delay, makespan and preemptions of a run; mean JCT by bin [s]."""
    small, short = jobs.gpus <= 4, jobs.work < 800
    members = {
        "SS": small & short,
        "SL": small & ~short,
        "LS": ~small & short,
        "LL": ~small & ~short,
    }
    summary = found.summary()
    waited_s = found.jct_s - jobs.work
    return {
        **statistics(found.jct_s),
        **{name: float(found.jct_s[rows].mean()) for name, rows in members.items()},
        "queue_mean": float(waited_s.mean()),
        "queue_median": float(np.median(waited_s)),
        "makespan": float(summary["makespan_s"]),
        "preemptions": float(summary["preemptions"]),
    }


def best_possible(table: pd.DataFrame, measure: str) -> float | None:
    """Certified best factor over YARN-CS that any scheduler could have, mean over seeds."""
    found = level(table, f"limit {LIMITS[measure]}", "YARN-CS")
    return None if found is None else found.mean


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Factors over YARN-CS, the same by bin, and the curves of Figure 10a."""
    picture, (left, middle, right) = page.grid(1, 3, 2.5)
    mark = ", | published" if page.compares else ""
    bars = {
        label: factor(table, "mean", label, "YARN-CS")
        for label in ("SRTF", "Gandiva", "Tiresias-G", "Tiresias-L")
    }
    for restart_s in settings.restart_s:
        label = ours_named("Tiresias-L", restart_s)
        bars[label] = factor(table, "mean", label, ours_named("YARN-CS", restart_s))
    shown = {label: found for label, found in bars.items() if found is not None}
    page.bars(left, shown, colours=dict.fromkeys(shown, colour_of(0)))
    place = list(shown).index("Tiresias-L")
    page.published_curve(left, FACTORS, [place] * len(FACTORS), "published", **MARK)
    most = best_possible(table, "mean")
    if most is not None:
        page.limit_line(left, most, "no scheduler can", along="x")
        left.set_xlim(0, 1.08 * most)
        for text in left.texts:  # The line is drawn behind the numbers.
            text.set_bbox({"facecolor": "white", "linewidth": 0, "pad": 0.6})
    left.set_title("mean JCT")
    left.set_xlabel(
        "YARN-CS / scheduler" + (f"{mark[:1]}\n{mark[2:]}, dotted: limit" if mark else "")
    )
    bins = {BINS[name]: factor(table, name, "Tiresias-L", "YARN-CS") for name in BINS}
    page.bars(middle, bins, colours=dict.fromkeys(bins, colour_of(1)))  # type: ignore[arg-type]
    page.published_curve(
        middle,
        list(PUBLISHED_BINS.values()),
        range(len(BINS)),
        "published",
        **MARK,
    )
    if page.compares:  # A number stands beyond the mark that would lie on it.
        for text, value in zip(list(middle.texts), PUBLISHED_BINS.values(), strict=True):
            assert isinstance(text, Annotation)
            text.xy = (max(text.xy[0], value), text.xy[1])
    middle.set_title("mean JCT by bin")
    middle.set_xlabel("YARN-CS / Tiresias-L" + mark)
    names = {"YARN-CS": (6000, 0.42, "right"), "Tiresias-L": (480, 0.55, "left")}
    for place, (label, (x, y, side)) in enumerate(names.items()):
        colour = colour_of(place)
        right.plot(*curve(table, label), color=colour)
        right.text(x, y, label, color=colour, ha=side)
        known = published_curve("tiresias_testbed_jct", label)
        page.published_curve(right, *known, "published", colour=colour)
    right.set_xscale("log")
    right.set_xlim(100, 40_000)
    right.set_ylim(0, 1)
    right.set_title("JCT of all jobs")
    right.set_xlabel("JCT [s]" + (", - - published" if page.compares else ""))
    right.set_ylabel("share of the jobs")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """The factor with its range, the makespans, and what our own simulator says."""
    wide = table[table.measure == "mean"].pivot_table(
        index="seed", columns="system", values="value"
    )
    ratio = wide["YARN-CS"] / wide["Tiresias-L"]
    spans = [level(table, "makespan", label) for label in ("YARN-CS", "Tiresias-L")]
    own = factor(table, "mean", "Tiresias-L, ours", "YARN-CS, ours")
    said = (
        f"480 jobs on 60 GPUs, {len(ratio)} seeds. In the public simulator the mean JCT under YARN-CS is "
        f"{ratio.mean():.2f} times that under Tiresias-L ({ratio.min():.1f} to {ratio.max():.1f} by seed), "
        f"at makespans of {spans[0].mean:,.0f} and {spans[1].mean:,.0f} s."  # type: ignore[union-attr]
    )
    most = best_possible(table, "mean")
    if most is not None:
        said += (
            f" No scheduler whatever is more than {at_most(most)} better than YARN-CS on these jobs, on average over "
            "the seeds."
        )
    if own is not None:
        said += f" With the paper's threshold in our simulator it is {own.text()} times."
    return said


def row(
    what: str,
    place: str,
    value: float,
    unit: str,
    ours: Callable[[pd.DataFrame], Estimate | None],
    origin: Origin,
    limit_of: str | None = None,
) -> Published:
    """A number of the paper about this workload; ``limit_of`` is the measure whose limit bounds it."""
    cause, why = origin.cause
    return Published(
        system="Tiresias",
        place=f"NSDI'19, {place}",
        what=what,
        value=value,
        unit=unit,
        ours=ours,
        settings="480 jobs, 60 GPUs, public simulator; long run times fitted to the makespans",
        cause=cause,
        why=why,
        evidence=origin.evidence,
        claim=origin.claim,
        independence=origin.independence,
        limit=None if limit_of is None else lambda table: best_possible(table, limit_of),
    )


LONG = (
    Cause.NOT_PUBLIC,
    "The run times of long jobs, which decide how far YARN-CS falls behind, are not public.",
)
HARDWARE = (Cause.TESTBED, "Measured on hardware, where preemption and placement cost time.")
FITTED = (
    Cause.NOT_PUBLIC,
    "The exponents of the long run times were fitted to the makespans under YARN-CS and Tiresias-L.",
)
DIGITISED = (
    Cause.NOT_PUBLIC,
    "The run times of short jobs were digitised from the paper's own curve of JCTs under Tiresias-L (Figure 10a), "
    "which this divides by.",
)


@dataclass(frozen=True)
class Origin:
    """Where a published number is from, and what of it went into ours.

    Parameters
    ----------
    cause : tuple of Cause and str
    claim : str
        Claim that several numbers are measurements of.
    evidence : Evidence
    independence : Independence
    """

    cause: tuple[Cause, str] = LONG
    claim: str = ""
    evidence: Evidence = Evidence.READ
    independence: Independence = Independence.TESTED


def ratio_row(
    measure: str,
    what: str,
    place: str,
    value: float,
    than: str = "YARN-CS",
    *,
    hardware: bool = False,
    origin: Origin | None = None,
) -> Published:
    """A factor of Tiresias-L over another scheduler."""
    return row(
        f"{than} / Tiresias-L, {what}" + (" (testbed)" if hardware else " (simulated)"),
        place,
        value,
        "x",
        lambda table: factor(table, measure, "Tiresias-L", than),
        origin or Origin(HARDWARE if hardware else LONG),
        measure if than == "YARN-CS" and measure in LIMITS else None,
    )


def level_row(
    measure: str,
    what: str,
    place: str,
    system: str,
    value: float,
    unit: str,
    origin: Origin | None = None,
) -> Published:
    """A measure of one scheduler on the testbed."""
    return row(
        f"{what} under {system} (testbed)",
        place,
        value,
        unit,
        lambda table: level(table, measure, system),
        origin or Origin(HARDWARE),
    )


def preemption_row(system: str, value: float) -> Published:
    """The number of preemptions on the testbed beside ours with a charge of 60 s."""
    return row(
        f"preemptions under {system} (testbed)",
        "section 6.2",
        value,
        "preemptions",
        lambda table: level(table, "preemptions", ours_named(system, 60.0)),
        Origin(HARDWARE),
    )


MEAN, MAKESPAN = "mean JCT, YARN-CS / Tiresias-L", "makespan under YARN-CS and Tiresias-L"
CALIBRATED_BINS = ("SS", "LS")
"""Bins of short jobs, whose run times are digitised."""

PUBLISHED = (
    ratio_row("mean", "mean JCT", "section 6.3.1", FACTORS[0], origin=Origin(LONG, MEAN)),
    ratio_row("p95", "95th percentile of the JCT", "section 6.3.1", 1.50),
    ratio_row("mean", "mean JCT", "section 6.3.1", 0.74, "SRTF"),
    ratio_row("p95", "95th percentile of the JCT", "section 6.3.1", 0.55, "SRTF"),
    ratio_row("mean", "mean JCT", "section 6.3.1", 1.01, "Tiresias-G"),
    ratio_row("p95", "95th percentile of the JCT", "section 6.3.1", 1.13, "Tiresias-G"),
    ratio_row(
        "mean", "mean JCT", "section 6.2", FACTORS[1], hardware=True, origin=Origin(HARDWARE, MEAN)
    ),
    ratio_row(
        "median",
        "median JCT",
        "section 6.2",
        27.0,
        hardware=True,
        origin=Origin(DIGITISED, independence=Independence.CALIBRATED),
    ),
    *(
        ratio_row(
            name,
            f"mean JCT, {BINS[name]}",
            "Figure 10b",
            value,
            hardware=True,
            origin=Origin(DIGITISED, "", Evidence.DIGITISED, Independence.CALIBRATED)
            if name in CALIBRATED_BINS
            else Origin(HARDWARE, "", Evidence.DIGITISED),
        )
        for name, value in PUBLISHED_BINS.items()
    ),
    ratio_row(
        "makespan",
        "makespan",
        "Figure 11",
        1.21,
        hardware=True,
        origin=Origin(FITTED, MAKESPAN, independence=Independence.CALIBRATED),
    ),
    *(
        level_row(
            "makespan",
            "makespan",
            "Figure 11",
            system,
            value,
            "s",
            Origin(FITTED, MAKESPAN, independence=Independence.CALIBRATED),
        )
        for system, value in (("YARN-CS", 33_270.0), ("Tiresias-L", 27_400.0))
    ),
    *(
        level_row("makespan", "makespan", "Figure 11", system, value, "s")
        for system, value in (("SRTF", 28_070.0), ("Tiresias-G", 27_510.0))
    ),
    *(
        level_row("queue_mean", "mean queueing delay", "Table 4", system, value, "s")
        for system, value in (
            ("YARN-CS", 8146.0),
            ("SRTF", 593.0),
            ("Tiresias-G", 1005.0),
            ("Tiresias-L", 963.0),
        )
    ),
    *(
        preemption_row(system, value)
        for system, value in (("SRTF", 316.0), ("Tiresias-G", 297.0), ("Tiresias-L", 221.0))
    ),
)

FIGURE = Figure(
    name="tiresias_testbed",
    paper="Tiresias (NSDI'19), sections 6.2 and 6.3.1, Figures 10 and 11, Table 4",
    sizes={
        Size.QUICK: Sized(Settings(seeds=2), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=0.3),
        Size.FULL: Sized(Settings(seeds=200), minutes=3.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
