"""Hunts: they go on where they were stopped, and what is stored of them holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import hunt as hunting
import pytest
from hunt import Hunt, Spent, go_on

import build_hunt as builder
from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.search import recheck, rerun
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.hard_instances import HardInstance, hunted_instances
from shadowprice.instances.objective import Objective
from shadowprice.solvers.registry import policies
from support.paths import ROOT

STORED = {hard.name: hard for hard in hunted_instances()}


def test_the_committed_page_is_up_to_date() -> None:
    """It runs every stored policy and witness, through the verifier."""
    text = (ROOT / "benchmarks" / "records" / "hunt.md").read_text(encoding="utf-8")
    assert text == builder.page(), "run `make hunt-page`"
    assert text.count("\n| `") == len(STORED)


def test_policies_are_hunted_or_named_as_not() -> None:
    hunted = {hard.policy.partition(":")[0] for hard in STORED.values()}
    assert hunted <= set(policies())
    assert len(hunted) >= 34
    told = builder.page().partition("Not hunted yet: ")[2]
    assert {f"`{name}`" for name in set(policies()) - hunted} == set(re.findall("`[^`]+`", told))
    for name, hard in STORED.items():
        spent = Spent.of(hard, name)
        assert spent.evaluations >= spent.steps >= 1
        assert 0 <= hard.provenance["seed"] < spent.steps
        assert spent.cpu_s > 0
        assert hard.ratio > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_the_schedules_beside_them_are_optimal_where_they_say_so(name: str) -> None:
    assert recheck(STORED[name]).hard.witness_is == STORED[name].witness_is


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fifo-completion", "asrpt-completion", "srtf-completion"])
def test_a_step_finds_the_stored_instance_again(name: str) -> None:
    stored = STORED[name]
    found = Hunt(stored.policy, stored.objective).step(stored.provenance["seed"])
    assert found.ratio == stored.ratio


def test_another_cost_is_found() -> None:
    hard = STORED["fifo-completion"]
    with pytest.raises(VerificationError, match="ratio is 1000"):
        rerun(replace(hard, ratio=Fraction(1000)))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a few evaluations, on two families."""
    monkeypatch.setattr(hunting, "EVALUATIONS", 15)
    families = tuple(InstanceFamily(jobs=2, gpus=gpus, max_work=3) for gpus in (1, 2))
    monkeypatch.setattr(hunting, "FAMILIES", families)


def told(hard: HardInstance) -> object:
    """All that a file says but CPU time."""
    record = json.loads(hard.to_json())
    del record["provenance"]["hunt"]["cpu_s"]
    return record


def steps(folder: Path, count: int) -> HardInstance:
    """A hunt that is stopped after each step."""
    found = go_on(Hunt("fifo"), folder, 0.0)
    for _ in range(count - 1):
        found = go_on(Hunt("fifo"), folder, found.provenance["hunt"]["cpu_s"] + 1e-9)
    return found


@pytest.mark.usefixtures("short")
def test_a_hunt_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    found = steps(tmp_path / "", 4)
    hunt = Hunt("fifo")
    alone = [hunt.step(number) for number in range(4)]
    assert found.ratio == max(each.ratio for each in alone)
    assert found.provenance["hunt"]["steps"] == 4
    assert found.provenance["hunt"]["evaluations"] == 4 * 15
    assert found.provenance["seed"] == next(
        number for number, each in enumerate(alone) if each.ratio == found.ratio
    )
    (tmp_path / "again").mkdir()
    assert told(steps(tmp_path / "again", 4)) == told(found)
    assert [path.name for path in tmp_path.glob("*.*")] == ["fifo-completion.json"]
    # One that had its time is not gone on with.
    assert told(go_on(hunt, tmp_path, 0.0)) == told(found)


@pytest.mark.usefixtures("short")
def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    steps(tmp_path, 1)
    (tmp_path / "fifo-completion.json").rename(tmp_path / "sjf-completion.json")
    with pytest.raises(InputError, match="is about fifo and completion, expected sjf"):
        go_on(Hunt("sjf"), tmp_path, 1.0)
    found = Hunt("fifo").step(0)
    (tmp_path / "fifo-completion.json").write_text(found.to_json(), encoding="utf-8")
    with pytest.raises(InputError, match="provenance has no hunt"):
        go_on(Hunt("fifo"), tmp_path, 1.0)
    assert Hunt("asrpt", Objective.FLOW, 1).name == "asrpt-flow-predicted"
