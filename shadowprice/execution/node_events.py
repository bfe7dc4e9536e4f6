"""Nodes that fail during a simulation: what happens beside arrivals and completions."""

from __future__ import annotations

import math

import numpy as np

from shadowprice.instances.failures.node_failures import NodeFailures

_UP, _DOWN = 0, 1
"""Kinds of events, in the order in which they happen at one moment."""


class NodeEvents:
    """Nodes that go down and come up, in order of time, as far as anybody asks.

    Attributes
    ----------
    failures : NodeFailures
        What is known of them so far.
    """

    def __init__(self, failures: NodeFailures) -> None:
        self._taken = 0
        self._know(failures)

    def _know(self, failures: NodeFailures) -> None:
        # What was taken is before the time that was known, and of this time nothing is new.
        self.failures = failures
        count = len(failures)
        times = np.concatenate((failures.up_s, failures.down_s))
        kinds = np.repeat((_UP, _DOWN), count)
        nodes = np.concatenate((failures.node, failures.node))
        order = np.lexsort((nodes, kinds, times))
        order = order[np.isfinite(times[order])]
        self._events = list(
            zip(times[order].tolist(), kinds[order].tolist(), nodes[order].tolist(), strict=True)
        )

    def next_s(self, until_s: float) -> float:
        """Time of the next event [s]; if that is after a time, perhaps only a time after it.

        Raises
        ------
        InputError
            If nobody knows what happens until then.
        """
        while True:
            events, known_s = self._events, self.failures.known_until_s
            time_s = events[self._taken][0] if self._taken < len(events) else math.inf
            if time_s < known_s or until_s < known_s or known_s == math.inf:
                return time_s
            self._know(self.failures.longer())

    def take(self) -> tuple[float, bool, int]:
        """Take the next event: its time [s], whether the node goes down, and the node."""
        time_s, kind, node = self._events[self._taken]
        self._taken += 1
        return time_s, kind == _DOWN, node
