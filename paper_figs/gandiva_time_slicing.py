"""Gandiva (OSDI'18), section 6.1 and Figure 9: six jobs take turns on four GPUs.

Published: with turns of 60 s the six together lose less than 2 % of their throughput. Suspending and resuming takes
0.1 s for image models and up to 1 s for translation (section 4.1); both, and more, are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _gandiva import Run, simulate
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import GREY, colour_of
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Page,
    Published,
    Relation,
    Row,
    Sampling,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    setting,
)

JOBS, GPUS = 6, 4
SHOWN_MIN = 15


@dataclass(frozen=True)
class Settings:
    """Lengths of a turn, charges, and length of the run."""

    quanta_s: tuple[float, ...] = setting((15.0, 30.0, 60.0, 120.0, 300.0), "lengths of a turn [s]")
    charges_s: tuple[float, ...] = setting(
        (0.125, 0.5, 1.0, 4.0), "times to suspend and resume [s]"
    )
    minutes: int = setting(240, "length of a run [min]")


@dataclass(frozen=True)
class Point:
    """One length of a turn with one charge."""

    quantum_s: float
    charge_s: float
    minutes: int


def points(settings: Settings) -> Iterator[Point]:
    """Every pair."""
    return crossed(Point, settings, charge_s=settings.charges_s, quantum_s=settings.quanta_s)


def six_jobs(point: Point) -> Run:
    """Six jobs too long to end in time, on one server."""
    jobs = sp.Workload.from_columns(
        arrival_s=np.zeros(JOBS), gpus=1, work=60.0 * point.minutes, source="six jobs"
    )
    given = sp.Instance(sp.Cluster.parse(f"1x{GPUS}"), jobs, sp.Overheads(restart_s=point.charge_s))
    return simulate(given, (f"gandiva-reactive:quantum_s={point.quantum_s:g}", "count"))


def progress_s(found: Run, at_s: np.ndarray) -> np.ndarray:
    """Work done by every job at these times [s], shape (times, jobs)."""
    schedule = found.schedule
    done = np.zeros((len(at_s), JOBS))
    begin = schedule.start_s + schedule.overhead_s
    for job, start, end in zip(schedule.job, begin, schedule.end_s, strict=True):
        done[:, job] += np.clip(at_s - start, 0.0, max(end - start, 0.0))
    return done


def run(point: Point) -> list[Row]:
    """Throughput that all six lose together, and the least and most that one of them gets."""
    end_s = np.array([60.0 * point.minutes])
    done_s = progress_s(six_jobs(point), end_s)[0]
    return [
        {
            "quantum_s": point.quantum_s,
            "charge_s": point.charge_s,
            "loss_percent": float(100 * (1 - done_s.sum() / (GPUS * end_s[0]))),
            "least_share": float(done_s.min() / end_s[0]),
            "most_share": float(done_s.max() / end_s[0]),
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Progress of the six with turns of a minute, and the loss against the length of a turn."""
    picture, (left, right) = page.grid(1, 2, 2.6)
    at_s = np.linspace(0.0, 60.0 * min(settings.minutes, SHOWN_MIN), 400)
    shown = six_jobs(Point(60.0, 0.5, settings.minutes))
    for job, done in enumerate(progress_s(shown, at_s).T):
        # Jobs that take their turns together lie on one another.
        width, style = (1.0, "--") if job % 2 else (2.6, "-")
        left.plot(
            at_s / 60, done / 60, lw=width, ls=style, color=colour_of(job), label=f"job {job + 1}"
        )
    left.plot(at_s / 60, at_s / 60 * GPUS / JOBS, color=GREY, ls=":", lw=1.2, label="4/6 of a GPU")
    left.set_xlabel("time [min], turns of 60 s")
    left.set_ylabel("work done [min]")
    left.legend()
    for place, charge_s in enumerate(settings.charges_s):
        part = table[table.charge_s == charge_s]
        right.plot(
            part.quantum_s,
            part.loss_percent,
            color=colour_of(place),
            marker="o",
            label=f"{charge_s:g} s a switch",
        )
    page.published_line(right, 2.0, "published: less")
    right.set_xscale("log")
    right.set_yscale("log")
    ticks = sorted(table.quantum_s.unique())
    right.set_xticks(ticks, [f"{q:g}" for q in ticks])
    right.minorticks_off()
    right.yaxis.set_major_formatter("{x:g}")
    right.set_ylim(top=8 * table.loss_percent.max())
    right.set_xlabel("length of a turn [s]")
    right.set_ylabel("throughput lost [%]")
    right.legend(ncols=2, loc="upper right")
    return picture


def at_a_minute(table: pd.DataFrame) -> pd.DataFrame:
    """Rows with turns of 60 s and the charges that the paper measured, up to 1 s."""
    return table[(table.quantum_s == 60) & (table.charge_s <= 1)]


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Loss with turns of a minute, and how equal the shares are."""
    rows = at_a_minute(table)
    said = f"{JOBS} jobs on {GPUS} GPUs for {settings.minutes} min."
    if len(rows):
        said += (
            f" With turns of 60 s they lose {rows.loss_percent.min():.2f} to {rows.loss_percent.max():.2f} % of "
            f"their throughput when a switch takes {rows.charge_s.min():g} to {rows.charge_s.max():g} s; each gets "
            f"{rows.least_share.min():.3f} to {rows.most_share.max():.3f} of a GPU."
        )
    return said


def least_kept(table: pd.DataFrame) -> Estimate | None:
    """Throughput kept with turns of 60 s and a switch of 1 s [%]."""
    rows = at_a_minute(table)
    return estimate([100.0 - rows.loss_percent.max()]) if len(rows) else None


FIGURE = Figure(
    name="gandiva_time_slicing",
    paper="Gandiva (OSDI'18), section 6.1 and Figure 9",
    sizes={
        Size.QUICK: Sized(Settings(minutes=60), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=0.1),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        Published(
            system="Gandiva",
            place="OSDI'18, section 6.1 and Figure 9",
            what="throughput kept by six jobs that take turns of 60 s",
            value=98.0,
            unit="% of the throughput",
            ours=least_kept,
            settings="6 jobs, 4 GPUs, 1 s to suspend and resume",
            cause=Cause.TESTBED,
            why="The longest time of a switch that the paper measured is charged, and nothing else.",
            relation=Relation.AT_LEAST,
            sampling=Sampling.NOTHING,
        ),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
