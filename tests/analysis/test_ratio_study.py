"""The ratio study: the same bytes from any number of processes, and after any interruption."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shadowprice.analysis.ratio_study import ratios as ratio_study
from shadowprice.analysis.ratio_study.ratios import FAMILIES, Cell, RatioStudy, run_study
from shadowprice.analysis.ratio_study.report import interval, plot_study, summary
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.strongest import repeatable_bounds
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
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of one process that was never stopped."""
    path = tmp_path_factory.mktemp("study") / "rows.csv"
    run_study(SMALL, path)
    return path


def test_the_table_has_every_row_once(whole: Path) -> None:
    table = pd.read_csv(whole)
    keys = ["family", "jobs", "draw", "policy", "objective"]
    assert len(table) == 2 * 2 * 2 * 2 * 2
    assert not table.duplicated(keys).any()
    assert list(table["family"].unique()) == list(SMALL.families)
    assert (table["ratio"] >= 1.0).all()
    assert np.allclose(table["ratio"], table["cost_s"] / table["bound_s"], rtol=1e-15)


def test_many_processes_leave_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    run_study(SMALL, tmp_path / "rows.csv", processes=2)
    assert (tmp_path / "rows.csv").read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("kept", [0, 3, 40, 500, 700, 1000, -1])
def test_a_stopped_study_goes_on(
    whole: Path, tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at any byte; complete rows are not computed again, and the bytes are those of one run."""
    path, complete = tmp_path / "rows.csv", whole.read_bytes()
    path.write_bytes(complete[:kept])
    left = complete[:kept].count(b"\n")
    computed, original = [], ratio_study.run_cell

    def counted(
        cell: Cell, study: RatioStudy, chosen: tuple[str, ...]
    ) -> list[ratio_study.RatioRow]:
        computed.extend((cell, name) for name in chosen)
        return original(cell, study, chosen)

    monkeypatch.setattr(ratio_study, "run_cell", counted)
    run_study(SMALL, path)
    assert path.read_bytes() == complete
    assert len(computed) == 16 - max(left - 1, 0) // 2


def test_a_finished_study_is_left_as_it_is(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ratio_study, "run_cell", never)
    before = whole.read_bytes()
    assert len(run_study(SMALL, whole)) == 32
    assert whole.read_bytes() == before


def test_a_row_depends_on_its_cell_alone(whole: Path, tmp_path: Path) -> None:
    """Other families, sizes, draws and policies in a study change no row."""
    one = RatioStudy(("burst-mixed",), (9,), 2, ("srtf",), seed=7, columns=2_000)
    run_study(one, tmp_path / "rows.csv")
    assert set((tmp_path / "rows.csv").read_text().splitlines()) <= set(
        whole.read_text().splitlines()
    )


def test_seeds_of_cells_differ() -> None:
    cells = list(RatioStudy(sizes=(5, 6), draws=20).cells())
    assert len({cell.seed(seed) for cell in cells for seed in (0, 1)}) == 2 * len(cells)


def test_files_of_other_studies_are_refused(whole: Path, tmp_path: Path) -> None:
    for other in (replace(SMALL, seed=8), replace(SMALL, columns=99)):
        with pytest.raises(InputError, match="row 2 has seed and columns"):
            run_study(other, whole)
    path = tmp_path / "rows.csv"
    for text in ("a,b\n1,2\n", "my thesis"):
        path.write_text(text)
        with pytest.raises(InputError, match="has columns"):
            run_study(SMALL, path)
        assert path.read_text() == text
    path.write_text(whole.read_text() + "burst,x\n")
    with pytest.raises(InputError, match="row 34 is no row"):
        run_study(SMALL, path)


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
    both = [repeatable_bounds(i, (Objective.FLOW,), columns=2_000) for i in (one, again)]
    assert both[0] == both[1]
    assert both[0][Objective.FLOW].certified


def test_summary_and_intervals(whole: Path) -> None:
    rows = pd.read_csv(whole)
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


def test_picture(whole: Path) -> None:
    figure = plot_study(summary(pd.read_csv(whole)))
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
