"""Solvers side by side on Gavel's max-min programmes: time, and whether the answer is certified.

Run: ``python benchmarks/solvers.py [--quick] [--jobs 8192 ...] [--solvers auto highs-ipx cuopt ...]``.
Jobs are all different (see ``gavel_front_end.py``). Every answer, also one of a method of low precision
on a GPU, is examined by one rule: the point in all rows, and the bound that its multipliers prove with
rounding errors counted. A solver that is not installed, or has no licence or GPU, is a row that says so.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time

from gavel_front_end import generate

from shadowprice.errors import SolverError
from shadowprice.instances.names import Names
from shadowprice.models import gavel
from shadowprice.solvers.programs.compile import SolverOptions, Status, compile_model

SIZES = (8192, 32768, 100_000)
SOLVERS = ("auto", "highs-ipx", "highs-pdlp", "scip", "cuopt")


def row(jobs: int, solver: str, limit_s: float) -> str:
    """One solver on one programme; seconds are by the clock, since a GPU takes no CPU time."""
    model = gavel.max_min(gavel.Shape(Names.numbered("job", jobs), ("v100", "p100", "k80")))
    compiled = compile_model(model, generate(jobs, 0).data)
    began = time.perf_counter()
    try:
        found = compiled.solve(SolverOptions(method=solver, time_limit_s=limit_s))
    except SolverError as error:
        return f"{jobs:8,} {solver:12} {error}"
    took = time.perf_counter() - began
    if not len(found.primal):
        return f"{jobs:8,} {solver:12} no answer in {limit_s:g} s"
    certified = "certified" if found.status is Status.OPTIMAL else "not certified"
    gap = (found.bound - found.objective) / found.objective
    return (
        f"{jobs:8,} {solver:12} {took:8.2f} s  {found.objective:.9f}  gap {gap:8.1e}  {certified}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="512 jobs")
    parser.add_argument("--jobs", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS))
    parser.add_argument("--limit-s", type=float, default=600.0)
    given = parser.parse_args()
    print(f"{'jobs':>8} {'solver':12} {'time':>10}  objective")
    for jobs in [512] if given.quick else given.jobs:
        for solver in given.solvers:
            print(row(jobs, solver, given.limit_s), flush=True)


if __name__ == "__main__":
    main()
