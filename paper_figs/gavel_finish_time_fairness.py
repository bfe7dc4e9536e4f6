"""Gavel (OSDI'20), Figure 11: finish-time fairness on multi-GPU traces: mean JCT by rate, distribution of rho.

36 GPUs of each type; jobs of the published generator; jobs 4,000 to 4,999 are measured, and others go on to
arrive until these are complete. The agnostic policy takes all GPUs for V100s, as in the paper's repository.

What differs: rho of a job is its JCT over its time with 1/n of every type, n being the jobs present on average
while it was there; the paper divides by a time in isolation that it recomputes with every allocation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from _gavel import PAPER_SEEDS, curves, over_window, published_curves
from _measures import curve, measured, quantile_rows
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.plots.style import colour_of
from shadowprice.analysis.run_metrics import finish_time_fairness
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

POLICIES = {"agnostic": "finish_time_fairness", "Gavel": "finish_time_fairness_perf"}
"""Names on the published simulator's command line."""

TEXT = {"JCT [h]": 3.0, "rho": 2.8}
"""Mean of the agnostic policy over Gavel's, by measure, as the text has it."""


@dataclass(frozen=True)
class Settings:
    """Rates and seeds; the window and the cluster are the paper's."""

    rates: tuple[float, ...] = setting((2.6,), "jobs per hour")
    seeds: int = setting(3, "number of seeds, from 0")
    policies: tuple[str, ...] = tuple(POLICIES)
    first_job: int = setting(4000, "first job that is measured")
    last_job: int = setting(5000, "first job after those measured")
    gpus_per_type: int = 36
    give_up_h: float = setting(12000.0, "time at which a run ends in any case [h]")
    throughputs: Path | None = setting(None, "Gavel's table (JSON)")
    made_up: bool = setting(False, "made-up rates if no table is given")

    def __post_init__(self) -> None:
        require_known("policy", self.policies, POLICIES)


@dataclass(frozen=True)
class Point:
    """A rate, a seed and a policy."""

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
    """One run for each."""
    s = settings
    return crossed(Point, s, rate=s.rates, seed=range(s.seeds), policy=s.policies)


def run(point: Point) -> list[Row]:
    """Mean JCT [h], mean and quantiles of rho of the window; nothing if the run was given up."""
    found = over_window(point, POLICIES[point.policy], single_gpu=False)
    key: Row = {"system": point.policy, "jobs_per_hour": point.rate, "seed": point.seed}
    if found is None:
        return list(measured(key, {"given up [h]": point.give_up_h}))
    rho = finish_time_fairness(found.instance, found.jct_s)[found.rows][found.complete]
    values = {"JCT [h]": found.mean_jct_h, "rho": float(rho.mean())}
    return [*measured(key, values), *quantile_rows(key, rho)]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """Mean JCT with the authors' curves, and the distribution of rho at the highest rate."""
    picture, (left, right) = page.grid(1, 2, 2.9)
    jct = table[table.measure == "JCT [h]"]
    page.lines(left, jct, x="jobs_per_hour", y="value", by="system", order=settings.policies)
    theirs = curves("gavel_finish_time_fairness")
    within = theirs.x.between(jct.jobs_per_hour.min() / 2.0, jct.jobs_per_hour.max())
    published_curves(page, left, theirs[within], settings.policies)
    left.set(xlabel="jobs per hour", ylabel="mean JCT [h]", ylim=(0, None))
    rate = table.jobs_per_hour.max()
    for place, name in enumerate(settings.policies):
        values, shares = curve(table[table.jobs_per_hour == rate], name)
        right.plot(values, shares, color=colour_of(place), label=name)
    right.set(xlabel=f"rho at {rate:g} jobs per hour", ylabel="share of jobs", xlim=(0, None))
    right.set_ylim(0, 1)
    gavel = table[(table.system == "Gavel") & (table.jobs_per_hour == rate)]
    for axes, measure, along in ((left, "JCT [h]", "y"), (right, "rho", "x")):
        theirs_is = TEXT[measure] * gavel[gavel.measure == measure].value.mean()
        label = f"text: {TEXT[measure]:g}x Gavel"
        if along == "y":
            mark = {"linestyle": "none", "marker": "*", "markersize": 9}
            page.published_curve(axes, [rate], [theirs_is], label, colour=colour_of(0), **mark)
        else:
            page.published_line(axes, theirs_is, label, along="x")
        if page.compares and along == "y":
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.1 * theirs_is))
        elif page.compares:
            axes.set_xlim(0, max(axes.get_xlim()[1], 1.1 * theirs_is))
    for axes in (left, right):
        axes.legend()
    return picture


def _ratio(table: pd.DataFrame, measure: str, rate: float) -> Estimate | None:
    mine = table[(table.measure == measure) & np.isclose(table.jobs_per_hour, rate)]
    return ratio_by_seed(mine, better="Gavel", than="agnostic", column="value", on="system")


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Ratios at the highest rate, and runs that were given up."""
    rate = table.jobs_per_hour.max()
    said = [
        f"Mean of jobs {settings.first_job:,} to {settings.last_job - 1:,}; arrivals go on until they are "
        f"complete; seeds: {settings.seeds}."
    ]
    for measure, name in (("JCT [h]", "mean JCT"), ("rho", "mean rho")):
        found = _ratio(table, measure, rate)
        if found is not None:
            said.append(f"Agnostic / Gavel at {rate:g} jobs/h, {name}: {found.text()}.")
    for row in table[table.measure == "given up [h]"].itertuples():
        said.append(
            f"{row.system}, {row.jobs_per_hour:g} jobs/h, seed {row.seed}: given up after {row.value:,.0f} h, "
            "and in no mean."
        )
    return " ".join(said)


def drawn_ratio(rate: float) -> float:
    """Agnostic / Gavel in the authors' drawing."""
    theirs = curves("gavel_finish_time_fairness").pivot_table(
        index="x", columns="policy", values="y"
    )
    return round(float(theirs.agnostic[rate] / theirs.Gavel[rate]), 2)


def beside(measure: str, value: float, place: str, cause: Cause, why: str) -> Published:
    """A published ratio at 2.6 jobs per hour."""
    what = f"mean {'rho' if measure == 'rho' else 'JCT'}"
    return Published(
        system="Gavel",
        place=place,
        what=f"agnostic / Gavel under finish-time fairness, {what}, up to 8 GPUs a job, 2.6 jobs/h",
        value=value,
        unit="x",
        ours=lambda table: _ratio(table, measure, 2.6),
        settings="jobs 4,000 to 4,999 of the published generator, 108 GPUs, seeds 0 to 2",
        cause=cause,
        why=why,
        claim=f"agnostic / Gavel under finish-time fairness, {what}",
        sampling=Sampling.SAME_SEEDS,
        paper_seeds=PAPER_SEEDS,
        independence=Independence.REPLAYED,
        own_jobs=True,
    )


DRAWN = drawn_ratio(2.6)
WHY = f"The text's number is not in the authors' own drawing either, whose points give {DRAWN:g}."
FIGURE = Figure(
    name="gavel_finish_time_fairness",
    paper="Gavel (OSDI'20), Figure 11",
    sizes={
        Size.QUICK: Sized(
            Settings(
                rates=(0.5,), seeds=1, first_job=20, last_job=40, gpus_per_type=8, made_up=True
            ),
            minutes=0.1,
        ),
        Size.DEFAULT: Sized(Settings(), minutes=15),
        Size.FULL: Sized(Settings(rates=(1.6, 2.0, 2.2, 2.4, 2.6)), minutes=50),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=(
        beside("JCT [h]", TEXT["JCT [h]"], "OSDI'20, section 7.3", Cause.UNEXPLAINED, WHY),
        beside(
            "JCT [h]",
            DRAWN,
            "OSDI'20, Figure 11, the authors' points",
            Cause.UNEXPLAINED,
            "Same jobs and simulator; the policy's programme was solved by another solver.",
        ),
        beside(
            "rho",
            TEXT["rho"],
            "OSDI'20, section 7.3",
            Cause.ON_PURPOSE,
            "The published time in isolation is recomputed with every allocation, ours is of the stay.",
        ),
    ),
)

if __name__ == "__main__":
    main(FIGURE)
