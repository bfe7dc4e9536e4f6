r"""An interior-point method for max-min allocations that uses their structure.

The programme of :func:`shadowprice.models.gavel.max_min` without space sharing, with a_mj = T_mj / r_m:

.. math::

    \max t, \quad \sum_j a_{mj} x_{mj} - f_m = t, \quad \sum_j x_{mj} + u_m = 1, \quad
    \sum_m l_m x_{mj} + w_j = W_j, \qquad x, f, u, w \ge 0

Each job has two rows of its own and is tied to the others by t and the few rows of workers only,
so the normal equations are one 2 x 2 block a job bordered by types + 1 rows: a Newton step is
O(jobs x types^2) (derived; the arrow structure is textbook, e.g. Wright, Primal-Dual
Interior-Point Methods, 1997, ch. 11). Strictly feasible points of primal and dual are at hand, and
slacks are recomputed from their definitions in every iteration, so that both stay feasible and
the complementarity gap is the true gap: primal value and dual value are certificates by
themselves, checked again in :func:`solve` from x and the prices alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.narrow_tables import across
from shadowprice.solvers.threads import one_blas_thread

# Newton steps.


FloatArray = NDArray[np.float64]

_NEIGHBOURHOOD = 1e-4
"""Products of variables and slacks stay above this share of their mean: the wide neighbourhood."""
_BACKTRACKS = 20
_SHORT_STEPS = 6
"""Steps in a row that hardly move, after which there is no use in going on."""
_ACCURATE = 1e-3
"""Error of a Newton step, in units of the mean product, from which it is refined."""
_REFINEMENTS = 3
_REGULAR = 1e-13
"""Relative weight added to slacks of degenerate rows (a job limited by its own time)."""


class Iterate:
    """Strictly feasible primal and dual points.

    Attributes
    ----------
    primal, dual : ndarray, shape (types + 2, jobs)
        x of each type, then the slacks f and u; and what each of them is multiplied with: zx, y and v.
    w, p : ndarray, shape (types,)
    t, zt : float
    """

    def __init__(self, a: FloatArray, load: FloatArray, workers: FloatArray) -> None:
        self.a, self.load, self.workers = a, load, workers
        types, self.jobs = a.shape
        self.types = types
        self.pairs = [(j, k) for j in range(types) for k in range(j)]
        self.apart = a[:, None] - a[None, :]
        self.apart2 = {pair: self.apart[pair] ** 2 for pair in self.pairs}
        share = 0.9 * np.minimum(1.0 / (types + 1), workers / load.sum())
        x = np.repeat(share[:, None], self.jobs, axis=1)
        t = 0.5 * float(_summed(a * x).min())
        best = a.max(axis=0)
        y = 1.1 / best / (1.0 / best).sum()
        p = np.full(types, 0.1 * float((best * y).mean()))
        self.primal, self.dual = (np.empty((types + 2, self.jobs)) for _ in range(2))
        self._place(x, t, np.stack((y, 1.1 * best * y)), p)
        self.best_x, self.best_y, self.best_prices = self.x, self.y, self.p
        self.last, self.short = 1.0, 0
        self.count = types * self.jobs + 2 * self.jobs + types + 1

    @property
    def x(self) -> FloatArray:
        """Time of each job on each type, shape (types, jobs)."""
        return self.primal[: self.types]

    @property
    def y(self) -> FloatArray:
        """Prices of throughput, shape (jobs,)."""
        row: FloatArray = self.dual[-2]
        return row

    def _place(self, x: FloatArray, t: float, yv: FloatArray, p: FloatArray) -> None:
        """Move to a point, and compute its slacks from their definitions."""
        a, load, types = self.a, self.load, self.types
        primal, dual = np.empty_like(self.primal), np.empty_like(self.dual)
        primal[:types], dual[types:] = x, yv
        self.t, self.p = t, p
        np.subtract(_summed(a * x), t, out=primal[types])
        np.subtract(1.0, _summed(x), out=primal[types + 1])
        self.w = self.workers - x @ load
        np.subtract(yv[1] + p[:, None] * load, a * yv[0], out=dual[:types])
        self.zt = float(yv[0].sum()) - 1.0
        self.primal, self.dual = primal, dual
        # Complementarity, which for feasible points is dual minus primal value.
        self.gap = float(np.vdot(primal, dual) + self.w @ p + t * self.zt)

    def step(self, tolerance: float) -> bool:
        """One predictor and corrector step; False when no progress can be made."""
        mu = self.gap / self.count
        system = _System(self)
        zero = _Products(-self.primal * self.dual, -self.w * self.p, -self.t * self.zt)
        guess = system.solve(zero)
        after = guess.gap_after(*guess.lengths()) / self.count
        if self.last < 0.01:
            # After a short step the point is too near a wall: to the centre first, without the
            # second-order term, which supposes a full step.
            step = system.solve(zero.centred(mu))
        else:
            least = 0.5 if self.last < 0.1 else 0.1 if self.last < 0.5 else 0.0
            share = max(min((after / mu) ** 3, 1.0), least)
            centre = max(share * mu, 0.05 * tolerance * self.t / self.count)
            step = system.solve(zero.corrected(guess, centre))
        reach = 0.9995
        primal, dual = (min(1.0, reach * length) for length in step.lengths())
        before = (self.x, self.t, self.dual[self.types :], self.p)
        for _ in range(_BACKTRACKS):
            self.last = min(primal, dual)
            self._move(before, step, primal, dual)
            if self._central():
                self.best_x, self.best_y, self.best_prices = self.x, self.y, self.p
                self.short = self.short + 1 if primal + dual < 1e-3 else 0
                return self.short < _SHORT_STEPS
            primal, dual = 0.7 * primal, 0.7 * dual
        self._move(before, step, 0.0, 0.0)
        return False

    def _move(self, at: tuple[Any, ...], step: _Step, primal: float, dual: float) -> None:
        (x, t, yv, p), types = at, self.types
        self._place(
            x + primal * step.primal[:types],
            t + primal * step.t,
            yv + dual * step.dual[types:],
            p + dual * step.p,
        )

    def _central(self) -> bool:
        """Inside, and no product of a variable and its slack far below the average."""
        ends = (self.primal.min(), self.dual.min(), self.w.min(), self.p.min())
        if not (self.t > 0 and self.zt > 0 and float(np.min(ends)) > 0):
            return False
        products = (self.primal * self.dual).min(), (self.w * self.p).min()
        least = min(self.t * self.zt, *map(float, products))
        return bool(least >= _NEIGHBOURHOOD * self.gap / self.count)


@dataclass(frozen=True)
class _Products:
    """Wanted changes of the products of primal and dual, w p, and t zt."""

    each: FloatArray
    w: FloatArray
    t: float

    def corrected(self, guess: _Step, centre: float) -> _Products:
        """The same with Mehrotra's second-order term and centring."""
        g = guess
        return _Products(
            self.each + (centre - g.primal * g.dual),
            self.w + (centre - g.w * g.p),
            self.t + (centre - g.t * g.zt),
        )

    def centred(self, centre: float) -> _Products:
        """The same with centring alone."""
        return _Products(self.each + centre, self.w + centre, self.t + centre)

    def largest(self) -> float:
        """Largest absolute entry."""
        of_w = float(np.abs(self.w).max())
        return max(float(self.each.max()), -float(self.each.min()), of_w, abs(self.t))


class _System:
    """The Newton equations at a point, reduced to types + 1 unknowns."""

    def __init__(self, point: Iterate) -> None:
        self.at = point
        a, load, types = point.a, point.load, point.types
        ratio = point.primal / point.dual
        self.d = d = ratio[:types]
        ad = a * d
        square_each = a * ad
        square, total = _summed(square_each), _summed(d)
        own, other = ratio[types] + _REGULAR * square, ratio[types + 1] + _REGULAR * total
        self.b12, self.b22 = _summed(ad), other + total
        b11 = own + square
        apart = point.apart
        # Products of differences, so that nothing cancels where a job has one type to itself.
        spread = {(j, k): d[j] * d[k] * apart2 for (j, k), apart2 in point.apart2.items()}
        det = own * self.b22 + other * square
        for part in spread.values():
            det += part
        self.b11, self.b12, self.b22 = b11 / det, self.b12 / det, self.b22 / det
        self.g = (other * a + (d * apart).sum(axis=1)) / det
        self.k = ((ad * apart).sum(axis=1) - own) / det
        held = d * load
        self.into_y, self.into_v = held * self.g, held * self.k
        matrix = np.empty((types + 1, types + 1))
        held_det, mine = held / det, other * a
        of_type = list(zip(d, square_each, strict=True))
        for j in range(types):
            time, squares = other, np.zeros_like(other)
            for k in (*range(j), *range(j + 1, types)):
                time, squares = time + of_type[k][0], squares + of_type[k][1]
            rest = own * time + other * squares
            for (i, k), part in spread.items():
                if j not in (i, k):
                    rest += part
            matrix[j, j] = point.w[j] / point.p[j] + (held_det[j] * load) @ rest
            mixed = d * apart[j]
            for k in range(j):
                both = mine[j] * a[k] + own + _summed(mixed * apart[k])
                matrix[j, k] = matrix[k, j] = -((held_det[j] * held[k]) @ both)
        matrix[:types, types] = -self.into_y.sum(axis=1)
        matrix[types, :types] = -matrix[:types, types]
        matrix[types, types] = point.zt / point.t + self.b22.sum()
        self.matrix = matrix

    def solve(self, want: _Products) -> _Step:
        """A step, refined: near the optimum the elimination loses up to 1e4 mean products."""
        at = self.at
        enough = _ACCURATE * at.gap / at.count
        step = self._solve(want)
        missing = step.missing(want)
        for _ in range(_REFINEMENTS):
            if missing.largest() <= enough:
                break
            better = step.plus(self._solve(missing))
            left = better.missing(want)
            if left.largest() >= 0.9 * missing.largest():
                break
            step, missing = better, left
        return step

    def _solve(self, want: _Products) -> _Step:
        at, types = self.at, self.at.types
        change = want.each / at.dual
        cx, cf, cu = change[:types], change[types], change[types + 1]
        ky = self.b22 * cf + self.b12 * cu - _summed(self.g * cx)
        kv = self.b12 * cf + self.b11 * cu - _summed(self.k * cx)
        # Change of each x alone, were prices and t to stay: what is left of cx after its job's rows.
        alone = cx - self.d * (kv - at.a * ky)
        right = np.empty(types + 1)
        right[:types] = want.w / at.p + alone @ at.load
        right[types] = want.t / at.t - ky.sum()
        found = np.linalg.solve(self.matrix, right)
        dt = float(found[types])
        dp = np.asarray(found[:types], dtype=np.float64)
        dual = np.empty_like(at.dual)
        dual[types] = dy = ky + self.b22 * dt + dp @ self.into_y
        dual[types + 1] = dv = kv + self.b12 * dt + dp @ self.into_v
        np.subtract(dv + dp[:, None] * at.load, at.a * dy, out=dual[:types])
        primal = np.empty_like(at.primal)
        dx = np.subtract(cx, self.d * dual[:types], out=primal[:types])
        np.subtract(_summed(at.a * dx), dt, out=primal[types])
        np.negative(_summed(dx), out=primal[types + 1])
        return _Step(at, primal, dual, dt, float(dy.sum()), -(dx @ at.load), dp)


@dataclass(frozen=True, eq=False)
class _Step:
    """A direction of primal and dual, of t with its slack zt, and of w and the prices p."""

    at: Iterate
    primal: FloatArray
    dual: FloatArray
    t: float
    zt: float
    w: FloatArray
    p: FloatArray

    def plus(self, other: _Step) -> _Step:
        """The sum of two steps."""
        return _Step(
            self.at,
            self.primal + other.primal,
            self.dual + other.dual,
            self.t + other.t,
            self.zt + other.zt,
            self.w + other.w,
            self.p + other.p,
        )

    def missing(self, want: _Products) -> _Products:
        """Wanted changes of products less those of this step, to first order."""
        at = self.at
        return _Products(
            want.each - (at.dual * self.primal + at.primal * self.dual),
            want.w - (at.p * self.w + at.w * self.p),
            want.t - (at.t * self.zt + at.zt * self.t),
        )

    def lengths(self) -> tuple[float, float]:
        """Longest primal and dual steps that stay feasible, at most 1."""
        at = self.at
        primal = (self.primal / at.primal).min(), (self.w / at.w).min(), self.t / at.t
        dual = (self.dual / at.dual).min(), (self.p / at.p).min(), self.zt / at.zt
        falls = (-min(map(float, primal)), -min(map(float, dual)))
        return 1.0 / max(1.0, falls[0]), 1.0 / max(1.0, falls[1])

    def gap_after(self, primal: float, dual: float) -> float:
        """Complementarity after a step of these lengths; bilinear, as both sides stay feasible."""
        at = self.at
        return float(
            np.vdot(at.primal + primal * self.primal, at.dual + dual * self.dual)
            + (at.w + primal * self.w) @ (at.p + dual * self.p)
            + (at.t + primal * self.t) * (at.zt + dual * self.zt)
        )


def _summed(table: FloatArray) -> FloatArray:
    """Sum over the types."""
    total: FloatArray = np.add.reduce(table, axis=0)
    return total


MAX_ITERATIONS = 60


@dataclass(frozen=True)
class Point:
    """Primal and dual solution of the method; both sides are feasible.

    Parameters
    ----------
    value, bound : float
        min_m sum_j a_mj x_mj, and the value of the dual prices: no allocation has a higher minimum.
    x : ndarray, shape (jobs, types)
    job_price : ndarray, shape (jobs,)
        y_m >= 0, sum 1: what a unit of normalised throughput of the job is worth.
    worker_price : ndarray, shape (types,)
        What a unit of worker time is worth.
    iterations : int
    """

    value: float
    bound: float
    x: FloatArray
    job_price: FloatArray
    worker_price: FloatArray
    iterations: int


@one_blas_thread
def solve(a: FloatArray, load: FloatArray, workers: FloatArray, tolerance: float = 1e-9) -> Point:
    """Maximise the smallest normalised throughput; O(jobs x types^2) an iteration, 10 to 40 of them.

    Parameters
    ----------
    a : ndarray, shape (jobs, types)
        Throughput over need; every job positive somewhere.
    load : ndarray, shape (jobs,)
        GPUs a unit of the job's time takes: its gang, times the number of equal jobs of the row.
    workers : ndarray, shape (types,)
        GPUs of each type, positive.
    tolerance : float
        Relative gap at which to stop.

    Returns
    -------
    Point
        Its gap may exceed the tolerance when numbers are extreme: compare value and bound.
    """
    scale, size = float(across(np.maximum, a).mean()), float(load.mean())
    state = Iterate(np.ascontiguousarray(a.T) / scale, load / size, workers / size)
    iterations = 0
    with np.errstate(all="ignore"):
        while iterations < MAX_ITERATIONS and state.gap > tolerance * state.t:
            if not state.step(tolerance):
                break
            iterations += 1
    x = _cleaned(state.best_x.T, load, workers)
    y = state.best_y / state.best_y.sum()
    prices = state.best_prices * scale / size
    value = float(across(np.add, a * x).min())
    return Point(value, bound(a, load, workers, y, prices), x, y, prices, iterations)


def bound(
    a: FloatArray,
    load: FloatArray,
    workers: FloatArray,
    job_price: FloatArray,
    worker_price: FloatArray,
) -> float:
    """Value of a dual point, sum_j W_j p_j + sum_m max(0, max_j a_mj y_m - l_m p_j).

    For any y >= 0 with sum 1 and any p >= 0 no allocation has a higher minimum (weak duality).
    """
    surplus = a * job_price[:, None] - load[:, None] * worker_price[None, :]
    return float(workers @ worker_price + np.maximum(across(np.maximum, surplus), 0.0).sum())


def _cleaned(x: FloatArray, load: FloatArray, workers: FloatArray) -> FloatArray:
    """Exactly feasible after rounding: clipped, and scaled to time and workers."""
    x = np.maximum(x, 0.0)
    x = x / np.maximum(across(np.add, x), 1.0)[:, None]
    used = load @ x
    return np.asarray(x * np.minimum(1.0, workers / np.maximum(used, 1e-300))[None, :])
