"""The ratio study: the same rows from any number of processes, whatever else is in it."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.ratio_study.ratios import FAMILIES, RatioStudy, ratio_table
from shadowprice.analysis.ratio_study.report import interval, plot_study, summary
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.solvers.registry import policies
from support.paths import ROOT

SMALL = RatioStudy(
    families=("uniform", "burst-mixed"),
    sizes=(5, 9),
    draws=2,
    policies=("fifo", "srtf"),
    seed=7,
    columns=2_000,
)


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    """The table of one process."""
    return ratio_table(SMALL)


def test_the_table_has_every_row_once(whole: pd.DataFrame) -> None:
    keys = ["family", "jobs", "draw", "policy", "objective"]
    assert len(whole) == 2 * 2 * 2 * 2 * 2
    assert not whole.duplicated(keys).any()
    assert list(whole["family"].unique()) == list(SMALL.families)
    assert (whole["ratio"] >= 1.0).all()
    assert np.allclose(whole["ratio"], whole["cost_s"] / whole["bound_s"], rtol=1e-15)


def test_many_processes_give_the_same_table(whole: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(ratio_table(SMALL, processes=2), whole, check_exact=True)


def test_a_row_depends_on_its_cell_alone(whole: pd.DataFrame) -> None:
    """Other families, sizes, draws and policies in a study change no row."""
    one = RatioStudy(("burst-mixed",), (9,), 2, ("srtf",), seed=7, columns=2_000)
    mine = (whole["family"] == "burst-mixed") & (whole["jobs"] == 9) & (whole["policy"] == "srtf")
    expected = whole[mine].reset_index(drop=True)
    pd.testing.assert_frame_equal(ratio_table(one), expected, check_exact=True)


def test_seeds_of_cells_differ() -> None:
    cells = list(RatioStudy(sizes=(5, 6), draws=20).cells())
    assert len({cell.seed(seed) for cell in cells for seed in (0, 1)}) == 2 * len(cells)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"families": ("nowhere",)}, "family 'nowhere': expected one of lognormal"),
        ({"policies": ("best",)}, "policy 'best'"),
        ({"sizes": (5, 5)}, "sizes are"),
        ({"sizes": ()}, "sizes are"),
        ({"draws": 0}, "draws has 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_studies_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_all_policies_unless_some_are_named() -> None:
    assert RatioStudy().policies == tuple(policies())
    assert RatioStudy(families=("burst",)).families == ("burst",)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families_are_drawn_by_seed(name: str) -> None:
    one, again, other = (FAMILIES[name].instance(15, seed) for seed in (3, 3, 4))
    assert len(one.workload) == 15
    assert one.workload == again.workload != other.workload
    assert FAMILIES[name].mixed == (not one.equal_speeds)
    both = [certified_bounds(i, (Objective.FLOW,), BoundEffort.of_size(2000)) for i in (one, again)]
    assert both[0] == both[1]
    assert both[0][Objective.FLOW].certified


def test_summary_and_intervals(whole: pd.DataFrame) -> None:
    rows = whole
    table = summary(rows)
    assert len(table) == 2 * 2 * 2 * 2
    assert (table["mean_low"] <= table["mean"]).all()
    assert (table["mean"] <= table["mean_high"]).all()
    pd.testing.assert_frame_equal(table, summary(rows))
    part = summary(rows[rows["family"] == "uniform"])
    pd.testing.assert_frame_equal(part, table[table["family"] == "uniform"].reset_index(drop=True))


def test_the_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for k in range(200):
        low, high = interval(rng.exponential(1.0, 40), np.random.SeedSequence(k))
        hits += low <= 1.0 <= high
    assert 170 <= hits <= 199


def test_picture(whole: pd.DataFrame) -> None:
    figure = plot_study(summary(whole))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == list(SMALL.families)
    assert figure.axes[0].get_xlabel() == "cost / bound"


def test_figure_runs_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "paper_figs"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "argv", ["ratio_study.py", "--help"])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(folder / "ratio_study.py"), run_name="__main__")
    assert left.value.code == 0
