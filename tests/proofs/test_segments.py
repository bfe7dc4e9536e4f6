"""Part by segment the verifier comes to the same verdict as in one piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import VerificationError
from shadowprice.execution.engine import run
from shadowprice.execution.job_window import cut_schedule
from shadowprice.instances.strategies import instances
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.verification import compiled_pass
from shadowprice.proofs.verification.segments import verify_segments
from shadowprice.solvers.registry import policy
from support.schedule_segments import Cut, by_end, rows_of

POLICIES = ("fifo", "srtf", "las2d", "easy")
CHARGES = (sp.Overheads(), sp.Overheads(start_s=1.0, restart_s=3.0, migration_s=2.0))
FAULTS = ("job", "node", "gpus", "start_s", "end_s", "overhead_s", "partner")


@st.composite
def schedules(draw: st.DrawFn) -> tuple[sp.Instance, sp.Schedule]:
    """A run, perhaps stopped and then spoilt: numbers changed, a run moved, a job lost. Rows in order of end."""
    instance = replace(draw(instances(max_jobs=7)), overheads=draw(st.sampled_from(CHARGES)))
    schedule = run(instance, policy(draw(st.sampled_from(POLICIES)))).schedule
    if draw(st.booleans()):
        stopped_s = float(draw(st.integers(0, 60)))
        schedule = cut_schedule(schedule, stopped_s)
        instance = replace(instance, stopped_s=stopped_s)
    if not len(schedule):
        return instance, schedule
    fault, row = (
        draw(st.sampled_from(["", "numbers", "moved", "lost"])),
        draw(st.integers(0, 10**6)),
    )
    row %= len(schedule)
    columns = {name: getattr(schedule, name).copy() for name in FAULTS}
    by = draw(st.sampled_from([-1, 1, 4]))
    if fault == "numbers":
        columns[draw(st.sampled_from(FAULTS))][row] += by
    if fault == "moved":
        mine = (schedule.job == schedule.job[row]) & (schedule.start_s == schedule.start_s[row])
        columns["start_s"][mine] += by
        columns["end_s"][mine] += by
    spoilt = replace(schedule, **columns)
    if fault == "lost":
        spoilt = rows_of(spoilt, np.flatnonzero(schedule.job != schedule.job[row]))
    return instance, by_end(spoilt)


def passes(check) -> bool:
    try:
        check()
    except Violation:
        return False
    return True


@settings(max_examples=90, deadline=None)
@given(found=schedules(), data=st.data(), most_rows=st.integers(1, 12))
def test_the_verdict_is_that_of_one_piece(found, data, most_rows):
    instance, schedule = found
    cuts = sorted(data.draw(st.lists(st.integers(0, len(schedule)), max_size=5)))
    segments = Cut(schedule, cuts)
    whole = passes(lambda: verify(instance, schedule))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(compiled_pass, "LEAST_ROWS", 0)
        assert passes(lambda: verify_segments(instance, segments, most_rows=most_rows)) == whole
        if whole:
            taken: list[sp.Schedule] = []
            complete = verify_segments(instance, segments, taken.append, most_rows=most_rows)
            assert complete.tolist() == verify(instance, schedule).tolist()
            assert rows_in(taken) == rows_in(
                reversed(list(map(segments.read, range(len(cuts) + 1))))
            )


def rows_in(segments: Iterable[sp.Schedule]) -> list[list[list[float]]]:
    """Rows of the segments that have any."""
    return [rows.to_frame().to_numpy().tolist() for rows in segments if len(rows)]


def test_where_the_compiled_pass_says_no_every_segment_is_given_out_once(monkeypatch):
    """Two runs that end together, the rows of one around that of the other: the pass has no opinion of them."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 1], work=[4, 4, 6])
    instance = sp.Instance(sp.Cluster.parse("4x1"), jobs)
    ends, one = np.array([4.0, 4.0, 4.0, 6.0]), np.ones(4, dtype=np.int64)
    schedule = sp.Schedule(np.array([0, 1, 0, 2]), np.arange(4), one, 0 * ends, ends, 0 * ends)
    monkeypatch.setattr(compiled_pass, "LEAST_ROWS", 0)
    taken: list[sp.Schedule] = []
    told: list[tuple[int, int]] = []
    segments = Cut(schedule, [1, 3])
    complete = verify_segments(instance, segments, taken.append, lambda *far: told.append(far))
    assert complete.all()
    assert [rows.job.tolist() for rows in taken] == [[2], [1, 0], [0]]
    assert told[-1] == (8, 8)


def three_jobs() -> tuple[sp.Instance, sp.Schedule]:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 5], gpus=[1, 1, 1], work=[20, 4, 6])
    instance = sp.Instance(sp.Cluster.parse("1x2"), jobs)
    return instance, run(instance, policy("fifo")).schedule


def test_where_the_compiled_pass_says_yes_rows_are_read_once(monkeypatch):
    monkeypatch.setattr(compiled_pass, "LEAST_ROWS", 0)
    instance, schedule = three_jobs()
    told: list[tuple[int, int]] = []
    verify_segments(instance, Cut(by_end(schedule), [1]), reaches=lambda *far: told.append(far))
    assert told == [(2, 3), (3, 3)]
    for cuts in ([], [1]):
        short = replace(schedule, end_s=schedule.end_s - (schedule.job == 2))
        with pytest.raises(Violation, match=r"^work: "):
            verify_segments(instance, Cut(by_end(short), cuts))


def test_a_long_run_in_the_last_part_is_held_against_the_first():
    """Alone, each segment would do: only together they hold two GPUs of one."""
    instance, schedule = three_jobs()
    crowded = replace(instance, cluster=sp.Cluster.parse("1x1"))
    with pytest.raises(
        Violation, match=r"capacity: row . .*2 GPUs held on the node at 5.0 s, it has 1"
    ):
        verify_segments(crowded, Cut(schedule, [1, 2]))


def test_a_short_run_in_the_last_part_is_held_against_the_first():
    jobs = sp.Workload.from_columns(arrival_s=[0, 3], gpus=[1, 1], work=[4, 2])
    wide = sp.Instance(sp.Cluster.parse("1x2"), jobs)
    segments = Cut(run(wide, policy("fifo")).schedule, [1])
    assert verify_segments(wide, segments).all()
    with pytest.raises(Violation, match="capacity"):
        verify_segments(sp.Instance(sp.Cluster.parse("1x1"), jobs), segments)


def test_rows_are_named_by_their_number_in_the_whole():
    instance, schedule = three_jobs()
    overhead_s = schedule.overhead_s.copy()
    overhead_s[2] = 1.0
    with pytest.raises(Violation, match="overhead: row 2 ") as refused:
        verify_segments(instance, Cut(replace(schedule, overhead_s=overhead_s), [1, 2]))
    assert refused.value.row == 2


def test_rows_out_of_order_are_refused():
    instance, schedule = three_jobs()
    columns = {name: getattr(schedule, name)[::-1].copy() for name in FAULTS}
    for cuts in ([], [1, 2]):
        with pytest.raises(Violation, match=r"order: row . .*ends after the row that follows it"):
            verify_segments(instance, Cut(replace(schedule, **columns), cuts))


def test_a_part_that_changed_is_refused():
    instance, schedule = three_jobs()

    class Short(Cut):
        def read(self, segment: int) -> sp.Schedule:
            return Cut(schedule, [1]).read(0)

    with pytest.raises(VerificationError, match="segment 1 has 1 rows, expected 2"):
        verify_segments(instance, Short(schedule, [1]))


def test_a_stopped_run_goes_on_no_longer():
    instance, schedule = three_jobs()
    stopped = replace(instance, stopped_s=10.0)
    kept = cut_schedule(schedule, 10.0)
    assert verify(stopped, kept).tolist() == [False, True, False]
    with pytest.raises(
        Violation, match=r"stop: row . .* goes on after 10.0 s, when the run was stopped"
    ):
        verify(stopped, schedule)
    with pytest.raises(Violation, match="lost"):
        verify(instance, cut_schedule(schedule, 4.0))


def test_other_instances_are_not_for_parts():
    instance, schedule = three_jobs()
    window = replace(instance, until_complete=sp.JobWindow(0, 1))
    with pytest.raises(ValueError, match="expected jobs that run alone, to the end"):
        verify_segments(window, Cut(schedule, []))
