"""Importers: what they read, what they report, and what they say about files that are wrong."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from peers import SHARED, needs_peers, peer_workload

from shadowprice.errors import InputError
from shadowprice.instances.io import read_workload, write_workload
from shadowprice.instances.samples import load_samples
from shadowprice.instances.strategies import workloads
from shadowprice.instances.throughputs import load_throughputs
from shadowprice.instances.traces import importers, load_trace
from shadowprice.instances.traces.gavel import write_gavel
from shadowprice.instances.workload import Workload

GOOD = "id,gpus,submit,duration\na,1,0,10\nb,2,5,20.5\n"


def written(directory: Path, text: str | bytes, name: str = "jobs.csv") -> Path:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.rstrip("\n"),
        GOOD + "\n",
        "job_id,num_gpus,timestamp,runtime\na,1,0,10\nb,2,5,20.5\n",
        'Name,GPU_num,Arrival,Run_Time\n"a",1,0,10\n"b",2,5,20.5\n',
        "id,gpus,submit,duration\nb,2,5,20.5\na,1,0,10\n",
    ],
)
def test_the_usual_tables(tmp_path: Path, text: str) -> None:
    jobs = load_trace(written(tmp_path, text)).workload
    assert jobs.id.tolist() == ["a", "b"]
    assert jobs.gpus.tolist() == [1, 2]
    assert jobs.arrival_s.tolist() == [0.0, 5.0]
    assert jobs.work.tolist() == [10.0, 20.5]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_whatever_the_name(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    assert len(load_trace(written(tmp_path, pack(GOOD.encode()))).workload) == 2


def test_dates_count_from_the_first(tmp_path: Path) -> None:
    text = "id,gpus,submit,duration\na,1,2026-01-01 00:01:00,5\nb,1,2026-01-01T00:00:30,5\n"
    imported = load_trace(written(tmp_path, text))
    assert imported.workload.arrival_s.tolist() == [0.0, 30.0]
    assert "repaired 1 rows: arrive before the row above" in str(imported.report[0])


def test_long_gaps_are_no_work(tmp_path: Path) -> None:
    text = "id,gpus,submit,duration\na,1,0,1\nb,1,1000000,1\nc,1,4000000000,1\n"
    assert load_trace(written(tmp_path, text)).workload.arrival_s[-1] == 4e9


def test_iterations_with_their_time_or_a_table(tmp_path: Path) -> None:
    timed = "id,gpus,submit,iterations,iteration_time_s\na,1,0,100,0.5\n"
    jobs = load_trace(written(tmp_path, timed)).workload
    assert jobs.throughput is not None
    assert jobs.throughput.tolist() == [[2.0]]
    table = load_throughputs(
        written(tmp_path, json.dumps({"res": {"1": {"iter_time_s": 0.25}}}), "t.json")
    )
    named = written(tmp_path, "id,model,gpus,submit,iterations\na,res,1,0,100\n")
    assert load_trace(named, throughputs=table).workload.throughput.tolist() == [[4.0]]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="iteration_time_s"):
        load_trace(named)


BAD = {
    "": "is empty",
    "\n\n": "is empty",
    "id,gpus,submit,duration\n": "no rows",
    "id,gpus,submit,duration\na,1,0,nan\n": r"row 1, column 'duration': got 'nan', expected a number",
    "id,gpus,submit,duration\na,1,0,\n": r"row 1, column 'duration': got ''",
    "id,gpus,submit,duration\na,1,0,1\nb,1,x,1\n": r"row 2, column 'submit': got 'x'",
    "id,gpus,submit,duration\na,1,0,-5\n": r"row 1, column 'duration': got '-5', expected a number > 0",
    "id,gpus,submit,duration\na,1,0,0\n": r"row 1, column 'duration': got '0', expected a number > 0",
    "id,gpus,submit,duration\na,1,-1,5\n": r"row 1, column 'submit': got -1.0",
    "id,gpus,submit,duration\na,0,0,5\n": r"row 1, column 'gpus': got '0', expected an integer from 1",
    "id,gpus,submit,duration\na,1.5,0,5\n": r"row 1, column 'gpus': got '1.5'",
    "id,gpus,submit,duration\na,1,0,5\nb,1,0,inf\n": r"row 2, column 'duration': got 'inf'",
    "id,gpus,submit,duration\na,1,0,5\na,1,0,5\n": r"row 2, column 'id': got 'a', expected an id not used",
    "id,gpus,submit,duration\na,1,0,1e300\n": r"row 1, column 'duration'",
    "id,gpus,submit,duration,gpus\na,1,0,5,1\n": "column 'gpus' appears twice",
    "id,gpus,submit,duration\na,1,0\n": r"row 1, column 'duration'",
    "id,gpus,submit\na,1,0\n": "not recognised",
    "hello\nworld\n": "not recognised",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_trace(written(tmp_path, text))
    assert "jobs.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01\x02" * 99, "not"),
        (b"\x1f\x8b broken", "cannot be read"),
        (b"\xfd7zXZ\x00 broken", "cannot be read"),
        (gzip.compress(GOOD.encode() * 99, mtime=0)[:60], "cannot be read"),
        ("id,gpus\xff".encode("latin1"), "not"),
    ],
)
def test_bytes_that_are_no_table(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_trace(written(tmp_path, content), format="csv")


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_trace(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a directory"):
        load_trace(tmp_path)
    with pytest.raises(InputError, match="expected one of csv"):
        load_trace(written(tmp_path, GOOD), format="tsv")


AWKWARD = Workload.from_columns(
    id=["007", "ä,b", 'quo"te', "nan"],
    arrival_s=[0.1, 1 / 3, 2, 1e6],
    gpus=[1, 2, 3, 4],
    work=[1e-3, 0.7, 12345678.9, 5],
    weight=[1, 0.1, 3, 0],
    deadline_s=[np.inf, 7.3, np.inf, 1e9],
    tenant=["", "NA", "x", "null"],
    throughput=[[1, 0], [0.1, 2], [3, 3], [1e-9, 1]],
    gpu_types=("v100", "k80"),
)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet"])
def test_round_trip_of_awkward_values(tmp_path: Path, name: str) -> None:
    write_workload(AWKWARD, tmp_path / name)
    assert read_workload(tmp_path / name) == AWKWARD
    assert load_trace(tmp_path / name).workload == AWKWARD


@given(workload=workloads())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    directory = tmp_path_factory.mktemp("round")
    for name in ("jobs.csv", "jobs.parquet"):
        write_workload(workload, directory / name)
        assert load_trace(directory / name).workload == workload


def test_importers_are_found_by_name() -> None:
    assert {"csv", "gavel", "parquet", "philly"} <= set(importers())


def test_samples(tmp_path: Path) -> None:
    assert load_samples(written(tmp_path, '{"samples": [3, 1, 2]}')).tolist() == [1, 2, 3]
    assert load_samples(written(tmp_path, "3\n1\n")).tolist() == [1, 3]
    for text, message in (("[1, -1]", "sample 2"), ("[]", "no samples"), ("1\nx\n", "got 'x'")):
        with pytest.raises(InputError, match=message):
            load_samples(written(tmp_path, text))


needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the public traces are not here"
)


@needs_data
def test_philly() -> None:
    imported = load_trace(SHARED / "data" / "philly" / "philly_flat.csv.xz")
    jobs = imported.workload
    assert len(jobs) == 82_247
    assert jobs.gpus.max() == 128
    assert np.all(np.diff(jobs.arrival_s) >= 0)
    assert "sorted" in str(imported.report[0])


def test_philly_drops_bad_rows_and_says_so(tmp_path: Path) -> None:
    rows = [
        "timestamp,duration,num_gpus,gpu_time,cluster",
        "2017-10-09 07:01:55,66.0,1,66.0,a",
        "2017-10-09 07:01:56,0,1,0,a",
        "yesterday,5,1,5,a",
        "2017-10-09 07:00:55,7,0,0,b",
        "2017-10-09 07:00:55,7,2,14,b",
    ]
    imported = load_trace(written(tmp_path, "\n".join(rows)))
    assert imported.workload.id.tolist() == ["5", "1"]
    assert imported.workload.tenant.tolist() == ["b", "a"]
    assert [finding.count for finding in imported.report] == [1, 1, 1, 1]


@needs_data
@pytest.mark.parametrize(
    "name", ["small_test.trace", "max_min_fairness.trace", "msr_seed0_51b7ef.trace"]
)
def test_gavel_both_forms_and_back(tmp_path: Path, name: str) -> None:
    table = load_throughputs(SHARED / "data" / "gavel" / "simulation_throughputs.json.xz")
    path = SHARED / "data" / "gavel" / "traces" / name
    jobs = load_trace(path, throughputs=table).workload
    assert jobs.gpu_types[:3] == ("k80", "p100", "v100")
    write_gavel(jobs, tmp_path / "again.trace")
    again = load_trace(tmp_path / "again.trace", throughputs=table).workload
    for column in ("arrival_s", "gpus", "work", "weight", "deadline_s", "throughput"):
        np.testing.assert_array_equal(getattr(again, column), getattr(jobs, column), column)
    with pytest.raises(InputError, match="expected a throughput table"):
        load_trace(path)


def test_throughput_tables_that_are_wrong(tmp_path: Path) -> None:
    for text, message in (
        ("{", "not JSON"),
        ("{}", "expected Gavel's"),
        ('{"v100": {"(\'A\', 1)": {"null": -1}}}', "expected a finite rate"),
        ('{"v100": {"(\'A\', 1)": {"null": 1, "(\'B\', 1)": [1]}}}', "expected two rates"),
        ('{"res": {"1": {}}}', "iter_time_s"),
    ):
        with pytest.raises(InputError, match=message):
            load_throughputs(written(tmp_path, text, "t.json"))


@needs_peers
def test_recorded_jobs_survive_a_csv(tmp_path: Path) -> None:
    jobs = peer_workload("tiresias_W1.json")
    frame = jobs.to_frame().rename(columns={"arrival_s": "submit", "work": "duration"})
    frame[["id", "gpus", "submit", "duration"]].to_csv(tmp_path / "w1.csv", index=False)
    assert load_trace(tmp_path / "w1.csv").workload.to_frame().equals(jobs.to_frame())
