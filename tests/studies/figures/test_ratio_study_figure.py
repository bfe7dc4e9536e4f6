"""The ratio study: rows that depend on their instance alone, and families that are drawn by seed."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import pandas as pd
import pytest

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.solvers.registry import policies
from shadowprice.studies.figures import Figure, Page, Size
from shadowprice.studies.figures.figure import load_figure
from support.paths import ROOT

FIGURE: Figure = load_figure(ROOT / "paper_figs" / "ratio_study.py")
FAMILIES = FIGURE.sizes[Size.DEFAULT].settings.families
SMALL = replace(
    FIGURE.sizes[Size.QUICK].settings, families=("uniform", "burst-mixed"), sizes=(5,), columns=500
)


@pytest.fixture(scope="module")
def families() -> ModuleType:
    """``paper_figs/_ratio_families.py``."""
    return sys.modules["_ratio_families"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame([row for point in FIGURE.points(SMALL) for row in FIGURE.run(point)])


def test_every_policy_has_a_row_for_each_instance_and_objective(table: pd.DataFrame) -> None:
    keys = ["family", "jobs", "draw", "policy", "objective"]
    assert len(table) == 2 * 1 * 2 * len(policies()) * 2
    assert not table.duplicated(keys).any()
    assert (table["ratio"] >= 1.0).all()
    assert table["ratio"].to_numpy() == pytest.approx(
        (table["cost_s"] / table["bound_s"]).to_numpy(), rel=1e-15
    )


def test_a_row_depends_on_its_instance_alone(table: pd.DataFrame) -> None:
    """Other families and draws change no row."""
    (point,) = FIGURE.points(replace(SMALL, families=("burst-mixed",), draws=1))
    mine = table[(table["family"] == "burst-mixed") & (table["draw"] == 0)]
    pd.testing.assert_frame_equal(
        pd.DataFrame(FIGURE.run(point)), mine.reset_index(drop=True), check_exact=True
    )


def test_instances_of_cells_differ(families: ModuleType) -> None:
    cells = [families.Cell("uniform", jobs, draw) for jobs in (5, 6) for draw in range(10)]
    drawn = [cell.instance(seed).workload for cell in cells for seed in (0, 1)]
    assert all(one != other for k, one in enumerate(drawn) for other in drawn[:k])
    assert cells[3].instance(1).workload == drawn[7]


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_drawn_by_seed(families: ModuleType, name: str) -> None:
    family = families.FAMILIES[name]
    one, again, other = (family.instance(15, seed) for seed in (3, 3, 4))
    assert len(one.workload) == 15
    assert one.workload == again.workload != other.workload
    assert family.mixed == (not one.equal_speeds)
    both = [certified_bounds(i, (Objective.FLOW,), BoundEffort.of_size(2000)) for i in (one, again)]
    assert both[0] == both[1]
    assert both[0][Objective.FLOW].certified


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InputError, match="family 'nowhere' is not one of lognormal"):
        list(FIGURE.points(replace(SMALL, families=("nowhere",))))
    with pytest.raises(ValueError, match="at least 1"):
        replace(SMALL, sizes=(5, 0))


def test_a_panel_is_of_a_family_and_the_best_policy_is_on_top(table: pd.DataFrame) -> None:
    page = Page()
    with page.style():
        picture = FIGURE.draw(table, SMALL, page)
    panels = [axes for axes in picture.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == list(SMALL.families)
    assert [axes.get_xlabel() for axes in panels] == ["cost / bound"] * 2
    best = panels[0].get_yticklabels()[-1].get_text()
    assert f"{best} is best" in FIGURE.caption(table, SMALL)
