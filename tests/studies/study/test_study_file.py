"""Study files: each mistake is one line with place, value and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.studies.plan import plan_study
from shadowprice.studies.study_file import read_study

TEXT = """\
study: Policies under load
workloads:
  heavy: {generator: lognormal, parameters: {jobs: 20, gang_shares: {1: 0.5, 4: 0.5}}}
loads: [0.7, 0.9]
clusters: [4x4]
policies: [fifo, srtf, easy]
conditions:
  ideal: {}
  charged: {round_s: 60, with: {charges: {restart_s: 30}}}
seeds: 3
bounds: {objectives: [flow]}
statistics: {warm_up: mser5, baseline: easy}
"""
MISTAKES = [
    ("seeds: 3", "seeds: -1", "seeds is -1, expected a whole number >= 1 or a list"),
    ("seeds: 3", "seeds: [1, 1]", "seeds has (1, 1), expected each once"),
    ("loads: [0.7, 0.9]", "loads: [0.7, 0]", "loads[1] is 0.0, expected a number > 0"),
    ("\nloads:", "\nload:", "unknown key 'load'; did you mean 'loads'?"),
    ("generator: l", "generatr: l", "unknown key 'generatr'; did you mean 'generator'?"),
    ("generator: lognormal,", "trace: x,", "parameters is about a generator, and trace is given"),
    ("generator: lognormal", "generator: log", "generator is 'log', expected one of"),
    ("{jobs: 20,", "{job: 20,", "unknown key 'job'; did you mean 'jobs'?"),
    ("[fifo, srtf, easy]", "[]", "policies is empty, expected at least one"),
    (
        "[fifo, srtf, easy]",
        "[fifo, fifo, easy]",
        "policies has fifo, fifo, easy, expected each once",
    ),
    ("[fifo, srtf, easy]", "[fiffo, easy]", "policy 'fiffo'"),
    ("[fifo, srtf, easy]", "['las2d:base=3', easy]", "parameter 'base=3', expected NAME=VALUE"),
    (
        "restart_s: 30",
        "restart_s: x",
        "conditions['charged']: with: charges: restart_s is 'x', expected seconds >= 0",
    ),
    ("[flow]", "[flo]", "objectives[0] is 'flo', expected one of completion, flow, makespan"),
    ("baseline: easy", "baseline: ease", "baseline is 'ease', expected one of fifo, srtf, easy"),
    ("mser5", "mser", "warm_up is 'mser', expected one of none, mser5 or an integer"),
    ("[4x4]", "[4y4]", "4y4"),
    ("ideal: {}", "ideal: {samples: none.txt}", "none.txt: No such file"),
    ("ideal: {}", "ideal: {with: {widths: {file: none.toml}}}", "none.toml: No such file"),
    (
        "ideal: {}",
        "ideal: {with: {window: {last: x}}}",
        "with: window: last is 'x', expected a whole",
    ),
    (
        "ideal: {}",
        "ideal: {with: {winow: {}}}",
        "with: winow: no such term, did you mean 'window'?",
    ),
    ("ideal: {}", "ideal: {with: {charges: {strat_s: 1}}}", "'strat_s'; did you mean 'start_s'?"),
    (
        "ideal: {}",
        "ideal: {with: {restart: }}",
        "with: restart: is None, expected a mapping of settings",
    ),
    ("ideal: {}", "ideal: {with: [restart]}", "with is ['restart'], expected a mapping"),
    ("ideal: {}", "ideal: {placement: nowhere}", "placement 'nowhere': expected one of"),
    ("warm_up: m", "groups: [gangg], warm_up: m", "groups has 'gangg', expected columns of jobs"),
    ("workloads:\n  heavy: {", "workloads:\n - {", "expected a mapping of names to entries"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_each_mistake_is_told_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    file = tmp_path / "study.yaml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        plan_study(read_study(file), tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plan_has_every_combination_once_and_names_are_no_part_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(TEXT)
    plan = plan_study(read_study(file), tmp_path)
    assert len(plan.runs) == 2 * 2 * 3 * 3
    assert len({run.task.key for run in plan.runs}) == len(plan.runs)
    assert len(plan.tasks) == 36 + 2 * 2 * 3
    file.write_text(TEXT.replace("heavy", "other").replace("charged", "dear"))
    renamed = plan_study(read_study(file), tmp_path)
    assert [run.task.key for run in renamed.runs] == [run.task.key for run in plan.runs]


def test_a_recorded_trace_is_run_once_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,arrival_s,gpus,work\na,0,1,10\nb,5,2,20\n")
    file = tmp_path / "study.yaml"
    text = TEXT.replace(
        "{generator: lognormal, parameters: {jobs: 20, gang_shares: {1: 0.5, 4: 0.5}}}",
        "{trace: jobs.csv}",
    )
    file.write_text(text)
    plan = plan_study(read_study(file), tmp_path)
    assert {run.axes["seed"] for run in plan.runs} == {0}
    assert "recorded trace" in plan.notes[0]
    before = plan.runs[0].task.key
    assert "jobs.csv:" in before
    assert str(tmp_path) not in before
    file.write_text(text.replace("jobs.csv", "jobs.csv, arrivals: shuffled"))
    assert len(plan_study(read_study(file), tmp_path).runs) == 3 * len(plan.runs)


def test_a_file_of_widths_is_in_the_key(tmp_path: Path) -> None:
    """Runs are carried out again when what is in the file changes, and not where it lies elsewhere."""
    keys = []
    for folder, widest in (("a", 2), ("b", 2), ("c", 4)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "widths.toml").write_text(f"[models]\n[default]\nwidest = {widest}\n")
        file = tmp_path / folder / "study.yaml"
        file.write_text(TEXT.replace("ideal: {}", "ideal: {with: {widths: {file: widths.toml}}}"))
        keys.append([run.task.key for run in plan_study(read_study(file), file.parent).runs])
    assert keys[0] == keys[1]
    changed = [before != after for before, after in zip(keys[0], keys[2], strict=True)]
    assert sum(changed) == len(changed) // 2
