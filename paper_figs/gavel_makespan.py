"""Gavel (OSDI'20), section 7.3: makespan of static multi-GPU traces against the number of jobs.

36 GPUs of each type; jobs of the published generator, all there at 0; published policies in the published
simulator. Makespan is the completion of the last job. The published simulator drops a job that has fewer steps
left than GPUs; a dropped job has no completion.

What differs: no space sharing with Gavel. FIFO is that of the published repository, which draws a type of GPU and
then does not use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from _gavel import PAPER_SEEDS, curves, published_curves, rates, servers, verify_completed
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.analysis.plots.style import GREY, colour_of
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
    main,
    ratio_by_seed,
    require_known,
    setting,
)
from shadowprice.studies.presets.gavel.simulator import simulate_gavel

POLICIES = {
    "FIFO": "fifo",
    "Gandiva": "gandiva",
    "agnostic": "min_total_duration",
    "Gavel": "min_total_duration_perf",
}
"""Names on the published simulator's command line."""

TEXT = (("Gandiva", 700, 1.4), ("FIFO", 500, 2.5))
"""Policy, number of jobs, and published makespan over Gavel's."""


@dataclass(frozen=True)
class Settings:
    """Numbers of jobs, seeds and policies."""

    jobs: tuple[int, ...] = (100, 300, 500, 700)
    seeds: int = setting(3, "number of seeds, from 0")
    policies: tuple[str, ...] = tuple(POLICIES)
    gpus_per_type: int = 36
    throughputs: Path | None = setting(None, "Gavel's table (JSON)")
    made_up: bool = setting(False, "made-up rates if no table is given")

    def __post_init__(self) -> None:
        require_known("policy", self.policies, POLICIES)


@dataclass(frozen=True)
class Point:
    """A number of jobs, a seed and a policy."""

    jobs: int
    seed: int
    policy: str
    gpus_per_type: int
    throughputs: Path | None
    made_up: bool


def points(settings: Settings) -> Iterator[Point]:
    """One run for each."""
    s = settings
    return crossed(Point, s, jobs=s.jobs, seed=range(s.seeds), policy=s.policies)


def run(point: Point) -> list[Row]:
    """Makespan [h].

    Completion times are the simulator's own: jobs that share GPUs wait for one another in its rounds, which
    no verified schedule can express; the others' schedules are verified.
    """
    given = rates(point.throughputs, made_up=point.made_up)
    jobs = sp.generate(
        "gavel-published",
        jobs=point.jobs,
        seed=point.seed,
        jobs_per_hour=math.inf,
        throughputs=given,
    )
    policy, where = POLICIES[point.policy], sp.Cluster.parse(servers(point.gpus_per_type))
    shares = policy == "gandiva"
    instance = sp.Instance(where, jobs, sharing_rates=given if shares else None)
    found = simulate_gavel(instance, policy, seed=point.seed)
    if not shares:
        verify_completed(instance, found)
    makespan_h = max(found.end_s.values()) / 3600.0
    return [
        {
            "jobs": point.jobs,
            "seed": point.seed,
            "policy": point.policy,
            "makespan_h": makespan_h,
        }
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Makespan, and times that it is Gavel's."""
    picture, (left, right) = page.grid(1, 2, 2.9)
    page.lines(left, table, x="jobs", y="makespan_h", by="policy", order=settings.policies)
    wide = table.pivot_table(index=["jobs", "seed"], columns="policy", values="makespan_h")
    others = [name for name in settings.policies if name != "Gavel"]
    colours = {name: colour_of(settings.policies.index(name)) for name in others}
    if "Gavel" in wide:
        ratios = wide[others].div(wide["Gavel"], axis=0).stack().rename("ratio").reset_index()
        page.lines(right, ratios, x="jobs", y="ratio", by="policy", order=others, colours=colours)
    theirs = curves("gavel_makespan")
    drawn = theirs[theirs.x.between(table.jobs.min(), table.jobs.max())]
    gavel = drawn[drawn.policy == "Gavel"].set_index("x").y
    published_curves(page, left, drawn, settings.policies)
    ratio = drawn.assign(y=drawn.y / gavel.reindex(drawn.x).to_numpy())
    published_curves(page, right, ratio[ratio.policy != "Gavel"], settings.policies)
    left.set(xlabel="jobs", ylabel="makespan [h]", ylim=(0, None))
    right.set(xlabel="jobs", ylabel="makespan / Gavel's", ylim=(0, None))
    for place, (than, jobs, value) in enumerate(TEXT):
        mark = {"linestyle": "none", "marker": "*", "markersize": 9}
        label = "_" if place else "published, text"
        page.published_curve(right, [jobs], [value], label, colour=colours.get(than, GREY), **mark)
    for axes in (left, right):
        axes.legend()
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Ratios at the largest number of jobs."""
    largest = table[table.jobs == table.jobs.max()]
    said = []
    for name in settings.policies:
        found = _ratio(largest, name)
        if found is not None and name != "Gavel":
            said.append(f"{name} {found.text()}")
    text = f"Makespan of {table.jobs.max()} jobs over Gavel's: {', '.join(said)} times."
    theirs = curves("gavel_makespan").pivot_table(index="x", columns="policy", values="y")
    fifo = (theirs.FIFO / theirs.Gavel).loc[500]
    wide = largest.pivot_table(index="seed", columns="policy", values="makespan_h")
    if {"FIFO", "Gavel"} <= {*wide}:
        ratios = wide.FIFO / wide.Gavel
        text += f" By seed FIFO's is {ratios.min():.2f} to {ratios.max():.2f} times Gavel's."
    return text + f" In the authors' drawing FIFO's is {fifo:.2f} times Gavel's at 500 jobs."


def _ratio(table: pd.DataFrame, than: str, jobs: int | None = None) -> Estimate | None:
    mine = table if jobs is None else table[table.jobs == jobs]
    return ratio_by_seed(mine, better="Gavel", than=than, column="makespan_h")


def beside(than: str, jobs: int, value: float, place: str, cause: Cause, why: str) -> Published:
    """Times that another policy's makespan is Gavel's."""
    return Published(
        system="Gavel",
        place=place,
        what=f"{than} / Gavel, makespan of {jobs} jobs at 0, up to 8 GPUs a job",
        value=value,
        unit="x",
        ours=lambda table: _ratio(table, than, jobs),
        settings="published generator, 108 GPUs, seeds 0 to 2",
        cause=cause,
        why=why,
        claim=f"{than} / Gavel, makespan of {jobs} jobs",
        sampling=Sampling.SAME_SEEDS,
        paper_seeds=PAPER_SEEDS,
        independence=Independence.REPLAYED,
        own_jobs=True,
    )


def drawn_ratio(than: str, jobs: int) -> float:
    """The same in the authors' drawing."""
    theirs = curves("gavel_makespan").pivot_table(index="x", columns="policy", values="y")
    return round(float(theirs[than][jobs] / theirs["Gavel"][jobs]), 2)


SAME = (
    "The published generator and simulator, run again; that the seeds are the authors' is recalled."
)
FIFO_BY_CHANCE = (
    "FIFO of the published repository does not use the type that it draws, and ours follows it: its makespan "
    "differs a great deal by seed."
)
FIGURE = Figure(
    name="gavel_makespan",
    paper="Gavel (OSDI'20), section 7.3, makespan",
    sizes={
        Size.QUICK: Sized(Settings(jobs=(8, 16), seeds=1, gpus_per_type=8, made_up=True), 0.1),
        Size.DEFAULT: Sized(Settings(), 5),
        Size.FULL: Sized(Settings(jobs=(100, 200, 300, 400, 500, 600, 700)), 9),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        beside(*TEXT[0], "OSDI'20, section 7.3", Cause.NONE, SAME),
        *(
            beside(
                "Gandiva",
                jobs,
                drawn_ratio("Gandiva", jobs),
                "the authors' drawing",
                Cause.NONE,
                SAME,
            )
            for jobs in (500, 700)
        ),
        beside(*TEXT[1], "OSDI'20, section 7.3", Cause.ON_PURPOSE, FIFO_BY_CHANCE),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
