"""Faults by law, from tables and from a log; checkpoints."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.fault_law import FaultLaw
from shadowprice.instances.failures.node_failures import NodeFailures, merged
from shadowprice.instances.grid import TICK_S
from support.paths import SHARED
from support.written_failures import failures_of

LOG = SHARED / "data" / "trace_samples" / "infinitehbd" / "fault_trace.json"
DAY_S = 86_400.0


def spans(found: NodeFailures) -> list[tuple[int, float, float]]:
    columns = (found.node, found.down_s, found.up_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


# Checkpoints.


@given(
    interval=st.integers(1, 20),
    cost=st.integers(0, 7),
    progress=st.integers(1, 200),
    elapsed=st.integers(0, 400),
)
def test_checkpoints_tick_by_tick(interval: int, cost: int, progress: int, elapsed: int) -> None:
    rule = Checkpointing(interval * TICK_S, cost * TICK_S)
    made = saved = writing = 0
    by_tick = [(0, 0)]
    while len(by_tick) <= 3000:
        if writing:
            writing -= 1
            saved = saved if writing else made
        else:
            made += 1
            if made % interval == 0:
                writing = cost
                saved = saved if writing else made
        by_tick.append((made, saved))
    assert (rule.progress_ticks(elapsed), rule.saved_ticks(elapsed)) == by_tick[elapsed]
    first = next(tick for tick, (done, _) in enumerate(by_tick) if done == progress)
    assert rule.elapsed_ticks(progress) == first
    assert rule.elapsed_s([0.0, progress * TICK_S, math.inf]).tolist() == [
        0.0,
        first * TICK_S,
        math.inf,
    ]
    assert rule.progress_s([elapsed * TICK_S]).tolist() == [by_tick[elapsed][0] * TICK_S]


@given(cycles=st.integers(1, 2**30), off=st.integers(-3, 3))
def test_progress_of_columns_is_exact_over_long_times(cycles: int, off: int) -> None:
    rule = Checkpointing(3.0 + TICK_S, TICK_S)
    elapsed = cycles * (3 * 2**20 + 2) + off
    found = float(rule.progress_s(elapsed * TICK_S)) * 2**20
    assert found == rule.progress_ticks(elapsed)
    progress = int(found)
    assert float(rule.elapsed_s(progress * TICK_S)) * 2**20 == rule.elapsed_ticks(progress)


@pytest.mark.parametrize(
    ("interval_s", "cost_s"), [(0.0, 0.0), (-1.0, 0.0), (math.inf, 1.0), (1.0, -1.0), (1.0, 1e-9)]
)
def test_checkpoints_that_cannot_be(interval_s: float, cost_s: float) -> None:
    with pytest.raises(InputError, match="checkpoints"):
        Checkpointing(interval_s, cost_s)


# Laws.


@given(
    seed=st.integers(0, 100),
    nodes=st.integers(1, 4),
    first_s=st.floats(1, 1e6),
    times=st.integers(2, 9),
    shape=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_what_is_drawn_for_longer_has_the_same_faults_before(
    seed: int, nodes: int, first_s: float, times: int, shape: float
) -> None:
    law = FaultLaw(5_000.0, 300.0, shape, 1.0, seed)
    short = law.of(Cluster.parse(f"{nodes}x8"), Checkpointing(), first_s)
    long = law.of(Cluster.parse(f"{nodes + 1}x2"), Checkpointing(), times * first_s)
    known = [each for each in spans(long) if each[0] < nodes and each[1] < first_s]
    assert spans(short) == known
    assert short.known_until_s == first_s
    assert (short.down_s < first_s).all()


@pytest.mark.parametrize("shape", [0.7, 1.0, 4.0])
def test_times_have_the_means_that_are_asked_for(shape: float) -> None:
    law = FaultLaw(10_000.0, 500.0, shape, 2.0, seed=3)
    down_s, up_s = law._downtimes(0, 6e7, 10**6)
    up_for_s = down_s[1:] - up_s[:-1]
    assert len(down_s) > 5000
    assert up_for_s.mean() == pytest.approx(10_000.0, rel=0.05)
    assert (up_s - down_s).mean() == pytest.approx(500.0, rel=0.05)
    spread = math.sqrt(math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1)
    assert up_for_s.std() / up_for_s.mean() == pytest.approx(spread, rel=0.1)


def test_seeds_and_nodes_differ() -> None:
    failures = failures_of("mtbf_s=5000,repair_s=300,seed=1")
    cluster = Cluster.parse("2x8")
    one, other = (each.of(cluster, 1e5) for each in (failures, failures.seeded(2)))
    assert spans(one) == spans(failures.of(cluster, 1e5)) != spans(other)
    first = defaultdict(list)
    for node, down_s, _ in spans(one):
        first[node].append(down_s)
    assert first[0][0] != first[1][0]


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"mtbf_s": -5.0}, "mtbf_s is -5"),
        ({"mtbf_s": 1e-9}, "at least one tick"),
        ({"seed": -1}, "seed is -1"),
        ({"shape": 0.001}, "shape is 0.001"),
    ],
)
def test_laws_that_cannot_be(law: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FaultLaw(**{"mtbf_s": 5.0, "repair_s": 1.0, **law})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"nowhere.csv: no such file"):
        failures_of("file=nowhere.csv")


# Tables.


@given(
    faults=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 9)), max_size=12
    )
)
def test_a_node_is_down_while_it_has_any_fault(faults: list[tuple[int, int, int]]) -> None:
    rows = [(node, float(down), float(down + length)) for node, down, length in faults]
    node, down_s, up_s = zip(*rows, strict=True) if rows else ((), (), ())
    found = merged(
        np.array(node, dtype=np.int64), np.array(down_s), np.array(up_s), "law", Checkpointing()
    )
    expected = {(n, second) for n, down, up in rows for second in range(int(down), int(up))}
    seconds = [(n, second) for n, down, up in spans(found) for second in range(int(down), int(up))]
    assert sorted(seconds) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,down\n", "expected node,down_s,up_s"),
        ("node,down_s,up_s\n0,1\n", "row 1 has 2 values, expected 3"),
        ("node,down_s,up_s\n0,1,2,3\n", "row 1 has 4 values, expected 3"),
        ("node,down_s,up_s\n0,1,2\n0,5,x\n", "row 2, column 'up_s': got 'x'"),
        ("node,down_s,up_s\n0,5,4\n", "row 1, column 'up_s': got '4', expected seconds after"),
        (
            "node,down_s,up_s\n-1,5,6\n",
            "row 1, column 'node': got '-1', expected an integer from 0",
        ),
        ("node,down_s,up_s\n0,nan,6\n", "row 1, column 'down_s': got 'nan'"),
        ("node,down_s,up_s\n7,5,6\n", "fault 0 is of node 7, expected 0 to 1"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "faults.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        failures_of(f"file={path}").of(Cluster.parse("2x1"), 1.0)


def test_a_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "faults.csv"
    path.write_text("node,down_s,up_s\n1,5,6\n0,2.5,\n1,5.5,9\n")
    failures = failures_of(f"file={path}", 10.0, 1.0)
    assert spans(failures.of(Cluster.parse("2x1"), 1.0)) == [(0, 2.5, math.inf), (1, 5.0, 9.0)]
    with pytest.raises(InputError, match="takes no choices, got nodes"):
        failures_of(f"file={path},nodes=3")
    with pytest.raises(InputError, match="take no seed"):
        failures.seeded(1)


# The log of InfiniteHBD.


def log(tmp_path: Path, events: list[tuple[str, float, str]]) -> Path:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps(
            [
                {"node_id": node, "event_time": day, "event_type": f"fault_{what}"}
                for node, day, what in events
            ]
        )
    )
    return path


def test_open_faults_of_a_node_are_counted(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        [("a", 1, "start"), ("a", 2, "start"), ("a", 3, "end"), ("b", 4, "start"), ("a", 5, "end")],
    )
    found = failures_of(f"file={path},nodes=2").of(Cluster.parse("2x1"), 1.0)
    assert sorted((down, up) for _, down, up in spans(found)) == [
        (DAY_S, 5 * DAY_S),
        (4 * DAY_S, math.inf),
    ]
    assert found.known_until_s == 5 * DAY_S
    later = failures_of(f"file={path},nodes=2,from_day=2.5").of(Cluster.parse("2x1"), 1.0)
    assert sorted((down, up) for _, down, up in spans(later)) == [
        (0.0, 2.5 * DAY_S),
        (1.5 * DAY_S, math.inf),
    ]


@pytest.mark.parametrize(
    ("events", "choices", "message"),
    [
        ([("a", 1, "start")], "", "lists 1 nodes that failed, and not how many there are"),
        ([("a", 1, "end")], ",nodes=1", "ends that did not begin"),
        ([("a", 1, "start"), ("b", 1, "start")], ",nodes=1", "expected at least the 2 that failed"),
        ([("a", 1, "stop")], ",nodes=1", "event_type"),
        ([("a", 1, "start")], ",nodes=1,from_day=2", "expected a day before the last event"),
        ([("a", 1, "start")], ",nodes=1", "is of 1 nodes, expected at least the 2"),
    ],
)
def test_logs_that_cannot_be(
    tmp_path: Path, events: list[tuple[str, float, str]], choices: str, message: str
) -> None:
    path = log(tmp_path, events)
    with pytest.raises(InputError, match=message):
        failures_of(f"file={path}{choices}").of(Cluster.parse("2x1"), 1.0)


@pytest.mark.skipif(not LOG.exists(), reason="the published log is not here")
def test_the_published_log_has_its_documented_faults() -> None:
    failures = failures_of(f"file={LOG},nodes=400,seed=5")
    whole = failures.of(Cluster.parse("400x8"), 1.0)
    # 584 faults, of which two begin while another of the same node is open.
    assert len(whole) == 582
    assert len(set(whole.node.tolist())) == 231
    assert whole.down_s[0] == pytest.approx(3.8955 * DAY_S, abs=1e-3)
    assert whole.known_until_s == pytest.approx(348.9798 * DAY_S, abs=1e-3)
    repair_days = (whole.up_s - whole.down_s) / DAY_S
    assert np.median(repair_days) == pytest.approx(0.85, abs=0.05)
    part = failures.of(Cluster.parse("128x8"), 1.0)
    assert 0 < len(part) < 582
    assert spans(part) != spans(failures.seeded(6).of(Cluster.parse("128x8"), 1.0))
