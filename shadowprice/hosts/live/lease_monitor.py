"""Looking after leases: renew them, see how they do, stop those that hang."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from shadowprice.hosts.absent import AbsentDevices
from shadowprice.hosts.live.clock import Clock
from shadowprice.hosts.live.lease import FAILED_WHY, HOST_FAILED_WHY, HeldLease
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.measuring import number
from shadowprice.hosts.protocol import Host, Phase

_LOST_NODES_S = 0.5
"""Between two questions for lost nodes [s]."""


class LeaseMonitor:
    """Renews and polls the leases of a host, and stops those that hang.

    Parameters
    ----------
    host : Host
        Where leases run.
    on_tick : callable
        Called at every look, to redraw a view for instance.
    absent : AbsentDevices
        Nodes and devices that were there when the run began, and were not found again.

    Attributes
    ----------
    lost : frozenset of str
        Nodes that do not answer.
    missing : frozenset of str
        Uuids of devices that were there when the run began, and are not now.
    drained : frozenset of str
        Uuids of devices that are to be given out no more.
    asked_s : float
        Time that the last look waited for an answer on absent devices [s].
    """

    def __init__(
        self,
        host: Host,
        clock: Clock,
        limits: Limits,
        on_tick: Callable[[], None],
        absent: AbsentDevices,
    ) -> None:
        self.host, self.clock, self.limits = host, clock, limits
        self._absent = absent
        self.lost, self.missing = self._absent.nodes, self._absent.devices
        self.drained: frozenset[str] = frozenset()
        self.on_tick = on_tick
        self._renew_s = self._lost_s = -math.inf
        self.asked_s = 0.0

    def look(self, leases: Sequence[HeldLease]) -> float:
        """Look at all leases once; returns the time [s]."""
        now_s = self.clock.now_s()
        known = [lease for lease in leases if not lease.unstarted]
        keys = [key for lease in known for key in lease.grant.keys]
        self.renew(leases)
        self.asked_s = 0.0
        if now_s >= self._lost_s:
            begun_s = self.clock.now_s()
            self._absent.look(now_s)
            self.asked_s = self.clock.now_s() - begun_s
            self.missing = self._absent.devices
            self.lost = self.host.lost_nodes() | self._absent.nodes
            self._lost_s = now_s + _LOST_NODES_S
        seen = self.host.poll(keys)
        for lease in known:
            lease.seen = {key: seen[key] for key in lease.grant.keys if key in seen}
            self._note(lease, now_s)
            self._check(lease, now_s)
        for lease in leases:
            if lease.unstarted and now_s - lease.grant.granted_s > self.limits.hang_s:
                limit = f"{self.limits.hang_s:g} s"
                self.stop([lease], f"{FAILED_WHY}its start was not prepared within {limit}")
        self.on_tick()
        return now_s

    def renew(self, leases: Sequence[HeldLease]) -> None:
        """Let leases go on if that is due."""
        now_s = self.clock.now_s()
        if now_s >= self._renew_s:
            # Those that were asked to stop are renewed too: their end must be theirs, not the TTL's.
            known = [lease for lease in leases if not (lease.end.abandoned or lease.unstarted)]
            self.host.renew([key for lease in known for key in lease.grant.keys])
            self._renew_s = now_s + self.limits.ttl_s / 4.0

    def stop(self, leases: Collection[HeldLease], why: str) -> None:
        """Ask leases to end; those that were asked before are not asked again."""
        fresh = [lease for lease in leases if not lease.end.stop_why]
        now_s = self.clock.now_s()
        for lease in fresh:
            lease.end.stop_why = why
            lease.end.stop_by_s = now_s + self.limits.grace_s + self.limits.confirm_s
        keys = [key for lease in fresh if not lease.unstarted for key in lease.grant.keys]
        if keys:
            self.host.stop(keys, self.limits.grace_s, why)
        for lease in fresh:
            if lease.unstarted:
                self.void(lease)

    def void(self, lease: HeldLease) -> None:
        """Let a lease whose start was not carried out never begin; it is seen as ended."""
        lease.unstarted = False
        self.host.adopt(lease.grant.orders)

    def over(self, lease: HeldLease) -> bool:
        """True if nothing is to be waited for: it is gone, lost, or cannot be confirmed gone."""
        return lease.gone or lease.lost or self.clock.now_s() >= lease.end.stop_by_s

    def wait_for(self, lease: HeldLease, leases: Sequence[HeldLease]) -> None:
        """Wait until a lease that was asked to stop is over, looking after all the others."""
        while not self.over(lease):
            self.clock.sleep(min(self.limits.poll_s, 0.01))
            self.look(leases)

    def _note(self, lease: HeldLease, now_s: float) -> None:
        """Update a lease from a poll of its ranks."""
        progress = lease.progress
        if lease.gone:
            lease.end.ended_s = min(lease.end.ended_s, now_s)
        if progress.running_s == math.inf and lease.began:
            progress.running_s = progress.moved_s = now_s
        # Also of a command whose report is damaged later, when it is stopped and writes no other.
        progress.reports = progress.reports or "step" in lease.report
        step = int(number(lease.report, "step", progress.step))
        if step != progress.step:
            progress.step, progress.moved_s = step, now_s
        if progress.stepping_s == math.inf and lease.runs and self._steps(lease):
            progress.stepping_s = now_s

    def _steps(self, lease: HeldLease) -> bool:
        """True if it makes progress: a step was reported, or nothing will ever be."""
        if not lease.report:
            return all(seen.phase is Phase.RUNNING for seen in lease.seen.values())
        return number(lease.report, "steps", 0) > 0

    def _check(self, lease: HeldLease, now_s: float) -> None:
        """Stop what does not start, does not go on, or has lost a part of its gang."""
        limits, begun_s = self.limits, max(lease.grant.granted_s, lease.ordered_s)
        if lease.end.abandoned:
            self._check_abandoned(lease, now_s)
        if lease.end.abandoned or lease.end.stop_why or lease.gone:
            return
        if lease.broken:
            self._check_gang(lease, now_s)
        elif not lease.runs and now_s - begun_s > limits.start_s:
            self.stop([lease], f"{HOST_FAILED_WHY}did not start within {limits.start_s:g} s")
        elif self._reports(lease) and now_s - lease.progress.moved_s > limits.hang_s:
            self.stop([lease], f"{FAILED_WHY}made no step for {limits.hang_s:g} s")

    def _reports(self, lease: HeldLease) -> bool:
        """True if its command reports steps: it has, or an earlier lease of the job had."""
        running = lease.progress.running_s < math.inf
        return "step" in lease.report or (lease.progress.reports and running)

    def _check_abandoned(self, lease: HeldLease, now_s: float) -> None:
        """Its node is back, say; what it was asked before may not have reached it."""
        end, limits = lease.end, self.limits
        if not lease.gone and not lease.lost and now_s >= end.ask_s:
            end.ask_s = now_s + limits.grace_s + limits.confirm_s
            self.host.stop(lease.grant.keys, limits.grace_s, end.stop_why or "it was given up")

    def _check_gang(self, lease: HeldLease, now_s: float) -> None:
        """A rank has ended before the others: at once if it failed, else after the grace."""
        if any(exit.code != 0 for _, exit in lease.exits):
            self.stop([lease], "another rank of the gang ended")
        elif lease.end.part_ended_s == math.inf:
            lease.end.part_ended_s = now_s
        elif now_s - lease.end.part_ended_s > self.limits.grace_s:
            rank = min(order.key.rank for order, _ in lease.exits)
            self.stop([lease], f"{FAILED_WHY}rank {rank} of the gang ended long before the others")
