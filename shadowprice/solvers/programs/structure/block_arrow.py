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
    """Strictly feasible primal and dual points; arrays are (types, jobs)."""

    def __init__(self, a: FloatArray, load: FloatArray, workers: FloatArray) -> None:
        self.a, self.load, self.workers = a, load, workers
        types, self.jobs = a.shape
        self.apart = a[:, None] - a[None, :]
        self.apart2 = self.apart**2
        share = 0.9 * np.minimum(1.0 / (types + 1), workers / load.sum())
        self.x = np.repeat(share[:, None], self.jobs, axis=1)
        self.t = 0.5 * float((a * self.x).sum(axis=0).min())
        best = a.max(axis=0)
        self.y = 1.1 / best / (1.0 / best).sum()
        self.v = 1.1 * best * self.y
        self.p = np.full(types, 0.1 * float((best * self.y).mean()))
        self.best_x, self.best_y, self.best_prices = self.x, self.y, self.p
        self.last, self.short = 1.0, 0
        self.count = types * self.jobs + 2 * self.jobs + types + 1
        self._slacks()

    def _slacks(self) -> None:
        a, x, load = self.a, self.x, self.load
        self.f = (a * x).sum(axis=0) - self.t
        self.u = 1.0 - x.sum(axis=0)
        self.w = self.workers - x @ load
        self.zx = self.v + np.outer(self.p, load) - a * self.y
        self.zt = float(self.y.sum()) - 1.0

    def gap(self) -> float:
        """Complementarity, which for feasible points is dual minus primal value."""
        return float(
            np.vdot(self.x, self.zx)
            + self.f @ self.y
            + self.u @ self.v
            + self.w @ self.p
            + self.t * self.zt
        )

    def step(self, tolerance: float) -> bool:
        """One predictor and corrector step; False when no progress can be made."""
        gap = self.gap()
        mu = gap / self.count
        system = _System(self)
        zero = _Products(
            -self.x * self.zx,
            -self.f * self.y,
            -self.u * self.v,
            -self.w * self.p,
            -self.t * self.zt,
        )
        guess = system.solve(zero)
        primal, dual = guess.lengths()
        after = guess.gap_after(primal, dual) / self.count
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
        before = (self.x, self.t, self.y, self.v, self.p)
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
        x, t, y, v, p = at
        self.x, self.t = x + primal * step.x, t + primal * step.t
        self.y, self.v, self.p = y + dual * step.y, v + dual * step.v, p + dual * step.p
        self._slacks()

    def _central(self) -> bool:
        """Inside, and no product of a variable and its slack far below the average."""
        pairs = (
            (self.x, self.zx),
            (self.f, self.y),
            (self.u, self.v),
            (self.w, self.p),
        )
        if not (
            self.t > 0 and self.zt > 0 and all((a > 0).all() and (b > 0).all() for a, b in pairs)
        ):
            return False
        least = min(self.t * self.zt, *(float((a * b).min()) for a, b in pairs))
        return bool(least >= _NEIGHBOURHOOD * self.gap() / self.count)


@dataclass(frozen=True)
class _Products:
    """Wanted changes of the products x zx, f y, u v, w p, t zt."""

    x: FloatArray
    f: FloatArray
    u: FloatArray
    w: FloatArray
    t: float

    def corrected(self, guess: _Step, centre: float) -> _Products:
        """The same with Mehrotra's second-order term and centring."""
        g = guess
        return _Products(
            self.x + (centre - g.x * g.zx),
            self.f + (centre - g.f * g.y),
            self.u + (centre - g.u * g.v),
            self.w + (centre - g.w * g.p),
            self.t + (centre - g.t * g.zt),
        )

    def centred(self, centre: float) -> _Products:
        """The same with centring alone."""
        return _Products(
            self.x + centre, self.f + centre, self.u + centre, self.w + centre, self.t + centre
        )

    def largest(self) -> float:
        """Largest absolute entry."""
        parts = (self.x, self.f, self.u, self.w, np.float64(self.t))
        return max(float(np.abs(part).max()) for part in parts)


class _System:
    """The Newton equations at a point, reduced to types + 1 unknowns."""

    def __init__(self, point: Iterate) -> None:
        self.at = point
        a, x, load = point.a, point.x, point.load
        self.d = d = x / point.zx
        self.ad = ad = a * d
        square = (a * ad).sum(axis=0)
        total = d.sum(axis=0)
        own, other = point.f / point.y, point.u / point.v
        own = own + _REGULAR * square
        other = other + _REGULAR * total
        self.b11, self.b12, self.b22 = own + square, ad.sum(axis=0), other + total
        apart = point.apart
        # Products of differences, so that nothing cancels where a job has one type to itself.
        spread = d[:, None] * d[None, :] * point.apart2
        det = own * self.b22 + other * square + 0.5 * spread.sum(axis=(0, 1))
        self.b11, self.b12, self.b22 = self.b11 / det, self.b12 / det, self.b22 / det
        self.g = (other * a + (d[None, :] * apart).sum(axis=1)) / det
        self.k = ((ad[None, :] * apart).sum(axis=1) - own) / det
        held = d * load
        self.into_y, self.into_v = held * self.g, held * self.k
        types = len(a)
        matrix = np.empty((types + 1, types + 1))
        for j in range(types):
            others = [k for k in range(types) if k != j]
            rest = own * (other + d[others].sum(axis=0)) + other * (a[others] * ad[others]).sum(
                axis=0
            )
            rest += 0.5 * spread[np.ix_(others, others)].sum(axis=(0, 1))
            matrix[j, j] = point.w[j] / point.p[j] + (held[j] * load * rest / det).sum()
            for k in range(j):
                both = other * a[j] * a[k] + own + (d * apart[j] * apart[k]).sum(axis=0)
                matrix[j, k] = matrix[k, j] = -(held[j] * held[k] * both / det).sum()
        matrix[:types, types] = -self.into_y.sum(axis=1)
        matrix[types, :types] = self.into_y.sum(axis=1)
        matrix[types, types] = point.zt / point.t + self.b22.sum()
        self.matrix = matrix

    def solve(self, want: _Products) -> _Step:
        """A step, refined: near the optimum the elimination loses up to 1e4 mean products."""
        at = self.at
        enough = _ACCURATE * at.gap() / at.count
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
        at, types = self.at, len(self.d)
        cx = want.x / at.zx
        cf, cu = want.f / at.y, want.u / at.v
        ky = self.b22 * cf + self.b12 * cu - (self.g * cx).sum(axis=0)
        kv = self.b12 * cf + self.b11 * cu - (self.k * cx).sum(axis=0)
        # Change of each x alone, were prices and t to stay: what is left of cx after its job's rows.
        alone = cx - self.d * (kv - at.a * ky)
        right = np.empty(types + 1)
        right[:types] = want.w / at.p + alone @ at.load
        right[types] = want.t / at.t - ky.sum()
        found = np.linalg.solve(self.matrix, right)
        dt = float(found[types])
        dp = np.asarray(found[:types], dtype=np.float64)
        dy = ky + self.b22 * dt + dp @ self.into_y
        dv = kv + self.b12 * dt + dp @ self.into_v
        dzx: FloatArray = dv + np.outer(dp, at.load) - at.a * dy
        dx: FloatArray = cx - self.d * dzx
        return _Step(at, dx, dt, dy, dv, dp, dzx)


class _Step:
    """A direction of primal (x, t) and dual (y, v, p) with the slacks that follow."""

    def __init__(
        self,
        at: Iterate,
        x: FloatArray,
        t: float,
        y: FloatArray,
        v: FloatArray,
        p: FloatArray,
        zx: FloatArray,
    ) -> None:
        self.at, self.x, self.t, self.y, self.v, self.p, self.zx = at, x, t, y, v, p, zx
        self.f = (at.a * x).sum(axis=0) - t
        self.u = -x.sum(axis=0)
        self.w = -(x @ at.load)
        self.zt = float(y.sum())

    def plus(self, other: _Step) -> _Step:
        """The sum of two steps."""
        return _Step(
            self.at,
            self.x + other.x,
            self.t + other.t,
            self.y + other.y,
            self.v + other.v,
            self.p + other.p,
            self.zx + other.zx,
        )

    def missing(self, want: _Products) -> _Products:
        """Wanted changes of products less those of this step, to first order."""
        at = self.at
        return _Products(
            want.x - (at.zx * self.x + at.x * self.zx),
            want.f - (at.y * self.f + at.f * self.y),
            want.u - (at.v * self.u + at.u * self.v),
            want.w - (at.p * self.w + at.w * self.p),
            want.t - (at.t * self.zt + at.zt * self.t),
        )

    def lengths(self) -> tuple[float, float]:
        """Longest primal and dual steps that stay feasible, at most 1."""
        at = self.at
        primal = [(at.x, self.x), (at.f, self.f), (at.u, self.u), (at.w, self.w)]
        dual = [(at.zx, self.zx), (at.y, self.y), (at.v, self.v), (at.p, self.p)]
        longest = [
            1.0 / max(1.0, max(float((-change / value).max()) for value, change in sides))
            for sides in (primal, dual)
        ]
        if self.t < 0:
            longest[0] = min(longest[0], -at.t / self.t)
        if self.zt < 0:
            longest[1] = min(longest[1], -at.zt / self.zt)
        return longest[0], longest[1]

    def gap_after(self, primal: float, dual: float) -> float:
        """Complementarity after a step of these lengths; bilinear, as both sides stay feasible."""
        at = self.at
        return float(
            np.vdot(at.x + primal * self.x, at.zx + dual * self.zx)
            + (at.f + primal * self.f) @ (at.y + dual * self.y)
            + (at.u + primal * self.u) @ (at.v + dual * self.v)
            + (at.w + primal * self.w) @ (at.p + dual * self.p)
            + (at.t + primal * self.t) * (at.zt + dual * self.zt)
        )


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
    scale, size = float(a.max(axis=1).mean()), float(load.mean())
    state = Iterate(np.ascontiguousarray(a.T) / scale, load / size, workers / size)
    iterations = 0
    with np.errstate(all="ignore"):
        while iterations < MAX_ITERATIONS and state.gap() > tolerance * state.t:
            if not state.step(tolerance):
                break
            iterations += 1
    x = _cleaned(state.best_x.T, load, workers)
    y = state.best_y / state.best_y.sum()
    prices = state.best_prices * scale / size
    value = float((a * x).sum(axis=1).min())
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
    return float(workers @ worker_price + np.maximum(surplus.max(axis=1), 0.0).sum())


def _cleaned(x: FloatArray, load: FloatArray, workers: FloatArray) -> FloatArray:
    """Exactly feasible after rounding: clipped, and scaled to time and workers."""
    x = np.maximum(x, 0.0)
    x = x / np.maximum(x.sum(axis=1), 1.0)[:, None]
    used = load @ x
    return np.asarray(x * np.minimum(1.0, workers / np.maximum(used, 1e-300))[None, :])
