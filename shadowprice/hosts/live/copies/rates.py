"""Rates of copies on each node: assumed at first, then measured.

Source: HadarE's tracker measures throughput in every round (arXiv 2503.10918, recalled); the moving
average is derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from shadowprice.execution.copies.hadare import CopyWidth, HadarE
from shadowprice.hosts.live.measuring import FEWEST_STEPS, SHORTEST_S
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.instances.instance import Instance

_K = TypeVar("_K")

_NEW = 0.5
"""Weight of the newest round."""


@dataclass(frozen=True)
class MeasuredCopy:
    """Measurement of one copy in a round.

    Parameters
    ----------
    row, node, gpus : int
        Job, node, and GPUs it had of it.
    steps : int
        Timed steps.
    seconds : float
        Time they took [s].
    start_s : float or None
        From its grant to its first step [s]; None if that was not seen.
    """

    row: int
    node: int
    gpus: int
    steps: int
    seconds: float
    start_s: float | None


class CopyRates:
    """Rates of copies.

    A rate that was measured on a node stands for other nodes of its class too, until they are
    measured, and for all jobs of the same model and gang.
    """

    def __init__(
        self, instance: Instance, nodes: tuple[DiscoveredNode, ...], policy: HadarE
    ) -> None:
        self._workload, self._nodes = instance.workload, nodes
        self._width = CopyWidth(policy.width)
        self._on_node: dict[tuple[str, int, int], float] = {}
        self._on_class: dict[tuple[str, int, str, int], float] = {}
        self._start_s: dict[tuple[str, int], float] = {}

    def learn(self, measured: MeasuredCopy) -> None:
        """Take a measurement in."""
        kind = self._kind(measured.row)
        if measured.steps >= FEWEST_STEPS and measured.seconds >= SHORTEST_S:
            rate = measured.steps / measured.seconds
            _blend(self._on_node, (*kind, measured.node), rate)
            _blend(self._on_class, (*kind, *self.class_of(measured.node)), rate)
        if measured.start_s is not None:
            _blend(self._start_s, kind, measured.start_s)

    def rate(self, row: int, node: int) -> float:
        """Steps per second of a copy on a node, 0 if it cannot run there."""
        kind = self._kind(row)
        if self._assumed(row, node) == 0.0:
            return 0.0
        measured = self._on_node.get((*kind, node))
        return self.class_rate(row, node) if measured is None else measured

    def class_rate(self, row: int, node: int) -> float:
        """Steps per second on the class of a node, as orders of jobs see it."""
        assumed = self._assumed(row, node)
        if assumed == 0.0:
            return 0.0
        return self._on_class.get((*self._kind(row), *self.class_of(node)), assumed)

    def start_s(self, row: int) -> float:
        """Time from a grant to the first step [s], 0 before it was measured."""
        return self._start_s.get(self._kind(row), 0.0)

    def gpus(self, row: int, node: int) -> int:
        """GPUs a copy is given of a node."""
        return self._width.gpus(int(self._workload.gpus[row]), len(self._nodes[node].devices))

    def class_of(self, node: int) -> tuple[str, int]:
        """GPU type and number of GPUs: nodes that agree in both are equal."""
        return self._nodes[node].gpu_type, len(self._nodes[node].devices)

    def _assumed(self, row: int, node: int) -> float:
        """Assumed rate: that given for the gang, in proportion to the GPUs that a copy has."""
        workload = self._workload
        assert workload.throughput is not None
        column = workload.gpu_types.index(self._nodes[node].gpu_type)
        whole = float(workload.throughput[row, column])
        return whole * self.gpus(row, node) / int(workload.gpus[row])

    def _kind(self, row: int) -> tuple[str, int]:
        return str(self._workload.model[row]), int(self._workload.gpus[row])


def _blend(averages: dict[_K, float], key: _K, value: float) -> None:
    before = averages.get(key)
    averages[key] = value if before is None else (1.0 - _NEW) * before + _NEW * value
