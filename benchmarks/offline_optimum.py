"""How many jobs the non-preemptive optimum of total completion time is proven for, within 60 s.

Run: ``python benchmarks/offline_optimum.py [--jobs 32,48,64] [--method milp] [--budget 60]``.
8 GPUs, whole-slot durations 1 to ``--longest``, gangs 1, 2, 4, 8 with Gavel's shares .7, .1, .15,
.05 or, with ``--wide``, .5, .2, .2, .1; releases uniform over 0.8 of the work's span.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import shadowprice as sp


def instance(n: int, seed: int, longest: int, wide: bool) -> sp.Instance:
    """A random instance on one node of 8 GPUs."""
    rng = np.random.default_rng(seed)
    work = rng.integers(1, longest + 1, n)
    gpus = rng.choice([1, 2, 4, 8], n, p=[0.5, 0.2, 0.2, 0.1] if wide else [0.7, 0.1, 0.15, 0.05])
    release = np.sort(rng.integers(0, max(1, int((gpus * work).sum() / 8 * 0.8)), n))
    jobs = sp.Workload.from_columns(arrival_s=release, gpus=gpus, work=work)
    return sp.Instance(sp.Cluster.parse("1x8"), jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="16,20,32,48,64")
    parser.add_argument("--method", choices=["milp", "cp-sat", "both"], default="both")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--longest", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wide", action="store_true", help="more wide gangs")
    arguments = parser.parse_args()
    methods = ["milp", "cp-sat"] if arguments.method == "both" else [arguments.method]
    print("jobs seed method   proven      lower      upper    gap     cpu_s")
    for n in map(int, arguments.jobs.split(",")):
        for seed in range(arguments.seeds):
            for method in methods:
                case = instance(n, seed, arguments.longest, arguments.wide)
                began = time.process_time()
                found = sp.optimum(case, method=method, budget_s=arguments.budget)
                gap = (found.upper_s - found.lower_s) / found.upper_s
                took = time.process_time() - began
                print(
                    f"{n:4} {seed:4} {method:8} {found.proven!s:6} {found.lower_s:10.1f} {found.upper_s:10.1f} "
                    f"{100 * gap:5.2f}% {took:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
