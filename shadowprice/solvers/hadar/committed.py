r"""Commit-once Hadar and OASiS: schedules over future rounds that are given at arrival and kept.

Source: Sultana et al., Hadar, IPDPS'24, and Bao, Peng, Wu, Li, INFOCOM'18 (both recalled). A job gets
on arrival the schedule of largest payoff over the rounds to come (:mod:`.commit_schedule`), and these
GPUs are never taken away. A job that the prices refuse earns nothing in the theorem; here it has
to run all the same (derived), in rounds and on GPUs that are not committed, and gives way where they are.

Guarantee: with ``u_min``, ``u_max`` and ``largest_gang`` given HADAR-2a (proofs.hadar.competitive), of
``oasis`` on one GPU type; with bounds estimated from the jobs seen so far, as by default, none but that of
the run's own duals (see ``HadarCommitted.guarantee``). Every round of a schedule is taken to lose a start, a
restart and a migration, so that it suffices whatever is charged. Knows: processing times. Preempts.

Complexity: an arrival O(rounds committed) comparisons, O(rounds changed x kinds of node x loads) and
O(rounds of its schedule x nodes), and a search (:mod:`.commit_schedule`); a burst of n jobs grows as
n^1.0 to n^1.3 (measured, benchmarks/hadar_decisions.py). A round O(jobs that run and wait + nodes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.solvers.hadar.commit_schedule import CommittableJob, best_schedule
from shadowprice.solvers.hadar.committed_load import Commitment, CommittedLoad
from shadowprice.solvers.hadar.prices import (
    SCALES,
    ExponentialPrices,
    Hardware,
    UtilityBounds,
    check_settings,
    idle_before,
    published_bounds,
    reserved_full_at,
    round_at,
    start_exactly,
)
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.price_log import PriceLog

_HORIZON = 100_000
"""Rounds ahead in which a schedule may end."""


@dataclass(frozen=True)
class HadarCommitted:
    """Schedules that are given at arrival and kept.

    Parameters
    ----------
    utility : str
        ``effective_throughput``, ``completion_time`` or ``fairness``: s_j / (f_j - a_j).
    round_s : float
        Length of a round [s].
    u_min, u_max : float
        Bounds of utility for a GPU and round that hold for all jobs; 0 and 0 to estimate them from
        the jobs seen so far.
    mixed : bool
        Whether a gang may have GPUs of several types.
    labels : int
        Labels that the search for a schedule may keep; 0 for schedules of one speed only.
    largest_gang : int
        Prices are at their highest as soon as a gang of this size might not fit on a node, as
        HADAR-2a needs; 0 for the published prices, which are when the node is full.
    aligned : bool
        Whether rounds begin at multiples of their length, as the duals of a run need; otherwise
        the first round after the cluster was empty begins with the first arrival.
    log : PriceLog, optional
        Where the prices of the run go.
    """

    utility: str = "effective_throughput"
    round_s: float = 360.0
    u_min: float = 0.0
    u_max: float = 0.0
    mixed: bool = True
    labels: int = 64
    largest_gang: int = 0
    aligned: bool = False
    name: str = "hadar-committed"
    log: PriceLog | None = field(default=None, compare=False, repr=False)
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True
    chooses_nodes: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """Theorem that is proven of the commit-once form with these parameters, in words."""
        if not (self.u_max > 0 and self.largest_gang and self.aligned):
            return (
                "none but that of the run's own duals while u_min and u_max are estimated from the jobs seen so far, "
                "largest_gang is not given, or rounds are not aligned; with all of them 2 alpha "
                f"({self.name}:u_min=A,u_max=B,largest_gang=G,aligned=true). Knows: processing times. Preempts."
            )
        where = "" if self.mixed else ", on GPUs of one type"
        return (
            "HADAR-2a (proofs.hadar.competitive) for total utility against offline schedules of whole rounds, where "
            f"u_min and u_max hold for all jobs, largest_gang is that of all jobs and there are no overheads{where}; a "
            "job refused counts nothing there; its factor 2 alpha is vast for wide gangs. Knows: processing times. "
            "Preempts."
        )

    def __post_init__(self) -> None:
        check_settings(self.name, self.utility, self.round_s, self.u_min, self.u_max)
        for setting in ("labels", "largest_gang"):
            if getattr(self, setting) < 0:
                raise InputError(
                    f"{self.name}: {setting} is {getattr(self, setting)!r}, expected at least 0"
                )

    def keeping(self, log: PriceLog) -> HadarCommitted:
        """The same policy, with a log for its prices."""
        return replace(self, log=log)

    def decide(self, state: State) -> Decision:
        """Commit the jobs that arrived; at the beginning of a round run what is committed to it."""
        ledger = state.notes(Ledger, lambda: Ledger(self, state))
        if state.down_nodes or state.failed:
            raise PolicyError(
                "commits GPUs to jobs for rounds to come, and a node went down; expected nodes that do not "
                "fail, or a policy that decides anew, such as hadar"
            )
        if not self.aligned and idle_before(state):
            ledger.begin(state.now_s)
        for job in state.finished:
            ledger.schedules.pop(job, None)
        if state.arrived:
            ledger.commit(state)
        decision = Decision(state)
        number = round_at(state.now_s, ledger.origin_s, self.round_s)
        begins_s = ledger.origin_s + number * self.round_s
        if begins_s == state.now_s:
            ledger.run_round(state, decision, number)
            begins_s += self.round_s
        if state.waiting or state.running:
            decision.wake_at(begins_s)
        return decision


class Ledger:
    """Schedules that jobs were given, and the load of these.

    Attributes
    ----------
    productive_s : float
        Work that every round of a schedule surely has time for, whatever is charged [s].
    schedules : dict of int to dict
        By job: its GPUs by round.
    """

    def __init__(self, policy: HadarCommitted, state: State) -> None:
        self.policy = policy
        self.hardware = Hardware.of(state)
        self.begin(0.0)
        self.bounds: UtilityBounds | None = None
        charged = state.environment.overheads
        largest = max([charged.restart_s, *(cost for _, cost in charged.restart_by_gpus)])
        self.productive_s = policy.round_s - charged.start_s - largest - charged.migration_s
        if self.productive_s <= 0:
            raise InputError(
                f"{policy.name}: round_s is {policy.round_s!r}, expected more than the "
                f"{policy.round_s - self.productive_s!r} s that a start may be charged"
            )

    def begin(self, origin_s: float) -> None:
        """Count rounds from here; nothing is committed."""
        self.origin_s = origin_s
        self.committed = CommittedLoad(self.hardware.capacity, self.hardware.pool)
        self.schedules: dict[int, dict[int, Pieces]] = {}
        # Jobs by the rounds of their schedules, in order of commitment, and by the last of these.
        self._jobs_in: defaultdict[int, list[int]] = defaultdict(list)
        self._jobs_until: defaultdict[int, list[int]] = defaultdict(list)
        self._forgotten = 0

    def commit(self, state: State) -> None:
        """Commit the jobs that arrived, in order of arrival, where a schedule pays."""
        jobs = sorted(state.arrived)
        live = state.columns(jobs)
        rate = live.throughput
        scale = SCALES[self.policy.utility](live)
        with np.errstate(divide="ignore"):
            slowdown = np.where(rate > 0, rate.max(axis=1, keepdims=True) / rate, np.inf)
        # A tick more covers what rounding to the grid adds to a run time.
        alone_s = live.remaining_s[:, None] * slowdown + 2.0**-20
        first = round_at(state.now_s, self.origin_s, self.policy.round_s)
        for row, job in enumerate(jobs):
            bounds = self._bounds(
                live, row, alone_s[row], float(scale[row]), first, state.total_gpus
            )
            arrival_s = float(live.arrival_s[row]) - self.origin_s
            value = _Value(float(scale[row]), arrival_s, self.policy.round_s)
            commitment = self._best_schedule(state.gang[job], first, alone_s[row], value, bounds)
            if commitment is not None:
                self.committed.add(commitment)
                schedule = dict(commitment.rounds)
                self.schedules[job] = schedule
                for number in schedule:
                    self._jobs_in[number].append(job)
                self._jobs_until[max(schedule)].append(job)

    def _best_schedule(
        self,
        gpus: int,
        first: int,
        alone_s: NDArray[np.float64],
        value: Callable[[int], float],
        bounds: UtilityBounds,
    ) -> Commitment | None:
        """Best schedule; without mixing, the best over those of one type each."""
        prices = ExponentialPrices.of(bounds, self.hardware.pool, self._full_at())
        times_s = [alone_s]
        if not self.policy.mixed:
            one = np.eye(len(alone_s), dtype=bool)
            times_s = [np.where(row, alone_s, np.inf) for row in one if np.isfinite(alone_s[row])]
        length, last = self.productive_s, first + _HORIZON
        variants = [
            CommittableJob.of(gpus, first, each.tolist(), length, value, last) for each in times_s
        ]
        return best_schedule(variants, self.committed, prices, labels=self.policy.labels)

    def _full_at(self) -> NDArray[np.int64]:
        """Load from which on a node's price is the highest."""
        gang = self.policy.largest_gang
        return reserved_full_at(self.hardware.capacity, gang) if gang else self.hardware.capacity

    def _bounds(
        self,
        live: JobColumns,
        row: int,
        alone_s: NDArray[np.float64],
        scale: float,
        first: int,
        total: int,
    ) -> UtilityBounds:
        """Bounds that are given, or those of the jobs up to this one."""
        policy = self.policy
        if policy.u_max:
            return UtilityBounds.uniform(len(alone_s), policy.u_min, policy.u_max)
        usable = np.isfinite(alone_s)
        rounds = np.ceil(alone_s / self.productive_s)
        value = _Value(scale, float(live.arrival_s[row]) - self.origin_s, policy.round_s)
        own = published_bounds(
            np.array([value(first + int(rounds.min()) - 1)]),
            np.array([value(first + int(rounds[usable].max()) - 1)]),
            np.array([rounds[usable].max()]),
            live.gpus[row : row + 1],
            usable[None, :],
            total,
        )
        self.bounds = own if self.bounds is None else self.bounds.widened(own)
        return self.bounds

    def run_round(self, state: State, decision: Decision, number: int) -> None:
        """Give a round's GPUs to the jobs it is committed to, what is left to those refused."""
        # On real hosts a job may come back and be committed anew: the schedule that it has now counts.
        scheduled = {
            job: self.schedules[job][number]
            for job in self._jobs_in.pop(number, [])
            if number in self.schedules.get(job, ())
        }
        # On real hosts GPUs that were committed may be lost now: their jobs take what is left over.
        free = Hardware.of(state).capacity
        due: dict[int, Pieces] = {}
        for job, pieces in scheduled.items():
            if all(free[node] >= gpus for node, gpus in pieces):
                due[job] = pieces
                for node, gpus in pieces:
                    free[node] -= gpus
        stays = {job for job, pieces in state.running.items() if due.get(job) == pieces}
        for job, pieces in state.running.items():
            if job in due or (job in self.schedules and job not in scheduled):
                continue
            if all(free[node] >= gpus for node, gpus in pieces):
                stays.add(job)
                for node, gpus in pieces:
                    free[node] -= gpus
        for job in [job for job in state.running if job not in stays]:
            decision.stop(job)
        for job, pieces in due.items():
            if job not in stays:
                start_exactly(state, decision, job, pieces)
        for job in [*state.waiting, *decision.stops]:
            if not decision.free_gpus:
                break
            if job not in due and (job not in self.schedules or job in scheduled):
                decision.start(job)
        self._forget(number)
        self._record(state, number)

    def _forget(self, number: int) -> None:
        """Drop what is past; a job that outlives its schedule is served like one refused."""
        for past in range(self._forgotten, number):
            self._jobs_in.pop(past, None)
            for job in self._jobs_until.pop(past, []):
                self.schedules.pop(job, None)
        self._forgotten = max(self._forgotten, number)

    def _record(self, state: State, number: int) -> None:
        """Leave the prices of a round in the log, once there are bounds."""
        log = self.policy.log
        if log is None or (self.bounds is None and not self.policy.u_max):
            return
        types = int(self.hardware.pool.max()) + 1
        bounds = self.bounds or UtilityBounds.uniform(types, self.policy.u_min, self.policy.u_max)
        prices = ExponentialPrices.of(bounds, self.hardware.pool, self._full_at())
        log.time_s.append(state.now_s)
        log.prices.append(prices.at(self.committed.load(number, number + 1)[0]))
        log.known = bounds.known


@dataclass(frozen=True)
class _Value:
    """Utility if complete at the end of a round; times from the first round's beginning."""

    scale: float
    arrival_s: float
    round_s: float

    def __call__(self, number: int) -> float:
        return self.scale / ((number + 1) * self.round_s - self.arrival_s)

    def at(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds."""
        return np.asarray(self.scale / ((rounds + 1) * self.round_s - self.arrival_s))


POLICIES = (
    HadarCommitted(),
    # Rigid gangs of one type are what is left of OASiS where there are no parameter servers, whose
    # numbers of workers could change from round to round.
    HadarCommitted(name="oasis", mixed=False),
)
