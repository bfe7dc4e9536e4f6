"""Goodput: courses by hand, what the verifier refuses, whom others slow, and bounds that no schedule is below."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import (
    InstanceWithJobs,
    written_with_jobs,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Application, Batching, BatchRecord
from shadowprice.instances.goodput.course import UNIT, Course, Position, lengths_of, per_tick
from shadowprice.instances.goodput.relaxation import Aim, weighed
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.lower_bounds import goodput as lb_goodput
from shadowprice.solvers.registry import policy
from support.goodput_tables import small
from support.scripted import Scripted

TERM = Goodput((small("m"),))
NODES = Cluster.load("2x2")


def jobs(*gpus: int, batch: int = 8, **more: Any) -> Workload:
    columns = {"arrival_s": [0.0] * len(gpus), "work": 1.0, "model": "m", **more}
    return Workload.from_columns(gpus=gpus, batch_size=batch, **columns)


def made(workload: Workload, steps: Any, term: Goodput = TERM, **more: Any) -> Schedule:
    """The verified schedule of a script."""
    instance = Instance(NODES, workload, declared=(term,), **more)
    schedule = run(instance, Scripted(steps)).schedule
    verify(instance, schedule)
    return schedule


def rows(schedule: Schedule) -> list[tuple[Any, ...]]:
    s = schedule
    columns = s.job, s.node, s.gpus, s.start_s, s.end_s, s.overhead_s
    return list(zip(*(each.tolist() for each in columns), strict=True))


@pytest.mark.parametrize(
    ("batch", "pieces", "end_s"),
    [
        (8, ((0, 1),), 40.0),  # 20 steps of 2 s
        (8, ((0, 2),), 20.0),  # of 1 s
        (8, ((0, 1), (1, 1)), 40.0),  # of 2 s
        (16, ((0, 2),), 28.0),  # 8 / (4/3) steps of 2 s, and 12 / (3/2)
        (16, ((0, 1),), 56.0),  # the same of 2 + 2 s: 8 samples, twice
        (0, ((0, 2), (1, 2)), 28.0),  # the smallest batch of four, 16: 6 and 8 steps of 2 s
    ],
)
def test_a_job_by_hand(batch: int, pieces: Any, end_s: float) -> None:
    (row, *_) = rows(made(jobs(1, batch=batch), {0.0: {0: pieces}}))
    # An epoch takes whole ticks.
    assert end_s <= row[4] <= end_s + 2 / TICKS_PER_S


def test_a_job_that_moves_owes_a_start_and_goes_on_where_it_was() -> None:
    steps = {0.0: {0: ((0, 1),)}, 20.0: {0: ((0, 1), (1, 1))}}
    schedule = made(jobs(1), steps, overheads=Overheads(start_s=4.0))
    # 16 s make 8 of 20; 12 at 2 s.
    assert rows(schedule) == [
        (0, 0, 1, 0.0, 20.0, 4.0),
        (0, 0, 1, 20.0, 48.0, 4.0),
        (0, 1, 1, 20.0, 48.0, 4.0),
    ]
    assert schedule.goes_on is None or not schedule.goes_on.any()


def test_another_batch_is_another_row_of_the_same_run() -> None:
    steps = {0.0: {0: ((0, 2),)}, 8.0: {0: Batching(8, 0)}}
    schedule = made(jobs(1, batch=0), steps, overheads=Overheads(start_s=4.0))
    # 4 s make 4 of 8 at batch 8; 4 more at 2/3 a second, 12 at 3/4.
    assert [row[3:] for row in rows(schedule)] == [
        (0.0, 8.0, 4.0),
        (8.0, pytest.approx(8 + 6 + 16, abs=1e-5), 0.0),
    ]
    assert schedule.goes_on is not None
    assert schedule.goes_on.tolist() == [False, True]
    assert schedule.local_batch is not None
    assert schedule.local_batch.tolist() == [4, 8]


def test_gangs_across_nodes_slow_each_other_while_both_run() -> None:
    both = ((0, 1), (1, 1))
    steps = {0.0: {0: both}, 20.0: {1: both}}
    schedule = made(jobs(2, 2), steps, replace(TERM, interference=0.5))
    # Half is done after 20 s; the rest takes 40 s, in which the other does as much; alone it goes on unslowed.
    spans = {(row[0], row[3], row[4]) for row in rows(schedule)}
    assert spans == {(0, 0.0, 20.0), (0, 20.0, 60.0), (1, 20.0, 60.0), (1, 60.0, 80.0)}
    assert schedule.slowed is not None
    assert schedule.slowed.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    instance = Instance(NODES, jobs(2, 2), declared=(replace(TERM, interference=0.5),))
    unsaid = replace(schedule, slowed=np.zeros(len(schedule), dtype=np.int64))
    with pytest.raises(Violation, match=r"slowed: .* shares a node with another gang"):
        verify(instance, unsaid)


def mutants(schedule: Schedule) -> list[tuple[str, Schedule]]:
    """The schedule with one entry of one row changed, or a row less."""
    found = []
    for column in fields(schedule):
        values = getattr(schedule, column.name)
        if values is None or column.name in ("partner", "goes_on", "job"):
            continue
        for row in range(len(schedule)):
            for more in (1, -1):
                step = more / TICKS_PER_S if values.dtype.kind == "f" else more
                other = values.copy()
                other[row] += step
                found.append(
                    (f"{column.name}[{row}] {more:+}", replace(schedule, **{column.name: other}))
                )
    for row in range(len(schedule)):
        keep = np.arange(len(schedule)) != row
        known = {c.name: getattr(schedule, c.name) for c in fields(schedule)}
        less = {name: None if v is None else v[keep] for name, v in known.items()}
        found.append((f"without row {row}", Schedule(**less)))
    return found


def test_what_is_not_so_is_refused() -> None:
    """Every change of a tick, a GPU or a sample is another schedule, and none of these jobs'."""
    steps = {
        0.0: {0: ((0, 2),), 1: ((1, 1),)},
        8.0: {0: Batching(8, 0)},
        10.0: {1: ((1, 2),)},
    }
    workload = jobs(1, 1, batch=0)
    instance = Instance(NODES, workload, Overheads(start_s=2.0), declared=(TERM,))
    schedule = run(instance, Scripted(steps)).schedule
    verify(instance, schedule)
    accepted = []
    for name, mutant in mutants(schedule):
        try:
            verify(instance, mutant)
        except Violation:
            continue
        accepted.append(name)
    assert accepted == []


def test_a_job_that_keeps_its_batch_has_no_other() -> None:
    instance = Instance(NODES, jobs(2, batch=16), declared=(TERM,))
    schedule = run(instance, policy("fifo")).schedule
    assert schedule.local_batch is not None
    other = replace(schedule, local_batch=schedule.local_batch // 2)
    with pytest.raises(Violation, match=r"batch: .* makes up another batch than that of its job"):
        verify(instance, other)
    with pytest.raises(PolicyError, match=r"expected one with goodput .* may have any batch"):
        run(instance, Scripted({0.0: {0: ((0, 2),)}, 1.0: {0: Batching(4, 0)}}))


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (jobs(1, model="other"), "model is 'other', expected an application .*: m"),
        (jobs(1, batch=4), "batch_size is 4, expected 8 to 16, or 0 for any"),
        (jobs(1, batch=17), "batch_size is 17, expected 8 to 16, or 0 for any"),
    ],
)
def test_jobs_that_were_not_measured_are_refused(workload: Workload, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Instance(NODES, workload, declared=(TERM,))


def test_a_start_that_was_not_measured_is_refused() -> None:
    with pytest.raises(PolicyError, match="makes no progress"):
        run(
            Instance(NODES, jobs(1, batch=8), declared=(TERM,)),
            Scripted({0.0: {0: ((0, 2), (1, 1))}}),
        )


def test_a_course_in_a_class_of_ones_own_is_refused() -> None:
    """No rule of the verifier is about it."""

    class Mine(Goodput):
        feature = Feature.OWN

    with pytest.raises(InputError, match="in a class of one's own, which says how jobs go through"):
        Instance(NODES, jobs(1), declared=(Mine((small("m"),)),))


def test_the_written_form_has_all_of_it() -> None:
    term = Goodput((small("m"), small("n")), 0.25, whole_seconds=True)
    instance = Instance(NODES, jobs(1, 2, batch=16), declared=(term,))
    document = written_with_jobs(instance)
    again = decode(InstanceWithJobs, document, "file").whole("file")
    assert again.declared == (term,)
    assert again.workload == instance.workload


@pytest.mark.parametrize("broken", [{"records": ()}, {"placed": ()}])
def test_applications_of_which_nothing_was_measured_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected at least one of each"):
        replace(small("m"), **broken)


# Courses.


RATES = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3)


@given(RATES, st.lists(st.integers(1, 10**8), max_size=5), st.booleans())
def test_a_course_in_pieces_is_one_course(rates: list[float], cuts: list[int], whole: bool) -> None:
    """Exactly: the sum of pieces is the whole, wherever it is cut (on whole seconds, at whole seconds)."""
    course = Course(lengths_of((2.0, 3.5, 9.0)), tuple(map(per_tick, rates)), whole)
    at, left = Position(), course.ending(Position())
    for cut in cuts:
        ticks = cut // TICKS_PER_S * TICKS_PER_S if whole else cut
        if ticks >= left.ticks:
            break
        at = course.after(at, ticks)
        rest = course.ending(at)
        assert rest.ticks == left.ticks - ticks
        left = rest
    assert course.after(at, max(left.ticks, left.seen)).epoch == 3


def test_on_whole_seconds_an_epoch_that_is_rounded_down_is_seen_later() -> None:
    rate = per_tick(1.0)
    course = Course(lengths_of((60.25,)), (rate,), whole_seconds=True)
    assert course.ending(Position()) == (60 * TICKS_PER_S, 60 * TICKS_PER_S + TICKS_PER_S // 4)
    at = course.after(Position(), 60 * TICKS_PER_S)
    assert at == (0, 60 * UNIT)
    assert course.ending(at) == (0, TICKS_PER_S // 4)


# Bounds.


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(0.1, 10), min_size=2, max_size=4),
    st.integers(1, 4),
    st.sampled_from(Aim),
    st.data(),
)
def test_a_least_time_is_that_of_no_run_of_less(
    lengths: list[float], widths: int, aim: Aim, data: st.DataObject
) -> None:
    """Whatever widths the epochs are run on, the shares of the least times add up to all of the job."""
    draw = st.lists(st.floats(0.1, 10), min_size=widths, max_size=widths)
    best = np.maximum.accumulate([data.draw(draw) for _ in lengths], axis=1)
    whole = weighed(np.array(lengths), best, aim)
    some = [
        data.draw(st.lists(st.floats(0.01, 1), min_size=widths, max_size=widths)) for _ in lengths
    ]
    done = 0.0
    for parts, length, rates in zip(some, lengths, best, strict=True):
        share = np.array(parts) / sum(parts)
        done += float((share * length / rates / whole).sum())
    assert done >= 1
    width = np.arange(1, widths + 1)
    assert (whole[0] <= width * whole + 1e-9).all()


def widths_of(live: int, gpus: int) -> list[tuple[int, ...]]:
    """All ways to give GPUs to live jobs, with at least one that runs."""
    found = product(range(gpus + 1), repeat=live)
    return [each for each in found if 0 < sum(each) <= gpus]


class Choices(Scripted):
    """The widths of live jobs at each decision, by numbers that are drawn beforehand."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__({})
        object.__setattr__(self, "numbers", list(numbers))

    def decide(self, state: Any) -> Any:
        from shadowprice.solvers.pollux.emptiest import allotted

        live = sorted((*state.running, *state.waiting))
        if not live:
            return allotted(state, {})
        several = widths_of(len(live), state.total_gpus)
        number = self.numbers.pop(0) if self.numbers else 0  # type: ignore[attr-defined]
        decision = allotted(state, dict(zip(live, several[number % len(several)], strict=True)))
        if self.numbers:  # type: ignore[attr-defined]
            decision.wake_at(state.now_s + 5.0)
        return decision


@pytest.mark.parametrize("batch", [8, 16])
@pytest.mark.parametrize("whole", [False, True])
def test_no_schedule_is_below_the_bounds(batch: int, whole: bool) -> None:
    """Of two jobs on one node, all widths at the first four decisions, 5 s apart or where something happens."""
    term = replace(TERM, whole_seconds=whole)
    workload = jobs(1, 1, batch=batch, arrival_s=[0.0, 4.0])
    instance = Instance(Cluster.load("1x2"), workload, Overheads(start_s=1.0), declared=(term,))
    goals = [Objective.FLOW, Objective.MAKESPAN]
    bounds = certified_bounds(instance, goals, BoundEffort(0))
    flows, spans = [], []
    for numbers in product(range(2), range(5), range(5), range(5)):
        schedule = run(instance, Choices(numbers)).schedule
        verify(instance, schedule)
        assert lb_goodput.check(instance, schedule)
        end = np.zeros(2, dtype=np.int64)
        np.maximum.at(end, schedule.job, to_ticks(schedule.end_s))
        flows.append(int(end.sum()) - 4 * TICKS_PER_S)
        spans.append(int(end.max()))
    assert bounds[Objective.FLOW].ticks <= min(flows)
    assert bounds[Objective.MAKESPAN].ticks <= min(spans)
    # They are worth something.
    assert bounds[Objective.FLOW].ticks >= Fraction(min(flows)) / 2
    assert lb_goodput.bound(instance) * TICKS_PER_S <= min(flows)


def test_a_job_that_is_cut_short_is_none_of_the_theorem() -> None:
    instance = Instance(NODES, jobs(2), declared=(TERM,))
    schedule = run(instance, policy("fifo")).schedule
    assert lb_goodput.check(instance, schedule)
    assert not lb_goodput.check(instance, replace(schedule, end_s=schedule.end_s - 0.5))


def test_superlinear_speed_ups_bound_as_well() -> None:
    """Two GPUs that are thrice as fast as one: a job is served on one for its least GPU time."""
    app = small("m")
    placed = tuple(
        step if step.placement != (1,) else step._replace(step_s=6.0, sync_s=0.0)
        for step in app.placed
    )
    fast = Application("m", placed, (), app.records)
    instance = Instance(NODES, jobs(1), declared=(Goodput((fast,)),))
    (relaxed, *_) = instance.relaxations
    assert lb_goodput.least_ticks(relaxed, 0)[:2] == sorted(
        lb_goodput.least_ticks(relaxed, 0)[:2], reverse=True
    )
    one, two = lb_goodput.least_ticks(relaxed, 0)[:2]
    assert one <= 2 * two + 2


def test_records_of_a_batch_have_as_many_epochs_each() -> None:
    with pytest.raises(InputError, match=r"columns of epochs have \[1, 2\] values"):
        BatchRecord(8, (1.0,), (1.0, 2.0), (1.0,), (1.0,))
