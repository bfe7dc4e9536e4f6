"""How much of ``srtf``'s certified gap on Philly's trace is real: a schedule that is better.

``python benchmarks/philly_gap.py TRACE [--cluster 75x8]`` simulates ``srtf``, ``srsf`` and orders by remaining time x
GPUs^e. Each schedule is verified, so that ``srtf`` is at least as far from the optimum of flow time as from the best.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import shadowprice as sp
from shadowprice.instances.traces import load_trace
from shadowprice.solvers.index_policy import (
    IndexedJob,
    IndexPolicy,
    JobIndex,
    Measure,
    QueueRule,
    Table,
    WhileRunning,
)
from shadowprice.solvers.policy import Knowledge


def one_and_a_half(job: IndexedJob, table: Table) -> float:
    """Remaining time x GPUs^1.5."""
    return job.remaining_s * job.gpus**1.5


def nearly_two(job: IndexedJob, table: Table) -> float:
    """Remaining time x GPUs^1.8."""
    return job.remaining_s * job.gpus**1.8


@dataclass(frozen=True)
class ByMeasure(IndexPolicy):
    """Least measure first, with preemption."""

    measure: Measure
    name: str
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def job_index(self, service_gpu_s: object) -> JobIndex:
        """Order by the measure."""
        return JobIndex(QueueRule.PREEMPTS, self.measure, while_running=WhileRunning.VARIES)


def main() -> None:
    """Print each flow time, and how far ``srtf`` is from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--cluster", default="75x8")
    given = parser.parse_args()
    jobs = load_trace(given.trace).workload
    srtf = None
    for policy in (
        "srtf",
        "srsf",
        ByMeasure(one_and_a_half, "gpus^1.5"),
        ByMeasure(nearly_two, "gpus^1.8"),
    ):
        outcome = sp.simulate(jobs, given.cluster, policy)
        flow_s = float((outcome.end_s - jobs.arrival_s).sum())
        srtf = flow_s if srtf is None else srtf
        print(f"{outcome.policy}: {flow_s:,.0f} s; srtf costs {srtf / flow_s:.4f}x as much")


if __name__ == "__main__":
    main()
