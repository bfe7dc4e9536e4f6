"""Gandiva: turns, affinity, and the laws of whatever it tries."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.charges import Overheads
from shadowprice.proofs.gandiva.matching import check_introspection, spells
from shadowprice.solvers.gandiva.gandiva import Gandiva
from shadowprice.solvers.registry import policy
from support.gandiva_runs import (
    FULL,
    QUANTUM_S,
    REACTIVE,
    done,
    ends,
    instance_of,
    introspective,
    rows_of,
)


@settings(max_examples=30)
@given(introspective(), st.sampled_from([FULL, REACTIVE]))
def test_whatever_is_tried_the_schedule_is_right_and_no_pair_that_hurts_outlives_its_trial(
    instance: Instance, chosen: Gandiva
) -> None:
    schedule = done(instance, chosen)
    assert check_introspection(instance, schedule, QUANTUM_S)
    if chosen is REACTIVE:
        assert np.all(schedule.partner == ALONE)


@settings(max_examples=35)
@given(introspective(), st.sampled_from([0.0, 45.0, 300.0]))
def test_the_same_twice_and_in_rounds(instance: Instance, round_s: float) -> None:
    first, second = (done(instance, rounds=Rounds(round_s)) for _ in range(2))
    assert first.to_frame().equals(second.to_frame())


@settings(max_examples=25)
@given(introspective(), st.data())
def test_it_does_not_see_what_it_has_not_measured(instance: Instance, data: st.DataObject) -> None:
    """Other rates of pairs change nothing until the first trial has been measured."""
    assert instance.sharing_rates is not None
    factor = data.draw(st.sampled_from([0.5, 0.9, 1.3]))
    changed = {
        key: (one * factor, other * factor)
        for key, (one, other) in instance.sharing_rates.pairs.items()
    }
    again = replace(instance, sharing_rates=replace(instance.sharing_rates, pairs=changed))
    before, after = done(instance), done(again)
    first = min((spell.start_s for spell in spells(instance, before)), default=np.inf)
    # Sharing changes when its own jobs end, from its first moment on.
    early = [
        {
            (job, start)
            for job, start in zip(run.job.tolist(), run.start_s.tolist(), strict=True)
            if start <= first
        }
        for run in (before, after)
    ]
    assert early[0] == early[1]


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from([FULL, REACTIVE]),
)
def test_everybody_gets_a_turn_soon(work: list[int], gpus: int, chosen: Gandiva) -> None:
    """n jobs on one server: nobody waits longer than it takes the others to have a turn."""
    instance = instance_of(f"1x{gpus}", [(0.0, 1, float(w)) for w in work])
    schedule = done(instance, chosen)
    longest = -(-len(work) // gpus) * QUANTUM_S
    for job in range(len(work)):
        runs = rows_of(schedule, job)
        gaps = [start for start, _, _ in runs[:1]]
        gaps += [later[0] - earlier[1] for earlier, later in pairwise(runs)]
        assert max(gaps) <= longest


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 400)), min_size=1, max_size=9),
    st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=9, max_size=9),
)
def test_nobody_is_suspended_for_a_job_of_lower_priority(
    jobs: list[tuple[int, int]], weights: list[float]
) -> None:
    jobs = sorted(jobs)
    weights = weights[: len(jobs)]
    instance = instance_of("1x2", [(float(a), 1, float(w)) for a, w in jobs], weight=weights)
    schedule = done(instance)
    last = ends(schedule)
    for job in range(len(jobs)):
        for _, end, _ in rows_of(schedule, job):
            if end < last[job]:
                successors = schedule.job[schedule.start_s == end]
                assert all(weights[other] >= weights[job] for other in successors.tolist())


@given(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 400)), min_size=1, max_size=8))
def test_suspended_jobs_lose_no_work(jobs: list[tuple[int, int]]) -> None:
    instance = instance_of("1x3,1x4", [(0.0, gang, float(work)) for gang, work in jobs])
    schedule = done(instance, REACTIVE)
    for job, (_, work) in enumerate(jobs):
        assert sum(end - start for start, end, _ in rows_of(schedule, job)) == work


def test_turns_are_charged() -> None:
    """Two jobs of 90 s on a GPU: turns of 60 s, each resumption costs 1 s."""
    instance = instance_of("1x1", [(0.0, 1, 90.0), (0.0, 1, 90.0)], overheads=Overheads(0, 1.0))
    schedule = done(instance, REACTIVE)
    assert [(start, end) for start, end, _ in rows_of(schedule, 0)] == [(0, 60), (120, 151)]
    assert [(start, end) for start, end, _ in rows_of(schedule, 1)] == [(60, 120), (151, 182)]
    assert schedule.overhead_s.sum() == 2.0


def test_jobs_of_one_width_share_servers() -> None:
    """getNodes: affinity first, then idle servers; one job of 1 beside those of 2 would fragment."""
    jobs = [(0.0, 2, 500.0), (1.0, 1, 500.0), (2.0, 2, 500.0), (3.0, 1, 500.0)]
    schedule = done(instance_of("3x4", jobs), REACTIVE)
    first = [rows_of(schedule, job)[0][2] for job in range(4)]
    assert first == [((0, 2),), ((1, 1),), ((0, 2),), ((1, 1),)]


def test_a_server_with_a_job_can_have_room() -> None:
    """The printed condition height < 1 would send the second job to another server."""
    schedule = done(instance_of("2x2", [(0.0, 1, 99.0), (1.0, 1, 99.0)]), REACTIVE)
    assert schedule.node.tolist() == [0, 0]


def test_gangs_that_are_no_powers_of_two_and_wider_than_a_server_get_their_turns() -> None:
    jobs = [(0.0, 3, 200.0), (0.0, 5, 200.0), (0.0, 7, 200.0), (0.0, 6, 200.0)]
    for chosen in (FULL, REACTIVE):
        schedule = done(instance_of("2x4", jobs), chosen)
        assert all(rows_of(schedule, job)[0][0] <= 4 * QUANTUM_S for job in range(4))


def test_a_suspended_job_migrates_to_gpus_that_become_free() -> None:
    """Two take turns on one server; when the other server becomes free, who is suspended goes there."""
    jobs = [(0.0, 1, 500.0), (0.0, 1, 70.0), (0.0, 1, 500.0)]
    schedule = done(instance_of("2x1", jobs), REACTIVE)
    assert [(start, where) for start, _, where in rows_of(schedule, 0)] == [
        (0.0, ((0, 1),)),
        (70.0, ((1, 1),)),
    ]
    assert ends(schedule) == [510.0, 70.0, 560.0]


@pytest.mark.parametrize("quantum_s", [0.0, -1.0, float("nan"), 0.1, 2e9])
def test_a_quantum_is_on_the_grid_of_time(quantum_s: float) -> None:
    with pytest.raises(InputError, match="quantum_s is"):
        Gandiva(quantum_s=quantum_s)


def test_parameters_by_name() -> None:
    found = policy("gandiva:quantum_s=30,packing=false")
    assert found == Gandiva(quantum_s=30.0, packing=False)
    with pytest.raises(InputError, match="idle_quanta is -1"):
        policy("gandiva:idle_quanta=-1")
