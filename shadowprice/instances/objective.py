"""Costs of a schedule: functions of completion times, each in exact ticks as well as seconds."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.workload import Workload


class Objective(StrEnum):
    """Costs to be minimised; C_j completion, r_j arrival, w_j weight.

    ``COMPLETION`` is sum_j w_j C_j, ``FLOW`` is sum_j w_j (C_j - r_j) (the sum of weighted job
    completion *durations*, JCT), ``MAKESPAN`` is max_j C_j - min_j r_j. Approximation ratios
    differ between them: the same schedule can be optimal for completion up to a constant and
    arbitrarily far from optimal for flow.
    """

    COMPLETION = "completion"
    FLOW = "flow"
    MAKESPAN = "makespan"

    def cost_s(self, workload: Workload, end_s: NDArray[np.float64]) -> float:
        """Cost [s] of completion times ``end_s``, shape (n,).

        Unit weights are summed in whole ticks, hence without rounding error.
        """
        if len(workload) == 0:
            return 0.0
        if self is Objective.MAKESPAN:
            return float(end_s.max() - workload.arrival_s.min())
        origin = workload.arrival_s if self is Objective.FLOW else np.zeros(len(workload))
        if np.all(workload.weight == 1.0):
            ticks = to_ticks(end_s) - to_ticks(origin)
            return int(sum(ticks.tolist())) / TICKS_PER_S
        return float(np.dot(workload.weight, end_s - origin))
