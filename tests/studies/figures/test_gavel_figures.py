"""Figures of Gavel: the authors' points, captions that are computed, runs that are given up and said to be."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from shadowprice.errors import InputError
from shadowprice.studies.figures import Figure, ReproductionVerdict, Size
from shadowprice.studies.figures.command import compared
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import read_table
from support.paths import ROOT

FOLDER = ROOT / "paper_figs"
BY_RATE, FAIRNESS, MAKESPAN, HIERARCHY, RUN_TIME = (
    f"gavel_{name}"
    for name in ("jct_by_rate", "finish_time_fairness", "makespan", "hierarchy", "policy_run_time")
)
FIGURES = (BY_RATE, FAIRNESS, MAKESPAN, HIERARCHY, RUN_TIME)


def figure(name: str) -> Figure:
    return load_figure(FOLDER / f"{name}.py")


@pytest.fixture(scope="module")
def setting() -> Iterator[ModuleType]:
    """``paper_figs/_gavel.py``."""
    figure(BY_RATE)
    return sys.modules["_gavel"]


def test_the_authors_points(setting: ModuleType) -> None:
    """Numbers that the text has, too, and values that their axes make plain."""
    rates = setting.curves(BY_RATE).set_index(["trace", "policy", "x"]).y
    for trace, rate, factor in (("single", 5.6, 3.5), ("multiple", 2.6, 2.2)):
        found = rates[trace, "LAS", rate] / rates[trace, "Gavel", rate]
        assert found == pytest.approx(factor, rel=0.02)
    makespan = setting.curves(MAKESPAN).set_index(["policy", "x"]).y
    assert makespan["FIFO", 500] / makespan["Gavel", 500] == pytest.approx(2.5, rel=0.02)
    assert makespan["Gandiva", 700] / makespan["Gavel", 700] == pytest.approx(1.4, rel=0.02)
    totals = setting.curves(HIERARCHY).set_index(["inside", "policy", "x"]).y
    # One job has one GPU of three types for a third of the time each; nine GPUs give nine shares.
    assert totals["fairness", "agnostic", 1] == pytest.approx(1.0, abs=0.01)
    assert totals["fairness", "agnostic", 69] == pytest.approx(9.0, abs=0.01)
    for path in (FOLDER / "published").glob("gavel_*.csv"):
        lines = path.read_text().splitlines()
        assert lines[0].startswith("# source Gavel (OSDI'20)"), path
        assert len(lines) <= 200


@pytest.mark.parametrize("name", FIGURES)
def test_a_table_of_rates_is_asked_for(name: str) -> None:
    """The made-up one stands for it only where nothing is compared."""
    found = figure(name)
    for size, sized in found.sizes.items():
        point = next(iter(found.points(sized.settings)))
        assert point.made_up == (size is Size.QUICK)
    with pytest.raises(InputError, match="needs --throughputs FILE"):
        found.run(next(iter(found.points(found.sizes[Size.DEFAULT].settings))))


def rates_table(given_up: bool) -> pd.DataFrame:
    """LAS and Gavel at both highest rates, seed 1 of LAS with gangs given up if asked for."""
    rows = []
    for trace, rate, las_h, gavel_h in (("single", 5.6, 92.0, 26.0), ("multiple", 2.6, 72.0, 32.0)):
        for seed in range(3):
            for policy, mean_h in (("LAS", las_h), ("Gavel", gavel_h)):
                gone = given_up and (trace, seed, policy) == ("multiple", 1, "LAS")
                rows.append(
                    {
                        "trace": trace,
                        "jobs_per_hour": rate,
                        "seed": seed,
                        "policy": policy,
                        "given_up": gone,
                        "jct_h": math.nan if gone else mean_h * (1 + 0.02 * seed),
                        "dropped": int((trace, seed, policy) == ("multiple", 2, "Gavel")),
                        "arrived": 9000,
                        "end_h": 3600.0,
                    }
                )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("given_up", [False, True])
def test_a_run_that_was_given_up_is_in_no_mean_and_said(given_up: bool) -> None:
    found, table = figure(BY_RATE), rates_table(given_up)
    text = found.caption(table, found.sizes[Size.DEFAULT].settings)
    assert ("Up to 8 GPUs a job, 2.6 jobs/h, seed 1: given up after 3,600 h" in text) == given_up
    assert "One GPU a job, 5.6 jobs/h: LAS / Gavel 3.54" in text
    assert "In 1 runs the published simulator drops 1 jobs of the window" in text
    by_what = {each.published.what: each for each in compared(found, table)}
    ratio = by_what["LAS / Gavel, mean JCT, Up to 8 GPUs a job, 2.6 jobs/h"]
    assert ratio.ours.count == (2 if given_up else 3)
    assert ratio.ours.mean == pytest.approx(2.25)
    assert ratio.verdict is ReproductionVerdict.REPLAYED
    assert ratio.seeds == f"{ratio.ours.count}, the paper's seeds"
    assert not any("AlloX" in what for what in by_what)


def test_the_highest_rates_run_first() -> None:
    found = figure(BY_RATE)
    points = list(found.points(found.sizes[Size.DEFAULT].settings))
    assert [(p.trace, p.rate) for p in points[:12]] == [("single", 5.6)] * 12
    assert len(points) == len(set(points)) == 3 * (3 * 4 + 2 * 3)
    assert not any(p.policy == "AlloX" and p.trace == "multiple" for p in points)


def test_no_policy_is_better_than_any_scheduler_can_be() -> None:
    table = read_table(FOLDER / "data" / "gavel_jct_by_rate.csv")
    wide = table[table.dropped == 0].pivot_table(
        index=["trace", "jobs_per_hour", "seed"], columns="policy", values="jct_h"
    )
    assert len(wide) == 15
    least = wide.pop("any scheduler")
    assert (wide.min(axis=1) > least).all()


@pytest.mark.parametrize("name", [BY_RATE, FAIRNESS, MAKESPAN, RUN_TIME])
def test_unknown_policies_are_named(name: str) -> None:
    settings = figure(name).sizes[Size.QUICK].settings
    with pytest.raises(InputError, match="policy 'none' is not one of"):
        replace(settings, policies=("none",))


def test_makespan_is_the_last_completion(setting: ModuleType) -> None:
    found = figure(MAKESPAN)
    settings = replace(found.sizes[Size.QUICK].settings, policies=("FIFO", "Gavel"))
    rows = pd.DataFrame([row for point in found.points(settings) for row in found.run(point)])
    wide = rows.pivot_table(index="jobs", columns="policy", values="makespan_h")
    assert (wide.T.min() > 0).all()
    assert (wide.loc[16] >= wide.loc[8]).all()
    assert "FIFO's is 2.52 times Gavel's" in found.caption(
        rows, None or found.sizes[Size.QUICK].settings
    )


def test_the_agnostic_policy_gives_out_no_more_time_than_there_is() -> None:
    found = figure(HIERARCHY)
    settings = found.sizes[Size.QUICK].settings
    rows = pd.DataFrame([row for point in found.points(settings) for row in found.run(point)])
    total = rows.groupby(["inside", "policy", "step"]).shares.sum()
    for inside in ("fairness", "fifo"):
        agnostic = total[inside, "agnostic"].to_numpy()
        there = np.minimum(1 + np.arange(24) // 4, 9)
        assert (agnostic <= there + 1e-6).all()
        assert agnostic[0] == pytest.approx(1.0)
    text = found.caption(rows, settings)
    lower = 100 * (1 - total["fairness", "agnostic"] / total["fairness", "Gavel"])
    assert f"{abs(lower.mean()):.1f} % lower than Gavel's on average over 24 time steps" in text
    assert compared(found, rows)[0].published.what.startswith("total throughput")


def test_no_published_number_is_given_for_fifo_inside_entities() -> None:
    assert not any("FIFO inside" in each.what for each in figure(HIERARCHY).published)


def test_paths_of_the_curves_are_in_the_repository(setting: ModuleType) -> None:
    assert Path(setting.PUBLISHED) == FOLDER / "published"
