"""What the verifier checks of CPUs and memory, and how fast runs were under their conditions.

Everything is computed from the rows of the schedule and plain data of the instance, in columns, and
not by the code the engine uses for single runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import run_speed
from shadowprice.proofs.certificate_runs import Runs

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.conditions import Conditions
    from shadowprice.instances.speeds.sensitivity import Sensitivity

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
        job, width = schedule.job[runs.row], runs.width(schedule)
        rows = np.bincount(runs.piece, minlength=len(runs.row))
        if conditions.locality is not None:
            spread = rows > run_speed.fewest_nodes(instance.cluster, width)
            self.speed *= np.where(spread, conditions.locality.spread_speed[job], 1.0)
        if conditions.elasticity is not None:
            gang = instance.workload.gpus[job]
            self.speed *= run_speed.width_speed(conditions.elasticity, job, gang, width)

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
        speed = run_speed.profile_speed(sensitivity, s.job, s.gpus, s.cpus, s.memory_gb)
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
