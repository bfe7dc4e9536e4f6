"""The nodes of a cluster that a run uses: slots that hold their devices, actors, who is lost.

A slot is a placement group with one GPU and its share of the cores, pinned to its node. Ray chooses
which GPU that is; a task inside the slot reads it once. From then on the run decides what runs on
which GPU, and with what beside it, and nobody else's tasks come there. Slots and actors are
detached: they outlive a driver that is killed, and the next one finds them by name.
"""

from __future__ import annotations

import math
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.hosts.ray import agent as ray_agent
from shadowprice.hosts.ray.connection import RayThread, import_ray
from shadowprice.hosts.ray.nodes import (
    Member,
    Slot,
    check_shared,
    discovered_node,
    members,
    slots_of,
)

T = TypeVar("T")

SLOT_S = 5.0
ACTOR_S = 60.0
ANSWER_S = 3.0
"""An actor that does not answer for so long is passed over until the next time."""
SILENCE_S = 15.0
"""A node whose actor does not answer for so long is lost, whatever Ray says."""
TABLE_S = 0.5
"""Between two readings of the table of nodes."""
PATIENCE_S = 60.0
"""A head that does not answer for so long is given up; leases go on without it meanwhile."""
RETURN_S = 5.0
"""Between two attempts to take a node back."""


class SlotClaims:
    """Holds devices of a cluster in the name of a run.

    Its methods call Ray without a time-out of their own: they are to be called through
    :class:`.connection.RayThread`.

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

    def hold(self, members: Sequence[Member], within_s: float) -> dict[str, tuple[str, ...]]:
        """Placement groups of this run on each node, at most one for a device.

        Those that exist are kept; of those that are asked for now, the ones that cannot be had within
        a time are given up, since others use their devices.
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
        until = time.monotonic() + within_s
        for _, group in asked:
            if not group.wait(max(0.0, until - time.monotonic())):
                break  # time is up: the table says who has one, a wait of no time may not
        existing = self._existing()
        for node_id, group in asked:
            if existing.get(group.id.hex(), ("", False))[1]:
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

    def stand(self, groups: Sequence[str]) -> bool:
        """True if all these placement groups of this run stand."""
        existing = self._existing()
        return all(existing.get(group, ("", False))[1] for group in groups)

    def _remove(self, group: str) -> None:
        self._groups.remove_placement_group(self._group(group))

    def _group(self, group: str) -> Any:
        return self._groups.PlacementGroup(self._ray.PlacementGroupID.from_hex(group))

    def read_devices(self, held: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """GPUs as a process in each placement group sees them.

        A node's are read one after another, by one worker, nodes at the same time.
        """
        visible: dict[str, str] = {}
        for position in range(max((len(groups) for groups in held.values()), default=0)):
            asked = {
                groups[position]: self._reader.options(
                    scheduling_strategy=self._strategies.PlacementGroupSchedulingStrategy(
                        self._group(groups[position]), 0
                    )
                ).remote()
                for groups in held.values()
                if position < len(groups)
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


@dataclass
class ClusterNode:
    """A node that was discovered.

    Parameters
    ----------
    member : Member
        As it was when it was admitted last.
    slots : tuple of Slot
        Devices of it that this run holds.
    agent
        Handle of its actor.
    answered_s : float
        When its actor last answered, or was asked for the first time since.
    lost : bool
        Whether it does not answer now.
    retry_s : float
        Not to be taken back before.
    """

    member: Member
    slots: tuple[Slot, ...]
    agent: Any
    answered_s: float
    lost: bool = False
    retry_s: float = 0.0


class RayNodes:
    """Nodes by name.

    Parameters
    ----------
    calls : RayThread
        The thread that is connected.
    state : Path
        State directory.
    run : str
        Name of slots and actors.
    """

    def __init__(self, calls: RayThread, state: Path, run: str) -> None:
        self._ray = import_ray()
        self._calls, self._state = calls, state
        self._tables = RayThread()  # of its own: leases must not wait for a head that hangs
        self._claims = calls.call(
            "take an actor", lambda: SlotClaims(self._ray, run, str(state)), 4 * ANSWER_S
        )
        self._nodes: dict[str, ClusterNode] = {}
        self._table: tuple[Member, ...] = ()
        self._table_s = -math.inf
        self._silent_s = math.inf  # since when the head does not answer
        self._slow_s = math.inf  # since when no attempt to reach actors succeeds

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes with the devices that could be held for this run.

        Ray may take long for it before a run begins, and not while it goes on.

        Raises
        ------
        HostError
            If there are none, or a node does not share the state directory.
        """
        within_s = ANSWER_S if self._nodes else PATIENCE_S
        found = self._members(fresh=True)
        if not found:
            raise HostError("hosts ray: no node of the cluster has a GPU or a CPU; see ray status")
        new = [member for member in found if self._is_new(member)]
        for node in self._admit(new, within_s):
            self._nodes[node.member.name] = node
        usable = [node for node in self._nodes.values() if node.slots and not node.lost]
        if not usable:
            wanted = ", ".join(f"{member.slots} on {member.name}" for member in found)
            raise HostError(
                f"hosts ray: none of the devices ({wanted}) is free, each with its share of the "
                "cores; see ray status for who holds them"
            )
        nodes = (discovered_node(node.member, node.slots) for node in usable)
        return tuple(sorted(nodes, key=lambda node: node.name))

    def visible(self, name: str) -> dict[str, str]:
        """Value of ``CUDA_VISIBLE_DEVICES`` for each device of a node by its UUID."""
        slots = self._nodes[name].slots if name in self._nodes else ()
        return {slot.device.uuid: slot.visible for slot in slots}

    def lost(self) -> frozenset[str]:
        """Nodes that do not answer; those that came back are taken back first."""
        alive = {member.name: member for member in self._members()}
        now = time.monotonic()
        for name, node in self._nodes.items():
            member = alive.get(name)
            silent = now - node.answered_s > SILENCE_S
            if member is None or member.node_id != node.member.node_id or silent:
                node.lost = True
            if node.lost and member is not None and now >= node.retry_s:
                self._take_back(name, member)
        return frozenset(name for name, node in self._nodes.items() if node.lost)

    def is_lost(self, name: str) -> bool:
        """True if a node was lost when :meth:`lost` was asked last, or is none."""
        return name not in self._nodes or self._nodes[name].lost

    def beat(self, leases: Mapping[str, Sequence[str]]) -> None:
        """Show actors that a driver lives, and which leases are to run there; see who answers."""
        agents = {name: node.agent for name, node in self._nodes.items() if not node.lost}
        answers = self._attempt(
            lambda: self._ask(agents, "start", ANSWER_S, lambda name: leases.get(name, ()))
        )
        for name, answer in (answers or {}).items():
            node = self._nodes[name]
            if not isinstance(answer, Exception):
                node.answered_s = time.monotonic()
            elif isinstance(answer, self._ray.exceptions.ActorDiedError) and (
                node.member in self._members()
            ):
                self._attempt(partial(self._replace_agent, name, node))

    def _attempt(self, action: Callable[[], T]) -> T | None:
        """Result of an action; None if Ray is too slow for it now: the next sign of life repeats it.

        Raises
        ------
        HostError
            If nothing has succeeded for a minute.
        """
        now = time.monotonic()
        try:
            found = action()
        except HostError:
            self._slow_s = min(self._slow_s, now)
            if now - self._slow_s > PATIENCE_S:
                raise
            return None
        self._slow_s = math.inf
        return found

    def _replace_agent(self, name: str, node: ClusterNode) -> None:
        """Start an actor where one died alone; its node is lost if it gave the devices back before."""
        groups = [slot.group for slot in node.slots]
        if self._calls.call("list its slots", lambda: self._claims.stand(groups), ANSWER_S):
            agent = self._agent(node.member, ANSWER_S)
            self._send({name: agent}, "hold", {name: groups})
            node.agent = agent  # only now: until then the dead one has it tried again
        else:
            node.lost = True  # others may have them by now: they are to be reserved anew

    def send(self, method: str, leases: Mapping[str, Sequence[str]]) -> None:
        """Tell actors of nodes that are not lost, without waiting for an answer.

        What Ray is too slow for is told again: starts with every sign of life, sweeps by who asks for them.
        """
        agents = {name: self._nodes[name].agent for name in leases if not self.is_lost(name)}
        self._attempt(lambda: self._send(agents, method, leases))

    def _send(
        self, agents: Mapping[str, Any], method: str, arguments: Mapping[str, Sequence[str]]
    ) -> None:
        def send() -> None:
            for name, agent in agents.items():
                getattr(agent, method).remote(arguments[name])

        self._calls.call(f"{method} leases", send, ANSWER_S)

    def release(self) -> None:
        """Give devices back and end the actors."""
        agents = [node.agent for node in self._nodes.values()]
        self._calls.call("give devices back", lambda: self._claims.release(agents), PATIENCE_S)

    def _is_new(self, member: Member) -> bool:
        """True if a node was not admitted as it is now, or without some of its devices."""
        known = self._nodes.get(member.name)
        if known is None or known.lost or known.member.node_id != member.node_id:
            return True
        return len(known.slots) < member.slots

    def _members(self, *, fresh: bool = False) -> tuple[Member, ...]:
        """Nodes that live, as of half a second ago, or for a while as of when the head hung."""
        now = time.monotonic()
        if not fresh and now - self._table_s < TABLE_S:
            return self._table
        try:
            rows = self._tables.call("list its nodes", self._ray.nodes, ANSWER_S)
        except HostError:
            self._silent_s = min(self._silent_s, now)
            if fresh or now - self._silent_s > PATIENCE_S:
                raise
        else:
            self._table, self._table_s = members(rows), time.monotonic()
            self._silent_s = math.inf
        return self._table

    def _take_back(self, name: str, member: Member) -> None:
        """Admit a node again, if all of its devices can be held as before."""
        before = {slot.device.uuid for slot in self._nodes[name].slots}
        try:
            found = self._admit([member], ANSWER_S)
        except HostError:
            found = ()
        if found and before <= {slot.device.uuid for slot in found[0].slots}:
            self._nodes[name] = found[0]
        else:
            self._nodes[name].retry_s = time.monotonic() + RETURN_S

    def _admit(self, new: Sequence[Member], within_s: float) -> tuple[ClusterNode, ...]:
        """Hold the devices of nodes, start their actors, clean up what earlier ones left there.

        Parameters
        ----------
        within_s : float
            How long Ray may take for each of a few calls: long before a run begins, short while it goes on.
        """
        if not new:
            return ()
        alive, slot_s = self._members(), min(SLOT_S, within_s)
        held = self._calls.call(
            "reserve devices", lambda: self._claims.hold(alive, slot_s), slot_s + 2 * within_s
        )
        new = [member for member in new if held.get(member.node_id)]
        agents = {member.name: self._agent(member, within_s) for member in new}
        gpus = {m.node_id: held[m.node_id] for m in new if m.gpu_type != "cpu"}
        visible = self._calls.call(
            "say which GPU a slot has", lambda: self._claims.read_devices(gpus), ACTOR_S
        )
        groups = {member.name: held[member.node_id] for member in new}
        self._ask_all(agents, "hold", lambda name: groups[name])
        check_shared(self._state, lambda name: self._ask_all(agents, "probe", lambda _: name))
        return tuple(
            ClusterNode(
                member,
                slots_of(member, groups[member.name], visible),
                agents[member.name],
                time.monotonic(),
            )
            for member in new
        )

    def _agent(self, member: Member, within_s: float) -> Any:
        return self._calls.call(
            f"start an actor on {member.name}",
            lambda: self._claims.agent(member.node_id),
            within_s,
        )

    def _ask_all(
        self,
        agents: Mapping[str, Any],
        method: str,
        argument: Callable[[str], str | Sequence[str]],
    ) -> dict[str, Any]:
        """Answers of all these actors, which may just be starting.

        Raises
        ------
        HostError
            If one does not answer.
        """
        answers = self._ask(agents, method, ACTOR_S, argument)
        for name in agents:
            answer = answers.get(name, TimeoutError(f"no answer within {ACTOR_S:g} s"))
            if isinstance(answer, Exception):
                text = (str(answer).strip() or repr(answer)).splitlines()[0]
                raise HostError(f"hosts ray: the actor on node {name} does not {method}: {text}")
        return answers

    def _ask(
        self,
        agents: Mapping[str, Any],
        method: str,
        timeout_s: float,
        argument: Callable[[str], str | Sequence[str]],
    ) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            questions = {
                name: getattr(agent, method).remote(argument(name))
                for name, agent in agents.items()
            }
            return self._claims.ask(questions, timeout_s)

        return self._calls.call(f"{method} leases", ask, timeout_s + ANSWER_S) if agents else {}
