"""Pollux (OSDI'21), section 4.2.1: by how much its genetic search misses the optimum of a round.

Runs of Pollux on the workloads of its artifact (``--simulator FILE``, see ``pollux_simulation``). Every so many rounds
the programme of the round is solved as well, for so long at most; the run goes on with what the search chose. A round
is missed by at most one less the mean that the search reached over the programme's bound, which no matrix can pass.
The paper reports nothing of the kind. The quick size has two applications of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from _pollux import NODE_GPUS, term_of, workload_of
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.instances.goodput.allocation_costs import AllocationCosts, Matrix
from shadowprice.solvers.pollux.optimum import best_matrix
from shadowprice.solvers.pollux.pollux import Genetic, Pollux, Population
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.studies.figures import Figure, Page, Row, Size, Sized, main, setting
from shadowprice.studies.presets.pollux import SINGLE, any_batch

CLOSED = 1e-3
"""Rounds whose bound is this close to what the programme found count as solved."""


@dataclass(frozen=True)
class Settings:
    """Workloads, and which rounds."""

    simulator: Path | None = setting(None, "zip of the folder simulator of the paper's artifact")
    loads: tuple[float, ...] = setting((0.5, 1.0), "loads, relative to the paper's")
    workloads: int = setting(8, "workloads of each load, 1..n")
    every: int = setting(60, "rounds from one that is solved to the next")
    limit_s: float = setting(10.0, "time for a round's programme [s]")
    nodes: int = setting(16, "nodes of 4 GPUs")


@dataclass(frozen=True)
class Point:
    """One run."""

    load: float
    workload: int
    every: int
    limit_s: float
    nodes: int
    simulator: Path | None


@dataclass(frozen=True)
class Examined:
    """The search, and the programme of every so many rounds beside it."""

    every: int
    limit_s: float
    rows: list[Row] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def matrix(self, costs: AllocationCosts, jobs: list[int], notes: Population) -> Matrix:
        """What the search chooses."""
        chosen = Genetic().matrix(costs, jobs, notes)
        self.seen.append(len(jobs))
        if len(self.seen) % self.every == 0:
            options = SolverOptions(time_limit_s=self.limit_s, relative_gap=1e-5, confirm=False)
            best = best_matrix(costs, options)
            self.rows.append(
                {
                    "jobs": len(jobs),
                    "missed": best.missed(costs.of(chosen)),
                    "open": best.missed(min(best.cost, costs.of(chosen))),
                }
            )
        return chosen


def points(settings: Settings) -> Iterator[Point]:
    """Every workload of every load."""
    for load in settings.loads:
        for number in range(1, settings.workloads + 1):
            rest = settings.every, settings.limit_s, settings.nodes, settings.simulator
            yield Point(load, number, *rest)


def run(point: Point) -> list[Row]:
    """Rounds that were solved: live jobs, part of the mean missed, and part that is open."""
    examined = Examined(point.every, point.limit_s)
    policy = Pollux(method=examined, single=SINGLE)
    term = replace(term_of(point.simulator, 0.0), whole_seconds=True)
    run_options = sp.RunOptions(
        round_s=60.0,
        first_round_s=60.0,
        overheads=sp.Overheads(start_s=30.0),
        declared=(term,),
    )
    jobs = any_batch(workload_of(point.simulator, point.load, point.workload))
    sp.simulate(jobs, f"{point.nodes}x{NODE_GPUS}", policy, run_options)
    return [{"load": point.load, "seed": point.workload, **row} for row in examined.rows]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Parts missed, by live jobs and in order of size."""
    picture, (by_jobs, sorted_) = page.grid(1, 2, 2.4)
    solved = table.open <= CLOSED
    for rows, marker, label in ((solved, "o", "solved"), (~solved, "^", "bounded")):
        by_jobs.plot(
            table.jobs[rows],
            100 * table.missed[rows],
            linestyle="none",
            marker=marker,
            markersize=3.0,
            alpha=0.6,
            label=label,
        )
    by_jobs.set(xlabel="live jobs", ylabel="missed, at most [%]", title="by live jobs")
    by_jobs.legend(loc="upper right")
    share = (np.arange(len(table)) + 1) / len(table)
    sorted_.step(100 * np.sort(table.missed), 100 * share, where="post")
    sorted_.set(
        xlabel="missed, at most [%]", ylabel="rounds [%]", title="all rounds", ylim=(0, 101)
    )
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Rounds, how many are optimal, and how much the others miss."""
    optimal = (table.missed <= CLOSED).mean()
    solved = table[table.open <= CLOSED]
    return (
        f"{len(table)} rounds, every {settings.every}th. In {optimal:.0%} of them the search is within "
        f"{CLOSED:.1%} of the best power mean. On average it misses at most {table.missed.mean():.2%}, at the 95th "
        f"percentile {table.missed.quantile(0.95):.1%}, at most {table.missed.max():.1%}; of the {len(solved)} rounds "
        f"that were solved {solved.missed.mean():.2%} on average. The other bounds are "
        f"{settings.limit_s:g} s of a solver's time."
    )


FIGURE = Figure(
    name="pollux_search",
    paper="Pollux (OSDI'21), section 4.2.1: not in the paper",
    sizes={
        Size.QUICK: Sized(Settings(loads=(1.0,), workloads=1, every=3, nodes=4), minutes=0.1),
        Size.DEFAULT: Sized(Settings(), minutes=4.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
