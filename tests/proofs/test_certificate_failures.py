"""The verifier on nodes that fail: it finds lost work that is kept, and runs on nodes that are down."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shadowprice.execution.engine import Engine, run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.testing.cases import failing
from shadowprice.proofs.testing.subject import Case
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.registry import policy
from support.failing_nodes import failures, instance_of, second_by_second

POLICIES = ("fifo", "srtf", "las2d", "easy")
OURS = {"down", "work", "lost"}
TICK = 2.0**-20
"""Of the grid of times [s]."""


def rule_broken(instance: Instance, frame: pd.DataFrame) -> str | None:
    try:
        verify(instance, Schedule.from_frame(frame))
    except Violation as violation:
        return violation.rule
    return None


@settings(max_examples=13)
@given(case=failing(), name=st.sampled_from(POLICIES), data=st.data())
def test_verdicts_are_those_of_a_count_second_by_second(
    case: Case, name: str, data: st.DataObject
) -> None:
    """Rows of a schedule are moved, cut, lengthened and left out: both find the same schedules wrong."""
    instance = replace(case.instance, overheads=Overheads())
    frame = run(instance, policy(name)).schedule.to_frame()
    assert second_by_second(instance, frame)
    assert rule_broken(instance, frame) is None
    runs = frame.groupby(["job", "start_s"]).ngroup()
    which = runs == data.draw(st.integers(0, int(runs.max())))
    change = data.draw(st.sampled_from(["start_s", "end_s", "both", "out"]))
    by_s = data.draw(st.sampled_from([-1.0, 1.0, 3.0]))
    if change == "out":
        frame = frame[~which].reset_index(drop=True)
    for column in ("start_s", "end_s"):
        if change in (column, "both"):
            frame.loc[which, column] += by_s
    assume(len(frame) and (frame.start_s < frame.end_s).all() and (frame.start_s >= 0).all())
    found = rule_broken(instance, frame)
    assume(found is None or found in OURS)
    assert (found is None) == second_by_second(instance, frame)


ONE = instance_of([(0, 1, 10)], [1], [(0, 6.0, 8.0)], interval_s=2.0, cost_s=1.0)
"""A job of 10 s that is cut short after 6: 2 s of progress and 1 s of checkpoint, twice; 4 s are saved."""


def rows(*spans: tuple[float, float]) -> pd.DataFrame:
    start_s, end_s = np.array(spans).T
    n = len(spans)
    return pd.DataFrame(
        {
            "job": np.zeros(n, dtype=np.int64),
            "node": np.zeros(n, dtype=np.int64),
            "gpus": np.ones(n, dtype=np.int64),
            "start_s": start_s,
            "end_s": end_s,
            "overhead_s": np.zeros(n),
        }
    )


@pytest.mark.parametrize(
    ("spans", "rule"),
    [
        (((0, 6), (8, 16)), None),
        (((0, 6), (8, 15)), "work"),  # a second short
        (((0, 6), (8, 17)), "work"),  # ends in a checkpoint that nobody needs
        (((0, 6), (8, 18)), "work"),
        (((0, 6), (7, 15)), "down"),
        (((0, 7), (8, 16)), "down"),
        (((0, 5), (8, 16)), None),  # stopped by the policy while a checkpoint was written: 4 s
        (((0, 4), (8, 17)), "work"),  # stopped with 3 s done, 7 left: 2+1+2+1+2+1+1
        (((0, 4), (8, 18)), None),
        (((8, 22),), None),
        (((8, 21),), "work"),
    ],
)
def test_work_is_counted_as_computed_by_hand(
    spans: tuple[tuple[float, float], ...], rule: str | None
) -> None:
    assert rule_broken(ONE, rows(*spans)) == rule
    assert (rule is None) == second_by_second(ONE, rows(*spans))


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize("late", [0, 1])
def test_a_node_is_not_used_for_a_tick_while_it_is_down(early: int, late: int) -> None:
    """From a tick before it is up, to a tick after it goes down."""
    instance = instance_of([(0, 1, 10)], [1], [(0, 6.0, 8.0)])
    first, second = (0, 6 + late * TICK), (8 - early * TICK, 18 - early * TICK)
    expected = "down" if early or late else None
    assert rule_broken(instance, rows(first, second)) == expected


def test_a_run_that_completes_as_its_node_goes_down_is_complete() -> None:
    instance = instance_of([(0, 1, 6)], [1], [(0, 6.0, 8.0)])
    assert rule_broken(instance, rows((0, 6))) is None
    assert rule_broken(instance, rows((0, 6), (8, 14))) == "work"


def test_a_run_does_not_end_while_a_checkpoint_is_written() -> None:
    """A checkpoint takes 2 s, so that there is a second in it at whose end none is complete."""
    instance = instance_of([(0, 1, 4)], [1], [], interval_s=2.0, cost_s=2.0)
    ends = {end_s: rule_broken(instance, rows((0, end_s))) for end_s in (5.0, 6.0, 7.0, 8.0)}
    assert ends == {5.0: "work", 6.0: None, 7.0: "work", 8.0: "work"}


def test_nothing_is_believed_beyond_the_faults_that_are_known() -> None:
    assert ONE.failures is not None
    known = replace(ONE, failures=replace(ONE.failures, known_until_s=16.0))
    assert rule_broken(known, rows((0, 6), (8, 16))) == "down"
    known = replace(ONE, failures=replace(ONE.failures, known_until_s=17.0))
    assert rule_broken(known, rows((0, 6), (8, 16))) is None


class Together:
    """Lets the second job join the first."""

    name, knows, preemptive = "together", frozenset[Knowledge](), False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        if state.waiting and decision.start(0):
            decision.join(1, 0)
        return decision


def test_jobs_share_gpus_of_nodes_that_fail() -> None:
    kind = ("a", 1)
    table = Throughputs(("v100",), {kind: (1.0,)}, pairs={("v100", kind, kind): (0.5, 0.5)})
    jobs = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[1, 1],
        work=[4, 4],
        model=["a", "a"],
        throughput=[[1.0], [1.0]],
        gpu_types=("v100",),
    )
    cluster = Cluster((Node(1, "v100"),))
    shared = Schedule(
        np.array([0, 1]),
        np.zeros(2, dtype=np.int64),
        np.ones(2, dtype=np.int64),
        np.zeros(2),
        np.full(2, 8.0),
        np.zeros(2),
        partner=np.array([1, 0]),
    )
    instance = Instance(cluster, jobs, sharing_rates=table)
    verify(instance, shared)
    verify(replace(instance, failures=failures([])), shared)
    # Each saves a second of progress, an eighth of its work, before the node fails at 1.5, and does the rest anew.
    failing = replace(instance, failures=failures([(0, 1.5, 2.0)], 1.0))
    done = run(failing, Together())
    s = done.schedule
    assert s.start_s.tolist() == [0.0, 0.0, 2.0, 2.0]
    assert s.end_s.tolist() == [1.5, 1.5, 9.0, 9.0]
    verify(done.instance, s)
    assert rule_broken(failing, shared.to_frame()) == "down"


# Faults in the engine, one by one: the verifier finds each.


def crowded(seed: int, interval_s: float = 2.0, cost_s: float = 1.0) -> Instance:
    rng = np.random.default_rng(seed)
    jobs = [
        (int(rng.integers(0, 20)), int(rng.integers(1, 4)), int(rng.integers(5, 30)))
        for _ in range(8)
    ]
    faults = [(int(rng.integers(0, 2)), float(at), float(at + 3)) for at in range(4, 160, 9)]
    return instance_of(jobs, [2, 2], faults, interval_s, cost_s)


def never_down(engine: Engine, at_s: float, down: bool, node: int) -> None:
    """A node that goes down takes what runs there with it, and goes on giving GPUs."""
    if down:
        for job, pieces in list(engine.state.running.items()):
            if any(place == node for place, _ in pieces):
                engine.state.fail(job, at_s, *engine.hosts.fail(job, at_s))
                engine.state.allocator.give_back(pieces)


BROKEN = {
    "lost work is kept": (Checkpointing, "saved_ticks", Checkpointing.progress_ticks, {"work"}),
    "all work is lost": (Checkpointing, "saved_ticks", lambda self, elapsed: 0, {"work"}),
    "checkpoints take no time": (
        Checkpointing,
        "elapsed_ticks",
        lambda self, progress: progress,
        {"work"},
    ),
    "a checkpoint is written at the end": (
        Checkpointing,
        "elapsed_ticks",
        lambda self, progress: progress + progress // self._ticks()[0] * self._ticks()[1],
        {"work"},
    ),
    "preempted jobs lose work": (
        Checkpointing,
        "progress_ticks",
        Checkpointing.saved_ticks,
        {"work"},
    ),
    "nodes are given away while they are down": (Engine, "_change", never_down, {"down"}),
    "nothing fails": (
        Engine,
        "_change",
        lambda self, at_s, down, node: None,
        {"down", "work"},
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_each_fault_in_the_engine_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, method, replacement, rules = BROKEN[name]
    instances = [crowded(seed) for seed in range(6)]
    for instance in instances:
        verify(instance, run(instance, policy("las")).schedule)
    monkeypatch.setattr(where, method, replacement)
    found = set()
    for instance in instances:
        done = run(instance, policy("las"))
        monkeypatch.undo()
        found.add(rule_broken(instance, done.schedule.to_frame()))
        monkeypatch.setattr(where, method, replacement)
    assert found & rules, found
    assert found <= rules | {None}, found


def test_restarts_after_a_failure_are_charged_like_others() -> None:
    plain = instance_of([(0, 1, 10)], [1, 1], [(0, 6.0, 90.0)])
    charged = replace(plain, overheads=Overheads(start_s=1.0, restart_s=2.0, migration_s=4.0))
    done = run(charged, policy("fifo")).schedule
    verify(charged, done)
    assert done.start_s.tolist() == [0.0, 6.0]
    assert done.overhead_s.tolist() == [1.0, 7.0]
    assert done.end_s.tolist() == [6.0, 23.0]
    free = replace(done, overhead_s=np.array([1.0, 3.0]), end_s=np.array([6.0, 19.0]))
    assert rule_broken(charged, free.to_frame()) == "overhead"


def test_tables_that_overlap_are_read_as_their_union() -> None:
    """The verifier does not rely on downtimes that are apart."""
    found = failures([(0, 6.0, 8.0)])
    object.__setattr__(found, "node", np.array([0, 0]))
    object.__setattr__(found, "down_s", np.array([1.0, 2.0]))
    object.__setattr__(found, "up_s", np.array([9.0, 3.0]))
    instance = instance_of([(0, 1, 2)], [1], [])
    overlapping = replace(instance, failures=found)
    assert rule_broken(overlapping, rows((4, 6))) == "down"
    assert rule_broken(overlapping, rows((9, 11))) is None
    assert math.isinf(found.known_until_s)
