"""CPU time of Hadar's decisions, and of committing thousands of jobs that arrive at once.

Run: ``python benchmarks/hadar_decisions.py [--throughputs FILE] [--most 2000] [--quick]``. Jobs are
those of Hadar's classes of GPU-hours (0 to 100, equally frequent), all there at time 0, on 60 and on
1,024 GPUs of three types. FILE is Gavel's simulation_throughputs.json; without it rates are made up.
``hadar`` decides anew in every round: the slowest of its first three decisions is shown; target 1 s
for 2,000 jobs, and less than quadratic in the number of jobs. ``hadar-committed`` and ``oasis`` decide
once a job: the total for a burst and the mean of one arrival are shown, and how the total grows.
``--most`` is the largest burst.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
from pathlib import Path

import shadowprice as sp
from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.solvers.registry import policy

CLUSTERS = {60: "5x4:v100,5x4:p100,5x4:k80", 1024: "86x4:v100,85x4:p100,85x4:k80"}
TARGET_S, TARGET_JOBS = 1.0, 2000
BURSTS = (100, 500, 1000, 2000, 5000)


def made_up() -> sp.Throughputs:
    """Rates of five models on up to 8 GPUs, linear in them."""
    models = {"ResNet-18": 18.0, "CycleGAN": 4.0, "LM": 60.0, "Transformer": 9.0, "ResNet-50": 2.5}
    alone = {
        (model, gang): (rate * gang, 0.6 * rate * gang, 0.2 * rate * gang)
        for model, rate in models.items()
        for gang in (1, 2, 4, 8)
    }
    return sp.Throughputs(("v100", "p100", "k80"), alone, {}, "made-up rates")


def three_types(full: sp.Throughputs) -> sp.Throughputs:
    """The rates of a table, types in the order of :func:`made_up`."""
    types = made_up().gpu_types
    columns = [full.gpu_types.index(kind) for kind in types]
    alone = {kind: tuple(row[c] for c in columns) for kind, row in full.alone.items()}
    return sp.Throughputs(types, alone, {}, full.source)


def instance(gpus: int, jobs: int, rates: sp.Throughputs) -> sp.Instance:
    """Jobs at time 0 on a cluster of so many GPUs."""
    drawn = sp.generate("hadar", jobs=jobs, throughputs=rates)
    return sp.Instance(sp.Cluster.parse(CLUSTERS[gpus]), drawn)


def rounds(gpus: int, sizes: tuple[int, ...], rates: sp.Throughputs) -> None:
    """A line for every number of jobs, and the growth between the first and the last."""
    took: dict[int, float] = {}
    for jobs in sizes:
        took[jobs] = max(first_decisions_s(instance(gpus, jobs, rates), policy("hadar"), 3))
        target = f"  target < {TARGET_S:.0f} s" if jobs == TARGET_JOBS else ""
        print(
            f"hadar            {gpus:5,} GPUs {jobs:6,} jobs  {took[jobs]:8.3f} s{target}",
            flush=True,
        )
    growth(took)


def growth(took: dict[int, float]) -> None:
    """A line for the power of the number of jobs with which times grow, where there are two."""
    if len(took) > 1:
        first, last = min(took), max(took)
        power = math.log(took[last] / took[first]) / math.log(last / first)
        print(f"  grows as jobs^{power:.2f} from {first:,} to {last:,} jobs, target < 2")


def bursts(name: str, gpus: int, most: int, rates: sp.Throughputs) -> None:
    """Totals and means of one arrival, and the growth between the first and the last."""
    took: dict[int, float] = {}
    for jobs in (size for size in BURSTS if size <= most):
        (took[jobs],) = first_decisions_s(instance(gpus, jobs, rates), policy(name), 1)
        mean_ms = 1000 * took[jobs] / jobs
        print(
            f"{name:16} {gpus:5,} GPUs {jobs:6,} jobs  {took[jobs]:8.2f} s, {mean_ms:6.1f} ms a job",
            flush=True,
        )
    growth(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throughputs", type=Path, help="Gavel's throughput table")
    parser.add_argument("--most", type=int, default=2000, help="largest burst of arrivals")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    given = parser.parse_args()
    rates = made_up()
    if given.throughputs:
        rates = three_types(sp.load_throughputs(given.throughputs))
    for gpus in CLUSTERS:
        rounds(gpus, (32, 128) if given.quick else (128, 512, TARGET_JOBS, 4096), rates)
    for gpus in CLUSTERS:
        for name in ("hadar-committed", "oasis"):
            bursts(name, gpus, 100 if given.quick else given.most, rates)


if __name__ == "__main__":
    main()
