"""A host in memory with its own time: leases advance when somebody sleeps, and fail when told to."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import (
    Device,
    DiscoveredNode,
    Exit,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.instances.clusters.cpu_memory import CPU_MILLI, MIB_PER_GB


class VirtualClock:
    """Time that passes when somebody sleeps."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.time_s = now_s

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        # A quarter of a second is enough for virtual jobs, and on the time grid.
        self.time_s += max(math.ceil(seconds * 4.0), 1) / 4.0


@dataclass
class Process:
    """One rank that runs."""

    order: LaunchSpec
    began_s: float
    from_step: int
    step: int
    done: float = 0.0
    ran_s: float = 0.0
    exit: Exit | None = None
    stop_at_s: float = math.inf
    hangs: bool = False
    deaf: bool = False


@dataclass
class Job:
    """What survives processes: the committed step."""

    iterations: int
    rate: float
    committed: int = 0


def held_cpu_memory(order: LaunchSpec) -> tuple[int, int]:
    """CPUs [thousandths] and memory [MiB] that the command of an order is told that it holds."""
    cpus, memory_gb = (
        float(order.env.get(f"SHADOWPRICE_{name}", "0")) for name in ("CPUS", "MEMORY_GB")
    )
    return round(cpus * CPU_MILLI), round(memory_gb * MIB_PER_GB)


@dataclass
class FakeHost:
    """Nodes, jobs and what runs.

    Parameters
    ----------
    jobs : dict
        Iterations, rate alone [1/s] and committed step by name.
    shared_rate : float
        Part of its rate that a job keeps beside another.
    start_s, save_s : float
        From start to the first step, and from a request to stop to the end [s].
    """

    clock: VirtualClock
    nodes: tuple[DiscoveredNode, ...]
    jobs: dict[str, Job]
    state: Path
    shared_rate: float = 0.6
    start_s: float = 0.5
    save_s: float = 0.25
    processes: dict[LeaseKey, Process] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    starts: list[tuple[float, LaunchSpec]] = field(default_factory=list)
    on_poll: Callable[[], None] = lambda: None
    asked_again: int = 0
    name: str = "fake"
    notes: tuple[str, ...] = ()

    def discover(self) -> tuple[DiscoveredNode, ...]:
        self.asked_again += 1
        return self.nodes

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        for order in orders:
            if order.key in self.processes:
                continue
            step = self.jobs[order.key.job].committed
            if order.node in self.down:
                # The order does not reach its node; it is seen when that comes back.
                never = Process(order, self.clock.now_s(), step, step, exit=Exit(-1, "void"))
                self.processes[order.key] = never
                continue
            self._check_devices(order)
            self.processes[order.key] = Process(order, self.clock.now_s(), step, step)
            self.starts.append((self.clock.now_s(), order))

    def _check_devices(self, order: LaunchSpec) -> None:
        """The heart of every test: no device is given out while another epoch holds it."""
        for device in order.devices:
            others = [
                process.order.key
                for process in self.processes.values()
                if process.exit is None and device in process.order.devices
            ]
            assert len(others) <= 1, f"{device} is held by {others} and given to {order.key}"
            if others:
                assert others[0].job != order.key.job
                assert order.shared, f"{device} of {others[0]} is given to {order.key}"

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        for order in orders:
            if order.key not in self.processes:
                dead = Process(order, self.clock.now_s(), 0, 0, exit=Exit(-1, "void"))
                self.processes[order.key] = dead

    def renew(self, keys: Collection[LeaseKey]) -> None:
        for key in keys:
            if key not in self.processes:
                raise HostError(
                    f"lease {key.folder} of job {key.job} was neither started nor adopted"
                )

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        for key in keys:
            process = self.processes[key]
            late = grace_s if process.deaf else self.save_s
            process.stop_at_s = min(process.stop_at_s, self.clock.now_s() + late)

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        self.on_poll()
        return {key: self._seen(key) for key in keys}

    def lost_nodes(self) -> frozenset[str]:
        return frozenset(self.down)

    def close(self) -> None:
        pass

    def crash(self, key: LeaseKey, code: int = 1) -> None:
        """End a process at once; what it did since its last checkpoint is lost."""
        process = self.processes[key]
        self._advance(process)
        if process.exit is None:
            process.exit = Exit(code, "exited", detail="boom")

    def running(self) -> list[LeaseKey]:
        return [key for key, process in self.processes.items() if process.exit is None]

    def _seen(self, key: LeaseKey) -> RankStatus:
        process = self.processes[key]
        if process.order.node in self.down:
            return RankStatus(Phase.LOST)
        self._advance(process)
        steps = process.step - process.from_step
        report: dict[str, Any] = {
            "step": process.step,
            "steps": steps,
            "timed_steps": max(steps - 1, 0),
            "seconds": process.ran_s * max(steps - 1, 0) / max(process.done, 1e-9),
            "iterations": 0,
        }
        if process.exit is not None:
            return RankStatus(Phase.ENDED, report, process.exit)
        began = self.clock.now_s() - process.began_s >= self.start_s
        return RankStatus(Phase.RUNNING if began else Phase.STARTING, report)

    def _rate(self, process: Process) -> float:
        beside = any(
            other is not process
            and other.exit is None
            and set(other.order.devices) & set(process.order.devices)
            for other in self.processes.values()
        )
        rate = self.jobs[process.order.key.job].rate
        return rate * self.shared_rate if beside else rate

    def _advance(self, process: Process) -> None:
        if process.exit is not None or process.order.node in self.down:
            return
        job, now_s = self.jobs[process.order.key.job], self.clock.now_s()
        until_s = min(now_s, process.stop_at_s)
        more_s = max(until_s - process.began_s - self.start_s - process.ran_s, 0.0)
        if not process.hangs:
            process.ran_s += more_s
            process.done += more_s * self._rate(process)
            process.step = min(process.from_step + int(process.done), job.iterations)
        if process.step >= job.iterations:
            self._commit(process)
            process.exit = Exit(0, "exited")
        elif now_s >= process.stop_at_s:
            if process.deaf:
                process.exit = Exit(-9, "stopped", forced=True)
            else:
                self._commit(process)
                process.exit = Exit(75, "stopped")

    def _commit(self, process: Process) -> None:
        job, key = self.jobs[process.order.key.job], process.order.key
        epochs = [other.epoch for other in self.processes if other.job == key.job]
        if key.epoch < max(epochs):
            return  # fenced
        job.committed = max(job.committed, process.step)
        folder = self.state / "jobs" / key.job / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "LATEST").write_text(f"step-{job.committed:012d}.epoch-{key.epoch}\n")


def two_nodes(gpus: int = 2) -> tuple[DiscoveredNode, ...]:
    return tuple(
        DiscoveredNode(name, kind, tuple(Device(name, k, f"{name}/{k}") for k in range(gpus)))
        for name, kind in (("n0", "A100"), ("n1", "V100"))
    )
