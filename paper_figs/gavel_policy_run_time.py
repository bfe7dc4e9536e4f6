"""Gavel (OSDI'20), Figure 14: run time of policies against the number of active jobs.

Single-GPU jobs of random types whose rates differ by up to 10 %, a quarter as many GPUs of each type as there are
jobs; CPU seconds of one allocation from scratch, which is verified. The paper reports that hierarchical fairness
takes less than 10 minutes up to 2,048 jobs, with space sharing up to 512.

What differs: another machine, and solvers that make use of the programmes' structure. Where jobs share GPUs their
rates do not differ beyond their types.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _gavel import TYPES, rates
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.instances.allocation_file import looked_up_pairs
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.policies.max_min_fairness import MaxMinFairness
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.workspace import Workspace
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

ENTITIES = {f"entity {k}": float(k) for k in (1, 2, 3)}
POLICIES: dict[str, AllocationPolicy] = {
    "max-min": MaxMinFairness("las"),
    "hierarchical": WaterFilling("hierarchical", entity_weights=ENTITIES),
    "max-min, sharing": MaxMinFairness("las", packed=True),
    "hierarchical, sharing": WaterFilling("hierarchical", packed=True, entity_weights=ENTITIES),
}
LARGEST = {"hierarchical": 2048, "hierarchical, sharing": 512}
"""Jobs up to which the paper reports less than :data:`LIMIT_S`."""

LIMIT_S = 600.0


@dataclass(frozen=True)
class Settings:
    """Numbers of jobs, seeds and policies."""

    jobs: tuple[int, ...] = (32, 128, 512, 2048)
    sharing_jobs: tuple[int, ...] = setting(
        (32, 128, 512), "numbers of jobs where two may share GPUs"
    )
    seeds: int = setting(3, "number of seeds, from 0")
    policies: tuple[str, ...] = tuple(POLICIES)
    throughputs: Path | None = setting(None, "Gavel's table (JSON)")
    made_up: bool = setting(False, "made-up rates if no table is given")

    def __post_init__(self) -> None:
        require_known("policy", self.policies, POLICIES)


@dataclass(frozen=True)
class Point:
    """A policy, a number of jobs and a seed."""

    policy: str
    jobs: int
    seed: int
    throughputs: Path | None
    made_up: bool


def points(settings: Settings) -> Iterator[Point]:
    """One allocation for each."""
    s = settings
    for policy in s.policies:
        jobs = s.sharing_jobs if POLICIES[policy].packed else s.jobs
        yield from crossed(Point, s, policy=(policy,), jobs=jobs, seed=range(s.seeds))


def problem(table: sp.Throughputs, jobs: int, seed: int, *, pairs: bool) -> AllocationProblem:
    """Single-GPU jobs of random types."""
    draw = np.random.default_rng([jobs, seed])
    kinds = sorted(kind for kind in table.alone if kind[1] == 1 and table.alone[kind][0] > 0)
    chosen = [kinds[k] for k in draw.integers(len(kinds), size=jobs)]
    noise = 1.0 if pairs else draw.uniform(0.9, 1.1, (jobs, 1))
    given = AllocationProblem.from_columns(
        gpu_types=TYPES,
        capacity=[jobs // 4] * len(TYPES),
        entity=[f"entity {1 + k % 3}" for k in range(jobs)],
        throughput=np.array([table.alone[kind] for kind in chosen]) * noise,
    )
    models = [model for model, _ in chosen]
    return given.with_pairs(looked_up_pairs(given, models, table)) if pairs else given


def run(point: Point) -> list[Row]:
    """CPU seconds of one verified allocation."""
    policy = POLICIES[point.policy]
    table = rates(point.throughputs, made_up=point.made_up)
    # What a process does once, such as loading solvers, is not the policy's run time.
    policy.allocate(problem(table, 8, point.seed, pairs=policy.packed), Workspace())
    given = problem(table, point.jobs, point.seed, pairs=policy.packed)
    began = time.process_time()
    found = policy.allocate(given, Workspace())
    cpu_s = time.process_time() - began
    found.verify()
    return [
        {"policy": point.policy, "jobs": point.jobs, "seed": point.seed, "cpu_s": max(cpu_s, 1e-4)}
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Run time by number of jobs, both in powers."""
    picture, (axes,) = page.grid(1, 1, 3.2)
    page.lines(axes, table, x="jobs", y="cpu_s", by="policy", order=settings.policies)
    page.published_line(axes, LIMIT_S, "10 minutes")
    axes.set(xlabel="active jobs", ylabel="CPU time [s]", xscale="log", yscale="log")
    counts = sorted(table.jobs.unique())
    axes.set_xticks(counts, [str(count) for count in counts], minor=False)
    axes.minorticks_off()
    axes.legend(ncols=2, loc="upper left")
    # Room for the legend.
    highest_s = max(table.cpu_s.max(), LIMIT_S if page.compares else 0.0)
    axes.set_ylim(top=30.0 * highest_s)
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Longest run of each policy at the largest number of jobs."""
    said = []
    for name in settings.policies:
        mine = table[table.policy == name]
        jobs = mine.jobs.max()
        longest_s = mine[mine.jobs == jobs].cpu_s.max()
        text = f"{name}: {longest_s:.2g} s at {jobs:,} jobs"
        if jobs == LARGEST.get(name):
            text += f", {'less' if longest_s < LIMIT_S else 'more'} than 10 minutes"
        said.append(text)
    return f"Longest of {settings.seeds} runs: {'; '.join(said)}."


FIGURE = Figure(
    name="gavel_policy_run_time",
    paper="Gavel (OSDI'20), Figure 14",
    sizes={
        Size.QUICK: Sized(
            Settings(jobs=(32, 64), sharing_jobs=(16, 32), seeds=1, made_up=True), minutes=0.05
        ),
        Size.DEFAULT: Sized(Settings(), minutes=0.5),
        Size.FULL: Sized(
            Settings(
                jobs=(32, 64, 128, 256, 512, 1024, 2048),
                sharing_jobs=(32, 64, 128, 256, 512),
                seeds=5,
            ),
            minutes=2,
        ),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
)

if __name__ == "__main__":
    main(FIGURE)
