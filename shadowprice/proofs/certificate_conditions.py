"""What the verifier checks of CPUs and memory, and how fast runs were under their conditions.

Everything is computed from the rows of the schedule and the instance, row by row in columns, and
not by the code the engine uses for single runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.conditions import Conditions
from shadowprice.instances.instance import Instance
from shadowprice.instances.locality import fewest_nodes
from shadowprice.instances.profile import SLACK
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.sensitivity import Sensitivity
from shadowprice.proofs.certificate_runs import Runs

Fault = tuple[int, str]
"""A row and what is wrong with it."""


class ConditionedRuns:
    """Runs under conditions; O(R log R) for R rows.

    Attributes
    ----------
    fault : (int, str) or None
        The first row whose CPUs and memory cannot be.
    speed : ndarray, shape (runs,)
        Speed of every run; only where there is no fault.
    """

    def __init__(
        self, instance: Instance, conditions: Conditions, schedule: Schedule, runs: Runs
    ) -> None:
        self._instance, self._schedule, self._runs = instance, schedule, runs
        self.speed: NDArray[np.float64] = np.ones(len(runs.row))
        self.fault: Fault | None = None
        if conditions.sensitivity is not None:
            self.fault = self._counted(conditions.sensitivity) or self._fits()
        job = schedule.job[runs.row]
        rows = np.bincount(runs.piece, minlength=len(runs.row))
        width = self._width()
        if conditions.locality is not None:
            spread = rows > fewest_nodes(instance.cluster)[width]
            self.speed *= np.where(spread, conditions.locality.spread_speed[job], 1.0)
        if conditions.elasticity is not None:
            self.speed *= conditions.elasticity.speed(job, instance.workload.gpus[job], width)

    def _width(self) -> NDArray[np.int64]:
        """GPUs of every run, no more than the cluster has: that is another rule's."""
        runs, gpus = self._runs, self._schedule.gpus
        held = np.bincount(runs.piece, weights=gpus[runs.order], minlength=len(runs.row))
        return np.minimum(held.astype(np.int64), self._instance.cluster.total_gpus)

    def _counted(self, sensitivity: Sensitivity) -> Fault | None:
        """Speed by CPUs and memory; the first row that has too little for any speed."""
        s, order = self._schedule, self._runs.order
        assert s.cpus is not None
        assert s.memory_gb is not None
        for name, held in (("cpus", s.cpus), ("memory_gb", s.memory_gb)):
            bad = ~(np.isfinite(held) & (held >= 0))
            if bad.any():
                row = int(bad.argmax())
                return row, f"{name} is {held[row]}, expected a number >= 0"
        speed = np.zeros(len(s))
        of = sensitivity.of[s.job]
        for number, profile in enumerate(sensitivity.profiles):
            rows = np.flatnonzero(of == number)
            axes = []
            for axis, held in (
                (profile.cpus_per_gpu, s.cpus),
                (profile.memory_gb_per_gpu, s.memory_gb),
            ):
                amounts = held[rows] / s.gpus[rows] * (1 + SLACK)
                axes.append(np.searchsorted(axis, amounts, side="right") - 1)
            measured = (axes[0] >= 0) & (axes[1] >= 0)
            speed[rows] = np.where(measured, profile.speed[axes[0], axes[1]], 0.0)
        if (speed == 0).any():
            row = int((speed == 0).argmax())
            held_text = f"{s.cpus[row]:g} CPUs and {s.memory_gb[row]:g} GB"
            return row, f"makes no progress with {held_text} on {s.gpus[row]} GPUs"
        slowest = np.full(len(self._runs.row), np.inf)
        np.minimum.at(slowest, self._runs.piece, speed[order])
        self.speed = self.speed * slowest
        return None

    def _fits(self) -> Fault | None:
        """The first row with which a node's CPUs or memory are exceeded at some moment."""
        s, nodes = self._schedule, self._instance.cluster.nodes
        n = len(s)
        node, time = np.concatenate((s.node, s.node)), np.concatenate((s.end_s, s.start_s))
        order = np.lexsort((np.arange(2 * n) >= n, time, node))
        sizes = {
            "CPUs": (s.cpus, np.array([each.cpus for each in nodes])),
            "GB of memory": (s.memory_gb, np.array([each.memory_gb for each in nodes])),
        }
        for name, (held, size) in sizes.items():
            assert held is not None
            # Millionths, as whole numbers: sums of floats drift. Rounded down, for thirds of 8 CPUs
            # must add up to 8; the thousandth of a millionth is for 2.0 written as 1.9999999999999998.
            # No more than one above the node's, which is too much already, so that none overflows.
            held = np.minimum(held, size[s.node] + 1.0)
            micro = np.floor(held * 1e6 + 1e-3).astype(np.int64)
            total = np.cumsum(np.concatenate((-micro, micro))[order])
            room = np.round(size * 1e6).astype(np.int64)[node[order]]
            if (total > room).any():
                k = int((total > room).argmax())
                say = f"{total[k] / 1e6:g} {name} held on the node at {time[order[k]]} s"
                return int(order[k] % n), f"{say}, it has {room[k] / 1e6:g}"
        return None
