"""Shares of jobs that a run did, added up from its rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.schedule import first_of_each


def shares_done(outcome: Outcome) -> list[Fraction]:
    """Share of every job that a run did, exactly: time with progress over run time at its speed."""
    instance, schedule = outcome.instance, outcome.schedule
    order = np.lexsort((schedule.start_s, schedule.job))
    job = schedule.job[order]
    begin = first_of_each(job, schedule.start_s[order])
    kind = instance.cluster.type_of_node[schedule.node[order]]
    times = instance.processing_s[job, kind]
    slowest = np.maximum.reduceat(times, begin) if len(begin) else np.zeros(0)
    first = order[begin]
    ran = schedule.end_s[first] - schedule.start_s[first] - schedule.overhead_s[first]
    shares = [Fraction(0)] * len(instance.workload)
    for row, ticks, whole in zip(
        schedule.job[first].tolist(),
        (ran * TICKS_PER_S).tolist(),
        (slowest * TICKS_PER_S).tolist(),
        strict=True,
    ):
        shares[row] += Fraction(int(ticks), int(whole))
    return shares
