"""Logs as records: faults of accounts that are known, each a row of its kind, and starts of public logs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.audit.reading import read_records
from shadowprice.analysis.audit.recorded_run import RecordedRun, recorded_run
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.recorded.record import table
from shadowprice.instances.traces.slurm_fields import node_names

HEAD = "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|AllocTRES|NodeList"
SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "trace_samples"
sampled = pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of public traces are absent")


def at(seconds: int) -> str:
    return str(np.datetime64("2025-03-03T00:00:00") + seconds)


def line(
    job: str,
    start: int | str,
    end: int | str,
    *,
    submit: int | str = 0,
    gpus: int | str = 1,
    nodes: str = "n1",
    state: str = "COMPLETED",
    elapsed: int | None = None,
    count: int = 1,
) -> str:
    times = [each if isinstance(each, str) else at(each) for each in (submit, start, end)]
    both = isinstance(start, int) and isinstance(end, int)
    ran = elapsed if elapsed is not None else (end - start if both else 0)  # type: ignore[operator]
    tres = "" if gpus == "" else f"billing=8,cpu=8,gres/gpu={gpus},node={count}"
    return "|".join(
        [job, "ann", "lab", "gpu", state, *times, str(ran), "600", str(count), tres, nodes]
    )


FAULTS = {
    # Each has the node n1 (of two GPUs) for itself.
    "over capacity": [line("j", 10, 90), line("j-b", 20, 80, gpus=2)],
    "clock jump": [line("j", 10, 90, elapsed=3680)],
    "ends before it starts": [line("j", 90, 10)],
    "before submission": [line("j", 10, 90, submit=60)],
    "requeued": [line("j", 10, 40, state="NODE_FAIL"), line("j", 50, 90, submit=45)],
    "heterogeneous job": [line("j+0", 10, 90), line("j+1", 10, 90)],
    "array not begun": [
        line("j_[3-9%2]", "Unknown", "Unknown", state="PENDING", nodes="", gpus="")
    ],
    "never ran": [
        line("j", "Unknown", at(40), state="CANCELLED by 1001", nodes="None assigned", gpus="")
    ],
    "unknown end": [line("j", 10, "Unknown", state="COMPLETED")],
    "still running": [line("j", 10, "Unknown", state="RUNNING")],
    "repeated row": [line("j", 10, 90), line("j", 10, 90)],
    "unreadable": [line("j", "Tuesday", 90)],
    "no GPUs": [line("j", 10, 90, gpus=0)],
    "no time": [line("j", 10, 10)],
    "no such node": [line("j", 10, 90, nodes="elsewhere")],
    "wider than its node": [line("j", 10, 90, gpus=3)],
    "gang not whole": [line("j", 10, 90, nodes="n[1-2]", count=2)],
    "two runs at once": [line("j", 10, 50), line("j", 40, 90)],
}
HARMLESS = {"requeued", "heterogeneous job", "clock jump", "repeated row"}
"""Those whose job goes on to be verified."""
NO_RUN = {"array not begun", "never ran", "no GPUs"}


def audited(folder: Path, lines: list[str]) -> RecordedRun:
    path = folder / "sacct.txt"
    path.write_text("\n".join([HEAD, line("fine", 0, 9, nodes="n2"), *lines]) + "\n")
    cluster = folder / "nodes.csv"
    cluster.write_text("name,gpus\nn1,2\nn2,2\n")
    (record,) = read_records(path)
    return recorded_run(record, Cluster.load(cluster), names=("n1", "n2"))


@pytest.mark.parametrize("kind", FAULTS)
def test_a_known_fault_is_a_row(tmp_path: Path, kind: str) -> None:
    result = audited(tmp_path, FAULTS[kind])
    rows = table(result.contradictions)
    assert kind in set(rows["kind"])
    assert {name.partition("-")[0].partition("_")[0] for name in rows["job"]} == {"j"}
    assert result.outcome is not None
    verified = set(result.outcome.instance.workload.id.tolist())
    assert ("j" in verified) == (kind in HARMLESS)
    assert "fine" in verified
    assert ("j" in result.record.id) == (kind not in NO_RUN)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=12), st.randoms())
def test_no_fault_hides_another(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], random: object
) -> None:
    lines = []
    for number, kind in enumerate(kinds):
        for text in FAULTS[kind]:
            # Days of their own: what fits on a node by itself fits.
            moved = text.replace("2025-03-03", str(np.datetime64("2025-03-03") + number + 1))
            lines.append(f"j{number}{moved.removeprefix('j')}")
    random.shuffle(lines)  # type: ignore[attr-defined]
    result = audited(tmp_path_factory.mktemp("faults"), lines)
    rows = table(result.contradictions)
    for number, kind in enumerate(kinds):
        mine = rows["job"].str.match(rf"j{number}(\D|$)")
        assert kind in set(rows["kind"][mine]), (number, kind)
    assert result.outcome is not None


def test_two_faults_of_one_row_are_two_rows(tmp_path: Path) -> None:
    both = line("j", 90, 10, submit=100, nodes="elsewhere", elapsed=5)
    rows = table(audited(tmp_path, [both]).contradictions)
    assert set(rows["kind"]) == {
        "clock jump",
        "ends before it starts",
        "before submission",
        "no such node",
    }
    assert set(rows["row"]) == {2}


def test_a_submission_that_is_unknown_is_noted(tmp_path: Path) -> None:
    rows = table(audited(tmp_path, [line("j", 10, 90, submit="Unknown")]).contradictions)
    noted = rows[rows["kind"] == "unreadable"]
    assert noted["detail"].tolist() == ["Submit is 'Unknown', expected a date"]


def test_components_are_one_gang_and_requeues_one_job(tmp_path: Path) -> None:
    lines = [*FAULTS["heterogeneous job"], line("k", 100, 110, nodes="n[1-2]", gpus=3, count=2)]
    lines += [line("r", 200, 210), line("r", 220, 250, submit=215), line("r_4", 300, 310)]
    result = audited(tmp_path, lines)
    assert result.outcome is not None
    jobs = result.outcome.instance.workload
    words = {name: (int(jobs.gpus[k]), float(jobs.work[k])) for name, k in jobs.row_of.items()}
    assert words == {"fine": (1, 9), "j": (2, 80), "k": (3, 10), "r": (1, 40), "r_4": (1, 10)}
    assert result.outcome.totals.preemptions[jobs.row_of["r"]] == 1
    held = result.outcome.schedule
    mine = held.job == jobs.row_of["k"]
    assert dict(zip(held.node[mine].tolist(), held.gpus[mine].tolist(), strict=True)) == {
        0: 2,
        1: 1,
    }


def test_steps_repeat_their_jobs(tmp_path: Path) -> None:
    result = audited(tmp_path, [line("j", 10, 20), line("j.batch", 10, 20), line("j.0", 11, 20)])
    assert not result.contradictions
    assert "2 rows are steps, which repeat their jobs" in result.notes


def test_types_that_accounts_name_are_those_of_their_nodes(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    rows = [line("a", 0, 9), line("b", 0, 9, nodes="n2")]
    path.write_text(
        "\n".join([HEAD, *(each.replace("gres/gpu=", "gres/gpu:a100=") for each in rows)])
    )
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("1x2:a100,1x2:h100"))
    rows_ = table(result.contradictions)
    assert (rows_["job"].tolist(), rows_["kind"].tolist()) == (["b"], ["another GPU type"])
    assert rows_["detail"].tolist() == ["held GPUs of type a100 on a node of type h100"]


def test_a_zone_takes_the_jump_of_a_clock_away(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    # From 1:30 to 3:30 in the night in which clocks in Paris go from 2 to 3.
    row = line("a", 0, 0, submit=0).split("|")
    row[5:9] = ["2025-03-30T01:00:00", "2025-03-30T01:30:00", "2025-03-30T03:30:00", "3600"]
    path.write_text("\n".join([HEAD, "|".join(row)]))
    (record,) = read_records(path)
    assert [str(each.kind) for each in record.contradictions] == ["clock jump"]
    assert record.contradictions[0].detail[0].endswith("+3600 s")
    (record,) = read_records(path, zone="Europe/Paris")
    assert record.contradictions == ()


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a[1-3]", ["a1", "a2", "a3"]),
        ("a[08-11,20],b", ["a08", "a09", "a10", "a11", "a20", "b"]),
        ("rack1-gpu[1,3]-ib,x", ["rack1-gpu1-ib", "rack1-gpu3-ib", "x"]),
        ("", []),
        ("None assigned", []),
        ("(null)", []),
        ("a[1-200000]", []),
        ("a[1-x]", []),
    ],
)
def test_lists_of_hosts(text: str, hosts: list[str]) -> None:
    assert list(node_names(text)) == hosts


@pytest.mark.slow
def test_a_million_rows_take_twenty_seconds(tmp_path: Path) -> None:
    rows, rng = 1_000_000, np.random.default_rng(0)
    node = rng.integers(0, 1500, rows)
    run = rng.integers(10, 600, rows)
    # Jobs of a node one after another.
    order = np.argsort(node, kind="stable")
    before = np.cumsum(run[order]) - run[order]
    first = np.searchsorted(node[order], np.arange(1500))
    start = np.zeros(rows, dtype=np.int64)
    start[order] = before - before[first][node[order]]
    begin = np.datetime_as_string(start + np.datetime64("2025-01-01T00:00:00"))
    end = np.datetime_as_string(start + run + np.datetime64("2025-01-01T00:00:00"))
    path = tmp_path / "sacct.txt"
    with path.open("w") as file:
        file.write(HEAD + "\n")
        for k in range(rows):
            file.write(
                f"{k}|u{k % 97}|a|gpu|COMPLETED|{begin[0]}|{begin[k]}|{end[k]}|{run[k]}|600|1|"
                f"cpu=8,gres/gpu=8|n{node[k]:04d}\n"
            )
    began = time.process_time()
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("1500x8"))
    assert time.process_time() - began < 20
    assert not result.contradictions
    assert result.outcome is not None


HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)


def test_helios_starts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster_log.csv"
    day = "2020-06-01 00:"
    path.write_text(
        f"{HELIOS}\n1,u,vcA,8,8,1,COMPLETED,{day}00:00,{day}05:00,{day}25:00,1200,300\n"
        f"2,u,vcA,8,8,1,FAILED,{day}01:00,{day}10:00,{day}30:00,1200,540\n"
        f"3,u,vcA,0,8,1,COMPLETED,{day}01:00,{day}10:00,{day}30:00,1200,540\n"
        f"4,u,vcA,1,8,1,RUNNING,{day}01:00,{day}10:00,,,540\n"
    )
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("2x8"))
    assert result.outcome is not None
    assert result.outcome.jct_s.tolist() == [1500.0, 1740.0]
    assert result.outcome.instance.workload.tenant.tolist() == ["vcA", "vcA"]
    assert {str(each.kind) for each in result.contradictions} == {"no GPUs", "still running"}
    assert any("on which nodes" in each for each in record.unanswered)
    one = recorded_run(record, Cluster.parse("1x8"))
    assert {str(each.kind) for each in one.contradictions} == {
        "no GPUs",
        "still running",
        "over capacity",
    }


def philly(*attempts: tuple[str, str, dict[str, list[str]]]) -> dict[str, object]:
    return {
        "status": "Pass",
        "vc": "v",
        "jobid": f"app_{id(attempts)}",
        "user": "u",
        "submitted_time": "2017-10-01 00:00:00",
        "attempts": [
            {
                "start_time": start,
                "end_time": end,
                "detail": [{"ip": ip, "gpus": gpus} for ip, gpus in held.items()],
            }
            for start, end, held in attempts
        ],
    }


def test_philly_attempts_are_runs_on_known_gpus(tmp_path: Path) -> None:
    day = "2017-10-01 00:"
    first = philly(
        (f"{day}01:00", f"{day}11:00", {"m1": ["gpu0", "gpu1"]}),
        (f"{day}12:00", f"{day}22:00", {"m1": ["gpu2"], "m2": ["gpu0"]}),
    )
    second = philly((f"{day}05:00", f"{day}15:00", {"m1": ["gpu1"]}))
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps([first, {**second, "jobid": "other"}]))
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("2x8"))
    rows = table(result.contradictions)
    assert (rows["kind"].tolist(), rows["job"].tolist()) == (["GPU held twice"], ["other"])
    assert result.outcome is not None
    assert result.outcome.instance.workload.work.tolist() == [1200.0]
    path.write_text(json.dumps([{"jobid": 1}]))
    with pytest.raises(InputError, match="job 1: 'status' is missing"):
        read_records(path)


@sampled
@pytest.mark.parametrize(
    "name",
    ["helios/cluster_log.sample.csv", "acme/trace_kalos.sample.csv", "acme/trace_seren.sample.csv"],
)
def test_samples_of_public_logs_are_read(name: str) -> None:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"{name} is absent")
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("400x8"))
    assert result.outcome is not None
    # Starts and ends are those of the file: Kalos' column of durations is not asked.
    runs = pd.DataFrame({"start": record.start_s, "end": record.end_s})
    assert (runs["start"] < runs["end"]).all()


def test_other_traces_tell_starts_by_their_importers(tmp_path: Path) -> None:
    """SWF: job, submitted, waited, ran, processors and twelve more."""
    path = tmp_path / "log.swf"
    rest = "-1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1"
    path.write_text(f"; Version: 2.2\n1 0 10 50 2 {rest}\n2 5 20 40 2 {rest}\n")
    (record,) = read_records(path)
    result = recorded_run(record, Cluster.parse("1x4"))
    assert result.outcome is not None
    assert result.outcome.jct_s.tolist() == [60.0, 60.0]
    one = recorded_run(record, Cluster.parse("1x3"))
    assert [str(each.kind) for each in one.contradictions] == ["over capacity"]
    path.write_text("id,gpus,submit,duration\na,1,0,5\n")
    with pytest.raises(InputError, match="does not say when jobs started"):
        read_records(path)
