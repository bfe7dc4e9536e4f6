"""Tiresias (NSDI'19), Figures 7 and 20: the worked example, three jobs on two GPUs.

Jobs (GPUs, time) = (2, 2), (1, 8), (2, 6), unit intervals, ties by index; mean JCT under SRSF, which
knows durations, 2D-Gittins, which knows their distribution, and 2D-LAS, which knows nothing.

Read into it: 2D-Gittins with two queues and a threshold of 4 GPU-s, the limits of 2D-LAS at every
GPU-second; the paper states neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.figures import (
    Estimate,
    Figure,
    Page,
    Published,
    Row,
    Size,
    Sized,
    estimate,
    main,
    require_known,
)
from shadowprice.analysis.plots.gantt import gantt

JOBS = {"arrival_s": [0, 0, 0], "gpus": [2, 1, 2], "work": [2, 8, 6], "id": ["1", "2", "3"]}
POLICIES = {
    "SRSF": ("srsf", 9.3),
    "2D-Gittins": ("gittins2d:thresholds_gpu_s=4", 10.0),
    "2D-LAS": ("las2d:thresholds_gpu_s=1/2/3/4/5/6/7/8/9/10/11/12", 11.7),
}
"""Policy, and published mean JCT [s]."""


@dataclass(frozen=True)
class Settings:
    """Nothing but the policies: the example is what it is."""

    policies: tuple[str, ...] = tuple(POLICIES)


@dataclass(frozen=True)
class Point:
    """The example under one policy."""

    policy: str


def points(settings: Settings) -> Iterator[Point]:
    """One run for each policy."""
    require_known("policy", settings.policies, POLICIES)
    for label in settings.policies:
        yield Point(label)


def outcome(label: str) -> sp.Outcome:
    """A verified run of the example."""
    jobs = sp.Workload.from_columns(**JOBS)
    return sp.simulate(jobs, "1x2", POLICIES[label][0], sp.Semantics(round_s=1.0))


def run(point: Point) -> list[Row]:
    """JCT of each job [s]."""
    found = outcome(point.policy)
    return [
        {"policy": point.policy, "job": str(job), "jct_s": float(jct_s)}
        for job, jct_s in zip(found.instance.workload.id, found.jct_s, strict=True)
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A Gantt chart for each policy."""
    picture, panels = page.grid(1, len(settings.policies), 1.9)
    for axes, label in zip(panels, settings.policies, strict=True):
        shown = outcome(label)
        gantt(shown.instance, shown.schedule, axes, until_s=18.0)
        mean_s = table[table.policy == label].jct_s.mean()
        axes.set_title(f"{label}: mean JCT {mean_s:.1f} s")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Mean JCT of each policy."""
    mean_s = table.groupby("policy", sort=False).jct_s.mean()
    return (
        "Mean JCT: " + ", ".join(f"{label} {value:.1f} s" for label, value in mean_s.items()) + "."
    )


def published(label: str, value: float) -> Published:
    """The paper's mean JCT beside ours."""

    def ours(table: pd.DataFrame) -> Estimate | None:
        rows = table[table.policy == label]
        return None if rows.empty else estimate([rows.jct_s.mean()])

    return Published(
        system="Tiresias",
        place="NSDI'19, Figures 7 and 20",
        what=f"mean JCT of the worked example under {label}",
        value=value,
        unit="s",
        ours=ours,
        settings="3 jobs, 2 GPUs, intervals of 1 s",
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
