"""The battery of laws for users: what it says, that every law can fail, and its page."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing import Case, LawBroken, Scaling, checks, laws
from shadowprice.proofs.testing.battery import LAWS, Law, as_test
from shadowprice.proofs.testing.subject import PolicyUnderTest
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.index_policy import IndexedJob, JobIndex, QueueRule
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.registry import policy as policy_by_name
from support.paths import ROOT

PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
BY_NAME = {law.name: law for law in LAWS}
SEARCH = settings(
    max_examples=300, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
)


@dataclass(frozen=True)
class Greedy:
    """Starts whatever fits, in an order of its own."""

    name: str = "greedy"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def order(self, state: State) -> list[int]:
        return list(state.waiting)

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in self.order(state):
            decision.start(job)
        return decision


class Idle(Greedy):
    """Starts nothing."""

    def order(self, state: State) -> list[int]:
        return []


@dataclass(frozen=True)
class Delayed(Greedy):
    """Starts nothing in the first seconds after an event."""

    delay_s: float = 4.0

    def decide(self, state: State) -> Decision:
        if state.arrived or state.finished:
            decision = Decision(state)
            decision.wake_at(state.now_s + self.delay_s)
            return decision
        return super().decide(state)


@dataclass(frozen=True)
class Begun:
    """A run has begun."""

    noted: None


@dataclass(frozen=True)
class Forgetful(Greedy):
    """Turns its order around in every other run, because it keeps notes in itself."""

    runs: list[float] = field(default_factory=list)

    def order(self, state: State) -> list[int]:
        state.notes(Begun, lambda: Begun(self.runs.append(state.now_s)))
        return list(state.waiting)[:: 1 if len(self.runs) % 2 else -1]


class Liar(Srtf):
    """Preempts, but says that it does not."""

    preemptive: ClassVar[bool] = False


class Peeking(Greedy):
    """Reads durations where it should not."""

    def order(self, state: State) -> list[int]:
        return sorted(state.waiting, key=lambda job: -state._jobs.left_s[job])


class Prophet(Greedy):
    """Knows how many jobs will come: no state says so, but the engine is on the stack."""

    def order(self, state: State) -> list[int]:
        frame = sys._getframe()
        while not hasattr(engine := frame.f_locals.get("self"), "arrivals"):
            frame = frame.f_back
        return list(state.waiting)[:: 1 if len(engine.arrivals) % 2 else -1]


class Seer(Greedy):
    """Knows how many faults will come."""

    def order(self, state: State) -> list[int]:
        frame = sys._getframe()
        while not hasattr(engine := frame.f_locals.get("self"), "outages"):
            frame = frame.f_back
        return list(state.waiting)[:: 1 if len(engine.outages.failures) % 2 else -1]


class Looking(Greedy):
    """Looks for the jobs' run times among all that this process holds, and takes the first that have their names."""

    def order(self, state: State) -> list[int]:
        names = state.columns(range(len(state.gang))).id.tolist()
        known = [each for each in gc.get_objects() if type(each) is Workload]
        work = next(each.work for each in known if each.id[: len(names)].tolist() == names)
        return sorted(state.waiting, key=lambda job: work[job])


class Following(Greedy):
    """Shortest first, by what the engine knows, which is on the stack."""

    def order(self, state: State) -> list[int]:
        frame = sys._getframe()
        while not hasattr(engine := frame.f_locals.get("self"), "arrivals"):
            frame = frame.f_back
        work = engine.instance.workload.work
        return sorted(state.waiting, key=lambda job: work[job])


class Contradicting(Greedy):
    """Has an index by which nobody passes the first job that has to wait."""

    def job_index(self, service_gpu_s: Any) -> JobIndex:
        return JobIndex(QueueRule.HEAD_BLOCKS, arrival_s)


def arrival_s(job: IndexedJob, table: Any) -> float:
    return job.arrival_s


SEALED = "test_it_decides_the_same_in_a_process_of_its_own"
"""Law of policies that a process of its own can look up by name."""

MEMORY = "test_what_else_is_in_memory_does_not_matter"
"""Law that is shown to fail on one case: what is in memory is not the same when an example is tried again."""

INDEX_LAWS = {
    "test_its_index_and_its_decisions_agree",
    "test_its_index_and_its_decisions_agree_with_overheads",
}
"""Laws of policies that have an index."""

BROKEN: list[tuple[str, Policy, str]] = [
    ("test_schedules_are_valid", Idle(), "1 jobs waiting for ever"),
    ("test_schedules_are_valid_with_overheads", Idle(), "PolicyError"),
    ("test_schedules_are_valid_on_gpu_types", Idle(), "PolicyError"),
    ("test_schedules_are_valid_where_jobs_may_share_gpus", Idle(), "PolicyError"),
    ("test_schedules_are_valid_under_conditions", Idle(), "PolicyError"),
    ("test_schedules_are_valid_on_nodes_that_fail", Idle(), "PolicyError"),
    ("test_faults_are_not_foreseen", Seer(), "faults to come do not matter"),
    ("test_nobody_is_lost", Idle(), "every job does all its work, but"),
    ("test_scaling_all_times_scales_all_completions", Delayed(), "Name its own times"),
    ("test_order_of_rows_does_not_matter", Forgetful(), "and reordered at"),
    ("test_same_input_same_schedule", Forgetful(), "a later run gives another one"),
    ("test_runs_every_job_once", Liar(), "it declares preemptive = False"),
    ("test_no_gpus_idle_while_a_job_that_fits_waits", Fifo(), r"laws\(..., waits=True\)"),
    *(
        (name, Contradicting(), "its job_index gives the schedule of its decide")
        for name in sorted(INDEX_LAWS)
    ),
    (
        "test_a_longer_job_is_not_foreseen",
        Peeking(),
        "a longer job is not noticed before it is late",
    ),
    ("test_a_longer_job_is_not_foreseen", Following(), "nobody's is noticed before the first"),
    ("test_a_longer_job_is_not_foreseen", Looking(), "nobody's is noticed before the first"),
    *(
        (f"test_arrivals_are_not_foreseen{where}", Prophet(), "have not arrived do not matter")
        for where in (
            "",
            "_on_gpu_types",
            "_where_jobs_may_share_gpus",
            "_under_conditions",
        )
    ),
]


def search(law: Law, policy: Policy, **declared: Any) -> None:
    as_test(law, PolicyUnderTest(policy, **declared), SEARCH)(None)


@pytest.fixture
def little_in_memory() -> None:
    """What was in memory before the test is not looked through: it may be millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("little_in_memory")
@pytest.mark.parametrize(("name", "policy", "message"), BROKEN)
def test_every_law_can_be_broken(name: str, policy: Policy, message: str) -> None:
    with pytest.raises(LawBroken, match=message):
        search(BY_NAME[name], policy)


@pytest.mark.parametrize(
    "name",
    ["test_cost_is_never_below_the_bound", "test_cost_is_never_below_the_bound_on_gpu_types"],
)
def test_a_bound_above_the_cost_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = checks.simple_bounds

    def raised(*given: Any) -> Iterator[Any]:
        for bound in honest(*given):
            yield replace(bound, ticks=bound.ticks * 11 / 10)

    search(BY_NAME[name], Greedy())
    monkeypatch.setattr(checks, "simple_bounds", raised)
    with pytest.raises(LawBroken, match="no schedule has a smaller"):
        search(BY_NAME[name], Greedy())


def test_all_laws_are_covered_here() -> None:
    covered = {name for name, _, _ in BROKEN}
    assert {law.name for law in LAWS} - covered == {
        "test_cost_is_never_below_the_bound",
        "test_cost_is_never_below_the_bound_on_gpu_types",
        SEALED,
        MEMORY,
    }


class LookingForTheLongest(Greedy):
    """Takes run times from the instance of the jobs in this process that has the most work."""

    def order(self, state: State) -> list[int]:
        names = state.columns(range(len(state.gang))).id.tolist()
        known = [each for each in gc.get_objects() if type(each) is Workload]
        same = [each.work for each in known if each.id[: len(names)].tolist() == names]
        work = max(same, key=lambda each: float(each.sum()))
        return sorted(state.waiting, key=lambda job: work[job])


@pytest.mark.usefixtures("little_in_memory")
def test_who_looks_through_memory_is_caught_by_what_else_is_there() -> None:
    names = [f"of this test {k}" for k in range(6)]
    jobs = Workload.from_columns(
        arrival_s=[0.0] * 6, gpus=[1] * 6, work=[3, 5, 1, 4, 2, 6], id=names
    )
    case = Case(Instance(Cluster.parse("1x1"), jobs))
    BY_NAME[MEMORY].check(PolicyUnderTest(Greedy()), case)
    gc.collect()
    with pytest.raises(LawBroken, match="what else is in memory does not matter"):
        BY_NAME[MEMORY].check(PolicyUnderTest(LookingForTheLongest()), case)


CHEAT = """
import gc
from shadowprice.solvers.policy import Decision

class Cheat:
    name, knows, preemptive = "cheat", frozenset(), False

    def decide(self, state):
        work = [each.work for each in gc.get_objects() if type(each).__name__ == "Workload"]
        fits = [each for each in work if len(each) >= len(state.gang)] or [[0] * len(state.gang)]
        decision = Decision(state)
        for job in sorted(state.waiting, key=lambda job: -fits[-1][job]):
            decision.start(job)
        return decision
"""


@pytest.mark.usefixtures("little_in_memory")
def test_a_cheat_decides_otherwise_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "cheat.py"
    file.write_text(CHEAT, encoding="utf-8")
    name = f"{file}:Cheat"
    with pytest.raises(LawBroken, match="in a process that holds nothing else it decides the same"):
        search(BY_NAME[SEALED], policy_by_name(name), written=name)
    search(BY_NAME[SEALED], policy_by_name("fifo"), written="fifo")


def test_named_times_are_scaled() -> None:
    law = BY_NAME["test_scaling_all_times_scales_all_completions"]
    search(law, Delayed(), times=("delay_s",))
    assert PolicyUnderTest(Delayed(), times=("delay_s",)).scaled(0.5) == Delayed(delay_s=2.0)


def test_a_gang_lost_by_a_wrong_engine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[5, 5])
    case = Case(Instance(Cluster.parse("1x1"), jobs))
    subject = PolicyUnderTest(Greedy())
    checks.nobody_lost(subject, case)
    short = Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[5, 4])
    made = case.run(subject.policy, Instance(case.instance.cluster, short))
    monkeypatch.setattr(Case, "run", lambda *given: made)
    with pytest.raises(LawBroken, match="job '1' needs 5"):
        checks.nobody_lost(subject, case)


def names_of(made: type) -> set[str]:
    return {name for name in vars(made) if name.startswith("test_")}


def test_declarations_leave_laws_out() -> None:
    everything = {law.name for law in LAWS} - INDEX_LAWS - {SEALED}
    assert names_of(laws(Greedy())) == everything
    assert names_of(laws("fifo")) - names_of(laws(Fifo())) == {SEALED}
    assert everything - names_of(laws(Greedy(), waits=True)) == {
        "test_no_gpus_idle_while_a_job_that_fits_waits"
    }
    assert everything - names_of(laws(Greedy(), scaling=Scaling.NONE)) == {
        "test_scaling_all_times_scales_all_completions"
    }
    assert (everything | INDEX_LAWS) - names_of(laws(Srtf())) == {
        "test_runs_every_job_once",
        "test_a_longer_job_is_not_foreseen",
    }


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (Greedy, {}, "expected a policy: an object"),
        (object(), {}, "expected a policy: an object"),
        (Greedy(), {"times": ("quantum_s",)}, "times has 'quantum_s', expected a field"),
    ],
)
def test_what_is_no_policy_is_refused(given: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        laws(given, **options)


class Odd(Greedy):
    preemptive: ClassVar[Any] = "no"


class Told(Greedy):
    knows: ClassVar[Any] = {"duration"}


@pytest.mark.parametrize(
    ("given", "message"), [(Odd(), "preemptive is 'no'"), (Told(), "expected a frozenset")]
)
def test_wrong_declarations_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        laws(given)


def test_without_hypothesis_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['hypothesis'] = None; import shadowprice.proofs.testing"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: shadowprice.proofs.testing: hypothesis is not installed, "
        "expected pip install 'shadowprice[test]'"
    )


def masked(line: str) -> str:
    """A line of pytest's output without its margins; which smallest instance is found may change."""
    line = re.sub(r"^E +(\S+LawBroken: )?|\s+\[ *\d+%\]$", "", line)
    line = re.sub(r"\d+(\.\d+)?", "#", line)
    return re.sub(r"(#x#)(,#x#)+", r"\1", re.sub(r"\[#(, #)*\]", "[#]", line))


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", code)
        assert name is not None
        (tmp_path / name[1]).write_text(code, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "from hypothesis import settings\n"
        "settings.register_profile('page', max_examples=4, derandomize=True, database=None)\n"
        "settings.load_profile('page')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "."],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        # What is asked of the run that this test is in is not asked of the page's.
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "PYTEST_ADDOPTS": ""},
    )
    shown = {masked(line) for line in done.stdout.splitlines()}
    for text in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL):
        for line in text.splitlines():
            assert masked(line) in shown, line
    last = done.stdout.splitlines()[-1]
    assert re.search(rf"1 failed, {3 * (len(LAWS) - len(INDEX_LAWS) - 1) - 2} passed", last), (
        done.stdout[-3000:]
    )


def test_the_page_lists_every_law() -> None:
    for law in LAWS:
        assert f"::{law.name} PASSED" in PAGE or law.name in {*INDEX_LAWS, SEALED}
    assert "| `its_index_and_its_decisions_agree`, `..._with_overheads` |" in PAGE
