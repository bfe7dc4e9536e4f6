"""Terms in the conditions of a study: settings by name, paths from the study's folder, draws by its seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import shadowprice as sp
from shadowprice.analysis.run_options import RunOptions
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.traces import load_trace
from shadowprice.studies.plan import plan_study
from shadowprice.studies.run_study import study
from shadowprice.studies.study_file import read_study, study_of
from support.written_failures import failures_of

JOBS = "id,arrival_s,gpus,work,tenant\n" + "".join(
    f"j{k},{20 * k},{k % 3 + 1},{100 + 7 * k},a\n" for k in range(20)
)
LOG = """\
[{"node_id": "x", "event_time": 0.001, "event_type": "fault_start"},
 {"node_id": "x", "event_time": 0.002, "event_type": "fault_end"},
 {"node_id": "y", "event_time": 9, "event_type": "fault_start"}]
"""


def text(conditions: dict[str, Any], **more: Any) -> str:
    return yaml.safe_dump(
        {
            "study": "s",
            "workloads": {"w": {"trace": "jobs.csv", "arrivals": "poisson"}},
            "clusters": ["2x2"],
            "policies": ["fifo", "srtf"],
            "conditions": conditions,
            "seeds": 2,
            **more,
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "quotas.csv").write_text("date,a,total\n2020-04-01,3,3\n")
    (tmp_path / "log.json").write_text(LOG)
    return tmp_path


def test_a_term_of_the_cluster_with_a_path_from_the_folder(folder: Path) -> None:
    terms = {"quotas": {"file": "quotas.csv", "date": "2020-04-01T12:00:00"}, "restart": {}}
    (folder / "study.yaml").write_text(text({"c": {"with": terms}}))
    plan = plan_study(read_study(folder / "study.yaml"), folder)
    assert str(folder / "quotas.csv") in dict(plan.runs[0].task.files)
    assert str(folder) not in plan.runs[0].task.key
    instance = plan.runs[0].task.outcome().instance
    assert instance.features == {Feature.QUOTAS, Feature.RESTART}
    assert instance.cluster.quotas is not None
    assert instance.cluster.quotas.gpus == ((3,),)


def test_a_date_that_nobody_says_is_missed_when_it_is_run(folder: Path) -> None:
    (folder / "study.yaml").write_text(text({"c": {"with": {"quotas": {"file": "quotas.csv"}}}}))
    plan = plan_study(read_study(folder / "study.yaml"), folder)
    with pytest.raises(InputError, match=r"jobs\.csv: does not say the date of its time 0"):
        plan.runs[0].task.outcome()


def test_draws_are_the_seed_s_unless_another_is_written(folder: Path) -> None:
    law = {"mtbf_s": 900, "repair_s": "40"}
    log = {"file": "log.json", "nodes": 9}
    conditions = {
        "law": {"with": {"failures": law}},
        "fixed": {"with": {"failures": {**law, "seed": 7}}},
        "log": {"with": {"failures": log}},
    }
    (folder / "study.yaml").write_text(text(conditions))
    plan = plan_study(read_study(folder / "study.yaml"), folder)
    found: dict[tuple[str, int], set[str]] = {}
    for run in plan.runs:
        failures = run.task.outcome().instance.failures
        assert failures is not None
        found.setdefault((run.axes["conditions"], run.axes["seed"]), set()).add(failures.source)
    # Both policies meet the same faults.
    assert all(len(each) == 1 for each in found.values())
    seeds = {key: int(source.rpartition("=")[2]) for key, (source,) in found.items()}
    assert seeds == {
        **{(name, seed): seed for name in ("law", "log") for seed in (0, 1)},
        **{("fixed", seed): 7 for seed in (0, 1)},
    }


def test_numbers_written_in_other_ways_are_one_run(folder: Path) -> None:
    keys = []
    for charges in ({"start_s": 30}, {"start_s": "30.0"}, {"start_s": 30.0, "restart_s": 0}):
        found = study_of(yaml.safe_load(text({"c": {"with": {"charges": charges}}})), "study")
        keys.append([run.task.key for run in plan_study(found, folder).runs])
        assert study_of(found.to_plain(), "study") == found
    assert keys[0] == keys[1] == keys[2]


def test_a_study_has_the_numbers_of_a_program(folder: Path) -> None:
    terms = {"charges": {"start_s": 10}, "failures": {"law": "none", "interval_s": 64, "cost_s": 4}}
    (folder / "study.yaml").write_text(
        text({"c": {"with": terms}}, workloads={"w": {"trace": "jobs.csv"}})
    )
    rows = study(folder / "study.yaml").runs.set_index("policy")
    options = RunOptions(
        overheads=sp.Overheads(start_s=10.0), failures=failures_of("law=none", 64.0, 4.0)
    )
    jobs = load_trace(folder / "jobs.csv").workload
    for policy in ("fifo", "srtf"):
        alone = sp.simulate(jobs, "2x2", policy, options).summary()
        assert rows.loc[policy, "avg_jct_s"] == alone["avg_jct_s"]


def test_jobs_without_end_need_a_window(folder: Path) -> None:
    endless = {
        "w": {"generator": "gavel-published", "parameters": {"single_gpu": True}, "endless": True}
    }
    given = yaml.safe_load(text({"c": {}}, workloads=endless))
    with pytest.raises(
        InputError, match=r"conditions\['c'\]: with has no window, needed by workload 'w'"
    ):
        plan_study(study_of(given, "study"), folder)
    given["conditions"] = {"c": {"with": {"window": {"first": 3, "last": 6}}}}
    plan = plan_study(study_of(given, "study"), folder)
    window = plan.runs[0].task.outcome().instance.until_complete
    assert window == sp.JobWindow(3, 6)
