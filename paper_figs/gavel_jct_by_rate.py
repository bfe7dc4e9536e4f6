"""Gavel (OSDI'20), Figures 9 and 10: mean JCT against the rate of arrivals, single- and multi-GPU traces.

36 GPUs of each type; jobs of the published generator; the mean is of jobs 4,000 to 4,999, and others go on
to arrive until these are complete. LAS is max-min fairness that takes all GPUs for equally fast.

What differs: of many optimal allocations our solver may return another than the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _gavel import PAPER_SEEDS, curves, over_window, published_curves, servers, window_jobs
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.limits import COLUMNS
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Independence,
    Page,
    Published,
    Row,
    Sampling,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    ratio_by_seed,
    require_known,
    setting,
)

POLICIES = {"LAS": "max_min_fairness", "Gavel": "max_min_fairness_perf", "AlloX": "allox"}
"""Names on the published simulator's command line."""

ANY = "any scheduler"
"""In place of a policy: the certified least mean JCT of the window's jobs, were they alone, on the same GPUs."""

TRACES = ("single", "multiple")
TITLES = {"single": "One GPU a job", "multiple": "Up to 8 GPUs a job"}


@dataclass(frozen=True)
class Settings:
    """Rates, seeds and policies; the window and the cluster are the paper's."""

    single_rates: tuple[float, ...] = setting(
        (5.6, 5.2, 4.8), "jobs per hour where all are of one GPU"
    )
    multiple_rates: tuple[float, ...] = setting(
        (2.6, 2.4), "jobs per hour where gangs have up to 8 GPUs"
    )
    seeds: int = setting(3, "number of seeds, from 0")
    policies: tuple[str, ...] = (*POLICIES, ANY)
    first_job: int = setting(4000, "first job that is measured")
    last_job: int = setting(5000, "first job after those measured")
    gpus_per_type: int = 36
    give_up_h: float = setting(12000.0, "time at which a run ends in any case [h]")
    throughputs: Path | None = setting(None, "Gavel's table (JSON)")
    made_up: bool = setting(False, "made-up rates if no table is given")

    def __post_init__(self) -> None:
        require_known("policy", self.policies, (*POLICIES, ANY))


@dataclass(frozen=True)
class Point:
    """A trace, a rate, a seed and a policy."""

    trace: str
    rate: float
    seed: int
    policy: str
    first_job: int
    last_job: int
    gpus_per_type: int
    give_up_h: float
    throughputs: Path | None
    made_up: bool


def points(settings: Settings) -> Iterator[Point]:
    """The highest rates first; AlloX has jobs of one GPU only."""
    each = {"single": settings.single_rates, "multiple": settings.multiple_rates}
    for place in range(max(map(len, each.values()))):
        for trace, rates in each.items():
            policies = [name for name in settings.policies if trace == "single" or name != "AlloX"]
            yield from crossed(
                Point,
                settings,
                trace=(trace,),
                rate=rates[place : place + 1],
                seed=range(settings.seeds),
                policy=policies,
            )


def run(point: Point) -> list[Row]:
    """Mean JCT of the window [h]; none if the run was given up before it was complete."""
    if point.policy == ANY:
        return [least(point)]
    found = over_window(point, POLICIES[point.policy], single_gpu=point.trace == "single")
    row: Row = {
        "trace": point.trace,
        "jobs_per_hour": point.rate,
        "seed": point.seed,
        "policy": point.policy,
        "given_up": found is None,
    }
    if found is None:
        nothing = {"jct_h": math.nan, "dropped": 0, "arrived": 0, "end_h": point.give_up_h}
        return [row | nothing]
    dropped = int((~found.complete).sum())
    found_row = {"jct_h": found.mean_jct_h, "dropped": dropped, "arrived": found.arrived}
    return [row | found_row | {"end_h": found.end_s / 3600.0}]


def least(point: Point) -> Row:
    """A bound of the window's mean JCT that holds for every schedule in which nobody shares GPUs [h].

    The other jobs can only be in the way of the window's.
    """
    single = point.trace == "single"
    jobs = window_jobs(point, single_gpu=single)
    instance = sp.Instance(sp.Cluster.parse(servers(point.gpus_per_type)), jobs)
    bound = certified_bounds(instance, (Objective.FLOW,), BoundEffort.of_size(COLUMNS))[
        Objective.FLOW
    ]
    ticks = bound.ticks / len(jobs)
    return {
        "trace": point.trace,
        "jobs_per_hour": point.rate,
        "seed": point.seed,
        "policy": ANY,
        "given_up": False,
        "jct_h": float(ticks / TICKS_PER_S) / 3600.0,
        "dropped": 0,
        "arrived": len(jobs),
        "end_h": 0.0,
    }


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A panel for each trace, with the paper's points."""
    traces = [trace for trace in TRACES if (table.trace == trace).any()]
    picture, panels = page.grid(1, len(traces), 2.9)
    for axes, trace in zip(panels, traces, strict=True):
        mine = table[(table.trace == trace) & ~table.given_up]
        shown = [name for name in settings.policies if name != ANY]
        page.lines(axes, mine, x="jobs_per_hour", y="jct_h", by="policy", order=shown)
        bound = mine[mine.policy == ANY].groupby("jobs_per_hour").jct_h.mean()
        if len(bound):
            page.limit_curve(axes, bound.index, bound, "any scheduler, at least")
        theirs = curves("gavel_jct_by_rate")
        seen = mine.jobs_per_hour
        within = theirs.x.between(seen.min() / 2.0, seen.max())
        published_curves(page, axes, theirs[(theirs.trace == trace) & within], settings.policies)
        axes.set(title=TITLES[trace], xlabel="jobs per hour", ylabel="mean JCT [h]", ylim=(0, None))
        if len(mine):
            axes.legend(loc="upper left")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """The ratio at the highest rate, and runs that were given up."""
    said = [
        f"Mean JCT of jobs {settings.first_job:,} to {settings.last_job - 1:,}; arrivals go on until they are "
        f"complete; {settings.seeds} seeds, intervals of 95 %."
    ]
    for trace in TRACES:
        rate = table[table.trace == trace].jobs_per_hour.max()
        found = _ratio(table, trace, rate)
        if found is not None:
            said.append(f"{TITLES[trace]}, {rate:g} jobs/h: LAS / Gavel {found.text()}.")
    lost = int(table.dropped.sum())
    if lost:
        said.append(
            f"In {int((table.dropped > 0).sum())} runs the published simulator drops {lost} jobs of the window, "
            "which have fewer steps left than GPUs; they are in no mean."
        )
    for row in table[table.given_up].itertuples():
        said.append(
            f"{row.policy}, {TITLES[row.trace]}, {row.jobs_per_hour:g} jobs/h, seed {row.seed}: given up after "
            f"{row.end_h:,.0f} h with jobs of the window not complete, and in no mean."
        )
    return " ".join(said)


def _ratio(table: pd.DataFrame, trace: str, rate: float, better: str = "Gavel") -> Estimate | None:
    mine = table[(table.trace == trace) & (table.jobs_per_hour == rate) & ~table.given_up]
    return ratio_by_seed(mine, better=better, than="LAS", column="jct_h")


def _limit(table: pd.DataFrame, trace: str, rate: float) -> float | None:
    """Mean of LAS over the bound, over seeds where LAS completed all jobs: no scheduler's is larger."""
    found = _ratio(table[table.dropped == 0], trace, rate, ANY)
    return None if found is None else found.mean


AGAIN: dict[str, Any] = {
    "settings": "jobs 4,000 to 4,999 of the published generator, 108 GPUs, seeds 0 to 2",
    "cause": Cause.NONE,
    "why": "The published generator and simulator, run again; of many optimal allocations our solver may return "
    "another. That the seeds are the authors' is recalled.",
    "sampling": Sampling.SAME_SEEDS,
    "paper_seeds": PAPER_SEEDS,
    "independence": Independence.REPLAYED,
    "own_jobs": True,
}
"""What is the same of all numbers of this figure."""


def _claim(trace: str, policy: str) -> str:
    """Claim of a policy's mean; the published ratio is that of LAS and Gavel."""
    return f"{policy}, mean JCT, {TITLES[trace]}"


def published_ratio(trace: str, rate: float, value: float, place: str) -> Published:
    """Times that LAS takes longer than Gavel."""
    return Published(
        system="Gavel",
        place=place,
        what=f"LAS / Gavel, mean JCT, {TITLES[trace]}, {rate:g} jobs/h",
        value=value,
        unit="x",
        ours=lambda table: _ratio(table, trace, rate),
        limit=lambda table: _limit(table, trace, rate),
        **AGAIN,
        claim=_claim(trace, "Gavel"),
    )


def published_mean(trace: str, rate: float, policy: str) -> Published:
    """Mean JCT that the authors drew [h]."""
    theirs = curves("gavel_jct_by_rate")
    there = (theirs.trace == trace) & (theirs.policy == policy) & np.isclose(theirs.x, rate)

    def ours(table: pd.DataFrame) -> Estimate | None:
        rows = table[
            (table.trace == trace)
            & (table.jobs_per_hour == rate)
            & (table.policy == policy)
            & ~table.given_up
        ]
        return None if rows.empty else estimate(rows.jct_h)

    figure = "9" if trace == "single" else "10"
    return Published(
        system="Gavel",
        place=f"OSDI'20, Figure {figure}, the authors' point",
        what=f"{policy}, mean JCT, {TITLES[trace]}, {rate:g} jobs/h",
        value=round(float(theirs[there].y.iloc[0]), 2),
        unit="h",
        ours=ours,
        **AGAIN,
        claim=_claim(trace, policy),
    )


FIGURE = Figure(
    name="gavel_jct_by_rate",
    paper="Gavel (OSDI'20), Figures 9 and 10",
    sizes={
        Size.QUICK: Sized(
            Settings(
                single_rates=(1.0,),
                multiple_rates=(0.5,),
                seeds=1,
                first_job=20,
                last_job=40,
                gpus_per_type=8,
                made_up=True,
            ),
            minutes=0.1,
        ),
        Size.DEFAULT: Sized(Settings(), minutes=35),
        Size.FULL: Sized(
            Settings(
                single_rates=(5.6, 5.2, 4.8, 4.4, 4.0, 3.2, 2.4, 1.6, 0.8),
                multiple_rates=(2.6, 2.4, 2.2, 2.0, 1.6, 1.2, 0.8, 0.4),
            ),
            minutes=120,
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        published_ratio("single", 5.6, 3.5, "OSDI'20, section 7.3 and Figure 9"),
        published_ratio("multiple", 2.6, 2.2, "OSDI'20, section 7.3 and Figure 10"),
        *(published_mean("single", 5.6, policy) for policy in POLICIES),
        *(published_mean("multiple", 2.6, policy) for policy in ("LAS", "Gavel")),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
