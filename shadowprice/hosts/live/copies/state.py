"""Known state of the copies of a run's jobs; it follows from the events that the journal has."""

from __future__ import annotations

import math
from collections.abc import Callable

from shadowprice.hosts.live.copies.rates import CopyRates
from shadowprice.hosts.live.copies.rounds import (
    CopyGrant,
    JobRound,
    RoundEvents,
    RoundOutcome,
    RoundStart,
)
from shadowprice.hosts.live.lease import RUNNING, WAITING, HeldLease, JobRecord, Kind
from shadowprice.hosts.live.outcomes.lease_outcome import CANCELLED
from shadowprice.hosts.live.run import RealRun

AVOIDED_ROUNDS = 4
"""So long a job does without a node on which a copy of it failed, if it has others."""


class CopyState:
    """State of a run whose jobs run as several copies; changed by events only.

    Parameters
    ----------
    make_leases : callable
        The leases of the copies of a grant, by number.

    Attributes
    ----------
    under_way : dict of int to JobRound
        By row, jobs with copies in the round under way.
    arrived : set of int
        Rows of jobs that arrived.
    last : list of int
        Row that ran last on each node, -1 for none.
    ran_s : list of float
        Time each job has had copies [s].
    round : int
        Number of the last round that began, -1 before the first.
    """

    def __init__(
        self, run: RealRun, rates: CopyRates, make_leases: Callable[[CopyGrant], list[HeldLease]]
    ) -> None:
        self.run, self.rates, self._make_leases = run, rates, make_leases
        self.under_way: dict[int, JobRound] = {}
        self.arrived: set[int] = set()
        self.last = [-1] * len(run.devices.nodes)
        self.ran_s = [0.0] * len(run.tracked)
        self.round = -1
        self._failed: dict[tuple[int, int], int] = {}

    @property
    def over(self) -> bool:
        """True if no job goes on."""
        return all(tracked.over for tracked in self.run.tracked)

    def waiting(self) -> list[JobRecord]:
        """Jobs that arrived, have no copies, and are not over."""
        rows = sorted(self.arrived - set(self.under_way))
        return [self.run.tracked[row] for row in rows if not self.run.tracked[row].over]

    def avoids(self, row: int, node: int) -> bool:
        """True if a copy of the job failed on the node not long ago."""
        return self.round - self._failed.get((row, node), -AVOIDED_ROUNDS) < AVOIDED_ROUNDS

    def take_in(self, events: RoundEvents) -> None:
        """Bring the state up to date with events that are written down."""
        run = self.run
        run.devices.lost = set(events.lost)
        for row in events.arrived:
            self.arrived.add(row)
            run.tracked[row].view = WAITING
        for row, epoch, copy in events.confirmed:
            run.confirm(row, epoch, copy)
        for row in events.withdrawn:
            run.tracked[row].over, run.tracked[row].return_s = CANCELLED, math.inf
        for row in events.retried:
            run.take_up(row)
        for counted in events.counted:
            self.under_way[counted.row].counted = counted
        for concluded in events.concluded:
            self._conclude(concluded)
        if events.started is not None:
            self._start(events.started)

    def _start(self, started: RoundStart) -> None:
        self.round = started.number
        for grant in started.grants:
            job, leases = self.run.tracked[grant.row], self._make_leases(grant)
            job.epoch, job.step, job.view = grant.epoch, grant.from_step, RUNNING
            job.return_s, job.copies = math.inf, leases
            for lease, copy in zip(leases, grant.copies, strict=True):
                self.run.devices.hold(lease.devices, (job.job.name, grant.epoch))
                self.last[copy.node] = grant.row
            self.under_way[grant.row] = JobRound(grant, leases)

    def _conclude(self, concluded: RoundOutcome) -> None:
        outcome = concluded.outcome
        round_, job = self.under_way.pop(outcome.row), self.run.tracked[outcome.row]
        assert round_.counted is not None
        for end, lease, copy in zip(
            round_.counted.ends, round_.leases, round_.grant.copies, strict=True
        ):
            self.run.release(lease, confirmed=end is not None)
            if end is not None and end.kind is Kind.FAILED:
                self._failed[outcome.row, copy.node] = self.round
        job.copies, job.view = [], WAITING
        self.run.conclude(outcome)
        self.ran_s[outcome.row] += max(outcome.end_s - round_.grant.begun_s, 0.0)
        for measured in concluded.measured:
            self.rates.learn(measured)
