"""A state directory as seen from outside: what ``status``, the live view and the report show.

Everything is read from the ledger, so that all three say the same, whether the driver runs or not.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.state_directory import LEDGER, LOCK, passed_s, read_notice
from shadowprice.hosts.protocol import Device, DiscoveredNode
from shadowprice.hosts.reports.timeline import Row, Timeline

_LAST_EVENTS = 50
OVER = frozenset({"finished", "failed", "cancelled"})
"""States of jobs that will not run again."""


class RunReader:
    """An open run; :meth:`refresh` reads what is new.

    Parameters
    ----------
    directory : Path
        The state directory of ``shadowprice execute``.

    Attributes
    ----------
    facts : dict
        What the run is: ``run_id``, ``policy``, ``hosts``, ``round_s``, ``began_unix``, ``ended`` ...
    nodes : tuple of DiscoveredNode
        In the order of discovery.
    jobs : list of row
        The table of jobs, in the order of the workload.
    timeline : Timeline
        What the events say.
    last_events : deque of row
        The latest events, oldest first.
    driver : str
        ``running``, ``ended`` (every job is over) or ``stopped``.
    waits : str
        What a driver that runs waits for, space on its disk, and since when; empty if for nothing.

    Raises
    ------
    InputError
        If the directory is not that of a run, or cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ledger = RunLedger.open(directory / LEDGER, readonly=True)
        self._seen = 0
        self.facts: dict[str, Any] = {}
        self.nodes: tuple[DiscoveredNode, ...] = ()
        self.jobs: list[Row] = []
        self.timeline = Timeline()
        self.last_events: deque[Row] = deque(maxlen=_LAST_EVENTS)
        self.driver, self.waits = "stopped", ""
        self._labels: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> list[Row]:
        """Read jobs, facts and new events; returns the new events.

        Raises
        ------
        InputError
            If the ledger cannot be read any more.
        """
        try:
            self.facts = {key: self._ledger.value(key) for key in _FACTS}
            self.nodes = self._ledger.nodes()
            self.jobs = list(self._ledger.jobs())
            new: list[Row] = list(self._ledger.events(self._seen))
        except (sqlite3.Error, json.JSONDecodeError) as error:
            raise InputError(f"{self._ledger.path}: cannot be read: {error}") from error
        self._labels = {device.uuid: f"{device.node}:{device.index}" for device in self.devices}
        if new:
            self._seen = int(new[-1]["seq"])
        self.timeline.feed(new)
        self.last_events.extend(new)
        self.driver = self._driver()
        self.waits = read_notice(self.directory / LOCK) if self.driver == "running" else ""
        return new

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def __enter__(self) -> RunReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self) -> list[Row]:
        """All events, oldest first."""
        return list(self._ledger.events())

    def samples(self) -> list[Row]:
        """All measurements, in order."""
        return list(self._ledger.samples())

    def date(self, time_s: float) -> datetime | None:
        """Date of a time of the run, in the zone of this machine; None before it began.

        A machine that was suspended meanwhile makes it early.
        """
        began = self.facts["began_unix"]
        return None if began is None else datetime.fromtimestamp(float(began) + time_s).astimezone()

    @property
    def devices(self) -> tuple[Device, ...]:
        """Devices of all nodes, node by node."""
        return tuple(device for node in self.nodes for device in node.devices)

    @property
    def now_s(self) -> float:
        """Time of the run [s]: the clock's while a driver runs, of the last event otherwise."""
        if self.facts["began_unix"] is None or self.driver != "running":
            return self.timeline.last_s
        return passed_s(self.facts, self.timeline.last_s)

    def device_label(self, uuid: str) -> str:
        """``NODE:INDEX`` of a device, its own name if the run does not know it."""
        return self._labels.get(uuid, uuid)

    def _driver(self) -> str:
        if self.facts["ended"]:
            return "ended"
        return "running" if self._driver_lives() else "stopped"

    def _driver_lives(self) -> bool:
        """True if the driver, of this machine only, has its lock file open; no lock is taken."""
        pid = self.timeline.pid
        if pid is None:
            return False
        lock = (self.directory / LOCK).resolve()
        try:
            with os.scandir(f"/proc/{int(pid)}/fd") as handles:
                return any(_points_to(handle.path, lock) for handle in handles)
        except OSError:
            return False


_FACTS = ("run_id", "policy", "hosts", "round_s", "began_unix", "clock", "ended", "ready")


def _points_to(handle: str, path: Path) -> bool:
    try:
        return os.readlink(handle) == str(path)
    except OSError:
        return False
