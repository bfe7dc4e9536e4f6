"""Overhead of a sealed decision while many jobs wait: time beyond what the same decision takes in this process.

``python benchmarks/sealed_decisions.py [WAITING]`` prints milliseconds a decision: wall clock, and CPU of both.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from shadowprice.execution.engine import run
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy

POLICIES = ("fifo", "las2d", "srtf")
_DECISIONS = 1000


def instance(waiting: int) -> Instance:
    """So many jobs at the start that as many wait until the end of a thousand decisions, and one arrival a decision."""
    random = np.random.default_rng(0)
    count = waiting + _DECISIONS
    arrival_s = np.concatenate((np.zeros(waiting), np.arange(1, _DECISIONS + 1) * 10.0))
    jobs = Workload.from_columns(
        arrival_s=arrival_s,
        gpus=random.choice([1, 2, 4, 8], count),
        work=random.integers(300, 3000, count),
        tenant=[f"tenant {k % 7}" for k in range(count)],
        model=[f"model {k % 5}" for k in range(count)],
    )
    return Instance(Cluster.parse("16x8"), jobs)


def children_cpu_s() -> float:
    """CPU time of child processes that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(name: str, waiting: int) -> tuple[float, float, int]:
    """Wall clock and CPU time of a sealed run beyond that of an unsealed one [ms a decision], and decisions."""
    jobs = instance(waiting)
    own = policy(name)
    run(jobs, own)
    began, began_cpu = time.perf_counter(), time.process_time()
    run(jobs, own)
    plain_s, plain_cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    # What a process costs before its first decision is not part of any.
    few = jobs.select(np.arange(1))
    before = children_cpu_s()
    with SealedPolicy(name) as sealed:
        run(few, sealed)
    start_cpu_s = children_cpu_s() - before
    before = children_cpu_s()
    sealed = SealedPolicy(name)
    began, began_cpu = time.perf_counter(), time.process_time()
    done = run(jobs, sealed)
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    sealed.close()
    cpu_s += children_cpu_s() - before - start_cpu_s
    return (
        1e3 * (wall_s - plain_s) / done.decisions,
        1e3 * (cpu_s - plain_cpu_s) / done.decisions,
        done.decisions,
    )


def main() -> None:
    """Print a row a policy."""
    waiting = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{waiting} jobs wait at the start; overhead of a sealed decision [ms]")
    for name in POLICIES:
        wall_ms, cpu_ms, decisions = measured(name, waiting)
        print(f"{name:8} {wall_ms:6.3f} wall {cpu_ms:6.3f} CPU, {decisions} decisions")


if __name__ == "__main__":
    main()
