"""A Ray cluster: slots hold its devices, one actor a node starts supervisors.

Ray's table of nodes, and actors that do not answer, say who is lost; files say what became of
leases, since they alone outlive actors, nodes and drivers. Leases of a lost node are asked to end,
which a machine that only lost its Ray process sees at once; the others end by their time to live.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shadowprice.hosts import lease_files
from shadowprice.hosts.protocol import (
    DiscoveredNode,
    HostKind,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.hosts.ray.cluster import RayNodes
from shadowprice.hosts.ray.connection import CONNECT_S, RayThread, connect, import_ray
from shadowprice.hosts.shared_storage import SharedStorageHost, StoredLease
from shadowprice.hosts.supervision.files import ending

CONFIRM_S = 10.0
"""For the SIGKILL that follows the grace, before a lease of a lost node counts as expired."""
LAUNCH_S = 30.0
"""After which a supervisor that has not come will not come."""
BEAT_S = 1.0
"""Between two signs of life to the actors, which say what they are to have started."""


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
    calls = RayThread()
    run = f"shadowprice-{run_id}"
    ours = connect(calls, address, run)
    return RayHost(calls, RayNodes(calls, state.resolve(), run), state, ours=ours)


@dataclass
class RayLease(StoredLease):
    """A lease of a node of the cluster.

    Parameters
    ----------
    asked_s : float
        When its supervisor was asked for; infinity if another driver did.
    swept_s : float
        When its node was last asked to end what its dead supervisor left.
    expires_s : float
        When it has ended for want of a renewal, if its supervisor works.
    asked_to_end : bool
        Whether it was asked to end since its node is lost.
    """

    asked_s: float = math.inf
    swept_s: float = -math.inf
    expires_s: float = 0.0
    asked_to_end: bool = False

    def __post_init__(self) -> None:
        """Count its time to live from now on."""
        super().__post_init__()
        self.touch()

    def touch(self) -> None:
        """Its supervisor may have seen a renewal now."""
        self.expires_s = time.monotonic() + self.order.ttl_s + self.order.grace_s + CONFIRM_S


class RayHost(SharedStorageHost[RayLease]):
    """Host of a cluster.

    Parameters
    ----------
    calls : RayThread
        The thread that is connected.
    cluster : RayNodes
        Nodes of the cluster.
    ours : bool
        Whether the connection ends with the host.
    """

    name = "ray"
    lease_type = RayLease

    def __init__(self, calls: RayThread, cluster: RayNodes, state: Path, *, ours: bool) -> None:
        super().__init__(state)
        self._calls, self._cluster, self._ours = calls, cluster, ours
        self._beat_s = -math.inf

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes with the devices that could be held for this run.

        Raises
        ------
        HostError
            If there are none, or a node does not share the state directory.
        """
        return self._cluster.discover()

    def _environment(self, order: LaunchSpec) -> Mapping[str, str]:
        """Devices as Ray numbers them."""
        visible = self._cluster.visible(order.node)
        shown = ",".join(visible.get(device.uuid, "") for device in order.devices)
        return {**order.env, "CUDA_VISIBLE_DEVICES": shown}

    def _launch(self, leases: Sequence[RayLease]) -> None:
        for lease in leases:
            lease.asked_s = time.monotonic()
        self._cluster.send("start", _by_node(leases))

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Write a new serial for each."""
        super().renew(keys)
        for lease in self._known(keys):
            lease.touch()

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Read the files of those that changed."""
        self._beat()
        return super().poll(keys)

    def _look(self, lease: RayLease) -> RankStatus:
        if self._cluster.is_lost(lease.order.node):
            return self._look_at_lost(lease)
        status, now = lease.reader.status(), time.monotonic()
        if status.phase is Phase.LOST:
            # Its supervisor died, but not its node: what is left there ends.
            if now - lease.swept_s >= BEAT_S:
                lease.swept_s = now
                self._cluster.send("sweep", _by_node([lease]))
            return RankStatus(Phase.RUNNING, status.report)
        if status.phase is Phase.STARTING and now - lease.asked_s >= LAUNCH_S:
            lease.void(f"no supervisor began within {LAUNCH_S:g} s")
        return status

    def _look_at_lost(self, lease: RayLease) -> RankStatus:
        """A lease of a node that does not answer: of its files, only an end is believed."""
        order = lease.order
        if not lease.asked_to_end and not lease.is_over:
            lease.asked_to_end = True
            lease_files.ask_stop(order.directory, order.grace_s, f"node {order.node} was lost")
        status = lease.reader.status(doubt=True)
        if status.phase is Phase.LOST and time.monotonic() > lease.expires_s:
            why = f"node {order.node} was lost, and nobody renewed the lease since"
            # Its supervisor, if it lives, has ended the command for want of a renewal.
            end = ending(-9, "expired", forced=True, detail=why)
            lease_files.write_off(order.directory, end)
            status = lease.reader.status(doubt=True)
        return status if status.phase is Phase.ENDED else RankStatus(Phase.LOST, status.report)

    def _beat(self) -> None:
        """Show actors that a driver lives, and what is to run on their nodes; see who answers."""
        now = time.monotonic()
        if now - self._beat_s < BEAT_S:
            return
        self._beat_s = now
        self._cluster.beat(
            _by_node([lease for lease in self._leases.values() if not lease.is_over])
        )

    def lost_nodes(self) -> frozenset[str]:
        """Nodes that Ray counts as dead, or whose actor does not answer."""
        self._beat()
        return self._cluster.lost()

    def close(self) -> None:
        """Give devices back, unless leases still run there: then the next driver finds all."""
        try:
            if all(lease.is_over for lease in self._leases.values()):
                self._cluster.release()
        finally:
            if self._ours:
                shutdown = import_ray().shutdown
                self._calls.call("let this driver go", shutdown, CONNECT_S)


def _by_node(leases: Collection[RayLease]) -> dict[str, list[str]]:
    """Directories of leases by node."""
    found: dict[str, list[str]] = {}
    for lease in leases:
        found.setdefault(lease.order.node, []).append(str(lease.directory))
    return found


HOST = HostKind(name="ray", open_host=open_host)
