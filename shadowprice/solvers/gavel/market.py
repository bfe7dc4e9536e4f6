"""Equilibrium of the market for GPU time: the allocation that maximises the weighted sum of logarithms of throughputs.

Source: Eisenberg and Gale, Annals of Math. Statistics 30, 1959: with budgets w_m, prices of GPUs and of each job's own
time, every job buys what gives it most steps for its money, and all that has a price is sold. Solved by a primal-dual
interior point method (Wright, Primal-Dual Interior-Point Methods, 1997, ch. 5; recalled) whose Newton systems
fall into a small one for each job and one for the prices of accelerators. The answer does not rest
on the method: any prices that leave nobody a better buy bound the optimum (:meth:`Equilibrium.gap`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.solvers.gavel.rates import FloatArray, Rates

_CLOSE = 1e-8
"""Share of all budgets by which an answer may be off, in the sum of weighted logarithms."""

_STEPS = 200
_TO_BOUNDARY = 0.99

_FLAT = 1e-10
"""Least curvature of a Newton system, of budgets of at most 1."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """An allocation, and prices that say how far from the largest sum of logarithms it may be.

    Parameters
    ----------
    x : ndarray, shape (jobs, types)
        Fractions of time.
    throughput : ndarray, shape (jobs,)
        Steps per second of each job, above 0.
    worker : ndarray, shape (accelerators,)
        Price of a GPU.
    time : ndarray, shape (jobs,)
        Price of each job's own time: the least that leaves it no better buy.
    gap : float
        The sum of weighted logarithms of any allocation exceeds that of this one by no more.
    """

    x: FloatArray
    throughput: FloatArray
    worker: FloatArray
    time: FloatArray
    gap: float


def equilibrium(rates: Rates, budget: FloatArray) -> Equilibrium:
    """The largest weighted sum of logarithms of throughputs, to a hundred-millionth of the budgets.

    O(jobs types^3) a step, some thirty steps.

    Parameters
    ----------
    rates : Rates
        Without pairs; each job has throughput on a type that has GPUs.
    budget : ndarray, shape (jobs,)
        Weights w_m > 0.

    Raises
    ------
    SolverError
        If no answer is close enough.
    """
    path = _CentralPath(rates, budget / budget.max())
    best = path.answer()
    for _ in range(_STEPS):
        if best.gap <= _CLOSE * path.budget.sum():
            scale = float(budget.max())
            priced = (scale * best.worker, scale * best.time, scale * best.gap)
            return Equilibrium(best.x, best.throughput, *priced)
        try:
            path.step()
        except np.linalg.LinAlgError:
            break
        found = path.answer()
        if found.gap < best.gap:
            best = found
    raise SolverError(
        f"proportional fairness: the best allocation found may be {best.gap:.3g} from the largest sum of "
        f"logarithms, expected {_CLOSE * path.budget.sum():.3g}"
    )


def prices_of_time(
    rates: Rates, budget: FloatArray, throughput: FloatArray, worker: FloatArray
) -> FloatArray:
    r"""Least prices of the jobs' own time at which none has a better buy than its throughput, shape (jobs,).

    That is :math:`q_m \ge w_m T_{mj} / T_m - s_m p_j` for all types that have GPUs.
    """
    accelerators = list(rates.accelerators)
    worth = (budget / throughput)[:, None] * rates.alone * (rates.workers[accelerators] > 0)
    costs = rates.gang[:, None] * worker[accelerators]
    return np.asarray(np.maximum((worth - costs).max(axis=1), 0.0))


class _CentralPath:
    """Points inside the polytope that follow the central path to the optimum.

    ``x`` has the slacks ``idle_time`` of each job and ``idle_gpus`` of each accelerator; ``time``, ``worker`` and
    ``unused`` are the prices of the rows and of x >= 0.
    """

    def __init__(self, rates: Rates, budget: FloatArray) -> None:
        self.rates, self.budget = rates, budget
        on_type = rates.workers[list(rates.accelerators)] > 0
        self.able = (rates.alone > 0) & on_type
        self.speed = np.where(self.able, rates.alone, 0.0)
        self.speed /= self.speed.max(axis=1, keepdims=True)
        accelerators = len(rates.workers)
        draws = np.zeros((len(rates.accelerators), accelerators))
        draws[np.arange(len(rates.accelerators)), list(rates.accelerators)] = 1.0
        self.draws = draws
        asked = (rates.gang @ self.able) @ draws
        # No GPUs, or nobody who can use them: a row that never binds.
        self.capacity = np.where(asked > 0, rates.workers, 1.0)
        asked = np.maximum(asked, 1e-300)
        even = np.minimum(1.0 / self.able.sum(axis=1)[:, None], (self.capacity / asked) @ draws.T)
        self.x = np.where(self.able, 0.5 * even, 0.0)
        self.idle_time = 1.0 - self.x.sum(axis=1)
        self.idle_gpus = self.capacity - (rates.gang @ self.x) @ draws
        self.throughput = (self.speed * self.x).sum(axis=1)
        count = self.able.sum() + len(budget) + accelerators
        level = float(budget.sum() / count)
        self.count = int(count)
        self.unused = np.where(self.able, level / np.where(self.able, self.x, 1.0), 0.0)
        self.time, self.worker = level / self.idle_time, level / self.idle_gpus

    def complementarity(self) -> float:
        """Mean product of a price and its slack."""
        total = (self.unused * self.x).sum() + (self.time * self.idle_time).sum()
        return float((total + (self.worker * self.idle_gpus).sum()) / self.count)

    def step(self) -> None:
        """One Newton step towards a tenth of the complementarity, as far as all stays above 0."""
        goal = 0.1 * self.complementarity()
        by_job, by_price = self._job_systems(goal)
        types = self.able.shape[1]
        left = self._used(by_price[:, :types])
        left -= np.diag(self.idle_gpus / self.worker)
        right = self.idle_gpus - goal / self.worker - self._used(by_job[:, :types, None])[:, 0]
        # Where types are alike to all who use both, rounding leaves one price undetermined.
        worker: FloatArray = np.asarray(np.linalg.lstsq(left, right)[0], dtype=np.float64)
        moves = by_job + by_price @ worker
        dx, time = self.x * moves[:, :types], moves[:, types]
        x = np.where(self.able, self.x, 1.0)
        unused = np.where(self.able, goal / x - self.unused * (1.0 + moves[:, :types]), 0.0)
        # By their products, not from x: what is next to nothing would be lost in a difference.
        idle_time = goal / self.time - self.idle_time * (1.0 + time / self.time)
        idle_gpus = goal / self.worker - self.idle_gpus * (1.0 + worker / self.worker)
        primal = _reach((self.x, dx), (self.idle_time, idle_time), (self.idle_gpus, idle_gpus))
        dual = _reach((self.unused, unused), (self.time, time), (self.worker, worker))
        self.x = self.x + primal * dx
        self.idle_time = self.idle_time + primal * idle_time
        self.idle_gpus = self.idle_gpus + primal * idle_gpus
        self.worker, self.time = self.worker + dual * worker, self.time + dual * time
        self.unused = self.unused + dual * unused
        self.throughput = (self.speed * self.x).sum(axis=1)

    def _job_systems(self, goal: float) -> tuple[FloatArray, FloatArray]:
        """Changes of each job's x, as parts of x, and of the price of its time.

        Returns
        -------
        (ndarray, ndarray)
            Of shape (jobs, types + 1) at the present prices of GPUs, and what each unit more of a price adds,
            shape (jobs, types + 1, accelerators).
        """
        jobs, types = self.able.shape
        gradient = (self.budget / self.throughput)[:, None] * self.speed * self.x
        bend = gradient / np.sqrt(self.budget)[:, None]
        system = np.zeros((jobs, types + 1, types + 1))
        system[:, :types, :types] = bend[:, :, None] * bend[:, None, :]
        each = np.arange(types)
        system[:, each, each] += np.where(self.able, np.maximum(self.unused * self.x, _FLAT), 1.0)
        system[:, :types, types] = system[:, types, :types] = self.x
        system[:, types, types] = -self.idle_time / self.time
        gang, draws = self.rates.gang, self.draws
        wanted = np.zeros((jobs, types + 1, 1 + draws.shape[1]))
        paid = self.time[:, None] + gang[:, None] * (self.worker @ draws.T)
        wanted[:, :types, 0] = np.where(self.able, gradient - self.x * paid + goal, 0.0)
        wanted[:, types, 0] = self.idle_time - goal / self.time
        wanted[:, :types, 1:] = -(gang[:, None] * self.x)[:, :, None] * draws[None]
        found = np.linalg.solve(system, wanted)
        return found[:, :, 0], found[:, :, 1:]

    def _used(self, parts: FloatArray) -> FloatArray:
        """GPUs of each accelerator that changes of x use, as parts of x; shape (accelerators, columns)."""
        held = self.rates.gang[:, None] * self.x
        return np.asarray(self.draws.T @ np.einsum("mk,mkc->kc", held, parts))

    def answer(self) -> Equilibrium:
        """The point with the prices of GPUs, and what any allocation may be better.

        The logarithm is concave: the sum for throughputs T' exceeds that for T by at most the sum of
        :math:`w_m (T'_m / T_m - 1)`, which by the prices is at most all they charge, less the budgets.
        """
        rates = self.rates
        got = np.asarray((rates.alone * self.x).sum(axis=1))
        worker = np.where(rates.workers > 0, self.worker, 0.0)
        time = prices_of_time(rates, self.budget, got, worker)
        charged = float(worker @ rates.workers + time.sum())
        return Equilibrium(self.x, got, worker, time, charged - float(self.budget.sum()))


def _reach(*moves: tuple[FloatArray, FloatArray]) -> float:
    """Largest step, at most 1, along which all that is above 0 stays there."""
    most = 1.0
    for now, change in moves:
        falls = change < 0
        if falls.any():
            most = min(most, _TO_BOUNDARY * float((now[falls] / -change[falls]).min()))
    return most
