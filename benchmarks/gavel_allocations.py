"""Allocation policies end to end, against the same programmes in cvxpy with its best free solver.

Run: ``python benchmarks/gavel_allocations.py [--throughputs FILE] [--quick] [--only max-min,...]``.
As in Gavel's figures 12 and 14: n jobs of 26 kinds on n/4 GPUs of each of three types; 'distinct'
adds 10 % noise to every rate, so that no two jobs are alike; for water filling a fifth of the jobs
weighs 5, as with Gavel's priorities (else there is one level). CPU time on one thread, from columns
to fractions: checking the problem, building, compiling and solving, nothing kept from before;
cvxpy from the same columns to values. FILE is Gavel's simulation_throughputs.json; without it
rates are generated. Published seconds are those of Gavel's code on its authors' machine. Needs
``cvxpy``, ``clarabel`` and ``ecos``; without them only our own times are printed. Targets are
for the full sizes; ``--quick`` only shows that everything runs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import argparse
import gc
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from gavel_front_end import Case, by_hand, needs
from gavel_measure import Table, as_text, best, median, ours
from gavel_problems import GANGS, columns, kinds
from numpy.typing import NDArray

from shadowprice.errors import ShadowpriceError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.compile import SolverOptions
from shadowprice.solvers.registry import allocation

Numbers = NDArray[np.float64]
LEVEL, FAIR = "max_min_fairness:aware=true", "finish_time_fairness:aware=true"
FILLING, PACKED = "water_filling:aware=true", "max_min_fairness:aware=true,packed=true"


def max_min(table: Table, path: Path | None, cvxpy: bool, quick: bool) -> None:
    known = kinds(path, (1,))
    for jobs in (96, 256) if quick else (512, 2048, 8192):
        for distinct in (True, False):
            given = columns(known, jobs, 1, distinct=distinct)
            case = f"max-min, {jobs:,} {'distinct jobs' if distinct else 'jobs of 26 kinds'}"
            took, found = median(5, LEVEL, given)
            if cvxpy:
                import gavel_cvxpy

                theirs, value, note = best(gavel_cvxpy.max_min, given, cones=False)
                table.compare(case, took, theirs, 1, abs(found.objective / value - 1), note)
            else:
                table.row(case, as_text(took), "", None)
            if distinct:
                _alone(table, given, found.objective)
                pop, split = median(3, "pop:parts=8", given)
                loss = f"loses {1 - split.objective / found.objective:.2%}"
                table.row("  POP, 8 parts", as_text(pop), "", None, loss)


def _alone(table: Table, given: dict[str, Any], value: float) -> None:
    gang = np.asarray(given["gpus"], dtype=np.float64)
    rates = given["throughput"]
    case = Case(rates, gang, needs(rates, gang), given["capacity"])
    for crossover in (False, True):
        gc.collect()
        began = time.process_time()
        _, alone, _ = by_hand(case, "ipm", crossover)
        took = time.process_time() - began
        what = f"  HiGHS ipm alone, {'with' if crossover else 'no'} crossover"
        table.row(
            what, as_text(took), "", None, f"objectives agree to {abs(value / alone - 1):.1e}"
        )


def finish_time(table: Table, path: Path | None, cvxpy: bool, quick: bool) -> None:
    known, forced = kinds(path, (1,)), SolverOptions(method="highs-ipx")
    for late in (False, True):
        jobs = 32 if quick else 512
        given = columns(known, jobs, 2, distinct=True, late=late)
        took, found = median(5, FAIR, given)
        what = "distinct jobs" + (", some late" if late else "")
        case = f"finish-time fairness, {jobs} {what}"
        note = f"{found.objective:.6f}, bound {found.bound:.6f}"
        table.row(case, as_text(took), "", None, note)
        if cvxpy:
            _finish_time_cvxpy(table, given, took, found.objective)
        highs, same = median(3, FAIR, given, forced)
        gap = abs(found.objective / same.objective - 1)
        table.row("  same steps by HiGHS ipm", as_text(highs), "", None, f"agree to {gap:.1e}")
        jobs = 1024 if quick else 8192
        for seed in (3, 4):
            took, found = median(3, FAIR, columns(known, jobs, seed, distinct=True, late=late))
            note = f"seed {seed}, proven to {1 - found.bound / found.objective:.1e}"
            case = f"finish-time fairness, {jobs:,} {what}"
            table.row(case, as_text(took), "< 1 s", took < 1, note)


def _finish_time_cvxpy(table: Table, given: dict[str, Any], took: float, ratio: float) -> None:
    import gavel_cvxpy

    for what, formulation, factor, published in (
        ("one expression a job", gavel_cvxpy.finish_time_fairness_per_job, 20, "; published 3.5 s"),
        ("one expression", gavel_cvxpy.finish_time_fairness, 1, ""),
    ):
        theirs, value, note = best(formulation, given, cones=True)
        gap = abs(ratio / value - 1)
        table.compare(f"  cvxpy, {what}", took, theirs, factor, gap, note + published)


def water_filling(table: Table, path: Path | None, cvxpy: bool, quick: bool) -> None:
    known, jobs = kinds(path, (1,)), 24 if quick else 512
    for distinct in (False, True):
        given = columns(known, jobs, 4, distinct=distinct, weights=True)
        took, found = median(3, FILLING, given)
        levels = found.prices.level / given["weight"]
        case = f"water filling, {jobs} {'distinct jobs' if distinct else 'jobs of 26 kinds'}"
        note = f"{len(np.unique(levels.round(6)))} levels, {found.prices.stage.max() + 1} stages"
        table.row(case, as_text(took), "", None, note)
        if cvxpy:
            _water_filling_cvxpy(table, given, took, levels)
    jobs = 256 if quick else 2048
    given = columns(known, jobs, 5, distinct=True, weights=True)
    took, found = median(1, FILLING, given)
    note = f"{found.prices.stage.max() + 1} stages"
    table.row(f"water filling, {jobs:,} distinct jobs", as_text(took), "finishes", True, note)


def _water_filling_cvxpy(table: Table, given: dict[str, Any], took: float, levels: Numbers) -> None:
    import gavel_cvxpy

    for what, formulation, factor, exact in (
        ("published, LP and MILP a level", gavel_cvxpy.water_filling_published, 20, 1e-3),
        ("LP a level, frozen by duals", gavel_cvxpy.water_filling, 1, 1e-6),
    ):

        def run(problem: AllocationProblem, solver: str, f: Any = formulation) -> Any:
            return f(problem, solver, 300.0)

        theirs, value, note = best(run, given, cones=True)
        difference, count = np.nan, "no"
        if not np.isnan(theirs):
            difference, count = float(np.abs(levels / value[0] - 1).max()), value[1]
        note += f"; {count} programmes"
        note += "; published 6.1 s at 512 jobs" if factor > 1 else ""
        table.compare(f"  cvxpy, {what}", took, theirs, factor, difference, note, exact)


def space_sharing(table: Table, path: Path | None, cvxpy: bool, quick: bool) -> None:
    jobs = 32 if quick else 256
    for distinct in (False, True):
        given = columns(kinds(path, (1,)), jobs, 6, distinct=distinct, pairs=True)
        took, found = median(3, PACKED, given)
        what = "distinct jobs" if distinct else "jobs of 26 kinds"
        case = f"space sharing, {jobs} {what}, {len(given['pairs']):,} pairs"
        if cvxpy:
            import gavel_cvxpy

            theirs, value, note = best(gavel_cvxpy.space_sharing, given, cones=False)
            note += "; published 6.3 s" if jobs == 256 else ""
            table.compare(case, took, theirs, 20, abs(found.objective / value - 1), note)
        else:
            table.row(case, as_text(took), "", None)
        many = 48 if quick else 1024
        command = [sys.executable, __file__, "--space-sharing", str(many)]
        command += ["--distinct"] if distinct else []
        command += ["--throughputs", str(path)] if path else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        case = f"space sharing, {many:,} {what}: peak memory"
        if done.returncode:
            table.row(case, "failed", "< 2 GB", False, done.stderr.strip().splitlines()[-1][-200:])
            continue
        got = json.loads(done.stdout)
        note = f"{as_text(got['cpu_s'])}, solver {as_text(got['solver_s'])}, {got['pairs']:,} pairs"
        note += f", {got['failed'] or 'solved'}"
        table.row(case, f"{got['peak_gb']:.2f} GB", "< 2 GB", got["peak_gb"] < 2, note)


def child(path: Path | None, jobs: int, distinct: bool, limit_s: float) -> None:
    """One space-sharing problem in this process; prints CPU time and peak memory as JSON."""
    given = columns(kinds(path, (1,)), jobs, 7, distinct=distinct, pairs=True)
    workspace, failed = Workspace(SolverOptions(time_limit_s=limit_s)), ""
    began = time.process_time()
    problem = AllocationProblem.from_columns(**given)
    try:
        allocation(PACKED).allocate(problem, workspace).verify()
    except ShadowpriceError as error:
        failed = f"not solved in {limit_s:g} s: {error}"
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    got = {"cpu_s": took, "solver_s": workspace.solver_s, "pairs": len(problem.pairs)}
    print(json.dumps({**got, "peak_gb": peak, "failed": failed}))


def large(table: Table, path: Path | None, _cvxpy: bool, quick: bool) -> None:
    """Ten thousand jobs: everything changed since the last time."""
    jobs = 1000 if quick else 10_000
    for what, known, distinct, target in (
        ("distinct jobs", kinds(path, (1,)), True, 0.15),
        ("jobs of all kinds and gangs", kinds(path, GANGS), False, 0.02),
    ):
        workspace, times = Workspace(), []
        for seed in range(6):
            given = columns(known, jobs, seed, distinct=distinct)
            problem = AllocationProblem.from_columns(**given)
            gc.collect()
            began = time.process_time()
            allocation(LEVEL).allocate(problem, workspace).verify()
            times.append(time.process_time() - began)
        took = statistics.median(times[1:])
        gc.collect()
        began = time.process_time()
        AllocationProblem.from_columns(**given)
        checked = time.process_time() - began
        note = f"{len(known.alone)} kinds, first {as_text(times[0])}; checking columns {as_text(checked)} more"
        table.row(
            f"max-min, {jobs:,} {what}, all changed",
            as_text(took),
            f"< {1e3 * target:g} ms",
            took < target,
            note,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throughputs", type=Path, help="Gavel's table, plain or compressed")
    parser.add_argument("--quick", action="store_true", help="small sizes, 20 s")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections: %(default)s")
    parser.add_argument("--space-sharing", type=int, help="one problem of so many jobs, as JSON")
    parser.add_argument("--limit", type=float, default=300.0, help="wall time of such a solve [s]")
    parser.add_argument("--distinct", action="store_true", help="with --space-sharing")
    arguments = parser.parse_args()
    path, quick = arguments.throughputs, arguments.quick
    if arguments.space_sharing:
        child(path, arguments.space_sharing, arguments.distinct, arguments.limit)
        return
    cvxpy = importlib.util.find_spec("cvxpy") is not None
    if not cvxpy:
        print("cvxpy is not installed: only our own times (pip install cvxpy clarabel ecos)")
    tiny = columns(kinds(path, (1,)), 16, 0, distinct=True)
    ours(LEVEL, tiny)  # imports and caches, before anything is timed
    if cvxpy:
        import gavel_cvxpy

        best(gavel_cvxpy.max_min, tiny, cones=False)
    gc.freeze()  # what was imported need not be searched before every measurement
    table = Table()
    for name in arguments.only.split(","):
        SECTIONS[name](table, path, cvxpy, quick)


SECTIONS = {
    "max-min": max_min,
    "finish-time": finish_time,
    "water-filling": water_filling,
    "space-sharing": space_sharing,
    "large": large,
}

if __name__ == "__main__":
    main()
