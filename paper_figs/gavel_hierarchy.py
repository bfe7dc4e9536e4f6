"""Gavel (OSDI'20), Figures 12 and 13: two storeys of fairness over time.

3 GPUs of each type; the notebook's 18 jobs, one more every 4 time steps, six of each of three entities with
weights 1, 2, 3; inside the entities fairness, where jobs have weights 1 and 2 in turn (Figure 12), or FIFO
(Figure 13). Throughput is in equal shares: 1 is what a job has with one GPU for an equal time of each type.
An agnostic policy's is the time that it gives out.

What differs: the notebook's water filling stops before all is given out, ours does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from _gavel import TYPES, curves, rates
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.plots.style import COLOURS
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.generators.gavel_published import hierarchy_jobs
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.workspace import Workspace
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
    require_known,
    setting,
)

ENTITIES = {"entity 1": 1.0, "entity 2": 2.0, "entity 3": 3.0}
INSIDE = {"fairness": "Figure 12", "fifo": "Figure 13"}
NAMES = {"fairness": "Fairness", "fifo": "FIFO"}
STEPS_A_JOB, GPUS_OF_A_TYPE = 4, 3


@dataclass(frozen=True)
class Settings:
    """Nothing is drawn at random but the notebook's jobs."""

    inside: tuple[str, ...] = setting(tuple(INSIDE), "policies inside entities: fairness, fifo")
    jobs: int = setting(18, "a multiple of 3")
    throughputs: Path | None = setting(None, "Gavel's table (JSON)")
    made_up: bool = setting(False, "made-up rates if no table is given")

    def __post_init__(self) -> None:
        require_known("policy inside entities", self.inside, INSIDE)


@dataclass(frozen=True)
class Point:
    """A policy inside the entities, and whether the policy knows types of GPU."""

    inside: str
    policy: str
    jobs: int
    throughputs: Path | None
    made_up: bool


def points(settings: Settings) -> Iterator[Point]:
    """Gavel and the agnostic policy."""
    return crossed(Point, settings, inside=settings.inside, policy=("agnostic", "Gavel"))


def run(point: Point) -> list[Row]:
    """Throughput of every entity at every time step [equal shares]."""
    jobs = hierarchy_jobs(rates(point.throughputs, made_up=point.made_up), jobs=point.jobs)
    assert jobs.throughput is not None
    speed = jobs.throughput[:, [jobs.gpu_types.index(name) for name in TYPES]]
    fair = point.inside == "fairness"
    aware = point.policy == "Gavel"
    policy = WaterFilling(
        "hierarchy",
        aware=aware,
        entity_weights=ENTITIES,
        inside=dict.fromkeys(ENTITIES, point.inside),
    )
    rows: list[Row] = []
    for count in range(1, point.jobs + 1):
        problem = AllocationProblem.from_columns(
            gpu_types=TYPES,
            capacity=[GPUS_OF_A_TYPE] * len(TYPES),
            throughput=speed[:count],
            weight=jobs.weight[:count] if fair else 1.0,
            entity=jobs.tenant[:count].tolist(),
        )
        found = policy.allocate(problem, Workspace())
        found.verify()
        # An equal share of types with as many GPUs each has their mean throughput.
        shares = found.effective_throughput / speed[:count].mean(axis=1)
        given = shares if aware else found.alone.sum(axis=1)
        for step in range(STEPS_A_JOB * (count - 1) + 1, STEPS_A_JOB * count + 1):
            for entity in ENTITIES:
                rows.append(
                    {
                        "inside": point.inside,
                        "policy": point.policy,
                        "step": step,
                        "entity": entity,
                        "shares": float(given[problem.entity == entity].sum()),
                    }
                )
    return rows


def totals(table: pd.DataFrame, inside: str) -> pd.DataFrame:
    """Total throughput by step, a column for each policy."""
    mine = table[table.inside == inside]
    return mine.pivot_table(index="step", columns="policy", values="shares", aggfunc="sum")


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Shares of the entities under Gavel, stacked, and totals of both policies."""
    picture, panels = page.grid(1, len(settings.inside), 2.9, sharey=True)
    for axes, inside in zip(panels, settings.inside, strict=True):
        mine = table[(table.inside == inside) & (table.policy == "Gavel")]
        by_entity = mine.pivot_table(index="step", columns="entity", values="shares")
        axes.stackplot(
            by_entity.index,
            by_entity.T.to_numpy(),
            labels=list(by_entity),
            colors=COLOURS,
            alpha=0.7,
            step="mid",
        )
        total = totals(table, inside)
        axes.step(total.index, total.agnostic, "k-", where="mid", linewidth=1.2, label="agnostic")
        theirs = curves("gavel_hierarchy")
        theirs = theirs[theirs.inside == inside]
        for name, marker in (("Gavel", "x"), ("agnostic", "+")):
            drawn = theirs[theirs.policy == name]
            style = {"marker": marker, "markersize": 4.0, "linestyle": "none"}
            page.published_curve(axes, drawn.x, drawn.y, f"{name}, published", **style)
        axes.set(xlabel="time step", ylim=(0, 1.55 * total.max().max()))
        axes.set_title(f"{NAMES[inside]} inside entities")
    panels[0].set_ylabel("throughput [equal shares]")
    panels[0].legend(ncols=2, loc="upper left")
    return picture


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """How much lower the agnostic policy's total is."""
    said = []
    for inside in settings.inside:
        total = totals(table, inside)
        change = 100.0 * (total.agnostic / total.Gavel - 1.0)
        said.append(
            f"{NAMES[inside]} inside entities: the "
            f"agnostic policy's total throughput is {_compared(change.mean())} than Gavel's on average over "
            f"{len(total)} time steps, {_compared(change.iloc[-1])} at the end "
            f"({total.agnostic.iloc[-1]:.2f} and {total.Gavel.iloc[-1]:.2f} equal shares)."
        )
    return " ".join(said)


def _compared(change: float) -> str:
    return f"{abs(change):.1f} % {'lower' if change < 0 else 'higher'}"


def _change(table: pd.DataFrame, inside: str) -> Estimate | None:
    """Change of the total from Gavel to the agnostic policy, mean over steps [%]."""
    total = totals(table, inside)
    if total.empty:
        return None
    return estimate([100.0 * float((total.agnostic / total.Gavel - 1.0).mean())], least=-100.0)


def _last(table: pd.DataFrame, inside: str, policy: str) -> Estimate | None:
    total = totals(table, inside)
    return None if total.empty else estimate([float(total[policy].iloc[-1])])


AGAIN: dict[str, Any] = {
    "cause": Cause.ON_PURPOSE,
    "why": "The notebook's jobs; its water filling stops before all is given out, ours does not.",
    "sampling": Sampling.NOTHING,
    "independence": Independence.REPLAYED,
    "own_jobs": True,
}
"""What is the same of all numbers of this figure."""


def drawn_total(inside: str, policy: str) -> Published:
    """Total throughput that the authors drew at the last step."""
    theirs = curves("gavel_hierarchy")
    there = theirs[(theirs.inside == inside) & (theirs.policy == policy)]
    return Published(
        system="Gavel",
        place=f"OSDI'20, {INSIDE[inside]}, the authors' drawing",
        what=f"{policy}, total throughput of 18 jobs, {NAMES[inside]} inside entities",
        value=round(float(there.y.iloc[-1]), 2),
        unit="equal shares",
        ours=lambda table: _last(table, inside, policy),
        settings="the notebook's 18 jobs, 9 GPUs",
        printed=f"{float(there.y.iloc[-1]):.2f}",
        **AGAIN,
    )


FIGURE = Figure(
    name="gavel_hierarchy",
    paper="Gavel (OSDI'20), Figures 12 and 13",
    sizes={
        Size.QUICK: Sized(Settings(jobs=6, made_up=True), minutes=0.05),
        Size.DEFAULT: Sized(Settings(), minutes=0.1),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        Published(
            system="Gavel",
            place="OSDI'20, section 7.3 and Figure 12",
            what="total throughput of the agnostic policy against Gavel's, fairness inside entities",
            value=-17.0,
            unit="%",
            ours=lambda table: _change(table, "fairness"),
            settings="the notebook's 18 jobs, 9 GPUs, mean over 72 time steps",
            **AGAIN,
        ),
        *(drawn_total("fairness", policy) for policy in ("Gavel", "agnostic")),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
