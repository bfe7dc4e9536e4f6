"""Known state of the copies of a run's jobs, and how a new driver learns it from the ledger.

Each fact is one entry of the journal, written in the same transaction as its events and before
anything follows from it. Whoever reads the entries again has the books of the driver that wrote them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from shadowprice.execution.real.copies.rates import ForkRates, MeasuredCopy
from shadowprice.execution.real.lease import RUNNING, WAITING, Ending, HeldLease, JobRecord, Kind
from shadowprice.execution.real.lease_outcome import CANCELLED, LeaseOutcome
from shadowprice.execution.real.run import RealRun

ARRIVED, ROUND, COUNTED, CONCLUDED, CONFIRMED, WITHDRAWN, NODES = (
    "fork arrived",
    "fork round",
    "fork counted",
    "fork concluded",
    "fork confirmed",
    "fork withdrawn",
    "fork nodes",
)

AVOIDED_ROUNDS = 4
"""So long a job does without a node on which a copy of it failed, if it has others."""


@dataclass(frozen=True)
class Copy:
    """One copy of a job in a round, on one whole node.

    Parameters
    ----------
    node : int
        Position of its node.
    gpus : int
        Devices of the node that it is given; it holds all.
    steps : int
        Steps it is to make at most.
    rate : float
        Steps per second that are expected.
    """

    node: int
    gpus: int
    steps: int
    rate: float


@dataclass
class Fork:
    """A job in a round.

    Parameters
    ----------
    epoch : int
        Of all copies; it names their average too.
    from_step : int
        Step of the checkpoint all copies start from.
    before : int
        Committed step before: a later one, if that checkpoint was found damaged.
    copies : tuple of Copy
        By number.

    Attributes
    ----------
    steps : dict of int to int, or None
        Steps of each copy that are averaged, None before they are counted.
    ends : tuple of Ending or None
        How each copy ended, as seen when they were counted; None if its processes may be left.
    """

    row: int
    epoch: int
    from_step: int
    before: int
    begun_s: float
    end_s: float
    copies: tuple[Copy, ...]
    steps: dict[int, int] | None = None
    ends: tuple[Ending | None, ...] = ()
    leases: list[HeldLease] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """For the journal."""
        plain = {name: getattr(self, name) for name in ("row", "epoch", "from_step", "before")}
        times = {"begun_s": self.begun_s, "end_s": self.end_s}
        return plain | times | {"copies": [asdict(copy) for copy in self.copies]}

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> Fork:
        """Inverse of :meth:`record`."""
        return cls(**{**data, "copies": tuple(Copy(**copy) for copy in data["copies"])})


class Books:
    """Books of a run whose jobs are forked; changed by entries only.

    Parameters
    ----------
    make_lease : callable
        The lease of a copy of a fork, by its number.

    Attributes
    ----------
    forks : dict of int to Fork
        By row, those of the round under way.
    arrived : set of int
        Rows of jobs that arrived.
    last : list of int
        Row that ran last on each node, -1 for none.
    ran_s : dict of int to float
        Time each job has had copies [s].
    round : int
        Number of the last round that began, -1 before the first.
    """

    def __init__(
        self, run: RealRun, rates: ForkRates, make_lease: Callable[[Fork, int], HeldLease]
    ) -> None:
        self.run, self.rates, self._make_lease = run, rates, make_lease
        self.forks: dict[int, Fork] = {}
        self.arrived: set[int] = set()
        self.last = [-1] * len(run.devices.nodes)
        self.ran_s: dict[int, float] = dict.fromkeys(range(len(run.tracked)), 0.0)
        self.round = -1
        self._failed: dict[tuple[int, int], int] = {}
        self._apply: Mapping[str, Callable[[Any], None]] = {
            ARRIVED: self._arrived,
            ROUND: self._round,
            COUNTED: self._counted,
            CONCLUDED: self._concluded,
            CONFIRMED: self._confirmed,
            WITHDRAWN: self._withdrawn,
            NODES: self._nodes,
        }

    @contextmanager
    def keep(self, entry: str, data: Any) -> Iterator[None]:
        """Write an entry in one transaction with the events inside, and apply it once it is durable."""
        with self.run.ledger.transaction():
            yield
            self.run.ledger.answer(entry, data)
        self.apply(entry, data)

    def apply(self, entry: str, data: Any) -> None:
        """Bring the books up to date with an entry that is durable."""
        self._apply[entry](data)

    def read(self) -> None:
        """Apply all entries of earlier drivers."""
        for entry, data in self.run.ledger.answers():
            self.apply(entry, data)

    def waiting(self) -> list[JobRecord]:
        """Jobs that arrived, have no copies, and are not over."""
        rows = sorted(self.arrived - set(self.forks))
        return [self.run.tracked[row] for row in rows if not self.run.tracked[row].over]

    def avoids(self, row: int, node: int) -> bool:
        """True if a copy of the job failed on the node not long ago."""
        return self.round - self._failed.get((row, node), -AVOIDED_ROUNDS) < AVOIDED_ROUNDS

    def _arrived(self, row: int) -> None:
        self.arrived.add(row)
        self.run.tracked[row].view = WAITING

    def _round(self, data: Mapping[str, Any]) -> None:
        self.round = data["number"]
        for record in data["forks"]:
            fork = Fork.from_record(record)
            tracked = self.run.tracked[fork.row]
            tracked.epoch, tracked.step, tracked.view = fork.epoch, fork.from_step, RUNNING
            tracked.return_s = math.inf
            fork.leases = [self._make_lease(fork, number) for number in range(len(fork.copies))]
            for lease, copy in zip(fork.leases, fork.copies, strict=True):
                self.run.devices.hold(lease.devices, (tracked.job.name, fork.epoch))
                self.last[copy.node] = fork.row
            tracked.copies = list(fork.leases)
            self.forks[fork.row] = fork

    def _counted(self, data: Mapping[str, Any]) -> None:
        fork = self.forks[data["row"]]
        fork.steps = {int(copy): n for copy, n in data["steps"].items()}
        fork.ends = tuple(None if end is None else _ending(end) for end in data["ends"])

    def _concluded(self, data: Mapping[str, Any]) -> None:
        what = LeaseOutcome(**data["conclusion"])
        fork, tracked = self.forks.pop(what.row), self.run.tracked[what.row]
        for end, lease in zip(fork.ends, fork.leases, strict=True):
            holder = (tracked.job.name, fork.epoch)
            if end is None:
                self.run.devices.write_off(lease.devices, holder)
                tracked.written_off.append(lease)
            else:
                self.run.devices.free(lease.devices, holder)
        for end, copy in zip(fork.ends, fork.copies, strict=True):
            if end is not None and end.kind is Kind.FAILED:
                self._failed[fork.row, copy.node] = self.round
        tracked.copies = []
        tracked.step, tracked.tries, tracked.over = what.step, what.tries, what.over
        tracked.return_s, tracked.view = what.return_s, WAITING
        self.ran_s[what.row] += max(what.end_s - fork.begun_s, 0.0)
        for measured in data["measured"]:
            self.rates.learn(MeasuredCopy(**measured))

    def _confirmed(self, data: Sequence[int]) -> None:
        row, epoch, copy = data
        tracked = self.run.tracked[row]
        for lease in [
            each for each in tracked.written_off if (each.epoch, each.copy) == (epoch, copy)
        ]:
            tracked.written_off.remove(lease)
            self.run.devices.free(lease.devices, (tracked.job.name, epoch))

    def _nodes(self, lost: Sequence[str]) -> None:
        self.run.devices.lost = set(lost)

    def _withdrawn(self, row: int) -> None:
        self.run.tracked[row].over, self.run.tracked[row].return_s = CANCELLED, math.inf


def _ending(data: Mapping[str, Any]) -> Ending:
    """Inverse of ``dataclasses.asdict``."""
    return Ending(**{**data, "kind": Kind(data["kind"])})
