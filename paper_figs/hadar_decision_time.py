"""Hadar (IPDPS'24), scalability: CPU time of one decision against the number of queued jobs.

All jobs are there at 0 on 60 and on 1,024 GPUs of three types; Gavel's decision is its linear
programme and the choice of jobs for the round. Every job has rates of its own, by up to 10 % off the
measured ones, so that no two are alike. Of the first three decisions the slowest counts. The paper's
curve is not known; it says that 2,000 jobs take minutes (recalled). One thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _hadar import COLOUR_OF, IN_ROUNDS, POLICIES, table
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import NullLocator, StrMethodFormatter

import shadowprice as sp
from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.errors import InputError
from shadowprice.solvers.registry import policy
from shadowprice.studies.figures import (
    Figure,
    Page,
    Row,
    Size,
    Sized,
    crossed,
    main,
    require_known,
    setting,
)

FITTED_FROM = 128
DECISIONS = 3


@dataclass(frozen=True)
class Settings:
    """Sizes of cluster and queue."""

    gpus: tuple[int, ...] = setting((60, 1024), "GPUs, in nodes of 4")
    jobs: tuple[int, ...] = setting((32, 64, 128, 256, 512, 1024, 2048), "queued jobs")
    seeds: int = setting(3, "draws of the jobs")
    systems: tuple[str, ...] = ("Hadar", "Hadar filled", "Gavel")
    throughputs: Path | None = setting(None, "Gavel's table, JSON")


@dataclass(frozen=True)
class Point:
    """One queue, decided on by all systems."""

    gpus: int
    jobs: int
    seed: int
    systems: tuple[str, ...]
    throughputs: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """Every queue on every cluster."""
    require_known("system", settings.systems, POLICIES)
    for name in settings.systems:
        if not POLICIES[name][0].startswith(IN_ROUNDS):
            raise InputError(f"system {name!r} does not decide in rounds")
    for gpus in settings.gpus:
        if gpus < 24:
            raise InputError(f"gpus is {gpus}, expected at least 24: gangs have up to 8 of a type")
    seeds = range(settings.seeds)
    return crossed(Point, settings, gpus=settings.gpus, jobs=settings.jobs, seed=seeds)


def distinct(jobs: int, seed: int, rates: sp.Throughputs) -> sp.Workload:
    """Jobs of the 60-GPU setting, each with rates of its own."""
    drawn = sp.generate("hadar", jobs=jobs, seed=seed, throughputs=rates)
    noise = np.random.default_rng([seed, jobs]).uniform(0.9, 1.1, drawn.throughput.shape)
    return sp.Workload.from_columns(
        arrival_s=drawn.arrival_s,
        gpus=drawn.gpus,
        work=drawn.work,
        throughput=drawn.throughput * noise,
        gpu_types=drawn.gpu_types,
        source=drawn.source,
    )


def cluster(gpus: int) -> str:
    """Nodes of four, as equally over three types as can be."""
    nodes = gpus // 4
    counts = {name: (nodes + 2 - place) // 3 for place, name in enumerate(("v100", "p100", "k80"))}
    return ",".join(f"{count}x4:{name}" for name, count in counts.items())


def run(point: Point) -> list[Row]:
    """CPU time of the slowest of the first decisions, of each system [s]."""
    jobs = distinct(point.jobs, point.seed, table(point.throughputs))
    instance = sp.Instance(sp.Cluster.parse(cluster(point.gpus)), jobs)
    return [
        {
            "gpus": point.gpus,
            "jobs": point.jobs,
            "seed": point.seed,
            "system": name,
            "cpu_s": max(first_decisions_s(instance, policy(POLICIES[name][0]), DECISIONS)),
        }
        for name in point.systems
    ]


def power(rows: pd.DataFrame) -> float | None:
    """Power of the number of jobs that fits best from ``FITTED_FROM`` jobs on; None of fewer than two sizes."""
    mean = rows[rows["jobs"] >= FITTED_FROM].groupby("jobs")["cpu_s"].mean()
    if len(mean) < 2:
        return None
    return float(np.polyfit(np.log(mean.index.to_numpy()), np.log(mean.to_numpy()), 1)[0])


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A panel a cluster, a line a system."""
    picture, panels = page.grid(1, len(settings.gpus), 2.6, sharey=True)
    for axes, gpus in zip(panels, settings.gpus, strict=True):
        rows = table[table["gpus"] == gpus]
        page.lines(
            axes,
            rows,
            x="jobs",
            y="cpu_s",
            by="system",
            order=settings.systems,
            colours=COLOUR_OF,
        )
        axes.set(xscale="log", yscale="log", xlabel="queued jobs", title=f"{gpus:,} GPUs")
        axes.set_xticks(list(settings.jobs)[::2])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    panels[0].set_ylabel("CPU time of a decision [s]")
    panels[0].legend()
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Slowest decisions, and how they grow."""
    said = []
    for (gpus, name), rows in table.groupby(["gpus", "system"], sort=False):
        most = rows[rows["jobs"] == rows["jobs"].max()]["cpu_s"].mean()
        grows = power(rows)
        fitted = "" if grows is None else f", n^{grows:.2f}"
        said.append(f"{name} on {gpus:,} GPUs {most:.2f} s{fitted}")
    return (
        f"Slowest of the first {DECISIONS} decisions, means over the draws of the jobs "
        f"(n = {settings.seeds}) with 95 % intervals, one thread. "
        f"At {max(settings.jobs):,} jobs, and growth from {FITTED_FROM} on: {'; '.join(said)}."
    )


FIGURE = Figure(
    name="hadar_decision_time",
    paper="Hadar (IPDPS'24), time of a decision",
    sizes={
        Size.QUICK: Sized(Settings(gpus=(60,), jobs=(32, 128, 256), seeds=1), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=2.0),
        Size.FULL: Sized(
            Settings(jobs=(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192), seeds=9), minutes=40.0
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
