"""Bars and curves of a real run: what each device did, how many jobs waited, how many GPUs worked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shadowprice.analysis.real_runs.timeline import Hold, Timeline

STARTING = "starting"
RUNNING = "running"
UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True)
class Piece:
    """A bar: one device, held by one lease, from ``start_s`` to ``end_s``.

    ``low`` and ``high`` are its place in the height of the device, 0 to 1; a job that shares the
    device has a part of it. In phase ``starting`` the device is held, but no step is done
    yet; in ``unconfirmed`` the lease was given up, but nobody knows that its processes are gone.
    """

    device: str
    hold: Hold
    phase: str
    start_s: float
    end_s: float
    low: float = 0.0
    high: float = 1.0


def pieces(timeline: Timeline, until_s: float) -> list[Piece]:
    """Bars of all leases; what is still held is drawn until ``until_s`` [s].

    O(L log L) for L leases times devices, if a device is never shared by many.
    """
    by_device: dict[str, list[Piece]] = {}
    for hold in timeline.holds.values():
        for device in hold.devices:
            by_device.setdefault(device, []).extend(_whole(hold, device, until_s))
    return [piece for device in sorted(by_device) for piece in _shared(by_device[device])]


def _whole(hold: Hold, device: str, until_s: float) -> list[Piece]:
    """The bars of a lease on a device, as if it had it to itself."""
    end_s = max(hold.freed_s.get(device, until_s), hold.granted_s)
    over_s = end_s if hold.failed_s is None else min(max(hold.failed_s, hold.granted_s), end_s)
    ready_s = over_s if hold.running_s is None else min(hold.running_s, over_s)
    bars = [
        Piece(device, hold, STARTING, hold.granted_s, ready_s),
        Piece(device, hold, RUNNING, ready_s, over_s),
        Piece(device, hold, UNCONFIRMED, over_s, end_s),
    ]
    return [bar for bar in bars if bar.end_s > bar.start_s]


def _shared(bars: Sequence[Piece]) -> list[Piece]:
    """Cut the bars of a device where others begin and end, and give each its part of the height."""
    cuts = sorted({time_s for bar in bars for time_s in (bar.start_s, bar.end_s)})
    waiting = sorted(bars, key=lambda bar: (bar.start_s, bar.hold.granted_s), reverse=True)
    active: list[Piece] = []
    done: list[Piece] = []
    last: dict[tuple[str, int, str], int] = {}
    for start_s, end_s in pairwise(cuts):
        active = [bar for bar in active if bar.end_s > start_s]
        while waiting and waiting[-1].start_s <= start_s:
            active.append(waiting.pop())
        active.sort(key=lambda bar: (bar.hold.granted_s, bar.hold.job))
        for rank, bar in enumerate(active):
            low, high = rank / len(active), (rank + 1) / len(active)
            key = (bar.hold.job, bar.hold.epoch, bar.phase)
            before = done[last[key]] if key in last else None
            if before and (before.end_s, before.low, before.high) == (start_s, low, high):
                done[last[key]] = replace(before, end_s=end_s)
            else:
                last[key] = len(done)
                done.append(replace(bar, start_s=start_s, end_s=end_s, low=low, high=high))
    return done


@dataclass(frozen=True)
class Curve:
    """A step function: ``values[i]`` from ``times_s[i]`` on."""

    times_s: list[float]
    values: list[int]


def devices_held(timeline: Timeline, until_s: float) -> Curve:
    """Devices that are held by at least one job; O(L log L)."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for hold in timeline.holds.values():
        for device in hold.devices:
            spans.setdefault(device, []).append((hold.granted_s, hold.freed_s.get(device, until_s)))
    return _count((span for held in spans.values() for span in union(held)), until_s)


def jobs_waiting(timeline: Timeline, until_s: float) -> Curve:
    """Jobs that have come, are not over and hold nothing; backing off counts as waiting."""
    return _count(
        (span for spans in waiting_spans(timeline, until_s).values() for span in spans), until_s
    )


def waiting_spans(timeline: Timeline, until_s: float) -> dict[str, list[tuple[float, float]]]:
    """For each job that has come, when it waited [s]."""
    held: dict[str, list[tuple[float, float]]] = {}
    for hold in timeline.holds.values():
        ends_s = [end_s for end_s in (hold.end_s, hold.failed_s) if end_s is not None]
        held.setdefault(hold.job, []).append((hold.granted_s, min(ends_s, default=until_s)))
    return {
        job: _outside(union(held.get(job, [])), arrived_s, timeline.over_s.get(job), until_s)
        for job, arrived_s in timeline.arrived_s.items()
    }


def _outside(
    held: Sequence[tuple[float, float]], arrived_s: float, over_s: float | None, until_s: float
) -> list[tuple[float, float]]:
    """Gaps between ``held`` from arrival until the job was over."""
    edges = [arrived_s, *(edge for span in held for edge in span)]
    edges.append(until_s if over_s is None else over_s)
    gaps = list(zip(edges[::2], edges[1::2], strict=True))
    return [(start_s, end_s) for start_s, end_s in gaps if end_s - start_s > 0]


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same time without overlaps, in order."""
    merged: list[tuple[float, float]] = []
    for start_s, end_s in sorted(spans):
        if merged and start_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        elif end_s > start_s:
            merged.append((start_s, end_s))
    return merged


def _count(spans: Iterable[tuple[float, float]], until_s: float) -> Curve:
    changes: dict[float, int] = {0.0: 0}
    for start_s, end_s in spans:
        changes[start_s] = changes.get(start_s, 0) + 1
        changes[end_s] = changes.get(end_s, 0) - 1
    changes.setdefault(until_s, 0)
    times_s, values, now = sorted(changes), [], 0
    for time_s in times_s:
        now += changes[time_s]
        values.append(now)
    return Curve(times_s, values)
