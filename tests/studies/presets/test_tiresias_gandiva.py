"""The Gandiva of Tiresias' simulator: worked examples of its rules and quirks, and laws of its runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.proofs.certificate import verify
from shadowprice.studies.presets.tiresias_gandiva import (
    GANGS,
    STEP_S,
    TiresiasGandivaSimulator,
    simulate_tiresias_gandiva,
)

Jobs = list[tuple[int, int, int]]
"""Arrival [s], gang and run time [s] of each job."""


def instance(cluster: str, jobs: Jobs, **more: object) -> sp.Instance:
    arrival, gpus, work = zip(*jobs, strict=True)
    workload = sp.Workload.from_columns(
        id=[str(row) for row in range(len(jobs))], arrival_s=arrival, gpus=gpus, work=work
    )
    return sp.Instance(sp.Cluster.parse(cluster), workload, **more)


def stretches(cluster: str, jobs: Jobs) -> tuple[list[int], list[tuple[int, int, int, int]]]:
    """Noted ends, and (job, node, start, end) of every row, of a verified run."""
    given_ = instance(cluster, jobs)
    found = simulate_tiresias_gandiva(given_)
    verify(given_, found.schedule)
    s = found.schedule
    rows = [tuple(map(int, row)) for row in zip(s.job, s.node, s.start_s, s.end_s, strict=True)]
    return [found.end_s[str(row)] for row in range(len(jobs))], sorted(rows)


def test_an_end_is_noted_with_its_step() -> None:
    assert stretches("1x4", [(0, 4, 25)]) == ([30], [(0, 0, 0, 25)])


def test_jobs_of_a_full_set_take_turns_of_a_minute() -> None:
    ends, rows = stretches("1x4", [(0, 4, 100), (0, 4, 100)])
    assert ends == [160, 200]
    assert rows == [(0, 0, 0, 60), (0, 0, 120, 160), (1, 0, 60, 120), (1, 0, 160, 200)]


def test_an_arrival_off_the_beat_ends_the_turns() -> None:
    ends, rows = stretches("1x4", [(0, 4, 100), (5, 4, 100)])
    assert ends == [105, 205]
    assert rows == [(0, 0, 0, 100), (1, 0, 105, 205)]


def test_a_set_keeps_a_place_free_until_sets_are_given_up() -> None:
    simulator = TiresiasGandivaSimulator(instance("2x4", [(0, 1, 50)] * 4))
    assert all(simulator.place(job) for job in range(4))
    assert sorted(each.jobs for each in simulator.sets[1]) == [[0, 1, 2], [3]]
    # Four GPUs are asked for and eight held: the set with the lowest count goes.
    assert simulator.adjust()
    assert [each.jobs for each in simulator.sets[1]] == [[0, 1, 2, 3]]
    assert not simulator.adjust()
    assert stretches("2x4", [(0, 1, 50)] * 4)[1] == [(job, 0, 0, 50) for job in range(4)]


def test_new_sets_are_filled_only_if_the_last_could_not_be_had() -> None:
    simulator = TiresiasGandivaSimulator(instance("3x4", [(0, 4, 50)] * 4))
    for job in range(3):
        assert simulator.place(job)
    simulator.shrink(4, 2)
    assert [len(each.jobs) for each in simulator.sets[4]] == [3]
    simulator.expand(4, 2)
    assert [len(each.jobs) for each in simulator.sets[4]] == [3, 0, 0]
    simulator.expand(4, 1)
    assert [len(each.jobs) for each in simulator.sets[4]] == [1, 1, 1]
    assert [each.count for each in simulator.sets[4]] == [1, 1, 1]


def test_new_sets_of_several_nodes_are_filled() -> None:
    simulator = TiresiasGandivaSimulator(instance("4x4", [(0, 8, 50)] * 2))
    assert simulator.place(0)
    assert simulator.place(1)
    simulator.shrink(8, 1)
    assert [each.jobs for each in simulator.sets[8]] == [[1, 0]]
    simulator.expand(8, 1)
    assert [each.jobs for each in simulator.sets[8]] == [[0], [1]]


def test_after_a_waiting_job_is_placed_the_next_is_passed_over() -> None:
    simulator = TiresiasGandivaSimulator(instance("3x4", [(0, 4, 50)] * 3))
    simulator.pending = [0, 1, 2]
    simulator.place_pending()
    assert simulator.pending == [1]


def test_a_gang_without_a_set_waits_until_one_is_given_back() -> None:
    ends, rows = stretches("2x4", [(0, 8, 100), (0, 2, 20)])
    assert rows == [(0, 0, 0, 100), (0, 1, 0, 100), (1, 0, 100, 120)]
    assert ends == [100, 120]


jobs_lists = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from(sorted(GANGS)), st.integers(1, 300)),
    min_size=1,
    max_size=12,
)


class EveryStep(TiresiasGandivaSimulator):
    """The simulator without its leaps over steps that are alike."""

    def steps_alike(self, now: int) -> int:
        return STEP_S


@given(jobs_lists, st.sampled_from(["8x8", "16x4", "70x1"]))
def test_runs_are_valid_and_leaps_change_nothing(jobs: Jobs, cluster: str) -> None:
    given_ = instance(cluster, jobs)
    found = simulate_tiresias_gandiva(given_)
    verify(given_, found.schedule)
    ends = dict.fromkeys(given_.workload.id.tolist(), 0.0)
    for job, end in zip(found.schedule.job, found.schedule.end_s, strict=True):
        name = given_.workload.id[job]
        ends[name] = max(ends[name], float(end))
    assert all(0 <= found.end_s[name] - end < STEP_S for name, end in ends.items())
    plain = EveryStep(given_).run()
    assert plain.end_s == found.end_s
    assert plain.schedule.to_frame().equals(found.schedule.to_frame())


def test_it_is_a_policy_of_the_preset() -> None:
    jobs = instance("1x4", [(0, 4, 100), (0, 4, 100)]).workload
    outcome = sp.simulate(jobs, "1x4", "gandiva", sp.RunOptions(preset="tiresias"))
    assert sorted(outcome.jct_s) == [160.0, 200.0]
    with pytest.raises(InputError, match="runs in its own loop"):
        sp.simulate(jobs, "1x4", "gandiva", sp.RunOptions(preset="tiresias", placement="count"))


@pytest.mark.parametrize(
    ("cluster", "jobs", "more", "said"),
    [
        ("1x4", [(0, 3, 9)], {}, "asks for 3 GPUs, expected one of 1, 2, 4"),
        ("1x4,1x8", [(0, 2, 9)], {}, "expects nodes of one GPU type and equally many GPUs"),
        ("1x4", [(0, 2, 9)], {"overheads": sp.Overheads(restart_s=1.0)}, "has charges for starts"),
        ("1x4", [(0.5, 2, 9)], {}, "job '0': arrival is 0.5 s, expected whole seconds"),
        ("1x4", [(0, 2, 9.5)], {}, "job '0': run time is 9.5 s, expected whole seconds"),
    ],
)
def test_what_the_original_has_no_notion_of_is_refused(
    cluster: str, jobs: Jobs, more: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        simulate_tiresias_gandiva(instance(cluster, jobs, **more))
