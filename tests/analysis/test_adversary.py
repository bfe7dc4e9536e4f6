"""The adversary: what it reports is true, repeatable, and as bad as known families."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from typer.testing import CliRunner

from shadowprice.analysis.adversary import search
from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob, InstanceFamily
from shadowprice.analysis.adversary.judge import Judge, JudgeEffort
from shadowprice.analysis.adversary.search import (
    ENUMERATED,
    FEASIBLE,
    METHODS,
    SHORTEST,
    SLOTTED,
    adversary,
    recheck,
    renamed,
)
from shadowprice.analysis.plots.pair import plot_pair
from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.hard_instances import HardInstance, hard_instances
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import constraint_programming as cp_sat
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.offline.list_optimum import optimal_starts_s
from shadowprice.solvers.offline.non_preemptive import optimum
from shadowprice.solvers.offline.preemptive import slotted_preemptive_optimum
from shadowprice.solvers.predictors.predictor import Features, predictor

STORED = {hard.name: hard for hard in hard_instances()}
SMALL = InstanceFamily(jobs=4, gpus=2, max_arrival=3, max_work=4)


# --- stored instances -----------------------------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_a_stored_instance_is_as_hard_as_it_says(name: str) -> None:
    hard = STORED[name]
    found = recheck(hard)
    jobs = hard.instance.workload
    costs = [hard.objective.cost_s(jobs, each.end_s) for each in (found.policy, found.witness)]
    assert found.ratio == Fraction(costs[0]) / Fraction(costs[1]) > 1
    if found.bound is not None:
        assert found.ratio <= found.bound.factor
    assert {"method", "seed", "evaluations", "family", "version"} <= set(hard.provenance)


@pytest.mark.parametrize("name", STORED)
def test_a_stored_witness_is_optimal_where_it_says_so(name: str) -> None:
    hard = STORED[name]
    assert hard.witness_is in {ENUMERATED, SHORTEST, SLOTTED, FEASIBLE}
    if hard.witness_is == SHORTEST:
        (exact,) = [b for b in simple_bounds(hard.instance, hard.objective) if b.kind == "fluid"]
        assert exact.value_s == hard.witness_cost_s
        return
    if hard.witness_is == FEASIBLE:
        return
    if hard.witness_is == ENUMERATED:
        proof = optimum(hard.instance, hard.objective, method="cp-sat", budget_s=20)
    else:
        proof = slotted_preemptive_optimum(
            hard.instance,
            objective=hard.objective,
            method="cp-sat",
            budget_s=20,
            slot_s=hard.provenance["family"]["unit_s"],
        )
    assert proof.proven
    assert proof.upper_s == hard.witness_cost_s


def test_the_benchmark_set_is_there() -> None:
    policies = {hard.policy.partition(":")[0] for hard in STORED.values()}
    assert {"fifo", "srtf", "las2d", "asrpt", "hadar-committed"} <= policies
    assert all(len(hard.instance.workload) <= 6 for hard in STORED.values())


def test_a_file_is_the_same_after_a_round_trip(tmp_path: Path) -> None:
    for hard in STORED.values():
        path = tmp_path / f"{hard.name}.json"
        path.write_text(hard.to_json(), encoding="utf-8")
        assert HardInstance.read(path).to_json() == hard.to_json()


Change = Callable[[dict[str, object]], None]


def _set(key: str, value: object) -> Change:
    return lambda record: record.update({key: value})


def _overlap(record: dict[str, object]) -> None:
    runs = record["witness"]
    assert isinstance(runs, list)
    for run in runs:
        length = run["end_s"] - run["start_s"]
        run["start_s"], run["end_s"] = 0.0, length


def _lose_a_run(record: dict[str, object]) -> None:
    runs = record["witness"]
    assert isinstance(runs, list)
    runs.pop()


@cache
def worst_of_200() -> str:
    return adversary("fifo", SMALL, effort=JudgeEffort(evaluations=200)).hard.to_json()


@pytest.mark.parametrize(
    "change",
    [
        _set("ratio", "3"),
        _set("policy_cost_s", 1.0),
        _set("witness_cost_s", 1.0),
        _set("policy", "sjf"),
        _set("objective", "makespan"),
        _set("witness_is", "optimal (proof by intimidation)"),
        _set("witness_is", SHORTEST),
        _overlap,
        _lose_a_run,
    ],
)
def test_a_false_claim_is_caught(change: Change) -> None:
    record = json.loads(worst_of_200())
    change(record)
    with pytest.raises(VerificationError):
        recheck(HardInstance.from_json(json.dumps(record), "changed"))


def test_a_worse_witness_is_not_called_optimal() -> None:
    """Its cost and the ratio are as stored, only that it is optimal is not so."""
    record = json.loads(STORED["fifo-2gpu-six-jobs"].to_json())
    later = [(0, 1), (0, 1), (1, 2), (2, 4), (2, 4), (7, 9)]
    for each, (start, end) in zip(record["witness"], later, strict=True):
        each.update(start_s=float(start), end_s=float(end))
    record.update(witness_cost_s=21.0, ratio="5/3")
    with pytest.raises(VerificationError, match="the witness costs 21 s and the optimum is 18 s"):
        recheck(HardInstance.from_json(json.dumps(record), "changed"))
    record["witness_is"] = FEASIBLE
    found = recheck(HardInstance.from_json(json.dumps(record), "changed"))
    assert "fifo costs at least 5/3 (1.666x) times" in found.sentence()


def test_a_worse_preemptive_witness_is_not_called_optimal() -> None:
    record = json.loads(STORED["srtf-4gpu-six-jobs"].to_json())
    last = max(record["witness"], key=lambda each: each["end_s"])
    last["start_s"] += 1.0
    last["end_s"] += 1.0
    cost_s = record["witness_cost_s"] + 1.0
    ratio = Fraction(record["policy_cost_s"]) / Fraction(cost_s)
    record.update(witness_cost_s=cost_s, ratio=str(ratio))
    with pytest.raises(VerificationError, match="the optimum is 18 s"):
        recheck(HardInstance.from_json(json.dumps(record), "changed"))
    record["provenance"].pop("family")
    with pytest.raises(VerificationError, match="no family with a unit_s"):
        recheck(HardInstance.from_json(json.dumps(record), "changed"))


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 2}', "no json"])
def test_a_file_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="here"):
        HardInstance.from_json(text, "here")


# --- searches -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["hypothesis", "evolution"])
def test_the_same_seed_finds_the_same_instance(method: str) -> None:
    effort = JudgeEffort(evaluations=40, budget_s=1e6, seed=3)
    first, second = (adversary("fifo", SMALL, method=method, effort=effort) for _ in range(2))
    assert first.hard.to_json() == second.hard.to_json()
    other = adversary("fifo", SMALL, method=method, effort=replace(effort, seed=4))
    assert other.hard.provenance["seed"] == 4


@pytest.mark.parametrize("method", ["hypothesis", "evolution"])
def test_the_known_worst_case_of_first_come_is_found(method: str) -> None:
    # One GPU, all at 0: one job of W seconds before n - 1 of one second is the worst there is.
    family = InstanceFamily(jobs=3, gpus=1, max_arrival=0, max_work=6)
    found = adversary(
        "fifo", family, method=method, effort=JudgeEffort(evaluations=400, budget_s=1e3)
    )
    assert found.ratio == Fraction(6 + 7 + 8, 1 + 2 + 8)
    assert found.hard.witness_is == ENUMERATED


def test_shrinking_gives_the_simplest_case() -> None:
    # Two jobs on one GPU: the ratio is 2 W + 1 over W + 2, and nothing else is needed for it.
    family = InstanceFamily(jobs=2, gpus=2, max_arrival=4, max_work=3)
    effort = JudgeEffort(evaluations=400, budget_s=1e3)
    jobs = adversary("fifo", family, method="hypothesis", effort=effort).hard.instance.workload
    assert jobs.arrival_s.tolist() == [0, 0]
    assert jobs.work.tolist() == [3, 1]
    assert sorted(jobs.gpus.tolist()) == [1, 2]


def test_first_come_first_served_on_one_gpu_is_optimal_for_the_makespan() -> None:
    family = InstanceFamily(jobs=3, gpus=1, max_arrival=3, max_work=3)
    found = adversary("fifo", family, "makespan", effort=JudgeEffort(evaluations=150))
    assert found.ratio == 1


def test_srtf_on_one_gpu_is_never_worse_than_the_preemptive_optimum() -> None:
    family = InstanceFamily(jobs=4, gpus=1, max_arrival=4, max_work=4)
    found = adversary("srtf", family, effort=JudgeEffort(evaluations=150))
    assert found.ratio == 1
    assert found.bound is not None
    assert found.bound.factor == 1


def test_without_time_for_a_proof_no_solver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness is then the best that enumeration and shortest-first orders know, and feasible all the same."""
    family = InstanceFamily(jobs=4, gpus=2, max_arrival=3, max_work=4)
    proven = adversary("srtf", family, effort=JudgeEffort(evaluations=100))

    def none(*args: object, **options: object) -> None:
        raise AssertionError("no solver is asked")

    monkeypatch.setattr(search, "slotted_preemptive_optimum", none)
    effort = JudgeEffort(evaluations=100, budget_s=1e6, proof_s=0.0)
    quick = adversary("srtf", family, effort=effort)
    assert quick.hard.witness_is == FEASIBLE
    assert quick.hard.instance.workload.to_frame().equals(proven.hard.instance.workload.to_frame())
    assert 1 < quick.ratio <= proven.ratio
    with pytest.raises(InputError, match="proof_s"):
        JudgeEffort(proof_s=-1.0)


def test_wrong_predictions_are_chosen_for_those_who_predict() -> None:
    family = InstanceFamily(jobs=3, gpus=1, max_arrival=0, max_work=4, max_error=2)
    effort = JudgeEffort(evaluations=300, budget_s=1e3)
    found = adversary("asrpt", family, effort=effort)
    exact = adversary("asrpt", replace(family, max_error=0), effort=effort)
    assert found.hard.predictor is not None
    assert found.ratio > exact.ratio
    assert found.bound is not None
    assert found.ratio <= Fraction(found.bound.factor)
    with pytest.raises(InputError, match="predicts nothing"):
        adversary("fifo", family)


def test_unknown_names_and_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="method 'luck'"):
        adversary("fifo", method="luck")
    with pytest.raises(InputError, match="objective 'joy'"):
        adversary("fifo", objective="joy")
    with pytest.raises(InputError, match="jobs is 0"):
        InstanceFamily(jobs=0)
    with pytest.raises(InputError, match="unit_s"):
        InstanceFamily(unit_s=0.1)
    with pytest.raises(InputError, match="evaluations 0"):
        JudgeEffort(evaluations=0)
    assert set(METHODS) == {"hypothesis", "evolution", "bilevel"}


def test_without_hypothesis_the_method_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(InputError, match="hypothesis is not installed"):
        adversary("fifo", SMALL, method="hypothesis")


# --- what the searches stand on ---------------------------------------------------------------


def alike(gpus: list[int]) -> Instance:
    """Jobs that differ in their gangs only."""
    jobs = Workload.from_columns(arrival_s=[0.0] * len(gpus), gpus=gpus, work=2.0)
    return Instance(Cluster.parse("1x4"), jobs)


@given(instances(max_jobs=6, max_nodes=1, max_arrival_s=8, max_work_s=8), st.booleans())
@example(instance=alike(gpus=[4, 2, 2]), span=False)
def test_enumeration_equals_constraint_programming(instance: Instance, span: bool) -> None:
    jobs = Slotted.of(instance)
    start_s = optimal_starts_s(instance, span=span)
    starts = to_ticks(start_s) // jobs.slot_ticks
    value = list_schedule.makespan if span else list_schedule.total
    proof = cp_sat.solve(jobs, span=span, budget_s=10, hint=starts)
    assert proof.proven
    assert round(proof.bound) == value(jobs, starts)


def test_given_predictions() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0, 0], gpus=1, work=[3, 4, 5], id=["a", "b", "c"])
    asked = predictor("given:a=0.5/c=2").predict(Features.of(jobs), jobs.work)
    assert asked.tolist() == [1.5, 4.0, 10.0]
    for spec in ("given", "given:a", "given:a=0", "given:a=x", "given:a=1/a=2", "given:=1"):
        with pytest.raises(InputError, match="JOB=FACTOR"):
            predictor(spec)


# --- pictures and words -----------------------------------------------------------------------


def test_the_picture_has_both_schedules_on_one_axis() -> None:
    found = adversary("fifo", SMALL, effort=JudgeEffort(evaluations=200))
    figure = found.plot()
    assert isinstance(figure, Figure)
    above, below = figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert "fifo" in above.get_title(loc="left")
    assert f"{found.hard.witness_cost_s:g} s" in below.get_title(loc="left")
    other = adversary("fifo", replace(SMALL, gpus=3), effort=JudgeEffort(evaluations=50))
    with pytest.raises(InputError, match="same instance"):
        plot_pair(found.policy, other.witness, Objective.COMPLETION)


def test_the_sentence_says_what_is_proven() -> None:
    found = adversary(
        "asrpt",
        InstanceFamily(jobs=1, gpus=1, max_arrival=0, max_work=3),
        effort=JudgeEffort(evaluations=20),
    )
    assert found.ratio == 2
    assert "exactly 2 times" in found.sentence()
    assert "at most 2x by ASRPT-sharper" in found.sentence()
    assert renamed(found, "mine").hard.name == "mine"


def test_a_case_is_in_order_of_arrival() -> None:
    case = FamilyInstance.of([FamilyJob(3, 1, 1), FamilyJob(0, 2, 1), FamilyJob(3, 4, 1)])
    assert [job.work for job in case.jobs] == [2, 1, 4]
    assert Judge("fifo", Objective.FLOW, SMALL).ratio(case) >= 1


# --- the command -------------------------------------------------------------------------------


def command(*words: str) -> Any:
    return CliRunner().invoke(app, ["adversary", *words])


def test_the_command_writes_an_instance_that_can_be_checked_again(tmp_path: Path) -> None:
    out, picture = tmp_path / "hard.json", tmp_path / "pair.png"
    done = command(
        "--policy",
        "fifo",
        "--family",
        "jobs=3,gpus=1,max_work=4,max_arrival=0",
        "--evaluations",
        "60",
        "--seed",
        "1",
        "-o",
        str(out),
        "--plot",
        str(picture),
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    told = json.loads(done.stdout)
    assert told["name"] == "hard"
    assert told["bound"] is None
    assert Fraction(told["ratio"]) == HardInstance.read(out).ratio
    again = CliRunner().invoke(app, ["verify", str(out)])
    assert again.exit_code == 0
    assert "[s]" in again.stdout
    assert "fifo costs exactly" in again.stdout.replace("\n", " ")
