"""For which sizes Hadar's offline optimum is proven within 60 s of CPU, and how wide the gap is.

Run: ``python benchmarks/hadar_offline.py [--sizes 8x12,16x16] [--kinds random,spread,burst]``.
``random``: 8 GPUs of three types in uneven numbers, gangs of 1 to 3, any order of speeds, work up
to 5/8 of the horizon, arrivals in its first half. ``spread`` and ``burst``: a node of 4 GPUs of
each of three types, gangs of 1, 2 and 4 (.5, .25, .25), speeds falling from type to type as those
of V100, P100 and K80 do, each job by its own factors; arrivals in the first half, or all at 0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import (
    UtilityTable,
    effective_throughput,
    finish_time_fairness,
    minus_completion,
)
from shadowprice.instances.workload import Workload
from shadowprice.solvers.hadar.offline.optimum import OfflineOptimum, optimum

ROUND_S = 64.0
KINDS = ("random", "spread", "burst")
UTILITIES: dict[str, Callable[[Instance, float, int], UtilityTable]] = {
    "throughput": effective_throughput,
    "completion": minus_completion,
    "fairness": finish_time_fairness,
}


def uneven(jobs: int, rounds: int, seed: int) -> Instance:
    """Any order of speeds in powers of 2, uneven numbers of GPUs."""
    rng = np.random.default_rng(seed)
    cluster = Cluster.parse("1x3:a,1x2:b,1x3:c")
    fastest = 2.0 ** rng.integers(0, 3, size=jobs)
    slower = np.array([1.0, 0.5, 0.25])
    workload = Workload.from_columns(
        arrival_s=rng.integers(0, rounds // 2, size=jobs) * ROUND_S,
        gpus=rng.integers(1, 4, size=jobs),
        work=rng.integers(2, 5 * rounds, size=jobs) / 8 * ROUND_S * fastest,
        throughput=fastest[:, None] * rng.permuted(np.tile(slower, (jobs, 1)), axis=1),
        gpu_types=cluster.gpu_types,
        weight=rng.integers(1, 5, size=jobs),
    )
    return Instance.feasible(cluster, workload)[0]


def nodes_of_four(jobs: int, rounds: int, seed: int, *, burst: bool) -> Instance:
    """Gangs as in the paper's traces; some 1.2 times the work that the horizon has room for."""
    rng = np.random.default_rng(seed)
    cluster = Cluster.parse("1x4:v100,1x4:p100,1x4:k80")
    gpus = rng.choice([1, 2, 4], size=jobs, p=[0.5, 0.25, 0.25])
    speed = np.stack(
        [np.ones(jobs), rng.uniform(0.4, 0.8, jobs), rng.uniform(0.1, 0.4, jobs)], axis=1
    )
    # GPU rounds on the fastest type, log-normal, scaled to the room of all types.
    work = rng.lognormal(0.0, 0.8, jobs)
    room = 4 * speed.mean(axis=0).sum() * rounds
    work *= 1.2 * room / float((gpus * work).sum())
    iterations = 10.0 ** rng.uniform(0.0, 1.0, jobs)
    workload = Workload.from_columns(
        arrival_s=np.zeros(jobs) if burst else rng.integers(0, rounds // 2, jobs) * ROUND_S,
        gpus=gpus,
        work=np.maximum(work, 0.25) * ROUND_S * iterations,
        throughput=iterations[:, None] * speed,
        gpu_types=cluster.gpu_types,
        weight=rng.integers(1, 5, size=jobs),
    )
    return Instance.feasible(cluster, workload)[0]


def instance(kind: str, jobs: int, rounds: int, seed: int) -> Instance:
    """A random instance of a kind."""
    if kind == "random":
        return uneven(jobs, rounds, seed)
    return nodes_of_four(jobs, rounds, seed, burst=kind == "burst")


def _line(size: str, kind: str, utility: str, seed: int, found: OfflineOptimum, cpu: float) -> str:
    root = found.relaxation / max(found.value, 1e-12) - 1.0
    left = found.bound / max(found.value, 1e-12) - 1.0
    return (
        f"{size:6} {kind:7} {utility:10} {seed:4} {found.proven!s:6} {found.value:12.4f} "
        f"{100 * root:6.2f}% {100 * left:6.2f}% {found.nodes:6} {cpu:7.1f}"
    )


def main() -> None:
    """Print a line an instance and a summary a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="8x12,12x12,16x16,20x30")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--utilities", default=",".join(UTILITIES))
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("size   kind    utility    seed proven        value    root    left  nodes   cpu_s")
    for size in arguments.sizes.split(","):
        jobs, rounds = map(int, size.split("x"))
        proven, seconds = [], []
        for kind in arguments.kinds.split(","):
            for utility in arguments.utilities.split(","):
                for seed in range(arguments.seeds):
                    case = instance(kind, jobs, rounds, seed)
                    began = time.process_time()
                    table = UTILITIES[utility](case, ROUND_S, rounds)
                    found = optimum(case, table, time_limit_s=arguments.budget)
                    seconds.append(time.process_time() - began)
                    proven.append(found.proven)
                    print(_line(size, kind, utility, seed, found, seconds[-1]), flush=True)
        print(
            f"{size}: {sum(proven)} of {len(proven)} proven, CPU median {np.median(seconds):.1f} s, "
            f"most {max(seconds):.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
