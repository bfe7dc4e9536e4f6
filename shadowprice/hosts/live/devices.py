"""Pool of devices: free, held by a lease, or quarantined; and those that a person drains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from shadowprice.hosts.lease_amounts import NodeAmounts, capacity_of
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.protocol import Device, DiscoveredNode

_DRAINED, _TOLD = "drained", "drained_told"

Holder = tuple[str, int]
"""Job and epoch of a lease."""


class Drains:
    """Devices that are to be given out no more, and why: wishes in the ledger, of people and of health checks.

    Parameters
    ----------
    ledger : RunLedger
        Of the run; the driver's, or that of who wishes.
    """

    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger

    def why(self) -> dict[str, str]:
        """Reason of each drained device, by uuid."""
        return {uuid: str(wish["reason"]) for uuid, wish in self._wishes().items()}

    def at_once(self) -> frozenset[str]:
        """Those of them whose leases are asked to stop."""
        return frozenset(uuid for uuid, wish in self._wishes().items() if wish["now"])

    def drain(self, uuids: Iterable[str], reason: str, *, now: bool = False) -> None:
        """Wish that devices are given out no more; with ``now``, that who holds them stops."""
        wish = {"reason": reason, "now": now}
        self._ledger.set(_DRAINED, self._wishes() | dict.fromkeys(uuids, wish))

    def undrain(self, uuids: Collection[str]) -> None:
        """Wish that devices may be given out again."""
        kept = {uuid: wish for uuid, wish in self._wishes().items() if uuid not in uuids}
        self._ledger.set(_DRAINED, kept)

    def drained(self) -> frozenset[str]:
        """Devices that the log says are drained."""
        return frozenset(self._ledger.value(_TOLD, ()))

    def tell(self, uuids: Collection[str]) -> None:
        """Note which devices the log says are drained."""
        self._ledger.set(_TOLD, sorted(uuids))

    def _wishes(self) -> dict[str, dict[str, object]]:
        return dict(self._ledger.value(_DRAINED, {}))


class DevicePool:
    """Devices of a run's nodes.

    A device is *free* if its node answers and no process of any lease may be left on it. That of a
    lease which the engine has written off, but whose end nobody confirmed, is quarantined.

    Parameters
    ----------
    nodes : sequence of DiscoveredNode
        In the order of the cluster.

    Attributes
    ----------
    missing : frozenset of str
        Uuids of devices that were there when the run began and are not now, or are drained; known
        from events.
    lost : set of str
        Nodes that do not answer; known from events.
    """

    def __init__(self, nodes: Sequence[DiscoveredNode]) -> None:
        self.missing: frozenset[str] = frozenset()
        self.nodes = tuple(nodes)
        self.lost: set[str] = set()
        self._running: dict[str, set[Holder]] = defaultdict(set)
        self._written_off: dict[str, set[Holder]] = defaultdict(set)
        self._capacity = {node.name: capacity_of(node).most for node in nodes}
        self._amounts: dict[Holder, NodeAmounts] = {}
        self._aside: set[Holder] = set()
        self.of_uuid = {device.uuid: device for node in nodes for device in node.devices}

    def find(self, node: int, count: int) -> tuple[Device, ...]:
        """The first free devices of a node; empty if there are too few."""
        found = self.nodes[node]
        if found.name in self.lost:
            return ()
        free = [device for device in found.devices if self._free(device)][:count]
        return tuple(free) if len(free) == count else ()

    def count_free(self, node: int, freed: Collection[str] = ()) -> int:
        """Free devices of a node, those included that are free from now on."""
        found = self.nodes[node]
        if found.name in self.lost:
            return 0
        return sum(self._free(each) or each.uuid in freed for each in found.devices)

    def joinable(self, devices: Iterable[Device]) -> bool:
        """True if nothing but a running lease may be left on these devices."""
        return not any(self._written_off[device.uuid] for device in devices)

    def hold(
        self, devices: Iterable[Device], holder: Holder, amounts: NodeAmounts | None = None
    ) -> None:
        """Hold these devices, beside others that do, and CPUs and memory of their nodes."""
        for device in devices:
            self._running[device.uuid].add(holder)
        if amounts:
            self._amounts[holder] = amounts

    def has_amounts(self, amounts: NodeAmounts) -> bool:
        """True if nobody holds these CPUs and this memory, written-off leases included."""
        for node, wanted in amounts.items():
            held = [by_node[node] for by_node in self._amounts.values() if node in by_node]
            for k, most in enumerate(self._capacity[node]):
                if wanted[k] + sum(each[k] for each in held) > most:
                    return False
        return True

    def amounts_aside(self) -> Mapping[int, tuple[int, int]]:
        """CPUs and memory of each node, by its place, that leases hold which were written off."""
        aside: dict[int, tuple[int, int]] = {}
        for place, node in enumerate(self.nodes):
            held = [
                self._amounts[holder][node.name]
                for holder in self._aside
                if node.name in self._amounts.get(holder, {})
            ]
            if held:
                aside[place] = sum(cpus for cpus, _ in held), sum(memory for _, memory in held)
        return aside

    def write_off(self, devices: Iterable[Device], holder: Holder) -> None:
        """The engine thinks that a lease is over, but processes of it may be left."""
        for device in devices:
            self._running[device.uuid].discard(holder)
            self._written_off[device.uuid].add(holder)
        self._aside.add(holder)

    def free(self, devices: Iterable[Device], holder: Holder) -> None:
        """A lease's processes are confirmed gone."""
        for device in devices:
            self._running[device.uuid].discard(holder)
            self._written_off[device.uuid].discard(holder)
        self._amounts.pop(holder, None)
        self._aside.discard(holder)

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
