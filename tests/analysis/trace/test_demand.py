"""Demand by GPU type and over time, what was run, and what a trace cannot answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.audit.recorded_use import NOT_RECORDED, recorded_use
from shadowprice.analysis.trace.contents import run_times_s
from shadowprice.analysis.trace.demand import racks_in_words, type_loads, unanswered
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators.rescaling import offered_load
from shadowprice.instances.workload import Workload
from support.command_line import CommandLine

CLUSTER = Cluster.parse("1x4:a10,2x4:h100")


def loads(jobs: Workload) -> dict[str, float]:
    result = type_loads(jobs, CLUSTER, run_times_s(jobs, CLUSTER))
    return {each.types: each.load for each in result}


def test_a_load_on_one_type_is_not_hidden_by_the_average() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 0, 100],
        gpus=[4, 4, 4],
        work=[70, 70, 70],
        allowed_types=["a10", "a10", "h100"],
    )
    assert loads(jobs) == pytest.approx({"a10": 1.4 * 2 / 3, "(all)": 1.4 / 3, "h100": 0.7 / 3})
    (first, *_) = type_loads(jobs, CLUSTER, run_times_s(jobs, CLUSTER))
    assert first.types == "a10"
    assert first.by_span == pytest.approx((11.2 * 2 / 3, 0, 0, 0, 0, 0, 0, 0))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100),
            st.integers(1, 4),
            st.integers(1, 50),
            st.sampled_from(["", "a10", "h100", "a10|h100"]),
        ),
        min_size=2,
        max_size=8,
    )
)
def test_loads_are_those_of_who_may_run_nowhere_else(rows: list[tuple[int, int, int, str]]) -> None:
    arrival, gpus, work, types = (list(each) for each in zip(*rows, strict=True))
    jobs = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work, allowed_types=types)
    span = (max(arrival) - min(arrival)) * len(rows) / (len(rows) - 1)
    result = loads(jobs)
    if not span:
        assert result == {}
        return
    for names, count in ((("a10",), 4), (("h100",), 8)):
        mine = sum(g * w for _, g, w, t in rows if t in names)
        if mine:
            assert result[names[0]] == pytest.approx(mine / count / span)
    assert result["(all)"] == pytest.approx(offered_load(jobs, 12))
    assert result["(all)"] == pytest.approx(sum(g * w for _, g, w, _ in rows) / 12 / span)
    for each in type_loads(jobs, CLUSTER, run_times_s(jobs, CLUSTER)):
        assert np.mean(each.by_span) == pytest.approx(each.load)


def test_questions_are_those_of_missing_columns() -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    assert len(unanswered(jobs, CLUSTER)) == 4
    known = Workload.from_columns(
        arrival_s=[0],
        gpus=[1],
        work=[1],
        limit_s=[5],
        group=["g"],
        model=["m"],
        allowed_types=["a10"],
    )
    assert unanswered(known, CLUSTER) == []


def test_racks_are_told(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("gpus,rack\n4,r1\n4,r1\n8,r2\n2,\n")
    assert racks_in_words(Cluster.load(path)) == (
        "racks: 2, of 8 to 8 GPUs; 1 nodes are in none that is known"
    )
    assert racks_in_words(CLUSTER) is None


def test_what_was_run_is_told_where_the_file_says_it(tmp_path: Path) -> None:
    path = tmp_path / "ran.csv"
    path.write_text("job,gpus,start,end,submit\na,2,5,15,0\nb,2,5,15,0\n")
    lines, questions = recorded_use(path, Cluster.parse("1x4"))
    assert lines[0].startswith("recorded: 2 jobs verified, use 66.7%, mean JCT 15 s")
    assert any("on which nodes" in each for each in questions)
    lines, _ = recorded_use(path, Cluster.parse("1x3"))
    assert lines[1].startswith("over capacity: 1 rows, job set aside (first: row")
    path.write_text("id,gpus,submit,duration\na,2,0,15\n")
    assert recorded_use(path, Cluster.parse("1x4")) == ([], [NOT_RECORDED])


def test_the_command_tells_all_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("id,gpus,submit,duration,allowed_types\na,4,0,90,a10\nb,4,100,90,h100\n")
    words = ("trace", path, "--cluster", "1x4:a10,2x4:h100")
    shown = CommandLine(capfd, columns=160)(*words)
    assert shown.returncode == 0
    assert " 0.450 " in shown.stdout
    assert f"cannot be answered: {NOT_RECORDED}" in shown.stdout
    result = json.loads(CommandLine(capfd)(*words, "--json").stdout)
    assert result["loads"][0]["types"] == "a10"
    assert result["loads"][0]["load"] == 0.45
    assert NOT_RECORDED in result["cannot_answer"]
