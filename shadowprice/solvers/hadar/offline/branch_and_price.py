r"""Hadar's offline optimum by branch and price over schedules.

Source: the schedule form of Hadar's offline problem (IPDPS'24, recalled), with a variable for every
schedule of every job; the method is derived (branch, price and cut; branch and check, Thorsteinsson,
CP 2001). In the order of this file:

*Nodes* (:class:`SearchNode`) are parts of all choices of schedules.

*Bounds.* The relaxation of a node is solved by column generation: :class:`.Master` holds
the schedules found so far, and the dual subroutine (:class:`Pricing`) finds, under its prices,
the most profitable schedules of each job. For any prices

.. math:: \sum_j \max(0, \max_s \text{payoff}_j(s)) + \sum_t \sum_S c(S) \pi_S(t)

bounds the optimum (weak duality), so a node is given up as soon as that is no more than the best
plan known. Rows that an edited model has beside the published programme, and that can be priced, are
rows of the master too (:class:`.LinkingRows`), so the bound is one of the model; others it does not
know, and its bound is then one of more than the model has.

*Branching* (:func:`branch`) is on completions first, as only they have a value. Where completions are
whole but schedules are not, :class:`.Conflicts` decides whether they can be kept, which gives a plan or
a cut; before that was added most nodes were splits on rounds, which are alike. Only if that takes too
long are rounds split.

*Search* (:class:`Search`): at the root the relaxation is made tighter by what fits into one round
(:class:`.PackingCuts`), which was measured to close more than half of its gap and to save nine nodes of
ten. Planning a few jobs of the best plan afresh at a time by CP-SAT (large neighbourhood search) was
measured to make 8 jobs in 12 rounds twice as slow, and plans of 16 in 16 rounds no better than by one in
a hundred.

Complexity: exponential in the worst case; a node costs a few warm linear programmes with
J + H (2^R - 1) rows, the rounded ones and the cuts, and as many pricings.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import floor, gcd, isfinite

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.acceptance import Acceptance
from shadowprice.solvers.hadar.offline.cuts import Conflicts, CutEffort, PackingCuts
from shadowprice.solvers.hadar.offline.feasibility import Deadlines
from shadowprice.solvers.hadar.offline.heuristics import Plans
from shadowprice.solvers.hadar.offline.linking import Allowed
from shadowprice.solvers.hadar.offline.master import Master, Relaxed
from shadowprice.solvers.hadar.offline.pricing import Paths, Speeds, States, states_of

_WHOLE = 1e-6
"""Shares this close to 0 or 1 count as 0 or 1."""

_PER_JOB = 4
"""Schedules added for a job at a time, each with another completion."""

_REDUCED_COST = 1e-7
"""Least gain over its dual for which a schedule is added [utility]."""

_ROOT_CUTS = CutEffort(5, candidates=12, check_s=0.1, strengthen_s=0.05, cuts=5, whole=False)
_NODE_CUTS = CutEffort(1000, candidates=1, check_s=0.5, strengthen_s=0.0, cuts=1, whole=True)

_FIRST_PLAN = 0.02
"""Share of the time for a first plan, at most."""

_OF_COLUMNS = 0.05
"""Share of the time that is left for a plan of the schedules found so far, at most."""

_PACKING_ROUNDS = 30
"""Rounds of cuts from what fits into a round, at the root."""

_TOLERANCE = 1e-7
"""Relative to the value: a plan within this of the bound counts as optimal."""


# Nodes


@dataclass(frozen=True, eq=False)
class SearchNode:
    """A part of all choices of schedules.

    Parameters
    ----------
    bound : float
        No choice in this part is worth more.
    ends : ndarray of bool, shape (jobs, rounds + 1)
        Rounds in which a job may complete; last whether it may be left out.
    allowed : ndarray of bool, shape (jobs, rounds, speeds + 1)
        What a job that is not complete may do in a round: its speeds, and last to idle.
    narrowed : bool
        Whether less is allowed than at the root.
    """

    bound: float
    ends: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    narrowed: bool = False

    @classmethod
    def root(cls, allowed: Allowed) -> SearchNode:
        """All choices."""
        return cls(float("inf"), allowed.ends, allowed.speeds, allowed.narrowed)

    def columns(self, master: Master) -> NDArray[np.bool_]:
        """Mask of the schedules of a master that this part allows."""
        permitted: NDArray[np.bool_] = self.ends[master.job, master.end]
        if not self.narrowed:
            return permitted
        rounds = np.arange(master.jobs.rounds)
        # IDLE is -1, the last entry of what is allowed; nothing is asked of a job that is left out.
        allowed = self.allowed[master.job[:, None], rounds, master.speeds]
        last = np.where(master.end < master.jobs.rounds, master.end, -1)
        permitted &= np.all(allowed | (rounds > last[:, None]), axis=1)
        return permitted


# Bounds


class Pricing:
    """Bounds from prices and new schedules for the master, for all jobs of a node at once.

    A schedule pays, by round, the prices of the rows of capacity that its speed asks and those of the
    packing cuts in which the speed has a weight; its completion pays those of the cuts on completions.
    All are known by round and speed, or by completion, so the shortest paths of :mod:`.pricing` stay
    exact. Complexity: that of the shortest paths.

    Parameters
    ----------
    master : Master
        Gets the schedules.
    states : sequence of States
        By job.
    """

    def __init__(self, master: Master, states: Sequence[States]) -> None:
        self.master = master
        self.paths = Paths(states, master.jobs.rounds)
        # Demands of all jobs in one array; a speed that a job does not have is never allowed.
        width = (self.paths.speeds, len(master.capacity_rows.capacity))
        self.demands = np.zeros((master.jobs.jobs, *width))
        for job, demand in enumerate(master.capacity_rows.gpus):
            self.demands[job, : len(demand)] = demand

    def price(self, node: SearchNode, relaxed: Relaxed) -> tuple[float, NDArray[np.float64], int]:
        """Evaluate the duals of a relaxed master, and add schedules that it lacks.

        Returns
        -------
        value : float
            Bound of the node by weak duality.
        payoffs : ndarray, shape (jobs, rounds + 1)
            Best payoff by completion, -inf where there is none.
        new : int
            Schedules added.
        """
        jobs, master, paths = self.master.jobs, self.master, self.paths
        capacity = master.capacity_rows.capacity
        value = float((relaxed.price @ capacity).sum() + relaxed.cuts @ master.limits)
        utility = jobs.utility.values - np.tensordot(relaxed.cuts, master.end_weights, axes=1)
        price = np.tensordot(relaxed.price, self.demands, axes=(1, 2))
        if len(master.linking):
            runs, ends = master.linking.charges(relaxed.linking)
            value += master.linking.bound(relaxed.linking)
            price, utility = price + runs, utility - ends
        binding = np.flatnonzero(relaxed.cuts)
        charges = relaxed.cuts[binding, None, None] * master.run_weights[binding, :, :-1]
        np.add.at(price, master.cut_round[binding], charges)
        price = price.transpose(0, 2, 1)
        cost = np.where(node.allowed[:, :, :-1].transpose(1, 2, 0), price, np.inf)
        idle = np.where(node.allowed[:, :, -1].T, 0.0, np.inf)
        before, complete = paths.forward(cost, idle)
        payoffs = np.where(node.ends, utility, -np.inf)
        payoffs[:, :-1] -= complete
        value += float(payoffs.max(axis=1).sum())
        order = np.argsort(-payoffs[:, :-1], axis=1, kind="stable")[:, :_PER_JOB]
        improving = [
            (job, end)
            for job, ends in enumerate(order.tolist())
            for end in ends
            if payoffs[job, end] > relaxed.payoff[job] + _REDUCED_COST
        ]
        speeds = paths.schedules(cost, idle, before, improving)
        schedules = [(job, end, each) for (job, end), each in zip(improving, speeds, strict=True)]
        return value, payoffs, master.add(schedules)


# Branching


def branch(
    node: SearchNode, master: Master, relaxed: Relaxed
) -> tuple[SearchNode, SearchNode] | None:
    """Two parts that hold every choice of a node, neither of which holds the relaxed solution.

    On when a job completes, if that is open for one; else on whether a job runs in a round; else
    on how fast. None if the solution is integral in all three, and so gives a plan. The part
    nearer to the relaxed solution comes first.
    """
    parts = _by_completion(node, master.jobs, completions(node, master, relaxed))
    if parts is not None:
        return parts
    used = np.flatnonzero(relaxed.share > _WHOLE)
    job, share = master.job[used], relaxed.share[used]
    # Shares of jobs by round and speed.
    doing = np.zeros(node.allowed.shape)
    rounds = np.arange(master.jobs.rounds)
    np.add.at(doing, (job[:, None], rounds, master.speeds[used]), share[:, None])
    return _by_round(node, master.jobs, doing)


def completions(node: SearchNode, master: Master, relaxed: Relaxed) -> NDArray[np.float64]:
    """Share of each job that completes in each round, shape (jobs, rounds + 1)."""
    completes = np.zeros(node.ends.shape)
    # Schedules may have been added since.
    n = len(relaxed.share)
    np.add.at(completes, (master.job[:n], master.end[:n]), relaxed.share)
    return completes


def running(master: Master, relaxed: Relaxed) -> NDArray[np.float64]:
    """Share of each job that runs in each round at each speed, shape (rounds, jobs, speeds)."""
    jobs = master.jobs
    widest = max((len(speeds) for speeds in jobs.speeds), default=0)
    runs = np.zeros((jobs.rounds, jobs.jobs, widest + 1))
    used = np.flatnonzero(relaxed.share > 0.0)
    rounds = np.arange(jobs.rounds)
    where = (rounds, master.job[used, None], master.speeds[used])
    np.add.at(runs, where, relaxed.share[used, None])
    # IDLE is -1, the last speed.
    return runs[:, :, :-1]


def _by_completion(
    node: SearchNode, jobs: RoundJobs, completes: NDArray[np.float64]
) -> tuple[SearchNode, SearchNode] | None:
    """A job completes by some round, or later; None where that is whole for all."""
    until = np.cumsum(completes, axis=1)
    fractional = np.minimum(until, 1.0 - until)
    if fractional.max(initial=0.0) <= _WHOLE:
        return None
    # The job whose utility is least certain. Trying several jobs in the programme first (strong
    # branching) was measured to save a third of the nodes and no time.
    utility = jobs.utility.values
    mean = (completes * utility).sum(axis=1)
    variance = (completes * utility**2).sum(axis=1) - mean**2
    job = int(np.argmax(np.where(fractional.max(axis=1) > _WHOLE, variance, -np.inf)))
    end = int(np.argmax(fractional[job]))
    rounds = np.arange(jobs.rounds + 1)
    early = replace(node, ends=_with(node.ends, job, node.ends[job] & (rounds <= end)))
    late = replace(node, ends=_with(node.ends, job, node.ends[job] & (rounds > end)))
    return (early, late) if until[job, end] >= 0.5 else (late, early)


def _by_round(
    node: SearchNode, jobs: RoundJobs, doing: NDArray[np.float64]
) -> tuple[SearchNode, SearchNode] | None:
    """A job runs in a round, at some speed at least, or not; None where that is whole for all."""
    # Cumulated over speeds from the fastest on; the last is whether the job runs at all.
    at_least = np.cumsum(doing[:, :, :-1], axis=2)
    fractional = np.minimum(at_least, 1.0 - at_least)
    fractional[fractional <= _WHOLE] = 0.0
    if not fractional.any():
        return None
    runs = fractional[:, :, -1] * jobs.gang[:, None]
    if runs.any():
        job, t = (int(i) for i in np.unravel_index(np.argmax(runs), runs.shape))
        speed = at_least.shape[2] - 1
    else:
        best = np.unravel_index(np.argmax(fractional), fractional.shape)
        job, t, speed = (int(i) for i in best)
    fast = np.arange(doing.shape[2]) <= speed
    rounds = np.arange(jobs.rounds + 1)
    yes = replace(
        node,
        allowed=_with(node.allowed, (job, t), node.allowed[job, t] & fast),
        ends=_with(node.ends, job, node.ends[job] & (rounds >= t) & (rounds < jobs.rounds)),
        narrowed=True,
    )
    no = replace(
        node,
        allowed=_with(node.allowed, (job, t), node.allowed[job, t] & ~fast),
        narrowed=True,
    )
    return (yes, no) if at_least[job, t, speed] >= 0.5 else (no, yes)


def _with(
    table: NDArray[np.bool_], place: int | tuple[int, int], row: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """A copy of a table with another row."""
    changed = table.copy()
    changed[place] = row
    return changed


# Search


@dataclass(frozen=True)
class Searched:
    """The best plan found and a proof of how good it is.

    Parameters
    ----------
    value : float
        Utility of the plan; -inf if none was found.
    bound : float
        No plan is worth more (float arithmetic, relative error 1e-7); -inf if there is none.
    proven : bool
        Whether the two agree, to 1e-7 relative. The bound evaluates a solver's prices in floats;
        where completions that cannot be kept were cut off, it rests on CP-SAT's word that they
        cannot. So this is no certificate.
    schedules : dict of int to Speeds
        The plan; jobs that are not in it never run.
    relaxation : float
        Bound of the root: that of the schedule form's relaxation or better.
    nodes : int
        Nodes solved.
    prices : ndarray, shape (rounds, types)
        Prices of GPUs near those of the root's relaxation [utility per GPU and round]; 0 if the
        time did not suffice.
    """

    value: float
    bound: float
    proven: bool
    schedules: dict[int, Speeds] = field(repr=False)
    relaxation: float
    nodes: int
    prices: NDArray[np.float64] = field(repr=False)


class Search:
    """Branch and price over the schedules of jobs.

    Parameters
    ----------
    acceptance : Acceptance
        The model, and the rows of it that are priced.
    time_limit_s : float
        CPU time after which the best plan and bound so far are returned [s].

    Attributes
    ----------
    relaxation, prices : float and ndarray, shape (rounds, types)
        Bound of the root, and prices near those of its relaxation.
    latest : ndarray of int, shape (jobs,)
        Last completions with which a plan may be better than the best, as far as the root tells; the
        number of rounds if the job may be left out.
    unsettled : float
        Largest bound of the nodes that were given up undecided.
    """

    def __init__(self, acceptance: Acceptance, time_limit_s: float) -> None:
        self.end = time.process_time() + time_limit_s
        jobs = acceptance.model.jobs
        self.jobs = jobs
        self.allowed = acceptance.linking.allowed
        self.master = Master(jobs, acceptance.linking)
        states = [states_of(jobs, job) for job in range(jobs.jobs)]
        self.pricing = Pricing(self.master, states)
        # Plans of the published programme hold; one that is given is checked, once, at the end.
        check = acceptance if acceptance.model.edits else None
        self.plans = Plans(jobs, self.master.capacity_rows, states, acceptance=check)
        deadlines = Deadlines(jobs, self.master.capacity_rows, states)
        self.conflicts = Conflicts(deadlines, self.plans)
        self.packing = PackingCuts(jobs)
        self.unit = _unit(jobs.utility.values)
        self.nodes = 0
        self.relaxation = float("inf")
        self.unsettled = -float("inf")
        self.prices = np.zeros((jobs.rounds, jobs.types))
        self.latest = np.full(jobs.jobs, jobs.rounds)

    @property
    def best(self) -> float:
        """Utility of the best plan."""
        return self.plans.value

    def run(self) -> Searched:
        """Best bound first, but down to the end of each branch before the next."""
        heap: list[tuple[float, int, SearchNode]] = []
        current: SearchNode | None = SearchNode.root(self.allowed)
        # The root gives a bound, whatever the time.
        while current is not None and (not self.nodes or time.process_time() < self.end):
            node, relaxed = self._solve(current)
            self.nodes += 1
            if self.nodes == 1:
                node, relaxed = self._root(node, relaxed)
            else:
                node, relaxed = self._cut_completions(node, relaxed, _NODE_CUTS)
            if self.nodes & (self.nodes - 1) == 0:
                self._best_of_columns()
            current, later = self._parts(node, relaxed)
            if later is not None:
                heapq.heappush(heap, (-later.bound, -self.nodes, later))
            if current is None:
                current = self._next(heap)
        return self._result(heap, current)

    def _result(
        self, heap: list[tuple[float, int, SearchNode]], current: SearchNode | None
    ) -> Searched:
        """The best plan, and the bound of all nodes that are left."""
        left = [-entry[0] for entry in heap] + ([] if current is None else [current.bound])
        bound = max([self.best, self.unsettled, *left])
        proven = not self._open(bound)
        return Searched(
            self.best,
            self.best if proven else bound,
            proven,
            self.plans.schedules,
            self.relaxation,
            self.nodes,
            self.prices,
        )

    def _solve(self, node: SearchNode) -> tuple[SearchNode, Relaxed]:
        """Column generation; the node with its bound, and without ends that cannot be better."""
        penalty = 1.0 + float(self.jobs.utility.values.max(initial=0.0))
        while True:
            relaxed = self.master.relax(node.columns(self.master), penalty)
            value, payoffs, new = self.pricing.price(node, relaxed)
            if value < node.bound:
                node = replace(node, bound=value)
            if not self._open(node.bound) or time.process_time() >= self.end:
                return node, relaxed
            node = replace(node, ends=self._ends(node, payoffs, value))
            if not new:
                if relaxed.unserved <= 1e-7:
                    return node, relaxed
                # A part of a job without a schedule still pays: make it cost more.
                penalty *= 10.0

    def _ends(
        self, node: SearchNode, payoffs: NDArray[np.float64], value: float
    ) -> NDArray[np.bool_]:
        """Completions with which a plan may still be better than the best (reduced cost fixing)."""
        spare = value - self.best + _TOLERANCE * max(1.0, abs(value))
        ends: NDArray[np.bool_] = node.ends & (payoffs >= (payoffs.max(axis=1) - spare)[:, None])
        return ends

    def _root(self, node: SearchNode, relaxed: Relaxed) -> tuple[SearchNode, Relaxed]:
        """A first plan, and cuts at the root."""
        self.relaxation = node.bound
        self.prices = relaxed.price @ self.master.capacity_rows.share
        self._best_of_columns()
        self._first_plan(relaxed)
        node, relaxed = self._cut_rounds(node, relaxed)
        self.latest = _latest(node)
        node, relaxed = self._cut_completions(node, relaxed, _ROOT_CUTS)
        self.latest = _latest(node)
        return node, relaxed

    def _cut_rounds(self, node: SearchNode, relaxed: Relaxed) -> tuple[SearchNode, Relaxed]:
        """Cut off shares of rounds that no sets of gangs which fit are a mean of."""
        for _ in range(_PACKING_ROUNDS):
            if not self._open(node.bound) or time.process_time() >= self.end:
                break
            violated = self.packing.separate(running(self.master, relaxed), fresh=True)
            if not violated:
                break
            self.master.add_packing_cuts(
                np.array([t for t, _ in violated]),
                np.array([pattern.weights for _, pattern in violated]),
                np.array([pattern.limit for _, pattern in violated]),
            )
            node, relaxed = self._solve(node)
        return node, relaxed

    def _cut_completions(
        self, node: SearchNode, relaxed: Relaxed, effort: CutEffort
    ) -> tuple[SearchNode, Relaxed]:
        """Cut off completions that cannot be kept; below the root only whole ones."""
        for _ in range(effort.times):
            if not self._open(node.bound) or time.process_time() >= self.end:
                break
            completes = completions(node, self.master, relaxed)
            if effort.whole and np.abs(completes - np.round(completes)).max(initial=0.0) > _WHOLE:
                break
            conflicts = self.conflicts.separate(completes, self.latest, effort)
            if not conflicts:
                break
            self.master.add_completion_cuts(*self.conflicts.cuts(conflicts))
            node, relaxed = self._solve(node)
        return node, relaxed

    def _parts(
        self, node: SearchNode, relaxed: Relaxed
    ) -> tuple[SearchNode | None, SearchNode | None]:
        """Remaining parts of a node: two, or none if it is settled."""
        if not self._open(node.bound):
            return None, None
        parts = branch(node, self.master, relaxed)
        if parts is not None:
            return parts
        self._accept(relaxed)
        if self._open(node.bound):
            # Only if time ran out before the relaxation was solved, or floats fell short.
            self.unsettled = max(self.unsettled, node.bound)
        return None, None

    def _next(self, heap: list[tuple[float, int, SearchNode]]) -> SearchNode | None:
        """The node with the largest bound, if it can hold a better plan; the rest cannot either."""
        if heap and self._open(-heap[0][0]):
            return heapq.heappop(heap)[2]
        heap.clear()
        return None

    def _open(self, bound: float) -> bool:
        """True if a plan within a bound may be better than the best."""
        if self.best == -float("inf"):
            return bound >= -_TOLERANCE  # No plan is worth less than 0.
        slack = _TOLERANCE * max(1.0, abs(self.best))
        if self.unit and isfinite(bound):
            bound = floor((bound + slack) / self.unit) * self.unit
        return bound > self.best + slack

    def _first_plan(self, relaxed: Relaxed) -> None:
        """Look for a plan near a relaxed solution."""
        target = np.zeros(self.jobs.jobs)
        n = len(relaxed.share)
        np.add.at(target, self.master.job[:n], relaxed.share * self.master.end[:n])
        now = time.process_time()
        self.plans.search(relaxed.price, target, now + _FIRST_PLAN * max(0.0, self.end - now))

    def _best_of_columns(self) -> None:
        """A plan of the schedules found so far, where further rows refuse what heuristics find."""
        left_s = self.end - time.process_time()
        if len(self.master.linking) and left_s > 0:
            self.plans.offer(self.master.best_of_columns(self.allowed.ends, _OF_COLUMNS * left_s))

    def _accept(self, relaxed: Relaxed) -> None:
        """Take an integral solution as a plan."""
        self.plans.offer(self.master.plan(np.flatnonzero(relaxed.share > 0.5)))


def _latest(node: SearchNode) -> NDArray[np.int64]:
    """Last completions a node allows, by job; the number of rounds if it may be left out."""
    last: NDArray[np.int64] = node.ends.shape[1] - 1 - np.argmax(node.ends[:, ::-1], axis=1)
    return last


def _unit(values: NDArray[np.float64]) -> float:
    """Gcd of all values, or 0 if they are not integers: plans differ by multiples of it."""
    if not np.array_equal(values, np.round(values)) or values.max(initial=0.0) > 2**40:
        return 0.0
    return float(reduce(gcd, np.unique(values).astype(np.int64).tolist(), 0))
