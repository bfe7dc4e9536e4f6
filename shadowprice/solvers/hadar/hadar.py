r"""Hadar: prices, payoffs and a dual subroutine in every round.

Source: Sultana et al., Hadar, IPDPS'24 (recalled). Algorithm 1 at the beginning of every round:

1. All GPUs are free again; the queue is the unfinished jobs that have arrived (:meth:`Hadar.decide`).
2. Utilities, their bounds U_max and U_min, and from these the prices of GPUs by the load of their
   nodes (:class:`_Queue`, :mod:`.prices`).
3. The dual subroutine with FIND_ALLOC: the jobs and gangs of largest total payoff, utility less the
   price of the GPUs for this round (:mod:`.round_selection`). A gang may mix GPU types and then runs at
   the slowest's speed. With ``fill`` jobs that the prices refuse then get what is left idle (derived:
   :mod:`.work_conserving`).
4. Gangs get nodes, and jobs start and stop. Where jobs ask for CPUs and memory (derived: prices are of GPUs
   alone) those who stay keep theirs; gangs for which none are left are left out, and 3 is repeated for the others.
   So are gangs for which their tenant's quota has no room, in order of payoff (derived).

Nothing starts within a round, as published; the first round after the cluster was empty begins with the
first arrival, unless rounds are aligned (derived).

Guarantee: none, with ``fill`` or without. The theorem is about the commit-once form, ``hadar-committed``; the dual
prices that a run leaves in its log bound the optimum for that very run (proofs.hadar.run_certificate).
Knows: the work left. Preempts. U_max and U_min are given, or estimated from the jobs that are there.

Complexity of a decision: O(jobs x width x types x classes of nodes), see :mod:`.round_selection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.hadar.node_classes import NodeClasses
from shadowprice.solvers.hadar.prices import (
    SCALES,
    ExponentialPrices,
    Hardware,
    UtilityBounds,
    check_settings,
    idle_before,
    published_bounds,
    round_at,
    start_exactly,
)
from shadowprice.solvers.hadar.round_selection import (
    GangParts,
    QueuedJob,
    assign_nodes,
    dual_subroutine,
)
from shadowprice.solvers.hadar.work_conserving import filled
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.price_log import PriceLog


@dataclass
class _HadarNotes:
    """The time from which rounds are counted [s]."""

    origin_s: float = 0.0


@dataclass(frozen=True)
class Hadar:
    """Jobs of largest payoff, chosen anew in every round.

    Parameters
    ----------
    utility : str
        ``effective_throughput``, ``completion_time`` or ``fairness``: s_j / (f_j - a_j).
    round_s : float
        Length of a round [s].
    width : int
        States that the dual subroutine keeps.
    communication : float
        Share of its utility that a gang loses on many nodes; (k - 1) / k of that on k.
    u_min, u_max : float
        Bounds of utility for a GPU and round; 0 and 0 to estimate them from the jobs that are there.
    fill : bool
        Whether jobs that prices refuse start on GPUs that would be idle in the round: not Algorithm 1.
    aligned : bool
        Whether rounds begin at multiples of their length, as the duals of a run need.
    log : PriceLog, optional
        Where the prices of the run go.
    """

    utility: str = "effective_throughput"
    round_s: float = 360.0
    width: int = 64
    communication: float = 0.05
    u_min: float = 0.0
    u_max: float = 0.0
    fill: bool = False
    aligned: bool = False
    name: str = "hadar"
    log: PriceLog | None = field(default=None, compare=False, repr=False)
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.name, self.utility, self.round_s, self.u_min, self.u_max)
        if self.width < 1:
            raise InputError(f"{self.name}: width is {self.width!r}, expected at least 1")
        if not 0 <= self.communication < 1:
            raise InputError(
                f"{self.name}: communication is {self.communication!r}, expected 0 <= c < 1"
            )

    def keeping(self, log: PriceLog) -> Hadar:
        """The same policy, with a log for its prices."""
        return replace(self, log=log)

    def decide(self, state: State) -> Decision:
        """Choose for the round that begins; between rounds only wait for the next."""
        decision = Decision(state)
        live = state.live()
        if not len(live):
            return decision
        notes = state.notes(_HadarNotes, _HadarNotes)
        if not self.aligned and idle_before(state):
            notes.origin_s = state.now_s
        number = round_at(state.now_s, notes.origin_s, self.round_s)
        begins_s = notes.origin_s + number * self.round_s
        if begins_s > state.now_s:
            decision.wake_at(begins_s)
        # Of real hosts GPUs are lost and come back: what there is counts now, not what there was.
        elif not self._choose(state, decision, live, Hardware.of(state)):
            decision.wake_at(state.now_s + self.round_s)
        return decision

    def _choose(
        self, state: State, decision: Decision, live: JobColumns, hardware: Hardware
    ) -> bool:
        """Start and stop jobs; True if all run as fast as they can, so that no round can change it."""
        queue = _Queue.of(self, state, live, hardware)
        prices = ExponentialPrices.of(queue.bounds, hardware.pool, hardware.capacity)
        classes = NodeClasses(hardware.capacity, hardware.pool, prices)
        order = queue.by_payoff_per_gpu().tolist()
        while True:
            waiting = [queue.job(row) for row in order]
            gangs = self._selected(classes, waiting)
            jobs = live.jobs[order].tolist()
            # Prices know nothing of tenants' quotas: who is above one is left out like who has no CPUs.
            starts = state.allocator.planned_starts()
            assigned = assign_nodes(
                {
                    jobs[position]: parts
                    for position, parts in gangs
                    if starts.take(jobs[position], state.gang[jobs[position]])
                },
                state.running,
                hardware.capacity.tolist(),
                hardware.pool.tolist(),
                scattered=self.communication == 0.0,
                room=state.allocator.cpu_memory.room_of_all(),
            )
            if len(assigned) == len(gangs):
                break
            left_out = {position for position, _ in gangs if jobs[position] not in assigned}
            order = [row for position, row in enumerate(order) if position not in left_out]
        _apply(state, decision, assigned)
        self._record(state, assigned, prices, known=queue.bounds.known)
        return len(assigned) == len(live) and all(
            len(parts) == 1 and queue.is_fastest(order[position], parts[0][0])
            for position, parts in gangs
        )

    def _selected(
        self, classes: NodeClasses, waiting: Sequence[QueuedJob]
    ) -> tuple[tuple[int, GangParts], ...]:
        """Positions of the jobs that run in the round, and the parts of their gangs."""
        selection = dual_subroutine(
            classes, classes.empty_cluster(), waiting, self.width, self.communication
        )
        if self.fill:
            selection = filled(classes, selection, waiting, self.communication)
        return selection.gangs

    def _record(
        self,
        state: State,
        assigned: Mapping[int, Pieces],
        prices: ExponentialPrices,
        *,
        known: bool,
    ) -> None:
        """Leave the prices at the load after the decision in the log."""
        if self.log is None:
            return
        load = np.zeros(state.nodes, dtype=np.int64)
        for pieces in assigned.values():
            for node, gpus in pieces:
                load[node] += gpus
        self.log.time_s.append(state.now_s)
        self.log.prices.append(prices.at(load))
        self.log.known = known


def _apply(state: State, decision: Decision, assigned: Mapping[int, Pieces]) -> None:
    """Stop what does not stay where it is, then start what was assigned elsewhere or waits."""
    stays = {job for job, pieces in state.running.items() if assigned.get(job) == pieces}
    for job in [job for job in state.running if job not in stays]:
        decision.stop(job)
    for job, pieces in assigned.items():
        if job not in stays:
            start_exactly(state, decision, job, pieces)


@dataclass(frozen=True)
class _Queue:
    """The unfinished jobs at the beginning of a round.

    Parameters
    ----------
    gpus : ndarray of int, shape (jobs,)
        Gang sizes.
    rate, value : ndarray, shape (jobs, types)
        Work a second, and utility if the job ran from now on with each type as its slowest.
    bounds : UtilityBounds
        U_min and U_max.
    """

    gpus: NDArray[np.int64]
    rate: NDArray[np.float64]
    value: NDArray[np.float64]
    bounds: UtilityBounds

    @classmethod
    def of(cls, policy: Hadar, state: State, live: JobColumns, hardware: Hardware) -> _Queue:
        """Utilities s_j / (f_j - a_j) and their bounds; O(jobs x types)."""
        rate, scale = _rates(state, live), SCALES[policy.utility](live)
        since_s = state.now_s - live.arrival_s
        with np.errstate(divide="ignore"):
            slowdown = np.where(rate > 0, rate.max(axis=1, keepdims=True) / rate, np.inf)
        left_s = live.remaining_s[:, None] * slowdown + _charges_s(state, live, hardware, rate)
        rounds = np.maximum(np.ceil(left_s / policy.round_s), 1.0)
        value = scale[:, None] / (since_s[:, None] + rounds * policy.round_s)
        if policy.u_max:
            bounds = UtilityBounds.uniform(rate.shape[1], policy.u_min, policy.u_max)
        else:
            shortest = np.maximum(np.ceil(live.processing_s / policy.round_s), 1.0)
            bounds = published_bounds(
                np.maximum(scale / (shortest * policy.round_s), value.max(axis=1)),
                np.where(rate > 0, value, np.inf).min(axis=1),
                np.where(rate > 0, rounds, 0.0).max(axis=1),
                live.gpus,
                rate > 0,
                state.total_gpus,
            )
        return cls(live.gpus, rate, value, bounds)

    def by_payoff_per_gpu(self) -> NDArray[np.int64]:
        """Rows in falling order of payoff per GPU on the empty cluster, ties by arrival."""
        payoff = np.where(
            self.rate > 0, self.value / self.gpus[:, None] - self.bounds.lowest, -np.inf
        )
        return np.argsort(-payoff.max(axis=1), kind="stable")

    def job(self, row: int) -> QueuedJob:
        """The job in a row, for the dual subroutine."""
        return QueuedJob(int(self.gpus[row]), self.rate[row], self.value[row])

    def is_fastest(self, row: int, gpu_type: int) -> bool:
        """True if no type is faster for the job in a row."""
        return bool(self.rate[row, gpu_type] == self.rate[row].max())


def _rates(state: State, live: JobColumns) -> NDArray[np.float64]:
    """Work a second on each type, 0 where a job never has its CPUs and memory; shape (jobs, types)."""
    rate, ledger = live.throughput, state.allocator.cpu_memory
    if not ledger.says:
        return rate
    fits = [
        [ledger.fits_in(job, gpu_type) for gpu_type in range(rate.shape[1])]
        for job in live.jobs.tolist()
    ]
    return np.where(np.array(fits), rate, 0.0)


def _charges_s(
    state: State, live: JobColumns, hardware: Hardware, rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Overhead [s] before progress on each type, shape (jobs, types).

    A job that stays on the type it runs on (the slowest, of several) is assumed to keep its GPUs.
    """
    overheads = state.environment.overheads
    charge = np.repeat(live.owed_s[:, None], rate.shape[1], axis=1)
    if overheads.free:
        return charge
    charge += overheads.start_s
    for row, job in enumerate(live.jobs.tolist()):
        pieces = state.running.get(job)
        if pieces is None:
            continue
        types = {int(hardware.pool[node]) for node, _ in pieces}
        slowest = min(types, key=lambda gpu_type: rate[row, gpu_type])
        moves = np.arange(rate.shape[1]) != slowest
        charge[row, moves] += overheads.restart_charge_s(state.gang[job]) + overheads.migration_s
        charge[row, slowest] -= overheads.start_s
    return charge


POLICIES = (Hadar(),)
