"""Throughput tables as files: nothing is lost, and what was measured becomes the right rates."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.throughput_files import (
    Observation,
    measured_rates,
    measured_throughputs,
    observations_of,
    spread_speeds,
    write_json,
    write_spread,
    write_throughputs,
)
from shadowprice.instances.speeds.model_skew import ModelSkews
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs

RATES = st.floats(0, 1e300, allow_nan=False)
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LETTERS = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=TURNS)
NAMES = st.text(LETTERS, max_size=6) | st.sampled_from(
    ["it's", 'a"b', "a\\'b", "\\", "', 1)", "('x', 2)", ""]
)
KINDS = st.tuples(NAMES, st.integers(0, 10**9 - 1))


@st.composite
def tables(draw: st.DrawFn) -> Throughputs:
    names = NAMES.filter(lambda name: name != "profiles")
    types = tuple(draw(st.lists(names, min_size=1, max_size=3, unique=True)))
    rows = st.tuples(*[RATES] * len(types))
    alone = draw(st.dictionaries(KINDS, rows, min_size=1, max_size=4))
    kinds = st.sampled_from(sorted(alone))
    keys = st.tuples(st.sampled_from(types), kinds, kinds)
    together = draw(st.dictionaries(keys, st.tuples(RATES, RATES), max_size=4))
    return Throughputs(types, alone, together)


@given(tables())
@example(Throughputs(("k80",), {("it's", 1): (2.5,), ("", 2): (0.0,)}))
def test_what_is_written_is_read_back(table: Throughputs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.json"
        write_throughputs(table, path)
        assert load_throughputs(path) == replace(table, source=str(path))
        assert os.listdir(folder) == ["table.json"]


def test_gavels_own_notation_is_used_where_it_can_say_the_name(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    kind = ("ResNet-18 (batch size 16)", 1)
    other = ("LM's", 1)
    write_throughputs(
        Throughputs(("v100",), {kind: (2.0,), other: (3.0,)}, {("v100", kind, other): (1.0, 2.0)}),
        path,
    )
    assert json.loads(path.read_text()) == {
        "v100": {
            "('ResNet-18 (batch size 16)', 1)": {"null": 2.0, '("LM\'s", 1)': [1.0, 2.0]},
            '("LM\'s", 1)': {"null": 3.0},
        }
    }


@pytest.mark.parametrize("key", ['("a\\q", 1)', '("a, 1)', '("a"b", 1)', "('it's', 1)"])
def test_a_name_that_is_quoted_wrongly_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"v100": {"('a', 1)": {"null": 1.0}, key: {"null": 1.0}}}))
    with pytest.raises(InputError, match="expected"):
        load_throughputs(path)


KIND = ("a", 1)
GOOD = Throughputs(("v100",), {KIND: (1.0,)})


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (replace(GOOD, gpu_types=()), "no types"),
        (replace(GOOD, alone={}), "no kinds"),
        (replace(GOOD, gpu_types=("profiles",)), "profiles"),
        (Throughputs(("v", "v"), {KIND: (1.0, 2.0)}), "different names"),
        (replace(GOOD, alone={("a", 10**9): (1.0,)}), "1000000000"),
        (replace(GOOD, alone={("a", -1): (1.0,)}), "-1"),
        (replace(GOOD, alone={KIND: (1.0, 2.0)}), "2 rates for 1 types"),
        (replace(GOOD, alone={KIND: (math.nan,)}), "nan"),
        (replace(GOOD, alone={KIND: (math.inf,)}), "inf"),
        (replace(GOOD, pairs={("v100", KIND, KIND): (1.0, -1.0)}), "-1"),
        (replace(GOOD, pairs={("k80", KIND, KIND): (1.0, 1.0)}), "k80"),
        (replace(GOOD, pairs={("v100", ("b", 1), KIND): (1.0, 1.0)}), "'b'"),
    ],
)
def test_a_table_that_could_not_be_read_back_is_refused(
    tmp_path: Path, table: Throughputs, told: str
) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(InputError, match=told):
        write_throughputs(table, path)
    assert not path.exists()


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    write_throughputs(GOOD, path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        write_throughputs(replace(GOOD, alone={KIND: (2.0,)}), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.json"]
    with pytest.raises(InputError, match="cannot be written"):
        write_throughputs(GOOD, tmp_path / "nowhere" / "t.json")


def test_what_is_no_file_is_refused_and_stays(tmp_path: Path) -> None:
    folder, pipe = tmp_path / "t.json", tmp_path / "pipe.json"
    folder.mkdir()
    (folder / "mine").write_text("text")
    os.mkfifo(pipe)
    skews = ModelSkews({}, None, "none")
    for path, what in ((folder, "a folder"), (pipe, "a device or a pipe")):
        for write in (
            lambda to: write_throughputs(GOOD, to),
            lambda to: write_spread(skews, to),
            lambda to: write_json({}, to),
        ):
            with pytest.raises(InputError, match=rf"\.json: is {what}, expected a file"):
                write(path)
    assert (folder / "mine").read_text() == "text"
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["pipe.json", "t.json"]


def seen(
    job: str,
    steps: int,
    seconds: float,
    *,
    model: str = "",
    gpus: int = 1,
    gpu_type: str = "v100",
    nodes: int = 1,
    co: tuple[str, str] = ("", ""),
) -> Observation:
    return Observation(job, model, gpus, gpu_type, nodes, *co, steps, seconds)


def test_rates_are_sums_of_steps_over_sums_of_seconds() -> None:
    table = measured_throughputs(
        [
            seen("j1", 100, 10.0, model="m"),
            seen("j2", 20, 10.0, model="m"),
            seen("j1", 30, 10.0, model="m", gpu_type="k80"),
            seen("lone", 7, 2.0),
            seen("idle", 0, 0.0),
        ]
    )
    assert table.gpu_types == ("k80", "v100")
    assert table.alone == {("m", 1): (3.0, 6.0), ("job:lone", 1): (0.0, 3.5)}
    assert table.pairs == {}


def test_a_pair_needs_both_of_its_rates() -> None:
    both = [
        seen("a", 10, 10.0, model="A", co=("b", "B")),
        seen("b", 40, 10.0, model="B", co=("a", "A")),
        seen("c", 5, 10.0, co=("a", "A")),
    ]
    table = measured_throughputs(both)
    assert table.pairs == {
        ("v100", ("A", 1), ("B", 1)): (1.0, 4.0),
        ("v100", ("B", 1), ("A", 1)): (4.0, 1.0),
    }
    assert table.alone[("A", 1)] == (0.0,)  # not known
    twins = [
        seen("a", 10, 10.0, model="A", co=("b", "A")),
        seen("b", 30, 10.0, model="A", co=("a", "A")),
    ]
    assert measured_throughputs(twins).pairs == {("v100", ("A", 1), ("A", 1)): (2.0, 2.0)}


def test_spread_runs_are_told_apart(tmp_path: Path) -> None:
    observed = [
        seen("a", 100, 10.0, model="VGG-16", gpus=2),
        seen("a", 50, 10.0, model="VGG-16", gpus=2, nodes=2),
        seen("b", 90, 10.0, model="fast", gpus=2),
        seen("b", 99, 10.0, model="fast", gpus=2, nodes=2),
        seen("c", 9, 1.0, model="never-spread"),
    ]
    assert measured_throughputs(observed).alone[("VGG-16", 2)] == (10.0,)
    found = [(r.kind[0], r.nodes, r.rate, r.in_table) for r in measured_rates(observed)]
    assert found[:2] == [("VGG-16", 1, 10.0, True), ("VGG-16", 2, 5.0, False)]
    write_spread(spread_speeds(observed), tmp_path / "spread.json")
    speeds = ModelSkews.load(tmp_path / "spread.json")
    assert {
        name: speeds.entry(name).spread_speed for name in ("vgg16", "fast", "never-spread")
    } == {  # type: ignore[union-attr]
        "vgg16": 0.5,
        "fast": 1.0,
        "never-spread": 1.0,
    }
    with pytest.raises(InputError, match=r"\.json"):
        write_spread(speeds, tmp_path / "spread.toml")


def test_only_spread_runs_give_the_best_that_is_known() -> None:
    observed = [seen("a", 50, 10.0, gpus=4, nodes=3), seen("a", 60, 10.0, gpus=4, nodes=2)]
    assert measured_throughputs(observed).alone[("job:a", 4)] == (6.0,)


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(InputError, match="no step"):
        measured_throughputs([seen("a", 0, 1.0)])


@pytest.mark.parametrize(
    "change",
    [
        {"gpus": 0},
        {"nodes": True},
        {"steps": -1},
        {"seconds": math.nan},
        {"seconds": -1.0},
        {"job": ""},
    ],
)
def test_an_observation_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="expected"):
        replace(seen("a", 1, 1.0), **change)  # type: ignore[arg-type]


def test_rows_of_a_ledger_are_observations() -> None:
    row = {**vars(seen("a", 1, 1.0)), "more": 1}
    assert observations_of([row]) == [seen("a", 1, 1.0)]
