"""Jobs on GPUs that are faster than given: resource augmentation."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.workload import Workload

MOST_SPEED = 1_000


def at_speed(workload: Workload, speed: Fraction | float) -> Workload:
    """The same jobs on GPUs so many times as fast: their work over the speed, rounded up to a tick.

    Rounded up, a run is never faster than the speed says: what is proven of a policy's cost at that speed from
    below holds, and a cost is larger than at exactly that speed by less than what all ticks add up to.

    Parameters
    ----------
    speed : Fraction or float
        1 or more, exactly as given.

    Raises
    ------
    InputError
        If the speed is below 1 or above 1,000, or work is not in seconds on GPUs that are alike.
    """
    exact = Fraction(speed) if math.isfinite(speed) else Fraction(0)
    if not 1 <= exact <= MOST_SPEED:
        raise InputError(f"speed {speed}: expected 1 to {MOST_SPEED:,}")
    if workload.throughput is not None:
        raise InputError(
            f"{workload.source}: has rates by GPU type, expected work in seconds on GPUs that are alike"
        )
    ticks = [-(-Fraction(work) * TICKS_PER_S // exact) for work in workload.work.tolist()]
    return replace(workload, work=np.array([tick / TICKS_PER_S for tick in ticks], dtype=float))
