"""What starting and stopping cost in a real run, as the overheads of a simulation.

A lease takes longer than its steps at the measured rate: the command starts, imports and restores,
its first steps warm up, it saves, and is gone some time after it was asked to stop. What leases take
beyond their steps is explained, in non-negative least squares, by three costs: of every start, of
every start that resumes, and of every stop by the policy. The first is the charge of a start, the
other two together, work that was done again included, that of a restart. Leases that shared their
devices, failed, went down with a node or outlived their driver are left out: they have no one rate,
or are exceptions that a simulation does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.instances.instance import Overheads

Event = Mapping[str, Any]


@dataclass(frozen=True)
class LeaseTime:
    """A lease of a job that had its devices for itself.

    Parameters
    ----------
    devices : tuple of str
        UUIDs.
    held_s : float
        From grant to end [s].
    steps : int
        Steps that were committed.
    resumed : bool
        Whether the job had a lease before.
    finished : bool
        Whether it finished the job; else the policy stopped it.
    """

    job: str
    devices: tuple[str, ...]
    held_s: float
    steps: int
    resumed: bool
    finished: bool


@dataclass(frozen=True)
class _Open:
    granted_s: float
    devices: tuple[str, ...]
    from_step: int
    resumed: bool
    stopped: bool = False
    released_s: float = 0.0
    steps: int = 0


def lease_times(events: Iterable[Event]) -> list[LeaseTime]:
    """Leases that finished their job or were stopped by the policy, and were never shared; O(n)."""
    leases: dict[tuple[str, int, int], _Open] = {}
    begun: set[str] = set()
    shared: set[tuple[str, int, int]] = set()
    found = []
    for event in events:
        kind, data = event["kind"], event["data"]
        key = (event["job"], event["epoch"], data.get("copy", 0))
        if kind in ("granted", "partner") and data.get("partner"):
            shared |= {key} | {other for other in leases if other[0] == data["partner"]}
        if kind == "driver-started":
            leases.clear()
        elif kind == "granted":
            devices, name = tuple(data["devices"]), event["job"]
            leases[key] = _Open(event["time_s"], devices, data["from_step"], name in begun)
            begun.add(name)
        elif kind == "stop-asked" and key in leases:
            leases[key] = replace(leases[key], stopped=True)
        elif kind == "released" and key in leases:
            lease = leases.pop(key)
            # A copy is told with what its job has then; what it did itself is another number.
            reached = (
                data["step"] - data["lost_steps"] if "copy" in data else data["checkpoint_step"]
            )
            steps = reached - lease.from_step
            ended = replace(lease, released_s=event["time_s"], steps=steps)
            if key not in shared and data["code"] == 0:
                leases[key] = ended
            elif key not in shared and lease.stopped:
                found.append(_time(key[0], ended, event["time_s"], finished=False))
        elif kind == "finished" and key in leases:
            lease = leases.pop(key)
            end_s = min(data.get("at_s", lease.released_s), lease.released_s)
            found.append(_time(key[0], lease, end_s, finished=True))
    return found


def _time(job: str, lease: _Open, end_s: float, *, finished: bool) -> LeaseTime:
    held_s = end_s - lease.granted_s
    return LeaseTime(job, lease.devices, held_s, lease.steps, lease.resumed, finished)


def measured_overheads(
    leases: Iterable[LeaseTime],
    rates: Mapping[tuple[str, str], float],
    type_of: Mapping[str, str],
) -> Overheads:
    """Charges that these leases show, on the grid of times.

    Parameters
    ----------
    rates : mapping of (job, GPU type) to float
        Iterations per second; leases without a rate are left out.
    type_of : mapping of str to str
        GPU type of each device.

    Returns
    -------
    Overheads
        ``start_s`` and ``restart_s``; none if no lease tells.
    """
    told, extra_s = [], []
    for lease in leases:
        rate = min((rates.get((lease.job, type_of[d]), 0.0) for d in lease.devices), default=0.0)
        if rate > 0:
            told.append((1.0, float(lease.resumed), float(not lease.finished)))
            extra_s.append(max(lease.held_s - lease.steps / rate, 0.0))
    if not told:
        return Overheads()
    (start_s, resume_s, stop_s), _ = nnls(np.array(told), np.array(extra_s))
    return Overheads(start_s=_charge(start_s), restart_s=_charge(resume_s + stop_s))


def _charge(seconds: float) -> float:
    return min(float(to_grid(seconds)), MAX_TIME_S)
