"""Simulated jobs per CPU-second of one core, verification reported apart.

Run: ``python benchmarks/throughput.py [--philly FILE] [--most 1000000]``. The real trace runs on
300 nodes of 8 GPUs; the generated ones (Gavel's law at load 0.8) once on 256 GPUs whatever their
number, once on a cluster that grows with it.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import shadowprice as sp
from shadowprice.execution.engine import run
from shadowprice.solvers.registry import policy

TARGETS = {"fifo": 60_000, "srtf": 25_000, "las2d": 15_000}


def measure(jobs: sp.Workload, cluster: str, name: str) -> tuple[float, float]:
    """CPU time per job [s] of the engine, and of the verifier."""
    instance = sp.Instance(sp.Cluster.parse(cluster), jobs)
    result = run(instance, policy(name))
    began = time.process_time()
    sp.verify(instance, result.schedule)
    return result.cpu_s / len(jobs), (time.process_time() - began) / len(jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--philly", type=Path, help="philly_flat.csv, plain or compressed")
    parser.add_argument("--most", type=int, default=1_000_000, help="largest generated trace")
    arguments = parser.parse_args()
    if arguments.philly:
        jobs = sp.load(arguments.philly)
        print(f"Philly, {len(jobs)} jobs on 300x8")
        for name, target in TARGETS.items():
            engine, verifier = measure(jobs, "300x8", name)
            both = 1 / (engine + verifier)
            print(
                f"  {name:8} {1 / engine:9,.0f} jobs/s, with verification {both:9,.0f} (target {target:,})"
            )
    for label, nodes_of in (
        ("256 GPUs", lambda n: 32),
        ("GPUs grow with jobs", lambda n: max(n // 1000, 2)),
    ):
        print(f"generated, load 0.8, {label}")
        for name in TARGETS:
            costs = []
            for n in (10_000, 100_000, 1_000_000):
                if n <= arguments.most and (nodes_of(n) <= 100 or name == "fifo" or n < 1_000_000):
                    nodes = nodes_of(n)
                    jobs = sp.generate("gavel", jobs=n, seed=0, load=0.8, gpus_total=8 * nodes)
                    costs.append(f"{n:,}: {1e6 * measure(jobs, f'{nodes}x8', name)[0]:.1f}")
            print(f"  {name:8} microseconds a job: {', '.join(costs)}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    main()
