"""Packing of a round in the published Synergy simulator, cutting jobs down where it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.clusters.cpu_memory import CpuMemory
from shadowprice.solvers.placement.protocol import in_turn
from shadowprice.solvers.synergy.servers import (
    ResourceRequest,
    ServerGrant,
    Servers,
    fewest_free_first,
    place_by_gpu,
)


class Packed(Protocol):
    """Job to be packed; packing sets its speed."""

    row: int
    gpus: int
    ask: ResourceRequest
    speed: float


class PublishedPacking:
    """Servers and, while a round is planned, who was placed on each, in the original's order."""

    def __init__(self, size: NDArray[np.int64], share: CpuMemory) -> None:
        self.size, self.share = size, share
        self._servers = Servers(size, share)
        self._on: list[list[int]] = []
        self._jobs: dict[int, Packed] = {}

    def plan(self, jobs: Sequence[Packed], *, fair: bool) -> dict[int, tuple[ServerGrant, float]]:
        """Place jobs in order: what each holds, and its speed.

        Raises
        ------
        PolicyError
            If a job cannot be placed even after others were cut down.
        """
        servers = self._servers = Servers(self.size, self.share)
        self._on = [[] for _ in self.size]
        self._jobs = {job.row: job for job in jobs}
        for job in jobs:
            ask = self._share_of(job) if fair else job.ask
            if not place_by_gpu(servers, ask):
                self._cut_and_place(job)
            for server, _ in servers.held[job.row].pieces:
                self._on[server].append(job.row)
        return {job.row: (servers.held[job.row], job.speed) for job in jobs}

    def _share_of(self, job: Packed) -> ResourceRequest:
        return job.ask.with_cpu_memory(*self.share)

    def _fair(self, job: Packed) -> ResourceRequest:
        """The share if the demand exceeds it anywhere, at speed 1; else the demand."""
        if job.ask.cpus > self.share[0] or job.ask.memory_gb > self.share[1]:
            job.speed = 1.0
            return self._share_of(job)
        return job.ask

    def _cut_and_place(self, job: Packed) -> None:
        servers, ask = self._servers, self._fair(job)
        if place_by_gpu(servers, ask):
            return
        for server, gpus in self._chosen(job.gpus).items():
            for other in self._to_cut(server, gpus, ask):
                fair = self._fair(self._jobs[other])
                self._jobs[other].speed = 1.0
                servers.regrant(other, fair.cpus, fair.memory_gb)
                if min(servers.cpus.min(), servers.memory_gb.min()) < 0:
                    raise PolicyError(
                        f"job {job.row}: cutting job {other} down to its share exceeds a server; "
                        "the published simulator stops here"
                    )
        if not place_by_gpu(servers, ask):
            raise PolicyError(
                f"job {job.row} fits nowhere although others were cut down; the published "
                "simulator stops here"
            )

    def _chosen(self, gpus: int) -> dict[int, int]:
        """For several GPUs the first server with enough of them; else those with the fewest free."""
        enough = self._servers.gpus >= gpus
        if gpus > 1 and enough.any():
            return {int(enough.argmax()): gpus}
        return dict(in_turn(fewest_free_first(self._servers), self._servers.gpus.tolist(), gpus))

    def _to_cut(self, server: int, gpus: int, ask: ResourceRequest) -> list[int]:
        """Jobs to cut down so that GPUs of an ask fit on a server, in the original's order."""
        servers = self._servers
        short = np.array(
            [
                max(0.0, ask.cpus * gpus - float(servers.cpus[server])),
                max(0.0, ask.memory_gb * gpus - float(servers.memory_gb[server])),
            ]
        )
        chosen: list[int] = []
        if not short.any():
            return chosen
        held = servers.held
        self._on[server].sort(
            key=lambda row: (len(held[row].pieces), -held[row].cpus, -held[row].memory_gb)
        )
        for row in self._on[server]:
            here = dict(held[row].pieces)[server]
            more = [held[row].cpus - self.share[0], held[row].memory_gb - self.share[1]]
            short = np.maximum(short - np.maximum(np.array(more) * here, 0.0), 0.0)
            chosen.append(row)
            if not short.any():
                break
        return chosen
