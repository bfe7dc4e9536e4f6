"""Schedules of others as tables: a run of our own engine comes back with its numbers, and every fault is a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.audit.audit import audit
from shadowprice.analysis.audit.rows import schedule_rows
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective


@pytest.mark.parametrize("policy", ["srtf", "easy"])
def test_a_run_of_our_own_has_the_numbers_of_compare(tmp_path: Path, policy: str) -> None:
    jobs = sp.generate("lognormal", jobs=60, seed=3, load=1.2, gpus_total=16)
    mine = sp.simulate(jobs, "4x4", policy)
    path = tmp_path / "ran.csv"
    schedule_rows(mine).to_csv(path, index=False)
    (result,) = audit(path, "4x4", policies=("srtf",), budget_s=0.0).runs
    assert result.run.outcome is not None
    assert len(result.contradictions) == 0
    theirs = {name: value for name, value in mine.summary().items() if name != "cpu_s"}
    ours = {name: value for name, value in result.run.outcome.summary().items() if name != "cpu_s"}
    assert {**ours, "policy": policy} == theirs
    for goal in (Objective.FLOW, Objective.MAKESPAN):
        expected = sp.compare(
            jobs, "4x4", [policy, "srtf"] if policy != "srtf" else ["srtf"], goal, budget_s=0.0
        )
        first, row = expected.rows[0], result.row(goal)
        assert row is not None
        assert (row.cost_ticks, row.proven_by.ticks) == (first.cost_ticks, first.proven_by.ticks)
        assert (row.bound_kind, row.holds_for) == (first.bound_kind, first.holds_for)


HEAD = "job,node,gpus,start,end,submit,gpu_ids"
FINE = "fine,n1,1,0,10,0,0"
FAULTS = {
    "unreadable": "x,n1,1,soon,10,0,1",
    "no GPUs": "x,n1,0,0,10,0,",
    "ends before it starts": "x,n1,1,9,5,0,1",
    "no time": "x,n1,1,5,5,0,1",
    "negative time": "x,n1,1,-5,5,-6,1",
    "before submission": "x,n1,1,5,9,6,1",
    "no such node": "x,n9,1,5,9,0,1",
    "wider than its node": "x,n1,9,5,9,0,",
    "GPU held twice": "x,n1,1,5,9,0,0",
    "over capacity": "x,n2,1,5,9,0,\ny,n2,2,5,9,0,",
    "two runs at once": "x,n1,1,20,30,0,0\nx,n1,1,25,35,0,1",
    "repeated row": "x,n2,1,20,30,0,\nx,n2,1,20,30,0,",
    "gang not whole": "x,n1,2,20,30,0,\nx,n1,1,35,40,0,",
}


def faults(tmp_path: Path, lines: list[str]) -> pd.DataFrame:
    path = tmp_path / "ran.csv"
    path.write_text("\n".join([HEAD, FINE, *lines]) + "\n")
    (tmp_path / "nodes.csv").write_text("name,gpus,rack\nn1,2,r1\nn2,2,r2\n")
    (result,) = audit(path, str(tmp_path / "nodes.csv"), policies=(), budget_s=0.0).runs
    assert result.run.outcome is not None
    assert "fine" in result.run.outcome.instance.workload.id
    return result.contradictions


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_a_row_of_its_kind(tmp_path: Path, kind: str) -> None:
    table = faults(tmp_path, FAULTS[kind].split("\n"))
    assert kind in set(table["kind"])
    assert set(table["job"]) <= {"x", "y"}


def test_without_a_fault_there_is_no_row(tmp_path: Path) -> None:
    assert len(faults(tmp_path, ["x,n1,1,5,9,5,1", "y,n2,2,5,9,0,0 1"])) == 0


@settings(max_examples=15, deadline=None)
@given(
    st.permutations(sorted(FAULTS)).flatmap(
        lambda all_: st.integers(1, len(all_)).map(lambda k: all_[:k])
    )
)
def test_no_fault_hides_another(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[str]
) -> None:
    """Whatever is put together, each is there with its kind and its job."""
    lines, jobs = [], {}
    for number, kind in enumerate(chosen):
        # Each at a time of its own, so that what fits by itself fits.
        name = f"j{number}"
        jobs[kind] = name
        for line in FAULTS[kind].split("\n"):
            parts = line.split(",")
            parts[0] = f"{name}{parts[0] if parts[0] != 'x' else ''}"
            if kind != "negative time":
                parts[3:6] = [
                    each if not each.lstrip("-").isdigit() else str(int(each) + 100 * number)
                    for each in parts[3:6]
                ]
            if kind == "GPU held twice":
                lines.append(f"other{number},n1,1,{100 * number},{100 * number + 10},0,0")
            lines.append(",".join(parts))
    table = faults(tmp_path_factory.mktemp("faults"), lines)
    for kind, name in jobs.items():
        mine = table[table["job"].str.startswith(name)]
        assert kind in set(mine["kind"]), (kind, table)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(0, 20),
        st.integers(-2, 9),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_what_is_left_is_verified_whatever_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, int, int, int]]
) -> None:
    """The rules here and the verifier's are two texts: what the one lets through the other accepts."""
    path = tmp_path_factory.mktemp("drawn") / "ran.csv"
    table = pd.DataFrame(rows, columns=["job", "node", "gpus", "start", "length"])
    table["end"], table["submit"] = table["start"] + table["length"], 3
    table.to_csv(path, index=False)
    (result,) = audit(path, "2x2", policies=(), budget_s=0.0).runs
    assert "breaks a rule" not in set(result.contradictions["kind"])
    assert (result.run.outcome is not None) == bool(result.run.sound.any())
    if not len(result.contradictions):
        assert result.run.sound.all()


def test_over_capacity_sets_the_fewest_aside(tmp_path: Path) -> None:
    path = tmp_path / "ran.csv"
    long = "long,0,1,0,1000,0"
    path.write_text(
        "\n".join(["job,node,gpus,start,end,submit", long, "a,0,1,1,5,0", "b,0,1,6,9,0"])
    )
    (result,) = audit(path, "1x1", policies=(), budget_s=0.0).runs
    assert result.contradictions["job"].tolist() == ["long"]
    assert result.contradictions["detail"].tolist() == [
        "node 0 holds 2 of 1 GPUs at 1 s, when a starts"
    ]


def test_without_submissions_only_the_makespan_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "ran.csv"
    path.write_text("job,gpus,start,end\na,1,5,9\nb,2,9,12\n")
    (result,) = audit(path, "1x2", policies=(), budget_s=0.0).runs
    assert list(result.comparisons) == [Objective.MAKESPAN]
    row = result.row(Objective.MAKESPAN)
    assert row is not None
    assert (row.cost, row.bound) == (7.0, 5.0)
    assert any("when jobs were submitted" in each for each in result.run.record.unanswered)


def test_a_table_of_jobs_says_work_and_rates(tmp_path: Path) -> None:
    jobs = sp.Workload.from_columns(
        id=["a", "b"],
        arrival_s=[0, 0],
        gpus=[1, 1],
        work=[10, 10],
        throughput=[[1.0, 2.0], [1.0, 2.0]],
        gpu_types=("k80", "v100"),
    )
    mine = sp.simulate(jobs, "1x1:k80,1x1:v100", "srtf")
    path = tmp_path / "ran.csv"
    schedule_rows(mine).to_csv(path, index=False)
    (result,) = audit(path, "1x1:k80,1x1:v100", jobs=jobs, policies=(), budget_s=0.0).runs
    assert result.run.outcome is not None
    row, expected = (
        result.row(Objective.FLOW),
        sp.compare(jobs, "1x1:k80,1x1:v100", ["srtf"], budget_s=0.0),
    )
    assert row is not None
    assert row.to_dict() | {"policy": ""} == expected.rows[0].to_dict() | {"policy": ""}
    rows = pd.read_csv(path)
    rows.loc[0, "end"] += 1.0
    rows.to_csv(path, index=False)
    (result,) = audit(path, "1x1:k80,1x1:v100", jobs=jobs, policies=(), budget_s=0.0).runs
    assert set(result.contradictions["kind"]) == {"breaks a rule"}
    assert result.run.sound.sum() == 1


def test_work_that_differs_from_the_table_of_jobs_is_a_row(tmp_path: Path) -> None:
    jobs = sp.Workload.from_columns(
        id=["a", "b", "c"], arrival_s=[0, 0, 0], gpus=[1, 1, 1], work=[4, 3, 1]
    )
    path = tmp_path / "ran.csv"
    path.write_text("job,node,gpus,start,end\na,0,1,0,4\nb,0,1,4,9\nz,0,1,9,10\n")
    (result,) = audit(path, "1x1", jobs=jobs, policies=(), budget_s=0.0).runs
    words = set(zip(result.contradictions["job"], result.contradictions["kind"], strict=True))
    assert words == {("b", "other work"), ("z", "no such job"), ("c", "never ran")}
    assert result.run.outcome is not None
    assert result.run.outcome.instance.workload.id.tolist() == ["a"]


def test_every_sentence_on_what_was_possible_names_class_objective_and_certificate(
    tmp_path: Path,
) -> None:
    jobs = sp.generate("lognormal", jobs=20, seed=3, load=1.2, gpus_total=16)
    path = tmp_path / "ran.csv"
    schedule_rows(sp.simulate(jobs, "4x4", "fifo")).to_csv(path, index=False)
    result = audit(path, "4x4", budget_s=1.0)
    (run,) = result.runs
    words = [line for line in result.lines() if "none has less" in line]
    assert len(words) == 2
    for goal, line in zip(("flow", "makespan"), words, strict=True):
        row = run.row(Objective(goal))
        assert row is not None
        assert row.certified
        assert f"({goal}, certified by {row.bound_kind})" in line
        assert str(row.holds_for) in line
    flow = run.comparisons[Objective.FLOW]
    (bound,) = [
        float(each.removesuffix(" s").replace(",", ""))
        for each in words[0].split("less than ")[1:2]
        for each in [each.split(" s")[0]]
    ]
    assert bound <= float(flow.rows[0].proven_by.value_s) / 20
    for row in flow.rows[1:]:
        assert f"{row.policy} would have had {row.cost / 20:,.0f} s" in words[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job,gpus,start\na,1,2\n", "column 'end' is missing"),
        ("job,gpus,start,end\na,0,1,2\n", "no row is a run on GPUs"),
        ("", "is empty"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ran.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        audit(path, "1x1")


def test_a_cluster_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "ran.csv"
    path.write_text("job,gpus,start,end\na,1,1,2\n")
    with pytest.raises(InputError, match="does not say on which cluster"):
        audit(path)


def test_idle_hours_add_up(tmp_path: Path) -> None:
    jobs = sp.generate("lognormal", jobs=60, seed=5, load=1.1, gpus_total=16)
    mine = sp.simulate(jobs, "4x4", "fifo")
    path = tmp_path / "ran.csv"
    schedule_rows(mine).to_csv(path, index=False)
    (result,) = audit(path, "4x4", policies=(), budget_s=0.0).runs
    assert result.measures is not None
    summary = mine.summary()
    makespan, use = summary["makespan_s"], summary["utilization"]
    assert isinstance(makespan, float)
    assert isinstance(use, float)
    assert result.measures.idle.total == pytest.approx(16 * makespan * (1 - use) / 3600)
    assert result.measures.idle.too_wide > 0
    # FIFO lets nobody pass a head that does not fit.
    assert result.measures.idle.held_back > 0
    wait_h = sum(each.total_h for each in result.measures.waits if each.kind == "GPUs")
    assert wait_h == pytest.approx(float((mine.totals.first_start_s - jobs.arrival_s).sum()) / 3600)


def test_fragmentation_by_node_and_by_rack(tmp_path: Path) -> None:
    # On two racks of two nodes of two GPUs: half of each node is held while a job of two, then of three waits.
    (tmp_path / "nodes.csv").write_text("name,gpus,rack\na,2,r\nb,2,r\nc,2,q\nd,2,q\n")
    path = tmp_path / "ran.csv"
    held = [f"h{node},{node},1,0,3600,0" for node in "abcd"]
    path.write_text("\n".join(["job,node,gpus,start,end,submit", *held, "w,a,2,3600,7200,0"]))
    (result,) = audit(path, str(tmp_path / "nodes.csv"), policies=(), budget_s=0.0).runs
    assert result.measures is not None
    idle = result.measures.idle
    assert (idle.by_node, idle.by_rack, idle.held_back) == (4.0, 0.0, 0.0)
    wide = ["w,a,2,3600,7200,0", "w,c,1,3600,7200,0"]
    held = ["h,a,1,0,3600,0", "k,c,1,0,3600,0"]
    path.write_text("\n".join(["job,node,gpus,start,end,submit", *held, *wide]))
    (result,) = audit(path, str(tmp_path / "nodes.csv"), policies=(), budget_s=0.0).runs
    assert result.measures is not None
    idle = result.measures.idle
    # Three GPUs take two whole nodes of which none is free with the other in reach: b and d are in two racks.
    assert idle.by_node == 0.0
    assert idle.by_rack == 0.0
    assert idle.held_back == 6.0


def test_measures_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    jobs = sp.generate("lognormal", jobs=30, seed=2, load=1.1, gpus_total=16)
    rows = schedule_rows(sp.simulate(jobs, "4x4", "srtf"))
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    rows.to_csv(paths[0], index=False)
    rows.iloc[np.random.default_rng(1).permutation(len(rows))].to_csv(paths[1], index=False)
    one, two = (audit(path, "4x4", budget_s=0.0).runs[0].document() for path in paths)
    same = ("metrics", "measures", "objectives", "capacities", "jobs")
    assert {k: v for k, v in one.items() if k in same and k != "objectives"} != {}
    assert one["metrics"] == two["metrics"]
    assert one["measures"] == two["measures"]
