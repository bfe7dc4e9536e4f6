"""Gavel's rounds: an allocation policy turned into an online scheduler.

Source: Narayanan et al., Gavel, OSDI'20, section 5.
Guarantee: none of the rounds; what the allocation's programme proves is about its fractions of time,
which rounds only follow.

The allocation says which fraction of time every job, or pair of jobs, should get on every GPU
type. It is computed again as soon as jobs come or go. At the end of every round those that are
furthest behind get the GPUs; who stays on the same type keeps its GPUs and goes on, as with an
extended lease. GPUs that are free in between go to jobs that wait at once, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.online import Snapshots
from shadowprice.solvers.gavel.programme import with_model
from shadowprice.solvers.gavel.rounds import (
    Combinations,
    SelectedCombinations,
    ServiceLedger,
    select,
)
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.narrow_tables import across
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.registry import allocation as find_allocation


@dataclass(frozen=True)
class Gavel:
    """Shares of GPU types by a policy of its own, handed out in rounds.

    Parameters
    ----------
    allocation : str or AllocationPolicy
        Allocation policy, by name: ``gavel:max_min_fairness:aware=true``, or one of your own.
    round_s : float
        Length of a round [s]; 360 in the paper.
    reset_s : float
        Least time between two allocations [s]; 0 computes one whenever jobs come or go. Gavel's
        code waits 1,920 s, and lets jobs that come in between sit beside free GPUs.
    seed : int
        Of the order in which types are served where the policy does not know that they differ;
        otherwise it is the type on which jobs are fastest first.
    model : str
        A model instead of the allocation policy's own, as ``FILE.py:NAME``, which runs the file.
    """

    allocation: str | AllocationPolicy = "max_min_fairness:aware=true"
    round_s: float = 360.0
    reset_s: float = 0.0
    seed: int = 0
    model: str = ""
    name: str = "gavel"

    def __post_init__(self) -> None:
        self.policy()
        if not 0.0 < self.round_s < math.inf:
            raise InputError(f"gavel: round_s is {self.round_s!r}, expected seconds > 0")

    @property
    def knows(self) -> frozenset[Knowledge]:
        """The work left, where the allocation depends on it."""
        needs = self.policy().needs_steps
        return frozenset({Knowledge.DURATION} if needs else ())

    @property
    def preemptive(self) -> bool:
        """It moves jobs between rounds."""
        return True

    def policy(self) -> AllocationPolicy:
        """The allocation policy, with the model that it solves."""
        chosen = self.allocation
        found = find_allocation(chosen) if isinstance(chosen, str) else chosen
        return with_model(found, self.model) if self.model else found

    def decide(self, state: State) -> Decision:
        """Between rounds only start what waits; at the end of one choose anew."""
        notes = state.notes(_GavelNotes, lambda: _GavelNotes(self, state))
        notes.update(state)
        decision = Decision(state)
        if state.now_s >= notes.round_ends_s:
            notes.round_ends_s = state.now_s + self.round_s
            _choose(state, decision, notes)
        elif state.waiting and decision.free_gpus:
            _fill(state, decision, notes)
        if notes.ledger.jobs.size and not notes.settled(state, decision):
            decision.wake_at(notes.round_ends_s)
        return decision


class _GavelNotes:
    """State that the scheduler keeps from decision to decision."""

    def __init__(self, policy: Gavel, state: State) -> None:
        self.round_s, self.reset_s = policy.round_s, policy.reset_s
        self.policy = policy.policy()
        self.snapshots = Snapshots(steps=self.policy.needs_steps, pairs=self.policy.packed)
        self.workspace = Workspace()
        self.ledger = ServiceLedger.empty(len(state.pools_of_gpus.names))
        self.round_ends_s = 0.0
        self.next_reset_s = 0.0
        self.stale = False
        self.draw = np.random.default_rng(policy.seed)
        self.fastest_first = list(range(len(state.pools_of_gpus.names)))
        self.pool_of_node = [state.allocator.pool_of(node) for node in range(state.nodes)]
        self.running = self._running(state, state.running)

    def update(self, state: State) -> None:
        """Book the time since the last decision, and allocate anew where jobs came or went."""
        self.ledger.accrue(*self.running, state.now_s)
        changed = bool(state.arrived or state.finished)
        self.stale |= changed
        if self.stale and state.now_s >= self.next_reset_s:
            self._allocate(state)
        elif changed:
            self._admit(state)

    def _allocate(self, state: State) -> None:
        jobs, problem = self.snapshots.problem(state)
        found = self.policy.allocate(problem, self.workspace)
        fraction = np.concatenate((found.alone, found.shared))
        best = np.maximum(across(np.maximum, problem.throughput), 1e-300)
        speed = (problem.throughput / best[:, None]).sum(axis=0)
        self.fastest_first = np.argsort(-speed, kind="stable").tolist()
        self.ledger = self.ledger.moved_to(jobs, problem, fraction)
        self.stale = False
        self.next_reset_s = state.now_s + self.reset_s

    def _admit(self, state: State) -> None:
        """Jobs that came since the last allocation have no share yet, but may use what is free."""
        jobs, problem = self.snapshots.problem(state)
        nothing = np.zeros((len(Combinations.of(problem)), len(state.pools_of_gpus.names)))
        after = self.ledger.moved_to(jobs, problem, nothing)
        where = self.ledger.find(after.keys)
        after.fraction[where >= 0] = self.ledger.fraction[where[where >= 0]]
        self.ledger = after

    def type_order(self) -> list[int]:
        """Order in which the queues of the types are served; nobody is served twice."""
        if self.policy.aware:
            return self.fastest_first
        order: list[int] = self.draw.permutation(len(self.fastest_first)).tolist()
        return order

    def settled(self, state: State, decision: Decision) -> bool:
        """True if nothing changes before a job comes or goes: all run, where they always should.

        As a side effect, remembers what runs from now on.
        """
        held = dict(state.running)
        for job in decision.stops:
            del held[job]
        held.update(decision.starts)
        self.running = self._running(state, held, decision)
        keys, types = self.running
        ledger = self.ledger
        if len(keys) < len(ledger.jobs):
            return False
        where = ledger.find(keys)
        if (where < 0).any():
            return False
        return bool((ledger.fraction[where, types] >= 1.0 - 1e-6).all())

    def _running(
        self, state: State, held: dict[int, Pieces], decision: Decision | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys of the combinations that hold these GPUs, after a decision if there was one, and the type each is on."""
        pools = self.pool_of_node
        first = np.array(list(held), dtype=np.int64)
        types = np.array([pools[pieces[0][0]] for pieces in held.values()], dtype=np.int64)
        second = first
        if state.partner_of or (decision is not None and decision.fields):
            of = state.partner_of.get if decision is None else decision.partner_of
            partners = ((job, of(job)) for job in held)
            second = np.array([job if one is None else one for job, one in partners], np.int64)
            first, second, types = (column[first <= second] for column in (first, second, types))
        return first * (1 << 31) + second, types


def _choose(state: State, decision: Decision, notes: _GavelNotes) -> None:
    """Select for the coming round; stop what was not selected, start what does not run yet."""
    ledger = notes.ledger
    chosen = select(
        ledger.combinations,
        ledger.ranking(notes.round_s),
        state.pools_of_gpus.gpus,
        notes.type_order(),
    )
    types, partners = _selected(ledger, chosen)
    pools, shares = notes.pool_of_node, state.partner_of
    for job, pieces in state.running.items():
        stays = job in types and types[job] == pools[pieces[0][0]]
        if stays and (job in partners or job in shares):
            stays = _stays(state, job, types, partners)
        if not stays:
            decision.stop(job)
    stopped, waiting = set(decision.stops), state.waiting
    starts = [job for job in types if job in waiting or job in stopped]
    # Ties as they were selected.
    starts.sort(key=state.gang.__getitem__, reverse=True)
    _start(state, decision, starts, types, partners)
    if decision.free_gpus and (len(decision.starts) < len(starts) or waiting):
        for job in [*decision.stops, *waiting]:
            if job not in decision.starts:
                decision.start(job)


def _stays(state: State, job: int, types: dict[int, int], partners: dict[int, int]) -> bool:
    """True if a running job that is selected for its type keeps its GPUs: no other must have them.

    Of two that shared and go on apart on the type the first stays; so does the first of two that
    ran apart and are to share.
    """
    held, partner = types[job], partners.get(job)
    before = state.partner_of.get(job)
    if before is not None and before != partner and types.get(before) == held:
        return job < before
    if partner is None or before == partner or partner not in state.running:
        return True
    same = state.allocator.pool_of(state.running[partner][0][0]) == held
    return job < partner if same else True


def _selected(
    ledger: ServiceLedger, chosen: SelectedCombinations
) -> tuple[dict[int, int], dict[int, int]]:
    """Type of every job selected, and the partner of those that share."""
    first = ledger.jobs[ledger.combinations.first[chosen.row]]
    second = ledger.jobs[ledger.combinations.second[chosen.row]]
    both = np.stack((first, second), axis=1)
    types = dict(zip(both.ravel().tolist(), np.repeat(chosen.gpu_type, 2).tolist(), strict=True))
    share = first != second
    one, other = first[share].tolist(), second[share].tolist()
    return types, {**dict(zip(one, other, strict=True)), **dict(zip(other, one, strict=True))}


def _start(
    state: State,
    decision: Decision,
    jobs: Iterable[int],
    types: dict[int, int],
    partners: dict[int, int],
) -> None:
    """Start jobs on their types, with their partners if these hold GPUs already."""
    for job in jobs:
        partner = partners.get(job)
        if partner is not None:
            runs_on = partner in state.running and partner not in decision.stops
            if (partner in decision.starts or runs_on) and decision.join(job, partner):
                continue
        decision.start_on(job, types[job])


def _fill(state: State, decision: Decision, notes: _GavelNotes) -> None:
    """Start jobs that wait on GPUs that are free, those furthest behind first."""
    ledger = notes.ledger
    waits = np.zeros(len(ledger.jobs), dtype=bool)
    waits[np.isin(ledger.jobs, np.fromiter(state.waiting, dtype=np.int64))] = True
    rows = ledger.combinations
    able = waits[rows.first] & waits[rows.second]
    free = np.array(
        [state.allocator.free_in(gpu_type) for gpu_type in range(len(state.pools_of_gpus.names))],
        dtype=np.int64,
    )
    idle = replace(rows, runnable=rows.runnable & able[:, None])
    chosen = select(idle, ledger.ranking(notes.round_s), free, notes.type_order())
    types, partners = _selected(ledger, chosen)
    _start(state, decision, types, types, partners)


POLICIES = (Gavel(),)
