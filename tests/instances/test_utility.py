"""Utilities by round, worked out by hand: of a job at 0 and one at 15 s, in rounds of 10 s."""

from __future__ import annotations

import pytest

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import (
    UtilityTable,
    deadline,
    effective_throughput,
    finish_time_fairness,
    minus_completion,
    over_duration,
)
from shadowprice.instances.workload import Workload

INSTANCE = Instance(
    Cluster.parse("1x2"),
    Workload.from_columns(
        arrival_s=[0, 15], gpus=1, work=[20, 30], weight=[1, 3], deadline_s=[20, 30]
    ),
)
# Times in the system at the ends of rounds, at least a round: 10, 20, 30, and 10, 10, 15.


@pytest.mark.parametrize(
    ("utility", "rows"),
    [
        (effective_throughput, [[2, 1, 20 / 30, 0], [3, 3, 2, 0]]),
        (over_duration, [[1 / 10, 1 / 20, 1 / 30, 0], [3 / 10, 3 / 10, 3 / 15, 0]]),
        (finish_time_fairness, [[4, 2, 40 / 30, 0], [6, 6, 4, 0]]),
        (minus_completion, [[3, 2, 1, 0], [9, 6, 3, 0]]),
        (deadline, [[1, 1, 0, 0], [3, 3, 3, 0]]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_tables(utility: object, rows: list[list[float]]) -> None:
    assert callable(utility)
    table = utility(INSTANCE, 10.0, 3)
    assert isinstance(table, UtilityTable)
    assert table.values.tolist() == [pytest.approx(row) for row in rows]
    assert (table.jobs, table.rounds) == (2, 3)
    # A completion at the end of a round is of that round.
    assert [table.value(0, at_s) for at_s in (10.0, 10.5, 30.0, 31.0)] == pytest.approx(
        [rows[0][0], rows[0][1], rows[0][2], 0]
    )
