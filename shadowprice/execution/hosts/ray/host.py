"""A Ray cluster: slots hold its devices, one actor a node starts supervisors and reads their files.

Ray's table of nodes says who is lost; files say what became of leases, since they alone outlive
actors, nodes and drivers. Leases of a lost node are asked to end through the shared storage, which
a machine that only lost its Ray process sees at once; the others end by their time to live.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError
from shadowprice.execution.hosts import lease_files
from shadowprice.execution.hosts.protocol import (
    Exit,
    FoundNode,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.execution.hosts.ray.calls import CONNECT_S, RayThread, connect, import_ray
from shadowprice.execution.hosts.ray.fleet import Fleet
from shadowprice.execution.supervision.files import ending, take_lock, write_json

NAME = "ray"

CONFIRM_S = 10.0
"""For the SIGKILL that follows the grace, before a lease of a lost node counts as expired."""


def open_host(address: str, state: Path, run_id: str) -> RayHost:
    """A cluster by HOST:PORT; the running one, or one of this machine, if the address is empty.

    Raises
    ------
    InputError
        If the address is no HOST:PORT.
    HostError
        If Ray is not installed, the cluster cannot be reached, or the state cannot be written.
    """
    import_ray()
    lease_files.copy_supervisor(state.resolve())
    calls = RayThread()
    run = f"shadowprice-{run_id}"
    ours = connect(calls, address, run)
    return RayHost(calls, Fleet(calls, state.resolve(), run), ours=ours)


class RayHost:
    """Host of a cluster.

    Parameters
    ----------
    calls : RayThread
        The thread that is connected.
    fleet : Fleet
        Nodes of the cluster.
    ours : bool
        Whether the connection ends with the host.
    """

    name = NAME

    def __init__(self, calls: RayThread, fleet: Fleet, *, ours: bool) -> None:
        self._calls, self._fleet, self._ours = calls, fleet, ours
        self._orders: dict[LeaseKey, LaunchSpec] = {}
        self._seen: dict[LeaseKey, RankStatus] = {}
        self._deadline_s: dict[LeaseKey, float] = {}
        self._told_to_end: set[LeaseKey] = set()
        self._readers: dict[LeaseKey, lease_files.LeaseReader] = {}

    def discover(self) -> tuple[FoundNode, ...]:
        """Nodes with the devices that could be held for this run.

        Raises
        ------
        HostError
            If there are none, or a node does not share the state directory.
        """
        return self._fleet.discover()

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        """Have a supervisor started for each order; one that cannot be is seen as ended."""
        for order in orders:
            if order.key in self._orders:
                continue
            self._take(order)
            try:
                lease_files.write_order(self._with_devices(order))
            except OSError as error:
                refused = Exit(127, "unstartable", detail=f"order not written: {error}")
                self._seen[order.key] = RankStatus(Phase.ENDED, exit=refused)
        waiting = [order.key for order in orders if not self._is_over(order.key)]
        self._fleet.send("start", {name: (d,) for name, d in self._by_node(waiting).items()})

    def _take(self, order: LaunchSpec) -> None:
        self._orders[order.key] = order
        self._seen[order.key] = RankStatus(Phase.STARTING)
        self._touch(order.key)

    def _touch(self, key: LeaseKey) -> None:
        """Its supervisor may have seen a renewal now."""
        order = self._orders[key]
        lives_s = order.ttl_s + order.grace_s + CONFIRM_S
        self._deadline_s[key] = time.monotonic() + lives_s

    def _with_devices(self, order: LaunchSpec) -> LaunchSpec:
        """An order whose command sees the devices as Ray numbers them."""
        visible = self._fleet.visible(order.node)
        shown = ",".join(visible.get(device.uuid, "") for device in order.devices)
        return replace(order, env={**order.env, "CUDA_VISIBLE_DEVICES": shown})

    def _is_over(self, key: LeaseKey) -> bool:
        return self._seen[key].phase is Phase.ENDED

    def _by_node(self, keys: Collection[LeaseKey]) -> dict[str, list[str]]:
        """Directories of leases by node."""
        directories: dict[str, list[str]] = {}
        for key in keys:
            order = self._orders[key]
            directories.setdefault(order.node, []).append(str(order.directory))
        return directories

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Go on with leases of an earlier driver; those that have not begun never begin."""
        for order in orders:
            self._take(order)
            lease_files.adopt_or_void(order.directory)

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Have a new serial written for each, on its node."""
        live = [key for key in keys if not self._is_over(self._known(key))]
        wanted = {name: (found,) for name, found in self._by_node(live).items()}
        self._fleet.tell("renew", wanted)
        for key in live:
            self._touch(key)

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        """Have the wish written for each, on its node or, if that does not answer, here."""
        live = [key for key in keys if not self._is_over(self._known(key))]
        wanted = {name: (found, grace_s, reason) for name, found in self._by_node(live).items()}
        answered = self._fleet.tell("stop", wanted)
        for key in live:
            if self._orders[key].node not in answered:
                lease_files.ask_stop(self._orders[key].directory, grace_s, reason)

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Ask each node once; of lost nodes, and of what they left, the files tell."""
        live = [key for key in keys if not self._is_over(self._known(key))]
        lost = [key for key in live if self._fleet.is_lost(self._orders[key].node)]
        asked = [key for key in live if key not in set(lost)]
        wanted = {name: (found,) for name, found in self._by_node(asked).items()}
        answers = self._fleet.tell("poll", wanted)
        for name, found in wanted.items():
            if name in answers:
                told = dict(zip(found[0], answers[name], strict=True))
                self._note(asked, told)
        for key in lost:
            self._seen[key] = self._see_lost(key)
        return {key: self._seen[key] for key in keys}

    def _note(self, keys: Collection[LeaseKey], told: Mapping[str, Any]) -> None:
        for key in keys:
            directory = str(self._orders[key].directory)
            if directory in told:
                phase, report, ended = told[directory]
                exit_ = Exit(*ended) if ended is not None else None
                self._seen[key] = RankStatus(Phase(phase), report, exit_)
                self._told_to_end.discard(key)

    def _see_lost(self, key: LeaseKey) -> RankStatus:
        """A lease of a node that does not answer, by its files on the shared storage."""
        order = self._orders[key]
        if key not in self._told_to_end:
            self._told_to_end.add(key)
            lease_files.ask_stop(order.directory, order.grace_s, f"node {order.node} was lost")
        seen = self._readers.setdefault(key, lease_files.LeaseReader(order.directory)).see(
            doubt=True
        )
        if seen.phase is Phase.LOST and time.monotonic() > self._deadline_s[key]:
            seen = self._bury_lost(order, seen)
        if seen.phase is Phase.ENDED:
            return seen
        return RankStatus(Phase.LOST, seen.report)

    def _bury_lost(self, order: LaunchSpec, seen: RankStatus) -> RankStatus:
        """A lease whose supervisor holds no lock, and must have ended it if it lives."""
        detail = f"node {order.node} was lost, and nobody renewed the lease since"
        lock = take_lock(str(order.directory))
        if lock is None:
            return seen
        try:
            write_json(
                f"{order.directory}/exit.json", ending(-9, "expired", forced=True, detail=detail)
            )
        finally:
            os.close(lock)
        return RankStatus(Phase.ENDED, seen.report, Exit(-9, "expired", True, detail))

    def _known(self, key: LeaseKey) -> LeaseKey:
        if key not in self._orders:
            raise HostError(f"lease {key.folder} of job {key.job} was neither started nor adopted")
        return key

    def lost_nodes(self) -> frozenset[str]:
        """Nodes that Ray counts as dead, or whose actor does not answer."""
        return self._fleet.lost()

    def close(self) -> None:
        """Give devices back, unless leases still run there: then the next driver finds all."""
        try:
            if all(self._is_over(key) for key in self._orders):
                self._fleet.release()
        finally:
            if self._ours:
                shutdown = import_ray().shutdown
                self._calls.call("let this driver go", shutdown, CONNECT_S)
