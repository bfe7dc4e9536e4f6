"""Packing: two jobs on the same GPUs, tried and kept only if they make more of them than turns.

Gandiva (OSDI'18), sec. 3.1 and 3.2.2. In overload, jobs that wait are put on the GPUs of running
ones, best promise first (where gains are known, half of the largest possible total, see GAN-match);
after a quantum the rates are compared with what both made alone there. A pair whose shares of their own rates sum to
more than 1 beats time slicing, which gives them shares that sum to 1. Only memory is known before
(``can_share``); a job is tried after it had a turn alone, so that there is something to compare with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container

from shadowprice.solvers.gandiva.measured_rates import Kind, MeasuredRates, Place, gains, place_of
from shadowprice.solvers.gandiva.time_slicing import free_home, spread_home
from shadowprice.solvers.gandiva.units import Unit, UnitDecision

Class = tuple[Place, float, Kind]
"""Units that are alike for packing: place, priority and kind."""


def pack(shift: UnitDecision, measured: MeasuredRates) -> None:
    """Try waiting jobs on the GPUs of running ones of equal priority; O(kinds^2 log kinds + jobs)."""
    hosts, guests = _hosts(shift, measured), _guests(shift, measured)
    options = sorted(
        (-measured.promise(one[0], one[2], other[2]), one, other)
        for one in guests
        for other in hosts
        if one[:2] == other[:2]
        and one[2][1] == other[2][1]
        and not measured.hurts(one[0], one[2], other[2])
    )
    for _, one, other in options:
        if guests[one] and hosts[other]:
            _match(shift, guests[one], hosts[other], measured.refused)


def conclude(shift: UnitDecision, measured: MeasuredRates, pair: Unit) -> None:
    """Measure a packing that was tried: keep it, or take the second job off again."""
    assert pair.trial is not None
    back, pair.trial = pair.trial.back, None
    gain = measured.gain(shift.occupancy, pair)
    measured.learn(shift.occupancy, pair)
    if not gains(gain):
        guest = shift.part(pair)
        shift.occupancy.assign_home(guest, back)
        measured.refused.add(_both(guest, pair))


def unpack(shift: UnitDecision, measured: MeasuredRates) -> None:
    """Give jobs of pairs GPUs of their own where there are some, least gain first; O(pairs nodes).

    Of the same kind as those they share, so that it is known to be faster.
    """
    occupancy = shift.occupancy
    pairs = [u for u in occupancy.running if not u.alone and u.trial is None and shift.untouched(u)]
    if not pairs or not any(shift.free):
        return
    for pair in sorted(pairs, key=lambda unit: (measured.gain(occupancy, unit), unit.jobs[0])):
        find = free_home if len(pair.home) == 1 else spread_home
        home = find(occupancy, shift.free_for(pair), pair.gang, shift.pools(pair))
        slowed = measured.gain(occupancy, pair) < 2.0 - 1e-6
        if slowed and home is not None and len(home) == len(pair.home):
            shift.start(shift.part(pair), home)


def _hosts(shift: UnitDecision, measured: MeasuredRates) -> dict[Class, list[Unit]]:
    """Running jobs with GPUs to themselves, on no more servers than needed."""
    occupancy, largest = shift.occupancy, max(shift.occupancy.size)
    found: dict[Class, list[Unit]] = {}
    for unit in occupancy.running:
        compact = len(unit.home) == 1 or unit.gang > largest
        if unit.alone and unit.trial is None and compact and unit.width == unit.gang:
            place = place_of(occupancy, unit)
            if place in measured.alone.get(unit.jobs[0], {}):
                key = (place, unit.weight, measured.kind(unit.jobs[0]))
                found.setdefault(key, []).append(unit)
    return found


def _guests(shift: UnitDecision, measured: MeasuredRates) -> dict[Class, deque[Unit]]:
    """Waiting jobs by where they have run alone, longest waiting first."""
    found: dict[Class, deque[Unit]] = {}
    waiting = sorted(shift.occupancy.waiting, key=lambda unit: (unit.since_s, unit.jobs[0]))
    for unit in waiting:
        if unit.alone:
            job = unit.jobs[0]
            for place in measured.alone.get(job, {}):
                key = (place, unit.weight, measured.kind(job))
                found.setdefault(key, deque()).append(unit)
    return found


def _match(
    shift: UnitDecision, guests: deque[Unit], hosts: list[Unit], refused: Container[tuple[int, int]]
) -> None:
    """Join jobs of two classes until one has no more; those that refuse each other are passed."""
    for host in hosts:
        for _ in range(len(guests)):
            guest = guests.popleft()
            if guest not in shift.occupancy.waiting:
                continue
            refuse = _both(guest, host) in refused
            if not refuse and shift.join(guest, host):
                break
            guests.append(guest)
            if not refuse:
                break
    hosts[:] = [host for host in hosts if host.alone]


def _both(one: Unit, other: Unit) -> tuple[int, int]:
    """The first jobs of two units, the smaller row first."""
    return min(one.jobs[0], other.jobs[0]), max(one.jobs[0], other.jobs[0])
