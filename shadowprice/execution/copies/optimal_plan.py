"""Copies that make jobs cost least, round by round: HadarE's offline programme, and runs of what it chooses.

The programme of :mod:`shadowprice.models.hadare` is solved, and its copies are run with whole steps. The best of
HadarE's own orders begins the search, and says in how many rounds some best schedule ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.errors import PolicyError, SolverError
from shadowprice.execution.copies.simulation import Plan, run_copies, run_plan
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.models import hadare
from shadowprice.models.hadare import CopiesInRounds
from shadowprice.solvers.hadar.copy_assignment import ORDERS
from shadowprice.solvers.offline.bounds import offset_ticks, seconds_down
from shadowprice.solvers.programs.compile import OptimalityEvidence, SolverOptions, compile_model

Build = Callable[..., Any]
"""A model with the parameters of :func:`shadowprice.models.hadare.build`."""

_TOLERANCE = 1e-6
"""What a solver's bound may be off, by its word, for every job [rounds]."""

_ROUNDING = 1e-9
"""What sums of floats may be off, as a part of themselves."""


@dataclass(frozen=True)
class ClaimedBound:
    """A solver's word that no schedule costs less.

    Parameters
    ----------
    value_s : float
        In the objective [s], rounded down.
    evidence : OptimalityEvidence
        What supports it.
    """

    value_s: float
    evidence: OptimalityEvidence


@dataclass(frozen=True)
class PlannedSchedule:
    """A schedule of copies and a solver's bounds.

    Parameters
    ----------
    cost_ticks : Fraction
    schedule : Schedule
    aligned : ClaimedBound
        Of schedules whose rounds begin at multiples of their length.
    every : ClaimedBound
        Of all schedules.
    """

    cost_ticks: Fraction
    schedule: Schedule
    aligned: ClaimedBound
    every: ClaimedBound


@dataclass(frozen=True)
class _Answer:
    """Answer of the programme: copies, none without a point, and a bound of its objective [rounds]."""

    plan: Plan
    bound: float
    evidence: OptimalityEvidence
    first_round: int


@dataclass(frozen=True)
class PlanSearch:
    """Search for the best copies of an instance.

    Parameters
    ----------
    instance : Instance
        With rules of copies and at least one job.
    objective : Objective
    cost : callable
        Cost of a schedule [ticks], whoever answers for it.
    until : float
        When the solver has to have ended, by the monotonic clock [s].
    """

    instance: Instance
    objective: Objective
    cost: Callable[[Schedule], Fraction]
    until: float

    def best(self) -> PlannedSchedule:
        """The best schedule of the published model and of HadarE's orders.

        Raises
        ------
        InputError
            If the programme does not speak of the instance, or would be too large.
        """
        cost, schedule = self._best_order()
        jobs, early = (CopiesInRounds.of(self.instance, early=each) for each in (False, True))
        alike = early.first_round == jobs.first_round and (early.release == jobs.release).all()
        left_s = self.until - time.monotonic()
        until = self.until if alike else time.monotonic() + left_s / 2
        rounds = self._enough_rounds(jobs, cost)
        answer = of_all = self._solve(jobs, rounds, hadare.build, until, self._plan(schedule))
        with suppress(PolicyError):  # Whole steps may not fit as cut ones did.
            planned = run_plan(self.instance, answer.plan)
            cost, schedule = min((cost, schedule), (self.cost(planned), planned), key=_first)
        if not alike:
            rounds = self._enough_rounds(early, cost)
            of_all = self._solve(early, rounds, hadare.build, self.until)
        return PlannedSchedule(cost, schedule, self._claimed(answer), self._claimed(of_all))

    def edited(self, model: Build) -> PlannedSchedule:
        """The schedule of an edited model, and its bound.

        Raises
        ------
        InputError
            As :meth:`best`.
        SolverError
            If the model has no point in time.
        """
        jobs = CopiesInRounds.of(self.instance)
        answer = self._solve(jobs, jobs.rounds_in_turn(slowest=True), model, self.until)
        if not answer.plan:
            raise SolverError("the edited model has no point in time; allow more time")
        schedule, claimed = run_plan(self.instance, answer.plan), self._claimed(answer)
        return PlannedSchedule(self.cost(schedule), schedule, claimed, claimed)

    def _best_order(self) -> tuple[Fraction, Schedule]:
        """The cheapest schedule of HadarE's orders."""
        orders = (order() for order in ORDERS.values())
        schedules = [run_copies(self.instance, each, lambda gang, room: room) for each in orders]
        return min(((self.cost(each), each) for each in schedules), key=_first)

    @property
    def _length(self) -> int:
        """Length of a round [ticks]."""
        assert self.instance.copies is not None
        return int(self.instance.copies.round_s * TICKS_PER_S)

    def _plan(self, schedule: Schedule) -> Plan:
        """Copies of a schedule."""
        number = to_ticks(schedule.start_s) // self._length
        return _plan_of(number.tolist(), schedule.job.tolist(), schedule.node.tolist())

    def _enough_rounds(self, jobs: CopiesInRounds, cost: Fraction) -> int:
        """Rounds in which some best schedule ends, if one that costs so much is known.

        A job whose weight counts costs at most what all cost, less what the others cost at least.
        """
        weight, in_turn = jobs.weight, jobs.rounds_in_turn()
        total = float((cost + self._offset()) / self._length)
        if self.objective is Objective.MAKESPAN:
            last = total - jobs.first_round + _ROUNDING * total
        elif (weight == 0).any():
            return max(in_turn, 1)
        else:
            speed = np.sort(1.0 / jobs.alone, axis=1)[:, ::-1][:, : jobs.copies].sum(axis=1)
            least = jobs.release + (1.0 - _ROUNDING) / speed
            spare = total - float(weight @ (least + jobs.first_round)) + _ROUNDING * total
            with np.errstate(over="ignore"):
                last = float((least + spare / weight).max(initial=0.0))
        return max(in_turn if last > in_turn else int(np.ceil(last)), 1)

    def _solve(
        self,
        jobs: CopiesInRounds,
        rounds: int,
        model: Build,
        until: float,
        begin: Plan | None = None,
    ) -> _Answer:
        """The programme's answer, beginning with some copies."""
        jobs.expect_few(rounds)
        m = model(jobs, rounds, makespan=self.objective is Objective.MAKESPAN)
        compiled, first = compile_model(m), jobs.first_round
        start = None
        if begin is not None:
            rows = zip(*(column.tolist() for column in m.JHT.numbers), strict=True)
            there = [float(node in begin.get(t + first, {}).get(j, ())) for j, node, t in rows]
            start = dict(zip(compiled.place(m.x).tolist(), there, strict=True))
        left_s = max(until - time.monotonic(), 0.1)
        solution = compiled.solve(SolverOptions(time_limit_s=left_s), start)
        plan: Plan = {}
        if len(solution.primal):
            chosen = compiled.value(solution, m.x) > 0.5
            job, node, number = (column[chosen] for column in m.JHT.numbers)
            plan = _plan_of((number + first).tolist(), job.tolist(), node.tolist())
        bound = solution.bound if np.isfinite(solution.bound) else 0.0
        return _Answer(plan, bound, solution.evidence, first)

    def _claimed(self, answer: _Answer) -> ClaimedBound:
        """A bound of the programme as one of the objective, rounded down."""
        slack = 1e-12 * abs(answer.bound)
        if answer.evidence is not OptimalityEvidence.PROVEN:
            slack += _TOLERANCE * float(self._exact_weights)
        rounds = Fraction(answer.bound) - Fraction(slack)
        rounds += answer.first_round * self._exact_weights
        ticks = rounds * self._length - self._offset()
        return ClaimedBound(seconds_down(max(ticks, Fraction(0))), answer.evidence)

    @property
    def _exact_weights(self) -> Fraction:
        """Sum of what the objective counts in a round in which no job ends."""
        if self.objective is Objective.MAKESPAN:
            return Fraction(1)
        return sum(map(Fraction, self.instance.workload.weight.tolist()), Fraction(0))

    def _offset(self) -> Fraction:
        """Constant that the objective subtracts from completion times [ticks]."""
        jobs = self.instance.workload
        weight = [Fraction(each) for each in jobs.weight.tolist()]
        return offset_ticks(weight, to_ticks(jobs.arrival_s).tolist(), self.objective)


def _first(priced: tuple[Fraction, Schedule]) -> Fraction:
    return priced[0]


def _plan_of(number: list[int], job: list[int], node: list[int]) -> Plan:
    """A plan from a round, a job and a node of every copy."""
    plan: dict[int, dict[int, list[int]]] = {}
    for t, j, h in zip(number, job, node, strict=True):
        plan.setdefault(t, {}).setdefault(j, []).append(h)
    return plan
