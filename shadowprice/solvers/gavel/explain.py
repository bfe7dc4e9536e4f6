"""Explanation of each job's allocation, in words, from the dual prices of a max-min programme."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import NOT_PROVEN, Allocation, Prices

SMALL = 1e-7
"""Share of the objective below which a price is rounding of the solver."""


def explain(allocation: Allocation) -> list[str]:
    """A sentence for each job.

    Complementary slackness: a job with a price holds the level down; it is bounded by its own
    time if that has a price, and by the GPUs of each accelerator with a price on which it
    runs; a job without a price has the level, or gets more. Prices of an answer that is not proven
    explain nothing, and none is given.
    """
    problem, prices = allocation.problem, allocation.prices
    if not allocation.proven:
        return [
            f"job {name}: {rate:.6g} steps/s; the allocation is {NOT_PROVEN}, so no price says why"
            for name, rate in zip(
                problem.id.tolist(), allocation.effective_throughput.tolist(), strict=True
            )
        ]
    if prices is None:
        return [
            f"job {name}: policy {allocation.policy} has no prices" for name in problem.id.tolist()
        ]
    reached = allocation.effective_throughput
    names, used = accelerator_names(problem), _used(allocation)
    if prices.worker.shape[1] < len(names):  # an agnostic policy prices all types as one
        names, used = ["all types'"], np.any(used, axis=1)[:, None]
    full = reached >= problem.throughput.max(axis=1, initial=0.0) * (1.0 - 1e-6)
    return [
        f"job {problem.id[m]}: {reached[m]:.6g} steps/s, {_why(m, bool(full[m]), used[m], prices, names)}"
        for m in range(len(problem))
    ]


def _used(allocation: Allocation) -> NDArray[np.bool_]:
    """Mask of accelerators that each job runs on, alone or shared; shape (jobs, accelerators)."""
    problem, pairs = allocation.problem, allocation.problem.pairs
    time = allocation.alone.copy()
    np.add.at(time, pairs.first, allocation.shared)
    np.add.at(time, pairs.second, allocation.shared)
    used = np.zeros((len(problem), len(problem.capacity)), dtype=bool)
    for j, accelerator in enumerate(problem.accelerators):
        used[:, accelerator] |= time[:, j] > SMALL
    return used


def accelerator_names(problem: AllocationProblem) -> list[str]:
    """The first type that draws on each accelerator."""
    return [problem.gpu_types[problem.accelerators.index(a)] for a in range(len(problem.capacity))]


def _why(job: int, full: bool, used: NDArray[np.bool_], prices: Prices, names: list[str]) -> str:
    level = prices.level[job]
    stage = int(prices.stage[job])
    further = [
        f"row {row.name}, price {row.price:.6g}"
        for row in prices.rows
        if row.stage == stage and job in row.jobs
    ]
    if full and not further:
        return f"level {level:.6g}, bounded by its own time: it always runs at its best rate"
    worker = prices.worker[min(stage, len(prices.worker) - 1)]
    if prices.job[job] <= SMALL * prices.job.max(initial=0.0):
        if further or prices.spare[job]:
            bound = ", ".join(further) or "nobody: more than the level asks for"
            return f"level {level:.6g}, bounded by {bound}"
        return f"level {level:.6g}, which it just has: more would cost too little to tell"
    bounds = [
        f"{names[a]} capacity, price {worker[a]:.6g} a GPU"
        for a in np.flatnonzero(used & (worker > SMALL * worker.max(initial=0.0))).tolist()
    ]
    if prices.time[job] > SMALL * max(float(prices.time.max()), float(worker.max(initial=0.0))):
        bounds.insert(0, f"its own time, price {prices.time[job]:.6g}")
    bounds += further
    return f"level {level:.6g}, bounded by {', '.join(bounds) or 'its fastest type'}"
