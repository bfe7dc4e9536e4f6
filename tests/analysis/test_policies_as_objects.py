"""Policy objects of one's own, with their parameters, in every function that takes a policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.judge import JudgeEffort
from shadowprice.analysis.adversary.search import adversary, recheck
from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import compare
from shadowprice.analysis.simulate import simulate
from shadowprice.analysis.utility.compare import compare_utility
from shadowprice.cli.run_inputs import split_names
from shadowprice.errors import InputError
from shadowprice.hosts.live.settings import Settings
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.classic.las import Las
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.gavel import Gavel
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.own_code import POLICIES

JOBS = Workload.from_columns(
    arrival_s=[0, 0, 3, 4, 9], gpus=[1, 2, 1, 1, 2], work=[30, 10, 2, 8, 5]
)


@dataclass(frozen=True)
class Patient:
    """Start waiting jobs in order of arrival, each after a delay."""

    name: str = "patient"
    delay_s: float = 0.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        waiting = state.columns(state.waiting)
        for job, arrival_s in zip(waiting.jobs.tolist(), waiting.arrival_s.tolist(), strict=True):
            if arrival_s + self.delay_s > state.now_s:
                decision.wake_at(arrival_s + self.delay_s)
            else:
                decision.start(job)
        return decision


@dataclass(frozen=True)
class Halves:
    """Every job the same share of every type."""

    name: str = "halves"
    part: float = 1.0
    needs_steps: ClassVar[bool] = False
    packed: ClassVar[bool] = False
    aware: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        n, types = problem.throughput.shape
        share = self.part * problem.capacity / (max(problem.gpus.sum(), 1) * types)
        return Allocation(self.name, problem, np.tile(share, (n, 1)), np.zeros((0, types)))


def test_every_function_that_takes_a_policy_says_that_it_takes_objects() -> None:
    taking: list[Callable[..., Any]] = [simulate, compare, compare_utility]
    for function in [*taking, adversary, recheck, Settings]:
        kinds = inspect.signature(function).parameters
        kind = next(kinds[name] for name in ("policy", "policies") if name in kinds)
        assert "Policy" in str(kind.annotation), function


def test_the_parameters_of_an_object_count() -> None:
    plain, late = (simulate(JOBS, "1x2", Patient(delay_s=d)) for d in (0.0, 7.0))
    assert (late.schedule.start_s >= JOBS.arrival_s[late.schedule.job] + 7.0).all()
    assert plain.end_s.sum() < late.end_s.sum()


def test_objects_of_one_name_are_compared_under_their_parameters() -> None:
    found = compare(JOBS, "1x2", [Patient(), Patient(delay_s=7.0), "fifo", Las(quantum_s=9.0)])
    names = ["patient", "patient:delay_s=7.0", "fifo", "las"]
    assert [row.policy for row in found.rows] == names == list(found.outcomes)
    assert [outcome.policy for outcome in found.outcomes.values()] == names
    assert found.rows[0].cost < found.rows[1].cost
    worth = compare_utility(JOBS, "1x2", [Patient(), Patient(delay_s=7.0)], budget_s=1.0)
    assert [row.policy for row in worth.rows] == ["patient", "patient:delay_s=7.0"]
    with pytest.raises(InputError, match="policies patient, patient: expected one or more diff"):
        compare(JOBS, "1x2", [Patient(), Patient()])
    with pytest.raises(InputError, match="got the class Patient"):
        compare(JOBS, "1x2", [Patient])  # type: ignore[list-item]


def test_certificates_are_of_runs_of_ones_own() -> None:
    outcome = simulate(JOBS, "1x2", Patient(delay_s=2.0))
    assert "patient costs at most" in certify(outcome, budget_s=1.0).sentence()


SMALL = InstanceFamily(jobs=3, gpus=2, max_arrival=3, max_work=4)


@pytest.mark.parametrize("method", ["evolution", "hypothesis"])
def test_the_adversary_takes_objects(method: str) -> None:
    found = adversary(
        Patient(delay_s=3.0), SMALL, method=method, effort=JudgeEffort(evaluations=80)
    )
    assert found.hard.policy == "patient:delay_s=3.0"
    assert found.ratio > 1
    again = recheck(
        HardInstance.from_json(found.hard.to_json(), "hard"), policy=Patient(delay_s=3.0)
    )
    assert again.ratio == found.ratio
    with pytest.raises(InputError, match="policy 'patient': expected one of"):
        recheck(found.hard)


def test_an_object_of_ours_is_hunted_as_its_name_is() -> None:
    effort = JudgeEffort(evaluations=60)
    named, made = (adversary(p, SMALL, effort=effort) for p in ("las:quantum_s=2", Las("las", 2.0)))
    assert made.hard.policy == "las:quantum_s=2.0"
    assert (made.ratio, made.hard.name) == (named.ratio, named.hard.name)
    assert recheck(made.hard).ratio == named.ratio


def test_an_exact_search_is_for_policies_of_ours_whatever_the_name() -> None:
    tiny = InstanceFamily(jobs=2, gpus=1, max_arrival=1, max_work=2)
    found = adversary(Fifo(), tiny, method="bilevel", effort=JudgeEffort(budget_s=30.0))
    assert found.ratio == adversary("fifo", tiny, method="bilevel").ratio
    with pytest.raises(InputError, match="policy 'fifo' is none of ours, expected one of fifo"):
        adversary(Patient("fifo"), tiny, method="bilevel")


def test_gavel_takes_an_allocation_of_ones_own() -> None:
    own = Gavel(allocation=Halves(part=0.5), round_s=10.0)
    outcome = simulate(JOBS, "1x2", own)
    assert outcome.summary()["completed"] == len(JOBS)
    rows = compare(JOBS, "1x2", [own, "gavel:round_s=10"], budget_s=1.0).rows
    assert [row.policy for row in rows] == ["gavel", "gavel:round_s=10"]
    worst = adversary(own, SMALL, effort=JudgeEffort(evaluations=20))
    assert worst.hard.policy == "gavel:allocation=halves,round_s=10.0"


def test_settings_of_a_real_run_take_objects(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "jobs.yaml", Patient(delay_s=2.0), "local:2", tmp_path)
    assert settings.policy_name == "patient:delay_s=2.0"
    assert settings.acting_policy() == Patient(delay_s=2.0)
    identity = settings.identity("0")
    assert identity["policy"] == "patient:delay_s=2.0"
    assert "code_sha256" not in identity
    (tmp_path / "mine.py").write_text(POLICIES)
    named = replace(settings, policy=f"{tmp_path}/mine.py:Widest")
    before = named.identity("0")
    (tmp_path / "mine.py").write_text(POLICIES + "\n")
    after = named.identity("0")
    assert {key for key in before if before[key] != after[key]} == {"code_sha256"}
    with pytest.raises(InputError, match="got the class Patient"):
        replace(settings, policy=Patient).acting_policy()  # type: ignore[arg-type]


@given(instances())
def test_a_copy_under_another_name_does_the_same(instance: Any) -> None:
    jobs, where = instance.workload, instance.cluster
    ours, copy = (simulate(jobs, where, p) for p in ("srtf", Srtf("copy")))
    assert ours.schedule.to_frame().equals(copy.schedule.to_frame())


WORD = st.text("abcxyz", min_size=1, max_size=4)
SETTING = st.tuples(WORD, st.one_of(WORD, st.just("m.py:build"))).map("=".join)


@st.composite
def named(draw: st.DrawFn) -> str:
    base = draw(st.one_of(WORD, WORD.map(lambda word: f"{word}/own.py:Name")))
    settings = draw(st.lists(SETTING, max_size=3))
    return f"{base}:{','.join(settings)}" if settings else base


@given(st.lists(named(), max_size=4))
def test_names_that_were_joined_come_apart_again(names: list[str]) -> None:
    assert split_names(",".join(names)) == names
