"""Cached queries to Slurm about jobs and nodes, made at most so often."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shadowprice.errors import HostError
from shadowprice.execution.hosts.slurm.commands import Slurm, SlurmJob, SlurmNode

T = TypeVar("T")
REFRESH_S = 1.0


@dataclass
class CachedQuery(Generic[T]):
    """An answer, the time when it was asked for, and why it could not be asked for again.

    A controller that is restarted leaves the last answer standing: leases live on by their files.
    """

    ask: Callable[[], T]
    answer: T
    asked_s: float = -math.inf
    tried_s: float = -math.inf
    trouble: str = ""

    def get(self, newer_s: float = REFRESH_S) -> T:
        """The answer, asked for again if it is older than ``newer_s`` seconds."""
        now = time.monotonic()
        if now - self.tried_s >= newer_s:
            self.tried_s = now
            try:
                self.answer, self.asked_s, self.trouble = self.ask(), now, ""
            except HostError as error:
                self.trouble = str(error)
        return self.answer


class SlurmView:
    """Jobs of this user, and nodes of a partition."""

    def __init__(self, slurm: Slurm, partition: str) -> None:
        jobs: dict[int, SlurmJob] = {}
        nodes: dict[str, SlurmNode] = {}
        self.jobs = CachedQuery(slurm.jobs, jobs)
        self.nodes = CachedQuery(lambda: slurm.nodes_by_format(partition), nodes)

    def job(self, identity: int, since_s: float) -> SlurmJob | None:
        """A job that was submitted at ``since_s``; None if that is not known yet.

        A job that Slurm has forgotten is over.
        """
        found = self.jobs.get().get(identity)
        if found is None and self.jobs.asked_s > since_s:
            return SlurmJob(identity, "FORGOTTEN", "", 0, "Slurm knows it no more", "")
        return found

    def is_down(self, node: str) -> bool:
        """True if Slurm has given a node up."""
        found = self.nodes.get().get(node)
        return found is not None and found.is_down
