"""The figures of Tiresias and Gandiva: their kept tables, captions and measures."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from shadowprice.errors import InputError
from shadowprice.studies.figures import Figure, Page, Size
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import read_table
from support.paths import ROOT

FOLDER = ROOT / "paper_figs"
NAMES = sorted(
    path.stem
    for path in FOLDER.glob("[a-z]*.py")
    if path.stem.startswith(("tiresias_", "gandiva_"))
)
TINY = {
    "gandiva_automl": {"configurations": 12, "gpus": (4,), "judged_at": (0.1,), "seeds": 1},
    "gandiva_nine_days": {"jobs": (30,), "shown_jobs": 30, "hours": 2.0, "seeds": 1},
    "gandiva_packing": {"jobs": 30, "nodes": 2, "seeds": 1},
    "gandiva_time_slicing": {"quanta_s": (60.0,), "charges_s": (1.0,), "minutes": 12},
    "tiresias_placement": {"seeds": 1},
    "tiresias_sweeps": {"jobs": 60, "nodes": 4, "seeds": 1},
    "tiresias_testbed": {"seeds": 1, "restart_s": ()},
    "tiresias_trace": {"jobs": 60, "nodes": 8, "part": 2, "loads": (1.0,), "seeds": 1},
    "tiresias_worked_example": {},
}


def figure(name: str) -> Figure:
    return load_figure(FOLDER / f"{name}.py")


def measures() -> ModuleType:
    """The module of measures beside the figures."""
    figure("tiresias_testbed")
    return sys.modules["_measures"]


def test_every_figure_is_tried_here() -> None:
    assert sorted(TINY) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_table_has_every_published_number(name: str) -> None:
    found = figure(name)
    kept = FOLDER / "data" / f"{name}.csv"
    table = read_table(kept)
    for each in found.published:
        compared = each.compared(table)
        assert compared is not None, each.what
        assert np.isfinite(compared.ours.mean)
        assert f"{compared.verdict}" in compared.sentence()
    caption = found.caption(table, found.sizes[Size.DEFAULT].settings)
    assert caption
    numbers = table.select_dtypes("number").columns.difference(
        [
            "seed",
            "jobs",
            "job",
            "gpus",
            "position",
            "judged_at",
            "quantum_s",
            "charge_s",
            "load",
            "of",
        ]
    )
    changed = table.copy()
    rng = np.random.default_rng(0)
    for column in numbers:
        changed[column] = table[column] * rng.uniform(1.5, 3.0, len(table))
    # A caption is computed from the table: with other numbers it says something else.
    assert found.caption(changed, found.sizes[Size.DEFAULT].settings) != caption


def test_gandivas_row_is_of_the_workload_that_it_was_run_on() -> None:
    """A quarter of the others' jobs and GPUs, at one of their loads."""
    rows = {each.what.partition(" /")[0]: each for each in figure("tiresias_trace").published}
    assert rows["SRTF"].settings.startswith("12,000 jobs, 512 GPUs")
    assert rows["Gandiva"].settings.startswith("3,000 jobs, 128 GPUs")
    assert rows["Gandiva"].why.endswith("picked among those of the other schedulers.")


@pytest.mark.parametrize("name", ["gandiva_nine_days", "tiresias_testbed", "tiresias_trace"])
def test_a_limit_in_a_caption_is_rounded_up(name: str) -> None:
    found = figure(name)
    table = read_table(FOLDER / "data" / f"{name}.csv")
    caption = found.caption(table, found.sizes[Size.DEFAULT].settings)
    (told,) = re.findall(r"No scheduler whatever is more than ([0-9.]+)x better", caption)
    limits = [each.limit(table) for each in found.published if each.limit is not None]
    assert any(limit is not None and 0 <= float(told) - limit < 1e-3 for limit in limits)


def test_that_stopping_alone_gains_is_said_where_fifo_with_it_is_as_fast() -> None:
    found = figure("gandiva_automl")
    table = read_table(FOLDER / "data" / "gandiva_automl.csv")
    for each in found.published:
        if each.remark is not None:
            remark = each.remark(table)
            interval = re.search(r"takes [0-9.]+ \[([0-9.]+),", remark)
            assert interval is not None
            assert ("the stopping gains" in remark) == (float(interval[1]) <= 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_run_gives_rows_twice_the_same(name: str) -> None:
    found = figure(name)
    settings = replace(found.sizes[Size.QUICK].settings, **TINY[name])
    chosen = list(found.points(settings))
    assert chosen
    assert len(set(chosen)) == len(chosen)
    rows = found.run(chosen[0])
    assert rows == found.run(chosen[0])
    numbers = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("tiresias_sweeps", {"hours": (2.0, 4.0)}, "--hours: expected 1 among them"),
        ("tiresias_sweeps", {"queues": (1,)}, "--queues: got 1, expected 2 or more"),
        ("tiresias_trace", {"variants": ("all",)}, "variant 'all' is not one of"),
        ("tiresias_trace", {"part": 65}, "--part: got 65, expected 1 to"),
        ("tiresias_placement", {"workload": "x"}, "workload 'x' is not one of"),
        ("gandiva_automl", {"gpus": (6,)}, "--gpus: got 6, expected multiples of 4"),
        ("gandiva_automl", {"shown": 0.4}, "--shown 0.4: expected one of"),
        ("gandiva_packing", {"window_min": (5.0,)}, "--window-min: got 5, expected two minutes"),
        ("gandiva_packing", {"window_min": (9.0, 5.0)}, "--window-min: got 9,5, expected two"),
    ],
)
def test_settings_that_make_no_figure_are_refused(
    name: str, wrong: dict[str, object], said: str
) -> None:
    found = figure(name)
    settings = replace(found.sizes[Size.DEFAULT].settings, **wrong)
    with pytest.raises(InputError, match=said):
        list(found.points(settings))


def test_a_column_has_no_ratios_of_widths() -> None:
    picture, axes = Page(3.3).grid(1, 2, 2.0, width_ratios=(2, 1))
    assert picture.get_size_inches().tolist() == [3.3, 4.0]
    assert len(axes) == 2
    _, (left, _right) = Page(7.0).grid(1, 2, 2.0, width_ratios=(2, 1))
    assert left.get_subplotspec().get_gridspec().get_width_ratios() == (2, 1)


def test_factors_are_taken_seed_by_seed() -> None:
    table = pd.DataFrame(
        [
            {"seed": seed, "system": system, "measure": "mean", "value": value}
            for seed, system, value in [(0, "a", 2.0), (0, "b", 6.0), (1, "a", 1.0), (1, "b", 5.0)]
        ]
    )
    found = measures().factor(table, "mean", "a", "b")
    assert found.mean == 4.0  # (3 + 5) / 2, not 11 / 3
    assert measures().factor(table, "mean", "a", "c") is None
    assert measures().level(table, "mean", "b").mean == 5.5
    assert measures().level(table, "median", "b") is None


def test_published_curves_rise() -> None:
    for path in sorted((FOLDER / "published").glob("*.csv")):
        assert path.read_text().startswith("# "), path
    for name, label in (
        ("tiresias_testbed_jct", "YARN-CS"),
        ("gandiva_nine_days_jct", "Gandiva"),
    ):
        values, shares = measures().published_curve(name, label)
        assert 50 < len(values) <= 200
        assert np.all(np.diff(values) >= 0)
        assert np.all(np.diff(shares) > 0)


def test_utilisation_of_parts_adds_up() -> None:
    module = figure_module("gandiva_packing")
    point = module.Point(40, 2, (20.0, 200.0), 60.0, 0, "Gandiva, packing")
    jobs = module.sp.generate("gandiva", jobs=point.jobs, seed=0)
    found = module.simulate(module.instance(jobs, "2x4"), module.SYSTEMS[point.system])
    end_s = float(found.end_s.max())
    whole = found.utilisation(0.0, end_s)
    parts = [found.utilisation(k * end_s / 8, (k + 1) * end_s / 8) for k in range(8)]
    assert np.mean(parts) == pytest.approx(whole, rel=1e-9)
    assert found.utilisation() == pytest.approx(whole)
    assert 0 < whole <= 1


def figure_module(name: str) -> ModuleType:
    """The module that a figure's functions are of."""
    return sys.modules[figure(name).run.__module__]
