"""Commands that say nothing: hung if they once reported steps, left alone if they never did."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shadowprice.hosts.absent import AbsentDevices
from shadowprice.hosts.live.job_file import Job
from shadowprice.hosts.live.lease import HeldLease, LeaseGrant, LeaseProgress
from shadowprice.hosts.live.lease_monitor import LeaseMonitor
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.protocol import (
    Device,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)


class SilentHost:
    """Runs leases, which report what they are told to."""

    def __init__(self) -> None:
        self.report: Mapping[str, Any] = {}
        self.stopped: list[LeaseKey] = []

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        return {key: RankStatus(Phase.RUNNING, self.report) for key in keys}

    def lost_nodes(self) -> frozenset[str]:
        return frozenset()

    def renew(self, keys: Collection[LeaseKey]) -> None:
        pass

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        self.stopped += keys


@pytest.mark.parametrize(
    ("reports", "report", "damaged_s", "hangs"),
    [
        (False, {}, 99.0, False),
        (False, {"step": 0}, 99.0, True),
        (True, {}, 99.0, True),
        (True, {"step": 40}, 99.0, True),
        # Its last report is damaged, and one that is stopped writes no other.
        (False, {"step": 0}, 5.0, True),
        (False, {"step": 40}, 5.0, True),
    ],
)
def test_who_reported_steps_and_makes_none_has_failed(
    reports: bool, report: Mapping[str, Any], damaged_s: float, hangs: bool
) -> None:
    now_s = 0.0
    host, clock = SilentHost(), SimpleNamespace(now_s=lambda: now_s)
    key = LeaseKey("job", 1)
    order = LaunchSpec(
        key, (Device("n", 0, "n/0"),), False, ("x",), {}, Path("/l"), Path("/"), 9.0, 9.0
    )
    job = Job("job", ("x",), {}, 1, 100, Path("/"))
    grant = LeaseGrant(0, job, 1, ((0, 1),), order.devices, (order,), 0, 0.0)
    lease = HeldLease(grant, LeaseProgress(1.0, reports=reports))
    host.report = report
    limits = Limits(hang_s=10.0)
    absent = AbsentDevices(host, (), ())  # type: ignore[arg-type]
    monitor = LeaseMonitor(host, clock, limits, lambda: None, absent)  # type: ignore[arg-type]
    for now_s in (1.0, 5.0, 10.9):
        host.report = {} if now_s >= damaged_s else report
        monitor.look([lease])
        assert host.stopped == []
    now_s = 11.1
    monitor.look([lease])
    assert host.stopped == ([key] if hangs else [])
    assert lease.end.stop_why == ("failed: made no step for 10 s" if hangs else "")
