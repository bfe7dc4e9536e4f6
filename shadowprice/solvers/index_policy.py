"""Index policies: the order of jobs is a number for each of them, and a rule says how GPUs follow that order.

A policy need only say its index, see :class:`IndexPolicy`: its ``decide`` follows, and the compiled loop of
:mod:`shadowprice.execution.kernel` runs it to the same schedule row by row. Two rules look at no key: EASY's, whose
backfilling reserves, and A-SRPT's, whose order is that of a machine which runs beside the cluster. Their policies
have a ``decide`` of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import PolicyError
from shadowprice.instances.grid import TICK_S, up_to_grid
from shadowprice.solvers.list_scheduling import run_exactly, serve_in_order, widest_of_prefix_first
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State


class IndexedJob(NamedTuple):
    """A job that has arrived, as an index sees it at one moment; all numbers are floats.

    ``processing_s`` and ``remaining_s`` are no numbers (NaN) to policies that do not know durations.
    """

    gpus: float
    """Gang size [GPUs]."""
    arrival_s: float
    """Arrival [s]."""
    weight: float
    """Weight."""
    processing_s: float
    """Whole run time [s]."""
    remaining_s: float
    """Run time left [s]."""
    attained_s: float
    """Time it has run so far, without overheads [s]."""
    first_start_s: float
    """First start [s], infinity before it."""


Table = NDArray[np.float64]
"""Numbers that an index is computed with beside those of the job, shape (numbers,)."""

Measure = Callable[[IndexedJob, Table], float]
"""A number of one job, computed with arithmetic, comparisons and functions that numba compiles."""


class QueueRule(StrEnum):
    """Rules by which GPUs follow the order of jobs."""

    HEAD_BLOCKS = "head-blocks"
    """Waiting jobs start in order, the first that does not fit blocks those behind; nobody is stopped."""

    SKIPS = "skips"
    """Waiting jobs start in order, those that do not fit are passed over; nobody is stopped."""

    PREEMPTS = "preempts"
    """All live jobs get GPUs in order, those that do not fit are passed over, and the others stop:
    :func:`shadowprice.solvers.list_scheduling.serve_in_order`."""

    FILLS = "fills"
    """As ``PREEMPTS``, but the least prefix of the order that asks for all GPUs gets them widest gangs first:
    :func:`shadowprice.solvers.list_scheduling.widest_of_prefix_first`."""

    BACKFILLS = "backfills"
    """As ``HEAD_BLOCKS`` in order of arrival, but jobs behind the head may start if it is not delayed:
    EASY backfilling. The key is not looked at."""

    RELEASES = "releases"
    """Jobs wait in the order in which a virtual machine completes them, see :class:`VirtualWork`, and start
    from the head as with ``HEAD_BLOCKS``. The key is not looked at."""


PREEMPTIVE_RULES = (QueueRule.PREEMPTS, QueueRule.FILLS)
"""Rules that stop running jobs."""


class WhileRunning(StrEnum):
    """Change of a job's key while it runs; it never changes while the job waits."""

    CONSTANT = "constant"
    STEPS = "steps"
    """Constant between the attained times that ``next_step_s`` tells."""
    ALIKE = "alike"
    """At any time, but so that jobs of one gang size that make progress all the while stay in order, as
    by remaining or attained time."""
    VARIES = "varies"
    """At any time, until there is no next step; always where no steps are told."""


class Ties(StrEnum):
    """Order of jobs of equal level and key; what is equal then is in order of arrival."""

    ARRIVAL = "arrival"
    FIRST_START = "first-start"


@dataclass(frozen=True)
class VirtualWork:
    """Work of jobs on a virtual machine as fast as all GPUs together, which runs them under SRPT.

    A job joins it on arrival with gang x predicted run time x ``stretch`` [GPU-s], rounded up to a tick.

    Parameters
    ----------
    predictor : str
        Specification, see :mod:`shadowprice.solvers.predictors.predictor`.
    stretch : float
        The machine is slower by this factor, at least 1.
    """

    predictor: str
    stretch: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class JobIndex(Brief):
    """An order of jobs: by level, then by key, least first, then by ``ties`` and arrival.

    Parameters
    ----------
    rule : QueueRule
        How GPUs follow the order.
    key : callable
        Key of a job.
    level : callable, optional
        Level of a job, such as the number of its queue; changes with the key. All are 0 if not given.
    ties : Ties
        Order among equals.
    table : ndarray
        Handed to ``key``, ``level`` and ``next_step_s``.
    while_running : WhileRunning
        How key and level change while a job runs.
    next_step_s : callable, optional
        Attained time at which the key of a running job steps next [s], infinity for never. While jobs
        wait for want of GPUs a decision is due then.
    quantum_s : float
        Longest time between two decisions while jobs wait [s].
    virtual : VirtualWork, optional
        With the rule ``RELEASES``, and with no other.
    elementwise : bool
        Whether ``key``, ``level`` and ``next_step_s`` may be handed columns of all jobs in place of numbers of one:
        arithmetic, comparisons and functions of NumPy that do not divide by zero may, branches may not. The numbers
        are the same.
    """

    rule: QueueRule
    key: Measure
    level: Measure | None = None
    ties: Ties = Ties.ARRIVAL
    table: Table = field(default_factory=lambda: np.zeros(0))
    while_running: WhileRunning = WhileRunning.CONSTANT
    next_step_s: Measure | None = None
    quantum_s: float = math.inf
    virtual: VirtualWork | None = None
    elementwise: bool = False

    def __post_init__(self) -> None:
        steps = self.while_running is WhileRunning.STEPS
        if steps and self.next_step_s is None:
            raise PolicyError("index: the key steps while a job runs, but no next_step_s is given")
        if not self.quantum_s >= TICK_S:
            raise PolicyError(
                f"index: quantum_s is {self.quantum_s!r}, expected seconds of at least {TICK_S}"
            )
        if (self.virtual is None) == (self.rule is QueueRule.RELEASES):
            given = "no virtual work" if self.virtual is None else "virtual work"
            raise PolicyError(f"index: {given} is given with the rule {str(self.rule)!r}")
        wakes = self.quantum_s < math.inf or self.next_step_s is not None
        if wakes and self.rule is not QueueRule.PREEMPTS:
            raise PolicyError(
                f"index: quantum_s or next_step_s is given with the rule {str(self.rule)!r}, expected "
                f"{str(QueueRule.PREEMPTS)!r}"
            )


@runtime_checkable
class HasIndex(Protocol):
    """A policy whose order is an index."""

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """The index; None if with its present parameters the order is none.

        Parameters
        ----------
        service_gpu_s : ndarray or None
            Services of all jobs, sorted [GPU-s]; for policies that have declared to know them.
        """


def same_key(job: IndexedJob, table: Table) -> float:
    """The key of policies that order jobs by level, first start or arrival alone."""
    return 0.0


class IndexPolicy:
    """Base of policies that state only their index.

    A subclass is a frozen dataclass with ``name``, ``knows``, ``preemptive`` and :meth:`job_index`, whose
    functions take one job. Any rule but ``BACKFILLS`` and ``RELEASES`` will do.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> def remaining_per_weight(job, table):
    ...     return job.remaining_s / job.weight
    >>> @dataclass(frozen=True)
    ... class Wsrpt(IndexPolicy):
    ...     name: str = "wsrpt"
    ...     knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    ...     preemptive: ClassVar[bool] = True
    ...
    ...     def job_index(self, service_gpu_s):
    ...         varies = WhileRunning.VARIES
    ...         return JobIndex(QueueRule.PREEMPTS, remaining_per_weight, while_running=varies)
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 1])
    >>> sp.simulate(jobs, "1x1", Wsrpt()).summary()["avg_jct_s"]
    6.0
    """

    if TYPE_CHECKING:

        @property
        def knows(self) -> frozenset[Knowledge]:
            """Knowledge of the policy beyond the past."""

        @property
        def preemptive(self) -> bool:
            """True with a rule that stops jobs."""

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """The index of this policy."""
        raise NotImplementedError

    def decide(self, state: State) -> Decision:
        """Serve jobs by their index; O(L log L) for L live jobs, and a call of ``key`` for each, or for all."""
        if self.preemptive and (state.everything_fits or not state.waiting):
            return Decision(state).start_all()
        order = self.order_in(state)
        rule = order.index.rule
        if rule is QueueRule.PREEMPTS:
            return _serve_live(state, order)
        if rule is QueueRule.FILLS:
            return serve_in_order(state, partial(_filling, order, state.total_gpus))
        decision, blocks = Decision(state), rule is QueueRule.HEAD_BLOCKS
        if not state.waiting or not decision.free_gpus:
            return decision
        for job in order.waiting(state):
            if not decision.start(job) and (blocks or not decision.free_gpus):
                break
        return decision

    def order_in(self, state: State) -> IndexOrder:
        """The order of jobs in this run, made once."""
        return state.notes(IndexOrder, lambda: self._order_in(state))

    def index_in(self, state: State) -> JobIndex | None:
        """The index in this run: of policies that learn one while they run, not that of :meth:`job_index`."""
        told = Knowledge.DISTRIBUTION in self.knows
        return self.job_index(state.service_gpu_s() if told else None)

    def _order_in(self, state: State) -> IndexOrder:
        index = self.index_in(state)
        if index is None or index.rule in (QueueRule.BACKFILLS, QueueRule.RELEASES):
            found = "no index" if index is None else f"an index with the rule {index.rule}"
            raise PolicyError(f"job_index returned {found}, expected one with another rule")
        return IndexOrder(index, Knowledge.DURATION in self.knows)


class SeenJobs:
    """Columns of jobs as an index sees them, each read once.

    Parameters
    ----------
    jobs : JobColumns or SeenJobs
    rows : ndarray of bool, optional
        Mask of the jobs that are seen, all by default.
    attained_s : ndarray, optional
        Time that each has run as the index is to see it, in place of its attained time [s].
    """

    jobs: NDArray[np.int64]
    attained_s: NDArray[np.float64]
    first_start_s: NDArray[np.float64]

    def __init__(
        self,
        jobs: JobColumns | SeenJobs,
        rows: NDArray[np.bool_] | None = None,
        attained_s: NDArray[np.float64] | None = None,
    ) -> None:
        self._source, self._rows = jobs, rows
        if attained_s is not None:
            self.attained_s = attained_s

    def __getattr__(self, name: str) -> Any:
        """A column, kept from then on."""
        column = getattr(self._source, name)
        column = column if self._rows is None else column[self._rows]
        setattr(self, name, column)
        return column


@dataclass(frozen=True, repr=False)
class IndexOrder(Brief):
    """An index, and whether it is told how long jobs run."""

    index: JobIndex
    knows_durations: bool

    def positions(self, jobs: SeenJobs) -> NDArray[np.int64]:
        """Positions in the columns, first in order first; live jobs come in order of arrival."""
        index = self.index
        key = self.measured(jobs, index.key)
        if index.level is not None:
            level = self.measured(jobs, index.level)
            self._expect_numbers(jobs, index.key, float(key.sum()))
            order = np.lexsort((jobs.jobs, *self._ties(jobs), key, level))
            self._expect_numbers(jobs, index.level, level[order[-1]])
            return order
        if index.ties is Ties.ARRIVAL and index.rule in PREEMPTIVE_RULES:
            order = np.argsort(key, kind="stable")
        else:
            order = np.lexsort((jobs.jobs, *self._ties(jobs), key))
        # What is no number comes last.
        self._expect_numbers(jobs, index.key, key[order[-1]])
        return order

    def _ties(self, jobs: SeenJobs) -> tuple[NDArray[np.float64], ...]:
        return (jobs.first_start_s,) if self.index.ties is Ties.FIRST_START else ()

    def next_step_in_s(self, state: State, running: SeenJobs) -> float:
        """Time until the first of some jobs that run from now on steps, at least a tick, infinity if none does [s]."""
        if self.index.next_step_s is None:
            return math.inf
        gap_s = up_to_grid(self.measured(running, self.index.next_step_s) - running.attained_s)
        # What a job attains stands still while it pays charges, or writes a checkpoint.
        takes_s = state.columns(running.jobs).takes_s(gap_s)
        least_s = float(takes_s.min(initial=math.inf))
        self._expect_numbers(running, self.index.next_step_s, least_s)
        return max(least_s, TICK_S)

    @cached_property
    def by_arrival(self) -> bool:
        """True if no number tells jobs apart: they are served as they came."""
        index = self.index
        return index.key is same_key and index.level is None and index.ties is Ties.ARRIVAL

    @cached_property
    def as_they_wait(self) -> bool:
        """True if waiting jobs are in order as the state has them: nobody was stopped, to wait behind later ones."""
        return self.by_arrival and self.index.rule not in PREEMPTIVE_RULES

    def waiting(self, state: State) -> Iterable[int]:
        """Waiting jobs, first in order first; those of arrival as they are."""
        if self.as_they_wait or len(state.waiting) == 1:
            return state.waiting
        # Jobs that were stopped wait behind later ones.
        stops = self.index.rule in PREEMPTIVE_RULES
        waiting = sorted(state.waiting) if stops else state.waiting
        if self.by_arrival:
            return waiting
        jobs = SeenJobs(state.columns(waiting))
        ordered: list[int] = jobs.jobs[self.positions(jobs)].tolist()
        return ordered

    def measured(self, jobs: SeenJobs, measure: Measure) -> NDArray[np.float64]:
        """A measure of each job."""
        if self.index.elementwise:
            # Columns have the names that a job has.
            return measure(jobs, self.index.table)  # type: ignore[arg-type, return-value]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self._each(jobs, measure)

    def _expect_numbers(self, jobs: SeenJobs, measure: Measure, sign: float) -> None:
        """Refuse a measure that is no number of some job; then ``sign`` is none."""
        if sign != sign:
            unknown = np.isnan(self.measured(jobs, measure))
            if unknown.any():
                raise PolicyError(not_a_number(measure, str(jobs.id[int(unknown.argmax())])))

    def _each(self, jobs: SeenJobs, measure: Measure) -> NDArray[np.float64]:
        # Numbers of NumPy, by which division by zero gives infinity as it does in compiled code.
        rows = zip(*self._columns(jobs), strict=True)
        each = [measure(IndexedJob(*numbers), self.index.table) for numbers in rows]
        return np.array(each, dtype=np.float64)

    def _columns(self, jobs: SeenJobs) -> tuple[NDArray[np.float64], ...]:
        unknown = np.full(len(jobs.jobs), np.nan)
        return (
            jobs.gpus.astype(np.float64),
            jobs.arrival_s,
            jobs.weight,
            jobs.processing_s if self.knows_durations else unknown,
            jobs.remaining_s if self.knows_durations else unknown,
            jobs.attained_s,
            jobs.first_start_s,
        )


def _serve_live(state: State, order: IndexOrder) -> Decision:
    if state.fits_by_count:
        return _start_waiting(state, order)
    live = state.live()
    seen = SeenJobs(live)
    decision = run_exactly(state, live, order.positions(seen))
    if len(state.waiting) + len(decision.stops) > len(decision.starts):
        decision.wake_at(state.now_s + order.index.quantum_s)
        if order.index.next_step_s is not None:
            running = SeenJobs(seen, runs_after(live, decision))
            decision.wake_at(state.now_s + order.next_step_in_s(state, running))
    return decision


def _start_waiting(state: State, order: IndexOrder) -> Decision:
    """Start the waiting jobs that can be placed, in order; nobody has to make room.

    Who steps where does not matter before somebody has to: no decision is due then.
    """
    decision = Decision(state)
    for job in order.waiting(state):
        decision.start(job)
    if len(decision.starts) < len(state.waiting):
        decision.wake_at(state.now_s + order.index.quantum_s)
    return decision


def runs_after(live: JobColumns, decision: Decision) -> NDArray[np.bool_]:
    """Mask of the live jobs that run after a decision."""
    runs = live.running  # A copy; the columns are in order of the jobs.
    runs[np.searchsorted(live.jobs, decision.stops)] = False
    runs[np.searchsorted(live.jobs, list(decision.starts))] = True
    return runs


def _filling(order: IndexOrder, total_gpus: int, live: JobColumns) -> NDArray[np.int64]:
    return widest_of_prefix_first(order.positions(SeenJobs(live)), live.gpus, total_gpus)


def not_a_number(measure: Measure, job: str) -> str:
    """Error message about a measure that is NaN of some job."""
    name = getattr(measure, "__name__", repr(measure))
    return (
        f"{name} of job {job!r} is not a number, expected one; of policies that do not declare "
        "'duration', processing_s and remaining_s are not"
    )
