"""The figures of Hadar and HadarE: their kept tables, captions and measures."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.studies.figures import Cause, Figure, Size
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import read_table
from support.paths import ROOT

FOLDER = ROOT / "paper_figs"
NAMES = sorted(path.stem for path in FOLDER.glob("hadar*.py"))
TINY = {
    "hadar_certified_ratio": {"largest_gangs": (16,), "seeds": 1, "optimum_jobs": 0},
    "hadar_decision_time": {"gpus": (24,), "jobs": (8,), "seeds": 1},
    "hadar_round_length": {"rounds_s": (720.0,), "seeds": 1, "jobs": 2},
    "hadar_simulation": {"jobs": 8, "systems": ("Gavel",)},
    "hadar_utilities": {"jobs": 8, "bounds": ("1",), "utilities": ("completion_time",)},
    "hadare_clusters": {"clusters": ("lab",), "mixes": (2,), "seeds": 1},
}
NOT_MEASURED = {"seed", "jobs", "gpus", "round_s", "theta", "fill"}


def figure(name: str) -> Figure:
    return load_figure(FOLDER / f"{name}.py")


def module(name: str) -> ModuleType:
    """The module that a figure's functions are of."""
    return sys.modules[figure(name).run.__module__]


def test_every_figure_is_tried_here() -> None:
    assert sorted(TINY) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_table_has_every_published_number(name: str) -> None:
    found = figure(name)
    table = read_table(FOLDER / "data" / f"{name}.csv")
    for each in found.published:
        compared = each.compared(table)
        assert compared is not None, each.what
        assert np.isfinite(compared.ours.mean)
    caption = found.caption(table, found.sizes[Size.DEFAULT].settings)
    changed = table.copy()
    rng = np.random.default_rng(0)
    for column in table.select_dtypes("number").columns.difference(list(NOT_MEASURED)):
        changed[column] = table[column] * rng.uniform(1.5, 3.0, len(table))
    # A caption is computed from the table: with other numbers it says something else.
    assert found.caption(changed, found.sizes[Size.DEFAULT].settings) != caption


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_run_gives_rows_twice_the_same(name: str) -> None:
    found = figure(name)
    settings = replace(found.sizes[Size.QUICK].settings, **TINY[name])
    chosen = list(found.points(settings))
    assert len(set(chosen)) == len(chosen) >= 1
    rows = found.run(chosen[-1])
    again = found.run(chosen[-1])
    if name != "hadar_decision_time":  # CPU times are its subject.
        assert rows == again
    numbers = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("hadar_simulation", {"systems": ("Hadr",)}),
        ("hadar_simulation", {"workloads": ("helios",)}),
        ("hadar_utilities", {"bounds": ("2",)}),
        ("hadar_round_length", {"cluster": "aws"}),
        ("hadare_clusters", {"systems": ("Gavel", "none")}),
        ("hadar_decision_time", {"gpus": (8,)}),
        ("hadar_decision_time", {"systems": ("YARN-CS",)}),
        ("hadar_certified_ratio", {"largest_gangs": (3,)}),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, changes: dict[str, object]) -> None:
    settings = replace(figure(name).sizes[Size.QUICK].settings, **changes)
    with pytest.raises(InputError, match=r"expected|is not one of|does not decide"):
        list(figure(name).points(settings))


def test_the_trace_is_asked_for_where_it_is_needed() -> None:
    point = next(iter(figure("hadar_simulation").points(module("hadar_simulation").Settings())))
    with pytest.raises(InputError, match="expected the trace, --philly FILE"):
        figure("hadar_simulation").run(point)


def simulated(rates: str, limit: float) -> pd.DataFrame:
    """Two seeds, on which Hadar has 1.5 and 2.5 times Gavel's mean JCT."""
    rows = [
        {"seed": seed, "system": system, "mean_jct_h": jct_h}
        for seed, gavel_h, hadar_h in ((0, 3.0, 2.0), (1, 5.0, 2.0))
        for system, jct_h in (("Gavel", gavel_h), ("Hadar 1/JCT filled", hadar_h))
    ]
    return pd.DataFrame(rows).assign(workload="philly", rates=rates, limit_jct=limit)


def test_only_measured_rates_stand_beside_published_numbers() -> None:
    (jct,) = (
        each
        for each in figure("hadar_simulation").published
        if each.what.startswith("Hadar 1/JCT filled: mean JCT over Gavel, Philly")
    )
    compared = jct.compared(simulated("measured", 2.4))
    assert compared is not None
    assert compared.ours.mean == 2.0
    assert compared.limit == 2.4
    assert jct.compared(simulated("made up", 2.4)) is None
    # These jobs stand for the paper's: a limit below 2.5 says nothing of its own.
    assert (str(compared.verdict), compared.cause) == ("not", Cause.NOT_REACHABLE)
    above = jct.compared(simulated("measured", 2.6))
    assert above is not None
    assert (str(above.verdict), above.cause) == ("open", Cause.NOT_READ)


def test_a_limit_is_the_mean_over_the_seeds_of_the_value() -> None:
    """A limit above the number on one seed of two does not allow it on both."""
    for name, column in (("hadar_simulation", "system"), ("hadar_utilities", "utility")):
        rows = pd.DataFrame({column: ["Gavel", "Gavel"], "seed": [0, 1], "limit_ttd": [1.3, 1.0]})
        given = (rows, "Gavel", "limit_ttd") if column == "system" else (rows, "limit_ttd")
        assert module(name).mean_limit(*given) == pytest.approx(1.15)


def test_the_other_factor_of_the_same_runs_is_said() -> None:
    """A better TTD at a quarter of Gavel's mean JCT is no better scheduler."""
    bounds, fill = ["Gavel", "estimated", "0"], [False, True, True]
    table = searched().assign(rates="measured", bounds=bounds, fill=fill)
    (ttd,) = (each for each in figure("hadar_utilities").published if each.claim.startswith("TTD"))
    compared = ttd.compared(table)
    assert compared is not None
    assert "The limit is below 1.2 on 0 of 1 seeds" in compared.remark
    assert "the mean JCT of the same runs is 2.5 times as good as Gavel's" in compared.remark
    assert compared.others is not None
    assert compared.others.count == 2


def test_hadare_is_compared_draw_by_draw() -> None:
    table = pd.DataFrame(
        [
            {"cluster": "lab", "jobs": 5, "seed": seed, "system": system, "ttd_h": ttd_h}
            for seed, system, ttd_h in (
                (0, "Hadar", 2.0),
                (0, "HadarE", 1.0),
                (1, "Hadar", 8.0),
                (1, "HadarE", 2.0),
            )
        ]
    )
    hadare = module("hadare_clusters")
    assert hadare.beside(table, "ttd_h", "Hadar")["ratio"].tolist() == [0.5, 0.25]
    assert hadare.beside(table, "ttd_h", "Gavel").empty
    change = hadare.ours("lab", "ttd_h", "Hadar", None)(table.assign(rates="measured"))
    assert change.mean == pytest.approx(-62.5)
    # No run takes less than no time.
    assert -100.0 < change.low < -75.0


def searched() -> pd.DataFrame:
    """Gavel and two combinations, one of which has both published factors."""
    rows = [
        ("Gavel", "Gavel", False, 12.0, 5.0),
        ("fairness", "1", False, 10.0, 2.0),
        ("fairness", "0", True, 12.0, 5.0),
    ]
    table = pd.DataFrame(rows, columns=["utility", "bounds", "fill", "ttd_h", "mean_jct_h"])
    return table.assign(seed=0, limit_ttd=1.3, limit_jct=3.0)


def test_combinations_that_have_both_factors_are_counted() -> None:
    found = module("hadar_utilities")
    settings = found.Settings()
    assert found.factors(searched())["ttd"].tolist() == [1.2, 1.0]
    assert "TTD 1.2x and mean JCT 2.5x: 1 of 2; no worse than Gavel in either: 2" in found.caption(
        searched(), settings
    )
    slower = searched().assign(ttd_h=[12.0, 10.1, 12.1])
    assert "2.5x: 0 of 2; no worse than Gavel in either: 1" in found.caption(slower, settings)


def test_bounds_of_prices_are_those_of_the_jobs() -> None:
    """A job of 1 GPU and one of 2, of 1 and 3 rounds alone on the faster type."""
    found = module("hadar_utilities")
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[1, 2],
        work=[360, 1080],
        throughput=[[1.0, 0.5], [1.0, 0.5]],
        gpu_types=("v100", "k80"),
    )
    instance = sp.Instance(sp.Cluster.parse("1x4:v100,1x4:k80"), jobs)
    (point,) = (
        each
        for each in found.points(
            found.Settings(bounds=("1",), utilities=("completion_time",), seeds=1)
        )
        if each.utility and not each.fill
    )
    least, most = found.price_bounds(point, instance)
    assert most == 1 / 360
    # 1/4 of the least demand, 2 rounds of 1 GPU, over 8 GPUs, times the least utility for a GPU and round.
    assert least == pytest.approx(0.25 * 2 / 8 * (1 / (6 * 360)) / 12)
    assert found.price_bounds(replace(point, bounds="10"), instance) == (least, 10 * most)
    assert max(found.price_bounds(replace(point, bounds="0"), instance)) < 1e-9 * least
    assert found.price_bounds(replace(point, bounds="estimated"), instance) == (0.0, 0.0)
