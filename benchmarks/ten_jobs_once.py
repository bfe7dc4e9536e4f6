"""Certified optima without preemption: 30 random instances of 10 gangs of 1 to 8 on 8 GPUs.

``python benchmarks/ten_jobs_once.py [--instances N] [--jobs N] [--objective NAME]`` certifies ``fifo`` against
schedules in which each job begins once, and prints the bound, whether it is their optimum, and the CPU time of finding
and writing it, its check included, and of the check alone.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np

import shadowprice as sp
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.non_preemptive import non_preemptive_bounds
from shadowprice.analysis.certify import certify
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.proofs.checker import check

SEED = 7


def main() -> None:
    """Print a row for each instance, and the largest times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--objective", default="flow")
    parser.add_argument("--budget", type=float, default=20.0)
    given = parser.parse_args()
    rng, spent, optimal = np.random.default_rng(SEED), [], 0
    for number in range(given.instances):
        jobs = sp.Workload.from_columns(
            arrival_s=np.sort(rng.integers(0, 20, given.jobs)),
            gpus=rng.integers(1, 9, given.jobs),
            work=rng.integers(1, 13, given.jobs),
        )
        outcome = sp.simulate(jobs, "1x8", "fifo")
        began = time.process_time()
        made = certify(outcome, given.objective, budget_s=given.budget, preemptive=False)
        written = time.process_time()
        claim = check(made.text)
        spent.append((written - began, time.process_time() - written))
        schedules = CheckedClass.of(outcome.instance, pairs=False, preemptive=False)
        found = list(
            non_preemptive_bounds(
                outcome.instance, schedules, Objective(given.objective), given.budget
            )
        )
        best = bool(found) and found[-1].optimal
        optimal += best
        bound_s = float(Fraction(claim["bound"]) / TICKS_PER_S)
        said = "optimum" if best else "bound"
        times = "writing {:.2f} CPU s, check {:.2f} CPU s".format(*spent[-1])
        print(f"{number:2d} {said} {bound_s:8.2f} s by {made.bound_kind}: {times}", flush=True)
    most = np.max(spent, axis=0).tolist()
    print(f"{optimal} of {given.instances} are certified optima of {given.objective}")
    print(f"at most: writing {most[0]:.2f} CPU s, check {most[1]:.2f} CPU s")


if __name__ == "__main__":
    main()
