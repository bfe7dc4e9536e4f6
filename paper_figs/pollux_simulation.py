"""Pollux (OSDI'21), Figure 8: mean JCT by load, by the length of rounds, and by interference.

The paper's workloads and profile tables, 64 GPUs in nodes of 4, in the options of its simulator. They are in the
artifact of the paper and not here: ``--simulator FILE`` names a zip of its folder ``simulator``, as in a copy of
github.com/petuum/adaptdl ``git archive --format=zip -o FILE origin/osdi21-artifact:simulator`` writes it. Recorded are
the means over the eight workloads of the loads 0.5 and 1 that the authors published beside them. Interference slows
gangs on several nodes that share one; where jobs are kept apart there is none.

What differs: batches are chosen at decisions, not also where an epoch ends between two; the search is ours, with the
paper's operators. The quick size has two applications of ours and compares with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _pollux import term_of, workload_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import colour_of
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
    estimate,
    main,
    setting,
)

POLICIES = {"Pollux": "pollux", "Optimus": "optimus", "Tiresias": "tiresias"}
"""Names in the preset."""
APART, TOGETHER = "avoided", "not avoided"
RECORDED_S = {
    ("Pollux", 0.5): 1533.9765625,
    ("Pollux", 1.0): 2751.13359375,
    ("Optimus", 0.5): 2395.3640625,
    ("Optimus", 1.0): 5681.93359375,
    ("Tiresias", 0.5): 2091.4921875,
    ("Tiresias", 1.0): 4038.18203125,
}
"""Mean JCT over the eight workloads as the authors published it with the simulator [s]."""


@dataclass(frozen=True)
class Settings:
    """Loads, lengths of rounds, and interference."""

    simulator: Path | None = setting(None, "zip of the folder simulator of the paper's artifact")
    loads: tuple[float, ...] = setting((0.5, 1.0), "loads, relative to the paper's")
    rounds_s: tuple[float, ...] = setting(
        (30.0, 60.0, 120.0, 240.0, 480.0), "lengths of rounds [s]"
    )
    interference: tuple[float, ...] = setting(
        (0.0, 0.25, 0.5), "parts by which jobs are slower that share a node across nodes"
    )
    workloads: int = setting(8, "workloads by load, 1..n")
    few: int = setting(1, "workloads by round and interference, 1..n")
    nodes: int = setting(16, "nodes of 4 GPUs")


@dataclass(frozen=True)
class Point:
    """One run."""

    part: str
    system: str
    load: float
    round_s: float
    interference: float
    workload: int
    nodes: int
    simulator: Path | None


def points(settings: Settings) -> Iterator[Point]:
    """All runs, those of Pollux first."""
    size = settings.nodes, settings.simulator
    for system in POLICIES:
        for load in settings.loads:
            for number in range(1, settings.workloads + 1):
                yield Point("load", system, load, 60.0, 0.0, number, *size)
    for number in range(1, settings.few + 1):
        for round_s in settings.rounds_s:
            yield Point("round", "Pollux", 1.0, round_s, 0.0, number, *size)
        if settings.interference:
            yield Point(APART, "Pollux", 1.0, 60.0, 0.0, number, *size)
        for less in settings.interference:
            yield Point(TOGETHER, "Pollux", 1.0, 60.0, less, number, *size)


def run(point: Point) -> list[Row]:
    """Mean JCT and makespan."""
    name = "pollux-interfering" if point.part == TOGETHER else POLICIES[point.system]
    jobs = workload_of(point.simulator, point.load, point.workload)
    options = sp.RunOptions(
        preset="pollux",
        declared=(term_of(point.simulator, point.interference),),
        round_s=point.round_s,
    )
    found = sp.simulate(jobs, f"{point.nodes}x4", name, options).summary()
    key: Row = {
        "part": point.part,
        "system": point.system,
        "load": point.load,
        "round_s": point.round_s,
        "interference": point.interference,
        "seed": point.workload,
    }
    return [{**key, "jct_h": found["avg_jct_s"] / 3600, "makespan_h": found["makespan_s"] / 3600}]


def of_load(table: pd.DataFrame, system: str, load: float) -> Estimate | None:
    """Mean JCT over the workloads [h]; None without rows."""
    rows = table[(table.part == "load") & (table.system == system) & (table.load == load)]
    return None if rows.empty else estimate(rows["jct_h"])


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """A panel for each of load, rounds and interference."""
    panels = 3 if settings.interference else 2
    picture, (by_load, by_round, *others) = page.grid(1, panels, 2.5)
    rows = table[table.part == "load"]
    page.lines(by_load, rows, x="load", y="jct_h", by="system", order=list(POLICIES))
    for place, system in enumerate(POLICIES):
        known = [load for load in settings.loads if (system, load) in RECORDED_S]
        hours = [RECORDED_S[system, load] / 3600 for load in known]
        mark = {"linestyle": "none", "marker": "x", "markersize": 7.0}
        label = "_" if place else "recorded"
        page.published_curve(by_load, known, hours, label, **mark)
    by_load.set(xlabel="load", ylabel="mean JCT [h]", xticks=settings.loads, title="load")
    by_load.legend(loc="upper left")
    rounds = table[table.part == "round"]
    page.lines(by_round, rounds, x="round_s", y="jct_h", by="system", order=["Pollux"])
    by_round.set(xlabel="length of rounds [s]", xscale="log", title="rounds, load 1")
    by_round.set_xticks(settings.rounds_s, [f"{each:g}" for each in settings.rounds_s])
    by_round.minorticks_off()
    for axes in others:
        draw_interference(table, settings, page, axes)
    for axes in (by_load, by_round, *others):
        axes.set_ylim(0.0, 1.15 * axes.get_ylim()[1])
    return picture


def draw_interference(table: pd.DataFrame, settings: Settings, page: Page, axes: Axes) -> None:
    """Both ways, by how much jobs slow each other."""
    page.lines(
        axes,
        of_interference(table, settings),
        x="interference",
        y="jct_h",
        by="part",
        order=[APART, TOGETHER],
        colours={APART: colour_of(0), TOGETHER: colour_of(3)},
    )
    axes.set(xlabel="slower by", xticks=settings.interference, title="interference, load 1")
    axes.legend(loc="upper left")


def of_interference(table: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Rows of both ways; where jobs are kept apart interference changes nothing."""
    apart = table[table.part == APART]
    each = [apart.assign(interference=less) for less in settings.interference]
    return pd.concat([*each, table[table.part == TOGETHER]])


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Means by load, and what rounds and interference change."""
    where = (
        "two applications of ours"
        if settings.simulator is None and table.seed.max() < 8
        else "the paper's"
    )
    means = [
        f"{system} {found.mean:.2f} h"
        for system in POLICIES
        if (found := of_load(table, system, max(settings.loads))) is not None
    ]
    rounds = table[table.part == "round"].groupby("round_s")["jct_h"].mean()
    said = (
        f"Jobs and tables: {where}. {4 * settings.nodes} GPUs. Mean JCT at load {max(settings.loads):g}: "
        f"{', '.join(means)} (mean over {settings.workloads} of the workloads). With rounds of "
        f"{rounds.index.max():g} s it is {rounds.iloc[-1] / rounds.iloc[0]:.2f} times that with "
        f"{rounds.index.min():g} s ({settings.few} of the workloads)."
    )
    if settings.interference:
        most = max(settings.interference)
        ways = of_interference(table, settings).groupby(["part", "interference"])["jct_h"].mean()
        gain = ways[TOGETHER, most] / ways[APART, most]
        said += (
            f" Where jobs that are not kept apart slow each other by {most:.0%} it is {gain:.2f} times that where "
            f"they are kept apart ({settings.few} of the workloads)."
        )
    return said


def recorded(system: str, load: float) -> Published:
    """A recorded mean beside ours."""
    draws = system == "Pollux"
    why = (
        "The search draws; its authors allow 5 % between runs."
        if draws
        else "The authors' jobs and rules, run again."
    )
    return Published(
        system="Pollux",
        place="OSDI'21 artifact, Figure 8a",
        what=f"mean JCT under {system}, load {load:g}",
        value=round(RECORDED_S[system, load] / 3600, 4),
        unit="h",
        ours=lambda table: of_load(table, system, load),
        settings="8 workloads of the artifact, 64 GPUs",
        cause=Cause.NONE,
        why=why,
        sampling=Sampling.SAME_SEEDS,
        paper_seeds=tuple(range(1, 9)),
        independence=Independence.REPLAYED,
        own_jobs=True,
    )


FIGURE = Figure(
    name="pollux_simulation",
    paper="Pollux (OSDI'21), Figure 8",
    sizes={
        Size.QUICK: Sized(
            Settings(
                loads=(1.0,),
                rounds_s=(60.0, 240.0),
                interference=(0.0, 0.5),
                workloads=1,
                few=1,
                nodes=4,
            ),
            minutes=0.1,
        ),
        Size.DEFAULT: Sized(Settings(), minutes=8.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(recorded(*each) for each in RECORDED_S),
)

if __name__ == "__main__":
    main(FIGURE)
