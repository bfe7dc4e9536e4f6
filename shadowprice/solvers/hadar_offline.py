r"""Hadar's offline optimum by branch and price over schedules.

The schedule form (Hadar, sec. on the offline problem; spec sec. 2.2, recalled) has a variable for
every schedule of every job. Its relaxation is solved by column generation: :class:`Master` holds
the schedules found so far, and the dual subroutine (:mod:`hadar_pricing`) finds, under its prices,
the most profitable schedule of each job. For any prices

.. math:: \sum_j \max(0, \max_s \text{payoff}_j(s)) + \sum_t \sum_S c(S) \pi_S(t)

bounds the optimum (weak duality), so a node is given up as soon as that is no more than the best
plan known. Nodes are split on completions first, as only they have a value. Derived.

Complexity: exponential in the worst case; a node costs some ten linear programmes with
J + H (2^R - 1) rows and the rounded ones.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field, replace
from functools import reduce
from math import floor, gcd

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.instances.round_plan import Plan
from shadowprice.instances.utility import UtilityTable
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar_branching import Node, branch
from shadowprice.solvers.hadar_master import Master, Relaxed
from shadowprice.solvers.hadar_placement import place
from shadowprice.solvers.hadar_pricing import Levels, forward, schedule, states_of

_PER_JOB = 4
"""Schedules added for a job at a time, each with another completion."""

_TOLERANCE = 1e-7
"""Relative to the value: a plan within this of the bound counts as optimal."""


@dataclass(frozen=True)
class OfflineOptimum:
    """The best plan found and a proof of how good it is.

    Parameters
    ----------
    value : float
        Utility of the plan.
    bound : float
        No plan is worth more (float arithmetic, relative error 1e-7).
    proven : bool
        Whether the two agree, to 1e-7 relative.
    plan : Plan
    relaxation : float
        Bound of the root: that of the schedule form's relaxation or better.
    nodes : int
        Nodes solved.
    cpu_s : float
        Time taken [s].
    """

    value: float
    bound: float
    proven: bool
    plan: Plan = field(repr=False)
    relaxation: float
    nodes: int
    cpu_s: float


def optimum(
    instance: Instance, utility: UtilityTable, *, time_limit_s: float = 60.0
) -> OfflineOptimum:
    """Largest total utility of any plan, known from the start.

    Parameters
    ----------
    utility : UtilityTable
        Its rounds are the horizon.
    time_limit_s : float
        CPU time after which the best plan and bound so far are returned [s].

    Raises
    ------
    InputError
        If the instance has job graphs or the utilities are of other jobs.
    """
    return _Search(RoundJobs.of(instance, utility), time_limit_s).run(instance)


class _Search:
    def __init__(self, jobs: RoundJobs, time_limit_s: float) -> None:
        self.start = time.process_time()
        self.end = self.start + time_limit_s
        self.jobs = jobs
        self.master = Master(jobs)
        self.states = [states_of(jobs, job) for job in range(jobs.jobs)]
        self.unit = _unit(jobs.utility.values)
        self.best = 0.0
        self.chosen: dict[int, Levels] = {}
        self.nodes = 0

    def run(self, instance: Instance) -> OfflineOptimum:
        """Best bound first, but down to the end of each branch before the next."""
        root = Node.root(self.jobs)
        relaxation = bound = float("inf")
        heap: list[tuple[float, int, Node]] = []
        current: Node | None = root
        while current is not None and time.process_time() < self.end:
            node, relaxed = self._solve(current)
            self.nodes += 1
            if self.nodes == 1:
                relaxation = node.bound
                self._restricted()
            current = None
            parts = branch(node, self.master, relaxed) if self._open(node.bound) else None
            if parts is not None:
                current = parts[0]
                heapq.heappush(heap, (-parts[1].bound, -self.nodes, parts[1]))
            elif self._open(node.bound):
                self._accept(np.flatnonzero(relaxed.share > 0.5).tolist())
            if current is None:
                current = self._next(heap)
        left = [-entry[0] for entry in heap] + ([] if current is None else [current.bound])
        bound = max([self.best, *left]) if self.nodes else relaxation
        proven = not self._open(bound)
        spent = time.process_time() - self.start
        plan = place(instance, self.jobs, self.chosen)
        return OfflineOptimum(
            self.best, max(self.best, self.best if proven else bound), proven, plan,
            relaxation, self.nodes, spent,
        )  # fmt: skip

    def _next(self, heap: list[tuple[float, int, Node]]) -> Node | None:
        """The node with the largest bound, if it can hold a better plan; the rest cannot either."""
        if heap and self._open(-heap[0][0]):
            return heapq.heappop(heap)[2]
        heap.clear()
        return None

    def _open(self, bound: float) -> bool:
        """Whether a better plan than the best may be worth no more than a bound."""
        slack = _TOLERANCE * max(1.0, abs(self.best))
        if self.unit:
            bound = floor((bound + slack) / self.unit) * self.unit
        return bound > self.best + slack

    def _solve(self, node: Node) -> tuple[Node, Relaxed]:
        """Column generation; the node with its bound, and without ends that cannot be better."""
        bonus = np.where(node.must, self.jobs.utility.values.max(axis=1).sum() + 1.0, 0.0)
        bound, relaxed = node.bound, None
        while time.process_time() < self.end or relaxed is None:
            if relaxed is None:
                relaxed = self.master.relax(node.columns(self.master), bonus)
            value, payoffs, new = self._price(node, relaxed, bonus)
            if value < bound:
                bound = value
                if self._open(bound):
                    node = replace(node, ends=self._ends(node, payoffs, value))
            if not self._open(bound):
                break
            if not new:
                if not self._short(node, relaxed):
                    break
                # Leaving out a part of a job that must run still pays: make it cost more.
                bonus *= 10.0
            relaxed = self.master.relax(node.columns(self.master), bonus)
        return replace(node, bound=bound), relaxed

    def _short(self, node: Node, relaxed: Relaxed) -> bool:
        """Whether a job that must complete does so in part only."""
        served = np.bincount(self.master.job, relaxed.share, minlength=self.jobs.jobs)
        return bool(np.any(node.must & (served < 1.0 - 1e-6)))

    def _price(
        self, node: Node, relaxed: Relaxed, bonus: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], int]:
        """Value of the prices as a bound, payoffs by job and completion, schedules added."""
        jobs, demand = self.jobs, self.master.demand
        value = float((relaxed.price @ demand.capacity).sum() - bonus.sum())
        payoffs = np.full(node.ends.shape, -np.inf)
        new = 0
        for job in range(jobs.jobs):
            allowed = node.allowed[job]
            levels = len(jobs.levels[job])
            cost = np.where(allowed[:, :levels], relaxed.price @ demand.gpus[job].T, np.inf)
            idle = np.where(allowed[:, -1], 0.0, np.inf)
            before, complete = forward(self.states[job], cost, idle)
            payoff = jobs.utility.values[job, :-1] + bonus[job] - complete
            payoffs[job] = np.where(node.ends[job], payoff, -np.inf)
            value += max(0.0, float(payoffs[job].max()))
            for end in np.argsort(-payoffs[job], kind="stable")[:_PER_JOB].tolist():
                if payoffs[job, end] > relaxed.payoff[job] + 1e-7:
                    path = schedule(self.states[job], cost, idle, before, end)
                    new += self.master.add(job, path)
        return value, payoffs, new

    def _ends(self, node: Node, payoffs: NDArray[np.float64], value: float) -> NDArray[np.bool_]:
        """Completions with which a plan may still be better than the best (reduced cost fixing)."""
        spare = value - self.best + _TOLERANCE * max(1.0, abs(value))
        most = np.maximum(payoffs.max(axis=1), 0.0)
        may: NDArray[np.bool_] = node.ends & (payoffs >= (most - spare)[:, None])
        return may

    def _restricted(self) -> None:
        """A first plan: the best of the schedules that the root's prices brought up."""
        left = self.end - time.process_time()
        self._accept(self.master.choose(max(0.0, min(10.0, 0.1 * left))))

    def _accept(self, columns: list[int]) -> None:
        value = sum(self.master.value(column) for column in columns)
        if value > self.best:
            self.best = value
            self.chosen = {self.master.job[k]: self.master.levels[k] for k in columns}


def _unit(values: NDArray[np.float64]) -> float:
    """What all values are multiples of, or 0 if they are not integers: plans differ by as much."""
    if not np.array_equal(values, np.round(values)) or values.max(initial=0.0) > 2**40:
        return 0.0
    return float(reduce(gcd, np.unique(values).astype(np.int64).tolist(), 0))
