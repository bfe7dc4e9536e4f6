"""CPU time of allocations with the user's number of BLAS threads, over that with one.

Each is measured in a process of its own: ``OMP_NUM_THREADS`` is read when NumPy is loaded.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from gavel_problems import columns, kinds

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocate import allocate

POLICIES = ("max_min_fairness:aware=true", "finish_time_fairness:aware=true")
SIZES = (512, 2_048, 8_192, 32_768)
MOST = 1.1
"""Times the CPU time with one thread."""
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(runs: int) -> None:
    """Print the median CPU time of every case [s], one a line."""
    known = kinds(None, (1,))
    for policy in POLICIES:
        for jobs in SIZES:
            problem = AllocationProblem.from_columns(**columns(known, jobs, 1, distinct=True))
            times = []
            for _ in range(runs + 1):
                began = time.process_time()
                allocate(problem, policy)
                times.append(time.process_time() - began)
            print(statistics.median(times[1:]), flush=True)


def measured(runs: int, threads: str | None) -> list[float]:
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = threads
    command = [sys.executable, __file__, "--inside", "--runs", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each case; the median counts")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        measure(arguments.runs)
        return
    free, one = measured(arguments.runs, None), measured(arguments.runs, "1")
    print(f"{os.cpu_count()} CPUs; CPU times in ms")
    print(f"{'policy':28} {'jobs':>7} {'one thread':>11} {'as it comes':>12} {'ratio':>6}")
    cases = [(policy, jobs) for policy in POLICIES for jobs in SIZES]
    for (policy, jobs), many_s, one_s in zip(cases, free, one, strict=True):
        verdict = "met" if many_s <= MOST * one_s else f"more than {MOST}"
        print(
            f"{policy:28} {jobs:7,} {1e3 * one_s:11.1f} {1e3 * many_s:12.1f} "
            f"{many_s / one_s:6.2f} {verdict}"
        )
    print(f"geometric mean of ratios: {np.exp(np.mean(np.log(np.divide(free, one)))):.2f}")


if __name__ == "__main__":
    main()
