"""Random runs of copies, with whatever an instance may say beside them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import EarlyEndError, InfeasibleJobError
from shadowprice.execution.copies.hadare import CopyWidth
from shadowprice.execution.copies.simulation import KNOWS, run_copies
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.hadar.copy_assignment import ORDERS, CopyOrder, RoundView
from support.drawn_worlds import FEATURES, drawn
from support.feature_instances import may_meet
from support.horizons import ended
from support.small_instances import instance_of

BESIDE_COPIES = tuple(name for name in FEATURES if name in {*KNOWS, "stopped"} - {"copies"})


class AnyOrder:
    """Serves jobs in random order, so that runs are interrupted for no reason."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, view: RoundView) -> NDArray[np.float64]:
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


def made(seed: int) -> tuple[Instance, Schedule] | None:
    """A schedule until the run is stopped or its window complete; None where there is none."""
    features, instance, order, width = drawn_for(seed)
    try:
        done = run_copies(replace(instance, stopped_s=None), order, width.gpus)
    except EarlyEndError:
        assert "window" in features
        return None
    except InfeasibleJobError:
        return None
    except Exception as error:
        error.add_note(f"seed {seed}: {' '.join(features)}, {order}, {width}")
        raise
    return instance, ended(instance, done)
