"""How much of a certified gap is the bound's: 30 random instances of 10 gangs of 1 to 8 on 8 GPUs.

``python benchmarks/ten_jobs.py [--instances N]`` simulates ``srtf``, finds the preemptive optimum of flow time, and
prints how far each kind of bound says that ``srtf`` is from it at most, beside how far it is.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.bounds import Relaxation, offset_ticks, simple_bounds
from shadowprice.solvers.offline.completions.completion_search import search_optimum
from shadowprice.solvers.offline.priced_plans import search

JOBS, SEED = 10, 7
FLOW = Objective.FLOW


def main() -> None:
    """Print a row for each instance, and means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--budget", type=float, default=20.0)
    given = parser.parse_args()
    rng, gaps = np.random.default_rng(SEED), []
    for number in range(given.instances):
        jobs = sp.Workload.from_columns(
            arrival_s=np.sort(rng.integers(0, 20, JOBS)),
            gpus=rng.integers(1, 9, JOBS),
            work=rng.integers(1, 13, JOBS),
        )
        outcome = sp.simulate(jobs, "1x8", "srtf")
        cost, relaxed = (
            exact_cost(outcome.instance, FLOW, outcome.end_s),
            Relaxation.of(outcome.instance),
        )
        shift = offset_ticks(relaxed.weight, relaxed.release, FLOW)
        simple = max(bound.ticks for bound in simple_bounds(outcome.instance, FLOW))
        priced = max(found.ticks for found in search(relaxed, given.effort, rigid=True)) - shift
        began = time.process_time()
        found = list(search_optimum(relaxed, until=time.monotonic() + given.budget))
        first, last = found[0], found[-1]
        spent = time.process_time() - began
        bounds = (simple, max(simple, priced), first.lower_ticks - shift, last.lower_ticks - shift)
        gaps.append([float(cost / bound) - 1 for bound in (*bounds, last.upper_ticks - shift)])
        exact = last.lower_ticks == last.upper_ticks
        said = " ".join(f"{gap:7.2%}" for gap in gaps[-1])
        print(f"{number:2d} {said} {'exact' if exact else 'bracket'} {spent:.1f} CPU s", flush=True)
    kinds = ("simple", "prices", "windows, first", "windows", "true")
    for kind, mean in zip(kinds, np.mean(gaps, axis=0).tolist(), strict=True):
        print(f"{kind}: {mean:.2%} on average")


if __name__ == "__main__":
    main()
