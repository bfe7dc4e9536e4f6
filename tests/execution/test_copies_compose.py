"""Features compose where jobs run as copies: what HadarE's loop makes the verifier accepts, and no change of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.certificate import Violation, verify
from support.drawn_copies import BESIDE_COPIES, drawn_for, made
from support.feature_instances import may_meet

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST = int(os.environ["SEED"]) << 20 if NIGHTLY else 0
BLOCKS, IN_A_BLOCK = 20, 2000 if NIGHTLY else 40
TICK_S = 2.0**-20


def schedules(block: int) -> Iterator[tuple[int, Instance, Schedule]]:
    """Schedules until the run is stopped or its window complete, with their seeds."""
    for seed in range(FIRST + block * IN_A_BLOCK, FIRST + (block + 1) * IN_A_BLOCK):
        found = made(seed)
        if found is not None:
            yield seed, *found


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_schedule_is_valid(block: int) -> None:
    for seed, instance, schedule in schedules(block):
        try:
            verify(instance, schedule)
        except Exception as error:
            error.add_note(f"seed {seed}: {sorted(instance.features)}")
            raise


def wrong(instance: Instance, schedule: Schedule, random: Random) -> Iterator[tuple[str, Schedule]]:
    """Schedules that differ in one row, and are wrong whatever else the instance says."""
    assert instance.copies is not None
    assert schedule.steps is not None
    row = random.randrange(len(schedule))

    def changed(column: str, by: float) -> Schedule:
        values = getattr(schedule, column).copy()
        values[row] += by
        return replace(schedule, **{column: values})

    for name, by in (("end_s", TICK_S), ("end_s", -TICK_S), ("overhead_s", TICK_S)):
        yield f"{name} {by}", changed(name, by)
    yield "a copy too many", changed("copy", instance.copies.max_copies)
    if schedule.steps[row] and verify(instance, schedule)[schedule.job[row]]:
        yield "a step more", changed("steps", 1)
        yield "a copy that was cut", changed("steps", -int(schedule.steps[row]))
    again = Schedule.from_frame(schedule.to_frame().iloc[[*range(len(schedule)), row]])
    yield "the same again", again


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_other_schedule_is_accepted(block: int) -> None:
    for seed, instance, schedule in schedules(block):
        if not len(schedule):
            continue
        for what, mutant in wrong(instance, schedule, Random(seed)):
            try:
                verify(instance, mutant)
            except Violation:
                continue
            pytest.fail(f"seed {seed}: {sorted(instance.features)}: {what} is accepted")


def test_each_feature_beside_copies_is_drawn() -> None:
    """With each other, too, where they may meet."""
    found = [set(drawn_for(seed)[0]) for seed in range(BLOCKS * 40)]
    for one in BESIDE_COPIES:
        for other in BESIDE_COPIES:
            if may_meet((one, other, "copies")):
                assert any({one, other} <= each for each in found), (one, other)
