"""Axes of a study over terms: runs, keys, columns and mistakes as if every entry were written in the conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.studies.comparisons import rankings, settings_of
from shadowprice.studies.difference import difference
from shadowprice.studies.page import study_page
from shadowprice.studies.pictures import SCREEN, pictures
from shadowprice.studies.plan import PlannedRun, StudyPlan, plan_study
from shadowprice.studies.results import StudyResults, read_results
from shadowprice.studies.run_study import study
from shadowprice.studies.run_task import RunTask
from shadowprice.studies.study_file import StudyFile, read_study, study_of

MTBF, RESTART, QUOTAS = "with.failures.mtbf_s", "with.restart", "with.quotas.file"
GIVEN: dict[str, Any] = {
    "study": "swept",
    "workloads": {
        "drawn": {
            "generator": "lognormal",
            "parameters": {"jobs": 25, "median_s": 60, "longest_s": 400, "gang_shares": {1: 1.0}},
        }
    },
    "loads": [0.4],
    "clusters": ["2x4"],
    "policies": ["fifo", "srtf"],
    "seeds": 2,
}
REPAIRED = {"failures": {"repair_s": 60}}


def told(given: dict[str, Any], folder: Path) -> StudyFile:
    """A study by way of its file, as YAML has it."""
    (folder / "study.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    return read_study(folder / "study.yaml")


def plan(given: dict[str, Any], folder: Path) -> StudyPlan:
    return plan_study(told(given, folder), folder)


def keys(runs: tuple[PlannedRun, ...]) -> list[str]:
    return [run.task.key for run in runs]


def test_an_entry_is_the_run_of_conditions_that_name_it(tmp_path: Path) -> None:
    swept = plan(
        {**GIVEN, "conditions": {"c": {"with": REPAIRED}}, MTBF: [900, "3600.0"]}, tmp_path
    )
    by_hand = plan(
        {
            **GIVEN,
            "conditions": {
                str(mtbf_s): {"with": {"failures": {"mtbf_s": mtbf_s, "repair_s": 60}}}
                for mtbf_s in (900, 3600)
            },
        },
        tmp_path,
    )
    assert keys(swept.runs) == keys(by_hand.runs)
    assert len(set(keys(swept.runs))) == len(swept.runs) == 2 * 2 * 2
    assert [run.axes[MTBF] for run in swept.runs] == [900.0] * 4 + [3600.0] * 4
    assert list(swept.runs[0].axes) == list(swept.study.columns)
    means = {
        run.axes[MTBF]: failures.source
        for run in swept.runs
        if (failures := run.task.outcome().instance.failures) is not None
    }
    assert ["mtbf_s=900" in means[900.0], "mtbf_s=3600" in means[3600.0]] == [True, True]


def test_a_term_is_swept_whole_and_in_conditions_without_it(tmp_path: Path) -> None:
    given = {**GIVEN, "seeds": 1, RESTART: ["absent", {}], "with.charges.start_s": [0, 5]}
    found = plan(given, tmp_path)
    instances = {
        (run.axes[RESTART], run.axes["with.charges.start_s"]): run.task.outcome().instance
        for run in found.runs
        if run.axes["policy"] == "srtf"
    }
    assert {point: each.features for point, each in instances.items()} == {
        ("absent", 0.0): set(),
        ("absent", 5.0): {Feature.CHARGES},
        ("restart", 0.0): {Feature.RESTART},
        ("restart", 5.0): {Feature.RESTART, Feature.CHARGES},
    }


def test_paths_are_from_the_folder_of_the_study_and_contents_in_keys(tmp_path: Path) -> None:
    given = {
        **GIVEN,
        "loads": [],
        "workloads": {"w": {"trace": "jobs.csv", "arrivals": "shuffled"}},
        "conditions": {"c": {"with": {"quotas": {"date": "2020-04-01"}}}},
        QUOTAS: ["few.csv", "many.csv"],
    }
    found = {}
    for most in (3, 4):
        folder = tmp_path / str(most)
        folder.mkdir()
        (folder / "jobs.csv").write_text("id,arrival_s,gpus,work,tenant\na,0,1,10,t\nb,5,2,20,t\n")
        for name, gpus in (("few.csv", 2), ("many.csv", most)):
            (folder / name).write_text(f"date,t,total\n2020-04-01,{gpus},{gpus}\n")
        each = found[most] = plan(given, folder)
        assert [run.axes[QUOTAS] for run in each.runs[::4]] == ["few.csv", "many.csv"]
        assert str(folder / "few.csv") in each.files
        assert str(folder) not in "".join(keys(each.runs))
        for run, gpus in ((each.runs[0], 2), (each.runs[-1], most)):
            quotas = run.task.outcome().instance.cluster.quotas
            assert quotas is not None
            assert quotas.gpus == ((gpus,),)
    assert keys(found[3].runs)[:4] == keys(found[4].runs)[:4]
    assert not set(keys(found[3].runs)[4:]) & set(keys(found[4].runs))


def test_a_study_as_plain_data_is_the_study(tmp_path: Path) -> None:
    given = {
        **GIVEN,
        "conditions": {"c": {"with": REPAIRED}},
        MTBF: [900],
        RESTART: ["absent", {}],
        "with.charges": [{"start_s": "5"}],
    }
    found = told(given, tmp_path)
    assert study_of(found.to_plain(), "study") == found
    assert found.to_plain()["with.charges"] == ({"start_s": 5.0},)
    assert found.setting_columns[-3:] == (MTBF, RESTART, "with.charges")


def test_jobs_without_end_may_have_their_windows_swept(tmp_path: Path) -> None:
    endless = {"generator": "gavel-published", "parameters": {"single_gpu": True}, "endless": True}
    given = {**GIVEN, "loads": [], "workloads": {"w": endless}}
    found = plan({**given, "with.window.last": [4, 6]}, tmp_path)
    assert {run.axes["with.window.last"] for run in found.runs} == {4, 6}
    with pytest.raises(InputError, match=r"conditions\['plain'\]: with has no window, needed"):
        plan({**given, "with.window": [{"last": 4}, "absent"]}, tmp_path)


FAILING = {"conditions": {"c": {"with": REPAIRED}}}
MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"with.failurs.mtbf_s": [1]},
        "with.failurs.mtbf_s: failurs: no such term, did you mean 'fail",
    ),
    ({"with.failures.mtbf": [1]}, "with.failures.mtbf: unknown key 'mtbf'; did you mean 'mtbf_s'?"),
    ({"with.restart.now": [1]}, "with.restart.now: unknown key 'now'; expected none"),
    ({"with.copies": ["absent"]}, "with.copies: copies: is no term that is written, but given by"),
    ({MTBF: [900, "soon"]}, "with.failures.mtbf_s[1] is 'soon', expected seconds > 0"),
    ({MTBF: [900, 0]}, "with.failures.mtbf_s[1] is 0.0, expected seconds > 0"),
    ({MTBF: 900}, "with.failures.mtbf_s is '900', expected a list"),
    ({MTBF: []}, "with.failures.mtbf_s is empty, expected at least one"),
    ({MTBF: [900, "900.0"]}, "with.failures.mtbf_s has 900.0, 900.0, expected each once"),
    ({RESTART: [{}, {}]}, "with.restart has restart, restart, expected each once"),
    ({RESTART: ["abesnt"]}, "with.restart[0] is 'abesnt', expected absent or a mapping"),
    (
        {"with.charges": [{"strat_s": 1}]},
        "with.charges[0]: charges: unknown key 'strat_s'; did you",
    ),
    (
        {"with.failures": ["absent"], MTBF: [1]},
        "with.failures.mtbf_s and with.failures are over one term, expected one of the two",
    ),
    ({"with": {"restart": {}}}, "with: is no axis, expected with.TERM.SETTING or with.TERM"),
    ({"with.failures.": [1]}, "with.failures.: is no axis, expected with.TERM.SETTING or"),
    ({"axes": {MTBF: [1]}}, "unknown key 'axes'; expected study"),
    ({"swept": {MTBF: [1]}}, "unknown key 'swept'; did you mean 'with.TERM.SETTING'?"),
    (
        {MTBF: [900]},
        "conditions['plain'], failures.mtbf_s 900: with: failures: law exponential has no repair_s",
    ),
    (
        {**FAILING, MTBF: [900], "with.failures.law": ["exponential", "weibull"]},
        "conditions['c'], failures.mtbf_s 900, failures.law weibull: with: failures: law weibull has",
    ),
    (
        {**FAILING, "with.failures.repair_s": [1]},
        "conditions['c']: with: has failures.repair_s, over which with.failures.repair_s is an axis",
    ),
    (
        {**FAILING, "with.failures": ["absent"]},
        "conditions['c']: with: has failures, over which with.failures is an axis, expected one",
    ),
    (
        {"conditions": {"c": {"with": {"failures": {"repairs_s": 1}}}}, MTBF: [900]},
        "conditions['c']: with: failures: unknown key 'repairs_s'; did you mean 'repair_s'?",
    ),
    (
        {f"with.charges.{name}_s": [*range(600)] for name in ("start", "restart")},
        "has 1440000 runs, expected at most 1000000",
    ),
]


@pytest.mark.parametrize(("more", "message"), MISTAKES)
def test_each_mistake_is_told_with_file_and_place(
    more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        told({**GIVEN, **more}, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'study.yaml'}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


SWEPT = {
    **GIVEN,
    "conditions": {"c": {"with": REPAIRED}},
    MTBF: [900, 3600],
    RESTART: ["absent", {}],
    "bounds": {"columns": 500},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("swept")
    told(SWEPT, made)
    study(made / "study.yaml")
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> StudyResults:
    return read_results(folder / "study.results")


def test_columns_of_results_bear_the_names_of_the_axes(folder: Path, found: StudyResults) -> None:
    columns = ["workload", "load", "cluster", "conditions", MTBF, RESTART, "policy", "seed"]
    for name in ("runs", "groups", "distributions"):
        table = pd.read_parquet(folder / "study.results" / f"{name}.parquet")
        assert list(table.columns[:8]) == columns
        assert set(table[MTBF]) == {900.0, 3600.0}
        assert set(table[RESTART]) == {"absent", "restart"}
    assert len(found.runs) == 2 * 2 * 2 * 2
    assert found.runs["verified"].all()
    assert (found.runs["ratio_flow"] >= 1).all()
    lost = found.runs.groupby(MTBF)["lost_gpu_s"].mean()
    assert lost[900.0] > lost[3600.0]


def test_settings_and_rankings_name_the_entries(found: StudyResults) -> None:
    names = [str(each) for each in settings_of(found)]
    assert names == [
        f"drawn, load 0.4, 2x4, c, failures.mtbf_s {mtbf_s}, {restart}"
        for mtbf_s in (900, 3600)
        for restart in ("restart absent", "restart")
    ]
    assert all(len(each.runs) == 4 for each in settings_of(found))
    where = {(each.where, each.what) for each in rankings(found)}
    assert ("drawn, load 0.4, 2x4, c, restart absent", "values of failures.mtbf_s") in where
    assert ("drawn, load 0.4, 2x4, c, failures.mtbf_s 900", "values of restart") in where


def test_the_report_draws_what_a_number_does(found: StudyResults) -> None:
    assert [name for name in pictures(found, SCREEN) if name.startswith("with-")] == [
        "with-failures-mtbf_s"
    ]
    page = study_page(found)
    assert "Mean JCT against failures.mtbf_s" in page
    assert "failures.mtbf_s 3600, restart absent" in page


def test_what_changed_is_told_by_entry(found: StudyResults) -> None:
    fewer = {name: each for name, each in SWEPT.items() if name != "bounds"}
    other = study({**fewer, MTBF: [900, 1800]})
    lines = list(difference(found, other).lines())
    assert "runs: 8 only in the first, 8 only in the second" in lines
    assert f"{MTBF}: [900.0, 3600.0] -> (900.0, 1800.0)" in lines
    assert lines[-1] == "4 of 4 policies in settings that both have: the same to the last bit"
    plain = study({**GIVEN, "conditions": {"c": {}}, RESTART: ["absent", {}]})
    assert "runs: 16 only in the first, 8 only in the second" in difference(found, plain).lines()


def test_rows_of_entries_are_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a study whose conditions name what the other swept."""
    ran = []
    rows = RunTask.rows
    monkeypatch.setattr(RunTask, "rows", lambda task: ran.append(task) or rows(task))
    by_hand = {name: each for name, each in SWEPT.items() if not name.startswith("with.")}
    named = {
        f"{mtbf_s} {more}": {"with": {"failures": {"mtbf_s": mtbf_s, "repair_s": 60}, **more}}
        for mtbf_s in (900, 3600)
        for more in ({}, {"restart": {}})
    }
    study({**by_hand, "conditions": named}, folder / "study.results")
    assert ran == []
    study(folder / "study.yaml")
