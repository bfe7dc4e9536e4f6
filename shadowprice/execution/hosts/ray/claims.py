"""Slots that hold a cluster's devices for a run, and the actors on its nodes.

A slot is a placement group with one GPU and its share of the cores, pinned to its node. Ray chooses
which GPU that is; a task inside the slot reads it once. From then on the run decides what runs on
which GPU, and with what beside it, and nobody else's tasks come there. Slots and actors are
detached: they outlive a driver that is killed, and the next one finds them by name.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from shadowprice.errors import HostError
from shadowprice.execution.hosts.protocol import Device, FoundNode
from shadowprice.execution.hosts.ray import agent as ray_agent
from shadowprice.execution.hosts.ray.nodes import Member

SLOT_S = 5.0
ACTOR_S = 60.0


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


class SlotClaims:
    """Holds devices of a cluster in the name of a run.

    Its methods call Ray without a time-out of their own: they are to be called through
    :class:`~shadowprice.execution.hosts.ray.calls.RayThread`.

    Parameters
    ----------
    ray : module
        The library, connected.
    run : str
        Name of the run, a namespace of its own.
    state : str
        State directory.
    """

    def __init__(self, ray: Any, run: str, state: str) -> None:
        self._ray = ray
        # The function of this name hides the module from an import statement.
        self._groups: Any = import_module("ray.util.placement_group")
        self._strategies: Any = import_module("ray.util.scheduling_strategies")
        self._run, self._state = run, state
        # The whole package travels by value: nodes need not have it.
        package = sys.modules[__name__.partition(".")[0]]
        ray.cloudpickle.register_pickle_by_value(package)
        self._actor = ray.remote(ray_agent.Agent)
        # A worker that had a GPU is used again: the task only reads a variable.
        self._reader = ray.remote(num_cpus=0, num_gpus=1, max_calls=0)(ray_agent.visible_device)

    def agent(self, member_id: str) -> Any:
        """The actor of a node, found or started; it may not answer yet."""
        return self._actor.options(
            name=f"agent-{member_id}",
            namespace=self._run,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            max_restarts=0,
            scheduling_strategy=self._strategies.NodeAffinitySchedulingStrategy(
                member_id, soft=False
            ),
        ).remote(self._state, ray_agent.IDLE_S)

    def hold(self, members: Sequence[Member]) -> dict[str, tuple[str, ...]]:
        """Placement groups of this run on each node, at most one for a device.

        Those that exist are kept; of those that are asked for now, the ones that cannot be had at
        once are given up, since others use their devices.
        """
        held: dict[str, list[str]] = {member.node_id: [] for member in members}
        for group, (node_id, ready) in self._existing().items():
            if ready and node_id in held:
                held[node_id].append(group)
            else:
                self._remove(group)
        asked = [
            (member.node_id, self._ask(member))
            for member in members
            for _ in range(member.slots - len(held[member.node_id]))
        ]
        until = time.monotonic() + SLOT_S
        for node_id, group in asked:
            if group.wait(max(0.0, until - time.monotonic())):
                held[node_id].append(group.id.hex())
            else:
                self._groups.remove_placement_group(group)
        return {node_id: tuple(groups) for node_id, groups in held.items()}

    def _ask(self, member: Member) -> Any:
        return self._groups.placement_group(
            [member.bundle],
            name=f"{self._run}/{member.node_id}/{secrets.token_hex(8)}",
            lifetime="detached",
            bundle_label_selector=[{"ray.io/node-id": member.node_id}],
        )

    def _existing(self) -> dict[str, tuple[str, bool]]:
        """Node of each placement group of this run, and whether it stands."""
        found = {}
        for group, about in self._groups.placement_group_table().items():
            run, node_id, _ = ("//" + about["name"]).rsplit("/", 2)
            if run == f"//{self._run}" and about["state"] != "REMOVED":
                found[group] = (node_id, about["state"] == "CREATED")
        return found

    def _remove(self, group: str) -> None:
        self._groups.remove_placement_group(self._group(group))

    def _group(self, group: str) -> Any:
        return self._groups.PlacementGroup(self._ray.PlacementGroupID.from_hex(group))

    def read_devices(self, held: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """GPUs as a process in each placement group sees them.

        A node's are read one after another, by one worker, nodes at the same time.
        """
        visible: dict[str, str] = {}
        for turn in range(max((len(groups) for groups in held.values()), default=0)):
            asked = {
                groups[turn]: self._reader.options(
                    scheduling_strategy=self._strategies.PlacementGroupSchedulingStrategy(
                        self._group(groups[turn]), 0
                    )
                ).remote()
                for groups in held.values()
                if turn < len(groups)
            }
            answers = self._ray.get(list(asked.values()), timeout=ACTOR_S)
            visible |= dict(zip(asked, answers, strict=True))
        return visible

    def ask(self, questions: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Answers by node, without those that did not answer in time; errors as values."""
        names = {reference: name for name, reference in questions.items()}
        ready, _ = self._ray.wait(list(names), num_returns=len(names), timeout=timeout_s)
        answers: dict[str, Any] = {}
        for reference in ready:
            try:
                answers[names[reference]] = self._ray.get(reference, timeout=timeout_s)
            except self._ray.exceptions.RayError as error:
                answers[names[reference]] = error
        return answers

    def release(self, agents: Iterable[Any]) -> None:
        """Give all devices back and end the actors."""
        for agent in agents:
            self._ray.kill(agent)
        for group in self._existing():
            self._remove(group)


def slots_of(
    member: Member, groups: Sequence[str], visible: Mapping[str, str], gpus: Mapping[str, str]
) -> tuple[Slot, ...]:
    """Devices of a node's placement groups, by index.

    Parameters
    ----------
    visible : mapping of str to str
        What a process in each group sees; none for slots of a CPU.
    gpus : mapping of str to str
        UUID of each GPU of the node by index, as far as known.

    Raises
    ------
    HostError
        If two groups see one device.
    """
    if member.gpu_type == "cpu":
        return tuple(
            Slot(Device(member.name, k, f"{member.name}/cpu:{k}"), group, "")
            for k, group in enumerate(sorted(groups))
        )
    if len({visible[group] for group in groups}) != len(groups):
        raise HostError(f"hosts ray: node {member.name} gives one GPU to two placement groups")
    found = []
    for k, group in enumerate(sorted(groups, key=lambda group: _order(visible[group]))):
        seen = visible[group]
        uuid = gpus.get(seen, seen)
        known = uuid.startswith(("GPU-", "MIG-"))
        name = uuid if known else f"{member.name}/gpu:{seen}"
        found.append(Slot(Device(member.name, k, name), group, uuid if known else seen))
    return tuple(found)


def _order(visible: str) -> tuple[int, str]:
    return (int(visible), "") if visible.isdigit() else (1 << 30, visible)


def found_node(member: Member, slots: Collection[Slot]) -> FoundNode:
    """A node as the driver knows it, with the devices that this run holds."""
    devices = tuple(slot.device for slot in slots)
    share = len(devices) / member.slots
    return FoundNode(
        member.name,
        member.gpu_type,
        devices,
        member.cpus * share,
        member.memory_gb * share,
        member.address,
    )
