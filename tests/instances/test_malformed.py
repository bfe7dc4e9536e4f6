"""Files that are damaged or are something else: an explained error, never a traceback or a guess."""

from __future__ import annotations

import gzip
import json
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.samples import load_samples
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.traces import Imported, importers, load_trace
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_files import read_table, read_workload, write_workload

HEADER = "id,gpus,submit,duration\n"
GOOD = HEADER + "a,1,0,10\nb,2,5,20\n"
NATIVE = "id,arrival_s,gpus,work,weight,deadline_s,tenant,model\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
GAVEL = "A (batch size 1)\tpython3 main.py %s\td\t--n\t1\t100\t1\t1\t-1\t5\n"
TABLE = Throughputs(("k80", "v100"), {("A (batch size 1)", 1): (1.5, 3.0), ("Z", 1): (0.0, 0.0)})


def written(directory: Path, content: str | bytes, name: str = "jobs.csv") -> Path:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, message: str, **options: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_trace(path, **options)
    assert path.name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Values that would move to other columns, or be lost.
        (HEADER + "a,1,0,5,9\n", "row 1 has 5 values, expected 4 as in the header: 'a,1,0,5,9'"),
        (HEADER + "a,1,0,5,\nb,1,0,5,\n", "row 1 has 5 values, expected 4"),
        (HEADER + "a,1,0,5\nb,1,0,1,500\n", "row 2 has 5 values, expected 4"),
        (NATIVE + "a,0,1,5,1,,,,\n", "row 1 has 9 values, expected 8"),
        (HEADER + '"a,1,0,5\n', "line 2: is not a table"),
        (HEADER + 'a,1,0,"5"x\n', "line 2: is not a table"),
        # Missing names and values.
        (HEADER + ",1,0,5\n", "row 1, column 'id': got '', expected a name"),
        (
            "job_id,gpus,submit,duration\nx,1,0,5\nx,1,0,5\n",
            "row 2, column 'job_id': got 'x', expected an id not",
        ),
        (NATIVE + "a,0,1,,1,,,\n", "row 1, column 'work': got ''"),
        (NATIVE + "a,0,1,5\n", "row 1, column 'weight': got ''"),
        (NATIVE, "header but no rows"),
        (PHILLY, "header but no rows"),
        # Deadlines and weights are not guessed.
        (NATIVE + "a,0,1,5,1,soon,,\n", "row 1, column 'deadline_s': got 'soon'"),
        (
            "id,gpus,submit,duration,deadline\na,1,0,5,none\n",
            "row 1, column 'deadline': got 'none'",
        ),
        (
            "id,gpus,submit,duration,priority_weight\na,1,0,5,-1\n",
            "row 1, column 'priority_weight': got '-1'",
        ),
        # Times: neither milliseconds nor other dates pass for something else.
        (HEADER + "a,1,1507532515000,5\n", "row 1, column 'submit': got 1507532515000.0"),
        (
            HEADER + "a,1,10/09/2017 07:01,5\n",
            "row 1, column 'submit': got '10/09/2017 07:01', expected a date as",
        ),
        (
            HEADER + "a,1,2020-01-01,5\nb,1,later,5\nc,1,2020-01-02,5\n",
            "row 2, column 'submit': got 'later'",
        ),
        (
            HEADER + "a,1,0,5\nb,1,2020-01-01,5\nc,1,7,5\n",
            "row 2, column 'submit': got '2020-01-01', expected a num",
        ),
        (HEADER + "a,1,0,True\n", "row 1, column 'duration': got 'True'"),
        (HEADER + "a,1,0,0x10\n", "row 1, column 'duration': got '0x10'"),
        (HEADER + "a,1,0,1_000\n", "row 1, column 'duration': got '1_000'"),
        (HEADER + "a,1,0,5s\n", "row 1, column 'duration': got '5s'"),
        (HEADER + "\n\na,1,0,5\n\n\nb,1,x,5\n", "row 2, column 'submit': got 'x'"),
        (
            "id,gpus,submit,iterations,iteration_time\na,1,0,5,0\n",
            "row 1, column 'iteration_time': got '0'",
        ),
        (
            "id,gpus,submit,iterations,iteration_time\na,1,0,-5,1\n",
            "row 1, column 'iterations': got '-5'",
        ),
        (
            "id gpus submit duration\na 1 0 5\n",
            "not recognised as one of acme, csv, elasticflow, gavel, helios, openb2023, pai2020, parquet, ",
        ),
    ],
)
def test_tables(tmp_path: Path, text: str, message: str) -> None:
    refused(written(tmp_path, text), message)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_errors_are_the_same_in_packed_files(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    refused(written(tmp_path, pack(b""), "jobs.gz"), "is empty")
    refused(written(tmp_path, pack(HEADER.encode() + b"a,1,0,-5\n"), "jobs"), "row 1, column 'dur")
    whole = pack(GOOD.encode() * 50)
    for cut in (8, len(whole) // 2, len(whole) - 1):
        refused(written(tmp_path, whole[:cut], "cut.csv"), "cannot be read")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    refused(written(tmp_path, bytes(damaged), "damaged.csv"), "cannot be read")


@pytest.mark.parametrize("format", [None, *sorted(importers())])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n \n",
        b"\x00\x01\x02" * 999,
        b"PAR1 garbage",
        b"PAR1" + bytes(64) + b"PAR1",
        b"\x1f\x8b garbage",
        b"\xfd7zXZ\x00 garbage",
        "id,gpus,submit,duration\na,1,0,5".encode("utf-16"),
        b"\xff\xfe",
        b'"',
        b"\t\t\t\t\t\t",
    ],
)
def test_bytes_that_are_no_trace(tmp_path: Path, content: bytes, format: str | None) -> None:
    refused(written(tmp_path, content), "jobs.csv", format=format, throughputs=TABLE)


@pytest.mark.parametrize("format", [None, "csv", "swf"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str, format: str | None) -> None:
    path = written(tmp_path, ("\ufeff" + GOOD).encode(encoding))
    refused(path, "is UTF-16 text, expected UTF-8: save it as UTF-8", format=format)


@pytest.mark.parametrize("format", [None, *sorted(importers())])
def test_folders_and_missing_files(tmp_path: Path, format: str | None) -> None:
    refused(tmp_path, "is a directory", format=format, throughputs=TABLE)
    refused(tmp_path / "none.csv", "no such file", format=format, throughputs=TABLE)


def test_another_format_than_named(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    refused(path, "column 'timestamp' is missing", format="philly")
    refused(path, "line 1 has 1 fields, expected 10 or 7", format="gavel", throughputs=TABLE)
    refused(path, "column 'arrival_s' is missing", format="parquet")
    refused(
        written(tmp_path, "hello\nworld\n"),
        "no column for arrival_s, expected one of",
        format="csv",
    )


def test_a_file_that_two_importers_recognise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,a\n")
    assert len(load_trace(path).workload) == 1
    monkeypatch.setattr(importers()["gavel"], "sniff", lambda first_line, path: True)
    refused(path, "could be gavel or philly, expected the format to be named")
    assert len(load_trace(path, format="philly").workload) == 1


def test_dirty_public_traces_lose_rows_but_say_so(tmp_path: Path) -> None:
    bad = {
        "B\tx y\td\t--n\t1\t100\t1\t1\t-1\t5": "job type and scale factor not in",
        "Z\tx y\td\t--n\t1\t100\t1\t1\t-1\t5": "no throughput on any GPU type",
        GAVEL.strip().replace("100", "nan"): "work is not a number of steps",
        GAVEL.strip().replace("100", "1e300"): "work is not a number of steps",
        GAVEL.strip().replace("100\t1", "100\t1.5"): "gpus is not an integer",
        GAVEL.strip().replace("100\t1", "100\tinf"): "gpus is not an integer",
        GAVEL.strip().replace("\t-1\t5", "\t-1\t-5"): "arrival_s is not",
        GAVEL.strip().replace("\t-1\t5", "\t-1\t1e20"): "arrival_s is not",
        GAVEL.strip().replace("\t1\t-1", "\theavy\t-1"): "weight is not",
        GAVEL.strip().replace("\t1\t-1", "\t-3\t-1"): "weight is not",
        GAVEL.strip().replace("-1\t5", "soon\t5"): "slo is not",
        "A (batch size 1)\tpython3": "fewer than the 10 fields of line 1",
        f"{GAVEL.strip()}\t7": "more than the 10 fields of line 1",
    }
    for line, why in bad.items():
        path = written(tmp_path, f"{GAVEL}{line}\n{GAVEL}", "x.trace")
        imported = load_trace(path, throughputs=TABLE)
        assert imported.workload.id.tolist() == ["0", "2"], line
        assert [finding.count for finding in imported.report] == [1]
        assert f"dropped 1 rows: {why}" in str(imported)
        assert "first: row 2:" in str(imported)
    both = written(tmp_path, "\n".join(list(bad)[:2]) + "\n" + GAVEL, "x.trace")
    imported = load_trace(both, throughputs=TABLE)
    assert imported.workload.id.tolist() == ["2"]
    assert [each.example.split(":")[0] for each in imported.report] == ["row 1", "row 2"]
    only = written(tmp_path, next(iter(bad)) + "\n", "x.trace")
    refused(only, "no usable row is left; dropped 1 rows", throughputs=TABLE)
    dirty = [
        ("2017-10-09 07:01:55,nan,1,0,a", "duration is not"),
        ("2017-10-09 07:01:55,-1,1,0,a", "duration is not"),
        ("2017-10-09 07:01:55,5,0.5,0,a", "num_gpus is not"),
        ("2017-13-09 07:01:55,5,1,0,a", "timestamp is not"),
        ("2017-10-09 07:01:55", "num_gpus is not"),
    ]
    for line, why in dirty:
        path = written(tmp_path, f"{PHILLY}{line}\n2017-10-09 07:01:55,66.0,1,66.0,a\n")
        assert why in str(load_trace(path))
        refused(written(tmp_path, PHILLY + line), "no usable row is left")


def test_line_ends_and_marks_of_other_systems(tmp_path: Path) -> None:
    for text in (GOOD, PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,a\n", GAVEL + GAVEL):
        plain = load_trace(written(tmp_path, text), throughputs=TABLE).workload
        for other in (
            text.replace("\n", "\r\n"),
            text.replace("\n", "\r"),
            "\ufeff" + text,
            "\n" + text,
        ):
            again = load_trace(written(tmp_path, other), throughputs=TABLE).workload
            assert again == plain


def test_parquet_that_is_no_workload(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pd.DataFrame({"x": [1]}).to_parquet(path)
    refused(path, "column 'arrival_s' is missing, found x")
    pd.DataFrame({"arrival_s": [0.0], "gpus": [None], "work": [1.0]}).to_parquet(path)
    refused(path, "row 1, column 'gpus': got None")
    pd.DataFrame({"arrival_s": [True], "gpus": [1], "work": [1.0]}).to_parquet(path)
    refused(path, "row 1, column 'arrival_s': got True")
    write_workload(Workload.from_columns(arrival_s=[], gpus=[], work=[]), path)
    refused(path, "has no jobs")
    renamed = written(tmp_path, path.read_bytes(), "jobs.bin")
    assert len(read_workload(renamed)) == 0


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    (tmp_path / "folder.csv").mkdir()
    for name in ("none/jobs.csv", "none/jobs.parquet", "folder.csv"):
        with pytest.raises(InputError, match="cannot be written"):
            write_workload(jobs, tmp_path / name)
    with pytest.raises(InputError, match=r"ends with \.parquet or \.csv"):
        write_workload(jobs, tmp_path / "jobs.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "is not JSON"),
        ('{"v100": {"(\'A\', 1)": {"null": NaN}}}', "NaN is no number"),
        ('{"v100": {"(\'A\', 1)": {"null": 1' + "0" * 400 + "}}}", "finite rate"),
        ('{"v100": {"(\'A\', 1)": {"null": true}}}', "finite rate"),
        ('{"v100": {"(\'A\', 1)": {}}}', "finite rate"),
        ('{"v100": {"(\'A\', 1)": 5}}', "expected an object"),
        (
            '{"v100": {"(\'A\', 1)": {"null": 1}, "__import__(\'os\')": {"null": 1}}}',
            "expected .'MODEL', GPUS",
        ),
        ('{"res": {"²": {"iter_time_s": 1}}}', "expected a gang size"),
        ('{"res": {"0": {"iter_time_s": 1}}}', "expected a gang size"),
        ('{"res": {"1": {"iter_time_s": 0}}}', "expected seconds > 0"),
        ("[1, 2]", "non-empty object"),
    ],
)
def test_throughput_tables(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_throughputs(written(tmp_path, text, "t.json"))
    assert "t.json" in str(caught.value)


def attempt(load: Callable[[], Any]) -> Any:
    """A result, or None where an explained error was raised; a warning is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return load()
        except InputError:
            return None


CELLS = st.sampled_from(
    [
        "",
        "a",
        "1",
        "0",
        "-1",
        "1e999",
        "nan",
        "0.5",
        "2017-10-09 07:01:55",
        '"',
        "1e-320",
        "é",
        "\t",
        "'",
        "9" * 400,
    ]
)
LINES = st.lists(st.lists(CELLS, min_size=1, max_size=11), max_size=4)
FIRST = st.sampled_from(
    [
        HEADER,
        NATIVE,
        PHILLY,
        GAVEL,
        "",
        "id;gpus;submit;iterations;model\n",
        "gpus,submit,iterations,iter_time\n",
    ]
)


@given(
    first=FIRST, lines=LINES, delimiter=st.sampled_from(",;\t"), end=st.sampled_from(["\n", "\r\n"])
)
@example(first=HEADER, lines=[["b", "1", "5", "1e-320"]], delimiter=",", end="\n")
@example(
    first=HEADER, lines=[["a", "1", "inf", "1"], ["b", "1", "inf", "1"]], delimiter=",", end="\n"
)
@example(
    first="gpus,submit,iterations,iter_time\n",
    lines=[["1", "0", "1", "1e-320"]],
    delimiter=",",
    end="\n",
)
def test_any_lines_are_jobs_or_an_explained_error(
    tmp_path_factory: pytest.TempPathFactory,
    first: str,
    lines: list[list[str]],
    delimiter: str,
    end: str,
) -> None:
    text = first + end.join(delimiter.join(line) for line in lines)
    path = written(tmp_path_factory.mktemp("any"), text)
    imported: Imported | None = attempt(lambda: load_trace(path, throughputs=TABLE))
    if imported is not None:
        jobs = imported.workload
        dropped = sum(finding.count for finding in imported.report if finding.action == "dropped")
        given_rows = sum(1 for line in read_text(path).split("\n") if line.strip())
        assert len(jobs) + dropped <= given_rows
        assert np.all(jobs.work > 0)
        assert np.all(jobs.gpus >= 1)
        assert np.all(np.isfinite(jobs.arrival_s))


@given(content=st.binary(max_size=200))
@example(content=b"\x1c")
@example(content="\ufeff\n".encode())
def test_any_bytes_are_jobs_or_an_explained_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("any"), content)
    for format in (None, *importers()):
        attempt(lambda format=format: load_trace(path, format=format, throughputs=TABLE))
    for load in (load_throughputs, load_samples, read_table, read_workload):
        attempt(lambda load=load: load(path))


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["v100", "('A', 1)", "null", "1", "iter_time_s"]), inner, max_size=2
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_is_a_table_or_an_explained_error(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    path = written(tmp_path_factory.mktemp("any"), json.dumps(value), "t.json")
    table = attempt(lambda: load_throughputs(path))
    if table is not None:
        assert all(0 <= rate < np.inf for rates in table.alone.values() for rate in rates)
    attempt(lambda: load_samples(path))
