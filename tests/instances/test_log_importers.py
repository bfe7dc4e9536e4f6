"""Importers of public logs and of a cluster's own accounts."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.traces import (
    Imported,
    elasticflow,
    load_trace,
    openb,
    slurm_fields,
    spot,
)
from shadowprice.instances.traces.clocks import dates_s
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.traces.recorded_runs import RecordedRuns
from shadowprice.solvers.predictors.predictor import Features

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "trace_samples"
sampled = pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of public traces are absent")

HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time"
)


def read(tmp_path: Path, text: str, format: str | None = None, name: str = "log.csv") -> Imported:
    path = tmp_path / name
    path.write_text(text)
    return load_trace(path, format=format)


def counted(imported: Imported) -> int:
    """Rows that were kept or dropped."""
    counts = imported.counts()
    return counts["kept"] + counts["dropped"] + counts["censored"]


def at(seconds: int) -> str:
    return str(np.datetime64("2020-06-01T00:00:00") + seconds).replace("T", " ")


ROW = st.tuples(
    st.integers(0, 16),  # GPUs
    st.integers(0, 10**6),  # submitted
    st.integers(0, 10**5),  # in the queue
    st.integers(0, 10**6),  # ran
    st.sampled_from(["COMPLETED", "FAILED", "CANCELLED", "RUNNING"]),
)


@given(st.lists(ROW, min_size=1, max_size=8), st.sampled_from(["all", "completed"]))
def test_every_row_is_replayed_as_it_ran_or_dropped_for_a_reason(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int, str]], keep: str
) -> None:
    lines, expected = [], {}
    for k, (gpus, submit, queue, ran, state) in enumerate(rows):
        start, end = submit + queue, submit + queue + ran
        ended = "" if state == "RUNNING" else at(end)
        lines.append(
            f"{k},u,v{k % 2},{gpus},1,1,{state},{at(submit)},{at(start)},{ended},{ran},{queue}"
        )
        if gpus and ended and ran and (keep == "all" or state == "COMPLETED"):
            expected[str(k)] = (gpus, float(ran), f"v{k % 2}", submit)
    text = "\n".join([HELIOS, *lines])
    folder = tmp_path_factory.mktemp("log")
    if not expected:
        with pytest.raises(InputError, match=r"no usable row is left; (dropped|censored)"):
            read(folder, text, f"helios:keep={keep}")
        return
    imported = read(folder, text, f":keep={keep}")
    jobs = imported.workload
    found = {
        name: (gpus, work, tenant)
        for name, gpus, work, tenant in zip(jobs.id, jobs.gpus, jobs.work, jobs.tenant, strict=True)
    }
    assert found == {name: each[:3] for name, each in expected.items()}
    first = min(each[3] for each in expected.values())
    arrivals = dict(zip(jobs.id, jobs.arrival_s, strict=True))
    assert arrivals == {name: each[3] - first for name, each in expected.items()}
    assert imported.rows_read == counted(imported) == len(rows)


def test_a_duration_that_contains_the_queue_is_found(tmp_path: Path) -> None:
    row = "j,u,1,8,9,Eval,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:00:10+00:00,2023-05-17 11:00:18+00:00"
    imported = read(tmp_path, f"{ACME}\n{row},18,10,144\n")
    assert imported.workload.work.tolist() == [8.0]
    (finding,) = imported.report
    assert finding.action == "contradicted"
    assert "'duration' is not end_time - start_time" in str(finding)


def attempt(start: str, end: str, gpus: int) -> dict[str, object]:
    detail = [{"ip": "m1", "gpus": [f"gpu{k}" for k in range(gpus)]}]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly(*attempts: dict[str, object], **changed: object) -> dict[str, object]:
    job = {
        "status": "Pass",
        "vc": "v",
        "jobid": "a",
        "user": "u",
        "submitted_time": "2017-10-07 01:00:00",
    }
    return {**job, "attempts": list(attempts), **changed}


TWO = philly(
    attempt("2017-10-07 01:00:00", "2017-10-07 01:01:00", 8),
    attempt("2017-10-07 01:05:00", "2017-10-07 01:07:00", 4),
)


@pytest.mark.parametrize(("attempts", "seconds"), [("sum", 180), ("span", 420), ("last", 120)])
def test_attempts_of_philly(tmp_path: Path, attempts: str, seconds: float) -> None:
    other = philly(attempt("2017-10-07 01:00:00", "None", 1), jobid="b")
    none = philly(jobid="c")
    before_and_after = philly(
        attempt("2017-11-05 00:30:00", "2017-11-05 03:30:00", 1),
        jobid="d",
        submitted_time="2017-11-05 00:30:00",
    )
    text = json.dumps([TWO, other, none, before_and_after])
    imported = read(tmp_path, text, f"philly-log:attempts={attempts}")
    # The clock is set back within the last one: four hours, not three.
    assert imported.workload.work.tolist() == [seconds, 4 * 3600.0]
    assert imported.workload.gpus.tolist() == [8, 1]
    assert imported.rows_read == counted(imported) == 4
    assert f"run time is the {attempts} of attempts" in imported.notes


def test_accounts_of_slurm(tmp_path: Path) -> None:
    head = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES|Elapsed"
    rows = (
        "1|u|lab|gpu|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T00:03:00|cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1|x",
        "1.batch|||gpu|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T00:03:00|cpu=4,gres/gpu=2|x",
        "2_3|u|lab|gpu|CANCELLED by 1001|2026-01-01T00:00:10|2026-01-01T00:01:00|2026-01-01T00:01:30|"
        "gres/gpu:a100=1,gres/gpu:h100=3|x",
        "3|u|lab|gpu|PENDING|2026-01-01T00:00:20|Unknown|Unknown||x",
        "4|u|lab|cpu|COMPLETED|2026-01-01T00:00:20|2026-01-01T00:01:00|2026-01-01T00:01:30|cpu=4|x",
    )
    text = "\n".join([head, *rows])
    imported = read(tmp_path, text, name="sacct.txt")
    assert imported.workload.gpus.tolist() == [2, 4]
    assert imported.workload.work.tolist() == [120.0, 30.0]
    assert imported.workload.tenant.tolist() == ["lab", "lab"]
    assert imported.rows_read == counted(imported) == 5
    assert imported.workload.outcome.tolist() == ["completed", "cancelled"]
    assert len(read(tmp_path, text, ":keep=completed").workload) == 1


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("TimelimitRaw", ("1440", "90", "Partition_Limit")),
        ("Timelimit", ("1-00:00:00", "01:30:00", "UNLIMITED")),
    ],
)
def test_limits_that_were_submitted_to_slurm(
    tmp_path: Path, field: str, limits: tuple[str, ...]
) -> None:
    head = f"JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES|AllocNodes|{field}"
    row = "{k}|u|lab|long|TIMEOUT|{k}|10|20|gres/gpu=2|2|{limit}"
    rows = [row.format(k=k, limit=limit) for k, limit in enumerate(limits)]
    imported = read(tmp_path, "\n".join([head, *rows]), name="sacct.txt")
    jobs = imported.workload
    assert jobs.limit_s.tolist() == [86400.0, 5400.0, np.inf]
    assert jobs.nodes.tolist() == [2, 2, 2]
    assert jobs.job_class.tolist() == ["long"] * 3
    assert jobs.outcome.tolist() == ["failed"] * 3


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_parts_of_a_gpu_are_kept_when_asked(
    tmp_path_factory: pytest.TempPathFactory, milli: list[int]
) -> None:
    head = openb.HEADER
    rows = [f"p{k},1,1,1,{each},A|B,LS,Running,{k},90,{k}" for k, each in enumerate(milli)]
    imported = read(tmp_path_factory.mktemp("pods"), "\n".join([head, *rows]), ":fractions=keep")
    jobs = imported.workload
    assert jobs.gpus.tolist() == [-(-each // 1000) for each in milli]
    assert jobs.gpu_milli.tolist() == [min(each, 1000) for each in milli]
    rounded = sum(each.count for each in imported.report if each.action == "repaired")
    assert rounded == sum(each > 1000 and each % 1000 > 0 for each in milli)
    assert set(jobs.allowed_types) == {"A|B"}
    assert set(jobs.job_class) == {"LS"}


def swf(**changed: object) -> str:
    values = {"job": 1, "submit": 0, "wait": 5, "run": 60, "allocated": 4, "cpu": -1, "mem": -1}
    values |= {"requested": -1, "limit": 90, "memory": -1, "status": 1, "user": 3, "group": 2}
    values |= {"executable": 7, "queue": 1, "partition": 1, "before": -1, "think": -1}
    return " ".join(str({**values, **changed}[name]) for name in values)


def test_the_standard_workload_format(tmp_path: Path) -> None:
    lines = [
        "; Version: 2.2",
        swf(),
        swf(job=2, allocated=-1, requested=8, group=-1),
        swf(job=3, status=2),
        swf(job=4, run=-1),
        swf(job=5, status=5) + " 1 2 3",  # Frontier has three fields more.
    ]
    imported = read(tmp_path, "\n".join(lines), name="log.swf")
    jobs = imported.workload
    assert jobs.id.tolist() == ["1", "2", "5"]
    assert jobs.gpus.tolist() == [4, 8, 4]
    assert jobs.tenant.tolist() == ["2", "", "2"]
    assert jobs.limit_s.tolist() == [90.0] * 3
    assert jobs.outcome.tolist() == ["completed", "completed", "cancelled"]
    assert imported.rows_read == counted(imported) == 5
    assert len(read(tmp_path, "\n".join(lines), "swf:keep=completed").workload) == 2
    with pytest.raises(InputError, match="line 2: 3 fields, expected 18"):
        read(tmp_path, "; Version: 2.2\n1 2 3\n", name="log.swf")


def pai(tmp_path: Path) -> Path:
    (tmp_path / "pai_job_table.csv").write_text(
        "j1,i1,u1,Terminated,100.0,400.0\nj2,i2,u2,Failed,200.0,900.0\nj3,i3,u3,Running,300.0,\n"
    )
    (tmp_path / "pai_task_table.csv").write_text(
        "j1,worker,2,Terminated,150.0,400.0,600.0,29,100.0,V100\n"
        "j1,ps,1,Terminated,120.0,400.0,600.0,29,,CPU\n"
        "j2,tensorflow,1,Failed,210.0,900.0,600.0,29,50.0,T4\n"
        "j3,tensorflow,1,Running,310.0,,600.0,29,100.0,T4\n"
    )
    (tmp_path / "pai_group_tag_table.csv").write_text("i1,u1,,g7,bert\ni2,u2,,g8,\n")
    return tmp_path / "pai_job_table.csv"


def test_the_tables_of_pai(tmp_path: Path) -> None:
    path = pai(tmp_path)
    imported = load_trace(path, format=":fractions=round-up")
    jobs = imported.workload
    assert jobs.gpus.tolist() == [2, 1]
    assert jobs.work.tolist() == [280.0, 690.0]  # From the first launch of a task.
    assert jobs.group.tolist() == ["g7", "g8"]
    assert imported.rows_read == counted(imported) == 3
    with pytest.raises(InputError, match="1 of 3 jobs ask for parts of a GPU; choose fractions"):
        load_trace(path)
    assert Features.of(jobs).group.tolist() == ["g7", "g8"]
    for instances, actions in ((1, ["dropped"]), (3, ["derived", "dropped"])):
        tasks = tmp_path / "pai_task_table.csv"
        row = f"j2,tensorflow,{instances},Failed,210.0,900.0,600.0,29,{60 / instances},T4\n"
        tasks.write_text("".join([*tasks.read_text().splitlines(keepends=True)[:2], row]))
        kept = load_trace(path, format=":fractions=keep")
        assert kept.workload.gpus.tolist() == [2, 1]
        assert kept.workload.gpu_milli.tolist() == [1000, 600]
        assert [each.action for each in kept.report] == actions
    (tmp_path / "pai_task_table.csv").unlink()
    with pytest.raises(InputError, match="pai_task_table is missing beside it"):
        load_trace(path)


def test_windows_and_longest_work(tmp_path: Path) -> None:
    text = "id,gpus,submit,duration\n1,1,0,10\n2,1,50,500\n3,1,100,20\n"
    imported = read(tmp_path, text, ":window=50-100,longest_s=90")
    assert imported.workload.work.tolist() == [90.0]
    assert imported.workload.arrival_s.tolist() == [0.0]
    assert [str(each) for each in imported.report] == [
        "dropped 2 rows: outside the window (first: 1)",
        "repaired 1 rows: cut to 90 s (first: 2: 500 s)",
    ]


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=5),
    st.sampled_from(["+08:00", "+00:00", "-03:30", ""]),
    st.sampled_from(["", "+01:00", "no date"]),
)
def test_dates_with_an_offset_are_those_moments(
    moments: list[int], offset: str, other: str
) -> None:
    texts = [str(np.datetime64(each, "s")).replace("T", " ") + offset for each in moments]
    mixed = f"{texts[0].removesuffix(offset)}{other}" if other.startswith("+") else other
    found = dates_s(np.array([*texts, mixed], dtype=object))
    expected = []
    for text in [*texts, mixed]:
        try:
            date = datetime.fromisoformat(text)
            expected.append(date.replace(tzinfo=date.tzinfo or UTC).timestamp())
        except ValueError:
            expected.append(math.nan)
    assert np.array_equal(found, expected, equal_nan=True)


def test_a_zone_that_is_chosen_for_dates(tmp_path: Path) -> None:
    head = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES"
    night = "2026-10-25T00:30:00|2026-10-25T00:30:00|2026-10-25T03:30:00"
    text = f"{head}\n1|u|lab|gpu|COMPLETED|{night}|gres/gpu=1\n"
    plain = read(tmp_path, text, name="sacct.txt")
    assert plain.workload.work.tolist() == [3 * 3600.0]
    assert "choose zone=" in " ".join(plain.notes)
    zoned = read(tmp_path, text, ":zone=Europe/Paris", name="sacct.txt")
    assert zoned.workload.work.tolist() == [4 * 3600.0]
    assert zoned.notes == ("dates are of Europe/Paris",)
    with pytest.raises(InputError, match="zone cannot be chosen"):
        read(tmp_path, swf(), "swf:zone=Europe/Paris")


def test_columns_that_could_both_be_meant(tmp_path: Path) -> None:
    text = "id,gpus,submit,duration,run_time\n1,1,0,10,{}\n2,1,0,20,20\n"
    assert read(tmp_path, text.format(10)).workload.work.tolist() == [10.0, 20.0]
    with pytest.raises(InputError, match="columns 'duration' and 'run_time' could both be work"):
        read(tmp_path, text.format(11))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("zone=Mars", "choice 'zone': got 'Mars', expected a zone such as"),
        ("keep=some", "choice 'keep': got 'some', expected all, completed"),
        ("nothing=1", "choices: unknown key 'nothing'; expected keep, attempts"),
        ("keep=all,keep=all", "choices: keep is given twice"),
        ("window=9", "choice 'window': got '9', expected START-END"),
        ("window=9-3", "window: expected START-END in seconds, START before END"),
        ("longest_s=-1", "longest_s: expected seconds above 0"),
    ],
)
def test_a_choice_that_is_none(choices: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LogReading.read(choices)


def test_a_table_has_no_choices_of_logs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fractions, cpu-jobs and zone are for logs"):
        read(tmp_path, "id,gpus,submit,duration\n1,1,0,10\n", "csv:keep=completed")


def test_seconds_in_the_queue_are_no_tenant(tmp_path: Path) -> None:
    imported = read(tmp_path, "id,gpus,submit,duration,queue\n1,1,0,10,7\n2,1,0,10,8\n")
    assert imported.workload.tenant.tolist() == ["", ""]
    assert imported.notes == ("columns that are not used: queue",)
    named = read(tmp_path, "id,gpus,submit,duration,queue\n1,1,0,10,a\n2,1,0,10,8\n")
    assert named.workload.tenant.tolist() == ["a", "8"]
    both = read(tmp_path, "id,gpus,submit,duration,user,vc\n1,1,0,10,u,v\n")
    assert both.workload.tenant.tolist() == ["v"]


@sampled
@pytest.mark.parametrize(
    ("name", "format", "jobs", "rows"),
    [
        ("acme/trace_kalos.sample.csv", None, 2, 2),
        ("acme/trace_seren.sample.csv", None, 2, 2),
        ("helios/cluster_log.sample.csv", None, 3, 3),
        ("philly/cluster_job_log.sample.json", None, 1, 1),
        ("spot2026/job_info_df.sample.csv", None, 4, 4),
        ("openb2023/openb_pod_list_default.csv", ":fractions=drop", 3630, 8152),
        ("openb2023/openb_pod_list_gpuspec33.csv", ":fractions=round-up", None, 8152),
        ("swf/lublin_256.head2000.swf", None, 2000, 2000),
    ],
)
def test_samples_of_public_traces(
    name: str, format: str | None, jobs: int | None, rows: int
) -> None:
    imported = load_trace(SAMPLES / name, format=format)
    assert imported.rows_read == counted(imported) == rows
    assert jobs is None or len(imported.workload) == jobs


def big_helios(rows: int) -> str:
    line = "{k},u,v,{g},4,1,COMPLETED,{s},{s},{e},60,0"
    return "\n".join(
        [HELIOS, *(line.format(k=k, g=k % 8 + 1, s=at(k), e=at(k + 60)) for k in range(rows))]
    )


def big_acme(rows: int) -> str:
    line = "{k},u,1,{g},4,Eval,COMPLETED,{s}+08:00,{s}+08:00,{e}+08:00,60,0,60"
    return "\n".join(
        [ACME, *(line.format(k=k, g=k % 8 + 1, s=at(k), e=at(k + 60)) for k in range(rows))]
    )


def big_slurm(rows: int) -> str:
    head = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES|Timelimit|AllocNodes"
    line = (
        "{k}|u|lab|gpu|CANCELLED by 1001|{s}|{s}|{e}|billing=8,cpu=4,gres/gpu:a100={g},"
        "gres/gpu={g},mem=64G,node=1|1-00:00:00|1"
    )
    return "\n".join(
        [head, *(line.format(k=k, g=k % 8 + 1, s=at(k), e=at(k + 60)) for k in range(rows))]
    )


def big_swf(rows: int) -> str:
    return "\n".join(swf(job=k + 1, submit=k) for k in range(rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "name"),
    [
        (big_helios, "log.csv"),
        (big_acme, "log.csv"),
        (big_slurm, "sacct.txt"),
        (big_swf, "log.swf"),
    ],
)
def test_a_million_rows_in_ten_seconds(
    tmp_path: Path, made: Callable[[int], str], name: str
) -> None:
    path = tmp_path / name
    path.write_text(made(1_000_000))
    began_s = time.process_time()
    imported = load_trace(path)
    assert len(imported.workload) == 1_000_000
    assert time.process_time() - began_s < 15.0  # Below ten on an idle machine.


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    "text", ["id,gpus,submit,duration\n1,1,0,10\n", "id,gpus,submit,duration\n1,x,0,1\n"]
)
def test_an_import_leaves_the_collector_as_it_was(
    tmp_path: Path, text: str, *, enabled: bool
) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with contextlib.suppress(InputError):
            read(tmp_path, text)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


def recorded(tmp_path: Path, text: str, name: str, format: str | None = None) -> RecordedRuns:
    path = tmp_path / name
    path.write_text(text)
    assert load_trace(path, format=format).recorded is None
    runs = load_trace(path, format=format, recorded=True).recorded
    assert runs is not None
    return runs


def test_recorded_runs_of_slurm(tmp_path: Path) -> None:
    head = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES|NodeList"
    rows = (
        "1|u|lab|p|COMPLETED|100|130|190|gres/gpu=2|gpu[01-02,7],login",
        "2|u|lab|p|PENDING|105|Unknown|Unknown||None assigned",
        "3|u|lab|p|COMPLETED|40|45|50|gres/gpu=1|gpu01",
    )
    runs = recorded(tmp_path, "\n".join([head, *rows]), "sacct.txt")
    assert runs.id.tolist() == ["1", "3"]
    assert runs.row.tolist() == [1, 3]
    assert runs.start_s.tolist() == [90.0, 5.0]
    assert runs.end_s.tolist() == [150.0, 10.0]
    path = tmp_path / "sacct.txt"
    assert "columns that are not used: NodeList" in load_trace(path).notes
    late = load_trace(path, format=":window=10-100", recorded=True)
    assert late.recorded is not None
    assert late.recorded.id.tolist() == late.workload.id.tolist() == ["1"]
    assert late.recorded.start_s.tolist() == [30.0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a,b1", ["a", "b1"]),
        ("a[08-11]", ["a08", "a09", "a10", "a11"]),
        ("r[1-2]n[3,5].x,y", ["r1n3.x", "r1n5.x", "r2n3.x", "r2n5.x", "y"]),
        ("a,a", ["a"]),
        ("None assigned", []),
        ("", []),
        ("a[", []),
        ("a[1-]", []),
        ("a[x]", []),
        ("a[5-3]", []),
        ("a[0-999999999]", []),
        ("a[0-999][0-999]", []),
    ],
)
def test_lists_of_nodes_as_slurm_writes_them(text: str, names: list[str]) -> None:
    assert list(slurm_fields.node_names(text)) == names


def test_recorded_runs_of_other_logs(tmp_path: Path) -> None:
    helios = f"{HELIOS}\nj,u,v,1,4,1,COMPLETED,{at(5)},{at(7)},{at(9)},2,2\n"
    runs = recorded(tmp_path, helios, "log.csv")
    assert (runs.start_s.tolist(), runs.end_s.tolist(), runs.nodes) == ([2.0], [4.0], None)
    lines = "\n".join([swf(), swf(job=2, submit=10, wait=-1)])
    runs = recorded(tmp_path, lines, "log.swf")
    assert np.array_equal(runs.start_s, [5.0, np.nan], equal_nan=True)
    assert np.array_equal(runs.end_s, [65.0, np.nan], equal_nan=True)
    runs_of_pai = load_trace(pai(tmp_path), format=":fractions=keep", recorded=True).recorded
    assert runs_of_pai is not None
    assert runs_of_pai.start_s.tolist() == [20.0, 110.0]
    assert runs_of_pai.end_s.tolist() == [300.0, 800.0]


def test_formats_that_record_no_runs(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("id,gpus,submit,duration\n1,1,0,10\n")
    with pytest.raises(InputError, match="its format is no log: it does not say when jobs started"):
        load_trace(path, recorded=True)
    path.write_text(f"{spot.HEADER}\na,o,A10,8,1,2,0,8,HP\n")
    with pytest.raises(InputError, match="its format, spot2026, does not say when jobs started"):
        load_trace(path, recorded=True)


@pytest.mark.parametrize("cell", ["-1", "0000-01-01", "-2020-01-01", " -1"])
def test_a_date_that_pandas_raises_at(tmp_path: Path, cell: str) -> None:
    rows = [
        f"{k},u,v,1,4,1,COMPLETED,{at(5)},{at(7)},{end},2,2" for k, end in enumerate((at(9), cell))
    ]
    assert read(tmp_path, "\n".join([HELIOS, *rows])).workload.id.tolist() == ["0"]
    table = f"id,gpus,submit,duration\n1,1,{at(0)},10\n2,1,{at(0)},1\n3,1,{cell},10\n"
    with pytest.raises(InputError, match=r"row 3, column 'submit': got .*expected a date"):
        read(tmp_path, table)


def test_a_chosen_zone_is_of_dates_without_one(tmp_path: Path) -> None:
    head = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES"
    times = "2026-06-01T12:00:00|2026-06-01T10:30:00+00:00|2026-06-01T11:00:00Z"
    text = f"{head}\n1|u|lab|gpu|COMPLETED|{times}|gres/gpu=1\n"
    runs = recorded(tmp_path, text, "sacct.txt", ":zone=Europe/Paris")
    assert (runs.start_s.tolist(), runs.end_s.tolist()) == ([1800.0], [3600.0])


def test_workloads_of_pollux(tmp_path: Path) -> None:
    text = "name,time,application,num_replicas,batch_size\nj1,30,bert,2,64\nj0,10,bert,2,32\nj2,40,ncf,0,8\n"
    with pytest.raises(
        InputError,
        match=r"applications.csv: is missing, and so is a folder traces of profile tables",
    ):
        read(tmp_path, text, name="workload.csv")
    table = tmp_path / "applications.csv"
    table.write_text("application,num_replicas,batch_size,duration_s\nbert,2,64,100\nbert,2,,300\n")
    imported = read(tmp_path, text, name="workload.csv")
    jobs = imported.workload
    assert jobs.id.tolist() == ["j0", "j1"]
    assert jobs.arrival_s.tolist() == [10.0, 30.0]
    assert jobs.batch_size.tolist() == [32, 64]
    assert jobs.work.tolist() == [300.0, 100.0]
    assert jobs.model.tolist() == ["bert", "bert"]
    assert imported.rows_read == counted(imported) == 3
    table.write_text("application,num_replicas,batch_size,duration_s\nbert,2,64,100\n")
    with pytest.raises(
        InputError, match=r"row 2: .* no duration of 'bert' on 2 replicas with batch size 32"
    ):
        read(tmp_path, text, name="workload.csv")


def test_shockwave_has_durations_and_modes_beside_gavels_fields(tmp_path: Path) -> None:
    static = "LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t134583\t1\tstatic\t1\t-1.000000\t1418\t10"
    adapts = "R (b 32)\tpython3 m\tic\t--num_steps\t1\t143450\t4\tgns\t2\t1.5\t3338\t65"
    path = tmp_path / "dynamic.trace"
    path.write_text(f"{static}\n{adapts}\n")
    jobs = load_trace(path).workload
    assert jobs.id.tolist() == ["0", "1"]
    assert (jobs.gpus.tolist(), jobs.work.tolist()) == ([1, 4], [1418.0, 3338.0])
    assert (jobs.arrival_s.tolist(), jobs.weight.tolist()) == ([0.0, 55.0], [1.0, 2.0])
    assert jobs.job_class.tolist() == ["static", "gns"]
    # 1.5 times the duration after the arrival.
    assert jobs.deadline_s.tolist() == [np.inf, 55.0 + 1.5 * 3338.0]
    path.write_text(f"{static}\nshort\tline\n")
    with pytest.raises(InputError, match="line 2: 2 fields, expected 12: model, command"):
        load_trace(path)


def test_elasticflow_has_deadlines_by_its_own_clock(tmp_path: Path) -> None:
    path = tmp_path / "elastic.csv"
    rows = ["7,3715485,2011,cifar10,3719996,4096,1,5644", "8,3717550,1548,ncf,0,32768,8,66"]
    path.write_text("\n".join([elasticflow.HEADER, *rows]))
    imported = load_trace(path)
    jobs = imported.workload
    assert (jobs.gpus.tolist(), jobs.work.tolist()) == ([1, 8], [5644.0, 66.0])
    assert (jobs.arrival_s.tolist(), jobs.model.tolist()) == ([0.0, 2065.0], ["cifar10", "ncf"])
    assert jobs.deadline_s.tolist() == [3719996.0 - 3715485.0, np.inf]
    assert any("widths do not change" in note for note in imported.notes)
