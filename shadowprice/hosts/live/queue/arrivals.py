"""Jobs that come while a run goes on: none, where a job file names them all, or those of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from shadowprice.hosts.live.job_file import Job
from shadowprice.instances.instance import Instance


@dataclass(frozen=True)
class Arrival:
    """A job that is taken in.

    Parameters
    ----------
    job : Job
        What it is.
    instance : Instance
        With the job in its last row.
    notes : list of str
        What is assumed of it.
    unreadable : str
        Why what was stored of it cannot be read, empty if it can: then the job stands in for it, and is to
        fail.
    """

    job: Job
    instance: Instance
    notes: list[str]
    unreadable: str = ""


class Arrivals(Protocol):
    """Source of jobs that nobody knew of when the run began.

    Jobs have numbers that increase. What is taken in goes through the journal, so that a driver that
    takes a run over takes the same jobs in between the same decisions.
    """

    @property
    def open(self) -> bool:
        """True while more may come: the run does not end by itself."""

    def fresh(self) -> list[int]:
        """Numbers of the jobs that were added and not taken in yet, in order."""

    def take(self, number: int, instance: Instance) -> Arrival:
        """A job that was added, for an instance without it."""

    def jobs(self) -> Sequence[Job]:
        """All that were added so far, in order."""


class NoArrivals:
    """No further jobs: all are in the job file."""

    open = False

    def fresh(self) -> list[int]:
        """None."""
        return []

    def take(self, number: int, instance: Instance) -> Arrival:
        """Never called: there are none."""
        raise AssertionError("a run of a job file has no further jobs")

    def jobs(self) -> Sequence[Job]:
        """None."""
        return ()
