"""Nodes and devices of a Slurm cluster that a run may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shadowprice.errors import HostError
from shadowprice.execution.hosts.protocol import Device, FoundNode
from shadowprice.execution.hosts.slurm.commands import SlurmNode

SLOT_TYPE = "cpu"
GB_PER_MIB = 1.048576e-3


def found_nodes(
    nodes: Mapping[str, SlurmNode], own: Mapping[str, int], exclude: frozenset[str], where: str
) -> tuple[FoundNode, ...]:
    """Nodes that take jobs, with the devices on them that no stranger's job holds.

    Where no node has a GPU, each CPU is a slot that stands for one. A device is a place in Slurm's
    count, not an index on the node: which GPU a job gets is Slurm's own choice.

    Parameters
    ----------
    nodes : mapping of str to SlurmNode
        As ``sinfo`` tells.
    own : mapping of str to int
        GPUs that jobs of this run hold, by node.
    where : str
        For messages.

    Raises
    ------
    HostError
        If a node mixes types of GPU, or nothing is free.
    """
    usable = [
        node
        for name, node in sorted(nodes.items(), key=_natural)
        if node.takes_jobs and name not in exclude
    ]
    has_gpus = any(node.gpus for node in nodes.values())
    found = []
    for node in usable:
        made = _with_gpus(node, own.get(node.name, 0)) if has_gpus else _with_slots(node)
        if made.devices:
            found.append(made)
    if not found:
        states = Counter("+".join(sorted(node.states)).lower() for node in nodes.values())
        told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        raise HostError(
            f"slurm: no free device in {where} ({told or 'no nodes at all'}); "
            "see `sinfo -N -l` and `squeue`, or name another partition"
        )
    return tuple(found)


def _natural(item: tuple[str, SlurmNode]) -> tuple[str, int, str]:
    name = item[0]
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name


def _with_gpus(node: SlurmNode, own: int) -> FoundNode:
    if len(node.gpus) > 1:
        raise HostError(
            f"slurm: node {node.name} has GPUs of types {', '.join(sorted(node.gpus))}, expected one "
            f"type a node; leave it out with exclude={node.name}"
        )
    kind, count = next(iter(node.gpus.items()), ("gpu", 0))
    strangers = max(0, sum(node.gpus_used.values()) - own)
    devices = tuple(
        Device(node.name, index, f"{node.name}/gpu:{index}") for index in range(count - strangers)
    )
    return _node(node, kind, devices)


def _with_slots(node: SlurmNode) -> FoundNode:
    devices = tuple(
        Device(node.name, index, f"{node.name}/cpu:{index}") for index in range(node.cpus)
    )
    return _node(node, SLOT_TYPE, devices)


def _node(node: SlurmNode, kind: str, devices: tuple[Device, ...]) -> FoundNode:
    return FoundNode(
        node.name, kind, devices, float(node.cpus), node.memory_mb * GB_PER_MIB, node.address
    )
