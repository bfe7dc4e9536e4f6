"""Tiresias (NSDI'19), Figures 7 and 20: the worked example, three jobs on two GPUs.

Jobs (GPUs, time) = (2, 2), (1, 8), (2, 6), unit intervals, ties by index; mean JCT under SRSF, which
knows durations, 2D-Gittins, which knows their distribution, and 2D-LAS, which knows nothing.

Read into it: 2D-Gittins with two queues and a threshold of 4 GPU-s, the limits of 2D-LAS at every
GPU-second; the paper states neither. Both are run with every other single threshold as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.gantt import gantt
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Independence,
    Others,
    Page,
    Published,
    Row,
    Sampling,
    Size,
    Sized,
    estimate,
    main,
    require_known,
    setting,
)

JOBS = {"arrival_s": [0, 0, 0], "gpus": [2, 1, 2], "work": [2, 8, 6], "id": ["1", "2", "3"]}
POLICIES = {
    "SRSF": ("srsf", 9.3),
    "2D-Gittins": ("gittins2d:thresholds_gpu_s=4", 10.0),
    "2D-LAS": ("las2d:thresholds_gpu_s=1/2/3/4/5/6/7/8/9/10/11/12", 11.7),
}
"""Policy, and published mean JCT [s]."""

THRESHOLDS_OF = {"2D-Gittins": "gittins2d", "2D-LAS": "las2d"}
"""Policies whose thresholds the paper does not state."""


@dataclass(frozen=True)
class Settings:
    """Nothing but the policies: the example is what it is."""

    policies: tuple[str, ...] = tuple(POLICIES)
    thresholds: tuple[int, ...] = setting(
        tuple(range(1, 13)), "single thresholds that are tried too [GPU-s]"
    )


@dataclass(frozen=True)
class Point:
    """The example under one policy; with another threshold, or 0 for that which is drawn."""

    policy: str
    threshold: int


def points(settings: Settings) -> Iterator[Point]:
    """One run for each policy."""
    require_known("policy", settings.policies, POLICIES)
    for label in settings.policies:
        for threshold in (0, *(settings.thresholds if label in THRESHOLDS_OF else ())):
            yield Point(label, threshold)


def outcome(label: str, threshold: int = 0) -> sp.Outcome:
    """A verified run of the example."""
    jobs, policy = sp.Workload.from_columns(**JOBS), POLICIES[label][0]
    if threshold:
        policy = f"{THRESHOLDS_OF[label]}:thresholds_gpu_s={threshold}"
    return sp.simulate(jobs, "1x2", policy, sp.RunOptions(round_s=1.0))


def run(point: Point) -> list[Row]:
    """JCT of each job [s]."""
    found = outcome(point.policy, point.threshold)
    key: Row = {"policy": point.policy, "threshold_gpu_s": point.threshold}
    return [
        {**key, "job": str(job), "jct_s": float(jct_s)}
        for job, jct_s in zip(found.instance.workload.id, found.jct_s, strict=True)
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A Gantt chart for each policy."""
    picture, panels = page.grid(1, len(settings.policies), 2.1)
    for axes, label in zip(panels, settings.policies, strict=True):
        shown = outcome(label)
        gantt(shown.instance, shown.schedule, axes, until_s=18.0)
        mean_s = by_threshold(table, label)[0]
        theirs = f"\npublished: {POLICIES[label][1]:g} s" if page.compares else ""
        axes.set_title(f"{label}: mean JCT {mean_s:.1f} s{theirs}")
    return picture


def by_threshold(table: pd.DataFrame, label: str) -> dict[int, float]:
    """Mean JCT of a policy by threshold [s]; 0 is what is drawn."""
    mine = table[table.policy == label]
    return {int(at): float(rows.jct_s.mean()) for at, rows in mine.groupby("threshold_gpu_s")}


def over_thresholds(table: pd.DataFrame, label: str) -> Others | None:
    """Range of the mean JCT over all thresholds, as drawn included [s]."""
    return Others.over(by_threshold(table, label).values(), "choices of thresholds")


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Mean JCT of each policy, and what other thresholds give."""
    mean_s = {label: by_threshold(table, label)[0] for label in settings.policies}
    said = "Mean JCT: " + ", ".join(f"{label} {value:.1f} s" for label, value in mean_s.items())
    for label in settings.policies:
        others = over_thresholds(table, label)
        if label in THRESHOLDS_OF and others is not None:
            said += f"; {label} {others.text()}"
    return said + "."


def published(label: str, value: float) -> Published:
    """The paper's mean JCT beside ours."""

    def ours(table: pd.DataFrame) -> Estimate | None:
        found = by_threshold(table, label)
        return estimate([found[0]]) if 0 in found else None

    free = label in THRESHOLDS_OF
    return Published(
        system="Tiresias",
        place="NSDI'19, Figures 7 and 20",
        what=f"mean JCT of the worked example under {label}",
        value=value,
        unit="s",
        ours=ours,
        settings="3 jobs, 2 GPUs, intervals of 1 s",
        cause=Cause.RECALLED if free else Cause.NONE,
        why="The thresholds are not stated; those that give the published number were taken."
        if free
        else "The example is stated whole.",
        sampling=Sampling.NOTHING,
        independence=Independence.ONE_OF_MANY if free else Independence.TESTED,
        others=(lambda table: over_thresholds(table, label)) if free else None,
    )


FIGURE = Figure(
    name="tiresias_worked_example",
    paper="Tiresias (NSDI'19), Figures 7 and 20",
    sizes={
        Size.QUICK: Sized(Settings(), minutes=0.02),
        Size.DEFAULT: Sized(Settings(), minutes=0.02),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(published(label, value) for label, (_, value) in POLICIES.items()),
)

if __name__ == "__main__":
    main(FIGURE)
