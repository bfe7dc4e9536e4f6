"""Jobs per CPU-second of Tiresias' policies over a trace, consolidated and by count.

Run: ``python benchmarks/tiresias_trace.py --philly FILE [--crowded 10000]``. The Philly trace runs on
300 nodes of 8 GPUs, its own size, where jobs seldom wait, and, up to ``--crowded`` jobs of it, on 64,
where some hundred always do. The target is 5,000 jobs a second of one core under ``consolidate`` on
the 300 nodes, engine only; verification is reported apart.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import shadowprice as sp
from shadowprice.execution.engine import run
from shadowprice.solvers.registry import placement, policy

POLICIES = ("las2d", "gittins2d", "gittins2d:learned=online")
TARGET = 5_000


def measure(jobs: sp.Workload, cluster: str, name: str, where: str) -> tuple[float, float]:
    """Jobs per CPU-second of the engine, and with the verifier."""
    instance = sp.Instance(sp.Cluster.parse(cluster), jobs)
    result = run(instance, policy(name), placement=placement(where))
    began = time.process_time()
    sp.verify(instance, result.schedule)
    checked_s = time.process_time() - began
    return len(jobs) / result.cpu_s, len(jobs) / (result.cpu_s + checked_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--philly", type=Path, help="philly_flat.csv; generated jobs without it")
    parser.add_argument("--crowded", type=int, default=10_000, help="jobs on the crowded cluster")
    arguments = parser.parse_args()
    if arguments.philly:
        jobs = sp.load(arguments.philly)
    else:
        jobs = sp.generate("gavel", jobs=20_000, seed=0, load=0.8, gpus_total=512)
    few = jobs.select(np.arange(len(jobs)) < arguments.crowded)
    for cluster, some in (("300x8", jobs), ("64x8", few)):
        print(f"{len(some):,} jobs from {jobs.source} on {cluster}")
        for name in POLICIES:
            for where in ("consolidate", "count"):
                engine, both = measure(some, cluster, name, where)
                target = f" (target {TARGET:,})" if where == "consolidate" and some is jobs else ""
                print(
                    f"  {name:26} {where:12} {engine:9,.0f} jobs/s{target}, "
                    f"with verification {both:9,.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
