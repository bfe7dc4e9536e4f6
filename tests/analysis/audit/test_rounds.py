"""Recorded rounds: Shockwave's nine runs of one trace, and rounds of our own with known faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shadowprice.analysis.audit.audit import audit
from shadowprice.analysis.audit.recorded_run import recorded_run
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.instances.recorded.record import ContradictionKind
from shadowprice.instances.recorded.rounds import read_rounds

GOLDEN = (
    Path(__file__).resolve().parents[4] / "shared/golden/recorded/shockwave_tacc_32gpus.json.xz"
)
golden = pytest.mark.skipif(not GOLDEN.exists(), reason="the recorded runs of Shockwave are absent")


@golden
def test_the_nine_runs_of_shockwave_come_out_as_recorded() -> None:
    result = audit(GOLDEN, budget_s=0.0)
    assert len(result.runs) == 9
    for each in result.runs:
        outcome, stated = each.run.outcome, each.run.record.stated
        assert outcome is not None
        assert each.run.sound.all()
        summary = outcome.summary()
        assert summary["completed"] == 120
        assert summary["avg_jct_s"] == pytest.approx(stated["avg_jct_s"], abs=2e-6)
        assert summary["makespan_s"] == pytest.approx(stated["makespan_s"], abs=2e-6)
        # Theirs leaves out the 20 s in which a lease on new workers makes no progress.
        utilization = summary["utilization"]
        assert isinstance(utilization, float)
        assert stated["utilization"] < utilization < 1
    kinds = {str(kind) for kind in result.contradictions["kind"]}
    assert kinds == {"after its end"}
    # One job is held for a round in which the file says that it is complete already.
    assert set(result.contradictions["job"]) == {"35"}
    for goal in (Objective.FLOW, Objective.MAKESPAN):
        for each, row in zip(result.runs, result.common[goal], strict=True):
            mine = each.row(goal)
            assert mine is not None
            assert 1 <= mine.ratio <= row.ratio  # Who needs less could have been quicker.
    best = min(row.ratio for row in result.common[Objective.MAKESPAN])
    assert best == pytest.approx(1.1548, abs=1e-4)  # Shockwave's own, which the paper is about.


def rounds(**run: Any) -> dict[str, Any]:
    jobs = [
        {"id": "a", "gpus": 1, "arrival_s": 0.0},
        {"id": "b", "gpus": 2, "arrival_s": 5.0},
    ]
    given = {"round_s": 10, "rounds": [{"a": [0]}, {"a": [0], "b": [1, 2]}, {"b": [1, 2]}]}
    return {"cluster": {"nodes": 1, "gpus_per_node": 3}, "jobs": jobs, **given, **run}


def written(tmp_path: Path, given: object) -> Path:
    path = tmp_path / "rounds.json"
    path.write_text(json.dumps(given))
    return path


def kinds(tmp_path: Path, **run: Any) -> list[tuple[str, str]]:
    (record,) = read_rounds(written(tmp_path, rounds(**run)))
    assert record.cluster is not None
    result = recorded_run(record, record.cluster)
    return [(str(each.kind), name) for each in result.contradictions for name in each.job.tolist()]


def test_rounds_become_runs_and_verify(tmp_path: Path) -> None:
    (record,) = read_rounds(written(tmp_path, rounds(jct={"a": 15.0, "b": 20.0})))
    assert record.cluster is not None
    outcome = recorded_run(record, record.cluster).outcome
    assert outcome is not None
    assert outcome.end_s.tolist() == [15.0, 25.0]
    assert outcome.schedule.start_s.tolist() == [
        0.0,
        10.0,
    ]  # Rounds on the same workers are one run.
    assert outcome.totals.preemptions.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({"a": [1], "b": [1, 2]}, ("GPU held twice", "b")),
        ({"a": [0], "b": [1, 1]}, ("GPU held twice", "b")),
        ({"a": [0], "b": [1]}, ("gang not whole", "b")),
        ({"a": [3], "b": [1, 2]}, ("no such node", "a")),
        ({"a": [0], "b": [1, 2], "c": [0]}, ("no such job", "c")),
    ],
)
def test_a_fault_in_a_round_is_a_row(
    tmp_path: Path, held: dict[str, list[int]], expected: tuple[str, str]
) -> None:
    assert expected in kinds(tmp_path, rounds=[{"a": [0]}, held, {"b": [1, 2]}])


def test_no_fault_hides_another(tmp_path: Path) -> None:
    result = kinds(
        tmp_path,
        rounds=[{"b": [0, 1]}, {"a": [0], "b": [0, 3]}, {"a": [1, 1]}],
        jct=[12.0, 40.0],
    )
    for each in (
        (ContradictionKind.EARLY, "b"),
        (ContradictionKind.TWICE, "b"),
        (ContradictionKind.UNKNOWN_NODE, "b"),
        (ContradictionKind.GANG, "a"),
        (ContradictionKind.TWICE, "a"),
        (ContradictionKind.AFTER_END, "a"),
        (ContradictionKind.BEYOND_ROWS, "b"),
    ):
        assert (str(each[0]), each[1]) in result, each


def test_a_round_may_end_with_the_last_of_its_jobs(tmp_path: Path) -> None:
    held = [{"a": [0]}, {"b": [1, 2]}]
    early = written(tmp_path, rounds(rounds=held, jct={"a": 7.0, "b": 3.0}))
    (record,) = read_rounds(early)
    assert record.end_s.tolist() == [7.0, 8.0]
    assert record.start_s.tolist() == [0.0, 7.0]
    assert "ends with the last of its jobs where all of them complete" in record.notes[0]
    (record,) = read_rounds(written(tmp_path, rounds(rounds=held, jct={"a": 7.0, "b": 14.0})))
    assert record.start_s.tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": []}, "rounds: expected a list of rounds"),
        ({"round_s": 0}, "round_s is 0, expected seconds > 0"),
        ({"rounds": [{"a": ["x"]}]}, "round 1: job 'a': expected a list of numbers of workers"),
        ({"rounds": [[5, {}], [4, {}]]}, "rounds are not in order"),
        ({"jct": [1.0]}, "jct: 1 values, expected 2"),
        ({"cluster": None}, "the file names no cluster"),
        ({"cluster": {"nodes": 0}}, "cluster: expected nodes and gpus_per_node"),
        ({"jobs": [{"id": 1, "gpus": 0, "arrival_s": 0}]}, "gpus is 0, expected a whole number"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_rounds(written(tmp_path, rounds(**change)))


def test_rounds_of_a_real_run_drift(tmp_path: Path) -> None:
    """Each round takes eleven seconds instead of ten: no completion fits the clock that the file states."""
    count = 30
    jobs = [{"id": f"j{k}", "gpus": 1, "arrival_s": 11.0 * k} for k in range(count)]
    held = [{f"j{k}": [0]} for k in range(count)]
    given = {"cluster": "1x2", "jobs": jobs, "round_s": 10, "rounds": held, "jct": [10.9] * count}
    (record,) = read_rounds(written(tmp_path, given))
    assert record.cluster is not None
    result = recorded_run(record, record.cluster)
    assert not result.contradictions
    assert result.outcome is not None
    assert result.outcome.jct_s == pytest.approx([10.9] * count, abs=1e-6)
    assert "a tenth of it later" in record.notes[0]


def test_a_completion_far_beyond_its_rounds_is_no_drift(tmp_path: Path) -> None:
    assert ("end beyond its rows", "b") in kinds(tmp_path, jct={"a": 15.0, "b": 60.0})
