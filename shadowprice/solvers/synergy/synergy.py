"""Synergy: CPUs and memory by sensitivity, in rounds.

Source: Mohan et al., Synergy, OSDI'22 (not read in full: by way of its public code and notes).

At the end of every round all live jobs are ordered anew, and those that the GPUs suffice for are
run, skipping what does not fit; CPUs and memory do not enter into that. A mechanism then divides the
servers among them: ``synergy-proportional``, ``synergy-greedy``, ``synergy-tune``, ``synergy-opt``, each
under ``:fifo``, ``:srtf``, ``:las``, ``:ftf``. ``drf`` and ``tetris`` order by demand and give every job
its whole demand (GREEDY), or what another mechanism does: ``drf:tune``.

All leases end with the round, but servers are alike: the plan is put on them so that as many GPUs
as can be stay with their jobs. Who keeps its GPUs goes on, with other CPUs and memory if need be, at
no charge; who does not is restarted. GREEDY is given all live jobs in order, since it leaves GPUs free.

Within a round nobody is stopped. GPUs that fall free go at once to jobs that wait, in order, by the
same mechanism, which may cut running jobs down (TUNE, OPT). In the published simulator they idle
until the boundary; run the engine in rounds (``Rounds(300)``) for that. A round in which nothing
could change is not waited for: a job that comes after it starts the next one.

Without profiles jobs run in their order by GPUs alone, on the GPUs the placement gives them. With them
servers are chosen by the mechanism; that a spread gang may be slower is not looked at, as published.

Guarantee: none for times; of ``synergy-tune``, and of others that divide by TUNE, SYN-floor
(``proofs/synergy/floor.py``; see ``Synergy.guarantee``). Knows: what its order needs. Preempts between
rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.grid import check_seconds
from shadowprice.solvers.list_scheduling import choose_by_count, run_exactly
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.synergy.moves import apply_plan, grants_of, least_moves
from shadowprice.solvers.synergy.opt import Opt
from shadowprice.solvers.synergy.orders import ORDERS, STARVED_S, Columns, JobOrder
from shadowprice.solvers.synergy.servers import (
    Demands,
    ResourceRequest,
    Servers,
    place_best_fit,
    place_first_fit,
)
from shadowprice.solvers.synergy.tune import Tune

# Mechanisms of Synergy that divide servers among a round's jobs: common parts, and two of them.
#
# PROPORTIONAL and GREEDY are Synergy's (OSDI'22) baselines; TUNE and OPT are in files of their own.


class Mechanism(Protocol):
    """Places jobs with CPUs and memory."""

    @property
    def fair(self) -> bool:
        """True if asks are GPU-proportional shares, not best-case demands."""

    @property
    def skips(self) -> bool:
        """True if it may skip a job although there are enough GPUs; it is then given all jobs."""

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place jobs, in order of priority, beside those that hold servers already."""


@dataclass(frozen=True)
class ProportionalMechanism:
    """CPUs and memory in proportion to GPUs; packed by fewest free GPUs. Places every job; O(n s)."""

    fair: bool = field(default=True, init=False)
    skips: bool = field(default=False, init=False)

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place all jobs.

        Raises
        ------
        PolicyError
            If they need more GPUs than are free.
        """
        for ask in asks:
            if not place_best_fit(servers, ask):
                raise PolicyError(
                    f"job {ask.job} needs {ask.gpus} GPUs, but only {int(servers.gpus.sum())} are free"
                )


@dataclass(frozen=True)
class Greedy:
    """First fit with the whole best-case demand; who fits nowhere is skipped in this round. O(n s).

    GPUs may idle beside jobs that wait for CPUs, and a job may starve while others keep coming. It
    does not for ever: on empty servers every demand fits (see :class:`Demands`).
    """

    fair: bool = field(default=False, init=False)
    skips: bool = field(default=True, init=False)

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place whom it can."""
        for ask in asks:
            place_first_fit(servers, ask)


# State that Synergy keeps from one decision to the next.


@dataclass
class SynergyNotes:
    """Notes of one run.

    Attributes
    ----------
    demands : Demands or None
        None if jobs have no profiles.
    round_ends_s : float
        End of the current round [s].
    stale : bool
        Whether jobs came or went since the last plan.
    """

    demands: Demands | None
    round_ends_s: float = 0.0
    stale: bool = True
    _starved: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, state: State, policy: str) -> SynergyNotes:
        """The notes of a run, made at its first decision.

        Raises
        ------
        PolicyError
            If jobs have profiles and GPUs are of several types.
        """
        return state.notes(cls, lambda: cls(_demands(state, policy)))

    def starved(self, state: State, live: JobColumns) -> NDArray[np.bool_]:
        """Mask of the live jobs that have ever waited for longer than :data:`STARVED_S`."""
        self._starved.difference_update(state.finished)
        self._starved.update(live.jobs[live.waited_s > STARVED_S].tolist())
        if not self._starved:
            return np.zeros(len(live), dtype=bool)
        return np.isin(live.jobs, list(self._starved))


def _demands(state: State, policy: str) -> Demands | None:
    if not state.profiled:
        return None
    names = state.pools_of_gpus.names
    if len(names) > 1:
        raise PolicyError(
            f"{policy}: jobs have profiles by CPUs and memory and GPUs are of types "
            f"{', '.join(names)}, expected one type"
        )
    # At the first decision nothing runs: all GPUs of a node are free.
    size = np.array(state.free_gpus_by_node(), dtype=np.int64)
    return Demands(state, size, state.share_per_gpu)


MECHANISMS: dict[str, Mechanism] = {
    "proportional": ProportionalMechanism(),
    "greedy": Greedy(),
    "tune": Tune(),
    "opt": Opt(),
}
"""By name."""


def _guarantee(mechanism: Mechanism) -> str:
    end = "Knows: what its order needs. Preempts between rounds."
    if not isinstance(mechanism, Tune):
        return f"none. {end}"
    return (
        "every job chosen is placed, and none below its GPU-proportional speed, under the hypotheses of SYN-floor "
        f"(equal shares on all servers, among others; proofs/synergy/floor.py); none for times. {end}"
    )


@dataclass(frozen=True)
class Synergy:
    """CPUs and memory of every round by a mechanism, for the gangs that an order puts first.

    Parameters
    ----------
    order : str
        One of fifo, srtf, srtf-share, las, ftf, drf, tetris: ``synergy-tune:srtf``.
    round_s : float
        Length of a round [s]; 300 as published.
    mechanism : Mechanism
        What divides the servers.
    """

    order: str = "fifo"
    round_s: float = 300.0
    name: str = "synergy-tune"
    mechanism: Mechanism = field(default_factory=Tune)
    chooses_cpu_memory: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """Theorem that is proven of the mechanism, in words."""
        return _guarantee(self.mechanism)

    def __post_init__(self) -> None:
        _check(self.name, "order", self.order, list(ORDERS))
        check_seconds(f"{self.name}: round_s", self.round_s)

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Durations, where the order reads them."""
        return ORDERS[self.order].knows

    @property
    def preemptive(self) -> bool:
        """It stops jobs between rounds."""
        return True

    def decide(self, state: State) -> Decision:
        """At the end of a round plan anew; within one start what fits."""
        return decide_in_rounds(state, self, ORDERS[self.order], self.mechanism)


@dataclass(frozen=True)
class ByDemand:
    """DRF or Tetris, by the name: an order by demand.

    Parameters
    ----------
    mechanism : str
        One of greedy (its whole demand, or it is skipped), proportional, tune, opt: ``drf:tune``.
    round_s : float
        Length of a round [s].
    """

    mechanism: str = "greedy"
    round_s: float = 300.0
    name: str = "drf"
    chooses_cpu_memory: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """Theorem that is proven of the mechanism, in words."""
        return _guarantee(MECHANISMS[self.mechanism])

    def __post_init__(self) -> None:
        _check("by demand", "name", self.name, ["drf", "tetris"])
        _check(self.name, "mechanism", self.mechanism, list(MECHANISMS))
        check_seconds(f"{self.name}: round_s", self.round_s)

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Durations, where the order reads them."""
        return ORDERS[self.name].knows

    @property
    def preemptive(self) -> bool:
        """It stops jobs between rounds."""
        return True

    def decide(self, state: State) -> Decision:
        """At the end of a round plan anew; within one start what fits."""
        return decide_in_rounds(state, self, ORDERS[self.name], MECHANISMS[self.mechanism])


class InRounds(Protocol):
    """Interface of a policy that decides in rounds."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def round_s(self) -> float:
        """Length of a round [s]."""


def decide_in_rounds(
    state: State, policy: InRounds, order: JobOrder, mechanism: Mechanism
) -> Decision:
    """A decision of Synergy's rounds; O(L log L) for L live jobs, and the mechanism's cost."""
    notes = SynergyNotes.of(state, policy.name)
    notes.stale |= bool(state.finished or state.arrived)
    decision = Decision(state)
    if not state.running and not state.waiting:
        return decision
    if state.now_s >= notes.round_ends_s or not state.running:
        if notes.stale or state.waiting:
            notes.round_ends_s, notes.stale = state.now_s + policy.round_s, False
            decision = _new_round(state, notes, order, mechanism)
    elif state.waiting and decision.free_gpus:
        _fill(state, notes, order, mechanism, decision)
    waits = len(state.waiting) + len(decision.stops) > len(decision.starts)
    if waits or (notes.stale and state.running and notes.demands is not None):
        decision.wake_at(notes.round_ends_s)
    return decision


def _new_round(
    state: State, notes: SynergyNotes, order: JobOrder, mechanism: Mechanism
) -> Decision:
    live = state.live()
    ranked = _ranked(state, notes, live, order, fair=mechanism.fair)
    if notes.demands is None:
        return run_exactly(state, live, ranked)
    jobs, size = live.jobs[ranked], _usable(state)
    starts = state.allocator.planned_starts()
    admitted = np.array([starts.take(job, state.gang[job]) for job in jobs.tolist()], dtype=bool)
    jobs, ranked = jobs[admitted], ranked[admitted]
    if not mechanism.skips:
        jobs = jobs[choose_by_count(live.gpus[ranked], int(size.sum()))]
    servers = Servers(size, notes.demands.share)
    mechanism.place(_asks(state, notes, jobs, fair=mechanism.fair), servers, notes.demands)
    decision = Decision(state)
    apply_plan(state, decision, least_moves(servers.held, state.running, servers.size))
    return decision


def _usable(state: State) -> NDArray[np.int64]:
    """GPUs of every node that are free or held by a job: all but those of nodes that are lost or down."""
    size = np.array(state.free_gpus_by_node(), dtype=np.int64)
    for pieces in state.running.values():
        for node, gpus in pieces:
            size[node] += gpus
    return size


def _fill(
    state: State, notes: SynergyNotes, order: JobOrder, mechanism: Mechanism, decision: Decision
) -> None:
    """Start jobs that wait on GPUs that are free."""
    live = state.columns(state.waiting)
    ranked = _ranked(state, notes, live, order, fair=mechanism.fair)
    jobs = live.jobs[ranked]
    if notes.demands is not None:
        # One by one; beyond what two tenants' jobs have together is seen as they start.
        admits = state.allocator.admits
        admitted = np.array([admits(job, state.gang[job]) for job in jobs.tolist()], dtype=bool)
        jobs, ranked = jobs[admitted], ranked[admitted]
    if notes.demands is None:
        for job in jobs.tolist():
            decision.start(job)
        return
    if not mechanism.skips:
        jobs = jobs[choose_by_count(live.gpus[ranked], decision.free_gpus)]
    if len(jobs):
        servers = Servers.holding(_usable(state), notes.demands.share, grants_of(state))
        mechanism.place(_asks(state, notes, jobs, fair=mechanism.fair), servers, notes.demands)
        apply_plan(state, decision, servers.held)


def _asks(
    state: State, notes: SynergyNotes, jobs: NDArray[np.int64], *, fair: bool
) -> list[ResourceRequest]:
    assert notes.demands is not None
    ask = notes.demands.proportional if fair else notes.demands.ask
    return [ask(job, state.gang[job]) for job in jobs.tolist()]


def _ranked(
    state: State, notes: SynergyNotes, live: JobColumns, order: JobOrder, *, fair: bool
) -> NDArray[np.int64]:
    """Positions in the live columns, highest priority first."""
    shares = (live.gpus / state.total_gpus)[:, None]
    gain = np.ones(len(live))
    demands = notes.demands
    if demands is not None:
        gain = demands.best_speed(live.jobs)
        whole = state.total_gpus * np.array(demands.share)
        asks = [demands.ask(job, state.gang[job]) for job in live.jobs.tolist()]
        more = np.array([[ask.cpus, ask.memory_gb] for ask in asks]) * live.gpus[:, None] / whole
        shares = np.hstack([shares, more])
    keys = order.key(Columns(live, state.now_s, gain, fair, shares))
    first = notes.starved(state, live) if order.boosts else np.zeros(len(live), dtype=bool)
    return np.lexsort((live.jobs, keys, ~first))


def _check(name: str, what: str, value: str, known: list[str]) -> None:
    if value not in known:
        raise InputError(f"{name}: {what} is {value!r}, expected one of {', '.join(known)}")


POLICIES = (
    Synergy(name="synergy-proportional", mechanism=ProportionalMechanism()),
    Synergy(name="synergy-greedy", mechanism=Greedy()),
    Synergy(name="synergy-tune", mechanism=Tune()),
    Synergy(name="synergy-opt", mechanism=Opt()),
    ByDemand(name="drf"),
    ByDemand(name="tetris"),
)
