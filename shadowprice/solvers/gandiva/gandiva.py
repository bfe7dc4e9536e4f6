"""Gandiva: time slicing by affinity, and introspection that tries, measures, keeps or reverts.

Source: Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018,
sec. 3 and 4.

``gandiva-reactive`` reacts to arrivals and departures: getNodes, turns of 60 s on
over-subscribed servers, migration of suspended jobs to free GPUs, then of spread ones to fewer
servers. ``gandiva`` adds packing, defragmentation and grow-shrink. Whatever is tried is tried for a
quantum and judged by the measured rates alone; the policy never sees what sharing, spreading or widths
do to rates before.

Guarantee: of ``gandiva`` GAN-match for the pairs it makes (``proofs/gandiva/matching.py``), of
``gandiva-reactive``, which makes none, nothing (see ``Gandiva.guarantee``). None on completion times.
Knows: nothing. Preempts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.gandiva import migration as moves
from shadowprice.solvers.gandiva import packing
from shadowprice.solvers.gandiva.measured_rates import MeasuredRates
from shadowprice.solvers.gandiva.time_slicing import assign_homes, fill, rotate
from shadowprice.solvers.gandiva.units import ServerOccupancy, Unit, UnitDecision
from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass
class _GandivaNotes:
    """Server occupancy, measured rates, and the time since which no job has waited [s]."""

    occupancy: ServerOccupancy
    idle_since_s: float
    measured: MeasuredRates = field(default_factory=MeasuredRates)


def _first_notes(state: State, policy: str) -> _GandivaNotes:
    """Notes of a run at its first decision.

    Raises
    ------
    PolicyError
        If tenants have quotas: turns at homes, and trials elsewhere, are not counted by tenant.
    """
    if state.allocator.limits_starts:
        raise PolicyError(
            f"{policy}: tenants have quotas, of which turns on servers know nothing, expected none or another policy"
        )
    return _GandivaNotes(ServerOccupancy(state), state.now_s)


@dataclass(frozen=True)
class Gandiva:
    """Time slices, GPUs shared by pairs that gain, growth and migration, each kept only if it pays.

    Parameters
    ----------
    quantum_s : float
        Length of a turn, and of a trial [s]; a multiple of 2**-20.
    packing, locality, defragmentation, growth : bool
        What is tried beside turns.
    idle_quanta : int
        Quanta that GPUs must idle before a job grows onto them.
    """

    name: str = "gandiva"
    quantum_s: float = 60.0
    packing: bool = True
    locality: bool = True
    defragmentation: bool = True
    growth: bool = True
    idle_quanta: int = 2
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """Theorem that is proven of Gandiva with these parameters, in words."""
        if not self.packing:
            return "none: no jobs share GPUs. Knows: nothing. Preempts."
        return (
            "while rates do not change and overheads are left aside, a pair that is kept after its trial makes at "
            "least as much of its GPUs, in normalised throughput, as turns on them would (GAN-match, "
            "proofs/gandiva/matching.py). None on completion times. Knows: nothing. Preempts."
        )

    def __post_init__(self) -> None:
        if not 1e-3 <= self.quantum_s <= 1e9 or (self.quantum_s * TICKS_PER_S) % 1:
            raise InputError(
                f"{self.name}: quantum_s is {self.quantum_s!r}, expected seconds from 0.001 to 1e9, "
                "a multiple of 2**-20"
            )
        if not 0 <= self.idle_quanta <= 1_000_000:
            raise InputError(
                f"{self.name}: idle_quanta is {self.idle_quanta!r}, expected 0 to 1000000"
            )

    @property
    def measures(self) -> bool:
        """True if anything is tried, and so measured."""
        return self.packing or self.locality or self.defragmentation or self.growth

    def decide(self, state: State) -> Decision:
        """React to who came and went; at the end of a turn rotate; try, measure, keep or revert."""
        notes = state.notes(_GandivaNotes, lambda: _first_notes(state, self.name))
        occupancy, measured = notes.occupancy, notes.measured
        shift = UnitDecision(state, occupancy, self.quantum_s)
        self._note(shift, measured)
        if self.measures:
            self._measure(shift, measured)
        turn = state.now_s >= occupancy.next_turn_s
        if turn and occupancy.waiting:
            rotate(shift, self.quantum_s)
        fill(shift)
        if occupancy.waiting and self.growth:
            moves.shrink(shift)
        if turn and occupancy.waiting and self.packing and state.sharing:
            packing.pack(shift, measured)
        assign_homes(shift)
        if occupancy.waiting:
            notes.idle_since_s = state.now_s
        elif self.measures:
            self._explore(shift, measured)
        if turn:
            occupancy.next_turn_s = self._next_turn_s(state.now_s)
        self._ask_again(shift)
        return shift.decision

    def _note(self, shift: UnitDecision, measured: MeasuredRates) -> None:
        """Take those who finished out of the book, and those who arrived in."""
        state = shift.state
        for job in state.finished:
            shift.occupancy.leave(job)
            measured.forget(job)
        if state.arrived:
            measured.admit(state, state.arrived)
            for job in state.arrived:
                shift.new_unit(job)

    def _measure(self, shift: UnitDecision, measured: MeasuredRates) -> None:
        """Read the rates, and end the trials that are due."""
        measured.observe(shift.state, shift.occupancy)
        for unit in list(_tried(shift.occupancy)):
            assert unit.trial is not None
            if unit.trial.due_s <= shift.state.now_s:
                conclude = packing.conclude if unit.trial.reason is None else moves.conclude
                conclude(shift, measured, unit)

    def _explore(self, shift: UnitDecision, measured: MeasuredRates) -> None:
        """Explore while no job waits: unpack, relocate, defragment and grow, each if enabled."""
        if not any(shift.free):
            return
        if self.packing:
            packing.unpack(shift, measured)
        if self.locality:
            moves.relocate(shift, measured)
        if self.defragmentation:
            moves.defragment(shift, measured)
        if self.growth and shift.state.now_s >= self._grow_s(shift):
            moves.grow(shift, measured)

    def _grow_s(self, shift: UnitDecision) -> float:
        """Time [s] from which GPUs that no job wanted have idled long enough."""
        idle_since_s = shift.state.notes(_GandivaNotes).idle_since_s
        return idle_since_s + self.idle_quanta * self.quantum_s

    def _next_turn_s(self, now_s: float) -> float:
        """The first end of a turn after a time [s]."""
        return (now_s // self.quantum_s + 1) * self.quantum_s

    def _ask_again(self, shift: UnitDecision) -> None:
        """Be woken at the end of the turn if anybody waits, and when a trial is due."""
        occupancy, decision, now_s = shift.occupancy, shift.decision, shift.state.now_s
        if occupancy.waiting:
            occupancy.next_turn_s = max(occupancy.next_turn_s, self._next_turn_s(now_s))
            decision.wake_at(occupancy.next_turn_s)
        due_s = min(
            (unit.trial.due_s for unit in _tried(occupancy) if unit.trial is not None),
            default=math.inf,
        )
        if due_s != math.inf:
            decision.wake_at(max(due_s, self._soon_s(now_s, due_s)))
        if self.growth and not occupancy.waiting and any(shift.free) and moves.can_grow(shift):
            grow_s = self._grow_s(shift)
            if grow_s > now_s:
                decision.wake_at(grow_s)

    def _soon_s(self, now_s: float, due_s: float) -> float:
        """A time after now, for what fell due while it could not be measured [s]."""
        return due_s if due_s > now_s else now_s + self.quantum_s


def _tried(occupancy: ServerOccupancy) -> Iterator[Unit]:
    return (unit for unit in occupancy.running if unit.trial is not None)


POLICIES = (
    Gandiva(),
    Gandiva("gandiva-reactive", packing=False, defragmentation=False, growth=False),
)
