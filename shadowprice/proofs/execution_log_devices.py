"""Who holds which device, for the check of an execution log. Standard library only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, int, int]
"""Job, epoch, and number of the copy of a fork."""


class Broken(Exception):
    """A rule is broken: its name, and how."""


def need(fine: object, rule: str, message: str) -> None:
    """Refuse unless a condition holds."""
    if not fine:
        raise Broken(rule, message)


def whole(value: object) -> int:
    """A whole number >= 0."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no whole number >= 0")
    return value


@dataclass
class Lease:
    """Devices that a job holds; ``aside`` are those of them whose release is not confirmed."""

    key: Key
    devices: frozenset[str]
    partner: str | None
    aside: set[str] = field(default_factory=set)

    @property
    def written_off(self) -> bool:
        """Whether the job goes on without it."""
        return self.aside == self.devices


class Devices:
    """Books of all devices.

    Parameters
    ----------
    nodes : iterable of mapping
        Their ``name`` and ``devices``, each with a ``uuid``.
    """

    def __init__(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        self.node_of = {d["uuid"]: node["name"] for node in nodes for d in node["devices"]}
        self._holders: dict[str, list[Lease]] = defaultdict(list)
        self._aside: dict[str, set[Key]] = defaultdict(set)
        self._lost: set[str] = set()

    def gang(self, told: Mapping[str, Any], size: int | None) -> None:
        """Devices that exist, each once, on the nodes and in the number that are told."""
        devices = told["devices"]
        strange = [device for device in devices if device not in self.node_of]
        need(devices and not strange, "gang", f"no such devices: {strange}")
        need(len(set(devices)) == len(devices), "gang", f"a device is there twice: {devices}")
        where = {device: self.node_of[device] for device in devices}
        need(told["node_of"] == where, "gang", f"devices are on {where}, not {told['node_of']}")
        nodes = set(where.values())
        fine = told["ranks"] == len(nodes)
        need(fine, "gang", f"{told['ranks']!r} ranks on {len(nodes)} nodes")
        if told.get("whole_node"):
            need(len(nodes) == 1, "gang", f"a whole node is not {sorted(nodes)}")
            size = sum(node in nodes for node in self.node_of.values())
        need(size in (None, len(devices)), "gang", f"{len(devices)} devices for a gang of {size}")

    def hold(self, lease: Lease) -> None:
        """Nobody else may hold them but one partner, nor may they be lost or kept aside."""
        for device in sorted(lease.devices):
            node = self.node_of[device]
            need(node not in self._lost, "aside", f"{device} is on {node}, which is lost")
            need(not self._aside[device], "aside", f"{device} is kept aside")
        # A third would have to name both of those that are there.
        for other in self.others(lease):
            one, two = lease.key[0], other.key[0]
            fine = lease.partner == two != one and other.devices == lease.devices
            need(fine, "double", f"{two} holds devices of {one}, which names {lease.partner!r}")
        for device in lease.devices:
            self._holders[device].append(lease)

    def others(self, lease: Lease) -> list[Lease]:
        """Other leases that hold some of its devices."""
        found = {other.key: other for d in sorted(lease.devices) for other in self._holders[d]}
        return [other for key, other in found.items() if key != lease.key]

    def let_go(self, lease: Lease) -> None:
        """A lease is released."""
        for device in lease.devices:
            self._holders[device].remove(lease)

    def put_aside(self, device: str, key: Key, lease: Lease | None) -> None:
        """A device may not be free though its lease is over, or is not to be used."""
        need(device in self.node_of, "gang", f"no such device: {device}")
        self._aside[device].add(key)
        if lease is not None:
            need(device in lease.devices, "lease", f"{key} does not hold {device}")
            lease.aside.add(device)

    def take_back(self, device: str, key: Key) -> None:
        """A device that was kept aside may be used again."""
        need(key in self._aside[device], "aside", f"{device} is not kept aside for {key}")
        self._aside[device].discard(key)

    def lose(self, node: str) -> None:
        """A node does not answer."""
        need(node in self.node_of.values(), "gang", f"no such node: {node}")
        self._lost.add(node)

    def find(self, node: str) -> None:
        """A node answers again."""
        need(node in self._lost, "aside", f"{node} was not lost")
        self._lost.discard(node)
