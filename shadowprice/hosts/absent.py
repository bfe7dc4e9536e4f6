"""Nodes and devices of a run that a resumed driver did not find, asked for until all are back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import DiscoveredNode, Host

FIRST_S, LAST_S = 1.0, 30.0
"""Between two questions at first, and after some doublings, while nothing changes [s]."""


class AbsentDevices:
    """Nodes and devices of a run that were not found when its driver started.

    A node may not answer for a moment, or a stranger's job may hold a device just then. They are asked
    for again, so that they do not stay away for as long as the driver lives. Nobody is asked when all
    are there.

    Parameters
    ----------
    host : Host
        Asked for them.
    nodes : sequence of DiscoveredNode
        Those of the run.
    found : sequence of DiscoveredNode
        Those that the host has now.

    Attributes
    ----------
    nodes : frozenset of str
        Names of nodes of which no device is there.
    devices : frozenset of str
        Uuids of devices that are not there.
    """

    def __init__(
        self, host: Host, nodes: Sequence[DiscoveredNode], answering: Sequence[DiscoveredNode]
    ) -> None:
        self._host, self._all = host, tuple(nodes)
        self.nodes: frozenset[str] = frozenset()
        self.devices: frozenset[str] = frozenset()
        self._wait_s, self._ask_s = FIRST_S, -math.inf
        self._compare(answering)

    def look(self, now_s: float) -> None:
        """Ask for what is absent, if there is anything and it is time."""
        if not self.devices or now_s < self._ask_s:
            return
        if self._ask_s > -math.inf:
            before = self.devices
            with suppress(HostError):  # it cannot be asked now: what is absent stays so
                self._compare(self._host.discover())
            self._wait_s = FIRST_S if self.devices != before else min(2.0 * self._wait_s, LAST_S)
        self._ask_s = now_s + self._wait_s

    def _compare(self, answering: Sequence[DiscoveredNode]) -> None:
        present = {device.uuid for node in answering for device in node.devices}
        self.devices = frozenset(
            device.uuid for node in self._all for device in node.devices
        ).difference(present)
        self.nodes = frozenset(
            node.name
            for node in self._all
            if all(device.uuid in self.devices for device in node.devices)
        )
