"""Time of a real run that a simulation of what was measured in it knows nothing of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from shadowprice.analysis.wording import counted


def unsimulated(events: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Causes of delay in a run, of its hosts, drivers and faults, that are not simulated; O(n).

    Starts, restores and saves of leases are, at their measured cost; faults are not.

    Parameters
    ----------
    events : iterable of mapping
        The run's log.

    Returns
    -------
    tuple of str
        A remark a cause, empty for a run that had none.
    """
    log = list(events)
    drivers = [k for k, event in enumerate(log) if event["kind"] == "driver-started"]
    ready_s = [float(log[k]["data"].get("ready_s", 0.0)) for k in drivers]
    away_s = [log[k]["time_s"] - log[k - 1]["time_s"] for k in drivers[1:]]
    failed = sum(event["kind"] == "failed" for event in log)
    lost = sum(event["data"].get("lost_steps", 0) for event in log if event["kind"] == "released")
    nodes = sum(event["kind"] == "node-lost" for event in log)
    words = []
    if ready_s and ready_s[0] >= 0.05:
        words.append(f"hosts were found in {ready_s[0]:.1f} s, and the run begins after that")
    if away_s:
        words.append(
            f"{counted(len(away_s), 'driver')} took over, and nothing was decided for "
            f"{math.fsum(away_s):.1f} s"
        )
    gaps_s, full_s = (
        [float(event["data"][key]) for event in log if key in event["data"]]
        for key in ("gap_s", "disk_full_s")
    )
    if gaps_s:
        words.append(
            f"the driver was stopped, or its machine suspended: {counted(len(gaps_s), 'gap')} of "
            f"{math.fsum(gaps_s):.1f} s together"
        )
    if full_s:
        words.append(f"the disk was full for {math.fsum(full_s):.1f} s, and nothing was decided")
    if failed or lost:
        words.append(
            f"{counted(failed, 'lease')} failed, and {counted(lost, 'step')} were done again"
        )
    taken_up = sum(event["kind"] == "retried" for event in log)
    if taken_up:
        words.append(f"{counted(taken_up, 'job')} given up and taken up again by a person")
    if nodes:
        words.append(f"{counted(nodes, 'node')} did not answer for some time")
    return tuple(f"not simulated: {cause}" for cause in words)
