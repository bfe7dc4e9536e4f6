"""A sealed policy sees the same state as an unsealed one, and its run is the same row by row."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.execution.sealed.limits import ProcessLimits
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing import cases
from shadowprice.proofs.testing.subject import Case
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import placements, policies
from support.feature_instances import instance_with, pairs_that_meet
from support.refuted import SEARCHING
from support.sealed_here import SealedHere

POLICIES = policies()
EXAMPLES = max(settings().max_examples // 10, 2)
KINDS = {
    "placed": cases.placed,
    "charged": cases.charged,
    "typed": cases.typed,
    "shared": cases.shared,
    "conditioned": cases.conditioned,
    "failing": cases.failing,
}


def expect_same(one: Schedule, other: Schedule) -> None:
    for field in dataclasses.fields(Schedule):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert (mine is None) == (theirs is None), field.name
        assert mine is None or np.array_equal(mine, theirs), field.name


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
@settings(max_examples=EXAMPLES)
def test_a_sealed_run_is_the_same_row_by_row(name: str, data: st.DataObject, kind: str) -> None:
    case: Case = data.draw(KINDS[kind]())
    try:
        unsealed = case.run(POLICIES[name])
    except (InputError, PolicyError):
        return
    expect_same(unsealed, case.run(SealedHere(POLICIES[name])))


OF_SEVERAL_KINDS = ("srtf", "gandiva", "gavel", "synergy-tune", "pollux")


@pytest.mark.parametrize("name", OF_SEVERAL_KINDS)
def test_under_every_two_features_that_may_meet(name: str) -> None:
    """Every pair with two of the policies, by night with all of them."""
    compared, turn = 0, OF_SEVERAL_KINDS.index(name)
    for k, pair in enumerate(pairs_that_meet()):
        if {Feature.COPIES, Feature.OWN} & set(pair):
            continue
        if not SEARCHING and (k - turn) % len(OF_SEVERAL_KINDS) > 1:
            continue
        instance = instance_with(*pair)
        try:
            unsealed = run(instance, POLICIES[name], placement=placements()["consolidate"])
        except (InputError, PolicyError):
            continue
        if Feature.GOODPUT in pair and Knowledge.SPEED_UP not in POLICIES[name].knows:
            with pytest.raises(InputError, match="expected one that does"):
                run(instance, SealedHere(POLICIES[name]))
            continue
        sealed = run(instance, SealedHere(POLICIES[name]), placement=placements()["consolidate"])
        expect_same(unsealed.schedule, sealed.schedule)
        compared += 1
    assert compared > 10


def some_jobs(count: int = 30, seed: int = 0) -> Instance:
    random = np.random.default_rng(seed)
    jobs = Workload.from_columns(
        arrival_s=np.sort(random.integers(0, 10 * count, count)).tolist(),
        gpus=random.choice([1, 2, 4], count).tolist(),
        work=random.integers(1, 100, count).tolist(),
    )
    return Instance(Cluster.parse("2x4"), jobs)


@pytest.mark.parametrize(
    "name", ["las2d", "gittins2d", "asrpt:predictor=last", "gavel:max_min_fairness"]
)
def test_in_a_process_of_its_own(name: str) -> None:
    from shadowprice.solvers.registry import policy

    instance = some_jobs()
    with SealedPolicy(name) as sealed:
        assert sealed.name == policy(name).name
        assert sealed.knows == policy(name).knows
        first, second = run(instance, sealed), run(instance, sealed)
    expect_same(first.schedule, run(instance, policy(name)).schedule)
    expect_same(first.schedule, second.schedule)


def written(folder: Path, body: str) -> str:
    """Name of a policy in a file of its own, whose ``decide`` has this body."""
    lines = "\n        ".join(body.strip().split("\n"))
    file = folder / "mine.py"
    file.write_text(
        f"""
import sys, time
from dataclasses import dataclass
from shadowprice.solvers.policy import Decision, Knowledge, State

@dataclass(frozen=True)
class Mine:
    name: str = "mine"
    knows: frozenset = frozenset()
    preemptive: bool = False

    def decide(self, state):
        {lines}
""",
        encoding="utf-8",
    )
    return f"{file}:Mine"


def test_a_process_has_forgotten_the_run_before(tmp_path: Path) -> None:
    body = """
if sys.modules.setdefault("remembered", state) is not state:
    raise ValueError("remembers an earlier run")
return Decision(state).start_all()
"""
    with SealedPolicy(written(tmp_path, body)) as sealed:
        run(some_jobs(), sealed)
        run(some_jobs(), sealed)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", r"mine at 0\.0 s: decide returned None, expected a Decision"),
        ("return 1 / 0", r"mine at 0\.0 s: .*mine\.py, line \d+: ZeroDivisionError"),
        ("state.live().work", r"mine at 0\.0 s: the policy reads 'duration'"),
        ("import os; os._exit(3)", r"mine at 0\.0 s: its process ended with code 3"),
        (
            "import os; os.write(1, b'x' * 9); time.sleep(9)",
            r"mine at 0\.0 s: its process gives no answer within 1 s",
        ),
        ("x = bytearray(10**10)", r"mine at 0\.0 s: .*MemoryError"),
        (
            "d = Decision(state); d.starts[0] = ((7, 1),); return d",
            r"mine at 0\.0 s: job 0 is started on \(\(7, 1\),\), expected different nodes of 0 to 1",
        ),
        (
            "d = Decision(state); d.stops.append(5); return d",
            r"mine at 0\.0 s: job 5 is stopped, but does not run",
        ),
    ],
)
def test_each_mistake_is_one_sentence(tmp_path: Path, body: str, message: str) -> None:
    instance = Instance(
        Cluster.parse("2x4"), Workload.from_columns(arrival_s=[0.0], gpus=[1], work=[1.0])
    )
    limits = ProcessLimits(decision_s=1.0 if "sleep" in body else 60.0, memory_mb=4000)
    with (
        SealedPolicy(written(tmp_path, body), limits) as sealed,
        pytest.raises(PolicyError, match=message) as caught,
    ):
        run(instance, sealed)
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_not_there_or_knows_too_much() -> None:
    with pytest.raises(InputError, match="policy 'nosuch'"):
        SealedPolicy("nosuch")
    with pytest.raises(
        InputError, match="declares that it knows duration, expected nothing but the past"
    ):
        SealedPolicy("srtf", allowed=())


def test_who_goes_on_waiting_is_not_sent_again() -> None:
    def longest(waiting: int) -> int:
        count = waiting + 20
        jobs = Workload.from_columns(
            arrival_s=[0.0] * waiting + [1.0 + k for k in range(20)],
            gpus=[1] * count,
            work=[50.0 + k for k in range(count)],
        )
        sealed = SealedHere(POLICIES["las2d"])
        run(Instance(Cluster.parse("1x4"), jobs), sealed)
        return max(map(len, sealed.lines[2:]))

    assert longest(1000) < longest(20) + 100
