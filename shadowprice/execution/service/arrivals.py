"""Jobs that come while a run goes on: none, where a job file names them all, or those of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shadowprice.execution.real.job_file import Job
from shadowprice.instances.instance import Instance


class Arrivals(Protocol):
    """Source of jobs that nobody knew of when the run began.

    Jobs have numbers that increase. What is taken in goes through the journal, so that a driver that
    takes a run over takes the same jobs in between the same decisions.
    """

    @property
    def open(self) -> bool:
        """True while more may come: the run does not end by itself."""

    def fresh(self) -> list[int]:
        """Numbers of the jobs that were submitted and not taken in yet, in order."""

    def take(self, number: int, instance: Instance) -> tuple[Job, Instance, list[str]]:
        """A submitted job, the instance with it in the last row, and notes of what is assumed."""

    def jobs(self) -> Sequence[Job]:
        """All that were submitted so far, in order."""


class NoArrivals:
    """No further jobs: all are in the job file."""

    open = False

    def fresh(self) -> list[int]:
        """None."""
        return []

    def take(self, number: int, instance: Instance) -> tuple[Job, Instance, list[str]]:
        """Never called: there are none."""
        raise AssertionError("a run of a job file has no further jobs")

    def jobs(self) -> Sequence[Job]:
        """None."""
        return ()
