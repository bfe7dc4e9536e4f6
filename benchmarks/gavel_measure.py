"""CPU times of both sides of ``benchmarks/gavel_allocations.py``, and the table it prints."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.compile import SolverOptions
from shadowprice.solvers.registry import allocation


def ours(
    name: str, given: dict[str, Any], options: SolverOptions | None = None
) -> tuple[float, Allocation]:
    """CPU time and result, from columns to a checked allocation."""
    gc.collect()
    began = time.process_time()
    problem = AllocationProblem.from_columns(**given)
    found = allocation(name).allocate(problem, Workspace(options or SolverOptions()))
    took = time.process_time() - began
    found.verify()
    return took, found


def median(
    repeats: int, name: str, given: dict[str, Any], options: SolverOptions | None = None
) -> tuple[float, Any]:
    """Median time and a result; measured once only when it is long."""
    first, found = ours(name, given, options)
    times = [first] + [ours(name, given, options)[0] for _ in range(repeats - 1) if first < 3.0]
    return statistics.median(times), found


def best(
    formulation: Callable[[AllocationProblem, str], Any], given: dict[str, Any], *, cones: bool
) -> tuple[float, Any, str]:
    """CPU time, value and name of the fastest solver; the others in the name."""
    import cvxpy
    import gavel_cvxpy

    problem = AllocationProblem.from_columns(**given)
    found, said = [], []
    for solver in gavel_cvxpy.solvers(cones=cones):
        times: list[float] = []
        try:
            while len(times) < 3 and sum(times) < 1.0:
                gc.collect()
                began = time.process_time()
                value = formulation(problem, solver)
                times.append(time.process_time() - began)
        except (cvxpy.SolverError, gavel_cvxpy.Unfinished) as error:
            said.append(f"{solver} failed ({str(error)[:60]})")
            continue
        took = statistics.median(times)
        found.append((took, value, solver))
        said.append(f"{solver} {as_text(took)}")
    took, value, _ = min(found, key=lambda each: each[0], default=(np.nan, np.nan, ""))
    return took, value, "cvxpy: " + ", ".join(said)


class Table:
    """Rows of measured value, target and verdict."""

    def __init__(self) -> None:
        print(f"{'case':50} {'measured':>26} {'target':>12} verdict  note")

    def row(self, case: str, measured: str, target: str, ok: bool | None, note: str = "") -> None:
        verdict = "" if ok is None else "met" if ok else "missed"
        print(f"{case:50} {measured:>26} {target:>12} {verdict:8} {note}", flush=True)

    def compare(
        self,
        case: str,
        mine: float,
        theirs: float,
        factor: float,
        difference: float,
        note: str,
        exact: float = 1e-6,
    ) -> None:
        """Ours against another's CPU time, and how far the objectives are apart."""
        ratio = theirs / mine
        if np.isnan(ratio):
            self.row(case, as_text(mine), f">= {factor:g}x", None, note)
            return
        text = f"{as_text(mine)} / {as_text(theirs)} = {ratio:.1f}x"
        self.row(case, text, f">= {factor:g}x", ratio >= factor, note)
        agree = f"<= {exact:.0e}".replace("e-0", "e-")
        self.row("  objectives agree", f"{difference:.1e}", agree, difference <= exact)


def as_text(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
