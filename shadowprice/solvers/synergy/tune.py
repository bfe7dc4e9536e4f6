"""Synergy-TUNE: best-case demands where they fit, GPU-proportional shares where they do not.

Source: Synergy (OSDI'22), section on the tuning mechanism; its simulator, resources/cluster.py.
Jobs are placed by GPUs, then CPUs, then memory, most first. One that does not fit with its best-case
demand gets its GPU-proportional share; if that does not fit either, jobs that hold more than their
share are cut down to it until it does.

Two things differ from the published code, which checks neither and stops with a failed assertion:
cutting a job down can *raise* its other resource (12 CPUs and 20 GB become 3 and 62.5), and it
changes what is free on all servers of a spread job. Here room is made on every server that falls
short, one after the other. Only jobs that hold more than their share of what is short are cut down.
Guarantee: ``proofs/synergy/floor.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.solvers.placement.protocol import in_turn
from shadowprice.solvers.synergy.servers import (
    ROUNDING,
    Demands,
    ResourceRequest,
    Servers,
    fewest_free_first,
    place_best_fit,
)


@dataclass(frozen=True)
class Tune:
    """The mechanism; O(n s + n log n) for n jobs on s servers, cuts apart."""

    fair: bool = field(default=False, init=False)
    skips: bool = field(default=False, init=False)

    def place(self, asks: Iterable[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place all of some jobs beside those that hold servers already.

        Raises
        ------
        PolicyError
            If they need more GPUs than are free.
        """
        order = sorted(
            asks, key=lambda ask: (-ask.gpus, -ask.gpus * ask.cpus, -ask.gpus * ask.memory_gb)
        )
        for ask in order:
            if not place_best_fit(servers, ask):
                _place_cut_down(servers, ask)


def _place_cut_down(servers: Servers, ask: ResourceRequest) -> None:
    cpus, memory_gb = servers.share
    if ask.cpus > cpus + ROUNDING or ask.memory_gb > memory_gb + ROUNDING:
        ask = ask.with_cpu_memory(cpus, memory_gb)
        if place_best_fit(servers, ask):
            return
    make_room(servers, ask)
    if not place_best_fit(servers, ask):
        raise PolicyError(
            f"job {ask.job} needs {ask.gpus} GPUs, but only {int(servers.gpus.sum())} are free"
        )


def make_room(servers: Servers, ask: ResourceRequest) -> None:
    """Cut jobs down to their shares until an ask within its own share fits.

    Its GPUs are those of the first server with enough, else of those with the fewest free first.
    """
    wanted = chosen_by_gpus(servers, ask.gpus)
    short = list(wanted)
    while short:
        server = short[-1]
        gpus = wanted.get(server, 0)
        lacks_cpus = servers.cpus[server] < ask.cpus * gpus - ROUNDING
        lacks_memory = servers.memory_gb[server] < ask.memory_gb * gpus - ROUNDING
        peer = _peer(servers, server, lacks_cpus, lacks_memory)
        if peer is None:
            short.pop()
            continue
        servers.regrant(peer, *servers.share)
        # Its other resource may have grown, on all of its servers.
        others = (other for other, _ in servers.held[peer].pieces if other != server)
        short = [*others, *(each for each in short if each != server), server]


def chosen_by_gpus(servers: Servers, gpus: int) -> dict[int, int]:
    """Servers chosen by free GPUs alone, and how many GPUs on each."""
    enough = servers.gpus >= gpus
    if enough.any():
        return {int(enough.argmax()): gpus}
    return dict(in_turn(fewest_free_first(servers), servers.gpus.tolist(), gpus))


def _peer(
    servers: Servers, server: int, lacks_cpus: bool | np.bool_, lacks_memory: bool | np.bool_
) -> int | None:
    """Whom to cut down: on the fewest servers, then most CPUs, then most memory for each GPU."""
    if not (lacks_cpus or lacks_memory):
        return None
    cpus, memory_gb = servers.share
    held = servers.held
    above = [
        job
        for job in servers.jobs_on(server)
        if (lacks_cpus and held[job].cpus > cpus + ROUNDING)
        or (lacks_memory and held[job].memory_gb > memory_gb + ROUNDING)
    ]

    def rank(job: int) -> tuple[int, float, float, int]:
        grant = held[job]
        return len(grant.pieces), -grant.cpus, -grant.memory_gb, job

    return min(above, key=rank, default=None)
