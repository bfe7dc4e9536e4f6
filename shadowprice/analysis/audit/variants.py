"""The jobs of a record again: under other policies, and with other capacities.

What a log cannot tell is taken to be so, and varied. The cluster is what was given; or no larger than what was ever
held at once; or on each day what was held at most on that day, beyond which no run begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shadowprice.analysis.audit.measures import DAY_S, Measures
from shadowprice.analysis.audit.recorded_run import merged_rows
from shadowprice.analysis.compare import Comparison, compare_outcomes
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import execute
from shadowprice.brief import Brief
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective

ALL = "all"
"""Tenant of all jobs where what they hold together is limited by day."""
ASSUMED = (
    "assumed: the cluster is the same all the time, durations do not depend on the place, and jobs that are not in the "
    "log, or were set aside, hold no GPU"
)


@dataclass(frozen=True, eq=False, repr=False)
class Variant(Brief):
    """The same jobs on another capacity.

    Parameters
    ----------
    capacity : str
        What it is.
    gpus : int
        GPUs, the most of all days.
    comparison : Comparison
        Flow time of the record and of the policies.
    """

    capacity: str
    gpus: int
    comparison: Comparison

    def document(self) -> dict[str, object]:
        """The variant as JSON has it."""
        return {"capacity": self.capacity, "gpus": self.gpus, **self.comparison.to_dict()}


def rerun(instance: Instance, policy: str) -> Outcome:
    """The jobs of an instance under a policy, verified."""
    return execute(prepare_run(instance, None, policy))


def variants(
    outcome: Outcome, measured: Measures, policies: Sequence[str], budget_s: float
) -> list[Variant]:
    """The jobs with the recorded maximum as capacity, and with that of each day."""
    most = measured.most_gpus
    instance = outcome.instance
    pool = Cluster((Node(most),))
    plain = replace(instance.workload, throughput=None, gpu_types=())
    if instance.workload.throughput is not None:
        return []
    smaller = Instance(pool, plain)
    limited = Instance(
        Cluster((Node(most),), _by_day(measured)),
        replace(plain, tenant=np.full(len(plain), ALL, dtype=object)),
    )
    cases = [("by day: no run begins beyond what was held at most on its day", limited)]
    if most < instance.cluster.total_gpus:
        cases.insert(0, (f"as recorded, {most:,} GPUs, the most that were held at once", smaller))
    return [
        Variant(name, most, _compared(outcome, each, policies, budget_s / len(cases)))
        for name, each in cases
    ]


def _by_day(measured: Measures) -> Quotas:
    """Most GPUs of each day as a limit; after the last day the most of all."""
    starts, gpus = [0.0], [int(measured.most_by_day[0])]
    for day, most in enumerate([*measured.most_by_day.tolist()[1:], measured.most_gpus], 1):
        starts.append(measured.day_begin_s + day * DAY_S)
        gpus.append(int(most))
    return Quotas((ALL,), tuple(starts), tuple((each,) for each in gpus))


def _compared(
    outcome: Outcome, instance: Instance, policies: Sequence[str], budget_s: float
) -> Comparison:
    s = outcome.schedule
    # Pieces of a gang on several nodes are one piece of the pool.
    schedule = merged_rows(s.job, np.zeros(len(s), dtype=np.int64), s.gpus, s.start_s, s.end_s)
    recorded = Outcome.verified(
        instance, schedule, policy=outcome.policy, settings=outcome.settings
    )
    outcomes = {outcome.policy: recorded}
    outcomes |= {name: rerun(instance, name) for name in policies}
    return compare_outcomes(outcomes, Objective.FLOW, budget_s=budget_s, preemptive=True)
