"""Pool of devices: free, held by a lease, or quarantined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from shadowprice.execution.hosts.protocol import Device, FoundNode

Holder = tuple[str, int]
"""Job and epoch of a lease."""


class DevicePool:
    """Devices of a run's nodes.

    A device is *free* if its node answers and no process of any lease may be left on it. That of a
    lease which the engine has written off, but whose end nobody confirmed, is quarantined.

    Parameters
    ----------
    nodes : sequence of FoundNode
        In the order of the cluster.
    missing : collection of str
        Uuids of devices that were there when the run began and are no more.
    """

    def __init__(self, nodes: Sequence[FoundNode], missing: Collection[str] = ()) -> None:
        self.missing = frozenset(missing)
        self.nodes = tuple(nodes)
        self.lost: set[str] = set()
        self._running: dict[str, set[Holder]] = defaultdict(set)
        self._written_off: dict[str, set[Holder]] = defaultdict(set)
        self.of_uuid = {device.uuid: device for node in nodes for device in node.devices}

    def find(self, node: int, count: int) -> tuple[Device, ...]:
        """The first free devices of a node; empty if there are too few."""
        found = self.nodes[node]
        if found.name in self.lost:
            return ()
        free = [device for device in found.devices if self._free(device)][:count]
        return tuple(free) if len(free) == count else ()

    def joinable(self, devices: Iterable[Device]) -> bool:
        """True if nothing but a running lease may be left on these devices."""
        return not any(self._written_off[device.uuid] for device in devices)

    def hold(self, devices: Iterable[Device], holder: Holder) -> None:
        """Hold these devices, beside others that do."""
        for device in devices:
            self._running[device.uuid].add(holder)

    def write_off(self, devices: Iterable[Device], holder: Holder) -> None:
        """The engine thinks that a lease is over, but processes of it may be left."""
        for device in devices:
            self._running[device.uuid].discard(holder)
            self._written_off[device.uuid].add(holder)

    def free(self, devices: Iterable[Device], holder: Holder) -> None:
        """A lease's processes are confirmed gone."""
        for device in devices:
            self._running[device.uuid].discard(holder)
            self._written_off[device.uuid].discard(holder)

    def quarantined(self) -> list[int]:
        """Devices of every node that no running lease holds and none may be given."""
        return [
            sum(
                not self._running[device.uuid]
                and (node.name in self.lost or not self._usable(device))
                for device in node.devices
            )
            for node in self.nodes
        ]

    def named(self, uuids: Collection[str]) -> tuple[Device, ...]:
        """Devices by uuid."""
        return tuple(self.of_uuid[uuid] for uuid in uuids)

    def _free(self, device: Device) -> bool:
        return not self._running[device.uuid] and self._usable(device)

    def _usable(self, device: Device) -> bool:
        return not self._written_off[device.uuid] and device.uuid not in self.missing
