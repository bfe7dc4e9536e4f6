"""Policies that say their index: in the engine, in the compiled loop, and wrongly."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.errors import PolicyError
from shadowprice.execution import engine
from shadowprice.execution.kernel import run as kernel
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.terms.window import JobWindow
from shadowprice.proofs.testing.checks import index_agrees
from shadowprice.proofs.testing.subject import Case, LawBroken, PolicyUnderTest
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.classic.las import Las
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.index_policy import (
    IndexedJob,
    IndexPolicy,
    JobIndex,
    QueueRule,
    Table,
    WhileRunning,
)
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.registry import placement, policy
from shadowprice.solvers.tiresias.las2d import Las2d
from support.paths import ROOT


def remaining_s(job: IndexedJob, table: Table) -> float:
    return job.remaining_s


def none_at_all(job: IndexedJob, table: Table) -> float:
    return job.remaining_s - np.inf if job.gpus < 0 else np.nan


def calling_another(job: IndexedJob, table: Table) -> float:
    return twice(job.gpus)


def twice(number: float) -> float:
    return 2.0 * number


@dataclass(frozen=True)
class ByIndex(IndexPolicy):
    index: JobIndex
    name: str = "by-index"
    preemptive: bool = True
    knows: frozenset[Knowledge] = frozenset({Knowledge.DURATION})

    def job_index(self, service_gpu_s: np.ndarray | None) -> JobIndex:
        return self.index


INDEX = JobIndex(QueueRule.PREEMPTS, remaining_s, while_running=WhileRunning.ALIKE)


def crowded(jobs: int = 40) -> sp.Instance:
    workload = sp.generate("gavel", jobs=jobs, seed=3, load=1.2, gpus_total=8)
    return sp.Instance.feasible(sp.Cluster.parse("2x4"), workload)[0]


def rows(schedule: sp.Schedule) -> list[list[float]]:
    return schedule.to_frame().to_numpy().tolist()


@pytest.mark.parametrize(
    ("ours", "index"),
    [
        (Srtf(), INDEX),
        (Las(quantum_s=900.0), Las(quantum_s=900.0).job_index(None)),
        (Las2d(thresholds_gpu_s=(7200.0,)), Las2d(thresholds_gpu_s=(7200.0,)).job_index(None)),
    ],
)
def test_an_index_alone_decides_as_the_policy_that_has_it(ours: Any, index: JobIndex) -> None:
    own = ByIndex(index, knows=ours.knows)
    schedule = engine.run(crowded(), own).schedule
    assert len(schedule.runs) > len(crowded().workload)
    assert rows(schedule) == rows(engine.run(crowded(), ours).schedule)


def test_a_key_that_is_no_number_is_one_sentence() -> None:
    policy = ByIndex(replace(INDEX, key=none_at_all))
    for run in (engine.run, compiled):
        with pytest.raises(
            PolicyError, match=r"by-index at .*none_at_all of job '0' is not a number"
        ):
            run(crowded(), policy)


def compiled(instance: sp.Instance, policy: Any) -> engine.EngineRun:
    return kernel.run_fastest(instance, policy, least_jobs=0)


def test_what_does_not_know_durations_is_not_told_them() -> None:
    for run in (engine.run, compiled):
        with pytest.raises(PolicyError, match=r"is not a number.*declare 'duration'"):
            run(crowded(), ByIndex(INDEX, knows=frozenset()))


def test_a_key_that_cannot_be_compiled_is_one_sentence() -> None:
    with pytest.raises(
        PolicyError, match="by-index: numba cannot compile calling_another: "
    ) as caught:
        compiled(crowded(), ByIndex(replace(INDEX, key=calling_another)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compiled(crowded(), ByIndex(INDEX, preemptive=False)), "preemptive = False, but"),
        (lambda: replace(INDEX, quantum_s=0.0), "quantum_s is 0.0, expected seconds"),
        (lambda: replace(INDEX, while_running=WhileRunning.STEPS), "no next_step_s is given"),
        (lambda: replace(INDEX, rule=QueueRule.SKIPS, quantum_s=1.0), "expected 'preempts'"),
        (
            lambda: engine.run(crowded(), ByIndex(JobIndex(QueueRule.BACKFILLS, remaining_s))),
            "expected one with another rule",
        ),
    ],
)
def test_what_goes_together_is_checked(make: Callable[[], object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make()


@dataclass(frozen=True)
class LastIn(Fifo):
    """Inherits an index that it does not follow."""

    name: str = "last-in"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in reversed(state.waiting):
            decision.start(job)
        return decision


def test_an_inherited_index_is_not_used() -> None:
    assert kernel.loop_of(Fifo()) == "compiled, head-blocks"
    assert kernel.loop_of(LastIn()) == "engine"
    expected = engine.run(crowded(), LastIn()).schedule
    assert rows(compiled(crowded(), LastIn()).schedule) == rows(expected)


@dataclass(frozen=True)
class Disagrees(Fifo):
    """Passes over what does not fit, and says that it does not."""

    name: str = "disagrees"

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in state.waiting:
            decision.start(job)
        return decision

    def job_index(self, service_gpu_s: np.ndarray | None) -> JobIndex:
        return super().job_index(service_gpu_s)


def test_an_index_that_is_not_the_policys_breaks_a_law() -> None:
    case = Case(crowded())
    index_agrees(PolicyUnderTest(Fifo()), case)
    with pytest.raises(LawBroken, match="disagrees: its job_index gives the schedule of its"):
        index_agrees(PolicyUnderTest(Disagrees()), case)


def test_promotions_are_left_to_the_engine() -> None:
    assert kernel.loop_of(Las2d()) == "compiled, preempts"
    assert kernel.loop_of(Las2d(promote_knob=2.0)) == "engine"


def test_what_the_loop_serves() -> None:
    instance = crowded()
    served = {name: kernel.serves(instance, placement(name)) for name in ("count", "pack", "skew")}
    assert served == {"count": True, "pack": True, "skew": False}
    window = replace(instance, until_complete=JobWindow(1, 3))
    assert kernel.serves(window, placement("count"))
    restarting = replace(instance, preemption=Preemption.RESTART)
    assert not kernel.serves(restarting, placement("count"))


def on_types(types: int) -> sp.Instance:
    names = "abcd"[:types]
    jobs = sp.Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[5], throughput=[[2.0] * types], gpu_types=list(names)
    )
    return sp.Instance(sp.Cluster.parse(",".join(f"1x4:{name}" for name in names)), jobs)


def test_whom_the_loop_serves_on_several_types() -> None:
    def count(name: str, types: int) -> bool:
        return kernel.runs_compiled(on_types(types), policy(name), placement("count")) is not None

    served = {
        name: [count(name, types) for types in (1, 3, 4)]
        for name in ("fifo", "easy", "srtf", "server-filling-srpt", "asrpt")
    }
    assert served == {
        "fifo": [True, True, True],
        "easy": [True, True, True],
        "srtf": [True, True, False],
        "server-filling-srpt": [True, False, False],
        "asrpt": [False, False, False],
    }


def test_rows_beyond_the_room_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_ROWS_AT_A_TIME", 4)
    assert rows(compiled(crowded(), Srtf()).schedule) == rows(
        engine.run(crowded(), Srtf()).schedule
    )


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import shadowprice as sp
jobs = sp.generate("gavel", jobs=2000, seed=1, load=0.5, gpus_total=64)
print(sp.simulate(jobs, "8x8", "fifo").summary()["avg_jct_s"])
"""


def test_everything_works_without_numba() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], cwd=ROOT, capture_output=True, text=True, check=True
    )
    jobs = sp.generate("gavel", jobs=2000, seed=1, load=0.5, gpus_total=64)
    assert len(jobs) >= kernel.WORTHWHILE_JOBS
    assert float(done.stdout) == sp.simulate(jobs, "8x8", "fifo").summary()["avg_jct_s"]


def test_the_policy_of_the_page_runs_in_both_loops(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# wsrpt\.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "wsrpt.py").write_text(code)
    own = policy(f"{tmp_path / 'wsrpt.py'}:Wsrpt")
    jobs = sp.generate("gavel", jobs=60, seed=0, load=1.2, gpus_total=8)
    instance = sp.Instance(sp.Cluster.parse("2x4"), jobs)
    found = kernel.run_fastest(instance, own, least_jobs=0)
    expected = engine.run(instance, own)
    assert kernel.loop_of(own) == "compiled, preempts"
    assert kernel.serves(instance, placement("count"))
    assert np.array_equal(found.schedule.end_s, expected.schedule.end_s)
    assert np.array_equal(found.schedule.job, expected.schedule.job)


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "index_policies.py"))
    benchmark["print_targets"](sp.generate("gavel", jobs=30, seed=0, load=0.9, gpus_total=600))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(benchmark["SETTINGS"]) * len(benchmark["TARGETS"])
    recorded = {
        "jobs": [["a", 1, 0, 60], ["b", 2, 5, 90]],
        "cluster": {"gpus": 4, "nodes": 2},
        "runs": {},
    }
    assert benchmark["repeat"](recorded, "helios", "helios/fifo@consolidate") > 0
    assert benchmark["repeat"](recorded, "tiresias", "no-such-policy/count") is None
