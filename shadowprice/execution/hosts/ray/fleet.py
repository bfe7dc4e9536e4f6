"""The nodes of a cluster that a run uses: which there are, which are lost, their actors' answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError
from shadowprice.execution.hosts.protocol import FoundNode
from shadowprice.execution.hosts.ray.calls import RayThread, import_ray
from shadowprice.execution.hosts.ray.claims import (
    ACTOR_S,
    SLOT_S,
    Slot,
    SlotClaims,
    found_node,
    slots_of,
)
from shadowprice.execution.hosts.ray.nodes import Member, check_shared, members

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


@dataclass
class FleetNode:
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


class Fleet:
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
        self._nodes: dict[str, FleetNode] = {}
        self._table: tuple[Member, ...] = ()
        self._table_s = -math.inf
        self._silent_s = math.inf  # since when the head does not answer

    def discover(self) -> tuple[FoundNode, ...]:
        """Nodes with the devices that could be held for this run.

        Raises
        ------
        HostError
            If there are none, or a node does not share the state directory.
        """
        found = self._members(fresh=True)
        if not found:
            raise HostError("hosts ray: no node of the cluster has a GPU or a CPU; see ray status")
        for node in self._admit([member for member in found if self._is_new(member)]):
            self._nodes[node.member.name] = node
        usable = [node for node in self._nodes.values() if node.slots and not node.lost]
        if not usable:
            wanted = ", ".join(f"{member.slots} on {member.name}" for member in found)
            raise HostError(
                f"hosts ray: none of the devices ({wanted}) is free, each with its share of the "
                "cores; see ray status for who holds them"
            )
        nodes = (found_node(node.member, node.slots) for node in usable)
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

    def tell(
        self, method: str, arguments: Mapping[str, tuple[Any, ...]], timeout_s: float = ANSWER_S
    ) -> dict[str, Any]:
        """Ask actors of nodes that are not lost; what those answered that did."""
        agents = {name: self._nodes[name].agent for name in arguments if not self.is_lost(name)}
        answers = self._ask(agents, method, timeout_s, lambda name: arguments[name])
        for name, answer in [*answers.items()]:
            node = self._nodes[name]
            if not isinstance(answer, Exception):
                node.answered_s = time.monotonic()
                continue
            del answers[name]
            if isinstance(answer, self._ray.exceptions.ActorDiedError) and name in {
                member.name for member in self._members() if member == node.member
            }:
                node.agent = self._agent(node.member)  # its node lives: it was killed alone
                groups = [slot.group for slot in node.slots]
                self._calls.call("take a call", lambda: node.agent.hold.remote(groups), ANSWER_S)  # noqa: B023
        return answers

    def send(self, method: str, arguments: Mapping[str, tuple[Any, ...]]) -> None:
        """Tell actors of nodes that are not lost, without waiting for an answer."""
        agents = {name: self._nodes[name].agent for name in arguments if not self.is_lost(name)}

        def send() -> None:
            for name, agent in agents.items():
                getattr(agent, method).remote(*arguments[name])

        self._calls.call(f"{method} leases", send, ANSWER_S)

    def release(self) -> None:
        """Give devices back and end the actors."""
        agents = [node.agent for node in self._nodes.values()]
        self._calls.call("give devices back", lambda: self._claims.release(agents), 4 * ANSWER_S)

    def _is_new(self, member: Member) -> bool:
        known = self._nodes.get(member.name)
        return known is None or known.lost or known.member.node_id != member.node_id

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
            found = self._admit([member])
        except HostError:
            found = ()
        if found and before <= {slot.device.uuid for slot in found[0].slots}:
            self._nodes[name] = found[0]
        else:
            self._nodes[name].retry_s = time.monotonic() + RETURN_S

    def _admit(self, new: Sequence[Member]) -> tuple[FleetNode, ...]:
        """Hold the devices of nodes, start their actors, clean up what earlier ones left there."""
        if not new:
            return ()
        alive = self._members()
        held = self._calls.call(
            "reserve devices", lambda: self._claims.hold(alive), SLOT_S + 2 * ANSWER_S
        )
        new = [member for member in new if held.get(member.node_id)]
        agents = {member.name: self._agent(member) for member in new}
        gpus = {m.node_id: held[m.node_id] for m in new if m.gpu_type != "cpu"}
        visible = self._calls.call(
            "say which GPU a slot has", lambda: self._claims.read_devices(gpus), ACTOR_S
        )
        groups = {member.name: held[member.node_id] for member in new}
        abouts = self._ask_all(agents, "about")
        check_shared(self._state, lambda name: self._ask_all(agents, "probe", lambda _: (name,)))
        self._ask_all(agents, "sweep")
        self._ask_all(agents, "hold", lambda name: (list(groups[name]),))
        return tuple(
            FleetNode(
                member,
                slots_of(member, groups[member.name], visible, abouts[member.name]["gpus"]),
                agents[member.name],
                time.monotonic(),
            )
            for member in new
        )

    def _agent(self, member: Member) -> Any:
        return self._calls.call(
            f"start an actor on {member.name}",
            lambda: self._claims.agent(member.node_id),
            ANSWER_S,
        )

    def _ask_all(
        self,
        agents: Mapping[str, Any],
        method: str,
        arguments: Callable[[str], tuple[Any, ...]] = lambda _: (),
    ) -> dict[str, Any]:
        """Answers of all these actors, which may just be starting.

        Raises
        ------
        HostError
            If one does not answer.
        """
        answers = self._ask(agents, method, ACTOR_S, arguments)
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
        arguments: Callable[[str], tuple[Any, ...]],
    ) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            questions = {
                name: getattr(agent, method).remote(*arguments(name))
                for name, agent in agents.items()
            }
            return self._claims.ask(questions, timeout_s)

        return self._calls.call(f"{method} leases", ask, timeout_s + ANSWER_S) if agents else {}
