"""Simulated hosts where speeds depend on CPUs and memory, spreading or width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.instances.grid import TICK_S, ceil_time
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.conditions import Conditions, RunSpeeds
from shadowprice.instances.speeds.sensitivity import Amounts, proportional_share
from shadowprice.solvers.placement.protocol import Pieces


class ConditionedHosts(SimulatedHosts):
    """Executes starts and stops under conditions, and records the CPUs and memory of every run.

    Who starts without saying how much of them gets a GPU-proportional share.
    """

    def __init__(self, instance: Instance, conditions: Conditions) -> None:
        super().__init__(instance)
        self._speeds = RunSpeeds(conditions, instance.cluster, instance.workload)
        self._counted = conditions.sensitivity is not None
        self._share = proportional_share(instance.cluster)
        self._next: Mapping[int, Amounts] = {}
        self._amounts: dict[int, Amounts] = {}
        self._cpus: list[float] = []
        self._memory_gb: list[float] = []

    def hold(self, amounts: Mapping[int, Amounts]) -> None:
        """CPUs and memory of the jobs that start next."""
        self._next = amounts

    def start(
        self, job: int, pieces: Pieces, now_s: float, partner: int = -1
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate under the best conditions."""
        if self._counted:
            self._amounts[job] = self._next.get(job) or self.proportional(pieces)
        return super().start(job, pieces, now_s, partner)

    def adjust(self, job: int, amounts: Amounts, at_s: float) -> tuple[float, float, float, float]:
        """Carry on a run with other CPUs and memory; returns what :meth:`go_on` does."""
        ran, debt, pieces = self._interrupt(job, at_s)
        self._amounts[job] = amounts
        left, partner = self._left[job], self._partner.get(job, -1)
        return ran, left, *self._begin(job, pieces, at_s, debt, partner)

    def proportional(self, pieces: Pieces) -> Amounts:
        """GPU-proportional shares of CPUs and memory."""
        cpus, memory_gb = self._share
        return tuple((cpus * gpus, memory_gb * gpus) for _, gpus in pieces)

    def schedule(self) -> Schedule:
        """What was executed so far."""
        done = super().schedule()
        if not self._counted:
            return done
        return replace(done, cpus=np.array(self._cpus), memory_gb=np.array(self._memory_gb))

    def _whole_s(self, job: int, pieces: Pieces, partner: int) -> float:
        plain_s = super()._whole_s(job, pieces, partner)
        speed = self._speeds.of(job, pieces, self._amounts.get(job))
        return max(ceil_time(plain_s / speed), TICK_S) if speed else math.inf

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        super()._record(job, pieces, start_s, end_s, overhead_s)
        if self._counted:
            for cpus, memory_gb in self._amounts[job]:
                self._cpus.append(cpus)
                self._memory_gb.append(memory_gb)
