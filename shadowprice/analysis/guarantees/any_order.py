"""Cost of running one job after another in whatever order: factors of theorems beyond it are vacuous."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.asrpt.conversion import longest_ticks

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # run times are work over throughput
        Feature.SHARING,  # one after another nobody shares
        Feature.GRAPHS,  # of each the longest run over mappings
        Feature.RESTART,  # nobody is stopped
    }
)


def any_order_ticks(instance: Instance, objective: Objective) -> Fraction | None:
    """Most that running one job after another costs, in any order, never idle while a job is there [ticks].

    Each runs alone, wherever. The k-th to end has waited since the last arrival for at most the k - 1
    before it, whose run times and its own add up to no more than the k longest. None where weights
    differ, of instances that say more than is known here, and for the makespan, of which that is the sum of all run
    times.

    O(n log n).
    """
    weight = instance.workload.weight
    if missing(instance, KNOWS) or objective is Objective.MAKESPAN:
        return None
    if not len(weight) or not np.all(weight == weight[0]):
        return None
    release = to_ticks(instance.workload.arrival_s)
    longest_first = np.sort(longest_ticks(instance))[::-1].tolist()
    count = len(longest_first)
    waited: int = sum((count - k) * each for k, each in enumerate(longest_first))
    total: int = count * int(release.max()) + waited
    if objective is Objective.FLOW:
        total -= int(release.sum())
    return Fraction(float(weight[0])) * total
