"""Values of allocations, evaluated from fractions of time; and the little that solvers leave out, added.

Solvers tell 1e-7 of a row from 0 and no less. A job whose fair share is 1e-9 of another's may get
nothing for all that their tolerances know, and the smallest throughput is then 0. So objectives are
evaluated from fractions, sizes are given where they differ widely, and what is short is added.
"""

from __future__ import annotations

import numpy as np

from shadowprice.solvers.gavel.rates import FloatArray, Rates

CLOSE = 5e-6
"""Largest gap between objective and bound, relative to the objective, of an answer that is called optimal."""

SAME = 1e-6
"""Relative difference of a solver's value and the one evaluated from fractions that is rounding."""

TOO_FAR_APART = (
    "numbers of the problem are too far apart: no solver finds its optimum, expected prices and "
    "throughputs within some ten decades"
)
"""Message where a solver's answer cannot be true, and neither can that to the same question in other units."""


def off(value: float, bound: float) -> float:
    """Distance of a value from its bound, relative to itself; infinite where that cannot be said."""
    if value == bound:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(np.float64(value) - bound) / np.abs(np.float64(value))
    return float(gap) if np.isfinite(gap) else float("inf")


def usable(rates: Rates) -> FloatArray:
    """Most time a job can spend on each type, by GPUs alone; shape (rows, types)."""
    return np.minimum(1.0, rates.workers[list(rates.accelerators)] / rates.gang[:, None])


def share_sizes(rates: Rates, wanted: FloatArray) -> dict[str, FloatArray]:
    """Time that jobs, and pairs, need to reach the throughputs wanted: sizes of x and y."""
    sizes = {"x": _size(wanted[:, None], rates.alone)}
    if len(rates.pairs):
        pairs = rates.pairs
        first = _size(wanted[pairs.first][:, None], pairs.throughput_first)
        second = _size(wanted[pairs.second][:, None], pairs.throughput_second)
        sizes["y"] = np.maximum(first, second)
    return sizes


def _size(wanted: FloatArray, rate: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        time = np.nan_to_num(wanted / rate, nan=1.0, posinf=1.0)
    return np.asarray(np.clip(np.where(time > 0, time, 1.0), 1e-60, 1.0))


def completed(
    rates: Rates, x: FloatArray, y: FloatArray, wanted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fractions with which jobs have the throughputs wanted, as far as GPUs and time allow; O(entries).

    Jobs that are short run longer on the type that is fastest for them; where that asks for more time or
    GPUs than there are, those who have more than they want give it up first.
    """
    x, y = x.copy(), y.copy()
    got = rates.throughput(x, y)
    best = (rates.alone * usable(rates)).argmax(axis=1)
    rate = rates.alone[np.arange(rates.rows), best]
    short = (got < wanted) & (rate > 0)
    x[short, best[short]] += (wanted - got)[short] / rate[short]
    if overfull(rates, x, y) > SAME:
        spare = np.where(got > wanted, wanted / np.where(got > 0, got, 1.0), 1.0)
        x *= spare[:, None]
        if len(y):
            y *= np.maximum(spare[rates.pairs.first], spare[rates.pairs.second])[:, None]
    return _fitted(rates, x, y)


def _loads(rates: Rates, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Time of each job, and GPUs used over those there are by type, both at most 1 where all fits."""
    time, pairs = x.sum(axis=1), rates.pairs
    per_type = rates.gang @ x
    if len(pairs):
        both = y.sum(axis=1)
        time = time + np.bincount(pairs.first, both, rates.rows)
        time = time + np.bincount(pairs.second, both, rates.rows)
        per_type = per_type + rates.gang[pairs.first] @ y
    used = np.bincount(rates.accelerators, per_type, len(rates.workers))
    over = np.where(used > 0, used / np.maximum(rates.workers, 1e-300), 0.0)
    return time, over[list(rates.accelerators)]


def overfull(rates: Rates, x: FloatArray, y: FloatArray) -> float:
    """Largest share by which time, or GPUs, are exceeded."""
    time, gpus = _loads(rates, x, y)
    return float(max(time.max(initial=0.0), gpus.max(initial=0.0)) - 1.0)


def _fitted(rates: Rates, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same, less in proportion where time or GPUs are exceeded."""
    time, gpus = _loads(rates, x, y)
    of_job, of_type = 1.0 / np.maximum(time, 1.0), 1.0 / np.maximum(gpus, 1.0)
    x = x * of_job[:, None] * of_type[None, :]
    if len(y):
        pair = np.minimum(of_job[rates.pairs.first], of_job[rates.pairs.second])
        y = y * pair[:, None] * of_type[None, :]
    return x, y
