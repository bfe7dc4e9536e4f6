"""Convergence of bounds, and the warning where the best one knows no queue."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.bound_history import BoundHistory
from shadowprice.analysis.certify import certify
from shadowprice.analysis.run_directory.directory import save
from shadowprice.cli.app import app
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.offline.bounds import Bound, bound_of


def bounds(*pairs: tuple[str, int], certified: bool = True) -> tuple[Bound, ...]:
    return tuple(
        replace(
            bound_of(s * TICKS_PER_S, kind, certified=certified), record={} if certified else None
        )
        for kind, s in pairs
    )


def test_what_a_search_gained_is_said() -> None:
    values = [100, 110, 105, 120, 121]
    found = bounds(("job", 90), *(("priced-plans", value) for value in values), ("fluid", 40))
    history = BoundHistory((*found, *bounds(("milp", 500), certified=False)))
    assert list(history.sentences()) == [
        "fluid: 40 s",
        "job: 90 s",
        "priced-plans: 121 s, 21.000% more than at first in 4 improvements; the last tenth of them gained 0.833%",
    ]
    assert history.warning() is None


def test_no_bound_is_said_to_be_more_than_it_is() -> None:
    found = replace(bound_of(Fraction(12345675 * TICKS_PER_S, 10), "fluid"), record={})
    assert list(BoundHistory((found,)).sentences()) == ["fluid: 1.23456e+06 s"]


def test_a_trivial_bound_is_warned_of() -> None:
    warning = BoundHistory(bounds(("job", 90), ("fluid", 40))).warning()
    assert warning is not None
    assert "knows no queue" in warning
    assert BoundHistory(()).warning() is None
    crowded = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 2], work=[9, 1, 30])
    alone = sp.compare(crowded, "1x4", ["srtf"], "flow", budget_s=0.0)
    idle = sp.compare(crowded, "2x4", ["srtf"], "flow", budget_s=0.0)
    known = sp.compare(crowded, "1x4", ["srtf"], "flow", budget_s=0.5)
    kinds = [row.rows[0].bound_kind for row in (alone, idle, known)]
    assert kinds == ["job", "job", "completion-windows"]
    assert [len(each.warnings) for each in (alone, idle, known)] == [1, 0, 0]


def test_certificates_are_about_flow_and_tell_what_was_tried() -> None:
    crowded = sp.Workload.from_columns(arrival_s=[0, 5, 5], gpus=[2, 1, 2], work=[9, 1, 30])
    found = certify(sp.simulate(crowded, "1x4", "srtf"), budget_s=0.0)
    assert found.objective == sp.compare(crowded, "1x4", ["srtf"], budget_s=0.0).objective == "flow"
    assert list(found.history.by_kind()) == [
        "job",
        "fluid",
        "mean-busy-time",
        "wide-gangs",
        "priced-mean-busy-time-of-nodes",
        "priced-fluid-of-nodes",
    ]
    warning = found.history.warning()
    assert warning is not None
    assert "job, every job as if it were alone" in warning


def test_certify_prints_how_bounds_converged_and_that_one_is_trivial(tmp_path: Path) -> None:
    crowded = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 2], work=[9, 1, 30])
    save(sp.simulate(crowded, "1x4", "srtf"), tmp_path / "run")
    said = CliRunner().invoke(
        app,
        ["certify", str(tmp_path / "run"), "-o", str(tmp_path / "c"), "--budget", "0", "--explain"],
    )
    assert said.exit_code == 0, said.output
    assert "(flow, certified by" in said.stdout.replace("\n", " ")
    assert "bound mean-busy-time: " in said.stderr
    assert "knows no queue" in said.stderr
