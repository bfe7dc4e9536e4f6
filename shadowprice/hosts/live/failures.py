"""Failures that are not a job's own, and jobs that crash at once and have to wait for free devices."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from shadowprice.hosts.live.lease import Ending, HeldLease, JobRecord, Kind, has_lived
from shadowprice.hosts.live.run import RealRun

MOMENTS_S = 10.0
"""Jobs of a node that fail within so long of one another [s] have a cause in common."""


@dataclass(frozen=True)
class _End:
    """An end of a lease of a job."""

    time_s: float
    nodes: frozenset[str]
    failed: bool


class CommonFailures:
    """Last ends of the leases of a run, by which a failure of all that was on a node is known.

    A driver that takes a run over knows of none: what followed from them is in the journal.
    """

    def __init__(self, run: RealRun) -> None:
        self._run = run
        self._last: dict[int, _End] = {}

    def include(self, lease: HeldLease, end: Ending | None, step: int, now_s: float) -> bool:
        """True if a lease ends, and fails, with all other jobs on its nodes, or, alone there, of the run.

        A job that never came to a checkpoint, nor lasted a minute, has failed by itself.

        Parameters
        ----------
        step : int
            Step that its job has committed.
        """
        run, row, nodes = self._run, lease.grant.row, _nodes(lease)
        others = [end for of, end in self._ends(now_s) if of != row]
        self._last[row] = _End(now_s, nodes, _failed(end))
        tracked = run.tracked[row]
        if not (tracked.lived or has_lived(tracked, lease, step, now_s, run.limits)):
            return False
        near = [end for end in others if end.nodes & nodes] or others
        return bool(near) and all(end.failed for end in near)

    def _ends(self, now_s: float) -> Iterator[tuple[int, _End]]:
        """Ends of moments ago, those that are not concluded yet, and leases that go on."""
        for row, end in self._last.items():
            if now_s - end.time_s <= MOMENTS_S:
                yield row, end
        for tracked in self._run.tracked:
            lease = tracked.lease
            # Of one that has just begun, or is to end, nothing can be said.
            if lease is None or (lease.end.stop_why and not lease.gone):
                continue
            if lease.gone or now_s - lease.grant.granted_s > MOMENTS_S:
                yield tracked.row, _End(now_s, _nodes(lease), _failed(lease.ending()))


def _nodes(lease: HeldLease) -> frozenset[str]:
    return frozenset(device.node for device in lease.grant.devices)


def _failed(end: Ending | None) -> bool:
    return end is not None and end.kind is Kind.FAILED


def may_return(run: RealRun, tracked: JobRecord, freed: Collection[str] = ()) -> bool:
    """True if a job that failed may be offered to the policy again, now that it has waited.

    One for which others were stopped since, and that has not lived, waits for free devices: a job that
    crashes at once would stop them again each time.

    Parameters
    ----------
    freed : collection of str
        Uuids of devices that are free from now on.
    """
    if not tracked.stopped_others:
        return True
    instance = run.measuring.instance
    rates = instance.workload.throughput
    free: dict[int, int] = {}
    for node, column in enumerate(instance.cluster.type_of_node):
        if rates is None or rates[tracked.row, column] > 0:
            free[column] = free.get(column, 0) + run.devices.count_free(node, freed)
    return max(free.values(), default=0) >= tracked.job.gpus
