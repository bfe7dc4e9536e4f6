"""Runs of a study: the same bytes however they were computed, nothing twice, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.studies import run_study
from shadowprice.studies.comparisons import places, policy_rows, settings_of
from shadowprice.studies.job_table import COLUMNS, job_table
from shadowprice.studies.plan import plan_study
from shadowprice.studies.points.point_rows import PointStore
from shadowprice.studies.points.runner import run_point
from shadowprice.studies.results import TABLES, locked, read_results
from shadowprice.studies.run_study import study
from shadowprice.studies.run_task import RunTask
from shadowprice.studies.study_file import study_of
from support.written_failures import failures_of

SMALL = {
    "study": "small",
    "workloads": {"drawn": {"generator": "lognormal", "parameters": {"jobs": 40}}},
    "loads": [0.7, 0.9],
    "clusters": ["2x4"],
    "policies": ["fifo", "srtf"],
    "seeds": 2,
    "bounds": {"columns": 1000},
}


def tables(folder: Path) -> list[bytes]:
    return [(folder / f"{name}.parquet").read_bytes() for name in TABLES]


@pytest.fixture
def done(tmp_path: Path) -> Path:
    study(SMALL, tmp_path / "done")
    return tmp_path / "done"


def test_rows_are_the_verified_summaries_with_certified_ratios(done: Path) -> None:
    runs = pd.read_parquet(done / "runs.parquet")
    assert len(runs) == 8
    assert runs["verified"].all()
    assert (runs["ratio_flow"] >= 1.0).all()
    row = runs.iloc[0]
    jobs = sp.generate("lognormal", jobs=40, seed=0, load=0.7, gpus_total=8)
    summary = sp.simulate(jobs, "2x4", "fifo").summary()
    assert row["avg_jct_s"] == summary["avg_jct_s"]
    assert row["p99_jct_s"] == summary["p99_jct_s"]
    assert row["bound_flow_s"] <= row["total_flow_s"]
    found = read_results(done)
    assert found.record.failed == {}
    assert "cpu_s" not in runs


def test_types_that_jobs_do_not_tell_apart_are_named(tmp_path: Path) -> None:
    clusters = {"mixed": "1x4:v100,1x4:k80", "plain": "2x4:v100"}
    given = {**SMALL, "clusters": clusters, "loads": [0.7], "policies": ["fifo"], "seeds": 1}
    given.pop("bounds")
    assert study(given, tmp_path / "study").record.notes == (
        "workload 'drawn', cluster 'mixed': GPUs of v100 and k80 are taken as equally fast: the jobs have "
        "no throughputs",
    )


def test_policies_meet_the_same_jobs_at_every_load(done: Path) -> None:
    found = read_results(done)
    gpu_time = found.groups[found.groups["by"] == "all"].groupby("seed")["gpu_s"]
    assert (gpu_time.nunique() == 1).all()
    same = found.runs.groupby(["load", "seed"])["instance"].nunique()
    assert (same == 1).all()
    assert found.runs["instance"].nunique() == 4


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(done: Path, tmp_path: Path) -> None:
    study(SMALL, tmp_path / "two", processes=2)
    assert tables(tmp_path / "two") == tables(done)


def test_a_study_without_a_folder_gives_the_same_rows(done: Path) -> None:
    in_memory = study(SMALL)
    pd.testing.assert_frame_equal(in_memory.runs, read_results(done).runs)


def test_what_has_rows_is_not_run_again(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (done / "points.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut"
    cut.mkdir()
    # As a kill leaves it: half a line at the end.
    (cut / "points.jsonl").write_text("".join(lines[:5]) + lines[5][:50])
    ran = []
    rows = RunTask.rows
    monkeypatch.setattr(RunTask, "rows", lambda task: ran.append(task) or rows(task))
    study(SMALL, cut)
    assert len(ran) == len(lines) - 5
    assert tables(cut) == tables(done)
    ran.clear()
    study({**SMALL, "workloads": {"renamed": SMALL["workloads"]["drawn"]}}, cut)  # type: ignore[index]
    assert ran == []


@pytest.mark.parametrize("full", ["points", "tables"])
def test_a_full_disk_is_told_and_the_same_command_goes_on(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    folder, added = tmp_path / "full", []
    append, write = PointStore._append, run_study.write_results

    def cut(store: PointStore, path: Path, line: str) -> None:
        if len(added) == 5:
            with path.open("a") as file:
                file.write('{"point": "ha')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        added.append(line)
        append(store, path, line)

    def never(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if full == "points":
        monkeypatch.setattr(PointStore, "_append", cut)
    else:
        monkeypatch.setattr(run_study, "write_results", never)
    with pytest.raises(
        InputError, match=r"full: cannot be written: No space left .*command goes on"
    ):
        study(SMALL, folder)
    monkeypatch.setattr(PointStore, "_append", append)
    monkeypatch.setattr(run_study, "write_results", write)
    study(SMALL, folder)
    assert tables(folder) == tables(done)


def test_columns_of_jobs_are_those_that_groups_may_name() -> None:
    jobs = sp.generate("lognormal", jobs=10, seed=0, load=0.7, gpus_total=8)
    failing = sp.RunOptions(failures=failures_of("law=none"))
    tables_of_jobs = [
        job_table(sp.simulate(jobs, "2x4", "fifo", failing)),
        job_table(sp.simulate(jobs, "2x4", "hadare")),
    ]
    found = [name for table in tables_of_jobs for name in table.columns]
    assert set(found) == set(COLUMNS)
    assert {"copies", "failures"} <= set(found)


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    big = {**SMALL, "seeds": 60}
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps(big))
    command = [sys.executable, "-m", "shadowprice", "study", "run", str(file), "--jobs", "2"]
    points = tmp_path / "study.results" / "points.jsonl"
    for least in (20, 60):
        running = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while not points.exists() or points.read_text().count("\n") < least:
            assert time.monotonic() < until
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    keys = [json.loads(line)["point"] for line in points.read_text().splitlines() if _whole(line)]
    assert len(keys) == len(set(keys)) == 2 * 60 * 2 + 2 * 60
    study(big, tmp_path / "at_once")
    assert tables(tmp_path / "study.results") == tables(tmp_path / "at_once")


def _whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_a_run_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    """Gangs of 2 do not fit where there is one GPU, which is known when the jobs are drawn."""
    given = {
        **SMALL,
        "workloads": {
            "pairs": {"generator": "lognormal", "parameters": {"jobs": 5, "gang_shares": {2: 1.0}}}
        },
        "clusters": ["1x1", "1x2"],
        "policies": ["fifo", "asrpt"],
    }
    for key in ("bounds", "loads"):
        given.pop(key, None)
    found = study(given, tmp_path)
    assert set(found.runs["cluster"]) == {"1x2"}
    assert len(found.record.failed) == len(found.runs)


@pytest.mark.parametrize(
    ("conditions", "policy", "message"),
    [
        ({"predictor": "oracle"}, "fifo", "policy 'fifo' takes no predictor"),
        ({"predictor": "nonsense"}, "asrpt", "predictor 'nonsense': expected one of"),
        ({"preset": "tiresias"}, "srtf", "preset tiresias: policy 'srtf', expected one of"),
        ({"preset": "gavel", "placement": "count"}, "fifo", "runs in its own loop"),
    ],
)
def test_conditions_that_a_policy_does_not_take_are_refused_before_any_run(
    conditions: dict[str, str], policy: str, message: str, tmp_path: Path
) -> None:
    given = {**SMALL, "conditions": {"plain": {}, "odd": conditions}, "policies": [policy]}
    if "preset" in conditions:
        del given["conditions"]["plain"]  # type: ignore[attr-defined]
    started: list[object] = []
    with pytest.raises(InputError, match=r"conditions\['odd'\], policies.*" + message):
        study(given, tmp_path, progress=started.append)
    assert started == []


def test_policies_meet_the_same_faults_and_lose_work_by_them() -> None:
    law = {"mtbf_s": 20000, "repair_s": 600, "interval_s": 900}
    failing = {"with": {"failures": law}}
    given = {**SMALL, "conditions": {"sound": {}, "failing": failing}, "loads": [0.7]}
    del given["bounds"]
    found = study(given)
    assert found.record.failed == {}
    runs = found.runs.set_index(["conditions", "policy", "seed"]).sort_index()
    assert runs["verified"].all()
    assert (runs.loc["failing"].groupby("seed")["instance"].nunique() == 1).all()
    worse = runs.loc["failing", "avg_jct_s"] - runs.loc["sound", "avg_jct_s"]
    assert (worse > 0).any()
    jobs = sp.generate("lognormal", jobs=40, seed=1, load=0.7, gpus_total=8)
    failures = failures_of("mtbf_s=20000,repair_s=600,seed=1", 900.0)
    alone = sp.simulate(jobs, "2x4", "fifo", sp.RunOptions(seed=1, failures=failures))
    assert runs.loc[("failing", "fifo", 1), "avg_jct_s"] == alone.summary()["avg_jct_s"]


def test_one_folder_has_one_command_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match="another command is computing"):
        study(SMALL, tmp_path)
    with pytest.raises(InputError, match="expected the folder that `study run` wrote"):
        read_results(tmp_path)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text("id,arrival_s,gpus,work\n" + "".join(f"j{k},{k},1,10\n" for k in range(30)))
    return path


def test_a_file_that_changed_after_planning_is_refused(trace: Path, tmp_path: Path) -> None:
    given = {**SMALL, "workloads": {"t": {"trace": "jobs.csv", "arrivals": "poisson"}}}
    plan = plan_study(study_of(given, "study"), tmp_path)
    path, digest = plan.tasks[0].files[0]
    assert path == str(trace)
    from dataclasses import replace

    wrong = replace(plan.tasks[0], files=((path, digest[::-1]),))
    ended = run_point(wrong)
    assert "not the file that the study was planned with" in ended.why  # type: ignore[union-attr]
    other = replace(plan.tasks[0], code="0")
    assert "expected one version on all machines" in run_point(other).why  # type: ignore[union-attr]
    assert len(run_point(plan.tasks[0]).rows) > 3  # type: ignore[union-attr]


def test_a_policy_that_starves_wide_gangs_does_not_win_by_its_mean() -> None:
    shares = {"1": 0.55, "2": 0.15, "4": 0.15, "8": 0.1, "16": 0.048, "64": 0.002}
    heavy = {
        "generator": "lognormal",
        "parameters": {
            "jobs": 20_000,
            "median_s": 600,
            "sigma": 1.2,
            "longest_s": 20_000,
            "gang_shares": shares,
        },
    }
    found = study(
        {
            "study": "wide gangs",
            "workloads": {"wide": heavy},
            "loads": [0.85],
            "clusters": ["8x8"],
            "policies": ["easy", "srtf"],
            "seeds": 3,
        }
    )
    (setting,) = settings_of(found)
    rows = {row.policy: row.values for row in policy_rows(setting)}
    mean = {name: row["jct_s_mean"].mean for name, row in rows.items()}  # type: ignore[union-attr]
    assert mean["srtf"] < mean["easy"]
    order = places(setting)
    assert order["easy"].place == 1
    assert order["srtf"].place is None
    (unserved,) = order["srtf"].unserved
    assert (unserved.by, unserved.group) == ("gang", "64")
    assert unserved.starved or unserved.behind
    assert unserved.mean_s.mean > 10 * unserved.best_s.mean
    assert "gangs of 64" in unserved.sentence()
