"""Pool of devices: free, held by a lease, or quarantined; and those that a person drains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from shadowprice.hosts.lease_cpu_memory import CpuMemoryByNode, capacity_of
from shadowprice.hosts.live.lease import HeldLease, Holder
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.protocol import Device, DiscoveredNode
from shadowprice.instances.clusters.cpu_memory import CountedCpuMemory

_DRAINED, _ANNOUNCED = "drained", "drained_told"


class Drains:
    """Devices that are to be given out no more, and why: wishes in the ledger, of people and of health checks.

    Parameters
    ----------
    ledger : RunLedger
        Of the run; the driver's, or that of who wishes.
    """

    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger

    def wishes(self) -> dict[str, dict[str, Any]]:
        """Of each drained device, by uuid: its ``reason``, and whether its leases are asked to stop ``now``."""
        return dict(self._ledger.value(_DRAINED, {}))

    def drain(self, uuids: Iterable[str], reason: str, *, now: bool = False) -> None:
        """Wish that devices are given out no more; with ``now``, that who holds them stops."""
        wish = {"reason": reason, "now": now}
        self._ledger.set(_DRAINED, self.wishes() | dict.fromkeys(uuids, wish))

    def undrain(self, uuids: Collection[str]) -> None:
        """Wish that devices may be given out again."""
        still = {uuid: wish for uuid, wish in self.wishes().items() if uuid not in uuids}
        self._ledger.set(_DRAINED, still)

    def logged(self) -> frozenset[str]:
        """Devices that the log says are drained."""
        return frozenset(self._ledger.value(_ANNOUNCED, ()))

    def log(self, uuids: Collection[str]) -> None:
        """Note which devices the log says are drained."""
        self._ledger.set(_ANNOUNCED, sorted(uuids))


class DevicePool:
    """Devices of a run's nodes, and the leases that hold them.

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
    leases : dict of (str, int) to HeldLease
        All whose end is not confirmed, those that were written off included.
    """

    def __init__(self, nodes: Sequence[DiscoveredNode]) -> None:
        self.missing: frozenset[str] = frozenset()
        self.nodes = tuple(nodes)
        self.lost: set[str] = set()
        self.leases: dict[Holder, HeldLease] = {}
        self._on: dict[str, list[HeldLease]] = defaultdict(list)
        self._capacity = {node.name: capacity_of(node).most for node in nodes}
        self.of_uuid = {device.uuid: device for node in nodes for device in node.devices}

    def find(self, node: int, count: int) -> tuple[Device, ...]:
        """The first free devices of a node; empty if there are too few."""
        free = [each for each in self._answering(node) if not self._on[each.uuid]]
        free = [each for each in free if each.uuid not in self.missing][:count]
        return tuple(free) if len(free) == count else ()

    def count_free(self, node: int, freed: Collection[str] = ()) -> int:
        """Free devices of a node, those included that are free from now on."""
        return sum(
            each.uuid in freed or not (self._on[each.uuid] or each.uuid in self.missing)
            for each in self._answering(node)
        )

    def joinable(self, devices: Iterable[Device]) -> bool:
        """True if nothing but a running lease may be left on these devices."""
        return not any(self._written_off(device) for device in devices)

    def hold(self, lease: HeldLease) -> None:
        """A lease holds its devices, with others that do, and CPUs and memory of their nodes."""
        self.leases[lease.grant.holder] = lease
        for device in lease.grant.devices:
            self._on[device.uuid].append(lease)

    def free(self, lease: HeldLease) -> None:
        """A lease's processes are confirmed gone."""
        del self.leases[lease.grant.holder]
        for device in lease.grant.devices:
            self._on[device.uuid].remove(lease)

    def written_off(self) -> list[HeldLease]:
        """Leases that the engine thinks are over, of which processes may be left."""
        return [lease for lease in self.leases.values() if lease.end.abandoned]

    def has_cpu_memory(self, asked: CpuMemoryByNode) -> bool:
        """True if nobody holds these CPUs and this memory, written-off leases included."""
        for node, wanted in asked.items():
            held = _sum(self.leases.values(), node)
            if any(
                a + b > most for a, b, most in zip(wanted, held, self._capacity[node], strict=True)
            ):
                return False
        return True

    def cpu_memory_aside(self) -> Mapping[int, CountedCpuMemory]:
        """CPUs and memory of each node, by its place, that leases hold which were written off."""
        lost = self.written_off()
        aside = {place: _sum(lost, node.name) for place, node in enumerate(self.nodes)}
        return {place: held for place, held in aside.items() if any(held)}

    def quarantined(self) -> list[int]:
        """Devices of every node that no running lease holds and none may be given."""
        return [
            sum(
                all(lease.end.abandoned for lease in self._on[device.uuid])
                and (
                    node.name in self.lost
                    or device.uuid in self.missing
                    or self._written_off(device)
                )
                for device in node.devices
            )
            for node in self.nodes
        ]

    def named(self, uuids: Collection[str]) -> tuple[Device, ...]:
        """Devices by uuid."""
        return tuple(self.of_uuid[uuid] for uuid in uuids)

    def _answering(self, node: int) -> tuple[Device, ...]:
        """Devices of a node; none while it does not answer."""
        return () if self.nodes[node].name in self.lost else self.nodes[node].devices

    def _written_off(self, device: Device) -> bool:
        return any(lease.end.abandoned for lease in self._on[device.uuid])


def _sum(leases: Iterable[HeldLease], node: str) -> CountedCpuMemory:
    """CPUs [thousandths] and memory [MiB] that leases hold on a node."""
    held = [lease.grant.cpu_memory[node] for lease in leases if node in lease.grant.cpu_memory]
    return sum(cpus for cpus, _ in held), sum(memory for _, memory in held)
