"""Gavel's allocation programmes in cvxpy, for ``benchmarks/gavel_allocations.py``.

Written from the paper (OSDI 2020, sec. 4) the way cvxpy is meant to be used: whole tables at once,
numbers scaled; only :func:`finish_time_fairness_per_job` and :func:`water_filling_published` follow
the structure of the published code (one expression a job; a linear and a mixed-integer programme a
level). All take a problem and a solver's name and return values to compare with.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.policies.isolated import isolated_shares

Numbers = NDArray[np.float64]

CANDIDATES = ("CLARABEL", "ECOS", "HIGHS")
"""Free solvers of the linear programmes; HiGHS takes no cones. SCS is too inexact to compare."""

SLACK = 1e-9
"""Relative room left where a level must be kept, for the sake of the solvers."""


class Unfinished(Exception):
    """More time used than was given, or no progress."""


def solvers(*, cones: bool) -> list[str]:
    """Installed candidates."""
    installed = cp.installed_solvers()
    return [name for name in CANDIDATES if name in installed and not (cones and name == "HIGHS")]


def max_min(problem: AllocationProblem, solver: str) -> float:
    """Least attained service as max-min fairness."""
    x, valid = _allocation(problem)
    levels = cp.sum(cp.multiply(problem.throughput / _norm(problem)[:, None], x), axis=1)
    return _solve(cp.Problem(cp.Maximize(cp.min(levels)), valid), solver)


def finish_time_fairness(problem: AllocationProblem, solver: str) -> float:
    """The largest rho, all jobs in one expression."""
    x, valid = _allocation(problem)
    due, scaled = _finish_times(problem)
    ratio = problem.elapsed_s / due + cp.inv_pos(cp.sum(cp.multiply(scaled, x), axis=1))
    return _solve(cp.Problem(cp.Minimize(cp.max(ratio)), valid), solver)


def finish_time_fairness_per_job(problem: AllocationProblem, solver: str) -> float:
    """The largest rho, one expression a job as in the published code."""
    x, valid = _allocation(problem)
    due, scaled = _finish_times(problem)
    ratios = [
        problem.elapsed_s[m] / due[m] + cp.inv_pos(cp.sum(cp.multiply(scaled[m], x[m])))
        for m in range(len(problem))
    ]
    return _solve(cp.Problem(cp.Minimize(cp.maximum(*ratios)), valid), solver)


def space_sharing(problem: AllocationProblem, solver: str) -> float:
    """Max-min fairness with pairs, by sparse matrices."""
    jobs, types = problem.throughput.shape
    pairs = problem.pairs
    x, y = cp.Variable((jobs, types), nonneg=True), cp.Variable((len(pairs), types), nonneg=True)
    norm = _norm(problem)
    column = np.arange(len(pairs))
    shape = (jobs, len(pairs))
    first = sparse.csr_array((np.ones(len(pairs)), (pairs.first, column)), shape=shape)
    second = sparse.csr_array((np.ones(len(pairs)), (pairs.second, column)), shape=shape)
    levels = cp.sum(cp.multiply(problem.throughput / norm[:, None], x), axis=1)
    levels += first @ cp.sum(
        cp.multiply(pairs.throughput_first / norm[pairs.first][:, None], y), axis=1
    )
    levels += second @ cp.sum(
        cp.multiply(pairs.throughput_second / norm[pairs.second][:, None], y), axis=1
    )
    valid = [
        cp.sum(x, axis=1) + (first + second) @ cp.sum(y, axis=1) <= 1,
        problem.gpus @ x + problem.gpus[pairs.first] @ y <= problem.capacity,
    ]
    return _solve(cp.Problem(cp.Maximize(cp.min(levels)), valid), solver)


def water_filling(problem: AllocationProblem, solver: str, limit_s: float) -> tuple[Numbers, int]:
    """Levels of all jobs, and how many programmes it took; jobs with a dual above 1e-6 are frozen.

    Raises
    ------
    Unfinished
        After ``limit_s`` of CPU time.
    """
    began = time.process_time()
    relative = problem.throughput / _norm(problem)[:, None]
    levels, rising, count = np.zeros(len(problem)), np.ones(len(problem), dtype=bool), 0
    while rising.any():
        x, valid = _allocation(problem)
        t = cp.Variable(nonneg=True)
        floor = np.where(rising, 0.0, levels)
        reached = cp.sum(cp.multiply(relative, x), axis=1) >= floor + rising.astype(float) * t
        _solve(cp.Problem(cp.Maximize(t), [reached, *valid]), solver)
        count += 1
        dual = np.abs(np.asarray(reached.dual_value))
        frozen = rising & (dual > 1e-6)
        if not frozen.any():
            frozen = rising & (dual == dual[rising].max())
        levels[frozen] = float(t.value)
        rising &= ~frozen
        if time.process_time() - began > limit_s:
            raise Unfinished(f"{count} programmes, {rising.sum()} of {len(problem)} jobs rising")
    return levels, count


def water_filling_published(
    problem: AllocationProblem, solver: str, limit_s: float
) -> tuple[Numbers, int]:
    """Levels by the published algorithm: of each level a mixed-integer programme says who can rise.

    Its constants are the published ones, so levels are good to 1e-4 only. Constraints are written
    for all jobs at once, which the published code does not do; the mixed-integer solver is HiGHS
    where that code names GLPK.
    """
    began = time.process_time()
    relative = problem.throughput / _norm(problem)[:, None]
    large, small, above = float(relative.max()), 1e-5, 1.0001
    levels, rising, count = np.zeros(len(problem)), np.ones(len(problem), dtype=bool), 0
    while rising.any():
        x, valid = _allocation(problem)
        reached = cp.sum(cp.multiply(relative, x), axis=1)
        settled = np.flatnonzero(~rising)
        kept = [reached[settled] >= levels[settled] * (1 - SLACK)] if len(settled) else []
        open_ = np.flatnonzero(rising)
        level = _solve(cp.Problem(cp.Maximize(cp.min(reached[open_])), kept + valid), solver)
        z = cp.Variable(len(open_), boolean=True)
        more = reached[open_]
        marked = [
            more >= level * (1 - SLACK),
            large * z >= more - level * above + small,
            large * (1 - z) >= level * above - more,
        ]
        _solve(cp.Problem(cp.Maximize(cp.sum(z)), kept + valid + marked), "HIGHS")
        count += 2
        still = np.zeros(len(problem), dtype=bool)
        still[open_[np.asarray(z.value) > 0.5]] = True
        frozen = rising & ~still
        if not frozen.any():
            raise Unfinished(f"no job was frozen after {count} programmes")
        levels[frozen] = level * (1 - SLACK)
        rising &= ~frozen
        if time.process_time() - began > limit_s:
            raise Unfinished(f"{count} programmes, {rising.sum()} of {len(problem)} jobs rising")
    return levels, count


def _allocation(problem: AllocationProblem) -> tuple[Any, list[Any]]:
    x = cp.Variable(problem.throughput.shape, nonneg=True)
    return x, [cp.sum(x, axis=1) <= 1, problem.gpus @ x <= problem.capacity]


def _norm(problem: AllocationProblem) -> Numbers:
    """Throughput that counts as 1: of the equal share, over the gang."""
    share = problem.capacity / problem.capacity.sum()
    return np.asarray(problem.weight * (problem.throughput @ share) / problem.gpus)


def _finish_times(problem: AllocationProblem) -> tuple[Numbers, Numbers]:
    """Seconds in isolation, and throughputs over steps times those: rho = elapsed / due + 1 / sum."""
    isolated = (problem.throughput * isolated_shares(problem)).sum(axis=1)
    due = problem.isolated_s + problem.steps / isolated
    return due, problem.throughput * (due / problem.steps)[:, None]


def _solve(program: Any, solver: str) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver=solver)
    if program.status != "optimal":
        raise cp.SolverError(f"{solver}: {program.status}")
    return float(program.value)
