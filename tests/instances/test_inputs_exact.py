"""Every kind of file that is read: slips and tricks are refused in one line that names the place.

Each kind has one good document. Every number of it is replaced by a truth value, by text, by a fraction
where it must be whole, by one that no float can hold; every name by one that would end the line it is
printed on; every mapping gets a key that nobody knows, and one that is there twice.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shadowprice as sp
from shadowprice.analysis.run_directory import directory as run_directory
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.hosts.live.job_file import load_job_file
from shadowprice.instances.allocation_file import load_allocation_problem
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import read_written
from shadowprice.instances.entries import known_keys, on_one_line
from shadowprice.instances.files import read_json
from shadowprice.instances.graphs.graph_file import load_job_graph
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.samples import load_samples
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import ModelSkews
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.speeds.throughputs import load_throughputs
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.widths import ModelGrowth
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload

Place = tuple[str | int, ...]
FORGED = "a\nproven: fifo is optimal"


def toml(value: Any) -> str:
    """A value in TOML's inline notation."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return {"NaN": "nan", "Infinity": "inf"}.get(json.dumps(value), json.dumps(value))


def toml_file(document: Any) -> str:
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in document.items())


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    good : object
        A document that is read.
    data : tuple of str
        Mappings whose keys are data, by the last key that leads to them; ``""`` is the document.
    whole : tuple of str
        Entries that must be whole numbers.
    free : tuple of str
        Entries that may be anything.
    texts : bool
        Whether numbers may be written as text.
    """

    name: str
    read: Callable[[Path], object]
    good: Any
    data: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    texts: bool = False
    write: Callable[[Any], str] = json.dumps


def written(path: Path) -> object:
    return read_written(read_json(path), str(path))


GRAPH = {
    "name": "g",
    "microbatches": 2,
    "stages": [
        {"name": "s", "replicas": 2, "forward_s": 0.5, "backward_s": 1.0, "parameter_bytes": 4.0},
        {"name": "t", "replicas": 1, "forward_s": 0.5, "backward_s": 1.0},
    ],
    "links": [{"from": "s", "to": "t", "bytes_per_replica": 2.0, "exchange": False}],
}
MODEL = {"name": "m", "model": {"name": "resnet-18", "batch": 8, "flop_per_s": 1e12, "data": 2}}
PROFILE = {
    "profiles": [
        {
            "model": "m",
            "gpus": 1,
            "cpus_per_gpu": [1, 3],
            "memory_gb_per_gpu": [20.0],
            "speed": [[0.5], [1.0]],
        }
    ]
}
SYNERGY = {
    "profiles": {"m": {"1": {"iter_time_s": 0.5, "tput": [[0.5], [1.0]]}}},
    "profile_axes": {"cpu_rows": [1, 3], "mem_cols_gb": [20.0]},
}
HARD = {
    "format": 2,
    "name": "h",
    "policy": "asrpt",
    "predictor": None,
    "objective": "completion",
    "instance": {
        "cluster": [{"count": 1, "gpus": 1}],
        "jobs": {"id": ["a"], "arrival_s": [0.0], "gpus": [1], "work": [10.0]},
    },
    "witness": [{"job": 0, "node": 0, "gpus": 1, "start_s": 0.0, "end_s": 10.0}],
    "policy_cost_s": 20.0,
    "witness_cost_s": 10.0,
    "ratio": "2",
    "witness_is": "feasible",
    "provenance": {"method": "by hand"},
}
WRITTEN_GRAPHS = {
    "network": {
        "intra_bytes_per_s": 1e11,
        "nic_bytes_per_s": 1e10,
        "gpus_per_node": 4,
        "sharing": "per-gpu",
    },
    "graphs": [
        {
            "name": "g",
            "microbatches": 0,
            "links": [],
            "stages": [
                {
                    "name": "s",
                    "replicas": 1,
                    "forward_s": 0.5,
                    "backward_s": 1.0,
                    "parameter_bytes": 0.0,
                }
            ],
        }
    ],
    "of": [0],
}
WRITTEN = {
    "cluster": [{"count": 2, "gpus": 4, "gpu_type": "v100"}],
    "quotas": {"tenants": ["t"], "start_s": [0.0], "gpus": [[1]]},
    "overheads": {"start_s": 1.0},
    "pair_throughputs": {
        "source": "s",
        "gpu_types": ["v100"],
        "alone": [["m", 1, [1.0]]],
        "together": [["v100", "m", 1, "m", 1, 0.5, 0.5]],
    },
    "graphs": WRITTEN_GRAPHS,
    "elasticity": {"widest": [2], "efficiency": [1.0]},
    "locality": {"spread_speed": [0.5]},
    "copies": {"round_s": 8.0, "restart_s": 1.0, "aggregation_s": 1.0, "max_copies": 2},
    "until_complete": "0:1",
    "failures": {
        "source": "s",
        "known_until_s": None,
        "checkpoint_interval_s": 1.0,
        "checkpoint_cost_s": 0.0,
        "faults": [[0, 1.0, None]],
    },
    "stopped_s": 1.0,
    "preemption": "restart",
    "declared": {"racks": {"nodes": 2}},
}
PROBLEM = {
    "cluster": {"k80": 1, "v100": 2},
    "jobs": [
        {
            "id": "a",
            "type": "m",
            "tput": [10, 40.5],
            "sf": 1,
            "w": 1.5,
            "steps": 10,
            "t0": 0,
            "entity": "e",
        },
        {"tput": [4, 12], "slo_s": None, "isolated_s": 1.0},
    ],
    "pairs": [{"jobs": [0, 1], "tput": [[1.0, 1.0], [2, 3]]}],
    "prices": {"k80": 1.25},
}

KINDS = (
    Kind("problem.json", load_allocation_problem, PROBLEM, ("cluster",), ("sf", "v100", "jobs")),
    Kind(
        "cluster.toml",
        Cluster.from_toml,
        {"nodes": [{"gpus": 4, "count": 2, "gpu_type": "v100", "cpus": 24.5}]},
        whole=("gpus", "count"),
        write=toml_file,
    ),
    Kind(
        "graph.json",
        load_job_graph,
        GRAPH,
        whole=("replicas", "microbatches"),
        free=("exchange",),
        texts=True,
    ),
    Kind(
        "graph.yaml",
        load_job_graph,
        GRAPH,
        whole=("replicas", "microbatches"),
        free=("exchange",),
        texts=True,
    ),
    Kind("model.json", load_job_graph, MODEL, whole=("batch", "data"), texts=True),
    Kind("profiles.json", Profiles.load, PROFILE, whole=("gpus",)),
    Kind("synergy.json", Profiles.load, SYNERGY, ("", "profiles", "m"), free=("iter_time_s",)),
    Kind(
        "rates.json",
        load_throughputs,
        {"v100": {"('A', 1)": {"null": 2.5, "('A', 1)": [1.0, 1.0]}}},
        ("", "v100", "('A', 1)"),
    ),
    Kind("iterations.json", load_throughputs, {"m": {"1": {"iter_time_s": 0.5}}}, ("", "m")),
    Kind("samples.json", load_samples, {"samples": [1, 2.5]}),
    Kind(
        "skews.json",
        ModelSkews.load,
        {"models": {"m": {"skew": 0.5, "spread_speed": 0.5}}},
        ("models",),
    ),
    Kind(
        "skews.toml",
        ModelSkews.load,
        {"models": {"m": {"skew": 0.5, "spread_speed": 0.5}}},
        ("models",),
        write=toml_file,
    ),
    Kind(
        "widths.json",
        ModelGrowth.load,
        {"models": {"m": {"widest": 4, "efficiency": 0.75}}},
        ("models",),
    ),
    Kind("busy.json", Interference.load, {"VAE": 0.5}, ("",)),
    Kind(
        "hard.json",
        HardInstance.read,
        HARD,
        ("provenance",),
        ("gpus", "job", "node", "format"),
        ("method", "predictor"),
    ),
    Kind(
        "instance.json",
        written,
        WRITTEN,
        ("declared",),
        (
            "replicas",
            "microbatches",
            "of",
            "gpus_per_node",
            "widest",
            "count",
            "gpus",
            "max_copies",
        ),
    ),
    Kind(
        "jobs.yaml",
        load_job_file,
        {
            "defaults": {"gpus": 1, "env": {"A": "1"}},
            "jobs": [
                {
                    "name": "a",
                    "command": ["run"],
                    "iterations": 5,
                    "weight": 1.5,
                    "arrival_s": 2,
                    "tenant": "t",
                    "model": "m",
                    "gpu_types": ["v100"],
                    "throughput": {"v100": 2.5},
                }
            ],
        },
        ("env", "throughput"),
        ("gpus", "iterations"),
        ("A", "command"),
        texts=True,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def places(value: Any, here: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value of a document with the keys that lead to it."""
    yield here, value
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inside:
        yield from places(each, (*here, key))


def named(place: Place) -> str:
    """The last key of a place that is a name."""
    return next((key for key in reversed(place) if isinstance(key, str)), "")


def changed(document: Any, place: Place, value: Any) -> Any:
    document = copy.deepcopy(document)
    target = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return document


def numbers(kind: Kind) -> Iterator[Place]:
    for place, value in places(kind.good):
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and named(place) not in kind.free
        ):
            yield place


def refused(kind: Kind, text: str, folder: Path) -> str:
    path = folder / kind.name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        kind.read(path)
    message = str(caught.value)
    assert "\n" not in message, message
    assert len(message) < 1000
    return message


def said(kind: Kind, path: Path) -> str:
    """What a reader says of a file it refuses; nothing of one that it reads."""
    try:
        kind.read(path)
    except ShadowpriceError as error:
        return str(error)
    return ""


every_kind = pytest.mark.parametrize("name", list(BY_NAME))


@every_kind
def test_the_good_document_is_read(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    (tmp_path / name).write_text(kind.write(kind.good))
    kind.read(tmp_path / name)


@every_kind
def test_truth_values_are_no_numbers(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    for place in numbers(kind):
        assert name in refused(kind, kind.write(changed(kind.good, place, True)), tmp_path), place


@every_kind
def test_text_is_no_number_where_a_format_has_numbers(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    for place in numbers(kind):
        for text in ("x", "", "1"):
            if text != "1" or not kind.texts:
                refused(kind, kind.write(changed(kind.good, place, text)), tmp_path)


@every_kind
def test_what_is_whole_is_not_cut_off(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    for place in numbers(kind):
        if named(place) in kind.whole:
            refused(kind, kind.write(changed(kind.good, place, 1.5)), tmp_path)


@every_kind
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5000])
def test_numbers_that_are_none_and_numbers_without_end(
    name: str, number: str, tmp_path: Path
) -> None:
    kind = BY_NAME[name]
    if name.endswith((".toml", ".yaml")):
        number = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(number, number)
    for place in numbers(kind):
        text = kind.write(changed(kind.good, place, "HERE")).replace('"HERE"', number)
        refused(kind, text, tmp_path)


@every_kind
def test_unknown_keys_are_refused(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    for place, value in places(kind.good):
        inside = named(place) not in (*kind.data, *kind.free) and not isinstance(value, list)
        if isinstance(value, dict) and inside:
            near = f"{next(iter(value))}x"
            message = refused(kind, kind.write(changed(kind.good, (*place, near), 1)), tmp_path)
            assert f"unknown key {near!r}; did you mean {near[:-1]!r}?" in message


@every_kind
def test_keys_are_there_once(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    text = kind.write({"twice": kind.good})
    for place, value in places(kind.good):
        if isinstance(value, dict) and value and not name.endswith(".toml"):
            first = next(iter(value))
            text = kind.write(changed(kind.good, (*place, "SECOND"), value[first]))
            assert "twice" in refused(kind, text.replace("SECOND", str(first)), tmp_path)


@every_kind
def test_names_stay_on_their_line(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    for place, value in places(kind.good):
        if isinstance(value, str) and named(place) not in kind.free:
            for forged in (FORGED, "a\r", "a\x1b[2K", "a\u2028b", "a\u202eb", "a\x85b"):
                refused(kind, kind.write(changed(kind.good, place, forged)), tmp_path)


@every_kind
def test_any_other_value_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    kind = BY_NAME[name]
    path = tmp_path / name
    for place, _ in places(kind.good):
        for value in (None, [], {}, "", -1, 0, 1e300, [None], {"": 1}, "x" * 10_000):
            if not place or (value is None and name.endswith(".toml")) or value == [None]:
                continue
            path.write_text(kind.write(changed(kind.good, place, value)))
            assert "\n" not in said(kind, path)


def test_the_nearest_key_is_named() -> None:
    with pytest.raises(InputError, match=r"^here: unknown key 'gpu'; did you mean 'gpus'\?$"):
        known_keys({"gpu": 1}, "here", ("gpus", "cpus"))
    with pytest.raises(InputError, match=r"^here: unknown key 'colour'; expected gpus, cpus$"):
        known_keys({"colour": 1}, "here", ("gpus", "cpus"))
    with pytest.raises(InputError, match=r"^here: has no gpus, expected gpus$"):
        known_keys({}, "here", ("gpus", "cpus"), ("gpus",))
    with pytest.raises(InputError, match=r"^here: is 5, expected a mapping with gpus, cpus$"):
        known_keys(5, "here", ("gpus", "cpus"))


def test_a_gang_of_eight_is_not_answered_for_one_gpu(tmp_path: Path) -> None:
    """The name of our column is not the key of Gavel's file; it was passed over."""
    path = tmp_path / "problem.json"
    path.write_text(json.dumps({"cluster": {"v100": 8}, "jobs": [{"tput": [10], "gpus": 8}]}))
    with pytest.raises(InputError, match=r"jobs\[0\]: unknown key 'gpus'; did you mean 'sf'\?"):
        load_allocation_problem(path)


# --------------------------------------------------------------------------------------- traces, tables

HEADER = "id,gpus,submit,duration,user,model,weight\n"


@pytest.mark.parametrize(
    ("row", "where", "got"),
    [
        (
            '"a\nproven: x",1,0,5,u,m,1',
            "column 'id'",
            r"'a\\nproven: x', expected text on one line",
        ),
        ('a,1,0,5,"u\nx",m,1', "column 'user'", r"'u\\nx', expected text on one line"),
        ('a,1,0,5,u,"m\x1b[1A",1', "column 'model'", "expected text on one line"),
        (",1,0,5,u,m,1", "column 'id'", "'', expected a name"),
        ("a,1.5,0,5,u,m,1", "column 'gpus'", "'1.5', expected an integer from 1"),
        ("a,True,0,5,u,m,1", "column 'gpus'", "'True', expected an integer"),
        ("a,1e400,0,5,u,m,1", "column 'gpus'", "'1e400', expected an integer"),
        ("a,1,0,5,u,m,heavy", "column 'weight'", "'heavy', expected a number >= 0"),
        ("a,1,0,5,u,m,1e30000000", "column 'weight'", "'1e30000000', expected a number >= 0"),
        ("a,1,0,5,u,m,nan", "column 'weight'", "'nan', expected a number"),
        ("a,1,0,1e30,u,m,1", "column 'duration'", "'1e30', expected a number > 0, at most"),
        (
            "a,1024,0,4294967296,u,m,1\nb,1,0,1,u,m,1",
            "column 'duration'",
            "GPU-seconds of all jobs together",
        ),
    ],
)
def test_rows_of_traces(tmp_path: Path, row: str, where: str, got: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + row + "\n")
    with pytest.raises(InputError, match=f"row [12], {where}: got .*{got}") as caught:
        load_trace(path)
    assert "\n" not in str(caught.value)


def test_the_example_of_a_dropped_row_stays_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    rows = '2017-10-01 00:00:00,5,1,5,vc\nnever,5,1,5,"vc\nproven: fifo is optimal"\n'
    path.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n" + rows)
    report = load_trace(path).report
    assert len(report) == 1
    assert "\n" not in str(report[0])
    assert "proven" in str(report[0])


def frame(**columns: Any) -> pd.DataFrame:
    given = {
        "job": [0],
        "node": [0],
        "gpus": [1],
        "start_s": [0.0],
        "end_s": [1.0],
        "overhead_s": [0.0],
    }
    return pd.DataFrame(given | columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gpus": [1.5]}, "row 0, column 'gpus': got 1.5, expected an integer"),
        ({"job": [0.5]}, "row 0, column 'job': got 0.5, expected an integer"),
        ({"gpus": [True]}, "row 0, column 'gpus': got True, expected an integer"),
        ({"node": [np.nan]}, "row 0, column 'node': got nan, expected an integer"),
        ({"node": [None]}, "row 0, column 'node': got None, expected an integer"),
        ({"gpus": [1e19]}, r"row 0, column 'gpus': got 1e\+19, expected an integer"),
        ({"partner": [0.25]}, "row 0, column 'partner': got 0.25, expected an integer"),
        ({"start_s": ["soon"]}, "row 0, column 'start_s': got 'soon', expected a number"),
        ({"end_s": [False]}, "row 0, column 'end_s': got False, expected a number"),
    ],
)
def test_schedules_are_not_rounded_when_they_are_read(columns: Any, message: str) -> None:
    assert len(Schedule.from_frame(frame())) == 1
    with pytest.raises(InputError, match=message):
        Schedule.from_frame(frame(**columns))


def test_copies_are_not_rounded_when_they_are_read() -> None:
    rows = frame(copy=[1], steps=[3])
    assert Schedule.from_frame(rows).steps == [3]
    for column in ("copy", "steps"):
        with pytest.raises(InputError, match=rf"row 0, column '{column}': got 2\.5"):
            Schedule.from_frame(rows.assign(**{column: 2.5}))
    rules = {"round_s": 1.0, "restart_s": 0.0, "aggregation_s": 0.0, "max_copies": 2}
    assert decode(CopyRules, rules, "run.json: copies") == CopyRules(1.0, 0.0, 0.0, 2)
    for change, message in (
        ({"max_copies": 1.5}, "copies: max_copies is 1.5, expected an integer"),
        ({"max_copy": 1}, r"unknown key 'max_copy'; did you mean"),
        ({"round_s": "1"}, "copies: round_s is '1', expected a number"),
        ({"max_copies": 0}, "max_copies is 0, expected 1 to"),
    ):
        with pytest.raises(InputError, match=message):
            decode(CopyRules, rules | change, "run.json: copies")
    del rules["round_s"]
    with pytest.raises(InputError, match="copies: has no round_s, expected"):
        decode(CopyRules, rules, "run.json: copies")


def test_ids_of_jobs() -> None:
    jobs = {"arrival_s": [0, 0], "gpus": 1, "work": 1}
    for ids, message in (
        (["a", None], "row 2, column 'id': got None, expected a name"),
        (["a", "a"], "row 2, column 'id': got 'a', expected an id not used before"),
        ([1, "1"], "row 2, column 'id': got '1', expected an id not used before"),
        (["a", True], "row 2, column 'id': got True, expected text"),
        (["a", ["b"]], r"row 2, column 'id': got \['b'\], expected text"),
        (["a", "b\n"], "row 2, column 'id': got 'b\\\\n', expected text on one line"),
    ):
        with pytest.raises(InputError, match=message):
            Workload.from_columns(id=ids, **jobs)


def test_sums_of_times_fit_64_bits() -> None:
    """Jobs of 2**32 s: 1,024 GPUs of them are the most; the interval programme overflowed beyond."""
    most = {"arrival_s": [0.0] * 1024, "gpus": 1, "work": 2.0**32}
    instance = sp.Instance(sp.Cluster.parse("1024x1"), Workload.from_columns(**most))
    bound = sp.strongest_bound(instance, objective="completion", preemptive=True, budget_s=1.0)
    assert bound.value_s <= 1024 * 2.0**32
    more = most | {"arrival_s": [0.0] * 2100}
    with pytest.raises(
        InputError, match=r"row 1025, column 'work': got 4294967296.0, expected at most"
    ):
        Workload.from_columns(**more)
    typed = Workload.from_columns(
        **more | {"work": 1.0}, throughput=[[2.0**-32]] * 2100, gpu_types=("gpu",)
    )
    with pytest.raises(InputError, match=r"job '1024' takes 4294967296\.0 s on 1 GPUs"):
        sp.Instance(sp.Cluster.parse("300x8"), typed)


def test_nodes_and_types_stay_on_their_line() -> None:
    with pytest.raises(InputError, match=r"gpu_type is .* expected text on one line"):
        Node(1, FORGED)
    with pytest.raises(InputError, match="each on one line"):
        Workload.from_columns(arrival_s=[0], gpus=1, work=1, throughput=[[1.0]], gpu_types=[FORGED])
    assert on_one_line("ä 日本 😀 a\u200db")
    assert not any(
        map(on_one_line, ("\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\ud800"))
    )


# ------------------------------------------------------------------------------------------------- runs


def test_keys_of_a_run(tmp_path: Path) -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=1, work=1)
    run_directory.save(sp.simulate(jobs, "1x1", "fifo"), tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    saved = json.loads(path.read_text())
    run_directory.load(tmp_path / "run")
    for change, message in (
        ({"polcy": "x"}, "unknown key 'polcy'; did you mean 'policy'"),
        ({"format": True}, "format is True"),
        ({"format": 1.0}, "format is 1.0"),
        ({"decisions": True}, "decisions is True"),
    ):
        path.write_text(json.dumps(saved | change))
        with pytest.raises(InputError, match=message) as caught:
            run_directory.load(tmp_path / "run")
        assert "run.json" in str(caught.value)
