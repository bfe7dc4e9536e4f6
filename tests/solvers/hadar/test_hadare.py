"""HadarE: copies lose no step and leave no node idle; what the verifier refuses; metrics by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shadowprice.analysis import run_metrics
from shadowprice.analysis.optimum import optimum
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.simulate import simulate
from shadowprice.analysis.utility.compare import expect_comparable
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError, VerificationError
from shadowprice.execution.copies import simulation
from shadowprice.execution.copies.hadare import CopyWidth, HadarE
from shadowprice.execution.copies.local_sgd import LocalSgd, _Problem
from shadowprice.execution.copies.simulation import run_copies
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules, total_steps
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.hadar import copies_work as hadare_work
from shadowprice.proofs.lower_bounds import fluid, mbt
from shadowprice.proofs.lower_bounds import job as alone
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.hadar.copy_assignment import (
    ByArrival,
    CopyOrder,
    Payoff,
    RoundView,
    ShortestFirst,
    assign,
    split_steps,
)
from shadowprice.solvers.offline.bounds import Relaxation
from support.copies import in_copies

TYPES = ("v100", "p100", "k80")
ORDERS: list[CopyOrder] = [Payoff(), ShortestFirst(), ByArrival()]


@st.composite
def mixed(draw: st.DrawFn) -> Instance:
    """A few nodes of three types, and jobs with rates that may be 0 on some."""
    sizes = st.tuples(st.integers(1, 4), st.sampled_from(TYPES))
    nodes = draw(st.lists(sizes, min_size=1, max_size=4))
    cluster = Cluster(tuple(Node(gpus, name) for gpus, name in nodes))
    kinds = sorted(set(cluster.gpu_types))
    row = st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5, 7.0]), min_size=3, max_size=3).filter(
        lambda rates: any(rates[TYPES.index(name)] for name in kinds)
    )
    jobs = draw(st.integers(1, 5))
    column = {"min_size": jobs, "max_size": jobs}
    workload = Workload.from_columns(
        arrival_s=draw(st.lists(st.integers(0, 300), **column)),
        gpus=np.ones(jobs),
        work=draw(st.lists(st.integers(1, 2000), **column)),
        throughput=draw(st.lists(row, **column)),
        gpu_types=TYPES,
    )
    return Instance(cluster, workload)


@st.composite
def switches(draw: st.DrawFn) -> HadarE:
    """Rounds from short to long, with and without charges."""
    return HadarE(
        order=draw(st.sampled_from(ORDERS)),
        round_s=draw(st.sampled_from([20.0, 60.5, 360.0])),
        restart_s=draw(st.sampled_from([0.0, 10.0])),
        aggregation_s=draw(st.sampled_from([0.0, 2.25])),
        max_copies=draw(st.sampled_from([0, 1, 2])),
        width=draw(st.sampled_from(CopyWidth)),
    )


def small(**changes: object) -> tuple[Instance, Schedule]:
    """Two nodes, two jobs: both have two copies in some round, the second ends in two parts."""
    workload = Workload.from_columns(
        arrival_s=[0, 5],
        gpus=[1, 1],
        work=[40, 70],
        throughput=[[2.0, 1.0], [3.0, 1.0]],
        gpu_types=("v100", "k80"),
    )
    instance = Instance(Cluster.parse("1x1:v100,1x1:k80"), workload)
    options = HadarE(order=ByArrival(), round_s=10.0, restart_s=1.0, aggregation_s=0.5)
    return in_copies(instance, replace(options, **changes))


# The loop.


@given(instance=mixed(), options=switches())
def test_no_step_is_lost_and_every_schedule_is_accepted(
    instance: Instance, options: HadarE
) -> None:
    instance, schedule = in_copies(instance, options)
    verify(instance, schedule)
    done = np.bincount(schedule.job, weights=schedule.steps, minlength=len(instance.workload))
    assert done.tolist() == instance.workload.work.tolist()
    assert hadare_work.check(instance, schedule)


TAKEN_OVER = Instance(
    Cluster.parse("1x1:v100,1x1:k80"),
    Workload.from_columns(
        arrival_s=[0, 0, 1],
        gpus=[1, 1, 1],
        work=[1, 1, 1],
        gpu_types=TYPES,
        throughput=[[0, 0, 0.3], [0, 0, 0.3], [0.3, 0, 1]],
    ),
)
"""A further copy could do all steps of a job, and leave the node it was served with idle."""


@example(instance=TAKEN_OVER, options=HadarE(round_s=20.0, restart_s=10.0))
@given(instance=mixed(), options=switches())
def test_no_node_is_idle_while_work_remains(instance: Instance, options: HadarE) -> None:
    """With k = n, said again without the theorem's file: by round, node and job."""
    options = replace(options, max_copies=0)
    instance, schedule = in_copies(instance, options)
    frame, left = schedule.to_frame(), total_steps(instance.workload)
    room_s = options.round_s - options.restart_s - options.aggregation_s
    for begin_s, rows in frame.groupby("start_s"):
        there = instance.workload.arrival_s <= begin_s
        for job, steps in rows.groupby("job")["steps"].sum().items():
            left[job] -= steps
        for job in np.flatnonzero(there & (left > 0)):
            for node in set(range(len(instance.cluster.nodes))) - set(rows["node"]):
                name = instance.cluster.nodes[node].gpu_type
                rate = instance.workload.throughput[job, TYPES.index(name)]
                assert rate * room_s < 1.0 + 1e-6


def test_fewer_copies_than_nodes_leave_nodes_idle() -> None:
    workload = Workload.from_columns(arrival_s=[0], gpus=[1], work=[1000])
    instance = Instance(Cluster.parse("3x1"), workload)
    busy = [
        np.count_nonzero(in_copies(instance, HadarE(round_s=20.0, max_copies=k))[1].start_s == 0)
        for k in (1, 2, 3)
    ]
    assert busy == [1, 2, 3]


@given(
    instance=instances(max_nodes=1),
    policy=st.sampled_from([(Srtf(), ShortestFirst()), (Fifo(), ByArrival())]),
    round_s=st.sampled_from([7.0, 16.0]),
)
def test_on_one_node_it_is_the_run_without_copies(
    instance: Instance,
    policy: tuple[Srtf | Fifo, CopyOrder],
    round_s: float,
) -> None:
    """The engine on gangs of the whole node, served in the same order round by round."""
    everything = np.full(len(instance.workload), instance.cluster.total_gpus)
    columns = {"arrival_s": instance.workload.arrival_s, "work": instance.workload.work}
    instance = Instance(instance.cluster, Workload.from_columns(gpus=everything, **columns))
    schedule = run(instance, policy[0], rounds=Rounds(round_s)).schedule
    options = HadarE(order=policy[1], round_s=round_s, restart_s=0.0)
    _, copies = in_copies(instance, options)
    ends = [
        [float(rows.end_s[rows.job == job].max()) for job in range(len(everything))]
        for rows in (schedule, copies)
    ]
    assert ends[0] == ends[1]


def test_shares_of_a_round_are_in_proportion_to_throughput() -> None:
    _, schedule = small(restart_s=0.0, aggregation_s=0.0)
    assert schedule.steps is not None
    assert schedule.steps[schedule.start_s == 0.0].tolist() == [20, 10]
    steps = split_steps(10**9, [Fraction(7, 3), Fraction(1, 3), Fraction(5)], [0, 0, 0], 1000)
    assert steps == [2333, 333, 5000]


@given(
    rates=st.lists(st.fractions(Fraction(1, 50), 5), min_size=1, max_size=4),
    owed=st.lists(st.integers(0, 30), min_size=4, max_size=4),
    remaining=st.integers(1, 60),
)
def test_copies_of_a_last_round_end_together_up_to_one_step(
    rates: list[Fraction], owed: list[int], remaining: int
) -> None:
    length, owed = 60, owed[: len(rates)]
    steps = split_steps(remaining, rates, owed, length)
    ends = [lost + count / rate for count, rate, lost in zip(steps, rates, owed, strict=True)]
    assert all(end <= length for end, count in zip(ends, steps, strict=True) if count)
    if sum(steps) < remaining:
        after = [end + 1 / rate for end, rate in zip(ends, rates, strict=True)]
        assert all(end > length for end in after)
        return
    assert sum(steps) == remaining
    last = max(end for end, count in zip(ends, steps, strict=True) if count)
    assert all(end + 1 / rate >= last for end, rate in zip(ends, rates, strict=True))


@given(
    rates=st.lists(st.fractions(Fraction(1, 9), 3), min_size=1, max_size=3),
    owed=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    remaining=st.integers(1, 7),
)
def test_no_split_ends_earlier(rates: list[Fraction], owed: list[int], remaining: int) -> None:
    """By enumeration of all splits."""

    def last(steps: tuple[int, ...] | list[int]) -> Fraction:
        return max(o + s / x for s, x, o in zip(steps, rates, owed, strict=False) if s)

    splits = itertools.product(range(remaining + 1), repeat=len(rates))
    best = min(last(steps) for steps in splits if sum(steps) == remaining)
    found = split_steps(remaining, rates, owed[: len(rates)], 1000)
    assert sum(found) == remaining
    assert last(found) == best


def test_a_node_owes_a_restart_only_when_it_changes_jobs() -> None:
    _, schedule = small(aggregation_s=0.0)
    by_node = schedule.to_frame().sort_values(["node", "start_s"])
    changed = (by_node["node"].diff() == 0) & (by_node["job"].diff() != 0)
    assert by_node["overhead_s"].tolist() == changed.astype(float).tolist()
    assert changed.any()
    assert not changed.all()


def test_copies_of_a_job_have_numbers_of_their_own_in_each_round() -> None:
    _, schedule = small()
    frame = schedule.to_frame()
    assert not frame.duplicated(["job", "copy", "start_s"]).any()
    assert sorted(set(frame["copy"])) == [0, 1]


def test_a_copy_uses_the_node_or_no_more_than_the_gang() -> None:
    workload = Workload.from_columns(arrival_s=[0], gpus=[2], work=[100])
    instance = Instance(Cluster.parse("1x8"), workload)
    _, wide = in_copies(instance)
    _, narrow = in_copies(instance, HadarE(width=CopyWidth.GANG))
    assert (wide.gpus.tolist(), wide.end_s.max()) == ([8], 25.0)
    assert (narrow.gpus.tolist(), narrow.end_s.max()) == ([2], 100.0)


def test_copies_without_a_step_are_not_made() -> None:
    """Ten steps on two fast nodes end before the slow one has done one."""
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[10], throughput=[[1.0, 0.1]], gpu_types=("v100", "k80")
    )
    instance = Instance(Cluster.parse("1x1:k80,2x1:v100"), workload)
    instance, schedule = in_copies(instance, HadarE(round_s=30.0, aggregation_s=2.0))
    verify(instance, schedule)
    assert sorted(schedule.node.tolist()) == [1, 2]
    assert schedule.steps.tolist() == [5, 5]
    assert schedule.end_s.tolist() == [7.0, 7.0]
    # A single step needs no second copy, hence no averaging.
    one = replace(workload, work=np.array([1.0]))
    _, alone = in_copies(replace(instance, workload=one), HadarE(round_s=30.0, aggregation_s=2.0))
    assert alone.end_s.tolist() == [1.0]


def test_two_nodes_never_go_on_with_one_copy() -> None:
    """Copy 1 was on node 0, then on node 2 while node 0 was idle; now both are wanted."""
    liked = {0.0: (2, 1, 0), 10.0: (0, 2, 1), 20.0: (2, 0, 1)}

    def by_round(view: RoundView) -> np.ndarray:
        return np.array([liked.get(view.now_s, (0, 0, 0))]) + 0.0 * view.rates

    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[70], throughput=[[1.0] * 3], gpu_types=TYPES
    )
    instance = Instance(Cluster.parse("1x1:v100,1x1:p100,1x1:k80"), workload)
    instance, schedule = in_copies(instance, HadarE(by_round, 10.0, 0.0, max_copies=2))
    verify(instance, schedule)
    assert schedule.node[:6].tolist() == [0, 1, 1, 2, 0, 2]
    assert schedule.copy[:4].tolist() == [0, 1, 1, 0]


# Orders.


def two_jobs() -> RoundView:
    """Equal jobs on two classes, at 100 s; the first has waited since 0."""
    return RoundView(
        now_s=100.0,
        jobs=np.arange(2),
        total_steps=np.array([100, 100]),
        remaining_steps=np.array([100, 100]),
        rates=np.array([[10.0, 8.0], [10.0, 8.0]]),
        arrival_s=np.array([0.0, 100.0]),
        waiting_s=np.array([100.0, 0.0]),
        load=np.zeros(2),
    )


def test_a_payoff_falls_with_waiting_and_prices_turn_jobs_away_from_loaded_types() -> None:
    view = two_jobs()
    scores = Payoff()(view)
    assert (scores[1] > scores[0]).all()
    assert (scores[:, 0] > scores[:, 1]).all()
    loaded = Payoff()(replace(view, load=np.array([1.0, 0.0])))
    assert (loaded[:, 0] < loaded[:, 1]).all()


def test_a_utility_can_be_the_value() -> None:
    def deadline(view: RoundView, completion_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Worth 2 to the second job up to 111 s, nothing else is worth anything."""
        return np.where((view.jobs[:, None] == 1) & (completion_s <= 111.0), 2.0, 0.0)

    scores = Payoff(deadline)(two_jobs())
    assert (scores > 0).tolist() == [[False, False], [True, False]]
    with pytest.raises(PolicyError, match=r"the value of job 0 at 100.0 s is negative"):
        Payoff(lambda view, completion_s: -np.ones_like(completion_s))(two_jobs())


def test_a_node_that_a_job_could_do_without_goes_to_the_next() -> None:
    """The first job asks for node 0 first, where it can do 2 steps; node 1 alone does its 100."""
    rooms = {(0, 0): 2, (0, 1): 100, (1, 0): 5, (1, 1): 5}
    grants = assign(
        two_jobs(),
        ByArrival(),
        np.array([0, 1]),
        lambda position: range(2),
        lambda position, node, several: rooms[position, node],
        lambda position: 2,
    )
    assert [(grant.position, grant.nodes) for grant in grants] == [(0, [1]), (1, [0])]


def test_the_order_is_a_parameter() -> None:
    def last_come(view: RoundView) -> np.ndarray:
        return view.arrival_s[:, None] + 0.0 * view.rates

    workload = Workload.from_columns(arrival_s=[0, 1, 2], gpus=[1] * 3, work=[30] * 3)
    instance = Instance(Cluster.parse("1x1"), workload)
    options = HadarE(order=last_come, round_s=10.0, restart_s=0.0)
    _, schedule = in_copies(instance, options)
    assert schedule.job.tolist() == [0, 2, 2, 2, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("scores", [np.zeros(1), np.full((2, 2), np.nan)])
def test_scores_that_are_none_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(PolicyError, match=r"at \d.* s the order returned scores of shape"):
        small(order=lambda view: scores)


# What is refused.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round_s": 0.1}, "round_s is 0.1"),
        ({"restart_s": -1.0}, "restart_s is -1.0"),
        ({"restart_s": 300.0, "aggregation_s": 60.0}, "round_s is 360.0"),
        ({"max_copies": -1}, "max_copies is -1, expected at least 1, or 0"),
        ({"order": "fifo"}, "order is 'fifo', expected one of payoff"),
        ({"width": "half"}, "width is 'half', expected one of node, gang"),
    ],
)
def test_switches_out_of_range_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        HadarE(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round_s": 0.1}, "copies: round_s is 0.1, expected seconds >= 0, a multiple"),
        ({"aggregation_s": math.nan}, "copies: aggregation_s is nan"),
        ({"aggregation_s": 9.0}, "copies: round_s is 10.0, expected more than .* 10.0"),
        ({"max_copies": 0}, "copies: max_copies is 0, expected 1 to"),
    ],
)
def test_rules_out_of_range_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(CopyRules(10.0, 1.0, 0.5, 2), **changes)  # type: ignore[arg-type]


def test_instances_it_cannot_run_are_refused() -> None:
    cluster = Cluster.parse("1x1:v100")
    columns = {"arrival_s": [0], "gpus": [1], "gpu_types": ("v100",)}
    half = Workload.from_columns(work=[3.5], throughput=[[1.0]], **columns)
    with pytest.raises(InputError, match=r"job '0': work is 3\.5, expected a whole number"):
        in_copies(Instance(cluster, half))
    slow = Workload.from_columns(work=[3], throughput=[[0.001]], **columns)
    with pytest.raises(InfeasibleJobError, match="job '0': no step fits a round"):
        in_copies(Instance(cluster, slow))
    costly = Instance(cluster, half, Overheads(restart_s=3.0))
    with pytest.raises(InputError, match="both say what a beginning costs"):
        in_copies(costly)
    locality = Locality(np.array([0.5]))
    with pytest.raises(
        InputError, match="slowdowns of spread gangs and jobs that run as several copies"
    ):
        in_copies(Instance(cluster, slow, locality=locality))
    pairs = Throughputs(("v100",), {}, {})
    with pytest.raises(
        InputError, match="rates of jobs that share GPUs and jobs that run as several copies"
    ):
        in_copies(Instance(cluster, slow, sharing_rates=pairs))
    with pytest.raises(InputError, match="has no rules of copies"):
        run_copies(Instance(cluster, slow), Payoff(), max)


MUTATIONS = [
    ("job", 0, 7, "row"),
    ("node", 0, 2, "row"),
    ("copy", 0, 2, "copy"),
    ("copy", 0, -1, "copy"),
    ("gpus", 0, 2, "node"),
    ("gpus", 0, 0, "row"),
    ("partner", 0, 1, "copies"),
    ("start_s", 0, -1.0, "row"),
    ("start_s", 0, 0.5, "round"),
    ("start_s", 2, 9.5, "round"),
    ("end_s", 0, math.nan, "row"),
    ("end_s", 0, 9.0 + 2.0**-21, "grid"),
    ("end_s", 0, 10.5, "round"),
    ("end_s", 0, 9.0, "steps"),
    ("node", 1, 0, "copy"),
    ("copy", 1, 0, "copy"),
    ("overhead_s", 0, 0.0, "overhead"),
    ("overhead_s", 0, 1.0, "overhead"),
    ("steps", 0, 0, "steps"),
    ("steps", 0, 18, "steps"),
]


@pytest.mark.parametrize(("column", "row", "value", "rule"), MUTATIONS)
def test_a_changed_schedule_is_refused(column: str, row: int, value: float, rule: str) -> None:
    instance, schedule = small()
    verify(instance, schedule)
    values = getattr(schedule, column).copy()
    values[row] = value
    with pytest.raises(Violation, match=rf"^{rule}: ") as refused:
        verify(instance, replace(schedule, **{column: values}))
    assert refused.value.rule == rule


FAULTS: dict[str, Callable[[Any], object]] = {
    "_rate": lambda rate: 2 * rate,
    "_owed": lambda ticks: ticks // 2,
    "_copy_numbers": lambda numbers: [0] * len(numbers),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_loop_are_found_by_the_verifier(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = getattr(simulation._Loop, name), FAULTS[name]
    verify(*small())
    monkeypatch.setattr(simulation._Loop, name, lambda *given: wrong(right(*given)))
    with pytest.raises(Violation):
        verify(*small())


def with_rules(instance: Instance, **changes: float) -> Instance:
    assert instance.copies is not None
    return replace(instance, copies=replace(instance.copies, **changes))  # type: ignore[arg-type]


def test_schedules_that_break_one_rule_as_a_whole_are_refused() -> None:
    instance, schedule = small()
    one_copy, alone = small(max_copies=1)
    fewer = Schedule.from_frame(alone.to_frame().iloc[:-1])
    with pytest.raises(Violation, match="work: job '1' did") as refused:
        verify(one_copy, fewer)
    assert refused.value.job == 1
    with pytest.raises(Violation, match=r"copy: .* from 0 to 0"):
        verify(with_rules(instance, max_copies=1), schedule)
    later = replace(instance.workload, arrival_s=np.array([0.0, 25.0]))
    with pytest.raises(Violation, match=r"release: .* before the job arrives"):
        verify(replace(instance, workload=later), schedule)
    none = replace(instance.workload, throughput=np.array([[2.0, 0.0], [3.0, 1.0]]))
    with pytest.raises(Violation, match=r"type: .* no throughput on"):
        verify(replace(instance, workload=none), schedule)
    with pytest.raises(Violation, match=r"round: .* rounds 11\.0 s apart"):
        verify(with_rules(instance, round_s=11.0), schedule)


def test_a_copy_ends_at_the_end_of_its_round_and_no_tick_later() -> None:
    instance, schedule = small()
    longest_s = float((schedule.end_s - schedule.start_s).max())
    verify(with_rules(instance, round_s=longest_s), schedule)
    shorter_s = longest_s - 2.0**-20
    with pytest.raises(Violation, match=r"round: .* expected an end within the round"):
        verify(with_rules(instance, round_s=shorter_s), schedule)


def test_a_round_begins_when_the_last_one_is_over_and_no_tick_earlier() -> None:
    instance, schedule = small()
    between_s = float(np.diff(np.unique(schedule.start_s)).min())
    verify(with_rules(instance, round_s=between_s), schedule)
    with pytest.raises(Violation, match=r"round: .* s apart"):
        verify(with_rules(instance, round_s=between_s + 2.0**-20), schedule)


def test_a_copy_without_a_step_is_refused_even_where_it_pays_its_charges() -> None:
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[20], throughput=[[1.0]], gpu_types=("gpu",)
    )
    rules = CopyRules(30.0, 1.0, 2.0, 2)
    instance = Instance(Cluster.parse("2x1"), workload, copies=rules)
    job, start = np.array([0, 0]), np.zeros(2)
    rows = (job, np.array([0, 1]), np.array([1, 1]), start, np.array([12.0, 12.0]), start + 2.0)
    both = Schedule(*rows, copy=np.array([0, 1]), steps=np.array([10, 10]))
    verify(instance, both)
    one = replace(both, end_s=np.array([22.0, 2.0]), steps=np.array([20, 0]))
    with pytest.raises(Violation, match=r"^steps: row 1 .* at least one step"):
        verify(instance, one)


def test_a_copy_does_as_much_of_its_gang_as_it_has_gpus() -> None:
    """A gang of two GPUs does four steps a second, so two on a node of one GPU."""
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[2], work=[60], throughput=[[4.0]], gpu_types=("gpu",)
    )
    instance = Instance(Cluster.parse("1x2,1x1"), workload, copies=CopyRules(30.0, 1.0, 2.0, 2))
    ends_s, start = np.array([12.0, 12.0]), np.zeros(2)
    rows = (np.array([0, 0]), np.array([0, 1]), np.array([2, 1]), start, ends_s, start + 2.0)
    both = Schedule(*rows, copy=np.array([0, 1]), steps=np.array([40, 20]))
    verify(instance, both)
    for steps in ([20, 40], [30, 30]):
        with pytest.raises(Violation, match=r"^steps: "):
            verify(instance, replace(both, steps=np.array(steps)))
    fast = replace(both, end_s=np.array([7.0, 7.0]))
    with pytest.raises(Violation, match=r"^steps: "):
        verify(instance, fast)


def test_copies_of_jobs_without_throughputs_do_ticks() -> None:
    """A gang of two GPUs and 7.5 s: on one node of two as it was asked for, on one of one half as fast."""
    workload = Workload.from_columns(arrival_s=[0], gpus=[2], work=[7.5])
    instance = Instance(Cluster.parse("1x2,1x1"), workload)
    instance, schedule = in_copies(instance, HadarE(round_s=30.0))
    assert schedule.end_s.tolist() == [5.0, 5.0]
    assert sorted(schedule.steps.tolist()) == [int(2.5 * 2**20), 5 * 2**20]
    verify(instance, schedule)
    for column, by, rule in (("steps", 1, "steps"), ("end_s", 2.0**-20, "steps")):
        values = getattr(schedule, column).copy()
        values[0] += by
        with pytest.raises(Violation, match=f"^{rule}: "):
            verify(instance, replace(schedule, **{column: values}))
    longer = replace(workload, work=np.array([7.5 + 2.0**-20]))
    with pytest.raises(Violation, match=r"^work: job '0' did 7864320 steps, expected 7864321"):
        verify(replace(instance, workload=longer), schedule)


def test_copies_and_gangs_are_not_mixed() -> None:
    """A schedule of the one is no schedule of the other, and what is about gangs refuses copies."""
    instance, schedule = small()
    gangs = replace(instance, copies=None)
    with pytest.raises(
        Violation, match="copies: the schedule has copies, its jobs run as one gang"
    ):
        verify(gangs, schedule)
    for missing in ("copy", "steps"):
        with pytest.raises(Violation, match="copies: the schedule has no columns of copies"):
            verify(instance, replace(schedule, **{missing: None}))
    for column in ("cpus", "memory_gb"):
        more = replace(schedule, **{column: np.ones(len(schedule))})
        with pytest.raises(Violation, match=f"copies: the schedule has a column {column}"):
            verify(instance, more)
    outcome = Outcome(instance, schedule, "hadare")
    refusals: list[Callable[[], object]] = [
        lambda: optimum(instance, objective="flow"),
        lambda: Relaxation.of(instance),
        *(partial(each.bound, instance) for each in (fluid, alone, mbt)),
        lambda: expect_comparable(outcome, instance),
        lambda: run(instance, Fifo()),
    ]
    for refused in refusals:
        with pytest.raises(InputError, match="several copies"):
            refused()
    copied = ScheduleClass.used(instance, schedule)
    for other in (
        ScheduleClass(preemptive=True),
        ScheduleClass.used(gangs, run(gangs, Fifo()).schedule),
    ):
        assert not copied.contains(other)
        assert not other.contains(copied)
    with pytest.raises(InputError, match="one gang"):
        hadare_work.check(gangs, run(gangs, Fifo()).schedule)
    with pytest.raises(InputError, match="one gang"):
        LocalSgd().train(gangs, run(gangs, Fifo()).schedule)


def test_a_schedule_of_copies_survives_its_frame() -> None:
    instance, schedule = small()
    again = Schedule.from_frame(schedule.to_frame())
    verify(instance, again)
    assert again.to_frame().equals(schedule.to_frame())
    with pytest.raises(Violation, match="no columns of copies"):
        verify(instance, Schedule.from_frame(schedule.to_frame().drop(columns="steps")))


# The theorem.


@pytest.mark.parametrize("nodes", range(1, 5))
def test_most_busy_nodes_by_enumeration(nodes: int) -> None:
    """Every way to give each node to a job or to nobody."""
    for jobs, copies in itertools.product(range(1, 4), range(1, 5)):
        most = max(
            sum(job < jobs for job in given)
            for given in itertools.product(range(jobs + 1), repeat=nodes)
            if all(given.count(job) <= copies for job in range(jobs))
        )
        assert most == hadare_work.bound(nodes, copies, jobs)
        # k = n is what one job needs.
        assert (most == nodes) == (copies * jobs >= nodes)


def test_the_check_of_the_theorem_can_fail() -> None:
    instance, schedule = small(max_copies=1)
    assert hadare_work.check(instance, schedule)
    # The same schedule with two copies allowed: a node is idle while a job goes on.
    assert not hadare_work.check(with_rules(instance, max_copies=2), schedule)
    _, both = small()
    assert not hadare_work.check(instance, both)


# Local SGD.


def test_local_sgd_is_a_function_of_its_seed_and_learns() -> None:
    instance, schedule = small()
    one, again, other = (LocalSgd(seed=seed).train(instance, schedule) for seed in (3, 3, 4))
    assert one.to_frame().equals(again.to_frame())
    assert not one.to_frame().equals(other.to_frame())
    assert (one.in_copies < one.initial).all()
    assert (one.one_copy < one.initial).all()
    assert one.steps.tolist() == [40, 70]
    assert (one.averages > 0).all()


def test_one_copy_is_training_in_one_piece() -> None:
    losses = LocalSgd().train(*small(max_copies=1))
    assert losses.averages.tolist() == [0, 0]
    assert losses.in_copies.tolist() == losses.one_copy.tolist()


def test_models_are_averaged_with_steps_as_weights() -> None:
    """One round of two copies by hand: averages of gradients for one step each."""
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[4], throughput=[[1.0, 3.0]], gpu_types=("k80", "v100")
    )
    instance = Instance(Cluster.parse("1x1:k80,1x1:v100"), workload)
    instance, schedule = in_copies(instance)
    assert schedule.steps is not None
    assert schedule.steps.tolist() in ([1, 3], [3, 1])
    sgd = LocalSgd()
    problem = _Problem(sgd, 0)
    parts = [
        steps * problem.steps(problem.start, problem.stream(copy), steps)
        for copy, steps in zip(schedule.copy.tolist(), schedule.steps.tolist(), strict=True)
    ]
    expected = problem.loss(sum(parts) / 4)
    assert sgd.train(instance, schedule).in_copies[0] == pytest.approx(expected, rel=1e-12)


def test_many_steps_are_scaled_to_as_many_as_allowed() -> None:
    instance, schedule = small()
    losses = LocalSgd(max_steps=20).train(instance, schedule)
    assert losses.steps.tolist() == [20, 20]
    with pytest.raises(InputError, match="max_steps is 0"):
        LocalSgd(max_steps=0)


# Metrics.


def test_metrics_of_copies_by_hand() -> None:
    """Two nodes at 1 and 2 steps/s, rounds of 10 s, no charges: 60 steps, then 15."""
    workload = Workload.from_columns(
        arrival_s=[0, 5],
        gpus=[1, 1],
        work=[60, 15],
        throughput=[[1.0, 2.0], [1.0, 2.0]],
        gpu_types=("k80", "v100"),
    )
    instance = Instance(Cluster.parse("1x1:k80,1x1:v100"), workload)
    options = HadarE(order=ByArrival(), round_s=10.0, restart_s=0.0)
    outcome = Outcome(*in_copies(instance, options), "hadare")
    found = run_metrics.of_schedule(outcome.instance, outcome.schedule)
    # The first runs from 0 to 20, the second from 20 to 25 with 5 and 10 steps.
    assert found.ttd_s == 25.0
    assert found.cru == 1.0
    assert (found.mean_jct_s, found.median_jct_s) == (20.0, 20.0)
    assert found.mean_queueing_s == 15.0 / 2
    assert found.mean_first_wait_s == 15.0 / 2
    # 1.75 jobs are present while either is: more than half of each type, scaled down to all the
    # time, half of it on each type: 1.5 steps/s, 40 s and 10 s.
    assert found.mean_ftf == pytest.approx((20 / 40 + 20 / 10) / 2)
    assert found.max_ftf == pytest.approx(2.0)
    three = run_metrics.of_schedule(outcome.instance, outcome.schedule, sharing=3)
    assert three.max_ftf == pytest.approx(20 / 15)
    with pytest.raises(InputError, match="sharing is 0"):
        run_metrics.of_schedule(outcome.instance, outcome.schedule, sharing=0)


def test_metrics_of_a_schedule_by_hand() -> None:
    """Two GPUs: one job of one GPU from 0 to 10, one of two from 10 to 14 that came at 4."""
    workload = Workload.from_columns(arrival_s=[0, 4], gpus=[1, 2], work=[10, 4])
    instance = Instance(Cluster.parse("1x2"), workload)
    rows = ([0, 1], [0, 0], [1, 2], [0.0, 10.0], [10.0, 14.0], [0.0, 0.0])
    schedule = Schedule(*(np.array(column) for column in rows))
    outcome = Outcome(instance, schedule, "by hand")
    found = run_metrics.of_schedule(outcome.instance, outcome.schedule)
    assert (found.ttd_s, found.cru) == (14.0, 18 / 28)
    assert (found.mean_jct_s, found.mean_queueing_s, found.mean_first_wait_s) == (10.0, 3.0, 3.0)
    assert found.p95_jct_s == 10.0
    # 1.6 jobs present: all the time of the one GPU, 10 s, and 1 / 1.6 of the two-GPU job's, 6.4 s.
    assert found.mean_ftf == pytest.approx((10 / 10 + 10 / 6.4) / 2)


def test_a_job_waits_for_no_copy_that_ended_before_the_others() -> None:
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[3], throughput=[[1.0]], gpu_types=("gpu",)
    )
    instance = Instance(Cluster.parse("2x1"), workload)
    instance, schedule = in_copies(instance)
    assert schedule.end_s.tolist() == [2.0, 1.0]
    found = run_metrics.of_schedule(instance, schedule)
    assert (found.mean_jct_s, found.mean_queueing_s, found.cru) == (2.0, 0.0, 0.75)
    with pytest.raises(VerificationError, match="steps: "):
        Outcome(instance, replace(schedule, end_s=np.array([2.0, 2.0])), "hadare")


def test_an_isolated_share_is_no_more_than_all_the_time() -> None:
    workload = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 4], work=[10, 10])
    instance = Instance(Cluster.parse("1x4"), workload)
    assert run_metrics.isolated_s(instance, 1).tolist() == [10.0, 10.0]
    assert run_metrics.isolated_s(instance, 2).tolist() == [10.0, 20.0]
    assert run_metrics.isolated_s(instance, 8).tolist() == [20.0, 80.0]


def test_there_may_be_no_jobs() -> None:
    workload = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    instance = Instance(Cluster.parse("2x1"), workload)
    outcome = simulate(workload, instance.cluster, "hadare")
    found = run_metrics.of_schedule(outcome.instance, outcome.schedule)
    assert (found.ttd_s, found.mean_jct_s, found.max_ftf) == (0.0, None, None)
    assert len(outcome.schedule) == 0
    assert outcome.summary()["mean_copies"] is None
    losses = LocalSgd().train(outcome.instance, outcome.schedule)
    assert losses.sentence() == "no jobs, so no models were trained"
    assert hadare_work.check(outcome.instance, outcome.schedule)


@pytest.mark.slow
def test_two_thousand_jobs() -> None:
    rng = np.random.default_rng(0)
    rate = rng.uniform(1, 20, 2000)[:, None] * np.array([1.0, 0.5, 0.2])
    workload = Workload.from_columns(
        arrival_s=np.zeros(2000),
        gpus=rng.choice([1, 2, 4], 2000),
        work=np.floor(rate[:, 0] * 60 * 10 ** rng.uniform(1.5, 3.5, 2000)),
        throughput=rate,
        gpu_types=TYPES,
    )
    instance = Instance(Cluster.parse("5x4:v100,5x4:p100,5x4:k80"), workload)
    instance, schedule = in_copies(instance)
    verify(instance, schedule)
    assert hadare_work.check(instance, schedule)
