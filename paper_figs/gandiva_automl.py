"""Gandiva (OSDI'18), section 6.3, Table 3: early feedback for a hyper-parameter search.

374 configurations, one of which qualifies; its position among them is 25, 50, 75 or 100 % of the way. The baseline
runs configurations to their end one after the other; under Gandiva hopeless ones are stopped early.

What differs: the early-stopping model is ours, see ``shadowprice.instances.generators.automl``: a configuration is
judged after a share of its training, not published, which is varied. How long a configuration trains is derived from
the time to the last one. FIFO with the same stopping is about as fast as Gandiva, so that the factor is that of the
stopping. Table 4, by target accuracy, depends on the
learning curves of their jobs and is not drawn. The search submits a configuration when those before it, shared
evenly, would have left a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from _gandiva import CHARGES, REACTIVE, simulate
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import GREY, colour_of
from shadowprice.errors import InputError
from shadowprice.instances.generators.automl import QUALIFIED
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
    setting,
)

TO_THE_END, EARLY_FIFO, EARLY = (
    "to their end, FIFO",
    "stopped early, FIFO",
    "stopped early, Gandiva",
)
POSITIONS = (0.25, 0.5, 0.75, 1.0)
TABLE_3_MIN = {
    TO_THE_END: (691.5, 1373.0, 2067.0, 2726.0),
    EARLY: (125.5, 213.8, 302.4, 387.1),
}
"""Minutes on 4 GPUs, by position."""

PUBLISHED_FACTORS = {4: (5.51, 7.04), 16: (3.40, 5.96)}
"""Least and most times sooner over the positions, by GPUs."""

COLOUR_OF = {TO_THE_END: GREY, EARLY_FIFO: colour_of(1), EARLY: colour_of(0)}


@dataclass(frozen=True)
class Settings:
    """Search, GPUs, shares and seeds."""

    configurations: int = setting(374, "number of configurations")
    gpus: tuple[int, ...] = setting((4, 16), "GPUs, in nodes of 4")
    positions: tuple[float, ...] = setting(POSITIONS, "positions of the one that qualifies")
    judged_at: tuple[float, ...] = setting(
        (0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
        "shares of the training after which a configuration is judged",
    )
    shown: float = setting(0.1, "the share drawn by position")
    seeds: int = setting(20, "number of seeds, 0..n-1")


@dataclass(frozen=True)
class Point:
    """Searches on so many GPUs, with one seed and share."""

    configurations: int
    gpus: int
    positions: tuple[float, ...]
    judged_at: float
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """Every share; 1 is the search that stops nothing."""
    if settings.shown not in settings.judged_at:
        raise InputError(f"--shown {settings.shown:g}: expected one of --judged-at")
    for gpus in settings.gpus:
        if gpus < 4 or gpus % 4:
            raise InputError(f"--gpus: got {gpus}, expected multiples of 4")
    shares = (*settings.judged_at, 1.0)
    return crossed(
        Point, settings, gpus=settings.gpus, judged_at=shares, seed=range(settings.seeds)
    )


def run(point: Point) -> list[Row]:
    """Minutes until the qualified configuration is trained, for each position and system."""
    early = {EARLY_FIFO: ("fifo", "count"), EARLY: REACTIVE}
    systems = {TO_THE_END: ("fifo", "count")} if point.judged_at == 1.0 else early
    return [
        {
            "gpus": point.gpus,
            "seed": point.seed,
            "position": position,
            "judged_at": point.judged_at,
            "system": label,
            "minutes": search_min(point, position, system),
        }
        for position in point.positions
        for label, system in systems.items()
    ]


def search_min(point: Point, position: float, system: tuple[str, str]) -> float:
    """Time until the qualified configuration is trained by one system [min]."""
    jobs = sp.generate(
        "automl",
        jobs=point.configurations,
        seed=point.seed,
        judged_at=point.judged_at,
        qualified=max(round(position * point.configurations), 1),
    )
    before_s = np.floor(np.concatenate(([0.0], np.cumsum(jobs.work)[:-1])) / point.gpus)
    jobs = replace(jobs, arrival_s=before_s)
    found = simulate(sp.Instance(sp.Cluster.parse(f"{point.gpus // 4}x4"), jobs, CHARGES), system)
    return float(found.end_s[found.instance.workload.name == QUALIFIED][0]) / 60


def factors(table: pd.DataFrame, gpus: int, judged_at: float) -> pd.DataFrame:
    """Times sooner that Gandiva finds it: a row a seed, a column a position."""
    part = table[table.gpus == gpus]
    whole = part[part.system == TO_THE_END].pivot(
        index="seed", columns="position", values="minutes"
    )
    early = part[(part.system == EARLY) & (part.judged_at == judged_at)]
    return whole / early.pivot(index="seed", columns="position", values="minutes")


def extremes(found: pd.DataFrame) -> dict[str, pd.Series]:
    """Least and most over the positions, by seed."""
    return {"least": found.min(axis=1), "most": found.max(axis=1)}


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Time to the qualified configuration, and the factor against the share judged at."""
    picture, (left, right) = page.grid(1, 2, 2.8)
    gpus = settings.gpus[0]
    rows = table[(table.gpus == gpus) & table.judged_at.isin([settings.shown, 1.0])].copy()
    rows["percent"] = 100 * rows.position
    page.lines(
        left, rows, x="percent", y="minutes", by="system", order=list(COLOUR_OF), colours=COLOUR_OF
    )
    if gpus == 4:
        for label, minutes in TABLE_3_MIN.items():
            page.published_curve(
                left,
                [100 * position for position in POSITIONS],
                minutes,
                "published" if label == TO_THE_END else "_",
                colour=COLOUR_OF[label],
                linestyle="none",
                marker="x",
                markersize=7,
            )
    left.set_xticks([100 * position for position in settings.positions])
    left.set_xlabel("position of the one that qualifies [%]")
    left.set_ylabel(f"time until it is trained, {gpus} GPUs [min]")
    left.set_ylim(bottom=0)
    left.legend(loc="upper left")
    for words in ("most", "least"):
        by_share = [
            {"gpus": count, "percent": 100 * share, "factor": value, "seed": seed}
            for count in settings.gpus
            for share in settings.judged_at
            for seed, value in extremes(factors(table, count, share))[words].items()
        ]
        # A label that begins with an underscore is in no legend: once a number of GPUs is enough.
        mark = "" if words == "most" else "_"
        names = {f"{mark}{count} GPUs": colour_of(k) for k, count in enumerate(settings.gpus)}
        rows = pd.DataFrame(by_share)
        rows["gpus"] = [f"{mark}{count} GPUs" for count in rows.gpus]
        page.lines(
            right, rows, x="percent", y="factor", by="gpus", order=list(names), colours=names
        )
    for at, (low, high) in PUBLISHED_FACTORS.items():
        if page.compares and at in settings.gpus:
            colour = colour_of(settings.gpus.index(at))
            right.axhspan(low, high, color=colour, alpha=0.12, lw=0, label=f"published, {at} GPUs")
    right.set_ylim(bottom=0)
    right.set_xlabel("share of the training when judged [%]")
    right.set_ylabel("times sooner, least and most")
    right.legend(loc="upper right")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Factors at the share that is drawn, and what of them is early stopping alone."""
    said = f"{settings.configurations} configurations, {settings.seeds} seeds."
    for gpus in settings.gpus:
        mean = factors(table, gpus, settings.shown).mean()
        part = table[(table.gpus == gpus) & (table.judged_at == settings.shown)]
        minutes = part.groupby("system").minutes.mean()
        said += (
            f" Judged after {settings.shown:.0%} of the training on {gpus} GPUs the one that qualifies is found "
            f"{mean.min():.1f} to {mean.max():.1f} times sooner under Gandiva; stopping early under FIFO takes "
            f"{minutes[EARLY_FIFO] / minutes[EARLY]:.2f} of Gandiva's time."
        )
    return said


def minutes_of(
    table: pd.DataFrame, system: str, position: float, judged_at: float
) -> Estimate | None:
    """Minutes on 4 GPUs at one position."""
    rows = table[(table.gpus == 4) & (table.system == system) & (table.position == position)]
    rows = rows[rows.judged_at == judged_at]
    return estimate(rows.minutes) if len(rows) else None


def extreme(table: pd.DataFrame, gpus: int, judged_at: float, *, most: bool) -> Estimate | None:
    """Least or most times sooner over the positions."""
    found = factors(table, gpus, judged_at).dropna()
    if found.empty:
        return None
    return estimate(found.max(axis=1) if most else found.min(axis=1))


def of_gandiva(table: pd.DataFrame, gpus: int, position: float | None) -> str:
    """Time of FIFO with the same stopping over Gandiva's, at one position or over all."""
    rows = table[(table.gpus == gpus) & (table.judged_at == 0.1)]
    rows = rows if position is None else rows[rows.position == position]
    wide = rows.pivot_table(index=["seed", "position"], columns="system", values="minutes")
    if not {EARLY_FIFO, EARLY} <= {*wide}:
        return ""
    found = estimate((wide[EARLY_FIFO] / wide[EARLY]).groupby("seed").mean())
    gains = ": the stopping gains, not the scheduler" if found.low <= 1 else ""
    return f"FIFO with the same stopping takes {found.text()} of Gandiva's time{gains}."


def published(
    what: str,
    value: float,
    unit: str,
    ours: Callable[[pd.DataFrame, float], Estimate | None],
    **more: Any,
) -> Published:
    """An entry of Table 3 that depends on when a configuration is judged."""
    return Published(
        system="Gandiva",
        place="OSDI'18, section 6.3 and Table 3",
        what=what,
        value=value,
        unit=unit,
        ours=lambda table: ours(table, 0.1),
        settings="374 configurations, judged after a tenth of the training",
        cause=Cause.NOT_PUBLIC,
        why="When a configuration is judged, and how well, is not published: the tenth was picked, and learning "
        "curves and noise are ours.",
        independence=Independence.ONE_OF_MANY,
        others=lambda table: Others.over(
            (ours(table, share) for share in sorted(set(table.judged_at) - {1.0})),
            "shares after which it is judged",
        ),
        **more,
    )


def to_their_end(position: float, value: float) -> Published:
    """An entry of Table 3 without stopping."""
    return Published(
        system="Gandiva",
        place="OSDI'18, section 6.3 and Table 3",
        what=f"time to the qualified configuration, {TO_THE_END}, position {position:.0%}, 4 GPUs",
        value=value,
        unit="min",
        ours=lambda table: minutes_of(table, TO_THE_END, position, 1.0),
        settings="374 configurations, none stopped",
        cause=Cause.NONE,
        why="The length of a training is derived from the last of these four numbers, of which the others are a "
        "quarter, a half and three quarters.",
        claim=f"time to the qualified configuration, {TO_THE_END}",
        independence=Independence.CALIBRATED,
    )


def claim_of(gpus: int, position: float) -> str:
    """Claim that a time at a position and the factor made of it share."""
    return f"times sooner, position {position:.0%}, {gpus} GPUs"


PUBLISHED = (
    *(
        to_their_end(position, value)
        for position, value in zip(POSITIONS, TABLE_3_MIN[TO_THE_END], strict=True)
    ),
    *(
        published(
            f"time to the qualified configuration, {EARLY}, position {position:.0%}, 4 GPUs",
            value,
            "min",
            lambda table, share, position=position: minutes_of(table, EARLY, position, share),
            claim=claim_of(4, position),
            remark=lambda table, position=position: of_gandiva(table, 4, position),
        )
        for position, value in zip(POSITIONS, TABLE_3_MIN[EARLY], strict=True)
    ),
    *(
        published(
            f"{'most' if most else 'least'} times sooner over the positions, {gpus} GPUs",
            values[most],
            "x",
            lambda table, share, gpus=gpus, most=most: extreme(table, gpus, share, most=most),
            claim=claim_of(gpus, 1.0 if most else 0.25),
            remark=lambda table, gpus=gpus: of_gandiva(table, gpus, None),
        )
        for gpus, values in PUBLISHED_FACTORS.items()
        for most in (False, True)
    ),
)

FIGURE = Figure(
    name="gandiva_automl",
    paper="Gandiva (OSDI'18), section 6.3, Table 3",
    sizes={
        Size.QUICK: Sized(
            Settings(configurations=60, judged_at=(0.05, 0.1, 0.3), seeds=1), minutes=0.1
        ),
        Size.DEFAULT: Sized(Settings(), minutes=1.2),
        Size.FULL: Sized(Settings(seeds=50), minutes=3.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
