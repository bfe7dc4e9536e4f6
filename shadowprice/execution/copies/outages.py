"""Nodes that fail, as rounds of copies ask for them, in ticks."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.grid import TICKS_PER_S


def known_after(failures: NodeFailures, time_s: float) -> NodeFailures:
    """The same faults, known until after a time [s].

    Raises
    ------
    InputError
        If nobody knows them for so long.
    """
    while failures.known_until_s <= time_s:
        failures = failures.longer()
    return failures


class Outages:
    """Times in which nodes are down, known for as long as anybody asks; each answer is O(log F)."""

    def __init__(self, failures: NodeFailures) -> None:
        self._know(failures)

    def _know(self, failures: NodeFailures) -> None:
        self._failures = failures
        self._times: dict[int, tuple[list[int], list[float]]] = {}
        columns = failures.node, failures.down_s * TICKS_PER_S, failures.up_s * TICKS_PER_S
        for node, down, up in zip(*(each.tolist() for each in columns), strict=True):
            downs, ups = self._times.setdefault(node, ([], []))
            downs.append(int(down))
            ups.append(up)

    def know(self, tick: int) -> None:
        """Have faults known until after a time."""
        time_s = tick / TICKS_PER_S
        if self._failures.known_until_s <= time_s:
            self._know(known_after(self._failures, time_s))

    def until(self, node: int, tick: int) -> float:
        """Time at which a node is up that is down at a time, or that time [ticks]."""
        downs, ups = self._times.get(node, ([], []))
        place = bisect_right(downs, tick)
        return max(ups[place - 1], tick) if place else tick

    def next_down(self, node: int, tick: int) -> float:
        """Time at which a node goes down after a time [ticks]; infinity where nobody knows of one."""
        downs, _ = self._times.get(node, ([], []))
        place = bisect_right(downs, tick)
        return downs[place] if place < len(downs) else math.inf

    def down_between(self, node: int, begin: int, end: int) -> bool:
        """True if a node went down after one time and before another [ticks]."""
        downs, _ = self._times.get(node, ([], []))
        return bisect_right(downs, begin) < bisect_left(downs, end)
