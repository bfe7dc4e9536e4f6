"""Importers: what they read, what they report, and what they say about files that are wrong."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import sys
from datetime import datetime
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances import traces
from shadowprice.instances.files import read_bytes
from shadowprice.instances.samples import load_samples
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.strategies import workloads
from shadowprice.instances.traces import importers, load_trace
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_files import read_workload, write_workload
from shadowprice.studies.data_sets.catalogue import DATA_SETS
from support.paths import SHARED
from support.peers import needs_peers, peer_workload

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
        GOOD.replace(",", "|"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        "\n" + GOOD,
        'ID , GPUS,"arrival_time",Duration_s\n a , 1 ,0, 10 \n"b","2","5","20.5"\n',
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


def test_deadlines_may_be_dates_too(tmp_path: Path) -> None:
    text = (
        "id,gpus,submit,duration,deadline\na,1,2026-01-02,5,\nb,1,2026-01-01,5,2026-01-01T01:00\n"
    )
    jobs = load_trace(written(tmp_path, text)).workload
    assert jobs.deadline_s.tolist() == [3600.0, np.inf]


def test_delimiters_inside_quotes_do_not_count(tmp_path: Path) -> None:
    text = 'id;"a,b,c,d,e,f";gpus;submit;duration\n"x;y";",";1;0;5\n'
    assert load_trace(written(tmp_path, text)).workload.id.tolist() == ["x;y"]


def test_optional_columns_and_their_defaults(tmp_path: Path) -> None:
    text = "gpus,submit,duration,weight,deadline,user,model\n1,0,5,,,é,m\n2,1,6,2.5,9.1,,\n"
    jobs = load_trace(written(tmp_path, text)).workload
    assert jobs.id.tolist() == ["0", "1"]
    assert jobs.weight.tolist() == [1.0, 2.5]
    assert jobs.deadline_s.tolist() == [np.inf, 9.1]
    assert jobs.tenant.tolist() == ["é", ""]
    assert jobs.model.tolist() == ["m", ""]


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
    with pytest.raises(InputError, match=r"did you mean .csv.. There are acme, csv"):
        load_trace(written(tmp_path, GOOD), format="tsv")


AWKWARD = Workload.from_columns(
    id=["007", "ä,b ", 'quo"te', "nan"],
    arrival_s=[0.1, 1 / 3, 2, 1e6],
    gpus=[1, 2, 3, 4],
    work=[1e-3, 0.7, 12345678.9, 5],
    weight=[1, 0.1, 3, 0],
    deadline_s=[np.inf, 7.3, np.inf, 1e9],
    tenant=["", "NA", " x ", "null"],
    model=["a;b", "\u00a0", "日本\u200d", "1e5"],
    throughput=[[1, 0], [0.1, 2], [3, 3], [1e-9, 1]],
    gpu_types=("v100,32", "k80"),
)


@pytest.mark.parametrize("change", [lambda text: text.replace(",", ";"), gzip.compress])
def test_the_projects_own_tables_in_other_clothes(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    jobs = Workload.from_columns(arrival_s=[0, 1 / 3], gpus=[1, 2], work=[0.1, 7], weight=[0.1, 1])
    write_workload(jobs, tmp_path / "jobs.csv")
    text = (tmp_path / "jobs.csv").read_text()
    changed = change(text.encode()) if change is gzip.compress else change(text)
    assert load_trace(written(tmp_path, changed)).workload == jobs


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet"])
def test_round_trip_of_awkward_values(tmp_path: Path, name: str) -> None:
    write_workload(AWKWARD, tmp_path / name)
    assert read_workload(tmp_path / name) == AWKWARD
    assert load_trace(tmp_path / name).workload == AWKWARD


@given(workload=workloads(whole_seconds=False))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, workload: Workload) -> None:
    directory = tmp_path_factory.mktemp("round")
    for name in ("jobs.csv", "jobs.parquet"):
        write_workload(workload, directory / name)
        assert load_trace(directory / name).workload == workload


TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LETTERS = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=TURNS)
TEXTS = st.text(LETTERS, max_size=6)
FLOATS = st.floats(0, 1e18)


@given(
    rows=st.lists(
        st.tuples(TEXTS.filter(bool), TEXTS, FLOATS, st.floats(0), st.floats(1e-30)),
        min_size=1,
        max_size=4,
        unique_by=lambda row: row[0],
    )
)
def test_round_trip_of_any_text_and_number(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float, float, float]]
) -> None:
    names, tenants, weights, deadlines, rates = (list(column) for column in zip(*rows, strict=True))
    jobs = Workload.from_columns(
        id=names,
        tenant=tenants,
        model=tenants[::-1],
        arrival_s=range(len(rows)),
        gpus=1,
        work=1,
        weight=weights,
        deadline_s=deadlines,
        throughput=[
            [min(rate, 1e300), weight] for rate, weight in zip(rates, weights, strict=True)
        ],
        gpu_types=("a", " b"),
    )
    directory = tmp_path_factory.mktemp("any")
    for name in ("jobs.csv", "jobs.parquet"):
        write_workload(jobs, directory / name)
        assert read_workload(directory / name) == load_trace(directory / name).workload == jobs


def test_importers_are_found_by_name() -> None:
    assert {"csv", "gavel", "parquet", "philly"} <= set(importers())


def test_an_importer_is_one_more_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = """
from shadowprice.instances.traces import Imported
from shadowprice.instances.workload import Workload
NAME = "secret"
def sniff(first_line, path):
    return first_line == "SECRET"
def load(path, throughputs=None):
    return Imported(Workload.from_columns(arrival_s=[0], gpus=[7], work=[1], source=str(path)))
"""
    written(tmp_path, module, "secret_format.py")
    monkeypatch.setattr(traces, "__path__", [*traces.__path__, str(tmp_path)])
    try:
        assert load_trace(written(tmp_path, "SECRET\n", "x")).workload.gpus.tolist() == [7]
        assert len(load_trace(written(tmp_path, GOOD)).workload) == 2
    finally:
        sys.modules.pop("shadowprice.instances.traces.secret_format", None)


def test_a_format_is_one_more_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = """
from shadowprice.instances.traces.log_format import HeaderTable, LogFormat
FORMAT = LogFormat(
    name="ours", about="Ours.", table=HeaderTable("job,cards,asked,took"),
    gpus="cards", submit="asked", end="took", columns={"id": "job"},
)
"""
    written(tmp_path, module, "our_format.py")
    monkeypatch.setattr(traces, "__path__", [*traces.__path__, str(tmp_path)])
    log = written(tmp_path, "job,cards,asked,took\na,2,5,7\nb,0,6,8\n", "ours.csv")
    try:
        assert "ours" in importers()
        imported = load_trace(log)
        assert (imported.workload.gpus.tolist(), imported.rows_read) == ([2], 2)
        assert load_trace(log, format=importers()["ours"]).workload == imported.workload
    finally:
        sys.modules.pop("shadowprice.instances.traces.our_format", None)


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
    assert "repaired 44878 rows: arrive before the row above, sorted" in str(imported)
    assert imported.report[0].count == 44_878
    # Counted in the file by other means: virtual clusters, total service, first and last arrival.
    assert len(set(jobs.tenant.tolist())) == 15
    assert float(np.dot(jobs.gpus, jobs.work)) == 3_521_082_502
    first, last = datetime(2017, 9, 4, 10, 30, 41), datetime(2017, 12, 22, 8, 2, 11)
    assert jobs.arrival_s[[0, -1]].tolist() == [0.0, (last - first).total_seconds()]


@needs_data
@pytest.mark.slow
def test_philly_takes_less_than_a_second() -> None:
    """The best of four: CPU time is longer on a machine that does other things as well."""
    times_s = []
    for _ in range(4):
        start_s = process_time()
        load_trace(SHARED / "data" / "philly" / "philly_flat.csv.xz")
        times_s.append(process_time() - start_s)
    assert min(times_s) < 1.0


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


GAVEL = SHARED / "data" / "gavel"
COLUMNS = ("arrival_s", "gpus", "work", "weight", "deadline_s", "model", "throughput")


@pytest.fixture(scope="module")
def gavel_table() -> Throughputs:
    return load_throughputs(GAVEL / "simulation_throughputs.json.xz")


@needs_data
def test_gavels_throughputs(gavel_table: Throughputs) -> None:
    assert len(gavel_table.alone) == 83
    assert sum(gpus == 1 for _, gpus in gavel_table.alone) == 26
    columns = [gavel_table.gpu_types.index(name) for name in ("k80", "p100", "v100")]
    rates = gavel_table.rates("ResNet-18 (batch size 128)", 1)
    assert rates is not None
    assert [round(rates[k], 3) for k in columns] == [1.807, 11.675, 17.995]
    main = {
        key: pair for key, pair in gavel_table.pairs.items() if key[0] in ("k80", "p100", "v100")
    }
    assert len({(kind, frozenset((a, b))) for kind, a, b in main}) <= len(main)
    for (kind, first, second), (mine, other) in main.items():
        assert first[1] == second[1]
        assert gavel_table.pair(kind, second, first) == (other, mine)
        k = gavel_table.gpu_types.index(kind)
        assert mine <= gavel_table.alone[first][k] * (1 + 1e-9)
    assert gavel_table.pair("v100", ("A3C", 1), ("no such job", 1)) is None
    assert gavel_table.rates("A3C", 8) is None


@needs_data
@pytest.mark.parametrize(
    ("name", "lines", "dropped"),
    [
        ("artifact_evaluation.trace", 15, 0),
        ("debug.trace", 14, 0),
        ("debug_v2.trace", 14, 0),
        ("highmem_test.trace", 8, 0),
        ("max_min_fairness.trace", 96, 0),
        ("medium_test.trace", 20, 0),
        ("minimize_makespan.trace", 100, 0),
        ("small_test.trace", 20, 0),
        ("msr_seed0_103959.trace.xz", 986, 125),
        ("msr_seed0_23dbec.trace", 9, 1),
        ("msr_seed0_51b7ef.trace", 18, 1),
        ("msr_seed0_795a4c.trace", 3, 0),
        ("msr_seed0_925e2b.trace", 4, 1),
    ],
)
def test_gavel_in_both_forms(gavel_table: Throughputs, name: str, lines: int, dropped: int) -> None:
    imported = load_trace(GAVEL / "traces" / name, throughputs=gavel_table)
    jobs = imported.workload
    counts = [finding.count for finding in imported.report if finding.action == "dropped"]
    assert (len(jobs), sum(counts)) == (lines - dropped, dropped)
    assert all("job type and scale factor not in" in str(finding) for finding in imported.report)
    assert jobs.throughput is not None
    for row in range(len(jobs)):
        assert tuple(jobs.throughput[row]) == gavel_table.rates(
            jobs.model[row], int(jobs.gpus[row])
        )
    with pytest.raises(InputError, match="expected a throughput table"):
        load_trace(GAVEL / "traces" / name)


SMALL = Throughputs(("k80", "v100"), {("A b", 1): (9.9, 3.3), ("old", 1): (0.3, 0.0)})


def gavel_line(model: str, steps: int, slo: float, arrival_s: float) -> str:
    return f"{model}\tpython3 x\td\t--n\t1\t{steps}\t1\t1.5\t{slo}\t{arrival_s}\n"


def test_an_slo_is_a_multiple_of_the_run_time(tmp_path: Path) -> None:
    lines = [
        gavel_line("A b", 330, 2, 10),
        gavel_line("old", 30, 1.5, 20),
        gavel_line("old", 1, -1, 30),
    ]
    jobs = load_trace(written(tmp_path, "".join(lines), "x.trace"), throughputs=SMALL).workload
    # 330 steps take 100 s on a V100; 30 steps take 100 s on the only type that runs them.
    assert jobs.deadline_s.tolist() == pytest.approx([210.0, 170.0, np.inf])
    assert jobs.weight.tolist() == [1.5] * 3


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["A b", "old"]),
            st.integers(1, 10**9),
            st.sampled_from([-1.0, 1.2, 2.0, 10.0]) | st.floats(1.0, 100.0),
            st.integers(0, 10**7),
        ),
        min_size=1,
        max_size=5,
    )
)
@example(rows=[("A b", 29, 2.0, 0)])
def test_gavel_traces_with_slos(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, float, float]]
) -> None:
    directory = tmp_path_factory.mktemp("gavel")
    text = "".join(gavel_line(*row) for row in rows)
    jobs = load_trace(written(directory, text, "a.trace"), throughputs=SMALL).workload
    assert sorted(map(int, jobs.id.tolist())) == list(range(len(rows)))
    for name, k in jobs.row_of.items():
        model, steps, slo, arrival_s = rows[int(name)]
        seconds = steps / {"A b": 3.3, "old": 0.3}[model]
        due = arrival_s + slo * seconds if slo > 0 else np.inf
        assert (jobs.model[k], jobs.work[k], jobs.arrival_s[k]) == (model, steps, arrival_s)
        assert jobs.deadline_s[k] == pytest.approx(due)


LOCAL = {
    "gavel-simulation-throughputs": "simulation_throughputs.json.xz",
    "gavel-physical-cluster-throughputs": "physical_cluster_throughputs.json.xz",
    "gavel-msr-seed0-103959": "traces/msr_seed0_103959.trace.xz",
}


@needs_data
@pytest.mark.parametrize("name", sorted(name for name in DATA_SETS if name.startswith("gavel-")))
def test_checksums_of_public_data(name: str) -> None:
    stem = name.removeprefix("gavel-").replace("-", "_")
    path = GAVEL / LOCAL.get(name, f"traces/{stem}.trace")
    digits = hashlib.sha256(read_bytes(path)).hexdigest()
    assert f"sha256:{digits}" == DATA_SETS[name].checksum


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
