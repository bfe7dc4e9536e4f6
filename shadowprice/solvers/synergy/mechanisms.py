"""Mechanisms of Synergy that divide servers among a round's jobs: common parts, and two of them.

PROPORTIONAL and GREEDY are Synergy's (OSDI'22) baselines; TUNE and OPT are in files of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shadowprice.errors import PolicyError
from shadowprice.solvers.synergy.demands import Demands
from shadowprice.solvers.synergy.servers import (
    ResourceRequest,
    Servers,
    place_best_fit,
    place_first_fit,
)


class Mechanism(Protocol):
    """Places jobs with CPUs and memory."""

    @property
    def fair(self) -> bool:
        """True if asks are GPU-proportional shares, not best-case demands."""

    @property
    def skips(self) -> bool:
        """True if it may skip a job although there are enough GPUs; it is then given all jobs."""

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place jobs, in order of priority, beside those that hold servers already."""


@dataclass(frozen=True)
class ProportionalMechanism:
    """CPUs and memory in proportion to GPUs; packed by fewest free GPUs. Places every job; O(n s)."""

    fair: bool = field(default=True, init=False)
    skips: bool = field(default=False, init=False)

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place all jobs.

        Raises
        ------
        PolicyError
            If they need more GPUs than are free.
        """
        for ask in asks:
            if not place_best_fit(servers, ask):
                raise PolicyError(
                    f"job {ask.job} needs {ask.gpus} GPUs, but only {int(servers.gpus.sum())} are free"
                )


@dataclass(frozen=True)
class Greedy:
    """First fit with the whole best-case demand; who fits nowhere is skipped in this round. O(n s).

    GPUs may idle beside jobs that wait for CPUs, and a job may starve while others keep coming. It
    does not for ever: on empty servers every demand fits (see :class:`Demands`).
    """

    fair: bool = field(default=False, init=False)
    skips: bool = field(default=True, init=False)

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place whom it can."""
        for ask in asks:
            place_first_fit(servers, ask)
