"""Rounds of a real run of copies: what is granted, counted and concluded, as the journal has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from shadowprice.hosts.live.copies.rates import MeasuredCopy
from shadowprice.hosts.live.lease import Ending, HeldLease, Kind
from shadowprice.hosts.live.outcomes.lease_outcome import LeaseOutcome

_GOOD = frozenset({Kind.FINISHED, Kind.PREEMPTED})


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


@dataclass(frozen=True)
class CopyGrant:
    """The copies of a job in a round.

    Parameters
    ----------
    epoch : int
        Of all copies; it names their average too.
    from_step : int
        Step of the checkpoint all copies start from.
    before : int
        Committed step before: a later one, if that checkpoint was found damaged.
    begun_s, end_s : float
        When the round began for it, and when it ends [s].
    copies : tuple of Copy
        By number.
    """

    row: int
    epoch: int
    from_step: int
    before: int
    begun_s: float
    end_s: float
    copies: tuple[Copy, ...]


@dataclass(frozen=True)
class RoundStart:
    """A round that begins: its number, the copies of each job, and the CPU time of the plan [s]."""

    number: int
    grants: list[CopyGrant]
    cpu_s: float


@dataclass(frozen=True)
class CountedCopies:
    """Copies of a job that are averaged, decided before any average is made.

    Parameters
    ----------
    steps : tuple of int
        Steps of each copy that are averaged, 0 for one that is not.
    ends : tuple of Ending or None
        How each copy ended, as seen when they were counted; None if its processes may be left.
    """

    row: int
    steps: tuple[int, ...]
    ends: tuple[Ending | None, ...]


def contributes(end: Ending | None) -> bool:
    """True if what a copy committed is averaged: those that failed or were lost are left out."""
    return end is not None and end.kind in _GOOD


@dataclass(frozen=True)
class RoundOutcome:
    """A round that is over for a job: how it ended as a whole, what follows, what was measured."""

    end: Ending
    outcome: LeaseOutcome
    measured: list[MeasuredCopy]


@dataclass(frozen=True)
class RoundEvents:
    """Everything that happened since the last events.

    Parameters
    ----------
    lost : list of str
        Nodes that do not answer.
    arrived : list of int
        Rows of jobs that arrived.
    confirmed : list of (int, int, int)
        Row, epoch and number of copies that were over before, and whose processes are gone now.
    withdrawn : list of int
        Rows of waiting jobs that a person cancelled.
    retried : list of int
        Rows of jobs that were given up and are taken up again.
    counted, concluded
        Of jobs all copies of which are over; of those whose average was made, or needs none.
    started : RoundStart or None
        The round that begins, if nothing else happened.
    """

    lost: list[str] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    confirmed: list[tuple[int, int, int]] = field(default_factory=list)
    withdrawn: list[int] = field(default_factory=list)
    counted: list[CountedCopies] = field(default_factory=list)
    concluded: list[RoundOutcome] = field(default_factory=list)
    started: RoundStart | None = None
    retried: list[int] = field(default_factory=list)


@dataclass
class JobRound:
    """A job in the round under way: its grant, a lease for each copy, and what was counted."""

    grant: CopyGrant
    leases: list[HeldLease]
    counted: CountedCopies | None = None
