"""The highest common level: max t such that every job gets t times what it needs.

Max-min fairness, makespan, one step of finish-time fairness and one of water filling are all this
programme, with different needs.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from shadowprice.models import gavel
from shadowprice.solvers.gavel import block_arrow
from shadowprice.solvers.gavel.merge import merge
from shadowprice.solvers.gavel.pair_columns import MANY_PAIRS, with_columns
from shadowprice.solvers.gavel.prices import PricedLevel
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.workspace import Workspace

EXACT = 1e-7
"""Relative gap up to which the block-arrow method's answer is taken; HiGHS's tolerance is the same."""


def highest_level(rates: Rates, need: FloatArray, workspace: Workspace) -> PricedLevel:
    """Maximise t subject to throughput(m, X) >= need_m t over valid allocations.

    Parameters
    ----------
    need : ndarray, shape (rows,)
        r_m >= 0 [steps/s]; not all zero.

    Notes
    -----
    Equal jobs are merged first, which is exact. Without space sharing the block-arrow method is
    tried where the workspace says so, unless a HiGHS method was asked for; its answer is
    taken if its own primal and dual values agree, otherwise HiGHS solves.
    """
    together = merge(rates, need)
    if together is not None:
        level = _solve(together.rates, need[together.sample] * together.rates.count, workspace)
        x, y = together.spread(level.x, level.y)
        kind = together.kind
        return PricedLevel(
            level.value,
            level.bound,
            x,
            y,
            level.job_price[kind],
            level.time_price[kind],
            level.worker_price,
            level.method,
        )
    return _solve(rates, need * rates.count, workspace)


def _solve(rates: Rates, need: FloatArray, workspace: Workspace) -> PricedLevel:
    if len(rates.pairs) > MANY_PAIRS:
        return with_columns(rates, lambda some: _solve_all(some, need, workspace))
    return _solve_all(rates, need, workspace)


def _solve_all(rates: Rates, need: FloatArray, workspace: Workspace) -> PricedLevel:
    own = rates.accelerators == tuple(range(len(rates.workers)))
    if (
        workspace.options.method == "auto"
        and rates.rows >= workspace.structured_rows
        and not len(rates.pairs)
        and own
        and bool((need > 0).all())
    ):
        began = time.process_time()
        level = _by_structure(rates, need)
        workspace.solver_s += time.process_time() - began
        if level.bound - level.value <= EXACT * level.value:
            return level
    return _by_highs(rates, need, workspace)


def _by_structure(rates: Rates, need: FloatArray) -> PricedLevel:
    """Rows in time of one job: x = X / n, load = s n."""
    open_ = rates.workers > 0
    a = (rates.alone * (rates.count / need)[:, None])[:, open_]
    load = rates.gang * rates.count
    if not open_.any() or not (a.max(axis=1) > 0).all():
        nothing = np.zeros(rates.rows)
        return PricedLevel(
            0.0, np.inf, 0 * rates.alone, np.zeros((0, 0)), nothing, nothing, rates.workers, ""
        )
    point = block_arrow.solve(a, load, rates.workers[open_])
    x = np.zeros_like(rates.alone)
    x[:, open_] = point.x * rates.count[:, None]
    worker_price = np.zeros(len(rates.workers))
    worker_price[open_] = point.worker_price
    surplus = a * point.job_price[:, None] - load[:, None] * point.worker_price[None, :]
    time_price = np.maximum(surplus.max(axis=1), 0.0) / rates.count
    pairs = np.zeros((0, rates.alone.shape[1]))
    job_price = point.job_price / need
    return PricedLevel(
        point.value, point.bound, x, pairs, job_price, time_price, worker_price, "block-arrow"
    )


def _by_highs(rates: Rates, need: FloatArray, workspace: Workspace) -> PricedLevel:
    """In units of each job's best rate and of the level no job can exceed alone: tolerances are absolute."""
    best = rates.best
    rate = np.divide(1.0, best, out=np.ones_like(best), where=best > 0)
    asking = (need > 0) & (best > 0)
    unit = float((best[asking] / need[asking]).min()) if asking.any() else 1.0
    pairs = rates.pairs
    scaled = replace(
        rates,
        alone=rates.alone * rate[:, None],
        pairs=replace(
            pairs,
            throughput_first=pairs.throughput_first * rate[pairs.first, None],
            throughput_second=pairs.throughput_second * rate[pairs.second, None],
        ),
    )
    solved = workspace.solve(gavel.max_min, scaled, r=need * rate * unit)
    time_price, worker_price = unit * solved.dual("time"), unit * solved.dual("workers")
    value = unit * solved.solution.objective
    bound = float(rates.workers @ worker_price + rates.count @ time_price)
    job_price = unit * rate * solved.dual("fair")
    return PricedLevel(
        value, bound, solved.x, solved.y, job_price, time_price, worker_price, "highs"
    )
