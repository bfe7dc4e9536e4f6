"""Times in which nodes are down, as a run knows them: a table, and how it goes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import cut
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.grid import MAX_TIME_S, on_grid

Whole = NDArray[np.int64]
Times = NDArray[np.float64]

MOST_FAULTS = 1_000_000
"""Faults after which a run is given up: jobs that lose their work again and again would never end."""


@dataclass(frozen=True, eq=False)
class NodeFailures:
    """Downtimes of nodes, and the checkpoints of all jobs.

    A node is down in [down_s, up_s): what runs on it at down_s is lost back to its last checkpoint,
    and nothing runs there before up_s. Downtimes of a node neither overlap nor touch.

    Parameters
    ----------
    node : ndarray of int, shape (faults,)
        Position of the node in the cluster.
    down_s, up_s : ndarray, shape (faults,)
        In order of ``down_s``, then ``node`` [s]; ``up_s`` is infinite for a node that stays down.
    known_until_s : float
        Time before which all faults are in the table [s]; infinity if there are no more. No run goes
        on until then.
    checkpoints : Checkpointing
        What runs save, and how long that takes.
    source : str
        File or law.
    draw : callable, optional
        The table up to another time, which has the same rows and more; of faults by law.

    Raises
    ------
    InputError
        If times are no ticks or in another order, or a node is down twice at a time.
    """

    node: Whole
    down_s: Times
    up_s: Times
    known_until_s: float = math.inf
    checkpoints: Checkpointing = field(default_factory=Checkpointing)
    source: str = "failures"
    draw: Callable[[float], NodeFailures] | None = None

    def __post_init__(self) -> None:
        shapes = {column.shape for column in (self.node, self.down_s, self.up_s)}
        if shapes != {(len(self.node),)}:
            raise InputError(f"{self.source}: columns of faults have shapes {sorted(shapes)}")
        times = (self.down_s >= 0) & (self.down_s < self.up_s) & (self.down_s <= MAX_TIME_S)
        times &= on_grid(self.down_s) & (np.isinf(self.up_s) | on_grid(self.up_s))
        times &= (self.up_s <= MAX_TIME_S) | np.isinf(self.up_s)
        self._refuse(~times, "expected 0 <= down_s < up_s, multiples of 2**-20 s below 2**32 s")
        order = np.lexsort((self.node, self.down_s))
        self._refuse(order != np.arange(len(order)), "expected rows in order of down_s, then node")
        by_node = np.lexsort((self.down_s, self.node))
        node, down_s, up_s = self.node[by_node], self.down_s[by_node], self.up_s[by_node]
        again = np.zeros(len(node), dtype=bool)
        again[by_node[1:]] = (node[1:] == node[:-1]) & (down_s[1:] <= up_s[:-1])
        self._refuse(again, "the node is down already, expected downtimes apart")
        for column in (self.node, self.down_s, self.up_s):
            column.flags.writeable = False

    def _refuse(self, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            k = int(bad.argmax())
            raise InputError(
                f"{self.source}: fault {k} (node {self.node[k]}, {self.down_s[k]} to {self.up_s[k]} s): {expected}"
            )

    def check(self, cluster: Cluster) -> None:
        """Refuse faults of nodes that a cluster does not have.

        Raises
        ------
        InputError
            Naming the first.
        """
        nodes = len(cluster.nodes)
        bad = (self.node < 0) | (self.node >= nodes)
        if bad.any():
            k = int(bad.argmax())
            raise InputError(
                f"{self.source}: fault {k} is of node {self.node[k]}, expected 0 to {nodes - 1}: the cluster "
                f"has {nodes} nodes"
            )

    def longer(self) -> NodeFailures:
        """The same faults, known for twice as long.

        Raises
        ------
        InputError
            If there are more than :data:`MOST_FAULTS` by then, nobody knows more, or times go no further.
        """
        if self.draw is None:
            raise InputError(
                f"{self.source}: faults are known until {self.known_until_s:.10g} s, and jobs are not complete "
                "by then; expected a longer log of faults, or less work"
            )
        if self.known_until_s >= MAX_TIME_S:
            raise InputError(f"{self.source}: jobs are not complete after 2**32 s: {_EXPECTED}")
        found = self.draw(min(2 * self.known_until_s, MAX_TIME_S))
        if len(found) > MOST_FAULTS:
            raise InputError(
                f"{self.source}: jobs are not complete after {self.known_until_s:.10g} s and {len(self)} faults: "
                f"{_EXPECTED}"
            )
        return found

    def __len__(self) -> int:
        return len(self.node)

    def __repr__(self) -> str:
        return f"NodeFailures({cut(self.source, 60)}: {len(self)} faults)"


_EXPECTED = "expected longer times between faults, or shorter ones between checkpoints"


def merged(
    node: Whole,
    down_s: Times,
    up_s: Times,
    source: str,
    checkpoints: Checkpointing,
    known_until_s: float = math.inf,
    draw: Callable[[float], NodeFailures] | None = None,
) -> NodeFailures:
    """Downtimes from faults that may overlap or touch: a node is down while it has any; O(F log F)."""
    order = np.lexsort((down_s, node))
    node, down_s, up_s = node[order], down_s[order], up_s[order]
    new, latest_s, kept_up = np.ones(len(node), dtype=bool), -math.inf, up_s.copy()
    first = 0
    for k, (of, begin_s, end_s) in enumerate(
        zip(node.tolist(), down_s.tolist(), up_s.tolist(), strict=True)
    ):
        if k and of == node[first] and begin_s <= latest_s:
            new[k], latest_s = False, max(latest_s, end_s)
            kept_up[first] = latest_s
        else:
            first, latest_s = k, end_s
    node, down_s, up_s = node[new], down_s[new], kept_up[new]
    order = np.lexsort((node, down_s))
    return NodeFailures(
        node[order], down_s[order], up_s[order], known_until_s, checkpoints, source, draw
    )
