"""Machines and GPUs in Ray's table of nodes, and the storage that they share."""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError
from shadowprice.hosts.lease_files import lease_lock
from shadowprice.hosts.protocol import Device, DiscoveredNode, cpu_slots
from shadowprice.hosts.supervision.files import write_json

_TYPE = "accelerator_type:"
_TYPE_LABEL = "ray.io/accelerator-type"


@dataclass(frozen=True)
class Member:
    """A node that lives.

    Parameters
    ----------
    name : str
        The same when the node comes back.
    node_id : str
        Ray's name, another one when it comes back.
    slots : int
        GPUs, or CPU cores where the cluster has no GPU.
    gpu_type : str
        ``cpu`` for slots of a CPU.
    cpus, memory_gb : float
        What the cluster may use of it.
    """

    name: str
    node_id: str
    address: str
    slots: int
    gpu_type: str
    cpus: float
    memory_gb: float

    @property
    def bundle(self) -> dict[str, float]:
        """Resources that one slot reserves: a device with its share of the cores."""
        if self.gpu_type == "cpu":
            return {"CPU": 1.0}
        share = float(int(self.cpus / self.slots))
        return {"GPU": 1.0, "CPU": share} if share else {"GPU": 1.0}


def members(rows: Sequence[Mapping[str, Any]]) -> tuple[Member, ...]:
    """Nodes that live and have devices, by name.

    Parameters
    ----------
    rows : sequence of mapping
        What ``ray.nodes()`` returns.

    Raises
    ------
    HostError
        If a node has GPUs of two types.
    """
    alive = [row for row in rows if row["Alive"]]
    kind = "GPU" if any(row["Resources"].get("GPU", 0) >= 1 for row in alive) else "CPU"
    names = node_names(alive)
    found = [
        Member(
            names[row["NodeID"]],
            row["NodeID"],
            row["NodeManagerAddress"],
            int(row["Resources"][kind]),
            _gpu_type(row, names[row["NodeID"]]) if kind == "GPU" else "cpu",
            float(row["Resources"].get("CPU", 0.0)),
            float(row["Resources"].get("memory", 0.0)) / 1e9,
        )
        for row in alive
        if row["Resources"].get(kind, 0) >= 1
    ]
    return tuple(sorted(found, key=lambda member: member.name))


def node_names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name of each living node by Ray's: the one it was given, else its machine's.

    Where several bear one name, the start of Ray's is added; such a node comes back as a new one.
    """
    plain = {
        row["NodeID"]: str(
            row["NodeName"]
            if row["NodeName"] and row["NodeName"] != row["NodeManagerAddress"]
            else row["NodeManagerHostname"] or row["NodeManagerAddress"]
        )
        for row in rows
        if row["Alive"]
    }
    often = Counter(plain.values())
    return {
        node_id: name if often[name] == 1 else f"{name}-{node_id[:8]}"
        for node_id, name in plain.items()
    }


def _gpu_type(row: Mapping[str, Any], name: str) -> str:
    """Type of a node's GPUs: its resource, else its label, else ``GPU``."""
    types = sorted(key[len(_TYPE) :] for key in row["Resources"] if key.startswith(_TYPE))
    if len(types) > 1:
        raise HostError(
            f"hosts ray: node {name} has GPUs of types {', '.join(types)}; start one Ray node for "
            "each type, with CUDA_VISIBLE_DEVICES set"
        )
    return types[0] if types else str(row.get("Labels", {}).get(_TYPE_LABEL, "GPU"))


@dataclass(frozen=True)
class Slot:
    """A device that this run holds.

    Parameters
    ----------
    group : str
        Placement group, Ray's number of it.
    visible : str
        What ``CUDA_VISIBLE_DEVICES`` has to be for a process to see the device alone.
    """

    device: Device
    group: str
    visible: str


def slots_of(member: Member, groups: Sequence[str], visible: Mapping[str, str]) -> tuple[Slot, ...]:
    """Devices of a node's placement groups, by index.

    Parameters
    ----------
    visible : mapping of str to str
        What a process in each group sees, an index or a MIG instance; none for slots of a CPU.

    Raises
    ------
    HostError
        If two groups see one device.
    """
    if member.gpu_type == "cpu":
        devices = cpu_slots(member.name, len(groups))
        return tuple(Slot(*each, "") for each in zip(devices, sorted(groups), strict=True))
    if len({visible[group] for group in groups}) != len(groups):
        raise HostError(f"hosts ray: node {member.name} gives one GPU to two placement groups")
    return tuple(
        Slot(Device(member.name, k, f"{member.name}/gpu:{visible[group]}"), group, visible[group])
        for k, group in enumerate(sorted(groups, key=lambda group: _order(visible[group])))
    )


def _order(visible: str) -> tuple[int, str]:
    return (int(visible), "") if visible.isdigit() else (1 << 30, visible)


def discovered_node(member: Member, slots: Collection[Slot]) -> DiscoveredNode:
    """A node as the driver knows it, with the devices that this run holds.

    Its CPUs are those that its slots reserve, where they do; memory, of which Ray keeps no books for
    slots, is their share of the node's.
    """
    devices = tuple(slot.device for slot in slots)
    share = len(devices) / member.slots
    cpus = member.bundle.get("CPU", member.cpus / member.slots) * len(devices)
    return DiscoveredNode(
        member.name,
        member.gpu_type,
        devices,
        cpus,
        member.memory_gb * share,
        member.address,
    )


def check_shared(state: Path, probe: Callable[[str], Mapping[str, tuple[str, bool]]]) -> None:
    """Make sure that nodes share the state directory with this one, locks included.

    Writes a file that nodes are to read, locks one that they are not to lock, and reads answers.

    Parameters
    ----------
    probe : callable
        Given a folder of the state directory, what each node read there and whether it found the
        lock taken; each leaves a file (:meth:`.agent.Agent.probe`).

    Raises
    ------
    HostError
        If a node does not share the directory, or not its locks, by which a node's leases and
        stale writers are told.
    """
    name, token = f".probe-{secrets.token_hex(4)}", secrets.token_hex(8)
    folder = state / name
    folder.mkdir(mode=0o700)
    try:
        write_json(f"{folder}/probe.json", {"token": token})
        with lease_lock(folder):
            answers = probe(name)
        left = len(list(folder.glob(f"answer-*-{token}")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    blind = sorted(node for node, (text, _) in answers.items() if text != token)
    if blind or left < len(answers):
        raise HostError(
            f"hosts ray: node {', '.join(blind or sorted(answers))} does not share the state "
            f"directory {state} with this one; put --state on storage that all nodes mount at the "
            "same place, and run Ray there as the same user"
        )
    unlocked = sorted(node for node, (_, locked) in answers.items() if not locked)
    if unlocked:
        raise HostError(
            f"hosts ray: on node {', '.join(unlocked)} locks in the state directory {state} do not "
            "hold; use storage with locks across machines, NFSv4 for instance"
        )
