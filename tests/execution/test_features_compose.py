"""Features compose: whatever an instance says, and in whatever company, what the engine runs the verifier accepts."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from shadowprice.errors import EarlyEndError
from shadowprice.execution.engine import Rounds, run
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.placement.consolidated import Pack
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import policy
from support.drawn_worlds import FEATURES, drawn
from support.feature_instances import may_meet
from support.horizons import ended
from support.own_terms import Curfew
from support.small_instances import instance_of
from support.wild import Wild

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST = int(os.environ["SEED"]) << 20 if NIGHTLY else 0
BLOCKS, IN_A_BLOCK = 20, 5000 if NIGHTLY else 100
RUN_BY_THE_ENGINE = tuple(name for name in FEATURES if name != "copies")


def features_of(random: Random) -> tuple[str, ...]:
    """Some features that may meet, at most six."""
    wanted, features = random.sample(RUN_BY_THE_ENGINE, random.randint(1, 6)), list[str]()
    for name in wanted:
        if may_meet((*features, name)):
            features.append(name)
    return tuple(features)


def curfew(seed: int) -> Curfew:
    """A term of one's own, by which gangs may have to wait for the day."""
    random = Random(-seed)
    return Curfew(random.randint(1, 3), random.choice((4.5, 6.0)), random.choice((1.0, 0.75)))


def policies(random: Random) -> list[Policy]:
    return [policy("fifo-skip"), policy("srtf"), Wild(random.randrange(1 << 30))]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_schedule_is_valid(block: int) -> None:
    for seed in range(FIRST + block * IN_A_BLOCK, FIRST + (block + 1) * IN_A_BLOCK):
        random = Random(seed)
        features = features_of(random)
        instance = instance_of(drawn(features, seed))
        if seed % 4 == 0:
            instance = replace(instance, declared=(*instance.declared, curfew(seed)))
        rounds = random.choice((Rounds(), Rounds(), Rounds(0.75)))
        placement = random.choice((Count(), Count(), Pack()))
        for each in policies(random):
            try:
                done = run(
                    replace(instance, stopped_s=None), each, placement=placement, rounds=rounds
                )
                # Of nodes that fail, more faults may have been drawn than were known before.
                whole = replace(done.instance, stopped_s=instance.stopped_s)
                verify(whole, ended(whole, done.schedule))
            except EarlyEndError:
                assert "window" in features
            except Exception as error:
                error.add_note(
                    f"seed {seed}: {' '.join(features)}, {each!r}, {placement}, {rounds}"
                )
                raise
