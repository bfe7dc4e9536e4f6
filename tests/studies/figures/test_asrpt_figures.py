"""Figures of A-SRPT: bounds bound, ratios are to the best baseline of each instance, the recommended form is ahead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pandas as pd
import pytest

from shadowprice.errors import InputError
from shadowprice.solvers.about import about
from shadowprice.solvers.registry import policies
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import read_table
from support.paths import ROOT

FOLDER = ROOT / "paper_figs"


@pytest.fixture(scope="module")
def setting() -> Iterator[ModuleType]:
    """``paper_figs/_asrpt.py``."""
    load_figure(FOLDER / "asrpt_load.py")
    return sys.modules["_asrpt"]


@pytest.mark.parametrize("scenario", ["fast-nic", "slow-nic"])
@pytest.mark.parametrize("load", [0.9, 1000.0])
def test_no_policy_beats_the_bound(setting: ModuleType, scenario: str, load: float) -> None:
    under = setting.scenario(scenario)
    jobs = setting.trace(40, load, 16, 1, setting.network(under.nic_gb_per_s))
    rows = pd.DataFrame(setting.rows_of(under, setting.POLICIES, jobs, 16)).set_index("policy")
    assert list(rows.index) == [*setting.POLICIES, setting.ANY]
    for column in ("jct_s", "total_completion_s"):
        assert rows[column].idxmin() == setting.ANY
    # Total completion time is mean JCT and the arrivals.
    gap = rows["total_completion_s"] - 40 * rows["jct_s"]
    assert gap.drop(setting.ANY).std() == pytest.approx(0.0, abs=1e-3)


def test_ratios_are_to_the_best_baseline_of_each_instance(setting: ModuleType) -> None:
    table = pd.DataFrame(
        {"seed": seed, "policy": name, "jct_s": jct_s}
        for seed, costs in enumerate(({"SPJF": 4.0, "SPWF": 5.0}, {"SPJF": 6.0, "SPWF": 2.0}))
        for name, jct_s in {**costs, "A-SRPT": 4.0, setting.ANY: 1.0}.items()
    )
    found = setting.relative(table, "jct_s", ["seed"]).pivot_table(
        index="seed", columns="policy", values="ratio"
    )
    assert found["A-SRPT"].tolist() == [1.0, 2.0]
    assert found["SPJF"].tolist() == [1.0, 3.0]
    assert found[setting.ANY].tolist() == [0.25, 0.5]


def test_wrong_settings_are_named(setting: ModuleType) -> None:
    with pytest.raises(InputError, match="scenario 'slow' is not one of fast-nic, slow-nic"):
        setting.scenario("slow")
    with pytest.raises(InputError, match="gpus is 12, expected whole nodes of 8"):
        setting.outcome(
            setting.trace(3, 0.5, 8, 0, setting.network()), 12, "fifo", setting.network()
        )


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean JCT by policy at every scenario and load."""
    return table.pivot_table(index=["scenario", "load"], columns="policy", values="jct_s")


def test_what_is_recommended_for_use_is_ahead_at_every_load_of_the_figure() -> None:
    """The sentence of ``shadowprice policies`` rests on the stored table."""
    assert "asrpt-early on clusters in use" in about(policies()["asrpt"]).use
    found = means(read_table(FOLDER / "data" / "asrpt_load.csv"))
    assert len(found) >= 12
    assert found.index.get_level_values("load").min() <= 0.3
    assert found.index.get_level_values("load").max() >= 0.9
    assert (found["A-SRPT early"] < found["A-SRPT"]).all()


def test_the_stored_table_is_what_the_code_gives() -> None:
    """One instance of the stored table again, to the digits that are stored."""
    figure = load_figure(FOLDER / "asrpt_burst.py")
    settings = figure.sizes["default"].settings
    point = next(iter(figure.points(settings)))
    stored = read_table(FOLDER / "data" / "asrpt_burst.csv")
    mine = stored[(stored["scenario"] == point.scenario) & (stored["seed"] == point.seed)]
    again = pd.DataFrame(figure.run(point))
    assert mine["policy"].tolist() == again["policy"].tolist()
    for column in ("jct_s", "total_completion_s"):
        assert mine[column].to_numpy() == pytest.approx(again[column].to_numpy(), rel=1e-8)


def test_sweeps_change_what_they_say() -> None:
    figure = load_figure(FOLDER / "asrpt_sweeps.py")
    module = sys.modules["asrpt_sweeps"]
    named = {
        (point.sweep, point.value): module.policies(point)
        for point in figure.points(figure.sizes["default"].settings)
    }
    assert named["theta", 2.0]["A-SRPT"] == "asrpt:theta=2"
    assert named["theta", 2.0]["A-SRPT early, overtaking"] == "asrpt-early:overtake=true,theta=2"
    assert named["stretch", 1.25]["A-SRPT"] == "asrpt:stretch=1.25"
    assert "A-SRPT early" not in named["stretch", 1.25]
    assert all(set(module.BASELINES) <= set(each) for each in named.values())
