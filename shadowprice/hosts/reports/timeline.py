"""Timeline of a real run from its events: who held which device when, failures, nodes gone.

The events are those of :class:`shadowprice.hosts.live.ledger.RunLedger`; they are fed one after
another, so that a view of a run that goes on reads each only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

Row = Mapping[str, Any]
Key = tuple[str, int]

MAX_BARS = 5_000
"""Bars drawn; of a longer run the latest."""
MAX_PANELS = 24
"""Jobs whose throughput is drawn: those measured most often."""

INCIDENTS = frozenset(
    {"failed", "gave-up", "cancelled", "node-lost", "node-back", "quarantined", "unquarantined"}
)
"""Kinds of events that a person wants to see marked."""


@dataclass(frozen=True)
class Hold:
    """One lease: a job that holds devices, from the grant until they are confirmed free.

    Parameters
    ----------
    devices : tuple of str
        Their names (uuid).
    granted_s, running_s : float
        When the devices were given out and when the command ran [s]; ``running_s`` is None if it
        did not run yet, or never did.
    freed_s : mapping of str to float
        When each device was confirmed free [s]; a device that is not in it is still held.
    partner : str
        The job it was packed with when it was granted, or "".
    from_step, step : int
        Steps done when it began and when it ended; ``step`` is None while it is held.
    lost_steps : int
        Steps after the last checkpoint that have to be done again.
    failed_s : float or None
        When it was given up [s]: its job failed, or its node was lost. Devices that were not free
        by then were held by nobody's work.
    reason, detail : str
        Why it ended, and what it said last.
    """

    job: str
    epoch: int
    devices: tuple[str, ...]
    granted_s: float
    running_s: float | None = None
    freed_s: Mapping[str, float] = field(default_factory=dict)
    failed_s: float | None = None
    partner: str = ""
    from_step: int = 0
    step: int | None = None
    lost_steps: int = 0
    code: int | None = None
    reason: str = ""
    forced: bool = False
    detail: str = ""
    stop_why: str = ""

    @property
    def held(self) -> tuple[str, ...]:
        """Devices that are not free yet."""
        return tuple(uuid for uuid in self.devices if uuid not in self.freed_s)

    @property
    def end_s(self) -> float | None:
        """Time at which the last device became free [s], None while one is held."""
        return None if self.held else max(self.freed_s.values(), default=self.granted_s)

    def how_it_ended(self) -> str:
        """Ending of the lease, in a few words."""
        if self.end_s is None:
            return "still held"
        words = ending_words(self.reason, self.code, self.forced)
        return ", ".join(words) + (f" ({self.stop_why})" if self.stop_why else "")


def ending_words(reason: object, code: object, forced: object) -> list[str]:
    """Reason, exit code and force of an ending, where there is one, in words."""
    coded, killed = f"exit code {code}" if code else "", "killed" if forced else ""
    return [word for word in (str(reason or "ended"), coded, killed) if word]


@dataclass(frozen=True)
class Incident:
    """Something that went wrong, or was put right again."""

    time_s: float
    kind: str
    job: str
    epoch: int
    node: str
    device: str
    text: str


@dataclass
class Timeline:
    """Leases and incidents so far, in the order of their events.

    Attributes
    ----------
    holds : dict
        By job and epoch.
    incidents : list of Incident
        In order.
    lost_nodes, quarantined : dict
        Nodes that do not answer and devices that are quarantined now, with when that began [s].
    outages : list of (str, float, float)
        Nodes that did not answer and do again, from when to when [s].
    arrived_s, over_s : dict of str to float
        When jobs came, and when they finished, gave up or were cancelled [s].
    last_s : float
        Time of the last event [s].
    pid : int or None
        Process of the driver that was started last, None after it ended in order.
    """

    holds: dict[Key, Hold] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    lost_nodes: dict[str, float] = field(default_factory=dict)
    quarantined: dict[str, float] = field(default_factory=dict)
    arrived_s: dict[str, float] = field(default_factory=dict)
    over_s: dict[str, float] = field(default_factory=dict)
    last_s: float = 0.0
    pid: int | None = None
    outages: list[tuple[str, float, float]] = field(default_factory=list)
    _open: dict[Key, Hold] = field(default_factory=dict)
    _causes: dict[str, set[Key]] = field(default_factory=dict)

    def feed(self, events: Iterable[Row]) -> None:
        """Take in events, in order; O(1) each."""
        for event in events:
            kind, data = str(event["kind"]), event["data"]
            time_s = float(event["time_s"])
            self.last_s = max(self.last_s, time_s)
            if kind in ("granted", "running", "stop-asked", "released"):
                self._lease(kind, (str(event["job"]), int(event["epoch"])), time_s, data)
            elif kind == "arrived":
                # A driver that takes over tells again of jobs that nothing had been decided of.
                self.arrived_s.setdefault(event["job"], time_s)
            elif kind in ("driver-started", "driver-ended"):
                self.pid = data.get("pid") if kind == "driver-started" else None
            if kind in ("finished", "gave-up", "cancelled"):
                # A job that finished by itself did so before a driver saw it.
                self.over_s[event["job"]] = float(data.get("at_s", time_s))
            if kind == "retried":
                self.over_s.pop(event["job"], None)
            if kind in ("failed", "quarantined"):
                self._failed((str(event["job"]), int(event["epoch"])), time_s)
            if kind in INCIDENTS:
                self._incident(kind, event, time_s, data)

    def current(self) -> list[Hold]:
        """Leases that hold a device now, in the order of their grants."""
        return list(self._open.values())

    def holders(self) -> dict[str, list[Hold]]:
        """Holders of each device now; two where jobs share it."""
        found: dict[str, list[Hold]] = {}
        for hold in self.current():
            for uuid in hold.held:
                found.setdefault(uuid, []).append(hold)
        return found

    def _lease(self, kind: str, key: Key, time_s: float, data: Row) -> None:
        if kind == "granted":
            self._grant(key, time_s, data)
            return
        hold = self.holds.get(key)
        if hold is None:
            return
        if kind == "running":
            after_s = data.get("after_s")
            running_s = time_s if after_s is None else hold.granted_s + float(after_s)
            self._keep(key, replace(hold, running_s=running_s))
        elif kind == "stop-asked":
            self._keep(key, replace(hold, stop_why=str(data.get("why", ""))))
        else:
            gone = data.get("devices", hold.devices)
            ended = replace(
                hold,
                freed_s={**hold.freed_s, **dict.fromkeys(gone, time_s)},
                step=data.get("step"),
                lost_steps=int(data.get("lost_steps") or 0),
                code=data.get("code"),
                reason=str(data.get("reason", "")),
                forced=hold.forced or bool(data.get("forced")),
                detail=str(data.get("detail", "")),
            )
            self._keep(key, ended)

    def _grant(self, key: Key, time_s: float, data: Row) -> None:
        devices = tuple(map(str, data["devices"]))
        before = self.holds.get(key)
        if before is not None:
            more = tuple(uuid for uuid in devices if uuid not in before.devices)
            self._keep(key, replace(before, devices=before.devices + more))
            return
        new = Hold(
            *key,
            devices,
            time_s,
            partner=str(data.get("partner") or ""),
            from_step=int(data.get("from_step") or 0),
        )
        self._keep(key, new)

    def _keep(self, key: Key, hold: Hold) -> None:
        self.holds[key] = hold
        if hold.held:
            self._open[key] = hold
        else:
            self._open.pop(key, None)

    def _failed(self, key: Key, time_s: float) -> None:
        if key in self.holds:
            self._keep(key, replace(self.holds[key], failed_s=time_s))

    def _incident(self, kind: str, event: Row, time_s: float, data: Row) -> None:
        node, device = str(data.get("node", "")), str(data.get("device", ""))
        text = str(data.get("why") or data.get("detail") or "")
        self.incidents.append(
            Incident(time_s, kind, str(event["job"]), int(event["epoch"]), node, device, text)
        )
        if kind == "node-lost":
            self.lost_nodes.setdefault(node, time_s)
        elif kind == "node-back" and node in self.lost_nodes:
            self.outages.append((node, self.lost_nodes.pop(node), time_s))
        elif kind == "quarantined":
            self.quarantined.setdefault(device, time_s)
            self._causes.setdefault(device, set()).add((event["job"], event["epoch"]))
        elif kind == "unquarantined":
            # Drained as well, say: it is free when there is no cause any more.
            causes = self._causes.setdefault(device, set())
            causes.discard((event["job"], event["epoch"]))
            if not causes:
                self.quarantined.pop(device, None)


# Bars and curves of a real run: what each device did, how many jobs waited, how many GPUs worked.


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
    changes = Counter({0.0: 0, until_s: 0})
    for start_s, end_s in spans:
        changes[start_s] += 1
        changes[end_s] -= 1
    times_s = sorted(changes)
    return Curve(times_s, list(accumulate(changes[time_s] for time_s in times_s)))
