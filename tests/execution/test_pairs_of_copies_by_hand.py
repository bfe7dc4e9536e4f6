"""Two jobs that run as copies under another feature, by hand: so HadarE's loop runs them, and just that is accepted.

The meanings are those of ``docs/semantics.md``. Each example says what the rows have to be, in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError
from shadowprice.execution.copies.hadare import CopyWidth, HadarE
from shadowprice.execution.copies.local_sgd import LocalSgd
from shadowprice.execution.copies.simulation import run_copies
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.hadar.copy_assignment import ByArrival, CopyOrder, RoundView, ShortestFirst
from support.horizons import ended
from support.written_failures import failures_of

Row = tuple[int, int, float, float, float, int]
"""Job, node, begin and end [s], overhead [s] and steps."""
TICK_S = 2.0**-20
RULES = CopyRules(round_s=4.0, restart_s=1.0, aggregation_s=1.0, max_copies=2)
ALONE = replace(RULES, max_copies=1)


def jobs(**columns: object) -> Workload:
    """Jobs of one GPU that do a step a second, there from 0 on."""
    count = len(columns["work"])  # type: ignore[arg-type]
    rates = {"throughput": [[1.0]] * count, "gpu_types": ("v100",)}
    given = {"arrival_s": [0.0] * count, "gpus": [1] * count, **rates, **columns}
    return Workload.from_columns(**given)


TWO_NODES = Cluster((Node(1, gpu_type="v100"),) * 2)
TWO_OF_TWO = Cluster((Node(2, gpu_type="v100"),) * 2)


def quotas(*periods: tuple[float, int]) -> Quotas:
    """Of the one tenant: GPUs from a time on [s]."""
    return Quotas(("x",), tuple(at for at, _ in periods), tuple((gpus,) for _, gpus in periods))


ONE_NODE = Cluster((Node(1, gpu_type="v100"),))


def down(*faults: tuple[int, float, float]) -> NodeFailures:
    """Nodes that go down, and come up [s]."""
    node, down_s, up_s = (np.array(column) for column in zip(*faults, strict=True))
    return NodeFailures(node, down_s, up_s)


LATE = {"arrival_s": [0.0, 0.0, 60.0]}
"""A third job, so that jobs arrive until a window is complete."""


@dataclass(frozen=True)
class Example:
    """An instance, the rows that come of it, and other values of columns of a row with what is said of them."""

    why: str
    instance: Instance
    rows: tuple[Row, ...]
    complete: tuple[bool, ...]
    refused: Mapping[tuple[int, str, float], str] = field(default_factory=dict)
    order: CopyOrder = field(default_factory=ByArrival)
    width: CopyWidth = CopyWidth.NODE


FED = Profile(np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.5], [1.0]]))
CONTENT = Profile(np.array([1.0]), np.array([1.0]), np.array([[1.0]]))
SUPPLIED = Instance(
    Cluster((Node(2, gpu_type="v100", cpus=2.0, memory_gb=2.0),)),
    jobs(work=[4, 4]),
    sensitivity=Sensitivity((FED, CONTENT), np.array([0, 1])),
    copies=RULES,
)

EXAMPLES = {
    "stopped": Example(
        "Job 0 does 3 steps in each copy after 1 s for the averaging, and is complete at 4. Job 1 owes 1 s more, since "
        "the nodes change jobs, and would do 2 steps in each by 8. Stopped at 7.5, the one step that each has done "
        "counts for nobody.",
        Instance(TWO_NODES, jobs(work=[6, 4]), copies=RULES, stopped_s=7.5),
        (
            (0, 0, 0, 4, 1, 3),
            (0, 1, 0, 4, 1, 3),
            (1, 0, 4, 7.5, 2, 0),
            (1, 1, 4, 7.5, 2, 0),
        ),
        (True, False),
        {
            (2, "steps", 1): "^steps: row 2 .* exactly the time its steps take",
            (2, "end_s", TICK_S): "^steps: row 2 .* or an end with the run",
            (2, "end_s", -TICK_S): "^steps: row 2 .* or an end with the run",
            (2, "overhead_s", -TICK_S): "^overhead: row 2",
            (0, "steps", -3): "^steps: row 0 .* or an end with the run",
        },
    ),
    "stopped while it pays": Example(
        "As above, stopped 1 s after the second round began: of 2 s that are owed 1 s is paid.",
        Instance(TWO_NODES, jobs(work=[6, 4]), copies=RULES, stopped_s=5.0),
        (
            (0, 0, 0, 4, 1, 3),
            (0, 1, 0, 4, 1, 3),
            (1, 0, 4, 5, 1, 0),
            (1, 1, 4, 5, 1, 0),
        ),
        (True, False),
        {(3, "overhead_s", -TICK_S): "^overhead: row 3"},
    ),
    "stopped as a round ends": Example(
        "At 8 the copies of job 1 are over, and it is complete.",
        Instance(TWO_NODES, jobs(work=[6, 4]), copies=RULES, stopped_s=8.0),
        (
            (0, 0, 0, 4, 1, 3),
            (0, 1, 0, 4, 1, 3),
            (1, 0, 4, 8, 2, 2),
            (1, 1, 4, 8, 2, 2),
        ),
        (True, True),
        {(2, "steps", -2): "^steps: row 2 .* expected room for one more step"},
    ),
    "window": Example(
        "A copy each. Both do 4 steps by 4; job 0 ends with its sixth at 6, which ends the run. The 2 steps that job 1 "
        "has done since 4 were not added up: it has 4 of 9.",
        Instance(
            TWO_NODES, jobs(work=[6, 9, 1], **LATE), copies=ALONE, until_complete=JobWindow(0, 1)
        ),
        ((0, 0, 0, 4, 0, 4), (1, 1, 0, 4, 0, 4), (0, 0, 4, 6, 0, 2), (1, 1, 4, 6, 0, 0)),
        (True, False, False),
        {
            (3, "end_s", TICK_S): "^steps: row 3 .* or an end with the run",
            (3, "end_s", -TICK_S): "^steps: row 3 .* or an end with the run",
            (0, "steps", -1): "^steps: row 0",
        },
    ),
    "window that is stopped": Example(
        "Stopped at 5, before job 0 is complete: nobody is required.",
        Instance(
            TWO_NODES,
            jobs(work=[6, 9, 1], **LATE),
            copies=ALONE,
            until_complete=JobWindow(0, 1),
            stopped_s=5.0,
        ),
        ((0, 0, 0, 4, 0, 4), (1, 1, 0, 4, 0, 4), (0, 0, 4, 5, 0, 0), (1, 1, 4, 5, 0, 0)),
        (False, False, False),
        {(3, "end_s", TICK_S): "^steps: row 3 .* or an end with the run"},
    ),
    "quotas": Example(
        "The quota is the 2 GPUs of a node. Job 0 holds node 0 whole, though its gang is of one, and a second copy "
        "would be beyond the quota, as job 1 is. It does 8 steps by 4 and the other 4 by 6. The quota has gone at 2: "
        "job 0 goes on all the same. It is back at 7, and job 1 begins with the next round, at 8, on node 0: 1 s for "
        "the restart, and 4 steps on two GPUs take 2 s.",
        Instance(
            replace(TWO_OF_TWO, quotas=quotas((0.0, 2), (2.0, 0), (7.0, 2))),
            jobs(work=[12, 4], tenant=["x", "x"]),
            copies=RULES,
        ),
        ((0, 0, 0, 4, 0, 8), (0, 0, 4, 6, 0, 4), (1, 0, 8, 11, 1, 4)),
        (True, True),
    ),
    "failures": Example(
        "Job 0 has a copy on each node, that do 3 steps each by 4. Node 1 goes down at 2: the copy there has done 1 "
        "step, which is lost, and those of node 0 count. Of 6 steps 3 are left. Node 1 is back at 3, the next round "
        "begins at 4: job 0 does its 3 steps on node 0 by 7, and node 1 owes job 1 a restart. Job 1 does 3 steps by 8, "
        "and the last from 8 to 9.",
        Instance(TWO_NODES, jobs(work=[6, 4]), copies=RULES, failures=down((1, 2.0, 3.0))),
        (
            (0, 0, 0, 4, 1, 3),
            (0, 1, 0, 2, 1, 0),
            (0, 0, 4, 7, 0, 3),
            (1, 1, 4, 8, 1, 3),
            (1, 1, 8, 9, 0, 1),
        ),
        (True, True),
        {
            (
                1,
                "steps",
                1,
            ): "^steps: row 1 .* exactly the time its steps take|^work: job '0' did 7",
            (1, "end_s", -TICK_S): "^steps: row 1 .* or an end with the run or its node",
            (1, "end_s", TICK_S): "^down: row 1 .* the node is down during the run",
            (0, "steps", -3): "^steps: row 0 .* or an end with the run or its node",
            (3, "node", -1): "^copy: row 3 .* expected one copy a node|^copy: row 2",
        },
    ),
    "failures, and a node that is back": Example(
        "One node, which is down from 6 to 7. Job 0 does 4 steps by 4; the 2 that it does until 6 are lost. The node "
        "is back before the next round, at 8, and owes a restart though it ran job 0 last: the 4 steps left take two "
        "rounds, 3 of them by 12.",
        Instance(ONE_NODE, jobs(work=[8]), copies=RULES, failures=down((0, 6.0, 7.0))),
        ((0, 0, 0, 4, 0, 4), (0, 0, 4, 6, 0, 0), (0, 0, 8, 12, 1, 3), (0, 0, 12, 13, 0, 1)),
        (True,),
        {(2, "overhead_s", -1.0): "^overhead: row 2", (3, "overhead_s", 1.0): "^overhead: row 3"},
    ),
    "failures and quotas": Example(
        "As above, of a tenant whose quota goes at 5. The copy that was struck has its node no more: job 0 begins "
        "again, with the first round after 9, when the quota is back.",
        Instance(
            replace(ONE_NODE, quotas=quotas((0.0, 1), (5.0, 0), (9.0, 1))),
            jobs(work=[8], tenant=["x"]),
            copies=RULES,
            failures=down((0, 6.0, 7.0)),
        ),
        ((0, 0, 0, 4, 0, 4), (0, 0, 4, 6, 0, 0), (0, 0, 12, 16, 1, 3), (0, 0, 16, 17, 0, 1)),
        (True,),
    ),
    "restart": Example(
        "Job 0 does 4 steps by 4. Job 1, which came at 1 and is shorter, has the node for a round: 1 s of restart "
        "and 2 steps, by 7. Job 0 had no copy in this round, and keeps none of its 4 steps: from 8 on it does all 9, 3 "
        "of them by 12 after a restart, 4 by 16 and 2 by 18.",
        Instance(
            ONE_NODE,
            jobs(work=[9, 2], arrival_s=[0.0, 1.0]),
            copies=ALONE,
            preemption=Preemption.RESTART,
        ),
        (
            (0, 0, 0, 4, 0, 4),
            (1, 0, 4, 7, 1, 2),
            (0, 0, 8, 12, 1, 3),
            (0, 0, 12, 16, 0, 4),
            (0, 0, 16, 18, 0, 2),
        ),
        (True, True),
        order=ShortestFirst(),
    ),
    "profiles": Example(
        "A node of two GPUs with two CPUs. Job 0, which is half as fast with one CPU for each GPU as with two, does a "
        "step a second on both GPUs: 4 by 4. Job 1 is as fast with one: after a restart of 1 s it does its 4 steps in "
        "2 s.",
        SUPPLIED,
        ((0, 0, 0, 4, 0, 4), (1, 0, 4, 7, 1, 4)),
        (True, True),
        {
            (0, "end_s", -1.0): "^steps: row 0 .* exactly the time its steps take",
            (1, "end_s", TICK_S): "^steps: row 1 .* exactly the time its steps take",
        },
    ),
    "profiles, on no more GPUs than the gang": Example(
        "A copy uses one of the two GPUs, and holds the node whole: with two CPUs for its GPU job 0 does a step a "
        "second again. Job 1 does one as well: 3 by 8, after a restart, and the fourth by 9.",
        SUPPLIED,
        ((0, 0, 0, 4, 0, 4), (1, 0, 4, 8, 1, 3), (1, 0, 8, 9, 0, 1)),
        (True, True),
        {(1, "gpus", 1): "^steps: row 1 .* exactly the time its steps take"},
        width=CopyWidth.GANG,
    ),
}


def rows_of(schedule: Schedule) -> list[Row]:
    names = ("job", "node", "start_s", "end_s", "overhead_s", "steps")
    return list(zip(*(getattr(schedule, name).tolist() for name in names), strict=True))


def made(
    instance: Instance, order: CopyOrder | None = None, width: CopyWidth = CopyWidth.NODE
) -> Schedule:
    """What the loop does, by order of arrival if not said, until the run is stopped or its window complete."""
    chosen = order or ByArrival()
    done = run_copies(replace(instance, stopped_s=None), chosen, width.gpus)
    return ended(instance, done)


@pytest.mark.parametrize("name", EXAMPLES)
def test_loop_and_verifier_agree_with_the_hand(name: str) -> None:
    example = EXAMPLES[name]
    schedule = made(example.instance, example.order, example.width)
    assert sorted(rows_of(schedule), key=lambda row: (row[2], row[0])) == list(example.rows)
    assert verify(example.instance, schedule).tolist() == list(example.complete), example.why


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name in EXAMPLES for change in EXAMPLES[name].refused]
)
def test_other_rows_are_refused(name: str, change: tuple[int, str, float]) -> None:
    example, (row, column, by) = EXAMPLES[name], change
    schedule = made(example.instance, example.order, example.width)
    order = np.lexsort((schedule.node, schedule.job, schedule.start_s))
    schedule = Schedule.from_frame(schedule.to_frame().iloc[order])
    values = getattr(schedule, column).copy()
    values[row] += by
    with pytest.raises(Violation, match=example.refused[change]):
        verify(example.instance, replace(schedule, **{column: values}))


def test_a_copy_that_was_cut_had_steps_left_to_do() -> None:
    """Of 5 steps 4 were done by 4, and one is left: two copies that were cut had one each to do, at least."""
    rows = (
        np.array([0, 0, 0]),
        np.array([0, 0, 1]),
        np.array([1, 1, 1]),
        np.array([0.0, 4.0, 4.0]),
        np.array([4.0, 5.5, 5.5]),
        np.array([0.0, 1.0, 1.0]),
    )
    schedule = Schedule(*rows, copy=np.array([0, 0, 1]), steps=np.array([4, 0, 0]))
    enough = Instance(TWO_NODES, jobs(work=[6]), copies=RULES, stopped_s=5.5)
    assert verify(enough, schedule).tolist() == [False]
    few = replace(enough, workload=jobs(work=[5]))
    with pytest.raises(Violation, match=r"^work: job '0' did 4 steps and was to do 2 more"):
        verify(few, schedule)


def test_a_copy_that_begins_beyond_the_quota_is_refused() -> None:
    """As above, but the quota is there again at 8 only, not at 7, or a tick after 8."""
    example = EXAMPLES["quotas"]
    schedule = made(example.instance)
    cluster = replace(TWO_OF_TWO, quotas=quotas((0.0, 2), (2.0, 0), (8.0, 2)))
    verify(replace(example.instance, cluster=cluster), schedule)
    late = replace(TWO_OF_TWO, quotas=quotas((0.0, 2), (2.0, 0), (8.0 + TICK_S, 2)))
    with pytest.raises(Violation, match=r"^quota: row 2 .* holds nodes of 2 GPUs, its quota is 0"):
        verify(replace(example.instance, cluster=late), schedule)
    # With a second node in the round before, the second round is a beginning on it.
    other = replace(schedule, node=np.array([0, 1, 0]))
    with pytest.raises(Violation, match=r"^quota: row 1 .* its quota is 0"):
        verify(example.instance, other)


def test_who_waits_for_a_quota_for_ever_is_named() -> None:
    """Job 1 could run on the day it comes, when job 0 holds all of the quota, and never again."""
    instance = EXAMPLES["quotas"].instance
    cluster = replace(TWO_OF_TWO, quotas=quotas((0.0, 2), (2.0, 0)))
    with pytest.raises(
        PolicyError, match="job '1' waits for a node within the quota of its tenant"
    ):
        made(replace(instance, cluster=cluster))
    with pytest.raises(InfeasibleJobError, match="needs a node of 2 GPUs: more than any later"):
        replace(instance, cluster=replace(TWO_OF_TWO, quotas=quotas((0.0, 1))))


def test_copies_write_no_checkpoints() -> None:
    failures = replace(down((1, 2.0, 3.0)), checkpoints=Checkpointing(interval_s=1.0))
    with pytest.raises(InputError, match="run as copies and write checkpoints every 1 s"):
        Instance(TWO_NODES, jobs(work=[6, 4]), copies=RULES, failures=failures)


def test_who_waits_for_a_node_that_stays_down_is_named() -> None:
    instance = Instance(ONE_NODE, jobs(work=[8]), copies=RULES, failures=down((0, 6.0, np.inf)))
    with pytest.raises(
        PolicyError, match=r"job '0' waits for a node .* or for one that stays down"
    ):
        made(instance)


def test_copies_go_on_for_as_long_as_faults_are_known_and_metrics_count_what_is_lost() -> None:
    """Faults by law, known until later and later; what a copy that was struck did is lost, of its whole node."""
    law = failures_of("mtbf_s=400,repair_s=40,seed=3")
    cluster = Cluster((Node(2, gpu_type="v100"),) * 3)
    work = [4000.0, 3000.0, 1000.0]
    policy = HadarE("first-come", round_s=60.0, restart_s=5.0)
    outcome = simulate(jobs(work=work), cluster, policy, RunOptions(failures=law))
    s = outcome.schedule
    assert s.end_s.max() < outcome.instance.failures.known_until_s
    struck = s.steps == 0
    assert struck.any()
    lost_s = (s.end_s - s.start_s - s.overhead_s)[struck]
    summary = outcome.summary()
    assert summary["failed_runs"] == struck.sum()
    assert summary["lost_gpu_s"] == pytest.approx(2 * lost_s.sum())
    assert outcome.jobs["failures"].sum() == struck.sum()
    assert outcome.jobs["lost_work_s"].sum() == pytest.approx(lost_s.sum())
    assert 0 < summary["goodput"] < summary["availability"] < 1
    assert summary["checkpoint_gpu_s"] == 0
    certify(outcome, "flow", budget_s=0.0)


def test_what_was_done_before_a_chain_breaks_does_not_count() -> None:
    example = EXAMPLES["restart"]
    schedule, resumed = (
        made(example.instance, ShortestFirst()),
        replace(example.instance, preemption=Preemption.RESUME),
    )
    with pytest.raises(Violation, match=r"^work: job '0' did 11 steps, expected 9"):
        verify(resumed, schedule)
    verify(resumed, made(resumed, ShortestFirst()))
    with pytest.raises(Violation, match=r"^work: job '0' did 5 steps, expected 9"):
        verify(example.instance, made(resumed, ShortestFirst()))
    # Of 4 steps all are done by 4: the job is complete, and may not run again.
    few = replace(example.instance, workload=jobs(work=[4, 2], arrival_s=[0.0, 1.0]))
    with pytest.raises(Violation, match=r"^work: job '0' did 4 steps, which complete it, and runs"):
        verify(few, schedule)


def test_an_order_that_lets_no_job_go_on_is_given_up() -> None:
    """Two jobs in turn on one node, each of which starts from nothing again and again."""

    def in_turn(view: RoundView) -> np.ndarray:
        first = int(view.now_s // 4.0) % 2
        return np.where(view.jobs == first, 1.0, 0.0)[:, None]

    instance = Instance(ONE_NODE, jobs(work=[9, 9]), copies=ALONE, preemption=Preemption.RESTART)
    with pytest.raises(
        PolicyError, match="left jobs without a copy 201 times since one ended, of 2"
    ):
        made(instance, in_turn)


def test_copies_that_make_no_progress_with_what_a_node_has_are_refused() -> None:
    """Job 0 needs two CPUs for each GPU: a copy on both GPUs has one for each, one on a single GPU has two."""
    hungry = Profile(np.array([2.0]), np.array([1.0]), np.array([[1.0]]))
    sensitivity = Sensitivity((hungry, CONTENT), np.array([0, 1]))
    instance = replace(SUPPLIED, sensitivity=sensitivity)
    with pytest.raises(InfeasibleJobError, match="job '0': no step fits a round"):
        made(instance)
    schedule = made(instance, width=CopyWidth.GANG)
    verify(instance, schedule)
    wide = replace(schedule, gpus=schedule.gpus + np.array([1, 0, 0]))
    with pytest.raises(Violation, match=r"^resources: row 0 .* no progress with all CPUs"):
        verify(instance, wide)


def test_copies_with_profiles_have_certificates() -> None:
    outcome = Outcome.verified(SUPPLIED, made(SUPPLIED), policy="hadare")
    assert certify(outcome, "flow", budget_s=0.0).ratio >= 1


def test_models_are_trained_by_what_counts() -> None:
    """Of job 0 the 9 steps of its last chain, not the 4 before; of 6 steps none that was done on a node that failed."""
    example = EXAMPLES["restart"]
    losses = LocalSgd().train(example.instance, made(example.instance, example.order))
    assert losses.steps.tolist() == [9, 2]
    failing = EXAMPLES["failures"].instance
    losses = LocalSgd().train(failing, made(failing))
    assert (losses.steps.tolist(), losses.averages.tolist()) == ([6, 4], [0, 0])


@pytest.mark.parametrize("name", EXAMPLES)
def test_run_directories_keep_what_copies_are_told(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    schedule = made(example.instance, example.order, example.width)
    outcome = Outcome.verified(example.instance, schedule, policy="hadare")
    save(outcome, tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.instance.features == example.instance.features
    assert rows_of(again.schedule) == rows_of(schedule)
    assert again.summary() == outcome.summary()


def test_who_was_struck_begins_anew_where_there_are_quotas() -> None:
    schedule = made(EXAMPLES["failures, and a node that is back"].instance)
    with pytest.raises(Violation, match=r"^quota: row 2 .* nodes of 1 GPUs, its quota is 0"):
        verify(EXAMPLES["failures and quotas"].instance, schedule)


def test_no_copy_goes_on_until_nobody_knows_faults() -> None:
    instance = EXAMPLES["failures, and a node that is back"].instance
    schedule, failures = made(instance), instance.failures
    assert failures is not None
    verify(replace(instance, failures=replace(failures, known_until_s=13.0 + TICK_S)), schedule)
    with pytest.raises(Violation, match=r"^down: row 3 .* goes on after 13.0 s, and faults"):
        verify(replace(instance, failures=replace(failures, known_until_s=13.0)), schedule)
