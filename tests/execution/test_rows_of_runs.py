"""Runs that have several rows: which of these go on is said, kept and believed, and all is counted from a beginning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory import directory
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.execution.job_window import cut_schedule
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.checker import check
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.drawn_worlds import drawn
from support.small_instances import instance_of
from support.wild import Wild

FED = Profile(np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.5], [1.0]]))
HALF, ALL = ((1.0, 1.0),), ((2.0, 1.0),)


def two_jobs(**more: object) -> Instance:
    """Two jobs of 4 s on a GPU with two CPUs, of which one makes them half as fast; node 0 fails at 4."""
    rule = Checkpointing(2.0, 1.0)
    return Instance(
        Cluster((Node(1, cpus=2.0, memory_gb=1.0),)),
        Workload.from_columns(arrival_s=[0, 0], gpus=1, work=4),
        sensitivity=Sensitivity((FED,), np.zeros(2, dtype=np.int64)),
        failures=merged(np.array([0]), np.array([4.0]), np.array([5.0]), "faults", rule),
        **more,
    )


@dataclass
class Watching:
    """Does what is written down for a time, and notes what it is shown of job 0 before that."""

    steps: Mapping[float, str]
    seen: dict[float, tuple[float, float, float]] = field(default_factory=dict)
    name: ClassVar[str] = "watching"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        shown = state.columns([0])
        self.seen[state.now_s] = (shown.attained_s[0], shown.remaining_s[0], shown.owed_s[0])
        for each in self.steps.get(state.now_s, "").split():
            if each == "stop":
                decision.stop(0)
            elif each == "start":
                decision.start(0)
            else:
                decision.adjust(0, HALF if each == "half" else ALL)
        for job in sorted(state.waiting):
            if job not in decision.starts:
                decision.start(job)
        for at_s in self.steps:
            if at_s > state.now_s:
                decision.wake_at(at_s)
        return decision


def test_policies_are_told_what_a_run_has_done_over_all_its_rows() -> None:
    """At full speed until 1, at half until 2, then a checkpoint until 3, and half again until the node fails."""
    policy = Watching({1.0: "half", 1.5: "", 2.5: "half", 3.5: "", 5.0: "start"})
    done = run(two_jobs(), policy)
    verify(done.instance, done.schedule)
    assert policy.seen[1.5] == (1.5, 2.75, 0.0)
    assert policy.seen[2.5] == (2.0, 2.5, 0.0)
    assert policy.seen[3.5] == (2.5, 2.25, 0.0)
    # Lost is what was done after the two seconds that the checkpoint has.
    assert policy.seen[4.0] == (3.0, 2.5, 0.0)


def test_who_is_stopped_keeps_all_that_its_run_did() -> None:
    policy = Watching({1.0: "half", 3.5: "stop start", 3.75: ""})
    done = run(two_jobs(), policy)
    verify(done.instance, done.schedule)
    assert policy.seen[3.75] == (2.75, 2.0, 0.0)
    assert done.schedule.start_s[done.schedule.job == 0].tolist() == [0.0, 1.0, 3.5, 5.0]
    # Two checkpoints are due, and neither in the half second before the failure.
    assert policy.seen[4.0] == (3.0, 2.25, 0.0)


def test_what_is_owed_goes_on_with_a_run() -> None:
    policy = Watching({1.0: "half", 1.25: "", 2.0: "all"})
    instance = replace(two_jobs(overheads=Overheads(1.5)), failures=None)
    done = run(instance, policy)
    verify(done.instance, done.schedule)
    assert policy.seen[1.25] == (0.0, 4.0, 0.25)
    assert policy.seen[2.0] == (0.5, 3.75, 0.0)
    assert done.schedule.overhead_s.tolist() == [1.0, 0.5, 0.0, 1.5]


def test_what_failures_cost_where_two_share() -> None:
    """Each has half of the GPU while it is shared, and loses what it did since its own checkpoint.

    Job 0 runs from 0, job 1 joins at 1, and the node fails at 4.5: after checkpoints from 2 to 3, and 3 to 4.
    """
    done = run(shared(), Joins())
    outcome = Outcome.verified(done.instance, done.schedule, policy="joins")
    summary, table = outcome.summary(), outcome.jobs
    assert table["lost_work_s"].tolist() == [1.5, 0.5]
    assert table["failures"].tolist() == [1, 1]
    assert table["preemptions"].tolist() == [0, 0]
    assert summary["failed_runs"] == 2
    assert summary["lost_gpu_s"] == 0.75 + 0.25
    assert summary["checkpoint_gpu_s"] == 0.5 + 0.5 + 1.0 + 1.0
    # From 0 to 12.5; of job 0 a second alone, half of one and 2.5 are kept, of job 1 two halves and 3.
    assert summary["goodput"] == (1.0 + 0.5 + 2.5 + 1.0 + 3.0) / 12.5


def shared() -> Instance:
    """Two jobs of 4 s that may share a GPU at half speed; its node fails at 4.5."""
    rule = Checkpointing(2.0, 1.0)
    return Instance(
        Cluster((Node(1, gpu_type="any"),)),
        Workload.from_columns(arrival_s=[0, 1], gpus=1, work=4),
        sharing_rates=Throughputs(("any",), {}, {("any", ("", 1), ("", 1)): (0.5, 0.5)}),
        failures=merged(np.array([0]), np.array([4.5]), np.array([5.0]), "faults", rule),
    )


class Joins:
    """Lets job 1 join job 0 when it arrives, and starts whoever fits, job 0 first."""

    name, knows, preemptive = "joins", frozenset[Knowledge](), False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        if state.now_s == 1.0:
            decision.join(1, 0)
        for job in sorted(state.waiting):
            if job not in decision.starts:
                decision.start(job)
        return decision


PAIRS = (
    ("failures", "profiles"),
    ("failures", "sharing"),
    ("restart", "profiles"),
    ("restart", "sharing"),
)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_checker_believes_what_the_verifier_does(pair: tuple[str, str]) -> None:
    """Certificates of runs that are cut, stopped and begun again at one moment."""
    going = again = 0
    for seed in range(20):
        done = run(instance_of(drawn((*pair, "charges"), seed)), Wild(seed))
        going += int(done.schedule.continues.sum())
        again += int(done.schedule.begins_again.sum())
        outcome = Outcome.verified(done.instance, done.schedule, policy="wild")
        check(certify(outcome, "flow", budget_s=0.0).text)
    assert going > 10
    assert again > 0


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_rows_that_are_said_to_begin_or_to_go_on_are_looked_at(pair: tuple[str, str]) -> None:
    """Where starts are charged each row that is said to be the other is refused."""
    for seed in range(8):
        instance = replace(instance_of(drawn(pair, seed)), overheads=Overheads(0.5))
        done = run(instance, Wild(seed))
        s = done.schedule
        for first in s.runs.tolist():
            mine = (s.job == s.job[first]) & (s.start_s == s.start_s[first])
            with pytest.raises(Violation):
                verify(done.instance, replace(s, goes_on=np.where(mine, ~s.continues, s.continues)))


def test_lost_runs_are_left_out_of_a_class_where_nobody_shared() -> None:
    """Of jobs that restart; who was at his pace beside a run that is lost would be at another without it."""
    for pair in (("restart", "profiles"), ("restart", "sharing")):
        seen = set()
        for seed in range(15):
            done = run(instance_of(drawn(pair, seed)), Wild(seed))
            s = done.schedule
            begun = np.bincount(s.job[s.runs][~s.continues[s.runs]])
            used = ScheduleClass.used(done.instance, s)
            seen.add(((begun > 1).any(), used.sharing, used.preemptive))
        assert {preemptive for again, sharing, preemptive in seen} == (
            {False, True} if "sharing" in pair else {False}
        )
        assert all(preemptive == (again and sharing) for again, sharing, preemptive in seen)


def test_a_run_in_two_parts_that_is_lost_did_not_complete_its_job() -> None:
    """Half at full speed in 2 s, half at half of it in 4 s; a tick less, and all of it may be done again."""
    instance = replace(two_jobs(), failures=None, preemption=Preemption.RESTART)
    for lost_s, complete in ((6.0, True), (6.0 - 2.0**-20, False)):
        rows = pd.DataFrame(
            {
                "job": [1, 1, 1, 0],
                "node": 0,
                "gpus": 1,
                "start_s": [0.0, 2.0, 6.0, 10.0],
                "end_s": [2.0, lost_s, 10.0, 14.0],
                "overhead_s": 0.0,
                "cpus": [2.0, 1.0, 2.0, 2.0],
                "memory_gb": 1.0,
                "goes_on": [False, True, False, False],
            }
        )
        schedule = Schedule.from_frame(rows)
        if complete:
            with pytest.raises(Violation, match="completes its job, which runs again"):
                verify(instance, schedule)
        else:
            verify(instance, schedule)


def test_nothing_may_have_run_when_a_run_on_failing_nodes_is_stopped() -> None:
    instance = replace(two_jobs(), stopped_s=1.0)
    started = run(replace(instance, stopped_s=None), Watching({})).schedule
    assert not verify(instance, cut_schedule(started, 0.0)).any()


# The column.


def stopped_and_started() -> tuple[Instance, Schedule]:
    done = run(replace(two_jobs(), failures=None), Watching({1.0: "half", 2.0: "stop start"}))
    return done.instance, done.schedule


def test_the_column_goes_through_frames_and_run_directories(tmp_path: Path) -> None:
    instance, schedule = stopped_and_started()
    assert schedule.goes_on is not None
    assert schedule.goes_on.tolist() == [False, True, False, False]
    assert schedule.begins_again.tolist() == [False, False, True, False]
    again = Schedule.from_frame(schedule.to_frame())
    assert again.to_frame().equals(schedule.to_frame())
    directory.save(Outcome.verified(instance, schedule, policy="some"), tmp_path / "run")
    found = directory.load(tmp_path / "run")
    assert found.schedule.to_frame().equals(schedule.to_frame())
    assert found.jobs["preemptions"].tolist() == [1, 0]
    cut = cut_schedule(schedule, 1.5)
    assert cut.goes_on is not None
    assert cut.goes_on.tolist() == [False, True]


def test_without_the_column_rows_go_on_that_could() -> None:
    instance, schedule = stopped_and_started()
    old = Schedule.from_frame(schedule.to_frame().drop(columns="goes_on"))
    assert old.goes_on is None
    assert old.continues.tolist() == [False, True, True, False]
    assert not old.begins_again.any()
    verify(instance, old)
    # Whoever began paid for it, and who only goes on did not have to.
    charged = run(
        replace(two_jobs(overheads=Overheads(0.5)), failures=None), Watching({2.0: "stop start"})
    )
    with pytest.raises(Violation, match="overhead"):
        verify(charged.instance, replace(charged.schedule, goes_on=None))


def test_there_is_no_column_where_nothing_could_go_on() -> None:
    instance = replace(two_jobs(), failures=None)
    assert "goes_on" not in run(instance, Watching({})).schedule.to_frame()


@pytest.mark.parametrize("value", ["yes", 2, None, 0.5])
def test_a_value_that_is_neither_is_refused(value: object) -> None:
    frame = stopped_and_started()[1].to_frame().astype({"goes_on": object})
    frame.loc[1, "goes_on"] = value
    with pytest.raises(InputError, match=r"row 1, column 'goes_on': .* expected True or False"):
        Schedule.from_frame(pd.DataFrame(frame))
