"""Features compose where jobs run as copies: what HadarE's loop makes the verifier accepts, and no change of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from shadowprice.errors import EarlyEndError, InfeasibleJobError
from shadowprice.execution.copies.hadare import CopyWidth
from shadowprice.execution.copies.simulation import KNOWS, run_copies
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.hadar.copies import ORDERS, CopyOrder, RoundView
from support.drawn_worlds import FEATURES, drawn
from support.feature_instances import may_meet
from support.horizons import ended
from support.small_instances import instance_of

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST = int(os.environ["SEED"]) << 20 if NIGHTLY else 0
BLOCKS, IN_A_BLOCK = 20, 2000 if NIGHTLY else 40
TICK_S = 2.0**-20
BESIDE_COPIES = tuple(name for name in FEATURES if name in {*KNOWS, "stopped"} - {"copies"})


class AnyOrder:
    """Serves jobs in random order, so that runs are interrupted for no reason."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, view: RoundView) -> np.ndarray:
        return self._random.random(view.rates.shape)


def drawn_for(seed: int) -> tuple[tuple[str, ...], Instance, CopyOrder, CopyWidth]:
    """Copies and some features beside them, an instance that has them, and how it is run."""
    random = Random(seed)
    wanted, features = random.sample(BESIDE_COPIES, random.randint(0, 4)), ["copies"]
    for name in wanted:
        if may_meet((*features, name)):
            features.append(name)
    orders: list[CopyOrder] = [*(order() for order in ORDERS.values()), AnyOrder(seed)]
    width, instance = random.choice(list(CopyWidth)), instance_of(drawn(tuple(features), seed))
    assert instance.copies is not None
    # Some jobs do no step in the rounds that worlds have.
    longer = replace(instance.copies, round_s=random.choice((2.0, 4.0, 7.5)))
    return tuple(features), replace(instance, copies=longer), random.choice(orders), width


def schedules(block: int) -> Iterator[tuple[int, Instance, Schedule]]:
    """Schedules until the run is stopped or its window complete, with their seeds."""
    for seed in range(FIRST + block * IN_A_BLOCK, FIRST + (block + 1) * IN_A_BLOCK):
        features, instance, order, width = drawn_for(seed)
        try:
            done = run_copies(replace(instance, stopped_s=None), order, width.gpus)
        except EarlyEndError:
            assert "window" in features
            continue
        except InfeasibleJobError:
            continue
        except Exception as error:
            error.add_note(f"seed {seed}: {' '.join(features)}, {order}, {width}")
            raise
        yield seed, instance, ended(instance, done)


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
