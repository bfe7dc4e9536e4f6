"""Costs of completion times, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload

END_S = np.array([5.0, 10.25])


@pytest.mark.parametrize(
    ("objective", "weights", "cost_s"),
    [
        (Objective.COMPLETION, [1.0, 1.0], 15.25),
        (Objective.FLOW, [1.0, 1.0], 4.0 + 7.25),
        (Objective.MAKESPAN, [1.0, 1.0], 9.25),
        (Objective.COMPLETION, [2.0, 0.5], 10.0 + 5.125),
        (Objective.FLOW, [2.0, 0.5], 8.0 + 3.625),
        (Objective.MAKESPAN, [2.0, 0.5], 9.25),
    ],
)
def test_costs(objective: Objective, weights: list[float], cost_s: float) -> None:
    jobs = Workload.from_columns(arrival_s=[1, 3], gpus=1, work=1, weight=weights)
    assert objective.cost_s(jobs, END_S) == cost_s


def test_no_jobs_cost_nothing() -> None:
    none = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    assert [each.cost_s(none, np.zeros(0)) for each in Objective] == [0.0] * 3
