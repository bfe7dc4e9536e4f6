"""Faults from files: a table of downtimes, and the log of faults of InfiniteHBD.

A table is a CSV with the columns ``node`` (position in the cluster, from 0), ``down_s`` and ``up_s``
(seconds from time 0; empty for a node that stays down). Downtimes of a node may overlap.

The log is that of InfiniteHBD (SIGCOMM 2025; stepfun-ai/InfiniteHBD-Trace, Apache-2.0): a JSON list of
events ``{node_id, event_time [days], event_type, fault_type}``. Several faults of a node may be open at a
time: they are counted. It lists nodes that ever failed, not those that did not, so that the number of all
has to be said: ``--with failures:file=fault_trace.json,nodes=400``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import MAX_NODES, Cluster
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.documents.schema import Amount, Line, decode
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures, Times, merged
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, to_grid
from shadowprice.instances.workload_files import read_table

_COLUMNS = ["node", "down_s", "up_s"]
_DAY_S = 86_400.0


@dataclass(frozen=True, eq=False)
class FaultTable:
    """Downtimes of the nodes of one cluster, all that there are.

    Parameters
    ----------
    name : str
        File, or other origin.
    node : ndarray of int, shape (faults,)
    down_s, up_s : ndarray, shape (faults,)
        As of :class:`NodeFailures`; those of a node may overlap.
    """

    name: str
    node: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    down_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    up_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def of(
        self, cluster: Cluster, checkpoints: Checkpointing, known_until_s: float
    ) -> NodeFailures:
        """The same faults, of nodes that the cluster has.

        Raises
        ------
        InputError
            If it does not have one of them.
        """
        return merged(self.node, self.down_s, self.up_s, self.name, checkpoints)


def _downtimes_of_table(path: Path) -> FaultTable:
    """Downtimes of a CSV; see the module."""
    table = read_table(path, empty=True, whole_rows=True)
    if list(table) != _COLUMNS:
        raise InputError(
            f"{path}: columns {list(table)!r:.80}, expected {','.join(_COLUMNS)}, or a JSON log of faults"
        )
    check = ColumnChecks(str(path), np.arange(1, len(table["node"]) + 1))
    node = check.integers("node", table["node"], 0, MAX_NODES - 1)
    down_s = check.numbers("down_s", table["down_s"], 0.0, MAX_TIME_S, "seconds >= 0")
    up_s = ColumnChecks.floats(np.where(table["up_s"] == "", np.inf, table["up_s"]))
    check.holds("up_s", table["up_s"], down_s < up_s, "seconds after down_s, or nothing")
    return FaultTable(str(path), node, *_on_grid(down_s, up_s))


def _on_grid(down_s: Times, up_s: Times) -> tuple[Times, Times]:
    """Downtimes on the time grid, of a tick at least; what ends after all times does not end."""
    begin_s = to_grid(down_s)
    end_s = np.where(up_s <= MAX_TIME_S, to_grid(up_s), np.inf)
    return begin_s, np.maximum(end_s, begin_s + TICK_S)


@dataclass(frozen=True, eq=False)
class FaultLog:
    """A log of faults of a cluster with nodes of which the simulated one has some, drawn by a seed.

    Parameters
    ----------
    name : str
        File with what was chosen.
    faults : mapping of int to list of (float, float)
        Downtimes of the nodes that ever failed, numbered from 0 [s].
    end_s : float
        Time at which the log ends [s]; no run may go on until then.
    nodes : int
        All nodes of the logged cluster; those that are not listed never failed.
    seed : int
        Seed of the draw of the simulated cluster's nodes from them, without repetition.
    """

    name: str
    faults: dict[int, list[tuple[float, float]]]
    end_s: float
    nodes: int
    seed: int = 0

    def seeded(self, seed: int) -> FaultLog:
        """The same log, and another draw of nodes."""
        name = f"{self.name.rpartition(',seed=')[0]},seed={seed}"
        return replace(self, name=name, seed=seed)

    def of(
        self, cluster: Cluster, checkpoints: Checkpointing, known_until_s: float
    ) -> NodeFailures:
        """Faults of the nodes that the cluster was given, until the end of the log.

        Raises
        ------
        InputError
            If the cluster has more nodes than the logged one.
        """
        wanted = len(cluster.nodes)
        if wanted > self.nodes:
            raise InputError(
                f"{self.name}: is of {self.nodes} nodes, expected at least the {wanted} of the cluster"
            )
        drawn = np.random.default_rng(self.seed).permutation(self.nodes)[:wanted].tolist()
        rows = [
            (node, down_s, up_s)
            for node, logged in enumerate(drawn)
            for down_s, up_s in self.faults.get(logged, ())
        ]
        node, down_s, up_s = zip(*rows, strict=True) if rows else ((), (), ())
        return merged(
            np.array(node, dtype=np.int64),
            np.array(down_s, dtype=np.float64),
            np.array(up_s, dtype=np.float64),
            self.name,
            checkpoints,
            self.end_s,
        )


class _FaultType(msgspec.Struct, frozen=True, rename="pascal"):
    level: Line
    class_: Annotated[Line, Meta(description="text")] = msgspec.field(name="Class")
    desc: Line


class _Event(msgspec.Struct, frozen=True):
    node_id: Line
    event_time: Amount
    event_type: Literal["fault_start", "fault_end"]
    fault_type: _FaultType | None = None


def read_log(
    text: str, source: str, *, nodes: int | None = None, from_day: float = 0.0, seed: int = 0
) -> FaultLog:
    """The log of InfiniteHBD.

    Parameters
    ----------
    nodes : int, optional
        Nodes of the logged cluster, those that never failed as well.
    from_day : float
        Day of the log at which runs begin.
    seed : int
        Of the draw of nodes.

    Raises
    ------
    InputError
        If the number of nodes is missing or less than those that failed, or an event is not as expected.
    """
    events = decode(list[_Event], parse_json(text, source), source)
    ids = sorted({event.node_id for event in events})
    if nodes is None:
        raise InputError(
            f"{source}: lists {len(ids)} nodes that failed, and not how many there are; expected nodes=N "
            "(400 in the published trace)"
        )
    if not len(ids) <= nodes <= MAX_NODES:
        raise InputError(
            f"{source}: nodes is {nodes}, expected at least the {len(ids)} that failed"
        )
    end_day = max((event.event_time for event in events), default=0.0)
    if end_day <= from_day:
        raise InputError(
            f"{source}: from_day is {from_day}, expected a day before the last event, {end_day}"
        )
    number = {name: k for k, name in enumerate(ids)}
    faults: dict[int, list[tuple[float, float]]] = {}
    for name, days in _downtimes(events, source):
        if days[1] > from_day:
            down, up = (np.array([max(day - from_day, 0.0) * _DAY_S]) for day in days)
            begin_s, end_s = _on_grid(down, up)
            faults.setdefault(number[name], []).append((float(begin_s[0]), float(end_s[0])))
    name = f"{source}:nodes={nodes},from_day={from_day},seed={seed}"
    return FaultLog(name, faults, float(to_grid((end_day - from_day) * _DAY_S)), nodes, seed)


def _downtimes(events: list[_Event], source: str) -> list[tuple[str, tuple[float, float]]]:
    """From the first open fault of a node to the end of its last [days]; one that stays open has no end."""
    numbered = sorted(
        enumerate(events), key=lambda each: (each[1].event_time, each[1].event_type == "fault_end")
    )
    still_open: dict[str, list[float]] = {}
    found = []
    for row, event in numbered:
        begun = still_open.setdefault(event.node_id, [])
        if event.event_type == "fault_start":
            begun.append(event.event_time)
        elif not begun:
            raise InputError(
                f"{source}: event {row}: a fault of node {event.node_id!r} ends that did not begin"
            )
        elif len(begun) == 1:
            found.append((event.node_id, (begun.pop(), event.event_time)))
        else:
            begun.pop()
    for name, begun in still_open.items():
        if begun:
            found.append((name, (begun[0], math.inf)))
    return found


def load(path: Path, choices: Mapping[str, Any]) -> FaultTable | FaultLog:
    """A table or a log, told apart by its first character.

    Parameters
    ----------
    choices : mapping
        Of a log: ``nodes``, ``from_day`` and ``seed``, as of :func:`read_log`.

    Raises
    ------
    InputError
        If it is neither, or a table is read with choices.
    """
    text = read_text(path)
    if text.lstrip()[:1] in "[{":
        return read_log(text, str(path), **choices)
    if choices:
        raise InputError(
            f"{path}: is a table of downtimes and takes no choices, got {', '.join(choices)}"
        )
    return _downtimes_of_table(path)
