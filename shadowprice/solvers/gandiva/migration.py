"""Moves of running jobs that are tried when nobody waits: closer together, out of the way, wider.

Gandiva (OSDI'18), sec. 3.1 and 3.2.2. Each is made at once, measured after a quantum, and taken back
if the rate says so and the GPUs from before are still free; what was tried in vain is not tried
again. Locality and defragmentation leave pairs and jobs under trial alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from shadowprice.solvers.gandiva.measured_rates import MeasuredRates
from shadowprice.solvers.gandiva.time_slicing import fill
from shadowprice.solvers.gandiva.units import Trial, Unit, UnitDecision, fits
from shadowprice.solvers.placement.protocol import Pieces, in_turn


class Move(IntEnum):
    """Kinds of moves, in what a unit has refused."""

    LOCALITY = 1
    DEFRAGMENT = 2
    GROW = 3


NEGLIGIBLE_LOSS = 0.02
"""Loss of its rate at which a job that was moved for the sake of others stays."""

LEAST_GROWTH = 1.02
"""A job that got more GPUs keeps them if it is so many times as fast."""

FRAGMENTED = 0.75
"""A server with a job is emptied if this share of its GPUs is free (the paper's 3 of 4)."""


def conclude(shift: UnitDecision, measured: MeasuredRates, unit: Unit) -> None:
    """Measure a move that was tried: keep it, or take it back where that is possible."""
    trial, unit.trial = unit.trial, None
    assert trial is not None
    assert trial.reason is not None
    if measured.rate[unit.jobs[0]] >= trial.least * trial.before * (1 - 1e-9):
        return
    unit.refused.add(trial.reason)
    free = list(shift.free)
    for node, gpus in unit.home:
        free[node] += gpus
    if fits(free, trial.back) and shift.has_room(unit, trial.back):
        shift.move(unit, trial.back)


def relocate(shift: UnitDecision, measured: MeasuredRates) -> None:
    """Try spread jobs on fewer servers; O(running + spread x nodes)."""
    largest = max(shift.occupancy.size)
    for unit in _movable(shift):
        if len(unit.home) < 2 or (unit.gang > largest and len(unit.home) == 2):
            continue
        for pool in sorted(
            shift.pools(unit), key=lambda p: p != shift.occupancy.pool[unit.home[0][0]]
        ):
            home = _closer(shift, unit, pool)
            if home is None or not shift.has_room(unit, home):
                continue
            if (Move.LOCALITY, pool) not in unit.refused:
                _attempt(shift, measured, unit, home, (Move.LOCALITY, pool), 1.0)
                break


def defragment(shift: UnitDecision, measured: MeasuredRates) -> None:
    """Try the jobs of the emptiest server that has any on fuller servers; O(nodes x moves + running)."""
    occupancy, size = shift.occupancy, shift.occupancy.size
    units: dict[int, list[Unit]] = {}
    for unit in _movable(shift):
        if len(unit.home) == 1 and unit.width == unit.gang:
            units.setdefault(unit.home[0][0], []).append(unit)
    sparse = [
        node
        for node in units
        if occupancy.load[node]
        and shift.free[node] >= FRAGMENTED * size[node]
        and shift.free[node] < size[node]
    ]
    for source in sorted(sparse, key=lambda node: (-shift.free[node], node)):
        for unit in units[source]:
            fuller = [
                node
                for node in occupancy.nodes_of[occupancy.pool[source]]
                if unit.gang <= shift.free[node] < shift.free[source]
                and shift.free[node] < size[node]
                and (Move.DEFRAGMENT, node) not in unit.refused
                and shift.has_room(unit, ((node, unit.gang),))
            ]
            if fuller:
                target = min(fuller, key=lambda node: (shift.free[node], node))
                reason = (Move.DEFRAGMENT, target)
                home = ((target, unit.gang),)
                _attempt(shift, measured, unit, home, reason, 1.0 - NEGLIGIBLE_LOSS)


def grow(shift: UnitDecision, measured: MeasuredRates) -> None:
    """Try jobs that opted in on all free GPUs of their server, up to their widest; O(running)."""
    if not shift.state.environment.elastic:
        return
    for unit in _movable(shift):
        widest = shift.state.widest(unit.jobs[0])
        if len(unit.home) > 1 or unit.width >= widest:
            continue
        node, gpus = unit.home[0]
        wider = min(widest, gpus + shift.free[node])
        refused = (Move.GROW, wider) in unit.refused
        if wider > gpus and not refused and shift.has_room(unit, ((node, wider),)):
            _attempt(shift, measured, unit, ((node, wider),), (Move.GROW, wider), LEAST_GROWTH)


def can_grow(shift: UnitDecision) -> bool:
    """True if any job has opted in for more GPUs than it holds; O(running)."""
    if not shift.state.environment.elastic:
        return False
    widest = shift.state.widest
    return any(unit.alone and unit.width < widest(unit.jobs[0]) for unit in shift.occupancy.running)


def shrink(shift: UnitDecision) -> None:
    """Take GPUs back from jobs that grew, as long as others wait; O(running + waiting log waiting)."""
    occupancy = shift.occupancy
    for unit in [unit for unit in occupancy.running if unit.width > unit.gang]:
        if not occupancy.waiting:
            return
        if shift.untouched(unit):
            unit.trial = None
            shift.move(unit, ((unit.home[0][0], unit.gang),))
            fill(shift)


def _movable(shift: UnitDecision) -> Iterator[Unit]:
    for unit in list(shift.occupancy.running):
        if unit.alone and unit.trial is None and shift.untouched(unit):
            yield unit


def _closer(shift: UnitDecision, unit: Unit, pool: int) -> Pieces | None:
    """Free GPUs for a spread unit on fewer servers of a pool; None if there are none."""
    nodes = sorted(shift.occupancy.nodes_of[pool], key=lambda node: (-shift.free[node], node))
    enough = [node for node in nodes if shift.free[node] >= unit.gang]
    if enough:
        return ((min(enough, key=lambda node: (shift.free[node], node)), unit.gang),)
    pieces = in_turn(nodes[: len(unit.home) - 1], shift.free, unit.gang)
    return pieces if sum(gpus for _, gpus in pieces) == unit.gang else None


def _attempt(
    shift: UnitDecision,
    measured: MeasuredRates,
    unit: Unit,
    home: Pieces,
    reason: tuple[int, int],
    least: float,
) -> None:
    back = unit.home
    shift.move(unit, home)
    unit.trial = Trial(shift.due_s, measured.rate[unit.jobs[0]], least, back, reason)
