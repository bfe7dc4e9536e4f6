"""Faults from files: a table of downtimes, and the log of faults of InfiniteHBD.

A table is a CSV with the columns ``node`` (position in the cluster, from 0), ``down_s`` and ``up_s``
(seconds from time 0; empty for a node that stays down). Downtimes of a node may overlap.

The log is that of InfiniteHBD (SIGCOMM 2025; stepfun-ai/InfiniteHBD-Trace, Apache-2.0): a JSON list of
events ``{node_id, event_time [days], event_type, fault_type}``. Several faults of a node may be open at a
time: they are counted. It lists nodes that ever failed, not those that did not, so that the number of all
has to be said: ``fault_trace.json:nodes=400``.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import MAX_NODES, Cluster
from shadowprice.instances.documents.schema import Amount, Line, decode
from shadowprice.instances.entries import shown
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures, merged
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, to_grid

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


def read_table(text: str, source: str) -> FaultTable:
    """Downtimes of a CSV; see the module.

    Raises
    ------
    InputError
        Naming the row that is not as expected.
    """
    rows = csv.reader(StringIO(text))
    try:
        header = [word.strip() for word in next(rows, [])]
        if header != _COLUMNS:
            raise InputError(
                f"{source}: columns {header!r:.80}, expected {','.join(_COLUMNS)}, or a JSON log of faults"
            )
        found = [_downtime(row, f"{source}: row {k}") for k, row in enumerate(rows, 1) if row]
    except csv.Error as error:
        raise InputError(f"{source}: is no CSV: {error}") from error
    node, down_s, up_s = zip(*found, strict=True) if found else ((), (), ())
    return FaultTable(
        source, np.array(node, dtype=np.int64), np.array(down_s, float), np.array(up_s, float)
    )


def _downtime(row: list[str], where: str) -> tuple[int, float, float]:
    if len(row) != len(_COLUMNS):
        raise InputError(f"{where}: has {len(row)} cells, expected {','.join(_COLUMNS)}")
    try:
        node, down_s = int(row[0]), float(row[1])
        up_s = float(row[2]) if row[2].strip() else math.inf
    except ValueError:
        raise InputError(f"{where}: got {shown(','.join(row))}, expected three numbers") from None
    if not 0 <= node < MAX_NODES or not 0 <= down_s < up_s or not down_s <= MAX_TIME_S:
        raise InputError(
            f"{where}: got {shown(','.join(row))}, expected a node from 0 and 0 <= down_s < up_s"
        )
    return node, *_ticks(down_s, up_s)


def _ticks(down_s: float, up_s: float) -> tuple[float, float]:
    """A downtime on the time grid, of a tick at least; what ends after all times does not end."""
    begin_s = float(to_grid(down_s))
    end_s = float(to_grid(up_s)) if up_s <= MAX_TIME_S else math.inf
    return begin_s, max(end_s, begin_s + TICK_S)


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


def read_log(text: str, source: str, choices: str) -> FaultLog:
    """The log of InfiniteHBD.

    Parameters
    ----------
    choices : str
        ``nodes=400``, and perhaps ``seed=1`` and ``from_day=100``: the day of the log at which runs begin.

    Raises
    ------
    InputError
        If the number of nodes is missing, a choice is unknown, or an event is not as expected.
    """
    events = decode(list[_Event], parse_json(text, source), source)
    chosen = _choices(choices, source)
    ids = sorted({event.node_id for event in events})
    if "nodes" not in chosen:
        raise InputError(
            f"{source}: lists {len(ids)} nodes that failed, and not how many there are; expected {source}:nodes=N "
            "(400 in the published trace)"
        )
    nodes, seed, from_day = (
        int(chosen["nodes"]),
        int(chosen.get("seed", 0)),
        chosen.get("from_day", 0.0),
    )
    if not len(ids) <= nodes <= MAX_NODES:
        raise InputError(
            f"{source}: nodes is {nodes}, expected at least the {len(ids)} that failed"
        )
    end_day = max((event.event_time for event in events), default=0.0)
    number = {name: k for k, name in enumerate(ids)}
    faults: dict[int, list[tuple[float, float]]] = {}
    for name, (begin, end) in _downtimes(events, source):
        if end > from_day:
            down, up = (max(day - from_day, 0.0) * _DAY_S for day in (begin, end))
            faults.setdefault(number[name], []).append(_ticks(down, up))
    if end_day <= from_day:
        raise InputError(
            f"{source}: from_day is {from_day}, expected a day before the last event, {end_day}"
        )
    name = f"{source}:nodes={nodes},from_day={from_day},seed={seed}"
    return FaultLog(name, faults, float(to_grid((end_day - from_day) * _DAY_S)), nodes, seed)


def _choices(text: str, source: str) -> dict[str, float]:
    kinds = {"nodes": int, "seed": int, "from_day": float}
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        try:
            if not equals or name not in kinds or name in found:
                raise ValueError
            found[name] = kinds[name](value)
            if not 0 <= found[name] <= MAX_TIME_S:
                raise ValueError
        except ValueError:
            raise InputError(
                f"{source}: choice {part!r}, expected each of nodes=N, seed=N and from_day=DAYS once at most"
            ) from None
    return found


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


def load(path: Path, choices: str) -> FaultTable | FaultLog:
    """A table or a log, told apart by its first character.

    Raises
    ------
    InputError
        If it is neither, or a table is read with choices.
    """
    text = read_text(path)
    if text.lstrip()[:1] in "[{":
        return read_log(text, str(path), choices)
    if choices:
        raise InputError(f"{path}: is a table of downtimes and takes no choices, got {choices!r}")
    return read_table(text, str(path))
