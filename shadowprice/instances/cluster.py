"""Clusters: nodes with GPUs of a type, and the notation ``NODESxGPUS[:TYPE][+CPUScpu][+MEMORYgb]``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import cut
from shadowprice.errors import InputError
from shadowprice.instances.clusters.node_lists import LISTS, read_nodes
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.entries import ONE_LINE, is_number, known_keys, on_one_line
from shadowprice.instances.files import parse_toml, read_text

ANY_TYPE = "gpu"
"""GPU type of a node whose type was not given."""

CORES = "cores"
"""GPU type of a node without GPUs, whose ``gpus`` are cores of CPUs: for jobs that ask for cores alone."""

MAX_NODES = 1_000_000
MAX_GPUS_PER_NODE = 1_000_000
_NUMBERS = ("cpus", "memory_gb", "intra_gb_per_s", "nic_gb_per_s", "price_per_hour")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_GROUP = re.compile(
    r"(?P<nodes>[0-9]{1,9})\s*x\s*(?P<gpus>[0-9]{1,9})(?:\s*:\s*(?P<type>[A-Za-z0-9_.\-]+))?"
    rf"(?:\s*\+\s*(?P<cpus>{_NUMBER})\s*cpu)?(?:\s*\+\s*(?P<memory_gb>{_NUMBER})\s*gb)?"
)


@dataclass(frozen=True, slots=True)
class Node:
    """One server.

    Parameters
    ----------
    gpus : int
        GPUs of the node, at least 1; its cores where the type is :data:`CORES`.
    gpu_type : str
        Name of the GPU type, as in the workload's throughput table.
    cpus, memory_gb : float
        CPU cores and memory [GB]; 0 means unknown and is never a constraint.
    intra_gb_per_s, nic_gb_per_s : float
        Bandwidth between the node's GPUs and of its network card [GB/s]; 0 means unknown.
    price_per_hour : float
        Price of the whole node; 0 means unknown.
    rack : str
        Name of its rack or access switch, empty where unknown.
    whole_cpus : bool
        Whether it gives out whole CPUs only, as Slurm does.
    """

    gpus: int
    gpu_type: str = ANY_TYPE
    cpus: float = 0.0
    memory_gb: float = 0.0
    intra_gb_per_s: float = 0.0
    nic_gb_per_s: float = 0.0
    price_per_hour: float = 0.0
    rack: str = ""
    whole_cpus: bool = False

    def __post_init__(self) -> None:
        if (
            isinstance(self.gpus, bool)
            or not isinstance(self.gpus, int)
            or not 1 <= self.gpus <= MAX_GPUS_PER_NODE
        ):
            raise InputError(
                f"node: gpus is {self.gpus!r}, expected an integer from 1 to {MAX_GPUS_PER_NODE}"
            )
        if not isinstance(self.gpu_type, str) or not self.gpu_type:
            raise InputError(f"node: gpu_type is {self.gpu_type!r}, expected a non-empty name")
        if not on_one_line(self.gpu_type):
            raise InputError(f"node: gpu_type is {self.gpu_type!r}, expected {ONE_LINE}")
        if not isinstance(self.rack, str) or not on_one_line(self.rack):
            raise InputError(f"node: rack is {self.rack!r}, expected {ONE_LINE}")
        if not isinstance(self.whole_cpus, bool):
            raise InputError(f"node: whole_cpus is {self.whole_cpus!r}, expected true or false")
        for name in _NUMBERS:
            value = getattr(self, name)
            if not is_number(value) or value < 0:
                raise InputError(f"node: {name} is {value!r}, expected a finite number >= 0")


@dataclass(frozen=True)
class Cluster:
    """Nodes in a fixed order; a node is known by its position. Tenants may have quotas of their GPUs.

    Examples
    --------
    >>> cluster = Cluster.parse("9x4:v100,9x4:p100,9x4:k80")
    >>> cluster.total_gpus, cluster.gpu_types
    (108, ('v100', 'p100', 'k80'))
    >>> str(cluster)
    '9x4:v100,9x4:p100,9x4:k80'
    >>> Cluster.parse("16x8:v100+24cpu+500gb").nodes[0].cpus
    24.0
    """

    nodes: tuple[Node, ...]
    quotas: Quotas | None = None

    def __post_init__(self) -> None:
        if not all(isinstance(node, Node) for node in self.nodes):
            raise InputError("cluster: expected nodes of class Node, or use Cluster.parse")
        if not self.nodes:
            raise InputError("cluster: has no nodes, expected at least one")
        if len(self.nodes) > MAX_NODES:
            raise InputError(f"cluster: {len(self.nodes)} nodes, expected at most {MAX_NODES}")

    @classmethod
    def parse(cls, spec: str) -> Cluster:
        """Read ``NODESxGPUS[:TYPE][+CPUScpu][+MEMORYgb]`` groups, comma-separated.

        Examples: ``16x4``, ``8x4:v100,2x8:a100``, and with the CPUs and the memory [GB] of each
        node ``16x8:v100+24cpu+500gb``.

        Raises
        ------
        InputError
            If a group does not have this form, or asks for no or too many nodes.
        """
        nodes: list[Node] = []
        for text in str(spec).split(","):
            match = _GROUP.fullmatch(text.strip())
            if match is None:
                raise InputError(
                    f"cluster {spec!r}: group {text.strip()!r} is not "
                    "NODESxGPUS[:TYPE][+CPUScpu][+MEMORYgb], e.g. 16x4, 9x4:v100 or 16x8+24cpu+500gb"
                )
            count, gpus = int(match["nodes"]), int(match["gpus"])
            if not 1 <= count + len(nodes) <= MAX_NODES or count < 1 or gpus < 1:
                raise InputError(
                    f"cluster {spec!r}: group {text.strip()!r}: expected 1 to {MAX_NODES} nodes of at least 1 GPU"
                )
            cpus, memory_gb = float(match["cpus"] or 0), float(match["memory_gb"] or 0)
            node = Node(gpus, match["type"] or ANY_TYPE, cpus, memory_gb)
            nodes.extend([node] * count)
        return cls(tuple(nodes))

    @classmethod
    def from_toml(cls, path: str | Path) -> Cluster:
        """Read a file of ``[[nodes]]`` tables: a ``count`` and the fields of :class:`Node`."""
        given = parse_toml(read_text(path), str(path))
        tables = known_keys(given, str(path), ("nodes",)).get("nodes")
        if not isinstance(tables, list) or not tables:
            raise InputError(f"{path}: expected at least one [[nodes]] table with gpus = ...")
        return cls(_nodes(tables, f"{path}: [[nodes]] table"))

    @classmethod
    def from_list(cls, path: str | Path) -> Cluster:
        """Read a list of nodes, a row each: one that a trace publishes, or of one's own."""
        return cls(_nodes(read_nodes(path, _KEYS), f"{path}: node"))

    @classmethod
    def load(cls, spec_or_path: str | Path) -> Cluster:
        """Read a ``.toml`` file or a list of nodes (``.csv``) where one is named, the short notation otherwise."""
        if str(spec_or_path).endswith(".toml"):
            return cls.from_toml(spec_or_path)
        if str(spec_or_path).endswith(LISTS):
            return cls.from_list(spec_or_path)
        return cls.parse(str(spec_or_path))

    @cached_property
    def gpus_per_node(self) -> NDArray[np.int64]:
        """GPUs of every node, shape (nodes,)."""
        return np.array([node.gpus for node in self.nodes], dtype=np.int64)

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """Distinct GPU types in order of first appearance."""
        return tuple(dict.fromkeys(node.gpu_type for node in self.nodes))

    @cached_property
    def type_of_node(self) -> NDArray[np.int64]:
        """Index into :attr:`gpu_types` of every node, shape (nodes,)."""
        index = {name: k for k, name in enumerate(self.gpu_types)}
        return np.array([index[node.gpu_type] for node in self.nodes], dtype=np.int64)

    @cached_property
    def gpus_per_type(self) -> NDArray[np.int64]:
        """GPUs of every type, shape (types,)."""
        totals = np.zeros(len(self.gpu_types), dtype=np.int64)
        np.add.at(totals, self.type_of_node, self.gpus_per_node)
        return totals

    @cached_property
    def rack_of_node(self) -> NDArray[np.object_]:
        """Rack of every node, empty where unknown, shape (nodes,)."""
        return np.array([node.rack for node in self.nodes], dtype=object)

    @cached_property
    def total_gpus(self) -> int:
        """GPUs of the whole cluster; cores of nodes that have only these count as such."""
        return int(self.gpus_per_node.sum())

    @cached_property
    def cores(self) -> int:
        """Cores of the nodes of type :data:`CORES`, which :attr:`total_gpus` counts as well."""
        return sum(node.gpus for node in self.nodes if node.gpu_type == CORES)

    @property
    def physical_gpus(self) -> int:
        """GPUs of the whole cluster, without the cores that :attr:`total_gpus` counts."""
        return self.total_gpus - self.cores

    def groups(self) -> list[tuple[int, Node]]:
        """Runs of equal nodes as (count, node)."""
        return [(len(list(run)), node) for node, run in groupby(self.nodes)]

    def __str__(self) -> str:
        def one(count: int, node: Node) -> str:
            kind = "" if node.gpu_type == ANY_TYPE else f":{node.gpu_type}"
            cpus = f"+{_shortest(node.cpus)}cpu" if node.cpus else ""
            memory = f"+{_shortest(node.memory_gb)}gb" if node.memory_gb else ""
            return f"{count}x{node.gpus}{kind}{cpus}{memory}"

        return ",".join(one(count, node) for count, node in self.groups())

    def __repr__(self) -> str:
        cores = f", {self.cores} cores" if self.cores else ""
        return f"Cluster({cut(str(self), 60)!r}: {len(self.nodes)} nodes, {self.physical_gpus} GPUs{cores})"


def _shortest(value: float) -> str:
    """The shortest text that reads back as this number."""
    return repr(float(value)).removesuffix(".0")


_KEYS = ("count", *(field.name for field in fields(Node)))


def _nodes(entries: Iterable[object], where: str) -> tuple[Node, ...]:
    """Nodes of groups of equal ones, which messages number from 1."""
    return tuple(
        node for k, entry in enumerate(entries, 1) for node in _group(entry, f"{where} {k}")
    )


def _group(entry: object, where: str) -> list[Node]:
    table = known_keys(entry, where, _KEYS, ("gpus",))
    count = table.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_NODES:
        raise InputError(f"{where}: count is {count!r}, expected an integer from 1 to {MAX_NODES}")
    try:
        return [Node(**{key: value for key, value in table.items() if key != "count"})] * count
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
